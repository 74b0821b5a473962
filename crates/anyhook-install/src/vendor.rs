//! What the agents' tables have no place for: how an agent starts a command,
//! limits of single events, and where it keeps what its user has trusted.
//!
//! Everything else that is known of agents is in their tables. A row is found
//! by the agent's slug; an agent without one is taken to use `sh -c`.

/// What starts a hook's command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// `/bin/sh -c`
    Sh,
    /// `bash -c`
    Bash,
    /// The user's shell, as a login shell: what a profile prints comes first.
    Login,
}

/// Where an agent keeps what its user has trusted, where that is known well
/// enough to read it, and to write it for a user who asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ledger {
    /// Hashes of single entries and a level per project, in `config.toml`
    /// beside the user's hooks.
    HashedEntries,
    /// A map of folders, in this file of the home.
    Folders {
        file: &'static str,
        /// A variable that trusts whatever folder it is.
        env: &'static str,
    },
}

struct Row {
    agent: &'static str,
    ledger: Option<Ledger>,
    shell: Shell,
    powershell: bool,
    /// Native event and the seconds that a handler can ask for at most.
    limits: &'static [(&'static str, f64)],
    /// Endings under which a script of an event is found, in the order of preference.
    endings: &'static [&'static str],
}

const DEFAULT: Row = Row {
    agent: "",
    ledger: None,
    shell: Shell::Sh,
    powershell: false,
    limits: &[],
    endings: &[""],
};

const ROWS: &[Row] = &[
    Row {
        agent: "codex",
        ledger: Some(Ledger::HashedEntries),
        shell: Shell::Login,
        limits: &[("SessionEnd", 3.0), ("Interrupt", 3.0)],
        ..DEFAULT
    },
    Row {
        agent: "cursor",
        shell: Shell::Login,
        powershell: true,
        ..DEFAULT
    },
    Row {
        agent: "gemini-cli",
        ledger: Some(Ledger::Folders {
            file: "~/.gemini/trustedFolders.json",
            env: "GEMINI_CLI_TRUST_WORKSPACE",
        }),
        ..DEFAULT
    },
    Row {
        agent: "copilot-cli",
        shell: Shell::Bash,
        powershell: true,
        ..DEFAULT
    },
    Row {
        agent: "vs-code-copilot",
        powershell: true,
        ..DEFAULT
    },
    Row {
        agent: "kiro",
        shell: Shell::Bash,
        ..DEFAULT
    },
    Row {
        agent: "windsurf",
        shell: Shell::Bash,
        ..DEFAULT
    },
    Row {
        agent: "cline",
        endings: &["", ".sh", ".bash", ".zsh"],
        ..DEFAULT
    },
];

fn row(agent: &str) -> &'static Row {
    ROWS.iter()
        .find(|row| row.agent == agent)
        .unwrap_or(&DEFAULT)
}

pub fn ledger(agent: &str) -> Option<Ledger> {
    row(agent).ledger
}

pub fn shell(agent: &str) -> Shell {
    row(agent).shell
}

/// Whether commands go to PowerShell on Windows.
pub fn powershell(agent: &str) -> bool {
    row(agent).powershell
}

/// The longest time that a handler of this event gets, in seconds.
pub fn limit(agent: &str, event: &str) -> Option<f64> {
    let limits = row(agent).limits.iter();
    limits
        .copied()
        .find(|(name, _)| *name == event)
        .map(|(_, seconds)| seconds)
}

pub fn endings(agent: &str) -> &'static [&'static str] {
    row(agent).endings
}
