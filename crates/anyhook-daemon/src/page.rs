//! The page: its files, the exchange of a one-time code, and the headers that keep it to itself.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::app::App;
use crate::body;
use crate::refusal::Refusal;

const INDEX: &str = include_str!("../assets/index.html");
const OPENAPI: &str = include_str!("../assets/openapi.json");

const FILES: [(&str, &str, &str); 7] = [
    ("app.css", "text/css", include_str!("../assets/app.css")),
    ("app.js", JS, include_str!("../assets/app.js")),
    ("api.js", JS, include_str!("../assets/api.js")),
    ("charts.js", JS, include_str!("../assets/charts.js")),
    ("dom.js", JS, include_str!("../assets/dom.js")),
    ("views.js", JS, include_str!("../assets/views.js")),
    (
        "icon.svg",
        "image/svg+xml",
        include_str!("../assets/icon.svg"),
    ),
];
const JS: &str = "text/javascript";

pub(crate) async fn index() -> Response {
    shell("text/html; charset=utf-8", INDEX)
}

pub(crate) async fn asset(Path(name): Path<String>) -> Result<Response, Refusal> {
    let (_, kind, text) = FILES
        .iter()
        .find(|(file, _, _)| *file == name)
        .ok_or_else(|| Refusal::not_found("the page has no such file"))?;
    Ok(shell(kind, text))
}

pub(crate) async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

/// A page brings the code of its link and gets a key for its requests.
pub(crate) async fn session(
    State(app): State<App>,
    request: Request<Body>,
) -> Result<Json<Value>, Refusal> {
    let body = body::json(request, &app.limits).await?;
    let key = body
        .get("code")
        .and_then(Value::as_str)
        .and_then(|code| app.keys.exchange(code));
    match key {
        Some(key) => Ok(Json(json!({ "token": key }))),
        None => Err(Refusal::new(
            StatusCode::UNAUTHORIZED,
            "code",
            "this link was used already, or is too old",
        )),
    }
}

pub(crate) async fn link(State(app): State<App>) -> Result<Json<Value>, Refusal> {
    let link = new_link(&app).map_err(|error| Refusal::internal(error.to_string()))?;
    Ok(Json(json!({ "link": link })))
}

/// The code is behind `#`: browsers send that part to nobody.
pub(crate) fn new_link(app: &App) -> std::io::Result<String> {
    Ok(format!("{}/#code={}", app.base, app.keys.new_link()?))
}

/// On every answer: nobody keeps it, guesses its type, or shows it on a page of theirs.
pub(crate) fn protect(headers: &mut HeaderMap) {
    put(
        headers,
        [
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::CACHE_CONTROL, "no-store"),
            (
                HeaderName::from_static("cross-origin-resource-policy"),
                "same-origin",
            ),
        ],
    );
}

/// On the page itself: events hold hostile text, and no other page may look at ours.
fn shell(kind: &'static str, text: &'static str) -> Response {
    let mut response = ([(header::CONTENT_TYPE, kind)], text).into_response();
    put(
        response.headers_mut(),
        [
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
        ],
    );
    response
}

fn put<const N: usize>(headers: &mut HeaderMap, lines: [(HeaderName, &'static str); N]) {
    for (name, value) in lines {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
