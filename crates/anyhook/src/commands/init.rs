//! `anyhook init`: writes a first manifest that works.

use anyhook_agents::matrix::clients;
use anyhook_guard::definition;
use anyhook_install::init::{self, ExistingHooks, PRESETS, Preset};
use anyhook_install::project_manifest;
use anyhook_install::{DetectedAgent, Machine};
use anyhook_run::run::guard::GuardCommand;
use serde::Serialize;
use serde_json::{Value, json};

use super::install;
use crate::cli::CommandStatus;
use crate::render::{Terminal, counted, is_interactive};
use crate::table;

/// Write a first manifest with a working guard, and list the agents found here
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook init\n  anyhook init --preset standard\n  anyhook init --yes --import"
)]
pub(crate) struct InitArgs {
    /// Use built-in guards, which need no script, instead of a sample script; on
    /// Windows the default is standard
    #[arg(long, value_parser = PRESETS.map(|preset| preset.name))]
    preset: Option<String>,
    /// Copy the hooks that the project's agents already have into the manifest
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
    let world = install::world()?;
    let agents = agents_here(&world);
    let existing = init::existing_hooks(&world);
    if let Some(path) = project_manifest(&world.root) {
        if args.json {
            return terminal.json(&json!({"manifest": path, "written": false, "agents": agents}));
        }
        let path = world.display_path(&path);
        terminal.line(&format!("A manifest already exists: {path}"));
        print_agents(&agents, terminal);
        return Ok(CommandStatus::Success);
    }
    let asks = !args.yes && !args.json && is_interactive();
    let mut preset = args.preset.as_deref().and_then(Preset::find);
    if asks && preset.is_none() {
        preset = offer_presets(terminal);
    }
    if cfg!(windows) && preset.is_none() {
        // The sample script needs a shell that Windows does not have.
        preset = Preset::find("standard");
    }
    let what = match preset {
        Some(_) => "Write .anyhook/hooks.yaml with these guards?",
        None => "Write .anyhook/hooks.yaml and a sample guard?",
    };
    if asks && !terminal.confirm(what, true) {
        terminal.note("Nothing was written.");
        return Ok(CommandStatus::Success);
    }
    let mut import = args.import;
    if !existing.is_empty() && !args.json {
        print_existing(&existing, import, &world, terminal);
        let question = "Copy these hooks into the manifest?";
        import = import || (asks && terminal.confirm(question, false));
    }
    let imported: &[ExistingHooks] = if import { &existing } else { &[] };
    let written = init::write_manifest(&world, preset, imported)?;
    if args.json {
        let existing: Vec<Value> = existing
            .iter()
            .map(|one| {
                json!({"agent": one.adapter.spec.id, "file": one.path, "hooks": one.hooks.len(),
                    "imported": import, "warnings": one.warnings})
            })
            .collect();
        return terminal.json(&json!({
            "manifest": written.manifest, "guard": written.guard, "written": true,
            "preset": preset.map(|preset| preset.name),
            "trusted": written.trusted, "existing": existing, "agents": agents,
        }));
    }
    let manifest = world.display_path(&written.manifest);
    if let Some(guard) = &written.guard {
        let guard = world.display_path(guard);
        terminal.line(&format!(
            "Wrote {manifest} and {guard}: the guard denies destructive shell commands."
        ));
    }
    if let Some(preset) = preset {
        terminal.line(&format!(
            "Wrote {manifest} with the {} guards.",
            preset.name
        ));
        print_preset(preset, terminal);
    }
    print_agents(&agents, terminal);
    terminal.line(if written.trusted {
        "Next: `anyhook test` shows each agent's answer; `anyhook install` activates the hooks."
    } else {
        "Next: review the manifest and run `anyhook trust`, then `anyhook install`."
    });
    Ok(CommandStatus::Success)
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
    table::print_unwrapped(terminal, ["agent", "version", "found at"], rows);
}

fn print_existing(existing: &[ExistingHooks], import: bool, world: &Machine, terminal: &Terminal) {
    let hint = if import {
        ""
    } else {
        "; `anyhook init --import` copies them into the manifest, for every agent"
    };
    for one in existing {
        terminal.note(&format!(
            "{} has {} in {}{hint}",
            one.adapter.spec.name,
            counted(one.hooks.len(), "hook"),
            world.display_path(&one.path)
        ));
        for warning in &one.warnings {
            terminal.note(&format!("  {}: {}", warning.field, warning.message));
        }
    }
}
