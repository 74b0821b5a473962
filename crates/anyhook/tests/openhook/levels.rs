//! Every agent becomes a conforming source: `levels/<slug>.json` says which
//! level its captured sessions reach, and what they lack.
//!
//! Captures are single files: they are put in the order of a session, and the
//! folder that they were recorded in becomes the scratch project. `UPDATE=1`
//! writes the files anew.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhook_agents::Adapter;
use anyhook_model::HookEvent;
use anyhook_testkit::{Golden, Scratch, files_below};
use openhook::Timestamp;
use serde_json::{Value, json};

use crate::{anyhook, project};

struct Capture {
    text: String,
    /// The name of its event.
    hint: String,
    event: HookEvent,
}

fn captures(adapter: &Adapter) -> Vec<Capture> {
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../anyhook-agents/agents");
    let paths = files_below(&agents.join(adapter.spec.id.as_ref()).join("captures"));
    let paths = paths
        .iter()
        .filter(|path| path.extension().is_some_and(|it| it == "json"));
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let stem = path.file_stem()?.to_str()?;
        let hint = stem.split('-').next()?.to_owned();
        let payload: Value = serde_json::from_str(&text).unwrap();
        let event = adapter.decode(&payload, Some(&hint)).ok()?.event;
        Some(Capture { text, hint, event })
    };
    paths.filter_map(read).collect()
}

/// By the agent's own times where all of a session have them, else in the
/// natural order, each call's start before its end.
fn in_order(captures: Vec<Capture>) -> Vec<Capture> {
    let mut sessions: BTreeMap<Option<String>, Vec<Capture>> = BTreeMap::new();
    for capture in captures {
        let session = capture.event.session_id.clone();
        sessions.entry(session).or_default().push(capture);
    }
    let place = |capture: &Capture| {
        let event = &capture.event;
        let rank = match event.event.as_str() {
            "session_start" => 0,
            "before_prompt" => 1,
            "before_tool_execute" | "after_tool_execute" | "tool_use_failure" => 3,
            "agent_stop" => 4,
            "session_end" => 5,
            _ => 2,
        };
        let call = event.text("tool_call_id").or(event.native_tool_name());
        let is_end = event.event.starts_with("after_");
        (rank, call.unwrap_or_default().to_owned(), is_end)
    };
    let time = |capture: &Capture| {
        let time = capture.event.timestamp.as_deref()?;
        time.parse::<Timestamp>().ok()
    };
    for captures in sessions.values_mut() {
        captures.sort_by_key(place);
        if captures.iter().all(|capture| time(capture).is_some()) {
            captures.sort_by_key(time);
        }
    }
    sessions.into_values().flatten().collect()
}

/// What the judge says of the stream.
fn judged(scratch: &Scratch, slug: &str, discovery: bool, transcripts: bool) -> Value {
    let mut arguments = vec!["openhook", "check", "--json", "stream.jsonl"];
    if discovery {
        arguments.push("--discovery");
    }
    if !transcripts {
        arguments.extend(["--without-transcripts", slug]);
    }
    let report = anyhook(scratch, &arguments, "").json().unwrap();
    assert_eq!(report["invalid"]["count"], 0, "{slug}: {report:#}");
    // A payload in another agent's form may count as that agent's.
    let mut sources = report["sources"].as_array().unwrap().iter();
    let own = sources.find(|source| source["source"] == slug);
    own.unwrap_or_else(|| panic!("{slug}: {report:#}")).clone()
}

#[test]
fn every_agent_is_a_source() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openhook/levels");
    let mut golden = Golden::default();
    let mut seen = 0;
    for adapter in anyhook_agents::all().filter(|adapter| !adapter.spec.pseudo) {
        let captures = in_order(captures(adapter));
        if captures.is_empty() {
            continue;
        }
        seen += 1;
        let slug: &str = &adapter.spec.id;
        let scratch = project(&json!([{"command": "cat >> stream.jsonl"}]));
        let here = scratch.project().to_str().unwrap().to_owned();
        for capture in &captures {
            let recorded = capture.event.cwd.as_deref().filter(|cwd| cwd.len() > 1);
            let text = match recorded {
                Some(cwd) => capture.text.replace(cwd, &here),
                None => capture.text.clone(),
            };
            let arguments = ["run", "--agent", slug, "--event", &capture.hint];
            let ran = anyhook(&scratch, &arguments, &text);
            assert_eq!(ran.exit, Some(0), "{slug} {}: {ran:?}", capture.hint);
        }
        let has_path = |capture: &Capture| capture.event.text("transcript_path").is_some();
        let transcripts = captures.iter().any(has_path);
        let plain = judged(&scratch, slug, false, transcripts);
        let unmet: Vec<&Value> = plain["requirements"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["met"] == false && one["level"] != 3)
            .map(|one| &one["code"])
            .collect();
        let events: Vec<&String> = plain["events"].as_object().unwrap().keys().collect();
        let got = json!({
            "level": plain["level"],
            "level_with_discovery": judged(&scratch, slug, true, transcripts)["level"],
            "lacks": unmet,
            "events": events,
            "transcripts": transcripts,
        });
        let path = folder.join(format!("{slug}.json"));
        golden.json(path, &got).unwrap();
    }
    assert!(seen >= 10, "no captures found");
    golden.end();
}
