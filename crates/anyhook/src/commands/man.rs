//! `anyhook man`: the manual pages, from the definitions of the commands.

use std::path::PathBuf;

use anyhook_util::env::{Direction, VARIABLES};
use anyhow::Context;
use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::cli::{Cli, CommandStatus, EXIT_CODES};
use crate::render::{Terminal, counted};

/// Print the manual page of anyhook or of one command
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook man validate | man -l -\n  anyhook man codex proxy\n  anyhook man --write ~/.local/share/man/man1"
)]
pub(crate) struct ManArgs {
    /// A command, such as `validate` or `codex proxy`
    command: Vec<String>,
    /// Write all pages into this folder instead
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    write: Option<PathBuf>,
}

/// Files that are the same on every platform below the folders of `docs/configuration.md`.
const FILES: [(&str, &str); 6] = [
    (".anyhook/hooks.yaml", "The hooks of a project."),
    (
        ".anyhook/policy.json",
        "Which hooks of the project may run.",
    ),
    ("~/.config/anyhook/hooks.yaml", "Your hooks."),
    ("~/.config/anyhook/config.yaml", "Your settings."),
    (
        "/etc/anyhook/hooks.yaml",
        "The hooks of your organisation; policy.json beside it is its policy.",
    ),
    (
        "~/.local/state/anyhook/",
        "Approvals, what install has changed, and the journal.",
    ),
];

pub(crate) fn run(args: &ManArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let root = Cli::command();
    if let Some(folder) = &args.write {
        let mut pages = Vec::new();
        collect_pages(&root, "anyhook", &mut pages);
        std::fs::create_dir_all(folder)
            .with_context(|| format!("could not create {}", folder.display()))?;
        for (name, command) in &pages {
            let path = folder.join(format!("{name}.1"));
            std::fs::write(&path, page(command.clone(), name)?)
                .with_context(|| format!("could not write {}", path.display()))?;
        }
        let pages = counted(pages.len(), "page");
        terminal.line(&format!("Wrote {pages} to {}", folder.display()));
        return Ok(CommandStatus::Success);
    }
    let mut command = &root;
    let mut name = "anyhook".to_owned();
    for word in &args.command {
        command = command.find_subcommand(word).with_context(|| {
            format!(
                "unknown command `{}`; `anyhook --help` lists all commands",
                args.command.join(" ")
            )
        })?;
        name = format!("{name}-{}", command.get_name());
    }
    terminal.bytes(&page(command.clone(), &name)?);
    Ok(CommandStatus::Success)
}

/// A command and all below it, by the names of their pages.
fn collect_pages(command: &Command, name: &str, pages: &mut Vec<(String, Command)>) {
    pages.push((name.to_owned(), command.clone()));
    for below in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        collect_pages(below, &format!("{name}-{}", below.get_name()), pages);
    }
}

fn page(command: Command, name: &str) -> anyhow::Result<Vec<u8>> {
    let examples = command.get_after_help().map(ToString::to_string);
    let has_subcommands = command.get_subcommands().next().is_some();
    let command = command
        .display_name(name.to_owned())
        .bin_name(name.replace('-', " "))
        .after_help("");
    let mut roff = Vec::new();
    let man = Man::new(command);
    man.render_title(&mut roff)?;
    man.render_name_section(&mut roff)?;
    man.render_synopsis_section(&mut roff)?;
    man.render_description_section(&mut roff)?;
    man.render_options_section(&mut roff)?;
    if has_subcommands {
        man.render_subcommands_section(&mut roff)?;
    }
    if let Some(examples) = examples {
        examples_section(&examples).to_writer(&mut roff)?;
    }
    environment_section().to_writer(&mut roff)?;
    files_section().to_writer(&mut roff)?;
    exit_status_section(name).to_writer(&mut roff)?;
    Ok(roff)
}

/// The examples of `--help`; what else is said there has its own section.
fn examples_section(text: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["EXAMPLES"]);
    roff.control("nf", []);
    let lines = text.lines().filter(|line| line.starts_with("  "));
    roff.text([roman(lines.collect::<Vec<_>>().join("\n"))]);
    roff.control("fi", []);
    roff
}

fn environment_section() -> Roff {
    let variables = VARIABLES.iter();
    let variables = variables.filter(|variable| variable.direction != Direction::BuildTime);
    let rows = variables.map(|variable| {
        let note = match variable.direction {
            Direction::SetForHooks => " Set for hooks.",
            Direction::Read | Direction::BuildTime => "",
        };
        let about = variable.about.replace('`', "") + note;
        (variable.name.to_owned(), about)
    });
    definitions("ENVIRONMENT", rows)
}

fn files_section() -> Roff {
    let rows = FILES.iter();
    definitions(
        "FILES",
        rows.map(|(path, about)| ((*path).to_owned(), (*about).to_owned())),
    )
}

fn exit_status_section(name: &str) -> Roff {
    if matches!(name, "anyhook-run" | "anyhook-guard") || name.starts_with("anyhook-codex") {
        let about =
            "The agent or client that starts it defines what its exit code means; 2 blocks.";
        return definitions(
            "EXIT STATUS",
            [("any".to_owned(), about.to_owned())].into_iter(),
        );
    }
    let rows = EXIT_CODES.iter();
    definitions(
        "EXIT STATUS",
        rows.map(|(code, about)| (code.to_string(), (*about).to_owned())),
    )
}

fn definitions(title: &str, rows: impl Iterator<Item = (String, String)>) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    for (term, about) in rows {
        roff.control("TP", []);
        roff.text([bold(term)]);
        roff.text([roman(about)]);
    }
    roff
}
