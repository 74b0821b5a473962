//! `anyhook list`: every hook that applies here.

use std::path::Path;

use anyhook_agents::matrix::clients;
use anyhook_agents::spec::Scope;
use anyhook_install::{Machine, Target};
use anyhook_model::{Hook, Record, RunOutcome};
use anyhook_run::Engine;
use anyhook_run::config::in_force::{HookInForce, HookState};
use anyhook_store::EventFilter;
use serde::{Deserialize as _, Serialize};
use serde_json::Value;

use super::install;
use super::log::event_log::EventLog;
use crate::cli::CommandStatus;
use crate::render::{Terminal, colour};
use crate::table::{self, Cell};

/// Recorded events that are searched for the last run of a hook.
const SEARCHED_EVENTS: usize = 2000;

/// List every hook that applies in this folder
///
/// Shows from which file it comes, whether it may run, in which agents anyhook is
/// installed for its event, and when it last ran. Exits with 1 if a manifest
/// cannot be read.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  anyhook list\n  anyhook list --json")]
pub(crate) struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One hook, as `--json` prints it.
#[derive(Serialize)]
struct ListedHook {
    hook: String,
    event: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    matcher: Option<Value>,
    blocking: bool,
    manifest: String,
    scope: &'static str,
    #[serde(flatten)]
    state: HookState,
    /// Names of events and tools that mean nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unknown_names: Vec<String>,
    /// Where anyhook is installed for its event.
    agents: Vec<&'static str>,
    last: Option<LastRun>,
}

#[derive(Clone, Serialize)]
struct LastRun {
    time: String,
    agent: String,
    outcome: RunOutcome,
}

pub(crate) fn run(args: &ListArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let machine = install::this_machine()?;
    let (hooks, problems) = Engine::from_env().hooks_in_force(&machine.cwd);
    let bridges = installed_bridges(&machine);
    let records = EventLog::open(None)
        .and_then(|log| log.details(&EventFilter::default(), SEARCHED_EVENTS))
        .unwrap_or_default();
    let last_run = |one: &HookInForce| {
        records.iter().find_map(|detail| {
            let record = Record::deserialize(&detail.record).ok()?;
            let manifest = one.manifest.to_string_lossy();
            let mut runs = record.hooks.iter();
            let run = runs.find(|run| run.hook == one.label && run.manifest == manifest)?;
            Some(LastRun {
                time: record.time.clone(),
                agent: record.agent.clone(),
                outcome: run.outcome,
            })
        })
    };
    let listed = hooks.iter().map(|one| ListedHook {
        hook: one.label.clone(),
        event: one.hook.event.clone(),
        matcher: one
            .hook
            .matcher
            .as_ref()
            .and_then(|matcher| serde_json::to_value(matcher).ok()),
        blocking: one.hook.blocking,
        manifest: one.manifest.to_string_lossy().into_owned(),
        scope: one.scope.as_str(),
        state: one.state.clone(),
        unknown_names: one.unknown_names.clone(),
        agents: agents_of(&one.hook, &bridges),
        last: last_run(one),
    });
    let listed: Vec<ListedHook> = listed.collect();
    let status = CommandStatus::success_if(problems.is_empty());
    for problem in &problems {
        terminal.error(&format!(
            "`{}`: {}",
            problem.path.display(),
            problem.message
        ));
    }
    if args.json {
        terminal.json(&listed)?;
        return Ok(status);
    }
    if listed.is_empty() {
        if problems.is_empty() {
            terminal.line("No hook applies here; `anyhook init` writes a first manifest.");
        }
        return Ok(status);
    }
    print_table(&listed, &machine, terminal);
    Ok(status)
}

fn print_table(listed: &[ListedHook], machine: &Machine, terminal: &Terminal) {
    let rows = listed.iter().map(|one| {
        let tool = match &one.matcher {
            Some(Value::String(name)) => format!(" {name}"),
            Some(other) => format!(" {other}"),
            None => String::new(),
        };
        let blocks = if one.blocking { ", may block" } else { "" };
        let (colour, state) = match &one.state {
            HookState::Active if !one.unknown_names.is_empty() => {
                (colour::RED, one.unknown_names.join(", "))
            }
            HookState::Active => (colour::GREEN, "active".to_owned()),
            HookState::Untrusted(why) | HookState::Refused(why) => {
                (colour::RED, format!("off: {why}"))
            }
            HookState::Copy => (
                colour::DIM,
                "off: its copy in this worktree runs".to_owned(),
            ),
        };
        let agents = match one.agents.as_slice() {
            [] => "none".to_owned(),
            agents => agents.join(", "),
        };
        let last = one.last.as_ref().map(|last| {
            let outcome = serde_json::to_value(last.outcome).unwrap_or_default();
            let outcome = outcome.as_str().unwrap_or_default().to_owned();
            let time = last.time.get(..16).unwrap_or(&last.time).replace('T', " ");
            format!("{time} {outcome}")
        });
        [
            Cell::painted(colour::BOLD, &one.hook),
            format!("{}{tool}{blocks}", one.event).into(),
            machine.display_path(Path::new(&one.manifest)).into(),
            Cell::painted(colour, state),
            agents.into(),
            last.unwrap_or_else(|| "never".to_owned()).into(),
        ]
    });
    table::print(
        terminal,
        ["hook", "event", "file", "state", "agents", "last run"],
        rows,
    );
    if listed
        .iter()
        .any(|one| matches!(one.state, HookState::Untrusted(_)))
    {
        terminal.note("`anyhook trust` shows what these hooks run and lets you approve them.");
    }
    if listed.iter().any(|one| one.agents.is_empty()) {
        terminal.note("`anyhook install` installs hooks in the agents found here.");
    }
}

/// The agents that have the bridge, with the events that it gets.
fn installed_bridges(machine: &Machine) -> Vec<(&'static str, Vec<String>)> {
    let scopes = [Scope::Project, Scope::Local, Scope::User, Scope::Managed];
    let mut found = Vec::new();
    for adapter in clients() {
        let mut events = Vec::new();
        for target in Target::existing(machine, adapter, &scopes) {
            for name in target.bridged_events() {
                let event = adapter.event_by_native(&name);
                let canonical = event.and_then(|event| event.is.as_deref());
                events.extend(canonical.map(str::to_owned));
                events.push(name);
            }
        }
        if !events.is_empty() {
            found.push((adapter.spec.id.as_ref(), events));
        }
    }
    found
}

fn agents_of(hook: &Hook, bridges: &[(&'static str, Vec<String>)]) -> Vec<&'static str> {
    let bridges = bridges.iter();
    bridges
        .filter(|(_, events)| events.contains(&hook.event))
        .map(|(agent, _)| *agent)
        .collect()
}
