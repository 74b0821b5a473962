//! Qoder CLI 1.1.52. From documentation: Claude's format and Claude's answers, for
//! the events that it has. Nobody has run it here.

use crate::reference_model::Model;

pub(super) const MODEL: Model = Model {
    events: &[
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "UserPromptSubmit",
        "SessionStart",
        "SessionEnd",
        "Stop",
        "StopFailure",
        "SubagentStart",
        "SubagentStop",
        "PreCompact",
        "PostCompact",
        "Notification",
        "ConfigChange",
        "InstructionsLoaded",
        "CwdChanged",
        "FileChanged",
        "WorktreeCreate",
        "WorktreeRemove",
        "Elicitation",
        "ElicitationResult",
        "TaskCreated",
        "TaskCompleted",
        "PermissionRequest",
        "PermissionDenied",
        "TeammateIdle",
        "Setup",
    ],
    ..super::claude_code::MODEL
};
