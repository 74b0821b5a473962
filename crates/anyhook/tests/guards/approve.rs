//! `approvals.hold` and `anyhook approve`: a call whose agent cannot ask waits for the user.
#![cfg(unix)] // its hook is a shell script

use std::io::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhook_testkit::{ProcessOutput, Scratch};
use serde_json::{Value, json};

use crate::support::{anyhook, journal, manifest, project, run, trust};

const HOOK: &str = "name: careful\nhandler: {type: command, command: ./ask.sh}";
const ASK: &str =
    "#!/bin/sh\ngrep -q '\"rm' && echo '{\"decision\":\"ask\",\"reason\":\"sure?\"}'\nexit 0\n";

/// A project whose hook asks about `rm`, with these settings of its user.
fn asking(settings: &str) -> Scratch {
    let scratch = project(&[HOOK]);
    scratch.exec("ask.sh", ASK).unwrap();
    trust(&scratch);
    let file = scratch.config().join("config.yaml");
    scratch.file(file, settings).unwrap();
    scratch
}

fn held() -> Scratch {
    asking("approvals: {hold: 30}\nallow_agent_changes: true\n")
}

/// Codex cannot ask its user before a tool.
fn payload(scratch: &Scratch, command: &str) -> String {
    json!({
        "session_id": "s", "turn_id": "t", "cwd": scratch.project(),
        "hook_event_name": "PreToolUse", "model": "m", "permission_mode": "default",
        "tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "u",
    })
    .to_string()
}

fn call(scratch: &Scratch, command: &str) -> ProcessOutput {
    let run = ["run", "--agent", "codex"];
    anyhook(scratch)
        .run(run, &payload(scratch, command))
        .unwrap()
}

fn is_denied(output: &ProcessOutput) -> bool {
    let answer: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
    let decision = answer.pointer("/hookSpecificOutput/permissionDecision");
    assert_eq!(output.exit, Some(0), "{output:?}");
    decision == Some(&json!("deny"))
}

/// The questions that are open, as `anyhook approve --json` lists them.
fn questions(scratch: &Scratch) -> Vec<Value> {
    let listed = run(scratch, &["approve", "--json"]).json().unwrap();
    listed.as_array().unwrap().clone()
}

fn first_question(scratch: &Scratch) -> Value {
    let started = Instant::now();
    loop {
        if let Some(question) = questions(scratch).pop() {
            return question;
        }
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "no question appears"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Calls, and answers the question with these arguments of `approve`.
fn call_and_answer(scratch: &Scratch, command: &str, more: &[&str]) -> (ProcessOutput, Value) {
    std::thread::scope(|scope| {
        let called = scope.spawn(|| call(scratch, command));
        let question = first_question(scratch);
        let id = question["id"].as_str().unwrap();
        let mut arguments = vec!["approve", id, "--json"];
        arguments.extend(more);
        let answered = run(scratch, &arguments);
        assert_eq!(answered.exit, Some(0), "{answered:?}");
        assert_eq!(answered.json().unwrap()["effect"], "delivered");
        (called.join().unwrap(), question)
    })
}

#[test]
fn the_answer_decides_about_the_held_call_and_is_recorded() {
    for (more, denied, answer) in [(&[][..], false, "allow"), (&["--deny"], true, "deny")] {
        let scratch = held();
        let (output, question) = call_and_answer(&scratch, "rm -rf x", more);
        assert_eq!(is_denied(&output), denied, "{output:?}");
        assert_eq!(question["detail"], "rm -rf x");
        assert_eq!(question["reason"], "sure?");
        let record = journal(&scratch).pop().unwrap();
        assert_eq!(record.extra["answered"], answer);
        assert_eq!(record.decision.unwrap().as_str(), answer);
        assert_eq!(questions(&scratch), Vec::<Value>::new());
        // The answer was for this call only.
        assert!(!scratch.state().join("allowed-once.json").exists());
    }
}

#[test]
fn without_the_setting_nothing_waits() {
    let scratch = asking("allow_agent_changes: true\n");
    assert!(is_denied(&call(&scratch, "rm -rf x")));
    assert_eq!(questions(&scratch), Vec::<Value>::new());
    assert!(!scratch.state().join("approvals").exists());
    let listed = run(&scratch, &["approve"]);
    assert!(listed.stdout.contains("No call waits"), "{listed:?}");
    assert!(listed.stderr.contains("approvals"), "{listed:?}");
}

#[test]
fn without_an_answer_it_is_denied_and_a_late_one_counts_for_the_next_try() {
    let scratch = asking("approvals: {hold: 0.2}\nallow_agent_changes: true\n");
    assert!(is_denied(&call(&scratch, "rm -rf x")));
    let question = first_question(&scratch);
    assert_eq!(question["seconds_left"], 0);
    let id = question["id"].as_str().unwrap();
    let answered = run(&scratch, &["approve", id, "--json"]);
    assert_eq!(answered.json().unwrap()["effect"], "passes_next_time");
    assert!(is_denied(&call(&scratch, "rm -rf y")), "another call");
    assert!(!is_denied(&call(&scratch, "rm -rf x")));
    assert!(is_denied(&call(&scratch, "rm -rf x")), "only once");
}

#[test]
fn secrets_of_a_question_are_redacted() {
    let scratch = asking("approvals: {hold: 0.1}\n");
    let secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB";
    call(&scratch, &format!("rm -rf x; export GITHUB_TOKEN={secret}"));
    let folder = scratch.state().join("approvals");
    let file = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap();
    let text = std::fs::read_to_string(file.path()).unwrap();
    assert!(
        text.contains("rm -rf x") && !text.contains(secret),
        "{text}"
    );
}

/// A file in the state folder that another program has written.
#[test]
fn a_forged_answer_does_not_count() {
    let scratch = asking("approvals: {hold: 2}\n");
    let output = std::thread::scope(|scope| {
        let called = scope.spawn(|| call(&scratch, "rm -rf x"));
        let question = first_question(&scratch);
        let id = question["id"].as_str().unwrap();
        let answer = scratch
            .state()
            .join("approvals")
            .join(format!("{id}.answer"));
        std::fs::write(answer, r#"{"decision":"allow","mac":""}"#).unwrap();
        called.join().unwrap()
    });
    assert!(is_denied(&output), "{output:?}");
}

#[test]
fn only_the_user_answers() {
    let scratch = asking("approvals: {hold: 0.1}\n");
    call(&scratch, "rm -rf x");
    let question = first_question(&scratch);
    let id = question["id"].as_str().unwrap();
    for marker in ["", "CLAUDECODE"] {
        let mut binary = anyhook(&scratch);
        if !marker.is_empty() {
            binary = binary.env(marker, "1");
        }
        let output = binary.run(["approve", id], "").unwrap();
        assert_eq!(output.exit, Some(1), "{output:?}");
        assert!(output.stderr.contains("only the user"), "{output:?}");
    }
    assert!(is_denied(&call(&scratch, "rm -rf x")));
}

#[test]
fn an_unknown_id_is_an_error() {
    let scratch = held();
    for id in ["nothing", "../../x", ""] {
        let output = run(&scratch, &["approve", id]);
        assert_eq!(output.exit, Some(1), "{id}: {output:?}");
        assert!(output.stderr.contains("open question"), "{output:?}");
    }
}

/// An administrator's hook that asks is not answered by a file that the user's
/// programs can write, unless the managed policy says so.
#[test]
fn a_managed_hook_is_held_only_by_its_policy() {
    for (policy, is_held) in [("{}", false), (r#"{"allow_once": true}"#, true)] {
        let scratch = asking("approvals: {hold: 0.1}\n");
        let folder = scratch.managed();
        let file = folder.join("hooks.yaml");
        scratch.file(file, &manifest(&[HOOK])).unwrap();
        scratch.exec(folder.join("ask.sh"), ASK).unwrap();
        scratch.file(folder.join("policy.json"), policy).unwrap();
        assert!(is_denied(&call(&scratch, "rm -rf x")), "{policy}");
        assert_eq!(questions(&scratch).len(), usize::from(is_held), "{policy}");
    }
}

/// A dispatcher that gets a signal while it waits ends at once.
#[test]
fn a_held_call_that_is_cancelled_ends() {
    let scratch = held();
    let mut child = anyhook(&scratch)
        .spawn(["run", "--agent", "codex"])
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let payload = payload(&scratch, "rm -rf x");
    stdin.write_all(payload.as_bytes()).unwrap();
    drop(stdin);
    first_question(&scratch);
    Command::new("kill")
        .arg(child.id().to_string())
        .status()
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.stdout.is_empty(), "{output:?}");
}

#[test]
fn the_question_shows_what_will_run_in_full() {
    let scratch = held();
    let long = format!("rm {} ; rm -rf /hidden", "a".repeat(3000));
    let (_, question) = call_and_answer(&scratch, &long, &["--deny"]);
    assert_eq!(question["detail"], long);

    let rewriter = "name: rewriter\nhandler: {type: command, command: ./rewrite.sh}";
    let scratch = project(&[rewriter, HOOK]);
    let script = "#!/bin/sh\necho '{\"updated_input\":{\"command\":\"rm -rf build\"}}'\n";
    scratch.exec("rewrite.sh", script).unwrap();
    scratch.exec("ask.sh", ASK).unwrap();
    trust(&scratch);
    let settings = scratch.config().join("config.yaml");
    let text = "approvals: {hold: 30}\nallow_agent_changes: true\n";
    scratch.file(&settings, text).unwrap();
    let (output, question) = call_and_answer(&scratch, "ls -l", &[]);
    assert_eq!(question["detail"], "rm -rf build");
    assert_eq!(question["is_rewritten"], true);
    assert!(!is_denied(&output), "{output:?}");
    assert!(output.stdout.contains("rm -rf build"), "{output:?}");

    // A late answer is not for whatever a hook makes of the call next time.
    let text = "approvals: {hold: 0.2}\nallow_agent_changes: true\n";
    scratch.file(&settings, text).unwrap();
    assert!(is_denied(&call(&scratch, "ls -l")));
    let id = first_question(&scratch)["id"].as_str().unwrap().to_owned();
    let answered = run(&scratch, &["approve", &id, "--json"]);
    assert_eq!(answered.json().unwrap()["effect"], "stays_denied");
    assert!(is_denied(&call(&scratch, "ls -l")));
}
