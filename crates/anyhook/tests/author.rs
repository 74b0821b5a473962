//! `anyhook explain` and `anyhook test` as an author of hooks uses them.
#![cfg(unix)] // its hooks are shell scripts
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

    for (arguments, stdin, exit, says) in [
        (&["explain"][..], "{", 1, "--agent"),
        (
            &["explain", "--agent", "cursor"],
            "[]",
            1,
            "not a JSON object",
        ),
        (
            &["explain", "--agent", "cursr"],
            "{}",
            2,
            "did you mean `cursor`",
        ),
    ] {
        let ran = anyhook(&scratch, arguments, stdin);
        assert_eq!(ran.exit, Some(exit), "{ran:?}");
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
        "kiro  blocked  PreToolUse",
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

/// Without `ANYHOOK_TRUST`.
fn plain(scratch: &Scratch, arguments: &[&str], stdin: &str) -> ProcessOutput {
    let binary = scratch.command(env!("CARGO_BIN_EXE_anyhook"));
    binary.run(arguments, stdin).unwrap()
}

/// Each way in which a hook fails says what happened to the call and what to write.
#[test]
fn test_says_what_to_do_about_a_hook_that_fails() {
    for (script, fields, says) in [
        (
            "exit 1",
            "blocking: true",
            &[
                "failed open: the tool runs",
                "only exit code 2 denies",
                "on_failure: block",
            ][..],
        ),
        (
            "echo no >&2; exit 2",
            "blocking: false",
            &["`blocking: true`", "no"],
        ),
        (
            "echo debug: $HOME; exit 0",
            "blocking: true",
            &["debug: ", "print debug text to stderr"],
        ),
        (
            "sleep 30",
            "blocking: true",
            &["stopped after 1 s", "timeout_action: block"],
        ),
        (
            "nosuchprogram; exit 0",
            "blocking: true",
            &["allowed", "nosuchprogram: "],
        ),
        (
            "nosuchprogram",
            "blocking: false",
            &["exit code 127", "nosuchprogram: "],
        ),
    ] {
        let scratch = Scratch::new().unwrap();
        scratch
            .exec("hook.sh", &format!("#!/bin/sh\n{script}\n"))
            .unwrap();
        let manifest = format!(
            "spec: hooks/1.0\nhooks:\n- name: one\n  event: before_tool_execute\n  {fields}\n  handler: {{type: command, command: ./hook.sh, timeout: 1}}\n"
        );
        scratch.file(".anyhook/hooks.yaml", &manifest).unwrap();
        let untrusted = plain(&scratch, &["test", "--agent", "claude-code"], "");
        assert_eq!(untrusted.exit, Some(1), "{untrusted:?}");
        assert!(
            untrusted.stdout.is_empty() && untrusted.stderr.contains("anyhook trust"),
            "{untrusted:?}"
        );
        plain(&scratch, &["trust", "--yes"], "");
        let ran = plain(&scratch, &["test", "--agent", "claude-code"], "");
        let is_silent = script.ends_with("exit 0") && !script.contains("debug");
        assert_eq!(ran.exit, Some(i32::from(!is_silent)), "{script}: {ran:?}");
        for part in says {
            assert!(
                ran.stdout.contains(part),
                "{script}: no `{part}` in {}",
                ran.stdout
            );
        }
    }
}

#[test]
fn a_script_with_windows_line_endings_is_named_as_such() {
    let scratch = Scratch::new().unwrap();
    scratch.exec("hook.sh", "#!/bin/sh\r\nexit 0\r\n").unwrap();
    let manifest = "spec: hooks/1.0\nhooks:\n- event: before_tool_execute\n  handler: {type: command, command: ./hook.sh}\n";
    scratch.file(".anyhook/hooks.yaml", manifest).unwrap();
    plain(&scratch, &["trust", "--yes"], "");
    let ran = plain(&scratch, &["test", "--agent", "claude-code"], "");
    assert!(ran.stdout.contains("CRLF"), "{}", ran.stdout);
}

#[test]
fn test_without_a_manifest_or_with_a_broken_one_fails() {
    let scratch = Scratch::new().unwrap();
    let ran = plain(&scratch, &["test"], "");
    assert_eq!(ran.exit, Some(1));
    assert!(ran.stderr.contains("anyhook init"), "{ran:?}");
    scratch
        .file(".anyhook/hooks.yaml", "spec: hooks/1.0\nhooks: {}\n")
        .unwrap();
    for arguments in [&["test"][..], &["test", "--json"], &["list"]] {
        let ran = plain(&scratch, arguments, "");
        assert_eq!(ran.exit, Some(1), "{arguments:?}: {ran:?}");
    }
}

#[test]
fn list_shows_state_agents_and_the_last_run() {
    let scratch = Scratch::new().unwrap();
    let none = plain(&scratch, &["list"], "");
    assert!(none.stdout.contains("anyhook init"), "{none:?}");
    scratch
        .exec("hook.sh", "#!/bin/sh\necho no >&2; exit 2\n")
        .unwrap();
    let manifest = "spec: hooks/1.0\nhooks:\n- name: one\n  event: before_tool_execute\n  matcher: shell\n  blocking: true\n  handler: {type: command, command: ./hook.sh}\n";
    scratch.file(".anyhook/hooks.yaml", manifest).unwrap();
    let list = || {
        let ran = plain(&scratch, &["list", "--json"], "");
        assert_eq!(ran.exit, Some(0), "{ran:?}");
        ran.json().unwrap()[0].clone()
    };
    assert_eq!(list()["state"], "untrusted");
    assert_eq!(list()["agents"], serde_json::json!([]));
    plain(&scratch, &["trust", "--yes"], "");
    anyhook(
        &scratch,
        &[
            "install",
            "--agent",
            "claude-code",
            "--agent",
            "cursor",
            "--yes",
        ],
        "",
    );
    let row = list();
    assert_eq!(
        (&row["state"], &row["last"]),
        (&serde_json::json!("active"), &Value::Null)
    );
    assert_eq!(row["agents"], serde_json::json!(["claude-code", "cursor"]));
    let call = payload(&scratch).to_string();
    plain(&scratch, &["run", "--agent", "claude-code"], &call);
    let row = list();
    assert_eq!(row["last"]["outcome"], "deny", "{row}");
    let text = plain(&scratch, &["list"], "");
    assert!(
        text.stdout.contains("deny") && text.stdout.contains(".anyhook/hooks.yaml"),
        "{}",
        text.stdout
    );
    let narrow = scratch
        .command(env!("CARGO_BIN_EXE_anyhook"))
        .env("COLUMNS", "80")
        .run(["list"], "")
        .unwrap();
    assert!(
        narrow.stdout.lines().all(|line| line.chars().count() <= 80),
        "{}",
        narrow.stdout
    );
}
