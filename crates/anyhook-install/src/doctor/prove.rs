//! Fires an event through each entry of the bridge, as the agent would start
//! it, and looks whether a hook has run and the agent would have obeyed.
//!
//! Nothing of the user's runs: the bridge finds a manifest of ours in a folder
//! of ours, whose one hook denies everything, and leaves its record there.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhook_agents::Adapter;
use anyhook_agents::spec::{Blocking, Event, Shape};
use anyhook_model::event::field;
use anyhook_model::{Decision, HookEvent};
use anyhook_run::exec::command::Launch;
use anyhook_run::exec::{self, End, Ended, Job};
use anyhook_run::journal::{CURRENT, Journal};
use serde_json::{Map, Value, json};

use super::{Finding, Fix, Program, Report, Severity, about};
use crate::command;
use crate::scripts;
use crate::target::Target;
use crate::vendor::{self, Shell};
use crate::walk;
use crate::world::World;

const PATIENCE: Duration = Duration::from_secs(30);

/// What the one hook says.
const WORD: &str = "anyhook-doctor-denies";

/// A way to start the bridge that stands in a file.
struct Shot {
    /// The native event.
    event: String,
    line: String,
    launch: Launch,
}

pub fn fire(world: &World, target: &Target, report: &mut Report) {
    let Ok(range) = Range::new(target.adapter) else {
        return;
    };
    for (number, shot) in shots(world, target).into_iter().enumerate() {
        let Some(event) = target.adapter.event_by_native(&shot.event) else {
            continue;
        };
        report.fired += 1;
        match one(world, target, &range, event, &shot, number) {
            None => report.answered += 1,
            Some(finding) => {
                report.findings.push(finding);
                // What stops one entry stops them all; one word is enough.
                break;
            }
        }
    }
}

fn shots(world: &World, target: &Target) -> Vec<Shot> {
    match target.shape() {
        Shape::Scripts => scripts::found(target)
            .into_iter()
            .filter_map(|path| {
                let text = path.to_string_lossy().into_owned();
                Some(Shot {
                    event: path.file_stem()?.to_string_lossy().into_owned(),
                    line: text.clone(),
                    launch: Launch::Direct(vec![text]),
                })
            })
            .collect(),
        Shape::Plugin => {
            let Some(argv) = plugin_command(&target.path) else {
                return Vec::new();
            };
            let events = target.adapter.spec.events.iter();
            events
                .filter(|event| !event.noisy && !event.read_only)
                .map(|event| Shot {
                    event: event.native.to_string(),
                    line: argv.join(" "),
                    launch: Launch::Direct(argv.clone()),
                })
                .collect()
        }
        _ => {
            let Some(document) = target.document() else {
                return Vec::new();
            };
            let config = target.config();
            walk::entries(config, &document)
                .iter()
                .filter_map(|entry| {
                    let line = entry.commands(config).find(|line| {
                        command::ours(line)
                            .is_some_and(|ours| walk::is_agent(&ours.agent, target.slug()))
                    })?;
                    Some(Shot {
                        event: entry.event.to_owned(),
                        line: line.to_owned(),
                        launch: started(world, target.slug(), line),
                    })
                })
                .collect()
        }
    }
}

/// The program and its arguments that a generated plugin starts.
fn plugin_command(path: &Path) -> Option<Vec<String>> {
    let text = anyhook_edit::read_text(path).ok()??;
    let (_, rest) = text.split_once("\"argv\":")?;
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Vec<String>>();
    values.next()?.ok()
}

/// A command line as the agent starts it.
fn started(world: &World, slug: &str, line: &str) -> Launch {
    if cfg!(windows) {
        return Launch::Shell(line.to_owned());
    }
    let (shell, flag) = match vendor::shell(slug) {
        Shell::Sh => ("/bin/sh".to_owned(), "-c"),
        Shell::Bash => ("bash".to_owned(), "-c"),
        Shell::Login => {
            let own = world
                .var("SHELL")
                .map(|shell| shell.to_string_lossy().into_owned())
                .filter(|shell| Path::new(shell).is_file());
            (own.unwrap_or_else(|| "/bin/sh".to_owned()), "-lc")
        }
    };
    // What another agent around us has set must not speak for this one.
    let mut argv = vec!["env".to_owned()];
    for variable in foreign_variables(slug) {
        argv.extend(["-u".to_owned(), variable]);
    }
    argv.extend([shell, flag.to_owned(), line.to_owned()]);
    Launch::Direct(argv)
}

fn foreign_variables(slug: &str) -> Vec<String> {
    anyhook_agents::all()
        .filter(|adapter| adapter.spec.id != slug)
        .flat_map(|adapter| adapter.spec.detect.env.iter())
        .map(|mark| mark.split('=').next().unwrap_or(mark).to_owned())
        .collect()
}

fn one(
    world: &World,
    target: &Target,
    range: &Range,
    event: &Event,
    shot: &Shot,
    number: usize,
) -> Option<Finding> {
    let adapter = target.adapter;
    let session = format!("anyhook-doctor-{number}");
    let made = synthetic(event, &session, &range.project());
    let encoded = adapter.encode(&made, Some(&event.native))?;
    let understood = adapter.decode(&encoded.payload, Some(&event.native)).ok();
    let decoded = understood.map(|decoded| decoded.event).unwrap_or(made);
    // Without a folder in the payload the process's own counts, and the user's
    // hooks must not run.
    let cwd = match &decoded.cwd {
        Some(_) => world.root.clone(),
        None => range.project(),
    };
    let ended = exec::run(&Job {
        launch: shot.launch.clone(),
        cwd,
        owns_process: false,
        env: range.environment(world, adapter, &decoded),
        stdin: encoded.payload.to_string().as_bytes(),
        timeout: PATIENCE,
        cancel: None,
    });
    let exit = match &ended.end {
        End::Exit(code) => *code,
        other => return Some(dead(target, shot, &format!("{other:?}"), &ended)),
    };
    if !range.has_record(&session, &event.native) {
        return Some(dead(target, shot, &format!("exit code {exit}"), &ended));
    }
    let profile = event
        .answer
        .as_ref()
        .and_then(|name| adapter.spec.answers.get(name));
    let can_deny = event.blocking == Blocking::Prevent
        && profile.is_some_and(|profile| !profile.deny.is_empty());
    let stdout = String::from_utf8_lossy(&ended.stdout.bytes);
    let stderr = String::from_utf8_lossy(&ended.stderr.bytes);
    let read = adapter.read(&decoded, &event.native, &stdout, &stderr, exit);
    if can_deny && read.response.decision != Some(Decision::Deny) {
        let said = stdout.trim().lines().next().unwrap_or_default().to_owned();
        return Some(about(
            target,
            "deny-lost",
            Severity::Error,
            format!(
                "a deny at `{}` does not reach {}: it was told `{said}`",
                shot.event, adapter.spec.name
            ),
            "a guard would let everything pass",
            "look for a shell profile that prints something, or for a wrapper around the bridge"
                .to_owned(),
        ));
    }
    None
}

fn dead(target: &Target, shot: &Shot, how: &str, ended: &Ended) -> Finding {
    let stderr = String::from_utf8_lossy(&ended.stderr.bytes);
    let said = stderr
        .trim()
        .lines()
        .next_back()
        .unwrap_or_default()
        .to_owned();
    let said = if said.is_empty() {
        String::new()
    } else {
        format!(": {said}")
    };
    Finding {
        fix: Some(Fix::Reinstall(Box::new(target.clone()), Program::Absolute)),
        ..about(
            target,
            "bridge-dead",
            Severity::Error,
            format!(
                "`{}`, at `{}`, reaches no hook ({how}){said}",
                shot.line, shot.event
            ),
            "no hook runs, and to the agent it looks like approval",
            "run `anyhook install` again; see that `anyhook` is where the line looks for it"
                .to_owned(),
        )
    }
}

/// An event with something in each field that it may have.
fn synthetic(event: &Event, session: &str, project: &Path) -> HookEvent {
    let mut data = Map::new();
    let mut put = |key: &str, value: Value| data.insert(key.to_owned(), value);
    let path = project.join("file.txt");
    let tool = event.tools.first().map_or("shell", AsRef::as_ref);
    match tool {
        "mcp" => {
            put(field::TOOL_NAME, json!("probe"));
            put(field::MCP, json!({"server": "doctor", "tool": "probe"}));
            put(field::TOOL_INPUT, json!({}));
        }
        "shell" => {
            put(field::TOOL_NAME, json!("shell"));
            put(field::TOOL_INPUT, json!({"command": "true"}));
        }
        _ => {
            put(field::TOOL_NAME, json!(tool));
            let edits = json!([{"old": "a", "new": "b"}]);
            put(
                field::TOOL_INPUT,
                json!({"path": path, "content": "", "edits": edits}),
            );
        }
    }
    put(field::TOOL_CALL_ID, json!(format!("{session}-call")));
    put(field::TOOL_OUTPUT, json!("done"));
    put(field::PROMPT, json!("a prompt"));
    put(field::MESSAGE, json!("a message"));
    put(field::START_SOURCE, json!("startup"));
    put(field::REASON, json!("other"));
    put(field::TRIGGER, json!("manual"));
    HookEvent {
        event: event.is.as_deref().unwrap_or(&event.native).to_owned(),
        source: "anyhook".to_owned(),
        native_event: event.native.to_string(),
        session_id: Some(session.to_owned()),
        cwd: Some(project.to_string_lossy().into_owned()),
        data,
        ..HookEvent::default()
    }
}

/// A folder in which nothing but our own hook is found.
struct Range {
    folder: PathBuf,
}

impl Range {
    fn new(adapter: &Adapter) -> std::io::Result<Self> {
        let folder = (0_u32..1000)
            .map(|n| {
                std::env::temp_dir().join(format!("anyhook-doctor-{}-{n}", std::process::id()))
            })
            .find_map(|path| match private(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => None,
                made => Some(made.map(|()| path)),
            })
            .ok_or(std::io::ErrorKind::AlreadyExists)??;
        let range = Self {
            folder: std::fs::canonicalize(&folder).unwrap_or(folder),
        };
        for name in ["config", "managed", "state", "project", "project/.git"] {
            private(&range.folder.join(name))?;
        }
        let path = range.folder.join("config/hooks.json");
        std::fs::write(&path, manifest(adapter).to_string())?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        }
        Ok(range)
    }

    fn project(&self) -> PathBuf {
        self.folder.join("project")
    }

    fn environment(
        &self,
        world: &World,
        adapter: &Adapter,
        event: &HookEvent,
    ) -> Vec<(String, String)> {
        let own = |name: &str| self.folder.join(name).to_string_lossy().into_owned();
        let mut env = vec![
            ("ANYHOOK".to_owned(), "1".to_owned()),
            ("ANYHOOK_CONFIG_DIR".to_owned(), own("config")),
            ("ANYHOOK_MANAGED_DIR".to_owned(), own("managed")),
            ("ANYHOOK_STATE_DIR".to_owned(), own("state")),
        ];
        let root = world.root.to_string_lossy();
        for (name, template) in &adapter.spec.env {
            let value = template
                .replace("{project}", &root)
                .replace(
                    "{session_id}",
                    event.session_id.as_deref().unwrap_or_default(),
                )
                .replace("{transcript_path}", "")
                .replace("{event}", &event.native_event)
                .replace("{tool}", event.native_tool_name().unwrap_or_default());
            env.push((name.to_string(), value));
        }
        env
    }

    /// Whether a hook of ours has run for this event.
    fn has_record(&self, session: &str, native: &str) -> bool {
        let path = Journal::new(&self.folder.join("state"))
            .folder()
            .join(CURRENT);
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .any(|record| {
                let event = record
                    .pointer("/event/native_event")
                    .and_then(Value::as_str);
                let known = record.pointer("/event/session_id").and_then(Value::as_str);
                let ran = record.get("hooks").and_then(Value::as_array);
                event == Some(native)
                    && known.is_none_or(|known| known == session)
                    && ran.is_some_and(|ran| !ran.is_empty())
            })
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        let _best_effort = std::fs::remove_dir_all(&self.folder);
    }
}

fn private(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// One hook for each event of the agent, that denies.
fn manifest(adapter: &Adapter) -> Value {
    let mut names: Vec<&str> = Vec::new();
    for event in &adapter.spec.events {
        let name = event.is.as_deref().unwrap_or(&event.native);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let hooks: Vec<Value> = names
        .into_iter()
        .map(|name| {
            json!({"name": "doctor", "event": name, "blocking": true, "handler": {
                "type": "command",
                "command": format!("echo {WORD} >&2; exit 2"),
                "platform": {"windows": format!("echo {WORD} 1>&2 & exit 2")},
            }})
        })
        .collect();
    json!({"spec": "hooks/1.0", "hooks": hooks})
}
