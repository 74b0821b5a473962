//! Laws that hold for every JSON settings file, checked on made-up ones and
//! read back by another parser.

#![cfg(test)]

mod support;

use anyhook_edit::{EditOptions, TextEditor, UndoMethod, get, remove_matching, undo, undo_all};
use anyhook_model::Format;
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{
    Layout, SENTINEL, append, entry, layout, marked, oracle, ours, path, set, settings, shown,
    with_hook, write,
};

fn options() -> impl Strategy<Value = EditOptions> {
    any::<bool>().prop_map(|escape_slashes| EditOptions {
        escape_slashes,
        ..EditOptions::default()
    })
}

/// The whole document of settings, or an empty file in its many forms.
fn file() -> impl Strategy<Value = (String, Layout)> {
    let blank = prop_oneof![Just(""), Just("\n"), Just("  "), Just("\r\n\r\n")];
    prop_oneof![
        12 => (settings(), layout()).prop_map(|(value, layout)| (write(&value, &layout), layout)),
        1 => (blank, layout()).prop_map(|(text, layout)| {
            let bom = if layout.bom { "\u{feff}" } else { "" };
            (format!("{bom}{text}"), layout)
        }),
    ]
}

fn event() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("PreToolUse"), Just("Stop"), Just("New")]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn install_then_undo_is_byte_identical((text, layout) in file(), event in event(), options in options()) {
        let edited = append(&text, layout.format, &path(&["hooks", event]), &entry(event), &options).unwrap();
        prop_assert_eq!(
            oracle(&edited.text),
            Some(with_hook(oracle(&text), event, shown(&entry(event)))),
            "only ours is new"
        );
        if options.escape_slashes {
            let slashes = |text: &str| text.matches('/').count() - text.matches("\\/").count();
            prop_assert_eq!(slashes(&edited.text), slashes(&text), "no bare slash goes in");
        }
        let record = serde_json::to_string(&edited.patch).unwrap();
        let patch = serde_json::from_str(&record).unwrap();
        let out = undo(&edited.text, &patch, &|_| false).unwrap();
        prop_assert_eq!(out.text, text);
        prop_assert_eq!(out.method, UndoMethod::Exact);
    }

    #[test]
    fn several_at_once_equal_one_by_one((text, layout) in file(), events in prop::collection::vec(event(), 1..5), count in 1_usize..6) {
        let values: Vec<Value> = (0..count).map(|index| json!({"command": format!("./{index}.sh"), "n": [index]})).collect();
        let mut at_once = TextEditor::new(text.as_str(), layout.format, EditOptions::default());
        let mut one_by_one = at_once.clone();
        for event in events {
            let place = path(&["hooks", event]);
            at_once.append_missing(&place, &values).unwrap();
            for value in &values {
                one_by_one.append_unless(&place, value, &|existing| existing == value).unwrap();
            }
        }
        let found = at_once.into_checked_text().unwrap();
        let wanted = one_by_one.into_checked_text().unwrap();
        prop_assert_eq!(oracle(&found), oracle(&wanted));
        if !text.trim_start_matches('\u{feff}').trim().is_empty() {
            prop_assert_eq!(found.lines().count(), wanted.lines().count(), "{}\n{}", found, wanted);
        }
    }

    #[test]
    fn every_byte_of_the_file_is_kept_in_order((text, layout) in file(), event in event()) {
        let edited = append(&text, layout.format, &path(&["hooks", event]), &entry(event), &EditOptions::default()).unwrap();
        let mut rest = edited.text.as_str();
        let mut kept = String::new();
        let mut at = 0;
        for span in &edited.patch.spans {
            let (before, from_span) = rest.split_at(span.offset - at);
            kept.push_str(before);
            rest = from_span.strip_prefix(span.text.as_str()).unwrap();
            at = span.offset + span.text.len();
        }
        kept.push_str(rest);
        prop_assert_eq!(kept, text);
    }

    #[test]
    fn twice_equals_once((text, layout) in file(), event in event()) {
        let place = path(&["hooks", event]);
        let mut editor = TextEditor::new(text, layout.format, EditOptions::default());
        prop_assert!(editor.append_unless(&place, &entry(event), &ours).unwrap());
        prop_assert!(!editor.append_unless(&place, &entry(event), &ours).unwrap());
        prop_assert_eq!(editor.patches().len(), 1);
    }

    #[test]
    fn an_edit_elsewhere_stays_and_nothing_else(
        (value, layout) in (settings(), layout()),
        events in prop::collection::vec(event(), 1..4),
        replacement in prop_oneof![Just("1"), Just("[1, {\"x\": []}]"), Just("\"a\\nb\""), Just("\n\n 5 \n")],
    ) {
        let text = write(&marked(value), &layout);
        let mut editor = TextEditor::new(text.as_str(), layout.format, EditOptions::default());
        for event in &events {
            editor.append(&path(&["hooks", event]), &entry(event)).unwrap();
        }
        let edited = editor.text().replace(SENTINEL, replacement);
        let out = undo_all(&edited, editor.patches(), &ours).unwrap();
        prop_assert_eq!(out.text, text.replace(SENTINEL, replacement));
    }

    #[test]
    fn what_came_after_us_stays((text, layout) in file(), event in event(), same in any::<bool>()) {
        let place = path(&["hooks", event]);
        let other = if same { place.clone() } else { path(&["hooks", "Later"]) };
        let options = EditOptions::default();
        let mine = json!({"command": "later"});
        let edited = append(&text, layout.format, &place, &entry(event), &options).unwrap();
        let both = append(&edited.text, layout.format, &other, &mine, &options).unwrap();
        let out = undo(&both.text, &edited.patch, &ours).unwrap();
        let name = if same { event } else { "Later" };
        let mut expected = with_hook(oracle(&text), name, shown(&mine));
        // The array that we made for ours goes, since nothing else came into it.
        if !same && get(&text, layout.format, &place).unwrap().is_none() {
            expected["hooks"].as_object_mut().unwrap().remove(event);
        }
        prop_assert_eq!(oracle(&out.text), Some(expected), "{}", out.text);
    }

    #[test]
    fn a_reformatted_and_changed_file_loses_only_ours(
        value in settings(),
        layout in layout(),
        event in event(),
        changed in layout(),
        (front, back, touched) in any::<(bool, bool, bool)>(),
    ) {
        let text = write(&value, &layout);
        let format = if matches!(layout.format, Format::Json) { changed.format } else { layout.format };
        let changed = Layout { format, ..changed };
        let edited = append(&text, layout.format, &path(&["hooks", event]), &entry(event), &EditOptions::default()).unwrap();
        let mut patch = edited.patch;
        patch.format = format;

        // Somebody rewrites the whole file and changes the list around ours.
        let mut now = oracle(&edited.text).unwrap();
        let mut expected = oracle(&text).unwrap();
        let list = now["hooks"][event].as_array_mut().unwrap();
        if touched {
            let last = list.len() - 1;
            list[last]["hooks"][0]["timeout"] = json!("#99");
        }
        if front {
            list.insert(0, json!("front"));
        }
        if back {
            list.push(json!("back"));
        }
        now["fresh"] = json!(true);
        expected["fresh"] = json!(true);
        if front || back {
            expected = with_hook(Some(expected), event, json!("gap"));
            let list = expected["hooks"][event].as_array_mut().unwrap();
            list.pop();
            if front {
                list.insert(0, json!("front"));
            }
            if back {
                list.push(json!("back"));
            }
        }
        let out = undo(&write(&now, &changed), &patch, &ours).unwrap();
        prop_assert_eq!(oracle(&out.text), Some(expected), "{}", out.text);
    }

    #[test]
    fn removal_by_looks_takes_ours_only((text, layout) in file(), event in event(), count in 1_usize..4) {
        let place = path(&["hooks", event]);
        let mut editor = TextEditor::new(text.as_str(), layout.format, EditOptions::default());
        for _ in 0..count {
            editor.append(&place, &entry(event)).unwrap();
            editor.append(&place, &json!("theirs")).unwrap();
        }
        let out = remove_matching(editor.text(), layout.format, &place, &ours).unwrap();
        prop_assert_eq!(out.values.len(), count);
        let mut expected = oracle(&text);
        for _ in 0..count {
            expected = Some(with_hook(expected, event, json!("theirs")));
        }
        prop_assert_eq!(oracle(&out.text), expected);
    }

    #[test]
    fn a_new_key_goes_in_and_out((text, layout) in file(), nested in any::<bool>()) {
        let place = if nested { path(&["fresh", "deep", "key"]) } else { path(&["fresh"]) };
        let edited = set(&text, layout.format, &place, &json!(1), &EditOptions::default()).unwrap();
        prop_assert_eq!(get(&edited.text, layout.format, &place).unwrap(), Some(json!(1)));
        let mut rest = oracle(&edited.text).unwrap();
        rest.as_object_mut().unwrap().remove("fresh");
        prop_assert_eq!(rest, oracle(&text).unwrap_or_else(|| json!({})));
        let renamed = edited.text.replace("hooks", "crooks");
        let out = undo(&renamed, &edited.patch, &ours).unwrap();
        prop_assert_eq!(out.text, text.replace("hooks", "crooks"));
    }

    #[test]
    fn strict_json_is_what_serde_json_accepts(value in settings(), layout in layout(), at in any::<prop::sample::Index>(), new in any::<Option<char>>()) {
        let layout = Layout { bom: false, ..layout };
        let mut text: Vec<char> = write(&value, &layout).chars().collect();
        let at = at.index(text.len());
        match new {
            Some(new) => text.insert(at, new),
            None => drop(text.remove(at)),
        }
        let text: String = text.into_iter().collect();
        // Ours reads behind a byte order mark, which serde_json does not.
        let text = text.trim_start_matches('\u{feff}');
        let theirs = serde_json::from_str::<Value>(text);
        let accepted = get(text, Format::Json, &[]).is_ok_and(|value| value.is_some());
        let out_of_range = theirs.as_ref().is_err_and(|error| error.to_string().contains("out of range"));
        prop_assert!(accepted == theirs.is_ok() || (accepted && out_of_range), "{text:?}: {theirs:?}");
    }
}
