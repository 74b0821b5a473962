//! The files that a command names, as they will be found when it runs.
//!
//! Consent is by content, so a file that can be known must be. Variables that
//! we set ourselves, `cd`, and lines within lines (`sh -c '…'`) are followed.
//! Of a word that only the shell can complete, the files are taken that its
//! written beginning points at, and the word itself is told to the user.

use std::path::{Path, PathBuf};

use super::command::{Place, normalized};
use super::words::{Role, Roles, Word, assignment, words};

/// So many lines within lines are followed.
const NESTING: usize = 3;

/// A folder with more files is not taken as a whole.
const CROWD: usize = 256;

/// What the shell would put in place of these is the repository's root.
const TOPLEVEL: [&str; 3] = [
    "$(git rev-parse --show-toplevel)",
    "$(git rev-parse --show-toplevel 2>/dev/null)",
    "`git rev-parse --show-toplevel`",
];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    pub files: Vec<PathBuf>,
    /// Words that name files which cannot be known before the command runs.
    pub unknown: Vec<String>,
}

impl Named {
    fn add(&mut self, path: PathBuf) {
        if path.is_file() && !self.files.contains(&path) {
            self.files.push(path);
        }
    }
}

impl Place<'_> {
    /// Every file that a command names, except those that it only writes: a
    /// hook's own log is not its code. `variables` are those that it will have.
    pub fn named(&self, command: &str, variables: &[(String, String)]) -> Named {
        let mut named = Named::default();
        let mut reader = Reader {
            place: *self,
            cwd: self.cwd.to_owned(),
            variables: variables.to_vec(),
            named: &mut named,
        };
        reader.line(command, NESTING);
        named
    }
}

struct Reader<'a> {
    place: Place<'a>,
    /// Where the command is by now.
    cwd: PathBuf,
    variables: Vec<(String, String)>,
    named: &'a mut Named,
}

impl Reader<'_> {
    fn line(&mut self, command: &str, nesting: usize) {
        let mut command = command.to_owned();
        for toplevel in TOPLEVEL {
            if command.contains(toplevel) {
                let top = self.repository().to_string_lossy().into_owned();
                command = command.replace(toplevel, &top);
            }
        }
        let mut roles = Roles::default();
        for word in words(&command) {
            let role = roles.next(&word);
            if role != Role::Output {
                self.word(&word, role, nesting);
            }
        }
    }

    fn word(&mut self, word: &Word, role: Role, nesting: usize) {
        let text = self.expanded(&word.text);
        let rest_unknown = word.expands && text.contains(['$', '`']);
        if let Some((name, value)) = assignment(&text)
            && !rest_unknown
        {
            let variable = (name.to_owned(), value.to_owned());
            self.variables.insert(0, variable);
        }
        if role == Role::Folder && !rest_unknown {
            self.cwd = normalized(&self.cwd.join(&text));
            return;
        }
        if rest_unknown || word.is_pattern {
            // Text within a line need not be a line itself.
            let runs = matches!(role, Role::Program | Role::Script | Role::Folder);
            if text.contains('/') || (runs && nesting == NESTING) {
                self.beginning(&text);
                if text != "$" && !self.named.unknown.contains(&word.text) {
                    self.named.unknown.push(word.text.clone());
                }
            }
        } else {
            // `--config=./rules.json` names a file as well.
            let option = text.split_once('=');
            let is_output = |name: &str| name.starts_with("--log") || name.starts_with("--out");
            if option.is_some_and(|(name, _)| is_output(name)) {
                return;
            }
            let value = option.map(|(_, value)| value);
            for text in [Some(text.as_str()), value].into_iter().flatten() {
                self.file(text);
            }
        }
        if nesting > 0 && text.contains(char::is_whitespace) {
            // What a line within a line does to `cd` and variables stays there.
            let (cwd, variables) = (self.cwd.clone(), self.variables.clone());
            self.line(&text, nesting - 1);
            (self.cwd, self.variables) = (cwd, variables);
        }
    }

    fn file(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let script = self.place.script(text);
        // After `cd` it may be either.
        let is_moved = self.cwd != self.place.cwd;
        if is_moved || script.is_none() {
            self.named.add(normalized(&self.cwd.join(text)));
        }
        if let Some(script) = script {
            self.named.add(script);
        }
    }

    /// The files that the written beginning of a word can lead to, when that is
    /// a folder within the project.
    fn beginning(&mut self, text: &str) {
        let known = text.split(['$', '`', '*', '?', '[']).next();
        let Some((folder, name)) = known.and_then(|known| known.rsplit_once('/')) else {
            return;
        };
        let folder = normalized(&self.cwd.join(folder));
        let root = self.place.root;
        if folder == root || !folder.starts_with(root) {
            return;
        }
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(name))
            .map(|entry| entry.path())
            .take(CROWD + 1)
            .collect();
        files.sort();
        if files.len() <= CROWD {
            for file in files {
                self.named.add(file);
            }
        }
    }

    fn repository(&self) -> &Path {
        let mut above = self.place.root.ancestors();
        let top = above.find(|folder| folder.join(".git").exists());
        top.unwrap_or(self.place.root)
    }

    /// The value that a variable will have.
    fn value(&self, name: &str) -> Option<String> {
        let known = self.variables.iter().find(|(known, _)| known == name);
        match (known, name) {
            (Some((_, value)), _) => Some(value.clone()),
            (None, "PWD") => Some(self.cwd.to_string_lossy().into_owned()),
            (None, "HOME") => std::env::var(name).ok(),
            (None, _) => None,
        }
    }

    /// The text with what is known in place of its variables.
    fn expanded(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        if let Some(home) = text.strip_prefix("~/").and_then(|_| self.value("HOME")) {
            out.push_str(&home);
            rest = text.strip_prefix('~').unwrap_or(text);
        }
        while let Some((before, after)) = rest.split_once('$') {
            out.push_str(before);
            let (name, length) = variable(after);
            rest = after.get(length..).unwrap_or_default();
            match self.value(name) {
                Some(value) if !name.is_empty() => out.push_str(&value),
                _ => {
                    out.push('$');
                    out.push_str(after.get(..length).unwrap_or_default());
                }
            }
        }
        out.push_str(rest);
        out
    }
}

/// The variable that a text after `$` begins with, and how much of it that is.
fn variable(text: &str) -> (&str, usize) {
    let name_of = |text: &str| {
        text.bytes()
            .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
            .count()
    };
    let Some(inner) = text.strip_prefix('{') else {
        let length = name_of(text);
        return (text.get(..length).unwrap_or_default(), length);
    };
    let length = name_of(inner);
    let name = inner.get(..length).unwrap_or_default();
    let rest = inner.get(length..).unwrap_or_default();
    // With a default (`${X:-y}`) a known variable is still itself.
    let has_default = rest.starts_with([':', '-', '?']);
    match rest.find('}') {
        Some(end) if end == 0 || has_default => (name, length + end + 2),
        Some(end) => ("", length + end + 2),
        None => ("", 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhook_model::Scope;

    #[test]
    fn what_can_be_known_is() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("project");
        let folder = root.join(".anyhook");
        for file in [
            ".git/HEAD",
            ".anyhook/own.sh",
            "hooks/a.sh",
            "hooks/b.sh",
            "top.sh",
        ] {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let place = Place {
            scope: Scope::Project,
            root: &root,
            folder: &folder,
            cwd: &root,
        };
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let variables = [
            ("PROJECT".to_owned(), text(&root)),
            ("OWN".to_owned(), text(&folder)),
        ];
        let cases: [(&str, &[&str], &[&str]); 18] = [
            ("sh $PROJECT/hooks/a.sh", &["hooks/a.sh"], &[]),
            ("\"${PROJECT}\"/hooks/a.sh", &["hooks/a.sh"], &[]),
            ("\"${PROJECT:-.}/hooks/a.sh\"", &["hooks/a.sh"], &[]),
            ("${OWN}/own.sh", &[".anyhook/own.sh"], &[]),
            ("cd hooks && ./a.sh", &["hooks/a.sh"], &[]),
            ("cd $PROJECT/hooks; sh b.sh", &["hooks/b.sh"], &[]),
            ("cd hooks && ./top.sh", &["top.sh"], &[]),
            ("D=hooks; sh $D/a.sh", &["hooks/a.sh"], &[]),
            (
                "sh -c 'cd hooks && ./a.sh'; ./top.sh",
                &["hooks/a.sh", "top.sh"],
                &[],
            ),
            ("bash -lc \"$PROJECT/hooks/a.sh --x\"", &["hooks/a.sh"], &[]),
            (
                "\"$(git rev-parse --show-toplevel)/hooks/a.sh\"",
                &["hooks/a.sh"],
                &[],
            ),
            (
                "$(git rev-parse --show-toplevel)/hooks/a.sh",
                &["hooks/a.sh"],
                &[],
            ),
            (
                "sh hooks/$NAME.sh",
                &["hooks/a.sh", "hooks/b.sh"],
                &["hooks/$NAME.sh"],
            ),
            (
                "for f in hooks/a*; do sh $f; done",
                &["hooks/a.sh"],
                &["hooks/a*", "$f"],
            ),
            ("sh \"$WHERE/a.sh\"", &[], &["$WHERE/a.sh"]),
            ("sh $(dirname x)/a.sh", &[], &["$()/a.sh"]),
            ("sh ./$NAME", &[], &["./$NAME"]),
            ("jq -r '.a' | grep -q \"$1\" && echo '$5 a/b'", &[], &[]),
        ];
        for (command, files, unknown) in cases {
            let named = place.named(command, &variables);
            let files: Vec<PathBuf> = files.iter().map(|file| root.join(file)).collect();
            assert_eq!(named.files, files, "{command}");
            assert_eq!(named.unknown, unknown, "{command}");
        }
    }
}
