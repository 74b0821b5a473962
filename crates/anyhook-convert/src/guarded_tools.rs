//! The tools that a hook guards, before and after the conversion. Two matchers
//! may have the same canonical form and still fire for different tools.

use anyhook_agents::matchers::{ANY_SERVER, alternatives};
use anyhook_agents::spec::MatcherSubject;
use anyhook_agents::{Adapter, Placement};
use anyhook_model::event::field;
use anyhook_model::matching::{CompiledMatcher, canonical_mcp_name};
use anyhook_model::{Hook, HookEvent, Matcher, matches, registry};
use serde_json::json;

use crate::ConversionSource;
use crate::fit::FittedHook;
use crate::report::{ConversionWarning, WarningSeverity, file_warning};

/// Warns of tools that a hook matched and the converted one does not, where
/// nothing else says as much: a smaller loss that is reported may hide a larger one.
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
        let severity = if original.blocking {
            WarningSeverity::Critical
        } else {
            WarningSeverity::Warning
        };
        let is_named = warnings.iter().any(|warning| {
            warning.hook == Some(hook.index + 1)
                && warning.severity >= severity
                && matches!(warning.field.as_str(), "matcher" | "event" | "hook")
        });
        if is_named || registry::event(&original.event).is_none_or(|event| !event.tool) {
            continue;
        }
        let after = converted_kinds(original, adapter, variant, hook);
        let mut lost = source_kinds(source, original);
        lost.retain(|kind| !after.contains(kind) && has_kind(adapter, original, kind));
        lost.extend(lost_mcp_tool(source, original, adapter, variant, hook));
        if lost.is_empty() {
            continue;
        }
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
        let matcher = written_matcher(adapter, variant, placement);
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

/// The matcher of an entry as the target reads it; `None` means every tool.
fn written_matcher(
    adapter: &Adapter,
    variant: Option<&str>,
    placement: &Placement,
) -> Option<Matcher> {
    let event = adapter.event_by_native(&placement.native_event);
    let is_tested = event.is_none_or(|event| event.matcher == MatcherSubject::Tool);
    let written = placement.matcher.as_ref();
    let written = written.filter(|_| is_tested && placement.matchable)?;
    adapter.read_matcher_as(&adapter.config(variant).matcher, &json!(written))
}

/// A tool of an MCP server that the hook matched and the converted one does not. Servers
/// and tools are the user's own: what may be meant is tried, with the words of the matcher.
fn lost_mcp_tool(
    source: &ConversionSource,
    original: &Hook,
    adapter: &Adapter,
    variant: Option<&str>,
    hook: &FittedHook,
) -> Option<String> {
    let matcher = original.matcher.as_ref()?;
    let was = CompiledMatcher::new(Some(matcher));
    let mut entries: Vec<CompiledMatcher> = Vec::new();
    for placement in &hook.placements {
        let event = adapter.event_by_native(&placement.native_event);
        match event.filter(|event| !event.tools.is_empty()) {
            Some(event) if event.tools.iter().any(|tool| tool == "mcp") => return None,
            Some(_) => {}
            None => {
                let written = written_matcher(adapter, variant, placement);
                entries.push(CompiledMatcher::new(written.as_ref()));
            }
        }
    }
    let tries = mcp_tools_to_try(matcher).into_iter();
    let mut lost = tries.filter_map(|(server, tool)| {
        let name_in = |agent: &Adapter| agent.mcp_name(&server, &tool);
        let own_name = match source.agent {
            Some(agent) => name_in(agent)?,
            None => canonical_mcp_name(&server, &tool),
        };
        let before = mcp_call(&original.event, &server, &tool, &own_name);
        if !was.matches(&before) {
            return None;
        }
        let there = name_in(adapter)?;
        let after = mcp_call(&original.event, &server, &tool, &there);
        let is_kept = entries.iter().any(|matcher| matcher.matches(&after));
        (!is_kept).then(|| format!("MCP tools such as `{there}`"))
    });
    lost.next()
}

fn mcp_call(event: &str, server: &str, tool: &str, native: &str) -> HookEvent {
    let mut made = call(event, native, Some(native));
    made.data
        .insert(field::MCP.into(), json!({"server": server, "tool": tool}));
    made
}

/// No server and no tool has this name.
const OTHER_NAME: &str = "q7x";

/// Words of a matcher that are tried as names.
const MAX_TRIED_WORDS: usize = 6;

/// Servers and tools that a matcher may mean.
fn mcp_tools_to_try(matcher: &Matcher) -> Vec<(String, String)> {
    let mut words: Vec<String> = Vec::new();
    let mut tools_to_try: Vec<(String, String)> = Vec::new();
    for one in alternatives(matcher) {
        let text = match one {
            Matcher::Pattern { pattern, .. } => pattern,
            Matcher::Name(name) if registry::tool(name).is_none() => name,
            Matcher::Mcp { mcp, .. } => {
                let tool = mcp.tool.as_deref().unwrap_or(OTHER_NAME);
                let server = match mcp.server.as_str() {
                    ANY_SERVER => OTHER_NAME,
                    server => server,
                };
                tools_to_try.push((server.to_owned(), tool.to_owned()));
                continue;
            }
            Matcher::Name(_) | Matcher::Any(_) => continue,
        };
        let is_separator = |letter: char| !letter.is_ascii_alphanumeric();
        let is_end = |letter: char| is_separator(letter) && !"_-".contains(letter);
        let wholes = text.split(is_end).map(|word| word.trim_matches(['_', '-']));
        let parts = text.split(is_separator);
        add_new(
            &mut words,
            parts.chain(wholes).filter(|word| !word.is_empty()),
        );
    }
    if words.is_empty() {
        return tools_to_try;
    }
    words.truncate(MAX_TRIED_WORDS);
    words.push(OTHER_NAME.to_owned());
    let mut tools = words.clone();
    for pair in words.windows(2) {
        tools.push(pair.join("_"));
    }
    for word in &words {
        tools.push(format!("{word}_{OTHER_NAME}"));
        tools.push(format!("{OTHER_NAME}_{word}"));
    }
    for server in &words {
        tools_to_try.extend(tools.iter().map(|tool| (server.clone(), tool.clone())));
    }
    tools_to_try
}
