//! Turns a manifest's command line into what is started.
//!
//! A command goes to the platform's shell, unless it is a plain program with
//! plain arguments: then the shell would only cost time. On Windows a line that
//! only a POSIX shell understands goes to one, and a backslash is a separator.
//!
//! Script references. The working directory is the project's root, or the
//! handler's `cwd` under it. A word that names a file relatively is looked up:
//!
//! * in a project's manifest, a word that begins with `./` or `../`: from the
//!   project's root, then from the manifest's own folder;
//! * there also a program or script with another slash, such as
//!   `scripts/check.sh`: from the working directory, then from the manifest's
//!   own folder;
//! * in a user's or managed manifest, any relative word: from the manifest's
//!   own folder only. A file of the current project must never replace the
//!   user's script. So a program with a slash, a file for an interpreter, and a
//!   file that exists in the project all mean the file in the manifest's
//!   folder, even if it is missing there. Other words are names of files only
//!   if such a file is in that folder.
//!
//! The first match replaces the word, as an absolute path.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use anyhook_model::Scope;
use anyhook_util::shell::{self, Syntax, Word};

use super::interpreters::needs_posix_shell;
use super::words::{WordRole, WordRoles};

/// The folders to which a command's relative names refer.
#[derive(Debug, Clone, Copy)]
pub struct CommandContext<'a> {
    pub scope: Scope,
    /// The project's root.
    pub root: &'a Path,
    /// The manifest's folder.
    pub folder: &'a Path,
    /// The working directory.
    pub cwd: &'a Path,
}

impl<'a> CommandContext<'a> {
    /// For a command in the root of a project.
    pub(crate) fn in_root(root: &'a Path) -> Self {
        Self {
            scope: Scope::Project,
            root,
            folder: root,
            cwd: root,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandLine {
    /// A program and its arguments.
    Direct(Vec<String>),
    /// A line for the platform's shell.
    Shell(String),
}

impl CommandLine {
    pub fn prepare(command: &str, context: CommandContext<'_>) -> Self {
        if cfg!(windows) && needs_posix_shell(command) {
            let shell = ShellKind::Posix;
            let line = shell_line(command, context, shell);
            return Self::Direct(["sh", "-c", &line].map(str::to_owned).to_vec());
        }
        Self::prepare_native(command, context)
    }

    /// For a line that was written for the platform's own shell.
    pub(crate) fn prepare_native(command: &str, context: CommandContext<'_>) -> Self {
        let shell = ShellKind::of_platform();
        let words = shell::split(command, shell.syntax()).words;
        if is_plain(command, &words) {
            return Self::prepare_words(&words, context);
        }
        Self::Shell(shell_line(command, context, shell))
    }

    /// A program and its arguments, for which no shell is involved.
    pub(crate) fn prepare_program(argv: &[String], context: CommandContext<'_>) -> Self {
        let quoted = shell::join(argv);
        Self::prepare_words(&shell::split(&quoted, Syntax::SCRIPT).words, context)
    }

    fn prepare_words(words: &[Word], context: CommandContext<'_>) -> Self {
        let mut roles = WordRoles::default();
        let mut argv: Vec<String> = words
            .iter()
            .map(|word| {
                let replacement = context.replacement(word, roles.next_role(word));
                replacement.unwrap_or_else(|| word.text.clone())
            })
            .collect();
        if let Some(program) = argv.first_mut()
            && program.contains(is_separator)
        {
            *program = context.cwd.join(&*program).to_string_lossy().into_owned();
        }
        Self::Direct(argv)
    }
}

/// A path with `/` between its parts, also where the system has `\`.
pub(crate) fn with_slashes(text: &str) -> Cow<'_, str> {
    if cfg!(windows) && text.contains('\\') {
        Cow::Owned(text.replace('\\', "/"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Whether a path is divided at this character.
fn is_separator(c: char) -> bool {
    c == '/' || (cfg!(windows) && c == '\\')
}

/// How the shell that runs a line on this platform divides it.
pub(crate) fn line_syntax(line: &str) -> Syntax {
    ShellKind::of_line(line).syntax()
}

/// The shell that a line is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShellKind {
    Posix,
    Cmd,
}

impl ShellKind {
    fn of_platform() -> Self {
        if cfg!(windows) {
            Self::Cmd
        } else {
            Self::Posix
        }
    }

    fn syntax(self) -> Syntax {
        Syntax {
            escapes: self == Self::Posix,
            ..Syntax::SCRIPT
        }
    }

    /// The shell that runs a line on this platform.
    fn of_line(line: &str) -> Self {
        if cfg!(windows) && needs_posix_shell(line) {
            Self::Posix
        } else {
            Self::of_platform()
        }
    }

    fn quote(self, text: &str) -> String {
        match self {
            Self::Posix => shell::quote(text),
            Self::Cmd => format!("\"{text}\""),
        }
    }
}

/// The line with the files that it names relatively as absolute paths.
fn shell_line(command: &str, context: CommandContext<'_>, shell: ShellKind) -> String {
    let words = shell::split(command, shell.syntax()).words;
    let mut roles = WordRoles::default();
    let replacements = words
        .iter()
        .map(|word| context.replacement(word, roles.next_role(word)));
    let mut line = String::with_capacity(command.len());
    let mut done = 0;
    for (word, replacement) in words.iter().zip(replacements) {
        let Some(path) = replacement else { continue };
        line.push_str(command.get(done..word.start).unwrap_or_default());
        if word.expands || word.is_pattern {
            // What the shell expands must stay as it is written.
            line.push_str(&shell.quote(&context.folder.to_string_lossy()));
            line.push('/');
            done = word.start;
        } else {
            line.push_str(&shell.quote(&path));
            done = word.end;
        }
    }
    line.push_str(command.get(done..).unwrap_or_default());
    line
}

impl CommandContext<'_> {
    /// What replaces a word.
    fn replacement(&self, word: &Word, role: WordRole) -> Option<String> {
        match self.scope {
            Scope::Project => Some(self.script(&word.text)?.to_string_lossy().into_owned()),
            Scope::Managed | Scope::User => self.user_file(word, role),
        }
    }

    /// The file in a user's manifest folder that a word names.
    fn user_file(&self, word: &Word, role: WordRole) -> Option<String> {
        let written = with_slashes(&word.text);
        let (option, text) = match written.split_once('=') {
            Some((name, value)) if name.starts_with('-') => (Some(name), value),
            _ => (None, &*written),
        };
        let is_relative = !Path::new(text).is_absolute()
            && !text.is_empty()
            && !text.starts_with(['-', '~', '$', '`'])
            && !text.contains("://");
        let expands = word.is_pattern || word.expands;
        if !is_relative || SHELL_WORDS.contains(&text) || (expands && option.is_some()) {
            return None;
        }
        let path = normalize_path(&self.folder.join(text));
        let exists = path.exists() && (text.contains('/') || path.is_file());
        let is_meant = match role {
            WordRole::Program => text.contains('/'),
            WordRole::Script => true,
            WordRole::Folder | WordRole::Output => false,
            WordRole::Argument => {
                let dotted = text.starts_with("./") || text.starts_with("../");
                text.contains('/') && (dotted || expands || self.cwd.join(text).exists())
            }
        };
        (exists || is_meant).then(|| match option {
            Some(name) => format!("{name}={}", path.to_string_lossy()),
            None => path.to_string_lossy().into_owned(),
        })
    }

    /// The existing file that a relative word names.
    pub(in crate::run) fn script(&self, word: &str) -> Option<PathBuf> {
        let word = &*with_slashes(word);
        let dotted = word.starts_with("./") || word.starts_with("../");
        let is_path = word.contains('/') && !word.starts_with(['-', '~', '$']);
        let candidates: &[&Path] = match self.scope {
            Scope::Project if dotted => &[self.root, self.folder],
            Scope::Project if is_path && !self.cwd.join(word).exists() => &[self.folder],
            Scope::Managed | Scope::User => &[self.folder],
            Scope::Project => return None,
        };
        if Path::new(word).is_absolute() {
            return None;
        }
        candidates
            .iter()
            .map(|base| normalize_path(&base.join(word)))
            .find(|path| path.is_file())
    }
}

/// `a/./b/../c` as `a/c`, by text alone.
pub(crate) fn normalize_path(path: &Path) -> PathBuf {
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

/// Commands of `cmd.exe` itself that a hook may use.
const CMD_WORDS: [&str; 27] = [
    "assoc", "call", "cls", "copy", "date", "del", "dir", "echo", "endlocal", "erase", "md",
    "mkdir", "mklink", "move", "popd", "pushd", "rd", "rem", "ren", "rmdir", "setlocal", "start",
    "time", "title", "ver", "verify", "vol",
];

/// Whether the command means the same without a shell.
fn is_plain(command: &str, words: &[Word]) -> bool {
    let plain_char = |c: char| {
        c == ' ' || c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c) || is_separator(c)
    };
    let Some(program) = words.first() else {
        return false;
    };
    command.chars().all(plain_char)
        && !program.text.contains('=')
        && !SHELL_WORDS.contains(&program.text.as_str())
        && program.text != "until"
        && !(cfg!(windows) && is_for_cmd(command, &program.text))
}

/// Whether only `cmd.exe` understands a line: by a variable, or by a command of
/// its own, which no file has the name of.
fn is_for_cmd(command: &str, program: &str) -> bool {
    let program = program.to_ascii_lowercase();
    command.contains('%') || CMD_WORDS.contains(&program.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context<'a>(scope: Scope, root: &'a Path, folder: &'a Path) -> CommandContext<'a> {
        CommandContext {
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

    #[cfg(unix)]
    #[test]
    fn plain_programs_go_without_a_shell() {
        let here = Path::new("/nowhere");
        let context = context(Scope::Project, here, here);
        for plain in ["true", "python3 -m guard --level=3", "/usr/bin/env node"] {
            assert!(
                matches!(CommandLine::prepare(plain, context), CommandLine::Direct(_)),
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
                CommandLine::prepare(shell, context),
                CommandLine::Shell(shell.to_owned()),
                "{shell}"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_project_looks_in_its_root_then_beside_its_manifest() {
        let (_dir, root, folder) = scratch();
        let context = context(Scope::Project, &root, &folder);
        let path = |path: PathBuf| path.to_string_lossy().into_owned();
        assert_eq!(
            CommandLine::prepare("./both.sh -x", context),
            CommandLine::Direct(vec![path(root.join("both.sh")), "-x".to_owned()])
        );
        assert_eq!(
            CommandLine::prepare("./own.sh", context),
            CommandLine::Direct(vec![path(folder.join("own.sh"))])
        );
        std::fs::create_dir_all(folder.join("lib")).unwrap();
        std::fs::write(folder.join("lib/own.sh"), "").unwrap();
        assert_eq!(
            CommandLine::prepare("lib/own.sh -x", context),
            CommandLine::Direct(vec![path(folder.join("lib/own.sh")), "-x".to_owned()])
        );
        std::fs::create_dir_all(root.join("lib")).unwrap();
        std::fs::write(root.join("lib/own.sh"), "").unwrap();
        assert_eq!(
            CommandLine::prepare("sh lib/own.sh", context),
            CommandLine::Direct(vec!["sh".to_owned(), "lib/own.sh".to_owned()])
        );
        let quoted = ShellKind::of_platform().quote(&path(folder.join("own.sh")));
        assert_eq!(
            CommandLine::prepare("sh \"./own.sh\" | cat", context),
            CommandLine::Shell(format!("sh {quoted} | cat"))
        );
        let files = |command: &str| context.files_of(command, &[]).files;
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

    #[cfg(unix)]
    #[test]
    fn a_users_script_is_never_taken_from_the_project() {
        let (_dir, root, folder) = scratch();
        std::fs::remove_file(folder.join("own.sh")).unwrap();
        std::fs::write(root.join("own.sh"), "").unwrap();
        let user = context(Scope::User, &root, &folder);
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::create_dir_all(folder.join("lib")).unwrap();
        for file in [
            root.join("sub/x.sh"),
            root.join("data.json"),
            folder.join("lib/y.sh"),
        ] {
            std::fs::write(file, "").unwrap();
        }
        assert_eq!(
            user.files_of("./both.sh", &[]).files,
            [folder.join("both.sh")]
        );
        let of = |path: &str| folder.join(path).to_string_lossy().into_owned();
        let shell_quote = |text: &str| ShellKind::of_platform().quote(text);
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
            // Not files, or files of the project to look at.
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
                CommandLine::prepare(command, user),
                CommandLine::Shell(expected),
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
                CommandLine::prepare(command, user),
                CommandLine::Direct(expected),
                "{command}"
            );
        }
    }
}
