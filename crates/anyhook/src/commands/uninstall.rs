//! `anyhook uninstall`: removes from the agents' config files what `install` added.

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use anyhook_install::{
    FileChange, Installation, Machine, Target, agent_trust, kept_program, notes, scope_name,
};
use serde_json::{Value, json};

use super::agents;
use super::install::{self, AgentResult, ApplyArgs, ScopeName};
use crate::cli::CommandStatus;
use crate::render::{Terminal, counted};

/// Remove anyhook from the agents' config files
///
/// Files that install created are deleted, files that it edited are restored.
/// Changes that you made since then stay.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  anyhook uninstall
  anyhook uninstall --agent cursor --scope user --dry-run")]
pub(crate) struct UninstallArgs {
    /// Only this agent; repeat for more [default: wherever anyhook is installed]
    #[arg(long, value_name = "AGENT")]
    agent: Vec<String>,
    /// Change the project's config files or the user's
    #[arg(long, value_enum, default_value_t = ScopeName::Project)]
    scope: ScopeName,
    #[command(flatten)]
    apply: ApplyArgs,
}

impl UninstallArgs {
    pub(crate) fn changes_files(&self) -> bool {
        !self.apply.dry_run
    }
}

pub(crate) fn run(args: &UninstallArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let world = install::this_machine()?;
    let scope = args.scope.scope();
    let adapters: Vec<&'static Adapter> = if args.agent.is_empty() {
        clients().collect()
    } else {
        agents::find_clients(&args.agent)?
    };
    let mut planned = Vec::new();
    let mut results = Vec::new();
    for adapter in adapters {
        for target in Target::existing(&world, adapter, &[scope]) {
            if let Some(error) = target.syntax_error() {
                results.extend(unreadable(&world, &target, &error));
                continue;
            }
            let bridge = Installation::existing(&world, target);
            if !bridge.target.has_bridge() && bridge.taken_out() == 0 {
                continue;
            }
            match bridge.preview_uninstall() {
                Ok(files) => planned.push((files, bridge)),
                Err(error) => results.push(AgentResult::failed(adapter, scope, &error)),
            }
        }
    }
    if !install::is_approved(&planned, &args.apply, "Remove this?", &world, terminal) {
        return Ok(CommandStatus::Success);
    }
    let dry_run = args.apply.dry_run;
    for (preview, bridge) in planned {
        results.push(uninstall(&world, &bridge, preview, dry_run));
    }
    let removed = if dry_run {
        None
    } else {
        kept_program::remove_unused(&world)?
    };
    if args.apply.json {
        let agents: Vec<Value> = results
            .iter()
            .map(|result| {
                json!({
                    "agent": result.adapter.spec.id,
                    "files": result.files_json(&world),
                    "put_back": result.put_back,
                    "notes": result.notes,
                    "error": result.error,
                })
            })
            .collect();
        terminal
            .json(&json!({"scope": scope_name(scope), "dry_run": dry_run, "agents": agents, "removed": removed}))?;
    } else {
        for result in &results {
            print_uninstalled(result, &world, dry_run, terminal);
        }
        let is_untouched = |result: &AgentResult| !result.is_changed() && result.error.is_none();
        if results.iter().all(is_untouched) {
            terminal.line("anyhook is not installed here.");
        }
        if let Some(path) = &removed {
            let path = world.display_path(path);
            terminal.line(&format!("Deleted {path}, which no entry needs any more"));
        }
    }
    Ok(install::status(&results))
}

/// A file that cannot be parsed and seems to contain the bridge.
fn unreadable(world: &Machine, target: &Target, error: &str) -> Option<AgentResult> {
    let message = format!(
        "`{}` cannot be read, so anyhook stays in it: {error}; fix the file and try again",
        world.display_path(&target.path)
    );
    let result = AgentResult::failed(target.adapter, target.scope, &message);
    target.mentions_bridge().then_some(result)
}

fn uninstall(
    world: &Machine,
    bridge: &Installation,
    preview: Vec<FileChange>,
    dry_run: bool,
) -> AgentResult {
    let Target { adapter, scope, .. } = bridge.target;
    let notes = notes::kept_notes(&bridge.target);
    let put_back = bridge.taken_out();
    if dry_run {
        return AgentResult {
            put_back,
            notes,
            ..AgentResult::changed(adapter, scope, preview)
        };
    }
    // Trust first: its keys are computed from the entries that are about to go.
    let done = agent_trust::withdraw(world, &bridge.target).and_then(|mut files| {
        files.extend(bridge.uninstall()?);
        Ok(files)
    });
    match done {
        Ok(files) => AgentResult {
            put_back,
            notes,
            ..AgentResult::changed(adapter, scope, files)
        },
        Err(error) => AgentResult {
            files: preview,
            ..AgentResult::failed(adapter, scope, &error)
        },
    }
}

fn print_uninstalled(result: &AgentResult, world: &Machine, dry_run: bool, terminal: &Terminal) {
    let name = &result.adapter.spec.name;
    if let Some(error) = &result.error {
        terminal.error(&format!("{name}: {error}"));
        return;
    }
    let would_be = if dry_run { "would be " } else { "" };
    for file in result.files.iter().filter(|file| !file.change.is_empty()) {
        let path = world.display_path(&file.path);
        terminal.line(&if file.change.after.is_none() {
            format!("{name}: {would_be}deleted {path}")
        } else {
            format!("{name}: {would_be}removed from {path}")
        });
    }
    if result.put_back > 0 {
        let hooks = counted(result.put_back, "hook");
        terminal.line(&format!(
            "  {would_be}put back {hooks} that `anyhook install` had taken out"
        ));
    }
    for note in &result.notes {
        terminal.note(&format!("{name}: {}.", note.text));
    }
}
