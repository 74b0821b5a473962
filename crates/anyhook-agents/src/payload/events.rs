//! Which event of an agent a payload is.

use anyhook_model::HookEvent;
use anyhook_model::event::field;
use serde_json::Value;

use super::{BEFORE_TOOL_EVENT, PayloadError};
use crate::spec::{EventSpec, PayloadRow};
use crate::{Adapter, pointer};

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
    pub(super) fn event_name(
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
    pub(super) fn events_of_same_call(&self, payload: &Value, name: &str) -> Vec<&EventSpec> {
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
}
