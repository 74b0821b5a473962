//! `mode: observe`: what a hook would have done is recorded and not done.

use anyhook_model::{RunOutcome, WithoutEffect};

use crate::support::{DENIED, decision, journal, project, run, trust};

/// Ways to object: the hook's handler, the script, and the outcome.
const OBJECTIONS: [(&str, &str, RunOutcome, &str); 5] = [
    (
        "./hook.sh",
        "echo no >&2; exit 2",
        RunOutcome::Deny,
        "would deny",
    ),
    (
        "./hook.sh",
        "echo '{\"decision\": \"deny\", \"reason\": \"no\"}'",
        RunOutcome::Deny,
        "would deny",
    ),
    (
        "./hook.sh",
        "echo '{\"decision\": \"ask\", \"reason\": \"no\"}'",
        RunOutcome::Ask,
        "would ask",
    ),
    (
        "./hook.sh",
        "exit 7",
        RunOutcome::Error,
        "error, only observed",
    ),
    ("anyhook guard git", "", RunOutcome::Deny, "would deny"),
];

#[test]
fn an_observed_objection_is_recorded_and_has_no_effect() {
    for (command, script, outcome, shown) in OBJECTIONS {
        let hook = format!(
            "name: tried\nmode: observe\non_failure: block\nhandler: {{type: command, command: {command}}}"
        );
        let scratch = project(&[&hook]);
        scratch
            .exec("hook.sh", &format!("#!/bin/sh\n{script}\n"))
            .unwrap();
        trust(&scratch);
        let policy = scratch.managed().join("policy.json");
        scratch.file(policy, r#"{"fail_closed": true}"#).unwrap();
        assert_eq!(decision(&scratch, DENIED), None, "{command} {script}");
        let record = journal(&scratch).remove(0);
        assert_eq!(record.decision, None);
        let run_record = &record.hooks[0];
        assert_eq!(run_record.outcome, outcome, "{script}");
        assert_eq!(run_record.without_effect, Some(WithoutEffect::Observed));
        assert!(run_record.message.is_some(), "{run_record:?}");
        let log = run(&scratch, &["log", &record.id]);
        assert!(log.stdout.contains(shown), "{shown}: {}", log.stdout);
        let stats = run(&scratch, &["stats", "--json"]).stdout;
        assert!(!stats.contains("\"denials\":1"), "{stats}");
    }
}

#[test]
fn an_observed_hook_changes_and_adds_nothing() {
    let script = "#!/bin/sh\necho '{\"updated_input\": {\"command\": \"true\"}, \"context\": \"hello\", \"continue\": false}'\n";
    let scratch = project(&["mode: observe\nhandler: {type: command, command: ./hook.sh}"]);
    scratch.exec("hook.sh", script).unwrap();
    trust(&scratch);
    let output = crate::support::call(&scratch, &crate::support::payload(&scratch, "ls"));
    assert_eq!(output.stdout, "", "{output:?}");
}

#[test]
fn an_observed_hook_runs_after_a_denial_and_ends_nothing() {
    let denies = |name: &str, more: &str, script: &str| {
        format!("name: {name}\n{more}handler: {{type: command, command: ./{script}}}")
    };
    let first = denies("first", "mode: observe\n", "hook.sh");
    let second = denies("second", "", "hook.sh");
    let third = denies("third", "mode: observe\n", "hook.sh");
    let fourth = denies("fourth", "", "slow.sh");
    let scratch = project(&[&first, &second, &third, &fourth]);
    scratch.exec("hook.sh", "#!/bin/sh\nexit 2\n").unwrap();
    let slow = "#!/bin/sh\nsleep 60\nexit 2\n";
    scratch.exec("slow.sh", slow).unwrap();
    trust(&scratch);
    assert_eq!(decision(&scratch, "ls").as_deref(), Some("deny"));
    let record = journal(&scratch).remove(0);
    let outcomes: Vec<String> = record
        .hooks
        .iter()
        .map(anyhook_model::HookRun::outcome_text)
        .collect();
    assert_eq!(outcomes, ["would deny", "deny", "would deny", "skipped"]);
}

#[test]
fn explain_says_that_a_hook_is_only_observed() {
    let scratch = project(&["mode: observe\nhandler: {type: command, command: anyhook guard git}"]);
    let output = run(&scratch, &["explain", "--command", DENIED]);
    assert!(output.stdout.contains("mode: observe"), "{output:?}");
    let output = run(&scratch, &["check", "--json", "--", DENIED]);
    assert_eq!(output.exit, Some(0), "{output:?}");
    assert_eq!(output.json().unwrap()["guards"][0]["only_observed"], true);
}
