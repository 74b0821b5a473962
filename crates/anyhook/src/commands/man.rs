//! `anyhook man`.

use anyhow::Context;

use crate::cli::{self, Verdict};
use crate::render::Terminal;

/// Print the manual page, of anyhook or of one command
#[derive(clap::Args)]
#[command(after_help = "Example:\n  anyhook man validate | man -l -")]
pub struct Args {
    /// A command, such as `validate`
    command: Option<String>,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Verdict> {
    let root = cli::command();
    let page = match &args.command {
        None => root,
        Some(name) => {
            let command = root.find_subcommand(name).with_context(|| {
                format!("there is no command `{name}`; `anyhook --help` lists them")
            })?;
            command
                .clone()
                .display_name(format!("anyhook-{name}"))
                .bin_name(format!("anyhook {name}"))
        }
    };
    let mut roff = Vec::new();
    clap_mangen::Man::new(page).render(&mut roff)?;
    terminal.bytes(&roff);
    Ok(Verdict::Good)
}
