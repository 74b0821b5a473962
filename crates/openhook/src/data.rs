//! Typed views of `data`, one per event type.
//!
//! A view borrows from the envelope and is lenient: a value that is absent, of a
//! wrong type or outside a closed list becomes `None`, and [`crate::validate`]
//! reports it by the rules that are generated here. The same structs build
//! `data`.

use crate::event_type;
use serde_json::{Map, Value};

/// An enum of a closed list of words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($variant),+ }

        impl $name {
            /// Every word, as written.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl ViewField<'_> for $name {
            const KIND: ValueKind = ValueKind::OneOf(Self::WORDS);

            fn from_json(value: &Value) -> Option<Self> {
                Self::parse(value.as_str()?)
            }
            fn to_json(self) -> Value {
                self.as_str().into()
            }
        }
    };
}

/// A struct of optional fields of an object, and the rules of these fields.
macro_rules! view {
    ($(#[$doc:meta])* $name:ident $(<$life:lifetime>)? {
        $($(#[$field_doc:meta])* $field:ident: $kind:ty $(= { $rule:ident: $value:expr })?),+ $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $name $(<$life>)? {
            $($(#[$field_doc])* pub $field: Option<$kind>),+
        }

        impl $(<$life>)? $name $(<$life>)? {
            const RULES: &'static [FieldRule] = &[$(FieldRule {
                $($rule: $value,)?
                ..FieldRule::optional(stringify!($field), <$kind as ViewField>::KIND)
            }),+];

            pub fn from_map(data: & $($life)? Map<String, Value>) -> Self {
                Self { $($field: data.get(stringify!($field)).and_then(ViewField::from_json)),+ }
            }

            /// The fields that are set, in the order of the protocol's text.
            pub fn to_map(self) -> Map<String, Value> {
                let mut data = Map::new();
                $(if let Some(value) = self.$field {
                    data.insert(stringify!($field).to_owned(), value.to_json());
                })+
                data
            }
        }

        impl $(<$life>)? From<$name $(<$life>)?> for Map<String, Value> {
            fn from(view: $name $(<$life>)?) -> Self {
                view.to_map()
            }
        }
    };
}

/// What a field of `data` may contain.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ValueKind {
    Text,
    OneOf(&'static [&'static str]),
    Integer { min: u64 },
}

/// How [`crate::validate`] checks a field of `data`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldRule {
    pub(crate) name: &'static str,
    pub(crate) kind: ValueKind,
    pub(crate) required: bool,
}

impl FieldRule {
    const fn optional(name: &'static str, kind: ValueKind) -> Self {
        let required = false;
        Self {
            name,
            kind,
            required,
        }
    }
}

const LINE_NUMBER: ValueKind = ValueKind::Integer { min: 1 };

trait ViewField<'a>: Sized {
    const KIND: ValueKind;

    fn from_json(value: &'a Value) -> Option<Self>;
    fn to_json(self) -> Value;
}

impl<'a> ViewField<'a> for &'a str {
    const KIND: ValueKind = ValueKind::Text;

    fn from_json(value: &'a Value) -> Option<Self> {
        value.as_str()
    }
    fn to_json(self) -> Value {
        self.into()
    }
}

impl ViewField<'_> for u64 {
    const KIND: ValueKind = ValueKind::Integer { min: 0 };

    fn from_json(value: &Value) -> Option<Self> {
        value.as_u64().or_else(|| whole_number(value.as_f64()?))
    }
    fn to_json(self) -> Value {
        self.into()
    }
}

/// JSON Schema counts `3.0` as an integer, and producers in languages with only
/// one number type write it.
fn whole_number(number: f64) -> Option<u64> {
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() != 0.0 || !(0.0..=MAX_EXACT).contains(&number) {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole and in range, checked above"
    )]
    Some(number as u64)
}

words! {
    /// Why a session ended.
    EndReason {
        UserExit = "user_exit",
        Timeout = "timeout",
        Error = "error",
        Completed = "completed",
    }
}

words! {
    /// The result of a tool call.
    ToolStatus { Success = "success", Error = "error" }
}

words! {
    /// What happened to a file.
    FileOperation { Create = "create", Update = "update", Delete = "delete" }
}

view! {
    /// `data` of `session.start`.
    SessionStart<'a> {
        model: &'a str,
    }
}

view! {
    /// `data` of `session.end`.
    SessionEnd<'a> {
        /// Absolute path to the transcript. Its content is confidential.
        transcript_path: &'a str,
        reason: EndReason,
        model: &'a str,
        duration_ms: u64,
        input_tokens: u64,
        output_tokens: u64,
    }
}

view! {
    /// `data` of `prompt.submit`: the length, never the text.
    PromptSubmit {
        prompt_length: u64,
    }
}

view! {
    /// `data` of `tool.start`.
    ToolStart<'a> {
        tool_name: &'a str,
        tool_call_id: &'a str,
    }
}

view! {
    /// `data` of `tool.end`.
    ToolEnd<'a> {
        tool_name: &'a str,
        /// The same as in the matching `tool.start`.
        tool_call_id: &'a str,
        status: ToolStatus,
        duration_ms: u64,
    }
}

view! {
    /// `data` of `file.write`.
    FileWrite<'a> {
        /// Absolute, or relative to the repository. Required.
        path: &'a str = { required: true },
        operation: FileOperation,
        /// First line that was written, counted from 1.
        start_line: u64 = { kind: LINE_NUMBER },
        /// Last line that was written, counted from 1, inclusive.
        end_line: u64 = { kind: LINE_NUMBER },
        /// `provider/model`, see [`crate::model_id`].
        model: &'a str,
        tool_call_id: &'a str,
    }
}

/// `data` by event type, see [`crate::Envelope::view`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Data<'a> {
    SessionStart(SessionStart<'a>),
    SessionEnd(SessionEnd<'a>),
    PromptSubmit(PromptSubmit),
    ToolStart(ToolStart<'a>),
    ToolEnd(ToolEnd<'a>),
    FileWrite(FileWrite<'a>),
    /// An event type that version 0.1 does not have.
    Other(&'a Map<String, Value>),
}

impl<'a> Data<'a> {
    pub fn from_map(event_type: &str, data: &'a Map<String, Value>) -> Self {
        match event_type {
            event_type::SESSION_START => Self::SessionStart(SessionStart::from_map(data)),
            event_type::SESSION_END => Self::SessionEnd(SessionEnd::from_map(data)),
            event_type::PROMPT_SUBMIT => Self::PromptSubmit(PromptSubmit::from_map(data)),
            event_type::TOOL_START => Self::ToolStart(ToolStart::from_map(data)),
            event_type::TOOL_END => Self::ToolEnd(ToolEnd::from_map(data)),
            event_type::FILE_WRITE => Self::FileWrite(FileWrite::from_map(data)),
            _ => Self::Other(data),
        }
    }
}

pub(crate) fn rules(event_type: &str) -> &'static [FieldRule] {
    match event_type {
        event_type::SESSION_START => SessionStart::RULES,
        event_type::SESSION_END => SessionEnd::RULES,
        event_type::PROMPT_SUBMIT => PromptSubmit::RULES,
        event_type::TOOL_START => ToolStart::RULES,
        event_type::TOOL_END => ToolEnd::RULES,
        event_type::FILE_WRITE => FileWrite::RULES,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn views_are_lenient() {
        let data = json!({
            "transcript_path": 5, "reason": "other", "model": "m",
            "duration_ms": 3.0, "input_tokens": -1, "output_tokens": 1.5,
        });
        let view = SessionEnd::from_map(data.as_object().unwrap());
        assert_eq!(
            view,
            SessionEnd {
                model: Some("m"),
                duration_ms: Some(3),
                ..SessionEnd::default()
            }
        );
    }

    #[test]
    fn a_view_writes_what_it_was_made_from() {
        let data = json!({
            "path": "a.rs", "operation": "delete", "start_line": 1, "end_line": 2,
            "model": "x/y", "tool_call_id": "c",
        });
        let map = data.as_object().unwrap();
        assert_eq!(&FileWrite::from_map(map).to_map(), map);
    }
}
