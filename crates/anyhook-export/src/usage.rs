//! Tokens and cost of model calls.
//!
//! Agents report how many tokens a call used in their transcripts or in payloads;
//! `agents/<slug>/usage.toml` says where. Only counts, times and names are taken: the
//! conversation is not read. Never runs in the dispatcher.

mod collector;
mod database;
mod ledger;
mod prices;
mod summary;
mod table;
mod transcript;

pub use collector::{CollectedUsage, CollectorSetup, NamedTranscript, UsageCollector};
pub(crate) use ledger::LedgerLengths;
pub use ledger::{ModelCall, TokenCounts, UsageLedger};
pub use prices::{ModelPrice, PriceTable};
pub use summary::{DayUsage, ModelUsage, SessionUsage, UsageSummary, UsageSums, summarize_usage};
