//! A call that two entries of an agent deliver is answered once, and nothing
//! else is ever taken for such a double.

use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use anyhook_agents::spec::EventSpec;
use anyhook_model::{Decision, HookEvent, HookResponse};
use anyhook_testkit::{Invocation, ProcessOutput, Scratch};
use serde_json::{Value, json};

use super::support::{anyhook, is_denied, payload, project, trusted_project};

/// How the two entries of an agent name the program: `install` writes the path
/// for a user and the name for a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    User,
    Project,
}

const ENTRIES: [Entry; 2] = [Entry::User, Entry::Project];

/// A shell that starts the entry as a child of its own, as the `/bin/sh` of many
/// systems does.
fn shell(scratch: &Scratch, entry: Entry, arguments: &str) -> (Invocation, [String; 2]) {
    let binary = Path::new(env!("CARGO_BIN_EXE_anyhook"));
    let folder = binary.parent().unwrap().to_string_lossy().into_owned();
    let program = match entry {
        Entry::User => binary.to_string_lossy().into_owned(),
        Entry::Project => "anyhook".to_owned(),
    };
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap());
    let line = format!("{program} run {arguments}; exit $?");
    let shell = scratch.command("/bin/sh").env("PATH", path);
    (shell, ["-c".to_owned(), line])
}

fn deliver(scratch: &Scratch, entry: Entry, arguments: &str, payload: &Value) -> ProcessOutput {
    let (shell, line) = shell(scratch, entry, arguments);
    shell.run(line, &payload.to_string()).unwrap()
}

/// Starts an entry and writes its payload.
fn start(scratch: &Scratch, entry: Entry, arguments: &str, payload: &Value) -> Child {
    use std::io::Write as _;
    let (shell, line) = shell(scratch, entry, arguments);
    let mut child = shell.spawn(line).unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(payload.to_string().as_bytes()).unwrap();
    child
}

/// Both entries at once.
fn deliver_in_parallel(scratch: &Scratch, arguments: &str, payload: &Value) -> Vec<ProcessOutput> {
    let children = ENTRIES.map(|entry| start(scratch, entry, arguments, payload));
    let outputs = children.into_iter();
    outputs
        .map(|child| ProcessOutput::wait(child).unwrap())
        .collect()
}

const CLAUDE: &str = "--agent claude-code";

/// A user whose hooks run `command` at these events.
fn user_with_hook(events: &[&str], command: &str, more: Value) -> Scratch {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    let hooks: Vec<Value> = events
        .iter()
        .map(|event| {
            let mut hook = json!({"event": event, "blocking": true,
                "handler": {"type": "command", "command": command, "timeout": 20}});
            for (key, value) in more.as_object().into_iter().flatten() {
                hook[key] = value.clone();
            }
            hook
        })
        .collect();
    let manifest = json!({"spec": "hooks/1.0", "hooks": hooks});
    let path = scratch.config().join("hooks.json");
    scratch.file(path, &manifest.to_string()).unwrap();
    scratch
}

fn runs(scratch: &Scratch) -> usize {
    let text = std::fs::read_to_string(scratch.root().join("runs"));
    text.unwrap_or_default().lines().count()
}

fn forget_runs(scratch: &Scratch) {
    let _ = std::fs::remove_file(scratch.root().join("runs"));
}

/// An event of an agent as its own payload.
fn sample(adapter: &Adapter, event: &EventSpec, scratch: &Scratch, n: usize) -> Option<Value> {
    let tool = event.tools.first().map_or("shell", AsRef::as_ref);
    let path = scratch.project().join("file.txt");
    let input = match tool {
        "shell" => json!({"command": format!("true {n}")}),
        _ => json!({"path": path, "content": format!("{n}"),
            "edits": [{"old": "a", "new": "b"}]}),
    };
    let sample: HookEvent = serde_json::from_value(json!({
        "event": event.is.as_deref().unwrap_or(&event.native), "source": "x",
        "native_event": &*event.native, "session_id": format!("session-{n}"),
        "cwd": scratch.project(),
        "data": {"tool_name": tool, "tool_input": input, "tool_call_id": format!("call-{n}"),
            "tool_output": "done", "prompt": format!("prompt {n}"), "message": "m",
            "start_source": "startup", "reason": "other", "trigger": "manual",
            "mcp": {"server": "s", "tool": "t"}},
    }))
    .unwrap();
    Some(adapter.encode(&sample, Some(&event.native))?.payload)
}

fn answer(
    adapter: &Adapter,
    event: &EventSpec,
    decoded: &HookEvent,
    output: &ProcessOutput,
) -> HookResponse {
    let exit = output.exit.unwrap_or(-1);
    let answer =
        adapter.decode_answer(decoded, &event.native, &output.stdout, &output.stderr, exit);
    answer.response
}

/// Calls `check` for every event of every agent that decodes with a session.
fn for_every_event(
    scratch: &Scratch,
    mut check: impl FnMut(&'static Adapter, &EventSpec, &HookEvent, &Value, &str),
) -> usize {
    let mut checked = 0;
    for adapter in clients() {
        for event in adapter.spec.events.iter().filter(|event| !event.read_only) {
            checked += 1;
            let Some(payload) = sample(adapter, event, scratch, checked) else {
                continue;
            };
            let Ok(decoded) = adapter.decode(&payload, Some(&event.native)) else {
                continue;
            };
            // Without a session nothing is certain, and the hooks run.
            if decoded.event.session_id.is_none() || !decoded.known {
                continue;
            }
            let arguments = format!("--agent {} --event {}", adapter.spec.id, event.native);
            check(adapter, event, &decoded.event, &payload, &arguments);
        }
    }
    checked
}

fn every_event_name() -> Vec<&'static str> {
    let mut names: Vec<&str> = clients()
        .flat_map(|adapter| &adapter.spec.events)
        .map(|event| event.is.as_deref().unwrap_or(&event.native))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// How many hooks with those names one event has: a hook may name an event by
/// its canonical or its native name.
fn hooks(event: &HookEvent) -> usize {
    let names = [&event.event, &event.native_event];
    let all = every_event_name();
    all.iter()
        .filter(|name| names.iter().any(|one| one == *name))
        .count()
}

#[test]
fn in_every_agent_two_entries_run_a_hook_once_and_context_is_told_once() {
    let scratch = user_with_hook(
        &every_event_name(),
        "echo ran >> \"$ANYHOOK_CONFIG_DIR/../runs\"; echo '{\"context\":\"told\"}'",
        json!({}),
    );
    let checked = for_every_event(&scratch, |adapter, event, decoded, payload, arguments| {
        let what = arguments;
        forget_runs(&scratch);
        let outputs = deliver_in_parallel(&scratch, arguments, payload);
        assert_eq!(
            runs(&scratch),
            hooks(decoded),
            "{what} {payload}: {outputs:?}"
        );
        let contexts = outputs
            .iter()
            .filter(|output| answer(adapter, event, decoded, output).context.is_some())
            .count();
        assert!(contexts <= 1, "{what}: {outputs:?}");
    });
    assert!(checked > 100, "{checked}");
}

#[test]
fn in_every_agent_the_second_entry_repeats_a_deny() {
    let scratch = user_with_hook(
        &every_event_name(),
        "echo ran >> \"$ANYHOOK_CONFIG_DIR/../runs\"; echo guarded >&2; exit 2",
        json!({}),
    );
    let mut denies = 0;
    for_every_event(&scratch, |adapter, event, decoded, payload, arguments| {
        let what = arguments;
        forget_runs(&scratch);
        let first = deliver(&scratch, Entry::User, arguments, payload);
        // A deny may end the hook that runs beside the one that denies.
        let ran = runs(&scratch);
        assert!(
            (1..=hooks(decoded)).contains(&ran),
            "{what}: {ran} {first:?}"
        );
        let second = deliver(&scratch, Entry::Project, arguments, payload);
        assert_eq!(runs(&scratch), ran, "{what}: {first:?} {second:?}");
        let [first, second] = [&first, &second].map(|output| {
            let response = answer(adapter, event, decoded, output);
            (response.decision, response.reason)
        });
        if first.0 == Some(Decision::Deny) && anyhook_run::engine::is_preventable(&decoded.event) {
            denies += 1;
            assert_eq!(first, second, "{what}");
        }
    });
    assert!(denies > 20, "{denies}");
}

/// Agents that run their entries in sequence pass the rewritten input on.
#[test]
fn a_rewrite_is_applied_once_in_sequence_and_in_parallel() {
    const REWRITE: &str = "sed 's/.*\"command\":\"\\([^\"]*\\)\".*/{\"decision\":\"allow\",\
        \"updated_input\":{\"command\":\"echo P; \\1\"}}/'; \
        echo ran >> \"$ANYHOOK_CONFIG_DIR/../runs\"";
    let scratch = user_with_hook(
        &["before_tool_execute"],
        REWRITE,
        json!({"matcher": "shell"}),
    );
    let mut rewritten = Vec::new();
    for_every_event(&scratch, |adapter, event, decoded, payload, arguments| {
        let is_shell = decoded.tool_name() == Some("shell");
        if decoded.event != "before_tool_execute" || !is_shell {
            return;
        }
        forget_runs(&scratch);
        let first = deliver(&scratch, Entry::User, arguments, payload);
        let first = answer(adapter, event, decoded, &first);
        let Some(input) = &first.updated_input else {
            return;
        };
        assert!(
            input["command"]
                .as_str()
                .unwrap()
                .starts_with("echo P; true")
        );
        // In parallel: the second entry gets the original input.
        let second = deliver(&scratch, Entry::Project, arguments, payload);
        let second = answer(adapter, event, decoded, &second);
        assert_eq!(second.updated_input, first.updated_input, "{arguments}");
        assert_eq!(runs(&scratch), 1, "{arguments}");
        // In sequence: it gets the rewritten one.
        let first = deliver(&scratch, Entry::User, arguments, payload);
        let first = answer(adapter, event, decoded, &first);
        assert_eq!(
            runs(&scratch),
            2,
            "{arguments}: the same entry is a new call"
        );
        let input = first.updated_input.unwrap();
        let next = Adapter::rewritten_event(decoded, &input);
        let next = adapter.encode(&next, Some(&event.native)).unwrap().payload;
        let second = deliver(&scratch, Entry::Project, arguments, &next);
        let second = answer(adapter, event, decoded, &second).updated_input;
        assert_eq!(second, None, "{arguments}: {next}");
        assert_eq!(runs(&scratch), 2, "{arguments}: {next}");
        rewritten.push(adapter.spec.id.to_string());
    });
    for agent in ["claude-code", "copilot-cli", "opencode", "codex"] {
        assert!(rewritten.iter().any(|one| one == agent), "{rewritten:?}");
    }
}

fn guarded() -> Scratch {
    user_with_hook(
        &["before_tool_execute"],
        "echo ran >> \"$ANYHOOK_CONFIG_DIR/../runs\"; grep -q 'rm -rf' && exit 2; exit 0",
        json!({}),
    )
}

fn call(scratch: &Scratch, command: &str, id: &str) -> Value {
    let mut call = payload(scratch, command);
    call["tool_use_id"] = id.into();
    call
}

#[test]
fn only_another_entry_is_a_double() {
    let scratch = guarded();
    let call = call(&scratch, "ls", "1");
    for n in 1..=3 {
        deliver(&scratch, Entry::User, CLAUDE, &call);
        assert_eq!(runs(&scratch), n, "a retried or resumed call");
    }
    // Also while the first one is at work, and without an id.
    forget_runs(&scratch);
    let plain = payload(&scratch, "ls");
    let children: Vec<Child> = (0..4)
        .map(|_| start(&scratch, Entry::User, CLAUDE, &plain))
        .collect();
    for child in children {
        ProcessOutput::wait(child).unwrap();
    }
    assert_eq!(runs(&scratch), 4);
}

#[test]
fn another_call_is_not_a_double() {
    let scratch = guarded();
    let first = call(&scratch, "ls", "1");
    let changes = [
        ("/session_id", json!("other")),
        ("/tool_use_id", json!("2")),
        ("/tool_input/command", json!("ls -l")),
        ("/tool_name", json!("Read")),
        ("/cwd", json!(scratch.root())),
        ("/agent_id", json!("sub-agent")),
    ];
    for (at, value) in changes {
        forget_runs(&scratch);
        deliver(&scratch, Entry::User, CLAUDE, &first);
        let mut other = first.clone();
        other[at.trim_start_matches('/').split('/').next().unwrap()] = match at {
            "/tool_input/command" => json!({"command": value}),
            _ => value,
        };
        deliver(&scratch, Entry::Project, CLAUDE, &other);
        assert_eq!(runs(&scratch), 2, "{at}");
    }
    // Without an id any other field counts.
    forget_runs(&scratch);
    let mut first = payload(&scratch, "ls");
    deliver(&scratch, Entry::User, CLAUDE, &first);
    first["permission_mode"] = "plan".into();
    deliver(&scratch, Entry::Project, CLAUDE, &first);
    assert_eq!(runs(&scratch), 2);
    // The id of an earlier call with a dangerous input.
    let safe = call(&scratch, "ls", "9");
    assert!(!is_denied(&deliver(&scratch, Entry::User, CLAUDE, &safe)));
    let danger = call(&scratch, "rm -rf /", "9");
    assert!(is_denied(&deliver(
        &scratch,
        Entry::Project,
        CLAUDE,
        &danger
    )));
}

#[test]
fn an_entry_with_other_config_folders_does_not_silence_the_users() {
    let scratch = guarded();
    let danger = call(&scratch, "rm -rf /", "1");
    let (shell, [flag, line]) = shell(&scratch, Entry::Project, CLAUDE);
    let line = format!("ANYHOOK_CONFIG_DIR=/nonexistent {line}");
    let silent = shell.run([flag, line], &danger.to_string()).unwrap();
    assert!(!is_denied(&silent));
    assert!(is_denied(&deliver(&scratch, Entry::User, CLAUDE, &danger)));
}

/// The first entry finds another program for the user's guard, or none.
#[test]
fn an_entry_with_another_path_does_not_silence_the_users() {
    for own in [Some("#!/bin/sh\nexit 0\n"), None] {
        let scratch = user_with_hook(&["before_tool_execute"], "my-check", json!({}));
        scratch
            .exec(
                "good/my-check",
                "#!/bin/sh\ngrep -q 'rm -rf' && exit 2; exit 0\n",
            )
            .unwrap();
        if let Some(own) = own {
            scratch.exec("own/my-check", own).unwrap();
        }
        let danger = call(&scratch, "rm -rf /", "1");
        let deliver_with = |entry: Entry, folder: &str| {
            let (shell, [flag, line]) = shell(&scratch, entry, CLAUDE);
            let folder = scratch.project().join(folder);
            let line = format!("PATH={}:$PATH; {line}", folder.display());
            shell.run([flag, line], &danger.to_string()).unwrap()
        };
        assert!(!is_denied(&deliver_with(Entry::Project, "own")));
        assert!(is_denied(&deliver_with(Entry::User, "good")), "{own:?}");
    }
}

#[test]
fn the_second_entry_takes_over_from_a_killed_one() {
    let scratch = user_with_hook(
        &["before_tool_execute"],
        "echo ran >> \"$ANYHOOK_CONFIG_DIR/../runs\"; \
         [ -e \"$ANYHOOK_CONFIG_DIR/../hang\" ] && sleep 10; exit 2",
        json!({}),
    );
    scratch.file(scratch.root().join("hang"), "").unwrap();
    let danger = call(&scratch, "rm -rf /", "1");
    // Without a shell: its own process is killed.
    let mut first = anyhook(&scratch)
        .spawn(["run", "--agent", "claude-code"])
        .unwrap();
    {
        use std::io::Write as _;
        let mut stdin = first.stdin.take().unwrap();
        stdin.write_all(danger.to_string().as_bytes()).unwrap();
    }
    wait_for(|| runs(&scratch) == 1);
    std::fs::remove_file(scratch.root().join("hang")).unwrap();
    let second = start(&scratch, Entry::Project, CLAUDE, &danger);
    std::thread::sleep(Duration::from_millis(100));
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(is_denied(&ProcessOutput::wait(second).unwrap()));
    assert_eq!(runs(&scratch), 2);
}

#[test]
fn the_second_entry_waits_no_longer_than_the_hooks_may_take() {
    let scratch = user_with_hook(
        &["before_tool_execute"],
        "echo ran >> \"$ANYHOOK_CONFIG_DIR/../runs\"; \
         [ -e \"$ANYHOOK_CONFIG_DIR/../hang\" ] && sleep 30; exit 2",
        json!({"handler": {"type": "command", "timeout": 1, "command":
            "echo ran >> \"$ANYHOOK_CONFIG_DIR/../runs\"; \
             [ -e \"$ANYHOOK_CONFIG_DIR/../hang\" ] && sleep 30; exit 2"}}),
    );
    scratch.file(scratch.root().join("hang"), "").unwrap();
    let danger = call(&scratch, "rm -rf /", "1");
    let mut first = anyhook(&scratch)
        .spawn(["run", "--agent", "claude-code"])
        .unwrap();
    {
        use std::io::Write as _;
        let mut stdin = first.stdin.take().unwrap();
        stdin.write_all(danger.to_string().as_bytes()).unwrap();
    }
    wait_for(|| runs(&scratch) == 1);
    std::fs::remove_file(scratch.root().join("hang")).unwrap();
    // It never ends by itself now.
    let pid = first.id().to_string();
    let stopped = std::process::Command::new("kill")
        .args(["-STOP", &pid])
        .status();
    assert!(stopped.unwrap().success());
    let started = Instant::now();
    let second = deliver(&scratch, Entry::Project, CLAUDE, &danger);
    assert!(is_denied(&second), "{second:?}");
    assert!(started.elapsed() < Duration::from_secs(8));
    first.kill().unwrap();
    first.wait().unwrap();
}

fn wait_for(mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The claim is a file of the user's.
#[test]
fn a_forged_answer_does_not_silence_a_managed_guard() {
    let scratch = guarded();
    let danger = call(&scratch, "touch x", "1");
    assert!(!is_denied(&deliver(
        &scratch,
        Entry::Project,
        CLAUDE,
        &danger
    )));
    let manifest = json!({"spec": "hooks/1.0", "hooks": [{"event": "before_tool_execute",
        "blocking": true, "handler": {"type": "command", "command": "echo no >&2; exit 2"}}]});
    let path = scratch.managed().join("hooks.json");
    scratch.file(path, &manifest.to_string()).unwrap();
    assert!(is_denied(&deliver(&scratch, Entry::User, CLAUDE, &danger)));
    assert_eq!(runs(&scratch), 1, "the user's hook ran for the first entry");
}

#[test]
fn claims_that_cannot_be_written_or_read_run_the_hooks() {
    let scratch = guarded();
    let danger = call(&scratch, "rm -rf /", "1");
    let folder = scratch.state().join("calls");
    let check = |what: &str| {
        for entry in ENTRIES {
            let output = deliver(&scratch, entry, CLAUDE, &danger);
            assert!(is_denied(&output), "{what}: {output:?}");
        }
    };
    check("a new folder");
    let slot = std::fs::read_dir(&folder)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    for text in ["", "{", "{}", "[]", "\u{0}\u{0}", &"x".repeat(200_000)] {
        std::fs::write(&slot, text).unwrap();
        check(text.get(..10).unwrap_or(text));
    }
    std::fs::remove_file(&slot).unwrap();
    std::fs::create_dir(&slot).unwrap();
    check("a folder in place of the claim");
    std::fs::remove_dir(&slot).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&slot).status();
    assert!(made.unwrap().success());
    check("a pipe in place of the claim");
    std::fs::remove_file(&slot).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &slot).unwrap();
    check("a link to a device");
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "").unwrap();
    check("a file in place of the folder");
}

#[test]
fn text_in_a_projects_file_does_not_silence_the_users_observers() {
    let scratch = user_with_hook(
        &["after_tool_execute"],
        "echo ran >> \"$ANYHOOK_CONFIG_DIR/../runs\"",
        json!({"blocking": false}),
    );
    scratch
        .file(
            ".cursor/hooks.json",
            "{\"hooks\":{},\"x\":\"--agent cursor\"}",
        )
        .unwrap();
    let call = json!({"conversation_id": "c", "generation_id": "g", "model": "m",
        "hook_event_name": "postToolUse", "cursor_version": "2", "workspace_roots":
        [scratch.project()], "user_email": null, "transcript_path": null,
        "tool_name": "Shell", "tool_input": {"command": "ls"}, "tool_output": "{}",
        "tool_use_id": "t", "cwd": scratch.project(), "duration": 1.0});
    // Cursor also runs the entry of Claude Code's user file.
    let (shell, line) = shell(&scratch, Entry::User, CLAUDE);
    let output = shell
        .env("CURSOR_VERSION", "2")
        .run(line, &call.to_string());
    assert_eq!(output.unwrap().exit, Some(0));
    assert_eq!(runs(&scratch), 1);
    let log = anyhook(&scratch).run(["log", "--json"], "").unwrap();
    assert!(log.stdout.contains("cursor"), "{log:?}");
    // Its own entry, for the same call, is recognized.
    let (shell, line) = self::shell(&scratch, Entry::User, "--agent cursor");
    let output = shell
        .env("CURSOR_VERSION", "2")
        .run(line, &call.to_string());
    assert_eq!(output.unwrap().exit, Some(0));
    assert_eq!(runs(&scratch), 1);
}

#[test]
fn a_run_reads_no_folder_of_old_files() {
    let scratch = trusted_project();
    for folder in ["claims", "told"] {
        for n in 0..300 {
            let path = scratch.state().join(folder).join(format!("{n:032x}"));
            scratch.file(path, "ended").unwrap();
        }
    }
    let left = |folder: &str| {
        let entries = std::fs::read_dir(scratch.state().join(folder));
        entries.map_or(0, Iterator::count)
    };
    let mut event = payload(&scratch, "");
    event["hook_event_name"] = "SessionStart".into();
    event["source"] = "startup".into();
    deliver(&scratch, Entry::User, CLAUDE, &event);
    assert_eq!((left("claims"), left("told")), (300, 300));
    // They are deleted a few at a time, when no call waits.
    event["hook_event_name"] = "SessionEnd".into();
    for _ in 0..3 {
        deliver(&scratch, Entry::User, CLAUDE, &event);
        deliver(&scratch, Entry::Project, CLAUDE, &event);
    }
    assert_eq!((left("claims"), left("told")), (0, 0));
    assert!(!scratch.state().join("claims").exists());
}

#[test]
fn a_notice_is_told_once_in_a_session() {
    let scratch = project();
    let told = |session: &str| {
        let mut call = payload(&scratch, "ls");
        call["session_id"] = session.into();
        let output = deliver(&scratch, Entry::User, CLAUDE, &call);
        output.stdout.contains("do not run")
    };
    assert!(told("one"));
    assert!(!told("one"));
    assert!(told("two"));
}
