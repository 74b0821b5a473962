//! Crush, from its source of 2026-08-21 (`internal/hooks`): exit 2 denies, exit 49
//! ends the turn, JSON counts at exit 0. `allow` skips the user's approval.

use crate::reference_model::call::{Call, is_true, text};
use crate::reference_model::{Model, Reaction};
use serde_json::{Map, Value};

pub(super) const MODEL: Model = Model {
    events: &["PreToolUse"],
    react,
    has_time_limit: true,
};

fn react(call: &Call) -> Reaction {
    let mut r = Reaction::default();
    let words = Some(call.stderr).filter(|words| !words.is_empty());
    match call.exit {
        Some(2) => r.deny(words.or(Some("blocked by hook"))),
        Some(49) => {
            r.block();
            r.end_session(words);
        }
        Some(0) => said(call, &mut r),
        _ => return Reaction::failed("another code: the tool runs"),
    }
    r
}

fn said(call: &Call, r: &mut Reaction) {
    let json = call.json().unwrap_or_default();
    let nested = json.get("hookSpecificOutput");
    let (decision, reason, context, input) = match nested {
        Some(nested) => (
            text(nested, "/permissionDecision"),
            text(nested, "/permissionDecisionReason"),
            nested.get("additionalContext"),
            nested.get("updatedInput"),
        ),
        None => (
            text(&json, "/decision"),
            text(&json, "/reason"),
            json.get("context"),
            json.get("updated_input"),
        ),
    };
    let decision = decision.map(str::to_lowercase);
    match decision.as_deref() {
        Some("deny") => r.deny(reason),
        Some("allow") => r.skips_approval = true,
        _ => {}
    }
    match context {
        Some(Value::String(context)) => r.show_model(Some(context)),
        Some(Value::Array(items)) => {
            let items = items.iter().filter_map(Value::as_str);
            items.for_each(|item| r.show_model(Some(item)));
        }
        _ => {}
    }
    if nested.is_none() && is_true(&json, "/halt") {
        r.block();
        r.end_session(reason);
    } else if decision.as_deref() != Some("deny")
        && let Some(Value::Object(patch)) = input
    {
        r.new_input = Some(Value::Object(merged(call, patch)));
    }
}

/// Key by key, not below.
fn merged(call: &Call, patch: &Map<String, Value>) -> Map<String, Value> {
    let mut input = call.tool_input("/tool_input");
    input.extend(patch.clone());
    input
}
