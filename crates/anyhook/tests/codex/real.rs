//! The real `codex app-server` with the real binary, offline.
//!
//! `ANYHOOK_CODEX` names Codex's binary (of `@openai/codex`); without it these
//! tests are listed as ignored.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhook_codex::state;
use anyhook_testkit::codex::{opening_requests, set_codex_env, turn_request, write_codex_home};
use anyhook_testkit::wait_for;
use libtest_mimic::Trial;
use serde_json::Value;
use tungstenite::Message;

use crate::project::{Project, signal};
use crate::trial;

const APPROVALS: [&str; 2] = [
    "item/commandExecution/requestApproval",
    "item/fileChange/requestApproval",
];

/// What the journal says of both requests, and what became of them.
fn check(project: &Project, mind: &str) {
    let answer = if mind == "allow" { "accept" } else { "decline" };
    let journal = project.journal();
    for method in APPROVALS {
        let mut records = journal
            .iter()
            .filter(|record| record["event"]["native_event"] == method);
        let record = records.next().expect(method);
        assert_eq!(
            record["answer"]["stdout"],
            format!(r#"{{"decision":"{answer}"}}"#)
        );
        assert_eq!(records.next(), None);
    }
    let is_stop = |record: &&Value| record["event"]["event"] == "agent_stop";
    let stop = journal.iter().find(is_stop).expect("the turn's end");
    assert_eq!(stop["event"]["data"]["last_message"], "done");
    for file in ["approved.txt", "out.txt"] {
        let there = project.folder().join(file).exists();
        assert_eq!(there, mind == "allow", "{file}");
    }
}

fn proxy(codex: &Path, mind: &str) {
    let project = Project::saying(&format!(r#"{{"decision":"{mind}"}}"#));
    let home = project.path("home");
    write_codex_home(&home);
    let mut command = project.anyhook(&["codex", "proxy", "--"]);
    command.arg(codex).arg("app-server");
    set_codex_env(&mut command, &home);
    let mut proxy = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut client = proxy.stdin.take().unwrap();
    for request in opening_requests(&project.folder()) {
        writeln!(client, "{request}").unwrap();
    }
    for line in BufReader::new(proxy.stdout.take().unwrap()).lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let method = message["method"].as_str().unwrap_or_default();
        assert!(!APPROVALS.contains(&method), "the hooks answer");
        if message["id"] == 2 {
            writeln!(
                client,
                "{}",
                turn_request(&message["result"]["thread"]["id"])
            )
            .unwrap();
        }
        if method == "turn/completed" {
            break;
        }
    }
    drop(client);
    assert_eq!(proxy.wait().unwrap().code(), Some(0));
    check(&project, mind);
}

/// A process and all that it started, ended with the value.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            let group = format!("-{}", self.0.id());
            let _ = Command::new("kill").args(["-9", "--", &group]).status();
            let _ = self.0.wait();
        }
    }
}

fn attach(codex: &Path, mind: &str) {
    let project = Project::saying(&format!(r#"{{"decision":"{mind}"}}"#));
    let home = project.path("home");
    write_codex_home(&home);
    let socket = project.path("app.sock");
    let url = format!("unix://{}", socket.display());
    let quiet = |command: &mut Command| {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
        let quiet = quiet.stderr(Stdio::null()).process_group(0);
        Group(quiet.spawn().unwrap())
    };
    let mut server = Command::new(codex);
    server.args(["app-server", "--listen", &url]);
    set_codex_env(&mut server, &home);
    let _server = quiet(server.current_dir(project.folder()));
    wait_for("the socket", || socket.exists().then_some(()));
    let mut attached = quiet(&mut project.anyhook(&["codex", "attach", "--url", &url]));
    wait_for("the connection", || {
        let running = state::running_bridges(&project.state());
        running.iter().any(|one| one.server.is_some()).then_some(())
    });

    let stream = UnixStream::connect(&socket).unwrap();
    let (mut driver, _) = tungstenite::client("ws://localhost/", stream).unwrap();
    for request in opening_requests(&project.folder()) {
        driver.send(Message::text(request.to_string())).unwrap();
    }
    loop {
        let Message::Text(text) = driver.read().unwrap() else {
            continue;
        };
        let message: Value = serde_json::from_str(&text).unwrap();
        // The driver is asked too, and leaves it to the hooks.
        if message["id"] == 2 && message["method"].is_null() {
            let turn = turn_request(&message["result"]["thread"]["id"]);
            driver.send(Message::text(turn.to_string())).unwrap();
        }
        if message["method"] == "turn/completed" {
            break;
        }
    }
    wait_for("the last record", || {
        let path = project.state().join("journal/events.jsonl");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.contains(r#""agent_stop""#).then_some(())
    });
    signal(attached.0.id(), "TERM");
    assert_eq!(attached.0.wait().unwrap().code(), Some(0));
    check(&project, mind);
}

type Way = fn(&Path, &str);

pub(crate) fn trials() -> Vec<Trial> {
    let codex = std::env::var_os("ANYHOOK_CODEX").map(PathBuf::from);
    let missing = codex.is_none();
    let codex = codex.unwrap_or_default();
    let ways: [(&str, Way); 2] = [("proxy", proxy), ("attach", attach)];
    let mut trials = Vec::new();
    for mind in ["allow", "deny"] {
        for (name, way) in ways {
            let codex = codex.clone();
            let run = move || way(&codex, mind);
            trials.push(trial(format!("real::{name}::{mind}"), run).with_ignored_flag(missing));
        }
    }
    trials
}
