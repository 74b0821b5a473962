//! `POST /challenge`, by which a client finds out whether this is the daemon that knows its
//! token and whether it is alive, and the check of the calls that follow.
//!
//! See [`anyhook_util::challenge`] for what is proven. A nonce of the daemon is valid for
//! one call within a short time. No nonce is kept until it is used, so that no one
//! without the token can make the daemon remember anything.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhook_util::challenge::{self, CallContent, Nonces, constant_time_eq};
use anyhook_util::headers;
use anyhook_util::sync::lock;
use axum::extract::State;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::api_error::ApiError;
use crate::app::App;
use crate::body::header_text;
use crate::token::random_hex;

const NONCE_HEADER: HeaderName = HeaderName::from_static(headers::NONCE);
pub(crate) const PROOF_HEADER: HeaderName = HeaderName::from_static(headers::PROOF);
const NONCE_LIFETIME: Duration = Duration::from_secs(60);
const MIN_NONCE_LENGTH: usize = 16;
const MAX_NONCE_LENGTH: usize = 128;

/// A call whose sender has proven that it knows the token.
#[derive(Debug, Clone)]
pub(crate) struct SignedCall {
    pub nonces: Nonces,
    /// The body must still be compared with it.
    pub body_sha256: String,
}

/// Issues nonces and accepts each once.
pub(crate) struct Challenges {
    /// Nonces of another process are not valid.
    secret: String,
    started: Instant,
    /// Used nonces, with their expiry.
    used: Mutex<HashMap<String, Instant>>,
}

impl Challenges {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self {
            secret: random_hex(32)?,
            started: Instant::now(),
            used: Mutex::default(),
        })
    }

    fn issue(&self, client: &str) -> std::io::Result<Nonces> {
        let issued = self.started.elapsed().as_millis().to_string();
        let random = random_hex(16)?;
        let tag = self.tag(client, &issued, &random);
        Ok(Nonces {
            client: client.to_owned(),
            server: format!("{issued}-{random}-{tag}"),
        })
    }

    fn tag(&self, client: &str, issued: &str, random: &str) -> String {
        let parts = [client, issued, random];
        challenge::keyed_hash(self.secret.as_bytes(), parts.into_iter())
    }

    /// Whether the nonce is this process's own, still valid and not used before.
    fn redeem(&self, nonces: &Nonces) -> bool {
        let mut parts = nonces.server.splitn(3, '-');
        let (Some(issued), Some(random), Some(tag)) = (parts.next(), parts.next(), parts.next())
        else {
            return false;
        };
        if !constant_time_eq(&self.tag(&nonces.client, issued, random), tag) {
            return false;
        }
        let issued = issued.parse().map(Duration::from_millis);
        let expiry = issued.map(|issued| self.started + issued + NONCE_LIFETIME);
        let now = Instant::now();
        let Some(expiry) = expiry.ok().filter(|expiry| *expiry > now) else {
            return false;
        };
        let mut used = lock(&self.used);
        used.retain(|_, until| *until > now);
        used.insert(nonces.server.clone(), expiry).is_none()
    }
}

pub(crate) async fn post(State(app): State<App>, headers: HeaderMap) -> Result<Response, ApiError> {
    let client = header_text(&headers, &NONCE_HEADER).filter(|nonce| {
        (MIN_NONCE_LENGTH..=MAX_NONCE_LENGTH).contains(&nonce.len())
            && nonce.bytes().all(|byte| byte.is_ascii_alphanumeric())
    });
    let client = client.ok_or_else(|| {
        ApiError::bad_request(
            "nonce",
            format!(
                "send `{}` with {MIN_NONCE_LENGTH} to {MAX_NONCE_LENGTH} letters and digits",
                headers::NONCE
            ),
        )
    })?;
    let issued = app.challenges.issue(client);
    let nonces = issued.map_err(|error| ApiError::internal(error.to_string()))?;
    let mut headers = HeaderMap::new();
    headers.insert(NONCE_HEADER, header_value(&nonces.server)?);
    if let Some(token) = app.access_keys.token() {
        headers.insert(PROOF_HEADER, header_value(&nonces.server_proof(token))?);
    }
    Ok(headers.into_response())
}

/// The signed call in `authorization`, if it is one; an error if its proof is wrong.
pub(crate) fn signed_call(app: &App, parts: &Parts) -> Result<Option<SignedCall>, ApiError> {
    let Some(value) = header_text(&parts.headers, &AUTHORIZATION) else {
        return Ok(None);
    };
    let mut words = value.split(' ');
    if words.next() != Some(challenge::SCHEME) {
        return Ok(None);
    }
    let mut word = || words.next().unwrap_or_default();
    let nonces = Nonces {
        client: word().to_owned(),
        server: word().to_owned(),
    };
    let (body_sha256, proof) = (word(), word());
    let header = |name| header_text(&parts.headers, &HeaderName::from_static(name));
    let text = |name| header(name).unwrap_or_default();
    let path = parts.uri.path_and_query();
    let content = CallContent {
        path: path
            .map(axum::http::uri::PathAndQuery::as_str)
            .unwrap_or_default(),
        cwd: text(headers::CWD),
        projects: text(headers::PROJECTS),
        unattended: text(headers::UNATTENDED),
        entry: text(headers::ENTRY),
        body_sha256,
    };
    let expected = app.access_keys.token();
    let expected = expected.map(|token| nonces.call_proof(token, &content));
    let is_proven = expected.is_some_and(|expected| constant_time_eq(&expected, proof));
    if !is_proven || !app.challenges.redeem(&nonces) {
        return Err(ApiError::new(
            StatusCode::UNAUTHORIZED,
            "proof",
            "the proof of the token is wrong, too old or was used before",
        ));
    }
    Ok(Some(SignedCall {
        nonces,
        body_sha256: body_sha256.to_owned(),
    }))
}

pub(crate) fn header_value(text: &str) -> Result<HeaderValue, ApiError> {
    HeaderValue::from_str(text).map_err(|error| ApiError::internal(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_valid_once_and_only_where_it_was_issued() {
        let challenges = Challenges::new().unwrap();
        let nonces = challenges.issue("client").unwrap();
        let other = Nonces {
            client: "other".to_owned(),
            ..nonces.clone()
        };
        assert!(!challenges.redeem(&other));
        assert!(!Challenges::new().unwrap().redeem(&nonces));
        assert!(challenges.redeem(&nonces));
        assert!(!challenges.redeem(&nonces));
        for server in ["", "1", "1-2", "1-2-3", "x-y-z-a"] {
            let server = server.to_owned();
            let client = "client".to_owned();
            assert!(!challenges.redeem(&Nonces { client, server }));
        }
    }
}
