//! `anyhook init`: a first manifest that works.

use anyhook_agents::matrix::clients;
use anyhook_install::init::{self, Existing};
use anyhook_install::needs::project_manifest;
use anyhook_install::{Found, World};
use serde_json::{Value, json};

use super::install;
use crate::cli::Verdict;
use crate::render::Terminal;

/// Write a first manifest with a guard that works, and say which agents are here
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  anyhook init\n  anyhook init --yes --import")]
pub struct Args {
    /// Take over the hooks that the project's agents have already
    #[arg(long)]
    import: bool,
    /// Do not ask: write, and import only with --import
    #[arg(short, long)]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Verdict> {
    let world = install::world()?;
    let agents = agents(&world);
    let existing = init::existing(&world);
    let there = project_manifest(&world.root);
    if let Some(path) = there {
        if args.json {
            terminal.json(&json!({"manifest": path, "written": false, "agents": agents}))?;
        } else {
            terminal.line(&format!(
                "There is a manifest already: {}",
                world.shown(&path)
            ));
            tell_agents(&agents, terminal);
        }
        return Ok(Verdict::Good);
    }
    let asks = !args.yes && !args.json && install::is_interactive();
    if asks && !install::confirm(terminal, "Write .anyhook/hooks.yaml and a guard?", true) {
        terminal.note("Nothing was written.");
        return Ok(Verdict::Good);
    }
    let mut import = args.import;
    if !existing.is_empty() && !args.json {
        tell_existing(&existing, &world, terminal);
        import = import
            || (asks
                && install::confirm(terminal, "Take these hooks over into the manifest?", false));
    }
    let chosen: &[Existing] = if import { &existing } else { &[] };
    let written = init::write(&world, chosen)?;
    if args.json {
        let found: Vec<Value> = existing
            .iter()
            .map(|one| {
                json!({"agent": one.adapter.spec.id, "file": one.path, "hooks": one.hooks.len(),
                    "imported": import, "warnings": one.warnings})
            })
            .collect();
        terminal.json(&json!({
            "manifest": written.manifest, "guard": written.guard, "written": true,
            "trusted": written.trusted, "existing": found, "agents": agents,
        }))?;
        return Ok(Verdict::Good);
    }
    terminal.line(&format!(
        "Wrote {} and {}: the guard denies destructive shell commands.",
        world.shown(&written.manifest),
        world.shown(&written.guard)
    ));
    tell_agents(&agents, terminal);
    terminal.line(if written.trusted {
        "Next: `anyhook test` shows what each agent would be told; `anyhook install` puts it to work."
    } else {
        "Next: look at the manifest and run `anyhook trust`, then `anyhook install`."
    });
    Ok(Verdict::Good)
}

/// The agents that are here, with what shows it.
fn agents(world: &World) -> Vec<Value> {
    clients()
        .filter_map(|adapter| {
            let found = Found::look(world, adapter);
            found.is_here().then(|| {
                json!({"agent": adapter.spec.id, "name": adapter.spec.name,
                    "here": found.shown(world), "version": found.version(world)})
            })
        })
        .collect()
}

fn tell_agents(agents: &[Value], terminal: &Terminal) {
    if agents.is_empty() {
        terminal.line("No agent was found here; `anyhook agents` lists those that are known.");
        return;
    }
    let text = |agent: &Value, key: &str| {
        agent
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or("-")
            .to_owned()
    };
    let rows: Vec<Vec<String>> = agents
        .iter()
        .map(|agent| {
            vec![
                text(agent, "name"),
                text(agent, "version"),
                text(agent, "here"),
            ]
        })
        .collect();
    terminal.table(&["agent", "version", "seen in"], &rows);
}

fn tell_existing(existing: &[Existing], world: &World, terminal: &Terminal) {
    for one in existing {
        let count = match one.hooks.len() {
            1 => "one hook".to_owned(),
            count => format!("{count} hooks"),
        };
        terminal.note(&format!(
            "{} has {count} in {}; `anyhook init --import` takes them into the manifest, for every agent",
            one.adapter.spec.name,
            world.shown(&one.path)
        ));
        for warning in &one.warnings {
            terminal.note(&format!("  {}: {}", warning.field, warning.message));
        }
    }
}
