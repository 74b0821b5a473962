//! Sums of the ledger, by agent and model.

use std::collections::BTreeMap;

use serde::Serialize;

use super::ledger::{TokenCounts, UsageLedger};
use super::prices::PriceTable;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct UsageRow {
    pub agent: String,
    pub model: String,
    pub calls: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_creation_tokens: u64,
    /// Absent if the model has no price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct UsageSummary {
    /// Of all models with a price.
    pub cost_usd: f64,
    /// When the prices were looked up.
    pub prices_date: String,
    pub by_model: Vec<UsageRow>,
    /// The date of UTC, and US dollars.
    pub by_day: BTreeMap<String, f64>,
}

/// Sums up the calls that `is_wanted` accepts by agent and session.
pub fn summarize_usage(
    ledger: &UsageLedger,
    prices: &PriceTable,
    (since_us, until_us): (Option<i64>, Option<i64>),
    is_wanted: impl Fn(&str, &str) -> bool,
) -> UsageSummary {
    let mut sums: BTreeMap<(String, String), (TokenCounts, u64, String)> = BTreeMap::new();
    let mut summary = UsageSummary {
        prices_date: prices.date().to_owned(),
        ..UsageSummary::default()
    };
    ledger.for_each(since_us, |call| {
        let is_late = until_us.is_some_and(|until| call.time_us >= until);
        if is_late || !is_wanted(&call.agent, &call.session) {
            return;
        }
        if let Some(usd) = prices.cost(&call.model, call.tokens) {
            let day = anyhook_store::rfc3339_micros(call.time_us);
            let day = day.get(..10).unwrap_or_default().to_owned();
            *summary.by_day.entry(day).or_default() += usd;
        }
        let (tokens, count, last) = sums.entry((call.agent, call.model)).or_default();
        tokens.add(call.tokens);
        // The lines of one call follow each other.
        if *last != call.id {
            *count += 1;
            *last = call.id;
        }
    });
    for ((agent, model), (tokens, calls, _)) in sums {
        let cost_usd = prices.cost(&model, tokens);
        summary.cost_usd += cost_usd.unwrap_or_default();
        summary.by_model.push(UsageRow {
            agent,
            model,
            calls,
            input_tokens: tokens.input,
            output_tokens: tokens.output,
            cache_read_tokens: tokens.cache_read,
            cache_creation_tokens: tokens.cache_creation,
            cost_usd,
        });
    }
    let by_cost = |row: &UsageRow| row.cost_usd.unwrap_or_default();
    summary
        .by_model
        .sort_by(|one, other| by_cost(other).total_cmp(&by_cost(one)));
    summary
}
