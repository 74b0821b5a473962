//! What can be asked: events, one event, sessions, one session, statistics, metrics.

use anyhook_store::{EventFilter, Page, PageQuery, StoreError};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;

use crate::app::App;
use crate::refusal::Refusal;

pub(crate) type Asked<T> = Result<Query<T>, QueryRejection>;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Params {
    agent: Option<String>,
    session: Option<String>,
    event: Option<String>,
    decision: Option<String>,
    tool: Option<String>,
    machine: Option<String>,
    since: Option<String>,
    until: Option<String>,
    text: Option<String>,
    cursor: Option<String>,
    limit: Option<usize>,
    buckets: Option<usize>,
    /// For a stream: events after this `seq`.
    pub after: Option<i64>,
}

impl Params {
    pub fn of(asked: Asked<Self>) -> Result<Self, Refusal> {
        asked
            .map(|Query(params)| params)
            .map_err(|error| Refusal::bad("query", error.body_text()))
    }

    pub fn filter(&self, app: &App) -> Result<EventFilter, Refusal> {
        let full = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        if let Some(decision) = full(&self.decision)
            && !matches!(decision.as_str(), "allow" | "ask" | "deny" | "none")
        {
            return Err(Refusal::bad(
                "decision",
                format!("`{decision}` is no decision: allow, ask, deny or none"),
            ));
        }
        Ok(EventFilter {
            agent: full(&self.agent)
                .map(|name| app.slug(&name).map_or(name.clone(), str::to_owned)),
            session: full(&self.session),
            event: full(&self.event),
            decision: full(&self.decision),
            tool: full(&self.tool),
            machine: full(&self.machine),
            since_us: full(&self.since).map(|text| moment(&text)).transpose()?,
            until_us: full(&self.until).map(|text| moment(&text)).transpose()?,
            text: full(&self.text),
        })
    }

    fn page(&self, app: &App) -> Result<PageQuery, Refusal> {
        let cursor = self.cursor.as_deref().filter(|text| !text.is_empty());
        Ok(PageQuery {
            filter: self.filter(app)?,
            cursor: cursor
                .map(str::parse)
                .transpose()
                .map_err(|error: StoreError| Refusal::bad("cursor", error.to_string()))?,
            limit: self.limit.unwrap_or_default(),
        })
    }
}

fn moment(text: &str) -> Result<i64, Refusal> {
    anyhook_store::moment(text).ok_or_else(|| {
        Refusal::bad(
            "time",
            format!(
                "`{}` is no time: write 2026-02-23T10:15:30Z, or 15m, 2h, 7d for so long ago",
                text.chars().take(60).collect::<String>()
            ),
        )
    })
}

fn listed<T: serde::Serialize>(name: &str, page: Page<T>) -> Json<serde_json::Value> {
    Json(json!({ name: page.items, "next": page.next }))
}

pub(crate) async fn events(
    State(app): State<App>,
    asked: Asked<Params>,
) -> Result<Json<serde_json::Value>, Refusal> {
    let query = Params::of(asked)?.page(&app)?;
    let page = app.ask(move |store| store.events(&query)).await?;
    Ok(listed("events", page))
}

pub(crate) async fn event(
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    match app.ask(move |store| store.event(&id)).await? {
        Some(event) => Ok(Json(event).into_response()),
        None => Err(Refusal::not_found("no event has this id")),
    }
}

pub(crate) async fn sessions(
    State(app): State<App>,
    asked: Asked<Params>,
) -> Result<Json<serde_json::Value>, Refusal> {
    let query = Params::of(asked)?.page(&app)?;
    let page = app.ask(move |store| store.sessions(&query)).await?;
    Ok(listed("sessions", page))
}

pub(crate) async fn session(
    State(app): State<App>,
    Path(id): Path<String>,
    asked: Asked<Params>,
) -> Result<Response, Refusal> {
    let mut query = Params::of(asked)?.page(&app)?;
    let found = app
        .ask(move |store| {
            let Some(session) = store.session(&id, query.filter.agent.as_deref())? else {
                return Ok(None);
            };
            query.filter.session = Some(id);
            query.filter.agent = Some(session.summary.agent.clone());
            Ok(Some((session, store.events(&query)?)))
        })
        .await?;
    match found {
        Some((session, page)) => {
            let body = json!({"session": session, "events": page.items, "next": page.next});
            Ok(Json(body).into_response())
        }
        None => Err(Refusal::not_found("no session has this id")),
    }
}

pub(crate) async fn stats(
    State(app): State<App>,
    asked: Asked<Params>,
) -> Result<Response, Refusal> {
    let params = Params::of(asked)?;
    let filter = params.filter(&app)?;
    let buckets = params.buckets.unwrap_or(60);
    let stats = app.ask(move |store| store.stats(&filter, buckets)).await?;
    Ok(Json(stats).into_response())
}

pub(crate) async fn metrics(State(app): State<App>) -> Result<Response, Refusal> {
    let last = app.ask(|store| store.last_seq()).await?;
    let kind = (CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");
    Ok(([kind], app.metrics.render(last)).into_response())
}
