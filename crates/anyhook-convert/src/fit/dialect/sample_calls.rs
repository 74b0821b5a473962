//! Sample calls, encoded as each agent reports them.

use std::borrow::Cow;

use anyhook_agents::Adapter;
use anyhook_agents::spec::{EventSpec, ToolSpec};
use anyhook_model::event::field;
use anyhook_model::{HookEvent, registry};
use serde_json::{Value, json};

/// Begins every value of a sample that is a text.
const SAMPLE: &str = "sample-";

/// Begins the texts that matter only to a program that reads their own key.
const OPTIONAL_SAMPLE: &str = "sample-optional-";

/// A number of a sample: no other number has these digits.
const SAMPLE_MILLIS: u64 = 86_427_000;

/// Canonical tools and the keys of their input that guards decide by.
pub(super) const SAMPLE_CALLS: [SampleCall; 10] = [
    ("shell", &["command"]),
    ("file_read", &["path"]),
    ("file_write", &["path", "content"]),
    ("file_edit", &["path"]),
    ("search", &["pattern"]),
    ("find", &["pattern"]),
    ("web_fetch", &["url"]),
    ("web_search", &["query"]),
    ("agent", &["prompt"]),
    ("mcp", &["text"]),
];

pub(super) type SampleCall = (&'static str, &'static [&'static str]);

/// Canonical keys that a call may have beside those of its sample.
const OPTIONAL_KEYS: [&str; 11] = [
    "description",
    "cwd",
    "path",
    "glob",
    "prompt",
    "type",
    "offset",
    "limit",
    "query",
    "pattern",
    "content",
];

/// Of these some agents make another form of the time.
const SAMPLE_TIME: &str = "2001-02-03T04:05:06.789Z";
const SAMPLE_TIME_MILLIS: &str = "981173106";

const SAMPLE_SERVER: &str = "srv";
const SAMPLE_TOOL: &str = "do_it";

/// A text or number in a payload, with the keys that lead to it.
pub(super) struct Leaf<'a> {
    pub(super) keys: Vec<String>,
    pub(super) value: Cow<'a, str>,
}

impl Leaf<'_> {
    /// Whether it is a value of the sample, and not the agent's own.
    pub(super) fn is_sample(&self) -> bool {
        self.value.contains(SAMPLE) || self.is_number_or_time()
    }

    /// Whether it matters only to a program that reads its own key: a program that
    /// looks at the whole input looks for what the call does.
    pub(super) fn is_optional(&self) -> bool {
        self.value.contains(OPTIONAL_SAMPLE) || self.is_number_or_time()
    }

    fn is_number_or_time(&self) -> bool {
        self.value == SAMPLE_MILLIS.to_string()
            || self.value == (SAMPLE_MILLIS / 1000).to_string()
            || self.value.starts_with("2001-02-03T")
            || self.value.starts_with(SAMPLE_TIME_MILLIS)
    }
}

fn leaves<'a>(value: &'a Value, at: &mut Vec<&'a str>, found: &mut Vec<Leaf<'a>>) {
    let keys = || at.iter().map(|key| (*key).to_owned()).collect();
    match value {
        Value::String(text) => found.push(Leaf {
            keys: keys(),
            value: text.into(),
        }),
        Value::Number(number) => found.push(Leaf {
            keys: keys(),
            // A codec may have made a fraction of it.
            value: number.to_string().trim_end_matches(".0").to_owned().into(),
        }),
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

pub(super) fn leaves_of(value: &Value) -> Vec<Leaf<'_>> {
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
    /// The agent calls the tool so, and does not merely read the name.
    pub(super) is_written: bool,
}

/// A call of a tool with every canonical field, or the event without one.
pub(super) fn sample_event(event: &str, (kind, main): SampleCall) -> HookEvent {
    let mut sample = HookEvent {
        event: event.to_owned(),
        source: "canonical".to_owned(),
        session_id: Some(format!("{SAMPLE}session")),
        cwd: Some(format!("/{SAMPLE}folder")),
        timestamp: Some(SAMPLE_TIME.to_owned()),
        user_id: Some(format!("{OPTIONAL_SAMPLE}user")),
        ..HookEvent::default()
    };
    let mut set = |key: &str, value: Value| sample.data.insert(key.to_owned(), value);
    if registry::event(event).is_none_or(|event| event.tool) {
        let main = main.iter().map(|key| (*key, format!("{SAMPLE}{key}")));
        let more = OPTIONAL_KEYS.map(|key| (key, format!("{OPTIONAL_SAMPLE}{key}")));
        let mut input = serde_json::Map::new();
        for (key, value) in main.chain(more) {
            input.entry(key).or_insert_with(|| json!(value));
        }
        input.insert("timeout_ms".into(), json!(SAMPLE_MILLIS));
        if kind == "file_edit" {
            input.insert(
                "edits".into(),
                json!([{
                    "old": "sample-old",
                    "new": "sample-new",
                    "replace_all": format!("{OPTIONAL_SAMPLE}replace_all"),
                }]),
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

/// Which of an agent's calls are encoded.
#[derive(Clone, Copy)]
pub(super) struct CallForms {
    /// Also those of tools that the agent names no more.
    pub(super) read_only: bool,
    /// With the fields that only some calls have.
    pub(super) sometimes: bool,
}

/// The sample as calls of each tool that the agent has for it.
pub(super) fn encoded_calls(
    adapter: &Adapter,
    event: &EventSpec,
    kind: &str,
    sample: &HookEvent,
    forms: CallForms,
) -> Vec<EncodedCall> {
    let splits = !event.tools.is_empty();
    let mut tools: Vec<(Option<String>, Option<&ToolSpec>)> = Vec::new();
    if sample.tool_name().is_none() {
        tools.push((None, None));
    } else if splits {
        let is_for = event.tools.iter().any(|tool| tool == kind);
        tools.extend(is_for.then_some((None, None)));
    } else if kind == "mcp" {
        let name = adapter.mcp_name(SAMPLE_SERVER, SAMPLE_TOOL);
        tools.extend(name.map(|name| (Some(name), None)));
    } else {
        let rows = adapter.spec.tools.iter();
        let rows = rows.filter(|row| forms.read_only || !row.read_only);
        let rows = rows.filter(|row| row.kinds().any(|own| own == kind));
        tools.extend(rows.map(|row| (Some(row.native.to_string()), Some(row))));
        tools.dedup_by(|left, right| left.0 == right.0);
    }
    let calls = tools.into_iter().filter_map(|(tool, row)| {
        let mut call = sample.clone();
        if let Some(tool) = tool.as_ref().filter(|_| kind != "mcp") {
            // As the agent itself would report it.
            call.source = adapter.spec.id.to_string();
            call.native_event = event.native.to_string();
            call.data
                .insert(field::NATIVE_TOOL_NAME.into(), json!(tool));
        }
        add_fields(adapter, event, forms.sometimes, &mut call);
        let mut rows = adapter.payload_rows(event);
        if !forms.sometimes && rows.any(|row| row.sometimes && row.to == "session_id") {
            call.session_id = None;
        }
        keep_sent_keys(adapter, event, kind, row, &mut call);
        let mut payload = adapter.encode(&call, Some(&event.native))?.payload;
        add_other_keys(adapter, event, row, &mut payload);
        let aliases = row.into_iter().flat_map(|row| &row.aliases);
        Some(EncodedCall {
            aliases: aliases.map(ToString::to_string).collect(),
            tool,
            payload: adapter.payload_of_program(payload),
            event: event.native.to_string(),
            is_written: row.is_none_or(|row| !row.read_only),
        })
    });
    calls.collect()
}

/// Fills every field that the agent's payload of this event has a row for.
fn add_fields(adapter: &Adapter, event: &EventSpec, sometimes: bool, call: &mut HookEvent) {
    let rows = adapter.payload_rows(event);
    for row in rows.filter(|row| sometimes || !row.sometimes) {
        let is_of_call = row.to.contains('.')
            || matches!(
                row.to.as_ref(),
                "session_id" | "cwd" | "timestamp" | "user_id"
            );
        if !is_of_call && row.to != field::TOOL_NAME && row.to != field::TOOL_INPUT {
            let value = || json!(format!("{OPTIONAL_SAMPLE}{}", row.to));
            call.data.entry(row.to.to_string()).or_insert_with(value);
        }
    }
}

/// Leaves in a sample what the agent's tool has: encoding passes on what a table
/// does not know.
fn keep_sent_keys(
    adapter: &Adapter,
    event: &EventSpec,
    kind: &str,
    row: Option<&ToolSpec>,
    call: &mut HookEvent,
) {
    let is_main = |key: &str| {
        let mut calls = SAMPLE_CALLS.iter();
        calls.any(|(own, main)| *own == kind && main.contains(&key))
    };
    let Some(Value::Object(input)) = call.data.get_mut(field::TOOL_INPUT) else {
        return;
    };
    let edits = row.and_then(|row| row.edits.as_ref());
    if edits.is_none_or(|edits| edits.replace_all.is_none())
        && let Some(Value::Array(edits)) = input.get_mut("edits")
    {
        for edit in edits.iter_mut().filter_map(Value::as_object_mut) {
            edit.shift_remove("replace_all");
        }
    }
    input.retain(|key, _| match row {
        Some(row) => adapter.tool_has_key(row, key),
        // The event's own rows say what it sends of a call, or the tool is another
        // program's, which gets what the model writes.
        None if kind == "mcp" => is_main(key),
        None => {
            let place = format!("{}.{key}", field::TOOL_INPUT);
            is_main(key) || adapter.payload_pointer(event, &place).is_some()
        }
    });
}

/// Adds what the agent sends and has no canonical form.
fn add_other_keys(
    adapter: &Adapter,
    event: &EventSpec,
    row: Option<&ToolSpec>,
    payload: &mut Value,
) {
    let mut add = |at: Option<&str>, keys: &[anyhook_agents::spec::Str]| {
        let object = at.and_then(|at| payload.pointer_mut(at));
        let Some(Value::Object(object)) = object else {
            return;
        };
        for key in keys {
            let value = json!(format!("{OPTIONAL_SAMPLE}{key}"));
            object.entry(key.as_ref()).or_insert(value);
        }
    };
    add(Some(""), &event.other_keys);
    if let Some(row) = row {
        add(
            adapter.payload_pointer(event, field::TOOL_INPUT),
            &row.other_keys,
        );
    }
}
