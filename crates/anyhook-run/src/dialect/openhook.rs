//! OpenHook envelopes, for programs that observe. They have no answer: what
//! they print is nobody's business, and they block nothing.

use anyhook_model::event::field;
use anyhook_model::{HookEvent, Loss};
use openhook::{
    EndReason, Envelope, PromptSubmit, SessionEnd, SessionStart, ToolEnd, ToolStart, ToolStatus,
    end_reason, event_type, model_id,
};
use serde_json::{Map, Value};

use super::{Dialect, Payload, Read};
use crate::clock;

pub struct OpenHook;

impl Dialect for OpenHook {
    fn encode(&self, event: &HookEvent) -> Result<Vec<Payload>, String> {
        let (kind, data) =
            body(event).ok_or_else(|| format!("OpenHook has no event for `{}`", event.event))?;
        let now = clock::now_ms();
        let session = event.session_id.clone().unwrap_or_default();
        let mut builder = Envelope::builder(&*event.source, kind, session)
            .id(clock::uuid(now))
            .time(
                event
                    .timestamp
                    .clone()
                    .unwrap_or_else(|| clock::rfc3339(now)),
            )
            .data(data);
        if let Some(cwd) = &event.cwd {
            builder = builder.directory(&**cwd);
        }
        let envelope = builder.build().map_err(|error| error.to_string())?;
        let mut line = envelope.to_json_line();
        if !line.ends_with('\n') {
            line.push('\n');
        }
        let has_content = [field::TOOL_INPUT, field::TOOL_OUTPUT, field::PROMPT]
            .iter()
            .any(|key| event.data.contains_key(*key));
        let lost = if has_content {
            vec![Loss::new(
                "data",
                "OpenHook carries what happened, not its content",
            )]
        } else {
            Vec::new()
        };
        Ok(vec![Payload {
            stdin: line.into_bytes(),
            env: Vec::new(),
            lost,
        }])
    }

    fn read(&self, _event: &HookEvent, _stdout: &[u8], _stderr: &[u8], _exit: Option<i32>) -> Read {
        Read::default()
    }

    fn observes_only(&self) -> bool {
        true
    }
}

fn body(event: &HookEvent) -> Option<(&'static str, Map<String, Value>)> {
    let model = event.text(field::MODEL).map(model_id);
    let duration_ms = event.data.get(field::DURATION_MS).and_then(Value::as_u64);
    let tool_name = event.native_tool_name();
    let tool_call_id = event.text(field::TOOL_CALL_ID);
    Some(match event.event.as_str() {
        "session_start" => {
            let data = SessionStart {
                model: model.as_deref(),
            };
            (event_type::SESSION_START, data.to_map())
        }
        "session_end" => {
            let reason = event.text(field::REASON).and_then(end_reason);
            let data = SessionEnd {
                transcript_path: event.text(field::TRANSCRIPT_PATH),
                reason: reason.and_then(EndReason::parse),
                model: model.as_deref(),
                duration_ms,
                ..SessionEnd::default()
            };
            (event_type::SESSION_END, data.to_map())
        }
        "before_prompt" => {
            let length = event
                .text(field::PROMPT)
                .map(|prompt| prompt.chars().count() as u64);
            let data = PromptSubmit {
                prompt_length: length,
            };
            (event_type::PROMPT_SUBMIT, data.to_map())
        }
        "before_tool_execute" => {
            let data = ToolStart {
                tool_name,
                tool_call_id,
            };
            (event_type::TOOL_START, data.to_map())
        }
        "after_tool_execute" => {
            let data = ToolEnd {
                tool_name,
                tool_call_id,
                status: event.text(field::STATUS).and_then(ToolStatus::parse),
                duration_ms,
            };
            (event_type::TOOL_END, data.to_map())
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_lifecycle_event_is_a_valid_envelope() {
        let cases = [
            (
                "session_start",
                json!({"model": "claude-sonnet-4-6"}),
                "session.start",
                json!({"model": "anthropic/claude-sonnet-4-6"}),
            ),
            (
                "session_end",
                json!({"reason": "logout", "transcript_path": "/t"}),
                "session.end",
                json!({"reason": "user_exit", "transcript_path": "/t"}),
            ),
            (
                "before_prompt",
                json!({"prompt": "größe"}),
                "prompt.submit",
                json!({"prompt_length": 5}),
            ),
            (
                "before_tool_execute",
                json!({"tool_name": "shell", "native_tool_name": "Bash", "tool_call_id": "c"}),
                "tool.start",
                json!({"tool_name": "Bash", "tool_call_id": "c"}),
            ),
            (
                "after_tool_execute",
                json!({"tool_name": "shell", "status": "success", "duration_ms": 7}),
                "tool.end",
                json!({"tool_name": "shell", "status": "success", "duration_ms": 7}),
            ),
        ];
        for (name, data, kind, expected) in cases {
            let event = json!({"event": name, "source": "claude-code", "session_id": "s", "cwd": "/p", "data": data});
            let event: HookEvent = serde_json::from_value(event).unwrap();
            let payload = OpenHook.encode(&event).unwrap();
            let envelope = Envelope::parse(std::str::from_utf8(&payload.stdin).unwrap()).unwrap();
            assert_eq!(envelope.event_type, kind);
            assert_eq!(Value::Object(envelope.data.clone()), expected);
            assert_eq!(envelope.context.as_deref(), Some("file:///p"));
            assert!(
                envelope
                    .findings()
                    .iter()
                    .all(|finding| !finding.is_error())
            );
        }
        assert!(
            OpenHook
                .encode(&HookEvent {
                    event: "notification".to_owned(),
                    ..HookEvent::default()
                })
                .is_err()
        );
    }
}
