//! Finds new tokens: reads the journal for sessions and payloads, then what is new in the
//! transcripts that it names, and appends to the ledger.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use anyhook_model::spend::{SpendTotals, TOTALS_FILE, session_key};
use anyhook_store::{parse_micros, rfc3339_micros};
use anyhook_util::fs::replace;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::database::{database_path, read_session};
use super::ledger::{LedgerLengths, ModelCall, UsageLedger};
use super::prices::PriceTable;
use super::table::{UsageTable, usage_tables};
use super::transcript::{KnownCalls, NewTokens, TranscriptPosition, read_transcript};
use crate::error::{ExportError, Result};
use crate::reader::{JournalCursor, JournalReader};
use crate::recorded_event::RecordedEvent;
use crate::state_file::StateFile;

const STATE_FILE: &str = "collector.json";
/// The longest unused transcripts beyond this number are forgotten.
const MAX_TRANSCRIPTS: usize = 2000;
/// What was used in this time is looked at again without an event.
const RECENT_US: i64 = 15 * 60 * 1_000_000;
/// Bytes of transcripts that are read in one round; the rest comes with the next.
const MAX_ROUND_BYTES: u64 = 512 * 1024 * 1024;
/// Calls in memory; more are written to the ledger first.
const MAX_PENDING_CALLS: usize = 10_000;

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
    /// Of agents that keep tokens in a database, by agent and session.
    #[serde(default)]
    database_sessions: BTreeMap<String, KnownTranscript>,
    ledger: LedgerLengths,
    #[serde(default)]
    totals: SpendTotals,
    /// The prices that the totals were made with.
    #[serde(default)]
    prices: String,
}

impl CollectorState {
    fn know_transcript(&mut self, path: String, agent: &str, session: &str) {
        let known = self.transcripts.entry(path);
        known.or_insert_with(|| KnownTranscript {
            agent: agent.to_owned(),
            session: session.to_owned(),
            position: TranscriptPosition::default(),
        });
    }
}

/// A transcript of which no event is in the journal yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedTranscript {
    pub agent: String,
    pub session: String,
    pub path: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct KnownTranscript {
    agent: String,
    session: String,
    position: TranscriptPosition,
}

impl KnownTranscript {
    fn model_call(&self, new: NewTokens, now_us: i64) -> ModelCall {
        let time_us = new.time.and_then(|time| time_micros(&time));
        ModelCall {
            time_us: time_us.unwrap_or(now_us),
            id: new.id,
            agent: self.agent.clone(),
            session: self.session.clone(),
            model: new.model,
            tokens: new.tokens,
        }
    }
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
    home: Option<PathBuf>,
}

/// What a collector works with.
#[derive(Debug, Clone)]
pub struct CollectorSetup {
    /// The usage folder.
    pub folder: PathBuf,
    pub journal: PathBuf,
    pub prices: PriceTable,
    /// In which agents keep their databases.
    pub home: Option<PathBuf>,
}

impl UsageCollector {
    /// Fails if another process collects.
    pub fn open(setup: CollectorSetup) -> Result<Self> {
        let CollectorSetup {
            folder,
            journal,
            prices,
            home,
        } = setup;
        let state_file = StateFile::open(folder.join(STATE_FILE))?;
        let state: CollectorState = state_file.load().unwrap_or_default();
        let ledger = UsageLedger::new(&folder);
        let restored = ledger.restore(&state.ledger);
        restored.map_err(|source| ExportError::State {
            path: folder,
            source,
        })?;
        let mut collector = Self {
            reader: JournalReader::new(journal, state.cursor.clone()),
            tables: usage_tables(),
            ledger,
            state_file,
            state,
            prices,
            home,
        };
        collector.renew_totals()?;
        Ok(collector)
    }

    /// Adds the calls up again if prices have changed: a budget must not go by the old ones.
    fn renew_totals(&mut self) -> Result<()> {
        if self.state.prices == self.prices.digest() {
            return Ok(());
        }
        let old = std::mem::take(&mut self.state.totals);
        let mut new = SpendTotals::default();
        let prices = &self.prices;
        self.ledger
            .for_each(None, |call| add_call(&mut new, &call, prices));
        for (key, session) in old.sessions {
            let renewed = new.sessions.entry(key).or_default();
            renewed.tool_calls_without_tokens = session.tool_calls_without_tokens;
            renewed.last_us = renewed.last_us.max(session.last_us);
        }
        self.state.totals = new;
        self.state.prices = self.prices.digest().to_owned();
        self.state_file.save(&self.state)
    }

    /// Reads what is new, in the transcripts that the journal names and one more.
    pub fn collect(
        &mut self,
        now_us: i64,
        named: Option<NamedTranscript>,
    ) -> Result<CollectedUsage> {
        let mut calls = Vec::new();
        let mut active = BTreeSet::new();
        if let Some(named) = named {
            let path = named.path.clone();
            self.state
                .know_transcript(path, &named.agent, &named.session);
            active.insert(named.path);
        }
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
            if known.position.is_unfinished || now_us - known.position.used_us < RECENT_US {
                active.insert(path.clone());
            }
        }
        let mut found = self.read_transcripts(active, now_us, &mut calls)?;
        self.read_databases(now_us, &mut calls);
        self.forget_old_transcripts();
        if !has_lines && calls.is_empty() && found == 0 {
            self.save_totals(now_us);
            return Ok(CollectedUsage::default());
        }
        found += calls.len() as u64;
        self.save(&mut calls)?;
        self.save_totals(now_us);
        Ok(CollectedUsage { calls: found })
    }

    /// Writes the calls to the ledger, then how far everything was read.
    fn save(&mut self, calls: &mut Vec<ModelCall>) -> Result<()> {
        for call in &*calls {
            add_call(&mut self.state.totals, call, &self.prices);
        }
        let failed = |source| ExportError::State {
            path: self.ledger.folder().to_owned(),
            source,
        };
        self.ledger
            .append(calls, &mut self.state.ledger)
            .map_err(failed)?;
        calls.clear();
        self.state.cursor = self.reader.cursor().clone();
        self.state_file.save(&self.state)
    }

    /// Reads one part of each transcript after the other. Returns the number of calls that
    /// were written; the others are in `calls`.
    fn read_transcripts(
        &mut self,
        paths: BTreeSet<String>,
        now_us: i64,
        calls: &mut Vec<ModelCall>,
    ) -> Result<u64> {
        // What is written below may be all that this process does.
        for path in &paths {
            if let Some(known) = self.state.transcripts.get_mut(path) {
                known.position.is_unfinished = true;
            }
        }
        let (mut read, mut written) = (0, 0);
        let mut waiting = VecDeque::from_iter(paths);
        while read < MAX_ROUND_BYTES
            && let Some(path) = waiting.pop_front()
        {
            read += self.read_transcript(&path, now_us, calls);
            let known = self.state.transcripts.get(&path);
            if known.is_some_and(|known| known.position.is_unfinished) {
                waiting.push_back(path);
            }
            if calls.len() >= MAX_PENDING_CALLS {
                written += calls.len() as u64;
                self.save(calls)?;
            }
        }
        Ok(written)
    }

    /// Best effort: the next round writes it again.
    fn save_totals(&mut self, now_us: i64) {
        self.state.totals.updated_us = now_us;
        if let Ok(text) = self.state.totals.to_text() {
            let _ = replace(&self.ledger.folder().join(TOTALS_FILE), text.as_bytes());
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
        if event.event.event == "before_tool_execute" {
            let time_us = parse_micros(&event.time).unwrap_or_default();
            let key = session_key(&event.agent, session);
            self.state.totals.add_tool_call(&key, time_us);
        }
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
            let is_there = paths.iter().any(|path| Path::new(path).is_file());
            for path in paths {
                self.state
                    .know_transcript(path.clone(), &event.agent, session);
                active.insert(path);
            }
            // It has what payloads have, and more.
            if is_there {
                return;
            }
        }
        if table.database.is_some() {
            let time_us = parse_micros(&event.time).unwrap_or_default();
            let key = session_key(&event.agent, session);
            let known = self.state.database_sessions.entry(key);
            let known = known.or_insert_with(|| KnownTranscript {
                agent: event.agent.to_string(),
                session: session.to_owned(),
                position: TranscriptPosition::default(),
            });
            known.position.used_us = known.position.used_us.max(time_us);
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
            let key = session_key(&event.agent, session);
            let position = self.state.payloads.entry(key).or_default();
            position.used_us = time_us;
            calls.extend(position.new_tokens(found, None).map(|new| ModelCall {
                id: new.id,
                time_us,
                agent: event.agent.to_string(),
                session: session.to_owned(),
                model: new.model,
                tokens: new.tokens,
            }));
        }
    }

    /// Returns the number of bytes that were read.
    fn read_transcript(&mut self, path: &str, now_us: i64, calls: &mut Vec<ModelCall>) -> u64 {
        let Some(known) = self.state.transcripts.get_mut(path) else {
            return 0;
        };
        let table = self.tables.get(known.agent.as_str());
        let Some(table) = table.and_then(|table| table.transcript.as_ref()) else {
            known.position.is_unfinished = false;
            return 0;
        };
        let (agent, session) = (&known.agent, &known.session);
        let known_calls = || known_calls(&self.ledger, calls, agent, session);
        let position = &mut known.position;
        let (found, size) = read_transcript(Path::new(path), table, position, known_calls);
        if !found.is_empty() || position.used_us == 0 {
            position.used_us = now_us;
        }
        calls.extend(found.into_iter().map(|new| known.model_call(new, now_us)));
        size
    }

    /// Reads the sessions of databases that were used lately, or never read.
    fn read_databases(&mut self, now_us: i64, calls: &mut Vec<ModelCall>) {
        for known in self.state.database_sessions.values_mut() {
            let is_new = known.position.bytes == 0;
            if !is_new && now_us - known.position.used_us >= RECENT_US {
                continue;
            }
            let table = self.tables.get(known.agent.as_str());
            let Some(table) = table.and_then(|table| table.database.as_ref()) else {
                continue;
            };
            let Some(path) = database_path(table, self.home.as_deref()) else {
                continue;
            };
            let found = read_session(&path, table, &known.session, &mut known.position);
            calls.extend(found.into_iter().map(|new| known.model_call(new, now_us)));
        }
    }

    fn forget_old_transcripts(&mut self) {
        forget_oldest(&mut self.state.database_sessions, |known| {
            known.position.used_us
        });
        forget_oldest(&mut self.state.transcripts, |known| known.position.used_us);
        forget_oldest(&mut self.state.payloads, |position| position.used_us);
    }
}

/// What is known about the calls of a session: in the ledger, and not written yet.
fn known_calls(
    ledger: &UsageLedger,
    pending: &[ModelCall],
    agent: &str,
    session: &str,
) -> KnownCalls {
    let mut known = KnownCalls::new();
    let mut add = |call: &ModelCall| {
        if call.agent == agent && call.session == session {
            known.entry(call.id.clone()).or_default().add(call.tokens);
        }
    };
    ledger.for_each(None, |call| add(&call));
    pending.iter().for_each(add);
    known
}

fn add_call(totals: &mut SpendTotals, call: &ModelCall, prices: &PriceTable) {
    let key = session_key(&call.agent, &call.session);
    let time = rfc3339_micros(call.time_us);
    let date = time.get(..10).unwrap_or_default();
    let usd = prices.cost(&call.model, call.tokens);
    totals.add_call(&key, date, call.time_us, &call.model, usd);
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
