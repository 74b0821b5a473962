//! Taking a body in: of the right type, not too large, not too slow.

use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{Request, StatusCode};
use serde_json::Value;

use crate::config::Limits;
use crate::refusal::Refusal;

/// What a body says that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Json,
    /// One JSON value per line.
    Lines,
}

pub(crate) async fn read(
    request: Request<Body>,
    limits: &Limits,
) -> Result<(Kind, Bytes), Refusal> {
    let (parts, body) = request.into_parts();
    let kind = kind(&parts)?;
    let too_large = || {
        Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too_large",
            format!("a body may have {} bytes", limits.body_bytes),
        )
    };
    // Said before it is read: nobody sends a gigabyte to hear no.
    let announced = parts
        .headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limits.body_bytes as u64) {
        return Err(too_large());
    }
    match tokio::time::timeout(limits.body_timeout, to_bytes(body, limits.body_bytes)).await {
        Ok(Ok(bytes)) => Ok((kind, bytes)),
        Ok(Err(_)) => Err(too_large()),
        Err(_) => Err(Refusal::new(
            StatusCode::REQUEST_TIMEOUT,
            "too_slow",
            "the body did not come in time",
        )),
    }
}

pub(crate) async fn json(request: Request<Body>, limits: &Limits) -> Result<Value, Refusal> {
    parse(&json_bytes(request, limits).await?)
}

/// A body that says it is JSON; nobody has looked yet.
pub(crate) async fn json_bytes(request: Request<Body>, limits: &Limits) -> Result<Bytes, Refusal> {
    let (kind, bytes) = read(request, limits).await?;
    if kind != Kind::Json {
        return Err(wrong_type());
    }
    Ok(bytes)
}

pub(crate) fn parse(bytes: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(bytes)
        .map_err(|error| Refusal::bad("json", format!("the body is not JSON: {error}")))
}

/// A page cannot send these types to another origin without asking first.
fn kind(parts: &Parts) -> Result<Kind, Refusal> {
    let value = parts
        .headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim();
    match essence.to_ascii_lowercase().as_str() {
        "application/json" => Ok(Kind::Json),
        "application/x-ndjson" | "application/jsonl" => Ok(Kind::Lines),
        _ => Err(wrong_type()),
    }
}

fn wrong_type() -> Refusal {
    Refusal::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "content_type",
        "send `content-type: application/json`",
    )
}
