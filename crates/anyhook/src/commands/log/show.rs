//! Events for people: a line each, or one in full.

use anyhook_model::{HookRun, Record};
use anyhook_store::{EventDetail, EventSummary, micros};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::render::{Terminal, visible};

/// Enough of an id to find it again.
const SHORT: usize = 8;

/// One line: when, who, what, decided how, in what time.
pub fn line(event: &EventSummary, terminal: &Terminal) -> String {
    let decision = event.decision.as_deref();
    let word = match (event.kind.as_str(), decision) {
        ("failure", _) => "failure",
        ("async_end", _) => "ended",
        (_, decision) => decision.unwrap_or("-"),
    };
    let id = event.id.len().saturating_sub(SHORT);
    let mut what: Vec<String> = event.tool.iter().cloned().collect();
    // The detail may be a whole script.
    let detail = event.detail.as_deref().unwrap_or_default();
    what.extend(detail.lines().next().map(str::to_owned));
    let head = format!(
        "{}  {}  {}  {}  {}",
        terminal.paint("2", &local(&event.time)),
        terminal.paint("36", &format!("{:<13}", visible(&event.agent))),
        terminal.paint(colour(word), &format!("{word:<7}")),
        format_args!("{:>6}", duration(event.duration_ms)),
        visible(&event.event),
    );
    let room = terminal.width().saturating_sub(
        19 + 2 + 13 + 2 + 7 + 2 + 6 + 2 + event.event.chars().count() + 2 + SHORT + 2,
    );
    let mut text = visible(&what.join(" "));
    if let Some(reason) = &event.reason {
        text = format!("{text} ({})", visible(reason));
    }
    let text = cut(&text, room.max(16));
    let id = event.id.get(id..).unwrap_or(&event.id);
    format!("{head}  {text}  {}", terminal.paint("2", &visible(id)))
}

/// For programs: the summary, and the record behind it.
pub fn json(event: &EventDetail) -> anyhow::Result<String> {
    let mut value = json!(event);
    if let Value::Object(fields) = &mut value
        && fields.get("seq") == Some(&json!(0))
    {
        // The journal has no such order.
        fields.shift_remove("seq");
    }
    Ok(serde_json::to_string(&value)?)
}

/// One event in full.
pub fn full(event: &EventDetail, terminal: &Terminal) -> anyhow::Result<()> {
    let summary = &event.summary;
    let record: Record = serde_json::from_value(event.record.clone())?;
    let row = |label: &str, text: &str| {
        for (n, line) in text.trim_end().lines().enumerate() {
            let label = if n == 0 { label } else { "" };
            let label = terminal.paint("2", &format!("{label:<9}"));
            terminal.line(&format!("{label} {}", visible(line)));
        }
    };
    row("id", &summary.id);
    row(
        "time",
        &format!("{} ({})", local(&summary.time), summary.time),
    );
    row("agent", &summary.agent);
    let native = summary.native_event.as_deref().unwrap_or("-");
    row(
        "event",
        &format!("{} ({native}, {})", summary.event, summary.unified),
    );
    row("session", summary.session_id.as_deref().unwrap_or_default());
    row("machine", summary.machine.as_deref().unwrap_or_default());
    row("folder", summary.cwd.as_deref().unwrap_or_default());
    row("tool", summary.tool.as_deref().unwrap_or_default());
    row("took", &duration(summary.duration_ms));
    row("decision", summary.decision.as_deref().unwrap_or("none"));
    row("reason", summary.reason.as_deref().unwrap_or_default());
    for run in &record.hooks {
        row("hook", &ran(run));
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

fn ran(run: &HookRun) -> String {
    let outcome = json!(run.outcome);
    let outcome = outcome.as_str().unwrap_or_default();
    let took = duration(run.duration_ms);
    let mut text = format!("{}: {outcome}, {took}, {}", run.hook, run.manifest);
    if let Some(message) = &run.message {
        text = format!("{text}\n  {message}");
    }
    text
}

pub fn colour(word: &str) -> &'static str {
    match word {
        "deny" | "failure" => "31",
        "ask" => "33",
        "allow" => "32",
        _ => "2",
    }
}

/// Milliseconds as a person says them.
pub fn duration(ms: f64) -> String {
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

/// The time where the reader is.
fn local(time: &str) -> String {
    let stamp = micros(time).and_then(|time| Timestamp::from_microsecond(time).ok());
    match stamp {
        Some(stamp) => {
            let zoned = stamp.to_zoned(TimeZone::system());
            zoned.strftime("%Y-%m-%d %H:%M:%S").to_string()
        }
        None => time.to_owned(),
    }
}

fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let kept: String = text.chars().take(room.saturating_sub(1)).collect();
    format!("{kept}…")
}
