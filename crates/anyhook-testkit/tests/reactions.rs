//! The reference models against reality: every experiment that was run with a
//! real client (`cases/experiments.json` of an agent) and every known fact that
//! can be stated as one answer (`cases/claims.json`).

#![cfg(test)]

use anyhook_testkit::reference_model::{self, Action, Answer, Reaction};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Experiments {
    clients: BTreeMap<String, Client>,
    rows: Vec<Experiment>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Client {
    #[expect(dead_code, reason = "for the reader of the file")]
    version: String,
    /// The payload of the tool call that the scripted model made.
    tool_payload: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Experiment {
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

/// Each text that the experiments sent carries a mark of where it was sent.
fn contains_mark(reaction: &Reaction, marks: &[&str]) -> bool {
    reaction
        .model_sees
        .iter()
        .any(|text| marks.iter().any(|mark| text.contains(mark)))
}

/// Does the reaction mean what the report's words say?
fn agrees(seen: &str, r: &Reaction) -> bool {
    let json = contains_mark(r, &["DENY-REASON", "STOP-REASON", "BLOCK-REASON"]);
    let stderr = contains_mark(r, &["STDERR-REASON"]);
    let proceeds = r.action == Action::Proceeds;
    let blocked = r.action == Action::Blocked;
    let notes = |text: &str| r.note.as_deref().is_some_and(|note| note.contains(text));
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
        "hangs" => r.action == Action::AskUser && notes("waits for ever"),
        "lost" => !contains_mark(r, &["CTX-MARK"]),
        "reaches model (req 1)" | "reaches model (req 2)" => contains_mark(r, &["CTX-MARK"]),
        "reason added to result" => proceeds && (json || stderr),
        "reason replaces result" => blocked && (json || stderr),
        "ignored" => !r.retries && !json && !stderr && !blocked,
        "continues, reason to model" => r.retries && (json || stderr),
        "blocked rc=0" | "blocked rc=1" => blocked,
        "went on rc=0" => proceeds,
        _ if seen.starts_with("gives up after ") => r.retries && json && notes("gives up"),
        _ if seen.starts_with("endless ") => r.retries && json && notes("without a limit"),
        _ => panic!("the file has `{seen}`, which this test does not know"),
    }
}

/// The files of this name in `agents/<slug>/cases/`, by agent.
fn cases<T: DeserializeOwned>(file: &str) -> Vec<(&'static str, T)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../anyhook-agents/agents");
    reference_model::agents()
        .map(|agent| (agent, root.join(agent).join("cases").join(file)))
        .filter(|(_, path)| path.is_file())
        .map(|(agent, path)| {
            let text = fs::read_to_string(&path).unwrap();
            let case = serde_json::from_str(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (agent, case)
        })
        .collect()
}

fn experiments() -> Vec<(&'static str, Experiments)> {
    cases("experiments.json")
}

#[test]
fn every_experiment_with_a_real_client() {
    let mut count = 0;
    let mut wrong = Vec::new();
    for (agent, file, row) in experiments()
        .iter()
        .flat_map(|(agent, file)| file.rows.iter().map(move |row| (agent, file, row)))
    {
        count += 1;
        let stdout = written(&row.stdout);
        let answer = Answer {
            exit: row.signal.is_none().then_some(row.exit),
            stdout: &stdout,
            stderr: &row.stderr,
        };
        let reaction = if row.timeout {
            reference_model::on_timeout(agent, &row.event)
        } else {
            let payload = &file.clients[&row.client].tool_payload;
            reference_model::react(agent, &row.event, payload, &answer, true)
        };
        if !agrees(&row.seen, &reaction) {
            wrong.push(format!(
                "{} {} ({}): seen `{}`, the model has {reaction:?}",
                row.client, row.name, row.title, row.seen
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert_eq!(count, 295, "a row was lost");
}

/// The rows would be worthless if the test accepted any reaction: one that does
/// nothing must fail most of them.
#[test]
fn a_model_that_never_reacts_is_found_out() {
    let idle = Reaction::default();
    for (agent, file) in experiments() {
        let missed: BTreeSet<&str> = file
            .rows
            .iter()
            .filter(|row| !agrees(&row.seen, &idle))
            .map(|row| row.client.as_str())
            .collect();
        assert_eq!(missed.len(), file.clients.len(), "{agent}: {missed:?}");
    }
}

fn claims() -> Vec<(&'static str, Vec<Claim>)> {
    cases("claims.json")
}

#[test]
fn every_claim_of_the_facts() {
    let mut wrong = Vec::new();
    for (agent, claim) in claims()
        .iter()
        .flat_map(|(agent, claims)| claims.iter().map(move |claim| (agent, claim)))
    {
        let stdout = written(&claim.stdout);
        let answer = Answer {
            exit: (!claim.signal).then_some(claim.exit.unwrap_or(0)),
            stdout: &stdout,
            stderr: &claim.stderr,
        };
        let reaction = reference_model::react(
            agent,
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
                    "{agent} {}: {}\n    {key}: want {want}, have {have} in {reaction:?}",
                    claim.event, claim.sentence
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_agent_has_claims_of_its_own() {
    let claims = claims();
    assert!(claims.iter().all(|(_, claims)| !claims.is_empty()));
    let claimed: Vec<&str> = claims.iter().map(|(agent, _)| *agent).collect();
    let agents: Vec<&str> = reference_model::agents().collect();
    assert_eq!(claimed, agents);
}

/// A silent, successful hook changes nothing, whatever the event.
#[test]
fn silence_means_no_opinion_everywhere() {
    for agent in reference_model::agents() {
        assert!(!reference_model::events(agent).is_empty());
        for event in reference_model::events(agent) {
            let silent = Answer {
                exit: Some(0),
                stdout: "",
                stderr: "",
            };
            let r = reference_model::react(agent, event, &Value::Null, &silent, false);
            let undecided = match *event {
                "PermissionRequest" | "permissionRequest" | "Elicitation" => Action::AskUser,
                // This hook is the one that creates the worktree.
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
    for agent in reference_model::agents() {
        let events = reference_model::events(agent);
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
        let r = reference_model::react(agent, "noSuchEvent", &Value::Null, &answer, true);
        assert!(!r.accepted && r.action == Action::Proceeds, "{agent}");
    }
    assert!(reference_model::events("nobody").is_empty());
}
