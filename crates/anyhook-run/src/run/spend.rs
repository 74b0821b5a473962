//! What was spent so far, for the guard `budget`.
//!
//! The sums are in a small file. If it is older than ten seconds, a process of its own
//! brings it up to date, because transcripts are never read here: `anyhook serve` does that
//! all the time, and without a daemon the guard starts it and waits a little.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhook_guard::BudgetLimits;
use anyhook_model::HookEvent;
use anyhook_model::event::field;
use anyhook_model::spend::{KnownSpend, TOTALS_FILE, USAGE_FOLDER, session_key};
use anyhook_util::fs::read_text;
use anyhook_util::time::rfc3339;
use jiff::Timestamp;

use crate::config::discover::Dirs;
use crate::run::exec;

const MAX_AGE_US: i64 = 10_000_000;
/// How long a call that a budget guards waits for newer sums.
const MAX_GUARD_WAIT: Duration = Duration::from_secs(2);
/// How long the end of a session waits: agents give it little time.
const MAX_END_WAIT: Duration = Duration::from_millis(500);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const MAX_TOTALS_BYTES: u64 = 4 * 1024 * 1024;
/// The command that brings the sums up to date.
pub const COLLECT_COMMAND: &str = "collect-usage";

/// The spend of an event's session and of this day.
pub(crate) struct SpendReading {
    pub(crate) known: Option<KnownSpend>,
    /// Why there may be more.
    pub(crate) doubt: Option<String>,
}

pub(crate) fn read_spend(limits: BudgetLimits, event: &HookEvent, dirs: &Dirs) -> SpendReading {
    let known = current_totals(event, dirs, MAX_GUARD_WAIT);
    let doubt = match &known {
        Err(why) => Some(why.clone()),
        Ok(known) => doubt(limits, event, known),
    };
    SpendReading {
        known: known.ok(),
        doubt,
    }
}

fn doubt(limits: BudgetLimits, event: &HookEvent, known: &KnownSpend) -> Option<String> {
    let agent = &event.source;
    if !tells_tokens(agent) {
        return Some(format!("`{agent}` does not report how many tokens it uses"));
    }
    if limits.session_usd.is_some() && event.session_id.is_none() {
        return Some("the event names no session".to_owned());
    }
    limits.doubt(known)
}

/// What the session of an event has cost; `None` if that is not known.
pub(crate) fn session_cost_usd(event: &HookEvent, dirs: &Dirs) -> Option<f64> {
    event.session_id.as_ref()?;
    if !tells_tokens(&event.source) {
        return None;
    }
    let session = current_totals(event, dirs, MAX_END_WAIT).ok()?.session;
    let is_known = session.usd > 0.0 && session.unpriced_model.is_none();
    is_known.then_some(session.usd)
}

fn tells_tokens(agent: &str) -> bool {
    let mut tables = anyhook_agents::USAGE_TABLES.iter();
    tables.any(|(slug, _)| *slug == agent)
}

fn current_totals(
    event: &HookEvent,
    dirs: &Dirs,
    max_wait: Duration,
) -> Result<KnownSpend, String> {
    if !dirs.is_state_trusted() {
        let state = dirs.state.display();
        return Err(format!("what is in `{state}` does not count"));
    }
    let path = dirs.state.join(USAGE_FOLDER).join(TOTALS_FILE);
    let key = session_key(
        &event.source,
        event.session_id.as_deref().unwrap_or_default(),
    );
    // Of a session that the collector has not seen, the event may name the transcript.
    let is_enough =
        |known: &KnownSpend| known.is_session_known || named_transcript(event).is_none();
    if let Some(known) = fresh_totals(&path, &key).filter(is_enough) {
        return Ok(known);
    }
    start_collector(event)
        .map_err(|error| format!("could not start `anyhook {COLLECT_COMMAND}`: {error}"))?;
    let started = Instant::now();
    while started.elapsed() < max_wait {
        std::thread::sleep(POLL_INTERVAL);
        if let Some(known) = fresh_totals(&path, &key).filter(is_enough) {
            return Ok(known);
        }
    }
    Err("could not find out in time what was spent; `anyhook stats` shows why".to_owned())
}

/// `None` if the file is missing, old or unreadable.
fn fresh_totals(path: &Path, key: &str) -> Option<KnownSpend> {
    let text = read_text(path, MAX_TOTALS_BYTES).ok()?;
    let now = Timestamp::now();
    let date = rfc3339(now);
    let known = KnownSpend::find(&text, date.get(..10)?, key)?;
    let age_us = now.as_microsecond().checked_sub(known.updated_us)?;
    (0..MAX_AGE_US).contains(&age_us).then_some(known)
}

/// The session of an event and its transcript.
fn named_transcript(event: &HookEvent) -> Option<(&str, &str)> {
    let transcript = event.data.get(field::TRANSCRIPT_PATH)?.as_str()?;
    let session = event.session_id.as_deref()?;
    (tells_tokens(&event.source) && !transcript.is_empty()).then_some((session, transcript))
}

/// The event is not in the journal yet, so its transcript is named.
fn start_collector(event: &HookEvent) -> io::Result<()> {
    let mut argv: Vec<OsString> = vec![std::env::current_exe()?.into(), COLLECT_COMMAND.into()];
    if let Some((session, transcript)) = named_transcript(event) {
        let names = ["--agent", "--session", "--transcript"];
        let values = [event.source.as_str(), session, transcript];
        for (name, value) in names.into_iter().zip(values) {
            // One word, so that a value with dashes is no option.
            argv.push(format!("{name}={value}").into());
        }
    }
    exec::spawn_detached(&argv, &[])
}
