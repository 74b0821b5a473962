//! What the tests of the dispatcher share.
#![allow(dead_code, reason = "each test file uses its part")]

use std::fs;
use std::path::Path;

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use anyhook_model::Record;
use anyhook_testkit::{Scratch, files_below};
use serde_json::Value;

/// A payload that a real client sent, or an example of its documentation.
pub(crate) struct Capture {
    pub adapter: &'static Adapter,
    /// Inside the agent's `captures`.
    pub path: String,
    /// The native event by the file's name.
    pub event: String,
    pub payload: Value,
}

/// Every capture of every agent, by path.
pub(crate) fn captures() -> Vec<Capture> {
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../anyhook-agents/agents");
    let mut all = Vec::new();
    for adapter in clients() {
        let root = agents.join(adapter.spec.id.as_ref()).join("captures");
        let files = files_below(&root);
        all.extend(files.iter().map(|file| {
            let stem = file.file_stem().unwrap().to_str().unwrap();
            Capture {
                adapter,
                path: file.strip_prefix(&root).unwrap().display().to_string(),
                event: stem.split('-').next().unwrap().to_owned(),
                payload: serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap(),
            }
        }));
    }
    assert!(all.len() > 300, "{} captures", all.len());
    all
}

/// What the dispatcher has written down.
pub(crate) fn journal(scratch: &Scratch) -> Vec<Record> {
    let journal = anyhook_run::record::journal::Journal::new(&scratch.state());
    anyhook_testkit::whole_lines(&journal.folder().join("events.jsonl")).unwrap()
}

/// No process of a hook of this scratch is left: all of them have its project
/// in their environment.
#[cfg(target_os = "linux")]
pub(crate) fn assert_nothing_left(scratch: &Scratch) {
    let project = fs::canonicalize(scratch.project()).unwrap();
    let mark = format!("ANYHOOK_PROJECT_DIR={}", project.display());
    let is_there = || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        processes
            .filter_map(|entry| fs::read(entry.path().join("environ")).ok())
            .any(|bytes| {
                bytes
                    .split(|byte| *byte == 0)
                    .any(|part| part == mark.as_bytes())
            })
    };
    for _ in 0..500 {
        if !is_there() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("a process of a hook is left");
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn assert_nothing_left(_scratch: &Scratch) {}
