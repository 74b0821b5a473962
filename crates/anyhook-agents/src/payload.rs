//! An agent's payload and the canonical event, both ways.
//!
//! Decoding moves what the rows name and keeps the rest under
//! `metadata.native`; encoding to the same agent gives the payload back.

use anyhook_model::event::{NATIVE, field};
use anyhook_model::{HookEvent, Loss};
use serde_json::{Map, Value, json};

use crate::spec::{Event, Row, Tool};
use crate::tools::{canonical_files, decode_input, encode_input};
use crate::{Adapter, pointer};

/// Places that another place has filled: not to be written back.
const NATIVE_ABSENT: &str = "native_absent";

/// What most events have no more of.
const FIELDS: usize = 14;

/// What of the native input told one row of a tool from the others.
const NATIVE_WHEN: &str = "native_when";

pub use anyhook_model::event::field::TOOL_KINDS;

/// Why a payload could not be read at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PayloadError {
    NotAnObject,
    /// Neither the payload nor the caller says which event it is.
    NoEvent,
}

impl std::fmt::Display for PayloadError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::NotAnObject => "the payload is not a JSON object",
            Self::NoEvent => "the payload does not say its event; pass `--event`",
        })
    }
}

impl std::error::Error for PayloadError {}

/// A payload, understood.
#[derive(Debug, Clone)]
pub struct Decoded {
    pub event: HookEvent,
    /// The agent's table knows the event.
    pub known: bool,
}

/// A payload for a hook that was written for this agent.
#[derive(Debug, Clone)]
pub struct Encoded {
    pub native_event: String,
    pub payload: Value,
    pub lost: Vec<Loss>,
}

impl Adapter {
    /// The event of a native name: in config, payload, or an older spelling.
    pub fn event_by_native(&self, name: &str) -> Option<&Event> {
        let events = &self.spec.events;
        events
            .iter()
            .find(|event| event.native == name)
            .or_else(|| {
                events
                    .iter()
                    .find(|event| event.payload_name.as_deref() == Some(name))
            })
            .or_else(|| {
                events
                    .iter()
                    .find(|event| event.aliases.iter().any(|alias| alias == name))
            })
    }

    /// The event by which a canonical one is expressed, for a tool or any.
    pub fn event_for(&self, canonical: &str, tool: Option<&str>) -> Option<&Event> {
        let candidates = || {
            self.spec
                .events
                .iter()
                .filter(|event| event.is.as_deref() == Some(canonical) && !event.read_only)
        };
        candidates()
            .find(|event| event.tools.is_empty())
            .or_else(|| {
                candidates().find(|event| {
                    tool.is_some_and(|tool| event.tools.iter().any(|one| one == tool))
                })
            })
    }

    /// Whether a payload has this agent's marks.
    pub fn recognises(&self, payload: &Value) -> bool {
        let marks = &self.spec.detect.payload;
        !marks.is_empty() && marks.iter().all(|mark| pointer::marked(payload, mark))
    }

    /// Which event a payload is, without more context than itself.
    fn name_event(&self, payload: &Value, hint: Option<&str>) -> Result<String, PayloadError> {
        if let Some(name) = self.quirks.event_name(payload) {
            return Ok(name);
        }
        if let Some(at) = &self.spec.payload.event_at
            && let Some(name) = pointer::get(payload, at).and_then(Value::as_str)
        {
            return Ok(name.to_owned());
        }
        if let Some(hint) = hint {
            return Ok(hint.to_owned());
        }
        self.spec
            .events
            .iter()
            .filter(|event| {
                !event.marks.is_empty()
                    && event
                        .marks
                        .iter()
                        .all(|mark| pointer::marked(payload, mark))
            })
            .max_by_key(|event| event.marks.len())
            .map(|event| event.native.to_string())
            .ok_or(PayloadError::NoEvent)
    }

    fn rows<'a>(&'a self, event: Option<&'a Event>) -> impl Iterator<Item = &'a Row> {
        let set = event
            .and_then(|event| event.common.as_deref())
            .unwrap_or("common");
        let own = event.map(|event| event.rows.as_slice()).unwrap_or_default();
        let common = self
            .spec
            .payload
            .rows
            .get(set)
            .map(Vec::as_slice)
            .unwrap_or_default();
        own.iter().chain(common)
    }

    /// A native payload as a canonical event. `hint` names the event where the
    /// payload does not.
    pub fn decode(&self, payload: &Value, hint: Option<&str>) -> Result<Decoded, PayloadError> {
        if !payload.is_object() {
            return Err(PayloadError::NotAnObject);
        }
        let name = self.name_event(payload, hint)?;
        let spec = self.event_by_native(&name);
        let mut event = HookEvent {
            event: spec
                .and_then(|spec| spec.is.as_deref())
                .or(spec.map(|spec| spec.native.as_ref()))
                .unwrap_or(&name)
                .to_owned(),
            source: self.spec.id.to_string(),
            native_event: spec.map_or_else(|| name.clone(), |spec| spec.native.to_string()),
            data: Map::with_capacity(FIELDS),
            ..HookEvent::default()
        };
        let mut taken: Vec<&str> = Vec::with_capacity(FIELDS);
        if let Some(at) = &self.spec.payload.event_at {
            let expected = spec.map(|spec| spec.payload_name.as_deref().unwrap_or(&spec.native));
            let said = pointer::get(payload, at).and_then(Value::as_str);
            if said == Some(expected.unwrap_or(&name)) {
                taken.push(at);
            }
        }
        let mut raw = Raw::default();
        let mut absent: Vec<&str> = Vec::new();
        let rows: Vec<&Row> = self.rows(spec).collect();
        for row in &rows {
            if row.alt && raw.has(&event, &row.to) {
                continue;
            }
            let Some(native) = pointer::get(payload, &row.at) else {
                continue;
            };
            let Some(canonical) = row.codec.get(native) else {
                continue;
            };
            let exact = row.codec.is_exact(native, &canonical);
            if !raw.set(&mut event, &row.to, canonical) {
                continue;
            }
            if row.alt {
                absent.extend(
                    rows.iter()
                        .filter(|other| !other.alt && other.to == row.to)
                        .map(|other| other.at.as_ref()),
                );
            } else if exact {
                taken.push(&row.at);
            }
        }
        let mut rest = pointer::without(payload, &taken);
        self.decode_tool(spec, raw, &mut event, &rows, payload, &mut rest);
        for (key, value) in spec.into_iter().flat_map(|spec| &spec.data) {
            event
                .data
                .entry(key.clone())
                .or_insert_with(|| value.clone());
        }
        if rest.as_object().is_some_and(|rest| !rest.is_empty()) {
            event.metadata.insert(NATIVE.into(), rest);
        }
        if !absent.is_empty() {
            event.metadata.insert(NATIVE_ABSENT.into(), json!(absent));
        }
        self.quirks.decoded(payload, &mut event);
        Ok(Decoded {
            event,
            known: spec.is_some(),
        })
    }

    /// Names and input of the called tool, in canonical terms.
    fn decode_tool(
        &self,
        spec: Option<&Event>,
        raw: Raw,
        event: &mut HookEvent,
        rows: &[&Row],
        payload: &Value,
        rest: &mut Value,
    ) {
        let Raw {
            tool,
            input,
            server,
            mcp_tool,
        } = raw;
        let text = input.as_ref().and_then(object_in_text);
        let was_text = text.is_some();
        let input = text.or(input);
        let only = spec.and_then(|spec| match spec.tools.as_slice() {
            [one] if one != "mcp" => Some(one.as_ref()),
            _ => None,
        });
        let Some(native) = tool.clone().or_else(|| only.map(str::to_owned)) else {
            if let Some(input) = input {
                event.data.insert(field::TOOL_INPUT.into(), input);
            }
            return;
        };
        if tool.is_some() {
            event
                .data
                .insert(field::NATIVE_TOOL_NAME.into(), json!(native));
        }
        let quirk = input
            .as_ref()
            .and_then(|input| self.quirks.decode_tool(&native, input));
        let row = match only {
            Some(_) => None,
            None => self.tool_by_native(&native, input.as_ref().and_then(Value::as_object)),
        };
        if let Some(row) = row.filter(|row| !row.when.is_empty()) {
            event
                .metadata
                .insert(NATIVE_WHEN.into(), Value::Object(row.when.clone()));
        }
        let canonical = match (&quirk, row) {
            (Some((name, _)), _) => name.clone(),
            (None, Some(row)) => row.is.to_string(),
            (None, None) => native.clone(),
        };
        let kinds: Vec<&str> = row
            .map(|row| {
                std::iter::once(row.is.as_ref())
                    .chain(row.also.iter().map(AsRef::as_ref))
                    .collect()
            })
            .unwrap_or_default();
        if kinds.len() > 1 {
            event.data.insert(TOOL_KINDS.into(), json!(kinds));
        } else if row.is_none() && quirk.is_none() && only.is_none() {
            let like = resembles(&native, input.as_ref());
            if !like.is_empty() {
                event.data.insert(TOOL_KINDS.into(), json!(like));
            }
        }
        event.data.insert(field::TOOL_NAME.into(), json!(canonical));

        let mcp = match (server, mcp_tool) {
            (Some(server), Some(tool)) => Some((server, tool)),
            (Some(server), None) => Some((server, native.clone())),
            _ if row.is_none() && quirk.is_none() => self.parse_mcp(&native),
            _ => None,
        };
        if let Some((server, tool)) = mcp {
            event
                .data
                .insert(field::MCP.into(), json!({"server": server, "tool": tool}));
        }

        let Some(input) = input else { return };
        let decoded = match (&quirk, row, input.as_object()) {
            (Some((_, input)), _, _) => Some(input.clone()),
            (None, Some(row), Some(native_input)) => Some(decode_input(row, native_input)),
            _ => None,
        };
        let exact = match (&decoded, row) {
            (Some(canonical), _) if quirk.is_some() => {
                self.quirks
                    .encode_tool(&native, canonical)
                    .map(Value::Object)
                    .as_ref()
                    == Some(&input)
            }
            (Some(canonical), Some(row)) => Value::Object(encode_input(row, canonical)) == input,
            _ => true,
        };
        if (!exact || was_text)
            && let Some(place) = rows.iter().find(|row| row.to == field::TOOL_INPUT)
        {
            // What the canonical keys do not carry is kept whole.
            if let Some(original) = pointer::get(payload, &place.at) {
                pointer::put(rest, &place.at, original.clone());
            }
        }
        event.data.insert(
            field::TOOL_INPUT.into(),
            decoded.map_or(input, Value::Object),
        );
    }

    /// The payload of this agent for an event of any agent. `native_event`
    /// chooses where several of its events express the canonical one.
    pub fn encode(&self, event: &HookEvent, native_event: Option<&str>) -> Option<Encoded> {
        let own = event.source == self.spec.id;
        let spec = match native_event {
            Some(name) => self.event_by_native(name),
            None if own => self.event_by_native(&event.native_event),
            None => None,
        }
        .or_else(|| self.event_for(&event.event, event.tool_name()));
        if spec.is_none() && !own {
            return None;
        }
        let name = spec
            .map_or(event.native_event.as_str(), |spec| &spec.native)
            .to_owned();
        let mut payload = Value::Object(Map::new());
        if let Some(at) = &self.spec.payload.event_at {
            let spelled = spec
                .and_then(|spec| spec.payload_name.as_deref())
                .unwrap_or(&name);
            pointer::put(&mut payload, at, json!(spelled));
        }
        let absent: Vec<&str> = event
            .metadata
            .get(NATIVE_ABSENT)
            .filter(|_| own)
            .and_then(Value::as_array)
            .map(|list| list.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let tool = self.encode_tool(event, own);
        let rows: Vec<&Row> = self.rows(spec).collect();
        for row in rows.iter().filter(|row| !(own && row.alt)) {
            if absent.contains(&row.at.as_ref())
                || (row.alt && pointer::find(&payload, &row.at).is_some())
            {
                continue;
            }
            let fixed = spec.is_some_and(|spec| own && spec.data.contains_key(row.to.as_ref()));
            if fixed {
                continue;
            }
            if let Some(native) = tool
                .value(event, &row.to)
                .and_then(|value| row.codec.put(&value))
            {
                pointer::put(&mut payload, &row.at, native);
            }
        }
        if own {
            if let Some(rest) = event.metadata.get(NATIVE) {
                pointer::overlay(&mut payload, rest);
            }
        } else if let Value::Object(map) = &mut payload {
            for (key, value) in &self.spec.payload.defaults {
                map.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        self.quirks.encoded(event, &mut payload);
        let lost = lost_parts(event, &tool);
        Some(Encoded {
            native_event: name,
            payload,
            lost,
        })
    }

    /// As [`Adapter::encode`], but one payload per file or path where this
    /// agent's tools take one and the event has several: a guard must not miss
    /// a part.
    pub fn encode_parts(&self, event: &HookEvent, native_event: Option<&str>) -> Vec<Encoded> {
        let whole = || self.encode(event, native_event).into_iter().collect();
        if event.source == self.spec.id {
            return whole();
        }
        let (Some(name), Some(input)) = (event.tool_name(), event.tool_input()) else {
            return whole();
        };
        let row = self.tool_by_canonical(name);
        if row.is_some_and(|row| {
            row.patch.is_some() || row.edits.as_ref().is_some_and(|edits| edits.path.is_some())
        }) {
            return whole();
        }
        let parts: Vec<HookEvent> = if input.contains_key("files") {
            canonical_files(input)
                .iter()
                .flat_map(|file| file_parts(event, file))
                .collect()
        } else if let Some(Value::Array(paths)) = input.get("paths") {
            paths
                .iter()
                .map(|path| path_part(event, input, path))
                .collect()
        } else if let Some(Value::Array(edits)) = input.get("edits")
            && edits.len() > 1
            && row.is_some_and(|row| row.edits.as_ref().is_some_and(|edits| edits.list.is_none()))
        {
            edits
                .iter()
                .map(|edit| edit_part(event, input, edit))
                .collect()
        } else {
            return whole();
        };
        if parts.is_empty() {
            return whole();
        }
        parts
            .iter()
            .filter_map(|part| self.encode(part, native_event))
            .collect()
    }

    /// The row of the tool that an event of this agent calls.
    pub(crate) fn own_row(&self, event: &HookEvent) -> Option<&Tool> {
        let row = self.tool_by_native(event.native_tool_name()?, None)?;
        // Several rows may share a name: the canonical name and what was left
        // out of the input say which it was.
        let when = event
            .metadata
            .get(NATIVE_WHEN)
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let mut twins = self.spec.tools.iter().filter(|other| {
            other.native == row.native && Some(other.is.as_ref()) == event.tool_name()
        });
        twins
            .clone()
            .find(|other| other.when == when)
            .or_else(|| twins.next())
            .or(Some(row))
    }

    fn encode_tool(&self, event: &HookEvent, own: bool) -> NativeTool<'_> {
        let canonical = event.tool_name();
        let native_input = event.tool_input();
        if own {
            let name = event.native_tool_name();
            let row = self.own_row(event);
            let input = native_input.map(|input| {
                name.and_then(|name| self.quirks.encode_tool(name, input))
                    .unwrap_or_else(|| {
                        row.map_or_else(|| input.clone(), |row| encode_input(row, input))
                    })
            });
            return NativeTool {
                row,
                name: event.text(field::NATIVE_TOOL_NAME).map(str::to_owned),
                input,
            };
        }
        let row = canonical.and_then(|name| self.tool_by_canonical(name));
        let name = match (row, event.mcp()) {
            (Some(row), _) => Some(row.native.to_string()),
            (None, Some((server, tool))) => self
                .mcp_name(server, tool)
                .or_else(|| canonical.map(str::to_owned)),
            (None, None) => canonical.map(str::to_owned),
        };
        let input = native_input
            .map(|input| row.map_or_else(|| input.clone(), |row| encode_input(row, input)));
        NativeTool { row, name, input }
    }
}

/// A tool's input that came as the text of one: versions of agents differ in
/// this, and a guard must see what is in it.
fn object_in_text(input: &Value) -> Option<Value> {
    let text = input.as_str()?.trim_start();
    let value: Value = text
        .starts_with('{')
        .then(|| serde_json::from_str(text).ok())??;
    value.is_object().then_some(value)
}

/// What a tool that no table knows seems to do, by its input: a guard for the
/// shell must see a new tool that takes a command.
fn resembles(native: &str, input: Option<&Value>) -> Vec<&'static str> {
    let has = |keys: &[&str]| {
        keys.iter().any(|key| {
            input
                .and_then(|input| input.get(key))
                .is_some_and(Value::is_string)
        })
    };
    let mut kinds = Vec::new();
    if native.starts_with("mcp") {
        return kinds;
    }
    if has(&["command", "cmd", "script", "command_line"]) {
        kinds.push("shell");
    }
    if has(&["file_path", "filePath", "path"])
        && has(&["content", "contents", "file_text", "new_string"])
    {
        kinds.extend(["file_write", "file_edit"]);
    }
    kinds
}

/// What the rows read of a tool call, still native.
#[derive(Default)]
struct Raw {
    tool: Option<String>,
    input: Option<Value>,
    server: Option<String>,
    mcp_tool: Option<String>,
}

impl Raw {
    fn has(&self, event: &HookEvent, to: &str) -> bool {
        match to {
            "tool_name" => self.tool.is_some(),
            "tool_input" => self.input.is_some(),
            "mcp.server" => self.server.is_some(),
            "mcp.tool" => self.mcp_tool.is_some(),
            "session_id" => event.session_id.is_some(),
            "cwd" => event.cwd.is_some(),
            "timestamp" => event.timestamp.is_some(),
            _ => match to.strip_prefix("tool_input.") {
                Some(key) => self
                    .input
                    .as_ref()
                    .is_some_and(|input| input.get(key).is_some()),
                None => event.data.contains_key(to),
            },
        }
    }

    /// Whether the value was of a kind that the place takes.
    fn set(&mut self, event: &mut HookEvent, to: &str, value: Value) -> bool {
        let slot = match to {
            "tool_name" => &mut self.tool,
            "mcp.server" => &mut self.server,
            "mcp.tool" => &mut self.mcp_tool,
            "session_id" => &mut event.session_id,
            "cwd" => &mut event.cwd,
            "timestamp" => &mut event.timestamp,
            "machine_id" => &mut event.machine_id,
            "user_id" => &mut event.user_id,
            "tool_input" => {
                self.input = Some(value);
                return true;
            }
            _ => {
                if let Some(key) = to.strip_prefix("tool_input.") {
                    let input = self.input.get_or_insert_with(|| Value::Object(Map::new()));
                    pointer::put(input, &format!("/{key}"), value);
                } else {
                    event.data.insert(to.to_owned(), value);
                }
                return true;
            }
        };
        let Value::String(text) = value else {
            return false;
        };
        *slot = Some(text);
        true
    }
}

/// A tool call in this agent's terms.
struct NativeTool<'a> {
    row: Option<&'a Tool>,
    name: Option<String>,
    input: Option<Map<String, Value>>,
}

impl NativeTool<'_> {
    /// The value of a row's canonical place.
    fn value(&self, event: &HookEvent, to: &str) -> Option<Value> {
        let text = |value: &Option<String>| value.clone().map(Value::String);
        match to {
            "tool_name" => text(&self.name),
            "tool_input" => match &self.input {
                Some(input) => Some(Value::Object(input.clone())),
                None => event.data.get(field::TOOL_INPUT).cloned(),
            },
            "mcp.server" => event.mcp().map(|(server, _)| json!(server)),
            "mcp.tool" => event.mcp().map(|(_, tool)| json!(tool)),
            "session_id" => text(&event.session_id),
            "cwd" => text(&event.cwd),
            "timestamp" => text(&event.timestamp),
            "machine_id" => text(&event.machine_id),
            "user_id" => text(&event.user_id),
            _ => match to.strip_prefix("tool_input.") {
                Some(key) => event.tool_input()?.get(key).cloned(),
                None => event.data.get(to).cloned(),
            },
        }
    }
}

fn lost_parts(event: &HookEvent, tool: &NativeTool<'_>) -> Vec<Loss> {
    let Some(name) = event.tool_name() else {
        return Vec::new();
    };
    let mut lost = Vec::new();
    if tool.row.is_none()
        && event.mcp().is_none()
        && event
            .text(field::NATIVE_TOOL_NAME)
            .is_some_and(|native| native != name)
    {
        lost.push(Loss::new(
            field::TOOL_NAME,
            format!("the agent has no tool like `{name}`; the name is passed on as it is"),
        ));
    }
    lost
}

fn part(event: &HookEvent, name: &str, input: Map<String, Value>) -> HookEvent {
    let mut part = event.clone();
    part.data.insert(field::TOOL_NAME.into(), json!(name));
    part.data.shift_remove(field::NATIVE_TOOL_NAME);
    part.data
        .insert(field::TOOL_INPUT.into(), Value::Object(input));
    part
}

/// A move is two parts: the file that goes and the one that comes.
fn file_parts(event: &HookEvent, file: &Value) -> Vec<HookEvent> {
    let written = |path: &Value, content: &Value| {
        let mut input = Map::new();
        input.insert("path".into(), path.clone());
        input.insert("content".into(), content.clone());
        part(event, "file_write", input)
    };
    let empty = json!("");
    let path = file.get("path").unwrap_or(&empty);
    if file.get("operation").and_then(Value::as_str) != Some("update") {
        // A deletion is told as the file becoming empty: a guard over paths sees it.
        return vec![written(path, file.get("content").unwrap_or(&empty))];
    }
    let mut input = Map::new();
    input.insert("path".into(), file.get("move_to").unwrap_or(path).clone());
    input.insert(
        "edits".into(),
        file.get("edits").cloned().unwrap_or_else(|| json!([])),
    );
    let mut parts = vec![part(event, "file_edit", input)];
    if file.get("move_to").is_some() {
        parts.push(written(path, &empty));
    }
    parts
}

fn path_part(event: &HookEvent, input: &Map<String, Value>, path: &Value) -> HookEvent {
    let mut input = input.clone();
    input.shift_remove("paths");
    input.insert("path".into(), path.clone());
    part(event, event.tool_name().unwrap_or_default(), input)
}

fn edit_part(event: &HookEvent, input: &Map<String, Value>, edit: &Value) -> HookEvent {
    let mut input = input.clone();
    input.insert("edits".into(), json!([edit]));
    part(event, event.tool_name().unwrap_or_default(), input)
}
