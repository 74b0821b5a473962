//! `POST /hooks/{agent}`: an agent calls, hooks run, the agent is answered.

use std::fmt::Write;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value;

use crate::app::App;
use crate::body;
use crate::host::{HookReply, HookRequest};
use crate::refusal::Refusal;
use crate::wrapper::{self, Form};

/// The exit code that a dispatcher should end with.
pub const EXIT_HEADER: HeaderName = HeaderName::from_static("x-anyhook-exit-code");
/// What a dispatcher should write to its standard error, percent-encoded UTF-8.
pub const STDERR_HEADER: HeaderName = HeaderName::from_static("x-anyhook-stderr");

/// Some clients give up on lines of 64 KiB, and encoding may triple the text.
const STDERR_LIMIT: usize = 16 * 1024;

#[derive(Debug, Deserialize)]
pub(crate) struct Params {
    event: Option<String>,
}

pub(crate) async fn post(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(params): Query<Params>,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let begun = Instant::now();
    let slug = app.slug(&name).map(str::to_owned).ok_or_else(|| {
        let mut known: Vec<_> = app.agents.keys().map(String::as_str).collect();
        known.sort_unstable();
        Refusal::new(
            StatusCode::NOT_FOUND,
            "agent",
            format!(
                "no agent is called `{}`; known are {}",
                name.chars().take(60).collect::<String>(),
                known.join(", ")
            ),
        )
    })?;
    let body = body::json(request, &app.limits).await?;
    let Value::Object(body) = body else {
        return Err(Refusal::bad("shape", "the body must be a JSON object"));
    };
    let call = match wrapper::unwrap(&body) {
        Some(wrapped) => {
            if let Some(source) = &wrapped.source
                && app.slug(source).is_some_and(|other| other != slug)
            {
                return Err(Refusal::bad(
                    "source",
                    format!("the body says source `{source}`, the path says `{name}`"),
                ));
            }
            match wrapper::form(&slug) {
                Some(form) => {
                    let (event, payload) = form.native(wrapped);
                    Call::new(slug, Some(event), payload, Some(form))
                }
                None => Call::new(
                    slug,
                    Some(wrapped.hook_type),
                    Value::Object(wrapped.input),
                    None,
                ),
            }
        }
        None => Call::new(slug, params.event, Value::Object(body), None),
    };
    call.answer(&app, begun).await
}

struct Call {
    request: HookRequest,
    form: Option<Form>,
}

impl Call {
    fn new(agent: String, event: Option<String>, payload: Value, form: Option<Form>) -> Self {
        Self {
            request: HookRequest {
                agent,
                event,
                payload,
            },
            form,
        }
    }

    async fn answer(self, app: &App, begun: Instant) -> Result<Response, Refusal> {
        let agent = self.request.agent.clone();
        let event = self.request.event.clone().unwrap_or_default();
        let failed = || Refusal::internal("the hooks could not be run");
        let slots = app.hook_slots.clone();
        let slot = slots.acquire_owned().await.map_err(|_| failed())?;
        let shared = app.clone();
        let reply = tokio::task::spawn_blocking(move || {
            // Held until the hooks have ended, even when the caller has hung up.
            let _slot = slot;
            let reply = shared.host.handle(self.request);
            keep(&shared, &reply);
            reply
        })
        .await
        .map_err(|_| failed())?;
        let decision = reply.response.decision.map_or("none", |it| it.as_str());
        app.metrics.hooked(&agent, decision, begun.elapsed());
        Ok(match self.form {
            Some(form) => {
                let told = form.told(&event, &reply);
                let headers = headers(told.exit, &told.stderr);
                (headers, axum::Json(told.body)).into_response()
            }
            None => native(reply),
        })
    }
}

/// The journal brings the event into the store; where there is none, we do.
fn keep(app: &App, reply: &HookReply) {
    if app.has_journal {
        app.nudge.now();
    } else if let Some(record) = &reply.record {
        match app.store.ingest(std::slice::from_ref(record)) {
            Ok(done) => app.metrics.ingested(done),
            Err(_) => app.metrics.store_failed(),
        }
    }
}

/// Standard output, byte for byte.
fn native(reply: HookReply) -> Response {
    let answer = reply.answer;
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&answer.stdout).is_ok();
    let mut headers = headers(answer.exit, &answer.stderr);
    let kind = if is_json || answer.stdout.is_empty() {
        "application/json"
    } else {
        "text/plain; charset=utf-8"
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    (headers, answer.stdout).into_response()
}

fn headers(exit: i32, stderr: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(EXIT_HEADER, HeaderValue::from(exit));
    if !stderr.is_empty()
        && let Ok(value) = HeaderValue::from_str(&percent_encoded(stderr))
    {
        headers.insert(STDERR_HEADER, value);
    }
    headers
}

/// Everything but letters, digits and `-._~`; cut, with an ellipsis, when it is too long.
fn percent_encoded(text: &str) -> String {
    let mut end = text.len().min(STDERR_LIMIT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let cut = if end < text.len() { "…" } else { "" };
    let mut encoded = String::with_capacity(end * 2);
    for byte in text.bytes().take(end).chain(cut.bytes()) {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}
