//! Settings files as people have them, made up: values first, then a text that
//! has them in some style. And an oracle that reads them with another parser.

#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod toml;

use anyhook_edit::{EditAction, EditError, EditOptions, EditedText, Key, edit};
use anyhook_model::Format;
use jsonc_parser::{JsonValue, ParseOptions, parse_to_value};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Occurs once somewhere in the values; text edits by "the user" are made to it.
pub(crate) const SENTINEL: &str = "7777777771";

pub(crate) fn path(keys: &[&str]) -> Vec<Key> {
    keys.iter().map(|key| Key::from(*key)).collect()
}

/// What the installer writes.
pub(crate) fn entry(event: &str) -> Value {
    json!({"matcher": "", "hooks": [
        {"type": "command", "command": format!("/opt/bin/anyhook run --agent x --event {event}"), "timeout": 30},
    ]})
}

pub(crate) fn append(
    text: &str,
    format: Format,
    path: &[Key],
    value: &Value,
    options: &EditOptions,
) -> Result<EditedText, EditError> {
    edit(text, format, EditAction::Append, path, value, options)
}

pub(crate) fn set(
    text: &str,
    format: Format,
    path: &[Key],
    value: &Value,
    options: &EditOptions,
) -> Result<EditedText, EditError> {
    edit(text, format, EditAction::Set, path, value, options)
}

pub(crate) fn ours(value: &Value) -> bool {
    value.to_string().contains("anyhook run")
}

/// A small deterministic source of choices for the writer of texts.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % (sides as u64)).unwrap()
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len())]
    }
}

/// Numbers are strings that start with `#` here, so that every digit counts.
fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        prop_oneof![
            Just("0"),
            Just("-0"),
            Just("1.50"),
            Just("1e400"),
            Just("-12E+3"),
            Just("123456789012345678901234567890.000000000000000001"),
        ]
        .prop_map(|digits| Value::String(format!("#{digits}"))),
        any::<i64>().prop_map(|number| Value::String(format!("#{number}"))),
        text().prop_map(Value::String),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z/ ]{0,8}",
        2 => "\\PC{0,6}",
        1 => Just("// not a comment, ] } \" \\ /* neither */".to_owned()),
        1 => Just("ünï\u{1f980}\u{0}\t\n\u{7f}\u{2028}".to_owned()),
        1 => Just("long ".repeat(300)),
    ]
    .prop_filter("`#` marks numbers", |text| !text.starts_with('#'))
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((text(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn handler() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => "[a-z]{1,6}\\.sh".prop_map(|command| json!({"command": command})),
        1 => value(),
        1 => Just(Value::String(format!("#{SENTINEL}"))),
    ]
}

/// Settings: other keys around, and hooks that are missing, empty or full.
pub(crate) fn settings() -> impl Strategy<Value = Value> {
    let events = prop::collection::vec(
        (
            prop_oneof![Just("PreToolUse"), Just("Stop"), Just("Other")],
            prop::collection::vec(handler(), 0..3),
        ),
        0..3,
    );
    let others = || prop::collection::vec((text(), value()), 0..4);
    (others(), prop::option::of(events), others()).prop_map(|(first, hooks, last)| {
        let mut root: Map<String, Value> = first.into_iter().collect();
        if let Some(hooks) = hooks {
            let hooks: Map<String, Value> = hooks
                .into_iter()
                .map(|(event, handlers)| (event.to_owned(), Value::Array(handlers)))
                .collect();
            root.insert("hooks".to_owned(), Value::Object(hooks));
        }
        root.extend(last.into_iter().filter(|(key, _)| key != "hooks"));
        Value::Object(root)
    })
}

/// The same settings with the sentinel in them.
pub(crate) fn marked(mut value: Value) -> Value {
    if !value.to_string().contains(SENTINEL) {
        value["count"] = Value::String(format!("#{SENTINEL}"));
    }
    value
}

/// How a text is written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Style {
    Pretty(&'static str),
    Compact,
    OneLine,
    /// Any white space that JSON allows, anywhere; comments and commas where they may be.
    Wild,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub style: Style,
    pub format: Format,
    pub newline: &'static str,
    pub bom: bool,
    pub last_newline: bool,
    pub seed: u64,
}

pub(crate) fn layout() -> impl Strategy<Value = Layout> {
    let style = prop_oneof![
        Just(Style::Pretty("  ")),
        Just(Style::Pretty("    ")),
        Just(Style::Pretty("\t")),
        Just(Style::Compact),
        Just(Style::OneLine),
        Just(Style::Wild),
    ];
    let format = prop_oneof![Just(Format::Json), Just(Format::Jsonc)];
    let newline = prop_oneof![Just("\n"), Just("\r\n")];
    (style, format, newline, any::<[bool; 2]>(), any::<u64>()).prop_map(
        |(style, format, newline, [bom, last_newline], seed)| Layout {
            style,
            format,
            newline,
            bom,
            last_newline,
            seed,
        },
    )
}

pub(crate) fn write(value: &Value, layout: &Layout) -> String {
    let mut writer = Writer {
        layout: *layout,
        dice: Dice::new(layout.seed),
        out: String::new(),
    };
    if layout.bom {
        writer.out.push('\u{feff}');
    }
    writer.loose();
    writer.value(value, 0);
    writer.loose();
    if layout.last_newline {
        writer.out.push_str(layout.newline);
    }
    writer.out
}

struct Writer {
    layout: Layout,
    dice: Dice,
    out: String,
}

impl Writer {
    /// White space and comments where nothing is needed.
    fn loose(&mut self) {
        let comments = self.layout.format == Format::Jsonc;
        match self.layout.style {
            Style::Wild => {
                for _ in 0..self.dice.roll(4) {
                    let blank = self.dice.pick(&["", " ", "\t", "\n", "\r\n", " \n\n\t "]);
                    self.out.push_str(blank);
                    if comments && self.dice.roll(3) == 0 {
                        let comment = self.dice.pick(&[
                            "// to the end , ] }\n",
                            "// ünï \"\r\n",
                            "/* , ] } */",
                            "/* two\n lines */",
                        ]);
                        self.out.push_str(comment);
                    }
                }
            }
            Style::Pretty(_) if comments && self.dice.roll(6) == 0 => {
                self.out.push_str(" /* hm */ ");
            }
            _ => {}
        }
    }

    fn line(&mut self, depth: usize) {
        if let Style::Pretty(unit) = self.layout.style {
            if self.layout.format == Format::Jsonc && self.dice.roll(5) == 0 {
                self.out.push_str(" // note");
            }
            self.out.push_str(self.layout.newline);
            self.out.push_str(&unit.repeat(depth));
        } else {
            self.loose();
        }
    }

    fn value(&mut self, value: &Value, depth: usize) {
        match value {
            Value::String(text) => match text.strip_prefix('#') {
                Some(digits) => self.out.push_str(digits),
                None => self.string(text),
            },
            Value::Array(items) => {
                let items = items.iter().map(|item| (None, item)).collect();
                self.list(['[', ']'], items, depth);
            }
            Value::Object(map) => {
                let items = map.iter().map(|(key, item)| (Some(key), item)).collect();
                self.list(['{', '}'], items, depth);
            }
            other => self.out.push_str(&other.to_string()),
        }
    }

    fn list(
        &mut self,
        [open, close]: [char; 2],
        items: Vec<(Option<&String>, &Value)>,
        depth: usize,
    ) {
        self.out.push(open);
        let count = items.len();
        for (index, (key, item)) in items.into_iter().enumerate() {
            self.line(depth + 1);
            if let Some(key) = key {
                self.string(key);
                self.loose();
                self.out.push(':');
                if matches!(self.layout.style, Style::Pretty(_) | Style::OneLine) {
                    self.out.push(' ');
                }
                self.loose();
            }
            self.value(item, depth + 1);
            self.loose();
            let trailing = self.layout.format == Format::Jsonc && self.dice.roll(4) == 0;
            if index + 1 < count || trailing {
                self.out.push(',');
            }
            if index + 1 < count && matches!(self.layout.style, Style::OneLine) {
                self.out.push(' ');
            }
        }
        if count > 0 {
            self.line(depth);
        } else {
            self.loose();
        }
        self.out.push(close);
    }

    fn string(&mut self, text: &str) {
        let quoted = Value::String(text.to_owned()).to_string();
        if matches!(self.layout.style, Style::Wild) && self.dice.roll(4) == 0 {
            self.out
                .push_str(&quoted.replace('/', "\\/").replace('a', "\\u0061"));
        } else {
            self.out.push_str(&quoted);
        }
    }
}

/// The content of a text, read by another parser than ours. `None`: it has none.
pub(crate) fn oracle(text: &str) -> Option<Value> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let parsed = parse_to_value(text, &options);
    parsed
        .unwrap_or_else(|error| panic!("{error}\n---\n{text}\n---"))
        .map(plain)
}

fn plain(value: JsonValue<'_>) -> Value {
    match value {
        JsonValue::Null => Value::Null,
        JsonValue::Boolean(flag) => Value::Bool(flag),
        JsonValue::Number(digits) => Value::String(format!("#{digits}")),
        JsonValue::String(text) => Value::String(text.into_owned()),
        JsonValue::Array(items) => items.into_iter().map(plain).collect(),
        JsonValue::Object(members) => members
            .into_iter()
            .map(|(key, value)| (key.into_owned(), plain(value)))
            .collect::<Map<_, _>>()
            .into(),
    }
}

/// A value of ours as the oracle shows it.
pub(crate) fn shown(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::String(format!("#{number}")),
        Value::Array(items) => items.iter().map(shown).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), shown(value)))
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

/// `root` with `value` at the end of `hooks.event`.
pub(crate) fn with_hook(root: Option<Value>, event: &str, value: Value) -> Value {
    let mut root = root.unwrap_or_else(|| json!({}));
    let hooks = root
        .as_object_mut()
        .unwrap()
        .entry("hooks")
        .or_insert_with(|| json!({}));
    let list = hooks
        .as_object_mut()
        .unwrap()
        .entry(event)
        .or_insert_with(|| json!([]));
    list.as_array_mut().unwrap().push(value);
    root
}
