//! Sample calls, encoded as each agent reports them.

use anyhook_agents::Adapter;
use anyhook_agents::spec::EventSpec;
use anyhook_model::event::field;
use anyhook_model::{HookEvent, registry};
use serde_json::{Value, json};

/// Begins every value of a sample.
pub(super) const SAMPLE: &str = "sample-";

/// Canonical tools, the keys of their input that guards decide by, and keys that
/// matter only to a program that is seen to read them.
pub(super) const SAMPLE_CALLS: [SampleCall; 10] = [
    ("shell", &["command"], &["description", "cwd"]),
    ("file_read", &["path"], &[]),
    ("file_write", &["path", "content"], &[]),
    ("file_edit", &["path"], &[]),
    ("search", &["pattern"], &["path", "glob"]),
    ("find", &["pattern"], &["path"]),
    ("web_fetch", &["url"], &["prompt"]),
    ("web_search", &["query"], &[]),
    ("agent", &["prompt"], &["type", "description"]),
    ("mcp", &["text"], &[]),
];

pub(super) type SampleCall = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

const SAMPLE_SERVER: &str = "srv";
const SAMPLE_TOOL: &str = "do_it";

/// The texts in a value, with the keys that lead to each.
fn leaves<'a>(value: &'a Value, at: &mut Vec<&'a str>, found: &mut Vec<(Vec<String>, &'a str)>) {
    match value {
        Value::String(text) => {
            found.push((at.iter().map(|key| (*key).to_owned()).collect(), text));
        }
        Value::Array(items) => items.iter().for_each(|item| leaves(item, at, found)),
        Value::Object(map) => {
            for (key, item) in map {
                at.push(key);
                leaves(item, at, found);
                at.pop();
            }
        }
        _ => {}
    }
}

pub(super) fn leaves_of(value: &Value) -> Vec<(Vec<String>, &str)> {
    let mut found = Vec::new();
    leaves(value, &mut Vec::new(), &mut found);
    found
}

/// A call in the words of one agent: its name for the tool, and the payload.
pub(super) struct EncodedCall {
    pub(super) tool: Option<String>,
    /// Other names that it may have for the tool.
    pub(super) aliases: Vec<String>,
    pub(super) payload: Value,
    /// The name of the event in the payload.
    pub(super) event: String,
}

pub(super) fn sample_event(
    event: &str,
    (kind, main, more): SampleCall,
    with_more: bool,
) -> HookEvent {
    let mut sample = HookEvent {
        event: event.to_owned(),
        source: "canonical".to_owned(),
        ..HookEvent::default()
    };
    let mut set = |key: &str, value: Value| sample.data.insert(key.to_owned(), value);
    if registry::event(event).is_none_or(|event| event.tool) {
        let keys = main.iter().chain(more.iter().filter(|_| with_more));
        let mut input: serde_json::Map<String, Value> = keys
            .map(|key| ((*key).to_owned(), json!(format!("{SAMPLE}{key}"))))
            .collect();
        if kind == "file_edit" {
            input.insert(
                "edits".into(),
                json!([{"old": "sample-old", "new": "sample-new"}]),
            );
        }
        set(field::TOOL_NAME, json!(kind));
        set(field::TOOL_INPUT, Value::Object(input));
        if kind == "mcp" {
            set(field::TOOL_NAME, json!(SAMPLE_TOOL));
            set(
                field::MCP,
                json!({"server": SAMPLE_SERVER, "tool": SAMPLE_TOOL}),
            );
        }
    } else {
        set(field::PROMPT, json!("sample-prompt"));
    }
    sample
}

/// Adds what payloads say of the session.
pub(super) fn add_session(sample: &mut HookEvent) {
    sample.session_id = Some(format!("{SAMPLE}session"));
    sample.cwd = Some(format!("/{SAMPLE}folder"));
    for key in [field::TRANSCRIPT_PATH, field::PERMISSION_MODE] {
        let value = json!(format!("{SAMPLE}{key}"));
        sample.data.insert(key.to_owned(), value);
    }
}

/// The sample as calls of each tool that the agent has for it.
pub(super) fn encoded_calls(
    adapter: &Adapter,
    event: &EventSpec,
    kind: &str,
    sample: &HookEvent,
) -> Vec<EncodedCall> {
    let is_tool_event = sample.tool_name().is_some();
    let splits = !event.tools.is_empty();
    let mut tools: Vec<Option<String>> = Vec::new();
    if !is_tool_event {
        tools.push(None);
    } else if splits {
        tools.extend(event.tools.iter().any(|tool| tool == kind).then_some(None));
    } else if kind == "mcp" {
        tools.extend(adapter.mcp_name(SAMPLE_SERVER, SAMPLE_TOOL).map(Some));
    } else {
        let rows = adapter.spec.tools.iter().filter(|row| !row.read_only);
        let rows = rows.filter(|row| row.kinds().any(|own| own == kind));
        tools.extend(rows.map(|row| Some(row.native.to_string())));
        tools.dedup();
    }
    let calls = tools.into_iter().filter_map(|tool| {
        let mut call = sample.clone();
        if let Some(tool) = tool.as_ref().filter(|_| kind != "mcp") {
            // As the agent itself would report it.
            call.source = adapter.spec.id.to_string();
            call.native_event = event.native.to_string();
            call.data
                .insert(field::NATIVE_TOOL_NAME.into(), json!(tool));
        }
        let encoded = adapter.encode(&call, Some(&event.native))?;
        let row = tool
            .as_deref()
            .and_then(|tool| adapter.tool_by_native(tool, None));
        let aliases = row.into_iter().flat_map(|row| &row.aliases);
        Some(EncodedCall {
            aliases: aliases.map(ToString::to_string).collect(),
            tool,
            payload: adapter.payload_of_program(encoded.payload),
            event: event.native.to_string(),
        })
    });
    calls.collect()
}
