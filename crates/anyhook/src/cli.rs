//! Arguments to commands, and results to exit codes: 0 for success, 1 for a
//! finding or a failure, 2 for wrong usage.

use clap::{CommandFactory, Parser, Subcommand};

use crate::commands::{
    agents, codex, completions, convert, demo, doctor, emit, explain, init, install, log, man,
    openhook, registries, replay, run, schema, serve, ship, stats, status, tail, test, trust,
    uninstall, validate,
};
use crate::render::Terminal;

/// Write an agent hook once. Run it under every coding agent. See what they did.
#[derive(Parser)]
#[command(
    name = "anyhook",
    version = env!("ANYHOOK_VERSION"),
    arg_required_else_help = true,
    after_help = "Example:\n  anyhook validate .anyhook/hooks.yaml"
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::Args),
    Install(install::Args),
    Uninstall(uninstall::Args),
    Status(status::Args),
    Doctor(doctor::Args),
    Init(init::Args),
    Validate(validate::Args),
    Convert(convert::Args),
    Agents(agents::Args),
    Trust(trust::Args),
    Untrust(trust::UntrustArgs),
    Explain(explain::Args),
    Test(test::Args),
    Run(run::Args),
    Emit(emit::Args),
    Openhook(openhook::Args),
    Codex(codex::Args),
    Serve(serve::Args),
    Ship(ship::Args),
    Log(log::Args),
    Tail(tail::Args),
    Stats(stats::Args),
    Replay(replay::Args),
    Events(registries::Events),
    Tools(registries::Tools),
    Capabilities(registries::Capabilities),
    Schema(schema::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Whether a command that did its work found something wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Good,
    Findings,
}

pub fn command() -> clap::Command {
    Cli::command()
}

pub fn main() -> u8 {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are "errors" to the parser; it knows the stream and the code.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    let terminal = Terminal::from_env();
    let result = match cli.command {
        Command::Run(args) => return run::run(args),
        Command::Codex(args) => match codex::run(args, &terminal) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Command::Install(args) => install::run(&args, &terminal),
        Command::Uninstall(args) => uninstall::run(&args, &terminal),
        Command::Status(args) => status::run(&args, &terminal),
        Command::Doctor(args) => doctor::run(&args, &terminal),
        Command::Init(args) => init::run(&args, &terminal),
        Command::Validate(args) => validate::run(&args, &terminal),
        Command::Convert(args) => convert::run(&args, &terminal),
        Command::Agents(args) => agents::run(&args, &terminal),
        Command::Trust(args) => trust::run(&args, &terminal),
        Command::Untrust(args) => trust::untrust(&args, &terminal),
        Command::Demo(args) => demo::run(&args, &terminal),
        Command::Emit(args) => emit::run(&args, &terminal),
        Command::Openhook(args) => openhook::run(&args, &terminal),
        Command::Explain(args) => explain::run(&args, &terminal),
        Command::Test(args) => test::run(&args, &terminal),
        Command::Serve(args) => serve::run(&args, &terminal),
        Command::Ship(args) => ship::run(&args, &terminal),
        Command::Log(args) => log::run(&args, &terminal),
        Command::Tail(args) => tail::run(&args, &terminal),
        Command::Stats(args) => stats::run(&args, &terminal),
        Command::Replay(args) => replay::run(&args, &terminal),
        Command::Events(args) => registries::events(&args, &terminal),
        Command::Tools(args) => registries::tools(&args, &terminal),
        Command::Capabilities(args) => registries::capabilities(&args, &terminal),
        Command::Schema(args) => schema::run(&args, &terminal),
        Command::Completions(args) => Ok(completions::run(&args, &terminal)),
        Command::Man(args) => man::run(&args, &terminal),
    };
    match result {
        Ok(Verdict::Good) => 0,
        Ok(Verdict::Findings) => 1,
        Err(error) => {
            terminal.failure(&format!("{error:#}"));
            1
        }
    }
}
