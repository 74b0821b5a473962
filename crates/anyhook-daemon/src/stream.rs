//! Live events: Server-Sent Events and WebSocket over one feed.
//!
//! A stream sends every event after a `seq`, in order: from the [`LiveFeed`] if that
//! reaches back far enough, else from the store. So a client that resumes misses nothing
//! and gets nothing twice.
//!
//! [`LiveFeed`]: crate::live_feed::LiveFeed

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhook_store::EventFilter;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::api::{EventParams, QueryResult};
use crate::api_error::ApiError;
use crate::app::App;
use crate::body::header_text;
use crate::live_feed::{Listener, LiveEvent};
use crate::metrics::GaugeGuard;

const BATCH_EVENTS: usize = 200;
const STORE_RETRY_INTERVAL: Duration = Duration::from_secs(2);
const PING_INTERVAL: Duration = Duration::from_secs(20);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
const MAX_MESSAGE_BYTES: usize = 4096;

/// The right to one open stream, held while the stream is open.
type StreamSlot = (OwnedSemaphorePermit, GaugeGuard);

fn acquire_slot(app: &App) -> Result<StreamSlot, ApiError> {
    let permit = app.stream_slots.clone().try_acquire_owned().map_err(|_| {
        ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "streams",
            "too many streams are open; try again later",
        )
    })?;
    let counted = GaugeGuard::new(app.clone(), |metrics| &metrics.streams);
    Ok((permit, counted))
}

/// Events from `after` on, until the receiver is dropped or the daemon stops.
fn feed(
    app: App,
    slot: StreamSlot,
    after: i64,
    filter: EventFilter,
) -> mpsc::Receiver<Arc<LiveEvent>> {
    let (sender, receiver) = mpsc::channel(BATCH_EVENTS);
    tokio::spawn(async move {
        let _slot = slot;
        let mut stop = app.stop.subscribe();
        let mut listener = Listener::new(app.clone());
        let mut last = after;
        while !*stop.borrow() {
            listener.mark_seen();
            // If the store does not answer, the stream stays open until it does.
            let batch = next_events(&app, &listener, last, &filter).await;
            let batch = batch.unwrap_or_default();
            last = last.max(batch.seen);
            for event in batch.events {
                if sender.send(event).await.is_err() {
                    return;
                }
            }
            if batch.has_more {
                continue;
            }
            tokio::select! {
                () = listener.changed() => {}
                _ = stop.changed() => return,
                () = sender.closed() => return,
                () = tokio::time::sleep(STORE_RETRY_INTERVAL) => {}
            }
        }
    });
    receiver
}

/// What a stream sends next.
#[derive(Default)]
struct StreamBatch {
    events: Vec<Arc<LiveEvent>>,
    /// After this batch the stream has seen everything up to this `seq`.
    seen: i64,
    has_more: bool,
}

/// All listeners share what was read, and each filters it in memory. `None` if the store
/// does not answer.
async fn next_events(
    app: &App,
    listener: &Listener,
    last: i64,
    filter: &EventFilter,
) -> Option<StreamBatch> {
    let (mut events, seen, has_more) = if let Some((events, seen)) = listener.after(last) {
        (events, seen, false)
    } else {
        let query = app.query_store(move |store| store.after(last, BATCH_EVENTS));
        let found = query.await.ok()?;
        let seen = found.last().map_or(last, |row| row.summary.seq);
        let has_more = found.len() == BATCH_EVENTS;
        let events = found.into_iter().map(LiveEvent::new).collect();
        (events, seen, has_more)
    };
    events.retain(|event| filter.matches(&event.row));
    Some(StreamBatch {
        events,
        seen,
        has_more,
    })
}

/// A stream's feed, and the `seq` after which it starts: the last one that the client has,
/// the one in the query, or the latest.
async fn open_feed(
    app: App,
    headers: &HeaderMap,
    params: QueryResult<EventParams>,
) -> Result<(i64, mpsc::Receiver<Arc<LiveEvent>>), ApiError> {
    let params = EventParams::from_query(params)?;
    let filter = params.filter(&app)?;
    let slot = acquire_slot(&app)?;
    let resumed = header_text(headers, &HeaderName::from_static("last-event-id"));
    let resumed = resumed.and_then(|text| text.trim().parse().ok());
    let after = match resumed.or(params.after) {
        Some(seq) => seq,
        None => app.query_store(|store| store.last_seq()).await?,
    };
    Ok((after, feed(app, slot, after, filter)))
}

pub(crate) async fn sse(
    State(app): State<App>,
    headers: HeaderMap,
    params: QueryResult<EventParams>,
) -> Result<Response, ApiError> {
    let (after, mut receiver) = open_feed(app, &headers, params).await?;
    // Sent first, so that a client that is disconnected before any event can resume too.
    let open = Event::default()
        .event("open")
        .id(after.to_string())
        .retry(Duration::from_secs(2))
        .data("{}");
    let events = stream::poll_fn(move |context| receiver.poll_recv(context)).map(|event| {
        let id = event.seq().to_string();
        Event::default().id(id).data(&event.json)
    });
    let events = stream::iter([open]).chain(events).map(Ok::<_, Infallible>);
    let alive = KeepAlive::new().interval(KEEP_ALIVE_INTERVAL);
    Ok(Sse::new(events).keep_alive(alive).into_response())
}

pub(crate) async fn ws(
    State(app): State<App>,
    headers: HeaderMap,
    params: QueryResult<EventParams>,
    upgrade: WebSocketUpgrade,
) -> Result<Response, ApiError> {
    let (_, receiver) = open_feed(app, &headers, params).await?;
    Ok(upgrade
        .max_message_size(MAX_MESSAGE_BYTES)
        .on_upgrade(move |socket| serve_websocket(socket, receiver)))
}

async fn serve_websocket(mut socket: WebSocket, mut receiver: mpsc::Receiver<Arc<LiveEvent>>) {
    loop {
        let message = tokio::select! {
            biased;
            event = receiver.recv() => match event {
                Some(event) => Message::Text(event.json.as_str().into()),
                None => Message::Close(None),
            },
            received = socket.recv() => match received {
                None | Some(Err(_) | Ok(Message::Close(_))) => return,
                Some(Ok(_)) => continue,
            },
            () = tokio::time::sleep(PING_INTERVAL) => Message::Ping(Vec::new().into()),
        };
        let is_last = matches!(message, Message::Close(_));
        if socket.send(message).await.is_err() || is_last {
            return;
        }
    }
}
