//! Laws of installing into every agent's file, on made-up settings: nested,
//! commented, oddly spaced, with CRLF and byte-order marks.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

#[path = "../../anyhook-edit/tests/support/mod.rs"]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use anyhook_agents::spec::Scope;
use anyhook_install::{Bridge, Events, Needs, Target, World};
use proptest::prelude::*;
use serde_json::Value;
use support::{SENTINEL, manner, marked, oracle, settings, write};

fn world(root: &Path) -> World {
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
    World::new(project, env)
}

/// The agents whose files are edited.
fn adapter() -> impl Strategy<Value = &'static Adapter> {
    let scratch = tempfile::tempdir().unwrap();
    let world = world(scratch.path());
    let editable: Vec<&'static Adapter> = clients()
        .filter(|adapter| {
            Target::choose(&world, adapter, Scope::Project).is_ok_and(|target| target.is_editable())
        })
        .collect();
    assert!(editable.len() > 9);
    prop::sample::select(editable)
}

fn bridge(world: &World, adapter: &'static Adapter, program: &str) -> Bridge {
    let target = Target::choose(world, adapter, Scope::Project).unwrap();
    Bridge::new(world, target, &Events::All, &Needs::read(world), program).unwrap()
}

fn standing(bridge: &Bridge) -> BTreeSet<String> {
    bridge.target.bridged().into_iter().collect()
}

fn wanted(bridge: &Bridge) -> BTreeSet<String> {
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
        manner in manner(),
        replacement in prop_oneof![Just("1"), Just("[1, {\"x\": []}]"), Just("\n\n 5 \n")],
    ) {
        let scratch = tempfile::tempdir().unwrap();
        let world = world(scratch.path());
        let first = bridge(&world, adapter, "anyhook");
        let path = first.target.path.clone();
        let text = write(&marked(value), &manner);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &text).unwrap();
        // A file that stands there is chosen, so the target is the same.
        let bridge = bridge(&world, adapter, "anyhook");
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
        Bridge::installed(&world, bridge.target.clone()).uninstall().unwrap();
        let out = fs::read_to_string(&path).unwrap();
        prop_assert_eq!(out, text.replace(SENTINEL, replacement), "the user's edit stays, and nothing else");
    }

    #[test]
    fn a_moved_program_is_written_anew(adapter in adapter(), value in settings(), manner in manner()) {
        let scratch = tempfile::tempdir().unwrap();
        let world = world(scratch.path());
        let old = bridge(&world, adapter, "/old place/anyhook");
        let path = old.target.path.clone();
        let text = write(&value, &manner);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &text).unwrap();
        if old.install().is_err() {
            return Ok(());
        }
        let new = bridge(&world, adapter, "anyhook");
        new.install().unwrap();
        let moved = fs::read_to_string(&path).unwrap();
        prop_assert!(!moved.contains("old place"), "{}", moved);
        prop_assert_eq!(standing(&new), wanted(&new));
        new.uninstall().unwrap();
        prop_assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}
