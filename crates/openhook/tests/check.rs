//! The judge, on recorded streams: one pair of files per case.

#![cfg(test)]

mod common;

use common::{files, json, name, read};
use openhook::check::{Limits, Problem, StreamChecker, StreamReport, problem};
use openhook::{Envelope, ToolEnd, ToolStart, event_type, stable_id};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

fn judge(stream: &str, expect: &Value) -> StreamReport {
    let mut checker = StreamChecker::new().with_discovery(expect["discovery"] == true);
    for source in expect["without_transcripts"].as_array().unwrap_or(&vec![]) {
        checker = checker.without_transcripts(source.as_str().unwrap());
    }
    for line in stream.lines() {
        checker.push_line(line);
    }
    checker.finish()
}

fn lines(problem: &Problem) -> Value {
    assert_eq!(
        problem.examples.len() as u64,
        problem.count.min(Problem::MAX_EXAMPLES as u64)
    );
    problem.examples.iter().map(|each| each.line).collect()
}

#[test]
fn every_stream_is_judged_as_expected() {
    for path in files("streams", ".jsonl") {
        let stream = read(&path);
        let expect = json(&path.with_extension("expect.json"));
        let report = judge(&stream, &expect);
        let case = name(&path);
        for field in ["lines", "envelopes"] {
            if let Some(number) = expect.get(field) {
                assert_eq!(
                    &serde_json::to_value(&report).unwrap()[field],
                    number,
                    "{case}"
                );
            }
        }
        let invalid = expect.get("invalid").cloned().unwrap_or_else(|| json!([]));
        assert_eq!(lines(&report.invalid), invalid, "{case}");
        let sources: Vec<&str> = report.sources.iter().map(|s| s.source.as_str()).collect();
        let wanted: Vec<&String> = expect["sources"].as_object().unwrap().keys().collect();
        assert_eq!(sources, wanted, "{case}");
        for source in &report.sources {
            let wanted = &expect["sources"][&source.source];
            let case = format!("{case}, {}", source.source);
            let unmet: Vec<&str> = source
                .requirements
                .iter()
                .filter(|each| !each.met)
                .map(|each| each.code)
                .collect();
            assert_eq!(json!(unmet), wanted["unmet"], "{case}");
            assert_eq!(json!(source.level), wanted["level"], "{case}");
            assert_eq!(json!(source.never), wanted["never"], "{case}");
            let problems: Map<String, Value> = source
                .problems
                .iter()
                .map(|each| (each.code.to_owned(), lines(each)))
                .collect();
            assert_eq!(json!(problems), wanted["problems"], "{case}");
            for field in ["sessions", "findings"] {
                if let Some(value) = wanted.get(field) {
                    assert_eq!(
                        &serde_json::to_value(source).unwrap()[field],
                        value,
                        "{case}"
                    );
                }
            }
        }
    }
}

/// A problem without a case is a judgement without a test.
#[test]
fn every_problem_has_a_case() {
    let mut seen = BTreeSet::new();
    for path in files("streams", ".expect.json") {
        for source in json(&path)["sources"].as_object().unwrap().values() {
            seen.extend(source["problems"].as_object().unwrap().keys().cloned());
        }
    }
    let all: BTreeSet<String> = problem::ALL.iter().map(|code| (*code).to_owned()).collect();
    assert_eq!(seen, all);
}

#[test]
fn evidence_names_the_first_envelope() {
    let path = &files("streams", "level-2-observable.jsonl")[0];
    let report = judge(&read(path), &json!({}));
    let source = &report.sources[0];
    let start = source.requirement("tool-start").unwrap();
    assert_eq!((start.count, start.example.as_ref().unwrap().line), (1, 3));
    let transcript = source.requirement("transcript-path").unwrap();
    assert_eq!(transcript.example.as_ref().unwrap().detail, "/t/s1.jsonl");
    assert_eq!(source.events["session.end"], 1);
}

fn event(number: u32, kind: &str, session: &str) -> Envelope {
    Envelope::builder("demo", kind, session)
        .id(stable_id(&[&number.to_string()]))
        .time("2026-01-01T00:00:00Z")
        .data(ToolStart {
            tool_name: None,
            tool_call_id: Some("c"),
        })
        .build()
        .unwrap()
}

/// 100,000 envelopes of 20,000 sessions, 50 of them open at any time.
#[test]
fn a_long_stream_is_judged_in_one_pass() {
    let mut checker = StreamChecker::new();
    let mut number = 0;
    let kinds = [
        event_type::SESSION_START,
        event_type::PROMPT_SUBMIT,
        event_type::TOOL_START,
        event_type::TOOL_END,
        event_type::SESSION_END,
    ];
    for batch in 0..400 {
        for kind in kinds {
            for session in 0..50 {
                number += 1;
                let envelope = event(number, kind, &format!("{batch}-{session}"));
                assert_eq!(checker.push_line(&envelope.to_json_line()), []);
            }
        }
    }
    let report = checker.finish();
    assert_eq!(report.envelopes, 100_000);
    let source = &report.sources[0];
    assert_eq!(source.problems, []);
    assert_eq!(source.sessions, 20_000);
    assert!(source.events.values().all(|count| *count == 20_000));
}

#[test]
fn beyond_a_limit_the_oldest_are_given_up() {
    let limits = Limits {
        ids: 10,
        open_sessions: 4,
        open_calls: 4,
    };
    let mut checker = StreamChecker::with_limits(limits);
    for number in 0..100 {
        checker.push(&event(number, event_type::PROMPT_SUBMIT, &number.to_string()).to_value());
    }
    // Within the last ten, a duplicate is seen; long after, it is not.
    checker.push(&event(95, event_type::PROMPT_SUBMIT, "95").to_value());
    checker.push(&event(3, event_type::PROMPT_SUBMIT, "3").to_value());
    let report = checker.finish();
    let source = &report.sources[0];
    let count = |code| source.problem(code).map_or(0, |problem| problem.count);
    assert_eq!(count(problem::DUPLICATE_ID), 1);
    assert_eq!(count(problem::SESSION_WITHOUT_END), 101);

    let mut checker = StreamChecker::with_limits(limits);
    for number in 0..50_u32 {
        let mut envelope = event(number, event_type::TOOL_START, "s");
        envelope.data["tool_call_id"] = number.to_string().into();
        checker.push(&envelope.to_value());
    }
    let mut last = event(50, event_type::TOOL_END, "s");
    last.data = ToolEnd {
        tool_call_id: Some("49"),
        ..ToolEnd::default()
    }
    .into();
    checker.push(&last.to_value());
    let report = checker.finish();
    let source = &report.sources[0];
    assert_eq!(
        source.problem(problem::START_WITHOUT_END).unwrap().count,
        49
    );
    assert!(source.problem(problem::END_WITHOUT_START).is_none());
}
