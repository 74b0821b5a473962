//! What runs a script on Windows, where the system starts only programs: a `#!`
//! line means nothing to it, and the association of a file's ending opens an
//! editor or a script host as readily as an interpreter.
//!
//! Pure: what is installed is asked through [`InstalledPrograms`].
#![cfg_attr(
    not(any(windows, test)),
    expect(dead_code, reason = "only Windows needs it; tested everywhere")
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhook_util::shell::{self, Syntax};

/// What is installed on a machine.
pub(super) trait InstalledPrograms {
    /// The file that a bare name means, by PATH.
    fn find(&self, name: &str) -> Option<PathBuf>;
    /// The POSIX shell of Git for Windows or a similar one; not the one of WSL,
    /// which sees other paths.
    fn posix_shell(&self) -> Option<PathBuf>;
    /// The first line of a file.
    fn first_line(&self, file: &Path) -> Option<String>;
}

/// An interpreter, with what it needs before the script.
struct Interpreter {
    /// Endings of its scripts.
    endings: &'static [&'static str],
    /// Names in a `#!` line, and of the program in a command.
    names: &'static [&'static str],
    /// Its programs on Windows, preferred first.
    programs: &'static [&'static str],
    arguments: &'static [&'static str],
    /// For a message: what to install.
    product: &'static str,
}

const INTERPRETERS: [Interpreter; 6] = [
    Interpreter {
        endings: &["sh", "bash", "zsh", "ksh"],
        names: &["sh", "bash", "dash", "ksh", "zsh"],
        programs: &[],
        arguments: &[],
        product: "Git for Windows (its Git Bash)",
    },
    Interpreter {
        endings: &["ps1"],
        names: &["pwsh", "powershell"],
        programs: &["powershell", "pwsh"],
        arguments: &[
            "-NoProfile",
            "-NonInteractive",
            "-ExecutionPolicy",
            "Bypass",
            "-File",
        ],
        product: "PowerShell",
    },
    Interpreter {
        endings: &["py", "pyw"],
        names: &["python", "python3"],
        programs: &["py", "python", "python3"],
        arguments: &[],
        product: "Python",
    },
    Interpreter {
        endings: &["js", "mjs", "cjs"],
        names: &["node", "nodejs"],
        programs: &["node"],
        arguments: &[],
        product: "Node.js",
    },
    Interpreter {
        endings: &["rb"],
        names: &["ruby"],
        programs: &["ruby"],
        arguments: &[],
        product: "Ruby",
    },
    Interpreter {
        endings: &["pl"],
        names: &["perl"],
        programs: &["perl"],
        arguments: &[],
        product: "Perl",
    },
];

/// Endings of programs, which a name may lack, in the order of the system's default.
pub(super) const PROGRAM_ENDINGS: [&str; 4] = ["com", "exe", "bat", "cmd"];

impl Interpreter {
    fn of_file(file: &Path) -> Option<&'static Self> {
        let ending = file.extension()?.to_str()?.to_ascii_lowercase();
        let mut known = INTERPRETERS.iter();
        known.find(|known| known.endings.contains(&ending.as_str()))
    }

    fn of_name(name: &str) -> Option<&'static Self> {
        let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let mut known = INTERPRETERS.iter();
        known.find(|known| known.names.contains(&name))
    }

    /// By a line such as `#!/usr/bin/env -S node`.
    fn of_first_line(line: &str) -> Option<&'static Self> {
        let mut words = line.strip_prefix("#!")?.split_whitespace();
        let name = |word: &'_ str| word.rsplit(['/', '\\']).next().unwrap_or(word).to_owned();
        let mut first = name(words.next()?);
        if first == "env" {
            first = name(words.find(|word| !word.starts_with('-') && !word.contains('='))?);
        }
        Self::of_name(first.strip_suffix(".exe").unwrap_or(&first))
    }

    fn program(&self, installed: &dyn InstalledPrograms) -> Option<PathBuf> {
        if self.programs.is_empty() {
            return installed.posix_shell();
        }
        let mut programs = self.programs.iter();
        programs.find_map(|name| installed.find(name))
    }

    /// The words that stand before the script.
    fn words(&self, what: &str, installed: &dyn InstalledPrograms) -> Result<Vec<String>, String> {
        let program = self.program(installed).ok_or_else(|| {
            format!(
                "`{what}` needs {}, which was not found; install it, or give the hook a command \
                 for Windows in `handler.platform.windows`",
                self.product
            )
        })?;
        let mut words = vec![program.to_string_lossy().into_owned()];
        words.extend(self.arguments.iter().map(|&word| word.to_owned()));
        Ok(words)
    }
}

/// A program and its arguments as the system can start them. An error is what is
/// missing.
pub(super) fn startable(
    argv: &[String],
    installed: &dyn InstalledPrograms,
) -> Result<Vec<String>, String> {
    let (program, arguments) = argv.split_first().ok_or("the command is empty")?;
    let path = Path::new(program);
    let is_bare = !program.contains(['/', '\\']);
    let with = |mut words: Vec<String>, rest: &[String]| {
        words.extend_from_slice(rest);
        words
    };
    if is_bare {
        let name = program.to_ascii_lowercase();
        let name = name.strip_suffix(".exe").unwrap_or(&name);
        // `sh` and `python3` have other names here.
        if let Some(interpreter) = Interpreter::of_name(name)
            && (interpreter.programs.is_empty() || installed.find(name).is_none())
        {
            let words = interpreter.words(program, installed)?.into_iter();
            return Ok(with(words.take(1).collect(), arguments));
        }
        // Only the full path shows whether it is a batch file or a program.
        let found = installed.find(program);
        let found = found.map(|path| path.to_string_lossy().into_owned());
        return Ok(with(
            vec![found.unwrap_or_else(|| program.clone())],
            arguments,
        ));
    }
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    if PROGRAM_ENDINGS.contains(&ending.to_ascii_lowercase().as_str()) {
        return Ok(argv.to_vec());
    }
    let by_first_line = || Interpreter::of_first_line(&installed.first_line(path)?);
    match Interpreter::of_file(path).or_else(by_first_line) {
        Some(interpreter) => Ok(with(interpreter.words(program, installed)?, argv)),
        None => Ok(argv.to_vec()),
    }
}

/// A line for `cmd.exe` in which scripts stand behind their interpreters.
pub(super) fn startable_line(
    line: &str,
    installed: &dyn InstalledPrograms,
) -> Result<String, String> {
    let syntax = Syntax {
        escapes: false,
        ..Syntax::SCRIPT
    };
    let mut startable = String::with_capacity(line.len());
    let mut done = 0;
    for word in shell::split(line, syntax).words {
        let path = Path::new(&word.text);
        let interpreter = Interpreter::of_file(path).or_else(|| {
            // A relative name would be looked up in another folder.
            let line = installed.first_line(path).filter(|_| is_absolute(path))?;
            Interpreter::of_first_line(&line)
        });
        if let Some(interpreter) = interpreter.filter(|_| word.is_program) {
            startable.push_str(line.get(done..word.start).unwrap_or_default());
            let words = interpreter.words(&word.text, installed)?;
            for part in words.iter().chain([&word.text]) {
                let _ = write!(startable, "\"{part}\" ");
            }
            startable.truncate(startable.len() - 1);
            done = word.end;
        }
    }
    startable.push_str(line.get(done..).unwrap_or_default());
    Ok(startable)
}

/// With a drive or a share, on any system that runs the tests.
fn is_absolute(path: &Path) -> bool {
    path.is_absolute() || path.to_string_lossy().contains(":/")
}

/// Words that begin a command of a POSIX shell and mean nothing to `cmd.exe`.
const POSIX_WORDS: [&str; 21] = [
    ".", ":", "[", "alias", "case", "command", "eval", "exec", "export", "read", "readonly",
    "return", "shift", "source", "test", "trap", "ulimit", "umask", "unset", "until", "while",
];

/// Whether a line means something else to `cmd.exe` than to a POSIX shell, for which it was
/// written: a guard that does nothing must be an error.
pub(super) fn needs_posix_shell(line: &str) -> bool {
    let words = shell::split(line, Syntax::SCRIPT).words;
    let is_posix_word = |word: &shell::Word| {
        (word.is_program && POSIX_WORDS.contains(&word.text.as_str())) || word.text.starts_with('#')
    };
    line.contains(['$', '`', '\'', '\n'])
        || has_bare_semicolon(line)
        || words.iter().any(is_posix_word)
}

fn has_bare_semicolon(line: &str) -> bool {
    let mut is_quoted = false;
    line.chars().any(|c| {
        is_quoted ^= c == '"';
        c == ';' && !is_quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with these programs and files.
    struct Machine {
        programs: &'static [(&'static str, &'static str)],
        shell: Option<&'static str>,
    }

    impl InstalledPrograms for Machine {
        fn find(&self, name: &str) -> Option<PathBuf> {
            let mut known = self.programs.iter();
            let found = known.find(|(known, _)| *known == name)?;
            Some(PathBuf::from(found.1))
        }

        fn posix_shell(&self) -> Option<PathBuf> {
            self.shell.map(PathBuf::from)
        }

        fn first_line(&self, file: &Path) -> Option<String> {
            let line = match file.to_str()? {
                "C:/p/node-script" => "#!/usr/bin/env -S A=1 node --x",
                "C:/p/shell-script" => "#!/bin/sh",
                _ => return None,
            };
            Some(line.to_owned())
        }
    }

    const FULL: Machine = Machine {
        programs: &[
            ("node", "C:/node/node.exe"),
            ("npm", "C:/node/npm.cmd"),
            ("powershell", "C:/ps/powershell.exe"),
            ("py", "C:/Windows/py.exe"),
        ],
        shell: Some("C:/Git/bin/bash.exe"),
    };
    const BARE: Machine = Machine {
        programs: &[],
        shell: None,
    };

    fn start(line: &str, machine: &Machine) -> Result<String, String> {
        let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
        startable(&argv, machine).map(|argv| argv.join(" "))
    }

    #[test]
    fn scripts_are_started_by_their_interpreters() {
        let powershell =
            "C:/ps/powershell.exe -NoProfile -NonInteractive -ExecutionPolicy Bypass -File";
        for (line, started) in [
            ("C:/p/a.py -x", "C:/Windows/py.exe C:/p/a.py -x"),
            ("C:/p/a.PS1 -x", &format!("{powershell} C:/p/a.PS1 -x")),
            ("C:/p/a.mjs", "C:/node/node.exe C:/p/a.mjs"),
            (r"C:\p\a.sh b", r"C:/Git/bin/bash.exe C:\p\a.sh b"),
            ("C:/p/node-script 1", "C:/node/node.exe C:/p/node-script 1"),
            ("C:/p/shell-script", "C:/Git/bin/bash.exe C:/p/shell-script"),
            ("C:/p/a.cmd x", "C:/p/a.cmd x"),
            ("C:/p/a.exe x", "C:/p/a.exe x"),
            ("C:/p/unknown x", "C:/p/unknown x"),
            // Names that differ on Windows, and batch files behind names.
            ("sh -c x", "C:/Git/bin/bash.exe -c x"),
            ("python3 a.py", "C:/Windows/py.exe a.py"),
            ("powershell -File a", "C:/ps/powershell.exe -File a"),
            ("npm test", "C:/node/npm.cmd test"),
            ("gone x", "gone x"),
        ] {
            assert_eq!(start(line, &FULL).as_deref(), Ok(started), "{line}");
        }
        for (line, product) in [
            ("C:/p/a.sh", "Git Bash"),
            ("sh -c x", "Git Bash"),
            ("C:/p/a.py", "Python"),
            ("C:/p/a.js", "Node.js"),
            ("C:/p/a.ps1", "PowerShell"),
        ] {
            let why = start(line, &BARE).unwrap_err();
            assert!(
                why.contains(product) && why.contains("handler.platform.windows"),
                "{why}"
            );
        }
        assert!(startable(&[], &FULL).is_err());
    }

    #[test]
    fn scripts_in_a_line_are_too() {
        let line = r#""C:\p q\a.py" x && type b.py | "C:\p\b.js""#;
        assert_eq!(
            startable_line(line, &FULL).unwrap(),
            r#""C:/Windows/py.exe" "C:\p q\a.py" x && type b.py | "C:/node/node.exe" "C:\p\b.js""#
        );
        assert_eq!(startable_line("a.cmd & b", &FULL).unwrap(), "a.cmd & b");
        assert!(startable_line("a.sh | b", &BARE).is_err());
    }

    #[test]
    fn a_line_for_sh_is_not_given_to_cmd() {
        for line in [
            "echo no >&2; exit 2",
            "x $HOME",
            "x 'a b'",
            "x `y`",
            "[ -f x ] && y",
            "a\nb",
            "test -f x || exit 2",
            "export A=1 && b",
            "a # b",
        ] {
            assert!(needs_posix_shell(line), "{line}");
        }
        for line in [
            "echo no 1>&2 & exit 2",
            "echo no >&2 && exit 2",
            "a | b > c",
            "a \"b;c\"",
            "%USERPROFILE%\\a.cmd x",
            "npm test",
            "",
        ] {
            assert!(!needs_posix_shell(line), "{line}");
        }
    }
}
