//! Reads the journal, sends what it says, and saves the position after the receiver has
//! accepted it.
//!
//! One batch is in memory at a time: while a receiver is away, the journal is the queue.

use std::path::PathBuf;
use std::time::Duration;

use anyhook_store::journal::BatchLimit;
use serde::{Deserialize, Serialize};

use super::config::{OtlpConfig, Signal};
use super::logs::log_record;
use super::metrics::MetricSums;
use super::request::{Origin, SignalRequest};
use super::send::{OtlpSender, Reply};
use super::span::FinishedSpan;
use super::turns::{PricedCall, TurnOptions, TurnTracker};
use crate::error::{ExportError, Result};
use crate::reader::{JournalCursor, JournalReader};
use crate::recorded_event::RecordedEvent;
use crate::state_file::StateFile;
use crate::usage::{LedgerLengths, PriceTable, UsageLedger};

const BATCH_LIMIT: BatchLimit = BatchLimit {
    lines: 1000,
    bytes: 1024 * 1024,
};
/// Receivers refuse requests that are much larger.
const MAX_REQUEST_BYTES: usize = 2 * 1024 * 1024;
const MIN_RETRY_DELAY: Duration = Duration::from_millis(500);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);
/// A receiver that says "in an hour" is asked again after this time.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);
/// When this many items alone were refused and none was taken, the settings are wrong.
const MAX_REFUSED_ITEMS: u64 = 50;
const STATE_VERSION: u32 = 1;

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
    since_us: Option<i64>,
    max_attempts: Option<u32>,
    options: TurnOptions,
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
            since_us: setup.since_us,
            max_attempts: setup.max_attempts,
            options: TurnOptions {
                content: config.content,
                idle_nanos: u64::try_from(idle.as_nanos()).unwrap_or(u64::MAX),
            },
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
        self.read_usage();
        while let Some(batch) = self.reader.next_batch()? {
            self.summary.unreadable += batch.refused;
            self.export_lines(&batch.lines, control)?;
        }
        let idle_nanos = self.options.idle_nanos;
        self.close_idle_turns(idle_nanos, control)
    }

    /// Ends the turns that are still open.
    pub fn close_turns(&mut self, control: &mut ExportControl<'_>) -> Result<()> {
        self.close_idle_turns(0, control)
    }

    fn close_idle_turns(&mut self, idle_nanos: u64, control: &mut ExportControl<'_>) -> Result<()> {
        let mut spans = Vec::new();
        let now = (control.now)();
        self.turns.close_idle(now, idle_nanos, &mut spans);
        if !spans.is_empty() {
            self.send_spans(spans, control)?;
            self.save()?;
        }
        Ok(())
    }

    /// Takes new calls of models; they are sent with their turns.
    fn read_usage(&mut self) {
        let Some((ledger, prices)) = &self.usage else {
            return;
        };
        let (turns, metrics, since) = (&mut self.turns, &mut self.metrics, self.since_us);
        ledger.for_each_new(&mut self.usage_position, |call| {
            if since.is_some_and(|since| call.time_us < since) {
                return;
            }
            let priced = PricedCall {
                cost_usd: prices.cost(&call.model, call.tokens),
                provider: prices.provider(&call.model).map(str::to_owned),
                call,
            };
            metrics.observe_call(&priced);
            turns.add_call(priced);
        });
    }

    fn export_lines(&mut self, lines: &[String], control: &mut ExportControl<'_>) -> Result<()> {
        let mut spans = Vec::new();
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
            self.metrics.observe(&event);
            let at = self.turns.observe(&event, self.options, &mut spans);
            if self.signals.contains(&Signal::Logs) {
                log_records.push(log_record(&event, at, self.options.content));
            }
        }
        self.send_spans(spans, control)?;
        if !log_records.is_empty() {
            let request = self.origin.logs(log_records);
            self.summary.log_records += self.deliver(request, control)?;
        }
        if self.signals.contains(&Signal::Metrics) && events > 0 {
            let metrics = self.metrics.collect(self.config.temporality);
            let request = self.origin.metrics(metrics);
            self.summary.metrics += self.deliver(request, control)?;
        }
        self.summary.events += events;
        self.save()
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

    fn save(&self) -> Result<()> {
        #[derive(Serialize)]
        struct State<'a> {
            v: u32,
            cursor: &'a JournalCursor,
            usage: &'a LedgerLengths,
            turns: &'a TurnTracker,
            metrics: &'a MetricSums,
        }
        self.state.save(&State {
            v: STATE_VERSION,
            cursor: self.reader.cursor(),
            usage: &self.usage_position,
            turns: &self.turns,
            metrics: &self.metrics,
        })
    }

    /// Sends a request, in parts if it is too large or a part of it is refused: one item
    /// that a receiver does not take must not cost the others. Returns the number of items
    /// that were taken.
    fn deliver<R: SignalRequest>(
        &mut self,
        request: R,
        control: &mut ExportControl<'_>,
    ) -> Result<u64> {
        let (mut taken, mut refused) = (0, 0);
        let mut is_taken = false;
        let mut last_message = String::new();
        let mut parts = vec![request];
        while let Some(mut part) = parts.pop() {
            let count = part.item_count();
            let body = self.sender.encode(&part)?;
            let reply = if body.len() > MAX_REQUEST_BYTES && count > 1 {
                None
            } else {
                Some(self.send_until_answered::<R>(&body, control)?)
            };
            match reply {
                Some(Reply::Accepted { rejected, message }) => {
                    taken += (count as u64).saturating_sub(rejected);
                    is_taken = true;
                    if rejected > 0 {
                        self.note_rejected(R::SIGNAL, rejected, &message, control);
                    }
                }
                Some(Reply::BadContent { message }) if count <= 1 => {
                    refused += 1;
                    last_message = message;
                    if !is_taken && refused >= MAX_REFUSED_ITEMS {
                        break;
                    }
                }
                Some(Reply::Unsupported { message }) => {
                    return self.drop_signal(R::SIGNAL, message, control);
                }
                Some(Reply::Refused { message }) => return Err(self.refusal(message)),
                Some(Reply::BadContent { .. }) | None => {
                    let rest = part.split_off(count / 2);
                    parts.extend([rest, part]);
                }
                // Waited for above.
                Some(Reply::Unavailable { reason, .. }) => return Err(self.unavailable(reason)),
            }
        }
        if refused > 0 && !is_taken {
            return Err(self.refusal(last_message));
        }
        if refused > 0 {
            self.note_rejected(R::SIGNAL, refused, &last_message, control);
        }
        Ok(taken)
    }

    /// A receiver without this signal gets the others; without traces there is none.
    fn drop_signal(
        &mut self,
        signal: Signal,
        message: String,
        control: &mut ExportControl<'_>,
    ) -> Result<u64> {
        if signal == Signal::Traces || self.signals.len() == 1 {
            return Err(self.refusal(message));
        }
        (control.notice)(ExportNotice::Unsupported {
            signal,
            message: &message,
        });
        self.signals.retain(|other| *other != signal);
        Ok(0)
    }

    fn note_rejected(
        &mut self,
        signal: Signal,
        count: u64,
        message: &str,
        control: &mut ExportControl<'_>,
    ) {
        self.summary.rejected += count;
        (control.notice)(ExportNotice::Rejected {
            signal,
            count,
            message,
        });
    }

    fn send_until_answered<R: SignalRequest>(
        &self,
        body: &[u8],
        control: &mut ExportControl<'_>,
    ) -> Result<Reply> {
        let mut delay = MIN_RETRY_DELAY;
        let mut attempts = 0;
        loop {
            let reply = self.sender.send::<R>(body)?;
            let Reply::Unavailable {
                reason,
                retry_after,
            } = reply
            else {
                return Ok(reply);
            };
            attempts += 1;
            if self.max_attempts.is_some_and(|limit| attempts >= limit) {
                return Err(self.unavailable(reason));
            }
            let retry_in = match retry_after {
                Some(delay) => delay.min(MAX_RETRY_AFTER),
                None => anyhook_util::time::jittered(delay),
            };
            delay = (delay * 2).min(MAX_RETRY_DELAY);
            (control.notice)(ExportNotice::Unavailable {
                reason: &reason,
                retry_in,
            });
            if !(control.wait)(retry_in) {
                return Err(ExportError::Stopped);
            }
        }
    }

    fn refusal(&self, message: String) -> ExportError {
        ExportError::Refused {
            endpoint: self.config.shown_endpoint(),
            message,
        }
    }

    fn unavailable(&self, reason: String) -> ExportError {
        ExportError::Unavailable {
            endpoint: self.config.shown_endpoint(),
            reason,
        }
    }
}
