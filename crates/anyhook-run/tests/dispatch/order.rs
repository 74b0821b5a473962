//! Which hooks run, in which order, and how their responses merge.

use anyhook_model::RunOutcome;
use anyhook_testkit::wait_until;
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
            hook(
                "guard",
                BEFORE,
                "sleep 60; touch guard-ran",
                "blocking: true",
            ),
            hook("observer", BEFORE, "sleep 0.5; touch observer-ran", ""),
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
    // Hooks that rewrite run first, so the guard sees what will run.
    let expected = [json!({"command": "ls -l", "timeout_ms": 5})];
    assert_eq!(seen_inputs(&scratch), expected);
}

/// The inputs of the events in the file `seen`, one in a line.
fn seen_inputs(scratch: &DispatchScratch) -> Vec<serde_json::Value> {
    let seen = scratch.read("project/seen");
    let lines = seen.lines().filter(|line| !line.is_empty());
    let input = |line: &str| {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        event["data"]["tool_input"].clone()
    };
    lines.map(input).collect()
}

/// Rewrites the command without a word of it in the script.
const UNANNOUNCED: &str = r#"w=updated; echo "{\"${w}_input\":{\"command\":\"ls -l\"}}""#;

#[test]
fn a_guard_is_asked_again_about_an_unannounced_rewrite() {
    let guard = "cat >>seen; echo >>seen; grep -q 'ls -l' seen && exit 2; exit 0";
    for sequential in [false, true] {
        for guard_is_first in [true, false] {
            let scratch = DispatchScratch::new();
            let mut hooks = [
                hook("guard", BEFORE, guard, "blocking: true"),
                hook("rewriter", BEFORE, UNANNOUNCED, ""),
            ];
            if !guard_is_first {
                hooks.reverse();
            }
            let start = if sequential { "sequential: true\n" } else { "" };
            scratch.manifest_with(start, &hooks.concat());
            let output = scratch.call();
            let case = format!("sequential {sequential}, guard first {guard_is_first}");
            assert_eq!(output.response()["decision"], "deny", "{case}");
            let mut expected = vec![json!({"command": "ls"}), json!({"command": "ls -l"})];
            if sequential && !guard_is_first {
                expected.remove(0);
            }
            assert_eq!(seen_inputs(&scratch), expected, "{case}");
        }
    }
}

#[test]
fn of_two_unannounced_rewrites_the_guards_judge_the_result() {
    let rewrite = |command: &str| UNANNOUNCED.replace("ls -l", command);
    let scratch = DispatchScratch::new();
    scratch.manifest(
        &[
            hook("guard", BEFORE, "cat >>seen; echo >>seen", "blocking: true"),
            hook("one", BEFORE, &format!("sleep 0.3; {}", rewrite("one")), ""),
            hook("two", BEFORE, &rewrite("two"), ""),
        ]
        .concat(),
    );
    let output = scratch.call();
    let (first, last) = (json!({"command": "ls"}), json!({"command": "two"}));
    assert_eq!(output.response()["updated_input"], last);
    assert_eq!(seen_inputs(&scratch), [first, last]);
}

/// Each waits for the other: one after another they would time out.
#[test]
fn hooks_run_side_by_side_and_are_merged_in_order() {
    let meet = |own: &str, other: &str| {
        format!(
            "touch {own}; while [ ! -e {other} ]; do sleep 0.02; done; echo '{{\"context\":\"{own}\"}}'"
        )
    };
    let scratch = DispatchScratch::new();
    let more = "blocking: true\nhandler.timeout: 20\nhandler.timeout_action: block";
    scratch.write(
        "config/hooks.yaml",
        &manifest(&hook("user", BEFORE, &meet("a", "c"), more)),
    );
    scratch.manifest(
        &[
            hook(
                "first",
                BEFORE,
                &format!("sleep 0.3; {}", meet("b", "a")),
                more,
            ),
            hook("guard", BEFORE, "anyhook guard git", more),
            hook("second", BEFORE, &meet("c", "b"), more),
        ]
        .concat(),
    );
    let output = scratch.call();
    let expected = json!({"context": "a\nb\nc"});
    assert_eq!(output.response(), expected);
    let runs = &scratch.journal()[0].hooks;
    let names: Vec<&str> = runs.iter().map(|run| run.hook.as_str()).collect();
    assert_eq!(names, ["user", "first", "guard", "second"]);
}

#[test]
fn a_sequential_manifest_runs_its_hooks_one_after_another() {
    let hooks = three_hooks_that_log();
    let sequential = manifest(&hooks).replace("hooks:\n", "sequential: true\nhooks:\n");
    run_in_their_order(&sequential);
}

#[test]
fn the_hooks_of_version_0_1_run_in_their_order() {
    let hooks = three_hooks_that_log();
    run_in_their_order(&manifest(&hooks).replace("hooks/1.0", "hooks/0.1"));
}

fn three_hooks_that_log() -> String {
    let log = |word: &str, pause: &str| {
        let command = format!("echo {word} >>log; sleep {pause}; echo {word} end >>log");
        hook(word, BEFORE, &command, "")
    };
    [log("one", "0.4"), log("two", "0.2"), log("three", "0")].concat()
}

fn run_in_their_order(manifest: &str) {
    let scratch = DispatchScratch::new();
    scratch.write("project/.anyhook/hooks.yaml", manifest);
    // From the file, then from the cache.
    for _ in 0..2 {
        scratch.call();
        assert_eq!(
            scratch.read("project/log"),
            "one\none end\ntwo\ntwo end\nthree\nthree end\n"
        );
        std::fs::remove_file(scratch.project().join("log")).unwrap();
    }
}

#[test]
fn a_deny_of_a_project_does_not_end_the_administrators_guard() {
    for command in ["echo project >&2; exit 2", "anyhook guard filesystem"] {
        let scratch = DispatchScratch::new();
        let deny = "sleep 0.4; echo managed >&2; exit 2";
        scratch.write(
            "managed/hooks.yaml",
            &manifest(&hook("managed", BEFORE, deny, "blocking: true")),
        );
        scratch.manifest(&hook("project", BEFORE, command, "blocking: true"));
        let mut event = scratch.event(BEFORE);
        event["data"]["tool_input"]["command"] = "rm -rf /".into();
        let output = scratch.run(&event);
        let reason = output.response()["reason"].to_string();
        assert!(reason.starts_with("\"managed\\n"), "{output:?}");
        let runs = &scratch.journal()[0].hooks;
        let outcomes: Vec<RunOutcome> = runs.iter().map(|run| run.outcome).collect();
        assert_eq!(outcomes, [RunOutcome::Deny, RunOutcome::Deny]);
    }
}

#[test]
fn a_deny_ends_what_guards_have_started() {
    let scratch = DispatchScratch::new();
    scratch.manifest(
        &[
            hook(
                "slow",
                BEFORE,
                "sleep 60 & echo $! >pid; touch started; wait",
                "blocking: true\non_failure: block",
            ),
            hook(
                "denies",
                BEFORE,
                "while [ ! -e started ]; do sleep 0.02; done; echo because >&2; exit 2",
                "blocking: true",
            ),
        ]
        .concat(),
    );
    let output = scratch.call();
    assert_eq!(output.response()["reason"], "because");
    let runs = &scratch.journal()[0].hooks;
    let outcomes: Vec<RunOutcome> = runs.iter().map(|run| run.outcome).collect();
    assert_eq!(outcomes, [RunOutcome::Skipped, RunOutcome::Deny]);
    let pid = scratch.read("project/pid");
    let process = std::path::Path::new("/proc").join(pid.trim());
    wait_until("the guard's program has ended", || !process.exists());
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
        // A mistake does not let the hook run.
        (
            "managed",
            json!({"capability_restrictions": {"structured_output": "forbid"}}),
            "managed policy: capability_restrictions.structured_output",
        ),
        (
            "managed",
            json!({"allow_managed_only": true, "event_restrictions": {"agent_stop": "never"}}),
            "managed policy: allow_managed_only",
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
