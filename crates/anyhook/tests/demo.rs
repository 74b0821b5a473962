//! The newcomer's first command: it shows what the agents really do, and its
//! payloads are those that were recorded.
#![cfg(unix)] // compares with hooks that are shell scripts
#![cfg(test)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use anyhook_agents::spec::VerifiedHow;
use anyhook_testkit::reference_model::{self, Action, Answer};
use anyhook_testkit::{Golden, ProcessOutput, Scratch};
use serde_json::{Value, json};

fn demo(scratch: &Scratch, columns: &str, arguments: &[&str]) -> ProcessOutput {
    let temporary = scratch.home().join("tmp");
    fs::create_dir_all(&temporary).unwrap();
    let binary = scratch.command(env!("CARGO_BIN_EXE_anyhook"));
    let binary = binary.env("TMPDIR", &temporary).env("COLUMNS", columns);
    let ran = binary.run(arguments, "").unwrap();
    assert_eq!(ran.exit, Some(0), "{ran:?}");
    assert_eq!(ran.stderr, "");
    assert_eq!(
        fs::read_dir(temporary).unwrap().count(),
        0,
        "it leaves files"
    );
    for folder in [scratch.state(), scratch.config(), scratch.project()] {
        assert_eq!(
            fs::read_dir(&folder).unwrap().count(),
            0,
            "{}",
            folder.display()
        );
    }
    ran
}

#[test]
fn every_agent_does_what_the_table_says() {
    let scratch = Scratch::new().unwrap();
    let shown = demo(&scratch, "100", &["demo", "--json"]).json().unwrap();
    let scenes = shown["scenes"].as_array().unwrap();
    assert_eq!(scenes.len(), 2);
    for scene in scenes {
        let agents = scene["agents"].as_array().unwrap();
        assert_eq!(agents.len(), clients().count());
        for row in agents {
            let text = |key: &str| row[key].as_str().unwrap();
            let answer = Answer {
                exit: row["exit"]
                    .as_i64()
                    .map(|code| i32::try_from(code).unwrap()),
                stdout: text("stdout"),
                stderr: text("stderr"),
            };
            let reaction = reference_model::react(
                text("agent"),
                text("native_event"),
                &row["payload"],
                &answer,
                false,
            );
            assert!(reaction.accepted, "{row} {reaction:?}");
            assert!(!text("answer").is_empty(), "{row}");
            let loses = row["lost"]
                .as_array()
                .unwrap()
                .iter()
                .any(|loss| loss["field"] == "updated_input");
            if scene["hook"] == "guard" || loses {
                assert_eq!(reaction.action, Action::Blocked, "{row} {reaction:?}");
            } else {
                let new = reaction.new_input.unwrap_or_default().to_string();
                assert!(new.contains("--force-with-lease"), "{row} {new}");
            }
        }
    }
}

#[test]
fn the_table_fits() {
    let scratch = Scratch::new().unwrap();
    for columns in ["80", "120"] {
        let ran = demo(&scratch, columns, &["demo"]);
        let room: usize = columns.parse().unwrap();
        let table = ran.stdout.lines().filter(|line| line.starts_with("  "));
        for line in table {
            assert!(line.chars().count() <= room, "{line}");
        }
        for adapter in clients() {
            let name = adapter.spec.id.as_ref();
            assert!(ran.stdout.contains(name), "{name}: {}", ran.stdout);
        }
    }
}

/// `UPDATE=1` copies the payloads from the agents' captures.
#[test]
fn payloads_are_the_recorded_ones() {
    let mut found: BTreeMap<&str, Value> = BTreeMap::new();
    for adapter in clients() {
        if let Some(recorded) = recorded(adapter) {
            found.insert(&adapter.spec.id, recorded);
        }
    }
    let has_run = |adapter: &&Adapter| adapter.spec.verified.how == VerifiedHow::Run;
    let expected = clients().filter(has_run).count();
    assert!(found.len() + 1 >= expected, "{:?}", found.keys());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/payloads.json");
    let mut golden = Golden::default();
    golden.json(path, &found).unwrap();
    golden.end();
}

/// The first capture of a call of the shell, of the event that hooks are put at.
fn recorded(adapter: &'static Adapter) -> Option<Value> {
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../anyhook-agents/agents");
    let folder = agents.join(adapter.spec.id.as_ref()).join("captures");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .ok()?
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    let usual = adapter.event_for("before_tool_execute", Some("shell"))?;
    paths.iter().find_map(|path| {
        let payload: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let stem = path.file_stem()?.to_str()?;
        let hint = stem.split('-').next()?;
        let event = adapter.decode(&payload, Some(hint)).ok()?.event;
        let commands = event.tool_input().and_then(|input| input.get("commands"));
        let several = commands.is_some_and(|all| all.as_array().is_some_and(|all| all.len() > 1));
        let is_shell = event.tool_name() == Some("shell") && !several;
        let fits = event.native_event == usual.native.as_ref() && is_shell;
        fits.then(|| json!({"event": event.native_event, "payload": payload}))
    })
}
