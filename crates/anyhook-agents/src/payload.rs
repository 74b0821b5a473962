//! An agent's payload and the canonical event, in both directions.
//!
//! Decoding moves what the rows name and keeps the rest under
//! `metadata.native`; encoding to the same agent restores the payload.

use anyhook_model::event::{NATIVE, field};
use anyhook_model::{HookEvent, Loss, has_unreadable_tool};
use serde_json::{Map, Value, json};

use crate::likeness;
use crate::spec::{EventSpec, PayloadRow, ToolSpec};
use crate::tools::{canonical_files, decode_input, encode_input};
use crate::{Adapter, pointer};

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

pub use anyhook_model::event::field::TOOL_KINDS;

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

/// A payload for a hook that was written for this agent.
#[derive(Debug, Clone)]
pub struct EncodedPayload {
    pub native_event: String,
    pub payload: Value,
    pub lost: Vec<Loss>,
    /// The call that the payload is about, where it is not the event's own but
    /// one that the event amounts to.
    pub call: Option<HookEvent>,
}

impl Adapter {
    /// The event of a native name: in config, payload, or an older spelling.
    pub fn event_by_native(&self, name: &str) -> Option<&EventSpec> {
        let events = || self.spec.events.iter();
        events()
            .find(|event| event.native == name)
            .or_else(|| events().find(|event| event.payload_name.as_deref() == Some(name)))
            .or_else(|| events().find(|event| event.aliases.iter().any(|alias| alias == name)))
    }

    /// The agent's own event for an event of this agent. One with an unknown name
    /// has that of the calls which it was [taken for](Self::decode).
    pub(crate) fn event_spec(&self, event: &HookEvent) -> Option<&EventSpec> {
        let named = self.event_by_native(&event.native_event);
        named.or_else(|| {
            let is_own_call = event.source == self.spec.id && event.event == BEFORE_TOOL_EVENT;
            let for_tool = self.event_for(&event.event, event.tool_name());
            let any = || self.written_events(&event.event).next();
            for_tool.or_else(any).filter(|_| is_own_call)
        })
    }

    /// The native event for a canonical one, for all tools or for this tool.
    pub fn event_for(&self, canonical: &str, tool: Option<&str>) -> Option<&EventSpec> {
        let mut written = self.written_events(canonical);
        let for_tool = |event: &&EventSpec| event.tools.iter().any(|one| Some(&**one) == tool);
        written
            .clone()
            .find(|event| event.tools.is_empty())
            .or_else(|| written.find(for_tool))
    }

    /// Whether a payload has this agent's marks.
    pub fn recognises(&self, payload: &Value) -> bool {
        pointer::has_marks(payload, &self.spec.detect.payload)
    }

    /// Whether nothing in a payload speaks against this agent's marks: a transcript
    /// that is not written yet has no path.
    pub fn may_recognise(&self, payload: &Value) -> bool {
        pointer::may_have_marks(payload, &self.spec.detect.payload)
    }

    /// The number of fields of a payload that this agent's table does not know.
    pub fn unknown_fields(&self, payload: &Value) -> usize {
        let spec = &self.spec;
        let common = spec.payload.rows.values().flatten();
        let rows = common.chain(spec.events.iter().flat_map(|event| &event.rows));
        let pointers = rows.map(|row| &row.at).chain(&spec.payload.event_at);
        let known = pointers.filter_map(|pointer| pointer.split('/').nth(1));
        let defaults = spec.payload.defaults.keys().map(String::as_str);
        let known: Vec<&str> = known.chain(defaults).collect();
        let fields = payload.as_object().into_iter().flat_map(|map| map.keys());
        fields
            .filter(|field| !known.contains(&field.as_str()))
            .count()
    }

    /// The native name of a payload's event, and a notice if the payload has
    /// another one that is unknown. A new version of an agent may rename events;
    /// then the name that the agent's config was written for counts.
    fn event_name(
        &self,
        payload: &Value,
        hint: Option<&str>,
    ) -> Result<(String, Option<String>), PayloadError> {
        let at = self.spec.payload.event_at.as_deref();
        let in_payload = at.and_then(|at| pointer::get(payload, at));
        let named = self.quirks.event_name(payload);
        let named = named.or_else(|| Some(in_payload?.as_str()?.to_owned()));
        let is_known = |name: &str| self.event_by_native(name).is_some();
        if let Some(hint) = hint.filter(|hint| is_known(hint)) {
            let unknown = match &named {
                Some(name) if is_known(name) => None,
                Some(name) => Some(format!("`{name}`")),
                None => in_payload.map(Value::to_string),
            };
            if let Some(unknown) = unknown {
                let agent = &self.spec.name;
                let notice = format!(
                    "{agent} calls an event {unknown}, which is unknown; it is handled as `{hint}`"
                );
                return Ok((hint.to_owned(), Some(notice)));
            }
        }
        let by_marks = || {
            let events = self.spec.events.iter();
            let marked = events.filter(|event| pointer::has_marks(payload, &event.marks));
            let event = marked.max_by_key(|event| event.marks.len())?;
            Some(event.native.to_string())
        };
        let named = named.or_else(|| hint.map(str::to_owned)).or_else(by_marks);
        match named {
            Some(name) => Ok((name, None)),
            None => self.suspected_event(payload).ok_or(PayloadError::NoEvent),
        }
    }

    /// The event of a payload that does not name it where this agent does, with a notice: a
    /// new version may have renamed the field. What looks like a tool call is taken for one
    /// that is about to happen.
    fn suspected_event(&self, payload: &Value) -> Option<(String, Option<String>)> {
        let agent = &self.spec.name;
        let members = || payload.as_object().into_iter().flatten();
        let is_name_key = |key: &str| {
            let key = key.to_ascii_lowercase();
            key.contains("event") || key.contains("hook")
        };
        let named = members().find_map(|(key, value)| {
            let event = self.event_by_native(value.as_str()?)?;
            is_name_key(key).then_some((key, event))
        });
        if let Some((key, event)) = named {
            let notice = format!(
                "{agent} names an event in the field `{key}`, which is unknown; it is handled as `{}`",
                event.native
            );
            return Some((event.native.to_string(), Some(notice)));
        }
        let alike = self.events_of_same_call(payload, "");
        let native = alike.first()?.native.to_string();
        let notice = format!(
            "{agent} does not name its event, which looks like a tool call; it is handled as `{native}`"
        );
        Some((native, Some(notice)))
    }

    /// The events before a tool call whose fields the payload of an unknown event
    /// has: what it announces must not pass the guards because of its name. An
    /// event for all tools is enough; those for single tools do not say which one
    /// this is. Empty where the name says that the call is over: the fields do not,
    /// because some agents send an empty result with every call.
    fn events_of_same_call(&self, payload: &Value, name: &str) -> Vec<&EventSpec> {
        let name = name.to_ascii_lowercase();
        if name.starts_with("post") || name.starts_with("after") || name.ends_with("after") {
            return Vec::new();
        }
        let is_of_call = |row: &&PayloadRow| {
            let to = row.to.as_ref();
            to == field::TOOL_NAME || to.starts_with(field::TOOL_INPUT) || to.starts_with("mcp.")
        };
        let is_alike = |event: &&EventSpec| {
            let mut rows = event.rows.iter().filter(is_of_call);
            event.is.as_deref() == Some(BEFORE_TOOL_EVENT)
                && rows.any(|row| pointer::get(payload, &row.at).is_some_and(|it| !it.is_null()))
        };
        let mut alike: Vec<&EventSpec> = self.spec.events.iter().filter(is_alike).collect();
        if let Some(general) = alike.iter().find(|event| event.tools.is_empty()) {
            alike = vec![*general];
        }
        alike
    }

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

    /// The payload of this agent for an event of any agent. `native_event`
    /// chooses where several of its events express the canonical one.
    pub fn encode(&self, event: &HookEvent, native_event: Option<&str>) -> Option<EncodedPayload> {
        let event = &*likeness::without_inferred(event);
        let own = event.source == self.spec.id;
        let spec = native_event
            .or(own.then_some(event.native_event.as_str()))
            .and_then(|name| self.event_by_native(name))
            .or_else(|| self.event_for(&event.event, event.tool_name()));
        if spec.is_none() && !own {
            return None;
        }
        let name = spec.map_or(event.native_event.as_str(), |spec| &spec.native);
        let mut payload = Value::Object(Map::new());
        if let Some(at) = &self.spec.payload.event_at {
            let spelled = spec.and_then(|spec| spec.payload_name.as_deref());
            pointer::put(&mut payload, at, json!(spelled.unwrap_or(name)));
        }
        let absent = event.metadata.get(NATIVE_ABSENT).filter(|_| own);
        let absent = absent.and_then(Value::as_array);
        let tool = self.encode_tool(event, own);
        for row in self.rows(spec) {
            let is_fixed = || spec.is_some_and(|spec| spec.data.contains_key(row.to.as_ref()));
            let is_skipped = if own {
                row.alt
                    || is_fixed()
                    || absent.is_some_and(|absent| absent.iter().any(|at| at == row.at.as_ref()))
            } else {
                row.alt && pointer::find(&payload, &row.at).is_some()
            };
            if !is_skipped
                && let Some(value) = tool.value(event, &row.to)
                && let Some(native) = row.codec.put(&value)
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
        Some(EncodedPayload {
            native_event: name.to_owned(),
            payload,
            lost: lost_tool_name(event, &tool).into_iter().collect(),
            call: None,
        })
    }

    /// As [`Adapter::encode`], but one payload per file, path or edit where this
    /// agent's tools take one and the event has several: a guard must not miss
    /// a part. A call that amounts to one of another tool is encoded as that one
    /// too, as far as the hook is for it.
    pub fn encode_parts(
        &self,
        event: &HookEvent,
        native_event: Option<&str>,
        is_for: impl Fn(&HookEvent) -> bool,
    ) -> Vec<EncodedPayload> {
        let inferred = inferred_calls(event);
        let encode_whole = || {
            let parts = self.split_by_input(event);
            let parts = match parts.as_slice() {
                [] => std::slice::from_ref(event),
                parts => parts,
            };
            let encoded = parts.iter().map(|part| self.encode(part, native_event));
            encoded.flatten().collect::<Vec<_>>()
        };
        if inferred.is_empty() {
            return encode_whole();
        }
        let own = (event.source == self.spec.id).then_some(event.native_event.as_str());
        let native_event = native_event.or(own);
        let mut encoded = Vec::new();
        let mut itself = event.clone();
        itself.data.shift_remove(TOOL_KINDS);
        if is_for(&itself) {
            encoded.extend(encode_whole());
        }
        for call in inferred.into_iter().filter(|call| is_for(call)) {
            encoded.extend(
                self.encode(&call, native_event)
                    .map(|encoded| EncodedPayload {
                        call: Some(call),
                        ..encoded
                    }),
            );
        }
        if encoded.is_empty() {
            encoded = encode_whole();
        }
        encoded
    }

    /// One event for each file, path or edit; empty where this agent's tool takes
    /// the input as it is.
    fn split_by_input(&self, event: &HookEvent) -> Vec<HookEvent> {
        let (Some(name), Some(input)) = (event.tool_name(), event.tool_input()) else {
            return Vec::new();
        };
        let row = self.tool_by_canonical(name);
        let edits = row.and_then(|row| row.edits.as_ref());
        let takes_several = row.is_some_and(|row| row.patch.is_some())
            || edits.is_some_and(|edits| edits.path.is_some());
        if event.source == self.spec.id || takes_several {
            return Vec::new();
        }
        let with = |input: &Map<String, Value>, key: &str, value: Value| {
            let mut input = input.clone();
            input.insert(key.to_owned(), value);
            with_tool(event, name, input)
        };
        if input.contains_key("files") {
            let files = canonical_files(input);
            let parts = files.iter().flat_map(|file| file_parts(event, file));
            return parts.collect();
        }
        if let Some(Value::Array(paths)) = input.get("paths") {
            let mut input = input.clone();
            input.shift_remove("paths");
            let parts = paths.iter().map(|path| with(&input, "path", path.clone()));
            return parts.collect();
        }
        match input.get("edits") {
            Some(Value::Array(list))
                if list.len() > 1 && edits.is_some_and(|edits| edits.list.is_none()) =>
            {
                let parts = list.iter().map(|edit| with(input, "edits", json!([edit])));
                parts.collect()
            }
            _ => Vec::new(),
        }
    }

    /// The row of the tool that an event of this agent calls.
    pub(crate) fn own_row(&self, event: &HookEvent) -> Option<&ToolSpec> {
        let row = self.tool_by_native(event.native_tool_name()?, None)?;
        // Several rows may share a native name: the canonical name and the values
        // that were left out of the input tell them apart.
        let when = event.metadata.get(NATIVE_WHEN).and_then(Value::as_object);
        let when = when.cloned().unwrap_or_default();
        let mut twins = self.spec.tools.iter().filter(|other| {
            other.native == row.native && Some(other.is.as_ref()) == event.tool_name()
        });
        twins
            .clone()
            .find(|other| other.when == when)
            .or_else(|| twins.next())
            .or(Some(row))
    }

    /// A canonical input in the keys of this agent's tool. `name`: the native
    /// name, where quirks may apply.
    pub(crate) fn native_input(
        &self,
        name: Option<&str>,
        row: Option<&ToolSpec>,
        input: &Map<String, Value>,
    ) -> Map<String, Value> {
        name.and_then(|name| self.quirks.encode_tool(name, input))
            .or_else(|| Some(encode_input(row?, input)))
            .unwrap_or_else(|| input.clone())
    }

    fn encode_tool(&self, event: &HookEvent, own: bool) -> NativeTool<'_> {
        let canonical = event.tool_name();
        let (row, name) = if own {
            let name = event.text(field::NATIVE_TOOL_NAME);
            (self.own_row(event), name.map(str::to_owned))
        } else {
            let row = canonical.and_then(|name| self.tool_by_canonical(name));
            let native = match (row, event.mcp()) {
                (Some(row), _) => Some(row.native.to_string()),
                (None, Some((server, tool))) => self.mcp_name(server, tool),
                (None, None) => None,
            };
            (row, native.or_else(|| canonical.map(str::to_owned)))
        };
        let quirk_name = event.native_tool_name().filter(|_| own);
        let input = event.tool_input();
        NativeTool {
            row,
            name,
            input: input.map(|input| self.native_input(quirk_name, row, input)),
        }
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

/// A tool call in this agent's terms.
struct NativeTool<'a> {
    row: Option<&'a ToolSpec>,
    name: Option<String>,
    input: Option<Map<String, Value>>,
}

impl NativeTool<'_> {
    /// The canonical value of a row's target.
    fn value(&self, event: &HookEvent, to: &str) -> Option<Value> {
        let text = match to {
            "tool_name" => self.name.as_deref(),
            "mcp.server" => event.mcp().map(|(server, _)| server),
            "mcp.tool" => event.mcp().map(|(_, tool)| tool),
            "session_id" => event.session_id.as_deref(),
            "cwd" => event.cwd.as_deref(),
            "timestamp" => event.timestamp.as_deref(),
            "user_id" => event.user_id.as_deref(),
            "tool_input" if self.input.is_some() => return self.input.clone().map(Value::Object),
            _ => {
                return match to.strip_prefix("tool_input.") {
                    Some(key) => event.tool_input()?.get(key).cloned(),
                    None => event.data.get(to).cloned(),
                };
            }
        };
        text.map(Value::from)
    }
}

fn lost_tool_name(event: &HookEvent, tool: &NativeTool<'_>) -> Option<Loss> {
    let name = event.tool_name()?;
    let native = event.text(field::NATIVE_TOOL_NAME)?;
    let is_lost = tool.row.is_none() && event.mcp().is_none() && native != name;
    let message =
        || format!("the agent has no tool like `{name}`; the name is passed on unchanged");
    is_lost.then(|| Loss::new(field::TOOL_NAME, message()))
}

/// `event` as a call of another canonical tool.
fn with_tool(event: &HookEvent, name: &str, input: Map<String, Value>) -> HookEvent {
    let mut part = event.clone();
    part.data.insert(field::TOOL_NAME.into(), json!(name));
    part.data.shift_remove(field::NATIVE_TOOL_NAME);
    let input = Value::Object(input);
    part.data.insert(field::TOOL_INPUT.into(), input);
    part
}

/// The calls of tools of the vocabulary that a call of another tool amounts to.
/// They are nobody's own: no native name or field belongs to them.
pub fn inferred_calls(event: &HookEvent) -> Vec<HookEvent> {
    let is_kind = |kind: &str| event.tool_kinds().any(|one| one == kind);
    let is_file_tool = |name: &str| matches!(name, "file_write" | "file_edit");
    let name = event.tool_name().unwrap_or_default();
    let runs = is_kind("shell") && name != "shell";
    let writes = event.tool_kinds().any(is_file_tool) && !is_file_tool(name);
    if !runs && !writes {
        return Vec::new();
    }
    let mut base = event.clone();
    base.source.clear();
    for key in [NATIVE, NATIVE_ABSENT, NATIVE_WHEN, likeness::INFERRED_INPUT] {
        base.metadata.shift_remove(key);
    }
    for key in [TOOL_KINDS, field::MCP] {
        base.data.shift_remove(key);
    }
    let input = event.tool_input().cloned().unwrap_or_default();
    let mut calls = Vec::new();
    if runs {
        let mut command = input.clone();
        command.retain(|key, _| matches!(key.as_str(), "command" | "commands" | "cwd"));
        calls.push(with_tool(&base, "shell", command));
    }
    if writes {
        let kinds = json!(["file_write", "file_edit"]);
        base.data.insert(TOOL_KINDS.into(), kinds);
        let files = canonical_files(&input);
        let parts = files.iter().flat_map(|file| file_parts(&base, file));
        let parts: Vec<HookEvent> = parts.collect();
        if parts.is_empty() {
            calls.push(with_tool(&base, "file_edit", Map::new()));
        }
        calls.extend(parts);
    }
    calls
}

/// One file of a patch as calls of single-file tools. A move is two: the new file
/// is edited, the old one is emptied.
fn file_parts(event: &HookEvent, file: &Value) -> Vec<HookEvent> {
    let call = |tool: &str, path: &Value, key: &str, value: Value| {
        let mut input = Map::new();
        input.insert("path".into(), path.clone());
        input.insert(key.to_owned(), value);
        with_tool(event, tool, input)
    };
    let field = |key: &str, default: Value| file.get(key).cloned().unwrap_or(default);
    let path = field("path", json!(""));
    if file.get("operation").and_then(Value::as_str) != Some("update") {
        // A deletion becomes a write of an empty file, so that a guard over paths
        // sees it.
        let content = field("content", json!(""));
        return vec![call("file_write", &path, "content", content)];
    }
    let target = file.get("move_to");
    let edits = field("edits", json!([]));
    let mut parts = vec![call("file_edit", target.unwrap_or(&path), "edits", edits)];
    if target.is_some() {
        parts.push(call("file_write", &path, "content", json!("")));
    }
    parts
}
