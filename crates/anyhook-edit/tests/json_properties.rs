//! Laws that hold for every JSON settings file, checked on made-up ones and
//! read back by another parser.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests"
)]

mod support;

use anyhook_edit::{
    Draft, Format, How, Options, append, append_unless, get, remove_matching, set, undo, undo_all,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{
    Manner, SENTINEL, entry, manner, marked, oracle, ours, path, settings, shown, with_hook, write,
};

fn options() -> impl Strategy<Value = Options> {
    any::<bool>().prop_map(|escape_slashes| Options {
        escape_slashes,
        ..Options::default()
    })
}

/// The whole document of settings, or an empty file in its many forms.
fn file() -> impl Strategy<Value = (String, Manner)> {
    let blank = prop_oneof![Just(""), Just("\n"), Just("  "), Just("\r\n\r\n")];
    prop_oneof![
        12 => (settings(), manner()).prop_map(|(value, manner)| (write(&value, &manner), manner)),
        1 => (blank, manner()).prop_map(|(text, manner)| {
            let bom = if manner.bom { "\u{feff}" } else { "" };
            (format!("{bom}{text}"), manner)
        }),
    ]
}

fn event() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("PreToolUse"), Just("Stop"), Just("New")]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn install_then_undo_is_byte_identical((text, manner) in file(), event in event(), options in options()) {
        let edited = append(&text, manner.format, &path(&["hooks", event]), &entry(event), &options).unwrap();
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
        prop_assert_eq!(out.how, How::Exact);
    }

    #[test]
    fn every_byte_of_the_file_is_kept_in_order((text, manner) in file(), event in event()) {
        let edited = append(&text, manner.format, &path(&["hooks", event]), &entry(event), &Options::default()).unwrap();
        let mut rest = edited.text.as_str();
        let mut kept = String::new();
        let mut at = 0;
        for span in &edited.patch.spans {
            kept.push_str(&rest[..span.offset - at]);
            rest = rest[span.offset - at..].strip_prefix(span.text.as_str()).unwrap();
            at = span.offset + span.text.len();
        }
        kept.push_str(rest);
        prop_assert_eq!(kept, text);
    }

    #[test]
    fn twice_equals_once((text, manner) in file(), event in event()) {
        let place = path(&["hooks", event]);
        let options = Options::default();
        let once = append_unless(&text, manner.format, &place, &entry(event), &options, &ours).unwrap().unwrap();
        let twice = append_unless(&once.text, manner.format, &place, &entry(event), &options, &ours).unwrap();
        prop_assert_eq!(twice, None);
    }

    #[test]
    fn an_edit_elsewhere_stays_and_nothing_else(
        (value, manner) in (settings(), manner()),
        events in prop::collection::vec(event(), 1..4),
        replacement in prop_oneof![Just("1"), Just("[1, {\"x\": []}]"), Just("\"a\\nb\""), Just("\n\n 5 \n")],
    ) {
        let text = write(&marked(value), &manner);
        let mut draft = Draft::new(text.as_str(), manner.format, Options::default());
        for event in &events {
            draft.append(&path(&["hooks", event]), &entry(event)).unwrap();
        }
        let edited = draft.text().replace(SENTINEL, replacement);
        let out = undo_all(&edited, draft.patches(), &ours).unwrap();
        prop_assert_eq!(out.text, text.replace(SENTINEL, replacement));
    }

    #[test]
    fn what_came_after_us_stays((text, manner) in file(), event in event(), same in any::<bool>()) {
        let place = path(&["hooks", event]);
        let other = if same { place.clone() } else { path(&["hooks", "Later"]) };
        let options = Options::default();
        let mine = json!({"command": "later"});
        let edited = append(&text, manner.format, &place, &entry(event), &options).unwrap();
        let both = append(&edited.text, manner.format, &other, &mine, &options).unwrap();
        let out = undo(&both.text, &edited.patch, &ours).unwrap();
        let name = if same { event } else { "Later" };
        let mut expected = with_hook(oracle(&text), name, shown(&mine));
        // The array that we made for ours goes, since nothing else came into it.
        if !same && get(&text, manner.format, &place).unwrap().is_none() {
            expected["hooks"].as_object_mut().unwrap().remove(event);
        }
        prop_assert_eq!(oracle(&out.text), Some(expected), "{}", out.text);
    }

    #[test]
    fn a_reformatted_and_changed_file_loses_only_ours(
        value in settings(),
        manner in manner(),
        event in event(),
        changed in manner(),
        (front, back, touched) in any::<(bool, bool, bool)>(),
    ) {
        let text = write(&value, &manner);
        let format = if matches!(manner.format, Format::Json) { changed.format } else { manner.format };
        let changed = Manner { format, ..changed };
        let edited = append(&text, manner.format, &path(&["hooks", event]), &entry(event), &Options::default()).unwrap();
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
    fn removal_by_looks_takes_ours_only((text, manner) in file(), event in event(), count in 1_usize..4) {
        let place = path(&["hooks", event]);
        let mut draft = Draft::new(text.as_str(), manner.format, Options::default());
        for _ in 0..count {
            draft.append(&place, &entry(event)).unwrap();
            draft.append(&place, &json!("theirs")).unwrap();
        }
        let out = remove_matching(draft.text(), manner.format, &place, &ours, 0).unwrap();
        prop_assert_eq!(out.values.len(), count);
        let mut expected = oracle(&text);
        for _ in 0..count {
            expected = Some(with_hook(expected, event, json!("theirs")));
        }
        prop_assert_eq!(oracle(&out.text), expected);
    }

    #[test]
    fn a_new_key_goes_in_and_out((text, manner) in file(), nested in any::<bool>()) {
        let place = if nested { path(&["fresh", "deep", "key"]) } else { path(&["fresh"]) };
        let edited = set(&text, manner.format, &place, &json!(1), &Options::default()).unwrap();
        prop_assert_eq!(get(&edited.text, manner.format, &place).unwrap(), Some(json!(1)));
        let mut rest = oracle(&edited.text).unwrap();
        rest.as_object_mut().unwrap().remove("fresh");
        prop_assert_eq!(rest, oracle(&text).unwrap_or_else(|| json!({})));
        let renamed = edited.text.replace("hooks", "crooks");
        let out = undo(&renamed, &edited.patch, &ours).unwrap();
        prop_assert_eq!(out.text, text.replace("hooks", "crooks"));
    }

    #[test]
    fn strict_json_is_what_serde_json_accepts(value in settings(), manner in manner(), at in any::<prop::sample::Index>(), new in any::<Option<char>>()) {
        let manner = Manner { bom: false, ..manner };
        let mut text: Vec<char> = write(&value, &manner).chars().collect();
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
