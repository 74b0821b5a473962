//! Recorded events as text: one line each, or one in full.

use anyhook_export::usage::UsageSums;
use anyhook_model::{HookRun, Record};
use anyhook_store::{EventDetail, EventFilter, EventSummary, parse_micros};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::render::{Terminal, colour, visible};

/// Last characters of an id that a line shows; enough to find the event again.
const ID_SUFFIX_CHARS: usize = 8;

/// With less room for the subject of an event, it goes to a line of its own.
const MIN_TEXT_CHARS: usize = 30;

/// Why nothing is shown.
pub(crate) fn no_events(filter: &EventFilter) -> &'static str {
    if *filter == EventFilter::default() {
        "No event is recorded yet; `anyhook doctor` checks that the agents call anyhook."
    } else {
        "No recorded event matches."
    }
}

/// Time, agent, decision, duration, event, subject and id of one event.
pub(crate) fn event_line(event: &EventSummary, terminal: &Terminal) -> String {
    let decision = event.decision.as_deref();
    let word = match (event.kind.as_str(), decision) {
        ("failure", _) => "failure",
        ("async_end", _) => "ended",
        ("allowed_once", _) => "allowed",
        (_, decision) => decision.unwrap_or("-"),
    };
    let id = event.id.len().saturating_sub(ID_SUFFIX_CHARS);
    let mut what: Vec<String> = event.tool.iter().cloned().collect();
    // The detail may be a whole script.
    let detail = event.detail.as_deref().unwrap_or_default();
    what.extend(detail.lines().next().map(str::to_owned));
    let head = format!(
        "{}  {}  {}  {}  {}",
        terminal.paint(colour::DIM, &local_time(&event.time)),
        terminal.paint(colour::CYAN, &format!("{:<13}", visible(&event.agent))),
        terminal.paint(decision_colour(word), &format!("{word:<7}")),
        format_args!("{:>6}", duration(event.duration_ms)),
        visible(&event.event),
    );
    let room = terminal.width().saturating_sub(
        19 + 2 + 13 + 2 + 7 + 2 + 6 + 2 + event.event.chars().count() + 2 + ID_SUFFIX_CHARS + 2,
    );
    let mut text = visible(&what.join(" "));
    if let Some(reason) = &event.reason {
        text = format!("{text} ({})", visible(reason));
    }
    let id = event.id.get(id..).unwrap_or(&event.id);
    if room < MIN_TEXT_CHARS {
        // A narrow terminal gets two lines.
        let text = truncate(&text, terminal.width().saturating_sub(ID_SUFFIX_CHARS + 4));
        let id = terminal.paint(colour::DIM, &visible(id));
        return format!("{head}\n  {id}  {text}");
    }
    let text = truncate(&text, room);
    format!(
        "{head}  {text}  {}",
        terminal.paint(colour::DIM, &visible(id))
    )
}

/// Summary and record as one line of JSON.
pub(crate) fn event_json(event: &EventDetail) -> anyhow::Result<String> {
    let mut value = json!(event);
    if let Value::Object(fields) = &mut value
        && fields.get("seq") == Some(&json!(0))
    {
        // Only a store numbers events.
        fields.shift_remove("seq");
    }
    Ok(serde_json::to_string(&value)?)
}

/// Prints one event in full.
/// `session` is what the models of the event's session used.
pub(crate) fn print_event(
    event: &EventDetail,
    session: Option<&UsageSums>,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    let summary = &event.summary;
    let record: Record = serde_json::from_value(event.record.clone())?;
    let row = |label: &str, text: &str| {
        for (n, line) in text.trim_end().lines().enumerate() {
            let label = if n == 0 { label } else { "" };
            let label = terminal.paint(colour::DIM, &format!("{label:<9}"));
            terminal.line(&format!("{label} {}", visible(line)));
        }
    };
    row("id", &summary.id);
    row(
        "time",
        &format!("{} ({})", local_time(&summary.time), summary.time),
    );
    row("agent", &summary.agent);
    let native = summary.native_event.as_deref().unwrap_or("-");
    row(
        "event",
        &format!("{} ({native}, {})", summary.event, summary.unified),
    );
    row("session", summary.session_id.as_deref().unwrap_or_default());
    row("models", &session.map(usage_text).unwrap_or_default());
    row("machine", summary.machine.as_deref().unwrap_or_default());
    row("folder", summary.cwd.as_deref().unwrap_or_default());
    row("tool", summary.tool.as_deref().unwrap_or_default());
    row("took", &duration(summary.duration_ms));
    row("decision", summary.decision.as_deref().unwrap_or("none"));
    row("reason", summary.reason.as_deref().unwrap_or_default());
    for run in &record.hooks {
        row("hook", &run_text(run));
    }
    if let Some(answer) = &record.answer {
        row("stdout", &answer.stdout);
        row("stderr", &answer.stderr);
        row("exit", &answer.exit.to_string());
    }
    for loss in &record.lost {
        row("lost", &format!("{}: {}", loss.field, loss.message));
    }
    for warning in &record.warnings {
        row("warning", warning);
    }
    row("payload", &serde_json::to_string_pretty(&record.event)?);
    Ok(())
}

/// `3 model calls in this session, 115 input and 12 output tokens, $0.02`
pub(crate) fn usage_text(sums: &UsageSums) -> String {
    let calls = if sums.calls == 1 { "call" } else { "calls" };
    format!(
        "{} model {calls} in this session, {} input and {} output tokens, {}",
        sums.calls,
        sums.input_tokens,
        sums.output_tokens,
        cost_text(sums)
    )
}

/// US dollars, and what is not in them.
pub(crate) fn cost_text(sums: &UsageSums) -> String {
    let Some(usd) = sums.cost_usd else {
        return "no price".to_owned();
    };
    // A small amount must not look like none.
    let usd = if usd > 0.0 && usd < 0.01 {
        "<$0.01".to_owned()
    } else {
        format!("${usd:.2}")
    };
    match sums.unpriced_calls {
        0 => usd,
        calls => format!("{usd} and {calls} calls without a price"),
    }
}

fn run_text(run: &HookRun) -> String {
    let outcome = run.outcome_text();
    let took = duration(run.duration_ms);
    let mut text = format!("{}: {outcome}, {took}, {}", run.hook, run.manifest);
    if let Some(message) = &run.message {
        text = format!("{text}\n  {message}");
    }
    text
}

pub(crate) fn decision_colour(word: &str) -> &'static str {
    match word {
        "deny" | "failure" => colour::RED,
        "ask" => colour::YELLOW,
        "allow" => colour::GREEN,
        _ => colour::DIM,
    }
}

/// Milliseconds in a readable unit.
pub(crate) fn duration(ms: f64) -> String {
    if ms < 9.95 {
        format!("{ms:.1}ms")
    } else if ms < 999.5 {
        format!("{ms:.0}ms")
    } else if ms < 59_950.0 {
        format!("{:.1}s", ms / 1000.0)
    } else {
        let minutes = (ms / 60_000.0).floor();
        format!(
            "{minutes:.0}m{:02.0}s",
            ((ms - minutes * 60_000.0) / 1000.0).floor()
        )
    }
}

/// An RFC 3339 time in the local time zone.
fn local_time(time: &str) -> String {
    let stamp = parse_micros(time).and_then(|time| Timestamp::from_microsecond(time).ok());
    match stamp {
        Some(stamp) => {
            let zoned = stamp.to_zoned(TimeZone::system());
            zoned.strftime("%Y-%m-%d %H:%M:%S").to_string()
        }
        None => time.to_owned(),
    }
}

fn truncate(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let kept: String = text.chars().take(room.saturating_sub(1)).collect();
    format!("{kept}…")
}
