//! A tool of the agent, and the keys of its input.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::{Codec, Str, as_json};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolSpec {
    /// Canonical tool.
    pub is: Str,
    pub native: Str,
    /// Other native names that are decoded to the same canonical tool.
    #[serde(default)]
    pub aliases: Vec<Str>,
    /// Other canonical tools that this native tool is as well.
    #[serde(default)]
    pub also: Vec<Str>,
    /// The row applies only if the native input has these values.
    #[serde(default, with = "as_json")]
    pub when: Map<String, Value>,
    /// Canonical key → native key.
    #[serde(default)]
    pub keys: BTreeMap<Str, InputKey>,
    /// How edits are written.
    pub edits: Option<EditKeys>,
    /// Native key of a patch in the `*** Begin Patch` format.
    pub patch: Option<Str>,
    /// Native keys of the input without a canonical one. A guard may read them, so
    /// a conversion asks whether the target has them too.
    #[serde(default)]
    pub other_keys: Vec<Str>,
    /// Canonical keys that a rewrite really changes. Absent: all.
    pub rewritable: Option<Vec<Str>>,
    /// Read but never written.
    #[serde(default)]
    pub read_only: bool,
    /// A matcher for the canonical tool names it too, even if it is never
    /// written otherwise: it does what the canonical tool does.
    #[serde(default)]
    pub guarded: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct InputKey {
    pub at: Str,
    #[serde(rename = "as")]
    pub codec: Codec,
}

impl<'de> Deserialize<'de> for InputKey {
    /// `"native"` or `{ at = "native", as = "codec" }`.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Whole {
            at: Str,
            #[serde(default, rename = "as")]
            codec: Codec,
        }

        struct NameOrWhole;

        impl<'de> Visitor<'de> for NameOrWhole {
            type Value = Whole;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a native key, or a table with `at` and `as`")
            }

            fn visit_str<E>(self, name: &str) -> Result<Whole, E> {
                Ok(Whole {
                    at: name.to_owned().into(),
                    codec: Codec::Same,
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Whole, A::Error> {
                Whole::deserialize(MapAccessDeserializer::new(map))
            }
        }

        let Whole { at, codec } = if deserializer.is_human_readable() {
            deserializer.deserialize_any(NameOrWhole)?
        } else {
            Whole::deserialize(deserializer)?
        };
        Ok(Self { at, codec })
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditKeys {
    /// Native key of the list; absent if the input itself is one edit.
    pub list: Option<Str>,
    pub old: Str,
    pub new: Str,
    pub replace_all: Option<Str>,
    /// Native key of the path inside each edit (several files in one call).
    pub path: Option<Str>,
}

/// How MCP tools are named in payloads and matchers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct McpNames {
    /// Template over `{server}` and `{tool}`; empty: no combined name.
    pub format: Str,
    /// Characters that are replaced by `_` in `{server}`.
    pub server_replaces: Str,
    /// Template of a matcher for a whole server; a regex if matchers are.
    pub server_matcher: Option<Str>,
    /// Template of a matcher for one tool, if not its name.
    pub tool_matcher: Option<Str>,
    /// The name does not show where the server's part ends; other fields do.
    pub ambiguous: bool,
    /// Begins every matcher for MCP tools, which can then name no other tool; the
    /// rest is a pattern for their names.
    pub matcher_prefix: Option<Str>,
}
