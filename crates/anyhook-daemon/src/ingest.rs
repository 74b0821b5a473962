//! `POST /ingest`: stores records and OpenHook envelopes of other machines, each id once.

use std::sync::Arc;
use std::time::Duration;

use anyhook_model::Record;
use anyhook_store::{IngestCounts, StoreError, openhook};
use axum::Json;
use axum::body::{Body, HttpBody as _};
use axum::extract::State;
use axum::http::{HeaderName, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::api_error::ApiError;
use crate::app::{App, store_timeout};
use crate::body::{self, BodyFormat, header_text};
use crate::config::DaemonLimits;

/// The machine whose journal is sent, for records that do not name one.
pub(crate) const MACHINE_HEADER: HeaderName =
    HeaderName::from_static(anyhook_util::headers::MACHINE);

const MAX_BATCH_ITEMS: usize = 20_000;
/// Of the texts whose records are in memory at the same time, for each batch.
const MAX_PARSED_BYTES: usize = 1024 * 1024;
const MAX_REPORTED_FAULTS: usize = 20;
/// How long a request waits until others have been stored.
const MAX_ROOM_WAIT: Duration = Duration::from_secs(5);

#[derive(Debug, Serialize)]
struct IngestResponse {
    #[serde(flatten)]
    done: IngestCounts,
    /// At most [`MAX_REPORTED_FAULTS`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults: Vec<ItemFault>,
}

#[derive(Debug, Serialize)]
struct ItemFault {
    /// The item's index in the batch, from 0.
    item: usize,
    message: String,
}

/// Bounds the memory of requests that are ingested at the same time.
pub(crate) struct IngestBudget {
    /// In KiB of bodies that were read or are being read.
    body_kib: Arc<Semaphore>,
    max_kib: u32,
    /// Batches that are parsed and stored. The store has one writer, so more than two of
    /// them would only wait with their records in memory.
    work: Arc<Semaphore>,
}

impl IngestBudget {
    pub(crate) fn new(limits: &DaemonLimits) -> Self {
        let max_kib = kib(limits.ingest_bytes.max(limits.body_bytes));
        Self {
            body_kib: Arc::new(Semaphore::new(max_kib as usize)),
            max_kib,
            work: Arc::new(Semaphore::new(2)),
        }
    }

    /// Waits a moment for room for a body. Nothing of it is read before.
    async fn reserve(&self, announced: Option<u64>) -> Result<OwnedSemaphorePermit, ApiError> {
        let announced = announced.and_then(|bytes| usize::try_from(bytes).ok());
        let wanted = announced.map_or(self.max_kib, kib).min(self.max_kib);
        let room = self.body_kib.clone().acquire_many_owned(wanted);
        match tokio::time::timeout(MAX_ROOM_WAIT, room).await {
            Ok(Ok(room)) => Ok(room),
            _ => Err(ApiError::busy(
                "too much is being uploaded at the same time; send it again later",
            )),
        }
    }
}

/// Rounded up.
fn kib(bytes: usize) -> u32 {
    u32::try_from(bytes / 1024 + 1).unwrap_or(u32::MAX)
}

pub(crate) async fn post(
    State(app): State<App>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let limits = &app.config.limits;
    let machine = header_text(request.headers(), &MACHINE_HEADER).map(str::to_owned);
    let announced = request.body().size_hint().upper();
    let ingested = async {
        let room = app.ingest_budget.reserve(announced).await?;
        let (format, bytes) = body::read_body(request, limits).await?;
        let turn = app.ingest_budget.work.clone().acquire_owned().await;
        let shared = app.clone();
        let work = move || {
            // Held until all is stored, even when the caller has gone.
            let _held = (room, turn);
            ingest_body(&shared, format, &bytes, machine.as_deref())
        };
        app.store_result(tokio::task::spawn_blocking(work).await)?
    };
    let limit = limits.ingest_timeout;
    let (done, faults) = tokio::time::timeout(limit, ingested)
        .await
        .map_err(|_| store_timeout(limit))??;
    let status = if done.refused > 0 && done.new + done.duplicate == 0 {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    Ok((status, Json(IngestResponse { done, faults })).into_response())
}

type IngestResult = Result<(IngestCounts, Vec<ItemFault>), ApiError>;

/// Parses and stores a body, some items at a time: parsed records take about ten times the
/// memory of their text. The sender of a batch that fails halfway sends all of it again, and
/// each id is stored once.
fn ingest_body(
    app: &App,
    format: BodyFormat,
    bytes: &[u8],
    machine: Option<&str>,
) -> Result<IngestResult, StoreError> {
    let items = match split_items(format, bytes) {
        Ok(items) => items,
        Err(error) => return Ok(Err(error)),
    };
    let mut done = IngestCounts::default();
    let mut faults = Vec::new();
    let mut records = Vec::new();
    let mut parsed_bytes = 0;
    for (item, text) in items.into_iter().enumerate() {
        match parse_record(text) {
            Ok(mut record) => {
                if record.event.machine_id.is_none() {
                    record.event.machine_id = machine.map(str::to_owned);
                }
                app.host.redact(&mut record);
                records.push(record);
            }
            Err(message) => {
                done.refused += 1;
                if faults.len() < MAX_REPORTED_FAULTS {
                    faults.push(ItemFault { item, message });
                }
            }
        }
        parsed_bytes += text.len();
        if parsed_bytes > MAX_PARSED_BYTES {
            done += app.store.ingest(&records)?;
            records.clear();
            parsed_bytes = 0;
        }
    }
    done += app.store.ingest(&records)?;
    app.metrics.record_ingest(done);
    Ok(Ok((done, faults)))
}

/// The texts of one object, of an array of them, of `{"records": […]}`, or of lines.
fn split_items(format: BodyFormat, bytes: &[u8]) -> Result<Vec<&[u8]>, ApiError> {
    let items: Vec<&[u8]> = match format {
        BodyFormat::Lines => bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.trim_ascii().is_empty())
            .collect(),
        BodyFormat::Json => {
            let invalid =
                |error| ApiError::bad_request("json", format!("the body is not JSON: {error}"));
            let list = match bytes.trim_ascii_start().first() {
                Some(b'[') => Some(serde_json::from_slice(bytes).map_err(invalid)?),
                Some(b'{') => {
                    let keys: BatchKeys<'_> = serde_json::from_slice(bytes).map_err(invalid)?;
                    let is_list = |raw: &&RawValue| raw.get().starts_with('[');
                    let list = keys.records.filter(is_list).map(RawValue::get);
                    list.map(serde_json::from_str)
                        .transpose()
                        .map_err(invalid)?
                }
                _ => {
                    body::parse_json(bytes)?;
                    return Err(ApiError::bad_request(
                        "shape",
                        "send an object or an array of objects",
                    ));
                }
            };
            match list {
                Some(list) => {
                    let list: Vec<&RawValue> = list;
                    list.into_iter().map(|raw| raw.get().as_bytes()).collect()
                }
                None => vec![bytes],
            }
        }
    };
    if items.len() > MAX_BATCH_ITEMS {
        return Err(ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too_many",
            format!("a batch may have at most {MAX_BATCH_ITEMS} items"),
        ));
    }
    Ok(items)
}

/// A body that wraps its items.
#[derive(Deserialize)]
struct BatchKeys<'a> {
    #[serde(borrow)]
    records: Option<&'a RawValue>,
}

fn parse_record(text: &[u8]) -> Result<Record, String> {
    let value: Value =
        serde_json::from_slice(text).map_err(|error| format!("not JSON: {error}"))?;
    match &value {
        Value::Object(envelope) if envelope.contains_key(openhook::MARKER) => {
            openhook::envelope_record(envelope)
        }
        _ => serde_json::from_value(value)
            .map_err(|error| format!("neither a record nor an envelope: {error}")),
    }
}
