//! Typed views of `data`, one per event type.
//!
//! A view borrows from the envelope and is lenient: what is absent, or of a
//! wrong type, or outside a closed list, reads as `None`. [`crate::validate`] is
//! what complains. The same structs build `data` for the writer.

use crate::event_type;
use serde_json::{Map, Value};

/// A closed list of words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($variant),+ }

        impl $name {
            /// Every word, as it is written.
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

        impl Field<'_> for $name {
            fn read(value: &Value) -> Option<Self> {
                Self::parse(value.as_str()?)
            }
            fn write(self) -> Value {
                self.as_str().into()
            }
        }
    };
}

/// A struct of optional fields that are read from and written to an object.
macro_rules! view {
    ($(#[$doc:meta])* $name:ident $(<$life:lifetime>)? {
        $($(#[$field_doc:meta])* $field:ident: $kind:ty),+ $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $name $(<$life>)? {
            $($(#[$field_doc])* pub $field: Option<$kind>),+
        }

        impl $(<$life>)? $name $(<$life>)? {
            pub fn read(data: & $($life)? Map<String, Value>) -> Self {
                Self { $($field: data.get(stringify!($field)).and_then(Field::read)),+ }
            }

            /// The fields that are there, in the order of the text.
            pub fn to_map(self) -> Map<String, Value> {
                let mut data = Map::new();
                $(if let Some(value) = self.$field {
                    data.insert(stringify!($field).to_owned(), value.write());
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

trait Field<'a>: Sized {
    fn read(value: &'a Value) -> Option<Self>;
    fn write(self) -> Value;
}

impl<'a> Field<'a> for &'a str {
    fn read(value: &'a Value) -> Option<Self> {
        value.as_str()
    }
    fn write(self) -> Value {
        self.into()
    }
}

impl Field<'_> for u64 {
    fn read(value: &Value) -> Option<Self> {
        value.as_u64().or_else(|| whole_number(value.as_f64()?))
    }
    fn write(self) -> Value {
        self.into()
    }
}

/// JSON Schema counts `3.0` as an integer, and so do producers in languages
/// that have only one number type.
fn whole_number(number: f64) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() != 0.0 || !(0.0..=EXACT).contains(&number) {
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
    /// How a tool call came out.
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
        /// The same as in the `tool.start` that it ends.
        tool_call_id: &'a str,
        status: ToolStatus,
        duration_ms: u64,
    }
}

view! {
    /// `data` of `file.write`.
    FileWrite<'a> {
        /// Absolute, or relative to the repository. Required.
        path: &'a str,
        operation: FileOperation,
        /// First line that was written, counted from 1.
        start_line: u64,
        /// Last line that was written, counted from 1, inclusive.
        end_line: u64,
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
    pub fn read(event_type: &str, data: &'a Map<String, Value>) -> Self {
        match event_type {
            event_type::SESSION_START => Self::SessionStart(SessionStart::read(data)),
            event_type::SESSION_END => Self::SessionEnd(SessionEnd::read(data)),
            event_type::PROMPT_SUBMIT => Self::PromptSubmit(PromptSubmit::read(data)),
            event_type::TOOL_START => Self::ToolStart(ToolStart::read(data)),
            event_type::TOOL_END => Self::ToolEnd(ToolEnd::read(data)),
            event_type::FILE_WRITE => Self::FileWrite(FileWrite::read(data)),
            _ => Self::Other(data),
        }
    }
}

/// What a field of `data` may hold; [`crate::validate`] asks.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Text,
    OneOf(&'static [&'static str]),
    Integer { min: u64 },
}

pub(crate) struct Rule {
    pub name: &'static str,
    pub kind: Kind,
    pub required: bool,
}

const fn optional(name: &'static str, kind: Kind) -> Rule {
    Rule {
        name,
        kind,
        required: false,
    }
}

const COUNT: Kind = Kind::Integer { min: 0 };
const LINE: Kind = Kind::Integer { min: 1 };

pub(crate) fn rules(event_type: &str) -> &'static [Rule] {
    match event_type {
        event_type::SESSION_START => const { &[optional("model", Kind::Text)] },
        event_type::SESSION_END => {
            const {
                &[
                    optional("transcript_path", Kind::Text),
                    optional("reason", Kind::OneOf(EndReason::WORDS)),
                    optional("model", Kind::Text),
                    optional("duration_ms", COUNT),
                    optional("input_tokens", COUNT),
                    optional("output_tokens", COUNT),
                ]
            }
        }
        event_type::PROMPT_SUBMIT => const { &[optional("prompt_length", COUNT)] },
        event_type::TOOL_START => {
            const {
                &[
                    optional("tool_name", Kind::Text),
                    optional("tool_call_id", Kind::Text),
                ]
            }
        }
        event_type::TOOL_END => {
            const {
                &[
                    optional("tool_name", Kind::Text),
                    optional("tool_call_id", Kind::Text),
                    optional("status", Kind::OneOf(ToolStatus::WORDS)),
                    optional("duration_ms", COUNT),
                ]
            }
        }
        event_type::FILE_WRITE => {
            const {
                &[
                    Rule {
                        name: "path",
                        kind: Kind::Text,
                        required: true,
                    },
                    optional("operation", Kind::OneOf(FileOperation::WORDS)),
                    optional("start_line", LINE),
                    optional("end_line", LINE),
                    optional("model", Kind::Text),
                    optional("tool_call_id", Kind::Text),
                ]
            }
        }
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
        let view = SessionEnd::read(data.as_object().unwrap());
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
    fn views_write_what_they_read() {
        let data = json!({
            "path": "a.rs", "operation": "delete", "start_line": 1, "end_line": 2,
            "model": "x/y", "tool_call_id": "c",
        });
        let map = data.as_object().unwrap();
        assert_eq!(&FileWrite::read(map).to_map(), map);
    }
}
