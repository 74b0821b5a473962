//! `anyhook openhook`: validates, checks and traces streams of OpenHook envelopes.
//!
//! A stream is read once, line by line, and is not kept in memory.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Subcommand;
use openhook::check::{Problem, Requirement, SourceReport};
use openhook::{Envelope, Finding, StreamChecker, StreamReport, trace};
use serde::Serialize;
use serde_json::Value;

use crate::cli::CommandStatus;
use crate::render::{Terminal, colour, counted, visible};

/// Longer lines are refused, and so are longer documents over several lines.
const MAX_LINE_BYTES: u64 = 64 * 1024 * 1024;

/// Validate, check and trace streams of OpenHook envelopes
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook openhook validate events.jsonl\n  anyhook openhook check --discovery events.jsonl\n  anyhook openhook trace < events.jsonl"
)]
pub(crate) struct OpenhookArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Validate(ValidateArgs),
    Check(CheckArgs),
    Trace(TraceArgs),
}

/// Report every error in envelopes
///
/// Reads one JSON object, or one per line.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook openhook validate events.jsonl\n  anyhook openhook validate --json - < envelope.json"
)]
struct ValidateArgs {
    /// File with envelopes [default: stdin]
    file: Option<PathBuf>,
    /// Exit with 1 on warnings as well
    #[arg(long)]
    strict: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Check a recorded stream: each source's conformance level, with evidence
///
/// Level 1 is minimal, 2 observable, 3 discoverable. Also reports events out of
/// order, calls and sessions that never end, and duplicate ids.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook openhook check events.jsonl\n  anyhook openhook check --discovery --level 3 --json < events.jsonl"
)]
struct CheckArgs {
    /// File with one envelope per line [default: stdin]
    file: Option<PathBuf>,
    /// Assume that the sources honour .openhook.json, which a stream cannot show
    #[arg(long)]
    discovery: bool,
    /// Do not require transcripts of this source; repeat for more
    #[arg(long, value_name = "SOURCE")]
    without_transcripts: Vec<String>,
    /// Exit with 1 if a source is below this level
    #[arg(long, value_name = "1|2|3", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=3))]
    level: u8,
    /// Exit with 1 on any problem of a source as well, such as events out of order
    #[arg(long)]
    strict: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Convert file.write events to Agent Trace records, one per line
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook openhook trace events.jsonl > trace.jsonl\n  anyhook openhook trace --by-session < events.jsonl"
)]
struct TraceArgs {
    /// File with one envelope per line [default: stdin]
    file: Option<PathBuf>,
    /// Write one record per session; keeps its files in memory
    #[arg(long)]
    by_session: bool,
}

pub(crate) fn run(args: &OpenhookArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    match &args.command {
        Command::Validate(args) => validate(args, terminal),
        Command::Check(args) => check(args, terminal),
        Command::Trace(args) => print_traces(args, terminal),
    }
}

/// A finding and its line in the stream.
#[derive(Serialize)]
struct LineFinding {
    line: u64,
    #[serde(flatten)]
    finding: Finding,
}

#[derive(Default, Serialize)]
struct ValidationReport {
    ok: bool,
    envelopes: u64,
    errors: u64,
    warnings: u64,
    #[serde(rename = "diagnostics")]
    findings: Vec<LineFinding>,
}

fn validate(args: &ValidateArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let name = input_name(args.file.as_deref());
    let mut report = ValidationReport::default();
    let mut out = terminal.buffered();
    for_each_item(args.file.as_deref(), &mut |line, item| {
        if item.is_blank() {
            return;
        }
        report.envelopes += 1;
        for finding in item.findings() {
            if finding.is_error() {
                report.errors += 1;
            } else {
                report.warnings += 1;
            }
            if args.json {
                report.findings.push(LineFinding { line, finding });
            } else {
                let _ = writeln!(out, "{name}:{line}: {}", finding_text(&finding));
            }
        }
    })?;
    drop(out);
    if report.envelopes == 0 {
        bail!("{name} contains no envelope");
    }
    report.ok = report.errors == 0 && (report.warnings == 0 || !args.strict);
    if args.json {
        terminal.json(&report)?;
    } else {
        terminal.line(&format!(
            "{name}: {}: {}, {}",
            counted(report.envelopes, "envelope"),
            counted(report.errors, "error"),
            counted(report.warnings, "warning")
        ));
    }
    Ok(CommandStatus::success_if(report.ok))
}

fn check(args: &CheckArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let mut checker = StreamChecker::new().with_discovery(args.discovery);
    for source in &args.without_transcripts {
        checker = checker.without_transcripts(source);
    }
    for_each_item(args.file.as_deref(), &mut |_, item| {
        match item {
            StreamItem::Line(text) => checker.push_line(text),
            StreamItem::Value(value) => checker.push(&value),
        };
    })?;
    let report = checker.finish();
    if report.envelopes == 0 {
        bail!("{} contains no envelope", input_name(args.file.as_deref()));
    }
    let is_good = |source: &SourceReport| {
        source.level >= args.level && (!args.strict || source.problems.is_empty())
    };
    if args.json {
        terminal.json(&report)?;
    } else {
        print_report(&report, terminal);
    }
    Ok(CommandStatus::success_if(
        report.invalid.count == 0
            && !report.sources.is_empty()
            && report.sources.iter().all(is_good),
    ))
}

fn print_report(report: &StreamReport, terminal: &Terminal) {
    for source in &report.sources {
        let level = match source.level {
            0 => "does not conform",
            1 => "level 1, minimal",
            2 => "level 2, observable",
            _ => "level 3, discoverable",
        };
        terminal.line(&format!(
            "{}: {level} ({}, {})",
            terminal.bold(&visible(&source.source)),
            counted(source.envelopes, "envelope"),
            counted(source.sessions, "session")
        ));
        for requirement in &source.requirements {
            terminal.line(&format!("  {}", requirement_line(requirement, terminal)));
        }
        if !source.never.is_empty() {
            terminal.line(&format!("  never seen: {}", source.never.join(", ")));
        }
        for problem in &source.problems {
            print_problem(problem, terminal);
        }
        terminal.line("");
    }
    if report.invalid.count > 0 {
        print_problem(&report.invalid, terminal);
    }
}

fn requirement_line(requirement: &Requirement, terminal: &Terminal) -> String {
    let mark = if requirement.met {
        terminal.paint(colour::GREEN, "met    ")
    } else {
        terminal.paint(colour::RED, "not met")
    };
    let mut notes = Vec::new();
    if let Some(note) = &requirement.note {
        notes.push(note.clone());
    } else if requirement.met && requirement.count > 1 {
        notes.push(format!("{} times", requirement.count));
    }
    if let Some(example) = &requirement.example {
        notes.push(format!("first at line {}", example.line));
    }
    let line = format!("level {}  {mark}  {}", requirement.level, requirement.text);
    if notes.is_empty() {
        return line;
    }
    format!("{line} ({})", visible(&notes.join(", ")))
}

fn print_problem(problem: &Problem, terminal: &Terminal) {
    let code = terminal.paint(colour::YELLOW, problem.code);
    terminal.line(&format!("  {code}: {}", problem.count));
    for example in &problem.examples {
        let mut line = format!("    line {}", example.line);
        if !example.session_id.is_empty() {
            line = format!("{line}, session {}", visible(&example.session_id));
        }
        if !example.detail.is_empty() {
            line = format!("{line}: {}", visible(&example.detail));
        }
        terminal.line(&line);
    }
}

fn print_traces(args: &TraceArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let name = input_name(args.file.as_deref());
    let mut status = CommandStatus::Success;
    let mut kept: Vec<Envelope> = Vec::new();
    // Each unknown version is reported once.
    let mut versions = BTreeSet::new();
    let mut out = terminal.buffered();
    for_each_item(args.file.as_deref(), &mut |line, item| {
        if item.is_blank() {
            return;
        }
        let parsed = match item {
            StreamItem::Line(text) => Envelope::parse(text),
            StreamItem::Value(value) => Envelope::from_value(value),
        };
        if let Ok(envelope) = &parsed
            && versions.insert(envelope.openhook.clone())
            && let Some(finding) = openhook::check_version(&envelope.openhook)
        {
            terminal.note(&format!("{name}:{line}: {}", finding_text(&finding)));
        }
        match parsed {
            Ok(envelope) if args.by_session => {
                let event_type = envelope.event_type.as_str();
                if matches!(event_type, "file.write" | "session.end") {
                    kept.push(envelope);
                }
            }
            Ok(envelope) => {
                if let Some(record) = trace::trace(&envelope) {
                    let _ = out.write_all(record.to_json_line().as_bytes());
                }
            }
            Err(error) => {
                status = CommandStatus::Failure;
                for finding in error.findings() {
                    terminal.note(&format!("{name}:{line}: {}", finding_text(finding)));
                }
            }
        }
    })?;
    for record in trace::trace_sessions(&kept) {
        let _ = out.write_all(record.to_json_line().as_bytes());
    }
    Ok(status)
}

fn input_name(file: Option<&Path>) -> String {
    match file {
        Some(path) if path != Path::new("-") => path.display().to_string(),
        _ => "-".to_owned(),
    }
}

/// A finding without the line of a syntax error: within a line that is always 1.
fn finding_text(finding: &Finding) -> String {
    let text = finding.to_string();
    visible(&text.replacen("at line 1, column", "at column", 1))
}

/// One item of a stream.
enum StreamItem<'a> {
    Line(&'a str),
    /// A document over several lines.
    Value(Value),
}

impl StreamItem<'_> {
    fn is_blank(&self) -> bool {
        matches!(self, Self::Line(text) if text.trim().is_empty())
    }

    fn findings(&self) -> Vec<Finding> {
        match self {
            Self::Line(text) => openhook::validate_text(text),
            Self::Value(value) => openhook::validate(value),
        }
    }
}

/// Passes each line and its number to `take`; or, if the first line is not JSON but
/// the whole stream is, each document and the line that it begins at.
fn for_each_item(
    file: Option<&Path>,
    take: &mut dyn FnMut(u64, StreamItem<'_>),
) -> anyhow::Result<()> {
    let unreadable = || format!("could not read {}", input_name(file));
    let mut reader: Box<dyn BufRead> = match file {
        Some(path) if path != Path::new("-") => Box::new(BufReader::with_capacity(
            1 << 16,
            File::open(path).with_context(unreadable)?,
        )),
        _ => Box::new(BufReader::with_capacity(1 << 16, io::stdin().lock())),
    };
    let mut buffer = Vec::new();
    let mut number = 0;
    let mut is_first = true;
    while read_line(&mut *reader, &mut buffer).with_context(unreadable)? {
        number += 1;
        let text = String::from_utf8_lossy(&buffer);
        let is_blank = text.trim().is_empty();
        if is_first && !is_blank {
            is_first = false;
            if serde_json::from_str::<serde::de::IgnoredAny>(&text).is_err() {
                return for_each_document(&mut *reader, text.into_owned(), number, take)
                    .with_context(unreadable);
            }
        }
        take(number, StreamItem::Line(&text));
    }
    Ok(())
}

/// Reads a line including its end; false at the end of the stream.
fn read_line(reader: &mut dyn BufRead, buffer: &mut Vec<u8>) -> io::Result<bool> {
    buffer.clear();
    let count = Read::take(&mut *reader, MAX_LINE_BYTES).read_until(b'\n', buffer)?;
    if count as u64 == MAX_LINE_BYTES && buffer.last() != Some(&b'\n') {
        return Err(io::Error::other("a line is longer than 64 MiB"));
    }
    Ok(count > 0)
}

fn for_each_document(
    reader: &mut dyn BufRead,
    mut text: String,
    first: u64,
    take: &mut dyn FnMut(u64, StreamItem<'_>),
) -> io::Result<()> {
    let mut rest = Vec::new();
    Read::take(reader, MAX_LINE_BYTES).read_to_end(&mut rest)?;
    if rest.len() as u64 == MAX_LINE_BYTES {
        return Err(io::Error::other("its first line is not JSON"));
    }
    text.push_str(&String::from_utf8_lossy(&rest));
    let mut values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let documents = std::iter::from_fn(|| {
        let line = line_at(&text, values.byte_offset(), first);
        Some(values.next()?.map(|value| (line, value)))
    });
    match documents.collect::<Result<Vec<_>, _>>() {
        Ok(documents) if !documents.is_empty() => {
            for (line, value) in documents {
                take(line, StreamItem::Value(value));
            }
        }
        _ => {
            for (line, text) in (first..).zip(text.lines()) {
                take(line, StreamItem::Line(text));
            }
        }
    }
    Ok(())
}

/// The line of the first character after an offset that is not blank.
fn line_at(text: &str, offset: usize, first: u64) -> u64 {
    let rest = text.get(offset..).unwrap_or_default();
    let at = offset + (rest.len() - rest.trim_start().len());
    let before = text.as_bytes().iter().take(at);
    first + before.filter(|byte| **byte == b'\n').count() as u64
}
