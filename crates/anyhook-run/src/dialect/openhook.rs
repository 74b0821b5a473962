//! OpenHook envelopes, for programs that observe. They have no answer: what
//! they print is nobody's business, and they block nothing.

use anyhook_model::event::field;
use anyhook_model::{HookEvent, Loss};
use openhook::Envelope;

use super::{Dialect, Payload, Read};

/// Events that may give envelopes; for some agents a rest ends a session.
const TOLD: [&str; 7] = [
    "session_start",
    "session_end",
    "before_prompt",
    "before_tool_execute",
    "after_tool_execute",
    "after_tool_failure",
    "agent_stop",
];

/// With the envelopes of the event at hand.
pub struct OpenHook<'a>(pub &'a [Envelope]);

impl Dialect for OpenHook<'_> {
    fn encode(&self, event: &HookEvent) -> Result<Vec<Payload>, String> {
        if self.0.is_empty() && !TOLD.contains(&event.event.as_str()) {
            return Err(format!("OpenHook has no event for `{}`", event.event));
        }
        let has_content = [field::TOOL_INPUT, field::TOOL_OUTPUT, field::PROMPT]
            .iter()
            .any(|key| event.data.contains_key(*key));
        let payloads = self.0.iter().enumerate().map(|(n, envelope)| {
            let why = "OpenHook carries what happened, not its content";
            Payload {
                stdin: envelope.to_json_line().into_bytes(),
                env: Vec::new(),
                lost: (has_content && n == 0)
                    .then(|| Loss::new("data", why))
                    .into_iter()
                    .collect(),
            }
        });
        Ok(payloads.collect())
    }

    fn read(&self, _event: &HookEvent, _stdout: &[u8], _stderr: &[u8], _exit: Option<i32>) -> Read {
        Read::default()
    }

    fn observes_only(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhook_emit::{PureWorld, envelopes};
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
        let envelopes = envelopes(&event, &PureWorld::default());
        let payloads = OpenHook(&envelopes).encode(&event).unwrap();
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
    fn nothing_to_tell_is_no_mistake_but_an_event_that_is_never_told_is() {
        assert!(
            OpenHook(&[])
                .encode(&event("agent_stop"))
                .unwrap()
                .is_empty()
        );
        let error = OpenHook(&[]).encode(&event("notification")).unwrap_err();
        assert!(error.contains("`notification`"), "{error}");
    }
}
