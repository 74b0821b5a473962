//! The oracle against reality: every experiment that was run with a real client,
//! and every claim of the facts that can be stated as one answer.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use anyhook_testkit::cases;
use anyhook_testkit::oracle::{self, Action, Answer, Reaction};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Deserialize)]
struct Experiments {
    tool_payload: BTreeMap<String, Value>,
    rows: Vec<Experiment>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Experiment {
    agent: String,
    client: String,
    #[serde(rename = "experiment")]
    name: String,
    title: String,
    event: String,
    #[serde(default)]
    exit: i32,
    signal: Option<i32>,
    #[serde(default)]
    timeout: bool,
    #[serde(default)]
    stdout: Value,
    #[serde(default)]
    stderr: String,
    seen: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    agent: String,
    event: String,
    #[serde(rename = "claim")]
    sentence: String,
    #[serde(default)]
    payload: Value,
    #[serde(default)]
    exit: Option<i32>,
    #[serde(default)]
    signal: bool,
    #[serde(default)]
    stdout: Value,
    #[serde(default)]
    stderr: String,
    #[serde(default)]
    interactive: bool,
    expect: Map<String, Value>,
}

fn written(stdout: &Value) -> String {
    match stdout {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        json => json.to_string(),
    }
}

/// Each text that the experiments sent carries a mark that says where it stood.
fn told(reaction: &Reaction, marks: &[&str]) -> bool {
    reaction
        .model_sees
        .iter()
        .any(|text| marks.iter().any(|mark| text.contains(mark)))
}

/// Does the reaction mean what the report's words say?
fn agrees(seen: &str, r: &Reaction) -> bool {
    let json = told(r, &["DENY-REASON", "STOP-REASON", "BLOCK-REASON"]);
    let stderr = told(r, &["STDERR-REASON"]);
    let proceeds = r.action == Action::Proceeds;
    let blocked = r.action == Action::Blocked;
    let says = |words: &str| r.note.as_deref().is_some_and(|note| note.contains(words));
    match seen {
        "blocked, JSON reason" => blocked && json && !stderr && !r.session_ends,
        "blocked, stderr reason" => blocked && stderr && !json && !r.session_ends,
        "blocked, no reason" => blocked && !json && !stderr && !r.session_ends,
        "blocked, session stops" => blocked && r.session_ends && !json && !stderr,
        "runs" | "runs, hook killed" | "waited 25 s, then ran (no limit)" => {
            proceeds && r.new_input.is_none() && !r.session_ends
        }
        "runs, session stops" => proceeds && r.session_ends,
        "REWRITTEN" => {
            proceeds
                && r.new_input
                    .as_ref()
                    .is_some_and(|input| input.to_string().contains("REWRITTEN"))
        }
        "hangs" => r.action == Action::AskUser && says("waits for ever"),
        "lost" => !told(r, &["CTX-MARK"]),
        "reaches model (req 1)" | "reaches model (req 2)" => told(r, &["CTX-MARK"]),
        "reason added to result" => proceeds && (json || stderr),
        "reason replaces result" => blocked && (json || stderr),
        "ignored" => !r.retries && !json && !stderr && !blocked,
        "continues, reason to model" => r.retries && (json || stderr),
        "blocked rc=0" | "blocked rc=1" => blocked,
        "went on rc=0" => proceeds,
        _ if seen.starts_with("gives up after ") => r.retries && json && says("gives up"),
        _ if seen.starts_with("endless ") => r.retries && json && says("without a limit"),
        _ => panic!("the file says `{seen}`, which no one taught this test"),
    }
}

#[test]
fn every_experiment_with_a_real_client() {
    let file: Experiments =
        serde_json::from_str(include_str!("../fixtures/reactions.json")).unwrap();
    let mut wrong = Vec::new();
    for row in &file.rows {
        let stdout = written(&row.stdout);
        let answer = Answer {
            exit: row.signal.is_none().then_some(row.exit),
            stdout: &stdout,
            stderr: &row.stderr,
        };
        let reaction = if row.timeout {
            oracle::on_timeout(&row.agent, &row.event)
        } else {
            let payload = &file.tool_payload[&row.client];
            oracle::react(&row.agent, &row.event, payload, &answer, true)
        };
        if !agrees(&row.seen, &reaction) {
            wrong.push(format!(
                "{} {} ({}): seen `{}`, oracle says {reaction:?}",
                row.client, row.name, row.title, row.seen
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        file.rows.len(),
        wrong.join("\n")
    );
    assert_eq!(file.rows.len(), 295, "a row was lost");
}

/// The rows would be worthless if the test accepted any reaction: one that does
/// nothing must fail most of them.
#[test]
fn an_oracle_that_never_reacts_is_found_out() {
    let file: Experiments =
        serde_json::from_str(include_str!("../fixtures/reactions.json")).unwrap();
    let idle = Reaction::default();
    let missed: BTreeSet<&str> = file
        .rows
        .iter()
        .filter(|row| !agrees(&row.seen, &idle))
        .map(|row| row.client.as_str())
        .collect();
    assert_eq!(missed.len(), file.tool_payload.len(), "{missed:?}");
}

fn claims() -> Vec<Claim> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/claims");
    cases::read(folder)
        .unwrap()
        .iter()
        .flat_map(|case| case.json::<Vec<Claim>>(&case.name).unwrap())
        .collect()
}

#[test]
fn every_claim_of_the_facts() {
    let mut wrong = Vec::new();
    for claim in claims() {
        let stdout = written(&claim.stdout);
        let answer = Answer {
            exit: (!claim.signal).then_some(claim.exit.unwrap_or(0)),
            stdout: &stdout,
            stderr: &claim.stderr,
        };
        let reaction = oracle::react(
            &claim.agent,
            &claim.event,
            &claim.payload,
            &answer,
            !claim.interactive,
        );
        let got = serde_json::to_value(&reaction).unwrap();
        assert!(
            !claim.expect.is_empty(),
            "`{}` expects nothing",
            claim.sentence
        );
        for (key, want) in &claim.expect {
            let have = got.get(key).unwrap_or_else(|| panic!("no field `{key}`"));
            if have != want {
                wrong.push(format!(
                    "{} {}: {}\n    {key}: want {want}, have {have} in {reaction:?}",
                    claim.agent, claim.event, claim.sentence
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_agent_has_claims_of_its_own() {
    let claimed: BTreeSet<String> = claims().into_iter().map(|claim| claim.agent).collect();
    let agents: BTreeSet<String> = oracle::AGENTS.iter().map(ToString::to_string).collect();
    assert_eq!(claimed, agents);
}

/// A silent, successful hook changes nothing, whatever the event.
#[test]
fn silence_means_no_opinion_everywhere() {
    for agent in oracle::AGENTS {
        assert!(!oracle::events(agent).is_empty());
        for event in oracle::events(agent) {
            let silent = Answer {
                exit: Some(0),
                stdout: "",
                stderr: "",
            };
            let r = oracle::react(agent, event, &Value::Null, &silent, false);
            let undecided = match *event {
                "PermissionRequest" | "permissionRequest" | "Elicitation" => Action::AskUser,
                // This hook is the one that makes the worktree.
                "WorktreeCreate" => Action::Blocked,
                _ => Action::Proceeds,
            };
            assert_eq!(r.action, undecided, "{agent} {event}");
            assert!(r.accepted || *event == "WorktreeCreate", "{agent} {event}");
            assert!(
                r.model_sees.is_empty() && r.user_sees.is_empty(),
                "{agent} {event}"
            );
            assert!(
                r.new_input.is_none() && !r.session_ends && !r.retries,
                "{agent} {event}"
            );
            assert!(!r.skips_approval, "{agent} {event}");
        }
    }
}

#[test]
fn events_are_named_once_and_strangers_are_refused() {
    for agent in oracle::AGENTS {
        let events = oracle::events(agent);
        assert_eq!(
            events.iter().collect::<BTreeSet<_>>().len(),
            events.len(),
            "{agent}"
        );
        let answer = Answer {
            exit: Some(2),
            stdout: "",
            stderr: "no",
        };
        let r = oracle::react(agent, "noSuchEvent", &Value::Null, &answer, true);
        assert!(!r.accepted && r.action == Action::Proceeds, "{agent}");
    }
    assert!(oracle::events("nobody").is_empty());
}
