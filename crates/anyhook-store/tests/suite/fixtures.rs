//! Records and journals for the tests.

use std::io::Write;
use std::path::Path;

use anyhook_model::{Decision, HookEvent, HookResponse, HookRun, Record, RunOutcome};
use anyhook_store::{EventFilter, PageQuery, Store};
use serde_json::{Map, Value, json};

pub(crate) fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

pub(crate) fn record(id: &str, second: u32) -> Record {
    Record {
        v: 1,
        id: id.to_owned(),
        time: format!("2026-03-01T10:{:02}:{:02}.5Z", second / 60, second % 60),
        agent: "claude-code".to_owned(),
        event: HookEvent {
            event: "before_tool_execute".to_owned(),
            source: "claude-code".to_owned(),
            native_event: "PreToolUse".to_owned(),
            session_id: Some("s1".to_owned()),
            cwd: Some("/p".to_owned()),
            data: object(
                json!({"tool_name": "shell", "tool_input": {"command": format!("echo {id}")}}),
            ),
            ..HookEvent::default()
        },
        duration_ms: f64::from(second),
        ..Record::default()
    }
}

pub(crate) fn denied(mut record: Record, reason: &str) -> Record {
    record.decision = Some(Decision::Deny);
    record.response = HookResponse::deny(reason);
    record.hooks = vec![HookRun {
        hook: "guard".to_owned(),
        manifest: "/p/.anyhook/hooks.yaml".to_owned(),
        outcome: RunOutcome::Deny,
        exit: Some(2),
        duration_ms: 3.5,
        message: Some(reason.to_owned()),
        ..HookRun::default()
    }];
    record
}

pub(crate) fn all(store: &dyn Store, filter: EventFilter) -> Vec<String> {
    let query = PageQuery {
        filter,
        limit: 1000,
        ..PageQuery::default()
    };
    let page = store.events(&query).unwrap();
    page.items.into_iter().map(|item| item.id).collect()
}

pub(crate) fn append(dir: &Path, name: &str, text: &str) {
    std::fs::create_dir_all(dir).unwrap();
    let mut file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(dir.join(name))
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

pub(crate) fn line(record: &Record) -> String {
    serde_json::to_string(record).unwrap() + "\n"
}
