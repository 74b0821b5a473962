//! Requests to a running daemon: the proof that it knows the token, a link to its page.

use std::time::Duration;

use anyhook_util::challenge::{self, Nonces, constant_time_eq};
use anyhook_util::headers;
use anyhook_util::http::client_config;
use serde_json::Value;

use crate::token::random_hex;

const LINK_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a daemon does not get the token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProofError {
    /// A retry may succeed.
    Unavailable(String),
    /// What answers there does not know the token.
    Untrusted,
}

pub(crate) fn http_agent(timeout: Duration) -> ureq::Agent {
    client_config(timeout).build().new_agent()
}

/// Lets the daemon at an address prove that it knows the token before it is sent there.
pub(crate) fn check_proof(agent: &ureq::Agent, to: &str, token: &str) -> Result<(), ProofError> {
    let unavailable = |reason: String| ProofError::Unavailable(reason);
    let client = random_hex(16).map_err(|error| unavailable(error.to_string()))?;
    let response = agent
        .post(format!("{}{}", to.trim_end_matches('/'), challenge::PATH))
        .header(headers::NONCE, &client)
        .send_empty()
        .map_err(|error| unavailable(error.to_string()))?;
    let status = response.status().as_u16();
    if status >= 500 {
        return Err(unavailable(format!("status {status}")));
    }
    let header = |name: &str| response.headers().get(name)?.to_str().ok();
    let server = header(headers::NONCE).unwrap_or_default().to_owned();
    let expected = Nonces { client, server }.server_proof(token);
    let proof = header(headers::PROOF).unwrap_or_default();
    if constant_time_eq(&expected, proof) {
        Ok(())
    } else {
        Err(ProofError::Untrusted)
    }
}

/// A one-time link to the page of the running daemon at this address; `None` if no daemon
/// with this token answers there.
pub fn page_link(to: &str, token: &str) -> Option<String> {
    let agent = http_agent(LINK_TIMEOUT);
    check_proof(&agent, to, token).ok()?;
    let mut response = agent
        .post(format!("{to}/link"))
        .header("authorization", format!("Bearer {token}"))
        .send_empty()
        .ok()?;
    let body: Value = serde_json::from_str(&response.body_mut().read_to_string().ok()?).ok()?;
    body.get("link")?.as_str().map(str::to_owned)
}
