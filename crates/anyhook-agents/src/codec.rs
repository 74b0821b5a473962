//! How single values differ between an agent and the canonical model.
//!
//! `get` reads a native value, `put` writes one. A codec that cannot read a
//! value returns `None`, and the value is kept as it is.

use jiff::Timestamp;
use serde_json::{Number, Value, json};

use crate::spec::Codec;

impl Codec {
    pub fn get(self, native: &Value) -> Option<Value> {
        Some(match self {
            Self::Same | Self::Seconds | Self::WholeSeconds => native.clone(),
            Self::Millis => number(native.as_f64()? / 1000.0),
            Self::SecondsOrMillis => {
                let value = native.as_f64()?;
                let is_millis = value >= 1000.0;
                number(if is_millis { value / 1000.0 } else { value })
            }
            Self::MsFromSeconds => number(native.as_f64()? * 1000.0),
            Self::EpochMillis => rfc3339(native.as_i64()?)?,
            Self::EpochMillisText => rfc3339(native.as_str()?.parse().ok()?)?,
            Self::Json => match native {
                Value::String(text) => serde_json::from_str(text).ok()?,
                // Some versions send the value itself: a guard must see it too.
                other => other.clone(),
            },
            Self::First => native.as_array()?.first()?.clone(),
            Self::Lines => {
                let lines = native.as_array()?.iter().map(Value::as_str);
                Value::String(lines.collect::<Option<Vec<&str>>>()?.join("\n"))
            }
            Self::Paths => Value::String(path_of(native.as_array()?.first()?)?.to_owned()),
            Self::TextParts => Value::String(texts_of_parts(native)?.join("\n")),
            Self::Not => Value::Bool(!native.as_bool()?),
            Self::ModelObject => {
                let part = |key| native.get(key).and_then(Value::as_str);
                Value::String(format!("{}/{}", part("providerID")?, part("modelID")?))
            }
        })
    }

    pub fn put(self, canonical: &Value) -> Option<Value> {
        Some(match self {
            Self::Same | Self::Seconds => canonical.clone(),
            Self::SecondsOrMillis => number(canonical.as_f64()?),
            Self::WholeSeconds => number(canonical.as_f64()?.ceil()),
            Self::Millis => number((canonical.as_f64()? * 1000.0).ceil()),
            Self::MsFromSeconds => number(canonical.as_f64()? / 1000.0),
            Self::EpochMillis => json!(epoch(canonical.as_str()?)?),
            Self::EpochMillisText => Value::String(epoch(canonical.as_str()?)?.to_string()),
            Self::Json => Value::String(serde_json::to_string(canonical).ok()?),
            Self::First | Self::Lines => Value::Array(vec![canonical.clone()]),
            Self::Paths => json!([{ "path": canonical }]),
            Self::TextParts => json!([{ "type": "text", "text": canonical.as_str()? }]),
            Self::Not => Value::Bool(!canonical.as_bool()?),
            Self::ModelObject => {
                let (provider, model) = canonical.as_str()?.split_once('/')?;
                json!({"providerID": provider, "modelID": model})
            }
        })
    }

    /// Whether writing gives back exactly what was read.
    pub(crate) fn is_exact(self, native: &Value, canonical: &Value) -> bool {
        match self {
            Self::Same | Self::Seconds => canonical == native,
            _ => self.put(canonical).as_ref() == Some(native),
        }
    }
}

fn path_of(item: &Value) -> Option<&str> {
    item.as_str().or_else(|| item.get("path")?.as_str())
}

/// The texts of a message's parts; a message may also be a text.
fn texts_of_parts(native: &Value) -> Option<Vec<&str>> {
    if let Some(text) = native.as_str() {
        return Some(vec![text]);
    }
    let parts = native.as_array()?.iter();
    Some(
        parts
            .filter_map(|part| part.get("text")?.as_str())
            .collect(),
    )
}

/// The whole list, for a codec whose canonical value is made of several.
pub fn listed(codec: Codec, native: &Value) -> Option<Value> {
    let items = native.as_array()?;
    let texts: Option<Vec<&str>> = match codec {
        Codec::Lines => items.iter().map(Value::as_str).collect(),
        Codec::Paths => items.iter().map(path_of).collect(),
        _ => None,
    };
    Some(json!(texts?))
}

/// A whole number where the value is one: `10`, not `10.0`.
#[allow(
    clippy::cast_possible_truncation,
    clippy::float_cmp,
    reason = "only values that are whole and far inside i64 are cast"
)]
pub fn number(value: f64) -> Value {
    if value.trunc() == value && value.abs() < 9e15 {
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

fn rfc3339(millis: i64) -> Option<Value> {
    anyhook_util::time::rfc3339_millis(millis).map(Value::String)
}

fn epoch(text: &str) -> Option<i64> {
    Some(text.parse::<Timestamp>().ok()?.as_millisecond())
}
