//! Checks that a cached manifest yields what was stored or nothing, whatever is in
//! its file.

use anyhook_model::{HookEvent, Manifest};
use anyhook_run::config::{cache_content, cached_hooks};
use serde_json::json;

const SECRET: [u8; 32] = [7; 32];

pub(crate) fn check(data: &[u8]) {
    let manifest: Manifest = serde_json::from_value(json!({"spec": "hooks/1.0", "hooks": [
        {"event": "before_tool_execute", "matcher": "shell", "handler": {"type": "command", "command": "a"}},
        {"event": "session_start", "handler": {"type": "command", "command": "b"}},
    ]}))
    .expect("a manifest");
    let event: HookEvent = serde_json::from_value(json!({
        "event": "before_tool_execute", "source": "x", "native_event": "PreToolUse",
        "data": {"tool_name": "shell", "native_tool_name": "Bash"},
    }))
    .expect("an event");
    let content = cache_content(&manifest.hooks, SECRET).expect("a cache");
    let stored = cached_hooks(content.as_bytes(), SECRET, &event).expect("what was stored");
    assert_eq!(stored, manifest.hooks[..1]);
    let is_stored_or_nothing = |content: &[u8]| {
        let found = cached_hooks(content, SECRET, &event);
        assert!(
            found.is_none() || found.as_ref() == Some(&stored),
            "{found:?}"
        );
    };
    is_stored_or_nothing(data);
    // The same in place of a part of what was stored.
    let [at, length, rest @ ..] = data else {
        return;
    };
    let at = usize::from(*at) * content.len() / 256;
    let end = (at + usize::from(*length)).min(content.len());
    let mut changed = content.clone().into_bytes();
    changed.splice(at..end, rest.iter().copied());
    is_stored_or_nothing(&changed);
    // Or with a header that fits.
    let header = content.lines().next().unwrap_or_default();
    is_stored_or_nothing(&[header.as_bytes(), b"\n", data].concat());
}
