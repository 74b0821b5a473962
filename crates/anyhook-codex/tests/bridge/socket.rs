//! The server's end of a socket, and an attached client to go with it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhook_codex::{
    AttachError, AttachOptions, AttachStatus, AttachSummary, Backoff, Endpoint, attach,
};
use anyhook_testkit::TEST_TIMEOUT;
use anyhook_testkit::codex::is_request;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::CancellationToken;

use crate::hooks::Script;
use crate::schema;

pub(crate) trait Io: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    pub(crate) async fn tcp() -> (Self, Endpoint) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("ws://{}", listener.local_addr().unwrap());
        (Self::Tcp(listener), endpoint.parse().unwrap())
    }

    pub(crate) fn unix(path: PathBuf) -> (Self, Endpoint) {
        let endpoint = format!("unix://{}", path.display());
        (
            Self::Unix(UnixListener::bind(path).unwrap()),
            endpoint.parse().unwrap(),
        )
    }

    pub(crate) async fn raw(&self) -> Box<dyn Io> {
        let accepted = async {
            match self {
                Self::Tcp(listener) => Box::new(listener.accept().await.unwrap().0) as Box<dyn Io>,
                Self::Unix(listener) => Box::new(listener.accept().await.unwrap().0),
            }
        };
        timeout(TEST_TIMEOUT, accepted).await.expect("a connection")
    }

    /// Accepts a client and answers its greeting; `loaded` threads are under way.
    pub(crate) async fn client(&self, loaded: &[&str]) -> Client {
        let socket = tokio_tungstenite::accept_async(self.raw().await)
            .await
            .unwrap();
        let mut client = Client {
            socket,
            requests: Vec::new(),
            threads: Vec::new(),
            joins: Vec::new(),
        };
        let hello = client.get().await;
        assert_eq!(hello["method"], "initialize");
        assert_eq!(hello["params"]["clientInfo"]["name"], "anyhook");
        let about = json!({"userAgent": "codex/test", "codexHome": "/h", "platformFamily": "unix", "platformOs": "linux"});
        client
            .say(&json!({"id": hello["id"], "result": about}))
            .await;
        assert_eq!(client.get().await, json!({"method": "initialized"}));
        let list = client.get().await;
        assert_eq!(list["method"], "thread/loaded/list");
        client
            .say(&json!({"id": list["id"], "result": {"data": loaded, "nextCursor": null}}))
            .await;
        client
    }
}

/// The attached client, as its server has it.
pub(crate) struct Client {
    pub socket: WebSocketStream<Box<dyn Io>>,
    requests: Vec<Value>,
    /// Threads that can be joined, and who was asked for, with or without turns.
    pub threads: Vec<Value>,
    pub joins: Vec<(Value, Value)>,
}

impl Client {
    pub(crate) async fn say(&mut self, message: &Value) {
        if is_request(message) {
            self.requests.push(message.clone());
        }
        self.socket
            .send(Message::text(message.to_string()))
            .await
            .unwrap();
    }

    /// The next message; `None` when the client leaves. Threads may be joined.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            let message = self.any().await?;
            if message["method"] != "thread/resume" {
                return Some(message);
            }
            self.answer_join(&message).await;
        }
    }

    pub(crate) async fn answer_join(&mut self, message: &Value) {
        assert_eq!(message["method"], "thread/resume");
        let id = message["params"]["threadId"].clone();
        self.joins
            .push((id.clone(), message["params"]["excludeTurns"].clone()));
        let thread = self
            .threads
            .iter()
            .find(|thread| thread["id"] == id)
            .cloned();
        let answer = match thread {
            Some(thread) => json!({"id": message["id"], "result": {"thread": thread}}),
            None => {
                json!({"id": message["id"], "error": {"code": -32600, "message": "no rollout found"}})
            }
        };
        self.say(&answer).await;
    }

    pub(crate) async fn any(&mut self) -> Option<Value> {
        loop {
            let frame = timeout(TEST_TIMEOUT, self.socket.next())
                .await
                .expect("a message");
            match frame {
                Some(Ok(Message::Text(text))) => {
                    let message = serde_json::from_str(&text).unwrap();
                    schema::check_outgoing(&message, &self.requests);
                    return Some(message);
                }
                Some(Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    /// Answers requests to join until there were this many.
    pub(crate) async fn until_joined(&mut self, times: usize) {
        while self.joins.len() < times {
            let message = self.any().await.expect("a request to join");
            self.answer_join(&message).await;
        }
    }

    pub(crate) async fn get(&mut self) -> Value {
        self.next().await.expect("a message before the end")
    }
}

pub(crate) fn options(endpoint: Endpoint) -> AttachOptions {
    AttachOptions {
        backoff: Backoff {
            first: Duration::from_millis(5),
            max: Duration::from_millis(20),
            reset_after: Duration::from_secs(60),
        },
        drain: Duration::from_secs(10),
        ..AttachOptions::new(endpoint)
    }
}

pub(crate) struct Attached {
    cancel: CancellationToken,
    pub statuses: Arc<Mutex<Vec<AttachStatus>>>,
    task: JoinHandle<Result<AttachSummary, AttachError>>,
}

impl Attached {
    pub(crate) fn start(options: AttachOptions, script: Script) -> Self {
        let cancel = CancellationToken::new();
        let statuses = Arc::new(Mutex::new(Vec::new()));
        let seen = statuses.clone();
        let run = attach(options, Arc::new(script), cancel.clone(), move |status| {
            seen.lock().unwrap().push(status);
        });
        Self {
            cancel,
            statuses,
            task: tokio::spawn(run),
        }
    }

    pub(crate) async fn result(self) -> Result<AttachSummary, AttachError> {
        timeout(TEST_TIMEOUT, self.task)
            .await
            .expect("an end")
            .unwrap()
    }

    pub(crate) async fn end(self) -> AttachSummary {
        self.cancel.cancel();
        self.result().await.unwrap()
    }
}

pub(crate) fn run<F: Future<Output = ()>>(body: F) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(body);
}
