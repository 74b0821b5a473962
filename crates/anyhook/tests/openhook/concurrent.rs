//! Many sessions at once: every consumer hears every event once, and each
//! session in its order.

use std::collections::BTreeSet;
use std::thread;

use anyhook_testkit::{Scratch, wait_until};
use serde_json::{Value, json};

use crate::{call, lines, payload, project, types};

const SESSIONS: usize = 50;

const PYTHON: &str = r#"
import json, os, sys
envelope = json.load(sys.stdin)
line = json.dumps(envelope) + "\n"
file = os.open("python.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
os.write(file, line.encode())
"#;

/// A session that writes a file.
fn session(scratch: &Scratch, id: &str) {
    let path = scratch.project().join(format!("{id}.txt"));
    let write = json!({"file_path": path, "content": "one\ntwo\n"});
    let input =
        json!({"tool_name": "Write", "tool_input": write, "tool_use_id": format!("{id}-1")});
    let mut output = input.clone();
    output["tool_response"] = json!({"type": "create"});
    let events = [
        ("SessionStart", json!({"source": "startup"})),
        ("UserPromptSubmit", json!({"prompt": "write it"})),
        ("PreToolUse", input),
        ("PostToolUse", output),
        ("SessionEnd", json!({"reason": "exit"})),
    ];
    for (event, more) in events {
        if event == "PostToolUse" {
            std::fs::write(&path, "one\ntwo\n").unwrap();
        }
        let ran = call(scratch, &payload(scratch, id, event, more));
        assert_eq!(ran.exit, Some(0), "{ran:?}");
    }
}

const TOLD: [&str; 6] = [
    "session.start",
    "prompt.submit",
    "tool.start",
    "tool.end",
    "file.write",
    "session.end",
];

#[test]
fn fifty_sessions_at_once_and_each_in_its_order() {
    let scratch = project(&json!([
        {"command": "cat >> shell.jsonl"},
        {"command": "python3 ./listen.py", "events": ["*"]},
        {"command": "cat >> detached.jsonl", "async": true},
    ]));
    scratch.file("listen.py", PYTHON).unwrap();
    // It was consented to before there was a script to see.
    crate::trust(&scratch);
    thread::scope(|scope| {
        for number in 0..SESSIONS {
            let scratch = &scratch;
            scope.spawn(move || session(scratch, &format!("session-{number}")));
        }
    });
    let all = SESSIONS * TOLD.len();
    wait_until("the end of detached consumers", || {
        lines(&scratch, "detached.jsonl").len() >= all
    });
    let heard = |file: &str| -> Vec<Value> { lines(&scratch, file) };
    let shell = heard("shell.jsonl");
    for file in ["shell.jsonl", "python.jsonl", "detached.jsonl"] {
        let envelopes = heard(file);
        let ids: BTreeSet<&str> = envelopes
            .iter()
            .map(|envelope| envelope["id"].as_str().unwrap())
            .collect();
        assert_eq!((envelopes.len(), ids.len()), (all, all), "{file}");
        for number in 0..SESSIONS {
            let of = |envelopes: &[Value]| -> Vec<Value> {
                let mut one = envelopes.to_vec();
                one.retain(|envelope| envelope["session_id"] == format!("session-{number}"));
                one
            };
            let session = of(&envelopes);
            assert_eq!(types(&session), TOLD, "{file} {number}");
            assert_eq!(session, of(&shell), "{file} {number}");
            assert_eq!(
                session[3]["data"]["tool_call_id"],
                session[2]["data"]["tool_call_id"]
            );
            assert!(session[3]["data"]["duration_ms"].is_u64());
            assert_eq!(session[4]["data"]["operation"], "create");
            assert_eq!(session[4]["data"]["end_line"], 2);
        }
    }
}
