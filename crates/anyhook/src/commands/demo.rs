//! `anyhook demo`: runs two hooks on a recorded payload of every agent.
//!
//! Needs no agent, and works in a temporary folder that is deleted afterwards.

use std::fs;
use std::path::Path;

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use anyhook_model::HookEvent;
use anyhook_model::event::field;
use anyhook_run::Engine;
use anyhook_run::config::discover::Dirs;
use anyhow::{Context, anyhow};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::cli::CommandStatus;
use crate::render::{Terminal, colour};
use crate::simulation::SimulatedCall;
use crate::table::{self, Cell};

/// Watch two hooks answer every agent, each in its own format
///
/// Needs no agent and no configuration, and leaves nothing behind.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  anyhook demo\n  anyhook demo --json")]
pub(crate) struct DemoArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The files of the demo project.
const PROJECT_FILES: [(&str, &str); 5] = [
    (".anyhook/hooks.yaml", include_str!("../../demo/hooks.yaml")),
    (".anyhook/guard.sh", include_str!("../../demo/guard.sh")),
    (
        ".anyhook/claude-hook.sh",
        include_str!("../../demo/claude-hook.sh"),
    ),
    (".anyhook/guard.cmd", include_str!("../../demo/guard.cmd")),
    (
        ".anyhook/claude-hook.cmd",
        include_str!("../../demo/claude-hook.cmd"),
    ),
];

/// A shell call of each agent, recorded from the real client.
const RECORDED_PAYLOADS: &str = include_str!("../../demo/payloads.json");

/// A command that every agent is about to run, and a hook that reacts to it.
#[derive(Serialize)]
struct Scene {
    command: &'static str,
    hook: &'static str,
    #[serde(skip)]
    about: &'static str,
    agents: Vec<AgentRow>,
}

#[derive(Serialize)]
struct AgentRow {
    name: String,
    /// Whether the payload was recorded from the real client, apart from its command.
    recorded: bool,
    /// The decisive part of the answer.
    answer: String,
    #[serde(flatten)]
    call: SimulatedCall,
}

/// Command, hook and what the hook does.
const DEMO_SCENES: [(&str, &str, &str); 2] = [
    (
        "rm -rf ~/projects",
        "guard",
        if cfg!(windows) {
            "guard.cmd, six lines that know nothing about agents, denies it:"
        } else {
            "guard.sh, six lines of sh that know nothing about agents, denies it:"
        },
    ),
    (
        "git push --force",
        "safe-push",
        if cfg!(windows) {
            "claude-hook.cmd, written for Claude Code only and unchanged, makes it `git push --force-with-lease`:"
        } else {
            "claude-hook.sh, written for Claude Code only and unchanged, makes it `git push --force-with-lease`:"
        },
    ),
];

pub(crate) fn run(args: &DemoArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let scratch = tempfile::tempdir().context("could not create a temporary folder")?;
    // Hooks get the canonical path.
    let root = anyhook_util::paths::canonicalize(scratch.path())?;
    let project = root.join("project");
    // The search for manifests ends at a repository's root.
    fs::create_dir_all(project.join(".git"))?;
    for (path, text) in PROJECT_FILES {
        let path = project.join(path);
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        fs::write(path, text)?;
    }
    let nowhere = root.join("nowhere");
    let dirs = Dirs {
        config: nowhere.clone(),
        managed: nowhere,
        state: root.join("state"),
        home: None,
        problems: Vec::new(),
    };
    let engine = Engine::new(dirs, true);
    let recorded: Map<String, Value> = serde_json::from_str(RECORDED_PAYLOADS)?;
    let folder = project.to_string_lossy();
    let mut scenes = Vec::new();
    for (command, hook, about) in DEMO_SCENES {
        let rows = clients().map(|adapter| {
            let recorded = recorded.get(adapter.spec.id.as_ref());
            simulate(&engine, adapter, recorded, command, &folder)
        });
        scenes.push(Scene {
            command,
            hook,
            about,
            agents: rows.collect::<anyhow::Result<_>>()?,
        });
    }
    if args.json {
        return terminal.json(&json!({ "scenes": scenes }));
    }
    print(&scenes, terminal);
    Ok(CommandStatus::Success)
}

fn simulate(
    engine: &Engine,
    adapter: &Adapter,
    recorded: Option<&Value>,
    command: &str,
    folder: &str,
) -> anyhow::Result<AgentRow> {
    let (native_event, payload) = match recorded {
        Some(recorded) => recorded_payload(adapter, recorded, command),
        None => encoded_payload(adapter, command),
    }
    .with_context(|| format!("{} has no shell call", adapter.spec.name))?;
    let call = SimulatedCall::run(engine, adapter, &native_event, payload, folder)
        .map_err(|why| anyhow!("{}: {why}", adapter.spec.id))?;
    Ok(AgentRow {
        name: adapter.spec.name.to_string(),
        recorded: recorded.is_some(),
        answer: answer_gist(&call),
        call,
    })
}

/// A recorded payload with another command in it, and its event.
fn recorded_payload(adapter: &Adapter, recorded: &Value, command: &str) -> Option<(String, Value)> {
    let name = recorded.get("event")?.as_str()?;
    let mut payload = recorded.get("payload")?.clone();
    let event = adapter.decode(&payload, Some(name)).ok()?.event;
    let old = event.tool_input()?.get("command")?.as_str()?;
    replace(&mut payload, old, command);
    Some((name.to_owned(), payload))
}

/// Replaces the command everywhere, also in JSON inside a string.
fn replace(value: &mut Value, old: &str, new: &str) {
    match value {
        Value::String(text) if text == old => new.clone_into(text),
        Value::String(text) => {
            let (old, new) = (json!(old).to_string(), json!(new).to_string());
            *text = text.replace(&old, &new);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, old, new)),
        Value::Object(map) => map.values_mut().for_each(|item| replace(item, old, new)),
        _ => {}
    }
}

/// A payload from the agent's table, for an agent without a recorded one.
fn encoded_payload(adapter: &Adapter, command: &str) -> Option<(String, Value)> {
    let mut event = HookEvent {
        event: "before_tool_execute".to_owned(),
        session_id: Some("demo".to_owned()),
        ..HookEvent::default()
    };
    event.data.insert(field::TOOL_NAME.into(), json!("shell"));
    let input = json!({"command": command});
    event.data.insert(field::TOOL_INPUT.into(), input);
    let encoded = adapter.encode(&event, None)?;
    Some((encoded.native_event, encoded.payload))
}

/// The decisive part of an answer: short values that the agent did not send itself.
fn answer_gist(call: &SimulatedCall) -> String {
    let mut parts = Vec::new();
    if call.exit != 0 {
        parts.push(format!("exit {}", call.exit));
    }
    let new = call.response.updated_input.as_ref();
    let new = new.and_then(|input| input.get("command")?.as_str());
    match serde_json::from_str::<Value>(&call.stdout) {
        Ok(answer) => {
            let mut leaves = Vec::new();
            collect_leaves("", &answer, &mut leaves);
            let mut sent = Vec::new();
            collect_leaves("", &call.payload, &mut sent);
            for leaf @ (key, value) in &leaves {
                let text = value.as_str();
                let is_short = text.is_none_or(|text| !text.contains(' '));
                let is_new = text.is_some_and(|text| Some(text) == new);
                let is_echo = text == Some(&call.native_event) || sent.contains(leaf);
                if is_new || (is_short && !is_echo) {
                    let shown = text.map_or_else(|| value.to_string(), str::to_owned);
                    parts.push(format!("{key}: {shown}"));
                }
            }
            if parts.is_empty() {
                // The key alone is the decision.
                parts.extend(leaves.iter().map(|(key, _)| format!("{key}: the reason")));
            }
        }
        Err(_) if !call.stdout.is_empty() => parts.push("text on stdout".to_owned()),
        Err(_) => {}
    }
    if !call.stderr.is_empty() {
        parts.push("reason on stderr".to_owned());
    }
    parts.join(", ")
}

fn collect_leaves<'a>(key: &'a str, value: &'a Value, leaves: &mut Vec<(&'a str, &'a Value)>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                collect_leaves(key, value, leaves);
            }
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| collect_leaves(key, item, leaves)),
        _ => leaves.push((key, value)),
    }
}

fn print(scenes: &[Scene], terminal: &Terminal) {
    let count = scenes.first().map_or(0, |scene| scene.agents.len());
    terminal.line(&format!(
        "One manifest, two hooks, {count} agents: what each real client sends, what the hook decides,\n\
         what the agent gets in its own format, and what it does then.",
    ));
    for scene in scenes {
        terminal.line(&format!(
            "\n{} {}",
            terminal.paint(colour::DIM, "An agent is about to run"),
            terminal.paint(colour::BOLD_YELLOW, scene.command)
        ));
        terminal.line(&format!("{}\n", scene.about));
        let titles = ["agent", "sends", "hook", "gets", "what it does"];
        table::print(terminal, titles, scene.agents.iter().map(cells));
    }
    terminal.line(&format!(
        "\nNothing was installed or left behind. Next: {} shows what your own hooks would do.",
        terminal.bold("anyhook test")
    ));
}

fn cells(row: &AgentRow) -> [Cell; 5] {
    let call = &row.call;
    let tool = call.native_tool.as_deref().unwrap_or_default();
    let is_rewrite_lost = call.lost.iter().any(|loss| loss.field == "updated_input");
    let effect = if is_rewrite_lost {
        format!("this rewrite is not possible, so {}", call.effect)
    } else {
        call.effect.clone()
    };
    [
        Cell::painted(colour::BOLD, &call.agent),
        Cell::painted(colour::DIM, format!("{} {tool}", call.native_event)),
        Cell::painted(call.colour(), call.decision_label()),
        (&row.answer).into(),
        effect.into(),
    ]
}
