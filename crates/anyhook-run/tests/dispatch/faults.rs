//! Whatever a hook, a payload or a file does, the agent gets an answer that it
//! understands, and no process stays behind.

use std::io::Write;

use anyhook_model::{RecordKind, RunOutcome};

use crate::scratch::{Scratch, hook, told, until};

struct Fault {
    name: &'static str,
    command: &'static str,
    more: &'static str,
    outcome: RunOutcome,
    denies: bool,
    /// In the message to the user.
    says: &'static str,
}

const FAULTS: [Fault; 16] = [
    Fault {
        name: "hangs",
        command: "sleep 1000",
        more: "blocking: true\nhandler.timeout: 0.2",
        outcome: RunOutcome::Timeout,
        denies: false,
        says: "timed out",
    },
    Fault {
        name: "hangs, and its author wants that to block",
        command: "sleep 1000",
        more: "blocking: true\nhandler.timeout: 0.2\nhandler.timeout_action: block",
        outcome: RunOutcome::Timeout,
        denies: true,
        says: "timed out",
    },
    Fault {
        name: "ignores the polite signal",
        command: "trap '' TERM; while :; do sleep 0.05; done",
        more: "blocking: true\nhandler.timeout: 0.2",
        outcome: RunOutcome::Timeout,
        denies: false,
        says: "timed out",
    },
    Fault {
        name: "a grandchild keeps stdout",
        command: "sleep 1000 & echo '{\"decision\":\"deny\",\"reason\":\"still heard\"}'",
        more: "blocking: true",
        outcome: RunOutcome::Deny,
        denies: true,
        says: "left a process behind",
    },
    Fault {
        name: "100 MiB of output",
        command: "head -c 104857600 /dev/zero",
        more: "blocking: true",
        outcome: RunOutcome::Error,
        denies: false,
        says: "stdout was cut: 104857600 bytes",
    },
    Fault {
        name: "binary garbage",
        command: "head -c 5000 /dev/urandom; head -c 5000 /dev/urandom >&2",
        more: "blocking: true",
        outcome: RunOutcome::Error,
        denies: false,
        says: "stdout is not JSON",
    },
    Fault {
        name: "binary garbage with a block",
        command: "printf '\\377\\376\\000' >&2; exit 2",
        more: "blocking: true",
        outcome: RunOutcome::Deny,
        denies: true,
        says: "",
    },
    Fault {
        name: "not an object",
        command: "echo '[1]'",
        more: "",
        outcome: RunOutcome::Error,
        denies: false,
        says: "not an object",
    },
    Fault {
        name: "exit by signal",
        command: "kill -KILL $$",
        more: "blocking: true",
        outcome: RunOutcome::Error,
        denies: false,
        says: "signal 9",
    },
    Fault {
        name: "a script without run bit",
        command: "./plain.sh",
        more: "blocking: true",
        outcome: RunOutcome::Error,
        denies: false,
        says: "chmod +x",
    },
    Fault {
        name: "a missing interpreter",
        command: "./alien.sh",
        more: "blocking: true",
        outcome: RunOutcome::Error,
        denies: false,
        says: "the interpreter `/no/such/interpreter`",
    },
    Fault {
        name: "a missing script",
        command: "./missing.sh",
        more: "blocking: true",
        outcome: RunOutcome::Error,
        denies: false,
        says: "was not found",
    },
    Fault {
        name: "a missing folder",
        command: "true",
        more: "blocking: true\nhandler.cwd: no/such/folder",
        outcome: RunOutcome::Error,
        denies: false,
        says: "working directory",
    },
    Fault {
        name: "exit 1",
        command: "echo oops >&2; exit 1",
        more: "blocking: true",
        outcome: RunOutcome::Warn,
        denies: false,
        says: "exit code 1: oops",
    },
    Fault {
        name: "exit 2 of an observer",
        command: "echo oops >&2; exit 2",
        more: "",
        outcome: RunOutcome::Warn,
        denies: false,
        says: "not blocking: oops",
    },
    Fault {
        name: "a dialect that nobody speaks",
        command: "true",
        more: "handler.dialect: klingon",
        outcome: RunOutcome::Error,
        denies: false,
        says: "dialect `klingon`",
    },
];

#[test]
fn no_fault_of_a_hook_reaches_the_agent() {
    for fault in FAULTS {
        let name = fault.name;
        let scratch = Scratch::with_hook(fault.command, fault.more);
        scratch.write("project/plain.sh", "#!/bin/sh\n");
        scratch.script("project/alien.sh", "#!/no/such/interpreter\n");
        let told = scratch.call();
        assert_eq!(told.exit, Some(0), "{name}: {told:?}");
        assert_eq!(told.stderr, "", "{name}");
        assert_eq!(told.is_deny(), fault.denies, "{name}: {told:?}");
        assert!(told.message().contains(fault.says), "{name}: {told:?}");
        let journal = scratch.journal();
        assert_eq!(journal.len(), 1, "{name}");
        assert_eq!(journal[0].hooks[0].outcome, fault.outcome, "{name}");
        scratch.assert_nothing_left();
    }
}

#[test]
fn a_hook_that_fails_blocks_under_a_managed_policy() {
    let cases = [
        ("kill -KILL $$", "blocking: true", true),
        ("./missing.sh", "blocking: true", true),
        ("kill -KILL $$", "blocking: false", false),
        ("exit 1", "blocking: true", false),
    ];
    for (command, more, denies) in cases {
        let scratch = Scratch::with_hook(command, more);
        scratch.write("managed/policy.json", r#"{"fail_closed": true}"#);
        assert_eq!(scratch.call().is_deny(), denies, "{command} {more}");
    }
}

#[test]
fn ten_megabytes_that_nobody_reads() {
    let scratch = Scratch::with_hook("echo '{\"context\":\"fine\"}'", "blocking: true");
    let mut event = scratch.event("before_tool_execute");
    event["data"]["tool_input"]["command"] = "x".repeat(10 * 1024 * 1024).into();
    assert_eq!(scratch.run(&event).answer()["context"], "fine");
    let record = &scratch.journal()[0];
    let written = record.event.tool_input().unwrap()["command"]
        .as_str()
        .unwrap();
    assert!(
        written.ends_with("bytes in all]"),
        "the journal keeps all of it"
    );
}

#[test]
fn payloads_that_are_none() {
    let scratch = Scratch::with_hook("exit 2", "blocking: true");
    let cases: [&[u8]; 7] = [
        b"",
        b"{\"event\": \"before_tool",
        b"[1, 2]",
        b"null",
        b"{}",
        b"\xff\xfe{}",
        b"{\"event\":\"before_tool_execute\",\"source\":\"\xff\"}",
    ];
    for payload in cases {
        let told = scratch.run_bytes(payload);
        assert_eq!(told.exit, Some(0), "{payload:?}: {told:?}");
        assert!(!told.is_deny(), "{payload:?}: {told:?}");
        assert!(told.message().contains("no hook has run"), "{told:?}");
    }
    let journal = scratch.journal();
    assert_eq!(journal.len(), cases.len());
    assert!(
        journal
            .iter()
            .all(|record| record.kind == RecordKind::Failure)
    );
}

#[test]
fn a_manifest_that_is_broken_or_gone() {
    let scratch = Scratch::with_hook("exit 2", "blocking: true");
    scratch.write("project/.anyhook/hooks.yaml", "spec: hooks/1.0\nhooks: [\n");
    let told = scratch.call();
    assert!(!told.is_deny());
    assert!(
        told.message().contains("hooks.yaml` is not used: line "),
        "{told:?}"
    );
    assert!(
        scratch.call().message().is_empty(),
        "told once in a session"
    );
    assert_eq!(
        scratch.journal()[1].warnings.len(),
        1,
        "and recorded each time"
    );

    scratch.write("managed/policy.json", r#"{"fail_closed": true}"#);
    assert!(scratch.call().is_deny());
    let observed = scratch.run(&scratch.event("after_tool_execute"));
    assert!(!observed.is_deny(), "nothing can be prevented there");

    let scratch = Scratch::new();
    scratch.manifest(
        &[
            hook("first", "before_tool_execute", "rm -r .anyhook", ""),
            hook(
                "second",
                "before_tool_execute",
                "./gone.sh",
                "blocking: true",
            ),
            hook(
                "third",
                "before_tool_execute",
                "echo '{\"context\":\"ran\"}'",
                "",
            ),
        ]
        .concat(),
    );
    scratch.script("project/.anyhook/gone.sh", "#!/bin/sh\nexit 2\n");
    let told = scratch.call();
    assert_eq!(told.answer()["context"], "ran", "{told:?}");
    assert!(told.message().contains("was not found"), "{told:?}");
}

#[test]
fn a_home_that_cannot_be_written() {
    let mut scratch = Scratch::with_hook("echo no >&2; exit 2", "blocking: true");
    scratch
        .env
        .push(("ANYHOOK_STATE_DIR".to_owned(), "/dev/null/x".to_owned()));
    let told = scratch.call();
    assert_eq!((told.exit, told.stderr.as_str()), (Some(0), ""));
    assert_eq!(told.answer()["reason"], "no\n".trim());
}

#[test]
fn two_hundred_at_once() {
    let scratch = Scratch::with_hook(
        "cat >/dev/null; echo '{\"context\":\"ok\"}'",
        "blocking: true",
    );
    let mut children = Vec::new();
    for n in 0..200 {
        let mut event = scratch.event("before_tool_execute");
        event["data"]["tool_call_id"] = format!("call-{n}").into();
        let mut child = scratch.start();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(event.to_string().as_bytes()).unwrap();
        drop(stdin);
        children.push(child);
    }
    for child in children {
        assert_eq!(told(child).answer()["context"], "ok");
    }
    let mut calls: Vec<String> = scratch
        .journal()
        .iter()
        .map(|record| record.event.text("tool_call_id").unwrap().to_owned())
        .collect();
    calls.sort();
    calls.dedup();
    assert_eq!(calls.len(), 200);
    scratch.assert_nothing_left();
}

#[test]
fn an_agent_that_ends_us_ends_the_hook() {
    let scratch = Scratch::with_hook("echo x >started; sleep 1000 & wait", "blocking: true");
    let mut child = scratch.start();
    let event = scratch.event("before_tool_execute").to_string();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(event.as_bytes())
        .unwrap();
    until("the start of the hook", || {
        scratch.exists("project/started")
    });
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    scratch.assert_nothing_left();
    assert_eq!(scratch.journal().len(), 1);
}

#[test]
fn wrong_usage_is_no_block() {
    let scratch = Scratch::new();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_anyhook-dispatch-test"));
    command
        .args(["run", "--agent", "nobody"])
        .stdin(std::process::Stdio::null());
    command.env("ANYHOOK_STATE_DIR", scratch.base.join("state"));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("nobody"));
}

#[test]
fn switched_off() {
    let mut scratch = Scratch::with_hook("exit 2", "blocking: true");
    scratch.env.push(("ANYHOOK".to_owned(), "0".to_owned()));
    assert_eq!(scratch.call().answer(), serde_json::json!({}));
    let journal = scratch.journal();
    assert_eq!(journal.len(), 1, "the record says why nothing was asked");
    assert!(journal[0].warnings[0].contains("switched off"));
}
