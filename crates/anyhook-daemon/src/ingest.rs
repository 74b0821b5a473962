//! `POST /ingest`: records and OpenHook envelopes from elsewhere, each kept once by its id.

use anyhook_model::Record;
use anyhook_store::{Ingested, openhook};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderName, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;

use crate::app::App;
use crate::body::{self, Kind};
use crate::refusal::Refusal;

/// Names the machine whose journal is sent, for records that do not.
pub const MACHINE_HEADER: HeaderName = HeaderName::from_static("x-anyhook-machine");

const ITEMS_MAX: usize = 20_000;
const FAULTS_MAX: usize = 20;

#[derive(Debug, Serialize)]
struct Outcome {
    #[serde(flatten)]
    done: Ingested,
    /// The first few.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults: Vec<Fault>,
}

#[derive(Debug, Serialize)]
struct Fault {
    /// Which item of the batch, from 0.
    item: usize,
    message: String,
}

pub(crate) async fn post(
    State(app): State<App>,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let machine = request
        .headers()
        .get(MACHINE_HEADER)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    let (kind, bytes) = body::read(request, &app.limits).await?;
    let shared = app.clone();
    let (done, faults) = app
        .ask(move |store| {
            let mut records = Vec::new();
            let mut faults = Vec::new();
            let items = items(kind, &bytes);
            if let Err(refusal) = items {
                return Ok(Err(refusal));
            }
            for (item, value) in items.into_iter().flatten().enumerate() {
                match value.and_then(record) {
                    Ok(mut record) => {
                        if record.event.machine_id.is_none() {
                            record.event.machine_id.clone_from(&machine);
                        }
                        shared.host.redact(&mut record);
                        records.push(record);
                    }
                    Err(message) => faults.push(Fault { item, message }),
                }
            }
            let mut done = store.ingest(&records)?;
            done.refused += faults.len() as u64;
            faults.truncate(FAULTS_MAX);
            shared.metrics.ingested(done);
            Ok(Ok((done, faults)))
        })
        .await??;
    let status = if done.refused > 0 && done.new + done.duplicate == 0 {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    Ok((status, Json(Outcome { done, faults })).into_response())
}

/// One object, an array of them, `{"records": […]}`, or one per line.
fn items(kind: Kind, bytes: &[u8]) -> Result<Vec<Result<Value, String>>, Refusal> {
    let items: Vec<_> = match kind {
        Kind::Lines => bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.trim_ascii().is_empty())
            .map(|line| {
                serde_json::from_slice(line).map_err(|error| format!("this is not JSON: {error}"))
            })
            .collect(),
        Kind::Json => match body::parse(bytes)? {
            Value::Array(items) => items.into_iter().map(Ok).collect(),
            Value::Object(mut body) => match body.get_mut("records") {
                Some(Value::Array(items)) => items.drain(..).map(Ok).collect(),
                _ => vec![Ok(Value::Object(body))],
            },
            _ => return Err(Refusal::bad("shape", "send an object or an array of them")),
        },
    };
    if items.len() > ITEMS_MAX {
        return Err(Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too_many",
            format!("a batch may have {ITEMS_MAX} items"),
        ));
    }
    Ok(items)
}

fn record(value: Value) -> Result<Record, String> {
    match &value {
        Value::Object(envelope) if envelope.contains_key(openhook::MARKER) => {
            openhook::record(envelope)
        }
        _ => serde_json::from_value(value)
            .map_err(|error| format!("this is neither a record nor an envelope: {error}")),
    }
}
