//! Tool calls as clients report them: the captures of an agent, and the same calls
//! as another agent would make them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use anyhook_agents::Adapter;
use anyhook_agents::spec::EventSpec;
use anyhook_model::HookEvent;
use serde_json::{Map, Value, json};

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
    /// Where it was given every key that the agent may send for this tool.
    pub every_key: Option<KeyedCall>,
}

/// The keys of a call that has every key.
#[derive(Debug, Clone)]
pub(crate) struct KeyedCall {
    /// The key of the object with the tool's input.
    pub input: String,
    pub top_level: Vec<String>,
    pub in_input: Vec<String>,
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
    let mut calls = own_captures(adapter, project);
    if calls.is_empty() {
        // No client could be run here: the calls of another agent, as documented.
        let other = anyhook_agents::get("claude-code").unwrap();
        for call in own_captures(other, project) {
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

fn own_captures(adapter: &'static Adapter, project: &str) -> Vec<NativeCall> {
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
        every_key: None,
    }
}

/// Where the payload of an event has the tool's input.
fn input_pointer(adapter: &Adapter, event: &str) -> Option<String> {
    let event = adapter.event_by_native(event)?;
    adapter
        .payload_pointer(event, "tool_input")
        .map(str::to_owned)
}

/// The input of a call in a payload.
fn native_input<'a>(
    adapter: &Adapter,
    event: &str,
    payload: &'a Value,
) -> Option<&'a Map<String, Value>> {
    payload
        .pointer(&input_pointer(adapter, event)?)?
        .as_object()
}

/// The keys that the table has for the input of a tool.
fn table_keys(adapter: &Adapter, tool: &str) -> Option<Vec<String>> {
    let rows = adapter.spec.tools.iter();
    let mut rows = rows
        .filter(|row| row.names().any(|name| name == tool))
        .peekable();
    rows.peek()?;
    let mut keys: Vec<String> = Vec::new();
    for row in rows {
        keys.extend(row.keys.values().map(|place| place.at.to_string()));
        keys.extend(row.when.keys().cloned());
        keys.extend(row.patch.iter().map(ToString::to_string));
        keys.extend(row.other_keys.iter().map(ToString::to_string));
        if let Some(edits) = &row.edits {
            let optional = [&edits.list, &edits.replace_all, &edits.path];
            let optional = optional.into_iter().flatten();
            keys.extend(
                optional
                    .chain([&edits.old, &edits.new])
                    .map(ToString::to_string),
            );
        }
    }
    Some(keys)
}

/// The keys that calls of a tool have in the captures of its agent.
fn captured_keys(adapter: &'static Adapter, tool: &str) -> Vec<String> {
    static KEYS: Mutex<BTreeMap<&str, BTreeMap<String, Vec<String>>>> = Mutex::new(BTreeMap::new());
    let mut known = KEYS.lock().unwrap();
    let of_agent = known.entry(&adapter.spec.id).or_insert_with(|| {
        let mut keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for call in own_captures(adapter, "/home/dev/proj") {
            let (event, payload) = &call.events[0];
            let input = native_input(adapter, event, payload);
            let input = input.into_iter().flat_map(Map::keys).cloned();
            keys.entry(call.subject.tool).or_default().extend(input);
        }
        keys
    });
    of_agent.get(tool).cloned().unwrap_or_default()
}

/// A value such as a key has.
fn value_for(key: &str) -> Value {
    let key = key.to_ascii_lowercase();
    if key.contains("timeout") || key.contains("seconds") || key == "limit" || key == "offset" {
        json!(30)
    } else if ["is", "run_", "dangerously", "replace_all", "wait"]
        .iter()
        .any(|start| key.starts_with(start))
    {
        json!(true)
    } else {
        json!(format!("some {key}"))
    }
}

/// One call of each tool and event, with every key that the agent may send.
pub(crate) fn with_every_key(adapter: &'static Adapter, calls: &[NativeCall]) -> Vec<NativeCall> {
    let mut made: Vec<NativeCall> = Vec::new();
    for call in calls {
        let (event, payload) = &call.events[0];
        let is_same = |other: &&NativeCall| {
            other.events[0].0 == *event && other.subject.is_mcp == call.subject.is_mcp
        };
        let is_done = made.iter().any(|other| {
            other.events[0].0 == *event && other.canonical.tool_name() == call.canonical.tool_name()
        });
        let is_wanted = call.subject.is_mcp
            || matches!(
                call.canonical.tool_name(),
                Some("shell" | "file_write" | "agent")
            );
        let pointer = input_pointer(adapter, event);
        let (Some(pointer), true, false) = (pointer, is_wanted, is_done) else {
            continue;
        };
        let mut payload = payload.clone();
        for other in calls.iter().filter(is_same) {
            for (key, value) in other.events[0].1.as_object().unwrap() {
                let map = payload.as_object_mut().unwrap();
                map.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        let mut keys = captured_keys(adapter, &call.subject.tool);
        let row = adapter.tool_by_native(&call.subject.tool, None);
        keys.extend(row.into_iter().flat_map(|row| {
            let named = row.keys.values().map(|place| place.at.to_string());
            named.chain(row.other_keys.iter().map(ToString::to_string))
        }));
        let Some(Value::Object(input)) = payload.pointer_mut(&pointer) else {
            continue;
        };
        for key in keys.iter().filter(|_| !call.subject.is_mcp) {
            input.entry(key.clone()).or_insert_with(|| value_for(key));
        }
        let keyed = KeyedCall {
            input: pointer.rsplit('/').next().unwrap().to_owned(),
            in_input: input.keys().cloned().collect(),
            top_level: payload.as_object().unwrap().keys().cloned().collect(),
        };
        let Ok(decoded) = adapter.decode(&payload, Some(event)) else {
            continue;
        };
        let name = format!("{} with every key", call.name);
        let mut call = native_call(name, decoded.event, payload);
        call.every_key = Some(keyed);
        made.push(call);
    }
    made
}

/// Adds what the agent always sends beside what is canonical.
fn add_other_keys(event: &EventSpec, payload: &mut Value) {
    for key in &event.other_keys {
        let value = &mut payload[key.as_ref()];
        if value.is_null() || *value == "" {
            *value = value_for(key);
        }
    }
}

/// Leaves in a payload what the agent's tool has: encoding passes on what a table
/// does not know.
fn keep_sent_keys(adapter: &'static Adapter, call: &HookEvent, event: &str, payload: &mut Value) {
    let tool = call.native_tool_name().unwrap_or_default();
    let tool = if call.source == adapter.spec.id {
        tool
    } else {
        let row = call.tool_name();
        let row = row.and_then(|name| adapter.tool_by_canonical(name));
        row.map_or("", |row| &row.native)
    };
    let passed = call.tool_input().cloned().unwrap_or_default();
    let Some(known) = table_keys(adapter, tool).filter(|_| call.mcp().is_none()) else {
        return;
    };
    let seen = captured_keys(adapter, tool);
    let input = input_pointer(adapter, event);
    if let Some(Value::Object(input)) = input.and_then(|at| payload.pointer_mut(&at)) {
        input.retain(|key, _| {
            known.contains(key) || seen.contains(key) || !passed.contains_key(key)
        });
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
            keep_sent_keys(adapter, &event, &one.native, &mut payload);
            add_other_keys(one, &mut payload);
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
            every_key: None,
        });
    }
    calls
}
