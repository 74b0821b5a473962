//! Whether the caller of a command may change what guards it.
//!
//! A model that is stopped by a guard may try to switch the guard off, or be
//! told to by a file that it reads. A command in a terminal is the user's; one
//! without a terminal, in the environment of a coding agent, is the model's. That
//! is not a wall: the model can also edit files. It makes the change visible.

use std::io::{self, IsTerminal as _};

use anyhook_run::agent::shell_agent;
use anyhook_run::engine::Engine;

/// An error if a coding agent runs `anyhook <command>` without a terminal and no
/// setting allows it.
pub(crate) fn check(command: &str) -> anyhow::Result<()> {
    if io::stdin().is_terminal() {
        return Ok(());
    }
    check_agent(command)
}

/// As [`check`], and refused without a terminal: a model can hide the
/// variables of its agent.
pub(crate) fn check_terminal(command: &str) -> anyhow::Result<()> {
    check(command)?;
    if io::stdin().is_terminal() || Engine::from_env().allows_agent_changes() {
        return Ok(());
    }
    anyhow::bail!("`anyhook {command}` needs a terminal: only the user may let a call through")
}

fn check_agent(command: &str) -> anyhow::Result<()> {
    let Some((agent, variable)) = shell_agent() else {
        return Ok(());
    };
    if Engine::from_env().allows_agent_changes() {
        return Ok(());
    }
    // The model reads this, so it does not say how to get around it.
    anyhow::bail!(
        "`anyhook {command}` is not run for {agent} (`{variable}` is set): only the user may change which hooks run. Ask the user to run it in a terminal of their own"
    )
}
