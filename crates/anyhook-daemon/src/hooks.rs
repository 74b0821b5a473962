//! `POST /hooks/{agent}`: an agent calls, hooks run, the agent is answered.

use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::app::App;
use crate::body;
use crate::host::{HookReply, HookRequest};
use crate::refusal::Refusal;
use crate::tail;
use crate::wrapper::{self, Form};

/// The exit code that a dispatcher should end with.
pub const EXIT_HEADER: HeaderName = HeaderName::from_static("x-anyhook-exit-code");
/// What a dispatcher should write to its standard error, percent-encoded UTF-8.
pub const STDERR_HEADER: HeaderName = HeaderName::from_static("x-anyhook-stderr");

/// Where a dispatcher was started, percent-encoded UTF-8.
pub const CWD_HEADER: HeaderName = HeaderName::from_static("x-anyhook-cwd");
/// `1`: a dispatcher knows that nobody can be asked.
pub const UNATTENDED_HEADER: HeaderName = HeaderName::from_static("x-anyhook-unattended");

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
    call(&app, &name, params.event, request).await
}

/// `name` is an agent's, as the caller spells it; `event` is for those whose
/// payload does not say it.
pub(crate) async fn call(
    app: &App,
    name: &str,
    event: Option<String>,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let begun = Instant::now();
    let slug = app.slug(name).map(str::to_owned).ok_or_else(|| {
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
    let caller = Caller::of(request.headers());
    let bytes = body::json_bytes(request, &app.limits).await?;
    let is_plain = is_plain(&bytes);
    let call = if !is_plain && is_wrapped(&bytes)? {
        wrapped(app, slug, name, &bytes)?
    } else {
        Call {
            request: HookRequest {
                agent: slug,
                event,
                payload: bytes.into(),
                ..HookRequest::default()
            },
            form: None,
            is_read: !is_plain,
        }
    };
    call.of(caller).answer(app, begun).await
}

/// What a dispatcher says of itself.
struct Caller {
    cwd: Option<String>,
    unattended: bool,
}

impl Caller {
    fn of(headers: &HeaderMap) -> Self {
        let text = |name| {
            let value: Option<&HeaderValue> = headers.get(name);
            value.and_then(|value| value.to_str().ok())
        };
        Self {
            cwd: text(CWD_HEADER).and_then(percent_decoded),
            unattended: text(UNATTENDED_HEADER).is_some_and(|value| value != "0"),
        }
    }
}

/// Whether a body can only be a native payload, if it is JSON.
fn is_plain(bytes: &[u8]) -> bool {
    let has_key = |text: &str| text.contains("input_data") || text.contains('\\');
    bytes.trim_ascii_start().first() == Some(&b'{')
        && std::str::from_utf8(bytes).is_ok_and(|text| !has_key(text))
}

/// Whether a body is the seed's wrapper, by its keys alone: a native payload is
/// read once, by its adapter.
fn is_wrapped(bytes: &[u8]) -> Result<bool, Refusal> {
    #[derive(Deserialize)]
    struct Keys {
        hook_type: Option<IgnoredAny>,
        input_data: Option<IgnoredAny>,
    }
    // A list would read as a struct, too; and what is skipped is not looked at, so
    // whether it is text is asked here.
    let is_object = bytes.trim_ascii_start().first() == Some(&b'{');
    if is_object
        && let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(keys) = serde_json::from_str::<Keys>(text)
    {
        return Ok(keys.hook_type.is_some() && keys.input_data.is_some());
    }
    match body::parse(bytes)? {
        Value::Object(body) => {
            Ok(body.contains_key("hook_type") && body.contains_key("input_data"))
        }
        _ => Err(Refusal::bad("shape", "the body must be a JSON object")),
    }
}

fn wrapped(app: &App, slug: String, name: &str, bytes: &[u8]) -> Result<Call, Refusal> {
    let Value::Object(body) = body::parse(bytes)? else {
        return Err(Refusal::bad("shape", "the body must be a JSON object"));
    };
    let Some(wrapped) = wrapper::unwrap(&body) else {
        return Ok(Call::new(slug, None, &Value::Object(body), None));
    };
    if let Some(source) = &wrapped.source
        && app.slug(source).is_some_and(|other| other != slug)
    {
        return Err(Refusal::bad(
            "source",
            format!("the body says source `{source}`, the path says `{name}`"),
        ));
    }
    Ok(if let Some(form) = wrapper::form(&slug) {
        let (event, payload) = form.native(wrapped);
        Call::new(slug, Some(event), &payload, Some(form))
    } else {
        let payload = Value::Object(wrapped.input);
        Call::new(slug, Some(wrapped.hook_type), &payload, None)
    })
}

struct Call {
    request: HookRequest,
    form: Option<Form>,
    /// The payload is known to be a JSON object.
    is_read: bool,
}

impl Call {
    fn new(agent: String, event: Option<String>, payload: &Value, form: Option<Form>) -> Self {
        Self {
            request: HookRequest {
                agent,
                event,
                payload: payload.to_string().into_bytes(),
                ..HookRequest::default()
            },
            form,
            is_read: true,
        }
    }

    fn of(mut self, caller: Caller) -> Self {
        self.request.cwd = caller.cwd;
        self.request.unattended = caller.unattended;
        self
    }

    async fn answer(self, app: &App, begun: Instant) -> Result<Response, Refusal> {
        let agent = self.request.agent.clone();
        let event = self.request.event.clone().unwrap_or_default();
        let failed = || Refusal::internal("the hooks could not be run");
        if let Some(pause) = tail::pause(app.metrics.behind.load(Ordering::Relaxed)) {
            tokio::time::sleep(pause).await;
        }
        let reply = match at_once(app, self.request) {
            Ok(reply) => reply,
            Err(request) => {
                if !self.is_read {
                    is_wrapped(&request.payload)?;
                }
                let slots = app.hook_slots.clone();
                let slot = slots.acquire_owned().await.map_err(|_| failed())?;
                let shared = app.clone();
                tokio::task::spawn_blocking(move || {
                    // Held until the hooks have ended, even when the caller has hung up.
                    let _slot = slot;
                    let reply = shared.host.handle(request);
                    keep(&shared, &reply);
                    reply
                })
                .await
                .map_err(|_| failed())?
            }
        };
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

/// Most events run nothing, and then another thread would cost more than the
/// work. A disk that does not answer must not stop those who serve, so one of
/// them never does this.
fn at_once(app: &App, request: HookRequest) -> Result<HookReply, HookRequest> {
    let Ok(_permit) = app.at_once.try_acquire() else {
        return Err(request);
    };
    let reply = app.host.handle_at_once(request)?;
    keep(app, &reply);
    Ok(reply)
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
    let is_json =
        answer.stdout.is_empty() || serde_json::from_str::<IgnoredAny>(&answer.stdout).is_ok();
    let mut headers = headers(answer.exit, &answer.stderr);
    let kind = if is_json {
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

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}
