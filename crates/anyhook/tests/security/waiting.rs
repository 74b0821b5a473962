//! Hooks that take longer than the agent waits: an agent that has stopped waiting lets
//! the call through, so the answer must come before that.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhook_testkit::{ProcessOutput, Scratch};
use serde_json::{Value, json};

use super::support::{anyhook, is_denied, payload};

/// Far less than the hooks of these tests would take, far more than they may.
const PATIENCE: Duration = Duration::from_secs(20);

/// With one hook in the user's manifest.
fn with_hook(hook: &Value, more: Value) -> Scratch {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    let mut manifest = json!({"spec": "hooks/1.0", "hooks": [hook]});
    let more = more.as_object().cloned().unwrap_or_default();
    manifest.as_object_mut().unwrap().extend(more);
    let path = scratch.config().join("hooks.json");
    scratch.file(path, &manifest.to_string()).unwrap();
    scratch
}

fn guard(command: &str, timeout: f64, more: Value) -> Value {
    let mut hook = json!({"name": "guard", "event": "before_tool_execute", "blocking": true,
        "handler": {"type": "command", "command": command, "timeout": timeout}});
    let more = more.as_object().cloned().unwrap_or_default();
    hook.as_object_mut().unwrap().extend(more);
    hook
}

/// The answer, which came in time.
fn in_time(scratch: &Scratch, arguments: &[&str], payload: &Value) -> ProcessOutput {
    let started = Instant::now();
    let output = anyhook(scratch)
        .run(arguments, &payload.to_string())
        .unwrap();
    let took = started.elapsed();
    assert!(took < PATIENCE, "{took:?}: {output:?}");
    output
}

#[test]
fn hooks_that_take_longer_than_the_agent_waits_fail_in_time() {
    let run = ["run", "--agent", "claude-code", "--timeout", "2"];
    for (more, blocks) in [(json!({}), false), (json!({"on_failure": "block"}), true)] {
        let scratch = with_hook(&guard("sleep 100", 100.0, more), json!({}));
        let output = in_time(&scratch, &run, &payload(&scratch, "ls"));
        assert_eq!(is_denied(&output), blocks, "{output:?}");
        assert!(
            output.stdout.contains("the agent does not wait longer"),
            "{output:?}"
        );
    }
}

/// Each has its own time, and all together have that of the agent.
#[test]
fn hooks_in_order_do_not_outlast_the_agent_together() {
    let slow = guard("sleep 100", 100.0, json!({"on_failure": "block"}));
    let hooks = json!([slow, slow, slow, slow]);
    let scratch = with_hook(&slow, json!({"sequential": true, "hooks": hooks}));
    let run = ["run", "--agent", "claude-code", "--timeout", "2"];
    let output = in_time(&scratch, &run, &payload(&scratch, "ls"));
    assert!(is_denied(&output), "{output:?}");
}

/// The model chooses how many files a patch changes, and a hook in another agent's format
/// runs once for each.
#[test]
fn a_call_of_many_parts_does_not_outlast_the_agent() {
    let more = json!({"matcher": "file_edit", "on_failure": "block"});
    let mut hook = guard("sleep 0.5", 2.0, more);
    hook["handler"]["dialect"] = json!("claude-code");
    let scratch = with_hook(&hook, json!({}));
    let mut patch = "*** Begin Patch\n".to_owned();
    for n in 0..200 {
        let _ = write!(patch, "*** Update File: a{n}.txt\n@@\n-x\n+y\n");
    }
    patch.push_str("*** End Patch");
    let call = json!({"session_id": "s", "transcript_path": null, "model": "m",
        "cwd": scratch.project(), "hook_event_name": "PreToolUse", "permission_mode": "default",
        "tool_name": "apply_patch", "tool_use_id": "c", "tool_input": {"command": patch}});
    let output = in_time(&scratch, &["run", "--agent", "codex"], &call);
    assert!(is_denied(&output), "{output:?}");
}

/// Time limits of agents that their entries cannot change.
#[test]
fn the_limit_of_an_agent_whose_entries_have_none_is_known() {
    for (agent, seconds) in [
        ("cline", Some(30.0)),
        ("hermes-agent", Some(300.0)),
        ("claude-code", None),
        ("windsurf", None),
    ] {
        let handle = anyhook_agents::agent_handle(agent).unwrap();
        assert_eq!(handle.longest_wait(), seconds, "{agent}");
    }
}

/// An entry says how long its agent waits, where that is longer than usual.
#[test]
fn an_entry_that_the_agent_stops_before_its_hooks_is_reported() {
    let slow = guard("exit 0", 100.0, json!({}));
    let scratch = with_hook(&slow, json!({}));
    let settings = scratch.home().join(".claude/settings.json");
    scratch.file(&settings, "{}").unwrap();
    let install = || {
        let line = "install --agent claude-code --scope user --yes";
        let output = anyhook(&scratch).run(line.split(' '), "").unwrap();
        assert_eq!(output.exit, Some(0), "{output:?}");
        let text = std::fs::read_to_string(&settings).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        (document["hooks"]["PreToolUse"][0]["hooks"][0].clone(), text)
    };
    let codes = || -> Vec<String> {
        let output = anyhook(&scratch).run(["doctor", "--json", "--no-run"], "");
        let report = output.unwrap().json().unwrap();
        let found = report["diagnostics"].as_array().unwrap().clone();
        let codes = found
            .iter()
            .map(|one| one["code"].as_str().unwrap().to_owned());
        codes
            .filter(|code| code.starts_with("entry-") || code.starts_with("hooks-"))
            .collect()
    };
    let (entry, text) = install();
    assert_eq!(entry["timeout"], json!(105));
    let command = entry["command"].as_str().unwrap();
    assert!(
        command.ends_with("run --agent claude-code --timeout 105"),
        "{command}"
    );
    assert!(codes().is_empty(), "{:?}", codes());
    // Somebody lowers the timeout in the agent's file.
    let lowered = text.replacen("\"timeout\": 105", "\"timeout\": 10", 1);
    scratch.file(&settings, &lowered).unwrap();
    assert_eq!(codes(), ["entry-stopped-early"]);
    install();
    assert!(codes().is_empty(), "{:?}", codes());
    // The hooks get more time after the installation.
    let longer = json!({"spec": "hooks/1.0", "hooks": [guard("exit 0", 200.0, json!({}))]});
    let manifest = scratch.config().join("hooks.json");
    scratch.file(manifest, &longer.to_string()).unwrap();
    let found = codes();
    assert!(
        !found.is_empty() && found.iter().all(|code| code == "hooks-take-longer"),
        "{found:?}"
    );
    assert_eq!(install().0["timeout"], json!(205));
    assert!(codes().is_empty(), "{:?}", codes());
}
