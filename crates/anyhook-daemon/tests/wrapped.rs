//! The wrapped HTTP form, over a real socket.
//!
//! A case is a file of `tests/wrapped`: the request's body, the hooks' response, the event and
//! payload that the host must get, and the answer, which must match byte for byte.

#![cfg(test)]

mod support;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use anyhook_model::{Answer, HookResponse};
use serde_json::{Value, json};
use support::{Call, Running};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name)
}

fn cases() -> Vec<(String, Value)> {
    let mut paths: Vec<_> = std::fs::read_dir(folder("wrapped"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(paths.len() > 20);
    paths
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            (
                path.display().to_string(),
                serde_json::from_str(&text).unwrap(),
            )
        })
        .collect()
}

fn script(daemon: &Running, case: &Value) {
    daemon.respond(serde_json::from_value(case["hooks"].clone()).unwrap());
    *daemon.host.answer.lock().unwrap() = Answer {
        stdout: case["native_answer"]
            .as_object()
            .map_or(String::new(), |it| json!(it).to_string()),
        ..Answer::default()
    };
}

#[test]
fn wrapped_requests_get_wrapped_answers() {
    let daemon = Running::start();
    for (name, case) in cases() {
        script(&daemon, &case);
        let reply = daemon.post(case["path"].as_str().unwrap(), &case["request"]);
        assert_eq!(reply.status, 200, "{name}: {}", reply.body);
        assert_eq!(reply.headers["content-type"], "application/json");
        assert_eq!(reply.body, case["answer"].to_string(), "{name}");
        assert_eq!(
            reply.headers["x-anyhook-exit-code"],
            case["exit"].to_string(),
            "{name}"
        );
        let recorded = daemon.host.recorded.lock().unwrap().pop().unwrap();
        assert_eq!(recorded.stdout, reply.body, "{name}: recorded as sent");
        assert_eq!(recorded.exit.to_string(), case["exit"].to_string());
        let asked = daemon.host.seen.lock().unwrap().pop().unwrap();
        assert_eq!(
            asked.event.as_deref(),
            case["seen"]["event"].as_str(),
            "{name}"
        );
        assert_eq!(json_of(&asked.payload), case["seen"]["payload"], "{name}");
    }
}

/// The dispatchers of this form print the answer and exit with the documented codes.
#[test]
fn dispatchers_of_the_wrapped_form() {
    let daemon = Running::start();
    let mut codes = Vec::new();
    for (name, case) in cases() {
        script(&daemon, &case);
        let claude = case["path"].as_str().unwrap().contains("claude");
        let program = folder("dispatchers").join(if claude { "claude.py" } else { "gemini.py" });
        let mut child = Command::new("python3")
            .arg(program)
            .arg(case["request"]["hook_type"].as_str().unwrap())
            .env("ANYHOOK_TEST_URL", format!("http://{}", daemon.address))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = case["request"]["input_data"].to_string();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        let done = child.wait_with_output().unwrap();
        let printed: Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!(printed, case["answer"], "{name}");
        let expected = match (claude, &printed["continue"], printed["decision"].as_str()) {
            (true, Value::Bool(false), _) => 1,
            (false, _, Some("deny")) => 2,
            _ => 0,
        };
        assert_eq!(done.status.code(), Some(expected), "{name}");
        codes.push(expected);
    }
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes, [0, 1, 2]);
}

#[test]
fn a_native_payload_gets_the_native_answer_to_the_byte() {
    let daemon = Running::start();
    let stdout = "{ \"hookSpecificOutput\": {\"x\": 1} }\n";
    let stderr = "no:\n\u{1f980} 100%\r\n\u{0}";
    *daemon.host.answer.lock().unwrap() = Answer {
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
        exit: 2,
    };
    let payload = json!({"hook_event_name": "PreToolUse", "session_id": "s"});
    let reply = daemon.post("/hooks/codex?event=PreToolUse", &payload);
    assert_eq!((reply.status, reply.body.as_str()), (200, stdout));
    assert_eq!(reply.headers["x-anyhook-exit-code"], "2");
    assert_eq!(
        reply.headers["x-anyhook-stderr"],
        "no%3A%0A%F0%9F%A6%80%20100%25%0D%0A%00"
    );
    let asked = daemon.host.seen.lock().unwrap().pop().unwrap();
    assert_eq!(
        (asked.agent.as_str(), asked.event.as_deref()),
        ("codex", Some("PreToolUse"))
    );
    assert_eq!(json_of(&asked.payload), payload);

    *daemon.host.answer.lock().unwrap() = Answer {
        stdout: "plain words".to_owned(),
        stderr: "x".repeat(100_000),
        ..Answer::default()
    };
    let reply = daemon.post("/hooks/codex", &payload);
    assert_eq!(reply.headers["content-type"], "text/plain; charset=utf-8");
    assert!(reply.headers["x-anyhook-stderr"].ends_with("x%E2%80%A6"));

    *daemon.host.answer.lock().unwrap() = Answer::default();
    let reply = daemon.post("/hooks/codex", &payload);
    assert_eq!((reply.status, reply.body.as_str()), (200, ""));
    assert!(!reply.headers.contains_key("x-anyhook-stderr"));
}

/// Agents without a wrapped form: the payload is unwrapped, the answer is native.
#[test]
fn any_agent_can_be_called_in_the_wrapped_form() {
    let daemon = Running::start();
    daemon.respond(HookResponse::deny("no"));
    *daemon.host.answer.lock().unwrap() = Answer {
        stdout: "{\"own\":1}".to_owned(),
        ..Answer::default()
    };
    let body = json!({"hook_type": "PreToolUse", "input_data": {"session_id": "s"}});
    let reply = daemon.post("/hooks/codex", &body);
    assert_eq!(reply.body, "{\"own\":1}");
    let asked = daemon.host.seen.lock().unwrap().pop().unwrap();
    assert_eq!(asked.event.as_deref(), Some("PreToolUse"));
    assert_eq!(json_of(&asked.payload), json!({"session_id": "s"}));
}

/// Keys may be written with escapes, values may hold what a strict parser rejects, and a
/// native payload may mention the wrapper's keys.
#[test]
fn a_wrapped_call_is_recognised_by_its_keys() {
    let daemon = Running::start();
    let post = |body: &str| {
        let call = Call::new("POST", "/hooks/claude").body("application/json", body.as_bytes());
        let reply = call.send(daemon.address);
        let seen = daemon.host.seen.lock().unwrap().pop();
        (reply, seen.map(|seen| json_of(&seen.payload)))
    };
    let escaped = r#"{"hook\u005ftype":"stop","input\u005Fdata":{"session_id":"s"}}"#;
    let (reply, payload) = post(escaped);
    assert_eq!(reply.body, r#"{"continue":true}"#);
    assert_eq!(
        payload.unwrap(),
        json!({"session_id": "s", "hook_event_name": "Stop"})
    );
    let native = r#"{"session_id":"s","prompt":"hook_type and input_data \u00fc"}"#;
    assert_eq!(post(native).1.unwrap(), json_of(native.as_bytes()));
    let broken = r#"{"hook_type":"stop","input_data":{"prompt":"\ud800"}}"#;
    let (reply, payload) = post(broken);
    assert_eq!((reply.status, reply.code().as_str()), (400, "json"));
    assert_eq!(payload, None);
}

#[test]
fn a_call_is_decoded_once() {
    let daemon = Running::start();
    let native = json!({"hook_event_name": "PreToolUse", "prompt": "a\nb", "session_id": "s"});
    let wrapped = json!({"hook_type": "pre-tool-use", "input_data": {"session_id": "s"}});
    for body in [native, wrapped] {
        let before = daemon.host.decodes.load(Ordering::SeqCst);
        let call = Call::new("POST", "/hooks/claude").json(&body);
        let reply = call.header("x-anyhook-cwd", "%2Ftmp").send(daemon.address);
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert_eq!(daemon.host.decodes.load(Ordering::SeqCst), before + 1);
        let seen = daemon.host.seen.lock().unwrap().pop().unwrap();
        assert_eq!(seen.cwd.as_deref(), Some("/tmp"));
    }
}

fn json_of(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}
