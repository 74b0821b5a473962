//! The web page: its files, the exchange of a one-time code, and its security headers.

use std::net::Ipv4Addr;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::app::App;
use crate::body;

const INDEX_HTML: &str = include_str!("../assets/index.html");
const OPENAPI_JSON: &str = include_str!("../assets/openapi.json");

const ASSETS: [(&str, &str, &str); 11] = [
    ("app.css", "text/css", include_str!("../assets/app.css")),
    ("app.js", JS_TYPE, include_str!("../assets/app.js")),
    ("api.js", JS_TYPE, include_str!("../assets/api.js")),
    (
        "approvals.js",
        JS_TYPE,
        include_str!("../assets/approvals.js"),
    ),
    ("charts.js", JS_TYPE, include_str!("../assets/charts.js")),
    ("cost.js", JS_TYPE, include_str!("../assets/cost.js")),
    ("dom.js", JS_TYPE, include_str!("../assets/dom.js")),
    ("filters.js", JS_TYPE, include_str!("../assets/filters.js")),
    ("story.js", JS_TYPE, include_str!("../assets/story.js")),
    ("views.js", JS_TYPE, include_str!("../assets/views.js")),
    (
        "icon.svg",
        "image/svg+xml",
        include_str!("../assets/icon.svg"),
    ),
];
const JS_TYPE: &str = "text/javascript";

pub(crate) async fn index() -> Response {
    page_response("text/html; charset=utf-8", INDEX_HTML)
}

pub(crate) async fn asset(Path(name): Path<String>) -> Result<Response, ApiError> {
    let (_, kind, text) = ASSETS
        .iter()
        .find(|(file, _, _)| *file == name)
        .ok_or_else(|| ApiError::not_found("there is no such file"))?;
    Ok(page_response(kind, text))
}

pub(crate) async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI_JSON).into_response()
}

/// Exchanges the code of a one-time link for a key that the page sends with its requests.
pub(crate) async fn session(
    State(app): State<App>,
    request: Request<Body>,
) -> Result<Json<Value>, ApiError> {
    let bytes = body::read_json_bytes(request, &app.config.limits).await?;
    let body = body::parse_json(&bytes)?;
    let code = body.get("code").and_then(Value::as_str);
    let key = code.and_then(|code| app.access_keys.exchange(code));
    let key = key.ok_or_else(|| {
        let message = "this link was already used or has expired";
        ApiError::new(StatusCode::UNAUTHORIZED, "code", message)
    })?;
    Ok(Json(json!({ "token": key })))
}

pub(crate) async fn link(State(app): State<App>) -> Result<Json<Value>, ApiError> {
    let link = new_link(&app).map_err(|error| ApiError::internal(error.to_string()))?;
    Ok(Json(json!({ "link": link })))
}

/// The code comes after `#`: browsers do not send that part.
pub(crate) fn new_link(app: &App) -> std::io::Result<String> {
    let mut address = app.config.listen;
    if address.ip().is_unspecified() {
        // A browser on this machine can open this one.
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    let code = app.access_keys.new_link()?;
    Ok(format!("http://{address}/#code={code}"))
}

/// For every response: it is not cached, not sniffed and not embedded in other pages.
pub(crate) fn add_security_headers(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-store"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// A file of the page: events hold hostile text, and no other page may frame or read it.
fn page_response(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ];
    (headers, text).into_response()
}
