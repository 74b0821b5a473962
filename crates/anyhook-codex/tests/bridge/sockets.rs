//! The attached client and servers of every temper.

use std::time::Duration;

use anyhook_codex::{AttachError, AttachOptions, AttachStatus, Endpoint};
use anyhook_model::HookResponse;
use anyhook_testkit::TEST_TIMEOUT;
use anyhook_testkit::codex::TempFolder;
use futures_util::{SinkExt, StreamExt};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use crate::hooks::Script;
use crate::socket::{Attached, Listener, options, run};
use crate::trial;

fn approval(id: u64) -> Value {
    json!({"method": "item/commandExecution/requestApproval", "id": id,
           "params": {"threadId": "t", "turnId": "u", "itemId": format!("call_{id}"), "startedAtMs": 1, "command": "make"}})
}

fn denying() -> Script {
    Script {
        response: HookResponse::deny("no"),
        ..Script::default()
    }
}

async fn comes_back_and_joins_what_runs() {
    let (listener, endpoint) = Listener::tcp().await;
    let attached = Attached::start(options(endpoint), denying());
    let mut client = listener.client(&[]).await;
    client.say(&approval(0)).await;
    assert_eq!(
        client.get().await,
        json!({"id": 0, "result": {"decision": "decline"}})
    );
    // The server dies without closing the connection.
    drop(client);
    let mut client = listener.client(&["t"]).await;
    client.threads = vec![json!({"id": "t", "cwd": "/p"})];
    // Open requests are repeated with the same id.
    client.say(&approval(1)).await;
    assert_eq!(
        client.get().await,
        json!({"id": 1, "result": {"decision": "decline"}})
    );
    let statuses = attached.statuses.lock().unwrap().clone();
    assert!(matches!(
        statuses.as_slice(),
        [AttachStatus::Connecting, AttachStatus::Attached { server }, AttachStatus::Lost { .. }, AttachStatus::Connecting, AttachStatus::Attached { .. }] if server == "codex/test"
    ));
    let (ended, left) = tokio::join!(attached.end(), client.next());
    assert_eq!((ended.connections, left), (2, None));
}

/// A thread that has just begun cannot be joined yet; one that waits for an
/// answer is joined with what led to it.
async fn joins_a_thread_as_soon_as_it_can() {
    let (listener, endpoint) = Listener::tcp().await;
    let script = Script {
        response: serde_json::from_value(json!({"decision": "allow"})).unwrap(),
        ..Script::default()
    };
    let attached = Attached::start(options(endpoint), script);
    let mut client = listener.client(&[]).await;
    let status = |kind: &str, flags: &[&str]| {
        let status = json!({"type": kind, "activeFlags": flags});
        json!({"method": "thread/status/changed", "params": {"threadId": "t", "status": status}})
    };
    // Answered behind the others, so that what came before has been heard.
    let sync = approval(100);
    client
        .say(&json!({"method": "thread/started", "params": {"thread": {"id": "t"}}}))
        .await;
    client.say(&sync).await;
    assert_eq!(client.get().await["id"], 100);
    client.say(&status("active", &["waitingOnApproval"])).await;
    let change = json!({"type": "fileChange", "id": "call_9", "status": "inProgress", "changes": [{"path": "/p/a", "kind": {"type": "add"}, "diff": "x"}]});
    client.threads = vec![
        json!({"id": "t", "cwd": "/p", "turns": [{"items": [7]}, {"id": "u", "items": [change]}]}),
    ];
    let request = json!({"method": "item/fileChange/requestApproval", "id": 9, "params": {"threadId": "t", "turnId": "u", "itemId": "call_9", "startedAtMs": 1}});
    client.until_joined(2).await;
    client.say(&request).await;
    assert_eq!(
        client.get().await,
        json!({"id": 9, "result": {"decision": "accept"}})
    );
    client.say(&status("active", &[])).await;
    client.say(&approval(101)).await;
    assert_eq!(client.get().await["id"], 101);
    assert_eq!(
        client.joins,
        [(json!("t"), json!(true)), (json!("t"), json!(false))]
    );
    attached.end().await;
}

async fn waits_for_a_server_that_is_not_there_yet() {
    let scratch = TempFolder::new();
    let path = scratch.path("app.sock");
    let endpoint: Endpoint = format!("unix://{}", path.display()).parse().unwrap();
    let attached = Attached::start(options(endpoint), denying());
    while attached.statuses.lock().unwrap().len() < 6 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (listener, _) = Listener::unix(path);
    listener.client(&[]).await;
    assert_eq!(attached.end().await.connections, 1);
}

async fn notices_a_half_open_socket() {
    let (listener, endpoint) = Listener::tcp().await;
    let attached = Attached::start(
        AttachOptions {
            ping_interval: Duration::from_millis(50),
            timeout: Duration::from_millis(400),
            ..options(endpoint)
        },
        denying(),
    );
    // Open, but no longer read.
    let dead = listener.client(&[]).await;
    let mut client = listener.client(&[]).await;
    client.say(&approval(0)).await;
    assert_eq!(client.get().await["id"], 0);
    drop(dead);
    attached.end().await;
}

async fn a_quiet_server_that_answers_pings_is_alive() {
    let (listener, endpoint) = Listener::tcp().await;
    let attached = Attached::start(
        AttachOptions {
            ping_interval: Duration::from_millis(10),
            timeout: Duration::from_secs(2),
            ..options(endpoint)
        },
        denying(),
    );
    let mut client = listener.client(&[]).await;
    let mut pings = 0;
    while pings < 300 {
        match timeout(TEST_TIMEOUT, client.socket.next()).await.unwrap() {
            Some(Ok(Message::Ping(_))) => pings += 1,
            other => panic!("{other:?}"),
        }
    }
    client.say(&approval(0)).await;
    assert_eq!(client.get().await["id"], 0);
    assert_eq!(attached.end().await.connections, 1);
}

async fn a_server_that_never_greets_is_left() {
    let (listener, endpoint) = Listener::tcp().await;
    let attached = Attached::start(
        AttachOptions {
            timeout: Duration::from_millis(100),
            max_failures: Some(2),
            ..options(endpoint)
        },
        denying(),
    );
    // One sends nothing at all, one only completes the WebSocket handshake.
    let silent = listener.raw().await;
    let mute = tokio_tungstenite::accept_async(listener.raw().await)
        .await
        .unwrap();
    let error = attached.result().await.unwrap_err();
    assert!(
        error.to_string().contains("gave up after 2 failures"),
        "{error}"
    );
    drop((silent, mute));
}

async fn a_refusal_ends_it() {
    let (listener, endpoint) = Listener::tcp().await;
    let bearer = Some("secret".to_owned());
    let attached = Attached::start(
        AttachOptions {
            bearer,
            ..options(endpoint)
        },
        denying(),
    );
    let mut stream = listener.raw().await;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    assert!(head.contains("authorization: bearer secret\r\n"), "{head}");
    assert!(!head.contains("origin:"), "the server refuses browsers");
    stream
        .write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n")
        .await
        .unwrap();
    let error = attached.result().await.unwrap_err();
    assert!(
        matches!(error, AttachError::Refused { status: 401, .. }),
        "{error}"
    );
}

async fn a_hook_that_hangs_holds_nothing_up() {
    let scratch = TempFolder::new();
    let (listener, endpoint) = Listener::tcp().await;
    let script = Script {
        gate: Some(scratch.path("gate")),
        abandoned: Some(scratch.path("abandoned")),
        ..denying()
    };
    let attached = Attached::start(options(endpoint), script);
    let mut client = listener.client(&[]).await;
    std::fs::write(scratch.path("gate").with_extension("call_1"), "").unwrap();
    client.say(&approval(0)).await;
    client.say(&approval(1)).await;
    assert_eq!(
        client.get().await,
        json!({"id": 1, "result": {"decision": "decline"}})
    );
    let (ended, left) = tokio::join!(attached.end(), client.next());
    assert_eq!((ended.connections, left), (1, None));
    assert!(
        scratch.path("abandoned").exists(),
        "the hooks are abandoned"
    );
}

async fn another_client_that_answers_first_wins() {
    let scratch = TempFolder::new();
    let (listener, endpoint) = Listener::tcp().await;
    let script = Script {
        gate: Some(scratch.path("gate")),
        log: Some(scratch.path("events")),
        ..denying()
    };
    let attached = Attached::start(options(endpoint), script);
    let mut client = listener.client(&[]).await;
    client.say(&approval(0)).await;
    client.say(&json!({"method": "serverRequest/resolved", "params": {"threadId": "t", "requestId": 0}})).await;
    client.say(&approval(1)).await;
    while std::fs::read_to_string(scratch.path("events"))
        .unwrap_or_default()
        .lines()
        .count()
        < 2
    {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for call in ["call_0", "call_1"] {
        std::fs::write(scratch.path("gate").with_extension(call), "").unwrap();
    }
    assert_eq!(client.get().await["id"], 1);
    let (_, left) = tokio::join!(attached.end(), client.next());
    assert_eq!(left, None);
}

async fn nonsense_and_foreign_requests_are_not_answered() {
    let (listener, endpoint) = Listener::tcp().await;
    let attached = Attached::start(options(endpoint), denying());
    let mut client = listener.client(&[]).await;
    for frame in [
        "",
        "{",
        "[]",
        "null",
        "{\"id\":{}}",
        "{\"method\":7}",
        "\u{0}",
    ] {
        client.socket.send(Message::text(frame)).await.unwrap();
    }
    client
        .socket
        .send(Message::binary(vec![0xff, 0xfe]))
        .await
        .unwrap();
    client
        .say(&json!({"method": "item/tool/call", "id": 8, "params": {"threadId": "t"}}))
        .await;
    client.say(&approval(9)).await;
    assert_eq!(client.get().await["id"], 9);
    attached.end().await;
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("attach::comes_back", || {
            run(comes_back_and_joins_what_runs());
        }),
        trial("attach::joins", || {
            run(joins_a_thread_as_soon_as_it_can());
        }),
        trial("attach::waits_for_a_server", || {
            run(waits_for_a_server_that_is_not_there_yet());
        }),
        trial("attach::half_open", || {
            run(notices_a_half_open_socket());
        }),
        trial("attach::quiet_but_alive", || {
            run(a_quiet_server_that_answers_pings_is_alive());
        }),
        trial("attach::never_greets", || {
            run(a_server_that_never_greets_is_left());
        }),
        trial("attach::refused", || {
            run(a_refusal_ends_it());
        }),
        trial("attach::hook_hangs", || {
            run(a_hook_that_hangs_holds_nothing_up());
        }),
        trial("attach::other_client_first", || {
            run(another_client_that_answers_first_wins());
        }),
        trial("attach::nonsense", || {
            run(nonsense_and_foreign_requests_are_not_answered());
        }),
    ]
}
