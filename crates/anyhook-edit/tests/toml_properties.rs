//! Laws that hold for every TOML file, checked on made-up ones.

#![cfg(test)]

mod support;

use anyhook_edit::{EditOptions, TextEditor, UndoMethod, get, undo, undo_all};
use anyhook_model::Format;
use proptest::prelude::*;
use serde_json::{Value, json};
use support::toml::file;
use support::{SENTINEL, append, entry, ours, path, set, with_hook};

fn all(text: &str) -> Value {
    get(text, Format::Toml, &[]).unwrap().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn install_then_undo_is_byte_identical(text in file()) {
        let place = path(&["hooks", "PreToolUse"]);
        let edited = append(&text, Format::Toml, &place, &entry("x"), &EditOptions::default()).unwrap();
        prop_assert_eq!(all(&edited.text), with_hook(Some(all(&text)), "PreToolUse", entry("x")));
        let mut again = TextEditor::new(edited.text.as_str(), Format::Toml, EditOptions::default());
        prop_assert!(!again.append_unless(&place, &entry("x"), &ours).unwrap());
        prop_assert!(again.patches().is_empty());
        let out = undo(&edited.text, &edited.patch, &|_| false).unwrap();
        prop_assert_eq!(out.text, text);
        prop_assert_eq!(out.method, UndoMethod::Exact);
    }

    #[test]
    fn an_edit_elsewhere_stays_and_nothing_else(text in file(), replacement in prop_oneof![Just("1"), Just("[\n1,\n]")]) {
        let mut editor = TextEditor::new(text.as_str(), Format::Toml, EditOptions::default());
        for event in ["PreToolUse", "Stop", "PreToolUse", "New"] {
            editor.append(&path(&["hooks", event]), &entry(event)).unwrap();
        }
        let edited = editor.text().replace(SENTINEL, replacement);
        let out = undo_all(&edited, editor.patches(), &ours).unwrap();
        prop_assert_eq!(out.text, text.replace(SENTINEL, replacement));
    }

    #[test]
    fn what_came_after_us_stays(text in file(), same in any::<bool>()) {
        let place = path(&["hooks", "PreToolUse"]);
        let name = if same { "PreToolUse" } else { "Later" };
        let options = EditOptions::default();
        let edited = append(&text, Format::Toml, &place, &entry("x"), &options).unwrap();
        let mine = json!({"command": "later"});
        let both = append(&edited.text, Format::Toml, &path(&["hooks", name]), &mine, &options).unwrap();
        let out = undo(&both.text, &edited.patch, &ours).unwrap();
        prop_assert_eq!(all(&out.text), with_hook(Some(all(&text)), name, mine), "{}", out.text);
    }

    #[test]
    fn a_changed_entry_of_ours_goes_too(text in file()) {
        let place = path(&["hooks", "PreToolUse"]);
        let edited = append(&text, Format::Toml, &place, &entry("x"), &EditOptions::default()).unwrap();
        let changed = edited.text.replace("timeout = 30", "timeout = 31");
        let out = undo(&changed, &edited.patch, &ours).unwrap();
        prop_assert_eq!(out.method, UndoMethod::Structural);
        prop_assert_eq!(all(&out.text), all(&text), "{}", out.text);
        let comments = |text: &str| text.matches('#').count();
        prop_assert_eq!(comments(&out.text), comments(&text), "no comment of the user goes");
    }

    #[test]
    fn a_new_key_goes_in_and_out(text in file(), keys in prop_oneof![Just(&["fresh"][..]), Just(&["hooks", "fresh"][..]), Just(&["list2", "a b", "c"][..])]) {
        let edited = set(&text, Format::Toml, &path(keys), &json!(1), &EditOptions::default()).unwrap();
        prop_assert_eq!(get(&edited.text, Format::Toml, &path(keys)).unwrap(), Some(json!(1)));
        let changed = edited.text.replace(SENTINEL, "2");
        let out = undo(&changed, &edited.patch, &ours).unwrap();
        prop_assert_eq!(out.text, text.replace(SENTINEL, "2"));
    }
}
