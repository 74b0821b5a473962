//! Which hooks run, in which order, and how their responses merge.

use anyhook_model::RunOutcome;
use serde_json::json;

use crate::scratch::{DispatchScratch, hook, manifest};

const BEFORE: &str = "before_tool_execute";

#[test]
fn managed_then_user_then_project() {
    let scratch = DispatchScratch::new();
    let context = |word: &str| format!("echo '{{\"context\":\"{word}\"}}'");
    scratch.write(
        "config/hooks.yaml",
        &manifest(&hook("u", BEFORE, &context("user"), "")),
    );
    scratch.write(
        "managed/hooks.yaml",
        &manifest(&hook("m", BEFORE, &context("managed"), "")),
    );
    scratch.manifest(
        &[
            hook("p1", BEFORE, &context("first"), ""),
            hook("other", "session_start", &context("never"), ""),
            hook("tool", BEFORE, &context("never"), "matcher: web_fetch"),
            hook("p2", BEFORE, &context("second"), "matcher: shell"),
        ]
        .concat(),
    );
    let output = scratch.call();
    assert_eq!(
        output.response(),
        json!({"context": "managed\nuser\nfirst\nsecond"})
    );
}

#[test]
fn a_deny_ends_guards_and_not_observers() {
    let scratch = DispatchScratch::new();
    scratch.manifest(
        &[
            hook(
                "denies",
                BEFORE,
                "echo because >&2; exit 2",
                "blocking: true",
            ),
            hook("guard", BEFORE, "touch guard-ran", "blocking: true"),
            hook("observer", BEFORE, "touch observer-ran", ""),
        ]
        .concat(),
    );
    let output = scratch.call();
    assert_eq!(output.response()["reason"], "because");
    assert!(!scratch.exists("project/guard-ran"));
    assert!(scratch.exists("project/observer-ran"));
    let outcomes: Vec<RunOutcome> = scratch.journal()[0]
        .hooks
        .iter()
        .map(|run| run.outcome)
        .collect();
    assert_eq!(
        outcomes,
        [RunOutcome::Deny, RunOutcome::Skipped, RunOutcome::Allow]
    );
}

#[test]
fn a_rewrite_is_seen_by_the_next() {
    let scratch = DispatchScratch::new();
    scratch.manifest(
        &[
            hook(
                "one",
                BEFORE,
                r#"echo '{"updated_input":{"command":"ls -l"}}'"#,
                "blocking: true",
            ),
            hook("two", BEFORE, "cat >>seen; echo >>seen", "blocking: true"),
            hook(
                "three",
                BEFORE,
                r#"echo '{"updated_input":{"timeout_ms":5}}'"#,
                "",
            ),
        ]
        .concat(),
    );
    let output = scratch.call();
    assert_eq!(
        output.response()["updated_input"],
        json!({"command": "ls -l", "timeout_ms": 5})
    );
    // A guard is asked again about what a later hook has rewritten.
    let seen = scratch.read("project/seen");
    let seen = seen.lines().filter(|line| !line.is_empty()).map(|line| {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        event["data"]["tool_input"].clone()
    });
    let expected = [
        json!({"command": "ls -l"}),
        json!({"command": "ls -l", "timeout_ms": 5}),
    ];
    assert_eq!(seen.collect::<Vec<_>>(), expected);
}

#[test]
fn where_and_with_what_a_hook_runs() {
    let scratch = DispatchScratch::new();
    scratch.write("project/sub/x", "");
    scratch.script(
        "config/own.sh",
        "#!/bin/sh\nprintf '{\"context\":\"%s %s %s %s\"}' \"$(pwd)\" \"$LEVEL\" \"$ANYHOOK_AGENT\" \"$ANYHOOK_MANIFEST_DIR\"\n",
    );
    // The project's file of that name must not run in its place.
    scratch.script("project/own.sh", "#!/bin/sh\nexit 2\n");
    let more = "blocking: true\nhandler.cwd: sub\nhandler.env: {LEVEL: \"3\"}";
    scratch.write(
        "config/hooks.yaml",
        &manifest(&hook("own", BEFORE, "./own.sh", more)),
    );
    let mut event = scratch.event(BEFORE);
    event["cwd"] = json!(scratch.project().join("sub"));
    let expected = format!(
        "{}/sub 3 canonical {}",
        scratch.project().display(),
        scratch.base.join("config").display()
    );
    assert_eq!(scratch.run(&event).response(), json!({"context": expected}));
}

#[test]
fn a_command_for_this_system() {
    let own = if cfg!(target_os = "macos") {
        "osx"
    } else {
        "linux"
    };
    let more = format!("handler.platform: {{{own}: \"echo '{{\\\"context\\\":\\\"own\\\"}}'\"}}");
    let scratch = DispatchScratch::with_hook("exit 2", &more);
    assert_eq!(scratch.call().response(), json!({"context": "own"}));
}

#[test]
fn the_contract_is_a_dialect() {
    let scratch = DispatchScratch::with_hook(
        r#"cat >seen; echo '{"decision":"deny","reason":"no","message":"note","lint_command":"fix"}'"#,
        "blocking: true\nhandler.dialect: contract",
    );
    let output = scratch.call();
    assert_eq!(
        output.response(),
        json!({"decision": "deny", "reason": "no",
            "context": "A hook suggests this command (it was not run): fix",
            "system_message": "note\nA hook suggests this command (it was not run): fix",
            "metadata": {"lint_command": "fix"}})
    );
    let seen: serde_json::Value = serde_json::from_str(&scratch.read("project/seen")).unwrap();
    assert_eq!(
        seen,
        json!({"tool_name": "Shell", "tool_input": {"command": "ls"}})
    );
}

#[test]
fn policies_refuse_and_say_by_which_rule() {
    let cases = [
        (
            "managed",
            json!({"disable_all_hooks": true}),
            "managed policy: disable_all_hooks",
        ),
        (
            "managed",
            json!({"allow_managed_only": true}),
            "managed policy: allow_managed_only",
        ),
        (
            "config",
            json!({"event_restrictions": {BEFORE: "managed_only"}}),
            "user policy: event_restrictions.before_tool_execute",
        ),
        (
            "project/.anyhook",
            json!({"capability_restrictions": {"structured_output": "deny"}}),
            "project policy: capability_restrictions.structured_output",
        ),
        (
            "managed",
            json!({"capability_restrictions": {"input_rewrite": "deny"}}),
            "managed policy: capability_restrictions.input_rewrite",
        ),
    ];
    for (folder, policy, rule) in cases {
        let scratch = DispatchScratch::with_hook("./rewrites.sh", "blocking: true");
        scratch.script(
            "project/rewrites.sh",
            "#!/bin/sh\n# answers with updated_input\ntouch ran\n",
        );
        scratch.write(&format!("{folder}/policy.json"), &policy.to_string());
        scratch.call();
        assert!(!scratch.exists("project/ran"), "{rule}");
        let run = scratch.journal()[0].hooks[0].clone();
        assert_eq!(run.outcome, RunOutcome::Refused);
        assert!(run.message.as_deref().unwrap().contains(rule), "{run:?}");
    }
    // A project's policy rules over its own hooks only.
    let scratch = DispatchScratch::new();
    scratch.write(
        "config/hooks.yaml",
        &manifest(&hook("own", BEFORE, "touch ran", "")),
    );
    scratch.write(
        "project/.anyhook/policy.json",
        r#"{"disable_all_hooks": true}"#,
    );
    scratch.call();
    assert!(scratch.exists("project/ran"));
}

#[test]
fn an_event_delivered_by_two_entries_is_answered_once() {
    let scratch = DispatchScratch::new();
    scratch.manifest(
        &[
            hook(
                "observer",
                "after_tool_execute",
                "echo x >>ran; echo '{\"context\":\"seen\"}'",
                "",
            ),
            hook(
                "guard",
                BEFORE,
                "echo x >>guarded; exit 2",
                "blocking: true",
            ),
        ]
        .concat(),
    );
    let deliver = |event: &serde_json::Value, scope: &str| {
        let arguments = ["--agent", "canonical", "--scope", scope];
        scratch.run_as(&arguments, event.to_string().as_bytes())
    };
    let mut event = scratch.event("after_tool_execute");
    event["data"]["tool_call_id"] = "call".into();
    assert_eq!(deliver(&event, "user").response()["context"], "seen");
    assert_eq!(deliver(&event, "project").response(), json!({}));
    assert_eq!(scratch.read("project/ran"), "x\n");
    assert_eq!(scratch.journal()[1].extra["duplicate"], true);
    event["data"]["tool_call_id"] = "another".into();
    assert_eq!(deliver(&event, "project").response()["context"], "seen");

    event["event"] = BEFORE.into();
    for scope in ["user", "project"] {
        assert!(deliver(&event, scope).is_deny(), "a guard always answers");
    }
    assert_eq!(scratch.read("project/guarded"), "x\n");
    assert!(deliver(&event, "user").is_deny());
    assert_eq!(
        scratch.read("project/guarded"),
        "x\nx\n",
        "the same entry again is a new call"
    );
}

#[test]
fn an_openhook_program_observes() {
    let scratch = DispatchScratch::with_hook(
        r#"cat >seen; echo '{"decision":"deny"}'; exit 2"#,
        "blocking: true\nhandler.dialect: openhook",
    );
    assert!(!scratch.call().is_deny());
    let seen: serde_json::Value = serde_json::from_str(&scratch.read("project/seen")).unwrap();
    assert_eq!(
        (&seen["openhook"], &seen["type"]),
        (&json!("0.1"), &json!("tool.start"))
    );
}
