//! Sends requests over HTTP and reads what the receiver says about them.

use std::io::Write as _;
use std::time::Duration;

use anyhook_util::http::client_config;
use flate2::write::GzEncoder;

use super::config::{Compression, OtlpConfig, Protocol, Signal, signal_url};
use super::request::SignalRequest;
use crate::error::{ExportError, Result};

const MAX_RESPONSE_BYTES: u64 = 1024 * 1024;
/// Of a receiver's explanation.
const MAX_MESSAGE_BYTES: usize = 300;

/// What became of one request.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The receiver has all items but the rejected ones, which it will never take.
    Accepted { rejected: u64, message: String },
    /// A retry may succeed.
    Unavailable {
        reason: String,
        retry_after: Option<Duration>,
    },
    /// Something in the content is refused; other content may be taken.
    BadContent { message: String },
    /// The receiver does not take this signal.
    Unsupported { message: String },
    /// Nothing will be taken before the settings change.
    Refused { message: String },
}

#[derive(Debug)]
pub(crate) struct OtlpSender {
    agent: ureq::Agent,
    endpoint: String,
    headers: Vec<(String, String)>,
    protocol: Protocol,
    compression: Compression,
}

impl OtlpSender {
    /// `headers` are those of the settings, with their values looked up.
    pub(crate) fn new(config: &OtlpConfig, headers: Vec<(String, String)>) -> Self {
        Self {
            agent: client_config(config.timeout()).build().new_agent(),
            endpoint: config.endpoint().to_owned(),
            headers,
            protocol: config.protocol,
            compression: config.compression,
        }
    }

    /// The body of a request, before compression.
    pub(crate) fn encode<R: SignalRequest>(&self, request: &R) -> Result<Vec<u8>> {
        match self.protocol {
            Protocol::Protobuf => Ok(request.encode_to_vec()),
            Protocol::Json => serde_json::to_vec(request).map_err(ExportError::encoding),
        }
    }

    pub(crate) fn send<R: SignalRequest>(&self, body: &[u8]) -> Result<Reply> {
        let url = signal_url(&self.endpoint, R::SIGNAL);
        let mut request = self.agent.post(&url).header(
            "content-type",
            match self.protocol {
                Protocol::Protobuf => "application/x-protobuf",
                Protocol::Json => "application/json",
            },
        );
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let sent = match self.compression {
            Compression::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
                let packed = encoder.write_all(body).and_then(|()| encoder.finish());
                let packed = packed.map_err(ExportError::encoding)?;
                request.header("content-encoding", "gzip").send(&packed)
            }
            Compression::None => request.send(body),
        };
        let mut response = match sent {
            Ok(response) => response,
            Err(error) => return Ok(failed_request(&error)),
        };
        let status = response.status().as_u16();
        let header = |name: &str| response.headers().get(name)?.to_str().ok();
        let retry_after = header("retry-after").and_then(retry_delay);
        let is_json = header("content-type").is_some_and(|kind| kind.contains("json"));
        let body = response.body_mut().with_config();
        let body = body.limit(MAX_RESPONSE_BYTES).read_to_vec();
        if (200..300).contains(&status) {
            // Cut or strange: the receiver has taken the request all the same.
            let body = body.unwrap_or_default();
            return Ok(accepted::<R>(&body, is_json));
        }
        let message = error_text(R::SIGNAL, status, &body.unwrap_or_default());
        Ok(match status {
            408 | 425 | 429 | 500 | 502.. => Reply::Unavailable {
                reason: message,
                retry_after,
            },
            400 | 413 | 422 => Reply::BadContent { message },
            404 | 405 | 501 => Reply::Unsupported { message },
            _ => Reply::Refused { message },
        })
    }
}

/// A request that got no response.
fn failed_request(error: &ureq::Error) -> Reply {
    match error {
        ureq::Error::BadUri(_) | ureq::Error::Http(_) | ureq::Error::RequireHttpsOnly(_) => {
            Reply::Refused {
                message: error.to_string(),
            }
        }
        _ => Reply::Unavailable {
            reason: error.to_string(),
            retry_after: None,
        },
    }
}

fn accepted<R: SignalRequest>(body: &[u8], is_json: bool) -> Reply {
    let response: R::Response = if is_json {
        serde_json::from_slice(body).unwrap_or_default()
    } else {
        prost::Message::decode(body).unwrap_or_default()
    };
    let (rejected, message) = R::rejections(response).unwrap_or_default();
    Reply::Accepted {
        rejected: u64::try_from(rejected).unwrap_or_default(),
        message: anyhook_store::truncated(&message, MAX_MESSAGE_BYTES).to_owned(),
    }
}

/// Seconds, or a date in the form of HTTP.
fn retry_delay(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    let delay = date.duration_since(jiff::Timestamp::now());
    Some(delay.try_into().unwrap_or_default())
}

/// `traces: status 400: no such field`
fn error_text(signal: Signal, status: u16, body: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(body)
        .chars()
        .filter(|letter| !letter.is_control() && *letter != char::REPLACEMENT_CHARACTER)
        .collect();
    let text = anyhook_store::truncated(text.trim(), MAX_MESSAGE_BYTES);
    let hint = match status {
        401 | 403 => "; check the headers in the settings (`otlp.headers`)",
        415 => "; the receiver may want another `--protocol`",
        _ => "",
    };
    let colon = if text.is_empty() { "" } else { ": " };
    format!("{}: status {status}{colon}{text}{hint}", signal.as_str())
}
