//! Which tool calls a hook is for.
//!
//! An omitted matcher is `None` on the hook and matches everything.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Matcher {
    /// A name of the tool vocabulary; a name outside it matches literally.
    Name(String),
    /// A regular expression over the agent's own tool name, unanchored.
    Pattern {
        pattern: String,
        #[serde(flatten)]
        extra: Map<String, Value>,
    },
    /// Tools of an MCP server.
    Mcp {
        mcp: Mcp,
        #[serde(flatten)]
        extra: Map<String, Value>,
    },
    /// Any of these.
    Any(Vec<Matcher>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mcp {
    pub server: String,
    /// Absent: every tool of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Written by hand: a derived implementation tries every form in turn, and the
/// dispatcher deserializes the matchers of all hooks at every tool call.
impl<'de> Deserialize<'de> for Matcher {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::from_value(value).ok_or_else(|| {
            serde::de::Error::custom(
                "a matcher is a name, a list, or an object with `pattern` or `mcp`",
            )
        })
    }
}

impl Matcher {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::String(name) => Some(Self::Name(name)),
            Value::Array(items) => {
                let items: Option<Vec<Self>> = items.into_iter().map(Self::from_value).collect();
                items.map(Self::Any)
            }
            Value::Object(mut extra) => {
                if let Some(Value::String(pattern)) = extra.get_mut("pattern").map(Value::take) {
                    extra.shift_remove("pattern");
                    return Some(Self::Pattern { pattern, extra });
                }
                let mcp = serde_json::from_value(extra.shift_remove("mcp")?).ok()?;
                Some(Self::Mcp { mcp, extra })
            }
            _ => None,
        }
    }

    pub fn pattern(pattern: impl Into<String>) -> Self {
        Self::Pattern {
            pattern: pattern.into(),
            extra: Map::new(),
        }
    }

    pub fn mcp(server: impl Into<String>, tool: Option<String>) -> Self {
        Self::Mcp {
            mcp: Mcp {
                server: server.into(),
                tool,
                extra: Map::new(),
            },
            extra: Map::new(),
        }
    }
}
