//! Whatever a hook, a payload or a file does: no agent sees something that it
//! would misread, and no process stays behind. The agents' reactions are those
//! of the reference model; the same faults without an agent, and many at once,
//! are tests of the dispatcher's own crate.
#![cfg(unix)] // its hooks are shell scripts
#![cfg(test)]

mod support;

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use anyhook_model::HookEvent;
use anyhook_testkit::reference_model::{self, Action, Reaction};
use anyhook_testkit::{ProcessOutput, Scratch};
use serde_json::{Value, json};
use support::{assert_nothing_left, journal};

/// Strict about JSON, lenient, by exit code, by plugin, and one to whom an
/// empty answer is dangerous.
const AGENTS: [&str; 6] = [
    "claude-code",
    "codex",
    "cursor",
    "kiro",
    "opencode",
    "cline",
];

struct Fault {
    name: &'static str,
    command: &'static str,
    timeout: f64,
    blocks: bool,
}

const fn fault(name: &'static str, command: &'static str) -> Fault {
    Fault {
        name,
        command,
        timeout: 20.0,
        blocks: false,
    }
}

const FAULTS: [Fault; 12] = [
    Fault {
        timeout: 0.2,
        ..fault("hangs", "sleep 1000")
    },
    Fault {
        timeout: 0.2,
        ..fault(
            "ignores the polite signal",
            "trap '' TERM; while :; do sleep 0.05; done",
        )
    },
    Fault {
        timeout: 0.2,
        ..fault("hangs with a grandchild", "sleep 1000 & sleep 1000 & wait")
    },
    Fault {
        blocks: true,
        ..fault(
            "a grandchild keeps stdout",
            "sleep 1000 & echo '{\"decision\":\"deny\",\"reason\":\"still heard\"}'",
        )
    },
    fault("100 MiB of output", "head -c 104857600 /dev/zero"),
    fault(
        "binary garbage",
        "head -c 5000 /dev/urandom; head -c 5000 /dev/urandom >&2",
    ),
    Fault {
        blocks: true,
        ..fault(
            "garbage, and a block",
            "printf '\\377\\376\\033[2J' >&2; exit 2",
        )
    },
    fault("exit by signal", "kill -KILL $$"),
    fault("a script without run bit", "./plain.sh"),
    fault("a missing interpreter", "./alien.sh"),
    fault("a missing script", "./missing.sh"),
    fault(
        "an agent's answer in the wrong dialect",
        "echo '{\"permission\":\"allow\",\"hookSpecificOutput\":{}}'",
    ),
];

fn project(hooks: Value) -> Scratch {
    let scratch = Scratch::new().unwrap();
    let manifest = json!({"spec": "hooks/1.0", "hooks": hooks});
    scratch
        .file(".anyhook/hooks.json", &manifest.to_string())
        .unwrap();
    scratch.file("plain.sh", "#!/bin/sh\n").unwrap();
    scratch
        .exec("alien.sh", "#!/no/such/interpreter\n")
        .unwrap();
    scratch
}

fn hook(command: &str, timeout: f64) -> Value {
    json!({"event": "before_tool_execute", "blocking": true,
        "handler": {"type": "command", "command": command, "timeout": timeout}})
}

fn agents() -> impl Iterator<Item = &'static Adapter> {
    clients().filter(|adapter| AGENTS.contains(&adapter.spec.id.as_ref()))
}

/// A call of the shell in this project, as the agent sends it.
fn call(adapter: &Adapter, scratch: &Scratch, command: &str) -> (String, Value) {
    let mut event = HookEvent {
        event: "before_tool_execute".to_owned(),
        source: "elsewhere".to_owned(),
        session_id: Some("session".to_owned()),
        cwd: Some(scratch.project().display().to_string()),
        ..HookEvent::default()
    };
    let data =
        json!({"tool_name": "shell", "tool_call_id": "call_1", "tool_input": {"command": command}});
    event.data.clone_from(data.as_object().unwrap());
    let made = adapter.encode(&event, None).unwrap();
    (made.native_event, made.payload)
}

fn run(adapter: &Adapter, scratch: &Scratch, event: &str, payload: &str) -> ProcessOutput {
    let binary = scratch.command(env!("CARGO_BIN_EXE_anyhook"));
    let arguments = ["run", "--agent", adapter.spec.id.as_ref(), "--event", event];
    binary
        .env("ANYHOOK_TRUST", "all")
        .run(arguments, payload)
        .unwrap()
}

fn reaction(adapter: &Adapter, event: &str, payload: &Value, ran: &ProcessOutput) -> Reaction {
    reference_model::react(&adapter.spec.id, event, payload, &ran.answer(), false)
}

/// It goes on, the agent finds nothing wrong, and nothing else has changed.
#[track_caller]
fn assert_goes_on(about: &str, ran: &ProcessOutput, reaction: &Reaction) {
    assert_eq!(
        reaction.action,
        Action::Proceeds,
        "{about}: {ran:?} {reaction:?}"
    );
    assert!(reaction.accepted, "{about}: {ran:?} {reaction:?}");
    assert_eq!(reaction.new_input, None, "{about}: {ran:?}");
    assert!(
        !reaction.skips_approval && !reaction.session_ends,
        "{about}: {ran:?} {reaction:?}"
    );
}

#[test]
fn faults_of_hooks() {
    for fault in FAULTS {
        for adapter in agents() {
            let about = format!("{}, {}", fault.name, adapter.spec.id);
            let scratch = project(json!([hook(fault.command, fault.timeout)]));
            let (event, payload) = call(adapter, &scratch, "ls");
            let ran = run(adapter, &scratch, &event, &payload.to_string());
            let reaction = reaction(adapter, &event, &payload, &ran);
            if fault.blocks {
                assert_eq!(
                    reaction.action,
                    Action::Blocked,
                    "{about}: {ran:?} {reaction:?}"
                );
                assert!(reaction.accepted, "{about}: {ran:?} {reaction:?}");
            } else {
                assert_goes_on(&about, &ran, &reaction);
            }
            assert!(!ran.stdout.contains('\u{1b}'), "{about}: {ran:?}");
            assert_eq!(journal(&scratch).len(), 1, "{about}");
            assert_nothing_left(&scratch);
        }
    }
}

#[test]
fn ten_megabytes_that_nobody_reads() {
    for adapter in agents() {
        let scratch = project(json!([hook("true", 20.0)]));
        let (event, payload) = call(adapter, &scratch, &"x".repeat(10 * 1024 * 1024));
        let ran = run(adapter, &scratch, &event, &payload.to_string());
        let reaction = reaction(adapter, &event, &payload, &ran);
        assert_goes_on(&adapter.spec.id, &ran, &reaction);
    }
}

/// Nothing that the dispatcher cannot read may look like a decision, however
/// much the hooks would like to deny.
#[test]
fn payloads_that_are_none() {
    let faults = [
        ("empty", "true"),
        ("truncated", "printf '%s' \"$PAYLOAD\" | head -c 40"),
        ("a list", "printf '[1, 2]'"),
        ("null", "printf null"),
        ("not UTF-8", "printf '\\377\\376'"),
        ("a number", "printf 7"),
    ];
    for (name, source) in faults {
        for adapter in agents() {
            let scratch = project(json!([hook("echo no >&2; exit 2", 20.0)]));
            let (event, payload) = call(adapter, &scratch, "ls");
            let line = format!(
                "{source} | \"$ANYHOOK_BINARY\" run --agent {} --event {event}",
                adapter.spec.id
            );
            let shell = scratch.command("sh").env("PAYLOAD", payload.to_string());
            let shell = shell
                .env("ANYHOOK_BINARY", env!("CARGO_BIN_EXE_anyhook"))
                .env("ANYHOOK_TRUST", "all");
            let ran = shell.run(["-c", &line], "").unwrap();
            let about = format!("{name}, {}", adapter.spec.id);
            assert_goes_on(&about, &ran, &reaction(adapter, &event, &payload, &ran));
            assert_eq!(journal(&scratch).len(), 1, "{about}");
        }
    }
}

/// A guard must not be blind to a call because one byte of it is wrong.
#[test]
fn a_wrong_byte_in_a_payload_does_not_blind_the_guard() {
    for adapter in agents() {
        let scratch = project(json!([hook("echo no >&2; exit 2", 20.0)]));
        let (event, payload) = call(adapter, &scratch, "rm -rf BYTE");
        let text = payload.to_string();
        let (before, after) = text.split_once("BYTE").unwrap();
        let line = format!(
            "printf '%s\\377%s' \"$BEFORE\" \"$AFTER\" | \"$ANYHOOK_BINARY\" run --agent {} --event {event}",
            adapter.spec.id
        );
        let shell = scratch
            .command("sh")
            .env("BEFORE", before)
            .env("AFTER", after);
        let shell = shell
            .env("ANYHOOK_BINARY", env!("CARGO_BIN_EXE_anyhook"))
            .env("ANYHOOK_TRUST", "all");
        let ran = shell.run(["-c", &line], "").unwrap();
        let reaction = reaction(adapter, &event, &payload, &ran);
        assert_eq!(
            reaction.action,
            Action::Blocked,
            "{}: {ran:?}",
            adapter.spec.id
        );
    }
}

#[test]
fn manifests_that_break_or_go() {
    for adapter in agents() {
        let scratch = project(json!([
            hook("rm -r .anyhook; true", 20.0),
            hook("./.anyhook/gone.sh", 20.0)
        ]));
        let (event, payload) = call(adapter, &scratch, "ls");
        let ran = run(adapter, &scratch, &event, &payload.to_string());
        assert_goes_on(
            "deleted in mid-run",
            &ran,
            &reaction(adapter, &event, &payload, &ran),
        );
        assert_eq!(journal(&scratch)[0].hooks.len(), 2);

        scratch
            .file(
                ".anyhook/hooks.json",
                "{\"spec\": \"hooks/1.0\", \"hooks\": [",
            )
            .unwrap();
        let ran = run(adapter, &scratch, &event, &payload.to_string());
        assert_goes_on("broken", &ran, &reaction(adapter, &event, &payload, &ran));
        assert_eq!(journal(&scratch)[1].warnings.len(), 1);

        // Whoever manages the machine may want it otherwise.
        let policy = scratch.managed().join("policy.json");
        scratch.file(policy, "{\"fail_closed\": true}").unwrap();
        let ran = run(adapter, &scratch, &event, &payload.to_string());
        let reaction = reaction(adapter, &event, &payload, &ran);
        assert_eq!(
            reaction.action,
            Action::Blocked,
            "{}: {ran:?}",
            adapter.spec.id
        );
    }
}
