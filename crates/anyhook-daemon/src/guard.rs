//! Who is let in: the caller's `Host`, its `Origin`, and its token.
//!
//! A page in the user's browser can reach a loopback port. It cannot choose the
//! `Host` that the browser sends (so a rebound name is seen), nor leave out its
//! `Origin`, nor send JSON to another origin without asking first, which is never
//! granted here.

use std::net::IpAddr;

use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderName, Method, StatusCode};

use crate::app::App;
use crate::refusal::Refusal;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// What a route asks of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The shell of the page: holds nothing, open to all.
    Open,
    /// Open on loopback, a token elsewhere.
    Local,
    /// As [`Access::Local`], unless the daemon asks for the token everywhere,
    /// or a browser is calling.
    Hook,
    /// A token, everywhere.
    Token,
}

pub(crate) fn check(app: &App, access: Access, parts: &Parts) -> Result<(), Refusal> {
    let host = host_of(parts)?;
    if !host_allowed(app, &host.name) {
        return Err(Refusal::forbidden(
            "host",
            format!(
                "this daemon does not answer to the name `{}`; start it with that name allowed if it is yours",
                host.name
            ),
        ));
    }
    let browser = check_browser(access, parts, &host)?;
    let needed = match access {
        Access::Open => false,
        Access::Local => !app.loopback,
        Access::Hook => !app.loopback || app.require_token || browser,
        Access::Token => true,
    };
    if needed && !bearer(parts).is_some_and(|key| app.keys.fits(key)) {
        return Err(Refusal::new(
            StatusCode::UNAUTHORIZED,
            "token",
            "this needs the daemon's token: `Authorization: Bearer …`",
        ));
    }
    Ok(())
}

/// Whether a browser made this request for a page of ours; refuses those of others.
fn check_browser(access: Access, parts: &Parts, host: &Host) -> Result<bool, Refusal> {
    let header = |name: &HeaderName| {
        parts
            .headers
            .get(name)
            .map(|value| value.to_str().unwrap_or("?"))
    };
    let foreign = || Refusal::forbidden("origin", "a page of another origin has no business here");
    let mut browser = false;
    if parts.headers.get_all(ORIGIN).iter().count() > 1 {
        return Err(foreign());
    }
    if let Some(origin) = header(&ORIGIN) {
        let own = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"))
            .is_some_and(|rest| rest.eq_ignore_ascii_case(&host.full));
        if !own {
            return Err(foreign());
        }
        browser = true;
    }
    if let Some(site) = header(&FETCH_SITE) {
        let navigates = access == Access::Open
            && parts.method == Method::GET
            && header(&FETCH_MODE) == Some("navigate");
        if !matches!(site, "same-origin" | "none") && !navigates {
            return Err(foreign());
        }
        browser = true;
    }
    Ok(browser)
}

struct Host {
    /// As it was sent, with its port.
    full: String,
    name: String,
}

fn host_of(parts: &Parts) -> Result<Host, Refusal> {
    let mut sent = parts.headers.get_all(HOST).iter();
    let (Some(value), None) = (sent.next(), sent.next()) else {
        return Err(Refusal::bad("host", "exactly one `Host` header is needed"));
    };
    let wrong = || Refusal::bad("host", "the `Host` header cannot be read");
    let full = value.to_str().map_err(|_| wrong())?.to_owned();
    let authority: axum::http::uri::Authority = full.parse().map_err(|_| wrong())?;
    if full.contains('@') {
        return Err(wrong());
    }
    // `GET http://other/ HTTP/1.1` names a host too, and both must agree.
    if let Some(named) = parts.uri.authority()
        && !named.as_str().eq_ignore_ascii_case(&full)
    {
        return Err(wrong());
    }
    let name = authority.host().to_ascii_lowercase();
    Ok(Host { full, name })
}

fn host_allowed(app: &App, name: &str) -> bool {
    if name == "localhost" || app.hosts.iter().any(|host| host.eq_ignore_ascii_case(name)) {
        return true;
    }
    // A rebound name is never an address, so off loopback any address will do.
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(address) => !app.loopback || address.is_loopback(),
        Err(_) => false,
    }
}

fn bearer(parts: &Parts) -> Option<&str> {
    let value = parts.headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then_some(key.trim_start())
}
