//! The scratch project with real processes, and the reader of case folders.
#![cfg(unix)] // its programs are shell scripts

use anyhook_testkit::reference_model::{self, Action};
use anyhook_testkit::{Scratch, cases};
use serde_json::json;
use std::collections::BTreeMap;

#[test]
fn a_process_sees_the_scratch_world_and_nothing_else() {
    let scratch = Scratch::new().unwrap();
    let script = scratch.exec("bin/show", "#!/bin/sh\npwd\nenv\n").unwrap();
    let ran = scratch
        .command(script)
        .env("EXTRA", "1")
        .run(["x"], "")
        .unwrap();
    assert_eq!(ran.exit, Some(0));
    let mut lines = ran.stdout.lines();
    let cwd = lines.next().unwrap();
    assert_eq!(
        std::fs::canonicalize(cwd).unwrap(),
        std::fs::canonicalize(scratch.project()).unwrap()
    );
    let env: BTreeMap<&str, &str> = lines.filter_map(|line| line.split_once('=')).collect();
    for (name, path) in [
        ("HOME", scratch.home()),
        ("ANYHOOK_CONFIG_DIR", scratch.config()),
        ("ANYHOOK_STATE_DIR", scratch.state()),
        ("ANYHOOK_MANAGED_DIR", scratch.managed()),
    ] {
        assert_eq!(env.get(name).copied(), path.to_str(), "{name}");
    }
    assert_eq!(env.get("EXTRA"), Some(&"1"));
    assert!(
        !env.contains_key("CARGO_MANIFEST_DIR"),
        "the test's own environment leaks in"
    );
}

#[test]
fn large_input_and_output_do_not_lock_up() {
    let scratch = Scratch::new().unwrap();
    let text = "0123456789abcdef".repeat(64 * 1024);
    let ran = scratch.command("cat").run(["-"], &text).unwrap();
    assert_eq!(ran.stdout, text);
    let deaf = scratch
        .exec("deaf", "#!/bin/sh\necho no >&2\nexit 2\n")
        .unwrap();
    let ran = scratch.command(deaf).run([""; 0], &text).unwrap();
    assert_eq!((ran.exit, ran.stderr.as_str()), (Some(2), "no\n"));
}

#[test]
fn a_real_answer_goes_to_the_model() {
    let scratch = Scratch::new().unwrap();
    let guard = scratch
        .exec("guard", "#!/bin/sh\necho 'not today' >&2\nexit 2\n")
        .unwrap();
    let killed = scratch.exec("killed", "#!/bin/sh\nkill -9 $$\n").unwrap();
    let payload = json!({ "tool_name": "Bash", "tool_input": { "command": "ls" } });
    let ran = scratch
        .command(guard)
        .run([""; 0], &payload.to_string())
        .unwrap();
    let r = reference_model::react("codex", "PreToolUse", &payload, &ran.answer(), true);
    assert_eq!(r.action, Action::Blocked);
    assert_eq!(r.model_sees, ["not today"]);
    let ran = scratch.command(killed).run([""; 0], "").unwrap();
    assert_eq!(ran.exit, None);
    let r = reference_model::react("copilot-cli", "preToolUse", &payload, &ran.answer(), true);
    assert_eq!(r.action, Action::Blocked);
}

#[test]
fn files_stay_inside() {
    let scratch = Scratch::new().unwrap();
    let inside = scratch.home().join(".agent/settings.json");
    assert_eq!(scratch.file(&inside, "{}").unwrap(), inside);
    assert!(scratch.file("/etc/anyhook-scratch-test", "x").is_err());
    assert!(scratch.file("../../x", "x").is_err());
}

#[test]
fn cases_are_folders_or_files() {
    let scratch = Scratch::new().unwrap();
    assert!(
        cases::read_cases(scratch.project()).is_err(),
        "no cases is no success"
    );
    scratch.file("b/in.json", r#"{"n": 1}"#).unwrap();
    scratch.file("b/sub/out.txt", "out").unwrap();
    scratch.file("a.txt", "alone").unwrap();
    let cases = cases::read_cases(scratch.project()).unwrap();
    let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names, ["a.txt", "b"]);
    let [file, folder] = cases.as_slice() else {
        panic!()
    };
    assert_eq!(file.text("a.txt").unwrap(), "alone");
    assert_eq!(folder.text("sub/out.txt").unwrap(), "out");
    let parsed: serde_json::Value = folder.json("in.json").unwrap();
    assert_eq!(parsed, json!({ "n": 1 }));
    assert!(
        folder
            .text("nothing")
            .unwrap_err()
            .to_string()
            .contains("nothing")
    );
}
