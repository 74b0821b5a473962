//! What was spent, by day and session: the file that `anyhook guard budget` reads.
//!
//! The collector of tokens replaces it after every round. The first line has the time and
//! the days, then one line per session, so that a reader parses two lines of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// In the state folder.
pub const USAGE_FOLDER: &str = "usage";
/// In the usage folder.
pub const TOTALS_FILE: &str = "totals.jsonl";

const MAX_DAYS: usize = 40;
const MAX_SESSIONS: usize = 2000;

/// US dollars.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SpendTotals {
    /// When it was brought up to date, in microseconds since 1970.
    pub updated_us: i64,
    /// By date of UTC: `2026-11-18`.
    pub days: BTreeMap<String, DaySpend>,
    /// By [`session_key`].
    #[serde(default)]
    pub sessions: BTreeMap<String, SessionSpend>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DaySpend {
    pub usd: f64,
    /// A model without a price, whose tokens are not in the sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpriced_model: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionSpend {
    pub usd: f64,
    /// A model without a price, whose tokens are not in the sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpriced_model: Option<String>,
    /// Tool calls since tokens were last found.
    #[serde(default)]
    pub tool_calls_without_tokens: u32,
    pub last_us: i64,
}

/// What is known for one session on one day.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KnownSpend {
    pub updated_us: i64,
    pub day: DaySpend,
    pub session: SessionSpend,
    /// Whether the collector has seen the session at all.
    pub is_session_known: bool,
}

#[derive(Serialize, Deserialize)]
struct SessionLine {
    session: String,
    #[serde(flatten)]
    spend: SessionSpend,
}

/// The name of a session in [`SpendTotals`].
pub fn session_key(agent: &str, session: &str) -> String {
    format!("{agent}/{session}")
}

impl SpendTotals {
    /// Adds a call of a model; `usd` is `None` if the model has no price.
    pub fn add_call(&mut self, key: &str, date: &str, time_us: i64, model: &str, usd: Option<f64>) {
        let day = self.days.entry(date.to_owned()).or_default();
        let session = self.sessions.entry(key.to_owned()).or_default();
        session.last_us = session.last_us.max(time_us);
        session.tool_calls_without_tokens = 0;
        if let Some(usd) = usd {
            day.usd += usd;
            session.usd += usd;
        } else {
            day.unpriced_model.get_or_insert_with(|| model.to_owned());
            session
                .unpriced_model
                .get_or_insert_with(|| model.to_owned());
        }
        self.forget_oldest();
    }

    /// Adds a tool call, of which no tokens are known yet.
    pub fn add_tool_call(&mut self, key: &str, time_us: i64) {
        let session = self.sessions.entry(key.to_owned()).or_default();
        session.last_us = session.last_us.max(time_us);
        session.tool_calls_without_tokens = session.tool_calls_without_tokens.saturating_add(1);
        self.forget_oldest();
    }

    /// Adds a session of which nothing is known yet.
    pub fn know_session(&mut self, key: &str, time_us: i64) {
        let session = self.sessions.entry(key.to_owned()).or_default();
        session.last_us = session.last_us.max(time_us);
        self.forget_oldest();
    }

    /// Whether a session that is not here may have been forgotten.
    pub fn may_have_forgotten(&self, key: &str) -> bool {
        self.sessions.len() >= MAX_SESSIONS && !self.sessions.contains_key(key)
    }

    fn forget_oldest(&mut self) {
        while self.days.len() > MAX_DAYS {
            self.days.pop_first();
        }
        while self.sessions.len() > MAX_SESSIONS {
            let oldest = self.sessions.iter().min_by_key(|(_, it)| it.last_us);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else {
                break;
            };
            self.sessions.remove(&key);
        }
    }

    pub fn to_text(&self) -> serde_json::Result<String> {
        let head = Self {
            sessions: BTreeMap::new(),
            ..self.clone()
        };
        let mut text = serde_json::to_string(&head)? + "\n";
        for (key, spend) in &self.sessions {
            let line = SessionLine {
                session: key.clone(),
                spend: spend.clone(),
            };
            text += &serde_json::to_string(&line)?;
            text.push('\n');
        }
        Ok(text)
    }
}

impl KnownSpend {
    /// Looks a day and a session up in the text of [`SpendTotals`]; what is not there was
    /// not used. `None` if the text is something else.
    pub fn find(text: &str, date: &str, key: &str) -> Option<Self> {
        let mut lines = text.lines();
        let mut head: SpendTotals = serde_json::from_str(lines.next()?).ok()?;
        let start = serde_json::to_string(key).ok()?;
        let start = format!("{{\"session\":{start},");
        let line = lines.find(|line| line.starts_with(&start));
        let session = match line {
            Some(line) => serde_json::from_str::<SessionLine>(line).ok()?.spend,
            None => SessionSpend::default(),
        };
        Some(Self {
            updated_us: head.updated_us,
            day: head.days.remove(date).unwrap_or_default(),
            is_session_known: line.is_some(),
            session,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_found_by_its_whole_name() {
        let mut totals = SpendTotals {
            updated_us: 7,
            ..SpendTotals::default()
        };
        let name = session_key("a", "x\"y/\n");
        totals.add_tool_call(&name, 1);
        totals.add_call(&name, "2026-11-18", 2, "m", Some(1.5));
        totals.add_call(&name, "2026-11-18", 3, "odd", None);
        totals.add_call(&session_key("a", "x"), "2026-11-17", 3, "m", Some(4.0));
        totals.add_tool_call(&name, 4);
        let text = totals.to_text().unwrap();
        let known = KnownSpend::find(&text, "2026-11-18", &name).unwrap();
        assert_eq!(known.updated_us, 7);
        assert_eq!(known.session, totals.sessions[&name]);
        assert_eq!(known.session.usd.to_string(), "1.5");
        assert_eq!(known.session.tool_calls_without_tokens, 1);
        assert_eq!(known.day.unpriced_model.as_deref(), Some("odd"));
        let other = KnownSpend::find(&text, "2026-11-16", "a/").unwrap();
        assert_eq!(other.session, SessionSpend::default());
        assert!(known.is_session_known && !other.is_session_known);
        assert_eq!(other.day, DaySpend::default());
        for bad in ["", "{}", "[]\n", "{\"updated_us\":null,\"days\":{}}\n"] {
            assert_eq!(KnownSpend::find(bad, "2026-11-16", "a"), None, "{bad}");
        }
    }
}
