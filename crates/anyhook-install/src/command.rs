//! The command line of a bridge entry: written for the agent's shell, and
//! recognized again.
//!
//! It is one simple command, a program with plain arguments: some agents append
//! a here-document to it, some split it at blanks without a shell.

use std::path::Path;

use anyhook_agents::spec::Scope;
use anyhook_util::shell::{self, Syntax};

use crate::target::scope_name;
use crate::via_daemon;

/// The shell whose quoting rules the command line follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quoting {
    Posix,
    Cmd,
    PowerShell,
}

pub(crate) const PROGRAM_NAME: &str = "anyhook";

/// Starts the program from the place where `install` keeps it, or else by PATH.
/// Where it is in neither place, the payload is read, so that the agent's write
/// does not fail, and nothing else happens.
///
/// Single quotes must not occur in it, and no variable with a name: some agents
/// replace `${NAME}` themselves, and one that reads other agents' files too does not run
/// an entry whose `$NAME` it does not know. PATH stays as it is, because
/// hooks inherit it.
const SEARCH_SCRIPT: &str = r#"command -v ~/.local/share/anyhook/bin/"$0" >/dev/null && exec ~/.local/share/anyhook/bin/"$0" "$@"; command -v "$0" >/dev/null && exec "$0" "$@"; cat >/dev/null"#;

/// The same as it was written before, in files that an older version installed.
const OLD_SEARCH_SCRIPT: &str = r#"for p in ~/.local/share/anyhook/bin/"$0" "$0"; do command -v "$p" >/dev/null && exec "$p" "$@"; done; cat >/dev/null"#;

/// `powershell -Command` ends with 1 whatever code the program ended with; with
/// this after the line it ends with the program's. Without it, a deny that is an
/// exit code would not block.
pub(crate) const POWERSHELL_EXIT: &str = "; exit $LASTEXITCODE";

/// A line without what PowerShell needs around it.
pub(crate) fn without_powershell(line: &str) -> &str {
    let line = line.trim();
    let line = line.strip_suffix(POWERSHELL_EXIT).unwrap_or(line);
    // A quoted program needs `& ` before it.
    line.strip_prefix("& ").unwrap_or(line).trim()
}

/// How an entry names the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BridgeProgram {
    /// This path, or this name on PATH.
    Named(String),
    /// Wherever it is on the machine that runs the entry: for files that other
    /// people share. Without the program the entry does nothing, silently.
    Searched,
    /// None: the daemon at this address is called.
    Daemon(String),
}

impl BridgeProgram {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Named(program) | Self::Daemon(program) => program,
            Self::Searched => PROGRAM_NAME,
        }
    }

    /// The same for a command line that no POSIX shell runs.
    pub(crate) fn without_shell(&self) -> Self {
        Self::Named(self.as_str().to_owned())
    }
}

/// A program's path as an entry names it.
pub(crate) fn program_in_entry(program: &Path) -> String {
    if cfg!(windows) {
        windows_program(program)
    } else {
        program.to_string_lossy().into_owned()
    }
}

/// A path on Windows in the form that `cmd.exe`, PowerShell and Git Bash all take
/// without quotes: with `/`, and without blanks, by its short name if there is one.
fn windows_program(program: &Path) -> String {
    let long = anyhook_util::paths::windows_form(&program.to_string_lossy());
    let plain = |path: &str| path.replace('\\', "/");
    let short = (!shell::is_plain(&plain(&long))).then(|| short_path(Path::new(&long)));
    let short = short.flatten().map(|short| plain(&short));
    let short = short.filter(|short| shell::is_plain(short));
    short.unwrap_or_else(|| plain(&long))
}

/// The name without blanks that Windows gives a folder, where it still does so.
/// The file itself may not exist yet.
fn short_path(path: &Path) -> Option<String> {
    let folder = path.ancestors().find(|ancestor| ancestor.is_dir())?;
    let mut command = std::process::Command::new("cmd.exe");
    command.args(["/D", "/C", "for", "%I", "in", "(.)", "do", "@echo", "%~fsI"]);
    command.current_dir(folder);
    let output = command.stdin(std::process::Stdio::null()).output().ok()?;
    let short = String::from_utf8(output.stdout).ok()?;
    let short = Path::new(short.trim()).join(path.strip_prefix(folder).ok()?);
    Some(short.to_string_lossy().into_owned())
}

/// The value of `--scope`, which an entry needs unless it names the program in
/// the usual way of its scope, by path for a user and by a bare name in a project:
/// two entries with the same command line could not be told apart, and a call that
/// both deliver would be handled twice. A program that is searched may be found
/// at the path that the user's entry names.
pub(crate) fn scope_argument(scope: Scope, program: &BridgeProgram) -> Option<&'static str> {
    let is_name = *program == BridgeProgram::Named(PROGRAM_NAME.to_owned());
    let is_user = scope == Scope::User;
    (is_user == is_name).then(|| scope_name(scope))
}

/// The whole command line.
pub(crate) fn command_line(
    program: &BridgeProgram,
    agent: &str,
    scope: Option<&str>,
    event: Option<&str>,
    quoting: Quoting,
) -> String {
    let mut line = format!(
        "{} run --agent {}",
        quoted(program.as_str(), quoting),
        quoted(agent, quoting)
    );
    if *program == BridgeProgram::Searched && quoting == Quoting::Posix {
        line = format!("/bin/sh -c '{SEARCH_SCRIPT}' {line}");
    }
    if quoting == Quoting::PowerShell && line.starts_with('\'') {
        line.insert_str(0, "& ");
    }
    if let Some(scope) = scope {
        line = format!("{line} --scope {}", quoted(scope, quoting));
    }
    if let Some(event) = event {
        line = format!("{line} --event {}", quoted(event, quoting));
    }
    line
}

fn quoted(word: &str, quoting: Quoting) -> String {
    // A backslash is a plain character on Windows.
    let is_plain = shell::is_plain(&word.replace('\\', "/"));
    match quoting {
        // Git Bash takes these quotes too, and `cmd` does where Git Bash is missing.
        Quoting::Posix
            if cfg!(windows) && !is_plain && !word.contains(['"', '$', '`', '\\', '%', '!']) =>
        {
            format!("\"{word}\"")
        }
        Quoting::Posix => shell::quote_if_needed(word),
        Quoting::Cmd | Quoting::PowerShell if is_plain => word.to_owned(),
        Quoting::Cmd => format!("\"{word}\""),
        Quoting::PowerShell => format!("'{}'", word.replace('\'', "''")),
    }
}

/// A command line that calls the bridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BridgeCommand {
    pub program: BridgeProgram,
    pub agent: String,
    pub event: Option<String>,
    pub scope: Option<String>,
    /// How many seconds the agent waits, if that is more than usual.
    pub timeout: Option<u64>,
}

impl BridgeCommand {
    /// Whether the bridge can tell the two entries of an agent apart.
    pub(crate) fn differs_from(&self, other: &Self) -> bool {
        (&self.program, &self.agent, &self.scope) != (&other.program, &other.agent, &other.scope)
    }

    /// `None` if the command line does not call the bridge.
    pub fn parse(command: &str) -> Option<Self> {
        if let Some(call) = via_daemon::parse_url(command) {
            return Some(call);
        }
        let command = without_powershell(command);
        [true, false]
            .into_iter()
            .find_map(|escapes| from_words(&split_words(command, escapes, true)))
    }
}

/// Whether a command line does nothing but call the bridge. A longer one is the
/// user's own, even if it calls the bridge as well.
pub(crate) fn is_only_bridge(command: &str) -> bool {
    via_daemon::parse_url(command).is_some() || bridge_invocation(command).is_some()
}

/// A command line that does nothing but call the bridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BridgeInvocation {
    pub program: BridgeProgram,
    /// What follows the program.
    pub arguments: Vec<String>,
}

/// `None` if the line does anything else.
pub(crate) fn bridge_invocation(command: &str) -> Option<BridgeInvocation> {
    let command = without_powershell(command);
    [true, false].into_iter().find_map(|escapes| {
        let syntax = Syntax {
            escapes,
            operators: false,
            is_blank: |c| c == ' ' || c == '\t',
        };
        let line = shell::split(command, syntax);
        let is_plain = |word: &shell::Word| !word.expands && !word.is_pattern;
        let is_simple = line.words.iter().all(is_plain)
            && !line.has_operators
            && !line.is_cut
            && !command.contains(['\n', '\r']);
        let words: Vec<String> = line.words.into_iter().map(|word| word.text).collect();
        let (program, arguments) = match words.split_at_checked(3) {
            Some((search, [name, arguments @ ..])) if is_search(search) && name == PROGRAM_NAME => {
                (BridgeProgram::Searched, arguments)
            }
            _ => match words.as_slice() {
                [name, arguments @ ..] if is_anyhook(name) => {
                    (BridgeProgram::Named(name.clone()), arguments)
                }
                _ => return None,
            },
        };
        let is_only_bridge = is_simple
            && arguments.first().is_some_and(|word| word == "run")
            && arguments.iter().all(|word| !word.starts_with('#'));
        is_only_bridge.then(|| BridgeInvocation {
            program,
            arguments: arguments.to_vec(),
        })
    })
}

/// Whether the words before the program's name search it.
fn is_search(words: &[String]) -> bool {
    matches!(words, [sh, option, script] if sh == "/bin/sh" && option == "-c" && [SEARCH_SCRIPT, OLD_SEARCH_SCRIPT].contains(&script.as_str()))
}

fn from_words(words: &[String]) -> Option<BridgeCommand> {
    let start = words
        .windows(2)
        .position(|pair| matches!(pair, [program, run] if is_anyhook(program) && run == "run"))?;
    let is_searched = words.get(..start).is_some_and(is_search);
    let program = match words.get(start)? {
        name if is_searched && name == PROGRAM_NAME => BridgeProgram::Searched,
        name => BridgeProgram::Named(name.clone()),
    };
    let mut rest = words.get(start + 2..)?.iter();
    let (mut agent, mut event, mut scope, mut timeout) = (None, None, None, None);
    while let Some(word) = rest.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        match name {
            "--agent" => agent = value.or_else(|| rest.next().cloned()),
            "--event" => event = value.or_else(|| rest.next().cloned()),
            "--scope" => scope = value.or_else(|| rest.next().cloned()),
            "--timeout" => timeout = value.or_else(|| rest.next().cloned()),
            _ => {}
        }
    }
    Some(BridgeCommand {
        program,
        agent: agent?,
        event,
        scope,
        timeout: timeout.and_then(|seconds| seconds.parse().ok()),
    })
}

fn is_anyhook(word: &str) -> bool {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    name == PROGRAM_NAME || name.eq_ignore_ascii_case("anyhook.exe")
}

/// The words of a line as a shell splits it. `escapes`: a backslash quotes the
/// next character, as in POSIX and not on Windows.
pub fn words(line: &str, escapes: bool) -> Vec<String> {
    split_words(line, escapes, false)
}

fn split_words(line: &str, escapes: bool, operators: bool) -> Vec<String> {
    let syntax = Syntax {
        escapes,
        operators,
        is_blank: char::is_whitespace,
    };
    let words = shell::split(line, syntax).words.into_iter();
    words.map(|word| word.text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_recognized() {
        for program in [
            "anyhook",
            "/usr/bin/anyhook",
            "/home/o'neil x/bin/anyhook",
            "C:\\Program Files\\anyhook.exe",
            "/weird $(x) `y` \"z\"/anyhook",
        ] {
            for quoting in [Quoting::Posix, Quoting::Cmd, Quoting::PowerShell] {
                if quoting != Quoting::Posix && program.contains('"') {
                    continue;
                }
                if quoting == Quoting::PowerShell && program.contains('\'') {
                    continue;
                }
                let program = BridgeProgram::Named(program.to_owned());
                let mut line =
                    command_line(&program, "codex", Some("user"), Some("PreToolUse"), quoting);
                if quoting == Quoting::PowerShell {
                    line.push_str(POWERSHELL_EXIT);
                }
                let ours = BridgeCommand::parse(&line).unwrap_or_else(|| panic!("{line}"));
                assert_eq!(ours.agent, "codex", "{line}");
                assert_eq!(ours.event.as_deref(), Some("PreToolUse"), "{line}");
                assert_eq!(ours.program, program, "{line}");
                assert!(is_only_bridge(&line), "{line}");
            }
        }
    }

    #[test]
    fn a_searched_program_is_recognized() {
        let line = command_line(
            &BridgeProgram::Searched,
            "codex",
            Some("project"),
            None,
            Quoting::Posix,
        );
        let ours = BridgeCommand::parse(&line).unwrap();
        assert_eq!(ours.program, BridgeProgram::Searched, "{line}");
        assert_eq!(ours.scope.as_deref(), Some("project"), "{line}");
        assert!(is_only_bridge(&line), "{line}");
        let old = line.replace(SEARCH_SCRIPT, OLD_SEARCH_SCRIPT);
        assert_ne!(old, line);
        assert_eq!(BridgeCommand::parse(&old).unwrap(), ours);
        assert!(is_only_bridge(&old), "{old}");
        for longer in [
            line.replace("cat", "./mine.sh; cat"),
            format!("{line}; ./mine.sh"),
            line.replace("' anyhook", "' ./anyhook"),
        ] {
            assert!(!is_only_bridge(&longer), "{longer}");
        }
    }

    #[test]
    fn other_commands_are_not_recognized() {
        for line in [
            "",
            "echo hi",
            "anyhook validate",
            "anyhook run",
            "my-anyhook run --agent codex",
            "anyhook-like run --agent codex",
            "./anyhook/guard.sh run --agent codex",
        ] {
            assert_eq!(BridgeCommand::parse(line), None, "{line}");
        }
        assert!(BridgeCommand::parse("A=1 anyhook run --later x --agent=codex").is_some());
        assert!(BridgeCommand::parse("anyhook run --agent codex;x").is_some());
        assert!(is_only_bridge("/x/anyhook run --later x --agent=codex"));
        for line in [
            "A=1 anyhook run --agent codex",
            "env anyhook run --agent codex",
            "./mine.sh && anyhook run --agent codex",
            "anyhook run --agent codex; ./mine.sh",
            "anyhook run --agent codex; exit $LASTEXITCODE; ./mine.sh",
            "./mine.sh; exit $LASTEXITCODE",
            "anyhook run --agent codex | tee x",
            "anyhook run --agent codex > x",
            "anyhook run --agent codex $X",
            "anyhook run --agent `x`",
            "anyhook run --agent codex\n./mine.sh",
            "./log.sh --tool anyhook run --agent codex",
            "anyhook run --agent 'codex",
            "sh -c 'evil; exec \"$0\" \"$@\"' anyhook run --agent codex",
            "sh -c anyhook run --agent codex",
        ] {
            assert!(!is_only_bridge(line), "{line}");
        }
    }
}
