//! `test --watch` runs again when a script or a manifest changes, and a broken manifest
//! does not end it; slow commands show their progress on a terminal only.
#![cfg(unix)] // the hooks are lines for a POSIX shell
#![cfg(test)]

use std::io::{BufRead as _, BufReader, Read};
use std::process::Command;
use std::sync::{Arc, Mutex};

use anyhook_testkit::{Scratch, wait_until};

fn manifest(command: &str) -> String {
    format!(
        "spec: hooks/1.0\nhooks:\n  - name: guard\n    event: before_tool_execute\n    matcher: shell\n    blocking: true\n    handler: {{type: command, command: \"{command}\"}}\n"
    )
}

/// Collects what a process prints, until it ends.
fn collect(stream: impl Read + Send + 'static) -> Arc<Mutex<String>> {
    let text = Arc::new(Mutex::new(String::new()));
    let lines = Arc::clone(&text);
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let mut text = lines.lock().unwrap();
            text.push_str(&line);
            text.push('\n');
        }
    });
    text
}

#[test]
fn watch_runs_again_after_each_change() {
    let scratch = Scratch::new().unwrap();
    scratch
        .file(".anyhook/hooks.yaml", &manifest("./guard.sh"))
        .unwrap();
    let deny = "#!/bin/sh\necho FIRST-REASON >&2\nexit 2\n";
    scratch.exec(".anyhook/guard.sh", deny).unwrap();
    let binary = scratch
        .command(env!("CARGO_BIN_EXE_anyhook"))
        .env("ANYHOOK_TRUST", "all");
    let mut child = binary
        .spawn(["test", "--watch", "--agent", "codex"])
        .unwrap();
    let stdout = collect(child.stdout.take().unwrap());
    let stderr = collect(child.stderr.take().unwrap());
    let wait_for_text = |place: &Arc<Mutex<String>>, text: &str| {
        wait_until(text, || place.lock().unwrap().contains(text));
        place.lock().unwrap().clear();
    };

    wait_for_text(&stdout, "FIRST-REASON");
    wait_for_text(&stderr, "Waiting for a change");
    let other = "#!/bin/sh\necho SECOND-REASON >&2\nexit 2\n";
    scratch.exec(".anyhook/guard.sh", other).unwrap();
    wait_for_text(&stdout, "SECOND-REASON");
    wait_for_text(&stderr, "Waiting for a change");
    scratch
        .file(".anyhook/hooks.yaml", "spec: hooks/1.0\nhooks: [\n")
        .unwrap();
    wait_for_text(&stderr, "Waiting for a change");
    scratch
        .file(
            ".anyhook/hooks.yaml",
            &manifest("echo THIRD-REASON >&2; exit 2"),
        )
        .unwrap();
    wait_for_text(&stdout, "THIRD-REASON");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// `replay --run` runs a hook that takes two seconds.
#[test]
fn progress_is_shown_on_a_terminal_only() {
    let scratch = Scratch::new().unwrap();
    let path = scratch
        .file(".anyhook/hooks.yaml", &manifest("sleep 2"))
        .unwrap();
    let anyhook = || {
        scratch
            .command(env!("CARGO_BIN_EXE_anyhook"))
            .env("ANYHOOK_TRUST", "all")
            .env("TERM", "xterm")
    };
    let payload = format!(
        r#"{{"hook_event_name":"PreToolUse","session_id":"s","cwd":"{}","tool_name":"Bash","tool_input":{{"command":"ls"}},"tool_use_id":"t"}}"#,
        path.parent().unwrap().parent().unwrap().display()
    );
    let run = anyhook().run(["run", "--agent", "claude-code"], &payload);
    assert_eq!(run.unwrap().exit, Some(0));

    let piped = anyhook().run(["replay", "--run"], "").unwrap();
    assert_eq!(piped.exit, Some(0), "{piped:?}");
    assert_eq!(piped.stderr, "");

    if Command::new("script").arg("--version").output().is_err() {
        eprintln!("skipped: `script` is not installed");
        return;
    }
    let line = format!("'{}' replay --run > out.txt", env!("CARGO_BIN_EXE_anyhook"));
    let on_terminal = scratch
        .command("script")
        .env("ANYHOOK_TRUST", "all")
        .env("TERM", "xterm")
        .run(["-qec", &line, "/dev/null"], "")
        .unwrap();
    assert_eq!(on_terminal.exit, Some(0), "{on_terminal:?}");
    let shown = on_terminal.stdout;
    assert!(shown.contains("Replaying… 1 event, 1 s"), "{shown:?}");
    assert!(shown.ends_with("\r\u{1b}[K"), "{shown:?}");
    let out = std::fs::read_to_string(scratch.project().join("out.txt")).unwrap();
    assert_eq!(out, piped.stdout);
}
