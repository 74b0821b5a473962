//! `anyhook new hook`.

use anyhook_install::new_hook::{HOOK_LANGUAGES, HookLanguage, write_hook};
use anyhow::bail;
use clap::builder::PossibleValuesParser;
use serde_json::json;

use super::install;
use crate::cli::CommandStatus;
use crate::render::Terminal;

/// Create a working hook to start from
#[derive(clap::Args)]
#[command(after_help = "Example:\n  anyhook new hook no-force-push --lang python")]
pub(crate) struct NewArgs {
    #[command(subcommand)]
    command: NewCommand,
}

#[derive(clap::Subcommand)]
enum NewCommand {
    Hook(HookArgs),
}

/// Write a hook with a test and add it to the project's manifest
///
/// The hook goes to .anyhook/hooks/, its entry to .anyhook/hooks.yaml (or the manifest
/// that is there). Nothing that exists is replaced, and nothing runs before
/// `anyhook trust`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook new hook no-force-push\n  anyhook new hook no-force-push --lang ts"
)]
struct HookArgs {
    /// Its name: letters, digits, `-` and `_`
    name: String,
    /// The language
    #[arg(long, default_value = "sh", value_parser = PossibleValuesParser::new(HOOK_LANGUAGES.iter().map(|language| language.name)))]
    lang: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &NewArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let NewCommand::Hook(args) = &args.command;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let starts_well = args.name.starts_with(|c: char| c.is_ascii_alphabetic());
    if !starts_well || !args.name.chars().all(is_name) {
        bail!(
            "`{}` cannot be the name of a hook: use letters, digits, `-` and `_`, a letter first",
            args.name
        );
    }
    let mut languages = HOOK_LANGUAGES.iter();
    let language: Option<&HookLanguage> = languages.find(|one| one.name == args.lang);
    let Some(language) = language else {
        bail!("unknown language `{}`", args.lang);
    };
    let machine = install::this_machine()?;
    let written = write_hook(&machine, &args.name, language)?;
    if args.json {
        return terminal.json(&json!({
            "hook": args.name,
            "manifest": written.manifest,
            "files": written.files,
            "test_command": written.test_command,
        }));
    }
    for file in &written.files {
        terminal.line(&format!("Wrote {}", machine.display_path(file)));
    }
    let manifest = machine.display_path(&written.manifest);
    terminal.line(&format!("Added `{}` to {manifest}", args.name));
    if !written.is_runnable {
        terminal.note(&format!(
            "warning: `{}` is not on PATH; the hook cannot run before it is installed",
            language.needs
        ));
    }
    terminal.line(&format!(
        "\nTest it:     {}\nApprove it:  anyhook trust\nTry it:      anyhook test --input '{{\"command\": \"git push --force\"}}'\nUse it:      anyhook install",
        written.test_command
    ));
    Ok(CommandStatus::Success)
}
