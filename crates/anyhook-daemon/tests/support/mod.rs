//! A separate daemon for each test, and a client that sends exactly the given bytes.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhook_daemon::{
    AgentName, Daemon, DaemonConfig, HookHost, HookReply, HookRequest, JournalSource, NativeAnswer,
    OpenQuestion, PreparedCall, Stopper,
};
use anyhook_model::{Answer, Decision, HookEvent, HookResponse, HookRun, Record, RunOutcome};
use anyhook_store::{EventFilter, Store};
use serde_json::{Value, json};

pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Answers with what it was given, and remembers its requests.
#[derive(Default)]
pub(crate) struct FakeHost {
    pub response: Mutex<HookResponse>,
    pub answer: Mutex<Answer>,
    pub seen: Mutex<Vec<HookRequest>>,
    /// Where records go, as the engine would write them.
    pub journal: Option<PathBuf>,
    pub takes: Mutex<Duration>,
    /// How long finding the hooks takes.
    pub finds_in: Mutex<Duration>,
    /// Calls that have begun, whether or not they are answered yet.
    pub begun: AtomicU64,
    pub count: AtomicU64,
    /// How often a request was decoded.
    pub decodes: AtomicU64,
    /// The answer in every record, in order.
    pub recorded: Mutex<Vec<Answer>>,
    /// Calls that wait for the user.
    pub questions: Mutex<Vec<OpenQuestion>>,
    /// The user's answers, by id.
    pub answered: Mutex<Vec<(String, Decision)>>,
    /// Tokens and cost, if any are known.
    pub usage: Mutex<Option<Value>>,
}

impl HookHost for FakeHost {
    fn agents(&self) -> Vec<AgentName> {
        [
            ("claude-code", vec!["claude"]),
            ("gemini-cli", vec!["gemini"]),
            ("codex", vec![]),
        ]
        .into_iter()
        .map(|(slug, aliases)| AgentName {
            slug: slug.to_owned(),
            aliases: aliases.into_iter().map(str::to_owned).collect(),
        })
        .collect()
    }

    fn prepare(self: Arc<Self>, request: HookRequest) -> Box<dyn PreparedCall> {
        self.decodes.fetch_add(1, Ordering::SeqCst);
        let payload = serde_json::from_slice(&request.payload)
            .ok()
            .filter(Value::is_object);
        Box::new(FakeCall {
            host: self,
            request,
            payload,
        })
    }

    fn open_questions(&self) -> Vec<OpenQuestion> {
        self.questions.lock().unwrap().clone()
    }

    fn answer_question(&self, id: &str, decision: Decision) -> Result<&'static str, String> {
        let mut questions = self.questions.lock().unwrap();
        let at = questions.iter().position(|it| it.record.id == id);
        questions.remove(at.ok_or("there is no such question")?);
        let mut answered = self.answered.lock().unwrap();
        answered.push((id.to_owned(), decision));
        Ok("delivered")
    }

    fn usage(&self, filter: &EventFilter) -> Result<Value, String> {
        let is_unfiltered = *filter == EventFilter::default();
        let usage = self.usage.lock().unwrap().clone().filter(|_| is_unfiltered);
        Ok(usage
            .unwrap_or_else(|| json!({"calls": 0, "by_model": [], "by_session": [], "by_day": []})))
    }

    fn redact(&self, record: &mut Record) {
        if let Some(prompt) = record.event.data.get_mut("prompt")
            && prompt == "my secret"
        {
            *prompt = Value::from("[redacted]");
        }
    }
}

struct FakeCall {
    host: Arc<FakeHost>,
    request: HookRequest,
    payload: Option<Value>,
}

impl PreparedCall for FakeCall {
    fn is_quiet(&self) -> bool {
        false
    }

    fn undecoded(&self) -> Option<&[u8]> {
        self.payload.is_none().then_some(&self.request.payload)
    }

    fn project(&self) -> Option<&str> {
        self.payload.as_ref()?.get("cwd")?.as_str()
    }

    fn time_limit(&self) -> Option<Duration> {
        let limit = *self.host.finds_in.lock().unwrap();
        std::thread::sleep(limit);
        None
    }

    fn run(self: Box<Self>) -> HookReply {
        let Self {
            host,
            request,
            payload,
        } = *self;
        host.begun.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(*host.takes.lock().unwrap());
        let response = host.response.lock().unwrap().clone();
        let number = host.count.fetch_add(1, Ordering::SeqCst);
        let mut record = record(&format!("hook-{}-{number}", std::process::id()));
        record.agent.clone_from(&request.agent);
        record.decision = response.decision;
        record.response = response.clone();
        record.event.native_event = request.event.clone().unwrap_or_default();
        if let Some(session) = payload.unwrap().get("session_id").and_then(Value::as_str) {
            record.event.session_id = Some(session.to_owned());
        }
        let mut answer = host.answer.lock().unwrap().clone();
        if answer.stdout == "ID" {
            answer.stdout = json!({ "id": record.id }).to_string();
        }
        if let Some(form) = request.form {
            let native = NativeAnswer {
                answer,
                can_ask: true,
                ..NativeAnswer::default()
            };
            let event = request.event.as_deref().unwrap();
            answer = form.render(event, &response, native).0;
        }
        record.answer = Some(answer.clone());
        if let Some(dir) = &host.journal {
            append(dir, &record);
        }
        host.recorded.lock().unwrap().push(answer.clone());
        host.seen.lock().unwrap().push(request);
        HookReply {
            answer,
            decision: response.decision,
            record: Some(record),
        }
    }
}

pub(crate) fn record(id: &str) -> Record {
    Record {
        v: 1,
        id: id.to_owned(),
        time: jiff::Timestamp::now().to_string(),
        agent: "claude-code".to_owned(),
        event: HookEvent {
            event: "before_tool_execute".to_owned(),
            source: "claude-code".to_owned(),
            native_event: "PreToolUse".to_owned(),
            session_id: Some("s1".to_owned()),
            data: json!({"tool_name": "shell", "tool_input": {"command": "ls"}})
                .as_object()
                .unwrap()
                .clone(),
            ..HookEvent::default()
        },
        hooks: vec![HookRun {
            hook: "guard".to_owned(),
            manifest: "/p/.anyhook/hooks.yaml".to_owned(),
            outcome: RunOutcome::Allow,
            exit: Some(0),
            duration_ms: 2.5,
            ..HookRun::default()
        }],
        duration_ms: 4.0,
        ..Record::default()
    }
}

/// One line, one write.
pub(crate) fn append(dir: &Path, record: &Record) {
    std::fs::create_dir_all(dir).unwrap();
    let line = serde_json::to_string(record).unwrap() + "\n";
    std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(dir.join("events.jsonl"))
        .unwrap()
        .write_all(line.as_bytes())
        .unwrap();
}

pub(crate) struct Running {
    pub address: SocketAddr,
    pub host: Arc<FakeHost>,
    pub store: Arc<dyn Store>,
    pub link: String,
    pub journal: PathBuf,
    pub dir: tempfile::TempDir,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn start() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(set: impl FnOnce(&mut DaemonConfig)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = anyhook_store::open(dir.path().join("store.db").to_str().unwrap()).unwrap();
        Self::on(dir, store, set)
    }

    pub(crate) fn on(
        dir: tempfile::TempDir,
        store: Arc<dyn Store>,
        set: impl FnOnce(&mut DaemonConfig),
    ) -> Self {
        let journal = dir.path().join("journal");
        let mut config = DaemonConfig::new(TOKEN);
        config.listen = ([127, 0, 0, 1], 0).into();
        config.journal = Some(JournalSource {
            dir: journal.clone(),
            source: dir.path().display().to_string(),
        });
        set(&mut config);
        let host = Arc::new(FakeHost {
            journal: Some(journal.clone()),
            ..FakeHost::default()
        });
        let daemon = Daemon::bind(config, store.clone(), host.clone()).unwrap();
        let mut address = daemon.local_addr();
        if address.ip().is_unspecified() {
            address.set_ip([127, 0, 0, 1].into());
        }
        Self {
            address,
            link: daemon.link().unwrap(),
            stopper: daemon.stopper(),
            thread: Some(std::thread::spawn(move || daemon.run().unwrap())),
            host,
            store,
            journal,
            dir,
        }
    }

    pub(crate) fn respond(&self, response: HookResponse) {
        *self.host.response.lock().unwrap() = response;
    }

    pub(crate) fn stop(&mut self) {
        self.stopper.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    pub(crate) fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        Call::new("GET", path).token().send(self.address)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        Call::new("POST", path).json(body).send(self.address)
    }

    /// Waits until the store holds this many events.
    pub(crate) fn until_stored(&self, count: i64) {
        eventually(|| self.store.last_seq().unwrap() >= count);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub(crate) fn eventually(mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "it never happened"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A request, written out.
#[derive(Clone)]
pub(crate) struct Call {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Call {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: vec![("host".to_owned(), "localhost:24665".to_owned())],
            body: Vec::new(),
        }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    pub(crate) fn token(self) -> Self {
        self.header("authorization", &format!("Bearer {TOKEN}"))
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string().as_bytes())
    }

    pub(crate) fn body(mut self, kind: &str, body: &[u8]) -> Self {
        self.body = body.to_vec();
        self.header("content-type", kind)
            .header("content-length", &body.len().to_string())
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            text.extend([name, ": ", value, "\r\n"]);
        }
        let mut bytes = (text + "connection: close\r\n\r\n").into_bytes();
        bytes.extend(&self.body);
        bytes
    }

    pub(crate) fn send(&self, address: SocketAddr) -> Reply {
        self.try_send(address).unwrap()
    }

    pub(crate) fn try_send(&self, address: SocketAddr) -> std::io::Result<Reply> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        stream.write_all(&self.bytes())?;
        Reply::read_answer(&mut stream, self.method != "HEAD")
    }
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub status: u16,
    pub headers: HashMap<String, String>,
    pub body: String,
}

impl Reply {
    pub(crate) fn read(stream: &mut impl Read) -> std::io::Result<Self> {
        Self::read_answer(stream, true)
    }

    fn read_answer(stream: &mut impl Read, has_body: bool) -> std::io::Result<Self> {
        let mut reader = BufReader::new(stream);
        let broken = || std::io::Error::other("no whole answer");
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let status = line
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .ok_or_else(broken)?;
        let mut headers = HashMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            match line.trim_end().split_once(": ") {
                Some((name, value)) => headers.insert(name.to_ascii_lowercase(), value.to_owned()),
                None if line.trim_end().is_empty() => break,
                None => return Err(broken()),
            };
        }
        let length: usize = headers
            .get("content-length")
            .filter(|_| has_body)
            .map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        Ok(Self {
            status,
            headers,
            body: String::from_utf8(body).unwrap(),
        })
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.body))
    }

    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

/// Server-Sent Events, one message at a time.
pub(crate) struct Sse(BufReader<TcpStream>);

impl Sse {
    pub(crate) fn open(address: SocketAddr, path: &str, last: Option<&str>) -> Self {
        let mut call = Call::new("GET", path).token();
        if let Some(last) = last {
            call = call.header("last-event-id", last);
        }
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        stream.write_all(&call.bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(line.contains("200"), "{line}");
        let mut sse = Self(reader);
        let (_, open) = sse.next().expect("the opening message");
        assert_eq!(open, json!({}));
        sse
    }

    /// The id and data of the next message; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<(String, Value)> {
        let mut id = String::new();
        let mut data = None;
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim_end();
            if let Some(text) = line.strip_prefix("id: ") {
                text.clone_into(&mut id);
            } else if let Some(text) = line.strip_prefix("data: ") {
                data = Some(serde_json::from_str(text).unwrap());
            } else if line.is_empty() && data.is_some() {
                return Some((id, data?));
            }
        }
    }
}
