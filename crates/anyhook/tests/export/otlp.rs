//! `anyhook export otlp`: the shape of traces, logs and metrics.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhook_model::{Record, RecordKind};
use anyhook_testkit::{Scratch, wait_until};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, NumberDataPoint, number_data_point,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::{Value, json};

use crate::receiver::{Received, Receiver, attributes};
use crate::sessions::{agents, anyhook, record, record_sessions, session_id};
use crate::support::journal;

/// Exports everything; turns that have not ended are ended.
fn export(scratch: &Scratch, args: &[&str]) -> Received {
    let receiver = Receiver::start();
    let url = receiver.url();
    let mut all = vec!["export", "otlp", "--close-turns", "--endpoint", &url];
    all.extend(args);
    let output = anyhook(scratch, &all);
    assert_eq!(output.exit, Some(0), "{output:?}");
    receiver.received()
}

fn attribute(span: &Span, name: &str) -> Value {
    attributes(&span.attributes)[name].clone()
}

fn spans_of<'a>(received: &'a Received, session: &str) -> Vec<&'a Span> {
    let is_wanted = |span: &&Span| attribute(span, "session.id") == session;
    received.spans.iter().filter(is_wanted).collect()
}

/// `name (status)` of a span and what is below it, indented.
fn tree(spans: &[&Span], parent: &[u8], depth: usize, out: &mut Vec<String>) {
    let mut children: Vec<_> = spans
        .iter()
        .filter(|span| span.parent_span_id == parent)
        .collect();
    children.sort_by_key(|span| span.start_time_unix_nano);
    for span in children {
        let error = attribute(span, "error.type");
        let mark = error.as_str().map(|it| format!(" [{it}]"));
        let line = format!(
            "{}{}{}",
            "  ".repeat(depth),
            span.name,
            mark.unwrap_or_default()
        );
        out.push(line);
        tree(spans, &span.span_id, depth + 1, out);
    }
}

fn tree_text(spans: &[&Span]) -> String {
    let mut lines = Vec::new();
    tree(spans, &[], 0, &mut lines);
    assert_eq!(lines.len(), spans.len(), "a parent is missing: {lines:#?}");
    lines.join("\n")
}

#[test]
fn a_turn_is_a_trace_with_its_tool_calls_and_hooks() {
    let scratch = record_sessions();
    let received = export(&scratch, &[]);
    for (agent, write, shell) in [
        ("claude-code", "Write", "Bash"),
        ("codex", "apply_patch", "Bash"),
        ("gemini-cli", "write_file", "run_shell_command"),
        ("qwen-code", "write_file", "run_shell_command"),
    ] {
        let spans = spans_of(&received, &session_id(agent));
        let expected = format!(
            "invoke_agent {agent}\n  execute_tool {write}\n    hook observer\n  \
             execute_tool {shell} [denied]\n    hook no-shell"
        );
        assert_eq!(tree_text(&spans), expected, "{agent}");
        let traces: HashSet<_> = spans.iter().map(|span| &span.trace_id).collect();
        assert_eq!(traces.len(), 1);
        let root = spans
            .iter()
            .find(|it| it.parent_span_id.is_empty())
            .unwrap();
        assert_eq!(attribute(root, "anyhook.end_reason"), "stop");
        assert_eq!(attribute(root, "anyhook.turn.tool_calls"), 2);
        assert_eq!(attribute(root, "anyhook.turn.denied"), 1);
        assert_eq!(attribute(root, "anyhook.incomplete"), Value::Null);
        let denied = spans
            .iter()
            .find(|it| attribute(it, "error.type") == "denied");
        let denied = denied.unwrap();
        assert_eq!(attribute(denied, "anyhook.decision"), "deny");
        assert_eq!(
            attribute(denied, "anyhook.decision.reason"),
            "no shell here"
        );
        assert_eq!(denied.status.as_ref().unwrap().message, "no shell here");
        for span in &spans {
            assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
            assert!(span.start_time_unix_nano >= root.start_time_unix_nano);
            assert!(span.end_time_unix_nano <= root.end_time_unix_nano);
        }
    }
    assert_eq!(received.spans.len(), 5 * agents().count());
    assert_eq!(attributes(&received.resource)["service.name"], "anyhook");
}

#[test]
fn what_is_sent_twice_is_the_same() {
    let scratch = record_sessions();
    let first = export(&scratch, &["--cursor", "a"]);
    let again = export(&scratch, &["--cursor", "a"]);
    assert_eq!(again.requests, 0, "nothing is new");
    let second = export(&scratch, &["--cursor", "b"]);
    let by_id = |received: &Received| -> BTreeMap<Vec<u8>, Span> {
        let spans = received.spans.iter();
        spans
            .map(|span| (span.span_id.clone(), span.clone()))
            .collect()
    };
    assert_eq!(by_id(&first).len(), first.spans.len(), "ids are unique");
    assert_eq!(by_id(&first), by_id(&second));
    assert_eq!(first.logs, second.logs);
    assert_eq!(first.metrics, second.metrics);
}

#[test]
fn json_says_the_same_as_protobuf() {
    let scratch = record_sessions();
    let binary = export(&scratch, &["--cursor", "a"]);
    let header = |received: &Received, name: &str| {
        let mut headers = received.headers.iter();
        headers.find(|it| it.0 == name).map(|it| it.1.clone())
    };
    assert_eq!(
        header(&binary, "content-type").unwrap(),
        "application/x-protobuf"
    );
    assert_eq!(header(&binary, "content-encoding").unwrap(), "gzip");
    let options = [
        "--protocol",
        "json",
        "--compression",
        "none",
        "--header",
        "x-key=v",
    ];
    let text = export(&scratch, &options);
    assert_eq!(header(&text, "content-type").unwrap(), "application/json");
    assert_eq!(header(&text, "content-encoding"), None);
    assert_eq!(header(&text, "x-key").unwrap(), "v");
    assert_eq!(text.spans, binary.spans);
    assert_eq!(text.logs, binary.logs);
    assert_eq!(text.metrics, binary.metrics);
}

#[test]
fn every_event_is_a_log_record_in_its_trace() {
    let scratch = record_sessions();
    let received = export(&scratch, &[]);
    let records = journal(&scratch);
    assert_eq!(received.logs.len(), records.len());
    let spans: HashMap<_, _> = received
        .spans
        .iter()
        .map(|span| (&span.span_id, &span.trace_id))
        .collect();
    for (log, record) in received.logs.iter().zip(&records) {
        let fields = attributes(&log.attributes);
        assert_eq!(fields["log.record.uid"], record.id);
        assert_eq!(log.event_name, format!("anyhook.{}", record.event.event));
        if record.event.event.contains("tool") {
            assert_eq!(spans.get(&log.span_id), Some(&&log.trace_id), "{fields}");
        }
        if record.decision.is_some() {
            assert_eq!(log.severity_text, "WARN");
            assert_eq!(fields["anyhook.decision"], "deny");
        }
    }
}

#[test]
fn metrics_count_events_decisions_and_hooks() {
    let scratch = record_sessions();
    let received = export(&scratch, &[]);
    let metric = |name: &str| {
        let found = received.metrics.iter().find(|it| it.name == name);
        found
            .unwrap_or_else(|| panic!("{name}"))
            .data
            .clone()
            .unwrap()
    };
    let Data::Sum(events) = metric("anyhook.events") else {
        panic!("not a sum");
    };
    let total: i64 = events
        .data_points
        .iter()
        .map(|point| match point.value {
            Some(number_data_point::Value::AsInt(count)) => count,
            ref other => panic!("{other:?}"),
        })
        .sum();
    assert_eq!(usize::try_from(total).unwrap(), journal(&scratch).len());
    let Data::Sum(decisions) = metric("anyhook.decisions") else {
        panic!("not a sum");
    };
    assert_eq!(decisions.data_points.len(), agents().count());
    let Data::Histogram(hooks) = metric("anyhook.hook.duration") else {
        panic!("not a histogram");
    };
    for point in &hooks.data_points {
        assert_eq!(point.count, 1);
        assert_eq!(point.bucket_counts.iter().sum::<u64>(), 1);
        assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
    }
    assert_eq!(hooks.data_points.len(), 2 * agents().count());
}

#[test]
fn the_end_of_a_detached_hook_is_not_another_event() {
    let scratch = Scratch::new().unwrap();
    let manifest = json!({"spec": "hooks/1.0", "hooks": [
        {"name": "slow", "event": "before_prompt",
         "handler": {"type": "command", "command": "true", "async": true}},
        {"name": "after", "event": "session_end",
         "handler": {"type": "command", "command": "true", "async": true}},
    ]});
    let path = scratch.config().join("hooks.json");
    scratch.file(path, &manifest.to_string()).unwrap();
    claude(&scratch, "UserPromptSubmit", json!({"prompt": "go"}));
    let ends = |count: usize| {
        wait_until("the detached hook has ended", || {
            let records = journal(&scratch);
            let is_end = |record: &&Record| record.kind == RecordKind::AsyncEnd;
            records.iter().filter(is_end).count() == count
        });
    };
    ends(1);
    let tool = json!({"tool_name": "Read", "tool_use_id": "t", "tool_input": {"file_path": "/a"}});
    claude(&scratch, "PreToolUse", tool);
    claude(&scratch, "Stop", json!({"stop_hook_active": false}));
    claude(&scratch, "SessionEnd", json!({"reason": "other"}));
    ends(2);
    let received = export(&scratch, &[]);
    let spans: Vec<&Span> = received.spans.iter().collect();
    let is_turn = |span: &&&Span| span.name == "invoke_agent claude-code";
    let turns: Vec<_> = spans.iter().filter(is_turn).collect();
    assert_eq!(turns.len(), 1, "{}", tree_text(&spans));
    assert_eq!(attribute(turns[0], "anyhook.end_reason"), "stop");
    assert_eq!(attribute(turns[0], "anyhook.incomplete"), Value::Null);
}

/// Events that the metrics of one export have counted.
fn counted_events(received: &Received, temporality: AggregationTemporality) -> usize {
    let mut count = 0;
    for metric in &received.metrics {
        let (code, points): (i32, &[NumberDataPoint]) = match metric.data.as_ref().unwrap() {
            Data::Sum(sum) => (sum.aggregation_temporality, &sum.data_points),
            Data::Histogram(histogram) => (histogram.aggregation_temporality, &[]),
            other => panic!("{other:?}"),
        };
        assert_eq!(code, i32::from(temporality), "{}", metric.name);
        if metric.name == "anyhook.events" {
            for point in points {
                assert!(point.start_time_unix_nano <= point.time_unix_nano);
                let Some(number_data_point::Value::AsInt(events)) = point.value else {
                    panic!("{point:?}");
                };
                count += usize::try_from(events).unwrap();
            }
        }
    }
    count
}

#[test]
fn delta_metrics_have_only_what_is_new() {
    let scratch = record_sessions();
    let config = scratch.config().join("config.yaml");
    scratch
        .file(config, "otlp: {temporality: delta}\n")
        .unwrap();
    let same = ["--cursor", "same"];
    let first = journal(&scratch).len();
    let delta = AggregationTemporality::Delta;
    assert_eq!(counted_events(&export(&scratch, &same), delta), first);
    claude(&scratch, "UserPromptSubmit", json!({"prompt": "go"}));
    claude(&scratch, "Stop", json!({"stop_hook_active": false}));
    assert_eq!(counted_events(&export(&scratch, &same), delta), 2);
    assert_eq!(counted_events(&export(&scratch, &same), delta), 0);
    // Another export counts from the beginning.
    let received = export(&scratch, &["--cursor", "other"]);
    assert_eq!(counted_events(&received, delta), first + 2);
}

/// A payload of Claude Code.
fn claude(scratch: &Scratch, event: &str, fields: Value) {
    let mut payload = json!({
        "session_id": "s", "transcript_path": "/nowhere/s.jsonl", "cwd": scratch.project(),
        "hook_event_name": event, "permission_mode": "default"
    });
    for (name, value) in fields.as_object().unwrap() {
        payload[name] = value.clone();
    }
    record(scratch, "claude-code", &payload);
}

#[test]
fn content_leaves_the_machine_only_as_far_as_the_level_says() {
    let scratch = Scratch::new().unwrap();
    let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    claude(
        &scratch,
        "UserPromptSubmit",
        json!({"prompt": format!("PROMPT-TEXT {token}")}),
    );
    let call = json!({"tool_name": "Bash", "tool_use_id": "t1",
        "tool_input": {"command": format!("echo INPUT-TEXT {token}")},
        "tool_response": {"stdout": "OUTPUT-TEXT", "stderr": ""}});
    claude(&scratch, "PreToolUse", call.clone());
    claude(&scratch, "PostToolUse", call);
    claude(&scratch, "StopFailure", json!({"error": "ERROR-TEXT"}));
    claude(
        &scratch,
        "Stop",
        json!({"last_assistant_message": "MESSAGE-TEXT"}),
    );
    for (level, expected) in [
        ("metadata", vec![]),
        ("tools", vec!["INPUT-TEXT", "OUTPUT-TEXT"]),
        (
            "full",
            vec!["INPUT-TEXT", "OUTPUT-TEXT", "PROMPT-TEXT", "MESSAGE-TEXT"],
        ),
    ] {
        let received = export(&scratch, &["--cursor", level, "--content", level]);
        assert_eq!(received.spans.len(), 2);
        let has_error = format!("{:?}", received.spans).contains("ERROR-TEXT");
        assert_eq!(has_error, level != "metadata", "{level}");
        for sent in [
            format!("{:?}", received.spans),
            format!("{:?}", received.logs),
        ] {
            for text in ["INPUT-TEXT", "OUTPUT-TEXT", "PROMPT-TEXT", "MESSAGE-TEXT"] {
                assert_eq!(
                    sent.contains(text),
                    expected.contains(&text),
                    "{level} {text}"
                );
            }
            assert!(!sent.contains(token), "{level}: a secret was sent");
        }
    }
}

#[test]
fn sub_agents_are_between_the_turn_and_their_calls() {
    let scratch = Scratch::new().unwrap();
    let call = |tool: &str, id: &str, agent: Option<&str>| {
        let mut call = json!({"tool_name": tool, "tool_use_id": id, "tool_input": {"prompt": id}});
        if let Some(agent) = agent {
            call["agent_id"] = agent.into();
            call["agent_type"] = "Explore".into();
        }
        call
    };
    let agent = json!({"agent_id": "a1", "agent_type": "Explore"});
    claude(&scratch, "UserPromptSubmit", json!({"prompt": "go"}));
    claude(&scratch, "PreToolUse", call("Agent", "t1", None));
    claude(&scratch, "SubagentStart", agent.clone());
    claude(&scratch, "PreToolUse", call("Read", "t2", Some("a1")));
    claude(&scratch, "PostToolUse", call("Read", "t2", Some("a1")));
    claude(&scratch, "SubagentStop", agent);
    claude(&scratch, "PostToolUse", call("Agent", "t1", None));
    // The start of this one was not recorded.
    claude(&scratch, "PreToolUse", call("Grep", "t3", Some("a2")));
    claude(&scratch, "Stop", json!({}));
    let received = export(&scratch, &[]);
    let spans: Vec<_> = received.spans.iter().collect();
    assert_eq!(
        tree_text(&spans),
        "invoke_agent claude-code\n  execute_tool Agent\n    invoke_agent Explore\n      \
         execute_tool Read\n  invoke_agent Explore\n    execute_tool Grep"
    );
    let span = |name: &str| *spans.iter().find(|it| it.name == name).unwrap();
    assert_eq!(
        attribute(span("execute_tool Grep"), "anyhook.tool.end"),
        "unknown"
    );
    assert_eq!(
        attribute(span("execute_tool Read"), "anyhook.tool.end"),
        Value::Null
    );
}

#[test]
fn turns_that_do_not_end_are_ended_and_say_so() {
    let scratch = Scratch::new().unwrap();
    claude(&scratch, "UserPromptSubmit", json!({"prompt": "one"}));
    claude(&scratch, "UserPromptSubmit", json!({"prompt": "two"}));
    claude(&scratch, "SessionEnd", json!({"reason": "exit"}));
    let read = json!({"tool_name": "Read", "tool_use_id": "t", "tool_input": {}});
    claude(&scratch, "PreToolUse", read);
    let received = export(&scratch, &[]);
    let mut roots: Vec<_> = received
        .spans
        .iter()
        .filter(|span| span.parent_span_id.is_empty())
        .collect();
    roots.sort_by_key(|span| span.start_time_unix_nano);
    let reasons: Vec<_> = roots
        .iter()
        .map(|root| attribute(root, "anyhook.end_reason"))
        .collect();
    assert_eq!(reasons, ["next_prompt", "session_end", "idle"]);
    for (root, previous) in roots.iter().skip(1).zip(&roots) {
        assert_eq!(attribute(root, "anyhook.incomplete"), true);
        assert_eq!(root.links.len(), 1);
        assert_eq!(root.links[0].trace_id, previous.trace_id);
        assert_eq!(root.links[0].span_id, previous.span_id);
    }
    assert_eq!(roots[0].links.len(), 0);
    assert_eq!(attribute(roots[2], "anyhook.implicit_start"), true);
}

#[test]
fn a_turn_that_goes_on_is_sent_when_it_ends() {
    let scratch = Scratch::new().unwrap();
    claude(&scratch, "UserPromptSubmit", json!({"prompt": "one"}));
    let read = json!({"tool_name": "Read", "tool_use_id": "t", "tool_input": {}});
    claude(&scratch, "PreToolUse", read.clone());
    let receiver = Receiver::start();
    let url = receiver.url();
    let args = ["export", "otlp", "--endpoint", &url];
    assert_eq!(anyhook(&scratch, &args).exit, Some(0));
    assert_eq!(receiver.received().spans.len(), 0);
    claude(&scratch, "PostToolUse", read);
    claude(&scratch, "Stop", json!({}));
    assert_eq!(anyhook(&scratch, &args).exit, Some(0));
    let received = receiver.received();
    let spans: Vec<_> = received.spans.iter().collect();
    assert_eq!(
        tree_text(&spans),
        "invoke_agent claude-code\n  execute_tool Read"
    );
}
