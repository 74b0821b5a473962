//! The command line.
//!
//! `commands/` has one file per command, `render` is the only place that
//! writes to the terminal.

#![deny(clippy::disallowed_methods)]

mod cli;
mod commands;
mod commands_page;
mod completion_values;
mod diagnostics;
mod progress;
mod render;
mod simulation;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(unix)]
    anyhook_run::run::exec::reset_inherited_signals();
    anyhook_util::env::remove_stack_size();
    let exit = run();
    #[cfg(unix)]
    anyhook_run::run::exec::stop_watchdog();
    exit
}

fn run() -> ExitCode {
    anyhook_run::agent::own::read_tables_with(anyhook_agents::own::read_own_table);
    // Agents start `run` at every tool call, so it bypasses the argument parser, which
    // would take 0.25 ms, a third of an empty process.
    let mut arguments = std::env::args_os().skip(1).peekable();
    let is_run = arguments.next().is_some_and(|command| command == "run");
    let wants_help = arguments
        .peek()
        .is_some_and(|first| first == "--help" || first == "-h");
    if is_run && !wants_help {
        return cli::run_hooks(arguments).into();
    }
    cli::main().into()
}
