//! Reads the journal, sends its events, and saves the position once the receiver has
//! accepted them.
//!
//! One batch is in memory at a time: while a receiver is away, the journal is the queue.

mod delivery;

use std::path::PathBuf;
use std::time::Duration;

use anyhook_store::journal::BatchLimit;
use serde::{Deserialize, Serialize};

use super::config::{OtlpConfig, Signal};
use super::logs::log_record;
use super::metrics::MetricSums;
use super::request::Origin;
use super::send::OtlpSender;
use super::span::FinishedSpan;
use super::turns::{PricedCall, TurnOptions, TurnTracker};
use crate::content::ContentLevel;
use crate::error::Result;
use crate::reader::{JournalCursor, JournalReader};
use crate::recorded_event::RecordedEvent;
use crate::state_file::StateFile;
use crate::usage::{LedgerLengths, PriceTable, UsageLedger};

const BATCH_LIMIT: BatchLimit = BatchLimit {
    lines: 1000,
    bytes: 1024 * 1024,
};
const STATE_VERSION: u32 = 1;
/// Calls of models up to this long before the first event are sent.
const MAX_CLOCK_ERROR_US: i64 = 24 * 3600 * 1_000_000;

/// What an exporter needs to know.
#[derive(Debug)]
pub struct OtlpSetup {
    pub config: OtlpConfig,
    /// The headers of the settings, with their values looked up.
    pub headers: Vec<(String, String)>,
    /// The journal's folder.
    pub journal: PathBuf,
    pub state: StateFile,
    /// Only events since this time, in microseconds since 1970.
    pub since_us: Option<i64>,
    pub host: Option<String>,
    /// Tokens and prices; absent: none are sent.
    pub usage: Option<(UsageLedger, PriceTable)>,
    /// How often an unavailable receiver is tried; `None`: until it is there.
    pub max_attempts: Option<u32>,
    /// Overrides the settings.
    pub turn_idle: Option<Duration>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ExportSummary {
    pub events: u64,
    pub spans: u64,
    pub log_records: u64,
    pub metrics: u64,
    /// Items that the receiver will never take.
    pub rejected: u64,
    /// Lines of the journal that are no record.
    pub unreadable: u64,
}

/// What a person should know while an export runs.
#[derive(Debug)]
pub enum ExportNotice<'a> {
    Unavailable {
        reason: &'a str,
        retry_in: Duration,
    },
    Rejected {
        signal: Signal,
        count: u64,
        message: &'a str,
    },
    Unsupported {
        signal: Signal,
        message: &'a str,
    },
    /// The journal was removed before all of it was sent.
    Gap,
}

/// How an exporter waits and speaks; the caller owns clock and terminal.
pub struct ExportControl<'a> {
    /// Sleeps; `false` ends the export.
    pub wait: &'a mut dyn FnMut(Duration) -> bool,
    pub notice: &'a mut dyn FnMut(ExportNotice<'_>),
    /// Nanoseconds since 1970.
    pub now: &'a dyn Fn() -> u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct SavedState {
    v: u32,
    cursor: JournalCursor,
    #[serde(default)]
    usage: LedgerLengths,
    turns: TurnTracker,
    metrics: MetricSums,
    /// When the events of this export began, in microseconds since 1970.
    #[serde(default)]
    began_us: Option<i64>,
    /// The calls of models for the next batch are in `turns` already: after a kill the batch
    /// must be sent with the same ones.
    #[serde(default)]
    is_usage_read: bool,
    /// What the receiver has taken.
    #[serde(default)]
    taken: Vec<Signal>,
}

#[derive(Debug)]
pub struct OtlpExporter {
    config: OtlpConfig,
    signals: Vec<Signal>,
    sender: OtlpSender,
    origin: Origin,
    reader: JournalReader,
    state: StateFile,
    turns: TurnTracker,
    metrics: MetricSums,
    usage: Option<(UsageLedger, PriceTable)>,
    /// How far the usage ledger was read.
    usage_position: LedgerLengths,
    is_usage_read: bool,
    began_us: Option<i64>,
    taken: Vec<Signal>,
    since_us: Option<i64>,
    max_attempts: Option<u32>,
    content: ContentLevel,
    idle_nanos: u64,
    summary: ExportSummary,
}

impl OtlpExporter {
    pub fn new(setup: OtlpSetup) -> Self {
        let saved = setup.state.load::<SavedState>();
        let saved = saved.filter(|saved| saved.v == STATE_VERSION);
        let saved = saved.unwrap_or_default();
        let config = setup.config;
        let idle = setup.turn_idle.unwrap_or_else(|| config.turn_idle());
        Self {
            signals: config.signals(),
            sender: OtlpSender::new(&config, setup.headers),
            origin: Origin::new(setup.host.as_deref(), &config.resource),
            reader: JournalReader::new(setup.journal, saved.cursor).with_limit(BATCH_LIMIT),
            state: setup.state,
            turns: saved.turns,
            metrics: saved.metrics,
            usage: setup.usage,
            usage_position: saved.usage,
            is_usage_read: saved.is_usage_read,
            began_us: saved.began_us,
            taken: saved.taken,
            since_us: setup.since_us,
            max_attempts: setup.max_attempts,
            content: config.content,
            idle_nanos: u64::try_from(idle.as_nanos()).unwrap_or(u64::MAX),
            summary: ExportSummary::default(),
            config,
        }
    }

    /// What was sent since the exporter began.
    pub fn summary(&self) -> ExportSummary {
        self.summary
    }

    /// Sends what the journal contains now.
    pub fn export_all(&mut self, control: &mut ExportControl<'_>) -> Result<()> {
        loop {
            let before = self.reader.cursor().clone();
            let batch = self.reader.next_batch()?;
            if self.reader.has_gap() {
                (control.notice)(ExportNotice::Gap);
            }
            let lines = batch.as_ref().map_or(&[][..], |batch| &batch.lines);
            let mut spans = Vec::new();
            let may_have_more =
                self.is_usage_read || self.read_usage(&before, lines, control, &mut spans)?;
            let Some(batch) = batch else {
                self.send_rest(self.idle_nanos, spans, control)?;
                if !may_have_more {
                    return Ok(());
                }
                continue;
            };
            self.summary.unreadable += batch.refused;
            self.export_lines(&batch.lines, spans, control)?;
        }
    }

    /// Ends the turns that are still open.
    pub fn close_turns(&mut self, control: &mut ExportControl<'_>) -> Result<()> {
        self.send_rest(0, Vec::new(), control)
    }

    /// Sends what no event of the journal is needed for.
    fn send_rest(
        &mut self,
        idle_nanos: u64,
        mut spans: Vec<FinishedSpan>,
        control: &mut ExportControl<'_>,
    ) -> Result<()> {
        let now = (control.now)();
        self.turns.close_idle(now, idle_nanos, &mut spans);
        let is_usage_new = std::mem::take(&mut self.is_usage_read);
        if spans.is_empty() && !is_usage_new {
            return Ok(());
        }
        self.send_spans(spans, control)?;
        if is_usage_new {
            self.send_metrics(control)?;
        }
        self.save(self.reader.cursor())
    }

    /// Takes new calls of models, which are sent with their turns. Returns whether there were
    /// any. They are saved with the position before the batch: after a kill it is sent with
    /// the same calls, and so as the same spans.
    fn read_usage(
        &mut self,
        before: &JournalCursor,
        lines: &[String],
        control: &mut ExportControl<'_>,
        spans: &mut Vec<FinishedSpan>,
    ) -> Result<bool> {
        let now = (control.now)();
        let since = self.since_us;
        self.began_us = self.began_us.or_else(|| first_time(lines, since, now));
        let mut has_calls = false;
        while self.read_calls(now, spans) > 0 {
            has_calls = true;
            // The saved state lacks what these spans were made of.
            self.send_spans(std::mem::take(spans), control)?;
            self.is_usage_read = true;
            self.save(before)?;
            self.turns.send_late_calls(spans);
            if spans.is_empty() {
                break;
            }
        }
        Ok(has_calls)
    }

    /// Reads as many calls as there is room for, and returns their number.
    fn read_calls(&mut self, now: u64, spans: &mut Vec<FinishedSpan>) -> usize {
        let (Some((ledger, prices)), Some(began)) = (&self.usage, self.began_us) else {
            return 0;
        };
        let since = self.since_us;
        let (turns, metrics) = (&mut self.turns, &mut self.metrics);
        let (mut room, mut count) = (turns.room_for_calls(), 0);
        if room == 0 {
            return 0;
        }
        ledger.for_each_new(&mut self.usage_position, |call| {
            if since.is_some_and(|since| call.time_us < since) {
                return true;
            }
            let priced = PricedCall {
                cost_usd: prices.cost(&call.model, call.tokens),
                provider: prices.provider(&call.model).map(str::to_owned),
                call,
            };
            metrics.observe_call(&priced, now);
            count += 1;
            // The turns of older ones are no longer in the journal.
            if priced.call.time_us >= began {
                turns.add_call(priced, spans);
                room -= 1;
            }
            room > 0
        });
        count
    }

    fn export_lines(
        &mut self,
        lines: &[String],
        mut spans: Vec<FinishedSpan>,
        control: &mut ExportControl<'_>,
    ) -> Result<()> {
        let options = TurnOptions {
            content: self.content,
            idle_nanos: self.idle_nanos,
            now: (control.now)(),
        };
        let mut log_records = Vec::new();
        let mut events = 0;
        for line in lines {
            let Some(event) = RecordedEvent::parse(line) else {
                self.summary.unreadable += 1;
                continue;
            };
            if !event.is_since(self.since_us) {
                continue;
            }
            events += 1;
            self.metrics.observe(&event, options.now);
            let at = self.turns.observe(&event, options, &mut spans);
            if self.signals.contains(&Signal::Logs) {
                log_records.push(log_record(&event, at, options.content));
            }
        }
        self.turns.bound(&mut spans);
        let is_usage_new = std::mem::take(&mut self.is_usage_read);
        self.send_spans(spans, control)?;
        if !log_records.is_empty() {
            let request = self.origin.logs(log_records);
            self.summary.log_records += self.deliver(request, control)?;
        }
        if events > 0 || is_usage_new {
            self.send_metrics(control)?;
        }
        self.summary.events += events;
        self.save(self.reader.cursor())
    }

    fn send_metrics(&mut self, control: &mut ExportControl<'_>) -> Result<()> {
        if self.signals.contains(&Signal::Metrics) {
            let metrics = self.metrics.collect(self.config.temporality);
            let request = self.origin.metrics(metrics);
            self.summary.metrics += self.deliver(request, control)?;
        }
        Ok(())
    }

    fn send_spans(
        &mut self,
        spans: Vec<FinishedSpan>,
        control: &mut ExportControl<'_>,
    ) -> Result<()> {
        if spans.is_empty() || !self.signals.contains(&Signal::Traces) {
            return Ok(());
        }
        let spans = spans.into_iter().map(FinishedSpan::into_proto).collect();
        let request = self.origin.traces(spans);
        self.summary.spans += self.deliver(request, control)?;
        Ok(())
    }

    fn save(&self, cursor: &JournalCursor) -> Result<()> {
        #[derive(Serialize)]
        struct State<'a> {
            v: u32,
            cursor: &'a JournalCursor,
            usage: &'a LedgerLengths,
            turns: &'a TurnTracker,
            metrics: &'a MetricSums,
            began_us: Option<i64>,
            is_usage_read: bool,
            taken: &'a [Signal],
        }
        self.state.save(&State {
            v: STATE_VERSION,
            cursor,
            usage: &self.usage_position,
            turns: &self.turns,
            metrics: &self.metrics,
            began_us: self.began_us,
            is_usage_read: self.is_usage_read,
            taken: &self.taken,
        })
    }
}

/// When the events of a batch began, with room for a clock that was wrong.
fn first_time(lines: &[String], since_us: Option<i64>, now: u64) -> Option<i64> {
    let events = lines.iter().filter_map(|line| RecordedEvent::parse(line));
    let events = events.filter(|event| event.is_since(since_us));
    let times = events.filter_map(|event| anyhook_store::parse_micros(&event.time));
    let now_us = i64::try_from(now / 1000).unwrap_or(i64::MAX);
    Some(times.min()?.min(now_us) - MAX_CLOCK_ERROR_US)
}
