//! One connection to a running app-server, from `initialize` to its end.
//!
//! The server asks every client that is subscribed to a thread and takes the first
//! answer. All clients are notified of a thread and of its status, but only a client
//! that has joined it by `thread/resume` is notified of its turns; then the server
//! repeats the requests that are still open. A new thread cannot be joined before it
//! has something to resume, so a failed join is repeated at its next status change.
//!
//! Requests that are not for hooks are never answered, not even with an error: they
//! are for other clients.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout, timeout_at};
use tokio_tungstenite::tungstenite::{Bytes, Error as SocketError, Message};
use tokio_util::sync::CancellationToken;

use crate::approval::{Approval, ApprovalVerdict};
use crate::attach::AttachOptions;
use crate::endpoint::Socket;
use crate::hooks::{HookWorkers, Ruling};
use crate::map::{MappedMessage, Mapper};
use crate::open_requests::{DecisionToken, OpenRequests, OpenVerdict};
use crate::wire::{IncomingMessage, RequestId, parse_raw};

// There is one request of each kind at a time, so its kind is its id.
const INITIALIZE_ID: &str = "anyhook:initialize";
const LIST_METHOD: &str = "thread/loaded/list";
const LIST_ID: &str = "anyhook:loaded";
/// Followed by the id of the thread.
const JOIN_ID_PREFIX: &str = "anyhook:join:";
/// How long a server may take to confirm that the connection is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Frequent notifications that give no event.
const UNWANTED_NOTIFICATIONS: &[&str] = &[
    "item/agentMessage/delta",
    "item/plan/delta",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/summaryPartAdded",
    "item/reasoning/textDelta",
    "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta",
    "command/exec/outputDelta",
    "process/outputDelta",
    "account/rateLimits/updated",
    "turn/diff/updated",
];

pub(crate) enum ConnectionEnd {
    Cancelled,
    Lost(String),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LoadedThreads {
    #[serde(default)]
    data: Vec<String>,
    next_cursor: Option<String>,
}

pub(crate) async fn run(
    socket: Socket,
    options: &AttachOptions,
    hooks: &HookWorkers,
    cancel: &CancellationToken,
    on_attached: impl FnOnce(String),
) -> ConnectionEnd {
    let (rulings, mut received_rulings) = unbounded_channel();
    let mut connection = ServerConnection {
        socket,
        options,
        hooks,
        mapper: Mapper::default(),
        open_requests: OpenRequests::default(),
        threads: HashMap::new(),
        rulings,
    };
    match cancel.run_until_cancelled(connection.initialize()).await {
        None => return connection.close().await,
        Some(Err(reason)) => return ConnectionEnd::Lost(reason),
        Some(Ok(server)) => on_attached(server),
    }
    let mut last_frame = Instant::now();
    let mut tick = interval_at(last_frame + options.ping_interval, options.ping_interval);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let done = tokio::select! {
            biased;
            () = cancel.cancelled() => return connection.close().await,
            Some((approval, token, ruling)) = received_rulings.recv() => {
                connection.apply_ruling(&approval, token, ruling).await
            }
            frame = connection.socket.next() => {
                last_frame = Instant::now();
                match frame_text(frame) {
                    Ok(Some(text)) => connection.handle_message(&text).await,
                    Ok(None) => Ok(()),
                    Err(reason) => Err(reason),
                }
            }
            _ = tick.tick() => {
                if last_frame.elapsed() >= options.timeout {
                    Err("the server is silent".into())
                } else {
                    connection.send(Message::Ping(Bytes::new())).await
                }
            }
        };
        if let Err(reason) = done {
            return ConnectionEnd::Lost(reason);
        }
    }
}

struct ServerConnection<'a> {
    socket: Socket,
    options: &'a AttachOptions,
    hooks: &'a HookWorkers,
    mapper: Mapper,
    /// Requests that hooks are deciding and that no other client has answered.
    open_requests: OpenRequests,
    /// Threads that were joined (`true`) or could not be joined yet (`false`); those
    /// whose join is in progress count as joined.
    threads: HashMap<String, bool>,
    rulings: UnboundedSender<(Box<Approval>, DecisionToken, Ruling)>,
}

impl ServerConnection<'_> {
    /// Returns the server's own name.
    async fn initialize(&mut self) -> Result<String, String> {
        let client = json!({
            "name": "anyhook",
            "title": "anyhook",
            "version": env!("CARGO_PKG_VERSION"),
        });
        let capabilities = json!({
            "experimentalApi": false,
            "requestAttestation": false,
            "optOutNotificationMethods": UNWANTED_NOTIFICATIONS,
        });
        let params = json!({"clientInfo": client, "capabilities": capabilities});
        self.request("initialize", INITIALIZE_ID, params).await?;
        let deadline = Instant::now() + self.options.timeout;
        let id = RequestId::Text(INITIALIZE_ID.into());
        let result = loop {
            let frame = timeout_at(deadline, self.socket.next()).await;
            let text = frame_text(frame.map_err(|_| "the server does not answer")?)?;
            let bytes = text.as_deref().unwrap_or_default().as_bytes();
            let Some(message) = IncomingMessage::parse(bytes) else {
                continue;
            };
            if message.answered_id() == Some(&id) {
                if let Some(error) = message.error {
                    return Err(format!("the server refused `initialize`: {}", error.get()));
                }
                break message.result.and_then(parse_raw::<Value>);
            }
        };
        let initialized = json!({"method": "initialized"}).to_string();
        self.send(Message::text(initialized)).await?;
        self.request(LIST_METHOD, LIST_ID, json!({})).await?;
        let name = result.as_ref().and_then(|it| it.get("userAgent")?.as_str());
        Ok(name.unwrap_or_default().to_owned())
    }

    async fn handle_message(&mut self, text: &str) -> Result<(), String> {
        let Some(message) = IncomingMessage::parse(text.as_bytes()) else {
            return Ok(());
        };
        if let Some(id) = message.answered_id() {
            return match id {
                RequestId::Text(id) => self.handle_answer(id, &message).await,
                RequestId::Number(_) | RequestId::Other(_) => Ok(()),
            };
        }
        match message.method() {
            Some("thread/started" | "thread/status/changed") => {
                self.thread_changed(&message.params()).await?;
            }
            Some("thread/closed" | "thread/archived" | "thread/deleted") => {
                if let Some(id) = message.params().get("threadId").and_then(Value::as_str) {
                    self.threads.remove(id);
                }
            }
            _ => {}
        }
        match self.mapper.map_server(&message) {
            MappedMessage::Nothing => {}
            MappedMessage::Event(event) => self.hooks.observe(*event),
            MappedMessage::Resolved(id) => self.open_requests.remove(&id),
            MappedMessage::Approval(approval) => self.start_decision(approval, text.as_bytes()),
        }
        Ok(())
    }

    async fn handle_answer(
        &mut self,
        id: &str,
        message: &IncomingMessage<'_>,
    ) -> Result<(), String> {
        if let Some(thread) = id.strip_prefix(JOIN_ID_PREFIX) {
            let is_joined = message.result.is_some();
            self.threads.insert(thread.to_owned(), is_joined);
            self.mapper.thread_joined(message);
        } else if id == LIST_ID
            && let Some(loaded) = message.result.and_then(parse_raw::<LoadedThreads>)
        {
            // With their turns: a request that the server repeats may depend on them.
            for thread in &loaded.data {
                self.join(thread, false).await?;
            }
            if let Some(cursor) = loaded.next_cursor {
                let params = json!({"cursor": cursor});
                self.request(LIST_METHOD, LIST_ID, params).await?;
            }
        }
        Ok(())
    }

    async fn thread_changed(&mut self, notice: &Value) -> Result<(), String> {
        let thread = notice.pointer("/thread/id");
        let thread = thread.or_else(|| notice.get("threadId"));
        let Some(thread) = thread.and_then(Value::as_str) else {
            return Ok(());
        };
        if notice.pointer("/status/type") == Some(&json!("notLoaded")) {
            self.threads.remove(thread);
            return Ok(());
        }
        let flags = notice.pointer("/status/activeFlags");
        let flags = flags.and_then(Value::as_array);
        let is_waiting = flags.is_some_and(|flags| flags.contains(&json!("waitingOnApproval")));
        self.join(thread, !is_waiting).await
    }

    async fn join(&mut self, thread: &str, exclude_turns: bool) -> Result<(), String> {
        if self.threads.insert(thread.to_owned(), true) == Some(true) {
            return Ok(());
        }
        let params = json!({"threadId": thread, "excludeTurns": exclude_turns});
        let id = format!("{JOIN_ID_PREFIX}{thread}");
        self.request("thread/resume", &id, params).await
    }

    fn start_decision(&mut self, approval: Box<Approval>, line: &[u8]) {
        let Some(token) = self.open_requests.add(&approval, line) else {
            return;
        };
        let rulings = self.rulings.clone();
        let event = approval.event.clone();
        self.hooks.start_decision(event, move |ruling| {
            // Fails if the connection has ended.
            let _ = rulings.send((approval, token, ruling));
        });
    }

    async fn apply_ruling(
        &mut self,
        approval: &Approval,
        token: DecisionToken,
        ruling: Ruling,
    ) -> Result<(), String> {
        let verdict = approval.verdict(&ruling.response);
        let decided = self.open_requests.decide(&approval.id, token, verdict);
        let OpenVerdict::Decided(verdict, _) = decided else {
            return Ok(());
        };
        let verdict = match verdict {
            ApprovalVerdict::Ask | ApprovalVerdict::NoOpinion if self.options.answer_all => {
                ApprovalVerdict::Decline
            }
            verdict => verdict,
        };
        let reason = ruling.response.reason.as_deref();
        let Some(answer) = approval.kind.answer(verdict, reason) else {
            return Ok(());
        };
        self.send(Message::text(approval.reply(&answer))).await?;
        ruling.set_answer(&answer);
        Ok(())
    }

    async fn request(&mut self, method: &str, id: &str, params: Value) -> Result<(), String> {
        let request = json!({"id": id, "method": method, "params": params});
        self.send(Message::text(request.to_string())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), String> {
        match timeout(self.options.timeout, self.socket.send(message)).await {
            Ok(sent) => sent.map_err(|error| error.to_string()),
            Err(_) => Err("sending to the server timed out".into()),
        }
    }

    async fn close(&mut self) -> ConnectionEnd {
        let close = async {
            self.socket.close(None).await?;
            while let Some(Ok(message)) = self.socket.next().await {
                if message.is_close() {
                    break;
                }
            }
            Ok::<_, SocketError>(())
        };
        let _ = timeout(CLOSE_TIMEOUT, close).await;
        ConnectionEnd::Cancelled
    }
}

/// The text of a frame; `None` for frames that are not messages.
fn frame_text(frame: Option<Result<Message, SocketError>>) -> Result<Option<String>, String> {
    match frame {
        Some(Ok(Message::Text(text))) => Ok(Some(text.as_str().to_owned())),
        Some(Ok(Message::Close(_))) | None => Err("the server closed the connection".into()),
        Some(Ok(_)) => Ok(None),
        Some(Err(error)) => Err(error.to_string()),
    }
}
