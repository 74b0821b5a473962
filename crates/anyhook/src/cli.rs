//! The list of commands: parses the arguments, runs one command and turns its
//! result into an exit code ([`CommandStatus`]).

use std::ffi::OsString;

use anyhook_run::run::spend::COLLECT_COMMAND;
use anyhook_util::env;
use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::CompleteEnv;
use serde_json::json;

use crate::commands::completions::COMPLETION_VARIABLE;
use crate::commands::registries::RegistryArgs;
use crate::commands::{
    agents, allow_once, approve, caller, check, codex, collect_usage, completions, convert, demo,
    doctor, emit, explain, export, guard, init, install, list, log, man, new, openhook, registries,
    replay, run, schema, serve, ship, stats, status, tail, test, trust, uninstall, validate,
};
use crate::completion_values;
use crate::render::{ColorChoice, Terminal};

/// Write an agent hook once. Run it under every coding agent. See what they did.
#[derive(Parser)]
#[command(
    name = "anyhook",
    version = env!("ANYHOOK_VERSION"),
    arg_required_else_help = true,
    after_help = "Examples:\n  anyhook demo\n  anyhook init\n  anyhook validate .anyhook/hooks.yaml\n\n\
                  Exit codes: 0 success, 1 problems found or the command failed, 2 wrong usage,\n\
                  3 a guard asks (check)"
)]
pub(crate) struct Cli {
    /// When to use colour
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "auto",
        value_name = "WHEN"
    )]
    color: ColorChoice,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::DemoArgs),
    Install(install::InstallArgs),
    Uninstall(uninstall::UninstallArgs),
    Status(status::StatusArgs),
    Doctor(doctor::DoctorArgs),
    Init(init::InitArgs),
    New(new::NewArgs),
    List(list::ListArgs),
    Validate(validate::ValidateArgs),
    Convert(convert::ConvertArgs),
    Agents(agents::AgentsArgs),
    Trust(trust::TrustArgs),
    Untrust(trust::UntrustArgs),
    Explain(explain::ExplainArgs),
    Check(check::CheckArgs),
    Guard(guard::GuardArgs),
    #[command(name = "allow-once")]
    AllowOnce(allow_once::AllowOnceArgs),
    Approve(approve::ApproveArgs),
    Test(test::TestArgs),
    Run(run::RunArgs),
    Emit(emit::EmitArgs),
    Openhook(openhook::OpenhookArgs),
    Codex(codex::CodexArgs),
    Serve(serve::ServeArgs),
    Ship(ship::ShipArgs),
    Log(log::LogArgs),
    Tail(tail::TailArgs),
    Stats(stats::StatsArgs),
    #[command(name = COLLECT_COMMAND)]
    CollectUsage(collect_usage::CollectUsageArgs),
    Replay(replay::ReplayArgs),
    Export(export::ExportArgs),
    /// List the canonical events
    #[command(after_help = "Example:\n  anyhook events --json")]
    Events(RegistryArgs),
    /// List the canonical tools
    #[command(after_help = "Example:\n  anyhook tools --json")]
    Tools(RegistryArgs),
    /// List the capabilities that a hook can require
    #[command(after_help = "Example:\n  anyhook capabilities --json")]
    Capabilities(RegistryArgs),
    Schema(schema::SchemaArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

impl Command {
    /// Refuses a command that would switch hooks on or off if a coding agent runs
    /// it and no user can see it.
    fn check_caller(&self) -> anyhow::Result<()> {
        match self {
            Self::Install(args) if args.changes_files() => caller::check("install"),
            Self::Uninstall(args) if args.changes_files() => caller::check("uninstall"),
            Self::Init(_) => caller::check("init"),
            Self::Trust(args) if args.records_trust() => caller::check("trust"),
            Self::Untrust(_) => caller::check("untrust"),
            Self::AllowOnce(_) => caller::check_terminal("allow-once"),
            Self::Approve(args) if args.id.is_some() => caller::check_terminal("approve"),
            _ => Ok(()),
        }
    }
}

/// The exit codes and what they mean, for the manual pages and docs/commands.md.
pub(crate) const EXIT_CODES: [(u8, &str); 4] = [
    (CommandStatus::Success as u8, "Success."),
    (
        CommandStatus::Failure as u8,
        "The command found problems, or it failed.",
    ),
    (CommandStatus::Usage as u8, "The arguments are wrong."),
    (CommandStatus::Asks as u8, "check: a guard asks the user."),
];

/// An error in the arguments that only the command itself can find.
#[derive(Debug)]
pub(crate) struct UsageError(pub String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// How a command ended; the number is the process's exit code.
///
/// `run`, `guard` and `codex` are exceptions: agents and clients define what their
/// exit codes mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandStatus {
    /// The command did its work and found no problem.
    Success = 0,
    /// The command found problems, or it failed; stderr has the reason.
    Failure = 1,
    /// The arguments are wrong.
    Usage = 2,
    /// `check`: a guard asks the user.
    Asks = 3,
}

impl CommandStatus {
    pub(crate) fn success_if(is_success: bool) -> Self {
        if is_success {
            Self::Success
        } else {
            Self::Failure
        }
    }
}

/// Runs the hooks for one event. The agent defines what the exit code means.
pub(crate) fn run_hooks(arguments: impl Iterator<Item = OsString>) -> u8 {
    u8::try_from(anyhook_run::entry::main(arguments)).unwrap_or(CommandStatus::Failure as u8)
}

/// Answers a completion script, which asks by an environment variable.
fn complete_if_asked() {
    if env::by_name_os(COMPLETION_VARIABLE).is_none() {
        return;
    }
    let _ = anyhook_run::agent::own::load_own_agents();
    let command = || completion_values::with_values(Cli::command());
    CompleteEnv::with_factory(command).complete();
}

/// Prints an error as JSON for a caller that has asked for JSON and has got nothing.
fn print_json_error(terminal: &Terminal, message: &str) {
    let asks_json = std::env::args_os().any(|argument| argument == "--json");
    if asks_json && !terminal.has_printed() {
        let _ = terminal.json(&json!({ "error": message }));
    }
}

pub(crate) fn main() -> u8 {
    complete_if_asked();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            if error.use_stderr() {
                let message = error.to_string();
                let message = message.lines().next().unwrap_or_default();
                let message = message.strip_prefix("error: ").unwrap_or(message);
                print_json_error(&Terminal::from_env(ColorChoice::Never), message);
            }
            // `--help` and `--version` are errors to clap too: it picks the stream and the code.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(CommandStatus::Usage as u8);
        }
    };
    let terminal = Terminal::from_env(cli.color);
    if let Err(error) = cli.command.check_caller() {
        let message = format!("{error:#}");
        print_json_error(&terminal, &message);
        terminal.error(&message);
        return CommandStatus::Failure as u8;
    }
    if !matches!(cli.command, Command::Run(_)) {
        for problem in anyhook_run::agent::own::load_own_agents() {
            terminal.note(&format!("warning: {problem}"));
        }
    }
    let result = match cli.command {
        Command::Run(_) => return run_hooks(std::env::args_os().skip(2)),
        Command::Guard(args) => match guard::run(&args, &terminal) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Command::Codex(args) => match codex::run(args, &terminal) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Command::Install(args) => install::run(&args, &terminal),
        Command::Uninstall(args) => uninstall::run(&args, &terminal),
        Command::Status(args) => status::run(&args, &terminal),
        Command::Doctor(args) => doctor::run(&args, &terminal),
        Command::Init(args) => init::run(&args, &terminal),
        Command::New(args) => new::run(&args, &terminal),
        Command::List(args) => list::run(&args, &terminal),
        Command::Validate(args) => validate::run(&args, &terminal),
        Command::Convert(args) => convert::run(&args, &terminal),
        Command::Agents(args) => agents::run(&args, &terminal),
        Command::Trust(args) => trust::run(&args, &terminal),
        Command::Untrust(args) => trust::untrust(&args, &terminal),
        Command::Demo(args) => demo::run(&args, &terminal),
        Command::Emit(args) => emit::run(&args, &terminal),
        Command::Openhook(args) => openhook::run(&args, &terminal),
        Command::Explain(args) => explain::run(&args, &terminal),
        Command::Check(args) => check::run(&args, &terminal),
        Command::AllowOnce(args) => allow_once::run(&args, &terminal),
        Command::Approve(args) => approve::run(&args, &terminal),
        Command::Test(args) => test::run(&args, &terminal),
        Command::Serve(args) => serve::run(&args, &terminal),
        Command::Ship(args) => ship::run(&args, &terminal),
        Command::Log(args) => log::run(&args, &terminal),
        Command::Tail(args) => tail::run(&args, &terminal),
        Command::Stats(args) => stats::run(&args, &terminal),
        Command::CollectUsage(args) => collect_usage::run(&args),
        Command::Replay(args) => replay::run(&args, &terminal),
        Command::Export(args) => export::run(&args, &terminal),
        Command::Events(args) => registries::events(&args, &terminal),
        Command::Tools(args) => registries::tools(&args, &terminal),
        Command::Capabilities(args) => registries::capabilities(&args, &terminal),
        Command::Schema(args) => schema::run(&args, &terminal),
        Command::Completions(args) => completions::run(&args, &terminal),
        Command::Man(args) => man::run(&args, &terminal),
    };
    let status = result.unwrap_or_else(|error| {
        let message = format!("{error:#}");
        print_json_error(&terminal, &message);
        terminal.error(&message);
        if error.is::<UsageError>() {
            CommandStatus::Usage
        } else {
            CommandStatus::Failure
        }
    });
    status as u8
}
