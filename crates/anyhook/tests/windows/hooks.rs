//! What a hook can be and answer: programs, batch files, lines for `cmd`, exit
//! codes, JSON, arguments, folders and texts with all kinds of characters.

use std::path::Path;

use anyhook_model::Record;
use anyhook_testkit::{ProcessOutput, Scratch, whole_lines};
use serde_json::{Value, json};

use crate::support::{anyhook, run, shell_call, text};

/// A project with a trusted hook, whose handler has these fields.
struct HookProject {
    scratch: Scratch,
}

impl HookProject {
    fn new(handler: Value, files: &[(&str, &str)]) -> Self {
        Self::with_failure(handler, "allow", files)
    }

    /// `on_failure`: what a failure of the hook means.
    fn with_failure(handler: Value, on_failure: &str, files: &[(&str, &str)]) -> Self {
        let scratch = Scratch::new().unwrap();
        scratch.file(".git/HEAD", "").unwrap();
        for (path, content) in files {
            scratch.file(path, content).unwrap();
        }
        let mut handler = handler;
        handler["type"] = json!("command");
        let manifest = json!({"spec": "hooks/1.0", "hooks": [{
            "name": "hook", "event": "before_tool_execute", "blocking": true,
            "on_failure": on_failure, "handler": handler,
        }]});
        scratch
            .file(".anyhook/hooks.json", &manifest.to_string())
            .unwrap();
        let trusted = run(&scratch, &["trust", "--yes"], "");
        assert_eq!(trusted.exit, Some(0), "{trusted:?}");
        Self { scratch }
    }

    /// The answer to a call, in the canonical form.
    fn call(&self, command: &str) -> ProcessOutput {
        let event = shell_call(command, &text(&self.scratch.project()));
        let payload = serde_json::to_string(&event).unwrap();
        run(&self.scratch, &["run", "--agent", "canonical"], &payload)
    }

    /// As [`Self::call`], with these programs on PATH.
    fn call_with_programs(&self, programs: &Path) -> ProcessOutput {
        let event = shell_call("dir", &text(&self.scratch.project()));
        let payload = serde_json::to_string(&event).unwrap();
        let root = std::env::var("SystemRoot").unwrap();
        let path = format!("{};{root}\\system32", text(programs));
        let call = anyhook(&self.scratch).env("PATH", path);
        call.run(["run", "--agent", "canonical"], &payload).unwrap()
    }

    fn answer(&self, command: &str) -> Value {
        let output = self.call(command);
        let answer = output.json();
        answer.unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    fn journal(&self) -> Vec<Record> {
        whole_lines(&self.scratch.state().join("journal/events.jsonl")).unwrap()
    }
}

#[test]
fn exit_code_2_blocks_and_others_do_not() {
    for (code, is_denied) in [(0, false), (1, false), (2, true), (3, false), (255, false)] {
        let hook = format!("@echo why 1>&2\r\n@exit /b {code}\r\n");
        let project = HookProject::new(json!({"command": "./hook.cmd"}), &[("hook.cmd", &hook)]);
        let output = project.call("dir");
        let is_deny = output.stdout.contains("\"deny\"");
        assert_eq!(is_deny, is_denied, "{code}: {output:?}");
    }
}

#[test]
fn an_answer_in_json_counts() {
    let answer = "{\"decision\":\"deny\",\"reason\":\"no \u{fc}\u{4f60}\"}\r\n";
    let files = [
        ("hook.cmd", "@type \"%~dp0answer.json\"\r\n"),
        ("answer.json", answer),
    ];
    let project = HookProject::new(json!({"command": ".\\hook.cmd"}), &files);
    let answer = project.answer("dir");
    assert_eq!(answer["decision"], "deny");
    assert_eq!(answer["reason"], "no \u{fc}\u{4f60}");
}

#[test]
fn the_event_arrives_on_standard_input() {
    let find = r#"@"%SystemRoot%\System32\find.exe" "needle" >nul"#;
    // After a redirection Wine's `&&` goes on in any case.
    let hook = format!("{find}\r\n@if not errorlevel 1 exit /b 2\r\n@exit /b 0\r\n");
    let project = HookProject::new(json!({"command": "./hook.cmd"}), &[("hook.cmd", &hook)]);
    assert_eq!(project.answer("needle")["decision"], "deny");
    assert!(!project.call("hay").stdout.contains("deny"));
}

#[test]
fn a_line_for_cmd_runs_in_cmd() {
    let line = "cd . && echo {\"decision\":\"deny\",\"reason\":\"%WHY%\"}";
    let handler = json!({"command": line, "env": {"WHY": "by cmd"}});
    let project = HookProject::new(handler, &[]);
    assert_eq!(project.answer("dir")["reason"], "by cmd");
}

#[test]
fn the_command_for_windows_is_taken() {
    let handler = json!({
        "command": "./guard.sh",
        "platform": {"windows": "./guard.cmd", "linux": "./linux.sh", "osx": "./osx.sh"},
    });
    let files = [("guard.cmd", "@echo here 1>&2\r\n@exit /b 2\r\n")];
    let project = HookProject::new(handler, &files);
    assert_eq!(project.answer("dir")["decision"], "deny");
}

/// Plays a hook: prints its arguments, its folder and two variables as a reason.
#[test]
#[ignore = "a process that another test starts"]
fn playing_hook() {
    let arguments: Vec<String> = std::env::args().skip(4).collect();
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let seen = json!({
        "arguments": arguments,
        "folder": std::env::current_dir().unwrap(),
        "project": variable("ANYHOOK_PROJECT_DIR"),
        "own": variable("OWN"),
    });
    std::fs::write(variable("SEEN"), seen.to_string()).unwrap();
    std::process::exit(2);
}

#[test]
fn a_program_gets_its_arguments_unchanged() {
    let seen_file = tempfile::NamedTempFile::new().unwrap();
    let arguments = [
        "a b",
        "c\"d",
        "e\\",
        "%PATH%",
        "^&|<>",
        "\u{e4}\u{4f60}",
        "",
    ];
    let own = text(&std::env::current_exe().unwrap());
    let fixed = ["--ignored", "--exact", "hooks::playing_hook"];
    let all = [&fixed[..], &arguments[..]].concat();
    let handler = json!({
        "command": own,
        "args": all,
        "cwd": "my folder",
        "env": {"SEEN": text(seen_file.path()), "OWN": "x y%z"},
    });
    let project = HookProject::new(handler, &[("my folder/x", "")]);
    project.call("dir");
    let seen = std::fs::read_to_string(seen_file.path()).unwrap();
    let seen: Value = serde_json::from_str(&seen).unwrap();
    assert_eq!(seen["arguments"], json!(arguments));
    assert_eq!(seen["own"], "x y%z");
    let folder = Path::new(seen["folder"].as_str().unwrap());
    assert!(folder.ends_with("my folder"), "{seen}");
    let project = seen["project"].as_str().unwrap();
    assert!(project.ends_with("project"), "{seen}");
}

#[test]
fn folders_may_have_blanks_and_letters_of_all_languages() {
    for folder in [
        "my hooks",
        "h\u{e4}ken",
        "\u{4f60}\u{597d}",
        "a & b",
        "100%",
        "x(1)",
    ] {
        let path = format!("{folder}/guard.cmd");
        let files = [(path.as_str(), "@echo no 1>&2\r\n@exit /b 2\r\n")];
        let command = format!("\"{folder}/guard.cmd\"");
        let project = HookProject::new(json!({ "command": command }), &files);
        let output = project.call("dir");
        assert!(output.stdout.contains("deny"), "{folder}: {output:?}");
    }
}

#[test]
fn a_guard_that_cannot_start_blocks_if_it_must() {
    for command in [
        "gone.cmd",
        "gone.exe",
        "./gone.ps1",
        "gone.sh",
        "echo x; exit 0",
    ] {
        let handler = json!({ "command": command });
        let project = HookProject::with_failure(handler, "block", &[]);
        let output = project.call("dir");
        assert!(output.stdout.contains("\"deny\""), "{command}: {output:?}");
        assert_eq!(project.journal().len(), 1);
    }
}

#[test]
fn output_without_end_is_cut_and_does_not_hang() {
    let hook = "@echo off\r\nfor /l %%i in (1,1,20000) do @echo 0123456789012345678901234567890123456789\r\n";
    let project = HookProject::new(json!({"command": "./hook.cmd"}), &[("hook.cmd", hook)]);
    let output = project.call("dir");
    assert_eq!(output.exit, Some(0), "{:?}", output.stderr);
    assert_eq!(project.journal().len(), 1);
}

/// The interpreters are batch files: what counts is that they get the script.
#[test]
fn scripts_are_started_by_the_interpreters_on_path() {
    for (interpreter, script, first_line, product) in [
        ("py", "guard.py", "", "Python"),
        ("python", "guard.py", "", "Python"),
        ("node", "guard.js", "", "Node.js"),
        ("node", "guard.mjs", "", "Node.js"),
        ("powershell", "guard.ps1", "", "PowerShell"),
        ("pwsh", "guard.ps1", "", "PowerShell"),
        ("bash", "guard.sh", "", "Git Bash"),
        ("bash", "guard", "#!/bin/sh\n", "Git Bash"),
        ("node", "guard", "#!/usr/bin/env node\r\n", "Node.js"),
    ] {
        let path = format!("my hooks/{script}");
        let handler = json!({ "command": format!("\"./{path}\" one") });
        let project = HookProject::with_failure(handler, "block", &[(&path, first_line)]);
        let programs = project.scratch.root().join("my programs");
        let program = programs.join(format!("{interpreter}.cmd"));
        let started = "@echo started %* 1>&2\r\n@exit /b 2\r\n";
        project.scratch.file(&program, started).unwrap();
        let output = project.call_with_programs(&programs);
        let answer = output.json().unwrap();
        let reason = answer["reason"].as_str().unwrap();
        assert_eq!(answer["decision"], "deny", "{script}: {output:?}");
        let is_started = reason.contains("started") && reason.contains(script);
        assert!(is_started && reason.contains("one"), "{script}: {reason}");
        // Without it the guard cannot run, says what is missing, and blocks.
        let answer = project.answer("dir");
        assert_eq!(answer["decision"], "deny", "{script}");
        let record = serde_json::to_string(project.journal().last().unwrap()).unwrap();
        assert!(record.contains(product), "{script}: {record}");
    }
}

#[test]
fn a_long_path_is_no_way_around_a_guard() {
    let folder = "a folder with a long name/".repeat(12);
    let path = format!("{folder}guard.cmd");
    let files = [(path.as_str(), "@echo no 1>&2\r\n@exit /b 2\r\n")];
    let handler = json!({ "command": format!("\"{path}\"") });
    let project = HookProject::with_failure(handler, "block", &files);
    let output = project.call("dir");
    assert!(output.stdout.contains("\"deny\""), "{output:?}");
}
