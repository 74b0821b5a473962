//! A daemon of the real binary in a scratch folder, and a client that sends
//! exactly what it is told.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhook_testkit::{ProcessOutput, Scratch};
use serde_json::{Value, json};

pub(crate) const BIN: &str = env!("CARGO_BIN_EXE_anyhook");

/// Runs the binary to its end.
pub(crate) fn anyhook(scratch: &Scratch, args: &[&str], stdin: &str) -> ProcessOutput {
    let call = scratch.command(BIN).env("ANYHOOK_TRUST", "all");
    call.env("TZ", "UTC").run(args, stdin).unwrap()
}

/// One blocking hook at every event, for the user: it holds in any folder.
pub(crate) fn with_hook(script: &str) -> Scratch {
    let scratch = Scratch::new().unwrap();
    let name = if cfg!(windows) { "hook.cmd" } else { "hook.sh" };
    let path = scratch.exec(scratch.config().join(name), script).unwrap();
    let listed = anyhook(&scratch, &["events", "--json"], "").json().unwrap();
    let hooks: Vec<Value> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|event| {
            json!({
                "name": event["name"], "event": event["name"], "blocking": true,
                "handler": {"type": "command", "command": path}
            })
        })
        .collect();
    assert!(hooks.len() > 10, "{listed}");
    let manifest = json!({"spec": "hooks/1.0", "hooks": hooks});
    scratch
        .file(scratch.config().join("hooks.json"), &manifest.to_string())
        .unwrap();
    scratch
}

/// Reads the event and has nothing to say.
pub(crate) const SILENT_HOOK: &str = if cfg!(windows) {
    "@\"%SystemRoot%\\System32\\find.exe\" \"x\" >nul\r\n@exit /b 0\r\n"
} else {
    "#!/bin/sh\ncat >/dev/null\n"
};

/// Writes the answer from `answer.json`.
pub(crate) const ANSWERING_HOOK: &str =
    "#!/bin/sh\ncat >\"$(dirname \"$0\")/seen.json\"\ncat \"$(dirname \"$0\")/answer.json\"\n";

/// The binary with the scratch environment, to be started by the caller.
pub(crate) fn command(scratch: &Scratch, args: &[&str]) -> Command {
    let mut command = Command::new(BIN);
    command.args(args).env_clear();
    for name in ["PATH", "SystemRoot", "LLVM_PROFILE_FILE"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
        .current_dir(scratch.home())
        .env("HOME", scratch.home())
        .env("USERPROFILE", scratch.home())
        .env("TZ", "UTC")
        .env("NO_COLOR", "1")
        .env("ANYHOOK_TRUST", "all")
        .env("ANYHOOK_CONFIG_DIR", scratch.config())
        .env("ANYHOOK_STATE_DIR", scratch.state())
        .env("ANYHOOK_MANAGED_DIR", scratch.managed());
    command
}

pub(crate) struct Daemon {
    child: Child,
    pub url: String,
    pub link: String,
    token: PathBuf,
}

impl Daemon {
    pub(crate) fn start(scratch: &Scratch, more: &[&str]) -> Self {
        Self::start_with(scratch, more, &[])
    }

    /// With variables of its own.
    pub(crate) fn start_with(scratch: &Scratch, more: &[&str], env: &[(&str, &str)]) -> Self {
        let mut args = vec!["serve", "--listen", "127.0.0.1:0", "--json"];
        args.extend(more);
        let mut child = command(scratch, &args)
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        Self {
            child,
            url: said["url"].as_str().unwrap().to_owned(),
            link: said["link"].as_str().unwrap().to_owned(),
            token: PathBuf::from(said["token_file"].as_str().unwrap()),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn token(&self) -> String {
        std::fs::read_to_string(&self.token)
            .unwrap()
            .trim()
            .to_owned()
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Reply {
        send(&self.url, "POST", path, &[], body)
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let bearer = format!("Bearer {}", self.token());
        let reply = send(&self.url, "GET", path, &[("authorization", &bearer)], "");
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        serde_json::from_str(&reply.body).unwrap()
    }

    /// Events of the store, once there are at least this many; more than a page if
    /// needed.
    pub(crate) fn events(&self, query: &str, count: usize) -> Vec<Value> {
        let mut found = Vec::new();
        let came = within(Duration::from_secs(20), || {
            let mut page = self.get(&format!("/events?{query}"));
            found.clone_from(page["events"].as_array().unwrap());
            while let Some(next) = page["next"].as_str().filter(|_| found.len() < count) {
                page = self.get(&format!("/events?{query}&cursor={next}"));
                found.extend(page["events"].as_array().unwrap().iter().cloned());
            }
            found.len() >= count
        });
        assert!(came, "{count} events were expected: {found:?}");
        found
    }

    /// Ends it as nothing can prevent.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end, and says how it did.
    #[cfg(unix)]
    pub(crate) fn end(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        let told = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(told.unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether something comes true in time.
pub(crate) fn within(limit: Duration, mut test: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < limit {
        if test() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub status: u16,
    pub headers: HashMap<String, String>,
    pub body: String,
}

impl Reply {
    /// As a dispatcher would end and write.
    pub(crate) fn ran(&self) -> ProcessOutput {
        ProcessOutput {
            exit: self.headers["x-anyhook-exit-code"].parse().ok(),
            stdout: self.body.clone(),
            stderr: percent_decoded(
                self.headers
                    .get("x-anyhook-stderr")
                    .map_or("", String::as_str),
            ),
        }
    }
}

pub(crate) fn send(
    url: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Reply {
    let host = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let mut request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        write!(request, "{name}: {value}\r\n").unwrap();
    }
    stream
        .write_all(format!("{request}\r\n{body}").as_bytes())
        .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let mut lines = head.split("\r\n");
    Reply {
        status: lines
            .next()
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap(),
        headers: lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect(),
        body: body.to_owned(),
    }
}

pub(crate) fn percent_encoded(text: &str) -> String {
    let encode = |byte| format!("%{byte:02X}");
    text.bytes().map(encode).collect::<Vec<_>>().concat()
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend(before.bytes());
        let (digits, behind) = after.split_at(2);
        bytes.push(u8::from_str_radix(digits, 16).unwrap());
        rest = behind;
    }
    bytes.extend(rest.bytes());
    String::from_utf8(bytes).unwrap()
}

/// The records of a scratch folder's journal.
pub(crate) fn journal(scratch: &Scratch) -> Vec<Value> {
    anyhook_testkit::whole_lines(&scratch.state().join("journal/events.jsonl")).unwrap()
}
