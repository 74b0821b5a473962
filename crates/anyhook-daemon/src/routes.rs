//! The table of routes: method, path, required access, handler.
//!
//! The router is built from this table, and a test compares it with the OpenAPI document.

use axum::body::Body;
use axum::extract::State;
use axum::http::{Method, Request, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Router, http};
use tower::ServiceExt;

use crate::api_error::ApiError;
use crate::app::App;
use crate::connections::RequestTracker;
use crate::guard::{self, Access, Peer};
use crate::{api, approvals, challenge, hooks, ingest, page, stream};

#[derive(Debug, Clone, Copy)]
pub struct Route {
    pub method: &'static str,
    pub path: &'static str,
    pub access: Access,
    handler: fn() -> MethodRouter<App>,
}

macro_rules! routes {
    ($($method:ident $path:literal $access:ident $handler:path;)*) => {
        &[$(Route {
            method: stringify!($method),
            path: $path,
            access: Access::$access,
            handler: || routes!(@ $method, $handler),
        }),*]
    };
    (@ GET, $handler:path) => { get($handler) };
    (@ POST, $handler:path) => { post($handler) };
}

pub const ROUTES: &[Route] = routes! {
    POST "/hooks/{agent}" Hook hooks::post;
    POST "/challenge" Open challenge::post;
    GET "/events" Token api::events;
    GET "/events/{id}" Token api::event;
    GET "/sessions" Token api::sessions;
    GET "/sessions/{id}" Token api::session;
    GET "/stats" Token api::stats;
    GET "/usage" Token api::usage;
    GET "/stream" Token stream::sse;
    GET "/ws" Token stream::ws;
    POST "/ingest" Token ingest::post;
    GET "/approvals" Token approvals::list;
    POST "/approvals/{id}" Answer approvals::answer;
    GET "/metrics" Token api::metrics;
    POST "/link" Answer page::link;
    GET "/healthz" Local api::health;
    GET "/openapi.json" Local page::openapi;
    GET "/" Open page::index;
    GET "/assets/{file}" Open page::asset;
    POST "/session" Open page::session;
};

pub(crate) fn router(app: App) -> Router {
    let mut router = Router::new();
    for route in ROUTES {
        let checked =
            (route.handler)().layer(from_fn_with_state((app.clone(), *route), guard_middleware));
        router = router.route(route.path, checked);
    }
    router
        .fallback(|| async { ApiError::not_found("there is no such path") })
        .with_state(app)
}

/// Answers any request.
pub(crate) async fn respond(
    app: App,
    router: Router,
    mut request: Request<Body>,
    connection: ConnectionInfo,
) -> Response {
    let response = if let Some((route, agent)) = plain_hook_call(&request) {
        let run = |request| async {
            let answered =
                hooks::answer_call(&app, &agent, hooks::HookParams::default(), request).await;
            answered.unwrap_or_else(IntoResponse::into_response)
        };
        guarded(&app, *route, request, connection.peer, run).await
    } else {
        request.extensions_mut().insert(connection);
        match router.oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    };
    with_common_headers(response)
}

/// What a request's connection is known for.
#[derive(Clone)]
pub(crate) struct ConnectionInfo {
    pub peer: Peer,
    pub tracker: RequestTracker,
}

/// The agent and route of a hook call that needs no router: an agent is blocked until its
/// call is answered, and the router takes about as long as everything else when no hook runs.
fn plain_hook_call(request: &Request<Body>) -> Option<(&'static Route, String)> {
    let uri = request.uri();
    let name = uri.path().strip_prefix("/hooks/")?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_hook = request.method() == Method::POST
        && uri.query().is_none()
        && !name.is_empty()
        && name.bytes().all(is_plain);
    let mut hooks = ROUTES.iter().filter(|route| route.access == Access::Hook);
    Some((hooks.next().filter(|_| is_hook)?, name.to_owned()))
}

async fn guard_middleware(
    State((app, route)): State<(App, Route)>,
    request: Request<Body>,
    next: Next,
) -> Response {
    let connection = request.extensions().get::<ConnectionInfo>().cloned();
    let peer = connection.as_ref().map_or(Peer::Network, |it| it.peer);
    let shared = app.clone();
    let run = |request| async move {
        if !matches!(route.access, Access::Token | Access::Answer) {
            return next.run(request).await;
        }
        // Whoever has the token may take its time.
        if let Some(connection) = connection {
            connection.tracker.begin();
        }
        match shared.reader_slots.try_acquire() {
            Ok(_slot) => next.run(request).await,
            Err(_) => {
                ApiError::busy("too many requests are running; hooks still run").into_response()
            }
        }
    };
    guarded(&app, route, request, peer, run).await
}

/// Runs a route's handler if the request passes the route's checks.
async fn guarded<Running: Future<Output = Response>>(
    app: &App,
    route: Route,
    request: Request<Body>,
    peer: Peer,
    run: impl FnOnce(Request<Body>) -> Running,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let response = match guard::check(app, route.access, peer, &parts) {
        Ok(signed) => {
            if let Some(signed) = signed {
                parts.extensions.insert(signed);
            }
            if peer == Peer::SameUser {
                parts.extensions.insert(peer);
            }
            run(Request::from_parts(parts, body)).await
        }
        Err(error) => error.into_response(),
    };
    app.metrics
        .record_request(route.method, route.path, response.status().as_u16());
    response
}

fn with_common_headers(mut response: Response) -> Response {
    // The framework's own errors have another shape; callers get one.
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        let allow = response.headers_mut().remove(http::header::ALLOW);
        response = ApiError::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method",
            "this path does not support this method",
        )
        .into_response();
        if let Some(allow) = allow {
            response.headers_mut().insert(http::header::ALLOW, allow);
        }
    }
    page::add_security_headers(response.headers_mut());
    response
}
