//! Many calls at once, and hooks that do not end.

use std::io::Write as _;
use std::os::windows::process::CommandExt as _;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhook_agents::matrix::clients;
use anyhook_testkit::{ProcessOutput, Scratch, wait_until};
use serde_json::{Value, json};

use crate::support::{MANIFEST, anyhook, decision, run, shell_call, text, trusted_project};

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
        // Wine does not always manage to start so many at once.
        let mut attempts = (0..20).filter_map(|_| anyhook(&scratch).spawn(arguments).ok());
        let mut child = attempts.next().unwrap();
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
    let sleeper = format!("\"{own}\" --ignored --exact processes::sleeper");
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

/// Has a console of its own, and presses Ctrl-C in it while a guard runs.
#[test]
#[ignore = "a process that another test starts"]
fn pressing_ctrl_c() {
    let scratch = Scratch::new().unwrap();
    let (early, late) = (
        scratch.root().join("early.txt"),
        scratch.root().join("late.txt"),
    );
    let own = text(&std::env::current_exe().unwrap());
    let sleeper = format!("\"{own}\" --ignored --exact processes::sleeper");
    let hook = format!("@echo off\r\necho x>\"%EARLY%\"\r\n{sleeper}\r\n");
    let mut manifest: Value = serde_json::from_str(MANIFEST).unwrap();
    manifest["hooks"][0]["handler"]["env"] =
        json!({ "EARLY": text(&early), "SLEEPER_FILE": text(&late) });
    scratch.file(".git/HEAD", "").unwrap();
    scratch.file(".anyhook/guard.cmd", &hook).unwrap();
    let manifest = manifest.to_string();
    scratch.file(".anyhook/hooks.json", &manifest).unwrap();
    let trusted = run(&scratch, &["trust", "--yes"], "");
    assert_eq!(trusted.exit, Some(0), "{trusted:?}");
    let event = shell_call("dir", &text(&scratch.project()));
    let payload = serde_json::to_string(&event).unwrap();
    let mut child = anyhook(&scratch)
        .spawn(["run", "--agent", "canonical"])
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(payload.as_bytes()).unwrap();
    drop(stdin);
    wait_until("the hook", || early.exists());
    press_ctrl_c();
    let pressed = Instant::now();
    let output = ProcessOutput::wait(child).unwrap();
    assert!(pressed.elapsed() < Duration::from_secs(3), "{output:?}");
    assert!(
        !output.stdout.contains("allow"),
        "the guard has not decided: {output:?}"
    );
    std::thread::sleep(Duration::from_secs(5));
    assert!(!late.exists(), "a process of the hook has outlived Ctrl-C");
}

/// Every process in the console of this one gets it; this one ignores it.
#[expect(
    unsafe_code,
    reason = "the console can only be asked through its C interface"
)]
fn press_ctrl_c() {
    use windows_sys::Win32::System::Console::{
        CTRL_C_EVENT, GenerateConsoleCtrlEvent, SetConsoleCtrlHandler,
    };
    // SAFETY: no function is given, and plain values.
    let done = unsafe {
        SetConsoleCtrlHandler(None, 1) != 0 && GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0) != 0
    };
    assert!(done, "{}", std::io::Error::last_os_error());
}

#[test]
fn ctrl_c_ends_a_hook_and_what_it_has_started() {
    /// With a console that nobody sees.
    const CREATE_NO_WINDOW: u32 = 0x0800_0000;
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "processes::pressing_ctrl_c"])
        .creation_flags(CREATE_NO_WINDOW)
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{shown}");
    assert!(shown.contains("1 passed"), "{shown}");
}
