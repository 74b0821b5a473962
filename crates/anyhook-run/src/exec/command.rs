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
//! * in a user's or managed manifest, any relative word: from the manifest's
//!   own folder only. A file of the project at hand must never take the place
//!   of the user's script: what has a slash and is a program, what an
//!   interpreter is to run, and what is there in the project, stands for the
//!   file in the manifest's folder even where that is missing. Other words are
//!   names of files only when such a file is in that folder.
//!
//! The first that is a file stands in place of the word, as an absolute path.

use std::path::{Path, PathBuf};

use anyhook_model::Scope;

use super::words::{Role, Roles, Word, words};

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
        let mut roles = Roles::default();
        let stand_ins = words
            .iter()
            .map(|word| place.stand_in(word, roles.next(word)));
        if is_plain(command, &words) {
            let mut argv: Vec<String> = words
                .iter()
                .zip(stand_ins)
                .map(|(word, stand_in)| stand_in.unwrap_or_else(|| word.text.clone()))
                .collect();
            if let Some(program) = argv.first_mut()
                && program.contains('/')
            {
                *program = place.cwd.join(&*program).to_string_lossy().into_owned();
            }
            return Self::Direct(argv);
        }
        let mut line = String::with_capacity(command.len());
        let mut done = 0;
        for (word, stand_in) in words.iter().zip(stand_ins) {
            let Some(path) = stand_in else { continue };
            line.push_str(command.get(done..word.start).unwrap_or_default());
            if word.expands || word.is_pattern {
                // What the shell completes must stay as it is written.
                line.push_str(&shell_quote(&place.folder.to_string_lossy()));
                line.push('/');
                done = word.start;
            } else {
                line.push_str(&shell_quote(&path));
                done = word.end;
            }
        }
        line.push_str(command.get(done..).unwrap_or_default());
        Self::Shell(line)
    }
}

impl Place<'_> {
    /// What stands in place of a word.
    fn stand_in(&self, word: &Word, role: Role) -> Option<String> {
        let path = match self.scope {
            Scope::Project => self.script(&word.text),
            Scope::Managed | Scope::User => return self.own(word, role),
        };
        path.map(|path| path.to_string_lossy().into_owned())
    }

    /// The file of a user's own folder that a word means.
    fn own(&self, word: &Word, role: Role) -> Option<String> {
        let (option, text) = match word.text.split_once('=') {
            Some((name, value)) if name.starts_with('-') => (Some(name), value),
            _ => (None, word.text.as_str()),
        };
        let is_relative = !Path::new(text).is_absolute()
            && !text.is_empty()
            && !text.starts_with(['-', '~', '$', '`'])
            && !text.contains("://");
        let completes = word.is_pattern || word.expands;
        if !is_relative || SHELL_WORDS.contains(&text) || (completes && option.is_some()) {
            return None;
        }
        let own = normalized(&self.folder.join(text));
        let is_own = own.exists() && (text.contains('/') || own.is_file());
        let is_meant = match role {
            Role::Program => text.contains('/'),
            Role::Script => true,
            Role::Folder | Role::Output => false,
            Role::Argument => {
                let dotted = text.starts_with("./") || text.starts_with("../");
                text.contains('/') && (dotted || completes || self.cwd.join(text).exists())
            }
        };
        (is_own || is_meant).then(|| match option {
            Some(name) => format!("{name}={}", own.to_string_lossy()),
            None => own.to_string_lossy().into_owned(),
        })
    }

    /// The file of a project that a word means.
    pub(super) fn script(&self, word: &str) -> Option<PathBuf> {
        let dotted = word.starts_with("./") || word.starts_with("../");
        let candidates: &[&Path] = match self.scope {
            Scope::Project if dotted => &[self.root, self.folder],
            Scope::Managed | Scope::User => &[self.folder],
            Scope::Project => return None,
        };
        if Path::new(word).is_absolute() {
            return None;
        }
        candidates
            .iter()
            .map(|base| normalized(&base.join(word)))
            .find(|path| path.is_file())
    }
}

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
        let files = |command: &str| place.named(command, &[]).files;
        assert_eq!(
            files("sh ./own.sh --rules=./both.sh && both.sh"),
            vec![folder.join("own.sh"), root.join("both.sh")]
        );
        for writes in [
            "true >./both.sh",
            "true 2>> both.sh && true",
            "date | tee -a ./both.sh",
            "touch ./own.sh",
            "x --log-file=./both.sh",
        ] {
            assert_eq!(files(writes), Vec::<PathBuf>::new(), "{writes}");
        }
        for runs in [
            "touch x; ./both.sh",
            "x 2>&1 | sh both.sh",
            "(cat <both.sh)",
        ] {
            assert_eq!(files(runs), [root.join("both.sh")], "{runs}");
        }
    }

    #[test]
    fn a_users_script_is_never_taken_from_the_project() {
        let (_dir, root, folder) = scratch();
        std::fs::remove_file(folder.join("own.sh")).unwrap();
        std::fs::write(root.join("own.sh"), "").unwrap();
        let user = place(Scope::User, &root, &folder);
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::create_dir_all(folder.join("lib")).unwrap();
        for file in [
            root.join("sub/x.sh"),
            root.join("data.json"),
            folder.join("lib/y.sh"),
        ] {
            std::fs::write(file, "").unwrap();
        }
        assert_eq!(user.named("./both.sh", &[]).files, [folder.join("both.sh")]);
        let of = |path: &str| folder.join(path).to_string_lossy().into_owned();
        let quoted = |path: &str| shell_quote(&of(path));
        let cases = [
            ("sh ./both.sh;", format!("sh {};", quoted("both.sh"))),
            ("./own.sh;", format!("{};", quoted("own.sh"))),
            ("sub/x.sh;", format!("{};", quoted("sub/x.sh"))),
            ("sh own.sh;", format!("sh {};", quoted("own.sh"))),
            (
                "python3.11 -u guard.py;",
                format!("python3.11 -u {};", quoted("guard.py")),
            ),
            (
                "env A=1 sh sub/x.sh;",
                format!("env A=1 sh {};", quoted("sub/x.sh")),
            ),
            (". lib/y.sh;", format!(". {};", quoted("lib/y.sh"))),
            ("cat sub/x.sh;", format!("cat {};", quoted("sub/x.sh"))),
            (
                "sh lib/*.sh;",
                format!("sh {}/lib/*.sh;", shell_quote(&folder.to_string_lossy())),
            ),
            // Not files of anybody's, or the project's to look at.
            ("git diff origin/main;", "git diff origin/main;".to_owned()),
            (
                "curl https://x/y -H a/b;",
                "curl https://x/y -H a/b;".to_owned(),
            ),
            ("jq . data.json;", "jq . data.json;".to_owned()),
            ("sh -c 'echo x';", "sh -c 'echo x';".to_owned()),
            ("date >>sub/log;", "date >>sub/log;".to_owned()),
        ];
        for (command, expected) in cases {
            assert_eq!(
                Launch::prepare(command, user),
                Launch::Shell(expected),
                "{command}"
            );
        }
        let direct = [
            ("./own.sh", vec![of("own.sh")]),
            ("sub/x.sh -v", vec![of("sub/x.sh"), "-v".to_owned()]),
            ("node both.sh", vec!["node".to_owned(), of("both.sh")]),
            (
                "x --rules=sub/x.sh",
                vec!["x".to_owned(), format!("--rules={}", of("sub/x.sh"))],
            ),
        ];
        for (command, expected) in direct {
            assert_eq!(
                Launch::prepare(command, user),
                Launch::Direct(expected),
                "{command}"
            );
        }
    }
}
