//! `anyhook init`: writes a first manifest that works.

use std::path::Path;

use anyhook_agents::matrix::clients;
use anyhook_guard::definition;
use anyhook_install::import::{self, ImportedHook};
use anyhook_install::init::{self, PRESETS, Preset};
use anyhook_install::native_hooks::{self, NativeHook, UnimportableFile};
use anyhook_install::project_manifest;
use anyhook_install::{DetectedAgent, Machine};
use anyhook_model::Hook;
use anyhook_run::run::guard::GuardCommand;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::install;
use crate::cli::CommandStatus;
use crate::render::{Terminal, counted, is_interactive};
use crate::table;

/// Write a first manifest: your agents' own hooks, or a working guard
///
/// Finds the agents on this machine and the hooks in their config files, and offers
/// to move these into one manifest: each once, however many agents have it.
/// `anyhook install` then takes them out of the agents' files; `anyhook uninstall`
/// puts them back. Run it again with --import to add what is new.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook init\n  anyhook init --preset standard\n  anyhook init --yes --import"
)]
pub(crate) struct InitArgs {
    /// Use built-in guards, which need no script, instead of a sample script; on
    /// Windows the default is standard
    #[arg(long, value_parser = PRESETS.map(|preset| preset.name))]
    preset: Option<String>,
    /// Move the hooks that the project's agents already have into the manifest
    #[arg(long)]
    import: bool,
    /// Do not ask; hooks are imported only with --import
    #[arg(short, long)]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// An agent found on this machine.
#[derive(Serialize)]
struct AgentHere {
    agent: &'static str,
    name: &'static str,
    /// The program or folder that shows it.
    here: String,
    version: Option<String>,
}

pub(crate) fn run(args: &InitArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let world = install::this_machine()?;
    let agents = agents_here(&world);
    let existing = import::existing_hooks(&world);
    let new = import::new_hooks(&world, existing.clone());
    let left = native_hooks::unimportable_files(&world);
    let manifest = project_manifest(&world.root);
    if !args.json {
        print_agents(&agents, terminal);
        print_existing(&existing, &new, &left, &world, terminal);
    }
    let asks = !args.yes && !args.json && is_interactive();
    let question = format!(
        "Move {} into the manifest, to run under every agent?",
        counted(new.len(), "hook")
    );
    let imports = !new.is_empty() && (args.import || (asks && terminal.confirm(&question, true)));
    let imported: &[ImportedHook] = if imports { &new } else { &[] };
    let report = Report {
        agents,
        existing,
        imported,
        left,
        world: &world,
    };
    if let Some(path) = manifest {
        return extend(args, &path, &report, terminal);
    }
    let mut preset = args.preset.as_deref().and_then(Preset::find);
    let has_guard = imported.iter().any(ImportedHook::is_guard);
    if asks && preset.is_none() && !has_guard {
        preset = offer_presets(terminal);
    }
    if cfg!(windows) && preset.is_none() && !imports {
        // The sample script needs a shell that Windows does not have.
        preset = Preset::find("standard");
    }
    let what = match (preset, imports) {
        (Some(_), false) => "Write .anyhook/hooks.yaml with these guards?",
        (Some(_), true) => "Write .anyhook/hooks.yaml with your hooks and these guards?",
        (None, true) => "Write .anyhook/hooks.yaml with your hooks?",
        (None, false) => "Write .anyhook/hooks.yaml and a sample guard?",
    };
    if asks && !terminal.confirm(what, true) {
        terminal.note("Nothing was written.");
        return Ok(CommandStatus::Success);
    }
    let written = init::write_manifest(&world, preset, imported)?;
    if args.json {
        let mut value = report.json(&written.manifest, true);
        let preset = preset.map(|preset| preset.name);
        value.insert("guard".to_owned(), json!(written.guard));
        value.insert("preset".to_owned(), json!(preset));
        value.insert("trusted".to_owned(), json!(written.trusted));
        return terminal.json(&value);
    }
    if !imports && !new.is_empty() {
        let number = counted(new.len(), "hook");
        terminal.note(&format!(
            "`anyhook init --import` moves the {number} into the manifest, to run under every agent."
        ));
    }
    print_written(&written, preset, &report, terminal);
    Ok(CommandStatus::Success)
}

/// What was written, and what to do next.
fn print_written(
    written: &init::InitResult,
    preset: Option<&Preset>,
    report: &Report<'_>,
    terminal: &Terminal,
) {
    let manifest = report.world.display_path(&written.manifest);
    if let Some(guard) = &written.guard {
        let guard = report.world.display_path(guard);
        terminal.line(&format!(
            "Wrote {manifest} and {guard}: the guard denies destructive shell commands."
        ));
    }
    if let Some(preset) = preset {
        let with = format!("Wrote {manifest} with the {} guards.", preset.name);
        terminal.line(&with);
        print_preset(preset, terminal);
    } else if !report.imported.is_empty() {
        terminal.line(&format!("Wrote {manifest}."));
    }
    report.print_imported(terminal);
    terminal.line(if written.trusted {
        "Next: `anyhook test` shows each agent's answer; `anyhook install` activates the hooks."
    } else {
        NEXT_AFTER_IMPORT
    });
}

const NEXT_AFTER_IMPORT: &str = "Next: `anyhook trust` approves the hooks, `anyhook install` activates them and takes them out of the agents' files.";

/// Adds what is new to a manifest that exists.
fn extend(
    args: &InitArgs,
    path: &Path,
    report: &Report<'_>,
    terminal: &Terminal,
) -> anyhow::Result<CommandStatus> {
    let is_written = !report.imported.is_empty();
    if is_written {
        import::extend_manifest(report.world, path, report.imported)?;
    }
    if args.json {
        return terminal.json(&report.json(path, is_written));
    }
    let shown = report.world.display_path(path);
    if is_written {
        terminal.line(&format!("Extended {shown}."));
        report.print_imported(terminal);
        terminal.line(NEXT_AFTER_IMPORT);
    } else {
        terminal.line(&format!("A manifest already exists: {shown}"));
        if args.import {
            terminal.line("There is no hook to import that it does not have.");
        }
    }
    Ok(CommandStatus::Success)
}

/// What was found, and what of it goes into the manifest.
struct Report<'a> {
    agents: Vec<AgentHere>,
    existing: Vec<NativeHook>,
    imported: &'a [ImportedHook],
    left: Vec<UnimportableFile>,
    world: &'a Machine,
}

impl Report<'_> {
    fn json(&self, manifest: &Path, is_written: bool) -> Map<String, Value> {
        let is_imported = |native: &NativeHook| {
            let mut sources = self.imported.iter().flat_map(|one| &one.sources);
            sources.any(|source| source.path == native.path && source.label == native.label)
        };
        let existing = self.existing.iter().map(|native| {
            json!({"agent": native.adapter.spec.id, "file": native.path, "hook": native.label,
                "imported": is_imported(native), "warnings": native.warnings})
        });
        let left = self
            .left
            .iter()
            .map(|one| json!({"agent": one.adapter.spec.id, "file": one.path, "why": one.why}));
        let imported: Vec<&Hook> = self.imported.iter().map(|one| &one.hook).collect();
        let members = [
            ("manifest", json!(manifest)),
            ("written", json!(is_written)),
            ("imported", json!(imported)),
            ("existing", existing.collect()),
            ("not_imported", left.collect()),
            ("agents", json!(self.agents)),
        ];
        let members = members.into_iter();
        members
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    fn print_imported(&self, terminal: &Terminal) {
        for one in self.imported {
            let name = one.hook.name.as_deref().unwrap_or_default();
            let sources = one.sources.iter().map(|source| {
                format!(
                    "{} of {}",
                    source.label,
                    self.world.display_path(&source.path)
                )
            });
            let sources: Vec<String> = sources.collect();
            terminal.line(&format!(
                "  {}: {}",
                terminal.bold(name),
                sources.join(", ")
            ));
            let mut warnings: Vec<&str> = Vec::new();
            for source in &one.sources {
                let new = source
                    .warnings
                    .iter()
                    .map(|warning| warning.message.as_str());
                warnings.extend(new);
            }
            warnings.sort_unstable();
            warnings.dedup();
            for warning in warnings {
                terminal.note(&format!("    {warning}"));
            }
        }
    }
}

/// Shows the presets and lets the user choose; `None`: the sample script.
fn offer_presets(terminal: &Terminal) -> Option<&'static Preset> {
    for preset in &PRESETS {
        print_preset(preset, terminal);
    }
    PRESETS.iter().find(|preset| {
        let question = format!("Use the {} guards?", preset.name);
        terminal.confirm(&question, preset.name == "standard")
    })
}

/// What the guards of a preset deny.
fn print_preset(preset: &Preset, terminal: &Terminal) {
    let name = terminal.bold(preset.name);
    terminal.line(&format!("{name}: {}", preset.about));
    for hook in preset.hooks() {
        let guard = GuardCommand::from_handler(&hook.handler);
        let guard = guard.and_then(|guard| definition(guard.words.first()?));
        if let Some(guard) = guard {
            terminal.line(&format!("  {:<12} {}", guard.name, guard.summary));
        }
    }
}

fn agents_here(world: &Machine) -> Vec<AgentHere> {
    clients()
        .filter_map(|adapter| {
            let found = DetectedAgent::detect(world, adapter);
            found.is_present().then(|| AgentHere {
                agent: &adapter.spec.id,
                name: &adapter.spec.name,
                here: found.display_paths(world),
                version: found.query_version(world),
            })
        })
        .collect()
}

fn print_agents(agents: &[AgentHere], terminal: &Terminal) {
    if agents.is_empty() {
        terminal.line("No agent found here; `anyhook agents` lists the supported agents.");
        return;
    }
    let rows = agents.iter().map(|agent| {
        let version = agent.version.as_deref().unwrap_or("-");
        [agent.name.into(), version.into(), (&agent.here).into()]
    });
    table::print_at_margin(terminal, ["agent", "version", "found at"], rows);
}

fn print_existing(
    existing: &[NativeHook],
    new: &[ImportedHook],
    left: &[UnimportableFile],
    world: &Machine,
    terminal: &Terminal,
) {
    let mut files: Vec<(&NativeHook, usize)> = Vec::new();
    for native in existing {
        match files
            .iter_mut()
            .find(|(other, _)| other.path == native.path)
        {
            Some((_, count)) => *count += 1,
            None => files.push((native, 1)),
        }
    }
    for (native, count) in files {
        terminal.line(&format!(
            "{} has {} in {}",
            native.adapter.spec.name,
            counted(count, "hook"),
            world.display_path(&native.path)
        ));
    }
    if new.len() < existing.len() && !new.is_empty() {
        let new = counted(new.len(), "hook");
        terminal.line(&format!(
            "Of these, {new} are different and not in the manifest yet."
        ));
    }
    for one in left {
        let path = world.display_path(&one.path);
        let why = &one.why;
        terminal.line(&format!(
            "{}: not imported: {path} ({why})",
            one.adapter.spec.name
        ));
    }
}
