//! What real agents sent, as OpenHook streams, judged: `levels/<slug>.json`
//! states which conformance level each agent reaches and what it lacks.
//!
//! One-file-per-event captures are put in the order of a session. What the
//! agent's table has no event for is synthesized, as the dispatcher would.
//! `UPDATE=1` rewrites the files.

#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhook_agents::Adapter;
use anyhook_model::HookEvent;
use anyhook_run::openhook::{EnvelopeOptions, envelopes_with};
use anyhook_testkit::{Golden, files_below};
use openhook::{Envelope, StreamChecker, StreamReport, Timestamp};
use serde_json::{Value, json};

use crate::fake_machine::FakeMachine;

fn captures(slug: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../anyhook-agents/agents");
    let found = files_below(&root.join(slug).join("captures")).into_iter();
    found
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect()
}

fn decode(adapter: &Adapter, path: &Path) -> Option<HookEvent> {
    let payload: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let stem = path.file_stem().unwrap().to_str().unwrap();
    let hint = stem.split('-').next().unwrap();
    Some(adapter.decode(&payload, Some(hint)).ok()?.event)
}

fn decoded(adapter: &Adapter) -> Vec<HookEvent> {
    let paths = captures(&adapter.spec.id);
    paths
        .iter()
        .filter_map(|path| decode(adapter, path))
        .collect()
}

/// Session by session; by the agent's own times where all have them, else in
/// the natural order, each call's start before its end.
fn in_order(events: Vec<HookEvent>) -> Vec<HookEvent> {
    let mut sessions: BTreeMap<Option<String>, Vec<HookEvent>> = BTreeMap::new();
    for event in events {
        let session = event.session_id.clone();
        sessions.entry(session).or_default().push(event);
    }
    let rank = |event: &HookEvent| match event.event.as_str() {
        "session_start" => 0,
        "before_prompt" => 1,
        "before_tool_execute" | "after_tool_execute" | "tool_use_failure" => 3,
        "agent_stop" => 4,
        "session_end" => 5,
        _ => 2,
    };
    for events in sessions.values_mut() {
        events.sort_by_key(|event| {
            let call = event.text("tool_call_id").or(event.native_tool_name());
            let is_end = event.event.starts_with("after_");
            (rank(event), call.unwrap_or_default().to_owned(), is_end)
        });
        let time = |event: &HookEvent| event.timestamp.as_deref()?.parse::<Timestamp>().ok();
        if events.iter().all(|event| time(event).is_some()) {
            events.sort_by_key(time);
        }
    }
    sessions.into_values().flatten().collect()
}

fn options(adapter: &Adapter) -> EnvelopeOptions {
    let lacks = |event| {
        !adapter
            .spec
            .events
            .iter()
            .any(|one| one.is.as_deref() == Some(event))
    };
    EnvelopeOptions {
        synthesize_start: lacks("session_start"),
        synthesize_end: lacks("session_end"),
        ..EnvelopeOptions::default()
    }
}

fn sent(adapter: &Adapter, events: &[HookEvent]) -> Vec<Envelope> {
    let machine = FakeMachine::starting_at(1_794_770_000_000);
    events
        .iter()
        .flat_map(|event| envelopes_with(event, &machine, options(adapter)))
        .collect()
}

fn judged(envelopes: &[Envelope], discovery: bool, transcripts: bool) -> StreamReport {
    let mut checker = StreamChecker::new().with_discovery(discovery);
    if let (Some(first), false) = (envelopes.first(), transcripts) {
        checker = checker.without_transcripts(&*first.source);
    }
    for envelope in envelopes {
        let findings = checker.push(&envelope.to_value());
        assert!(
            !findings.iter().any(openhook::Finding::is_error),
            "{findings:?} in {envelope:?}"
        );
    }
    checker.finish()
}

#[test]
fn every_agent_reaches_its_level() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openhook/levels");
    let mut golden = Golden::default();
    let mut seen = 0;
    for adapter in anyhook_agents::all().filter(|adapter| !adapter.spec.pseudo) {
        let events = in_order(decoded(adapter));
        if events.is_empty() {
            continue;
        }
        seen += 1;
        let envelopes = sent(adapter, &events);
        let transcripts = events
            .iter()
            .any(|event| event.text("transcript_path").is_some());
        let report = judged(&envelopes, false, transcripts);
        let level = |report: &StreamReport| report.sources.first().map_or(0, |source| source.level);
        let source = report.sources.first();
        let kinds: Vec<&String> = source
            .into_iter()
            .flat_map(|source| source.events.keys())
            .collect();
        let unmet: Vec<&str> = source
            .into_iter()
            .flat_map(|source| &source.requirements)
            .filter(|one| !one.met && one.level < 3)
            .map(|one| one.code)
            .collect();
        let EnvelopeOptions {
            synthesize_start,
            synthesize_end,
            ..
        } = options(adapter);
        let got = json!({
            "level": level(&report),
            "level_with_discovery": level(&judged(&envelopes, true, transcripts)),
            "lacks": unmet,
            "events": kinds,
            "transcripts": transcripts,
            "synthesize_start": synthesize_start,
            "synthesize_end": synthesize_end,
        });
        let path = folder.join(format!("{}.json", adapter.spec.id));
        golden.json(path, &got).unwrap();
    }
    assert!(seen >= 3, "no captures found");
    golden.end();
}

/// What clients really sent for one call, before and after, belongs together,
/// whether or not they gave it an id. Examples of texts are single events.
#[test]
fn captured_calls_are_paired() {
    let mut pairs = 0;
    for adapter in anyhook_agents::all() {
        let paths = captures(&adapter.spec.id);
        let real = paths
            .iter()
            .filter(|path| !path.components().any(|part| part.as_os_str() == "examples"));
        let events = in_order(real.filter_map(|path| decode(adapter, path)).collect());
        let mut calls: BTreeMap<[String; 3], [BTreeSet<String>; 2]> = BTreeMap::new();
        let machine = FakeMachine::starting_at(1_794_770_000_000);
        for event in &events {
            for envelope in envelopes_with(event, &machine, options(adapter)) {
                let phase = match envelope.event_type.as_str() {
                    "tool.start" => 0,
                    "tool.end" => 1,
                    _ => continue,
                };
                let text = |key: &str| envelope.data.get(key)?.as_str().map(str::to_owned);
                let tool = text("tool_name").unwrap();
                let input = event.data["tool_input"].to_string();
                let key = [envelope.session_id.clone(), tool, input];
                calls.entry(key).or_default()[phase].insert(text("tool_call_id").unwrap());
            }
        }
        for (call, [starts, ends]) in calls {
            if !starts.is_empty() && !ends.is_empty() {
                assert_eq!(starts, ends, "{} {call:?}", adapter.spec.id);
                pairs += 1;
            }
        }
    }
    assert!(pairs >= 20, "{pairs}");
}

/// Agents that call twice, for two configuration files, must not be counted twice.
#[test]
fn a_session_delivered_twice_has_the_same_ids() {
    for adapter in anyhook_agents::all() {
        let events = in_order(decoded(adapter));
        let twice: Vec<HookEvent> = events
            .iter()
            .flat_map(|event| [event.clone(), event.clone()])
            .collect();
        let ids = |events| -> BTreeSet<String> {
            let sent = sent(adapter, events);
            sent.into_iter().map(|envelope| envelope.id).collect()
        };
        assert_eq!(ids(&twice), ids(&events), "{}", adapter.spec.id);
    }
}
