//! Whatever is in a file, nothing panics, and an edit that succeeds comes out again.

#![cfg(test)]

mod support;

use anyhook_edit::{EditError, EditOptions, Key, get, remove_matching, undo};
use anyhook_model::Format;
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{append, entry, layout, ours, path, set, settings, write};

const FORMATS: [Format; 3] = [Format::Json, Format::Jsonc, Format::Toml];

fn places() -> [Vec<Key>; 4] {
    [
        path(&["hooks", "PreToolUse"]),
        path(&["a"]),
        vec![
            "hooks".into(),
            "PreToolUse".into(),
            0.into(),
            "hooks".into(),
        ],
        Vec::new(),
    ]
}

fn exercise(text: &str) {
    let before = append(
        "{}",
        Format::Jsonc,
        &path(&["hooks", "PreToolUse"]),
        &entry("x"),
        &EditOptions::default(),
    )
    .unwrap();
    for format in FORMATS {
        for place in places() {
            let _any = get(text, format, &place);
            let _any = remove_matching(text, format, &place, &|value| value.is_object());
            for edit in [append, set] {
                if let Ok(edited) = edit(text, format, &place, &entry("x"), &EditOptions::default())
                {
                    let out = undo(&edited.text, &edited.patch, &ours).unwrap();
                    assert_eq!(out.text, text);
                    // The record of one text against another one.
                    let _any = undo(text, &edited.patch, &ours);
                }
            }
        }
        let mut patch = before.patch.clone();
        patch.format = format;
        if let Ok(out) = undo(text, &patch, &|value| value.is_object()) {
            let sound = |text| get(text, format, &[]).is_ok();
            assert!(sound(&out.text) || !sound(text));
        }
    }
}

fn crumbs() -> impl Strategy<Value = String> {
    let crumb = prop_oneof![
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just("[["),
        Just("]]"),
        Just(","),
        Just(":"),
        Just("="),
        Just("\""),
        Just("'"),
        Just("\"\"\""),
        Just("\\"),
        Just("\\u"),
        Just("/"),
        Just("//"),
        Just("/*"),
        Just("*/"),
        Just("#"),
        Just("\n"),
        Just("\r"),
        Just("\r\n"),
        Just(" "),
        Just("\t"),
        Just("\u{feff}"),
        Just("é"),
        Just("hooks"),
        Just("\"hooks\":"),
        Just("\"PreToolUse\":"),
        Just("PreToolUse"),
        Just("."),
        Just("-"),
        Just("1"),
        Just("0"),
        Just("e"),
        Just("null"),
        Just("true"),
        Just("a"),
        Just("\"a\":"),
    ];
    prop::collection::vec(crumb, 0..40).prop_map(|crumbs| crumbs.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in any::<String>()) {
        exercise(&text);
    }

    #[test]
    fn any_bytes(bytes in any::<Vec<u8>>()) {
        exercise(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_pile_of_syntax(text in crumbs()) {
        exercise(&text);
    }

    #[test]
    fn any_damage(value in settings(), layout in layout(), from in any::<prop::sample::Index>(), len in 0_usize..20) {
        let text: Vec<char> = write(&value, &layout).chars().collect();
        let from = from.index(text.len());
        let until = (from + len).min(text.len());
        let damaged: String = text[..from].iter().chain(&text[until..]).collect();
        exercise(&damaged);
    }

    #[test]
    fn any_damage_to_toml(text in support::toml::file(), from in any::<prop::sample::Index>(), len in 0_usize..20) {
        let text: Vec<char> = text.chars().collect();
        let from = from.index(text.len());
        let until = (from + len).min(text.len());
        let damaged: String = text[..from].iter().chain(&text[until..]).collect();
        exercise(&damaged);
    }
}

#[test]
fn bottomless_nesting_is_refused() {
    for open in ["[", "{\"a\":", "a=[", "a={b="] {
        let text = open.repeat(100_000);
        for format in FORMATS {
            assert!(matches!(
                append(
                    &text,
                    format,
                    &path(&["hooks"]),
                    &json!(1),
                    &EditOptions::default()
                ),
                Err(EditError::Parse { .. })
            ));
        }
    }
}

#[test]
fn a_huge_file_is_edited_and_restored() {
    let items: Vec<Value> = (0..20_000)
        .map(|at| json!({"command": format!("script-{at}.sh"), "n": at}))
        .collect();
    let text = serde_json::to_string_pretty(&json!({"hooks": {"PreToolUse": items}})).unwrap();
    let place = path(&["hooks", "PreToolUse"]);
    let edited = append(
        &text,
        Format::Json,
        &place,
        &entry("x"),
        &EditOptions::default(),
    )
    .unwrap();
    let out = undo(&edited.text, &edited.patch, &ours).unwrap();
    assert_eq!(out.text, text);
}
