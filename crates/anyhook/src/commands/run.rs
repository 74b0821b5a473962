//! `anyhook run`: what the help, the manual and the completions say of it.
//!
//! `main` calls the dispatcher before arguments are parsed; nothing here runs
//! on that way.

/// Answer an agent's event: its payload on stdin, its answer on stdout
///
/// Agents call this; `anyhook install` puts it into their configuration.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  anyhook run --agent claude-code < payload.json")]
pub struct Args {
    /// The agent that calls; recognised by the payload when absent
    #[arg(long)]
    agent: Option<String>,
    /// The agent's own name of the event, when the payload does not say
    #[arg(long)]
    event: Option<String>,
    /// A daemon that answers in this program's place
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// When the server is away: `local` runs the hooks here, `open` runs none
    #[arg(long, requires = "server", value_parser = ["local", "open"])]
    fallback: Option<String>,
}

pub fn run(args: Args) -> u8 {
    let pairs = [
        ("--agent", args.agent),
        ("--event", args.event),
        ("--server", args.server),
        ("--fallback", args.fallback),
    ];
    let arguments = pairs
        .into_iter()
        .filter_map(|(name, value)| Some([name.to_owned(), value?]))
        .flatten()
        .map(Into::into);
    let code = anyhook_run::entry::main(arguments);
    u8::try_from(code).unwrap_or(1)
}
