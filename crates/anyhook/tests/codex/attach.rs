//! `anyhook codex attach` at a server that is made here.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::{Child, Stdio};

use anyhook_codex::state;
use anyhook_testkit::codex::{Line, Transcript, expected_answer, is_request, is_running};
use anyhook_testkit::wait_for;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

use crate::project::{HANGS, Hook, Project, pids, signal};
use crate::replay::{MINDS, check_journal, moved};
use crate::trial;

trait Io: Read + Write {}
impl<T: Read + Write> Io for T {}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    fn new(project: &Project, unix: bool) -> (Self, String) {
        if unix {
            let path = project.path("app.sock");
            let listener = UnixListener::bind(&path).unwrap();
            (Self::Unix(listener), format!("unix://{}", path.display()))
        } else {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("ws://{}", listener.local_addr().unwrap());
            (Self::Tcp(listener), url)
        }
    }

    fn raw(&self) -> Box<dyn Io> {
        match self {
            Self::Tcp(listener) => Box::new(listener.accept().unwrap().0),
            Self::Unix(listener) => Box::new(listener.accept().unwrap().0),
        }
    }

    /// Accepts a client and answers its greeting.
    fn client(&self) -> Client {
        let mut client = Client(tungstenite::accept(self.raw()).ok().unwrap());
        let hello = client.get().unwrap();
        assert_eq!(hello["method"], "initialize");
        client.say(&json!({"id": hello["id"], "result": {"userAgent": "codex/test"}}));
        assert_eq!(client.get().unwrap(), json!({"method": "initialized"}));
        let list = client.get().unwrap();
        client.say(&json!({"id": list["id"], "result": {"data": []}}));
        client
    }
}

struct Client(WebSocket<Box<dyn Io>>);

impl Client {
    fn say(&mut self, message: &Value) {
        self.0.send(Message::text(message.to_string())).unwrap();
    }

    /// The next message that is no request to join; `None` at the end.
    fn get(&mut self) -> Option<Value> {
        loop {
            match self.0.read() {
                Ok(Message::Text(text)) => {
                    let message: Value = serde_json::from_str(&text).unwrap();
                    if message["method"] != "thread/resume" {
                        return Some(message);
                    }
                    let error = json!({"code": -32600, "message": "no rollout found"});
                    self.say(&json!({"id": message["id"], "error": error}));
                }
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }
}

struct Attached(Child);

impl Attached {
    fn start(project: &Project, url: &str, more: &[&str]) -> Self {
        let mut command = project.anyhook(&["codex", "attach", "--url", url]);
        command.args(more).stdin(Stdio::null());
        let output = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(output.spawn().unwrap())
    }

    /// The exit code, stdout and stderr.
    fn end(mut self) -> (Option<i32>, String, String) {
        let (mut out, mut err) = (String::new(), String::new());
        let (stdout, stderr) = (self.0.stdout.take(), self.0.stderr.take());
        stdout.unwrap().read_to_string(&mut out).unwrap();
        stderr.unwrap().read_to_string(&mut err).unwrap();
        (self.0.wait().unwrap().code(), out, err)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn replay(transcript: &Transcript, mind: &str, stdout: &str, unix: bool) {
    let project = Project::saying(stdout);
    let transcript = moved(transcript, &project);
    let (listener, url) = Listener::new(&project, unix);
    let attached = Attached::start(&project, &url, &[]);
    let mut client = listener.client();
    for line in &transcript.lines {
        let Line::Server(message) = line else {
            continue;
        };
        // Answers to requests are for the client that made them.
        if message.get("method").is_none() {
            continue;
        }
        client.say(message);
        if is_request(message) {
            if let Some(expected) = expected_answer(message, mind) {
                assert_eq!(client.get(), Some(expected));
            } else {
                // Somebody else answers.
                let params = json!({"threadId": "t", "requestId": message["id"]});
                client.say(&json!({"method": "serverRequest/resolved", "params": params}));
            }
        }
    }
    let fixture = anyhook_testkit::codex::fixtures()
        .join("events")
        .join(format!("{}.json", transcript.name));
    let events: Value = serde_json::from_str(&std::fs::read_to_string(fixture).unwrap()).unwrap();
    let count = |kind: &str| events[kind].as_array().unwrap().len();
    let expected = count("approvals") + count("notices");
    wait_for("all records", || {
        let path = project.state().join("journal/events.jsonl");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        (text.matches('\n').count() == expected).then_some(())
    });
    let [seen] = state::running_bridges(&project.state()).try_into().unwrap();
    assert_eq!((seen.pid, &seen.url), (attached.0.id(), &url));
    assert_eq!(seen.server.as_deref(), Some("codex/test"));

    signal(attached.0.id(), "TERM");
    assert_eq!(client.get(), None);
    drop(client);
    let attached_line = format!("attached to {url} (codex/test)\n");
    assert_eq!(attached.end(), (Some(0), String::new(), attached_line));
    assert_eq!(state::running_bridges(&project.state()), []);
    check_journal(&project, &transcript, mind);
}

fn approval(id: u64) -> Value {
    json!({"method": "item/commandExecution/requestApproval", "id": id,
           "params": {"threadId": "t", "turnId": "u", "itemId": "x", "startedAtMs": 1, "command": "make"}})
}

/// Without another client, what hooks do not decide is declined.
fn answer_all() {
    for stdout in [r#"{"decision":"ask"}"#, ""] {
        let project = Project::saying(stdout);
        let (listener, url) = Listener::new(&project, false);
        let attached = Attached::start(&project, &url, &["--answer-all"]);
        let mut client = listener.client();
        client.say(&approval(0));
        let declined = json!({"id": 0, "result": {"decision": "decline"}});
        assert_eq!(client.get(), Some(declined));
        signal(attached.0.id(), "INT");
        assert_eq!(client.get(), None);
        drop(client);
        assert_eq!(attached.end().0, Some(0));
        let record = &project.journal()[0];
        assert_eq!(record["answer"]["stdout"], r#"{"decision":"decline"}"#);
    }
}

fn comes_back() {
    let project = Project::saying(r#"{"decision":"allow"}"#);
    let (listener, url) = Listener::new(&project, true);
    let attached = Attached::start(&project, &url, &[]);
    drop(listener.client());
    let mut client = listener.client();
    client.say(&approval(0));
    let accepted = json!({"id": 0, "result": {"decision": "accept"}});
    assert_eq!(client.get(), Some(accepted));
    signal(attached.0.id(), "TERM");
    assert_eq!(client.get(), None);
    drop(client);
    let (code, _, stderr) = attached.end();
    assert_eq!(code, Some(0));
    assert_eq!(stderr.matches("attached to").count(), 2, "{stderr}");
    assert_eq!(stderr.matches("next try in").count(), 1, "{stderr}");
}

fn a_signal_ends_hooks() {
    let project = Project::with(&[Hook {
        name: "hangs",
        blocking: true,
        line: HANGS,
    }]);
    let (listener, url) = Listener::new(&project, false);
    let attached = Attached::start(&project, &url, &[]);
    let mut client = listener.client();
    client.say(&approval(0));
    let hook = pids(&project.path("hook"));
    signal(attached.0.id(), "TERM");
    assert_eq!(client.get(), None);
    drop(client);
    assert_eq!(attached.end().0, Some(0));
    for pid in hook {
        wait_for("the hook and its child to end", || {
            (!is_running(pid)).then_some(())
        });
    }
}

fn the_token_is_sent_and_a_refusal_ends_it() {
    let project = Project::new();
    let (listener, url) = Listener::new(&project, false);
    let mut command = project.anyhook(&["codex", "attach", "--url", &url]);
    command
        .args(["--token-env", "TOKEN"])
        .env("TOKEN", "secret");
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped());
    let attached = Attached(child.stderr(Stdio::piped()).spawn().unwrap());
    let mut stream = listener.raw();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    assert!(head.contains("authorization: bearer secret\r\n"), "{head}");
    let refusal = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n";
    stream.write_all(refusal).unwrap();
    let (code, stdout, stderr) = attached.end();
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("it may require a token"), "{stderr}");
}

fn what_cannot_work_is_said() {
    let project = Project::new();
    let attach = |args: &[&str], off: bool| {
        let mut command = project.anyhook(&["codex", "attach"]);
        command.args(args).env_remove("NO_SUCH_TOKEN");
        if off {
            command.env("ANYHOOK", "0");
        }
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let url = "ws://127.0.0.1:1";
    for (args, off, said) in [
        (
            &["--url", "http://127.0.0.1:1"][..],
            false,
            "use `ws://…` or `unix://…`",
        ),
        (
            &["--url", "wss://127.0.0.1:1"],
            false,
            "TLS is not supported",
        ),
        (
            &["--url", url, "--token-env", "NO_SUCH_TOKEN"],
            false,
            "the variable `NO_SUCH_TOKEN` contains no token",
        ),
        (&["--url", url], true, "`ANYHOOK=0` turns hooks off"),
    ] {
        let stderr = attach(args, off);
        assert!(stderr.contains(said), "{stderr}");
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("attach::answer_all", answer_all),
        trial("attach::comes_back", comes_back),
        trial("attach::signal_ends_hooks", a_signal_ends_hooks),
        trial("attach::token", the_token_is_sent_and_a_refusal_ends_it),
        trial("attach::cannot_work", what_cannot_work_is_said),
    ];
    for transcript in Transcript::all() {
        if !["seed", "made-newer", "transcript"].contains(&&*transcript.name) {
            continue;
        }
        for (at, (mind, stdout)) in MINDS.into_iter().enumerate() {
            let transcript = transcript.clone();
            let name = format!("attach::{}::{mind}", transcript.name);
            trials.push(trial(name, move || {
                replay(&transcript, mind, stdout, at % 2 == 1);
            }));
        }
    }
    trials
}
