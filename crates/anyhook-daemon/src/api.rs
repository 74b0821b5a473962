//! Read-only routes: events, one event, sessions, one session, statistics, metrics.

use std::time::Duration;

use anyhook_store::{EventDetail, EventFilter, Page, PageQuery, StoreError};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;

use crate::api_error::ApiError;
use crate::app::App;

const METRICS_STORE_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) type QueryResult<T> = Result<Query<T>, QueryRejection>;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventParams {
    agent: Option<String>,
    session: Option<String>,
    event: Option<String>,
    decision: Option<String>,
    tool: Option<String>,
    machine: Option<String>,
    user_id: Option<String>,
    project_id: Option<String>,
    workflow_id: Option<String>,
    since: Option<String>,
    until: Option<String>,
    text: Option<String>,
    cursor: Option<String>,
    limit: Option<usize>,
    buckets: Option<usize>,
    /// Streams only: events after this `seq`.
    pub after: Option<i64>,
}

impl EventParams {
    pub(crate) fn from_query(query: QueryResult<Self>) -> Result<Self, ApiError> {
        query
            .map(|Query(params)| params)
            .map_err(|error| ApiError::bad_request("query", error.body_text()))
    }

    pub(crate) fn filter(&self, app: &App) -> Result<EventFilter, ApiError> {
        let non_empty = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let time = |text| {
            let text = non_empty(text);
            text.map(|text| parse_time(&text)).transpose()
        };
        if let Some(decision) = non_empty(&self.decision)
            && !matches!(decision.as_str(), "allow" | "ask" | "deny" | "none")
        {
            return Err(ApiError::bad_request(
                "decision",
                format!("unknown decision `{decision}`; use allow, ask, deny or none"),
            ));
        }
        Ok(EventFilter {
            agent: non_empty(&self.agent)
                .map(|name| app.slug(&name).map_or(name.clone(), str::to_owned)),
            session: non_empty(&self.session),
            event: non_empty(&self.event),
            decision: non_empty(&self.decision),
            tool: non_empty(&self.tool),
            machine: non_empty(&self.machine),
            user_id: non_empty(&self.user_id),
            project_id: non_empty(&self.project_id),
            workflow_id: non_empty(&self.workflow_id),
            since_us: time(&self.since)?,
            until_us: time(&self.until)?,
            text: non_empty(&self.text),
        })
    }

    fn page(&self, app: &App) -> Result<PageQuery, ApiError> {
        let cursor = self.cursor.as_deref().filter(|text| !text.is_empty());
        Ok(PageQuery {
            filter: self.filter(app)?,
            cursor: cursor
                .map(str::parse)
                .transpose()
                .map_err(|error: StoreError| ApiError::bad_request("cursor", error.to_string()))?,
            limit: self.limit.unwrap_or_default(),
        })
    }
}

fn parse_time(text: &str) -> Result<i64, ApiError> {
    anyhook_store::parse_time_or_age(text).ok_or_else(|| {
        ApiError::bad_request(
            "time",
            format!(
                "invalid time `{}`; use 2026-02-23T10:15:30Z, or an age such as 15m, 2h or 7d",
                text.chars().take(60).collect::<String>()
            ),
        )
    })
}

fn page_body<T: serde::Serialize>(name: &str, page: Page<T>) -> Json<serde_json::Value> {
    Json(json!({ name: page.items, "next": page.next }))
}

pub(crate) async fn events(
    State(app): State<App>,
    params: QueryResult<EventParams>,
) -> Result<Json<serde_json::Value>, ApiError> {
    let query = EventParams::from_query(params)?.page(&app)?;
    let page = app.query_store(move |store| store.events(&query)).await?;
    Ok(page_body("events", page))
}

pub(crate) async fn event(
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Json<EventDetail>, ApiError> {
    let found = app.query_store(move |store| store.event(&id)).await?;
    let missing = || ApiError::not_found("there is no event with this id");
    found.map(Json).ok_or_else(missing)
}

pub(crate) async fn sessions(
    State(app): State<App>,
    params: QueryResult<EventParams>,
) -> Result<Json<serde_json::Value>, ApiError> {
    let query = EventParams::from_query(params)?.page(&app)?;
    let page = app.query_store(move |store| store.sessions(&query)).await?;
    Ok(page_body("sessions", page))
}

pub(crate) async fn session(
    State(app): State<App>,
    Path(id): Path<String>,
    params: QueryResult<EventParams>,
) -> Result<Json<serde_json::Value>, ApiError> {
    let mut query = EventParams::from_query(params)?.page(&app)?;
    let found = app
        .query_store(move |store| {
            let Some(session) = store.session(&id, query.filter.agent.as_deref())? else {
                return Ok(None);
            };
            query.filter.session = Some(id);
            query.filter.agent = Some(session.summary.agent.clone());
            Ok(Some((session, store.events(&query)?)))
        })
        .await?;
    let missing = || ApiError::not_found("there is no session with this id");
    let (session, page) = found.ok_or_else(missing)?;
    let body = json!({"session": session, "events": page.items, "next": page.next});
    Ok(Json(body))
}

pub(crate) async fn stats(
    State(app): State<App>,
    params: QueryResult<EventParams>,
) -> Result<Response, ApiError> {
    let params = EventParams::from_query(params)?;
    let filter = params.filter(&app)?;
    let buckets = params.buckets.unwrap_or(60);
    // Counts every event that the filter leaves.
    let limit = app.config.limits.store_timeout * 4;
    let stats = app
        .query_store_within(limit, move |store| store.stats(&filter, buckets))
        .await?;
    Ok(Json(stats).into_response())
}

pub(crate) async fn usage(
    State(app): State<App>,
    params: QueryResult<EventParams>,
) -> Result<Json<serde_json::Value>, ApiError> {
    let filter = EventParams::from_query(params)?.filter(&app)?;
    if !filter.selects_model_calls() {
        return Err(ApiError::bad_request(
            "filter",
            "calls of models have only `agent`, `session`, `since` and `until`",
        ));
    }
    let usage = tokio::task::spawn_blocking(move || app.host.usage(&filter)).await;
    let usage = usage.map_err(|_| ApiError::internal("the tokens could not be read"))?;
    usage.map(Json).map_err(ApiError::internal)
}

/// Answers although the store may hang.
pub(crate) async fn health(State(app): State<App>) -> Json<serde_json::Value> {
    let hooks = app.host.setup();
    Json(json!({"status": "ok", "store": app.metrics.store_health(), "hooks": hooks}))
}

pub(crate) async fn metrics(State(app): State<App>) -> Result<Response, ApiError> {
    // The other numbers are wanted most when the store does not answer.
    let limit = METRICS_STORE_TIMEOUT.min(app.config.limits.store_timeout);
    let last = app.query_store_within(limit, |store| store.last_seq());
    let last = last.await.ok();
    let kind = (CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");
    Ok(([kind], app.metrics.render(last)).into_response())
}
