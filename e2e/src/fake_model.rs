//! The model server: answers requests on loopback according to the script and records all of them.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tiny_http::{Header, Response, Server};

use crate::script::{Purpose, Script};
use crate::wire::{HttpAnswer, Protocol};

/// One recorded request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    pub serial: usize,
    pub method: String,
    pub path: String,
    pub protocol: Option<Protocol>,
    pub purpose: Purpose,
    /// The step that was played.
    pub step: Option<usize>,
    /// The answer in short: `say: …`, `call: …`, `fail: …`.
    pub reply: Option<String>,
    pub body: Value,
    /// Microseconds since the model started.
    #[serde(default)]
    pub received_us: u64,
}

impl Request {
    /// Whether any string in the body contains this text, also inside a string that is JSON itself: some clients
    /// give the result of a tool in that form.
    pub fn contains_text(&self, text: &str) -> bool {
        fn search(value: &Value, text: &str) -> bool {
            match value {
                Value::String(own) => {
                    let is_json = own.starts_with(['{', '[']);
                    let inner = || serde_json::from_str::<Value>(own).ok();
                    own.contains(text) || (is_json && inner().is_some_and(|own| search(&own, text)))
                }
                Value::Array(items) => items.iter().any(|item| search(item, text)),
                Value::Object(members) => members.values().any(|member| search(member, text)),
                _ => false,
            }
        }
        search(&self.body, text)
    }
}

struct Shared {
    script: Script,
    started: Instant,
    record: Mutex<RequestLog>,
}

struct RequestLog {
    requests: Vec<Request>,
    log: Option<File>,
}

/// A running model; dropping it ends the server.
pub struct FakeModel {
    server: Arc<Server>,
    shared: Arc<Shared>,
    port: u16,
    threads: Vec<JoinHandle<()>>,
}

/// Number of requests answered at once; clients send side requests while a turn is open.
const WORKER_COUNT: usize = 4;

impl FakeModel {
    /// Listens on 127.0.0.1; port 0 takes a free one. `log` gets every request as a line of JSON.
    pub fn start(port: u16, script: Script, log: Option<&Path>) -> io::Result<Self> {
        let server = Arc::new(Server::http(("127.0.0.1", port)).map_err(io::Error::other)?);
        let port = server
            .server_addr()
            .to_ip()
            .map_or(port, |address| address.port());
        let log = log
            .map(|path| OpenOptions::new().create(true).append(true).open(path))
            .transpose()?;
        let shared = Arc::new(Shared {
            script,
            started: Instant::now(),
            record: Mutex::new(RequestLog {
                requests: Vec::new(),
                log,
            }),
        });
        let threads = (0..WORKER_COUNT)
            .map(|_| {
                let (server, shared) = (Arc::clone(&server), Arc::clone(&shared));
                thread::spawn(move || {
                    while let Ok(request) = server.recv() {
                        shared.serve(request);
                    }
                })
            })
            .collect();
        Ok(FakeModel {
            server,
            shared,
            port,
            threads,
        })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Everything that arrived so far.
    pub fn requests(&self) -> Vec<Request> {
        let record = self.shared.record.lock();
        record
            .unwrap_or_else(PoisonError::into_inner)
            .requests
            .clone()
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        for _ in &self.threads {
            self.server.unblock();
        }
        for thread in self.threads.drain(..) {
            // A worker that panicked has no result to collect.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn serve(&self, mut request: tiny_http::Request) {
        let received_us = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        let mut raw = Vec::new();
        let whole = request.as_reader().read_to_end(&mut raw);
        let body = if raw.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&raw)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&raw).into_owned()))
        };
        let (method, path) = (request.method().to_string(), request.url().to_owned());
        let protocol = Protocol::for_path(&path).filter(|_| method == "POST" && whole.is_ok());
        let answer = if let Some(protocol) = protocol {
            self.answer_model_request(protocol, method, &path, body, received_us)
        } else {
            self.record(|serial| Request {
                serial,
                method,
                path: path.clone(),
                protocol: None,
                purpose: Purpose::Service,
                step: None,
                reply: None,
                body,
                received_us,
            });
            HttpAnswer::Json(200, service_document(&path))
        };
        // The client may have disconnected.
        let _ = respond(request, &answer);
    }

    fn answer_model_request(
        &self,
        protocol: Protocol,
        method: String,
        path: &str,
        body: Value,
        received_us: u64,
    ) -> HttpAnswer {
        let model_request = protocol.parse_request(path, &body);
        let decision = self.script.decide(&model_request);
        let serial = self.record(|serial| Request {
            serial,
            method,
            path: path.to_owned(),
            protocol: Some(protocol),
            purpose: decision.purpose,
            step: decision.step,
            reply: Some(decision.reply.summary()),
            body: body.clone(),
            received_us,
        });
        protocol.render_reply(&decision.reply, &model_request, &body, serial)
    }

    /// Records a request under the next serial number.
    fn record(&self, make: impl FnOnce(usize) -> Request) -> usize {
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        let serial = record.requests.len() + 1;
        let request = make(serial);
        if let (Some(log), Ok(mut line)) = (&mut record.log, serde_json::to_vec(&request)) {
            line.push(b'\n');
            // The record in memory stays whole if the disk is full; the reader of the log notices the gap.
            let _ = log.write_all(&line);
        }
        record.requests.push(request);
        serial
    }
}

/// Answers to requests that are not for the model: one document that satisfies every models list, and counts.
fn service_document(path: &str) -> Value {
    let route = path.split('?').next().unwrap_or(path);
    if route.ends_with("/models") {
        json!({
            "object": "list", "has_more": false, "models": [],
            "data": [{"id": "fake-model", "object": "model", "type": "model", "created": 1, "owned_by": "anyhook", "display_name": "fake-model"}],
        })
    } else if route.ends_with("/count_tokens") {
        json!({"input_tokens": 100})
    } else if route.ends_with(":countTokens") {
        json!({"totalTokens": 100})
    } else {
        json!({})
    }
}

fn respond(request: tiny_http::Request, answer: &HttpAnswer) -> io::Result<()> {
    let (status, kind, body) = match answer {
        HttpAnswer::Json(status, value) => (*status, "application/json", value.to_string()),
        HttpAnswer::Events(events) => {
            let body = events
                .iter()
                .map(|(name, data)| match name {
                    Some(name) => format!("event: {name}\ndata: {data}\n\n"),
                    None => format!("data: {data}\n\n"),
                })
                .collect();
            (200, "text/event-stream; charset=utf-8", body)
        }
    };
    let mut response = Response::from_string(body).with_status_code(status);
    if let Ok(header) = Header::from_bytes("Content-Type", kind) {
        response.add_header(header);
    }
    request.respond(response)
}
