//! Checks that matching and its explanation agree for any matcher and tool name.

use anyhook_model::matching::{Pattern, canonical_mcp_name};
use anyhook_model::{CompiledMatcher, HookEvent, Matcher};
use serde_json::json;

/// The first line is a pattern, the second a tool's name, the rest a matcher.
pub(crate) fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut parts = text.splitn(3, '\n');
    let pattern = parts.next().unwrap_or_default();
    let tool = parts.next().unwrap_or_default();
    let rest = parts.next().unwrap_or_default();

    let mut event = HookEvent {
        event: "before_tool_execute".into(),
        ..HookEvent::default()
    };
    event.data.insert("tool_name".into(), json!(tool));
    event
        .data
        .insert("mcp".into(), json!({"server": tool, "tool": rest}));

    let compiled = Pattern::new(pattern);
    let matcher = CompiledMatcher::new(Some(&Matcher::pattern(pattern)));
    // A tool without a name may be any tool.
    let mcp_name = canonical_mcp_name(tool, rest);
    let expected = compiled.is_ok_and(|compiled| {
        tool.trim().is_empty() || compiled.is_match(tool) || compiled.is_match(&mcp_name)
    });
    assert_eq!(matcher.matches(&event), expected);

    let other: Matcher =
        serde_json::from_str(rest).unwrap_or_else(|_| Matcher::Name(rest.to_owned()));
    for matcher in [
        Matcher::pattern(pattern),
        Matcher::Name(tool.to_owned()),
        Matcher::mcp(tool, None),
        Matcher::Any(vec![other.clone(), Matcher::pattern(pattern)]),
        other,
    ] {
        let compiled = CompiledMatcher::new(Some(&matcher));
        let verdict = compiled.explain(&event);
        assert_eq!(verdict.matches, compiled.matches(&event), "{matcher:?}");
        assert!(!verdict.why.is_empty());
    }
    assert!(anyhook_model::matches(None, &event));
}
