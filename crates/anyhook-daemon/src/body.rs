//! Reads request bodies: of an accepted type, up to a size limit, within a time limit.

use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Request, StatusCode};
use serde_json::Value;

use crate::api_error::ApiError;
use crate::config::DaemonLimits;

/// The format of a body, by its content type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyFormat {
    Json,
    /// One JSON value per line.
    Lines,
}

pub(crate) async fn read_body(
    request: Request<Body>,
    limits: &DaemonLimits,
) -> Result<(BodyFormat, Bytes), ApiError> {
    let (parts, body) = request.into_parts();
    let format = body_format(&parts)?;
    let too_large = || {
        ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too_large",
            format!("the body is larger than {} bytes", limits.body_bytes),
        )
    };
    // Checked before reading: a client should not send a gigabyte to be rejected.
    let announced_length = header_text(&parts.headers, &CONTENT_LENGTH);
    let announced_length = announced_length.and_then(|text| text.parse::<u64>().ok());
    if announced_length.is_some_and(|length| length > limits.body_bytes as u64) {
        return Err(too_large());
    }
    match tokio::time::timeout(limits.body_timeout, to_bytes(body, limits.body_bytes)).await {
        Ok(Ok(bytes)) => Ok((format, bytes)),
        Ok(Err(_)) => Err(too_large()),
        Err(_) => Err(ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            "too_slow",
            "reading the body timed out",
        )),
    }
}

/// A body with the content type of JSON, not parsed yet.
pub(crate) async fn read_json_bytes(
    request: Request<Body>,
    limits: &DaemonLimits,
) -> Result<Bytes, ApiError> {
    let (format, bytes) = read_body(request, limits).await?;
    if format != BodyFormat::Json {
        return Err(wrong_type());
    }
    Ok(bytes)
}

pub(crate) fn parse_json(bytes: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(bytes)
        .map_err(|error| ApiError::bad_request("json", format!("the body is not JSON: {error}")))
}

/// Browsers send these types to another origin only after a preflight request.
fn body_format(parts: &Parts) -> Result<BodyFormat, ApiError> {
    let value = header_text(&parts.headers, &CONTENT_TYPE).unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim();
    match essence.to_ascii_lowercase().as_str() {
        "application/json" => Ok(BodyFormat::Json),
        "application/x-ndjson" | "application/jsonl" => Ok(BodyFormat::Lines),
        _ => Err(wrong_type()),
    }
}

pub(crate) fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn wrong_type() -> ApiError {
    ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "content_type",
        "send `content-type: application/json`",
    )
}
