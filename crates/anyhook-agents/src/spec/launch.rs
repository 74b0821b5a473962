//! How the agent starts a hook's command line: shells and folders.

use serde::{Deserialize, Serialize};

use super::Str;

/// How the agent starts a hook's command line.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LaunchSpec {
    pub shell: Shell,
    /// The shell that runs the commands on Windows.
    pub windows: WindowsShell,
    /// File endings of an event's script, the preferred one first.
    pub endings: Vec<Str>,
    /// The folder in which hooks of a project start.
    pub starts_in: StartFolder,
    /// The agent replaces `$NAME` itself, with quotes of its own, and leaves
    /// `${NAME}` to the shell.
    pub expands_variables: bool,
    /// A command line without any of these characters is split at blanks and started
    /// without a shell.
    pub shell_characters: Option<Str>,
    /// A variable of the command itself (`$p`) is unset for the agent, which then
    /// fails the hook: the entry names the program and searches nothing.
    pub fails_on_variables: bool,
    /// What the agent does at every event if the program cannot be found, where
    /// it does not just go on.
    pub missing_program: Option<Str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowsShell {
    /// `cmd.exe`, or none: the quotes are the same.
    #[default]
    Cmd,
    PowerShell,
    /// Git Bash; PowerShell where there is none.
    GitBash,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StartFolder {
    /// The session's folder, which may be below the project's root.
    #[default]
    Session,
    /// The project's root.
    Project,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shell {
    /// `/bin/sh -c`
    #[default]
    Sh,
    /// `bash -c`
    Bash,
    /// The user's shell as a login shell: its profile may print text before the
    /// hook does, and may change PATH.
    Login,
    /// None: the line is split into words.
    None,
}
