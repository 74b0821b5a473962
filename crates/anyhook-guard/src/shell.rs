//! Shell text as invocations of programs, as far as that can be known without
//! running it.
//!
//! Bounded by construction: text of more than [`MAX_COMMAND_BYTES`], deep nesting
//! and scripts that expand to very much are not read to the end, and the guards
//! ask about them.

mod code;
mod evaluate;
mod expand;
mod invocation;
mod mounts;
mod output;
mod parser;
mod powershell;
mod syntax;
mod windows_cmd;
mod wrappers;

use std::fmt;

use serde::Serialize;

use crate::context::GuardContext;
use evaluate::{Evaluator, Scope, StageInput};

pub use invocation::{Invocation, InvocationPlace, ResolvedRedirect, ResolvedWord, UNKNOWN};
pub use syntax::RedirectKind;

pub(crate) use code::without_prose;
pub(crate) use invocation::{is_option, program_name};
pub(crate) use wrappers::{SHELLS, first_operand, is_encoded_command};

/// Longer commands are not read.
pub const MAX_COMMAND_BYTES: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ShellKind {
    /// sh, bash and their relatives.
    Posix,
    PowerShell,
    Cmd,
}

/// How a command was read; `Display` prints it for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShellAnalysis {
    pub shell: ShellKind,
    pub invocations: Vec<Invocation>,
    /// Too long, too deep or too much: not everything was read.
    pub is_incomplete: bool,
    /// The shell would reject a part of the text.
    pub has_errors: bool,
}

impl ShellAnalysis {
    /// The invocations whose output reaches one of those given, through pipes and
    /// words, the given ones included.
    pub(crate) fn upstream(&self, starts: impl IntoIterator<Item = usize>) -> Vec<&Invocation> {
        let mut found = Vec::new();
        let mut seen = vec![false; self.invocations.len()];
        let mut waiting: Vec<usize> = starts.into_iter().collect();
        while let Some(index) = waiting.pop() {
            match seen.get_mut(index) {
                Some(mark @ false) => *mark = true,
                _ => continue,
            }
            let Some(invocation) = self.invocations.get(index) else {
                continue;
            };
            found.push(invocation);
            let words = invocation.words.iter().flat_map(|word| word.sources.iter());
            let redirects = invocation
                .redirects
                .iter()
                .flat_map(|redirect| redirect.target.sources.iter());
            let ranges = words
                .chain(redirects)
                .chain(std::iter::once(&invocation.input_from));
            waiting.extend(
                ranges
                    .flat_map(Clone::clone)
                    .filter(|source| seen.get(*source) == Some(&false)),
            );
        }
        found
    }
}

impl fmt::Display for ShellAnalysis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for invocation in &self.invocations {
            writeln!(formatter, "{}", invocation.shown())?;
            if let Some(cwd) = &invocation.cwd {
                writeln!(formatter, "    in {cwd}")?;
            }
            if invocation.place != InvocationPlace::Local {
                writeln!(formatter, "    on another machine or in a container")?;
            }
        }
        if self.is_incomplete {
            writeln!(
                formatter,
                "not read to the end: too long, too deep or too much"
            )?;
        }
        if self.has_errors {
            writeln!(formatter, "a shell would reject a part of this")?;
        }
        Ok(())
    }
}

/// Reads a command that runs in `cwd`.
pub fn analyze(
    command: &str,
    shell: ShellKind,
    cwd: Option<&str>,
    context: &GuardContext,
) -> ShellAnalysis {
    let home = context
        .home
        .as_deref()
        .map(std::path::Path::to_string_lossy);
    let project = context
        .project
        .as_deref()
        .map(std::path::Path::to_string_lossy);
    let mut evaluator = Evaluator {
        home: home.as_deref(),
        project: project.as_deref(),
        invocations: Vec::new(),
        is_incomplete: false,
        has_errors: false,
        work: 0,
        written: std::collections::HashMap::new(),
        copies: Vec::new(),
        links: Vec::new(),
        readers: Vec::new(),
        mounts: Vec::new(),
    };
    if command.len() > MAX_COMMAND_BYTES {
        evaluator.is_incomplete = true;
    } else {
        let cwd = cwd
            .or(project.as_deref())
            .and_then(|cwd| crate::paths::normalize(None, cwd));
        let mut scope = Scope::new(cwd);
        let cleaned;
        let command = if command.contains(UNKNOWN) {
            cleaned = command.replace(UNKNOWN, "");
            cleaned.as_str()
        } else {
            command
        };
        match shell {
            ShellKind::Posix => evaluator.run_text(command, &mut scope, &StageInput::default()),
            ShellKind::PowerShell => powershell::run(&mut evaluator, command, &scope),
            ShellKind::Cmd => windows_cmd::run(&mut evaluator, command, &scope),
        }
    }
    ShellAnalysis {
        shell,
        invocations: evaluator.invocations,
        is_incomplete: evaluator.is_incomplete,
        has_errors: evaluator.has_errors,
    }
}
