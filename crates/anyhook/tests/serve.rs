//! The daemon of the real binary: the same hooks answer the same, whichever way
//! an agent calls.

#![cfg(test)]

mod serve_support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhook_testkit::{ProcessOutput, Scratch, files_below};
use serde_json::{Value, json};
use serve_support::{
    Daemon, SILENT_HOOK, anyhook, journal, percent_encoded, send, with_hook, within,
};

/// Decides by the tool, in two of the ways there are.
#[cfg(windows)]
const HOOK: &str = "@echo off\r\n\
    set find=\"%SystemRoot%\\System32\\find.exe\"\r\n\
    set event=\"%~dp0%RANDOM%%RANDOM%.json\"\r\n\
    more >%event%\r\n\
    %find% \"web_fetch\" <%event% >nul\r\n\
    if not errorlevel 1 echo {\"decision\":\"ask\",\"reason\":\"sure?\"}\r\n\
    %find% \"shell\" <%event% >nul\r\n\
    if not errorlevel 1 echo {\"decision\":\"deny\",\"reason\":\"no shell\"}\r\n\
    del %event%\r\n\
    exit /b 0\r\n";

/// Decides by what it reads, in every way there is.
#[cfg(not(windows))]
const HOOK: &str = r#"#!/bin/sh
event=$(cat)
case "$event" in
*'"event":"before_tool_execute"'*'"tool_name":"shell"'*) echo '{"decision":"deny","reason":"no shell: \u00fc"}' ;;
*'"event":"before_tool_execute"'*'"tool_name":"file_write"'*) echo '{"updated_input":{"content":"other"},"system_message":"changed"}' ;;
*'"event":"before_tool_execute"'*'"tool_name":"web_fetch"'*) echo '{"decision":"ask","reason":"sure?"}' ;;
*'"event":"before_tool_execute"'*) echo '{"decision":"allow"}' ;;
*'"event":"agent_stop"'*) echo 'not yet' >&2; exit 2 ;;
*'"event":"session_start"'* | *'"event":"before_prompt"'* | *'"event":"after_tool_execute"'*)
    echo '{"context":"remember this","system_message":"and you that"}' ;;
*) echo '{"continue":false,"reason":"enough","suppress_output":true}' ;;
esac
"#;

/// Claude Code's http hooks read the body and nothing else, so a refusal must be
/// in there. At these events the client knows only exit codes.
const BY_EXIT: &[&str] = &[
    "ConfigChange",
    "PostToolUseFailure",
    "PreCompact",
    "TaskCompleted",
    "TaskCreated",
    "TeammateIdle",
];

fn slug(path: &Path) -> String {
    let below = path.strip_prefix(agents()).unwrap();
    below.iter().next().unwrap().to_str().unwrap().to_owned()
}

fn agents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../anyhook-agents/agents")
}

#[test]
fn every_capture_is_answered_alike() {
    let scratch = with_hook(HOOK);
    let daemon = Daemon::start(&scratch, &[]);
    let project = scratch.project();
    let project = project.to_str().unwrap();
    let captures: Vec<PathBuf> = files_below(&agents())
        .into_iter()
        .filter(|path| path.iter().any(|part| part == "captures"))
        .collect();
    assert!(captures.len() > 400, "captures are missing");
    let token = daemon.token();
    let mut decided = 0;
    for (n, path) in captures.iter().enumerate() {
        let agent = slug(path);
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let event = stem.split('-').next().unwrap();
        let payload = std::fs::read_to_string(path).unwrap();
        let payload = payload.replace("/home/dev/proj", project);
        let payload = payload.replace("\"/w\"", &format!("\"{project}\""));
        let name = path.display();
        // Captures repeat one another, and an event that comes twice runs once.
        let call = |more: &[&str]| {
            let mut args = vec!["run", "--agent", &agent, "--event", event];
            args.extend(more);
            let own = scratch.state().join(format!("run-{n}"));
            scratch
                .command(serve_support::BIN)
                .env("ANYHOOK_TRUST", "all")
                .env("ANYHOOK_STATE_DIR", own)
                .env("ANYHOOK_TOKEN", &token)
                .run(args, &payload)
                .unwrap()
        };
        let local = call(&[]);
        let cwd = percent_encoded(project);
        let reply = send(
            &daemon.url,
            "POST",
            &format!("/hooks/{agent}?event={event}"),
            &[("x-anyhook-cwd", &cwd)],
            &payload,
        );
        assert_eq!(reply.status, 200, "{name}: {}", reply.body);
        assert_eq!(reply.ran(), local, "{name}: over HTTP");
        assert_eq!(
            call(&["--server", &daemon.url]),
            local,
            "{name}: by the dispatcher"
        );
        let own = scratch.state().join(format!("run-{n}"));
        let lines = std::fs::read_to_string(own.join("journal/events.jsonl")).unwrap();
        assert_eq!(
            lines.lines().count(),
            1,
            "{name}: the dispatcher ran hooks itself"
        );
        if agent == "claude-code" && !BY_EXIT.contains(&event) {
            assert_eq!(local.exit, Some(0), "{name}: {local:?}");
        }
        decided += usize::from(local.exit == Some(2) || !local.stdout.trim().is_empty());
    }
    assert!(decided > 200, "only {decided} answers say anything");
    daemon.events("limit=1000", captures.len() * 2);
}

const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

const CALL: &str = r#"{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash","tool_input":{"command":"ls"}}"#;

fn run(scratch: &Scratch, more: &[&str]) -> ProcessOutput {
    let mut args = vec!["run", "--agent", "claude-code"];
    args.extend(more);
    anyhook(scratch, &args, CALL)
}

#[test]
fn a_server_that_is_away() {
    let scratch = with_hook(HOOK);
    let local = run(&scratch, &[]);
    assert!(local.stdout.contains("no shell"), "{local:?}");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed_url = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    // Another program listens there.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let other_url = format!("http://{}", other.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in other.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
        }
    });
    // As a daemon has left it.
    scratch.file(scratch.state().join("token"), TOKEN).unwrap();
    for (url, problem) in [
        (closed_url.as_str(), "the server is away: "),
        (&other_url, "the server is not trusted"),
        ("http://hooks.example.test", "the server is away: "),
        ("nonsense", "the server is away: "),
    ] {
        let answered = run(&scratch, &["--server", url]);
        let mut answer = answered.json().unwrap();
        let told = answer.as_object_mut().unwrap().remove("systemMessage");
        assert_eq!(answer, local.json().unwrap(), "{url}");
        assert_eq!(told.is_some(), url == other_url, "{url}: {told:?}");
        let last = journal(&scratch).pop().unwrap();
        let warning = last["warnings"][0].as_str().unwrap();
        assert!(warning.starts_with(problem), "{warning}");

        let open = run(&scratch, &["--server", url, "--fallback", "open"]);
        assert_eq!(open.exit, Some(0));
        assert!(open.stdout.contains("no hook has run"), "{open:?}");
        assert!(!open.stdout.contains("no shell"), "{open:?}");
        assert_eq!(journal(&scratch).pop().unwrap()["kind"], "failure");
    }
    // A policy that fails closed does so here, too.
    let policy = scratch.managed().join("policy.json");
    scratch.file(policy, r#"{"fail_closed": true}"#).unwrap();
    let closed = run(&scratch, &["--server", &closed_url, "--fallback", "open"]);
    assert!(closed.stdout.contains("\"deny\""), "{closed:?}");
}

#[test]
fn switched_off_means_off() {
    let scratch = with_hook(HOOK);
    let daemon = Daemon::start(&scratch, &[]);
    let off = scratch
        .command(serve_support::BIN)
        .env("ANYHOOK", "0")
        .run(
            ["run", "--agent", "claude-code", "--server", &daemon.url],
            CALL,
        )
        .unwrap();
    assert_eq!(off.exit, Some(0));
    let message = "anyhook: switched off (`ANYHOOK=0`): no hook runs";
    assert_eq!(off.json().unwrap(), json!({"systemMessage": message}));
    let records = journal(&scratch);
    assert_eq!(records.len(), 1, "the daemon was not asked");
    let warning = records[0]["warnings"][0].as_str().unwrap();
    assert!(warning.starts_with("switched off"), "{warning}");
}

/// A payload that does not name its folder is the caller's folder's.
#[test]
fn the_callers_project_counts() {
    let scratch = Scratch::new().unwrap();
    let daemon = Daemon::start(&scratch, &[]);
    scratch
        .file(
            ".anyhook/hooks.yaml",
            "spec: hooks/1.0\nhooks:\n  - name: guard\n    event: before_tool_execute\n    blocking: true\n    handler: { type: command, command: \"echo here >&2 && exit 2\" }\n",
        )
        .unwrap();
    let answered = run(&scratch, &["--server", &daemon.url]);
    assert!(answered.stdout.contains("here"), "{answered:?}");
    // The daemon itself was started elsewhere.
    let reply = daemon.post("/hooks/claude", CALL);
    assert_eq!((reply.status, reply.body.as_str()), (200, ""));
}

#[test]
fn nobody_to_ask() {
    let scratch = with_hook(HOOK);
    let daemon = Daemon::start(&scratch, &[]);
    let payload = r#"{"event":"before_tool_execute","source":"canonical","native_event":"x","data":{"tool_name":"web_fetch","tool_input":{}}}"#;
    let asked = |headers: &[(&str, &str)]| {
        let reply = send(&daemon.url, "POST", "/hooks/canonical", headers, payload);
        let answer: Value = serde_json::from_str(&reply.body).unwrap();
        answer["decision"].as_str().unwrap().to_owned()
    };
    assert_eq!(asked(&[]), "ask");
    assert_eq!(asked(&[("x-anyhook-unattended", "1")]), "deny");
}

/// Held by the daemon too, and answered over its API: with the token, also on the socket.
#[test]
fn a_held_call_is_answered_over_the_api() {
    let scratch = with_hook(HOOK);
    let settings = scratch.config().join("config.yaml");
    scratch.file(settings, "approvals: {hold: 30}\n").unwrap();
    let daemon = Daemon::start(&scratch, &[]);
    let payload = json!({
        "session_id": "s", "cwd": scratch.project(), "hook_event_name": "PreToolUse",
        "tool_name": "WebFetch", "tool_input": {"url": "https://example.org"},
    })
    .to_string();
    let bearer = format!("Bearer {}", daemon.token());
    let with_token = [("authorization", bearer.as_str())];
    let unattended = [("x-anyhook-unattended", "1")];
    for (answer, denied) in [("allow", false), ("deny", true)] {
        let reply = std::thread::scope(|scope| {
            let called = scope.spawn(|| {
                send(
                    &daemon.url,
                    "POST",
                    "/hooks/claude-code",
                    &unattended,
                    &payload,
                )
            });
            let mut open = Value::Null;
            let came = within(Duration::from_secs(20), || {
                open = daemon.get("/approvals")["approvals"][0].clone();
                !open.is_null()
            });
            assert!(came, "no question appears");
            assert_eq!(open["reason"], "sure?");
            assert_eq!(open["agent"], "claude-code");
            let path = format!("/approvals/{}", open["id"].as_str().unwrap());
            let body = json!({"decision": answer}).to_string();
            #[cfg(unix)]
            assert_eq!(post_to_socket(&scratch, &path, &body), 401);
            assert_eq!(daemon.post(&path, &body).status, 401);
            for bad in ["{}", r#"{"decision": "ask"}"#, "[]", "x"] {
                let reply = send(&daemon.url, "POST", &path, &with_token, bad);
                assert_eq!(reply.status, 400, "{bad}: {}", reply.body);
            }
            let reply = send(&daemon.url, "POST", &path, &with_token, &body);
            assert_eq!(reply.body, r#"{"effect":"delivered"}"#);
            let again = send(&daemon.url, "POST", &path, &with_token, &body);
            assert_eq!(again.status, 404, "{}", again.body);
            called.join().unwrap()
        });
        assert_eq!(reply.body.contains(r#""deny""#), denied, "{}", reply.body);
    }
}

/// The status of a request to the daemon's socket without a token.
#[cfg(unix)]
fn post_to_socket(scratch: &Scratch, path: &str, body: &str) -> u16 {
    let socket = scratch.state().join("daemon.sock");
    let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_second_daemon_names_the_first() {
    let scratch = with_hook(HOOK);
    let daemon = Daemon::start(&scratch, &[]);
    let address = daemon.url.strip_prefix("http://").unwrap();
    let serve = |more: &[&str]| {
        let mut args = vec!["serve", "--listen", address];
        args.extend(more);
        anyhook(&scratch, &args, "")
    };
    let second = serve(&[]);
    assert_eq!(second.exit, Some(1), "{second:?}");
    assert!(second.stderr.contains("already runs on"), "{second:?}");
    assert!(second.stderr.contains("serve --open"), "{second:?}");
    // Its page opens with a new link.
    let opened = serve(&["--open", "--json"]);
    assert_eq!(opened.exit, Some(0), "{opened:?}");
    let link = opened.json().unwrap()["link"].as_str().unwrap().to_owned();
    let code = link.split_once("#code=").unwrap().1;
    let session = json!({ "code": code }).to_string();
    assert_eq!(daemon.post("/session", &session).status, 200, "{link}");
    // Another program on the port does not get the token.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    let heard = std::thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        let mut request = [0; 4096];
        let length = stream.read(&mut request).unwrap();
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
            .unwrap();
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    let third = anyhook(&scratch, &["serve", "--open", "--listen", &address], "");
    assert_eq!(third.exit, Some(1), "{third:?}");
    assert!(third.stderr.contains("another program"), "{third:?}");
    assert!(!heard.join().unwrap().contains(&daemon.token()));
}

#[test]
fn unknown_parameters_are_refused() {
    let scratch = with_hook(HOOK);
    let daemon = Daemon::start(&scratch, &[]);
    let bearer = format!("Bearer {}", daemon.token());
    for path in ["/events", "/sessions", "/stats", "/stream"] {
        let path = format!("{path}?agnet=codex");
        let reply = send(&daemon.url, "GET", &path, &[("authorization", &bearer)], "");
        assert_eq!(reply.status, 400, "{path}: {}", reply.body);
        assert!(reply.body.contains("agnet"), "{path}: {}", reply.body);
    }
}

#[test]
fn the_token_is_found() {
    let scratch = with_hook(HOOK);
    let daemon = Daemon::start(&scratch, &["--require-token"]);
    assert_eq!(daemon.post("/hooks/claude", CALL).status, 401);
    let count = || journal(&scratch).len();
    assert_eq!(count(), 0);
    let answered = run(&scratch, &["--server", &daemon.url]);
    assert!(answered.stdout.contains("no shell"), "{answered:?}");
    assert_eq!(journal(&scratch)[0]["warnings"], Value::Null);
    let run_with_wrong_token = || {
        let answered = scratch
            .command(serve_support::BIN)
            .env("ANYHOOK_TRUST", "all")
            .env("ANYHOOK_TOKEN", "wrong")
            .run(["run", "--agent", "claude", "--server", &daemon.url], CALL)
            .unwrap();
        assert!(answered.stdout.contains("no shell"), "{answered:?}");
    };
    // The file goes first: a project can set the variable.
    run_with_wrong_token();
    assert_eq!(journal(&scratch)[1]["warnings"], Value::Null);
    // A wrong one is as good as none: the hooks run here.
    let (file, aside) = (scratch.state().join("token"), scratch.state().join("aside"));
    std::fs::rename(&file, &aside).unwrap();
    run_with_wrong_token();
    std::fs::rename(&aside, &file).unwrap();
    let last = journal(&scratch).pop().unwrap();
    let warning = last["warnings"][0].as_str().unwrap();
    assert!(warning.contains("does not know the token"), "{last}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(scratch.state().join("token")).unwrap();
        assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn events_are_kept_without_secrets() {
    let scratch = with_hook(SILENT_HOOK);
    let daemon = Daemon::start(&scratch, &[]);
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    let call = CALL.replace("ls", &format!("curl -H 'authorization: Bearer {secret}'"));
    assert_eq!(daemon.post("/hooks/claude", &call).status, 200);
    let event = &daemon.events("agent=claude", 1)[0];
    assert_eq!(event["event"], "before_tool_execute");
    assert_eq!(event["type"], "BEFORE_TOOL");
    assert_eq!(event["tool"], "shell");
    let full = daemon.get(&format!("/events/{}", event["id"].as_str().unwrap()));
    assert!(!full.to_string().contains(&secret), "{full}");
    let sent = json!({"openhook": "0.1", "id": "e1", "session_id": "s", "type": "tool.start", "source": "x",
        "time": "2026-02-23T10:15:30Z", "data": {"args": secret}});
    let bearer = format!("Bearer {}", daemon.token());
    let headers = [("authorization", bearer.as_str())];
    let reply = send(&daemon.url, "POST", "/ingest", &headers, &sent.to_string());
    assert_eq!(reply.status, 200, "{}", reply.body);
    let full = daemon.get("/events/e1");
    assert!(!full.to_string().contains(&secret), "{full}");
    #[cfg(unix)]
    assert_eq!(daemon.end(), Some(0));
}

#[test]
fn shipped_from_one_machine_to_another() {
    let (laptop, centre) = (with_hook(HOOK), Scratch::new().unwrap());
    let daemon = Daemon::start(&centre, &[]);
    for _ in 0..3 {
        run(&laptop, &[]);
    }
    let ship = |token: &str| {
        laptop
            .command(serve_support::BIN)
            .env("ANYHOOK_TOKEN", token)
            .run(
                ["ship", "--to", &daemon.url, "--machine", "laptop", "--json"],
                "",
            )
            .unwrap()
    };
    let refused = ship("wrong");
    assert_eq!(refused.exit, Some(1));
    let why = "does not know the token";
    assert!(refused.stderr.contains(why), "{refused:?}");
    let sent = ship(&daemon.token());
    assert_eq!(sent.json().unwrap()["events"]["new"], 3, "{sent:?}");
    run(&laptop, &[]);
    assert_eq!(ship(&daemon.token()).json().unwrap()["events"]["new"], 1);
    assert_eq!(ship(&daemon.token()).json().unwrap()["batches"], 0);
    assert_eq!(daemon.events("machine=laptop", 4).len(), 4);
    let plain = anyhook(&laptop, &["ship", "--to", "http://hooks.example.test"], "");
    assert_eq!(plain.exit, Some(1));
    assert!(plain.stderr.contains("is not https"), "{plain:?}");
}

/// What was answered is kept once, whenever the daemon is killed.
#[test]
fn killed_while_agents_call() {
    let scratch = with_hook(SILENT_HOOK);
    let mut answered: Vec<String> = Vec::new();
    for round in 0..10 {
        let daemon = Daemon::start(&scratch, &[]);
        let url = daemon.url.clone();
        let count = Arc::new(AtomicU64::new(0));
        let callers: Vec<_> = (0..3)
            .map(|caller| {
                let (url, count) = (url.clone(), Arc::clone(&count));
                std::thread::spawn(move || {
                    let mut mine = Vec::new();
                    for n in 0.. {
                        let command = format!("call-{round}-{caller}-{n}");
                        let body = CALL.replace("\"ls\"", &format!("\"{command}\""));
                        if !try_post(&url, &body) {
                            return mine;
                        }
                        mine.push(command);
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                    mine
                })
            })
            .collect();
        // Each round kills in another moment of the calls, however slow the machine is.
        let some_are_answered = || count.load(Ordering::Relaxed) > 3 + round;
        assert!(within(Duration::from_secs(30), some_are_answered));
        std::thread::sleep(Duration::from_millis(round * 3));
        daemon.kill();
        for caller in callers {
            answered.extend(caller.join().unwrap());
        }
    }
    assert!(
        answered.len() > 30,
        "only {} calls were answered",
        answered.len()
    );
    let daemon = Daemon::start(&scratch, &[]);
    let mut kept = Vec::new();
    let all_there = within(Duration::from_secs(30), || {
        kept.clear();
        let mut next = String::new();
        loop {
            let page = daemon.get(&format!("/events?limit=1000&cursor={next}"));
            for event in page["events"].as_array().unwrap() {
                kept.push(event["detail"].as_str().unwrap().to_owned());
            }
            match page["next"].as_str() {
                Some(more) => next = more.to_owned(),
                None => break,
            }
        }
        answered.iter().all(|command| kept.contains(command))
    });
    assert!(
        all_there,
        "{} answered, {} kept",
        answered.len(),
        kept.len()
    );
    kept.sort();
    let count = kept.len();
    kept.dedup();
    assert_eq!(kept.len(), count, "an event is kept twice");
}

/// Whether the whole answer came.
fn try_post(url: &str, body: &str) -> bool {
    let Ok(mut stream) = std::net::TcpStream::connect(url.strip_prefix("http://").unwrap()) else {
        return false;
    };
    let request = format!(
        "POST /hooks/claude HTTP/1.0\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut answer = String::new();
    stream.write_all(request.as_bytes()).is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && answer.contains("x-anyhook-exit-code: 0")
}

/// The daemon remembers where there is nothing to run, and must not go on so.
#[test]
fn a_new_guard_holds_from_the_next_call_on() {
    let scratch = Scratch::new().unwrap();
    let call = json!({
        "session_id": "s", "transcript_path": "/t.jsonl", "cwd": scratch.home(),
        "permission_mode": "default", "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": {"command": "ls"}, "tool_use_id": "t"
    })
    .to_string();
    let manifest = |command: &str| {
        format!(
            "spec: hooks/1.0\nhooks:\n  - event: before_tool_execute\n    matcher: {command}\n    blocking: true\n    handler: {{type: command, command: 'echo no-way >&2 && exit 2'}}\n"
        )
    };
    let path = scratch.config().join("hooks.yaml");
    scratch.file(&path, &manifest("find ")).unwrap();
    let daemon = Daemon::start(&scratch, &[]);
    let post = || daemon.post("/hooks/claude-code", &call);
    for _ in 0..2 {
        assert_eq!(post().body, "");
        std::thread::sleep(Duration::from_millis(2600));
    }
    assert_eq!(post().body, "");
    scratch.file(&path, &manifest("shell")).unwrap();
    // What the daemon has just checked counts for a millisecond.
    std::thread::sleep(Duration::from_millis(2));
    assert!(post().body.contains("no-way"));
    std::fs::remove_file(&path).unwrap();
    std::thread::sleep(Duration::from_millis(2));
    assert_eq!(post().body, "");
    daemon.events("", 5);
}
