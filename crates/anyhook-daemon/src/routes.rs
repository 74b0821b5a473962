//! Every route, once: its method, its path, what it asks of its caller, what answers.
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

use crate::app::App;
use crate::guard::{self, Access};
use crate::refusal::Refusal;
use crate::{api, hooks, ingest, page, stream};

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
    GET "/events" Token api::events;
    GET "/events/{id}" Token api::event;
    GET "/sessions" Token api::sessions;
    GET "/sessions/{id}" Token api::session;
    GET "/stats" Token api::stats;
    GET "/stream" Token stream::sse;
    GET "/ws" Token stream::ws;
    POST "/ingest" Token ingest::post;
    GET "/metrics" Token api::metrics;
    POST "/link" Token page::link;
    GET "/openapi.json" Local page::openapi;
    GET "/" Open page::index;
    GET "/assets/{file}" Open page::asset;
    POST "/session" Open page::session;
};

pub(crate) fn router(app: App) -> Router {
    let mut router = Router::new();
    for route in ROUTES {
        let checked = (route.handler)().layer(from_fn_with_state((app.clone(), *route), check));
        router = router.route(route.path, checked);
    }
    router
        .fallback(|| async { Refusal::not_found("there is nothing at this path") })
        .with_state(app)
}

/// The answer to any request.
pub(crate) async fn answer(app: App, router: Router, request: Request<Body>) -> Response {
    let response = match agent_that_waits(&request) {
        Some((route, agent)) => {
            let run = |request| async {
                let answered = hooks::call(&app, &agent, None, request).await;
                answered.unwrap_or_else(IntoResponse::into_response)
            };
            guarded(&app, *route, request, run).await
        }
        None => match router.oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        },
    };
    finish(response)
}

/// An agent waits for every call of a hook, and the router takes as long as the
/// rest of the way. So a call whose path needs no second look goes past it.
fn agent_that_waits(request: &Request<Body>) -> Option<(&'static Route, String)> {
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

async fn check(
    State((app, route)): State<(App, Route)>,
    request: Request<Body>,
    next: Next,
) -> Response {
    guarded(&app, route, request, |request| next.run(request)).await
}

/// Runs what answers a route, for those who are let in.
async fn guarded<Answering: Future<Output = Response>>(
    app: &App,
    route: Route,
    request: Request<Body>,
    run: impl FnOnce(Request<Body>) -> Answering,
) -> Response {
    let (parts, body) = request.into_parts();
    let response = match guard::check(app, route.access, &parts) {
        Ok(()) => run(Request::from_parts(parts, body)).await,
        Err(refusal) => refusal.into_response(),
    };
    app.metrics
        .requested(route.method, route.path, response.status().as_u16());
    response
}

fn finish(mut response: Response) -> Response {
    // The framework's own refusals have other bodies; callers get one shape.
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        let allow = response.headers_mut().remove(http::header::ALLOW);
        response = Refusal::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method",
            "this path has another method",
        )
        .into_response();
        if let Some(allow) = allow {
            response.headers_mut().insert(http::header::ALLOW, allow);
        }
    }
    page::protect(response.headers_mut());
    response
}
