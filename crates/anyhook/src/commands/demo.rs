//! `anyhook demo`: two hooks and a recorded payload of every agent, no agent
//! needed. Everything happens in a temporary folder that is gone afterwards.

use std::fs;
use std::path::Path;

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use anyhook_model::HookEvent;
use anyhook_model::event::field;
use anyhook_run::Engine;
use anyhook_run::discover::Dirs;
use anyhow::{Context, anyhow};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::cli::Verdict;
use crate::columns::{self, Cell};
use crate::render::Terminal;
use crate::trial::Trial;

/// Show what it is about: two hooks, every agent's payload, what each is told
///
/// Needs no agent and no configuration, and leaves nothing behind.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  anyhook demo\n  anyhook demo --json")]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The project of the demonstration.
const FILES: [(&str, &str); 3] = [
    (".anyhook/hooks.yaml", include_str!("../../demo/hooks.yaml")),
    (".anyhook/guard.sh", include_str!("../../demo/guard.sh")),
    (
        ".anyhook/claude-hook.sh",
        include_str!("../../demo/claude-hook.sh"),
    ),
];

/// A call of the shell by each agent, as the real client sent it.
const PAYLOADS: &str = include_str!("../../demo/payloads.json");

/// What an agent is about to do, and who has a say in it.
struct Scene {
    command: &'static str,
    hook: &'static str,
    about: &'static str,
}

const SCENES: [Scene; 2] = [
    Scene {
        command: "rm -rf ~/projects",
        hook: "guard",
        about: "guard.sh, six lines of sh that know no agent, denies it:",
    },
    Scene {
        command: "git push --force",
        hook: "safe-push",
        about: "claude-hook.sh, written for Claude Code alone and unchanged, makes it `git push --force-with-lease`:",
    },
];

#[derive(Serialize)]
struct Played {
    command: &'static str,
    hook: &'static str,
    agents: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    name: String,
    /// The payload was recorded from the real client, apart from its command.
    recorded: bool,
    /// The gist of the answer.
    told: String,
    #[serde(flatten)]
    trial: Trial,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Verdict> {
    let scratch = tempfile::tempdir().context("no temporary folder")?;
    // Hooks find it by its real name.
    let root = fs::canonicalize(scratch.path())?;
    let project = root.join("project");
    // The search for manifests ends here.
    fs::create_dir_all(project.join(".git"))?;
    for (path, text) in FILES {
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
    };
    let engine = Engine::new(dirs, true);
    let recorded: Map<String, Value> = serde_json::from_str(PAYLOADS)?;
    let folder = project.to_string_lossy().into_owned();
    let mut scenes = Vec::new();
    for scene in &SCENES {
        let mut agents = Vec::new();
        for adapter in clients() {
            let recorded = recorded.get(adapter.spec.id.as_ref());
            agents.push(line(&engine, adapter, recorded, scene, &folder)?);
        }
        scenes.push(Played {
            command: scene.command,
            hook: scene.hook,
            agents,
        });
    }
    if args.json {
        terminal.json(&json!({ "scenes": scenes }))?;
    } else {
        show(&scenes, terminal);
    }
    Ok(Verdict::Good)
}

fn line(
    engine: &Engine,
    adapter: &Adapter,
    recorded: Option<&Value>,
    scene: &Scene,
    folder: &str,
) -> anyhow::Result<Line> {
    let (native, payload) = match recorded {
        Some(recorded) => sent(adapter, recorded, scene.command),
        None => made(adapter, scene.command),
    }
    .ok_or_else(|| anyhow!("{} has no call of the shell", adapter.spec.name))?;
    let trial = Trial::run(engine, adapter, &native, payload, folder)
        .map_err(|why| anyhow!("{}: {why}", adapter.spec.id))?;
    Ok(Line {
        name: adapter.spec.name.to_string(),
        recorded: recorded.is_some(),
        told: gist(&trial),
        trial,
    })
}

/// A recorded payload with another command in it.
fn sent(adapter: &Adapter, recorded: &Value, command: &str) -> Option<(String, Value)> {
    let name = recorded.get("event")?.as_str()?;
    let mut payload = recorded.get("payload")?.clone();
    let event = adapter.decode(&payload, Some(name)).ok()?.event;
    let old = event.tool_input()?.get("command")?.as_str()?;
    replace(&mut payload, old, command);
    Some((name.to_owned(), payload))
}

/// Everywhere where the command stands, also in JSON inside a text.
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

/// The payload of an agent of which none was recorded, from its table.
fn made(adapter: &Adapter, command: &str) -> Option<(String, Value)> {
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

/// What of an answer decides: short values that the agent did not send itself.
fn gist(trial: &Trial) -> String {
    let mut parts = Vec::new();
    if trial.exit != 0 {
        parts.push(format!("exit {}", trial.exit));
    }
    let new = trial.response.updated_input.as_ref();
    let new = new.and_then(|input| input.get("command")?.as_str());
    match serde_json::from_str::<Value>(&trial.stdout) {
        Ok(answer) => {
            let mut leaves = Vec::new();
            collect("", &answer, &mut leaves);
            let mut sent = Vec::new();
            collect("", &trial.payload, &mut sent);
            for (key, value) in &leaves {
                let text = value.as_str();
                let is_short = text.is_none_or(|text| !text.contains(' '));
                let is_new = text.is_some_and(|text| Some(text) == new);
                let is_echo = text == Some(&trial.native_event)
                    || sent
                        .iter()
                        .any(|(sent, there)| sent == key && there == value);
                if is_new || (is_short && !is_echo) {
                    let shown = text.map_or_else(|| value.to_string(), str::to_owned);
                    parts.push(format!("{key}: {shown}"));
                }
            }
            if parts.is_empty() {
                // The word is said by the key alone.
                parts.extend(leaves.iter().map(|(key, _)| format!("{key}: the reason")));
            }
        }
        Err(_) if !trial.stdout.is_empty() => parts.push("text on stdout".to_owned()),
        Err(_) => {}
    }
    if !trial.stderr.is_empty() {
        parts.push("reason on stderr".to_owned());
    }
    parts.join(", ")
}

fn collect<'a>(key: &'a str, value: &'a Value, leaves: &mut Vec<(&'a str, &'a Value)>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                collect(key, value, leaves);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(key, item, leaves)),
        _ => leaves.push((key, value)),
    }
}

fn show(scenes: &[Played], terminal: &Terminal) {
    let count = scenes.first().map_or(0, |scene| scene.agents.len());
    terminal.line(&format!(
        "One manifest, two hooks, {count} agents: what each agent's real client sends, what the hook says,\n\
         what the agent is told in its own language, and what it does then.",
    ));
    for (scene, played) in SCENES.iter().zip(scenes) {
        terminal.line(&format!(
            "\n{} {}",
            terminal.paint("2", "An agent is about to run"),
            terminal.paint("1;33", scene.command)
        ));
        terminal.line(&format!("{}\n", scene.about));
        let rows: Vec<Vec<Cell>> = played.agents.iter().map(row).collect();
        columns::print(
            terminal,
            &["agent", "sends", "hook", "is told", "what it does"],
            &rows,
        );
    }
    terminal.line(&format!(
        "\nNothing was installed, nothing was left behind. Next: {} shows what your own hooks would do.",
        terminal.bold("anyhook test")
    ));
}

fn row(line: &Line) -> Vec<Cell> {
    let trial = &line.trial;
    let tool = trial.native_tool.as_deref().unwrap_or_default();
    let lost = trial.lost.iter().any(|loss| loss.field == "updated_input");
    let effect = if lost {
        format!("it takes no changed input, so {}", trial.effect)
    } else {
        trial.effect.clone()
    };
    vec![
        Cell::painted("1", &trial.agent),
        Cell::painted("2", format!("{} {tool}", trial.native_event)),
        Cell::painted(trial.colour(), trial.decided()),
        Cell::plain(&line.told),
        Cell::plain(effect),
    ]
}
