//! Guards in the dispatcher and in the daemon: no process, and failures like those
//! of any other hook.

#[cfg(unix)]
use std::time::{Duration, Instant};

use anyhook_model::RunOutcome;
use anyhook_testkit::Scratch;

#[cfg(unix)]
use crate::support::call;
use crate::support::{DENIED, anyhook, decision, decision_of, journal, payload, project, run};

const GIT: &str = "name: git\nhandler: {type: command, command: anyhook guard git}";

#[test]
fn a_guard_needs_no_program_on_the_path() {
    let scratch = project(&[GIT]);
    let payload = payload(&scratch, DENIED).to_string();
    let binary = anyhook(&scratch).env("PATH", "/nowhere");
    let output = binary
        .run(["run", "--agent", "claude-code"], &payload)
        .unwrap();
    assert_eq!(decision_of(&output).as_deref(), Some("deny"));
    let reason = output.json().unwrap();
    let reason = reason.pointer("/hookSpecificOutput/permissionDecisionReason");
    assert!(reason.is_some_and(|reason| reason.as_str().unwrap().len() > 10));
    assert_eq!(decision(&scratch, "git status"), None);
    let records = journal(&scratch);
    assert_eq!(records[0].hooks[0].outcome, RunOutcome::Deny);
    assert_eq!(records[1].hooks[0].outcome, RunOutcome::Allow);
    let name = records[0].event.tool_name();
    assert_eq!(name, Some("shell"));
}

/// Failures of a guard itself, each with what its message contains.
const FAILURES: [(&str, &str); 4] = [
    ("anyhook guard gti", "did you mean `git`?"),
    ("anyhook guard git --colour red", "--colour"),
    (
        "anyhook guard rules --file no-such-rules.yaml",
        "no-such-rules.yaml",
    ),
    ("anyhook guard", "guard"),
];

#[test]
fn a_guard_that_cannot_be_used_fails_like_any_other_hook() {
    for (command, why) in FAILURES {
        for (on_failure, fail_closed, expected) in [
            ("allow", false, None),
            ("block", false, Some("deny")),
            ("allow", true, Some("deny")),
        ] {
            let hook =
                format!("on_failure: {on_failure}\nhandler: {{type: command, command: {command}}}");
            let scratch = project(&[&hook]);
            if fail_closed {
                let policy = scratch.managed().join("policy.json");
                scratch.file(policy, r#"{"fail_closed": true}"#).unwrap();
            }
            let told = decision(&scratch, "git status");
            assert_eq!(told.as_deref(), expected, "{command} {on_failure}");
            let record = journal(&scratch).remove(0);
            assert_eq!(record.hooks[0].outcome, RunOutcome::Error, "{command}");
            let warnings = record.warnings.join("\n");
            assert!(warnings.contains(why), "{command}: {warnings}");
            // The program fails too, so other tools see a failure.
            let words: Vec<&str> = command.split_whitespace().skip(1).collect();
            if words.len() > 1 {
                let output = run(&scratch, &words);
                assert_eq!(output.exit, Some(1), "{command}: {output:?}");
                assert!(output.stderr.contains(why), "{command}: {output:?}");
            }
            let output = run(&scratch, &["validate", ".anyhook/hooks.yaml"]);
            assert_eq!(output.exit, Some(1), "{command}: {output:?}");
            assert!(
                output.stdout.contains("hooks.yaml:6:"),
                "{command}: {output:?}"
            );
        }
    }
}

#[test]
fn a_dialect_that_a_guard_does_not_read_is_a_failure() {
    let hook =
        "on_failure: block\nhandler: {type: command, command: anyhook guard git, dialect: cursor}";
    let scratch = project(&[hook]);
    assert_eq!(decision(&scratch, "git status").as_deref(), Some("deny"));
    let warnings = journal(&scratch).remove(0).warnings.join("\n");
    assert!(warnings.contains("remove `dialect: cursor`"), "{warnings}");
}

#[test]
fn shell_syntax_starts_the_program() {
    let scratch = project(&["handler: {type: command, command: \"anyhook guard git; exit 2\"}"]);
    assert_eq!(decision(&scratch, "git status").as_deref(), Some("deny"));
    let output = run(&scratch, &["validate", ".anyhook/hooks.yaml"]);
    assert_eq!(output.exit, Some(0), "`;` is legal: {output:?}");
    assert!(output.stdout.contains("guard-in-shell"), "{output:?}");
}

#[cfg(unix)]
#[test]
fn the_daemon_judges_too() {
    let scratch = project(&[GIT]);
    let mut daemon = anyhook(&scratch).spawn(["serve"]).unwrap();
    let served = |command: &str| {
        let run = ["run", "--agent", "claude-code", "--server"];
        let payload = payload(&scratch, command).to_string();
        let output = anyhook(&scratch).env("ANYHOOK_LOG", "debug");
        output.run(run, &payload).unwrap()
    };
    let started = Instant::now();
    let by_daemon = loop {
        let output = served(DENIED);
        // The client says so when it has to run the hooks itself.
        if !output.stderr.contains("daemon") {
            break output;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{output:?}");
        std::thread::sleep(Duration::from_millis(50));
    };
    let alone = call(&scratch, &payload(&scratch, DENIED));
    let stop = daemon.kill();
    daemon.wait().unwrap();
    stop.unwrap();
    assert_eq!(by_daemon.stdout, alone.stdout);
    assert_eq!(decision_of(&by_daemon).as_deref(), Some("deny"));
}

#[test]
fn the_program_answers_in_the_format_that_it_is_asked_in() {
    let scratch = Scratch::new().unwrap();
    let native = payload(&scratch, DENIED).to_string();
    let guard = |input: &str| anyhook(&scratch).run(["guard", "git"], input).unwrap();
    assert_eq!(decision_of(&guard(&native)).as_deref(), Some("deny"));
    let explained = anyhook(&scratch)
        .run(["explain", "--json", "--agent", "claude-code"], &native)
        .unwrap();
    let event = &explained.json().unwrap()["event"];
    let canonical = guard(&event.to_string());
    assert_eq!(canonical.exit, Some(0));
    let answer = canonical.json().unwrap();
    assert_eq!(answer["decision"], "deny", "{canonical:?}");
    assert!(answer["reason"].as_str().unwrap().len() > 10);
    let harmless = event.to_string().replace(DENIED, "git status");
    assert_eq!(guard(&harmless).stdout, "");
    for broken in ["", "{", "[]", "{\"event\": 1}"] {
        let output = guard(broken);
        assert_eq!(output.exit, Some(1), "{broken}: {output:?}");
        assert_eq!(output.stdout, "", "{broken}");
    }
}
