//! HTTP handlers, and prompts that a model or a program evaluates.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use anyhook_model::RunOutcome;
use serde_json::{Value, json};

use crate::scratch::{DispatchScratch, manifest};

struct Request {
    head: String,
    body: Value,
}

/// A server on this machine that answers one request.
fn server(status: &'static str, body: String) -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            reader.read_line(&mut head).unwrap();
        }
        let length = head
            .lines()
            .find_map(|line| {
                line.to_ascii_lowercase()
                    .strip_prefix("content-length: ")
                    .map(str::to_owned)
            })
            .map_or(0, |length| length.parse().unwrap());
        let mut content = vec![0; length];
        reader.read_exact(&mut content).unwrap();
        let length = body.len();
        let _ = write!(
            stream,
            "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nlocation: http://example.test/\r\n\r\n{body}"
        );
        let body = serde_json::from_slice(&content).unwrap_or_default();
        let _ = sender.send(Request { head, body });
    });
    (address, requests)
}

fn http_hook(url: &str, more: &str) -> DispatchScratch {
    let scratch = DispatchScratch::new();
    scratch.write(
        "project/.anyhook/hooks.yaml",
        &manifest(&format!(
            "  - name: remote\n    event: before_tool_execute\n    blocking: true\n    handler:\n      type: http\n      url: {url}\n{more}"
        )),
    );
    scratch
}

#[test]
fn the_event_is_posted_and_the_body_is_the_answer() {
    let (url, requests) = server(
        "200 OK",
        json!({"decision": "deny", "reason": "remote"}).to_string(),
    );
    let mut scratch = http_hook(
        &url,
        "      headers: {authorization: 'Bearer $KEY'}\n      allowed_env_vars: [KEY]\n",
    );
    scratch.env.push(("KEY".to_owned(), "s3cret".to_owned()));
    assert_eq!(scratch.call().response()["reason"], "remote");
    let request = requests.recv().unwrap();
    assert!(request.head.starts_with("POST / "), "{}", request.head);
    assert!(
        request.head.contains("authorization: Bearer s3cret"),
        "{}",
        request.head
    );
    assert_eq!(request.body["event"], "before_tool_execute");
}

#[test]
fn a_service_that_fails_does_not_block() {
    for status in ["500 Oops", "302 Found"] {
        let (url, _requests) = server(status, json!({"decision": "deny"}).to_string());
        let scratch = http_hook(&url, "");
        let output = scratch.call();
        assert!(!output.is_deny(), "{output:?}");
        assert!(
            output.message().contains("the server answered"),
            "{output:?}"
        );
    }
    let (url, _requests) = server("200 OK", "no json".to_owned());
    let output = http_hook(&url, "").call();
    assert!(output.message().contains("not JSON"), "{output:?}");

    let quiet = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", quiet.local_addr().unwrap());
    let scratch = http_hook(&url, "      timeout: 0.2\n      timeout_action: block\n");
    assert!(scratch.call().is_deny());
    assert_eq!(scratch.journal()[0].hooks[0].outcome, RunOutcome::Timeout);
}

#[test]
fn what_may_not_be_called_or_sent() {
    let cases = [
        ("http://example.test/", "", "not https"),
        (
            "http://127.0.0.1:9/",
            "      headers: {x: $HOME}\n",
            "not in `allowed_env_vars`",
        ),
    ];
    for (url, more, message) in cases {
        let output = http_hook(url, more).call();
        assert!(output.message().contains(message), "{output:?}");
    }
}

fn prompt_hook(more: &str) -> DispatchScratch {
    let scratch = DispatchScratch::new();
    scratch.write(
        "project/.anyhook/hooks.yaml",
        &manifest(&format!(
            "  - name: judge\n    event: before_tool_execute\n    blocking: true\n{more}    handler:\n      type: prompt\n      prompt: Is it fine?\n"
        )),
    );
    scratch
}

#[test]
fn without_an_evaluator_the_strategy_decides() {
    let cases = [
        ("", false, RunOutcome::Skipped),
        (
            "    degradation: {llm_evaluated: warn}\n",
            false,
            RunOutcome::Warn,
        ),
        (
            "    degradation: {llm_evaluated: block}\n",
            true,
            RunOutcome::Deny,
        ),
    ];
    for (more, denies, outcome) in cases {
        let scratch = prompt_hook(more);
        let output = scratch.call();
        assert_eq!(output.is_deny(), denies);
        assert!(
            output.message().contains("no evaluator is configured"),
            "{output:?}"
        );
        assert_eq!(scratch.call().message(), "", "shown once");
        assert_eq!(scratch.journal()[0].hooks[0].outcome, outcome);
    }
}

/// Only the agent has a connection to its MCP servers.
#[test]
fn a_tool_of_an_mcp_server_is_a_failure_that_is_shown() {
    for (more, denies) in [("", false), ("    on_failure: block\n", true)] {
        let scratch = DispatchScratch::new();
        scratch.manifest(&format!(
            "  - event: before_tool_execute\n    blocking: true\n{more}    handler: {{type: mcp_tool, server: srv, tool: check}}\n"
        ));
        let output = scratch.call();
        assert_eq!(output.is_deny(), denies);
        let shown = format!("{output:?}");
        assert!(shown.contains("only the agent itself can call"), "{shown}");
        assert_eq!(scratch.journal()[0].hooks[0].outcome, RunOutcome::Error);
    }
}

#[test]
fn a_program_judges() {
    let scratch = prompt_hook("");
    scratch.write("config/config.yaml", "evaluator:\n  command: ./judge.sh\n");
    scratch.script(
        "config/judge.sh",
        "#!/bin/sh\ngrep -q 'Is it fine?' && echo 'Well: {\"ok\": false, \"reason\": \"not fine\"}'\n",
    );
    assert_eq!(scratch.call().response()["reason"], "not fine");
}

#[test]
fn a_model_judges() {
    let verdict = r#"{"ok": false, "reason": "not fine"}"#;
    let cases = [
        (
            "openai",
            json!({"choices": [{"message": {"content": verdict}}]}),
            "POST /chat/completions ",
            "authorization: Bearer k",
        ),
        (
            "anthropic",
            json!({"content": [{"type": "text", "text": verdict}]}),
            "POST /v1/messages ",
            "x-api-key: k",
        ),
    ];
    for (api, answer, line, header) in cases {
        let (url, requests) = server("200 OK", answer.to_string());
        let mut scratch = prompt_hook("");
        scratch.write(
            "config/config.json",
            &json!({"evaluator": {"api": api, "base_url": url, "key_env": "K", "model": "m"}})
                .to_string(),
        );
        scratch.env.push(("K".to_owned(), "k".to_owned()));
        assert_eq!(scratch.call().response()["reason"], "not fine", "{api}");
        let request = requests.recv().unwrap();
        assert!(request.head.starts_with(line), "{}", request.head);
        assert!(request.head.contains(header), "{}", request.head);
        assert_eq!(request.body["model"], "m");
    }
}
