//! A JSON value inside a table, parsed on first use.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A JSON value that is parsed on first use.
#[derive(Debug, Clone, Default)]
pub struct LazyJson {
    text: String,
    value: OnceLock<Value>,
}

impl LazyJson {
    pub fn get(&self) -> &Value {
        // The text was written from a value by the build.
        self.value
            .get_or_init(|| serde_json::from_str(&self.text).unwrap_or_default())
    }

    pub fn is_null(&self) -> bool {
        self.text.is_empty()
    }

    pub fn is_object(&self) -> bool {
        self.text.starts_with('{')
    }
}

impl Serialize for LazyJson {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            self.get().serialize(serializer)
        } else {
            serializer.serialize_str(&self.text)
        }
    }
}

impl<'de> Deserialize<'de> for LazyJson {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = if deserializer.is_human_readable() {
            match Value::deserialize(deserializer)? {
                Value::Null => String::new(),
                value => value.to_string(),
            }
        } else {
            String::deserialize(deserializer)?
        };
        Ok(Self {
            text,
            value: OnceLock::new(),
        })
    }
}
