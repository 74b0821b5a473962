//! Requests that must be refused, and a daemon that stays up.

#![cfg(test)]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhook_daemon::token_file;
use serde_json::json;
use support::{Call, Reply, Running, TOKEN};

fn hook() -> Call {
    Call::new("POST", "/hooks/claude").json(&json!({"session_id": "s"}))
}

fn events() -> Call {
    Call::new("GET", "/events").token()
}

#[test]
fn each_gets_its_refusal() {
    let daemon = Running::start();
    let own = format!("http://{}", daemon.address);
    let cases: Vec<(&str, Call, u16, &str)> = vec![
        ("a plain hook", hook(), 200, ""),
        (
            "by address",
            hook().header("host", "127.0.0.1:24665"),
            200,
            "",
        ),
        (
            "by IPv6 address",
            hook().header("host", "[::1]:24665"),
            200,
            "",
        ),
        (
            "a rebound name",
            hook().header("host", "evil.example:24665"),
            403,
            "host",
        ),
        (
            "a name that looks local",
            hook().header("host", "localhost.evil.example"),
            403,
            "host",
        ),
        (
            "an address of another network",
            hook().header("host", "192.168.1.7:24665"),
            403,
            "host",
        ),
        ("no host", hook().without("host"), 400, "host"),
        (
            "a host with a user",
            hook().header("host", "localhost@evil.example"),
            400,
            "host",
        ),
        ("an empty host", hook().header("host", ""), 400, "host"),
        (
            "an absolute path to elsewhere",
            Call::new("POST", "http://evil.example/hooks/claude").json(&json!({})),
            400,
            "host",
        ),
        (
            "a foreign origin",
            hook().header("origin", "https://evil.example"),
            403,
            "origin",
        ),
        (
            "a foreign origin with the token",
            hook().token().header("origin", "https://evil.example"),
            403,
            "origin",
        ),
        (
            "a sandboxed page",
            hook().header("origin", "null"),
            403,
            "origin",
        ),
        (
            "a neighbour on another port",
            hook().header("origin", "http://localhost:3000"),
            403,
            "origin",
        ),
        (
            "an extension",
            hook().header("origin", "chrome-extension://abc"),
            403,
            "origin",
        ),
        (
            "our page without its token",
            hook().header("origin", "http://localhost:24665"),
            401,
            "token",
        ),
        (
            "our page with its token",
            hook().token().header("origin", "http://localhost:24665"),
            200,
            "",
        ),
        (
            "a form of another site",
            hook().header("sec-fetch-site", "cross-site"),
            403,
            "origin",
        ),
        (
            "a browser without origin",
            hook().header("sec-fetch-site", "same-origin"),
            401,
            "token",
        ),
        (
            "reading without a token",
            Call::new("GET", "/events"),
            401,
            "token",
        ),
        (
            "asking for the head of it",
            Call::new("HEAD", "/events"),
            401,
            "",
        ),
        (
            "reading with a wrong token",
            events().header("authorization", "Bearer 0123456789abcdef0123456789abcdeF"),
            401,
            "token",
        ),
        (
            "reading with an empty token",
            events().header("authorization", "Bearer "),
            401,
            "token",
        ),
        (
            "reading with another scheme",
            events().header("authorization", &format!("Basic {TOKEN}")),
            401,
            "token",
        ),
        (
            "reading from another page",
            events().header("origin", "https://evil.example"),
            403,
            "origin",
        ),
        (
            "an image of another page",
            events().header("sec-fetch-site", "cross-site"),
            403,
            "origin",
        ),
        (
            "ingest without a token",
            Call::new("POST", "/ingest").json(&json!([])),
            401,
            "token",
        ),
        (
            "metrics without a token",
            Call::new("GET", "/metrics"),
            401,
            "token",
        ),
        (
            "a stream without a token",
            Call::new("GET", "/stream"),
            401,
            "token",
        ),
        (
            "a socket without a token",
            Call::new("GET", "/ws"),
            401,
            "token",
        ),
        (
            "the page by a rebound name",
            Call::new("GET", "/").header("host", "evil.example"),
            403,
            "host",
        ),
        (
            "the page in another's frame",
            Call::new("GET", "/")
                .header("sec-fetch-site", "cross-site")
                .header("sec-fetch-mode", "no-cors"),
            403,
            "origin",
        ),
        (
            "asking first",
            Call::new("OPTIONS", "/hooks/claude")
                .header("origin", "https://evil.example")
                .header("access-control-request-method", "POST"),
            403,
            "origin",
        ),
        (
            "a text",
            hook().header("content-type", "text/plain"),
            415,
            "content_type",
        ),
        (
            "a form",
            hook().header("content-type", "application/x-www-form-urlencoded"),
            415,
            "content_type",
        ),
        (
            "no type",
            hook().without("content-type"),
            415,
            "content_type",
        ),
        (
            "lines, where one object is wanted",
            hook().header("content-type", "application/x-ndjson"),
            415,
            "content_type",
        ),
        (
            "broken JSON",
            Call::new("POST", "/hooks/claude").body("application/json", b"{\"a\":"),
            400,
            "json",
        ),
        (
            "no UTF-8",
            Call::new("POST", "/hooks/claude").body("application/json", b"{\"a\":\"\xff\"}"),
            400,
            "json",
        ),
        (
            "nothing",
            Call::new("POST", "/hooks/claude").body("application/json", b""),
            400,
            "json",
        ),
        (
            "an array",
            Call::new("POST", "/hooks/claude").json(&json!([1])),
            400,
            "shape",
        ),
        (
            "a tower of arrays",
            Call::new("POST", "/hooks/claude")
                .body("application/json", "[".repeat(100_000).as_bytes()),
            400,
            "json",
        ),
        (
            "an unknown agent",
            Call::new("POST", "/hooks/nobody").json(&json!({})),
            404,
            "agent",
        ),
        (
            "another's source",
            Call::new("POST", "/hooks/claude")
                .json(&json!({"source": "gemini", "hook_type": "x", "input_data": {}})),
            400,
            "source",
        ),
        (
            "a path that climbs",
            Call::new("GET", "/assets/../../../etc/passwd"),
            404,
            "not_found",
        ),
        (
            "an encoded path that climbs",
            Call::new("GET", "/assets/%2e%2e%2f%2e%2e%2fetc%2fpasswd"),
            404,
            "not_found",
        ),
        (
            "a doubled slash",
            Call::new("POST", "//hooks/claude").json(&json!({})),
            404,
            "not_found",
        ),
        (
            "an agent that climbs",
            Call::new("POST", "/hooks/..%2f..%2fetc").json(&json!({})),
            404,
            "agent",
        ),
        (
            "an agent with NUL",
            Call::new("POST", "/hooks/claude%00").json(&json!({})),
            404,
            "agent",
        ),
        (
            "another method",
            Call::new("DELETE", "/events").token(),
            405,
            "method",
        ),
        (
            "a foreign origin that only looks like ours",
            hook().header("origin", &(own + ".evil.example")),
            403,
            "origin",
        ),
    ];
    for (name, call, status, code) in cases {
        let reply = call.send(daemon.address);
        assert_eq!(reply.status, status, "{name}: {}", reply.body);
        if !code.is_empty() {
            assert_eq!(reply.code(), code, "{name}");
        }
        assert!(
            !reply.headers.contains_key("access-control-allow-origin"),
            "{name}"
        );
        assert_eq!(reply.headers["x-content-type-options"], "nosniff", "{name}");
    }
    assert_eq!(hook().send(daemon.address).status, 200);
}

#[test]
fn off_loopback_everything_needs_the_token() {
    let daemon = Running::with(|config| config.listen = ([0, 0, 0, 0], 0).into());
    for (call, without, with) in [
        (hook(), 401, 200),
        (Call::new("GET", "/events"), 401, 200),
        (Call::new("GET", "/openapi.json"), 401, 200),
        (Call::new("GET", "/metrics"), 401, 200),
        (Call::new("GET", "/"), 200, 200),
        (hook().header("host", "10.1.2.3:24665"), 401, 200),
        (hook().header("host", "evil.example"), 403, 403),
    ] {
        assert_eq!(call.send(daemon.address).status, without);
        assert_eq!(call.token().send(daemon.address).status, with);
    }
    let named = Running::with(|config| config.hosts = vec!["hooks.example".to_owned()]);
    assert_eq!(
        hook()
            .header("host", "Hooks.Example:24665")
            .send(named.address)
            .status,
        200
    );
    let strict = Running::with(|config| config.require_token = true);
    assert_eq!(hook().send(strict.address).status, 401);
    assert_eq!(hook().token().send(strict.address).status, 200);
}

#[test]
fn a_gigabyte_is_refused_before_it_comes() {
    let daemon = Running::start();
    let head = |length: &str| {
        format!(
            "POST /hooks/claude HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{length}\r\n\r\n"
        )
    };
    let mut stream = TcpStream::connect(daemon.address).unwrap();
    stream
        .write_all(head("content-length: 1073741824").as_bytes())
        .unwrap();
    assert_eq!(Reply::read(&mut stream).unwrap().status, 413);
    // Not announced: cut off at the limit, however much would follow.
    let mut stream = TcpStream::connect(daemon.address).unwrap();
    stream
        .write_all(head("transfer-encoding: chunked").as_bytes())
        .unwrap();
    let chunk = vec![b' '; 1 << 20];
    let mut sent = 0_u64;
    let mut write = || {
        stream.write_all(b"100000\r\n")?;
        stream.write_all(&chunk)?;
        stream.write_all(b"\r\n")
    };
    while sent < 1024 && write().is_ok() {
        sent += 1;
    }
    assert!(sent < 64, "{sent} MiB were taken");
    let mut stream = TcpStream::connect(daemon.address).unwrap();
    stream
        .write_all(head("content-length: 99999999999999999999999999").as_bytes())
        .unwrap();
    assert_eq!(Reply::read(&mut stream).unwrap().status, 400);
    // A head without end.
    let mut stream = TcpStream::connect(daemon.address).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    let line = format!("x: {}\r\n", "y".repeat(4000));
    // The sockets' own buffers hold some megabytes.
    let refused = (0..50_000).any(|_| stream.write_all(line.as_bytes()).is_err());
    assert!(refused, "two hundred megabytes of headers were taken");
    assert_eq!(hook().send(daemon.address).status, 200);
}

#[test]
fn the_slow_are_cut_off_and_the_many_turned_away() {
    let daemon = Running::with(|config| {
        config.limits.head_timeout = Duration::from_millis(300);
        config.limits.body_timeout = Duration::from_millis(300);
        config.limits.connections = 20;
        config.limits.streams = 2;
    });
    let hang = |text: &str| {
        let mut stream = TcpStream::connect(daemon.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    };
    let ended = |mut stream: TcpStream| {
        let mut rest = Vec::new();
        // A reset is an end too.
        let _ = stream.read_to_end(&mut rest);
        String::from_utf8_lossy(&rest).into_owned()
    };
    // Nothing at all, half a head, half a body, and a connection that is kept and not used.
    ended(hang(""));
    ended(hang("POST /hooks/claude HTTP/1.1\r\nhost: localh"));
    let text = ended(hang(
        "POST /hooks/claude HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{",
    ));
    assert!(text.starts_with("HTTP/1.1 408"), "{text}");
    let text = ended(hang(
        "GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n",
    ));
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");

    // Slow ones take every place, and give it to whoever comes next.
    let many: Vec<_> = (0..60).map(|_| hang("GET / HT")).collect();
    let begun = std::time::Instant::now();
    assert_eq!(hook().send(daemon.address).status, 200);
    assert!(begun.elapsed() < Duration::from_secs(1));
    for answer in many.into_iter().map(ended) {
        assert!(!answer.contains("503"), "{answer}");
    }

    // Hooks and streams may take longer than a head.
    *daemon.host.takes.lock().unwrap() = Duration::from_millis(900);
    let mut stream = support::Sse::open(daemon.address, "/stream", None);
    assert_eq!(hook().send(daemon.address).status, 200);
    assert!(stream.next().is_some());
    drop(stream);
    support::eventually(|| {
        daemon
            .get("/metrics")
            .body
            .contains("\nanyhook_streams 0\n")
    });

    let streams: Vec<_> = (0..2)
        .map(|_| support::Sse::open(daemon.address, "/stream", None))
        .collect();
    assert_eq!(daemon.get("/stream").status, 503);
    drop(streams);
    support::eventually(|| {
        daemon
            .get("/metrics")
            .body
            .contains("\nanyhook_streams 0\n")
    });
}

#[cfg(unix)]
#[test]
fn the_token_file_is_its_owners_only() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    let token = token_file(&path).unwrap();
    assert_eq!((token.len(), mode()), (64, 0o600));
    assert_eq!(token_file(&path).unwrap(), token);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    token_file(&path).unwrap();
    assert_eq!(mode(), 0o600, "what others could read is closed");
    std::fs::write(&path, "").unwrap();
    assert_ne!(
        token_file(&path).unwrap(),
        token,
        "an empty file is no token"
    );
}
