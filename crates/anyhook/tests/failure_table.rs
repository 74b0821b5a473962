//! The failure table: every failure × every event of every agent that a deny can
//! prevent × every setting, with real processes. One rule, [`Failure::blocks`],
//! says what must happen; the agents' reactions are those of the reference
//! models. docs/failures.md is written from what was seen (`UPDATE=1`).
//!
//! A row is one entry of [`failures`].
#![cfg(unix)] // its hooks are shell scripts and special files
#![cfg(test)]

mod support;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Child;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use anyhook_agents::spec::{Blocking, EventSpec, MatcherSubject};
use anyhook_model::HookEvent;
use anyhook_testkit::reference_model::{self, Action};
use anyhook_testkit::{Golden, ProcessOutput, Scratch};
use serde_json::{Value, json};
use support::journal;

/// Cells wait for timeouts and for processes that hooks leave behind more than
/// they compute.
const WORKERS: usize = 12;

/// No cell may take longer, whatever it waits for.
const CELL_TIMEOUT: Duration = Duration::from_secs(15);

/// A row is given up after this many wrong cells: it may hang in each of them.
const MAX_WRONG_CELLS: usize = 3;

/// Events at which an agent's table promises more than its client keeps: the
/// guard's plain deny is not obeyed either.
const CANNOT_DENY: &[(&str, &str)] = &[];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Setting {
    Default,
    BlockOnFailure,
    FailClosed,
}

const SETTINGS: [Setting; 3] = [
    Setting::Default,
    Setting::BlockOnFailure,
    Setting::FailClosed,
];

/// What becomes known of the guard's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guard {
    /// It denies, and that can be read.
    Denies,
    /// It runs and has no objection.
    Allows,
    Fails,
    /// It takes too long, and has this `timeout_action`.
    TimesOut(&'static str),
    /// Nobody knows whether there is one, because its manifest cannot be read.
    Unknown,
}

/// Where the guard's manifest is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    User,
    Managed,
    /// Trusted before `prepare`.
    Project,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Topic {
    Hook,
    Service,
    Files,
    Machine,
}

/// One row of the table.
struct Failure {
    topic: Topic,
    name: &'static str,
    guard: Guard,
    /// What the guard runs.
    handler: Value,
    place: Place,
    /// Only at this event; at all by default.
    event: Option<&'static str>,
    /// The managed policy is there, but cannot be read.
    is_policy_unreadable: bool,
    /// Makes the failure, when everything else is in place.
    prepare: fn(&Scratch),
    /// Shell commands before anyhook takes the place of the shell.
    shell: &'static str,
    /// The folder that the payload names, in the project.
    cwd: &'static str,
}

impl Failure {
    /// The rule: a deny that can be read counts. A failure blocks if the hook says
    /// so, by `timeout_action` for a timeout and else by `on_failure`; and always
    /// under `fail_closed`, which a managed policy that cannot be read stands for.
    fn blocks(&self, setting: Setting) -> bool {
        let is_closed = setting == Setting::FailClosed || self.is_policy_unreadable;
        match self.guard {
            Guard::Denies => true,
            Guard::Allows => false,
            Guard::Fails | Guard::TimesOut("") => is_closed || setting == Setting::BlockOnFailure,
            Guard::TimesOut(action) => is_closed || action == "block",
            Guard::Unknown => is_closed,
        }
    }
}

/// Variants of other rows, tried where it matters most.
fn variant(failure: Failure) -> Failure {
    Failure {
        event: Some("before_tool_execute"),
        ..failure
    }
}

/// A guard that runs this command, and fails thereby.
fn hook(name: &'static str, command: &str) -> Failure {
    Failure {
        topic: Topic::Hook,
        name,
        guard: Guard::Fails,
        handler: json!({"type": "command", "command": command, "timeout": 60}),
        place: Place::User,
        event: None,
        is_policy_unreadable: false,
        prepare: |_| {},
        shell: "",
        cwd: "",
    }
}

/// The same, and it denies nevertheless.
fn deny(name: &'static str, command: &str) -> Failure {
    Failure {
        guard: Guard::Denies,
        ..hook(name, command)
    }
}

fn timeout(name: &'static str, action: &'static str) -> Failure {
    let mut handler = json!({"type": "command", "command": "exec sleep 1000", "timeout": 0.05});
    if !action.is_empty() {
        handler["timeout_action"] = action.into();
    }
    Failure {
        guard: Guard::TimesOut(action),
        handler,
        ..hook(name, "")
    }
}

/// A guard that is a service at this path of the test's server.
fn service(name: &'static str, guard: Guard, url: &str) -> Failure {
    Failure {
        topic: Topic::Service,
        guard,
        handler: json!({"type": "http", "url": url, "timeout": 60}),
        ..hook(name, "")
    }
}

/// A guard that asks a model, and what answers in place of the model.
fn prompt(name: &'static str, guard: Guard, prepare: fn(&Scratch)) -> Failure {
    Failure {
        topic: Topic::Service,
        guard,
        handler: json!({"type": "prompt", "prompt": "Is it fine?", "timeout": 60}),
        prepare,
        ..hook(name, "")
    }
}

/// A file that is not what it should be, in the way of a guard that works.
fn file(name: &'static str, prepare: fn(&Scratch)) -> Failure {
    Failure {
        topic: Topic::Files,
        prepare,
        ..deny(name, DENY)
    }
}

/// The guard's own manifest is not what it should be.
fn manifest(name: &'static str, prepare: fn(&Scratch)) -> Failure {
    Failure {
        guard: Guard::Unknown,
        ..file(name, prepare)
    }
}

/// The managed policy is not what it should be, and the guard fails.
fn policy(name: &'static str, prepare: fn(&Scratch)) -> Failure {
    Failure {
        guard: Guard::Fails,
        is_policy_unreadable: true,
        topic: Topic::Files,
        prepare,
        ..hook(name, "exit 1")
    }
}

/// Something about the process or the machine, with a guard that works.
fn machine(name: &'static str, shell: &'static str) -> Failure {
    Failure {
        topic: Topic::Machine,
        shell,
        ..deny(name, DENY)
    }
}

const DENY: &str = "echo guarded >&2; exit 2";

/// Longer than what is read of an answer.
const MUCH: &str = "head -c 1100000 /dev/zero | tr '\\0' x";

fn failures(server: &str) -> Vec<Failure> {
    let mut rows = vec![
        deny("none: the guard denies", DENY),
        hook(
            "exit 1, as after an uncaught exception",
            "echo Traceback >&2; exit 1",
        ),
        Failure {
            place: Place::Managed,
            ..hook("exit 1 of a managed guard", "exit 1")
        },
        hook("exit 3", "exit 3"),
        variant(hook(
            "exit 126: a program in its script may not run",
            "./plain.sh; exit $?",
        )),
        hook(
            "exit 127: a program in its script is missing",
            "no-such-program; exit $?",
        ),
        variant(deny(
            "a deny on stdout, but exit 1",
            "echo '{\"decision\":\"deny\"}'; exit 1",
        )),
        variant(deny(
            "a deny on stdout, then killed by a signal",
            "echo '{\"decision\":\"deny\"}'; kill -KILL $$",
        )),
        variant(Failure {
            handler: json!({"type": "command", "timeout": 2, "timeout_action": "warn",
                "command": "echo '{\"decision\":\"deny\"}'; exec sleep 1000"}),
            ..deny("a deny on stdout, then a timeout", "")
        }),
        hook("killed by a signal", "kill -KILL $$"),
        hook("cannot start: the program is missing", "./missing.sh"),
        hook("cannot start: not executable", "./plain.sh"),
        variant(hook(
            "cannot start: the interpreter is missing",
            "./alien.sh",
        )),
        Failure {
            handler: json!({"type": "command", "command": "true", "cwd": "no/such/folder"}),
            ..variant(hook("cannot start: its working directory is missing", ""))
        },
        Failure {
            handler: json!({"type": "command", "command": "true", "dialect": "nobody"}),
            ..variant(hook("cannot start: an unknown dialect", ""))
        },
        Failure {
            place: Place::Project,
            prepare: |scratch| {
                let script = scratch.project().join(".anyhook/guard.sh");
                fs::write(script, "#!/bin/sh\nexit 0\n").unwrap();
            },
            ..hook(
                "cannot start: its script differs from the approved one",
                "./guard.sh",
            )
        },
        timeout("timeout", ""),
        timeout("timeout, with `timeout_action: warn`", "warn"),
        timeout("timeout, with `timeout_action: block`", "block"),
        hook("unreadable answer: no JSON", "echo oops"),
        variant(hook("unreadable answer: no object", "echo '[\"deny\"]'")),
        variant(hook(
            "unreadable answer: broken off",
            "printf '{\"decision\": \"deny\", '",
        )),
        variant(hook(
            "unreadable answer: an unknown decision",
            "echo '{\"decision\":\"perhaps\"}'",
        )),
        variant(hook(
            "unreadable answer: an unknown form",
            "echo '{\"verdict\":\"no\"}'",
        )),
        hook("cut answer: over 1 MiB", &format!("{MUCH}; echo")),
        variant(hook(
            "cut answer: the decision comes too late",
            &format!("printf '{{\"reason\":\"'; {MUCH}; printf '\",\"decision\":\"deny\"}}'"),
        )),
        deny(
            "cut answer: a deny, then a long reason",
            &format!("printf '{{\"decision\":\"deny\",\"reason\":\"'; {MUCH}; printf '\"}}'"),
        ),
        hook(
            "missing answer: a process left behind holds its stdout",
            "(trap '' TERM; exec sleep 2) & exit 0",
        ),
        deny(
            "a deny with half a surrogate pair in its reason",
            "printf '%s' '{\"decision\":\"deny\",\"reason\":\"x\\ud83d\"}'",
        ),
        variant(deny(
            "a deny with a byte order mark and bytes that are not UTF-8",
            "printf '\\357\\273\\277{\"decision\":\"deny\",\"reason\":\"\\377\"}'",
        )),
        variant(deny(
            "a deny with mistakes in its other fields",
            "echo '{\"decision\":\"DENY\",\"reason\":5,\"continue\":\"no\",\"context\":[]}'",
        )),
        deny(
            "exit 2 and garbage",
            "head -c 3000 /dev/zero; printf '\\377\\033[2J{' >&2; exit 2",
        ),
    ];
    rows.extend(agent_dialects());
    rows.extend(services(server));
    rows.extend(files());
    rows.extend(machines());
    rows
}

/// Guards that were written for an agent.
fn agent_dialects() -> [Failure; 4] {
    let speaks = |failure: Failure, dialect: &str| {
        let mut handler = failure.handler.clone();
        handler["dialect"] = dialect.into();
        Failure {
            event: Some("before_tool_execute"),
            handler,
            ..failure
        }
    };
    [
        speaks(
            hook("a guard for Claude Code: unreadable answer", "echo '{oops'"),
            "claude-code",
        ),
        speaks(
            deny(
                "a guard for Claude Code: a deny with half a surrogate pair",
                "printf '%s' '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"x\\ud83d\"}}'",
            ),
            "claude-code",
        ),
        speaks(
            hook(
                "a guard for Cursor: it allows, but exit 1",
                "echo '{\"permission\":\"allow\"}'; exit 1",
            ),
            "cursor",
        ),
        speaks(
            deny(
                "a guard for Copilot CLI, where exit 1 denies: garbage and exit 1",
                "echo '{oops'; exit 1",
            ),
            "copilot-cli",
        ),
    ]
}

fn services(server: &str) -> Vec<Failure> {
    let at = |path: &str| format!("{server}/{path}");
    vec![
        service(
            "http: connection refused",
            Guard::Fails,
            "http://127.0.0.1:1/",
        ),
        service("http: status 500", Guard::Fails, &at("500")),
        variant(service("http: a redirect", Guard::Fails, &at("302"))),
        variant(service(
            "http: unreadable body",
            Guard::Fails,
            &at("garbage"),
        )),
        variant(service("http: body broken off", Guard::Fails, &at("short"))),
        variant(service("http: body over 1 MiB", Guard::Fails, &at("long"))),
        Failure {
            handler: json!({"type": "http", "url": at("hang"), "timeout": 0.05}),
            ..variant(service("http: timeout", Guard::TimesOut(""), ""))
        },
        variant(service(
            "http: a deny, then a long reason",
            Guard::Denies,
            &at("long-deny"),
        )),
        variant(service(
            "http: a deny with half a surrogate pair",
            Guard::Denies,
            &at("surrogate"),
        )),
        variant(service(
            "http: an empty body means no objection",
            Guard::Allows,
            &at("empty"),
        )),
        prompt(
            "a model is asked: no evaluator is configured",
            Guard::Fails,
            |_| {},
        ),
        variant(prompt(
            "a model is asked: the settings cannot be read",
            Guard::Fails,
            |scratch| {
                evaluator(scratch, ": [");
            },
        )),
        variant(prompt(
            "a model is asked: the evaluator fails",
            Guard::Fails,
            |scratch| {
                evaluator(scratch, "exit 1");
            },
        )),
        variant(prompt(
            "a model is asked: no answer",
            Guard::Fails,
            |scratch| {
                evaluator(scratch, "true");
            },
        )),
        variant(prompt(
            "a model is asked: unreadable answer",
            Guard::Fails,
            |scratch| {
                evaluator(scratch, "echo I would rather not say");
            },
        )),
        variant(prompt(
            "a model is asked: a deny with half a surrogate pair",
            Guard::Denies,
            |scratch| {
                evaluator(
                    scratch,
                    "printf '%s' 'Well, {\"ok\": false, \"reason\": \"x\\ud83d\"}'",
                );
            },
        )),
    ]
}

fn evaluator(scratch: &Scratch, command: &str) {
    let settings = match command {
        ": [" => command.to_owned(),
        _ => json!({"evaluator": {"command": command}}).to_string(),
    };
    scratch
        .file(scratch.config().join("config.yaml"), &settings)
        .unwrap();
}

fn files() -> Vec<Failure> {
    vec![
        file("a project's manifest is a pipe", |scratch| {
            pipe(&scratch.project().join(".anyhook/hooks.yaml"));
        }),
        file("a project's manifest is a folder", |scratch| {
            folder(&scratch.project().join(".anyhook/hooks.yaml"));
        }),
        variant(file("a project's manifest is a device", |scratch| {
            device(&scratch.project().join(".anyhook/hooks.yaml"));
        })),
        file("a project's manifest has 4 GiB", |scratch| {
            huge(&scratch.project().join(".anyhook/hooks.yaml"));
        }),
        variant(file("a project's policy is a pipe", |scratch| {
            pipe(&scratch.project().join(".anyhook/policy.json"));
        })),
        file("the user's policy is a pipe", |scratch| {
            pipe(&scratch.config().join("policy.json"));
        }),
        variant(file("the user's policy is a folder", |scratch| {
            folder(&scratch.config().join("policy.json"));
        })),
        manifest("the guard's manifest is a pipe", |scratch| {
            pipe(&scratch.config().join("hooks.json"));
        }),
        manifest("the guard's manifest is a folder", |scratch| {
            folder(&scratch.config().join("hooks.json"));
        }),
        variant(manifest("the guard's manifest has 4 GiB", |scratch| {
            huge(&scratch.config().join("hooks.json"));
        })),
        manifest("the guard's manifest has a syntax error", |scratch| {
            broken(&scratch.config().join("hooks.json"));
        }),
        policy(
            "the managed policy is a pipe, and the guard fails",
            |scratch| {
                pipe(&scratch.managed().join("policy.json"));
            },
        ),
        policy(
            "the managed policy is a folder, and the guard fails",
            |scratch| {
                folder(&scratch.managed().join("policy.json"));
            },
        ),
        variant(policy(
            "the managed policy has 4 GiB, and the guard fails",
            |scratch| {
                huge(&scratch.managed().join("policy.json"));
            },
        )),
        policy(
            "the managed policy has a syntax error, and the guard fails",
            |scratch| {
                broken(&scratch.managed().join("policy.json"));
            },
        ),
    ]
}

fn machines() -> Vec<Failure> {
    let mut rows = Vec::new();
    for (name, shell) in [
        ("SIGCHLD is ignored", "trap '' CHLD"),
        (
            "no file can be written (RLIMIT_FSIZE 0), as on a full disk",
            "ulimit -f 0",
        ),
        ("stderr is closed", "exec 2>&-"),
        (
            "no HOME",
            "unset HOME XDG_CONFIG_HOME XDG_STATE_HOME XDG_DATA_HOME XDG_CACHE_HOME",
        ),
        (
            "HOME is relative",
            "export HOME=. XDG_CONFIG_HOME= XDG_STATE_HOME= XDG_DATA_HOME=",
        ),
        (
            "HOME is empty",
            "export HOME= XDG_CONFIG_HOME= XDG_STATE_HOME= XDG_DATA_HOME=",
        ),
        (
            "the state folder does not exist",
            "export ANYHOOK_STATE_DIR=\"$ANYHOOK_STATE_DIR/not/there\"",
        ),
        (
            "the state folder is a file",
            "export ANYHOOK_STATE_DIR=\"$ANYHOOK_CONFIG_DIR/hooks.json\"",
        ),
        (
            "the state folder is read-only",
            "export ANYHOOK_STATE_DIR=/proc/sys",
        ),
    ] {
        if shell.contains("/proc") && !cfg!(target_os = "linux") {
            continue;
        }
        rows.push(machine(name, shell));
        // The user's folder may differ from the one in this process's environment.
        let is_in_doubt = name == "HOME is relative";
        rows.push(Failure {
            guard: if is_in_doubt {
                Guard::Unknown
            } else {
                Guard::Allows
            },
            event: Some("before_tool_execute"),
            handler: json!({"type": "command", "command": "true"}),
            ..machine(name, shell)
        });
    }
    rows.push(Failure {
        // Only root can give a folder away; others have enough that are not theirs.
        shell: "f=\"$ANYHOOK_STATE_DIR/foreign\"; mkdir -p \"$f\"; chown 65534 \"$f\" 2>/dev/null || f=/usr; export ANYHOOK_STATE_DIR=\"$f\"",
        ..machine("the state folder is another user's", "")
    });
    rows.push(Failure {
        shell: "d=$(mktemp -d) && cd \"$d\" && rmdir \"$d\"",
        cwd: "gone",
        ..machine("the working directory does not exist", "")
    });
    rows
}

fn clear(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = fs::remove_file(path);
}

fn pipe(path: &Path) {
    clear(path);
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

fn folder(path: &Path) {
    clear(path);
    fs::create_dir(path).unwrap();
}

fn device(path: &Path) {
    clear(path);
    std::os::unix::fs::symlink("/dev/zero", path).unwrap();
}

/// Sparse: it takes no place on the disk.
fn huge(path: &Path) {
    clear(path);
    fs::File::create(path).unwrap().set_len(4 << 30).unwrap();
}

fn broken(path: &Path) {
    clear(path);
    fs::write(path, "{\"fail_closed\": tru").unwrap();
}

/// An event of an agent that a deny can prevent.
struct Column {
    adapter: &'static Adapter,
    spec: &'static EventSpec,
}

impl Column {
    fn canonical(&self) -> &'static str {
        self.spec.is.as_deref().unwrap_or(&self.spec.native)
    }

    fn name(&self) -> (&'static str, &'static str) {
        (self.adapter.spec.id.as_ref(), self.spec.native.as_ref())
    }

    /// What the agent sends. Each call is one of its own, or it would be taken for
    /// a second delivery.
    fn payload(&self, cwd: &Path, call: usize) -> Value {
        let tool = self.spec.tools.first().map_or("shell", AsRef::as_ref);
        let mut event = HookEvent {
            event: self.canonical().to_owned(),
            source: "elsewhere".to_owned(),
            session_id: Some(format!("session-{call}")),
            cwd: Some(cwd.display().to_string()),
            ..HookEvent::default()
        };
        let data = match tool {
            "mcp" => json!({"tool_name": "echo_back", "tool_input": {"text": "hi"},
                "mcp": {"server": "e2e", "tool": "echo_back"}}),
            "shell" => json!({"tool_name": "shell", "tool_input": {"command": "ls"}}),
            _ => {
                json!({"tool_name": tool, "tool_input": {"path": cwd.join("a.txt"), "content": "x"}})
            }
        };
        if self.spec.matcher == MatcherSubject::Tool || !self.spec.tools.is_empty() {
            event.data.clone_from(data.as_object().unwrap());
            event
                .data
                .insert("tool_call_id".to_owned(), json!(format!("call-{call}")));
        }
        event.data.insert("prompt".to_owned(), json!("go"));
        let native = Some(self.spec.native.as_ref());
        self.adapter.encode(&event, native).unwrap().payload
    }
}

/// Every event of every agent that a deny can prevent. An event without an answer
/// that does no harm is never asked for.
fn columns() -> Vec<Column> {
    let mut columns = Vec::new();
    for adapter in clients() {
        let events = adapter.spec.events.iter();
        let preventable = events.filter(|spec| spec.blocking == Blocking::Prevent);
        columns.extend(
            preventable
                .filter(|spec| !spec.noisy || spec.answer.is_some())
                .map(|spec| Column { adapter, spec }),
        );
    }
    let agents: BTreeSet<_> = columns.iter().map(|column| column.name().0).collect();
    assert_eq!(agents.len(), clients().count(), "{agents:?}");
    columns
}

/// A scratch with the guard at all events of the table.
fn scratch(failure: &Failure, setting: Setting, columns: &[Column]) -> Scratch {
    let scratch = Scratch::new().unwrap();
    let events: BTreeSet<&str> = columns.iter().map(Column::canonical).collect();
    let hooks = events.iter().map(|event| {
        let mut hook = json!({"event": event, "blocking": true, "handler": failure.handler});
        if setting == Setting::BlockOnFailure {
            hook["on_failure"] = "block".into();
        }
        hook
    });
    let manifest = json!({"spec": "hooks/1.0", "hooks": hooks.collect::<Vec<_>>()});
    let folder = match failure.place {
        Place::User => scratch.config(),
        Place::Managed => scratch.managed(),
        Place::Project => scratch.project().join(".anyhook"),
    };
    let write = |name: &str, text: &str| scratch.file(folder.join(name), text).unwrap();
    write("hooks.json", &manifest.to_string());
    for base in [folder.clone(), scratch.project()] {
        scratch.file(base.join("plain.sh"), "#!/bin/sh\n").unwrap();
        scratch
            .exec(base.join("alien.sh"), "#!/no/such/interpreter\n")
            .unwrap();
    }
    if setting == Setting::FailClosed {
        let policy = scratch.managed().join("policy.json");
        scratch.file(policy, "{\"fail_closed\": true}").unwrap();
    }
    if failure.place == Place::Project {
        scratch.file(".git/HEAD", "").unwrap();
        scratch
            .exec(folder.join("guard.sh"), "#!/bin/sh\nexit 2\n")
            .unwrap();
        let anyhook = scratch.command(env!("CARGO_BIN_EXE_anyhook"));
        let output = anyhook.run(["trust", "--yes"], "").unwrap();
        assert_eq!(output.exit, Some(0), "{output:?}");
    }
    (failure.prepare)(&scratch);
    scratch
}

/// Reads a pipe to its end, beside the other one: either may fill up first.
fn read_all(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, text) = channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        if let Some(Ok(_)) = pipe.map(|mut pipe| pipe.read_to_string(&mut text)) {
            let _ = sender.send(text);
        }
    });
    text
}

/// `None` if it takes too long.
fn wait(mut child: Child, payload: &str) -> Option<ProcessOutput> {
    // Smaller than a pipe. A process may end without reading it.
    let _ = child.stdin.take().unwrap().write_all(payload.as_bytes());
    let stdout = read_all(child.stdout.take());
    let stderr = read_all(child.stderr.take());
    let texts = [stdout, stderr].map(|text| text.recv_timeout(CELL_TIMEOUT).ok());
    if texts.contains(&None) {
        let _ = child.kill();
    }
    let exit = child.wait().ok()?.code();
    let [Some(stdout), Some(stderr)] = texts else {
        return None;
    };
    Some(ProcessOutput {
        exit,
        stdout,
        stderr,
    })
}

/// What the agent does about one call.
fn cell(
    failure: &Failure,
    scratch: &Scratch,
    column: &Column,
    call: usize,
) -> Result<Action, String> {
    let payload = column.payload(&scratch.project().join(failure.cwd), call);
    let (agent, event) = column.name();
    let arguments = ["run", "--agent", agent, "--event", event];
    let binary = env!("CARGO_BIN_EXE_anyhook");
    let child = if failure.shell.is_empty() {
        scratch.command(binary).spawn(arguments)
    } else {
        let line = format!("{}; exec \"$0\" \"$@\"", failure.shell);
        let arguments = ["-c", &line, binary].into_iter().chain(arguments);
        scratch.command("sh").spawn(arguments)
    };
    let Some(output) = wait(child.unwrap(), &payload.to_string()) else {
        return Err("hangs".to_owned());
    };
    let reaction = reference_model::react(agent, event, &payload, &output.answer(), false);
    if !reaction.accepted {
        return Err(format!("the agent rejects {output:?}"));
    }
    if reaction.new_input.is_some() || reaction.skips_approval {
        return Err(format!("more than a decision: {reaction:?}"));
    }
    Ok(reaction.action)
}

/// What one row came to under one setting.
#[derive(Default)]
struct Found {
    row: usize,
    setting: usize,
    cells: usize,
    wrong: Vec<String>,
    /// Of the first row: events at which a plain deny is not obeyed.
    deaf: Vec<(&'static str, &'static str)>,
}

fn run_row(row: usize, setting: usize, failures: &[Failure], columns: &[Column]) -> Found {
    let mut found = Found {
        row,
        setting,
        ..Found::default()
    };
    let (failure, setting) = (&failures[row], SETTINGS[setting]);
    let scratch = scratch(failure, setting, columns);
    for (call, column) in columns.iter().enumerate() {
        if failure
            .event
            .is_some_and(|event| event != column.canonical())
        {
            continue;
        }
        if found.wrong.len() >= MAX_WRONG_CELLS {
            break;
        }
        let name = column.name();
        let outcome = cell(failure, &scratch, column, call);
        found.cells += 1;
        if row == 0 && outcome == Ok(Action::Proceeds) {
            found.deaf.push(name);
            continue;
        }
        let blocks = failure.blocks(setting) && !CANNOT_DENY.contains(&name);
        match outcome {
            Ok(action) if (action == Action::Blocked) == blocks => {}
            other => found.wrong.push(format!("{name:?}: {other:?}")),
        }
    }
    // Each time there is a notice or a record.
    let is_told = failure.topic <= Topic::Service
        && matches!(failure.guard, Guard::Fails | Guard::TimesOut(_));
    if is_told && found.wrong.is_empty() {
        let records = journal(&scratch);
        let told = records.iter().filter(|record| !record.warnings.is_empty());
        if told.count() != found.cells {
            found.wrong.push(format!("not all are told: {records:?}"));
        }
    }
    found
}

/// A server that answers by path, as services go wrong.
fn start_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut head = Vec::new();
                let mut buffer = [0; 8192];
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    head.extend_from_slice(&buffer[..count]);
                    if is_whole_request(&head) {
                        break;
                    }
                }
                let text = String::from_utf8_lossy(&head).into_owned();
                let path = text.split(' ').nth(1).unwrap_or_default().trim_matches('/');
                let deny = json!({"decision": "deny", "reason": "no"}).to_string();
                let long = "x".repeat(1_100_000);
                let long_deny = format!("{{\"decision\":\"deny\",\"reason\":\"{long}\"}}");
                let surrogate = "{\"decision\":\"deny\",\"reason\":\"x\\ud83d\"}".to_owned();
                let (status, body, missing) = match path {
                    "500" => ("500 Oops", deny, 0),
                    "302" => ("302 Found", deny, 0),
                    "garbage" => ("200 OK", "oops".to_owned(), 0),
                    "short" => ("200 OK", "{\"decision\":\"allow\"".to_owned(), 10),
                    "long" => ("200 OK", long, 0),
                    "long-deny" => ("200 OK", long_deny, 0),
                    "surrogate" => ("200 OK", surrogate, 0),
                    "hang" => return std::thread::sleep(Duration::from_secs(2)),
                    _ => ("200 OK", String::new(), 0),
                };
                let length = body.len() + missing;
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\nlocation: /empty\r\n\r\n{body}"
                );
            });
        }
    });
    address
}

fn is_whole_request(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    length.is_none_or(|length| body.len() >= length.parse().unwrap_or(0))
}

#[test]
fn every_failure_ends_as_configured() {
    let failures = failures(&start_server());
    let columns = columns();
    let only = std::env::var("ROW").unwrap_or_default();
    let mut queue: Vec<(usize, usize)> = Vec::new();
    for (row, failure) in failures.iter().enumerate() {
        if failure.name.contains(&only) {
            queue.extend((0..SETTINGS.len()).map(|setting| (row, setting)));
        }
    }
    let queue = Mutex::new(queue);
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some((row, setting)) = { queue.lock().unwrap().pop() } {
                    let result = run_row(row, setting, &failures, &columns);
                    found.lock().unwrap().push(result);
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort_by_key(|one| (one.row, one.setting));
    let mut wrong = String::new();
    for one in found.iter().filter(|one| !one.wrong.is_empty()) {
        let (failure, setting) = (&failures[one.row], SETTINGS[one.setting]);
        let expected = failure.blocks(setting);
        let _ = writeln!(
            wrong,
            "{}, {setting:?}: blocks is {expected}, but",
            failure.name
        );
        for cell in &one.wrong {
            let _ = writeln!(wrong, "    {cell}");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    if only.is_empty() && cfg!(target_os = "linux") {
        assert_eq!(found[0].deaf, CANNOT_DENY);
        let cells = found.iter().map(|one| one.cells).sum();
        let mut golden = Golden::default();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/failures.md");
        golden
            .text(path, &document(&failures, &columns, cells))
            .unwrap();
        golden.end();
    }
}

/// Every cell is as the rule says when this is written.
fn document(failures: &[Failure], columns: &[Column], cells: usize) -> String {
    let mut text = String::from(INTRODUCTION);
    let topics = [
        (Topic::Hook, "The hook"),
        (Topic::Service, "Services and models"),
        (Topic::Files, "Files of anyhook"),
        (Topic::Machine, "The machine"),
    ];
    for (topic, title) in topics {
        let _ = writeln!(text, "\n## {title}\n");
        text.push_str(
            "| failure | default | `on_failure: block` | `fail_closed` |\n|---|---|---|---|\n",
        );
        for failure in failures.iter().filter(|failure| failure.topic == topic) {
            // What allows is tried as well, and is not worth a line each.
            if failure.guard != Guard::Denies && topic == Topic::Machine {
                continue;
            }
            let outcomes = SETTINGS.map(|setting| match failure.blocks(setting) {
                // A guard that allows is tried as well.
                true if failure.guard == Guard::Denies && topic >= Topic::Files => {
                    "the guard decides"
                }
                true => "blocked",
                false => "allowed",
            });
            let mark = failure.event.map_or("", |_| " *");
            let _ = writeln!(
                text,
                "| {}{mark} | {} |",
                failure.name,
                outcomes.join(" | ")
            );
        }
    }
    let _ = writeln!(
        text,
        "\n## Events\n\nTried at {} events of {} agents, rows with * at those before a tool runs only; {cells} calls in all:\n\n| agent | events |\n|---|---|",
        columns.len(),
        clients().count()
    );
    for adapter in clients() {
        let own = columns
            .iter()
            .map(Column::name)
            .filter(|(agent, _)| *agent == adapter.spec.id);
        let events: Vec<String> = own.map(|(_, event)| format!("`{event}`")).collect();
        let _ = writeln!(text, "| {} | {} |", adapter.spec.name, events.join(", "));
    }
    if CANNOT_DENY.is_empty() {
        text.push_str("\nEvery client obeys a deny at each of them.\n");
    } else {
        text.push_str(
            "\nThe client does not obey a deny at these events, so nothing is blocked there:\n\n",
        );
        for (agent, event) in CANNOT_DENY {
            let _ = writeln!(text, "- `{agent}`: `{event}`");
        }
    }
    text
}

const INTRODUCTION: &str = "\
# What happens when a guard fails

<!-- Written by `UPDATE=1 cargo test -p anyhook --test failure_table`, from calls of the real binary. -->

A *guard* is a hook with `blocking: true`. It fails when it does not end with exit code 0 or 2, or when its answer cannot be used. Then:

1. A deny that can be read counts, whatever else went wrong.
2. Under `fail_closed` in the managed [policy](policy.md) the call is blocked. A managed policy that exists but cannot be read counts as `fail_closed`.
3. Else a timeout is decided by the hook's `timeout_action`, if it has one.
4. Else the hook's `on_failure` decides: `allow` (the default) or `block`.

The user gets a notice in either case, and the journal has a record. The tables show what the agent does then: *blocked* means that the action does not happen, *the guard decides* that the guard is asked as if nothing were wrong.

An answer is *unreadable* if it is no JSON object, if a field that decides (`decision`, `continue`, `updated_input`) has an unknown value or is misspelt, or if it has no known field at all. It is *cut* if it is longer than 1 MiB. It is *missing* if a model was asked and said nothing, or if a process that the hook left behind held its stdout open. An empty answer with exit code 0 is none of these: it means no objection.
";
