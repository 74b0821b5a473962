//! Finds new tokens: reads the journal for sessions and payloads, then what is new in the
//! transcripts that it names, and appends to the ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhook_store::parse_micros;
use anyhook_util::fs::replace;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ledger::{LedgerLengths, ModelCall, UsageLedger};
use super::prices::PriceTable;
use super::table::{UsageTable, usage_tables};
use super::totals::{SpendTotals, TOTALS_FILE};
use super::transcript::{TranscriptPosition, read_transcript};
use crate::error::{ExportError, Result};
use crate::reader::{JournalCursor, JournalReader};
use crate::recorded_event::RecordedEvent;
use crate::state_file::StateFile;

const STATE_FILE: &str = "collector.json";
/// The longest unused transcripts beyond this number are forgotten.
const MAX_TRANSCRIPTS: usize = 2000;

/// How much one round has found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CollectedUsage {
    pub calls: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct CollectorState {
    cursor: JournalCursor,
    transcripts: BTreeMap<String, KnownTranscript>,
    /// Of agents that tell tokens in payloads, by agent and session.
    #[serde(default)]
    payloads: BTreeMap<String, TranscriptPosition>,
    ledger: LedgerLengths,
    totals: SpendTotals,
}

#[derive(Debug, Serialize, Deserialize)]
struct KnownTranscript {
    agent: String,
    session: String,
    position: TranscriptPosition,
}

/// Only one process collects at a time.
#[derive(Debug)]
pub struct UsageCollector {
    ledger: UsageLedger,
    state_file: StateFile,
    state: CollectorState,
    reader: JournalReader,
    tables: BTreeMap<&'static str, UsageTable>,
    prices: PriceTable,
}

impl UsageCollector {
    /// `folder` is the usage folder. Fails if another process collects.
    pub fn open(folder: &Path, journal: impl Into<PathBuf>, prices: PriceTable) -> Result<Self> {
        let state_file = StateFile::open(folder.join(STATE_FILE))?;
        let state: CollectorState = state_file.load().unwrap_or_default();
        let ledger = UsageLedger::new(folder);
        let restored = ledger.restore(&state.ledger);
        restored.map_err(|source| ExportError::State {
            path: folder.to_owned(),
            source,
        })?;
        Ok(Self {
            reader: JournalReader::new(journal, state.cursor.clone()),
            tables: usage_tables(),
            ledger,
            state_file,
            state,
            prices,
        })
    }

    /// Reads what is new.
    pub fn collect(&mut self, now_us: i64) -> Result<CollectedUsage> {
        let mut calls = Vec::new();
        let mut active = BTreeSet::new();
        let mut has_lines = false;
        while let Some(batch) = self.reader.next_batch()? {
            has_lines = true;
            for line in &batch.lines {
                if let Some(event) = RecordedEvent::parse(line) {
                    self.observe(&event, &mut active, &mut calls);
                }
            }
        }
        // Agents write a transcript after they have called the hooks.
        for (path, known) in &self.state.transcripts {
            const RECENT_US: i64 = 15 * 60 * 1_000_000;
            if now_us - known.position.used_us < RECENT_US {
                active.insert(path.clone());
            }
        }
        for path in active {
            self.read_transcript(&path, now_us, &mut calls);
        }
        self.forget_old_transcripts();
        for call in &calls {
            self.state.totals.add(call, &self.prices);
        }
        if !has_lines && calls.is_empty() {
            self.save_totals(now_us);
            return Ok(CollectedUsage::default());
        }
        let failed = |source| ExportError::State {
            path: self.ledger.folder().to_owned(),
            source,
        };
        self.ledger
            .append(&calls, &mut self.state.ledger)
            .map_err(failed)?;
        self.state.cursor = self.reader.cursor().clone();
        self.state_file.save(&self.state)?;
        self.save_totals(now_us);
        Ok(CollectedUsage {
            calls: calls.len() as u64,
        })
    }

    /// Best effort: the next round writes it again.
    fn save_totals(&mut self, now_us: i64) {
        self.state.totals.updated_us = now_us;
        if let Ok(text) = serde_json::to_vec(&self.state.totals) {
            let _ = replace(&self.ledger.folder().join(TOTALS_FILE), &text);
        }
    }

    fn observe(
        &mut self,
        event: &RecordedEvent<'_>,
        active: &mut BTreeSet<String>,
        calls: &mut Vec<ModelCall>,
    ) {
        let Some(table) = self.tables.get(event.agent.as_ref()) else {
            return;
        };
        let session = event.event.session_id.as_deref().unwrap_or_default();
        let native = || -> Option<Value> {
            let metadata: Value = serde_json::from_str(event.event.metadata?.get()).ok()?;
            metadata.get("native").cloned()
        };
        if let Some(transcript) = &table.transcript {
            let mut paths: Vec<String> = Vec::new();
            paths.extend(
                event
                    .event
                    .data
                    .transcript_path
                    .as_deref()
                    .map(str::to_owned),
            );
            if !transcript.more.is_empty()
                && event.event.event.starts_with("subagent")
                && let Some(native) = native()
            {
                let more = transcript.more.iter().filter_map(|at| native.pointer(at));
                paths.extend(more.filter_map(Value::as_str).map(str::to_owned));
            }
            for path in paths {
                let agent = event.agent.to_string();
                let known = self.state.transcripts.entry(path.clone());
                known.or_insert_with(|| KnownTranscript {
                    agent,
                    session: session.to_owned(),
                    position: TranscriptPosition::default(),
                });
                active.insert(path);
            }
            return;
        }
        let native_event = event.event.native_event.as_ref();
        let rows = table.payload.iter().filter(|row| row.event == native_event);
        for row in rows {
            let Some(native) = native() else { return };
            let mut found = row.fields.find(&native);
            found.id.get_or_insert_with(|| event.id.to_string());
            let model = event.event.data.model.as_deref();
            found.model = found.model.or(model.map(str::to_owned));
            let time_us = parse_micros(&event.time).unwrap_or_default();
            let key = SpendTotals::session_key(&event.agent, session);
            let position = self.state.payloads.entry(key).or_default();
            position.used_us = time_us;
            calls.extend(position.new_tokens(found).map(|new| ModelCall {
                id: new.id,
                time_us,
                agent: event.agent.to_string(),
                session: session.to_owned(),
                model: new.model,
                tokens: new.tokens,
            }));
        }
    }

    fn read_transcript(&mut self, path: &str, now_us: i64, calls: &mut Vec<ModelCall>) {
        let Some(known) = self.state.transcripts.get_mut(path) else {
            return;
        };
        let table = self.tables.get(known.agent.as_str());
        let Some(table) = table.and_then(|table| table.transcript.as_ref()) else {
            return;
        };
        let found = read_transcript(Path::new(path), table, &mut known.position);
        if !found.is_empty() || known.position.used_us == 0 {
            known.position.used_us = now_us;
        }
        calls.extend(found.into_iter().map(|new| {
            ModelCall {
                time_us: new
                    .time
                    .and_then(|time| time_micros(&time))
                    .unwrap_or(now_us),
                id: new.id,
                agent: known.agent.clone(),
                session: known.session.clone(),
                model: new.model,
                tokens: new.tokens,
            }
        }));
    }

    fn forget_old_transcripts(&mut self) {
        forget_oldest(&mut self.state.transcripts, |known| known.position.used_us);
        forget_oldest(&mut self.state.payloads, |position| position.used_us);
    }
}

fn forget_oldest<T>(known: &mut BTreeMap<String, T>, used_us: impl Fn(&T) -> i64) {
    while known.len() > MAX_TRANSCRIPTS {
        let oldest = known.iter().min_by_key(|(_, one)| used_us(one));
        let Some(key) = oldest.map(|(key, _)| key.clone()) else {
            return;
        };
        known.remove(&key);
    }
}

/// A time as text, or milliseconds since 1970.
fn time_micros(text: &str) -> Option<i64> {
    let millis = || text.parse::<i64>().ok()?.checked_mul(1000);
    parse_micros(text).or_else(millis)
}
