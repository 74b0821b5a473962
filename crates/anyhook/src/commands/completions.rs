//! `anyhook completions`.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::{Cli, CommandStatus};
use crate::render::Terminal;

/// Print a shell completion script
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  anyhook completions bash > ~/.local/share/bash-completion/completions/anyhook"
)]
pub(crate) struct CompletionsArgs {
    /// The shell to complete for
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, terminal: &Terminal) -> CommandStatus {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "anyhook", &mut script);
    terminal.bytes(&script);
    CommandStatus::Success
}
