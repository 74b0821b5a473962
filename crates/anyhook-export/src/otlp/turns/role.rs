//! What an event means for a turn.

use crate::recorded_event::RecordedEvent;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventRole {
    Prompt,
    Stop,
    CallStart,
    CallEnd,
    /// The agent asks whether a call is permitted.
    Permission,
    PermissionDenied,
    AgentStart,
    AgentStop,
    SessionEnd,
    AgentError,
    Other,
}

impl EventRole {
    pub(super) fn from_event(event: &RecordedEvent<'_>) -> Self {
        let is_in_subagent = event.event.data.agent_id.is_some();
        match event.event.event.as_ref() {
            // A sub-agent's prompt and stop do not begin or end the user's turn.
            "before_prompt" if is_in_subagent => Self::AgentStart,
            "agent_stop" if is_in_subagent => Self::AgentStop,
            "before_prompt" => Self::Prompt,
            "agent_stop" => Self::Stop,
            "before_tool_execute" => Self::CallStart,
            "after_tool_execute" | "tool_use_failure" | "after_tool_failure" => Self::CallEnd,
            "permission_request" => Self::Permission,
            "permission_denied" => Self::PermissionDenied,
            "subagent_start" => Self::AgentStart,
            "subagent_stop" => Self::AgentStop,
            "session_end" => Self::SessionEnd,
            "error_occurred" => Self::AgentError,
            _ => Self::Other,
        }
    }

    /// Whether the event can only happen inside a turn.
    pub(super) fn needs_turn(self) -> bool {
        matches!(
            self,
            Self::CallStart | Self::CallEnd | Self::Permission | Self::AgentStart
        )
    }
}
