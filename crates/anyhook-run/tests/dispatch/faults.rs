//! Whatever a hook, a payload or a file does, the agent gets an answer that it
//! understands, and no process stays behind.

use std::io::Write;

use anyhook_model::{RecordKind, RunOutcome};
use anyhook_testkit::wait_until;

use crate::scratch::{DispatchOutput, DispatchScratch, hook};

struct Fault {
    name: &'static str,
    command: &'static str,
    more: &'static str,
    outcome: RunOutcome,
    denies: bool,
    /// In the message to the user.
    message: &'static str,
}

const FAULTS: [Fault; 16] = [
    Fault {
        name: "hangs",
        command: "sleep 1000",
        more: "blocking: true\nhandler.timeout: 0.2",
        outcome: RunOutcome::Timeout,
        denies: false,
        message: "timed out",
    },
    Fault {
        name: "hangs, and its author wants that to block",
        command: "sleep 1000",
        more: "blocking: true\nhandler.timeout: 0.2\nhandler.timeout_action: block",
        outcome: RunOutcome::Timeout,
        denies: true,
        message: "timed out",
    },
    Fault {
        name: "ignores the polite signal",
        command: "trap '' TERM; while :; do sleep 0.05; done",
        more: "blocking: true\nhandler.timeout: 0.2",
        outcome: RunOutcome::Timeout,
        denies: false,
        message: "timed out",
    },
    Fault {
        name: "a grandchild keeps stdout",
        command: "sleep 1000 & echo '{\"decision\":\"deny\",\"reason\":\"still heard\"}'",
        more: "blocking: true",
        outcome: RunOutcome::Deny,
        denies: true,
        message: "left a process behind",
    },
    Fault {
        name: "100 MiB of output",
        command: "head -c 104857600 /dev/zero",
        more: "blocking: true",
        outcome: RunOutcome::Error,
        denies: false,
        message: "stdout was cut: 104857600 bytes",
    },
    Fault {
        name: "binary garbage",
        command: "head -c 5000 /dev/urandom; head -c 5000 /dev/urandom >&2",
        more: "blocking: true",
        outcome: RunOutcome::Error,
        denies: false,
        message: "stdout is not JSON",
    },
    Fault {
        name: "binary garbage with a block",
        command: "printf '\\377\\376\\000' >&2; exit 2",
        more: "blocking: true",
        outcome: RunOutcome::Deny,
        denies: true,
        message: "",
    },
    Fault {
        name: "not an object",
        command: "echo '[1]'",
        more: "",
        outcome: RunOutcome::Error,
        denies: false,
        message: "not an object",
    },
    Fault {
        name: "exit by signal",
        command: "kill -KILL $$",
        more: "blocking: true",
        outcome: RunOutcome::Error,
        denies: false,
        message: "signal 9",
    },
    Fault {
        name: "a script without run bit",
        command: "./plain.sh",
        more: "blocking: true",
        outcome: RunOutcome::Error,
        denies: false,
        message: "chmod +x",
    },
    Fault {
        name: "a missing interpreter",
        command: "./alien.sh",
        more: "blocking: true",
        outcome: RunOutcome::Error,
        denies: false,
        message: "the interpreter `/no/such/interpreter`",
    },
    Fault {
        name: "a missing script",
        command: "./missing.sh",
        more: "blocking: true",
        outcome: RunOutcome::Error,
        denies: false,
        message: "was not found",
    },
    Fault {
        name: "a missing folder",
        command: "true",
        more: "blocking: true\nhandler.cwd: no/such/folder",
        outcome: RunOutcome::Error,
        denies: false,
        message: "working directory",
    },
    Fault {
        name: "exit 1",
        command: "echo oops >&2; exit 1",
        more: "blocking: true",
        outcome: RunOutcome::Warn,
        denies: false,
        message: "exit code 1: oops",
    },
    Fault {
        name: "exit 2 of an observer",
        command: "echo oops >&2; exit 2",
        more: "",
        outcome: RunOutcome::Warn,
        denies: false,
        message: "not blocking: oops",
    },
    Fault {
        name: "an unknown dialect",
        command: "true",
        more: "handler.dialect: klingon",
        outcome: RunOutcome::Error,
        denies: false,
        message: "dialect `klingon`",
    },
];

#[test]
fn no_fault_of_a_hook_reaches_the_agent() {
    for fault in FAULTS {
        let name = fault.name;
        let scratch = DispatchScratch::with_hook(fault.command, fault.more);
        scratch.write("project/plain.sh", "#!/bin/sh\n");
        scratch.script("project/alien.sh", "#!/no/such/interpreter\n");
        let output = scratch.call();
        assert_eq!(output.exit, Some(0), "{name}: {output:?}");
        assert_eq!(output.stderr, "", "{name}");
        assert_eq!(output.is_deny(), fault.denies, "{name}: {output:?}");
        assert!(
            output.message().contains(fault.message),
            "{name}: {output:?}"
        );
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
        ("exit 1", "blocking: true", true),
        ("no-such-program; exit", "blocking: true", true),
        ("echo oops", "blocking: true", true),
        ("exit 1", "blocking: false", false),
    ];
    for (command, more, denies) in cases {
        let scratch = DispatchScratch::with_hook(command, more);
        scratch.write("managed/policy.json", r#"{"fail_closed": true}"#);
        assert_eq!(scratch.call().is_deny(), denies, "{command} {more}");
    }
}

#[test]
fn ten_megabytes_that_no_hook_reads() {
    let scratch = DispatchScratch::with_hook("echo '{\"context\":\"fine\"}'", "blocking: true");
    let mut event = scratch.event("before_tool_execute");
    event["data"]["tool_input"]["command"] = "x".repeat(10 * 1024 * 1024).into();
    assert_eq!(scratch.run(&event).response()["context"], "fine");
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
fn payloads_that_are_not_payloads() {
    let scratch = DispatchScratch::with_hook("exit 2", "blocking: true");
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
        let output = scratch.run_bytes(payload);
        assert_eq!(output.exit, Some(0), "{payload:?}: {output:?}");
        assert!(!output.is_deny(), "{payload:?}: {output:?}");
        assert!(output.message().contains("no hook has run"), "{output:?}");
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
fn a_manifest_with_mistakes_or_a_missing_one() {
    let scratch = DispatchScratch::with_hook("exit 2", "blocking: true");
    scratch.write("project/.anyhook/hooks.yaml", "spec: hooks/1.0\nhooks: [\n");
    let output = scratch.call();
    assert!(!output.is_deny());
    assert!(
        output.message().contains("hooks.yaml` is not used: line "),
        "{output:?}"
    );
    assert!(
        scratch.call().message().is_empty(),
        "shown once in a session"
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

    let scratch = DispatchScratch::new();
    scratch.manifest_with(
        "sequential: true\n",
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
    let output = scratch.call();
    assert_eq!(output.response()["context"], "ran", "{output:?}");
    assert!(output.message().contains("was not found"), "{output:?}");
}

#[test]
fn a_home_that_cannot_be_written() {
    let mut scratch = DispatchScratch::with_hook("echo no >&2; exit 2", "blocking: true");
    scratch
        .env
        .push(("ANYHOOK_STATE_DIR".to_owned(), "/dev/null/x".to_owned()));
    let output = scratch.call();
    assert_eq!((output.exit, output.stderr.as_str()), (Some(0), ""));
    assert_eq!(output.response()["reason"], "no\n".trim());
}

#[test]
fn two_hundred_at_once() {
    let scratch = DispatchScratch::with_hook(
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
        assert_eq!(DispatchOutput::wait(child).response()["context"], "ok");
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
fn a_signal_to_the_dispatcher_ends_the_hook() {
    let scratch =
        DispatchScratch::with_hook("echo x >started; sleep 1000 & wait", "blocking: true");
    let mut child = scratch.start();
    let event = scratch.event("before_tool_execute").to_string();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(event.as_bytes())
        .unwrap();
    wait_until("the start of the hook", || {
        scratch.exists("project/started")
    });
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    scratch.assert_nothing_left();
    assert_eq!(scratch.journal().len(), 1);
}

#[test]
fn wrong_usage_does_not_block() {
    let scratch = DispatchScratch::new();
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

/// A bug in a guard ends the process; the agent must get an answer all the same.
#[test]
fn a_panic_is_answered_as_a_failure() {
    for (agent, event) in [
        ("claude-code", "PreToolUse"),
        ("cursor", "beforeShellExecution"),
        ("canonical", "before_tool_execute"),
    ] {
        for (mode, policy, denies) in [
            ("allow", "{}", false),
            ("block", "{}", true),
            ("allow", r#"{"fail_closed": true}"#, true),
        ] {
            let scratch = DispatchScratch::new();
            let managed = scratch.base.join("managed");
            std::fs::create_dir_all(&managed).unwrap();
            std::fs::write(managed.join("policy.json"), policy).unwrap();
            let mut command =
                std::process::Command::new(env!("CARGO_BIN_EXE_anyhook-dispatch-test"));
            command.args(["panic-in-a-guard", agent, event, mode]);
            command
                .env("ANYHOOK_STATE_DIR", scratch.base.join("state"))
                .env("ANYHOOK_MANAGED_DIR", &managed);
            let output = command.output().unwrap();
            let answer = String::from_utf8_lossy(&output.stdout).into_owned();
            let is_denied = answer.contains("deny") || output.status.code() == Some(2);
            assert_eq!(is_denied, denies, "{agent} {mode} {policy}: {output:?}");
            let said = answer + &String::from_utf8_lossy(&output.stderr);
            // Not every agent shows messages of a call that goes on.
            let is_told = said.contains("anyhook itself failed");
            assert!(is_told || !denies, "{agent}: {output:?}");
            let records = scratch.journal();
            assert_eq!(records.len(), 1, "{agent}");
            assert_eq!(records[0].kind, RecordKind::Failure);
            assert!(records[0].warnings[0].contains("anyhook itself failed"));
        }
    }
}

#[test]
fn switched_off() {
    let mut scratch = DispatchScratch::with_hook("exit 2", "blocking: true");
    scratch.env.push(("ANYHOOK".to_owned(), "0".to_owned()));
    let message = "anyhook: switched off (`ANYHOOK=0`): no hook runs";
    let told = serde_json::json!({"system_message": message});
    assert_eq!(scratch.call().response(), told);
    let journal = scratch.journal();
    assert_eq!(journal.len(), 1, "the record states why no hook ran");
    assert!(journal[0].warnings[0].contains("switched off"));
}
