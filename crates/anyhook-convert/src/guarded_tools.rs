//! The tools that a hook guards, before and after the conversion. Two matchers
//! may have the same canonical form and still fire for different tools.

use anyhook_agents::Adapter;
use anyhook_agents::spec::MatcherSubject;
use anyhook_model::event::field;
use anyhook_model::{Hook, HookEvent, Matcher, matches, registry};
use serde_json::json;

use crate::ConversionSource;
use crate::fit::FittedHook;
use crate::report::{ConversionWarning, WarningSeverity, file_warning};

/// Warns of tools that a hook matched and the converted one does not, where
/// nothing else does.
pub(crate) fn report_lost_tools(
    source: &ConversionSource,
    adapter: &Adapter,
    variant: Option<&str>,
    fitted: &[FittedHook],
    warnings: &mut Vec<ConversionWarning>,
) {
    for hook in fitted.iter().filter(|hook| !hook.placements.is_empty()) {
        let Some(original) = source.manifest.hooks.get(hook.index) else {
            continue;
        };
        let is_named = warnings.iter().any(|warning| {
            warning.hook == Some(hook.index + 1)
                && warning.severity > WarningSeverity::Info
                && matches!(warning.field.as_str(), "matcher" | "event" | "hook")
        });
        if is_named || registry::event(&original.event).is_none_or(|event| !event.tool) {
            continue;
        }
        let after = converted_kinds(original, adapter, variant, hook);
        let mut lost = source_kinds(source, original);
        lost.retain(|kind| !after.contains(kind) && has_kind(adapter, original, kind));
        if lost.is_empty() {
            continue;
        }
        let severity = if original.blocking {
            WarningSeverity::Critical
        } else {
            WarningSeverity::Warning
        };
        let message = format!(
            "the hook was called for these tools and is not in {}: {}",
            adapter.spec.name,
            lost.join(", ")
        );
        warnings.push(ConversionWarning {
            hook: Some(hook.index + 1),
            name: original.name.clone(),
            ..file_warning(severity, "matcher", message)
        });
    }
}

fn call(event: &str, tool: &str, native: Option<&str>) -> HookEvent {
    let mut call = HookEvent {
        event: event.to_owned(),
        ..HookEvent::default()
    };
    call.data.insert(field::TOOL_NAME.into(), json!(tool));
    if let Some(native) = native {
        call.data
            .insert(field::NATIVE_TOOL_NAME.into(), json!(native));
    }
    call
}

fn add_new(kinds: &mut Vec<String>, more: impl IntoIterator<Item = impl AsRef<str>>) {
    for kind in more {
        if !kinds.iter().any(|known| known == kind.as_ref()) {
            kinds.push(kind.as_ref().to_owned());
        }
    }
}

/// The kinds of tools of an agent that a matcher matches.
fn matched_kinds(adapter: &Adapter, event: &str, matcher: Option<&Matcher>) -> Vec<String> {
    let mut kinds = Vec::new();
    for tool in &adapter.spec.tools {
        let mut names = tool.names();
        if names.any(|name| matches(matcher, &call(event, &tool.is, Some(name)))) {
            add_new(&mut kinds, tool.kinds());
        }
    }
    kinds
}

fn source_kinds(source: &ConversionSource, hook: &Hook) -> Vec<String> {
    let matcher = hook.matcher.as_ref();
    if let Some(agent) = source.agent {
        return matched_kinds(agent, &hook.event, matcher);
    }
    let tools = registry::TOOLS.iter().map(|tool| tool.name.to_owned());
    tools
        .filter(|tool| matches(matcher, &call(&hook.event, tool, None)))
        .collect()
}

fn converted_kinds(
    original: &Hook,
    adapter: &Adapter,
    variant: Option<&str>,
    hook: &FittedHook,
) -> Vec<String> {
    let mut kinds = Vec::new();
    for placement in &hook.placements {
        let event = adapter.event_by_native(&placement.native_event);
        if let Some(event) = event.filter(|event| !event.tools.is_empty()) {
            add_new(&mut kinds, &event.tools);
            continue;
        }
        let is_tested = event.is_none_or(|event| event.matcher == MatcherSubject::Tool);
        let written = placement.matcher.as_ref();
        let written = written.filter(|_| is_tested && placement.matchable);
        let matcher = written.and_then(|text| {
            adapter.read_matcher_as(&adapter.config(variant).matcher, &json!(text))
        });
        let own = matched_kinds(adapter, &original.event, matcher.as_ref());
        add_new(&mut kinds, own);
    }
    kinds
}

/// Whether the target has such tools, at events for them.
fn has_kind(adapter: &Adapter, hook: &Hook, kind: &str) -> bool {
    let mut written = adapter.written_events(&hook.event);
    let mut tools = adapter.spec.tools.iter();
    tools.any(|tool| tool.kinds().any(|own| own == kind))
        && written
            .any(|event| event.tools.is_empty() || event.tools.iter().any(|tool| tool == kind))
}
