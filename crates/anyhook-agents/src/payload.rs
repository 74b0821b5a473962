//! An agent's payload and the canonical event, in both directions.
//!
//! Decoding moves what the rows name and keeps the rest under
//! `metadata.native`; encoding to the same agent restores the payload.

mod encode;
mod events;
mod inferred;

use anyhook_model::event::{NATIVE, field};
use anyhook_model::{HookEvent, has_unreadable_tool};
use serde_json::{Map, Value, json};

use crate::spec::{EventSpec, PayloadRow, ToolSpec};
use crate::tools::{decode_input, encode_input};
use crate::{Adapter, likeness, pointer};

pub use anyhook_model::event::field::TOOL_KINDS;
pub use encode::EncodedPayload;
pub use inferred::inferred_calls;

/// Key of `metadata`: pointers whose value came from an alternative pointer, so
/// that encoding does not write them.
pub const NATIVE_ABSENT: &str = "native_absent";

/// Key of `metadata`: the native input values that selected the tool's row.
const NATIVE_WHEN: &str = "native_when";

/// What guards decide about.
pub const BEFORE_TOOL_EVENT: &str = "before_tool_execute";

/// Most events have no more fields than this.
const TYPICAL_FIELD_COUNT: usize = 14;

/// Row targets whose value must be a text. All others take any value.
const TEXT_TARGETS: [&str; 7] = [
    field::TOOL_NAME,
    "mcp.server",
    "mcp.tool",
    "session_id",
    "cwd",
    "timestamp",
    "user_id",
];

/// Why a payload could not be decoded at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    #[error("the payload is not a JSON object")]
    NotAnObject,
    #[error("the payload does not name its event; pass `--event`")]
    NoEvent,
}

/// A payload as a canonical event.
#[derive(Debug, Clone)]
pub struct DecodedPayload {
    pub event: HookEvent,
    /// Whether the agent's table has the event that the payload names.
    pub known: bool,
    /// What the user should know: hooks run, but the agent may have changed.
    pub notices: Vec<String>,
}

impl Adapter {
    /// The rows of an event: its own, then its common set.
    pub(crate) fn rows<'a>(
        &'a self,
        event: Option<&'a EventSpec>,
    ) -> impl Iterator<Item = &'a PayloadRow> {
        let set = event
            .and_then(|event| event.common.as_deref())
            .unwrap_or("common");
        let own = event.into_iter().flat_map(|event| &event.rows);
        own.chain(self.spec.payload.rows.get(set).into_iter().flatten())
    }

    /// The rows by which the agent's payload of an event is written.
    pub fn payload_rows<'a>(
        &'a self,
        event: &'a EventSpec,
    ) -> impl Iterator<Item = &'a PayloadRow> {
        self.rows(Some(event)).filter(|row| !row.alt)
    }

    /// Where the payload of an event has a canonical field.
    pub fn payload_pointer(&self, event: &EventSpec, to: &str) -> Option<&str> {
        let set = event.common.as_deref().unwrap_or("common");
        let common = self.spec.payload.rows.get(set).into_iter().flatten();
        let own = self
            .spec
            .events
            .iter()
            .find(|own| own.native == event.native);
        let own = own.into_iter().flat_map(|event| &event.rows);
        let mut rows = own.chain(common).filter(|row| !row.alt);
        rows.find(|row| row.to == to).map(|row| row.at.as_ref())
    }

    /// A native payload as a canonical event. `hint` names the event where the
    /// payload does not.
    pub fn decode(
        &self,
        payload: &Value,
        hint: Option<&str>,
    ) -> Result<DecodedPayload, PayloadError> {
        if !payload.is_object() {
            return Err(PayloadError::NotAnObject);
        }
        let (name, renamed) = self.event_name(payload, hint)?;
        let spec = self.event_by_native(&name);
        let native = spec.map_or(name.as_str(), |spec| &spec.native);
        let alike = match spec {
            Some(_) => Vec::new(),
            None => self.events_of_same_call(payload, &name),
        };
        let known_as = spec.or(alike.first().copied());
        let canonical = known_as.and_then(|spec| spec.is.as_deref());
        let canonical = canonical.unwrap_or(native);
        let mut event = HookEvent {
            event: canonical.to_owned(),
            source: self.spec.id.to_string(),
            native_event: native.to_owned(),
            ..HookEvent::default()
        };
        let others = alike.iter().skip(1).flat_map(|event| &event.rows);
        let rows: Vec<&PayloadRow> = others.chain(self.rows(known_as)).collect();
        let mut decoded = DecodedRows::new(&rows, payload);
        if let Some(at) = &self.spec.payload.event_at {
            let expected = spec.map(|spec| spec.payload_name.as_deref().unwrap_or(&spec.native));
            let actual = pointer::get(payload, at).and_then(Value::as_str);
            if actual == Some(expected.unwrap_or(&name)) {
                decoded.taken.push(at);
            }
        }
        let mut rest = pointer::without(payload, &decoded.taken);
        event.session_id = decoded.take_text("session_id");
        event.cwd = decoded.take_text("cwd");
        event.timestamp = decoded.take_text("timestamp");
        event.user_id = decoded.take_text("user_id");
        let call = ToolCallParts {
            tool: decoded
                .take_text(field::TOOL_NAME)
                .filter(|name| !name.trim().is_empty()),
            input: decoded.values.shift_remove(field::TOOL_INPUT),
            server: decoded.take_text("mcp.server"),
            mcp_tool: decoded.take_text("mcp.tool"),
        };
        event.data = decoded.values;
        // Some names may be those of an MCP tool or of an own one.
        let is_guess = |name: &String| self.spec.mcp.ambiguous && !name.starts_with("mcp");
        let is_guess = call.server.is_none() && call.tool.as_ref().is_none_or(is_guess);
        let keeps_input = self.decode_tool(spec, call, &mut event);
        if keeps_input
            && let Some(row) = rows.iter().find(|row| row.to == field::TOOL_INPUT)
            && let Some(original) = pointer::get(payload, &row.at)
        {
            // What the canonical keys do not carry is kept whole.
            pointer::put(&mut rest, &row.at, original.clone());
        }
        for (key, value) in spec.into_iter().flat_map(|spec| &spec.data) {
            let entry = event.data.entry(key.clone());
            entry.or_insert_with(|| value.clone());
        }
        if rest.as_object().is_some_and(|rest| !rest.is_empty()) {
            event.metadata.insert(NATIVE.into(), rest);
        }
        if !decoded.absent.is_empty() {
            let absent = json!(decoded.absent);
            event.metadata.insert(NATIVE_ABSENT.into(), absent);
        }
        self.quirks.decoded(payload, &mut event);
        let has_own_name = event.mcp().is_none() || is_guess;
        likeness::complete_named_call(&mut event, has_own_name);
        let known = spec.is_some() && renamed.is_none();
        let mut notices: Vec<String> = renamed.into_iter().collect();
        if !alike.is_empty() {
            let agent = &self.spec.name;
            notices.push(format!(
                "{agent} calls an event `{native}`, which is unknown; it announces a tool call, so the hooks for tools are asked"
            ));
        }
        if has_unreadable_tool(&event) {
            let agent = &self.spec.name;
            notices.push(format!(
                "{agent} does not name the tool at {native} in a way that can be read; every hook for tools is asked"
            ));
        }
        Ok(DecodedPayload {
            event,
            known,
            notices,
        })
    }

    /// Sets name and input of the called tool, in canonical terms. Returns whether
    /// the native input must be kept because encoding would not restore it.
    fn decode_tool(
        &self,
        spec: Option<&EventSpec>,
        call: ToolCallParts,
        event: &mut HookEvent,
    ) -> bool {
        let text = call.input.as_ref().and_then(object_in_text);
        let was_text = text.is_some();
        let input = text.or(call.input);
        let only = spec.and_then(|spec| match spec.tools.as_slice() {
            [one] if one != "mcp" => Some(one.as_ref()),
            _ => None,
        });
        let Some(native) = call.tool.as_deref().or(only) else {
            if let Some(input) = input {
                event.data.insert(field::TOOL_INPUT.into(), input);
            }
            return false;
        };
        let mut set = |key: &str, value: Value| event.data.insert(key.to_owned(), value);
        if call.tool.is_some() {
            set(field::NATIVE_TOOL_NAME, json!(native));
        }
        let quirk = input.as_ref();
        let quirk = quirk.and_then(|input| self.quirks.decode_tool(native, input));
        let row = match only {
            Some(_) => None,
            None => self.tool_by_native(native, input.as_ref().and_then(Value::as_object)),
        };
        if let Some(row) = row.filter(|row| !row.also.is_empty()) {
            let kinds: Vec<&str> = row.kinds().collect();
            set(TOOL_KINDS, json!(kinds));
        }
        let canonical = match (&quirk, row) {
            (Some((name, _)), _) => name,
            (None, Some(row)) => row.is.as_ref(),
            (None, None) => native,
        };
        set(field::TOOL_NAME, json!(canonical));
        let mcp = match (call.server, call.mcp_tool) {
            (Some(server), tool) => Some((server, tool.unwrap_or_else(|| native.to_owned()))),
            _ if row.is_none() && quirk.is_none() => self.parse_mcp(native),
            _ => None,
        };
        if let Some((server, tool)) = mcp {
            set(field::MCP, json!({"server": server, "tool": tool}));
        }
        let mut keeps_input = false;
        if let Some(input) = input {
            let (canonical, is_exact) = self.decode_tool_input(native, quirk, row, input);
            keeps_input = was_text || !is_exact;
            set(field::TOOL_INPUT, canonical);
        }
        if let Some(row) = row.filter(|row| !row.when.is_empty()) {
            let when = Value::Object(row.when.clone());
            event.metadata.insert(NATIVE_WHEN.into(), when);
        }
        keeps_input
    }

    /// The canonical input, and whether encoding it restores the native one.
    fn decode_tool_input(
        &self,
        native: &str,
        quirk: Option<(String, Map<String, Value>)>,
        row: Option<&ToolSpec>,
        input: Value,
    ) -> (Value, bool) {
        let (canonical, encoded) = match (quirk, row, input.as_object()) {
            (Some((_, canonical)), _, _) => {
                let encoded = self.quirks.encode_tool(native, &canonical);
                (canonical, encoded)
            }
            (None, Some(row), Some(object)) => {
                let canonical = decode_input(row, object);
                let encoded = encode_input(row, &canonical);
                (canonical, Some(encoded))
            }
            _ => return (input, true),
        };
        let is_exact = encoded.map(Value::Object).as_ref() == Some(&input);
        (Value::Object(canonical), is_exact)
    }
}

/// The object in a tool input that came as JSON text. Versions of agents differ
/// in this, and a guard must see the contents.
fn object_in_text(input: &Value) -> Option<Value> {
    let text = input.as_str()?.trim_start();
    let object: Option<Map<String, Value>> = text
        .starts_with('{')
        .then(|| serde_json::from_str(text).ok())?;
    object.map(Value::Object)
}

/// The values that the rows of an event find in a payload.
struct DecodedRows<'a> {
    /// Row target → canonical value.
    values: Map<String, Value>,
    /// Pointers whose value is fully carried by the canonical one.
    taken: Vec<&'a str>,
    /// Pointers whose value came from an alternative pointer.
    absent: Vec<&'a str>,
}

impl<'a> DecodedRows<'a> {
    fn new(rows: &[&'a PayloadRow], payload: &Value) -> Self {
        let mut decoded = Self {
            values: Map::with_capacity(TYPICAL_FIELD_COUNT),
            taken: Vec::with_capacity(TYPICAL_FIELD_COUNT),
            absent: Vec::new(),
        };
        for row in rows {
            if row.alt && decoded.has(&row.to) {
                continue;
            }
            let Some((native, canonical)) = pointer::get(payload, &row.at)
                .and_then(|native| Some((native, row.codec.get(native)?)))
            else {
                continue;
            };
            if TEXT_TARGETS.contains(&row.to.as_ref()) && !canonical.is_string() {
                continue;
            }
            if row.alt {
                let others = rows.iter().filter(|other| {
                    !other.alt && other.to == row.to && pointer::get(payload, &other.at).is_none()
                });
                decoded.absent.extend(others.map(|other| &*other.at));
            } else if row.codec.is_exact(native, &canonical) {
                decoded.taken.push(&row.at);
            }
            decoded.set(&row.to, canonical);
        }
        decoded
    }

    fn has(&self, to: &str) -> bool {
        match to.strip_prefix("tool_input.") {
            Some(key) => {
                let input = self.values.get(field::TOOL_INPUT);
                input.is_some_and(|input| input.get(key).is_some())
            }
            None => self.values.contains_key(to),
        }
    }

    fn set(&mut self, to: &str, value: Value) {
        if let Some(key) = to.strip_prefix("tool_input.") {
            let input = self.values.entry(field::TOOL_INPUT).or_insert(json!({}));
            pointer::put(input, &format!("/{key}"), value);
        } else {
            self.values.insert(to.to_owned(), value);
        }
    }

    fn take_text(&mut self, to: &str) -> Option<String> {
        match self.values.shift_remove(to) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }
}

/// What the rows read of a tool call, still native.
struct ToolCallParts {
    tool: Option<String>,
    input: Option<Value>,
    server: Option<String>,
    mcp_tool: Option<String>,
}
