//! Sums of the ledger: by agent and model, by session and by day.

use std::collections::BTreeMap;

use serde::Serialize;

use super::ledger::{ModelCall, TokenCounts, UsageLedger, is_zero};
use super::prices::PriceTable;

/// Sessions that a summary names, the latest first.
const MAX_SESSIONS: usize = 500;

/// What a number of calls used.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct UsageSums {
    pub calls: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_creation_tokens: u64,
    /// Of the calls with a price; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Calls of models without a price, which are not in the cost.
    #[serde(skip_serializing_if = "is_zero")]
    pub unpriced_calls: u64,
    /// The lines of one call follow each other.
    #[serde(skip)]
    last_call: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ModelUsage {
    pub agent: String,
    pub model: String,
    #[serde(flatten)]
    pub sums: UsageSums,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SessionUsage {
    pub agent: String,
    pub session: String,
    /// The latest call.
    pub last: String,
    #[serde(flatten)]
    pub sums: UsageSums,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DayUsage {
    /// Of UTC.
    pub date: String,
    #[serde(flatten)]
    pub sums: UsageSums,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct UsageSummary {
    /// When the prices were looked up.
    pub prices_date: String,
    #[serde(flatten)]
    pub sums: UsageSums,
    /// The most expensive first.
    pub by_model: Vec<ModelUsage>,
    /// The latest first.
    pub by_session: Vec<SessionUsage>,
    /// The earliest first.
    pub by_day: Vec<DayUsage>,
}

impl UsageSums {
    fn add(&mut self, call: &ModelCall, cost_usd: Option<f64>) {
        let TokenCounts {
            input,
            output,
            cache_read,
            cache_creation,
            cache_creation_hour: _,
        } = call.tokens;
        for (sum, more) in [
            (&mut self.input_tokens, input),
            (&mut self.output_tokens, output),
            (&mut self.cache_read_tokens, cache_read),
            (&mut self.cache_creation_tokens, cache_creation),
        ] {
            *sum = sum.saturating_add(more);
        }
        let is_new = self.last_call != call.id;
        if is_new {
            self.calls += 1;
            self.last_call.clone_from(&call.id);
        }
        match cost_usd {
            Some(usd) => *self.cost_usd.get_or_insert_default() += usd,
            None => self.unpriced_calls += u64::from(is_new),
        }
    }
}

/// Sums up the calls that `is_wanted` accepts by agent and session.
pub fn summarize_usage(
    ledger: &UsageLedger,
    prices: &PriceTable,
    (since_us, until_us): (Option<i64>, Option<i64>),
    is_wanted: impl Fn(&str, &str) -> bool,
) -> UsageSummary {
    let mut all = UsageSums::default();
    let mut models: BTreeMap<(String, String), UsageSums> = BTreeMap::new();
    let mut sessions: BTreeMap<(String, String), (i64, UsageSums)> = BTreeMap::new();
    let mut days: BTreeMap<String, UsageSums> = BTreeMap::new();
    ledger.for_each(since_us, |call| {
        let is_late = until_us.is_some_and(|until| call.time_us >= until);
        if is_late || !is_wanted(&call.agent, &call.session) {
            return;
        }
        let usd = prices.cost(&call.model, call.tokens);
        let mut date = anyhook_store::rfc3339_micros(call.time_us);
        date.truncate("2026-11-18".len());
        all.add(&call, usd);
        days.entry(date).or_default().add(&call, usd);
        let model = (call.agent.clone(), call.model.clone());
        models.entry(model).or_default().add(&call, usd);
        let session = (call.agent.clone(), call.session.clone());
        let (last_us, sums) = sessions.entry(session).or_default();
        *last_us = call.time_us.max(*last_us);
        sums.add(&call, usd);
    });
    UsageSummary {
        prices_date: prices.date().to_owned(),
        sums: all,
        by_model: by_model(models),
        by_session: by_session(sessions),
        by_day: days
            .into_iter()
            .map(|(date, sums)| DayUsage { date, sums })
            .collect(),
    }
}

fn by_model(sums: BTreeMap<(String, String), UsageSums>) -> Vec<ModelUsage> {
    let rows = sums
        .into_iter()
        .map(|((agent, model), sums)| ModelUsage { agent, model, sums });
    let mut rows: Vec<ModelUsage> = rows.collect();
    let cost = |row: &ModelUsage| row.sums.cost_usd.unwrap_or_default();
    rows.sort_by(|one, other| cost(other).total_cmp(&cost(one)));
    rows
}

fn by_session(sums: BTreeMap<(String, String), (i64, UsageSums)>) -> Vec<SessionUsage> {
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_by_key(|(_, (last_us, _))| std::cmp::Reverse(*last_us));
    rows.truncate(MAX_SESSIONS);
    let rows = rows.into_iter();
    let row = |((agent, session), (last_us, sums))| SessionUsage {
        agent,
        session,
        last: anyhook_store::rfc3339_micros(last_us),
        sums,
    };
    rows.map(row).collect()
}
