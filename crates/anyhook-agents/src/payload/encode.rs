//! The canonical event as a payload of the agent.

use anyhook_model::event::field::TOOL_KINDS;
use anyhook_model::event::{NATIVE, field};
use anyhook_model::{HookEvent, Loss};
use serde_json::{Map, Value, json};

use super::inferred::{file_parts, with_tool};
use super::{NATIVE_ABSENT, NATIVE_WHEN, inferred_calls};
use crate::spec::ToolSpec;
use crate::tools::{canonical_files, encode_input};
use crate::{Adapter, likeness, pointer};

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
