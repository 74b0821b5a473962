//! One span per hook that ran for an event.

use anyhook_model::{Decision, RunOutcome};

use super::super::ids::{SpanId, SpanRef};
use super::super::names;
use super::super::span::{AttributeList, FinishedSpan};
use crate::content::shortened;
use crate::recorded_event::{HookRunView, RecordedEvent, duration_nanos};

/// The spans of the hooks of an event, below `parent`.
///
/// A record has durations and no start times. Hooks run side by side unless they may rewrite
/// the input: durations that fit into the event one after the other are shown like that, and
/// others begin with the event.
pub(super) fn push_hook_spans(
    event: &RecordedEvent<'_>,
    parent: SpanRef,
    common: &AttributeList,
    spans: &mut Vec<FinishedSpan>,
) {
    let (Some(start), Some(end)) = (event.start_nanos(), event.end_nanos()) else {
        return;
    };
    let durations = event
        .hooks
        .iter()
        .map(|run| duration_nanos(run.duration_ms));
    let total = durations.fold(0, u64::saturating_add);
    let are_side_by_side = total > end.saturating_sub(start);
    let mut at = start;
    for (index, run) in event.hooks.iter().enumerate() {
        if run.outcome == RunOutcome::Skipped {
            continue;
        }
        let duration = duration_nanos(run.duration_ms);
        // The end of a detached hook is recorded when it ended.
        let begin = if event.launched_in.is_some() {
            end.saturating_sub(duration)
        } else if are_side_by_side {
            start
        } else {
            at
        };
        at = begin.saturating_add(duration).min(end.max(begin));
        spans.push(FinishedSpan {
            at: SpanRef {
                trace: parent.trace,
                span: SpanId::of_record("hook", &event.id, index),
            },
            parent: Some(parent.span),
            name: format!("hook {}", run.hook),
            start: begin,
            end: at,
            attributes: hook_attributes(event, run, common),
            link: None,
            error: hook_error(run).map(str::to_owned),
        });
    }
}

fn hook_attributes(
    event: &RecordedEvent<'_>,
    run: &HookRunView<'_>,
    common: &AttributeList,
) -> AttributeList {
    let mut attributes = AttributeList::default();
    attributes.text(names::SPAN_KIND, "GUARDRAIL");
    attributes.text(names::HOOK_NAME, run.hook.as_ref());
    attributes.text(names::HOOK_OUTCOME, outcome_word(run.outcome));
    attributes.text(names::HOOK_MANIFEST, run.manifest.as_ref());
    attributes.text(names::EVENT_ID, event.id.as_ref());
    attributes.text(names::EVENT_NAME, event.event.event.as_ref());
    if let Some(exit) = run.exit {
        attributes.int(names::HOOK_EXIT, exit.into());
    }
    if let Some(message) = &run.message {
        attributes.text(names::HOOK_MESSAGE, shortened(message));
    }
    if let Some(cause) = run.without_effect {
        let word = serde_json::to_value(cause).unwrap_or_default();
        attributes.optional_text(names::WITHOUT_EFFECT, word.as_str());
    }
    attributes.optional_text(names::ERROR_TYPE, hook_error(run));
    attributes.extend(common);
    attributes
}

/// A hook that denies has done its work; one that broke has not.
fn hook_error(run: &HookRunView<'_>) -> Option<&'static str> {
    match run.outcome {
        RunOutcome::Error => Some("hook_error"),
        RunOutcome::Timeout => Some("hook_timeout"),
        _ => None,
    }
}

pub(crate) fn outcome_word(outcome: RunOutcome) -> &'static str {
    match outcome {
        RunOutcome::Allow => "allow",
        RunOutcome::Deny => "deny",
        RunOutcome::Ask => "ask",
        RunOutcome::Warn => "warn",
        RunOutcome::Error => "error",
        RunOutcome::Timeout => "timeout",
        RunOutcome::Started => "started",
        RunOutcome::Refused => "refused",
        RunOutcome::Skipped => "skipped",
    }
}

/// Whether the answer denied, and the agent obeys a deny there.
pub(super) fn is_denied(event: &RecordedEvent<'_>) -> bool {
    event.decision == Some(Decision::Deny) && !event.lost.iter().any(|loss| loss.field == "deny")
}

/// Adds the decision of an event, if hooks decided.
pub(crate) fn add_decision(attributes: &mut AttributeList, event: &RecordedEvent<'_>) {
    let Some(decision) = event.decision else {
        return;
    };
    attributes.text(names::DECISION, decision.as_str());
    if let Some(reason) = &event.response.reason {
        attributes.text(names::DECISION_REASON, shortened(reason));
    }
}
