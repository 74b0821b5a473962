//! `anyhook completions`.

use clap_complete::Shell;

use crate::cli::{self, Verdict};
use crate::render::Terminal;

/// Print the completion script of a shell
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  anyhook completions bash > ~/.local/share/bash-completion/completions/anyhook"
)]
pub struct Args {
    shell: Shell,
}

pub fn run(args: &Args, terminal: &Terminal) -> Verdict {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), "anyhook", &mut script);
    terminal.bytes(&script);
    Verdict::Good
}
