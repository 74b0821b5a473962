//! Tokens and cost: from what agents write to `anyhook stats` and to the turn's trace.

use std::fmt::Write as _;

use anyhook_testkit::{Scratch, wait_until};
use serde_json::{Value, json};

use crate::receiver::{Receiver, attributes};
use crate::sessions::{anyhook, record};

/// An agent, its transcript, and the sums: input, cached, output.
pub(crate) const TRANSCRIPTS: &[(&str, &str, [u64; 3])] = &[
    (
        "claude-code",
        // The first message has two parts.
        r#"{"type":"user","timestamp":"NOW","message":{"role":"user","content":"the word usage"}}
{"type":"assistant","timestamp":"NOW","message":{"id":"m1","model":"claude-sonnet-4-5-20250929","usage":{"input_tokens":3,"cache_creation_input_tokens":10,"cache_read_input_tokens":100,"output_tokens":1}}}
{"type":"assistant","timestamp":"NOW","message":{"id":"m1","model":"claude-sonnet-4-5-20250929","usage":{"input_tokens":3,"cache_creation_input_tokens":10,"cache_read_input_tokens":100,"output_tokens":7}}}
{"type":"assistant","timestamp":"NOW","message":{"id":"m2","model":"claude-sonnet-4-5-20250929","usage":{"input_tokens":2,"output_tokens":5}}}
{"type":"assistant","timestamp":"NOW","message":{"id":"m3","model":"<synthetic>","usage":{"input_tokens":0,"output_tokens":0}}}
not JSON, "usage"
"#,
        [115, 100, 12],
    ),
    (
        "codex",
        r#"{"timestamp":"NOW","type":"turn_context","payload":{"model":"gpt-5-codex"}}
{"timestamp":"NOW","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":10,"cached_input_tokens":4,"output_tokens":5,"total_tokens":15},"last_token_usage":{"input_tokens":10,"cached_input_tokens":4,"output_tokens":5,"total_tokens":15}}}}
{"timestamp":"NOW","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":10,"cached_input_tokens":4,"output_tokens":5,"total_tokens":15},"last_token_usage":{"input_tokens":10,"cached_input_tokens":4,"output_tokens":5,"total_tokens":15}}}}
{"timestamp":"NOW","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":30,"cached_input_tokens":9,"output_tokens":8,"total_tokens":38},"last_token_usage":{"input_tokens":20,"cached_input_tokens":5,"output_tokens":3,"total_tokens":23}}}}
{"timestamp":"NOW","type":"event_msg","payload":{"type":"token_count","info":null}}
"#,
        [30, 9, 8],
    ),
    (
        "gemini-cli",
        r#"{"id":"1","timestamp":"NOW","type":"user","content":"tokens"}
{"id":"2","timestamp":"NOW","type":"gemini","model":"gemini-2.5-pro","tokens":{"input":10,"output":2,"cached":5,"thoughts":3,"tool":1,"total":16}}
{"id":"2","timestamp":"NOW","type":"gemini","model":"gemini-2.5-pro","tokens":{"input":10,"output":2,"cached":5,"thoughts":3,"tool":1,"total":16}}
"#,
        [11, 5, 5],
    ),
    (
        "qwen-code",
        r#"{"uuid":"1","timestamp":"NOW","type":"assistant","model":"qwen3-coder-plus","usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":4,"cachedContentTokenCount":2,"totalTokenCount":14}}
"#,
        [10, 2, 4],
    ),
];

pub(crate) fn now() -> String {
    anyhook_util::time::rfc3339(jiff::Timestamp::now())
}

pub(crate) fn send(scratch: &Scratch, agent: &str, event: &str, more: Value) {
    let mut payload = json!({
        "session_id": format!("s-{agent}"), "hook_event_name": event, "cwd": scratch.project(),
        "transcript_path": scratch.root().join(format!("{agent}.jsonl")), "timestamp": now(),
        "turn_id": "t", "model": "m", "permission_mode": "default", "stop_hook_active": false,
    });
    if agent != "codex" {
        payload.as_object_mut().unwrap().remove("model");
    }
    for (name, value) in more.as_object().unwrap() {
        payload[name] = value.clone();
    }
    record(scratch, agent, &payload);
}

/// A turn of each agent, with its transcript.
pub(crate) fn record_turns() -> Scratch {
    let scratch = Scratch::new().unwrap();
    for (agent, transcript, _) in TRANSCRIPTS {
        let (prompt, stop) = match *agent {
            "gemini-cli" => ("BeforeAgent", "AfterAgent"),
            _ => ("UserPromptSubmit", "Stop"),
        };
        send(&scratch, agent, prompt, json!({"prompt": "go"}));
        let path = scratch.root().join(format!("{agent}.jsonl"));
        std::fs::write(path, transcript.replace("NOW", &now())).unwrap();
        send(
            &scratch,
            agent,
            stop,
            json!({"last_assistant_message": "done"}),
        );
    }
    scratch
}

fn usage_of(scratch: &Scratch, args: &[&str]) -> Value {
    let mut all = vec!["stats", "--json"];
    all.extend(args);
    anyhook(scratch, &all).json().unwrap()["usage"].clone()
}

fn counts(row: &Value) -> [u64; 3] {
    ["input_tokens", "cache_read_tokens", "output_tokens"].map(|name| row[name].as_u64().unwrap())
}

#[test]
fn stats_sum_the_tokens_of_transcripts_once() {
    let scratch = record_turns();
    // Again: nothing is counted twice.
    for _ in 0..2 {
        let usage = usage_of(&scratch, &[]);
        let rows = usage["by_model"].as_array().unwrap();
        assert_eq!(rows.len(), TRANSCRIPTS.len(), "{usage:#}");
        for (agent, _, expected) in TRANSCRIPTS {
            let row = rows.iter().find(|row| row["agent"] == *agent).unwrap();
            assert_eq!(counts(row), *expected, "{agent}");
        }
        // 5 plain, 10 written to and 100 read from the cache, 12 out.
        let claude = rows
            .iter()
            .find(|row| row["agent"] == "claude-code")
            .unwrap();
        let expected = (5.0 * 3.0 + 10.0 * 3.75 + 100.0 * 0.3 + 12.0 * 15.0) / 1e6;
        assert!((claude["cost_usd"].as_f64().unwrap() - expected).abs() < 1e-12);
        assert_eq!(claude["calls"], 2);
        // No price is known for this one.
        let qwen = rows.iter().find(|row| row["agent"] == "qwen-code").unwrap();
        assert_eq!(qwen["cost_usd"], Value::Null);
    }
    let one = usage_of(&scratch, &["--session", "s-codex"]);
    assert_eq!(one["by_model"].as_array().unwrap().len(), 1);
    let text = anyhook(&scratch, &["stats"]).stdout;
    assert!(text.contains("claude-sonnet-4-5-20250929"), "{text}");
    assert!(text.contains("no price"), "{text}");
}

#[test]
fn a_transcript_that_grows_is_read_on() {
    let scratch = record_turns();
    usage_of(&scratch, &[]);
    let path = scratch.root().join("claude-code.jsonl");
    let mut text = std::fs::read_to_string(&path).unwrap();
    writeln!(
        text,
        r#"{{"timestamp":"{}","message":{{"id":"m9","model":"claude-sonnet-4-5","usage":{{"input_tokens":1,"output_tokens":1}}}}}}"#,
        now()
    )
    .unwrap();
    text.push_str(r#"{"message":{"id":"m10","usage":{"input_tokens":50"#);
    std::fs::write(&path, text).unwrap();
    let usage = usage_of(&scratch, &["--agent", "claude-code"]);
    let rows = usage["by_model"].as_array().unwrap();
    let input: u64 = rows.iter().map(|row| counts(row)[0]).sum();
    assert_eq!(input, 116, "{usage:#}");
}

#[test]
fn the_users_prices_win() {
    let scratch = record_turns();
    let prices =
        "date = \"2030-01-01\"\n[models]\n\"qwen3-coder-plus\" = { input = 1e6, output = 0 }\n";
    scratch
        .file(scratch.config().join("prices.toml"), prices)
        .unwrap();
    let usage = usage_of(&scratch, &["--agent", "qwen-code"]);
    assert_eq!(usage["cost_usd"], 10.0);
    assert_eq!(usage["prices_date"], "2030-01-01");
    scratch
        .file(scratch.config().join("prices.toml"), "date = 3\n")
        .unwrap();
    let output = anyhook(&scratch, &["stats"]);
    assert_eq!(output.exit, Some(1));
    assert!(output.stderr.contains("prices.toml"), "{output:?}");
}

#[test]
fn a_turn_has_its_calls_tokens_and_cost() {
    let scratch = record_turns();
    let receiver = Receiver::start();
    let url = receiver.url();
    let args = ["export", "otlp", "--close-turns", "--endpoint", &url];
    assert_eq!(anyhook(&scratch, &args).exit, Some(0));
    let spans = receiver.received().spans;
    for (agent, _, [input, cached, output]) in TRANSCRIPTS {
        let session = format!("s-{agent}");
        let of_session: Vec<_> = spans
            .iter()
            .map(|span| (span, attributes(&span.attributes)))
            .filter(|(_, fields)| fields["session.id"] == session)
            .collect();
        let (root, fields) = of_session
            .iter()
            .find(|(span, _)| span.parent_span_id.is_empty())
            .unwrap();
        assert_eq!(fields["anyhook.turn.input_tokens"], *input, "{agent}");
        assert_eq!(fields["anyhook.turn.cache_read_tokens"], *cached);
        assert_eq!(fields["anyhook.turn.output_tokens"], *output);
        let unpriced = &fields["anyhook.turn.unpriced_calls"];
        assert_eq!(*unpriced == 1, *agent == "qwen-code", "{agent}: {fields:#}");
        assert_eq!(
            fields["anyhook.turn.cost_usd"].is_f64(),
            *agent != "qwen-code"
        );
        let chats: Vec<_> = of_session
            .iter()
            .filter(|(span, _)| span.name.starts_with("chat "))
            .collect();
        assert!(
            chats
                .iter()
                .all(|(span, _)| span.parent_span_id == root.span_id)
        );
        // Whoever adds up all spans of the trace counts each call once.
        for name in ["llm.token_count.prompt", "gen_ai.usage.input_tokens"] {
            let counts = of_session.iter().filter_map(|(_, it)| it[name].as_u64());
            assert_eq!(counts.sum::<u64>(), *input, "{agent}");
        }
    }
    let metrics = receiver.received().metrics;
    let names: Vec<_> = metrics.iter().map(|metric| metric.name.as_str()).collect();
    assert!(names.contains(&"gen_ai.client.token.usage"), "{names:?}");
    assert!(names.contains(&"anyhook.cost"), "{names:?}");
}

#[test]
fn the_end_of_a_session_tells_consumers_its_cost() {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    let out = scratch.root().join("envelopes.jsonl");
    let consumer = json!({"openhook": "0.1", "hooks": [
        {"command": format!("cat >> {}", out.display()), "async": false},
    ]});
    scratch
        .file(".openhook.json", &consumer.to_string())
        .unwrap();
    let cost_at_end = |model: &str| {
        let line = json!({"timestamp": now(), "message": {"id": model, "model": model,
            "usage": {"input_tokens": 0, "output_tokens": 100_000}}});
        let path = scratch.root().join("claude-code.jsonl");
        std::fs::write(path, format!("{line}\n")).unwrap();
        let _ = std::fs::remove_file(&out);
        let more = json!({"reason": "other"});
        send(&scratch, "claude-code", "SessionEnd", more);
        let text = std::fs::read_to_string(&out).unwrap();
        let end: Value = serde_json::from_str(text.lines().next_back().unwrap()).unwrap();
        assert_eq!(end["type"], "session.end");
        end["extensions"]["dev.anyhook"]["cost_usd"].clone()
    };
    // The end of a session waits only a moment for the sums.
    wait_until("the cost is told", || {
        cost_at_end("claude-sonnet-4-5") == 1.5
    });
    std::fs::remove_dir_all(scratch.state().join("usage")).unwrap();
    assert_eq!(cost_at_end("unheard-of"), Value::Null);
}

#[test]
fn the_log_of_a_session_has_its_tokens_and_cost() {
    let scratch = record_turns();
    let output = anyhook(&scratch, &["log", "--session", "s-claude-code"]);
    let expected = "2 model calls in this session, 115 input and 12 output tokens, <$0.01";
    assert!(output.stderr.contains(expected), "{output:?}");
    let output = anyhook(&scratch, &["log", "--session", "s-qwen-code"]);
    assert!(
        output.stderr.contains("1 model call in this session"),
        "{output:?}"
    );
    assert!(output.stderr.contains("no price"), "{output:?}");
    let newest = anyhook(
        &scratch,
        &["log", "--session", "s-codex", "-n", "1", "--json"],
    );
    let id = newest.json().unwrap()["id"].as_str().unwrap().to_owned();
    let one = anyhook(&scratch, &["log", &id]).stdout;
    assert!(one.contains("30 input and 8 output tokens"), "{one}");
}
