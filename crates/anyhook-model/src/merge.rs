//! Merges the answers of several hooks of one event.
//!
//! `merge` is associative, keeps the order of hooks, and an empty response
//! changes nothing.

use serde_json::{Map, Value};

use crate::response::{Decision, HookResponse};

/// Two answers, the earlier hook's first.
///
/// - decision: deny > ask > allow > no opinion
/// - reason: of those that decided, joined by newlines
/// - context, system message: joined by newlines
/// - updated input, metadata, other fields: a later key replaces an earlier one
/// - continue: false if any is false; suppress output: true if any is true
/// - trigger action: the later one
pub fn merge(earlier: HookResponse, later: HookResponse) -> HookResponse {
    let reason = match earlier.decision.cmp(&later.decision) {
        std::cmp::Ordering::Greater => earlier.reason,
        std::cmp::Ordering::Less => later.reason,
        std::cmp::Ordering::Equal => joined(earlier.reason, later.reason),
    };
    HookResponse {
        decision: earlier.decision.max(later.decision),
        reason,
        should_continue: combined(
            earlier.should_continue,
            later.should_continue,
            |left, right| left && right,
        ),
        context: joined(earlier.context, later.context),
        system_message: joined(earlier.system_message, later.system_message),
        suppress_output: combined(
            earlier.suppress_output,
            later.suppress_output,
            |left, right| left || right,
        ),
        updated_input: combined(earlier.updated_input, later.updated_input, overlaid),
        trigger_action: later.trigger_action.or(earlier.trigger_action),
        metadata: overlaid(earlier.metadata, later.metadata),
        extra: overlaid(earlier.extra, later.extra),
    }
}

/// All answers, in the order of their hooks.
pub fn merge_all(responses: impl IntoIterator<Item = HookResponse>) -> HookResponse {
    responses.into_iter().fold(HookResponse::default(), merge)
}

/// Where no user can be asked, `ask` becomes `deny`.
pub fn resolve_ask(mut response: HookResponse, can_ask: bool) -> HookResponse {
    if can_ask || response.decision != Some(Decision::Ask) {
        return response;
    }
    response.turn_into_deny("this needs a person's consent, and no user can be asked here");
    response
}

fn combined<T>(earlier: Option<T>, later: Option<T>, both: impl FnOnce(T, T) -> T) -> Option<T> {
    match (earlier, later) {
        (Some(earlier), Some(later)) => Some(both(earlier, later)),
        (earlier, later) => earlier.or(later),
    }
}

fn joined(earlier: Option<String>, later: Option<String>) -> Option<String> {
    combined(earlier, later, |mut earlier, later| {
        if !earlier.is_empty() && !later.is_empty() {
            earlier.push('\n');
        }
        earlier.push_str(&later);
        earlier
    })
}

fn overlaid(mut earlier: Map<String, Value>, later: Map<String, Value>) -> Map<String, Value> {
    earlier.extend(later);
    earlier
}
