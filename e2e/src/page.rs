//! The results page: one row per check, one column per client, with versions and the date of the run.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use openhook::Timestamp;

use crate::error::{AtPath, Result};
use crate::report::{ClientReport, Verdict, check_names};
use crate::situation::Situation;

/// Writes the page to a file.
pub fn write_page(path: &Path, reports: &[ClientReport], situations: &[Situation]) -> Result<()> {
    fs::write(path, render_page(reports, situations, &today())).at("write", path)
}

fn today() -> String {
    let millis = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_millis()).ok());
    let time = millis.and_then(Timestamp::from_unix_millis);
    let text = time.map_or_else(String::new, |time| time.to_string());
    text.split('T').next().unwrap_or_default().to_owned()
}

/// What each check means, for readers who have not seen the code.
const CHECK_DESCRIPTIONS: [(&str, &str); 32] = [
    (
        "own hooks: session",
        "The client runs offline against the fake model.",
    ),
    ("own hooks: file tools", "Its tools write and change files."),
    ("own hooks: sub-agent", "Its sub-agent runs a command."),
    (
        "own hooks: before tool",
        "A hook of its own, without anyhook, is called before a tool.",
    ),
    ("own hooks: deny", "That hook can deny a command."),
    ("own hooks: deny reason", "The model reads the reason."),
    (
        "events",
        "`anyhook install`, one session: exactly the expected events are in the journal, each under its canonical name.",
    ),
    (
        "tools",
        "Commands, writes, reads and edits are reported before and after, as the canonical tool with its command or path.",
    ),
    (
        "session id",
        "All events have the session id that the client itself prints, and the right folder.",
    ),
    ("deny", "A hook denies a shell command: it does not run."),
    (
        "deny reason",
        "The model's next request contains the reason.",
    ),
    (
        "rewrite",
        "A hook changes a command: the changed one runs. Where it cannot, the loss is in the journal and the original does not run.",
    ),
    (
        "context: session start",
        "Context from a hook at the start of the session reaches the model.",
    ),
    (
        "context: prompt",
        "Context from a hook on the prompt reaches the model.",
    ),
    (
        "context: before tool",
        "Context from a hook before a tool reaches the model.",
    ),
    (
        "context: after tool",
        "Context from a hook after a tool reaches the model.",
    ),
    (
        "prompt block",
        "A hook blocks the prompt: it never reaches the model.",
    ),
    (
        "prompt block reason",
        "There, the client prints the reason, so the user of a headless run learns why nothing happened.",
    ),
    (
        "stop retry",
        "A hook at the end sends the agent back to work, with a reason.",
    ),
    (
        "Claude script",
        "A guard script written for Claude Code denies a command of this client.",
    ),
    (
        "Claude script's reason",
        "The model reads that script's reason.",
    ),
    (
        "hook hangs",
        "A hook that hangs is killed; the client continues.",
    ),
    (
        "hook crashes",
        "A hook is killed by a signal; the client continues.",
    ),
    (
        "hook prints garbage",
        "A hook's answer is not JSON; the client continues.",
    ),
    (
        "OpenHook stream",
        "The consumer named in `.openhook.json` gets a stream of conformance level 2.",
    ),
    (
        "tokens",
        "`anyhook stats` counts the tokens of a session as the client's own report does, also those from a cache.",
    ),
    (
        "native deny",
        "`anyhook convert` made the client's own config: the guard denies without anyhook on the PATH. Where it cannot, `convert` warned about it.",
    ),
    ("native deny reason", "The model reads that guard's reason."),
    (
        "converted Claude guard",
        "The same for a guard of Claude Code that uses `$CLAUDE_PROJECT_DIR` and reads the command with `jq`. Where it cannot deny, `convert` called that critical.",
    ),
    (
        "converted Claude guard's reason",
        "The model reads that guard's reason.",
    ),
    (
        "uninstall: files",
        "`install` and `uninstall` leave every file as it was, byte for byte.",
    ),
    (
        "uninstall: session",
        "After that, a session runs without a trace of anyhook.",
    ),
];

/// The page as text.
pub fn render_page(reports: &[ClientReport], situations: &[Situation], date: &str) -> String {
    let mut notes: Vec<String> = Vec::new();
    let mut rows = String::new();
    for name in check_names(reports) {
        let _ = write!(rows, "| {name} |");
        for report in reports {
            let cell = match report.check(name).map(|check| &check.verdict) {
                None => "–".to_owned(),
                Some(Verdict::Passed) => "✓".to_owned(),
                Some(Verdict::Cannot(why)) => note_reference(&mut notes, "cannot", why),
                Some(Verdict::Failed(why)) => note_reference(&mut notes, "**failed**", why),
            };
            let _ = write!(rows, " {cell} |");
        }
        rows.push('\n');
    }
    let mut page = format!(
        "<!-- Generated by `cargo xtask e2e --proof docs/proof.md`. Do not edit. -->\n\n\
         # Proof in the real agents\n\n\
         Run on {date}: shipped clients from npm and PyPI, headless and offline, against a fake model on loopback. \
         `e2e/README.md` describes how.\n\n\
         ✓ passed; *cannot*: the run confirmed that the client does not support it; –: not run.\n\n|  |"
    );
    let across = |page: &mut String, cell: &dyn Fn(&ClientReport) -> String| {
        for report in reports {
            let _ = write!(page, " {} |", cell(report));
        }
        page.push('\n');
    };
    across(&mut page, &|report| report.client.clone());
    page.push_str("|---|");
    across(&mut page, &|_| "---".to_owned());
    page.push_str("| version |");
    across(&mut page, &|report| report.version.clone());
    page.push_str("| seconds |");
    across(&mut page, &|report| format!("{:.0}", report.seconds));
    page.push_str(&rows);
    for report in reports {
        if let Some(note) = &report.note {
            let _ = write!(page, "\n{}: {note}.\n", report.client);
        }
        if let Some(error) = &report.error {
            let _ = write!(
                page,
                "\n`{}` could not be completed: {error}\n",
                report.client
            );
        }
    }
    if !notes.is_empty() {
        page.push_str("\n## Why not\n\n");
        for (index, why) in notes.iter().enumerate() {
            let _ = writeln!(page, "{}. {why}", index + 1);
        }
    }
    page.push_str("\n## What the checks mean\n\n");
    let described = situations.iter().flat_map(|situation| &situation.check);
    let described = described.map(|check| (check.name.as_str(), check.means.as_str()));
    for (name, meaning) in CHECK_DESCRIPTIONS.into_iter().chain(described) {
        let _ = writeln!(page, "- **{name}**: {meaning}");
    }
    page
}

/// A cell that refers to a numbered note; equal notes share a number.
fn note_reference(notes: &mut Vec<String>, word: &str, why: &str) -> String {
    let known = notes.iter().position(|note| note == why);
    let index = known.unwrap_or_else(|| {
        notes.push(why.to_owned());
        notes.len() - 1
    });
    format!("{word} ({})", index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::CHECK_NAMES;
    use crate::report::Check;

    #[test]
    fn every_check_is_explained() {
        for name in CHECK_NAMES {
            assert!(
                CHECK_DESCRIPTIONS.iter().any(|(known, _)| *known == name),
                "{name}"
            );
        }
    }

    #[test]
    fn a_failure_is_on_the_page() {
        let report = ClientReport {
            client: "a".to_owned(),
            version: "1".to_owned(),
            seconds: 1.0,
            checks: vec![
                Check::new("deny", Verdict::failed("it ran")),
                Check::new("events", Verdict::Passed),
            ],
            note: Some("no adapter".to_owned()),
            error: None,
        };
        let page = render_page(&[report], &[], "2026-01-02");
        for part in [
            "**failed** (1)",
            "1. it ran",
            "| events | ✓ |",
            "2026-01-02",
            "a: no adapter.",
        ] {
            assert!(page.contains(part), "{page}");
        }
    }
}
