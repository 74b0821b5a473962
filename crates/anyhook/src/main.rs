//! The command line.
//!
//! `commands/` has one file per command, `render` is the only place that
//! writes to the terminal.

#![cfg_attr(all(unix, not(test)), no_main)]

mod cli;
mod columns;
mod commands;
mod render;
#[cfg(all(unix, not(test)))]
mod start;
mod trial;

#[cfg(any(not(unix), test))]
fn main() -> std::process::ExitCode {
    work().into()
}

/// The whole program; its exit code.
fn work() -> u8 {
    // `run` starts at every tool call of an agent, so it leaves before the
    // argument parser.
    let mut arguments = std::env::args_os().skip(1).peekable();
    let is_run = arguments.next().is_some_and(|command| command == "run");
    let wants_help = arguments
        .peek()
        .is_some_and(|first| first == "--help" || first == "-h");
    if is_run && !wants_help {
        let code = anyhook_run::entry::main(arguments);
        return u8::try_from(code).unwrap_or(1);
    }
    cli::main()
}
