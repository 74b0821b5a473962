//! Finds new tokens: reads the journal for sessions and payloads, then what is new in the
//! transcripts that it names, and appends to the ledger.

mod state;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use anyhook_model::event::NATIVE;
use anyhook_model::spend::{SpendTotals, TOTALS_FILE, session_key};
use anyhook_store::{parse_micros, rfc3339_micros};
use anyhook_util::fs::replace;
use serde_json::Value;

use super::database::{database_path, read_session};
use super::ledger::{ModelCall, UsageLedger};
use super::prices::PriceTable;
use super::table::{UsageTable, usage_tables};
use super::transcript::{KnownCalls, TranscriptPosition, read_transcript};
use crate::error::{ExportError, Result};
use crate::reader::{JournalCursor, JournalReader};
use crate::recorded_event::RecordedEvent;
use crate::state_file::StateFile;
use state::{CollectorState, KnownTranscript};

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

/// A transcript of which no event is in the journal yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedTranscript {
    pub agent: String,
    pub session: String,
    pub path: String,
}

/// Only one process collects at a time.
#[derive(Debug)]
pub struct UsageCollector {
    ledger: UsageLedger,
    state_file: StateFile,
    state: CollectorState,
    reader: JournalReader,
    /// By [`session_key`]: what the ledger has, while the journal is read again because the
    /// state was lost.
    recovered: BTreeMap<String, KnownCalls>,
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
        let ledger = UsageLedger::new(&folder);
        let saved = state_file.load::<CollectorState>().filter(|state| {
            // Events that were counted would be read again.
            let reader = JournalReader::new(&journal, state.cursor.clone());
            !reader.is_cut().unwrap_or_default()
        });
        let state = match saved {
            Some(state) => ledger.restore(&state.ledger).map(|()| state),
            None => ledger.whole_lines().map(CollectorState::recovered),
        };
        let state = state.map_err(|source| ExportError::State {
            path: folder,
            source,
        })?;
        let mut collector = Self {
            recovered: BTreeMap::new(),
            reader: JournalReader::new(journal, state.cursor.clone()),
            tables: usage_tables(),
            ledger,
            state_file,
            state,
            prices,
            home,
        };
        collector.renew_totals()?;
        if collector.state.is_recovered && collector.state.cursor == JournalCursor::default() {
            let sessions = &mut collector.recovered;
            collector.ledger.for_each(None, |call| {
                let session = sessions.entry(session_key(&call.agent, &call.session));
                let known = session.or_default().entry(call.id).or_default();
                known.add(call.tokens);
            });
        }
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
        let mut is_session_new = false;
        if let Some(named) = named {
            let path = named.path.clone();
            self.state
                .know_transcript(path, &named.agent, &named.session);
            active.insert(named.path);
            let key = session_key(&named.agent, &named.session);
            restore_spend(&mut self.state.totals, &key, &self.ledger, &self.prices);
            is_session_new = !self.state.totals.sessions.contains_key(&key);
            self.state.totals.know_session(&key, now_us);
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
        self.recovered = BTreeMap::new();
        // Agents write a transcript after they have called the hooks.
        for (path, known) in &self.state.transcripts {
            if known.position.is_unfinished || now_us - known.position.used_us < RECENT_US {
                active.insert(path.clone());
            }
        }
        let mut found = self.read_transcripts(active, now_us, &mut calls)?;
        self.read_databases(now_us, &mut calls);
        self.forget_old_transcripts();
        if !has_lines && !is_session_new && calls.is_empty() && found == 0 {
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
            restore_spend(&mut self.state.totals, &key, &self.ledger, &self.prices);
            self.state.totals.add_tool_call(&key, time_us);
        }
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
                && let Some(native) = native_fields(event)
            {
                let more = transcript.more.iter().filter_map(|at| native.pointer(at));
                paths.extend(more.filter_map(Value::as_str).map(str::to_owned));
            }
            for path in paths {
                self.state
                    .know_transcript(path.clone(), &event.agent, session);
                active.insert(path);
            }
        }
        if table.database.is_some() {
            let time_us = parse_micros(&event.time).unwrap_or_default();
            let key = session_key(&event.agent, session);
            let is_repeated = self.state.is_recovered;
            let known = self.state.database_sessions.entry(key);
            let known = known.or_insert_with(|| KnownTranscript {
                agent: event.agent.to_string(),
                session: session.to_owned(),
                position: TranscriptPosition::new(is_repeated),
            });
            known.position.used_us = known.position.used_us.max(time_us);
            return;
        }
        self.observe_payload(event, active, calls);
    }

    /// Counts the tokens in the event itself, unless a transcript has them.
    fn observe_payload(
        &mut self,
        event: &RecordedEvent<'_>,
        active: &mut BTreeSet<String>,
        calls: &mut Vec<ModelCall>,
    ) {
        let Some(table) = self.tables.get(event.agent.as_ref()) else {
            return;
        };
        let session = event.event.session_id.as_deref().unwrap_or_default();
        let native_event = event.event.native_event.as_ref();
        let rows = table.payload.iter().filter(|row| row.event == native_event);
        for row in rows {
            // A transcript that this event or another has named has what payloads have.
            let there = self
                .state
                .transcripts_of(&event.agent, session)
                .map(|(path, _)| path.clone())
                .find(|path| Path::new(path).is_file());
            if let Some(path) = there {
                active.insert(path);
                return;
            }
            let Some(native) = native_fields(event) else {
                return;
            };
            let mut found = row.fields.find(&native);
            found.id.get_or_insert_with(|| event.id.to_string());
            let model = event.event.data.model.as_deref();
            found.model = found.model.or(model.map(str::to_owned));
            let time_us = parse_micros(&event.time).unwrap_or_default();
            // Should its transcript appear, or appear again, it has this call as well.
            let mut was_transcript_read = false;
            for (_, position) in self.state.transcripts_of(&event.agent, session) {
                was_transcript_read |= position.bytes > 0;
                position.is_repeated = true;
            }
            let key = session_key(&event.agent, session);
            let in_ledger = was_transcript_read
                .then(|| known_calls(&self.ledger, calls, &event.agent, session));
            let known = in_ledger.as_ref().or_else(|| self.recovered.get(&key));
            let position = self.state.payloads.entry(key).or_default();
            position.used_us = time_us;
            calls.extend(position.new_tokens(found, known).map(|new| ModelCall {
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
            let (agent, session) = (&known.agent, &known.session);
            let known_calls = || known_calls(&self.ledger, calls, agent, session);
            let position = &mut known.position;
            let found = read_session(&path, table, session, position, known_calls);
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

/// What the agent sent and has no canonical name.
fn native_fields(event: &RecordedEvent<'_>) -> Option<Value> {
    let metadata: Value = serde_json::from_str(event.event.metadata?.get()).ok()?;
    metadata.get(NATIVE).cloned()
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

/// Adds a session up again that was forgotten because of many newer ones.
fn restore_spend(totals: &mut SpendTotals, key: &str, ledger: &UsageLedger, prices: &PriceTable) {
    if !totals.may_have_forgotten(key) {
        return;
    }
    let mut session = SpendTotals::default();
    ledger.for_each(None, |call| {
        if session_key(&call.agent, &call.session) == key {
            add_call(&mut session, &call, prices);
        }
    });
    totals.sessions.append(&mut session.sessions);
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
