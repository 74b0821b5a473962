//! `anyhook explain` and `anyhook test` as an author of hooks uses them.
#![cfg(unix)]
#![cfg(test)]

use anyhook_testkit::reference_model::{self, Action, Answer};
use anyhook_testkit::{ProcessOutput, Scratch};
use serde_json::{Value, json};

const MANIFEST: &str = r#"
spec: hooks/1.0
hooks:
  - name: guard
    event: before_tool_execute
    matcher: shell
    blocking: true
    handler: {type: command, command: "echo ran >>ran; echo not-here >&2; exit 2"}
  - name: other-tool
    event: before_tool_execute
    matcher: web_fetch
    handler: {type: command, command: "true"}
  - name: other-event
    event: session_start
    handler: {type: command, command: "echo '{\"context\": \"house-rules\"}'"}
  - name: refused
    event: before_tool_execute
    handler: {type: command, command: "true", env: {A: b}}
"#;

fn project() -> Scratch {
    let scratch = Scratch::new().unwrap();
    scratch.file(".anyhook/hooks.yaml", MANIFEST).unwrap();
    let policy = scratch.managed().join("policy.json");
    let text = r#"{"capability_restrictions": {"custom_env": "deny"}}"#;
    scratch.file(policy, text).unwrap();
    scratch
}

fn anyhook(scratch: &Scratch, arguments: &[&str], stdin: &str) -> ProcessOutput {
    let binary = scratch.command(env!("CARGO_BIN_EXE_anyhook"));
    binary
        .env("ANYHOOK_TRUST", "all")
        .run(arguments, stdin)
        .unwrap()
}

fn payload(scratch: &Scratch) -> Value {
    json!({"hook_event_name": "PreToolUse", "session_id": "s", "cwd": scratch.project(), "permission_mode": "default",
        "transcript_path": "/home/dev/.claude/t.jsonl", "tool_name": "Bash", "tool_input": {"command": "ls"}})
}

#[test]
fn explain_says_why_of_every_hook_and_runs_none() {
    let scratch = project();
    let text = payload(&scratch).to_string();
    let ran = anyhook(&scratch, &["explain", "--json", "--agent", "claude"], &text);
    let report = ran.json().unwrap();
    assert_eq!(report["agent"], "claude-code");
    assert_eq!(report["event"]["event"], "before_tool_execute");
    assert_eq!(report["event"]["data"]["tool_name"], "shell");
    let lines: Vec<(String, bool, String)> = report["hooks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| {
            let text = |key: &str| line[key].as_str().unwrap().to_owned();
            assert!(text("manifest").ends_with(".anyhook/hooks.yaml"));
            (
                text("hook"),
                line["matches"].as_bool().unwrap(),
                text("why"),
            )
        })
        .collect();
    let expected = [
        ("guard", true, "is `shell`"),
        ("other-tool", false, "is not `web_fetch`"),
        ("other-event", false, "it is for `session_start`"),
        (
            "refused",
            false,
            "managed policy: capability_restrictions.custom_env",
        ),
    ];
    assert_eq!(lines.len(), expected.len());
    for ((hook, matches, why), (name, does, part)) in lines.iter().zip(expected) {
        assert_eq!((hook.as_str(), *matches), (name, does));
        assert!(why.contains(part), "{hook}: {why}");
    }
    assert!(!scratch.project().join("ran").exists());
    assert!(!scratch.state().join("journal").exists());

    let detected = anyhook(&scratch, &["explain"], &text);
    assert!(detected.stdout.starts_with("claude-code ("), "{detected:?}");
}

#[test]
fn explain_of_an_untrusted_project_and_of_a_broken_payload() {
    let scratch = project();
    let binary = scratch.command(env!("CARGO_BIN_EXE_anyhook"));
    let text = payload(&scratch).to_string();
    let ran = binary.run(["explain", "--json"], &text).unwrap();
    assert_eq!(ran.json().unwrap()["hooks"][0]["why"], "not trusted yet");

    for (arguments, stdin, says) in [
        (&["explain"][..], "{", "--agent"),
        (&["explain", "--agent", "cursor"], "[]", "not a JSON object"),
        (
            &["explain", "--agent", "cursr"],
            "{}",
            "did you mean `cursor`",
        ),
    ] {
        let ran = anyhook(&scratch, arguments, stdin);
        assert_eq!(ran.exit, Some(1), "{ran:?}");
        assert!(ran.stderr.contains(says), "{says}: {ran:?}");
    }
}

/// What `test` shows is what the agent does, by the reference model.
#[test]
fn test_shows_what_each_agent_does() {
    let scratch = project();
    let ran = anyhook(&scratch, &["test", "--json"], "");
    // One hook may not run, which an author wants to know.
    assert_eq!(ran.exit, Some(1), "{ran:?}");
    let rows = ran.json().unwrap();
    let rows = rows.as_array().unwrap();
    assert!(rows.len() > 10);
    for row in rows {
        let agent = row["agent"].as_str().unwrap();
        assert_eq!(row["response"]["decision"], "deny", "{row}");
        let answer = Answer {
            exit: row["exit"]
                .as_i64()
                .map(|code| i32::try_from(code).unwrap()),
            stdout: row["stdout"].as_str().unwrap(),
            stderr: row["stderr"].as_str().unwrap(),
        };
        let event = row["native_event"].as_str().unwrap();
        let reaction = reference_model::react(agent, event, &row["payload"], &answer, false);
        assert_eq!(reaction.action, Action::Blocked, "{row} {reaction:?}");
        assert!(!row["effect"].as_str().unwrap().is_empty());
        assert!(row["lost"].is_array());
    }
    let runs = std::fs::read_to_string(scratch.project().join("ran")).unwrap();
    assert_eq!(runs.lines().count(), rows.len(), "each agent asks once");
    assert!(
        !scratch.state().join("journal").exists(),
        "nothing is recorded"
    );
}

#[test]
fn test_of_some_agents_another_event_and_a_given_payload() {
    let scratch = project();
    let arguments = [
        "test",
        "--json",
        "--agent",
        "claude",
        "--agent",
        "windsurf",
        "--event",
        "session_start",
    ];
    let ran = anyhook(&scratch, &arguments, "");
    assert_eq!(ran.exit, Some(0), "{ran:?}");
    let rows = ran.json().unwrap();
    assert_eq!(rows[0]["response"]["context"], "house-rules");
    assert!(rows[0]["stdout"].as_str().unwrap().contains("house-rules"));
    assert_eq!(rows[1]["payload"], Value::Null);
    assert_eq!(rows[1]["lost"][0]["field"], "event");

    let text = payload(&scratch).to_string();
    let given = ["test", "--json", "--payload", "--agent", "cursor"];
    let row = anyhook(&scratch, &given, &text).json().unwrap()[0].clone();
    assert_eq!(row["payload"]["tool_input"]["command"], "ls");
    assert_eq!(row["response"]["decision"], "deny");

    let tool = ["test", "--json", "--agent", "codex", "--tool", "web_fetch"];
    let row = anyhook(&scratch, &tool, "").json().unwrap()[0].clone();
    let ran: Vec<&str> = row["hooks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["hook"].as_str().unwrap())
        .collect();
    assert_eq!(ran, ["other-tool", "refused"]);
}

#[test]
fn text_for_people() {
    let scratch = project();
    let ran = anyhook(
        &scratch,
        &["test", "--agent", "kiro", "--agent", "cursor"],
        "",
    );
    for part in [
        "kiro  PreToolUse",
        "  hook    guard: deny not-here",
        "  stderr  not-here",
        "  exit    2",
        "  AGENT",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let none = anyhook(&scratch, &["test", "--event", "before_compact"], "");
    assert!(
        none.stderr.contains("No hook is for this event"),
        "{none:?}"
    );
    let wrong = anyhook(&scratch, &["test", "--event", "before_tool_exceute"], "");
    assert!(
        wrong.stderr.contains("did you mean `before_tool_execute`"),
        "{wrong:?}"
    );
}
