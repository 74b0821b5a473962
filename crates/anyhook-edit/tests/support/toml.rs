//! TOML files, made up line by line.

use proptest::prelude::*;

use super::SENTINEL;

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z ]{0,8}".prop_map(|text| format!("\"{text}\"")),
        Just("'lit # \\ \"eral'".to_owned()),
        Just("\"\"\"\nmany # lines\n[not.a.header]\n\"\"\"".to_owned()),
        Just("'''\n[[nor.this]]\n'''".to_owned()),
        Just("\"ünï \\u00e9 \u{1f980}\"".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        Just("1_000".to_owned()),
        Just("0xdead_beef".to_owned()),
        Just("6.626e-34".to_owned()),
        Just("-inf".to_owned()),
        Just("1979-05-27T07:32:00Z".to_owned()),
        any::<bool>().prop_map(|flag| flag.to_string()),
    ]
}

fn value() -> impl Strategy<Value = String> {
    scalar().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3)
                .prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::vec(inner.clone(), 1..3)
                .prop_map(|items| format!("[ # why\n    {},\n\n  # end\n]", items.join(" ,\n\t"))),
            prop::collection::vec(inner, 0..3).prop_map(|items| {
                let members: Vec<_> = items
                    .iter()
                    .enumerate()
                    .map(|(at, item)| format!("k{at} = {item}"))
                    .collect();
                format!("{{ {} }}", members.join(", "))
            }),
        ]
    })
}

/// Lines of a table's body, with keys that do not collide.
fn body() -> impl Strategy<Value = String> {
    let line = (value(), any::<u8>());
    prop::collection::vec(line, 0..4).prop_map(|lines| {
        let mut text = String::new();
        for (at, (value, style)) in lines.into_iter().enumerate() {
            let key = match style % 4 {
                0 => format!("\"quoted key {at}\""),
                1 => format!("dot{at}.ted"),
                _ => format!("key-{at}"),
            };
            let end = match style % 5 {
                0 => " # said\n",
                1 => "  \n\n",
                2 => "\n# between\n",
                _ => "\n",
            };
            text.extend([&key, " = ", &value, end]);
        }
        text
    })
}

/// The ways in which hooks can be there already, or not.
fn hooks() -> impl Strategy<Value = (&'static str, &'static str)> {
    prop_oneof![
        Just(("", "")),
        Just(("", "[hooks]\n")),
        Just(("", "[hooks]\nenabled = true # on\n")),
        Just(("", "[hooks.deep]\nx = 1\n")),
        Just(("hooks = {}\n", "")),
        Just(("hooks = { enabled = true }\n", "")),
        Just(("hooks = { Stop = [ ] }\n", "")),
        Just(("hooks.enabled = true\n", "")),
        Just(("", "[hooks]\nPreToolUse = []\n")),
        Just(("", "[hooks]\nPreToolUse = [ # none\n]\n")),
        Just(("", "[hooks]\nPreToolUse = [{ command = \"mine\" }]\n")),
        Just((
            "",
            "  [hooks]\n  PreToolUse = [\n    { command = \"mine\" }, # first\n    { command = \"two\" } # second\n  ] # end\n"
        )),
        Just(("", "[[hooks.PreToolUse]]\ncommand = \"mine\"\n")),
        Just((
            "",
            "[[hooks.PreToolUse]] # mine\nmatcher = \"x\"\n\n  [[hooks.PreToolUse.hooks]]\n  command = \"mine\"\n"
        )),
    ]
}

/// A whole file.
pub(crate) fn file() -> impl Strategy<Value = String> {
    let tables = prop::collection::vec((any::<u8>(), body()), 0..4);
    (body(), hooks(), tables, any::<[bool; 4]>()).prop_map(
        |(root, (line, section), tables, [first, crlf, bom, end])| {
            let mut text = root;
            text.push_str(line);
            text.extend(["count = ", SENTINEL, "\n"]);
            if first {
                text.push_str(section);
            }
            for (at, (style, body)) in tables.into_iter().enumerate() {
                let header = match style % 4 {
                    0 => "[[list]]".to_owned(),
                    1 => format!("\n# about {at}\n[ table{at} . sub ] # here"),
                    2 => format!("\t[table{at}]"),
                    _ => format!("[\"quoted {at}\"]"),
                };
                text.extend([&header, "\n", &body]);
            }
            if !first {
                text.push_str(section);
            }
            if !end {
                text.truncate(text.trim_end().len());
            }
            if crlf {
                text = text.replace('\n', "\r\n");
            }
            if bom {
                text.insert(0, '\u{feff}');
            }
            text
        },
    )
}
