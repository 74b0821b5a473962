//! A small OTLP receiver: keeps what it accepts, and answers as a test wants.

use std::io::Read;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as ProtoValue;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tiny_http::{Header, Request, Response, Server};

/// How a request is answered.
pub(crate) enum Answer {
    Accept,
    /// Taken, but these spans are rejected for good.
    Partial(i64),
    /// Not taken.
    Status(u16),
    RetryAfter(u16, u32),
    /// No answer until the receiver ends.
    Hang,
}

/// What has arrived.
#[derive(Default, Clone)]
pub(crate) struct Received {
    pub(crate) spans: Vec<Span>,
    pub(crate) logs: Vec<LogRecord>,
    pub(crate) metrics: Vec<Metric>,
    pub(crate) resource: Vec<KeyValue>,
    /// Path and body of every request that was taken.
    pub(crate) bodies: Vec<(String, Vec<u8>)>,
    /// Number of requests, also of those that were not taken.
    pub(crate) requests: usize,
    /// `content-type`, `content-encoding` and other headers of the last request.
    pub(crate) headers: Vec<(String, String)>,
}

type Decide = dyn Fn(&str, &Received, &[Span]) -> Answer + Send;

pub(crate) struct Receiver {
    server: Arc<Server>,
    received: Arc<Mutex<Received>>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    /// Accepts everything.
    pub(crate) fn start() -> Self {
        Self::start_with(|_, _, _| Answer::Accept)
    }

    /// `decide` gets the path, what has arrived so far, and the spans of the request.
    pub(crate) fn start_with(
        decide: impl Fn(&str, &Received, &[Span]) -> Answer + Send + 'static,
    ) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), decide)
    }

    pub(crate) fn start_at(
        address: SocketAddr,
        decide: impl Fn(&str, &Received, &[Span]) -> Answer + Send + 'static,
    ) -> Self {
        let server = Arc::new(Server::http(address).unwrap());
        let received = Arc::new(Mutex::new(Received::default()));
        let thread = std::thread::spawn({
            let (server, received) = (server.clone(), received.clone());
            move || serve(&server, &received, &decide)
        });
        Self {
            server,
            received,
            thread: Some(thread),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.server.server_addr())
    }

    pub(crate) fn received(&self) -> Received {
        self.received.lock().unwrap().clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.server.unblock();
        let _ = self.thread.take().unwrap().join();
    }
}

fn serve(server: &Server, received: &Mutex<Received>, decide: &Decide) {
    let mut hanging = Vec::new();
    while let Ok(mut request) = server.recv() {
        let path = request.url().to_owned();
        let body = body_of(&mut request);
        let is_json = header(&request, "content-type").contains("json");
        let mut received = received.lock().unwrap();
        received.requests += 1;
        received.headers = request
            .headers()
            .iter()
            .map(|it| (it.field.to_string().to_lowercase(), it.value.to_string()))
            .collect();
        let traces: Option<ExportTraceServiceRequest> =
            (path == "/v1/traces").then(|| decode(&body, is_json));
        let spans: Vec<Span> = traces
            .iter()
            .flat_map(|it| &it.resource_spans)
            .flat_map(|it| &it.scope_spans)
            .flat_map(|it| it.spans.clone())
            .collect();
        let answer = decide(&path, &received, &spans);
        if matches!(answer, Answer::Accept | Answer::Partial(_)) {
            if let Some(resource) = traces.iter().flat_map(|it| &it.resource_spans).next() {
                received.resource = resource.resource.clone().unwrap().attributes;
            }
            received.spans.extend(spans);
            received.bodies.push((path.clone(), body.clone()));
            add_others(&mut received, &path, &body, is_json);
        }
        let respond =
            |status: u16, body: Vec<u8>| Response::from_data(body).with_status_code(status);
        let _ = match answer {
            Answer::Accept => request.respond(respond(200, Vec::new())),
            Answer::Partial(rejected_spans) => {
                let response = ExportTraceServiceResponse {
                    partial_success: Some(ExportTracePartialSuccess {
                        rejected_spans,
                        error_message: "too old".to_owned(),
                    }),
                };
                request.respond(respond(200, response.encode_to_vec()))
            }
            Answer::Status(status) => request.respond(respond(status, b"because".to_vec())),
            Answer::RetryAfter(status, seconds) => {
                let after = Header::from_bytes("retry-after", seconds.to_string()).unwrap();
                request.respond(respond(status, Vec::new()).with_header(after))
            }
            Answer::Hang => {
                hanging.push(request);
                Ok(())
            }
        };
    }
}

fn add_others(received: &mut Received, path: &str, body: &[u8], is_json: bool) {
    if path == "/v1/logs" {
        let request: ExportLogsServiceRequest = decode(body, is_json);
        let scopes = request
            .resource_logs
            .into_iter()
            .flat_map(|it| it.scope_logs);
        received.logs.extend(scopes.flat_map(|it| it.log_records));
    } else if path == "/v1/metrics" {
        let request: ExportMetricsServiceRequest = decode(body, is_json);
        let scopes = request.resource_metrics.into_iter();
        let scopes = scopes.flat_map(|it| it.scope_metrics);
        // Cumulative: the last one counts.
        received.metrics = scopes.flat_map(|it| it.metrics).collect();
    }
}

fn decode<M: Message + Default + DeserializeOwned>(body: &[u8], is_json: bool) -> M {
    if is_json {
        serde_json::from_slice(body).unwrap()
    } else {
        M::decode(body).unwrap()
    }
}

fn header(request: &Request, name: &str) -> String {
    let mut headers = request.headers().iter();
    let found = headers.find(|it| it.field.to_string().eq_ignore_ascii_case(name));
    found.map(|it| it.value.to_string()).unwrap_or_default()
}

fn body_of(request: &mut Request) -> Vec<u8> {
    let is_packed = header(request, "content-encoding") == "gzip";
    let mut body = Vec::new();
    request.as_reader().read_to_end(&mut body).unwrap();
    if !is_packed {
        return body;
    }
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(body.as_slice())
        .read_to_end(&mut unpacked)
        .unwrap();
    unpacked
}

/// The attributes of a span, log record or point as JSON.
pub(crate) fn attributes(pairs: &[KeyValue]) -> Value {
    let mut object = json!({});
    for pair in pairs {
        let value = pair.value.as_ref().and_then(|it| it.value.as_ref());
        object[&pair.key] = match value {
            Some(ProtoValue::StringValue(text)) => json!(text),
            Some(ProtoValue::BoolValue(flag)) => json!(flag),
            Some(ProtoValue::IntValue(number)) => json!(number),
            Some(ProtoValue::DoubleValue(number)) => json!(number),
            Some(ProtoValue::ArrayValue(items)) => json!(items.values.len()),
            other => panic!("{other:?}"),
        };
    }
    object
}
