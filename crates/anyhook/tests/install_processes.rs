//! Many installs at once, and installs that die at any moment, with the real
//! program.
#![cfg(unix)] // ends processes by signals
#![cfg(test)]

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhook_testkit::Scratch;
use serde_json::Value;

const SETTINGS: &str = "{\n  // mine\n  \"model\": \"x\",\n  \"hooks\": {\n    \"PreToolUse\": [\n      { \"matcher\": \"Bash\", \"hooks\": [ { \"type\": \"command\", \"command\": \"./g.sh\" } ] }\n    ]\n  }\n}\n";
const PLACE: &str = ".claude/settings.json";

fn command(scratch: &Scratch, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anyhook"));
    command
        .args(arguments)
        .current_dir(scratch.project())
        .env("HOME", scratch.home())
        .env("XDG_CONFIG_HOME", scratch.home().join(".config"))
        .env("ANYHOOK_CONFIG_DIR", scratch.config())
        .env("ANYHOOK_STATE_DIR", scratch.state())
        .env("ANYHOOK_MANAGED_DIR", scratch.managed())
        .env("ANYHOOK_PROGRAM", env!("CARGO_BIN_EXE_anyhook"))
        .env_remove("CLAUDE_CONFIG_DIR")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

fn run(scratch: &Scratch, arguments: &[&str]) {
    let output = command(scratch, arguments).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {stderr}");
}

fn installed(settings: &str) -> String {
    let scratch = Scratch::new().unwrap();
    scratch.file(PLACE, settings).unwrap();
    run(&scratch, &["install", "--agent", "claude-code"]);
    fs::read_to_string(scratch.project().join(PLACE)).unwrap()
}

#[test]
fn sixteen_at_once_end_in_one_result() {
    let scratch = Scratch::new().unwrap();
    scratch.file(PLACE, SETTINGS).unwrap();
    let agents = ["claude-code", "codex", "cursor", "gemini-cli"];
    let children: Vec<_> = (0..16)
        .map(|n| {
            let arguments = ["install", "--agent", agents[n % 4]];
            command(&scratch, &arguments).spawn().unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{stderr}");
    }
    let path = scratch.project().join(PLACE);
    assert_eq!(fs::read_to_string(&path).unwrap(), installed(SETTINGS));
    for file in [
        ".codex/hooks.json",
        ".cursor/hooks.json",
        ".gemini/settings.json",
    ] {
        let text = fs::read_to_string(scratch.project().join(file)).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        for (event, entries) in document["hooks"].as_object().unwrap() {
            assert_eq!(entries.as_array().unwrap().len(), 1, "{file}: {event}");
        }
    }
    run(&scratch, &["uninstall"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), SETTINGS);
    let left: Vec<_> = fs::read_dir(scratch.project())
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(left, [".claude"]);
}

#[test]
fn a_kill_leaves_the_old_file_or_the_new_one() {
    let new = installed(SETTINGS);
    let scratch = Scratch::new().unwrap();
    let path = scratch.file(PLACE, SETTINGS).unwrap();
    for round in 0..30_u64 {
        for (arguments, other) in [
            (["install", "--agent", "claude-code"], &new),
            (
                ["uninstall", "--agent", "claude-code"],
                &SETTINGS.to_owned(),
            ),
        ] {
            let before = fs::read_to_string(&path).unwrap();
            let mut child = command(&scratch, &arguments).spawn().unwrap();
            thread::sleep(Duration::from_micros(round * 700));
            child.kill().unwrap();
            child.wait().unwrap();
            let after = fs::read_to_string(&path).unwrap();
            assert!(
                after == before || after == *other,
                "{arguments:?}, round {round}:\n{after}"
            );
            // Whatever the dead one left, the next one finishes.
            run(&scratch, &arguments);
            assert_eq!(
                fs::read_to_string(&path).unwrap(),
                *other,
                "{arguments:?}, round {round}"
            );
        }
    }
    let beside: Vec<_> = fs::read_dir(path.parent().unwrap())
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(beside, ["settings.json"], "no temporary file stays");
}
