//! Calls of a model that are found before or after their turn, or belong to none.

use std::fmt::Write as _;

use anyhook_testkit::Scratch;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::{Value, json};

use crate::receiver::{Received, Receiver, attributes};
use crate::sessions::anyhook;
use crate::usage::{now, send};

const AGENT: &str = "claude-code";

fn turn(scratch: &Scratch) {
    send(scratch, AGENT, "UserPromptSubmit", json!({"prompt": "go"}));
    send(scratch, AGENT, "Stop", json!({}));
}

/// Appends a call to the transcript.
fn call(scratch: &Scratch, time: &str, id: &str, output: u64) {
    let path = scratch.root().join(format!("{AGENT}.jsonl"));
    let mut text = std::fs::read_to_string(&path).unwrap_or_default();
    let line = json!({"timestamp": time, "message": {"id": id, "model": "claude-sonnet-4-5",
        "usage": {"input_tokens": 1, "output_tokens": output}}});
    writeln!(text, "{line}").unwrap();
    std::fs::write(path, text).unwrap();
}

fn export(scratch: &Scratch, receiver: &Receiver, more: &[&str]) -> Received {
    let url = receiver.url();
    let mut args = vec!["export", "otlp", "--endpoint", &url];
    args.extend(more);
    let output = anyhook(scratch, &args);
    assert_eq!(output.exit, Some(0), "{output:?}");
    receiver.received()
}

fn output_tokens(span: &Span) -> u64 {
    let fields = attributes(&span.attributes);
    fields["gen_ai.usage.output_tokens"].as_u64().unwrap()
}

/// The turns, each with the output tokens of the calls in its trace.
fn turns(received: &Received) -> Vec<(Vec<u8>, Vec<u64>)> {
    let is_turn = |span: &&Span| span.name.starts_with("invoke_agent");
    let turns = received.spans.iter().filter(is_turn);
    let found = turns.map(|turn| {
        let calls = received.spans.iter().filter(|span| {
            let is_below = span.parent_span_id == turn.span_id;
            is_below && span.trace_id == turn.trace_id
        });
        (turn.span_id.clone(), calls.map(output_tokens).collect())
    });
    found.collect()
}

#[test]
fn a_call_that_is_found_after_its_turn_was_sent_is_in_its_trace() {
    let scratch = Scratch::new().unwrap();
    let receiver = Receiver::start();
    turn(&scratch);
    let during_first = now();
    assert_eq!(turns(&export(&scratch, &receiver, &[]))[0].1, [0; 0]);
    // No event comes after it.
    call(&scratch, &during_first, "m1", 5);
    let received = export(&scratch, &receiver, &[]);
    assert_eq!(turns(&received)[0].1, [5]);
    let names: Vec<_> = received.metrics.iter().map(|it| &it.name).collect();
    assert!(
        names.iter().any(|name| *name == "anyhook.cost"),
        "{names:?}"
    );
    // The same call grows, when another turn has begun.
    send(&scratch, AGENT, "UserPromptSubmit", json!({"prompt": "go"}));
    call(&scratch, &during_first, "m1", 8);
    export(&scratch, &receiver, &[]);
    call(&scratch, &now(), "m2", 100);
    send(&scratch, AGENT, "Stop", json!({}));
    let received = export(&scratch, &receiver, &[]);
    let turns = turns(&received);
    assert_eq!(turns[0].1, [5, 3]);
    assert_eq!(turns[1].1, [100]);
    let ids: std::collections::BTreeSet<_> = received.spans.iter().map(|it| &it.span_id).collect();
    assert_eq!(ids.len(), received.spans.len());
}

#[test]
fn a_call_outside_of_turns_is_a_trace_of_its_session() {
    let scratch = Scratch::new().unwrap();
    let receiver = Receiver::start();
    // Only this event was recorded.
    send(
        &scratch,
        AGENT,
        "SessionStart",
        json!({"source": "startup"}),
    );
    call(&scratch, &now(), "m1", 5);
    // Before anything that the journal has.
    call(&scratch, "2026-01-01T00:00:00Z", "m0", 7);
    assert_eq!(export(&scratch, &receiver, &[]).spans.len(), 0);
    let received = export(&scratch, &receiver, &["--close-turns"]);
    let [span] = received.spans.as_slice() else {
        panic!("{:#?}", received.spans);
    };
    assert_eq!(output_tokens(span), 5);
    assert!(span.parent_span_id.is_empty());
    assert_eq!(
        attributes(&span.attributes)["session.id"],
        format!("s-{AGENT}")
    );
}

#[test]
fn a_clock_that_was_ahead_ends_no_turn_and_moves_no_metric() {
    let scratch = Scratch::new().unwrap();
    let receiver = Receiver::start();
    send(&scratch, AGENT, "UserPromptSubmit", json!({"prompt": "go"}));
    let journal = scratch.state().join("journal/events.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    let mut future: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    future["id"] = json!("from-the-future");
    future["time"] = json!("2099-01-01T00:00:00.000000Z");
    future["event"]["event"] = json!("notification");
    std::fs::write(&journal, format!("{text}{future}\n")).unwrap();
    send(&scratch, AGENT, "Stop", json!({}));
    let received = export(&scratch, &receiver, &[]);
    let [turn] = received.spans.as_slice() else {
        panic!("{:#?}", received.spans);
    };
    assert_eq!(attributes(&turn.attributes)["anyhook.end_reason"], "stop");
    let year_2090 = 3_786_912_000_000_000_000;
    for metric in &received.metrics {
        let Some(Data::Sum(sum)) = &metric.data else {
            continue;
        };
        assert!(
            sum.data_points
                .iter()
                .all(|point| point.time_unix_nano < year_2090)
        );
    }
}

#[test]
fn a_clock_that_was_ahead_at_first_costs_no_tokens() {
    let scratch = Scratch::new().unwrap();
    let receiver = Receiver::start();
    send(
        &scratch,
        AGENT,
        "SessionStart",
        json!({"source": "startup"}),
    );
    let journal = scratch.state().join("journal/events.jsonl");
    let mut first: Value =
        serde_json::from_str(&std::fs::read_to_string(&journal).unwrap()).unwrap();
    first["time"] = json!("2099-01-01T00:00:00.000000Z");
    std::fs::write(&journal, format!("{first}\n")).unwrap();
    assert_eq!(export(&scratch, &receiver, &[]).spans.len(), 0);
    send(&scratch, AGENT, "UserPromptSubmit", json!({"prompt": "go"}));
    call(&scratch, &now(), "m1", 5);
    send(&scratch, AGENT, "Stop", json!({}));
    assert_eq!(turns(&export(&scratch, &receiver, &[]))[0].1, [5]);
}
