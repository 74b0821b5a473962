//! How much of what agents and users wrote leaves this machine.

use std::borrow::Cow;
use std::str::FromStr;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::recorded_event::raw_text;

/// Longer values are cut: receivers refuse or drop what is much longer.
pub(crate) const MAX_CONTENT_BYTES: usize = 16 * 1024;

/// From the least to the most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContentLevel {
    /// Names, times, decisions, counts, and the reasons that hooks gave.
    #[default]
    Metadata,
    /// Also the inputs and outputs of tools.
    Tools,
    /// Also prompts and the agent's last message.
    Full,
}

impl FromStr for ContentLevel {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "metadata" => Ok(Self::Metadata),
            "tools" => Ok(Self::Tools),
            "full" => Ok(Self::Full),
            _ => Err("expected `metadata`, `tools` or `full`".to_owned()),
        }
    }
}

impl ContentLevel {
    pub(crate) fn has_tools(self) -> bool {
        self >= Self::Tools
    }

    pub(crate) fn has_prompts(self) -> bool {
        self >= Self::Full
    }
}

/// A JSON value as text: a string without its quotes, anything else as JSON, cut to the
/// longest length that is exported.
pub(crate) fn content_text(raw: &RawValue) -> Cow<'_, str> {
    let text = raw_text(raw).unwrap_or(Cow::Borrowed(raw.get()));
    match text {
        Cow::Borrowed(text) => shortened(text),
        Cow::Owned(text) if text.len() > MAX_CONTENT_BYTES => shortened(&text).into_owned().into(),
        short @ Cow::Owned(_) => short,
    }
}

/// At most [`MAX_CONTENT_BYTES`], with a mark where something was cut.
pub(crate) fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_CONTENT_BYTES {
        return text.into();
    }
    format!("{}…", anyhook_store::truncated(text, MAX_CONTENT_BYTES)).into()
}
