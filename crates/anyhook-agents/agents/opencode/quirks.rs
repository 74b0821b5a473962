//! OpenCode loads a program: its hooks are functions, its events a bus. The
//! program is generated from `plugin.js`, and writes the payload that is read
//! here: `{hook, input, output, directory}`.

use anyhook_model::event::{NATIVE, field};
use anyhook_model::{HookEvent, HookResponse};
use serde_json::{Map, Value, json};

use crate::respond::RenderedAnswer;
use crate::{BridgeCall, Quirks, plugin_program, pointer};

pub(super) struct OpenCodeQuirks {
    /// OpenCode, or a fork of it.
    pub(super) id: &'static str,
}

pub(super) static QUIRKS: OpenCodeQuirks = OpenCodeQuirks { id: "opencode" };

const PLUGIN: &str = include_str!("plugin.js");
/// The hook through which every event of the bus comes.
const BUS_HOOK: &str = "event";
const TYPE: &str = "/input/event/type";
const PROMPT: &str = "chat.message";

fn hook(payload: &Value) -> Option<&str> {
    payload.get("hook").and_then(Value::as_str)
}

fn is_bus(id: &str, native: &str) -> bool {
    let event = crate::get(id).and_then(|adapter| adapter.event_by_native(native));
    event.is_none_or(|event| event.payload_name.as_deref() == Some(BUS_HOOK))
}

impl Quirks for OpenCodeQuirks {
    fn event_name(&self, payload: &Value) -> Option<String> {
        if hook(payload)? != BUS_HOOK {
            return None;
        }
        let name = pointer::get(payload, TYPE)?.as_str()?;
        Some(name.to_owned())
    }

    fn decoded(&self, payload: &Value, event: &mut HookEvent) {
        if event.native_event != PROMPT {
            return;
        }
        let parts = pointer::get(payload, "/output/parts").and_then(Value::as_array);
        let parts = parts.into_iter().flatten();
        let texts: Vec<&str> = parts
            .filter_map(|part| part.get("text")?.as_str())
            .collect();
        let prompt = json!(texts.join("\n"));
        event.data.insert(field::PROMPT.into(), prompt);
    }

    fn encoded(&self, event: &HookEvent, payload: &mut Value) {
        if event.source == self.id && event.metadata.contains_key(NATIVE) {
            return;
        }
        if hook(payload) == Some(PROMPT)
            && let Some(prompt) = event.text(field::PROMPT)
        {
            let parts = json!([{"type": "text", "text": prompt}]);
            pointer::put(payload, "/output/message/role", json!("user"));
            pointer::put(payload, "/output/parts", parts);
        }
        if hook(payload) == Some(BUS_HOOK) && pointer::get(payload, TYPE).is_none() {
            let native =
                crate::get(self.id).and_then(|adapter| adapter.event_for(&event.event, None));
            let name = native.map_or(event.event.as_str(), |spec| &spec.native);
            pointer::put(payload, TYPE, json!(name));
        }
        if let Value::Object(payload) = payload {
            for key in ["input", "output"] {
                payload.entry(key).or_insert(Value::Null);
            }
        }
    }

    /// The plugin throws before it adds context, so the context of a denial goes
    /// into its reason.
    fn rendered(
        &self,
        _event: &HookEvent,
        _response: &HookResponse,
        rendered: &mut RenderedAnswer,
    ) {
        plugin_program::join_deny_and_context(rendered);
    }

    fn plugin_text(&self, document: &Value) -> Option<String> {
        let (head, events) = plugin_program::document_events(document)?;
        Some(program(self.id, &head, events))
    }

    fn payload_of_program(&self, payload: &mut Value) {
        let tool = pointer::get(payload, "/input/tool").cloned();
        let input = pointer::get(payload, "/output/args").cloned();
        if let (Some(tool), Value::Object(payload)) = (tool, payload) {
            payload.insert("tool_name".into(), tool);
            payload.insert("tool_input".into(), input.unwrap_or_else(|| json!({})));
        }
    }

    fn answer_of_program(&self, answer: &Value) -> Option<Value> {
        plugin_program::answer_of_program(answer)
    }

    fn bridge_plugin(&self, call: &BridgeCall<'_>) -> Option<String> {
        let events = plugin_program::bridge_events(self.id, call)?;
        Some(program(self.id, plugin_program::BRIDGE_HEAD, events))
    }
}

/// The program that runs these handlers: native event → list of handlers.
fn program(id: &str, head: &str, events: Map<String, Value>) -> String {
    let (bus, hooks): (Map<_, _>, Map<_, _>) =
        events.into_iter().partition(|(name, _)| is_bus(id, name));
    plugin_program::fill(id, head, PLUGIN, &[("hooks", &hooks), ("bus", &bus)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_carries_the_hooks_that_it_runs() {
        let document = json!({
            "tool.execute.before": [{"command": "./a.sh \u{2028}", "matcher": "^bash$", "timeout": 5}],
            "session.idle": [{"command": "./b.sh"}],
        });
        let text = QUIRKS.plugin_text(&document).unwrap();
        assert_eq!(crate::output::marked(&text), Some(document));
        let hooks = text.lines().find(|line| line.starts_with("const HOOKS"));
        let bus = text.lines().find(|line| line.starts_with("const BUS"));
        assert!(hooks.is_some_and(|line| line.contains("./a.sh") && !line.contains("./b.sh")));
        assert!(bus.is_some_and(|line| line.contains("./b.sh") && !line.contains("./a.sh")));
    }

    #[test]
    fn the_bridge_asks_for_no_noisy_event() {
        let command = ["/bin/anyhook".to_owned(), "run".to_owned()];
        let text = QUIRKS
            .bridge_plugin(&BridgeCall {
                command: &command,
                seconds: 60.0,
                daemon: None,
            })
            .unwrap();
        assert!(text.contains("\"timeout\":60000"));
        for event in &crate::get(QUIRKS.id).unwrap().spec.events {
            let asked = text.contains(&format!("\"{}\":[", event.native));
            assert_eq!(asked, !event.noisy, "{}", event.native);
        }
    }
}
