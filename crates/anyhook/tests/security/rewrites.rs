//! Input that a hook rewrites is decided about like input that the agent sends.

use std::path::PathBuf;

use anyhook_model::Decision;
use anyhook_testkit::{ProcessOutput, Scratch};
use serde_json::{Value, json};

use crate::support::{anyhook, is_denied, journal, payload};

const DENY_RM: &str = "grep -q 'rm -rf' && exit 2; exit 0";
const RUN: [&str; 3] = ["run", "--agent", "claude-code"];

/// A shell line that rewrites the command, whatever it was.
fn rewrite_to(command: &str) -> String {
    let answer = json!({"updated_input": {"command": command}});
    format!("cat > /dev/null; printf '%s' '{answer}'")
}

/// A shell line that appends to the command.
fn append(text: &str) -> String {
    format!(
        "sed 's/.*\"command\":\"\\([^\"]*\\)\".*/{{\"updated_input\":{{\"command\":\"\\1{text}\"}}}}/'"
    )
}

fn hook(name: &str, command: &str, is_blocking: bool) -> Value {
    json!({"name": name, "event": "before_tool_execute", "blocking": is_blocking,
        "handler": {"type": "command", "command": command}})
}

fn manifest_of(scratch: &Scratch, scope: &str) -> PathBuf {
    match scope {
        "managed" => scratch.managed(),
        "user" => scratch.config(),
        _ => scratch.project().join(".anyhook"),
    }
    .join("hooks.json")
}

/// A repository with these hooks, each in a scope; the project's are approved.
fn with_hooks(hooks: &[(&str, Value)]) -> Scratch {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    for scope in ["managed", "user", "project"] {
        let own = hooks.iter().filter(|(of, _)| *of == scope);
        let own: Vec<&Value> = own.map(|(_, hook)| hook).collect();
        if !own.is_empty() {
            let manifest = json!({"spec": "hooks/1.0", "hooks": own}).to_string();
            scratch
                .file(manifest_of(&scratch, scope), &manifest)
                .unwrap();
        }
    }
    if hooks.iter().any(|(scope, _)| *scope == "project") {
        let output = anyhook(&scratch).run(["trust", "--yes"], "").unwrap();
        assert_eq!(output.exit, Some(0), "{output:?}");
    }
    scratch
}

fn call(scratch: &Scratch, command: &str) -> ProcessOutput {
    let payload = payload(scratch, command).to_string();
    anyhook(scratch).run(RUN, &payload).unwrap()
}

/// The command that runs after this answer, if the hooks have changed it.
fn rewritten(output: &ProcessOutput) -> Option<String> {
    let answer = output.json().ok()?;
    let command = answer.pointer("/hookSpecificOutput/updatedInput/command")?;
    Some(command.as_str()?.to_owned())
}

#[test]
fn a_guard_decides_about_what_a_later_hook_makes_of_the_call() {
    let scopes = ["managed", "user", "project"];
    for (n, guard) in scopes.iter().enumerate() {
        for rewriter in scopes.iter().skip(n) {
            for is_blocking in [true, false] {
                let case = format!("{guard}, then {rewriter}, blocking: {is_blocking}");
                let rewriting = |to: &str| {
                    with_hooks(&[
                        (guard, hook("guard", DENY_RM, true)),
                        (rewriter, hook("rewriter", &rewrite_to(to), is_blocking)),
                    ])
                };
                let output = call(&rewriting("rm -rf /"), "ls");
                assert!(is_denied(&output), "{case}: {output:?}");
                let output = call(&rewriting("ls -l"), "ls");
                assert!(!is_denied(&output), "{case}: {output:?}");
                assert_eq!(rewritten(&output).as_deref(), Some("ls -l"), "{case}");
            }
        }
    }
}

#[test]
fn a_guard_whose_matcher_fits_only_the_rewritten_call_is_asked() {
    let patch = "apply_patch <<EOF\n*** Begin Patch\n*** Add File: x\n+x\n*** End Patch\nEOF";
    let mut guard = hook("guard", "exit 2", true);
    guard["matcher"] = "file_write".into();
    let scratch = with_hooks(&[
        ("managed", guard),
        ("user", hook("rewriter", &rewrite_to(patch), false)),
    ]);
    let output = call(&scratch, "ls");
    assert!(is_denied(&output), "{output:?}");
}

#[test]
fn a_user_cannot_undo_what_the_administrators_hook_changes() {
    let scratch = with_hooks(&[
        (
            "managed",
            hook("proxy", &rewrite_to("curl --proxy p"), true),
        ),
        ("user", hook("undo", &rewrite_to("curl"), true)),
    ]);
    let output = call(&scratch, "curl");
    assert_eq!(rewritten(&output).as_deref(), Some("curl --proxy p"));
}

/// Hooks of one scope rewrite in order, once each.
#[test]
fn a_second_look_applies_no_rewrite_of_the_same_scope_twice() {
    let scratch = with_hooks(&[
        ("user", hook("a", &append(" 1"), true)),
        ("user", hook("b", &append(" 2"), true)),
    ]);
    let output = call(&scratch, "echo");
    assert_eq!(rewritten(&output).as_deref(), Some("echo 1 2"));
}

#[test]
fn approval_of_the_first_input_does_not_approve_the_rewritten_one() {
    let approve = "grep -q '\"ls\"' && echo '{\"decision\": \"allow\"}'; exit 0";
    for (to, expected) in [("id", None), ("ls", Some(Decision::Allow))] {
        let scratch = with_hooks(&[
            ("user", hook("approve", approve, true)),
            ("project", hook("rewriter", &rewrite_to(to), false)),
        ]);
        call(&scratch, "ls");
        let records = journal(&scratch);
        assert_eq!(records.last().unwrap().decision, expected, "{to}");
    }
}

/// What the first entry of a call leaves for the second is a file of the user's.
#[test]
fn a_forged_rewrite_does_not_pass_a_managed_guard() {
    let scratch = with_hooks(&[("managed", hook("guard", DENY_RM, true))]);
    let mut call = payload(&scratch, "ls");
    call["tool_use_id"] = "1".into();
    let deliver = |scope: &str| {
        let run = RUN.into_iter().chain(["--scope", scope]);
        anyhook(&scratch).run(run, &call.to_string()).unwrap()
    };
    assert!(!is_denied(&deliver("project")));
    let claims = std::fs::read_dir(scratch.state().join("calls")).unwrap();
    for claim in claims {
        let path = claim.unwrap().path();
        let mut claim: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        claim["response"] = json!({"updated_input": {"command": "rm -rf /"}});
        std::fs::write(&path, claim.to_string()).unwrap();
    }
    let output = deliver("user");
    assert!(is_denied(&output), "{output:?}");
}

/// A hook that changes the command as `sed` does, without a word in its text that says so.
fn hidden(scratch: &Scratch, name: &str, change: &str) -> Value {
    let script = format!(
        r#"#!/bin/sh
old=$(sed 's/.*"command":"\([^"]*\)".*/\1/')
new=$(printf '%s' "$old" | sed '{change}')
key=updated
[ "$new" = "$old" ] || printf '{{"%s":{{"command":"%s"}}}}' "${{key}}_input" "$new"
"#
    );
    let file = scratch.config().join(format!("{name}.sh"));
    scratch.exec(&file, &script).unwrap();
    hook(name, &file.to_string_lossy(), true)
}

/// Two hooks that run side by side, both of which turn out to rewrite the call.
#[test]
fn rewrites_side_by_side_are_both_applied() {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    let lease = hidden(&scratch, "lease", "s/--force$/--force-with-lease/");
    let prefix = hidden(&scratch, "prefix", "s/^git/rtk git/");
    for hooks in [[&lease, &prefix], [&prefix, &lease]] {
        let manifest = json!({"spec": "hooks/1.0", "hooks": hooks}).to_string();
        scratch
            .file(manifest_of(&scratch, "user"), &manifest)
            .unwrap();
        let output = call(&scratch, "git push --force");
        assert_eq!(
            rewritten(&output).as_deref(),
            Some("rtk git push --force-with-lease"),
            "{output:?}"
        );
    }
}

/// The second one is for the rewritten call only.
#[test]
fn a_guard_is_asked_also_if_another_hook_has_its_name() {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    let rewriter = hidden(&scratch, "g", "s/^ls/rm -rf x/");
    let mut guard = hook("g", "exit 2", true);
    guard["if"] = json!({"command": "rm"});
    let other = hook("other", "true", true);
    let manifest = json!({"spec": "hooks/1.0", "hooks": [rewriter, guard, other]}).to_string();
    scratch
        .file(manifest_of(&scratch, "user"), &manifest)
        .unwrap();
    let output = call(&scratch, "ls");
    assert!(is_denied(&output), "{output:?}");
}

/// A guard that wants to change only what another hook has made of the call.
#[test]
fn a_change_that_cannot_be_applied_any_more_denies() {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    let rewriter = hidden(&scratch, "rewriter", "s/^ls/curl x/");
    let mut proxy = hidden(&scratch, "proxy", "s/^curl x/curl --proxy p x/");
    proxy["if"] = json!({"command": "curl"});
    let manifest = json!({"spec": "hooks/1.0", "hooks": [proxy, rewriter]}).to_string();
    scratch
        .file(manifest_of(&scratch, "user"), &manifest)
        .unwrap();
    let output = call(&scratch, "ls");
    assert!(is_denied(&output), "{output:?}");
    assert!(output.stdout.contains("sequential"), "{output:?}");
}
