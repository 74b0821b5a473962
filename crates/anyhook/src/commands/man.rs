//! `anyhook man`.

use anyhook_util::env::{Direction, VARIABLES};
use anyhow::Context;
use clap::CommandFactory as _;
use clap_mangen::roff::{Roff, bold, roman};

use crate::cli::{Cli, CommandStatus};
use crate::render::Terminal;

/// Print the manual page of anyhook or of one command
#[derive(clap::Args)]
#[command(after_help = "Example:\n  anyhook man validate | man -l -")]
pub(crate) struct ManArgs {
    /// A command, such as `validate`
    command: Option<String>,
}

pub(crate) fn run(args: &ManArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let root = Cli::command();
    let page = match &args.command {
        None => root,
        Some(name) => {
            let command = root.find_subcommand(name).with_context(|| {
                format!("unknown command `{name}`; `anyhook --help` lists all commands")
            })?;
            command
                .clone()
                .display_name(format!("anyhook-{name}"))
                .bin_name(format!("anyhook {name}"))
        }
    };
    let mut roff = Vec::new();
    clap_mangen::Man::new(page).render(&mut roff)?;
    if args.command.is_none() {
        environment_section().to_writer(&mut roff)?;
    }
    terminal.bytes(&roff);
    Ok(CommandStatus::Success)
}

/// The section about environment variables.
fn environment_section() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["ENVIRONMENT"]);
    let variables = VARIABLES.iter();
    for variable in variables.filter(|variable| variable.direction != Direction::BuildTime) {
        let note = match variable.direction {
            Direction::SetForHooks => " Set for hooks.",
            Direction::Read | Direction::BuildTime => "",
        };
        roff.control("TP", []);
        roff.text([bold(variable.name)]);
        roff.text([roman(variable.about.replace('`', "") + note)]);
    }
    roff
}
