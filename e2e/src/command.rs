//! Runs commands that must succeed.

use std::process::Command;

use crate::error::{Error, Result};

/// Runs a command; its standard output if it succeeds.
pub(crate) fn run_to_success(command: &mut Command) -> Result<String> {
    run(command).map(|(stdout, _)| stdout)
}

/// Runs a command; what it printed to standard output and standard error, if it succeeds.
pub(crate) fn run_for_all_output(command: &mut Command) -> Result<String> {
    run(command).map(|(stdout, stderr)| stdout + &stderr)
}

fn run(command: &mut Command) -> Result<(String, String)> {
    let output = command.output().map_err(|source| Error::Start {
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok((text(&output.stdout), text(&output.stderr)));
    }
    Err(Error::Command {
        command: format!("{command:?}"),
        status: output.status.to_string(),
        output: format!("{}{}", text(&output.stdout), text(&output.stderr)),
    })
}
