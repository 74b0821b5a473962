//! The command line.
//!
//! `commands/` has one file per command, `render` is the only place that
//! writes to the terminal.

mod cli;
mod commands;
mod render;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
