//! `anyhook uninstall`: the bridge out of the agents' config files.

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use anyhook_agents::spec::Scope;
use anyhook_install::{Bridge, FileChange, Target, World, scope_name, trust};
use serde_json::{Value, json};

use super::install::{self, ScopeName};
use crate::cli::Verdict;
use crate::render::Terminal;

/// Take the bridge out of the agents' config files
///
/// A file that install made goes; one that it edited is what it was. What you
/// changed in between stays.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  anyhook uninstall
  anyhook uninstall --agent cursor --scope user --dry-run")]
pub struct Args {
    /// Only this agent; may be given several times [default: wherever the bridge stands]
    #[arg(long, value_name = "AGENT")]
    agent: Vec<String>,
    /// Out of the project's files, or out of the user's
    #[arg(long, value_enum, default_value_t = ScopeName::Project)]
    scope: ScopeName,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What came of one file of an agent.
struct Outcome {
    adapter: &'static Adapter,
    files: Vec<FileChange>,
    error: Option<String>,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Verdict> {
    let world = install::world()?;
    let scope = args.scope.scope();
    let adapters: Vec<&'static Adapter> = if args.agent.is_empty() {
        clients().collect()
    } else {
        install::chosen(&args.agent, &world, scope)?.0
    };
    let bridges: Vec<Bridge> = adapters
        .into_iter()
        .flat_map(|adapter| targets(&world, adapter, scope))
        .map(|target| Bridge::installed(&world, target))
        .collect();
    let mut outcomes: Vec<Outcome> = Vec::new();
    let mut ready = Vec::new();
    for bridge in bridges {
        match bridge.preview_uninstall() {
            Ok(files) => {
                if !args.json && (args.dry_run || install::is_interactive()) {
                    install::show(&files, &world, terminal);
                }
                ready.push((bridge, files));
            }
            Err(error) => outcomes.push(Outcome {
                adapter: bridge.target.adapter,
                files: Vec::new(),
                error: Some(error.to_string()),
            }),
        }
    }
    let go = args.dry_run
        || args.yes
        || args.json
        || ready.is_empty()
        || !install::is_interactive()
        || install::confirm(terminal, "Take this out?", true);
    if !go {
        terminal.note("Nothing was changed.");
        return Ok(Verdict::Good);
    }
    for (bridge, files) in ready {
        outcomes.push(one(&world, &bridge, files, args.dry_run));
    }
    if args.json {
        let agents: Vec<Value> = outcomes.iter().map(|one| one.json(&world)).collect();
        terminal.json(
            &json!({"scope": scope_name(scope), "dry_run": args.dry_run, "agents": agents}),
        )?;
    } else {
        for outcome in &outcomes {
            outcome.tell(&world, args.dry_run, terminal);
        }
        if outcomes.is_empty() {
            terminal.line("The bridge is not installed here.");
        }
    }
    Ok(if outcomes.iter().any(|one| one.error.is_some()) {
        Verdict::Findings
    } else {
        Verdict::Good
    })
}

/// The files of an agent in which the bridge stands.
fn targets(world: &World, adapter: &'static Adapter, scope: Scope) -> Vec<Target> {
    let mut targets = Target::present(world, adapter, &[scope]);
    targets.retain(Target::has_bridge);
    targets
}

fn one(world: &World, bridge: &Bridge, preview: Vec<FileChange>, dry_run: bool) -> Outcome {
    let adapter = bridge.target.adapter;
    if dry_run {
        return Outcome {
            adapter,
            files: preview,
            error: None,
        };
    }
    // Consent first: afterwards its keys could no longer be told.
    let done = trust::withdraw(world, &bridge.target).and_then(|mut files| {
        files.extend(bridge.uninstall()?);
        Ok(files)
    });
    match done {
        Ok(files) => Outcome {
            adapter,
            files,
            error: None,
        },
        Err(error) => Outcome {
            adapter,
            files: preview,
            error: Some(error.to_string()),
        },
    }
}

impl Outcome {
    fn json(&self, world: &World) -> Value {
        json!({
            "agent": self.adapter.spec.id,
            "files": self.files.iter().map(|file| json!({
                "path": file.path,
                "changed": !file.change.is_empty(),
                "removed": file.change.before.is_some() && file.change.after.is_none(),
                "diff": file.change.diff(&world.shown(&file.path)),
            })).collect::<Vec<_>>(),
            "error": self.error,
        })
    }

    fn tell(&self, world: &World, dry_run: bool, terminal: &Terminal) {
        let name = &self.adapter.spec.name;
        if let Some(error) = &self.error {
            terminal.failure(&format!("{name}: {error}"));
            return;
        }
        let would = if dry_run { "would be " } else { "" };
        for file in self.files.iter().filter(|file| !file.change.is_empty()) {
            let what = if file.change.after.is_none() {
                "removed"
            } else {
                "taken out of"
            };
            let place = world.shown(&file.path);
            terminal.line(&format!("{name}: {would}{what} {place}"));
        }
    }
}
