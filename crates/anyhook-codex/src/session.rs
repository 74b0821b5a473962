//! One connection to a running app-server, from the greeting to its loss.
//!
//! The server asks every client that is subscribed to a thread and takes the
//! first answer. All clients hear of a thread and of its state, but only a client
//! that has joined it by `thread/resume` hears of its turns; whereupon the server
//! repeats what it still waits for. A new thread cannot be joined before it has
//! something to resume, so a failure is tried again at its next change of state.
//!
//! Requests that are not for hooks are never answered, not even with an error:
//! they are some other client's.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout, timeout_at};
use tokio_tungstenite::tungstenite::{Bytes, Message};
use tokio_util::sync::CancellationToken;

use crate::approval::{Approval, Verdict};
use crate::attach::{AttachOptions, unless};
use crate::decide::{Hooks, Ruling};
use crate::endpoint::Socket;
use crate::map::{Mapper, Seen};
use crate::wire::{
    Capabilities, ClientInfo, Incoming, InitializeParams, LoadedListParams, Notification, Request,
    RequestId, ResumeParams, parse, write,
};

/// Begins the id of a request to join the thread that follows.
const JOIN: &str = "anyhook:join:";
/// How long a server may take to return our farewell.
const FAREWELL: Duration = Duration::from_secs(1);

/// What comes often and means nothing to hooks.
const UNWANTED: &[&str] = &[
    "item/agentMessage/delta",
    "item/plan/delta",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/summaryPartAdded",
    "item/reasoning/textDelta",
    "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta",
    "command/exec/outputDelta",
    "process/outputDelta",
    "thread/tokenUsage/updated",
    "account/rateLimits/updated",
    "turn/diff/updated",
];

pub(crate) enum Why {
    Cancelled,
    Lost(String),
}

type Decided = (Box<Approval>, Ruling);

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Loaded {
    #[serde(default)]
    data: Vec<String>,
    #[serde(default)]
    next_cursor: Option<String>,
}

/// Of `thread/started` and `thread/status/changed`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThreadNews {
    #[serde(default)]
    thread: Option<ThreadId>,
    #[serde(default)]
    thread_id: Option<String>,
    #[serde(default)]
    status: ThreadStatus,
}

#[derive(Debug, Deserialize)]
struct ThreadId {
    id: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThreadStatus {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    active_flags: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Greeting {
    #[serde(default)]
    user_agent: String,
}

pub(crate) async fn run(
    socket: Socket,
    options: &AttachOptions,
    hooks: &Hooks,
    cancel: &CancellationToken,
    attached: impl FnOnce(String),
) -> Why {
    let (answer, mut answers) = unbounded_channel();
    let mut session = Session {
        socket,
        options,
        hooks,
        mapper: Mapper::default(),
        open: HashSet::new(),
        threads: HashMap::new(),
        answer,
    };
    match unless(cancel, session.greet()).await {
        None => return session.farewell().await,
        Some(Err(why)) => return Why::Lost(why),
        Some(Ok(server)) => attached(server),
    }
    let mut heard = Instant::now();
    let mut tick = interval_at(heard + options.ping_every, options.ping_every);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let done = tokio::select! {
            biased;
            () = cancel.cancelled() => return session.farewell().await,
            Some(decided) = answers.recv() => session.decided(decided).await,
            frame = session.socket.next() => {
                heard = Instant::now();
                match text(frame) {
                    Ok(Some(message)) => session.take(&message).await,
                    Ok(None) => Ok(()),
                    Err(why) => Err(why),
                }
            }
            _ = tick.tick() => {
                if heard.elapsed() >= options.patience {
                    Err("the server has fallen silent".into())
                } else {
                    session.send(Message::Ping(Bytes::new())).await
                }
            }
        };
        if let Err(why) = done {
            return Why::Lost(why);
        }
    }
}

struct Session<'a> {
    socket: Socket,
    options: &'a AttachOptions,
    hooks: &'a Hooks,
    mapper: Mapper,
    /// Requests that are with the hooks and that nobody has answered yet.
    open: HashSet<RequestId>,
    threads: HashMap<String, Joined>,
    answer: UnboundedSender<Decided>,
}

/// Our standing with a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Joined {
    No,
    Asked,
    Yes,
}

impl Session<'_> {
    async fn greet(&mut self) -> Result<String, String> {
        let id = own_id("initialize");
        let params = InitializeParams {
            client_info: ClientInfo {
                name: "anyhook",
                title: "anyhook",
                version: env!("CARGO_PKG_VERSION"),
            },
            capabilities: Capabilities {
                experimental_api: false,
                request_attestation: false,
                opt_out_notification_methods: UNWANTED,
            },
        };
        self.request("initialize", &id, params).await?;
        let by = Instant::now() + self.options.patience;
        let server = loop {
            let frame = timeout_at(by, self.socket.next()).await;
            let Some(message) = text(frame.map_err(|_| "the server does not answer")?)? else {
                continue;
            };
            let Some(message) = Incoming::read(message.as_bytes()) else {
                continue;
            };
            if message.answers() == Some(&id) {
                if let Some(error) = message.error {
                    return Err(format!("the server refuses the greeting: {}", error.get()));
                }
                break message.result.and_then(parse::<Greeting>);
            }
        };
        self.say(&Notification {
            method: "initialized",
        })
        .await?;
        self.list(None).await?;
        Ok(server
            .map(|greeting| greeting.user_agent)
            .unwrap_or_default())
    }

    async fn list(&mut self, cursor: Option<String>) -> Result<(), String> {
        self.request(
            "thread/loaded/list",
            &own_id("loaded"),
            LoadedListParams { cursor },
        )
        .await
    }

    async fn take(&mut self, text: &str) -> Result<(), String> {
        let Some(message) = Incoming::read(text.as_bytes()) else {
            return Ok(());
        };
        if let Some(id) = message.answers() {
            if *id == own_id("loaded") {
                return self.join_loaded(message.result.and_then(parse)).await;
            }
            if let RequestId::Text(id) = id
                && let Some(thread) = id.strip_prefix(JOIN)
            {
                let joined = if message.result.is_some() {
                    Joined::Yes
                } else {
                    Joined::No
                };
                self.threads.insert(thread.to_owned(), joined);
                self.mapper.joined(&message);
            }
            return Ok(());
        }
        match message.method() {
            Some("thread/started" | "thread/status/changed") => {
                if let Some(news) = message.params.and_then(parse) {
                    self.hear_of(news).await?;
                }
            }
            Some("thread/closed" | "thread/archived" | "thread/deleted") => {
                if let Some(id) = message
                    .params
                    .and_then(parse::<ThreadNews>)
                    .and_then(|news| news.thread_id)
                {
                    self.threads.remove(&id);
                }
            }
            _ => {}
        }
        match self.mapper.server(&message) {
            Seen::Nothing => Ok(()),
            Seen::Event(event) => {
                self.hooks.observe(*event);
                Ok(())
            }
            Seen::Resolved(id) => {
                self.open.remove(&id);
                Ok(())
            }
            Seen::Approval(approval) => {
                self.consider(approval);
                Ok(())
            }
        }
    }

    /// Joins the threads that are under way, and asks what they are about: a
    /// request that is repeated to us may depend on what was said before.
    async fn join_loaded(&mut self, loaded: Option<Loaded>) -> Result<(), String> {
        let Some(loaded) = loaded else {
            return Ok(());
        };
        for thread in &loaded.data {
            self.join(thread, false).await?;
        }
        match loaded.next_cursor {
            Some(cursor) => self.list(Some(cursor)).await,
            None => Ok(()),
        }
    }

    async fn hear_of(&mut self, news: ThreadNews) -> Result<(), String> {
        let Some(thread) = news.thread.map(|thread| thread.id).or(news.thread_id) else {
            return Ok(());
        };
        if news.status.kind == "notLoaded" {
            self.threads.remove(&thread);
            return Ok(());
        }
        let waits = news
            .status
            .active_flags
            .iter()
            .any(|flag| flag == "waitingOnApproval");
        self.join(&thread, !waits).await
    }

    async fn join(&mut self, thread: &str, exclude_turns: bool) -> Result<(), String> {
        let standing = self.threads.get(thread).copied();
        if matches!(standing, Some(Joined::Asked | Joined::Yes)) {
            return Ok(());
        }
        self.threads.insert(thread.to_owned(), Joined::Asked);
        let id = RequestId::Text(format!("{JOIN}{thread}"));
        let params = ResumeParams {
            thread_id: thread,
            exclude_turns,
        };
        self.request("thread/resume", &id, params).await
    }

    fn consider(&mut self, approval: Box<Approval>) {
        // The server repeats what it waits for when a thread is joined.
        if !self.open.insert(approval.id.clone()) {
            return;
        }
        let answer = self.answer.clone();
        self.hooks.ask(approval.event.clone(), move |ruling| {
            // The session may be over.
            let _ = answer.send((approval, ruling));
        });
    }

    async fn decided(&mut self, (approval, ruling): Decided) -> Result<(), String> {
        if !self.open.remove(&approval.id) {
            return Ok(());
        }
        let verdict = match approval.verdict(&ruling.response) {
            Verdict::Ask | Verdict::NoOpinion if self.options.answer_all => Verdict::Decline,
            verdict => verdict,
        };
        let reason = ruling.response.reason.as_deref();
        let Some(answer) = approval.kind.answer(verdict, reason) else {
            return Ok(());
        };
        self.send(Message::text(approval.reply(&answer))).await?;
        ruling.answered(&answer);
        Ok(())
    }

    async fn request<P: Serialize>(
        &mut self,
        method: &'static str,
        id: &RequestId,
        params: P,
    ) -> Result<(), String> {
        self.say(&Request { id, method, params }).await
    }

    async fn say<M: Serialize>(&mut self, message: &M) -> Result<(), String> {
        self.send(Message::text(write(message))).await
    }

    async fn send(&mut self, message: Message) -> Result<(), String> {
        match timeout(self.options.patience, self.socket.send(message)).await {
            Ok(sent) => sent.map_err(|error| error.to_string()),
            Err(_) => Err("the server takes no more".into()),
        }
    }

    async fn farewell(&mut self) -> Why {
        let leave = async {
            self.socket.close(None).await?;
            while let Some(Ok(message)) = self.socket.next().await {
                if message.is_close() {
                    break;
                }
            }
            Ok::<_, tokio_tungstenite::tungstenite::Error>(())
        };
        let _ = timeout(FAREWELL, leave).await;
        Why::Cancelled
    }
}

/// Our requests are few and never in each other's way: the purpose is the id.
fn own_id(purpose: &str) -> RequestId {
    RequestId::Text(format!("anyhook:{purpose}"))
}

type Frame = Option<Result<Message, tokio_tungstenite::tungstenite::Error>>;

/// The text of a frame; `None` for frames that are no message.
fn text(frame: Frame) -> Result<Option<String>, String> {
    match frame {
        Some(Ok(Message::Text(text))) => Ok(Some(text.as_str().to_owned())),
        Some(Ok(Message::Close(_))) | None => Err("the server closed the connection".into()),
        Some(Ok(_)) => Ok(None),
        Some(Err(error)) => Err(error.to_string()),
    }
}
