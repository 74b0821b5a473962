//! Consumers that misbehave, that are not trusted, that may not run.

use anyhook_testkit::{ProcessOutput, Scratch, wait_until};
use serde_json::{Value, json};

use crate::{anyhook, call, lines, listen, payload, project, trust, types};

fn tool(scratch: &Scratch, event: &str) -> Value {
    let mut more = json!({"tool_name": "Bash", "tool_use_id": "call-1",
        "tool_input": {"command": "ls"}});
    if event == "PostToolUse" {
        more["tool_response"] = json!({"stdout": "", "stderr": ""});
    }
    payload(scratch, "s", event, more)
}

fn journal(scratch: &Scratch) -> Vec<Value> {
    anyhook_testkit::whole_lines(&scratch.state().join("journal/events.jsonl")).unwrap()
}

const GUARD: &str = r#"
spec: hooks/1.0
hooks:
  - event: before_tool_execute
    matcher: shell
    blocking: true
    handler: {type: command, command: 'cat >guarded; echo no-way >&2; exit 2'}
  - event: before_prompt
    handler: {type: command, command: 'echo "{\"context\": \"mind the gap\"}"'}
"#;

/// What the agent gets at each event.
fn answers(scratch: &Scratch) -> Vec<ProcessOutput> {
    let start = payload(scratch, "s", "SessionStart", json!({"source": "startup"}));
    let prompt = payload(scratch, "s", "UserPromptSubmit", json!({"prompt": "hi"}));
    let events = [
        start,
        prompt,
        tool(scratch, "PreToolUse"),
        tool(scratch, "PostToolUse"),
    ];
    events.iter().map(|event| call(scratch, event)).collect()
}

#[test]
fn no_consumer_changes_the_answer() {
    let alone = Scratch::new().unwrap();
    alone.file(".anyhook/hooks.yaml", GUARD).unwrap();
    trust(&alone);
    let expected = answers(&alone);
    assert!(expected[1].stdout.contains("mind the gap"), "{expected:?}");
    assert!(
        format!("{:?}", expected[2]).contains("no-way"),
        "{expected:?}"
    );

    let consumers = [
        json!({"command": "sleep 1000", "timeout": 0.2}),
        json!({"command": "trap '' TERM; while :; do sleep 0.05; done", "timeout": 0.2}),
        json!({"command": "kill -9 $$"}),
        json!({"command": "no-such-program-here --at all"}),
        json!({"command": "./not-there.sh"}),
        json!({"command": "echo '{\"decision\":\"deny\"}'; echo loud >&2; exit 2"}),
        json!({"command": "exec <&-; head -c 300000 /dev/zero"}),
        json!({"command": "sleep 1000", "async": true, "timeout": 0.2}),
    ];
    let mut all: Vec<Value> = consumers.to_vec();
    all.push(json!({"command": "cat >> heard.jsonl"}));
    let scratch = project(&json!(all));
    scratch.file(".anyhook/hooks.yaml", GUARD).unwrap();
    trust(&scratch);
    assert_eq!(answers(&scratch), expected);

    // The refused call has not happened, and everybody else was heard.
    let heard = lines(&scratch, "heard.jsonl");
    assert_eq!(
        types(&heard),
        ["session.start", "prompt.submit", "tool.end"]
    );
    wait_until("the record of the detached", || {
        let ends = journal(&scratch);
        ends.iter().filter(|one| one["kind"] == "async_end").count() == 6
    });
    let records = journal(&scratch);
    let end = records
        .iter()
        .find(|record| {
            let runs = record["hooks"].as_array();
            let is_first = record["launched_in"] == records[0]["id"];
            // The one with `async` has a record of its own.
            is_first && record["kind"] == "async_end" && runs.is_some_and(|runs| runs.len() > 1)
        })
        .unwrap();
    let outcomes: Vec<&str> = end["hooks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["outcome"].as_str().unwrap())
        .collect();
    let expected = [
        "timeout", "timeout", "error", "error", "error", "warn", "allow", "allow",
    ];
    assert_eq!(outcomes, expected, "{end:#}");
    assert!(
        end["warnings"][5]
            .as_str()
            .unwrap()
            .contains("exit code 2: loud"),
        "{end:#}"
    );
}

#[test]
fn nothing_runs_before_consent_and_the_user_is_told_once() {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    let text = json!({"openhook": "0.1", "hooks": [{"command": "./listen.sh"}]});
    scratch.file(".openhook.json", &text.to_string()).unwrap();
    scratch
        .exec("listen.sh", "#!/bin/sh\ncat >> heard.jsonl\n")
        .unwrap();
    let prompt = payload(&scratch, "s", "UserPromptSubmit", json!({"prompt": "hi"}));
    let first = call(&scratch, &prompt);
    assert!(
        first.stdout.contains("do not run: not trusted yet"),
        "{first:?}"
    );
    let second = call(&scratch, &prompt);
    assert!(!second.stdout.contains("trusted"), "{second:?}");
    assert!(!scratch.state().join("openhook").exists());

    trust(&scratch);
    call(&scratch, &prompt);
    assert_eq!(lines(&scratch, "heard.jsonl").len(), 1);

    scratch
        .exec("listen.sh", "#!/bin/sh\ncat >> stolen.jsonl\n")
        .unwrap();
    let changed = call(&scratch, &prompt);
    assert!(
        changed.stdout.contains("changed since it was trusted"),
        "{changed:?}"
    );
    assert!(!scratch.project().join("stolen.jsonl").exists());
    let last = journal(&scratch).pop().unwrap();
    assert_eq!(last["hooks"][0]["outcome"], "refused");
}

#[test]
fn a_consumers_script_runs_until_it_changes() {
    for command in [
        "sh hear.sh",
        "sh ./hear.sh",
        "./hear.sh",
        "sh .anyhook/hear.sh",
        "cd .anyhook && sh hear.sh",
    ] {
        let scratch = project(&json!([{ "command": command }]));
        let heard = scratch.root().join("heard");
        let script = format!("#!/bin/sh\ncat >> '{}'\n", heard.display());
        for path in ["hear.sh", ".anyhook/hear.sh"] {
            scratch.exec(path, &script).unwrap();
        }
        trust(&scratch);
        let output = call(&scratch, &tool(&scratch, "PreToolUse"));
        assert!(heard.exists(), "{command}: {output:?}");
        std::fs::remove_file(&heard).unwrap();
        for path in ["hear.sh", ".anyhook/hear.sh"] {
            let changed = format!("{script}echo changed\n");
            scratch.exec(path, &changed).unwrap();
        }
        let output = call(&scratch, &tool(&scratch, "PostToolUse"));
        assert!(!heard.exists(), "{command}");
        let is_reported = output.stdout.contains("changed since it was trusted");
        assert!(is_reported, "{command}: {output:?}");
    }
}

#[test]
fn who_does_not_listen_costs_no_memory() {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    call(&scratch, &tool(&scratch, "PreToolUse"));
    assert!(!scratch.state().join("openhook").exists());
}

#[test]
fn a_broken_file_is_told_and_breaks_nothing() {
    let scratch = Scratch::new().unwrap();
    scratch.file(".openhook.json", "{").unwrap();
    let prompt = payload(&scratch, "s", "UserPromptSubmit", json!({"prompt": "hi"}));
    let ran = call(&scratch, &prompt);
    assert_eq!(ran.exit, Some(0));
    assert!(ran.stdout.contains(".openhook.json"), "{ran:?}");
}

#[test]
fn policies_bind_consumers_as_they_bind_hooks() {
    let scratch = project(&json!([
        {"command": "cat >> heard.jsonl"},
        {"command": "cat >> detached.jsonl", "async": true},
    ]));
    let policy = scratch.managed().join("policy.json");
    let write = |text: &str| std::fs::write(&policy, text).unwrap();
    write(r#"{"capability_restrictions": {"async_execution": "deny"}}"#);
    call(&scratch, &tool(&scratch, "PreToolUse"));
    write(r#"{"disable_all_hooks": true}"#);
    call(&scratch, &tool(&scratch, "PostToolUse"));
    assert_eq!(types(&lines(&scratch, "heard.jsonl")), ["tool.start"]);
    assert!(!scratch.project().join("detached.jsonl").exists());
    let refused = journal(&scratch)
        .iter()
        .flat_map(|record| record["hooks"].as_array().cloned().unwrap_or_default())
        .filter(|run| run["outcome"] == "refused")
        .count();
    assert_eq!(refused, 3);
}

/// A hook of a manifest that speaks OpenHook hears what consumers hear.
#[test]
fn the_dialect_is_the_same_mapping() {
    let scratch = project(&json!([{"command": "cat >> consumer.jsonl"}]));
    let manifest = r"
spec: hooks/1.0
hooks:
  - event: before_tool_execute
    handler: {type: command, command: 'cat >> hook.jsonl', dialect: openhook}
  - event: after_tool_execute
    handler: {type: command, command: 'cat >> hook.jsonl; exit 3', dialect: openhook}
  - event: after_tool_execute
    handler: {type: command, command: 'cat >> detached.jsonl', dialect: openhook, async: true}
";
    scratch.file(".anyhook/hooks.yaml", manifest).unwrap();
    listen(&scratch, &json!([{"command": "cat >> consumer.jsonl"}]));
    let path = scratch.project().join("new.txt");
    let mut more = json!({"tool_name": "Write", "tool_use_id": "c",
        "tool_input": {"file_path": path, "content": "one\n"}});
    call(
        &scratch,
        &payload(&scratch, "s", "PreToolUse", more.clone()),
    );
    std::fs::write(&path, "one\n").unwrap();
    more["tool_response"] = json!({"type": "create"});
    let ran = call(&scratch, &payload(&scratch, "s", "PostToolUse", more));
    assert_eq!(ran.exit, Some(0), "{ran:?}");
    let heard = lines(&scratch, "consumer.jsonl");
    assert_eq!(types(&heard), ["tool.start", "tool.end", "file.write"]);
    assert_eq!(lines(&scratch, "hook.jsonl"), heard);
    wait_until("the detached hook", || {
        lines(&scratch, "detached.jsonl") == heard[1..]
    });
}

/// An agent that is installed twice calls twice and is told once; ids tell that
/// a call which is not recognized is one event.
#[test]
fn a_second_delivery_is_told_once_or_has_the_same_id() {
    let scratch = project(&json!([{"command": "cat >> heard.jsonl"}]));
    let project_entry = ["run", "--agent", "claude-code", "--scope", "project"];
    let start = tool(&scratch, "PreToolUse");
    call(&scratch, &start);
    anyhook(&scratch, &project_entry, &start.to_string());
    assert_eq!(lines(&scratch, "heard.jsonl").len(), 1);
    // The same entry again may be a new call.
    call(&scratch, &start);
    let heard = lines(&scratch, "heard.jsonl");
    assert_eq!(heard.len(), 2);
    assert_eq!(heard[0]["id"], heard[1]["id"]);
    let end = tool(&scratch, "PostToolUse");
    call(&scratch, &end);
    anyhook(&scratch, &project_entry, &end.to_string());
    assert_eq!(lines(&scratch, "heard.jsonl").len(), 3);
}

#[test]
fn the_nearest_file_counts_from_the_events_folder() {
    let scratch = project(&json!([{"command": "cat >> heard.jsonl"}]));
    std::fs::create_dir_all(scratch.project().join("a/b")).unwrap();
    let mut start = tool(&scratch, "PreToolUse");
    start["cwd"] = scratch.project().join("a/b").to_str().unwrap().into();
    let binary = scratch.command(env!("CARGO_BIN_EXE_anyhook"));
    let elsewhere = binary.dir(scratch.home());
    let ran = elsewhere.run(["run", "--agent", "claude-code"], &start.to_string());
    assert_eq!(ran.unwrap().exit, Some(0));
    assert_eq!(types(&lines(&scratch, "heard.jsonl")), ["tool.start"]);
    let told = anyhook(&scratch, &["openhook", "check", "heard.jsonl"], "");
    assert!(
        told.stdout.contains("tool-start-without-end: 1"),
        "{told:?}"
    );
}

/// Where the agent does not obey a refusal, the event happens, and consumers get it.
#[test]
fn a_refusal_that_the_agent_ignores_is_told() {
    let scratch = project(&json!([{"command": "cat >> heard.jsonl"}]));
    let manifest = "spec: hooks/1.0\nhooks:\n  - event: before_prompt\n    blocking: true\n    \
                    handler: {type: command, command: 'echo no >&2; exit 2'}\n";
    scratch.file(".anyhook/hooks.yaml", manifest).unwrap();
    trust(&scratch);
    call(
        &scratch,
        &payload(&scratch, "s", "UserPromptSubmit", json!({"prompt": "hi"})),
    );
    assert_eq!(lines(&scratch, "heard.jsonl"), Vec::<Value>::new());
    let auggie = json!({"hook_event_name": "PromptSubmit", "conversation_id": "c",
        "workspace_roots": [scratch.project()], "user_prompt": "do it"});
    let arguments = ["run", "--agent", "auggie"];
    anyhook(&scratch, &arguments, &auggie.to_string());
    let heard = lines(&scratch, "heard.jsonl");
    assert_eq!(types(&heard), ["prompt.submit"]);
    assert_eq!(heard[0]["source"], "auggie");
}
