//! Tool calls as clients report them: the captures of an agent, and the same calls
//! as another agent would make them.

use std::path::Path;

use anyhook_agents::Adapter;
use anyhook_model::HookEvent;
use serde_json::{Value, json};

use crate::clients::{Subject, claude_name};

const BEFORE_TOOL: &str = "before_tool_execute";

/// One call in one client.
#[derive(Debug, Clone)]
pub(crate) struct NativeCall {
    /// For reports: the capture, and the tool if the client has several for it.
    pub name: String,
    pub subject: Subject,
    /// Every event that it fires, with the payload.
    pub events: Vec<(String, Value)>,
    pub canonical: HookEvent,
}

/// The payload with the project's folder in place of the captured one.
fn moved(payload: &mut Value, project: &str) {
    match payload {
        Value::String(text) => {
            for folder in ["/home/dev/proj", "/w"] {
                if text == folder || text.starts_with(&format!("{folder}/")) {
                    text.replace_range(..folder.len(), project);
                    return;
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| moved(item, project)),
        Value::Object(map) => map.values_mut().for_each(|item| moved(item, project)),
        _ => {}
    }
}

/// The calls that an agent's captures before a tool report.
pub(crate) fn captured(adapter: &'static Adapter, project: &str) -> Vec<NativeCall> {
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../anyhook-agents/agents");
    let root = agents.join(adapter.spec.id.as_ref()).join("captures");
    let mut folders = vec![root.clone()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut calls = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut payload: Value = serde_json::from_str(&text).unwrap();
        moved(&mut payload, project);
        let stem = file.file_stem().unwrap().to_str().unwrap();
        let hint = stem.split('-').next();
        let Ok(decoded) = adapter.decode(&payload, hint) else {
            continue;
        };
        if decoded.event.event == BEFORE_TOOL {
            let name = file.strip_prefix(&root).unwrap().display().to_string();
            calls.push(native_call(name, decoded.event, payload));
        }
    }
    if calls.is_empty() {
        // No client could be run here: the calls of another agent, as documented.
        let other = anyhook_agents::get("claude-code").unwrap();
        for call in captured(other, project) {
            for made in made_by(adapter, &call.canonical, &call.name) {
                for (event, payload) in made.events {
                    let decoded = adapter.decode(&payload, Some(&event)).unwrap();
                    calls.push(native_call(call.name.clone(), decoded.event, payload));
                }
            }
        }
    }
    calls
}

fn subject(event: &HookEvent) -> Subject {
    let command = event.tool_input().and_then(|input| input.get("command"));
    Subject {
        tool: event.native_tool_name().unwrap_or_default().to_owned(),
        is_mcp: event.mcp().is_some(),
        command: command
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
    }
}

fn native_call(name: String, event: HookEvent, payload: Value) -> NativeCall {
    NativeCall {
        name,
        subject: subject(&event),
        events: vec![(event.native_event.clone(), payload)],
        canonical: event,
    }
}

/// The same call made by another agent, once for each tool that it has for this;
/// none if it has no such tool.
pub(crate) fn made_by(adapter: &'static Adapter, event: &HookEvent, name: &str) -> Vec<NativeCall> {
    let mut event = event.clone();
    let spec = &adapter.spec;
    let is_own = event.source == spec.id;
    let canonical = event.tool_name().unwrap_or_default().to_owned();
    let mcp = event
        .mcp()
        .map(|(server, tool)| (server.to_owned(), tool.to_owned()));
    let before = || {
        spec.events
            .iter()
            .filter(|one| one.is.as_deref() == Some(BEFORE_TOOL))
    };
    let fits = |tools: &[anyhook_agents::spec::Str]| {
        tools.is_empty()
            || tools
                .iter()
                .any(|tool| *tool == canonical || (mcp.is_some() && tool == "mcp"))
    };
    let is_named = before().any(|one| one.tools.is_empty());
    let mut tools: Vec<String> = Vec::new();
    if let Some((server, tool)) = &mcp {
        tools.extend(adapter.mcp_name(server, tool));
    } else if is_own {
        tools.extend(event.native_tool_name().map(str::to_owned));
    } else {
        let rows = spec.tools.iter().filter(|tool| !tool.read_only);
        for row in rows.filter(|tool| tool.kinds().any(|kind| kind == canonical)) {
            if !tools.contains(&row.native.to_string()) {
                tools.push(row.native.to_string());
            }
        }
    }
    if !is_named {
        tools = vec![String::new()];
    }
    let mut calls = Vec::new();
    for (index, tool) in tools.into_iter().enumerate() {
        if index > 0 {
            // As if the agent itself had reported a call of this tool.
            event.source = spec.id.to_string();
            event.data.insert("native_tool_name".into(), json!(tool));
            event.metadata.clear();
        }
        let mut events = Vec::new();
        for one in before().filter(|one| fits(&one.tools)) {
            if index > 0 {
                event.native_event = one.native.to_string();
            }
            let Some(encoded) = adapter.encode(&event, Some(&one.native)) else {
                continue;
            };
            let mut payload = encoded.payload;
            if spec.id == "copilot-cli"
                && one.native == "PreToolUse"
                && let Some(Value::String(name)) = payload.get_mut("tool_name")
            {
                *name = claude_name(name).to_owned();
            }
            events.push((one.native.to_string(), payload));
        }
        if events.is_empty() {
            continue;
        }
        calls.push(NativeCall {
            name: format!("{name} as {tool}"),
            subject: Subject {
                tool,
                ..subject(&event)
            },
            events,
            canonical: event.clone(),
        });
    }
    calls
}
