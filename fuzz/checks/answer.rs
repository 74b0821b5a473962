//! Checks that any output of a hook can be read and rendered for every agent.

use anyhook_agents::respond::RenderOptions;
use anyhook_model::HookEvent;
use serde_json::json;

/// The first byte selects the exit code, the first line is stderr, the rest stdout.
pub(crate) fn check(data: &[u8]) {
    let exit = i32::from(data.first().copied().unwrap_or_default() % 4);
    let text = String::from_utf8_lossy(data.get(1..).unwrap_or_default());
    let (stderr, stdout) = text.split_once('\n').unwrap_or(("", &text));
    for adapter in anyhook_agents::all() {
        for native in &adapter.spec.events {
            let mut event = HookEvent {
                source: adapter.spec.id.to_string(),
                event: native.is.as_deref().unwrap_or(&native.native).to_owned(),
                native_event: native.native.to_string(),
                ..HookEvent::default()
            };
            event.data.insert("tool_name".into(), json!("shell"));
            event
                .data
                .insert("tool_input".into(), json!({"command": "ls"}));
            let read = adapter.decode_answer(&event, &native.native, stdout, stderr, exit);
            let _ = adapter.render(&event, &read.response, RenderOptions::default());
        }
    }
}
