//! The format that the hook's program reads and writes, and the target's events
//! that use the same.

use anyhook_agents::Adapter;
use anyhook_agents::respond::RenderOptions;
use anyhook_agents::spec::EventSpec;
use anyhook_model::event::field;
use anyhook_model::{HookEvent, HookResponse, registry};
use serde_json::{Map, Value, json};

use super::{HookFitter, inline};

/// The parts of a payload that a guard decides by.
const GUARDED_FIELDS: [&str; 3] = [field::TOOL_NAME, field::TOOL_INPUT, field::PROMPT];

impl HookFitter<'_> {
    /// The dialect of the program.
    pub(super) fn speaks(&self) -> &str {
        let source = self.source.agent.map(|agent| agent.spec.id.as_ref());
        let dialect = self.hook.handler.dialect.as_deref();
        dialect.or(source).unwrap_or("canonical")
    }

    /// Whether nothing says which dialect the program has.
    pub(super) fn is_dialect_unstated(&self) -> bool {
        self.source.agent.is_none() && self.hook.handler.dialect.is_none()
    }

    /// The event at which the target sends what the program reads, where it has a
    /// second form of this event.
    pub(super) fn event_for_program(&self, event: &'static EventSpec) -> &'static EventSpec {
        let target = self.adapter;
        let speaker = anyhook_agents::get(self.speaks());
        let own = speaker
            .filter(|speaker| speaker.spec.id != target.spec.id)
            .and_then(|speaker| Some((speaker, speaker.event_for(&self.hook.event, None)?)));
        let Some((speaker, own)) = own else {
            return event;
        };
        let wanted = guarded_pointers(speaker, own);
        let sends = |event: &EventSpec| guarded_pointers(target, event) == wanted;
        let command = self.hook.handler.command.as_deref();
        let reads_nothing = command.is_some_and(inline::only_prints);
        if self.is_same_config
            || reads_nothing
            || event.is.is_none()
            || wanted == [None; 3]
            || sends(event)
        {
            return event;
        }
        let mut others = target.events_of(&self.hook.event);
        let other = others.find(|other| {
            other.tools.is_empty()
                && other.matcher == event.matcher
                && other.blocking == event.blocking
                && sends(other)
        });
        other.filter(|_| self.is_list_of_names()).unwrap_or(event)
    }

    /// Whether the target's matcher would be nothing but names: a second form of
    /// an event may test patterns against other names.
    fn is_list_of_names(&self) -> bool {
        self.hook.matcher.as_ref().is_none_or(|matcher| {
            let form = &self.config.matcher;
            let text = self
                .adapter
                .translate_as(form, matcher, self.source.agent)
                .text;
            let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-|".contains(letter);
            text.is_some_and(|text| text.chars().all(is_plain))
        })
    }

    /// Whether the target applies a rewrite that the program writes.
    pub(super) fn reads_rewrite(&self, event: &EventSpec) -> bool {
        let target = self.adapter;
        // A manifest that names no dialect may have programs in the target's form.
        if self.is_dialect_unstated() || self.speaks() == target.spec.id {
            return true;
        }
        let is_tool = registry::event(&self.hook.event).is_none_or(|event| event.tool);
        let rewrite = |text: &str| {
            let key = if is_tool { "command" } else { "prompt" };
            Map::from_iter([(key.to_owned(), json!(text))])
        };
        let mut call = HookEvent {
            event: self.hook.event.clone(),
            ..HookEvent::default()
        };
        if is_tool {
            call.data.insert(field::TOOL_NAME.into(), json!("shell"));
            let input = Value::Object(rewrite("before"));
            call.data.insert(field::TOOL_INPUT.into(), input);
        } else {
            call.data.insert(field::PROMPT.into(), json!("before"));
        }
        let response = HookResponse {
            updated_input: Some(rewrite("after")),
            ..HookResponse::default()
        };
        let (stdout, stderr, exit) = match anyhook_agents::get(self.speaks()) {
            None => (json!(response).to_string(), String::new(), 0),
            Some(speaker) => {
                let Some(own) = speaker.event_for(&self.hook.event, is_tool.then_some("shell"))
                else {
                    return false;
                };
                let own_event = HookEvent {
                    source: speaker.spec.id.to_string(),
                    native_event: own.native.to_string(),
                    ..with_tool(speaker, call.clone())
                };
                let answer = speaker.render(&own_event, &response, RenderOptions::default());
                (answer.stdout, answer.stderr, answer.exit)
            }
        };
        let call = HookEvent {
            source: target.spec.id.to_string(),
            native_event: event.native.to_string(),
            ..with_tool(target, call)
        };
        let decoded = target.decode_answer(&call, &event.native, &stdout, &stderr, exit);
        decoded.response.updated_input.is_some()
    }
}

/// Adds the agent's own name of the tool.
fn with_tool(adapter: &Adapter, mut call: HookEvent) -> HookEvent {
    let mut tools = adapter.spec.tools.iter();
    if let Some(tool) = tools.find(|tool| tool.is == "shell" && call.tool_name().is_some()) {
        let name = json!(tool.native);
        call.data.insert(field::NATIVE_TOOL_NAME.into(), name);
    }
    call
}

fn guarded_pointers<'a>(adapter: &'a Adapter, event: &'a EventSpec) -> [Option<&'a str>; 3] {
    GUARDED_FIELDS.map(|to| adapter.payload_pointer(event, to))
}
