//! Request checks: the caller's `Host`, its `Origin` and its token.
//!
//! A page in the user's browser can reach a loopback port. It cannot choose the
//! `Host` that the browser sends (so DNS rebinding is noticed), nor leave out its
//! `Origin`, nor send JSON to another origin without a preflight request, which is
//! never granted here.

use std::net::IpAddr;

use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderName, Method, StatusCode};

use crate::api_error::ApiError;
use crate::app::App;
use crate::body::header_text;
use crate::challenge::{self, SignedCall};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// What a route requires of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Nothing: the page's own files, which hold no data, and the challenge.
    Open,
    /// Nothing on loopback, the token elsewhere.
    Local,
    /// As [`Access::Local`], but the token if the daemon is configured to require it or a
    /// browser is calling.
    Hook,
    /// The token.
    Token,
    /// The token, by the socket too: a program of the user is not the user.
    Answer,
}

/// How a request reached the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    Network,
    /// By the socket, from a process of the daemon's own user, who could read the token too.
    SameUser,
}

/// Also returns what the sender of a signed call has proven.
pub(crate) fn check(
    app: &App,
    access: Access,
    peer: Peer,
    parts: &Parts,
) -> Result<Option<SignedCall>, ApiError> {
    let host = host_header(parts)?;
    if !host_allowed(app, &host.name) {
        let name = host.name;
        return Err(ApiError::forbidden(
            "host",
            format!("unknown host name `{name}`; if it is yours, use `--allow-host {name}`"),
        ));
    }
    let browser = check_browser(access, parts, &host)?;
    if access == Access::Hook
        && let Some(signed) = challenge::signed_call(app, parts)?
    {
        return Ok(Some(signed));
    }
    let needed = match access {
        Access::Answer => true,
        _ if peer == Peer::SameUser => false,
        Access::Open => false,
        Access::Local => !app.config.is_loopback(),
        Access::Hook => !app.config.is_loopback() || app.config.require_token || browser,
        Access::Token => true,
    };
    if needed && !bearer_token(parts).is_some_and(|key| app.access_keys.accepts(key)) {
        return Err(ApiError::new(
            StatusCode::UNAUTHORIZED,
            "token",
            "the daemon's token is missing or wrong; send `Authorization: Bearer <TOKEN>`",
        ));
    }
    Ok(None)
}

/// Whether a browser made this request for the daemon's own page; rejects other pages.
fn check_browser(access: Access, parts: &Parts, host: &HostHeader) -> Result<bool, ApiError> {
    let header = |name: &HeaderName| {
        parts
            .headers
            .get(name)
            .map(|value| value.to_str().unwrap_or("?"))
    };
    let foreign_origin = || {
        ApiError::forbidden(
            "origin",
            "requests from pages of another origin are not allowed",
        )
    };
    let mut browser = false;
    if parts.headers.get_all(ORIGIN).iter().count() > 1 {
        return Err(foreign_origin());
    }
    if let Some(origin) = header(&ORIGIN) {
        let own = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"))
            .is_some_and(|rest| rest.eq_ignore_ascii_case(&host.full));
        if !own {
            return Err(foreign_origin());
        }
        browser = true;
    }
    if let Some(site) = header(&FETCH_SITE) {
        let navigates = access == Access::Open
            && parts.method == Method::GET
            && header(&FETCH_MODE) == Some("navigate");
        if !matches!(site, "same-origin" | "none") && !navigates {
            return Err(foreign_origin());
        }
        browser = true;
    }
    Ok(browser)
}

struct HostHeader {
    /// As it was sent, with its port.
    full: String,
    /// In lower case, without its port.
    name: String,
}

fn host_header(parts: &Parts) -> Result<HostHeader, ApiError> {
    let mut sent = parts.headers.get_all(HOST).iter();
    let (Some(value), None) = (sent.next(), sent.next()) else {
        return Err(ApiError::bad_request(
            "host",
            "send exactly one `Host` header",
        ));
    };
    let invalid = || ApiError::bad_request("host", "the `Host` header is invalid");
    let full = value.to_str().map_err(|_| invalid())?.to_owned();
    let authority: axum::http::uri::Authority = full.parse().map_err(|_| invalid())?;
    if full.contains('@') {
        return Err(invalid());
    }
    // `GET http://other/ HTTP/1.1` names a host too; both must be the same.
    if let Some(named) = parts.uri.authority()
        && !named.as_str().eq_ignore_ascii_case(&full)
    {
        return Err(invalid());
    }
    let name = authority.host().to_ascii_lowercase();
    Ok(HostHeader { full, name })
}

fn host_allowed(app: &App, name: &str) -> bool {
    let is_name = |host: &String| host.eq_ignore_ascii_case(name);
    if name == "localhost" || app.config.hosts.iter().any(is_name) {
        return true;
    }
    // DNS rebinding needs a name, so a daemon that is not on loopback accepts any address.
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(address) => !app.config.is_loopback() || address.is_loopback(),
        Err(_) => false,
    }
}

fn bearer_token(parts: &Parts) -> Option<&str> {
    let value = header_text(&parts.headers, &AUTHORIZATION)?;
    let (scheme, key) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then_some(key.trim_start())
}
