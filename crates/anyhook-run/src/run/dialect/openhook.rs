//! OpenHook envelopes, for programs that observe. They have no answer: their
//! output is ignored, and they block nothing.

use anyhook_model::event::field;
use anyhook_model::{HookEvent, Loss};
use openhook::Envelope;

use super::{Dialect, ParsedAnswer, Payload, ProgramOutput};

/// Events that may have envelopes; for some agents `agent_stop` ends a session.
const EVENTS_WITH_ENVELOPES: [&str; 7] = [
    "session_start",
    "session_end",
    "before_prompt",
    "before_tool_execute",
    "after_tool_execute",
    "tool_use_failure",
    "agent_stop",
];

/// Holds the envelopes of the event.
pub(super) struct OpenHookDialect<'a>(pub &'a [Envelope]);

impl Dialect for OpenHookDialect<'_> {
    fn encode(&self, event: &HookEvent) -> Result<Vec<Payload>, String> {
        if self.0.is_empty() && !EVENTS_WITH_ENVELOPES.contains(&event.event.as_str()) {
            return Err(format!("OpenHook has no event for `{}`", event.event));
        }
        let has_content = [field::TOOL_INPUT, field::TOOL_OUTPUT, field::PROMPT]
            .iter()
            .any(|key| event.data.contains_key(*key));
        let payloads = self.0.iter().enumerate().map(|(n, envelope)| {
            let why = "OpenHook carries what happened, not its content";
            Payload {
                stdin: envelope.to_json_line().into_bytes(),
                lost: (has_content && n == 0)
                    .then(|| Loss::new("data", why))
                    .into_iter()
                    .collect(),
                ..Payload::default()
            }
        });
        Ok(payloads.collect())
    }

    fn parse_answer(&self, _event: &HookEvent, _output: ProgramOutput<'_>) -> ParsedAnswer {
        ParsedAnswer::default()
    }

    fn observes_only(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openhook::{LocalMachine, envelopes};
    use serde_json::json;

    fn event(name: &str) -> HookEvent {
        let event = json!({"event": name, "source": "claude-code", "native_event": "x",
            "session_id": "s", "cwd": "/p", "data": {"tool_name": "file_write", "tool_call_id": "c",
            "tool_input": {"path": "/p/a", "content": "a"}, "status": "success"}});
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn every_envelope_of_an_event_is_a_payload() {
        let event = event("after_tool_execute");
        let state = tempfile::tempdir().unwrap();
        let envelopes = envelopes(&event, &LocalMachine::new(state.path()));
        let payloads = OpenHookDialect(&envelopes).encode(&event).unwrap();
        let kinds: Vec<String> = payloads
            .iter()
            .map(|payload| {
                let line = std::str::from_utf8(&payload.stdin).unwrap();
                Envelope::parse(line).unwrap().event_type
            })
            .collect();
        assert_eq!(kinds, ["tool.end", "file.write"]);
        assert_eq!(payloads.iter().map(|one| one.lost.len()).sum::<usize>(), 1);
    }

    #[test]
    fn an_event_without_envelopes_is_fine_but_one_that_never_has_any_is_an_error() {
        assert!(
            OpenHookDialect(&[])
                .encode(&event("agent_stop"))
                .unwrap()
                .is_empty()
        );
        let error = OpenHookDialect(&[])
            .encode(&event("notification"))
            .unwrap_err();
        assert!(error.contains("`notification`"), "{error}");
    }
}
