//! A daemon that pretends, hangs or is busy does not switch a guard off.

#[path = "../serve_support/mod.rs"]
mod serve_support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhook_testkit::{ProcessOutput, Scratch};
use serde_json::{Value, json};

use super::locked::add_guard;
use super::support::{anyhook, is_denied, payload, trusted_project};
use serve_support::{Daemon, journal, within};

const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Far below any agent's own timeout, and far above 250 ms on a busy machine.
const SOON: Duration = Duration::from_secs(2);

/// `anyhook run` with these arguments, for a command that the guard denies.
fn run_with(scratch: &Scratch, more: &[&str]) -> ProcessOutput {
    let mut args = vec!["run", "--agent", "claude-code"];
    args.extend(more);
    let payload = payload(scratch, "rm -rf /").to_string();
    anyhook(scratch).run(args, &payload).unwrap()
}

fn warnings(scratch: &Scratch) -> String {
    journal(scratch).pop().unwrap()["warnings"].to_string()
}

/// Accepts connections for ever and gives each to `serve`.
fn listen(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = serve.clone();
            std::thread::spawn(move || serve(stream));
        }
    });
    url
}

fn signal(daemon: &Daemon, signal: &str) {
    let pid = daemon.pid().to_string();
    let sent = Command::new("kill").args([signal, &pid]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn whoever_listens_on_the_port_gets_no_token_and_is_not_believed() {
    let allow = "HTTP/1.1 200 OK\r\nx-anyhook-exit-code: 0\r\ncontent-length: 0\r\n";
    let nonce = "x-anyhook-nonce: 1-2-3\r\n";
    let proof = format!("x-anyhook-proof: {}\r\n", "0".repeat(64));
    for answer in [
        format!("{allow}\r\n"),
        format!("{allow}{nonce}\r\n"),
        format!("{allow}{nonce}{proof}\r\n"),
        format!("{allow}{nonce}{proof}\r\n{allow}{nonce}{proof}\r\n"),
        "HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}".to_owned(),
        "hello\r\n\r\n".to_owned(),
    ] {
        let scratch = trusted_project();
        scratch.file(scratch.state().join("token"), TOKEN).unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let all = heard.clone();
        let said = answer.clone();
        let url = listen(move |mut stream| {
            let mut buffer = vec![0; 65536];
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                all.lock().unwrap().extend_from_slice(&buffer[..count]);
                if stream.write_all(said.as_bytes()).is_err() {
                    return;
                }
            }
        });
        let output = run_with(&scratch, &["--server", &url]);
        assert!(is_denied(&output), "{answer}: {output:?}");
        let told = output.json().unwrap()["systemMessage"].to_string();
        assert!(told.contains("not trusted"), "{answer}: {told}");
        assert!(warnings(&scratch).contains("not trusted"), "{answer}");
        let heard = String::from_utf8_lossy(&heard.lock().unwrap()).into_owned();
        assert!(heard.contains("/challenge"), "{heard}");
        assert!(!heard.contains(TOKEN), "the token was sent: {heard}");
        assert!(!heard.contains("rm -rf"), "the payload was sent: {heard}");
    }
}

/// A relay between the two passes everything on except the decision.
#[test]
fn a_relay_cannot_change_a_call_or_its_answer() {
    for (from_client, to, from_daemon, instead) in [
        ("nothing", "nothing", "\"deny\"", "\"none\""),
        ("nothing", "nothing", "exit-code: 0", "exit-code: 1"),
        ("rm -rf", "echo a", "nothing", "nothing"),
        (
            "x-anyhook-cwd: %2F",
            "x-anyhook-cwd: %2E",
            "nothing",
            "nothing",
        ),
    ] {
        let scratch = trusted_project();
        let daemon = Daemon::start(&scratch, &[]);
        let target = daemon.url.strip_prefix("http://").unwrap().to_owned();
        let url = listen(move |client| {
            let server = TcpStream::connect(&target).unwrap();
            let ways = [
                (
                    client.try_clone().unwrap(),
                    server.try_clone().unwrap(),
                    from_client,
                    to,
                ),
                (server, client, from_daemon, instead),
            ];
            let pump = |(mut from, mut to, text, other): (TcpStream, TcpStream, &str, &str)| {
                let mut buffer = vec![0; 65536];
                while let Ok(count @ 1..) = from.read(&mut buffer) {
                    let part = String::from_utf8_lossy(&buffer[..count]).replace(text, other);
                    if to.write_all(part.as_bytes()).is_err() {
                        break;
                    }
                }
                let _ = to.shutdown(std::net::Shutdown::Write);
            };
            std::thread::scope(|scope| {
                for way in ways {
                    scope.spawn(move || pump(way));
                }
            });
        });
        let output = run_with(&scratch, &["--server", &url]);
        assert!(
            is_denied(&output),
            "{from_client} {from_daemon}: {output:?}"
        );
        // The hooks ran here.
        assert!(
            warnings(&scratch).contains("the server is"),
            "{from_client} {from_daemon}: {}",
            warnings(&scratch)
        );
    }
    // What it sees on its way does not help it later.
    let scratch = trusted_project();
    let daemon = Daemon::start(&scratch, &["--require-token"]);
    let target = daemon.url.strip_prefix("http://").unwrap().to_owned();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (all, to) = (seen.clone(), target.clone());
    let url = listen(move |mut client| {
        let mut server = TcpStream::connect(&to).unwrap();
        let mut back = (server.try_clone().unwrap(), client.try_clone().unwrap());
        let answers = std::thread::spawn(move || {
            let _ = std::io::copy(&mut back.0, &mut back.1);
            let _ = back.1.shutdown(std::net::Shutdown::Both);
        });
        let mut buffer = vec![0; 65536];
        while let Ok(count @ 1..) = client.read(&mut buffer) {
            all.lock().unwrap().extend_from_slice(&buffer[..count]);
            server.write_all(&buffer[..count]).unwrap();
        }
        answers.join().unwrap();
    });
    let output = run_with(&scratch, &["--server", &url]);
    assert!(is_denied(&output), "{output:?}");
    let count = journal(&scratch).len();
    assert_eq!(warnings(&scratch), "null");
    let seen = String::from_utf8_lossy(&seen.lock().unwrap()).into_owned();
    assert!(!seen.contains(&daemon.token()), "{seen}");
    let call = seen.find("POST /hooks").unwrap();
    let mut stream = TcpStream::connect(&target).unwrap();
    stream.write_all(&seen.as_bytes()[call..]).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains(" 401 "), "{answer}");
    assert_eq!(journal(&scratch).len(), count);
}

#[test]
fn the_socket_needs_no_token_and_is_its_owners_only() {
    let scratch = trusted_project();
    let daemon = Daemon::start(&scratch, &["--require-token"]);
    let socket = scratch.state().join("daemon.sock");
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Nobody has to read it for that.
    std::fs::rename(scratch.state().join("token"), scratch.root().join("token")).unwrap();
    for address in [&["--server"][..], &["--server", "http://127.0.0.1:24665"]] {
        let output = run_with(&scratch, address);
        assert!(is_denied(&output), "{output:?}");
        assert_eq!(warnings(&scratch), "null", "the daemon was not asked");
    }
    // A second daemon leaves it alone; what a killed one leaves is replaced.
    let second = Daemon::start(&scratch, &[]);
    second.kill();
    assert!(is_denied(&run_with(&scratch, &["--server"])));
    assert_eq!(warnings(&scratch), "null");
    daemon.kill();
    assert!(socket.exists());
    assert!(is_denied(&run_with(&scratch, &["--server"])));
    assert!(warnings(&scratch).contains("is away"));
    let third = Daemon::start(&scratch, &[]);
    assert!(is_denied(&run_with(&scratch, &["--server"])));
    assert_eq!(warnings(&scratch), "null");
    assert_eq!(third.end(), Some(0));
    assert!(!socket.exists());
}

/// Needs another user, so only root can try it.
#[test]
fn a_socket_of_another_user_is_not_believed() {
    let scratch = trusted_project();
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let has_python = Command::new("python3").arg("-V").output().is_ok();
    if !is_root || !has_python {
        return;
    }
    let socket = scratch.state().join("daemon.sock");
    let script = "import os, socket, sys\n\
        s = socket.socket(socket.AF_UNIX)\n\
        os.chmod(os.path.dirname(sys.argv[1]), 0o777)\n\
        os.setuid(65534)\n\
        s.bind(sys.argv[1]); s.listen(8); print('bound', flush=True)\n\
        while True:\n\
        \x20 c, _ = s.accept()\n\
        \x20 c.recv(65536)\n\
        \x20 c.sendall(b'HTTP/1.1 200 OK\\r\\nx-anyhook-nonce: 1\\r\\nx-anyhook-exit-code: 0\\r\\ncontent-length: 0\\r\\n\\r\\n' * 2)\n";
    for folder in [scratch.root(), &scratch.state()] {
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let mut other = Command::new("python3")
        .args(["-c", script])
        .arg(&socket)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = other.stdout.take().unwrap();
    said.read_exact(&mut [0; "bound\n".len()]).unwrap();
    // Approvals in a folder that others can write would not count.
    std::fs::set_permissions(scratch.state(), PermissionsExt::from_mode(0o700)).unwrap();
    let output = run_with(&scratch, &["--server"]);
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(is_denied(&output), "{output:?}");
    assert!(
        warnings(&scratch).contains("another user"),
        "{}",
        warnings(&scratch)
    );
}

#[test]
fn a_state_folder_with_a_long_path_still_has_a_daemon() {
    let scratch = trusted_project();
    let state = scratch.root().join("s".repeat(120));
    std::fs::rename(scratch.state(), &state).unwrap();
    let run = |more: &[&str]| {
        let mut args = vec!["run", "--agent", "claude-code"];
        args.extend(more);
        let payload = payload(&scratch, "rm -rf /").to_string();
        let call = anyhook(&scratch).env("ANYHOOK_STATE_DIR", &state);
        call.run(args, &payload).unwrap()
    };
    let mut serve = serve_support::command(&scratch, &["serve", "--listen", "0"]);
    let mut serve = serve
        .env("ANYHOOK_STATE_DIR", &state)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    within(Duration::from_secs(10), || {
        let mut part = [0; 4096];
        let count = serve.stdout.as_mut().unwrap().read(&mut part).unwrap();
        said += std::str::from_utf8(&part[..count]).unwrap();
        said.contains("The token is in")
    });
    let url = said
        .split(&['\n', ' '][..])
        .find(|word| word.starts_with("http://"));
    let by_address = run(&["--server", url.unwrap()]);
    let by_default = run(&["--server"]);
    serve.kill().unwrap();
    let output = serve.wait_with_output().unwrap();
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(notes.contains("There is no socket"), "{notes}");
    assert!(is_denied(&by_address) && is_denied(&by_default));
    let lines: Vec<Value> =
        anyhook_testkit::whole_lines(&state.join("journal/events.jsonl")).unwrap();
    assert_eq!(lines[0]["warnings"], Value::Null, "{lines:?}");
}

#[test]
fn a_daemon_that_hangs_counts_as_away_at_once() {
    let scratch = trusted_project();
    let daemon = Daemon::start(&scratch, &[]);
    let accepts_only = TcpListener::bind("127.0.0.1:0").unwrap();
    let accepts_only = format!("http://{}", accepts_only.local_addr().unwrap());
    let drips = listen(|mut stream| {
        while stream.write_all(b"H").is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    signal(&daemon, "-STOP");
    for address in [
        vec!["--server"],
        vec!["--server", &daemon.url],
        vec!["--server", &accepts_only],
        vec!["--server", &drips],
    ] {
        let begun = Instant::now();
        let output = run_with(&scratch, &address);
        let took = begun.elapsed();
        assert!(is_denied(&output), "{address:?}: {output:?}");
        assert!(took < SOON, "{address:?} took {took:?}");
        let warning = warnings(&scratch);
        assert!(
            warning.contains("did not answer within 250 ms"),
            "{warning}"
        );
    }
    // It has got no call that it could run when it goes on.
    let count = journal(&scratch).len();
    signal(&daemon, "-CONT");
    let output = run_with(&scratch, &["--server"]);
    assert!(is_denied(&output), "{output:?}");
    assert_eq!(warnings(&scratch), "null");
    assert_eq!(journal(&scratch).len(), count + 1);
}

#[test]
fn a_slow_hook_is_waited_for_and_a_daemon_that_stops_meanwhile_is_not() {
    let scratch = trusted_project();
    let slow = "#!/bin/sh\necho run >> \"$ANYHOOK_PROJECT_DIR/runs\"\n\
        [ -e \"$ANYHOOK_PROJECT_DIR/fast\" ] || sleep 4\necho guarded >&2\nexit 2\n";
    scratch.exec(".anyhook/guard.sh", slow).unwrap();
    let daemon = Daemon::start(&scratch, &[]);
    let runs = || std::fs::read_to_string(scratch.project().join("runs")).unwrap_or_default();
    let output = run_with(&scratch, &["--server"]);
    assert!(is_denied(&output), "{output:?}");
    assert_eq!(runs(), "run\n", "once, although it took long");
    assert_eq!(warnings(&scratch), "null");

    let trust = anyhook(&scratch).run(["trust", "--yes"], "").unwrap();
    assert_eq!(trust.exit, Some(0), "{trust:?}");
    let begun = Instant::now();
    let output = std::thread::scope(|scope| {
        let call = scope.spawn(|| run_with(&scratch, &["--server", &daemon.url]));
        assert!(within(SOON, || runs().len() > 4));
        scratch.file("fast", "").unwrap();
        signal(&daemon, "-STOP");
        call.join().unwrap()
    });
    assert!(is_denied(&output), "{output:?}");
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(
        warnings(&scratch).contains("stopped answering"),
        "{}",
        warnings(&scratch)
    );
}

#[test]
fn idle_connections_do_not_keep_hook_calls_out() {
    let scratch = trusted_project();
    let daemon = Daemon::start(&scratch, &[]);
    let host = daemon.url.strip_prefix("http://").unwrap();
    let call = payload(&scratch, "rm -rf /").to_string();
    let mut idle = Vec::new();
    // More than the limit, if this process may open as many files.
    while idle.len() < 1700
        && let Ok(mut stream) = TcpStream::connect(host)
    {
        let start = ["", "POST /hooks/claude HTTP/1.1\r\nhost: localhost\r\n"][idle.len() % 2];
        stream.write_all(start.as_bytes()).unwrap();
        idle.push(stream);
    }
    assert!(idle.len() > 520, "only {} connections", idle.len());
    // Room for the calls.
    idle.truncate(idle.len() - 10);
    for _ in 0..5 {
        let begun = Instant::now();
        let reply = daemon.post("/hooks/claude-code", &call);
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert!(reply.body.contains("\"deny\""), "{}", reply.body);
        assert!(begun.elapsed() < SOON);
    }
    let output = run_with(&scratch, &["--server", &daemon.url]);
    assert!(is_denied(&output), "{output:?}");
    assert_eq!(warnings(&scratch), "null");
}

/// Calls that hang in one project take no more than half of what there is.
#[test]
fn calls_that_hang_in_one_project_leave_room_for_others() {
    let scratch = trusted_project();
    scratch
        .exec(".anyhook/guard.sh", "#!/bin/sh\nexec sleep 60\n")
        .unwrap();
    let other = trusted_project();
    let daemon = Daemon::start(&scratch, &[]);
    let host = daemon.url.strip_prefix("http://").unwrap();
    let hanging = payload(&scratch, "ls").to_string();
    let request = format!(
        "POST /hooks/claude-code HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{hanging}",
        hanging.len()
    );
    let streams: Vec<_> = (0..220)
        .map(|_| {
            let mut stream = TcpStream::connect(host).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            stream
        })
        .collect();
    std::thread::sleep(Duration::from_secs(3));
    let begun = Instant::now();
    let reply = daemon.post(
        "/hooks/claude-code",
        &payload(&other, "rm -rf /").to_string(),
    );
    assert!(reply.body.contains("\"deny\""), "{reply:?}");
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );

    // A call that gets no turn is an error, or a deny where failures must deny.
    let busy = daemon.post("/hooks/claude-code", &hanging);
    assert_eq!(busy.status, 503, "{busy:?}");
    let policy = scratch.managed().join("policy.json");
    scratch.file(policy, r#"{"fail_closed": true}"#).unwrap();
    let busy = daemon.post("/hooks/claude-code", &hanging);
    assert!(busy.body.contains("\"deny\""), "{busy:?}");
    drop(streams);
}

#[test]
fn a_damaged_store_is_named_with_the_way_out() {
    let scratch = trusted_project();
    run_with(&scratch, &[]);
    let store = scratch.state().join("store.db");
    scratch
        .file(&store, &"not a database ".repeat(500))
        .unwrap();
    for args in [&["serve", "--listen", "0"][..], &["log"], &["stats"]] {
        let output = anyhook(&scratch).run(args, "").unwrap();
        assert_eq!(output.exit, Some(1), "{output:?}");
        for part in [
            store.to_str().unwrap(),
            "damaged",
            "journal is intact",
            "rebuilt",
        ] {
            assert!(output.stderr.contains(part), "{part}: {output:?}");
        }
    }
    let status = anyhook(&scratch).run(["status"], "").unwrap();
    assert_eq!(status.exit, Some(0), "{status:?}");
    assert!(
        status.stderr.contains("Nothing can be stored now"),
        "{status:?}"
    );
    assert!(status.stderr.contains("damaged"), "{status:?}");
    // The advice works.
    std::fs::remove_file(&store).unwrap();
    let daemon = Daemon::start(&scratch, &[]);
    assert_eq!(daemon.events("", 1).len(), 1);
}

/// Guards go on, the reason is told, and nothing is lost.
#[test]
fn a_store_that_fails_is_told_and_catches_up() {
    let scratch = trusted_project();
    let daemon = Daemon::start(&scratch, &[]);
    let raw = rusqlite::Connection::open(scratch.state().join("store.db")).unwrap();
    raw.execute_batch("ALTER TABLE anyhook_facets RENAME TO away")
        .unwrap();
    let failure = || daemon.get("/healthz")["store"]["failure"].clone();
    for _ in 0..3 {
        assert!(is_denied(&run_with(&scratch, &["--server"])));
    }
    assert!(
        within(SOON * 10, || failure().is_string()),
        "{:?}",
        failure()
    );
    assert!(
        failure().to_string().contains("anyhook_facets"),
        "{:?}",
        failure()
    );
    raw.execute_batch("ALTER TABLE away RENAME TO anyhook_facets")
        .unwrap();
    assert_eq!(daemon.events("limit=10", 3).len(), 3);
    assert!(within(SOON * 10, || failure().is_null()), "{:?}", failure());
}

#[test]
fn a_program_of_another_user_cannot_use_the_socket() {
    let scratch = trusted_project();
    let _daemon = Daemon::start(&scratch, &["--require-token"]);
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    if !is_root || Command::new("python3").arg("-V").output().is_err() {
        return;
    }
    // As if the modes had been changed.
    let socket = scratch.state().join("daemon.sock");
    for folder in [scratch.root(), &scratch.state(), &socket] {
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o777)).unwrap();
    }
    let script = "import os, socket, sys\n\
        os.setuid(65534)\n\
        s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n\
        try:\n\
        \x20 s.sendall(b'GET /events HTTP/1.0\\r\\nhost: localhost\\r\\n\\r\\n')\n\
        \x20 print(s.recv(65536))\n\
        except ConnectionError: print(b'')\n";
    let output = Command::new("python3")
        .args(["-c", script])
        .arg(&socket)
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "b''\n",
        "{output:?}"
    );
}

/// The project in the agent's environment counts, and the folder that the agent was
/// started in, as they do without a daemon.
#[test]
fn the_guard_of_the_agents_project_is_asked_by_the_daemon_too() {
    let scratch = trusted_project();
    let elsewhere = scratch.root().join("elsewhere");
    std::fs::create_dir_all(elsewhere.join(".git")).unwrap();
    let daemon = Daemon::start(&scratch, &[]);
    let mut call = payload(&scratch, "rm -rf /");
    call["cwd"] = json!(elsewhere);
    for server in [&[][..], &["--server"], &["--server", &daemon.url]] {
        for (variable, cwd) in [(true, &elsewhere), (false, &scratch.project())] {
            let mut args = vec!["run", "--agent", "claude-code"];
            args.extend(server);
            let mut run = anyhook(&scratch).dir(cwd);
            if variable {
                run = run.env("CLAUDE_PROJECT_DIR", scratch.project());
            }
            let output = run.run(args, &call.to_string()).unwrap();
            assert!(is_denied(&output), "{server:?} {variable}: {output:?}");
            assert!(
                !warnings(&scratch).contains("the server"),
                "{}",
                warnings(&scratch)
            );
        }
    }
}

/// Posts as an http entry of Claude Code does: the payload, and nothing else.
fn post_http_entry(daemon: &Daemon, call: &Value) -> ProcessOutput {
    let reply = daemon.post("/hooks/claude-code?scope=user", &call.to_string());
    ProcessOutput {
        stdout: reply.body,
        stderr: String::new(),
        exit: Some(0),
    }
}

/// An event of a session; before a tool, one that the guard denies.
fn session_event(event: &str, session: &str, cwd: &std::path::Path) -> Value {
    let mut call = json!({
        "session_id": session, "transcript_path": "/x.jsonl", "cwd": cwd,
        "hook_event_name": event,
    });
    let data = match event {
        "PreToolUse" => json!({
            "tool_name": "Bash", "tool_input": {"command": "rm -rf /"},
            "tool_use_id": format!("{session} {}", cwd.display()),
        }),
        "SessionStart" => json!({"source": "startup"}),
        _ => json!({"prompt": "hello"}),
    };
    let fields = data.as_object().unwrap().clone();
    call.as_object_mut().unwrap().extend(fields);
    call
}

#[test]
fn an_http_entry_asks_the_project_that_its_session_was_started_in() {
    let scratch = trusted_project();
    let elsewhere = scratch.root().join("elsewhere");
    std::fs::create_dir_all(elsewhere.join(".git")).unwrap();
    let mut daemon = Daemon::start(&scratch, &[]);
    let by_process = |event: &str, session: &str, more: &[&str]| {
        let mut args = vec!["run", "--agent", "claude-code"];
        args.extend(more);
        let call = session_event(event, session, &elsewhere);
        let run = anyhook(&scratch).dir(&elsewhere);
        let run = run.env("CLAUDE_PROJECT_DIR", scratch.project());
        let output = run.run(args, &call.to_string()).unwrap();
        assert_eq!(output.exit, Some(0), "{output:?}");
    };
    by_process("SessionStart", "started", &[]);
    by_process("UserPromptSubmit", "prompted", &[]);
    by_process("SessionStart", "dispatched", &["--server", &daemon.url]);
    assert!(!warnings(&scratch).contains("the server"));
    post_http_entry(
        &daemon,
        &session_event("PreToolUse", "seen", &scratch.project()),
    );
    for _ in 0..2 {
        for session in ["started", "prompted", "dispatched", "seen"] {
            for cwd in [&elsewhere, &scratch.root().join("missing")] {
                let call = session_event("PreToolUse", session, cwd);
                let output = post_http_entry(&daemon, &call);
                assert!(is_denied(&output), "{session} {cwd:?}: {output:?}");
                let is_told = warnings(&scratch).contains("does not know yet in which project");
                assert_eq!(is_told, session == "seen", "{session}");
            }
        }
        // What a daemon has learned outlives it.
        daemon.kill();
        daemon = Daemon::start(&scratch, &[]);
    }
}

#[test]
fn an_http_entry_says_when_the_project_of_its_session_is_not_known() {
    let scratch = trusted_project();
    let elsewhere = scratch.root().join("elsewhere");
    std::fs::create_dir_all(elsewhere.join(".git")).unwrap();
    let daemon = Daemon::start(&scratch, &[]);
    let call = session_event("PreToolUse", "new", &elsewhere);
    for is_first in [true, false] {
        let output = post_http_entry(&daemon, &call);
        assert!(!is_denied(&output), "{output:?}");
        let is_told = output.stdout.contains("does not know yet in which project");
        assert_eq!(is_told, is_first, "{output:?}");
        assert!(warnings(&scratch).contains("does not know yet in which project"));
    }
    let prompt = session_event("UserPromptSubmit", "new", &elsewhere);
    let run = anyhook(&scratch).env("CLAUDE_PROJECT_DIR", scratch.project());
    let run = run.run(["run", "--agent", "claude-code"], &prompt.to_string());
    assert_eq!(run.unwrap().exit, Some(0));
    let output = post_http_entry(&daemon, &call);
    assert!(is_denied(&output), "{output:?}");
    assert_eq!(warnings(&scratch), "null");
}

/// The answer of an entry that asked fewer hooks is no answer to this one.
#[test]
fn an_entry_that_knows_no_project_does_not_silence_one_that_does() {
    let scratch = trusted_project();
    let elsewhere = scratch.root().join("elsewhere");
    std::fs::create_dir_all(elsewhere.join(".git")).unwrap();
    let daemon = Daemon::start(&scratch, &[]);
    let ran = scratch.project().join("ran");
    let by_process = |scope: &str, has_project: bool, call: &Value| {
        let mut run = anyhook(&scratch).dir(&elsewhere);
        run = run.env("ANYHOOK_TRUST", "all");
        if has_project {
            run = run.env("CLAUDE_PROJECT_DIR", scratch.project());
        }
        let args = ["run", "--agent", "claude-code", "--scope", scope];
        run.run(args, &call.to_string()).unwrap()
    };
    let call = session_event("PreToolUse", "by http", &elsewhere);
    assert!(!is_denied(&post_http_entry(&daemon, &call)));
    let output = by_process("project", true, &call);
    assert!(is_denied(&output), "{output:?}");
    let call = session_event("PreToolUse", "by process", &elsewhere);
    assert!(!is_denied(&by_process("user", false, &call)));
    let output = by_process("project", true, &call);
    assert!(is_denied(&output), "{output:?}");
    // Once both know it, the guard is asked once.
    by_process(
        "user",
        true,
        &session_event("SessionStart", "known", &elsewhere),
    );
    let call = session_event("PreToolUse", "known", &elsewhere);
    assert!(is_denied(&post_http_entry(&daemon, &call)));
    std::fs::remove_file(&ran).unwrap();
    assert!(is_denied(&by_process("project", true, &call)));
    assert!(!ran.exists(), "{}", warnings(&scratch));
}

/// A daemon without hooks, which answers every call with silence.
fn rogue_daemon() -> (Scratch, Daemon) {
    let scratch = Scratch::new().unwrap();
    let daemon = Daemon::start(&scratch, &[]);
    (scratch, daemon)
}

#[test]
fn a_token_in_the_environment_makes_no_stranger_the_daemon() {
    let (_elsewhere, rogue) = rogue_daemon();
    let scratch = trusted_project();
    // The user's own daemon has left its token, and is away.
    scratch.file(scratch.state().join("token"), TOKEN).unwrap();
    let output = anyhook(&scratch)
        .env("ANYHOOK_TOKEN", rogue.token())
        .run(
            ["run", "--agent", "claude-code", "--server", &rogue.url],
            &payload(&scratch, "rm -rf /").to_string(),
        )
        .unwrap();
    assert!(is_denied(&output), "{output:?}");
    let told = output.json().unwrap()["systemMessage"].to_string();
    assert!(told.contains("not trusted"), "{told}");
}

#[test]
fn a_managed_guard_is_asked_whatever_a_daemon_answers() {
    let (elsewhere, rogue) = rogue_daemon();
    let scratch = Scratch::new().unwrap();
    add_guard(&scratch, &scratch.managed());
    let run = |state: &std::path::Path| {
        anyhook(&scratch)
            .env("ANYHOOK_TOKEN", rogue.token())
            .env("ANYHOOK_STATE_DIR", state)
            .run(
                ["run", "--agent", "claude-code", "--server", &rogue.url],
                &payload(&scratch, "rm -rf /").to_string(),
            )
            .unwrap()
    };
    for state in [scratch.state(), elsewhere.state()] {
        let output = run(&state);
        assert!(is_denied(&output), "{output:?}");
    }
    // Without it the daemon is believed: the test can fail.
    std::fs::remove_file(scratch.managed().join("hooks.yaml")).unwrap();
    assert!(!is_denied(&run(&scratch.state())));
}

#[test]
fn a_moved_folder_is_told_although_a_daemon_could_answer() {
    let (elsewhere, rogue) = rogue_daemon();
    let scratch = Scratch::new().unwrap();
    add_guard(&scratch, &scratch.config());
    let usual = scratch.home().join(".local/state/anyhook/trust/x.json");
    scratch.file(usual, "{}").unwrap();
    let output = anyhook(&scratch)
        .env("ANYHOOK_STATE_DIR", elsewhere.state())
        .run(
            ["run", "--agent", "claude-code", "--server", &rogue.url],
            &payload(&scratch, "rm -rf /").to_string(),
        )
        .unwrap();
    assert!(is_denied(&output), "{output:?}");
    let told = output.json().unwrap()["systemMessage"].to_string();
    assert!(told.contains("ANYHOOK_STATE_DIR"), "{told}");
}
