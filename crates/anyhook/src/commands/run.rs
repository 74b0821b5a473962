//! `anyhook run`: its definition for the help, the manual page and completions.
//!
//! Agents' calls never get here: `main` enters `anyhook_run` before arguments
//! are parsed.

/// Run the hooks for one agent event: payload on stdin, answer on stdout
///
/// Agents call this; `anyhook install` adds it to their config files.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  anyhook run --agent claude-code < payload.json")]
pub(crate) struct RunArgs {
    /// The calling agent [default: detected from the payload]
    #[arg(long)]
    agent: Option<String>,
    /// The agent's name for the event, if the payload does not contain it
    #[arg(long)]
    event: Option<String>,
    /// How many seconds the agent waits for the answer; hooks are stopped before that [default: 60]
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
    /// Let the daemon run the hooks: your own on this machine, or the one at this address
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "")]
    server: Option<String>,
    /// If the daemon cannot be reached: `local` runs the hooks here, `open` runs none
    #[arg(long, requires = "server", value_parser = ["local", "open"])]
    fallback: Option<String>,
}
