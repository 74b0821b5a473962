//! The generated OpenCode plugin, loaded and driven by a real JavaScript
//! runtime: what the bridge decides is what OpenCode would do.
//!
//! Without Node.js on PATH there is nothing to drive it with, and the tests say so.
#![cfg(unix)] // drives Node.js, which Wine does not have
#![cfg(test)]

use std::process::Command;

use anyhook_testkit::Scratch;
use serde_json::{Value, json};

/// Calls one hook of a plugin as OpenCode does, and tells what became of it.
const DRIVER: &str = r#"
const [files, hook, input, output] = process.argv.slice(2);
const copies = [];
for (const file of files.split(",")) {
  const module = await import(file);
  for (const one of Object.values(module)) {
    if (typeof one !== "function") throw new Error("OpenCode drops files that export other things");
  }
  copies.push(await module.anyhook({ directory: process.cwd() }));
}
const hooks = copies[0];
const told = JSON.parse(output);
const asked = JSON.parse(input);
const args = told.args;
const started = Date.now();
let thrown = null;
try {
  for (const copy of copies) await copy[hook](asked, told);
} catch (error) {
  thrown = error.message;
}
console.log(JSON.stringify({ thrown, output: told, same: told.args === args, ms: Date.now() - started, hooks: Object.keys(hooks) }));
process.exit(0);
"#;

fn has_node() -> bool {
    Command::new("node")
        .arg("--version")
        .output()
        .is_ok_and(|ran| ran.status.success())
}

struct Lab {
    scratch: Scratch,
}

impl Lab {
    /// A project with a manifest that is trusted, and the plugin in it.
    fn new(manifest: &str, install: &[&str]) -> Option<Self> {
        if !has_node() {
            eprintln!("skipped: there is no `node` on PATH");
            return None;
        }
        let lab = Self {
            scratch: Scratch::new().unwrap(),
        };
        lab.scratch.file("driver.mjs", DRIVER).unwrap();
        lab.scratch.file(".git/HEAD", "").unwrap();
        lab.scratch.file(".anyhook/hooks.yaml", manifest).unwrap();
        let arguments = [
            &["install", "--agent", "opencode", "--command", "absolute"],
            install,
        ]
        .concat();
        let ran = lab
            .scratch
            .command(env!("CARGO_BIN_EXE_anyhook"))
            .run(arguments, "")
            .unwrap();
        assert_eq!(ran.exit, Some(0), "{}", ran.stderr);
        Some(lab)
    }

    fn call(&self, hook: &str, input: &Value, output: &Value) -> Value {
        let plugin = self.scratch.project().join(".opencode/plugin/anyhook.js");
        self.drive(&plugin.to_string_lossy(), hook, input, output)
    }

    fn drive(&self, file: &str, hook: &str, input: &Value, output: &Value) -> Value {
        let ran = self
            .scratch
            .command("node")
            .env("ANYHOOK_TRUST", "all")
            .run(
                [
                    "driver.mjs",
                    file,
                    hook,
                    &input.to_string(),
                    &output.to_string(),
                ],
                "",
            )
            .unwrap();
        assert_eq!(ran.exit, Some(0), "{}", ran.stderr);
        ran.json().unwrap()
    }

    fn tool(&self, command: &str) -> Value {
        let input = json!({"tool": "bash", "sessionID": "ses_1", "callID": "call_1"});
        self.call(
            "tool.execute.before",
            &input,
            &json!({"args": {"command": command, "description": "d"}}),
        )
    }
}

fn manifest(event: &str, command: &str) -> String {
    format!(
        "spec: hooks/1.0\nhooks:\n  - event: {event}\n    blocking: true\n    handler:\n      type: command\n      command: {}\n",
        json!(command)
    )
}

#[test]
fn a_deny_is_thrown_with_its_reason() {
    let Some(lab) = Lab::new(
        &manifest(
            "before_tool_execute",
            "echo 'not `this` \"one\"' >&2; exit 2",
        ),
        &[],
    ) else {
        return;
    };
    let said = lab.tool("rm -rf /");
    assert_eq!(said["thrown"], "not `this` \"one\"");
}

#[test]
fn a_rewrite_is_made_in_place() {
    let answer = r#"echo '{"updated_input":{"command":"echo safe"}}'"#;
    let Some(lab) = Lab::new(&manifest("before_tool_execute", answer), &[]) else {
        return;
    };
    let said = lab.tool("rm -rf /");
    assert_eq!(said["thrown"], Value::Null);
    assert_eq!(said["output"]["args"]["command"], "echo safe");
    assert_eq!(said["output"]["args"]["description"], "d");
    assert_eq!(
        said["same"], true,
        "a new object in its stead is ignored by OpenCode"
    );
}

#[test]
fn context_is_added_to_what_the_model_reads() {
    let answer = r#"echo '{"context":"think twice"}'"#;
    let both = format!(
        "{}{}",
        manifest("after_tool_execute", answer),
        manifest("before_prompt", answer)
            .split_once("hooks:\n")
            .unwrap()
            .1
    );
    let Some(lab) = Lab::new(&both, &[]) else {
        return;
    };
    let input = json!({"tool": "bash", "sessionID": "s", "callID": "c", "args": {"command": "ls"}});
    let said = lab.call(
        "tool.execute.after",
        &input,
        &json!({"title": "t", "output": "a.txt", "metadata": {}}),
    );
    assert_eq!(said["output"]["output"], "a.txt\n\nthink twice");
    let parts = json!({"message": {"role": "user"}, "parts": [{"type": "text", "text": "go"}]});
    let said = lab.call("chat.message", &json!({"sessionID": "s"}), &parts);
    assert_eq!(said["output"]["parts"][0]["text"], "go\n\nthink twice");
}

#[test]
fn events_of_the_bus_are_told_and_never_throw() {
    let Some(lab) = Lab::new(&manifest("agent_stop", "cat > seen.json; exit 2"), &[]) else {
        return;
    };
    let event =
        json!({"event": {"id": "e", "type": "session.idle", "properties": {"sessionID": "ses_9"}}});
    let said = lab.call("event", &event, &json!({}));
    assert_eq!(said["thrown"], Value::Null);
    let seen = std::fs::read_to_string(lab.scratch.project().join("seen.json")).unwrap();
    let seen: Value = serde_json::from_str(&seen).unwrap();
    assert_eq!(seen["session_id"], "ses_9");
    assert_eq!(seen["native_event"], "session.idle");
    // An event without hooks starts nothing.
    let event = json!({"event": {"type": "message.part.delta", "properties": {}}});
    assert!(
        lab.call("event", &event, &json!({}))["ms"]
            .as_u64()
            .unwrap()
            < 1000
    );
}

#[test]
fn opencode_goes_on_without_anyhook() {
    let Some(lab) = Lab::new(&manifest("before_tool_execute", "exit 2"), &[]) else {
        return;
    };
    let plugin = lab.scratch.project().join(".opencode/plugin/anyhook.js");
    let text = std::fs::read_to_string(&plugin).unwrap();
    let own = json!(env!("CARGO_BIN_EXE_anyhook")).to_string();
    assert!(text.contains(&own), "{text}");
    let gone = lab
        .scratch
        .file(
            ".opencode/plugin/gone.mjs",
            &text.replace(&own, "\"/no/such/anyhook\""),
        )
        .unwrap();
    let input = json!({"tool": "bash", "sessionID": "s", "callID": "c"});
    let said = lab.drive(
        &gone.to_string_lossy(),
        "tool.execute.before",
        &input,
        &json!({"args": {"command": "ls"}}),
    );
    assert_eq!(said["thrown"], Value::Null);
    assert_eq!(said["output"]["args"]["command"], "ls");
}

#[test]
fn opencode_goes_on_when_anyhook_hangs() {
    let Some(lab) = Lab::new(&manifest("before_tool_execute", "exit 2"), &[]) else {
        return;
    };
    let plugin = lab.scratch.project().join(".opencode/plugin/anyhook.js");
    let text = std::fs::read_to_string(&plugin).unwrap();
    let own = json!(env!("CARGO_BIN_EXE_anyhook")).to_string();
    // A child of it keeps the output open, as a shell's would.
    let hanging = lab
        .scratch
        .exec("hang.sh", "#!/bin/sh\nsleep 600 | cat\n")
        .unwrap();
    assert!(
        text.contains("\"timeout\":60000"),
        "the limit is in the plugin"
    );
    let text = text
        .replace(&own, &json!(hanging.to_string_lossy()).to_string())
        .replace("\"timeout\":60000", "\"timeout\":300");
    let hangs = lab
        .scratch
        .file(".opencode/plugin/hangs.mjs", &text)
        .unwrap();
    let input = json!({"tool": "bash", "sessionID": "s", "callID": "c"});
    let said = lab.drive(
        &hangs.to_string_lossy(),
        "tool.execute.before",
        &input,
        &json!({"args": {"command": "ls"}}),
    );
    assert_eq!(said["thrown"], Value::Null);
    assert_eq!(said["output"]["args"]["command"], "ls");
}

/// OpenCode calls the plugins one after the other with the same objects.
#[test]
fn the_users_and_the_projects_plugin_answer_once() {
    const PREFIX: &str = "echo x >>ran; sed 's/.*\"command\":\"\\([^\"]*\\)\".*/\
        {\"context\":\"told\",\"updated_input\":{\"command\":\"echo P; \\1\"}}/'";
    for (event, hook, input, output) in [
        (
            "before_tool_execute",
            "tool.execute.before",
            json!({"tool": "bash", "sessionID": "s", "callID": "c"}),
            json!({"args": {"command": "ls"}}),
        ),
        (
            "before_prompt",
            "chat.message",
            json!({"sessionID": "s"}),
            json!({"message": {}, "parts": [{"type": "text", "text": "\"command\":\"ls\""}]}),
        ),
    ] {
        let Some(lab) = Lab::new(&manifest(event, PREFIX), &[]) else {
            return;
        };
        let install = ["install", "--agent", "opencode", "--scope", "user"];
        let ran = lab
            .scratch
            .command(env!("CARGO_BIN_EXE_anyhook"))
            .run(install, "")
            .unwrap();
        assert_eq!(ran.exit, Some(0), "{}", ran.stderr);
        let user = lab
            .scratch
            .home()
            .join(".config/opencode/plugin/anyhook.js");
        let project = lab.scratch.project().join(".opencode/plugin/anyhook.js");
        let files = [&user, &project].map(|path| path.to_string_lossy());
        let said = lab.drive(&files.join(","), hook, &input, &output);
        assert_eq!(said["thrown"], Value::Null);
        let ran = std::fs::read_to_string(lab.scratch.project().join("ran")).unwrap();
        assert_eq!(ran, "x\n", "{said}");
        assert!(said.to_string().matches("told").count() <= 1, "{said}");
        assert!(!said.to_string().contains("echo P; echo P"), "{said}");

        // A copy whose program is gone has no answer, so the other one asks.
        let text = std::fs::read_to_string(&user).unwrap();
        let broken = text.replace("\"argv\":[\"", "\"argv\":[\"/nowhere");
        std::fs::write(&user, broken).unwrap();
        let mut next = input.clone();
        next["sessionID"] = "t".into();
        lab.drive(&files.join(","), hook, &next, &output);
        let ran = std::fs::read_to_string(lab.scratch.project().join("ran")).unwrap();
        assert_eq!(ran, "x\nx\n");
    }
}

/// Commands that `convert` carries over, with no anyhook at run time.
#[test]
fn a_converted_plugin_runs_commands_by_the_plain_contract() {
    for (script, thrown, command) in [
        (
            "grep -q '\"tool_name\":\"bash\"' && { echo no >&2; exit 2; }",
            json!("no"),
            "ls",
        ),
        (
            r#"echo '{"decision":"deny","reason":"never"}'"#,
            json!("never"),
            "ls",
        ),
        (
            r#"echo '{"updated_input":{"command":"true"}}'"#,
            Value::Null,
            "true",
        ),
        ("exit 1", Value::Null, "ls"),
    ] {
        let Some(lab) = Lab::new(&manifest("before_tool_execute", script), &["--dry-run"]) else {
            return;
        };
        let ran = lab
            .scratch
            .command(env!("CARGO_BIN_EXE_anyhook"))
            .run(
                [
                    "convert",
                    ".anyhook/hooks.yaml",
                    "--to",
                    "opencode",
                    "-o",
                    "native.mjs",
                    "--allow-loss",
                ],
                "",
            )
            .unwrap();
        assert_eq!(ran.exit, Some(0), "{}", ran.stderr);
        let native = lab.scratch.project().join("native.mjs");
        let input = json!({"tool": "bash", "sessionID": "s", "callID": "c"});
        let said = lab.drive(
            &native.to_string_lossy(),
            "tool.execute.before",
            &input,
            &json!({"args": {"command": "ls"}}),
        );
        assert_eq!(said["thrown"], thrown, "{script}");
        assert_eq!(said["output"]["args"]["command"], command, "{script}");
    }
}

/// A guard that was written for the plain contract finds the contract's names and keys.
#[test]
fn a_converted_contract_hook_gets_the_contracts_names() {
    if !has_node() {
        return;
    }
    let guard = "cat >> seen.jsonl; echo '{\"decision\":\"deny\",\"reason\":\"never\"}'";
    let source = json!({"hooks": {"preToolUse": [{"command": guard}], "beforeSubmitPrompt": [{"command": guard}]}});
    let Some(lab) = Lab::new(&manifest("before_tool_execute", "true"), &["--dry-run"]) else {
        return;
    };
    let arguments = [
        "convert",
        "-",
        "--from",
        "contract",
        "--to",
        "opencode",
        "-o",
        "native.mjs",
    ];
    let command = lab.scratch.command(env!("CARGO_BIN_EXE_anyhook"));
    let ran = command.run(arguments, &source.to_string()).unwrap();
    assert_eq!(ran.exit, Some(0), "{}", ran.stderr);
    let native = lab.scratch.project().join("native.mjs");
    let calls = [
        (
            "bash",
            json!({"command": "ls"}),
            json!({"tool_name": "Shell", "tool_input": {"command": "ls"}}),
        ),
        (
            "write",
            json!({"filePath": "a", "content": "x"}),
            json!({"tool_name": "Write", "tool_input": {"path": "a", "contents": "x"}}),
        ),
        (
            "read",
            json!({"filePath": "a"}),
            json!({"tool_name": "Read", "tool_input": {"path": "a"}}),
        ),
        (
            "edit",
            json!({"filePath": "a", "oldString": "1", "newString": "2"}),
            json!({"tool_name": "Edit", "tool_input": {"path": "a", "old_string": "1", "new_string": "2"}}),
        ),
        (
            "multiedit",
            json!({"filePath": "a", "edits": [{"oldString": "1", "newString": "2"}]}),
            json!({"tool_name": "MultiEdit", "tool_input": {"path": "a", "edits": [{"old_string": "1", "new_string": "2"}]}}),
        ),
        (
            "grep",
            json!({"pattern": "x"}),
            json!({"tool_name": "Grep", "tool_input": {"pattern": "x"}}),
        ),
    ];
    let seen = || anyhook_testkit::whole_lines(&lab.scratch.project().join("seen.jsonl")).unwrap();
    for (tool, args, expected) in calls {
        let input = json!({"tool": tool, "sessionID": "s", "callID": "c"});
        let output = json!({"args": args});
        let said = lab.drive(
            &native.to_string_lossy(),
            "tool.execute.before",
            &input,
            &output,
        );
        assert_eq!(said["thrown"], "never", "{tool}");
        assert_eq!(seen().last(), Some(&expected), "{tool}");
    }
    let output = json!({"message": {}, "parts": [{"type": "text", "text": "hi"}]});
    let input = json!({"sessionID": "s"});
    lab.drive(&native.to_string_lossy(), "chat.message", &input, &output);
    let prompt = seen().pop().unwrap();
    assert_eq!(prompt["tool_name"], "beforeSubmitPrompt", "{prompt}");
    assert_eq!(prompt["tool_input"]["prompt"], "hi", "{prompt}");
}
