//! Handlers that are a web service: the canonical event is posted, the body
//! of the response is the canonical answer.
//!
//! The client is made only when such a handler runs. Redirects are not
//! followed: the address that the user has read is the one that is called.

use std::time::Duration;

use anyhook_model::Handler;
use serde_json::Value;
use ureq::tls::{RootCerts, TlsConfig};

use crate::exec::OUTPUT_LIMIT;

/// A request, ready to be sent.
#[derive(Debug, Clone)]
pub struct Request {
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub timeout: Duration,
}

/// Makes the request of a handler, with variables in its headers filled in.
pub fn request(
    handler: &Handler,
    body: Vec<u8>,
    timeout: Duration,
    allow_plain: &[String],
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<Request, String> {
    let url = handler.url.clone().ok_or("it has no `url`")?;
    check_address(&url, allow_plain)?;
    let mut headers = Vec::new();
    for (name, value) in &handler.headers {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let text = fill(&text, &handler.allowed_env_vars, &lookup)
            .map_err(|why| format!("header `{name}`: {why}"))?;
        headers.push((name.clone(), text));
    }
    Ok(Request {
        url,
        headers,
        body,
        timeout,
    })
}

/// Sends it; the body of a successful response.
pub fn send(request: &Request) -> Result<String, String> {
    let host = host(&request.url).unwrap_or_default();
    // Who waits for us counts the time; this only ends the thread behind.
    let limit = request.timeout.saturating_add(Duration::from_secs(1));
    let mut config = ureq::Agent::config_builder()
        .timeout_global(Some(limit))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .user_agent(concat!("anyhook/", env!("CARGO_PKG_VERSION")))
        .tls_config(
            TlsConfig::builder()
                .root_certs(RootCerts::PlatformVerifier)
                .build(),
        );
    if is_loopback(&host) {
        config = config.proxy(None);
    }
    let agent: ureq::Agent = config.build().into();
    let mut post = agent
        .post(&request.url)
        .header("content-type", "application/json")
        .header("accept", "application/json");
    for (name, value) in &request.headers {
        post = post.header(name, value);
    }
    let mut response = post
        .send(&request.body)
        .map_err(|error| format!("POST {}: {error}", request.url))?;
    let status = response.status();
    let body = response
        .body_mut()
        .with_config()
        .limit(OUTPUT_LIMIT as u64)
        .read_to_vec()
        .map_err(|error| format!("POST {}: {error}", request.url))?;
    if !status.is_success() {
        return Err(format!(
            "POST {}: the server answered {}",
            request.url,
            status.as_u16()
        ));
    }
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// https, or http to this machine or to a host that the user has allowed.
pub fn check_address(url: &str, allow_plain: &[String]) -> Result<(), String> {
    let lower = url.to_ascii_lowercase();
    if lower.starts_with("https://") {
        return Ok(());
    }
    if !lower.starts_with("http://") {
        return Err(format!("`{url}` is not an http or https address"));
    }
    let host = host(&lower).ok_or_else(|| format!("`{url}` has no host"))?;
    if is_loopback(&host) || allow_plain.contains(&host) {
        return Ok(());
    }
    Err(format!(
        "`{url}` is not https; use https, or list `{host}` under `http.allow_plain` in the settings"
    ))
}

fn host(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let (_, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let host = match host.strip_prefix('[') {
        Some(six) => six.split(']').next()?,
        None => host.split(':').next()?,
    };
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}

fn is_loopback(host: &str) -> bool {
    let address = host.parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Fills `$NAME` and `${NAME}` from the variables that the handler may use.
fn fill(
    text: &str,
    allowed: &[String],
    lookup: &impl Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let braced = after
            .strip_prefix('{')
            .and_then(|inner| inner.split_once('}'));
        let (name, tail) = braced.unwrap_or_else(|| {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = after.find(|c| !is_name(c)).unwrap_or(after.len());
            after.split_at_checked(end).unwrap_or((after, ""))
        });
        rest = tail;
        if name.is_empty() {
            out.push('$');
            continue;
        }
        if !allowed.iter().any(|allowed| allowed == name) {
            return Err(format!("`{name}` is not in `allowed_env_vars`"));
        }
        out.push_str(&lookup(name).ok_or_else(|| format!("`{name}` is not set"))?);
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_encrypted_or_near() {
        let allowed = ["hooks.lan".to_owned()];
        for fine in [
            "https://a.test/x",
            "http://localhost:8080/x",
            "http://127.0.0.1/x",
            "http://[::1]:9/x",
            "HTTP://hooks.lan/x",
        ] {
            assert_eq!(check_address(fine, &allowed), Ok(()), "{fine}");
        }
        for bad in [
            "http://a.test",
            "http://localhost@a.test/",
            "http://localhost.a.test",
            "http://a.test\\@localhost/",
            "ftp://localhost",
            "file:///etc/passwd",
            "http://",
        ] {
            assert!(check_address(bad, &allowed).is_err(), "{bad}");
        }
    }

    #[test]
    fn headers_take_only_what_is_allowed() {
        let allowed = ["KEY".to_owned(), "GONE".to_owned()];
        let lookup = |name: &str| (name != "GONE").then(|| format!("<{name}>"));
        let filled = |text| fill(text, &allowed, &lookup);
        assert_eq!(filled("Bearer $KEY!"), Ok("Bearer <KEY>!".to_owned()));
        assert_eq!(filled("${KEY}x$"), Ok("<KEY>x$".to_owned()));
        assert!(filled("$HOME").is_err());
        assert!(filled("$KEYS").is_err());
        assert!(filled("$GONE").is_err());
    }
}
