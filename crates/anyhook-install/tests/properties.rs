//! Laws of installing into every agent's file, on made-up settings: nested,
//! commented, oddly spaced, with CRLF and byte-order marks.

#![cfg(test)]

// Not in the testkit: it would bring a property-test engine and a second JSON
// parser into the tests of every crate.
#[path = "../../anyhook-edit/tests/support/mod.rs"]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use anyhook_agents::spec::Scope;
use anyhook_install::{
    BridgeProgram, BridgeTransport, EventSelection, Installation, Machine, ManifestNeeds, Target,
};
use proptest::prelude::*;
use serde_json::Value;
use support::{SENTINEL, layout, marked, oracle, settings, write};

fn machine(root: &Path) -> Machine {
    let mut env: BTreeMap<String, OsString> = BTreeMap::new();
    for (name, folder) in [
        ("HOME", "home"),
        ("ANYHOOK_CONFIG_DIR", "config"),
        ("ANYHOOK_STATE_DIR", "state"),
        ("ANYHOOK_MANAGED_DIR", "managed"),
    ] {
        env.insert(name.to_owned(), root.join(folder).into());
    }
    let project = root.join("project");
    fs::create_dir_all(project.join(".git")).unwrap();
    Machine::new(project, env)
}

/// The agents whose files are edited.
fn adapter() -> impl Strategy<Value = &'static Adapter> {
    let scratch = tempfile::tempdir().unwrap();
    let machine = machine(scratch.path());
    let editable: Vec<&'static Adapter> = clients()
        .filter(|adapter| {
            Target::for_scope(&machine, adapter, Scope::Project)
                .is_ok_and(|target| target.is_editable())
        })
        .collect();
    assert!(editable.len() > 9);
    prop::sample::select(editable)
}

fn bridge(machine: &Machine, adapter: &'static Adapter, program: BridgeProgram) -> Installation {
    let target = Target::for_scope(machine, adapter, Scope::Project).unwrap();
    Installation::plan(
        machine,
        target,
        &EventSelection::All,
        &ManifestNeeds::load(machine),
        &program,
        &BridgeTransport::Process,
    )
    .unwrap()
}

fn standing(bridge: &Installation) -> BTreeSet<String> {
    bridge.target.bridged_events().into_iter().collect()
}

fn wanted(bridge: &Installation) -> BTreeSet<String> {
    bridge.events().into_iter().map(str::to_owned).collect()
}

/// Whether everything that was there is still there, in its place.
fn keeps(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => before
            .iter()
            .all(|(key, value)| after.get(key).is_some_and(|there| keeps(value, there))),
        (Value::Array(before), Value::Array(after)) => {
            before.len() <= after.len() && before.iter().zip(after).all(|(a, b)| keeps(a, b))
        }
        (before, after) => before == after,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn in_and_out_again(
        adapter in adapter(),
        value in settings(),
        layout in layout(),
        replacement in prop_oneof![Just("1"), Just("[1, {\"x\": []}]"), Just("\n\n 5 \n")],
    ) {
        let scratch = tempfile::tempdir().unwrap();
        let machine = machine(scratch.path());
        let first = bridge(&machine, adapter, BridgeProgram::Searched);
        let path = first.target.path.clone();
        let text = write(&marked(value), &layout);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &text).unwrap();
        // The existing file is chosen, so the target is the same.
        let bridge = bridge(&machine, adapter, BridgeProgram::Searched);
        prop_assert_eq!(&bridge.target.path, &path);

        let Ok(preview) = bridge.preview() else {
            prop_assert!(bridge.install().is_err());
            prop_assert_eq!(fs::read_to_string(&path).unwrap(), text, "a refusal changes nothing");
            return Ok(());
        };
        bridge.install().unwrap();
        let once = fs::read_to_string(&path).unwrap();
        prop_assert_eq!(Some(&once), preview[0].change.after.as_ref(), "the preview is what is done");
        prop_assert!(keeps(&oracle(&text).unwrap(), &oracle(&once).unwrap()), "{}", once);
        prop_assert_eq!(standing(&bridge), wanted(&bridge), "all entries stand");

        bridge.install().unwrap();
        prop_assert_eq!(&fs::read_to_string(&path).unwrap(), &once, "twice equals once");

        fs::write(&path, once.replace(SENTINEL, replacement)).unwrap();
        Installation::existing(&machine, bridge.target.clone()).uninstall().unwrap();
        let out = fs::read_to_string(&path).unwrap();
        prop_assert_eq!(out, text.replace(SENTINEL, replacement), "the user's edit stays, and nothing else");
    }

    #[test]
    fn a_moved_program_is_written_anew(adapter in adapter(), value in settings(), layout in layout()) {
        let scratch = tempfile::tempdir().unwrap();
        let machine = machine(scratch.path());
        let old = bridge(&machine, adapter, BridgeProgram::Named("/old place/anyhook".into()));
        let path = old.target.path.clone();
        let text = write(&value, &layout);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &text).unwrap();
        if old.install().is_err() {
            return Ok(());
        }
        let new = bridge(&machine, adapter, BridgeProgram::Searched);
        new.install().unwrap();
        let moved = fs::read_to_string(&path).unwrap();
        prop_assert!(!moved.contains("old place"), "{}", moved);
        prop_assert_eq!(standing(&new), wanted(&new));
        new.uninstall().unwrap();
        prop_assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}
