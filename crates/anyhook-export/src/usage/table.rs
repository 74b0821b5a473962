//! Where an agent says how many tokens a call used: `agents/<slug>/usage.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::ledger::TokenCounts;

/// Of an id, a time or a model's name: a longer text is none, and the state keeps it.
const MAX_TEXT_BYTES: usize = 256;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UsageTable {
    /// The agent's transcript: one JSON object per line.
    pub(crate) transcript: Option<TranscriptTable>,
    /// The agent's database; used where the agent has no transcript table.
    pub(crate) database: Option<DatabaseTable>,
    /// Events that carry usage; used where the event names no transcript that is there.
    #[serde(default)]
    pub(crate) payload: Vec<PayloadTable>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TranscriptTable {
    /// Lines without any of these words are not parsed.
    pub(crate) words: Vec<String>,
    /// Where an event names further transcripts, such as a sub-agent's.
    #[serde(default)]
    pub(crate) more: Vec<String>,
    #[serde(flatten)]
    pub(crate) fields: UsageFields,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DatabaseTable {
    /// A SQLite file: `$VARIABLE/file` or `~/file`; the first that exists counts.
    pub(crate) path: Vec<String>,
    /// For a session (`?1`) the rows that changed since a number (`?2`), in that order: the
    /// id of the call, the number, and the object of the pointers below.
    pub(crate) query: String,
    #[serde(flatten)]
    pub(crate) fields: UsageFields,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PayloadTable {
    /// The agent's name of the event.
    pub(crate) event: String,
    #[serde(flatten)]
    pub(crate) fields: UsageFields,
}

/// JSON pointers; of several the first that is there counts, except for `input` and
/// `output`, which are sums.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct UsageFields {
    /// The same id again is the same call with newer counts.
    #[serde(default)]
    pub(crate) id: Vec<String>,
    #[serde(default)]
    pub(crate) time: Vec<String>,
    #[serde(default)]
    pub(crate) model: Vec<String>,
    pub(crate) input: Vec<String>,
    pub(crate) output: Vec<String>,
    #[serde(default)]
    pub(crate) cache_read: Vec<String>,
    #[serde(default)]
    pub(crate) cache_creation: Vec<String>,
    /// The part of `cache_creation` that is kept for an hour.
    #[serde(default)]
    pub(crate) cache_creation_hour: Vec<String>,
    /// Whether `input` has the cached tokens in it.
    #[serde(default)]
    pub(crate) input_has_cached: bool,
}

/// What one object says.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct FoundUsage {
    pub(crate) id: Option<String>,
    pub(crate) time: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) tokens: Option<TokenCounts>,
}

impl UsageFields {
    pub(crate) fn find(&self, object: &Value) -> FoundUsage {
        let first = |pointers: &[String]| {
            let mut found = pointers.iter().filter_map(|at| object.pointer(at));
            found.find_map(text_of)
        };
        let number = |at: &String| object.pointer(at).and_then(Value::as_u64);
        let sum = |pointers: &[String]| {
            let found: Vec<u64> = pointers.iter().filter_map(number).collect();
            (!found.is_empty()).then(|| found.into_iter().fold(0, u64::saturating_add))
        };
        let read = self.cache_read.iter().find_map(number).unwrap_or_default();
        let creation = self.cache_creation.iter().find_map(number);
        let creation = creation.unwrap_or_default();
        let for_an_hour = self.cache_creation_hour.iter().find_map(number);
        let tokens = sum(&self.input).map(|input| TokenCounts {
            input: if self.input_has_cached {
                input
            } else {
                input.saturating_add(read).saturating_add(creation)
            },
            output: sum(&self.output).unwrap_or_default(),
            cache_read: read,
            cache_creation: creation,
            cache_creation_hour: for_an_hour.unwrap_or_default().min(creation),
        });
        FoundUsage {
            id: first(&self.id),
            time: first(&self.time),
            // Messages of the client itself have a marked name.
            model: first(&self.model).filter(|name| !name.starts_with('<')),
            tokens: tokens.filter(|tokens| *tokens != TokenCounts::default()),
        }
    }
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => {
            Some(anyhook_store::truncated(text, MAX_TEXT_BYTES).to_owned())
        }
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The tables of all agents, by slug.
pub(crate) fn usage_tables() -> BTreeMap<&'static str, UsageTable> {
    let tables = anyhook_agents::USAGE_TABLES.iter();
    // A test reads each of them.
    tables
        .filter_map(|(slug, text)| Some((*slug, toml::from_str(text).ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_can_be_read() {
        for (slug, text) in anyhook_agents::USAGE_TABLES {
            let table: Result<UsageTable, _> = toml::from_str(text);
            let table = table.unwrap_or_else(|error| panic!("{slug}/usage.toml: {error}"));
            let has_source = table.transcript.is_some() || table.database.is_some();
            assert!(has_source || !table.payload.is_empty());
        }
        assert_eq!(usage_tables().len(), anyhook_agents::USAGE_TABLES.len());
        assert!(usage_tables().len() >= 5);
    }
}
