//! `anyhook completions`.

use clap_complete::Shell;
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Zsh};

use crate::cli::CommandStatus;
use crate::render::Terminal;

/// Print a shell completion script
///
/// The script asks this program for the values: agents, events, tools, targets of a
/// conversion and ids of recorded events.
#[derive(clap::Args)]
#[command(
    visible_alias = "completion",
    after_help = "Examples:\n  anyhook completions bash > ~/.local/share/bash-completion/completions/anyhook\n  \
                  anyhook completions zsh > ~/.zfunc/_anyhook\n  \
                  anyhook completions fish > ~/.config/fish/completions/anyhook.fish\n  \
                  anyhook completions powershell >> $PROFILE"
)]
pub(crate) struct CompletionsArgs {
    /// The shell to complete for
    shell: Shell,
}

/// The variable by which a completion script asks this program.
pub(crate) const COMPLETION_VARIABLE: &str = "COMPLETE";

pub(crate) fn run(args: &CompletionsArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let completer: &dyn EnvCompleter = match args.shell {
        Shell::Bash => &Bash,
        Shell::Elvish => &Elvish,
        Shell::Fish => &Fish,
        Shell::PowerShell => &Powershell,
        Shell::Zsh => &Zsh,
        other => anyhow::bail!("there are no completions for {other}"),
    };
    let mut script = Vec::new();
    let name = "anyhook";
    completer.write_registration(COMPLETION_VARIABLE, name, name, name, &mut script)?;
    terminal.bytes(&script);
    Ok(CommandStatus::Success)
}
