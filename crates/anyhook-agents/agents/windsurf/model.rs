//! Windsurf, Cascade hooks. From documentation. Exit 2 of a `pre_*` hook blocks
//! and its stderr goes to the agent; stdout is ignored.

use crate::reference_model::call::Call;
use crate::reference_model::{Model, Reaction};

pub(super) const MODEL: Model = Model {
    events: &[
        "pre_user_prompt",
        "pre_read_code",
        "post_read_code",
        "pre_write_code",
        "post_write_code",
        "pre_run_command",
        "post_run_command",
        "pre_mcp_tool_use",
        "post_mcp_tool_use",
        "post_cascade_response",
        "post_cascade_response_with_transcript",
        "post_setup_worktree",
    ],
    react,
    has_time_limit: false,
};

fn react(call: &Call) -> Reaction {
    let mut r = Reaction::default();
    match call.exit {
        Some(0) => {}
        Some(2) if call.event == "pre_user_prompt" => {
            r.block();
            r.show_user(Some(call.stderr));
        }
        Some(2) if call.event.starts_with("pre_") => r.deny(Some(call.stderr)),
        _ => r = Reaction::failed("hook failed: the action proceeds"),
    }
    r
}
