//! Which tool calls a hook is for.
//!
//! An omitted matcher is `None` on the hook and matches everything.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

impl Matcher {
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
