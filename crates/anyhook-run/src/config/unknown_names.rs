//! Unknown names of events and tools, and other mistakes that a manifest may have: a hook
//! with one never runs or never blocks, and nothing else would show that.
//!
//! Any agent may have a tool of any name, so of an unknown one it is only certain that
//! it is a mistake if it resembles a known name, or if no tool can be called so.

use anyhook_model::{Hook, Matcher, registry, suggest};

use crate::agent::own::load_own_agents;

/// What is wrong with the names in a hook, in words for its author.
pub fn unknown_names(hook: &Hook) -> Vec<String> {
    let event = registry::event(&hook.event);
    let mut found = Vec::new();
    if event.is_none() && !is_native_event(&hook.event) {
        let known = registry::EVENTS.iter().map(|event| event.name);
        found.push(format!(
            "unknown event `{}`{}",
            hook.event,
            did_you_mean(suggest::nearest(&hook.event, known))
        ));
    }
    // At some events a matcher is about something else than a tool.
    let is_about_tools = event.is_none_or(|event| event.subject.is_none());
    if let Some(matcher) = hook.matcher.as_ref().filter(|_| is_about_tools) {
        add_tools(matcher, &mut found);
    }
    if hook.matcher.as_ref().is_some_and(matches_nothing) {
        found.push("an empty list as its matcher matches nothing".to_owned());
    }
    if hook.blocking && hook.handler.is_async {
        found.push("with `async` it cannot block".to_owned());
    }
    found
}

fn matches_nothing(matcher: &Matcher) -> bool {
    match matcher {
        Matcher::Any(parts) => parts.iter().all(matches_nothing),
        Matcher::Name(_) | Matcher::Pattern { .. } | Matcher::Mcp { .. } => false,
    }
}

fn add_tools(matcher: &Matcher, found: &mut Vec<String>) {
    let name = match matcher {
        Matcher::Any(parts) => return parts.iter().for_each(|part| add_tools(part, found)),
        Matcher::Name(name) => name,
        Matcher::Pattern { .. } | Matcher::Mcp { .. } => return,
    };
    if registry::tool(name).is_some() {
        return;
    }
    let can_be_a_name = name
        .chars()
        .all(|letter| letter.is_alphanumeric() || "_-.:/@".contains(letter));
    let near = suggest::nearest(name, registry::TOOLS.iter().map(|tool| tool.name));
    if (near.is_some() || !can_be_a_name) && !is_native_tool(name) {
        found.push(format!("unknown tool `{name}`{}", did_you_mean(near)));
    }
}

fn did_you_mean(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default()
}

/// Whether an agent calls an event so. Decodes the tables of all agents, so it is asked
/// only about names that are not canonical.
fn is_native_event(name: &str) -> bool {
    load_own_agents();
    let mut agents = anyhook_agents::all();
    agents.any(|agent| agent.event_by_native(name).is_some())
}

fn is_native_tool(name: &str) -> bool {
    load_own_agents();
    let mut agents = anyhook_agents::all();
    agents.any(|agent| agent.tool_by_native(name, None).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn names(event: &str, matcher: Value) -> Vec<String> {
        let hook = json!({"event": event, "matcher": matcher,
            "handler": {"type": "command", "command": "x"}});
        unknown_names(&serde_json::from_value(hook).unwrap())
    }

    #[test]
    fn only_what_can_be_for_nothing_is_reported() {
        let tool_call = "before_tool_execute";
        for (event, matcher) in [
            (tool_call, json!("shell")),
            (tool_call, json!("Bash")),
            (tool_call, json!(["mcp__x__y", "frobnicate"])),
            (tool_call, json!({"pattern": "shel"})),
            (tool_call, json!({"mcp": {"server": "shel"}})),
            ("PreToolUse", Value::Null),
            ("session_start", json!("startup")),
        ] {
            let found = names(event, matcher.clone());
            assert!(found.is_empty(), "{event} {matcher}: {found:?}");
        }
        for (event, matcher, expected) in [
            (
                "before_tool_exec",
                Value::Null,
                "unknown event `before_tool_exec`",
            ),
            ("nonsense", Value::Null, "unknown event `nonsense`"),
            (
                tool_call,
                json!("shel"),
                "unknown tool `shel`; did you mean `shell`?",
            ),
            (
                tool_call,
                json!(["shell", "file_wriet"]),
                "unknown tool `file_wriet`; did you mean `file_write`?",
            ),
            (tool_call, json!("*"), "unknown tool `*`"),
        ] {
            let found = names(event, matcher);
            assert!(
                found.len() == 1 && found[0].starts_with(expected),
                "{found:?}"
            );
        }
    }
}
