//! `anyhook export otlp` into real receivers, read back through their own API, and every
//! message read by the decoder of another project.
//!
//! The receivers are Python packages in `target/receivers`; `.ci/run` installs them. Without
//! them these tests are skipped by name; `ANYHOOK_TEST_RECEIVERS=require` makes that a failure.
#![cfg(unix)] // the receivers are Python programs of this system

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhook_testkit::Scratch;
use serde_json::{Value, json};

use crate::receiver::Receiver;
use crate::sessions::{agents, anyhook, record_sessions, session_id};
use crate::usage::{TRANSCRIPTS, record_turns};

/// A receiver is a large Python program, and other tests run beside it.
const START_TIMEOUT: Duration = Duration::from_secs(240);
/// Receivers store what they accept a moment later.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// The Python of a virtual environment with a receiver.
pub(crate) fn python(name: &str) -> Option<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"),
        PathBuf::from,
    );
    let python = target.join("receivers").join(name).join("bin/python");
    if python.exists() {
        return Some(python);
    }
    let required = std::env::var("ANYHOOK_TEST_RECEIVERS").is_ok_and(|value| value == "require");
    assert!(!required, "{name} is not installed in target/receivers");
    println!("skipped: {name} is not installed in target/receivers");
    None
}

/// A running receiver; ends with the test.
pub(crate) struct RealReceiver {
    child: Child,
    pub url: String,
    _folder: Scratch,
}

impl Drop for RealReceiver {
    fn drop(&mut self) {
        // The server has processes of its own: they are in its group.
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-9", "--", &group]).status();
        let _ = self.child.wait();
    }
}

impl RealReceiver {
    pub(crate) fn start(make: impl Fn(&Path, u16) -> Command, health: &str) -> Self {
        use std::os::unix::process::CommandExt as _;
        let folder = Scratch::new().unwrap();
        let port = free_port();
        let mut command = make(folder.root(), port);
        command.process_group(0).current_dir(folder.root());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let receiver = Self {
            child: command.spawn().unwrap(),
            url: format!("http://127.0.0.1:{port}"),
            _folder: folder,
        };
        let url = format!("{}{health}", receiver.url);
        let begun = Instant::now();
        while ureq::get(&url).call().is_err() {
            assert!(
                begun.elapsed() < START_TIMEOUT,
                "the receiver did not start"
            );
            std::thread::sleep(Duration::from_millis(250));
        }
        receiver
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn export(scratch: &Scratch, url: &str, args: &[&str]) {
    let mut all = vec!["export", "otlp", "--close-turns", "--endpoint", url];
    all.extend(args);
    let output = anyhook(scratch, &all);
    assert_eq!(output.exit, Some(0), "{output:?}");
}

/// Asks until the answer has as many items as expected.
fn read_until<T>(expected: usize, read: impl Fn() -> Vec<T>) -> Vec<T> {
    let begun = Instant::now();
    loop {
        let items = read();
        if items.len() >= expected || begun.elapsed() > READ_TIMEOUT {
            assert_eq!(items.len(), expected);
            return items;
        }
        std::thread::sleep(Duration::from_millis(250));
    }
}

fn get_json(url: &str) -> Value {
    let text = ureq::get(url).call().unwrap().body_mut().read_to_string();
    serde_json::from_str(&text.unwrap()).unwrap()
}

#[test]
fn phoenix_shows_turns_calls_denials_and_sessions() {
    let Some(python) = python("phoenix") else {
        return;
    };
    let scratch = record_sessions();
    let phoenix = RealReceiver::start(
        |folder, port| {
            let mut command = Command::new(&python);
            command
                .args(["-m", "phoenix.server.main", "serve"])
                .env("PHOENIX_WORKING_DIR", folder.join("phoenix"))
                .env("PHOENIX_PORT", port.to_string())
                .env("PHOENIX_GRPC_PORT", free_port().to_string())
                .env("PHOENIX_TELEMETRY_ENABLED", "false");
            command
        },
        "/healthz",
    );
    // It takes traces only; what else is offered must do no harm. Twice: nothing is doubled.
    for cursor in ["first", "second"] {
        export(&scratch, &phoenix.url, &["--cursor", cursor]);
    }
    let spans = read_until(5 * agents().count(), || {
        let url = format!("{}/v1/projects/default/spans?limit=1000", phoenix.url);
        get_json(&url)["data"].as_array().unwrap().clone()
    });
    for agent in agents() {
        let of_session: Vec<&Value> = spans
            .iter()
            .filter(|span| span["attributes"]["session.id"] == session_id(agent))
            .collect();
        assert_eq!(of_session.len(), 5, "{agent}");
        let root = of_session
            .iter()
            .find(|it| it["parent_id"].is_null())
            .unwrap();
        assert_eq!(root["name"], format!("invoke_agent {agent}"));
        assert_eq!(root["span_kind"], "AGENT");
        let calls: Vec<_> = of_session
            .iter()
            .filter(|it| it["parent_id"] == root["context"]["span_id"])
            .collect();
        assert_eq!(calls.len(), 2, "{agent}");
        let denied: Vec<_> = calls
            .iter()
            .filter(|it| it["status_code"] == "ERROR")
            .collect();
        assert_eq!(denied.len(), 1, "{agent}");
        assert_eq!(denied[0]["span_kind"], "TOOL");
        assert_eq!(denied[0]["attributes"]["error.type"], "denied");
        assert_eq!(denied[0]["status_message"], "no shell here");
        for call in calls {
            let hooks = of_session
                .iter()
                .filter(|it| it["parent_id"] == call["context"]["span_id"]);
            assert!(hooks.clone().all(|hook| hook["span_kind"] == "GUARDRAIL"));
            assert_eq!(hooks.count(), 1);
        }
    }
    let url = format!("{}/v1/projects/default/sessions", phoenix.url);
    let sessions = get_json(&url);
    let mut ids: Vec<_> = sessions["data"].as_array().unwrap().iter().collect();
    ids.retain(|session| session["traces"].as_array().unwrap().len() == 1);
    assert_eq!(ids.len(), agents().count(), "{sessions}");

    // Tokens, as Phoenix itself sums them up.
    export(&record_turns(), &phoenix.url, &["--signals", "traces"]);
    let with_tokens = read_until(TRANSCRIPTS.len(), || {
        let sessions = get_json(&url)["data"].as_array().unwrap().clone();
        let has_tokens = |session: &Value| session["token_count_total"] != 0;
        sessions.into_iter().filter(has_tokens).collect()
    });
    for (agent, _, [input, _, output]) in TRANSCRIPTS {
        let id = format!("s-{agent}");
        let session = with_tokens.iter().find(|it| it["session_id"] == id);
        let session = session.unwrap();
        assert_eq!(session["token_count_prompt"], *input, "{agent}");
        assert_eq!(session["token_count_completion"], *output, "{agent}");
    }
}

#[test]
fn mlflow_shows_turns_calls_denials_and_sessions() {
    let Some(python) = python("mlflow") else {
        return;
    };
    let scratch = record_sessions();
    let mlflow = RealReceiver::start(
        |folder, port| {
            let mut command = Command::new(&python);
            command
                .args([
                    "-m",
                    "mlflow",
                    "server",
                    "--host",
                    "127.0.0.1",
                    "--workers",
                    "1",
                ])
                .args(["--port", &port.to_string(), "--backend-store-uri"])
                .arg(format!("sqlite:///{}/mlflow.db", folder.display()))
                .env("MLFLOW_DISABLE_TELEMETRY", "true");
            command
        },
        "/health",
    );
    let experiment = [
        "--header",
        "x-mlflow-experiment-id=0",
        "--signals",
        "traces",
    ];
    export(&scratch, &mlflow.url, &experiment);
    let search = json!({
        "locations": [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "0"}}],
        "max_results": 100,
    });
    let search_traces = || {
        let url = format!("{}/api/3.0/mlflow/traces/search", mlflow.url);
        let request = ureq::post(&url).header("content-type", "application/json");
        let mut response = request.send(search.to_string()).unwrap();
        let text = response.body_mut().read_to_string().unwrap();
        let found: Value = serde_json::from_str(&text).unwrap();
        found["traces"].as_array().cloned().unwrap_or_default()
    };
    let spans_of_session = |traces: &[Value], session: &str| {
        let trace = traces
            .iter()
            .find(|it| it["trace_metadata"]["mlflow.trace.session"] == session)
            .unwrap_or_else(|| panic!("there is no session {session}: {traces:#?}"));
        let id = trace["trace_id"].as_str().unwrap();
        let url = format!("{}/api/3.0/mlflow/traces/get?trace_id={id}", mlflow.url);
        get_json(&url)["trace"]["spans"].as_array().unwrap().clone()
    };
    let traces = read_until(agents().count(), search_traces);
    for agent in agents() {
        let spans = spans_of_session(&traces, &session_id(agent));
        assert_eq!(spans.len(), 5, "{agent}");
        let roots = spans.iter().filter(|it| parent(it).is_empty());
        let root: Vec<_> = roots.collect();
        assert_eq!(root.len(), 1);
        assert_eq!(root[0]["name"], format!("invoke_agent {agent}"));
        let below_root = spans
            .iter()
            .filter(|it| parent(it) == root[0]["span_id"].as_str().unwrap());
        assert_eq!(below_root.count(), 2);
        let denied: Vec<_> = spans
            .iter()
            .filter(|it| it["status"]["message"] == "no shell here")
            .collect();
        assert_eq!(denied.len(), 1, "{spans:#?}");
        assert_eq!(denied[0]["status"]["code"], "STATUS_CODE_ERROR");
    }
    export(&record_turns(), &mlflow.url, &experiment);
    let traces = read_until(agents().count() + TRANSCRIPTS.len(), search_traces);
    for (agent, _, [input, _, output]) in TRANSCRIPTS {
        let spans = spans_of_session(&traces, &format!("s-{agent}"));
        let root = spans.iter().find(|it| parent(it).is_empty()).unwrap();
        assert_eq!(int_attribute(root, "anyhook.turn.input_tokens"), *input);
        assert_eq!(int_attribute(root, "anyhook.turn.output_tokens"), *output);
    }
}

/// MLflow returns attributes as OTLP has them.
fn int_attribute(span: &Value, name: &str) -> u64 {
    let attributes = span["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|it| it["key"] == name).unwrap();
    let value = &found["value"]["int_value"];
    let text = value.as_str().and_then(|text| text.parse().ok());
    value.as_u64().or(text).unwrap_or_else(|| panic!("{found}"))
}

fn parent(span: &Value) -> &str {
    span["parent_span_id"].as_str().unwrap_or_default()
}

/// Reads a file per message; prints what it found as JSON.
const DECODER: &str = r#"
import json, sys
from google.protobuf.json_format import MessageToDict
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
KINDS = {"traces": ExportTraceServiceRequest, "logs": ExportLogsServiceRequest, "metrics": ExportMetricsServiceRequest}

def unknown(message):
    count = len(UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for part in (value if hasattr(value, "add") else [value]):
                count += unknown(part)
    return count

out = []
for path in sys.argv[1:]:
    kind = path.rsplit(".", 1)[1]
    raw = open(path, "rb").read()
    message = KINDS[kind].FromString(raw)
    out.append({"kind": kind, "unknown": unknown(message), "same_size": message.ByteSize() == len(raw),
                "message": MessageToDict(message)})
print(json.dumps(out))
"#;

#[test]
fn the_decoder_of_another_project_reads_every_message() {
    let Some(python) = python("phoenix") else {
        return;
    };
    for temporality in ["cumulative", "delta"] {
        let scratch = record_sessions();
        let config = format!("otlp: {{temporality: {temporality}}}\n");
        scratch
            .file(scratch.config().join("config.yaml"), &config)
            .unwrap();
        check_with_decoder(&python, &scratch, temporality);
    }
}

fn check_with_decoder(python: &Path, scratch: &Scratch, temporality: &str) {
    let receiver = Receiver::start();
    export(scratch, &receiver.url(), &["--content", "full"]);
    let received = receiver.received();
    let mut files = Vec::new();
    for (number, (path, body)) in received.bodies.iter().enumerate() {
        let kind = path.rsplit('/').next().unwrap();
        let file = scratch.root().join(format!("message-{number}.{kind}"));
        std::fs::write(&file, body).unwrap();
        files.push(file);
    }
    assert!(files.len() >= 3);
    let output = Command::new(python)
        .args(["-c", DECODER])
        .args(&files)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let messages: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let (mut spans, mut logs, mut metrics) = (0, 0, 0);
    for message in &messages {
        assert_eq!(message["unknown"], 0, "{message}");
        assert_eq!(message["same_size"], true);
        let count = |path: &str| {
            let items = message["message"].pointer(path);
            items.and_then(Value::as_array).map_or(0, Vec::len)
        };
        spans += count("/resourceSpans/0/scopeSpans/0/spans");
        logs += count("/resourceLogs/0/scopeLogs/0/logRecords");
        metrics += count("/resourceMetrics/0/scopeMetrics/0/metrics");
        if message["kind"] == "metrics" {
            let expected = format!("AGGREGATION_TEMPORALITY_{}", temporality.to_uppercase());
            assert!(message.to_string().contains(&expected), "{message}");
        }
    }
    assert_eq!(spans, received.spans.len());
    assert_eq!(logs, received.logs.len());
    assert_eq!(metrics, received.metrics.len());
}
