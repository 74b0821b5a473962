//! What was spent, by day and session: a small file that `anyhook guard budget` reads.
//!
//! The collector replaces it after every round. It lacks what agents have not written yet,
//! models without a price, and agents that tell no tokens.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ledger::ModelCall;
use super::prices::PriceTable;

/// In the usage folder.
pub const TOTALS_FILE: &str = "totals.json";
const MAX_DAYS: usize = 40;
const MAX_SESSIONS: usize = 500;

/// US dollars. A day is one of UTC.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SpendTotals {
    /// When it was brought up to date, in microseconds since 1970.
    pub updated_us: i64,
    /// By date: `2026-11-18`.
    pub days: BTreeMap<String, f64>,
    /// By agent and session.
    pub sessions: BTreeMap<String, SessionSpend>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionSpend {
    pub usd: f64,
    pub last_us: i64,
}

impl SpendTotals {
    /// The key of a session in [`Self::sessions`].
    pub fn session_key(agent: &str, session: &str) -> String {
        format!("{agent}/{session}")
    }

    pub(crate) fn add(&mut self, call: &ModelCall, prices: &PriceTable) {
        let Some(usd) = prices.cost(&call.model, call.tokens) else {
            return;
        };
        let time = anyhook_store::rfc3339_micros(call.time_us);
        *self
            .days
            .entry(time.get(..10).unwrap_or_default().to_owned())
            .or_default() += usd;
        let key = Self::session_key(&call.agent, &call.session);
        let session = self.sessions.entry(key).or_default();
        session.usd += usd;
        session.last_us = session.last_us.max(call.time_us);
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
}
