//! The program on Windows, as its users meet it: hooks that are batch files,
//! every agent, and processes that do not end by themselves. `cargo xtask wine`
//! runs this under Wine.
#![cfg(windows)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use anyhook_model::event::field;
use anyhook_model::{Decision, HookEvent};
use anyhook_testkit::{Invocation, ProcessOutput, Scratch};
use serde_json::{Value, json};

const GUARD: &str = "@echo off\r\n\
    \"%SystemRoot%\\System32\\find.exe\" \"rm -rf\" >nul\r\n\
    if errorlevel 1 exit /b 0\r\n\
    echo no recursive delete 1>&2\r\n\
    exit /b 2\r\n";

/// A guard that is a batch file; its path has a backslash, as users write it.
const MANIFEST: &str = r#"{"spec": "hooks/1.0", "hooks": [{
    "name": "guard", "event": "before_tool_execute", "matcher": "shell", "blocking": true,
    "handler": {"type": "command", "command": ".anyhook\\guard.cmd"}
}]}"#;

fn anyhook(scratch: &Scratch) -> Invocation {
    scratch.command(env!("CARGO_BIN_EXE_anyhook"))
}

fn run(scratch: &Scratch, arguments: &[&str], stdin: &str) -> ProcessOutput {
    anyhook(scratch).run(arguments, stdin).unwrap()
}

/// A project with a manifest and a guard that are trusted.
fn trusted_project(manifest: &str) -> Scratch {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    scratch.file(".anyhook/guard.cmd", GUARD).unwrap();
    scratch.file(".anyhook/hooks.json", manifest).unwrap();
    let trusted = run(&scratch, &["trust", "--yes"], "");
    assert_eq!(trusted.exit, Some(0), "{trusted:?}");
    scratch
}

fn shell_call(command: &str, folder: &str) -> HookEvent {
    let mut event = HookEvent {
        event: "before_tool_execute".to_owned(),
        session_id: Some("windows".to_owned()),
        cwd: Some(folder.to_owned()),
        ..HookEvent::default()
    };
    event.data.insert(field::TOOL_NAME.into(), json!("shell"));
    let input = json!({ "command": command });
    event.data.insert(field::TOOL_INPUT.into(), input);
    event
}

/// What the agent makes of the answer to a call.
fn decision(scratch: &Scratch, adapter: &Adapter, command: &str, folder: &str) -> Option<Decision> {
    let event = shell_call(command, folder);
    let encoded = adapter.encode(&event, None).unwrap();
    let (slug, native) = (adapter.spec.id.as_ref(), encoded.native_event.as_str());
    let arguments = ["run", "--agent", slug, "--event", native];
    let output = run(scratch, &arguments, &encoded.payload.to_string());
    let event = adapter
        .decode(&encoded.payload, Some(native))
        .unwrap()
        .event;
    let exit = output.exit.unwrap();
    let read = adapter.decode_answer(&event, native, &output.stdout, &output.stderr, exit);
    read.response.decision
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[test]
fn a_batch_file_denies_for_every_agent() {
    let scratch = trusted_project(MANIFEST);
    let project = text(&scratch.project());
    for adapter in clients() {
        let slug = &adapter.spec.id;
        let denied = decision(&scratch, adapter, "rm -rf x", &project);
        assert_eq!(denied, Some(Decision::Deny), "{slug}");
        let other = decision(&scratch, adapter, "dir", &project);
        assert_ne!(other, Some(Decision::Deny), "{slug}");
    }
}

#[test]
fn a_project_is_the_same_by_every_name_of_its_folder() {
    let scratch = trusted_project(MANIFEST);
    let adapter = clients().next().unwrap();
    let project = text(&scratch.project());
    let (drive, rest) = project.split_once(':').unwrap();
    let slashes = rest.replace('\\', "/");
    let drive = drive.to_lowercase();
    for folder in [
        format!("{drive}:{rest}"),
        format!("{drive}:{slashes}"),
        format!(r"\\?\{project}"),
        format!("/{drive}{slashes}"),
        format!("file:///{drive}:{slashes}"),
        format!("{project}\\gone\\.."),
        format!("{project}\\.\\sub"),
    ] {
        let denied = decision(&scratch, adapter, "rm -rf x", &folder);
        assert_eq!(denied, Some(Decision::Deny), "{folder}");
    }
}

#[test]
fn a_changed_batch_file_is_not_run() {
    let scratch = trusted_project(MANIFEST);
    let adapter = clients().next().unwrap();
    scratch
        .file(".anyhook/guard.cmd", "@exit /b 2\r\n")
        .unwrap();
    let project = text(&scratch.project());
    let decided = decision(&scratch, adapter, "dir", &project);
    assert_eq!(decided, None, "what has changed must not run");
}

#[test]
fn a_line_for_sh_is_never_run_by_cmd() {
    let manifest = MANIFEST
        .replace(r".anyhook\\guard.cmd", "echo no >&2; exit 2")
        .replace(
            "\"blocking\": true",
            "\"blocking\": true, \"on_failure\": \"block\"",
        );
    let scratch = trusted_project(&manifest);
    let adapter = clients().next().unwrap();
    // Without Git Bash it cannot start, and a guard that fails blocks.
    let decided = decision(&scratch, adapter, "dir", &text(&scratch.project()));
    assert_eq!(decided, Some(Decision::Deny));
}

#[test]
fn the_demo_denies_in_every_agent() {
    let scratch = Scratch::new().unwrap();
    let shown = run(&scratch, &["demo", "--json"], "").json().unwrap();
    let agents = shown["scenes"][0]["agents"].as_array().unwrap();
    assert_eq!(agents.len(), clients().count());
    for agent in agents {
        let decision = &agent["response"]["decision"];
        assert_eq!(decision, "deny", "{}", agent["name"]);
    }
}

#[test]
fn a_first_manifest_works_without_sh() {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    let made = run(&scratch, &["init", "--yes"], "");
    assert_eq!(made.exit, Some(0), "{made:?}");
    let adapter = clients().next().unwrap();
    let project = text(&scratch.project());
    let denied = decision(&scratch, adapter, "rm -rf ~", &project);
    assert_eq!(denied, Some(Decision::Deny));
}

/// Every file below a folder, with its content.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push((text(&path), std::fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn install_answers_and_uninstall_leaves_every_byte() {
    let scratch = trusted_project(MANIFEST);
    let settings = "{\r\n  // mine\r\n  \"model\": \"x\"\r\n}\r\n";
    let settings_file = scratch.home().join(".claude/settings.json");
    scratch.file(&settings_file, settings).unwrap();
    let before = (files(&scratch.project()), files(&scratch.home()));
    let agents = clients().filter(|adapter| {
        let mut files = adapter.spec.files.iter();
        files.any(|file| file.path.starts_with("~/"))
    });
    let agents: Vec<&str> = agents
        .flat_map(|adapter| ["--agent", adapter.spec.id.as_ref()])
        .collect();
    let with = |command: &'static str| [&[command, "--yes", "--scope", "user"], &*agents].concat();
    let installed = run(&scratch, &with("install"), "");
    assert_eq!(installed.exit, Some(0), "{installed:?}");
    let written = std::fs::read_to_string(&settings_file).unwrap();
    assert!(
        written.contains("anyhook.exe run --agent claude-code"),
        "{written}"
    );
    assert!(
        !written.contains("\\\\"),
        "one path for every shell: {written}"
    );
    let diagnosed = run(&scratch, &["doctor", "--json"], "");
    for code in ["bridge-dead", "deny-lost"] {
        assert!(!diagnosed.stdout.contains(code), "{}", diagnosed.stdout);
    }
    let removed = run(&scratch, &with("uninstall"), "");
    assert_eq!(removed.exit, Some(0), "{removed:?}");
    let after = (files(&scratch.project()), files(&scratch.home()));
    assert_eq!(before, after);
}

#[test]
fn fifty_calls_at_once_leave_fifty_lines() {
    let scratch = trusted_project(MANIFEST);
    let adapter = clients().next().unwrap();
    let event = shell_call("dir", &text(&scratch.project()));
    let encoded = adapter.encode(&event, None).unwrap();
    let arguments = [
        "run",
        "--agent",
        adapter.spec.id.as_ref(),
        "--event",
        &encoded.native_event,
    ];
    let start = |_| {
        let mut child = anyhook(&scratch).spawn(arguments).unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin
            .write_all(encoded.payload.to_string().as_bytes())
            .unwrap();
        child
    };
    let children: Vec<Child> = (0..50).map(start).collect();
    for child in children {
        let output = ProcessOutput::wait(child).unwrap();
        assert_eq!(output.exit, Some(0), "{output:?}");
    }
    let journal = scratch.state().join("journal/events.jsonl");
    let lines = std::fs::read_to_string(journal).unwrap();
    let records = lines.lines().map(serde_json::from_str::<Value>);
    assert_eq!(records.filter(Result::is_ok).count(), 50);
}

/// Writes the file of the variable after a while.
#[test]
#[ignore = "a process that another test starts"]
fn sleeper() {
    std::thread::sleep(Duration::from_secs(4));
    std::fs::write(std::env::var("SLEEPER_FILE").unwrap(), "late").unwrap();
}

#[test]
fn a_timeout_ends_what_the_hook_has_started() {
    let manifest = MANIFEST.replace(
        r#"guard.cmd""#,
        r#"guard.cmd", "timeout": 1, "env": {"SLEEPER_FILE": "LATE"}"#,
    );
    let scratch = Scratch::new().unwrap();
    let late = scratch.root().join("late.txt");
    let manifest = manifest.replace("LATE", &text(&late).replace('\\', "\\\\"));
    let own = text(&std::env::current_exe().unwrap());
    let sleeper = format!("\"{own}\" --ignored --exact sleeper");
    let hook = format!("@echo off\r\nstart \"\" /b {sleeper}\r\n{sleeper}\r\n");
    scratch.file(".git/HEAD", "").unwrap();
    scratch.file(".anyhook/guard.cmd", &hook).unwrap();
    scratch.file(".anyhook/hooks.json", &manifest).unwrap();
    let trusted = run(&scratch, &["trust", "--yes"], "");
    assert_eq!(trusted.exit, Some(0), "{trusted:?}");
    let adapter = clients().next().unwrap();
    decision(&scratch, adapter, "dir", &text(&scratch.project()));
    std::thread::sleep(Duration::from_secs(6));
    assert!(!late.exists(), "a process of the hook has outlived it");
    let journal = scratch.state().join("journal/events.jsonl");
    let lines = std::fs::read_to_string(journal).unwrap();
    assert!(
        lines.contains("timeout") || lines.contains("timed out"),
        "{lines}"
    );
}

#[test]
fn a_daemon_answers_over_tcp_and_keeps_the_events() {
    let scratch = trusted_project(MANIFEST);
    let serve = ["serve", "--listen", "127.0.0.1:0", "--json"];
    let mut daemon = anyhook(&scratch).spawn(serve).unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(daemon.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    let started: Value = serde_json::from_str(&line).unwrap();
    let url = started["url"].as_str().unwrap();
    let adapter = clients().next().unwrap();
    let event = shell_call("rm -rf x", &text(&scratch.project()));
    let encoded = adapter.encode(&event, None).unwrap();
    let arguments = [
        "run",
        "--agent",
        adapter.spec.id.as_ref(),
        "--event",
        &encoded.native_event,
        "--server",
        url,
    ];
    let output = run(&scratch, &arguments, &encoded.payload.to_string());
    assert!(output.stdout.contains("no recursive delete"), "{output:?}");
    assert!(!output.stdout.contains("away"), "{output:?}");
    // The daemon fills its store from the journal.
    std::thread::sleep(Duration::from_secs(3));
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    assert!(scratch.state().join("store.db").is_file());
    let log = run(&scratch, &["log", "--json"], "");
    assert!(log.stdout.contains("no recursive delete"), "{log:?}");
}
