//! What the collector remembers between two rounds.

use std::collections::BTreeMap;

use anyhook_model::spend::{SpendTotals, session_key};
use anyhook_store::parse_micros;
use serde::{Deserialize, Serialize};

use super::super::ledger::{LedgerLengths, ModelCall};
use super::super::transcript::{NewTokens, TranscriptPosition};
use crate::reader::JournalCursor;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct CollectorState {
    pub(super) cursor: JournalCursor,
    pub(super) transcripts: BTreeMap<String, KnownTranscript>,
    /// For agents that report tokens in payloads, by agent and session.
    #[serde(default)]
    pub(super) payloads: BTreeMap<String, TranscriptPosition>,
    /// Of agents that keep tokens in a database, by agent and session.
    #[serde(default)]
    pub(super) database_sessions: BTreeMap<String, KnownTranscript>,
    pub(super) ledger: LedgerLengths,
    #[serde(default)]
    pub(super) totals: SpendTotals,
    /// The prices that the totals were made with.
    #[serde(default)]
    pub(super) prices: String,
    /// A state before this one was lost: the ledger has calls of sources that seem new.
    #[serde(default)]
    pub(super) is_recovered: bool,
}

impl CollectorState {
    /// Of a ledger without a state. What it has is kept and not counted again.
    pub(super) fn recovered(ledger: LedgerLengths) -> Self {
        Self {
            is_recovered: !ledger.is_empty(),
            ledger,
            ..Self::default()
        }
    }

    pub(super) fn know_transcript(&mut self, path: String, agent: &str, session: &str) {
        let key = session_key(agent, session);
        let is_repeated = self.is_recovered || self.payloads.contains_key(&key);
        let known = self.transcripts.entry(path);
        known.or_insert_with(|| KnownTranscript {
            agent: agent.to_owned(),
            session: session.to_owned(),
            position: TranscriptPosition::new(is_repeated),
        });
    }

    pub(super) fn transcripts_of<'a>(
        &'a mut self,
        agent: &'a str,
        session: &'a str,
    ) -> impl Iterator<Item = (&'a String, &'a mut TranscriptPosition)> {
        let transcripts = self.transcripts.iter_mut();
        transcripts
            .filter(move |(_, known)| known.agent == agent && known.session == session)
            .map(|(path, known)| (path, &mut known.position))
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KnownTranscript {
    pub(super) agent: String,
    pub(super) session: String,
    pub(super) position: TranscriptPosition,
}

impl KnownTranscript {
    pub(super) fn model_call(&self, new: NewTokens, now_us: i64) -> ModelCall {
        let time_us = new.time.and_then(|time| time_micros(&time));
        ModelCall {
            // A clock that was ahead must not move the cost to a day that no budget sees.
            time_us: time_us.unwrap_or(now_us).min(now_us),
            id: new.id,
            agent: self.agent.clone(),
            session: self.session.clone(),
            model: new.model,
            tokens: new.tokens,
        }
    }
}

/// A time as text, or milliseconds since 1970.
fn time_micros(text: &str) -> Option<i64> {
    let millis = || text.parse::<i64>().ok()?.checked_mul(1000);
    parse_micros(text).or_else(millis)
}
