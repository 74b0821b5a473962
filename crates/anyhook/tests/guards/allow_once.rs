//! `anyhook allow-once`: one call, once, by the user, and recorded.

use std::fs;

use anyhook_model::{RecordKind, WithoutEffect};
use anyhook_testkit::{ProcessOutput, Scratch};
use serde_json::{Value, json};

use crate::support::{
    anyhook, call, decision, decision_of, journal, manifest, payload, project, run, trust,
};

const HOOK: &str = "name: no\nhandler: {type: command, command: ./no.sh}";

/// A project whose hook denies `rm`, and whose user lets `allow-once` run without
/// a terminal.
fn guarded() -> Scratch {
    let scratch = project(&[HOOK]);
    scratch
        .exec(
            "no.sh",
            "#!/bin/sh\ngrep -q '\"rm' && { echo no >&2; exit 2; }\nexit 0\n",
        )
        .unwrap();
    trust(&scratch);
    let settings = scratch.config().join("config.yaml");
    scratch
        .file(settings, "allow_agent_changes: true\n")
        .unwrap();
    scratch
}

/// The id of the last call that was denied.
fn denied_id(scratch: &Scratch) -> String {
    let denied = journal(scratch).into_iter().rev();
    let mut denied = denied.filter(|record| record.decision.is_some());
    denied.next().unwrap().id
}

fn allow(scratch: &Scratch, id: &str) -> ProcessOutput {
    run(scratch, &["allow-once", id])
}

#[test]
fn a_denied_call_passes_once_and_both_are_recorded() {
    let scratch = guarded();
    assert_eq!(decision(&scratch, "rm -rf x").as_deref(), Some("deny"));
    let id = denied_id(&scratch);
    let output = allow(&scratch, id.get(id.len() - 8..).unwrap());
    assert_eq!(output.exit, Some(0), "{output:?}");
    assert!(output.stdout.contains("rm -rf x"), "{output:?}");
    // Another call does not pass by it.
    assert_eq!(decision(&scratch, "rm -rf y").as_deref(), Some("deny"));
    // The model may describe the same call in other words.
    let mut again = payload(&scratch, "rm -rf x");
    again["tool_input"]["description"] = json!("again");
    again["tool_use_id"] = json!("another");
    assert_eq!(decision_of(&call(&scratch, &again)), None);
    assert_eq!(decision(&scratch, "rm -rf x").as_deref(), Some("deny"));
    let records = journal(&scratch);
    let granted: Vec<_> = records
        .iter()
        .filter(|record| record.kind == RecordKind::AllowedOnce)
        .collect();
    assert_eq!(granted.len(), 1);
    assert_eq!(granted[0].extra["allows"], id);
    let passed: Vec<_> = records
        .iter()
        .filter(|record| record.kind == RecordKind::Event && record.extra.contains_key("allows"))
        .collect();
    assert_eq!(passed.len(), 1);
    assert_eq!(passed[0].extra["allows"], id);
    assert_eq!(passed[0].decision, None);
    assert_eq!(
        passed[0].hooks[0].without_effect,
        Some(WithoutEffect::AllowedOnce)
    );
    let log = run(&scratch, &["log", &passed[0].id]).stdout;
    assert!(log.contains("allowed once by the user"), "{log}");
    let log = run(&scratch, &["log"]).stdout;
    assert!(log.contains("allowed"), "{log}");
}

#[test]
fn the_model_is_not_told_how_to_pass() {
    let scratch = guarded();
    let output = call(&scratch, &payload(&scratch, "rm x"));
    assert!(!format!("{output:?}").contains("allow"), "{output:?}");
}

type Change = fn(&mut Value, Value);

/// Changes of the call, the session and the folder: what passes by the exception.
#[test]
fn an_exception_is_for_one_call_in_its_session_and_folder() {
    let elsewhere = |scratch: &Scratch| {
        let other = scratch.root().join("other");
        fs::create_dir_all(other.join(".git")).unwrap();
        fs::create_dir_all(other.join(".anyhook")).unwrap();
        fs::copy(scratch.project().join("no.sh"), other.join("no.sh")).unwrap();
        fs::write(other.join(".anyhook/hooks.yaml"), manifest(&[HOOK])).unwrap();
        let trusted = anyhook(scratch)
            .dir(&other)
            .run(["trust", "--yes"], "")
            .unwrap();
        assert_eq!(trusted.exit, Some(0), "{trusted:?}");
        json!(other)
    };
    let changes: [(&str, Change, bool); 11] = [
        ("nothing", |_, _| {}, true),
        ("session", |call, _| call["session_id"] = json!("t"), false),
        ("folder", |call, other| call["cwd"] = other, false),
        (
            // A client that does not name the session: the folder is the same.
            "no session",
            |call, _| {
                call.as_object_mut().unwrap().remove("session_id");
            },
            true,
        ),
        (
            "session and folder",
            |call, other| {
                call["session_id"] = json!("t");
                call["cwd"] = other;
            },
            false,
        ),
        (
            "command",
            |call, _| call["tool_input"]["command"] = json!("rm x y"),
            false,
        ),
        (
            "more input",
            |call, _| call["tool_input"]["run_in_background"] = json!(true),
            false,
        ),
        // What only the agent knows of may change what runs as well.
        (
            "the agent's own field",
            |call, _| call["sandbox"] = json!(false),
            false,
        ),
        (
            "the agent's own field, further inside",
            |call, _| call["context"] = json!({"server": {"url": "https://x"}, "turn_id": "1"}),
            false,
        ),
        (
            "another attempt",
            |call, _| {
                call["tool_use_id"] = json!("another");
                call["prompt_id"] = json!("another");
                call["turnId"] = json!(2);
                call["message"] = json!({"id": "m", "time": {"created": 1}});
                call["agent_message"] = json!("I try again");
            },
            true,
        ),
        (
            "an id in the input",
            |call, _| call["tool_input"]["id"] = json!(2),
            false,
        ),
    ];
    for (name, change, passes) in changes {
        let scratch = guarded();
        let other = elsewhere(&scratch);
        assert_eq!(decision(&scratch, "rm x").as_deref(), Some("deny"));
        assert_eq!(allow(&scratch, &denied_id(&scratch)).exit, Some(0));
        let mut again = payload(&scratch, "rm x");
        change(&mut again, other);
        let denied = decision_of(&call(&scratch, &again)).is_some();
        assert_eq!(!denied, passes, "{name}");
    }
}

/// A description is wording for a shell command, and may be all that counts for a tool
/// that anyhook does not know.
#[test]
fn every_member_counts_in_the_input_of_an_unknown_tool() {
    for (tool, passes) in [("Bash", true), ("mcp__issues__create", false)] {
        let scratch = guarded();
        let mut payload = payload(&scratch, "rm x");
        payload["tool_name"] = json!(tool);
        payload["tool_input"]["description"] = json!("one");
        assert_eq!(
            decision_of(&call(&scratch, &payload)).as_deref(),
            Some("deny"),
            "{tool}"
        );
        assert_eq!(allow(&scratch, &denied_id(&scratch)).exit, Some(0));
        payload["tool_input"]["description"] = json!("two");
        let denied = decision_of(&call(&scratch, &payload)).is_some();
        assert_eq!(!denied, passes, "{tool}");
    }
}

#[test]
fn of_equal_calls_at_the_same_time_exactly_one_passes() {
    for _ in 0..5 {
        let scratch = guarded();
        assert_eq!(decision(&scratch, "rm x").as_deref(), Some("deny"));
        assert_eq!(allow(&scratch, &denied_id(&scratch)).exit, Some(0));
        let told: Vec<Option<String>> = std::thread::scope(|scope| {
            let calls = (0..6).map(|n| {
                let scratch = &scratch;
                scope.spawn(move || {
                    let mut payload = payload(scratch, "rm x");
                    payload["tool_use_id"] = json!(format!("call {n}"));
                    decision_of(&call(scratch, &payload))
                })
            });
            let calls: Vec<_> = calls.collect();
            calls.into_iter().map(|call| call.join().unwrap()).collect()
        });
        let passed = told.iter().filter(|decision| decision.is_none()).count();
        assert_eq!(passed, 1, "{told:?}");
    }
}

#[test]
fn exceptions_expire_and_forged_ones_do_not_count() {
    let scratch = guarded();
    assert_eq!(decision(&scratch, "rm x").as_deref(), Some("deny"));
    assert_eq!(allow(&scratch, &denied_id(&scratch)).exit, Some(0));
    let file = scratch.state().join("allowed-once.json");
    let genuine = fs::read_to_string(&file).unwrap();
    let exceptions: Value = serde_json::from_str(&genuine).unwrap();
    let expires = exceptions[0]["expires"].as_u64().unwrap();
    let with = |key: &str, value: Value| {
        let mut changed = exceptions.clone();
        changed[0][key] = value;
        changed.to_string()
    };
    for forged in [
        with("expires", json!(expires - 3_600_000)),
        with("expires", json!(expires + 3_600_000)),
        with("mac", json!("")),
        with("record", json!("another")),
        with("session", json!("another")),
        exceptions[0].to_string(),
        "[]".to_owned(),
        "[{".to_owned(),
        String::new(),
        "x".repeat(200_000),
    ] {
        fs::write(&file, &forged).unwrap();
        let told = decision(&scratch, "rm x");
        assert_eq!(told.as_deref(), Some("deny"), "{forged:.80}");
    }
    // A copy of the whole state folder has another key.
    let copy = Scratch::new().unwrap();
    fs::write(&file, &genuine).unwrap();
    for name in ["allowed-once.json", "cache.key"] {
        fs::copy(scratch.state().join(name), copy.state().join(name)).unwrap();
    }
    let binary = anyhook(&scratch).env("ANYHOOK_STATE_DIR", copy.state());
    let payload = payload(&scratch, "rm x").to_string();
    let binary = binary.env("ANYHOOK_TRUST", "all");
    let output = binary
        .run(["run", "--agent", "claude-code"], &payload)
        .unwrap();
    assert_eq!(decision_of(&output).as_deref(), Some("deny"));
    assert_eq!(decision(&scratch, "rm x"), None, "the genuine one counts");
}

#[test]
fn only_a_denied_call_can_be_let_through() {
    let scratch = guarded();
    assert_eq!(decision(&scratch, "ls"), None);
    let allowed = journal(&scratch).remove(0).id;
    let output = allow(&scratch, &allowed);
    assert_eq!(output.exit, Some(1));
    assert!(output.stderr.contains("was not denied"), "{output:?}");
    let output = allow(&scratch, "no-such-id");
    assert_eq!(output.exit, Some(1));
    // A hook that failed has not decided.
    let scratch = project(&["on_failure: block\nhandler: {type: command, command: exit 9}"]);
    let settings = scratch.config().join("config.yaml");
    scratch
        .file(settings, "allow_agent_changes: true\n")
        .unwrap();
    assert_eq!(decision(&scratch, "rm x").as_deref(), Some("deny"));
    let output = allow(&scratch, &denied_id(&scratch));
    assert_eq!(output.exit, Some(1), "{output:?}");
    assert!(!scratch.state().join("allowed-once.json").exists());
}

/// Who may use it: by terminal, environment and settings.
#[test]
fn without_a_terminal_nobody_lets_a_call_through() {
    let scratch = guarded();
    assert_eq!(decision(&scratch, "rm x").as_deref(), Some("deny"));
    let id = denied_id(&scratch);
    fs::remove_file(scratch.config().join("config.yaml")).unwrap();
    let markers: Vec<String> = anyhook_agents::matrix::clients()
        .flat_map(|adapter| &adapter.spec.detect.shell_env)
        .map(ToString::to_string)
        .collect();
    assert!(markers.len() > 5, "{markers:?}");
    for marker in markers.iter().map(String::as_str).chain([""]) {
        let mut binary = anyhook(&scratch);
        if !marker.is_empty() {
            let (name, value) = marker.split_once('=').unwrap_or((marker, "1"));
            binary = binary.env(name, value);
        }
        let output = binary.run(["allow-once", &id], "").unwrap();
        assert_eq!(output.exit, Some(1), "{marker}: {output:?}");
        assert!(
            output.stderr.contains("only the user"),
            "{marker}: {output:?}"
        );
        assert!(!output.stderr.contains("allow_agent_changes"), "{output:?}");
        assert_eq!(
            decision(&scratch, "rm x").as_deref(),
            Some("deny"),
            "{marker}"
        );
    }
    assert!(!scratch.state().join("allowed-once.json").exists());
}

/// `allow_once` of the managed policy, the scope of the hook, and whether the call
/// passes.
#[test]
fn the_managed_policy_decides_whose_denials_have_exceptions() {
    for (policy, managed_hook, passes) in [
        ("{}", false, true),
        (r#"{"allow_once": true}"#, false, true),
        (r#"{"allow_once": false}"#, false, false),
        ("{", false, false),
        ("{}", true, false),
        (r#"{"allow_once": false}"#, true, false),
        (r#"{"allow_once": true}"#, true, true),
    ] {
        let scratch = guarded();
        if managed_hook {
            let folder = scratch.managed();
            scratch
                .file(folder.join("hooks.yaml"), &manifest(&[HOOK]))
                .unwrap();
            scratch
                .exec(
                    folder.join("no.sh"),
                    "#!/bin/sh\ngrep -q '\"rm' && exit 2\nexit 0\n",
                )
                .unwrap();
        }
        assert_eq!(decision(&scratch, "rm x").as_deref(), Some("deny"));
        let id = denied_id(&scratch);
        // Granted before the policy came: the dispatcher decides by itself.
        let file = scratch.state().join("allowed-once.json");
        if !managed_hook {
            assert_eq!(allow(&scratch, &id).exit, Some(0));
        }
        scratch
            .file(scratch.managed().join("policy.json"), policy)
            .unwrap();
        if passes || managed_hook {
            let output = allow(&scratch, &id);
            assert_eq!(output.exit == Some(0), passes, "{policy}: {output:?}");
        }
        let told = decision(&scratch, "rm x");
        assert_eq!(told.is_none(), passes, "{policy} {managed_hook}: {told:?}");
        assert!(passes || managed_hook || file.exists());
    }
}
