//! Handlers that are a web service: the canonical event is posted, the body
//! of the response is the canonical answer.
//!
//! The client is created only when such a handler runs. Redirects are not
//! followed: only the address that the user has approved is called.

use std::io::Read as _;
use std::time::Duration;

use anyhook_model::{Handler, Scope};
use anyhook_util::env;
use anyhook_util::http::client_config;
use serde_json::Value;
use ureq::config::ConfigBuilder;
use ureq::http::Response;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::typestate::AgentScope;
use ureq::{Body, Proxy};

use crate::config::manifest;
use crate::run::exec::MAX_OUTPUT_BYTES;

/// Where Linux distributions and BSDs keep the certificates that they trust.
#[cfg(all(unix, not(target_vendor = "apple")))]
const SYSTEM_CERTIFICATES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/usr/local/etc/ssl/cert.pem",
];

#[cfg(all(unix, not(target_vendor = "apple")))]
const MAX_CERTIFICATES_BYTES: u64 = 16 * 1024 * 1024;

/// In the `env` of a hook, the first of these is its proxy.
const PROXY_VARIABLES: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// A request, ready to be sent.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub timeout: Duration,
    /// The proxy that the hook names in its `env`.
    pub proxy: Option<String>,
    /// Only the system's certificates count, and no proxy of the environment: a project
    /// can set variables through the agent.
    pub ignores_env: bool,
}

/// Builds the request of a handler and fills in the variables of its headers. The hosts
/// in `allow_plain` are the user's, and do not count for the administrator's hooks.
pub(crate) fn build_request(
    handler: &Handler,
    scope: Scope,
    body: Vec<u8>,
    allow_plain: &[String],
) -> Result<HttpRequest, String> {
    let url = handler.url.clone().ok_or("it has no `url`")?;
    if scope == Scope::Managed {
        check_address(&url, &[]).map_err(|_| {
            format!("`{url}` is not https; without TLS, a hook of the administrator may call this machine only")
        })?;
    } else {
        check_address(&url, allow_plain)?;
    }
    let mut headers = Vec::new();
    for (name, value) in &handler.headers {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let text = expand_variables(&text, &handler.allowed_env_vars, env::by_name)
            .map_err(|why| format!("header `{name}`: {why}"))?;
        headers.push((name.clone(), text));
    }
    Ok(HttpRequest {
        url,
        headers,
        body,
        timeout: manifest::timeout(handler),
        proxy: own_proxy(handler),
        ignores_env: scope == Scope::Managed,
    })
}

fn own_proxy(handler: &Handler) -> Option<String> {
    let value = PROXY_VARIABLES
        .iter()
        .find_map(|name| handler.env.get(*name));
    value.and_then(Value::as_str).map(str::to_owned)
}

/// The body of a successful response.
#[derive(Debug)]
pub struct ResponseText {
    pub text: String,
    /// There was more than [`MAX_OUTPUT_BYTES`] of it.
    pub is_cut: bool,
}

/// Sends a request.
pub fn send(request: &HttpRequest) -> Result<ResponseText, String> {
    let host = host(&request.url).unwrap_or_default();
    // The caller enforces the timeout; this only ends the thread behind it.
    let limit = request.timeout.saturating_add(Duration::from_secs(1));
    let mut config = client_config(limit);
    if request.ignores_env {
        config = config.tls_config(system_tls()?);
    }
    if is_loopback(&host) || request.ignores_env {
        config = config.proxy(None);
    }
    if let Some(proxy) = &request.proxy {
        let proxy = Proxy::new(proxy).map_err(|error| format!("its proxy: {error}"))?;
        config = config.proxy(Some(proxy));
    }
    let common = ["content-type", "accept"].map(|name| (name, "application/json"));
    let own = request.headers.iter();
    let own = own.map(|(name, value)| (name.as_str(), value.as_str()));
    let headers = common.into_iter().chain(own);
    let mut response = post_unread(config, &request.url, headers, &request.body)
        .map_err(|error| format!("POST {}: {error}", request.url))?;
    let status = response.status();
    if !status.is_success() {
        return Err(format!(
            "POST {}: the server answered {}",
            request.url,
            status.as_u16()
        ));
    }
    let reader = response.body_mut().as_reader();
    let mut body = Vec::new();
    let limit = MAX_OUTPUT_BYTES as u64 + 1;
    let read = reader.take(limit).read_to_end(&mut body);
    read.map_err(|error| format!("POST {}: {error}", request.url))?;
    let is_cut = body.len() > MAX_OUTPUT_BYTES;
    body.truncate(MAX_OUTPUT_BYTES);
    Ok(ResponseText {
        text: String::from_utf8_lossy(&body).into_owned(),
        is_cut,
    })
}

/// The response to a POST, and its body of at most `limit` bytes.
pub(crate) fn post<'a>(
    config: ConfigBuilder<AgentScope>,
    url: &str,
    headers: impl IntoIterator<Item = (&'a str, &'a str)>,
    body: &[u8],
    limit: u64,
) -> Result<(Response<Body>, Vec<u8>), ureq::Error> {
    let mut response = post_unread(config, url, headers, body)?;
    let reader = response.body_mut().with_config().limit(limit);
    let body = reader.read_to_vec()?;
    Ok((response, body))
}

fn post_unread<'a>(
    config: ConfigBuilder<AgentScope>,
    url: &str,
    headers: impl IntoIterator<Item = (&'a str, &'a str)>,
    body: &[u8],
) -> Result<Response<Body>, ureq::Error> {
    let agent: ureq::Agent = config.build().into();
    let headers = headers.into_iter();
    let post = headers.fold(agent.post(url), |post, (name, value)| {
        post.header(name, value)
    });
    post.send(body)
}

/// Trusts the system's own certificates, whatever the environment says.
fn system_tls() -> Result<TlsConfig, String> {
    let roots = system_roots()?;
    Ok(TlsConfig::builder().root_certs(roots).build())
}

/// The platform's verifier would read `SSL_CERT_FILE` and `SSL_CERT_DIR`.
#[cfg(all(unix, not(target_vendor = "apple")))]
fn system_roots() -> Result<RootCerts, String> {
    use ureq::tls::{PemItem, parse_pem};
    let files = SYSTEM_CERTIFICATES.iter().map(std::path::Path::new);
    let mut texts =
        files.filter_map(|file| anyhook_util::fs::read_bytes(file, MAX_CERTIFICATES_BYTES).ok());
    let text = texts
        .next()
        .ok_or("no file with the system's certificates was found; install `ca-certificates`")?;
    let certificates: Vec<_> = parse_pem(&text)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    Ok(RootCerts::new_with_certs(&certificates))
}

/// The system's verifier does not depend on the environment.
#[cfg(not(all(unix, not(target_vendor = "apple"))))]
#[expect(clippy::unnecessary_wraps, reason = "as on other systems")]
fn system_roots() -> Result<RootCerts, String> {
    Ok(RootCerts::PlatformVerifier)
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

/// Replaces `$NAME` and `${NAME}` by the variables that the handler may use.
fn expand_variables(
    text: &str,
    allowed: &[String],
    lookup: impl Fn(&str) -> Option<String>,
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
    fn only_encrypted_or_local_addresses_are_allowed() {
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
    fn headers_use_only_allowed_variables() {
        let allowed = ["KEY".to_owned(), "GONE".to_owned()];
        let lookup = |name: &str| (name != "GONE").then(|| format!("<{name}>"));
        let filled = |text| expand_variables(text, &allowed, lookup);
        assert_eq!(filled("Bearer $KEY!"), Ok("Bearer <KEY>!".to_owned()));
        assert_eq!(filled("${KEY}x$"), Ok("<KEY>x$".to_owned()));
        assert!(filled("$HOME").is_err());
        assert!(filled("$KEYS").is_err());
        assert!(filled("$GONE").is_err());
    }
}
