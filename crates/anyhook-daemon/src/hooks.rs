//! `POST /hooks/{agent}`: reads an agent's call, has its hooks run, sends the answer.
//!
//! Renders no answer: what the host returns, and has recorded, is sent unchanged.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use anyhook_model::Answer;
use anyhook_util::challenge::AnswerContent;
use anyhook_util::hash::sha256;
use anyhook_util::{headers, percent};
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::api_error::ApiError;
use crate::app::App;
use crate::body::{self, header_text};
use crate::challenge::{self, PROOF_HEADER, SignedCall};
use crate::guard::Peer;
use crate::host::{FailureReply, HookReply, HookRequest, HostSetup, PreparedCall};
use crate::journal_ingest::WakeReason;
use crate::slots::folder_hint;
use crate::wrapped::{WrappedCall, WrappedForm};

/// The exit code that a dispatcher should end with.
pub(crate) const EXIT_HEADER: HeaderName = HeaderName::from_static(headers::EXIT_CODE);
/// What a dispatcher should write to its standard error, percent-encoded UTF-8.
pub(crate) const STDERR_HEADER: HeaderName = HeaderName::from_static(headers::STDERR);

/// Where a dispatcher was started, percent-encoded UTF-8.
pub(crate) const CWD_HEADER: HeaderName = HeaderName::from_static(headers::CWD);
/// `1`: a dispatcher knows that no user can be asked.
pub(crate) const UNATTENDED_HEADER: HeaderName = HeaderName::from_static(headers::UNATTENDED);

/// The agent's entry that started a dispatcher, percent-encoded UTF-8.
const ENTRY_HEADER: HeaderName = HeaderName::from_static(headers::ENTRY);

/// The project folders in a dispatcher's environment, percent-encoded UTF-8, separated by
/// commas.
pub(crate) const PROJECTS_HEADER: HeaderName = HeaderName::from_static(headers::PROJECTS);

/// Some clients reject header lines of 64 KiB, and encoding may triple the text.
const MAX_STDERR_BYTES: usize = 16 * 1024;
/// Beyond the timeouts of a call's hooks, for everything else that the call does.
const TIME_LIMIT_MARGIN: Duration = Duration::from_secs(30);

#[derive(Debug, Default, Deserialize)]
pub(crate) struct HookParams {
    /// For agents whose payload does not contain it.
    event: Option<String>,
    /// The scope of the agent's own http entry that makes this call.
    scope: Option<String>,
    /// How many seconds the agent waits for the answer.
    timeout: Option<f64>,
    /// Where the caller looks for hooks, as [`HostSetup::folders`] says it.
    folders: Option<String>,
}

pub(crate) async fn post(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(params): Query<HookParams>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    answer_call(&app, &name, params, request).await
}

/// `name` is the agent as the caller spells it.
pub(crate) async fn answer_call(
    app: &App,
    name: &str,
    params: HookParams,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let started = Instant::now();
    let agent = known_agent(app, name)?;
    let headers = request.headers();
    let cwd = header_text(headers, &CWD_HEADER).and_then(percent::decode);
    let unattended = header_text(headers, &UNATTENDED_HEADER).is_some_and(|value| value != "0");
    let entry = header_text(headers, &ENTRY_HEADER).and_then(percent::decode);
    let http_entry = || Some(format!("{agent}\thttp {}", params.scope.as_deref()?));
    let entry = entry.or_else(http_entry);
    let is_http_entry = params.scope.is_some();
    let projects = header_text(headers, &PROJECTS_HEADER).map(decode_list);
    let signed = request.extensions().get::<SignedCall>().cloned();
    let can_fall_back = signed.is_some() || request.extensions().get::<Peer>().is_some();
    if is_http_entry || can_fall_back {
        check_setup(&app.setup, params.folders.as_deref())?;
    }
    let bytes = body::read_json_bytes(request, &app.config.limits).await?;
    if let Some(signed) = &signed {
        check_hash(signed, &bytes)?;
    }
    let request = HookRequest {
        agent,
        cwd,
        projects: projects.unwrap_or_default(),
        unattended,
        // A dispatcher of anyhook's own leaves it to the agent where that can.
        must_not_ask: unattended && !can_fall_back,
        entry,
        is_http_entry,
        received: Some(started),
        answer_limit: params
            .timeout
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        ..HookRequest::default()
    };
    let request = match wrapped_call(&bytes)? {
        Some(wrapped) => unwrapped(app, name, request, wrapped)?,
        None => HookRequest {
            event: params.event,
            payload: bytes.into(),
            ..request
        },
    };
    let agent = request.agent.clone();
    let mut reply = run_hooks(app, request, can_fall_back).await?;
    let decision = reply.decision.map_or("none", |it| it.as_str());
    app.metrics
        .record_hook_call(&agent, decision, started.elapsed());
    if is_http_entry {
        reply.answer.stdout = body_of_http_entry(&reply.answer)?;
    }
    match signed.zip(app.access_keys.token()) {
        Some((signed, token)) => signed_response(reply, &signed, token),
        None => Ok(response(reply)),
    }
}

/// A call from an entry of anyhook's own gets no answer from a daemon that does not run the
/// caller's hooks, such as one of another user on the same port: an error makes the caller
/// run them itself, or makes the agent block.
fn check_setup(setup: &HostSetup, callers_folders: Option<&str>) -> Result<(), ApiError> {
    let why = if setup.off {
        "this daemon runs no hooks: it was started with ANYHOOK=0"
    } else if callers_folders.is_some_and(|folders| folders != setup.folders) {
        "this daemon looks for hooks in other folders than the caller: it is another user's, or \
         was started with another HOME, XDG_CONFIG_HOME or ANYHOOK_CONFIG_DIR"
    } else {
        return Ok(());
    };
    Err(ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "other-hooks",
        why,
    ))
}

/// The answer to an agent that reads nothing but the body, and takes an empty one, or an
/// error, for a failed hook. An exit code that decides must be such an error.
fn body_of_http_entry(answer: &Answer) -> Result<String, ApiError> {
    match (answer.exit, answer.stdout.trim()) {
        (0, "") => Ok("{}".to_owned()),
        (0, _) => Ok(answer.stdout.clone()),
        _ => Err(ApiError::internal(answer.stderr.trim())),
    }
}

fn decode_list(text: &str) -> Vec<String> {
    text.split(',').filter_map(percent::decode).collect()
}

fn check_hash(signed: &SignedCall, body: &[u8]) -> Result<(), ApiError> {
    if sha256(body) == signed.body_sha256 {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::UNAUTHORIZED,
        "proof",
        "the body is not the one that its sender has signed",
    ))
}

/// An answer with a proof that it is this daemon's answer to this call.
fn signed_response(
    reply: HookReply,
    signed: &SignedCall,
    token: &str,
) -> Result<Response, ApiError> {
    let stdout = reply.answer.stdout.clone();
    let mut response = response(reply);
    let headers = response.headers();
    let content = AnswerContent {
        exit: header_text(headers, &EXIT_HEADER).unwrap_or_default(),
        stderr: header_text(headers, &STDERR_HEADER).unwrap_or_default(),
        body: stdout.as_bytes(),
    };
    let proof = challenge::header_value(&signed.nonces.answer_proof(token, &content))?;
    response.headers_mut().insert(PROOF_HEADER, proof);
    Ok(response)
}

fn known_agent(app: &App, name: &str) -> Result<String, ApiError> {
    app.slug(name).map(str::to_owned).ok_or_else(|| {
        let mut known: Vec<_> = app.agents.keys().map(String::as_str).collect();
        known.sort_unstable();
        ApiError::new(
            StatusCode::NOT_FOUND,
            "agent",
            format!(
                "unknown agent `{}`; known agents: {}",
                name.chars().take(60).collect::<String>(),
                known.join(", ")
            ),
        )
    })
}

/// The body as a wrapped call; `None` for a native payload, which only its adapter parses.
fn wrapped_call(bytes: &[u8]) -> Result<Option<WrappedCall>, ApiError> {
    let is_object = bytes.trim_ascii_start().first() == Some(&b'{');
    let text = std::str::from_utf8(bytes).ok().filter(|_| is_object);
    // A JSON key can also be written with escapes: `hook\u005ftype`.
    let may_be_wrapped = |text: &str| text.contains("hook_type") || text.contains("\\u00");
    if text.is_some_and(|text| !may_be_wrapped(text)) {
        return Ok(None);
    }
    match body::parse_json(bytes) {
        Ok(Value::Object(body)) => Ok(WrappedCall::from_body(&body)),
        // Adapters accept what a strict parser rejects, such as half a surrogate pair.
        Err(error) => match text.map(serde_json::from_str::<WrapperKeys>) {
            Some(Ok(keys)) if keys.hook_type.is_some() && keys.input_data.is_some() => Err(error),
            _ => Ok(None),
        },
        // What is no object at all is rejected, unless the agent has an answer to that.
        Ok(_) => Ok(None),
    }
}

/// The keys of a wrapped call, in JSON whose values are not checked.
#[derive(Deserialize)]
struct WrapperKeys {
    hook_type: Option<IgnoredAny>,
    input_data: Option<IgnoredAny>,
}

fn not_an_object() -> ApiError {
    ApiError::bad_request("shape", "the body must be a JSON object")
}

fn unwrapped(
    app: &App,
    name: &str,
    request: HookRequest,
    wrapped: WrappedCall,
) -> Result<HookRequest, ApiError> {
    if let Some(source) = &wrapped.source
        && app.slug(source).is_some_and(|other| other != request.agent)
    {
        return Err(ApiError::bad_request(
            "source",
            format!("the body has source `{source}`, but the path has `{name}`"),
        ));
    }
    let form = WrappedForm::for_agent(&request.agent);
    let (event, payload) = form.native_payload(wrapped);
    Ok(HookRequest {
        event: Some(event),
        payload: payload.to_string().into_bytes(),
        form: Some(form),
        ..request
    })
}

/// `can_fall_back`: the caller runs the hooks itself if this fails.
async fn run_hooks(
    app: &App,
    request: HookRequest,
    can_fall_back: bool,
) -> Result<HookReply, ApiError> {
    // Most events run nothing, and then moving to another thread costs more than the work.
    // A disk that hangs must not stop every serving thread, so one of them never does this.
    let pending = match app.inline_slots.try_acquire() {
        Ok(_slot) => {
            let prepared = app.host.clone().prepare(request);
            if prepared.is_quiet() {
                return run_prepared(app, prepared);
            }
            Ok(prepared)
        }
        Err(_) => Err(request),
    };
    let (project, failure) = match &pending {
        Ok(prepared) => (prepared.project().unwrap_or_default(), prepared.failure()),
        Err(request) => (folder_hint(&request.payload), None),
    };
    let failure = failure.filter(|_| !can_fall_back);
    let limit = app.config.limits.hook_start_timeout;
    let waiting = app.hook_slots.acquire(project);
    let Ok(slot) = tokio::time::timeout(limit, waiting).await else {
        return not_run(failure, "too many calls are running").await;
    };
    let (started, start) = oneshot::channel();
    let shared = app.clone();
    let mut running = tokio::task::spawn_blocking(move || {
        // Held until the hooks have ended, even when the caller has hung up.
        let _slot = slot;
        let prepared = pending.unwrap_or_else(|request| shared.host.clone().prepare(request));
        let _ = started.send(prepared.time_limit());
        run_prepared(&shared, prepared)
    });
    // A disk that hangs must not make the caller wait for ever, and hooks have timeouts. The
    // thread cannot be ended; it keeps its slot.
    let finished = match tokio::time::timeout(limit, start).await {
        Err(_) => None,
        Ok(Ok(Some(time_limit))) => {
            let limit = time_limit.saturating_add(TIME_LIMIT_MARGIN);
            tokio::time::timeout(limit, &mut running).await.ok()
        }
        Ok(_) => Some(running.await),
    };
    match finished {
        Some(Ok(reply)) => reply,
        Some(Err(_)) => Err(ApiError::internal("the hooks could not be run")),
        None => not_run(failure, "finding or running the hooks took too long").await,
    }
}

/// The answer to a call whose hooks did not run, or did not end.
async fn not_run(failure: Option<FailureReply>, why: &'static str) -> Result<HookReply, ApiError> {
    // Reads the managed policy.
    let reply = tokio::task::spawn_blocking(move || failure.and_then(|failure| failure(why)));
    let unavailable = || ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", why);
    reply.await.ok().flatten().ok_or_else(unavailable)
}

fn run_prepared(app: &App, prepared: Box<dyn PreparedCall>) -> Result<HookReply, ApiError> {
    if let Some(payload) = prepared.undecoded() {
        check_object(payload)?;
    }
    let reply = prepared.run();
    // The journal brings the event to the store; without one, it is stored here.
    if app.config.journal.is_some() {
        if let Some(wakeup) = app.journal_wakeup.get() {
            // Fails if a wakeup is pending already.
            let _ = wakeup.try_send(WakeReason::NewLines);
        }
    } else if let Some(record) = &reply.record {
        match app.store.ingest(std::slice::from_ref(record)) {
            Ok(done) => app.metrics.record_ingest(done),
            Err(_) => app.metrics.record_store_failure(),
        }
    }
    Ok(reply)
}

/// Rejects what is not JSON. A JSON object that an adapter does not understand gets the
/// agent's own answer to that instead.
fn check_object(payload: &[u8]) -> Result<(), ApiError> {
    let text = std::str::from_utf8(payload).ok();
    if text.is_some_and(|text| serde_json::from_str::<WrapperKeys>(text).is_ok()) {
        return Ok(());
    }
    match body::parse_json(payload)? {
        Value::Object(_) => Ok(()),
        _ => Err(not_an_object()),
    }
}

/// Standard output as the body, byte for byte.
fn response(reply: HookReply) -> Response {
    let answer = reply.answer;
    let is_json =
        answer.stdout.is_empty() || serde_json::from_str::<IgnoredAny>(&answer.stdout).is_ok();
    let content_type = if is_json {
        "application/json"
    } else {
        "text/plain; charset=utf-8"
    };
    let mut headers = HeaderMap::new();
    headers.insert(EXIT_HEADER, HeaderValue::from(answer.exit));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    if !answer.stderr.is_empty()
        && let Ok(value) = HeaderValue::from_str(&percent::encode(&shortened(&answer.stderr)))
    {
        headers.insert(STDERR_HEADER, value);
    }
    (headers, answer.stdout).into_response()
}

/// Cut, with an ellipsis, when it is too long for a header.
fn shortened(text: &str) -> Cow<'_, str> {
    let mut end = text.len().min(MAX_STDERR_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    match text.get(..end) {
        Some(start) if end < text.len() => format!("{start}…").into(),
        _ => text.into(),
    }
}
