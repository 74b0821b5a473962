//! Live events: Server-Sent Events and WebSocket over one feed.
//!
//! A feed reads the store from a `seq` on whenever something was committed, by this
//! daemon or by another on the same database. Being live and catching up are the
//! same thing, so a client that resumes misses nothing and gets nothing twice.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::task::{Context, Poll};
use std::time::Duration;

use anyhook_store::{EventFilter, EventSummary};
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_core::Stream;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::api::{Asked, Params};
use crate::app::App;
use crate::metrics::Held;
use crate::refusal::Refusal;

const BATCH: usize = 200;
/// A burst of commits is read once.
const GATHER: Duration = Duration::from_millis(20);
/// Even when no commit was heard: another process may have written.
const LOOK_ANYWAY: Duration = Duration::from_secs(2);
const PING: Duration = Duration::from_secs(20);

/// Counts as a stream while it lives.
struct Place {
    _permit: OwnedSemaphorePermit,
    _held: Held<Gauge>,
}

struct Gauge(App);

impl AsRef<AtomicI64> for Gauge {
    fn as_ref(&self) -> &AtomicI64 {
        &self.0.metrics.streams
    }
}

fn place(app: &App) -> Result<Place, Refusal> {
    let permit = app.stream_slots.clone().try_acquire_owned().map_err(|_| {
        Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "streams",
            "too many streams are open; try again later",
        )
    })?;
    Ok(Place {
        _permit: permit,
        _held: Held::new(Gauge(app.clone())),
    })
}

/// Events from `after` on, until the receiver goes or the daemon stops.
fn feed(app: App, place: Place, after: i64, filter: EventFilter) -> mpsc::Receiver<EventSummary> {
    let (sender, receiver) = mpsc::channel(BATCH);
    tokio::spawn(async move {
        let _place = place;
        let mut commits = app.commits.subscribe();
        let mut stop = app.stop.subscribe();
        let filter = Arc::new(filter);
        let mut last = after;
        while !*stop.borrow() {
            commits.mark_unchanged();
            let wanted = filter.clone();
            let batch = app
                .ask(move |store| store.after(last, &wanted, BATCH))
                .await
                .unwrap_or_default();
            let full = batch.len() == BATCH;
            for event in batch {
                last = event.seq;
                if sender.send(event).await.is_err() {
                    return;
                }
            }
            if full {
                continue;
            }
            let woken = either(commits.changed(), either(stop.changed(), sender.closed()));
            let _ = tokio::time::timeout(LOOK_ANYWAY, woken).await;
            if sender.is_closed() {
                return;
            }
            if !*stop.borrow() {
                tokio::time::sleep(GATHER).await;
            }
        }
    });
    receiver
}

/// Ends when the first of two ends.
async fn either<A: Future, B: Future>(first: A, second: B) {
    let mut first = std::pin::pin!(first);
    let mut second = std::pin::pin!(second);
    std::future::poll_fn(|context| {
        let done =
            first.as_mut().poll(context).is_ready() || second.as_mut().poll(context).is_ready();
        if done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Where to begin: what the client saw last, what it asks for, or now.
async fn beginning(app: &App, headers: &HeaderMap, params: &Params) -> Result<i64, Refusal> {
    let resumed = headers
        .get("last-event-id")
        .and_then(|value| value.to_str().ok()?.trim().parse().ok());
    match resumed.or(params.after) {
        Some(seq) => Ok(seq),
        None => app.ask(|store| store.last_seq()).await,
    }
}

pub(crate) async fn sse(
    State(app): State<App>,
    headers: HeaderMap,
    asked: Asked<Params>,
) -> Result<Response, Refusal> {
    let params = Params::of(asked)?;
    let filter = params.filter(&app)?;
    let place = place(&app)?;
    let after = beginning(&app, &headers, &params).await?;
    let events = Events {
        begun: Some(after),
        receiver: feed(app, place, after, filter),
    };
    let alive = KeepAlive::new().interval(Duration::from_secs(15));
    Ok(Sse::new(events).keep_alive(alive).into_response())
}

struct Events {
    /// Sent first, so that a client that is cut off before any event can resume too.
    begun: Option<i64>,
    receiver: mpsc::Receiver<EventSummary>,
}

impl Stream for Events {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(seq) = self.begun.take() {
            let open = Event::default()
                .event("open")
                .id(seq.to_string())
                .retry(Duration::from_secs(2))
                .data("{}");
            return Poll::Ready(Some(Ok(open)));
        }
        self.receiver.poll_recv(context).map(|event| {
            event.map(|event| {
                let data = serde_json::to_string(&event).unwrap_or_default();
                Ok(Event::default().id(event.seq.to_string()).data(data))
            })
        })
    }
}

pub(crate) async fn ws(
    State(app): State<App>,
    headers: HeaderMap,
    asked: Asked<Params>,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Refusal> {
    let params = Params::of(asked)?;
    let filter = params.filter(&app)?;
    let place = place(&app)?;
    let after = beginning(&app, &headers, &params).await?;
    Ok(upgrade
        .max_message_size(4096)
        .on_upgrade(move |socket| talk(app, socket, place, after, filter)))
}

async fn talk(app: App, mut socket: WebSocket, place: Place, after: i64, filter: EventFilter) {
    enum Next {
        Send(Option<Box<EventSummary>>),
        Heard(bool),
        Quiet,
    }
    let mut receiver = feed(app, place, after, filter);
    loop {
        let next = {
            let mut ping = std::pin::pin!(tokio::time::sleep(PING));
            let mut heard = std::pin::pin!(socket.recv());
            std::future::poll_fn(|context| {
                if let Poll::Ready(event) = receiver.poll_recv(context) {
                    return Poll::Ready(Next::Send(event.map(Box::new)));
                }
                if let Poll::Ready(message) = heard.as_mut().poll(context) {
                    let open = matches!(message, Some(Ok(ref message)) if !matches!(message, Message::Close(_)));
                    return Poll::Ready(Next::Heard(open));
                }
                ping.as_mut().poll(context).map(|()| Next::Quiet)
            })
            .await
        };
        let sent = match next {
            Next::Send(Some(event)) => {
                let text = serde_json::to_string(&event).unwrap_or_default();
                socket.send(Message::Text(text.into())).await
            }
            Next::Send(None) => {
                let _ = socket.send(Message::Close(None)).await;
                return;
            }
            Next::Heard(true) => Ok(()),
            Next::Heard(false) => return,
            Next::Quiet => socket.send(Message::Ping(Vec::new().into())).await,
        };
        if sent.is_err() {
            return;
        }
    }
}
