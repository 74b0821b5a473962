//! From a command line of a manifest to what is started.
//!
//! A command goes to the platform's shell, unless it is a plain program with
//! plain arguments: then the shell would only cost time.
//!
//! Script references. The working directory is the project's root, or the
//! handler's `cwd` under it. A word that names a file relatively is looked up:
//!
//! * in a project's manifest, a word that begins with `./` or `../`: from the
//!   project's root, then from the manifest's own folder;
//! * in a user's or managed manifest, any relative word with a slash: from the
//!   manifest's own folder only. A file of the project at hand must never take
//!   the place of the user's script.
//!
//! The first that is a file stands in place of the word, as an absolute path.

use std::path::{Path, PathBuf};

use anyhook_model::Scope;

/// What a command's relative names are relative to.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    pub scope: Scope,
    /// The project's root.
    pub root: &'a Path,
    /// The manifest's folder.
    pub folder: &'a Path,
    /// The working directory.
    pub cwd: &'a Path,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launch {
    /// A program and its arguments.
    Direct(Vec<String>),
    /// A line for the platform's shell.
    Shell(String),
}

impl Launch {
    pub fn prepare(command: &str, place: Place<'_>) -> Self {
        let words = words(command);
        if is_plain(command, &words) {
            let mut argv: Vec<String> = words
                .iter()
                .map(|word| match place.script(&word.text) {
                    Some(path) => path.to_string_lossy().into_owned(),
                    None => word.text.clone(),
                })
                .collect();
            if let Some(program) = argv.first_mut()
                && program.contains('/')
            {
                *program = place.base().join(&*program).to_string_lossy().into_owned();
            }
            return Self::Direct(argv);
        }
        let mut line = String::with_capacity(command.len());
        let mut done = 0;
        for (n, word) in words.iter().enumerate() {
            let program = (n == 0).then(|| place.own_program(&word.text)).flatten();
            if let Some(path) = place.script(&word.text).or(program) {
                line.push_str(command.get(done..word.start).unwrap_or_default());
                line.push_str(&shell_quote(&path.to_string_lossy()));
                done = word.end;
            }
        }
        line.push_str(command.get(done..).unwrap_or_default());
        Self::Shell(line)
    }
}

impl Place<'_> {
    /// The file that stands in place of a word.
    fn script(&self, word: &str) -> Option<PathBuf> {
        let dotted = word.starts_with("./") || word.starts_with("../");
        let candidates: &[&Path] = match self.scope {
            Scope::Project if dotted => &[self.root, self.folder],
            Scope::Managed | Scope::User if word.contains('/') => &[self.folder],
            _ => return None,
        };
        if Path::new(word).is_absolute() {
            return None;
        }
        candidates
            .iter()
            .map(|base| normalized(&base.join(word)))
            .find(|path| path.is_file())
    }

    /// What a program's relative path is relative to when no script was found.
    fn base(&self) -> &Path {
        match self.scope {
            Scope::Project => self.cwd,
            Scope::Managed | Scope::User => self.folder,
        }
    }

    /// Where a user's script would have to be: when it is missing there, the
    /// shell must not find the project's file of that name in its place.
    fn own_program(&self, word: &str) -> Option<PathBuf> {
        let relative = word.starts_with("./") || word.starts_with("../");
        (relative && self.scope != Scope::Project).then(|| normalized(&self.folder.join(word)))
    }

    /// Every file that a command names, as it will be found when it runs,
    /// except those that it only writes: a hook's own log is not its code.
    pub fn named_files(&self, command: &str) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut program = String::new();
        for word in words(command) {
            if word.is_program {
                program.clone_from(&word.text);
            } else if word.is_target || WRITERS.contains(&program.as_str()) {
                continue;
            }
            // `--config=./rules.json` names a file as well.
            let option = word.text.split_once('=');
            let is_output = |name: &str| name.starts_with("--log") || name.starts_with("--out");
            if option.is_some_and(|(name, _)| is_output(name)) {
                continue;
            }
            let value = option.map(|(_, value)| value);
            for text in [Some(word.text.as_str()), value].into_iter().flatten() {
                if text.is_empty() {
                    continue;
                }
                let path = self
                    .script(text)
                    .unwrap_or_else(|| normalized(&self.cwd.join(text)));
                if path.is_file() && !files.contains(&path) {
                    files.push(path);
                }
            }
        }
        files
    }
}

/// Programs that do not run, nor obey, the files that they are given.
const WRITERS: [&str; 5] = ["mkdir", "rm", "rmdir", "tee", "touch"];

/// `a/./b/../c` as `a/c`, by text alone.
pub(crate) fn normalized(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                if !clean.pop() {
                    clean.push("..");
                }
            }
            part => clean.push(part),
        }
    }
    clean
}

struct Word {
    start: usize,
    end: usize,
    /// Without its quotes.
    text: String,
    /// The first word of one of the line's commands.
    is_program: bool,
    /// Output is redirected to it.
    is_target: bool,
}

/// Splits as a shell would, as far as quotes and separators go. Expansions
/// stay as they are written: such a word names no file that could be known.
fn words(command: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let mut quote: Option<char> = None;
    let mut escaped = false;
    let mut is_program = true;
    let mut is_target = false;
    for (at, c) in command.char_indices() {
        let separates = quote.is_none() && !escaped && (c.is_whitespace() || ";|&()<>".contains(c));
        if separates {
            if let Some(mut ended) = word.take() {
                ended.end = at;
                words.push(ended);
                is_target = false;
            }
            is_target |= c == '>';
            is_program |= ";|&(\n".contains(c) && !is_target;
            continue;
        }
        let current = word.get_or_insert_with(|| Word {
            start: at,
            end: at,
            text: String::new(),
            is_program: std::mem::take(&mut is_program),
            is_target,
        });
        if escaped {
            escaped = false;
            current.text.push(c);
            continue;
        }
        match (quote, c) {
            (None | Some('"'), '\\') => escaped = true,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => current.text.push(c),
        }
    }
    if let Some(mut ended) = word {
        ended.end = command.len();
        words.push(ended);
    }
    words
}

/// Words that only a shell understands.
const SHELL_WORDS: [&str; 36] = [
    ".", ":", "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done", "elif",
    "else", "esac", "eval", "exec", "exit", "export", "fi", "for", "if", "read", "readonly",
    "return", "set", "shift", "source", "then", "times", "trap", "type", "ulimit", "umask",
    "unset", "wait", "while",
];

/// Whether the command means the same without a shell.
fn is_plain(command: &str, words: &[Word]) -> bool {
    let plain_char = |c: char| c == ' ' || c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    let Some(program) = words.first() else {
        return false;
    };
    command.chars().all(plain_char)
        && !program.text.contains('=')
        && !SHELL_WORDS.contains(&program.text.as_str())
        && program.text != "until"
        // `npm` is `npm.cmd` on Windows, and only its shell finds that.
        && cfg!(unix)
}

#[cfg(unix)]
fn shell_quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(windows)]
fn shell_quote(text: &str) -> String {
    format!("\"{text}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place<'a>(scope: Scope, root: &'a Path, folder: &'a Path) -> Place<'a> {
        Place {
            scope,
            root,
            folder,
            cwd: root,
        }
    }

    fn scratch() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("it's a project");
        let folder = root.join(".anyhook");
        std::fs::create_dir_all(&folder).unwrap();
        for file in [
            root.join("both.sh"),
            folder.join("both.sh"),
            folder.join("own.sh"),
        ] {
            std::fs::write(file, "").unwrap();
        }
        (dir, root, folder)
    }

    #[test]
    fn plain_programs_go_without_a_shell() {
        let here = Path::new("/nowhere");
        let place = place(Scope::Project, here, here);
        for plain in ["true", "python3 -m guard --level=3", "/usr/bin/env node"] {
            assert!(
                matches!(Launch::prepare(plain, place), Launch::Direct(_)),
                "{plain}"
            );
        }
        for shell in [
            "cd x",
            "A=1 b",
            "a | b",
            "a > b",
            "echo $HOME",
            "a 'b c'",
            "ls *",
            "~/x",
            "a\nb",
            "exit 2",
            "",
        ] {
            assert_eq!(
                Launch::prepare(shell, place),
                Launch::Shell(shell.to_owned()),
                "{shell}"
            );
        }
    }

    #[test]
    fn a_project_looks_in_its_root_then_beside_its_manifest() {
        let (_dir, root, folder) = scratch();
        let place = place(Scope::Project, &root, &folder);
        let path = |path: PathBuf| path.to_string_lossy().into_owned();
        assert_eq!(
            Launch::prepare("./both.sh -x", place),
            Launch::Direct(vec![path(root.join("both.sh")), "-x".to_owned()])
        );
        assert_eq!(
            Launch::prepare("./own.sh", place),
            Launch::Direct(vec![path(folder.join("own.sh"))])
        );
        let quoted = shell_quote(&path(folder.join("own.sh")));
        assert_eq!(
            Launch::prepare("sh \"./own.sh\" | cat", place),
            Launch::Shell(format!("sh {quoted} | cat"))
        );
        assert_eq!(
            place.named_files("sh ./own.sh --rules=./both.sh && both.sh"),
            vec![folder.join("own.sh"), root.join("both.sh")]
        );
        for writes in [
            "true >./both.sh",
            "true 2>> both.sh && true",
            "date | tee -a ./both.sh",
            "touch ./own.sh",
            "x --log-file=./both.sh",
        ] {
            assert_eq!(place.named_files(writes), Vec::<PathBuf>::new(), "{writes}");
        }
        for runs in [
            "touch x; ./both.sh",
            "x 2>&1 | sh both.sh",
            "(cat <both.sh)",
        ] {
            assert_eq!(place.named_files(runs), [root.join("both.sh")], "{runs}");
        }
    }

    #[test]
    fn a_users_script_is_never_taken_from_the_project() {
        let (_dir, root, folder) = scratch();
        std::fs::remove_file(folder.join("own.sh")).unwrap();
        std::fs::write(root.join("own.sh"), "").unwrap();
        let user = place(Scope::User, &root, &folder);
        assert_eq!(user.named_files("./both.sh"), vec![folder.join("both.sh")]);
        assert_eq!(
            Launch::prepare("sh ./both.sh;", user),
            Launch::Shell(format!(
                "sh {};",
                shell_quote(&folder.join("both.sh").to_string_lossy())
            ))
        );
        let missing = folder.join("own.sh").to_string_lossy().into_owned();
        assert_eq!(
            Launch::prepare("./own.sh", user),
            Launch::Direct(vec![folder.join("./own.sh").to_string_lossy().into_owned()])
        );
        assert_eq!(
            Launch::prepare("./own.sh;", user),
            Launch::Shell(format!("{};", shell_quote(&missing)))
        );
    }
}
