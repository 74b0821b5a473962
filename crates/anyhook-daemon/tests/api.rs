//! What the daemon answers to those who read and ingest.

#![cfg(test)]

mod support;

use std::collections::BTreeSet;
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhook_daemon::{Access, ROUTES};
use anyhook_model::HookResponse;
use serde_json::{Value, json};
use support::{Call, Running, Sse, TOKEN, append, record};

fn envelope(id: &str) -> Value {
    json!({"openhook": "0.1", "id": id, "source": "cursor", "type": "session.end",
        "time": "2026-02-23T10:15:30.123Z", "session_id": "o1", "cwd": "/home/user/my-project"})
}

fn ingest(daemon: &Running, body: &Value) -> support::Reply {
    Call::new("POST", "/ingest")
        .token()
        .json(body)
        .send(daemon.address)
}

#[test]
fn the_document_and_the_routes_agree() {
    let daemon = Running::start();
    let document = Call::new("GET", "/openapi.json")
        .send(daemon.address)
        .json();
    assert_eq!(document["openapi"], "3.1.0");
    let mut documented = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            documented.insert((method.to_uppercase(), path.clone()));
            let route = ROUTES
                .iter()
                .find(|route| route.path == path && route.method == method.to_uppercase())
                .unwrap_or_else(|| panic!("{method} {path} is documented but not served"));
            let expected = match route.access {
                Access::Token | Access::Answer => json!([{"token": []}]),
                Access::Hook => json!([{}, {"token": []}, {"signed": []}]),
                Access::Local => json!([{}, {"token": []}]),
                Access::Open => json!([]),
            };
            assert_eq!(operation["security"], expected, "{method} {path}");
        }
    }
    let served: BTreeSet<_> = ROUTES
        .iter()
        .map(|route| (route.method.to_owned(), route.path.to_owned()))
        .collect();
    assert_eq!(documented, served);
    // The table is what the router serves: each route answers, and only with its method.
    for route in ROUTES {
        let path = route
            .path
            .replace("{agent}", "claude")
            .replace("{file}", "app.js");
        let reply = Call::new(route.method, &path)
            .token()
            .json(&json!({}))
            .send(daemon.address);
        assert!(
            ![404, 405].contains(&reply.status) || path.contains("{id}"),
            "{path}: {}",
            reply.status
        );
        let other = if route.method == "GET" {
            "DELETE"
        } else {
            "PUT"
        };
        assert_eq!(
            Call::new(other, &path).token().send(daemon.address).status,
            405,
            "{path}"
        );
    }
    assert_eq!(daemon.get("/nothing").code(), "not_found");
}

/// Every `$ref` of the document leads somewhere.
#[test]
fn the_document_is_whole() {
    fn refs(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
                    found.push(target.to_owned());
                }
                fields.values().for_each(|field| refs(field, found));
            }
            Value::Array(items) => items.iter().for_each(|item| refs(item, found)),
            _ => {}
        }
    }
    let daemon = Running::start();
    let document = daemon.get("/openapi.json").json();
    let mut found = Vec::new();
    refs(&document, &mut found);
    assert!(found.len() > 20);
    for target in found {
        assert!(
            document
                .pointer(target.strip_prefix('#').unwrap())
                .is_some(),
            "{target}"
        );
    }
}

#[test]
fn a_hook_call_can_be_read_everywhere() {
    let daemon = Running::start();
    daemon.respond(HookResponse::deny("not today"));
    let body = json!({"hook_type": "pre-tool-use", "input_data": {"session_id": "abc"}});
    assert_eq!(daemon.post("/hooks/claude", &body).status, 200);
    daemon.until_stored(1);

    let listed = daemon
        .get("/events?agent=claude&decision=deny&event=BEFORE_TOOL&session=abc&since=1h&text=TODAY")
        .json();
    let event = &listed["events"][0];
    assert_eq!(listed["next"], Value::Null);
    assert_eq!(
        (
            event["event"].as_str(),
            event["type"].as_str(),
            event["reason"].as_str()
        ),
        (
            Some("before_tool_execute"),
            Some("BEFORE_TOOL"),
            Some("not today")
        )
    );
    assert_eq!(daemon.get("/events?until=1h").json()["events"], json!([]));
    let full = daemon
        .get(&format!("/events/{}", event["id"].as_str().unwrap()))
        .json();
    assert_eq!(full["record"]["response"]["reason"], "not today");
    assert_eq!(full["type"], "BEFORE_TOOL");

    let sessions = daemon.get("/sessions").json();
    assert_eq!(sessions["sessions"][0]["session_id"], "abc");
    let session = daemon.get("/sessions/abc").json();
    assert_eq!(session["session"]["denials"], 1);
    assert_eq!(session["session"]["by_tool"][0]["name"], "shell");
    assert_eq!(session["events"][0]["id"], event["id"]);

    let stats = daemon.get("/stats").json();
    assert_eq!(
        (stats["events"].as_i64(), stats["denials"].as_i64()),
        (Some(1), Some(1))
    );
    assert_eq!(stats["by_hook"][0]["duration_ms"]["p99"], 2.5);

    let metrics = daemon.get("/metrics").body;
    for line in [
        "anyhook_hook_requests_total{agent=\"claude-code\",decision=\"deny\"} 1",
        "anyhook_hook_duration_seconds_count{agent=\"claude-code\"} 1",
        "anyhook_http_requests_total{method=\"POST\",route=\"/hooks/{agent}\",status=\"200\"} 1",
        "anyhook_ingested_events_total{result=\"new\"} 1",
        "anyhook_store_last_seq 1",
    ] {
        assert!(
            metrics.lines().any(|found| found == line),
            "{line} in\n{metrics}"
        );
    }
    for (path, status, code) in [
        ("/events/none", 404, "not_found"),
        ("/sessions/none", 404, "not_found"),
        ("/events?cursor=x", 400, "cursor"),
        ("/events?limit=many", 400, "query"),
        ("/events?since=soon", 400, "time"),
        ("/events?since=99999999999999d", 400, "time"),
        ("/stats?decision=maybe", 400, "decision"),
    ] {
        let reply = daemon.get(path);
        assert_eq!(
            (reply.status, reply.code().as_str()),
            (status, code),
            "{path}"
        );
    }
}

#[test]
fn ingest_keeps_each_id_once() {
    let daemon = Running::start();
    let batch = json!([record("r1"), envelope("o1"), {"openhook": "0.1", "id": "x"}, 7]);
    let reply = ingest(&daemon, &batch);
    assert_eq!(reply.status, 200);
    let done = reply.json();
    assert_eq!(
        (&done["new"], &done["duplicate"], &done["refused"]),
        (&json!(2), &json!(0), &json!(2))
    );
    assert_eq!(
        done["faults"][0],
        json!({"item": 2, "message": "`type` is missing"})
    );
    assert_eq!(done["faults"][1]["item"], 3);

    let done = ingest(&daemon, &json!({"records": [record("r1"), record("r2")]})).json();
    assert_eq!((&done["new"], &done["duplicate"]), (&json!(1), &json!(1)));
    assert_eq!(ingest(&daemon, &envelope("o1")).json()["duplicate"], 1);

    let mut secret = record("r3");
    secret
        .event
        .data
        .insert("prompt".to_owned(), json!("my secret"));
    let lines = format!("{}\n\nbroken\n", serde_json::to_string(&secret).unwrap());
    let reply = Call::new("POST", "/ingest")
        .token()
        .header("x-anyhook-machine", "laptop-7")
        .body("application/x-ndjson", lines.as_bytes())
        .send(daemon.address);
    assert_eq!(
        (&reply.json()["new"], &reply.json()["refused"]),
        (&json!(1), &json!(1))
    );
    let kept = daemon.get("/events/r3").json();
    assert_eq!(kept["machine"], "laptop-7");
    assert_eq!(kept["record"]["event"]["data"]["prompt"], "[redacted]");
    assert_eq!(
        daemon.get("/events?machine=laptop-7").json()["events"]
            .as_array()
            .unwrap()
            .len(),
        1
    );

    let reply = ingest(&daemon, &json!([1, 2]));
    assert_eq!((reply.status, &reply.json()["refused"]), (422, &json!(2)));
    assert_eq!(daemon.get("/stats").json()["events"], 4);
}

#[test]
fn a_stream_resumes_where_it_was_cut() {
    let daemon = Running::start();
    let mut first = Sse::open(daemon.address, "/stream", None);
    append(&daemon.journal, &record("a"));
    let (id, event) = first.next().unwrap();
    assert_eq!((id.as_str(), event["id"].as_str()), ("1", Some("a")));
    drop(first);
    let batch: Vec<_> = (0..450).map(|n| record(&format!("b{n}"))).collect();
    assert_eq!(ingest(&daemon, &json!(batch)).json()["new"], 450);
    let mut second = Sse::open(daemon.address, "/stream", Some(&id));
    let seen: Vec<_> = (0..450)
        .map(|_| second.next().unwrap().1["id"].as_str().unwrap().to_owned())
        .collect();
    let expected: Vec<_> = batch.iter().map(|record| record.id.clone()).collect();
    assert_eq!(seen, expected);
    // And goes on, live.
    ingest(&daemon, &json!(record("c")));
    assert_eq!(second.next().unwrap().1["id"], "c");
    let mut narrow = Sse::open(daemon.address, "/stream?after=0&agent=codex", None);
    let mut other = record("d");
    other.agent = "codex".into();
    ingest(&daemon, &json!(other));
    assert_eq!(narrow.next().unwrap().1["id"], "d");
}

#[test]
fn a_web_socket_carries_the_same() {
    let daemon = Running::start();
    ingest(&daemon, &json!(record("a")));
    let stream = TcpStream::connect(daemon.address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let request = |token: &str| {
        tungstenite::http::Request::builder()
            .uri("ws://localhost/ws?after=0")
            .header("host", "localhost")
            .header("authorization", format!("Bearer {token}"))
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
            .body(())
            .unwrap()
    };
    let (mut socket, _) = tungstenite::client(request(TOKEN), stream).unwrap();
    let mut next = || loop {
        match socket.read().unwrap() {
            tungstenite::Message::Text(text) => {
                return serde_json::from_str::<Value>(&text).unwrap();
            }
            tungstenite::Message::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(next()["id"], "a");
    ingest(&daemon, &json!(record("b")));
    assert_eq!(next()["id"], "b");
    let stream = TcpStream::connect(daemon.address).unwrap();
    assert!(tungstenite::client(request("wrong"), stream).is_err());
}

/// Requests under way are finished, streams are ended, the journal is taken to its end.
#[test]
fn a_stop_drains() {
    let mut daemon = Running::start();
    *daemon.host.takes.lock().unwrap() = Duration::from_millis(400);
    let mut stream = Sse::open(daemon.address, "/stream", None);
    let address = daemon.address;
    let call = Call::new("POST", "/hooks/claude").json(&json!({"session_id": "s"}));
    let slow = std::thread::spawn(move || call.send(address));
    // The call itself is waited for: a count of connections would also include
    // one of an earlier request that is not closed yet.
    support::eventually(|| daemon.host.begun.load(Ordering::SeqCst) == 1);
    daemon.stop();
    assert_eq!(slow.join().unwrap().status, 200);
    while let Some((_, event)) = stream.next() {
        assert!(event["id"].as_str().unwrap().starts_with("hook-"));
    }
    assert_eq!(daemon.store.last_seq().unwrap(), 1);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn the_page_opens_once_by_its_link() {
    let daemon = Running::start();
    let (base, code) = daemon.link.split_once("/#code=").unwrap();
    assert_eq!(base, format!("http://{}", daemon.address));
    let page = Call::new("GET", "/").send(daemon.address);
    assert_eq!(page.status, 200);
    assert!(
        page.headers["content-security-policy"]
            .starts_with("default-src 'none'; script-src 'self'")
    );
    let exchange = |code: &str| {
        Call::new("POST", "/session")
            .json(&json!({ "code": code }))
            .send(daemon.address)
    };
    assert_eq!(exchange("guessed").status, 401);
    let token = exchange(code).json()["token"].as_str().unwrap().to_owned();
    assert_ne!(token, TOKEN);
    let read = Call::new("GET", "/events").header("authorization", &format!("Bearer {token}"));
    assert_eq!(read.send(daemon.address).status, 200);
    assert_eq!(exchange(code).status, 401, "a link opens once");
    let link = Call::new("POST", "/link")
        .token()
        .send(daemon.address)
        .json();
    let code = link["link"]
        .as_str()
        .unwrap()
        .split_once("#code=")
        .unwrap()
        .1
        .to_owned();
    assert_eq!(exchange(&code).status, 200);
}
