//! `anyhook openhook`: streams of OpenHook envelopes, checked, judged, traced.
//!
//! A stream is read once, line by line, and nothing of it is kept.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Subcommand;
use openhook::check::{Problem, Requirement, SourceReport};
use openhook::{Checker, Envelope, Finding, Report, trace};
use serde::Serialize;
use serde_json::Value;

use crate::cli::Verdict;
use crate::render::{Terminal, visible};

/// A longer line is not read; and a document over several lines is not longer.
const LINE_LIMIT: u64 = 64 * 1024 * 1024;

/// How much is collected before it is written.
const CHUNK: usize = 32 * 1024;

/// Check, judge and trace streams of OpenHook envelopes
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook openhook validate events.jsonl\n  anyhook openhook check --discovery events.jsonl\n  anyhook openhook trace < events.jsonl"
)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Validate(ValidateArgs),
    Check(CheckArgs),
    Trace(TraceArgs),
}

/// Say everything that is wrong with envelopes
///
/// One object, or one on each line.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook openhook validate events.jsonl\n  anyhook openhook validate --json - < envelope.json"
)]
struct ValidateArgs {
    /// The envelopes; stdin when absent or `-`
    file: Option<PathBuf>,
    /// Exit with 1 on warnings too
    #[arg(long)]
    strict: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Judge a recorded stream: the conformance level of each source, with evidence
///
/// Level 1 is minimal, 2 observable, 3 discoverable. Events out of order, calls
/// and sessions that never end, and ids that come twice are told as well.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook openhook check events.jsonl\n  anyhook openhook check --discovery --level 3 --json < events.jsonl"
)]
struct CheckArgs {
    /// The envelopes, one on each line; stdin when absent or `-`
    file: Option<PathBuf>,
    /// The sources honour .openhook.json, which a stream cannot show
    #[arg(long)]
    discovery: bool,
    /// This source keeps no transcripts, so none is asked for
    #[arg(long, value_name = "SOURCE")]
    without_transcripts: Vec<String>,
    /// Exit with 1 when a source is below this level
    #[arg(long, value_name = "1|2|3", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=3))]
    level: u8,
    /// Exit with 1 on anything that is out of order too
    #[arg(long)]
    strict: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Turn file.write events into Agent Trace records, one on each line
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook openhook trace events.jsonl > trace.jsonl\n  anyhook openhook trace --by-session < events.jsonl"
)]
struct TraceArgs {
    /// The envelopes, one on each line; stdin when absent or `-`
    file: Option<PathBuf>,
    /// One record for each session; its files are kept in memory
    #[arg(long)]
    by_session: bool,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Verdict> {
    match &args.command {
        Command::Validate(args) => validate(args, terminal),
        Command::Check(args) => check(args, terminal),
        Command::Trace(args) => traced(args, terminal),
    }
}

/// A finding and its line in the stream.
#[derive(Serialize)]
struct Located {
    line: u64,
    #[serde(flatten)]
    finding: Finding,
}

#[derive(Serialize)]
struct Checked {
    ok: bool,
    envelopes: u64,
    errors: u64,
    warnings: u64,
    findings: Vec<Located>,
}

fn validate(args: &ValidateArgs, terminal: &Terminal) -> anyhow::Result<Verdict> {
    let name = name(args.file.as_deref());
    let mut report = Checked {
        ok: true,
        envelopes: 0,
        errors: 0,
        warnings: 0,
        findings: Vec::new(),
    };
    let mut out = Chunks::new(terminal);
    each(args.file.as_deref(), &mut |line, item| {
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
                report.findings.push(Located { line, finding });
            } else {
                out.line(&format!("{name}:{line}: {}", shown(&finding)));
            }
        }
    })?;
    drop(out);
    if report.envelopes == 0 {
        bail!("{name}: there is no envelope in it");
    }
    report.ok = report.errors == 0 && (report.warnings == 0 || !args.strict);
    let verdict = if report.ok {
        Verdict::Good
    } else {
        Verdict::Findings
    };
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
    Ok(verdict)
}

fn check(args: &CheckArgs, terminal: &Terminal) -> anyhow::Result<Verdict> {
    let mut checker = Checker::new().with_discovery(args.discovery);
    for source in &args.without_transcripts {
        checker = checker.without_transcripts(source);
    }
    each(args.file.as_deref(), &mut |_, item| {
        match item {
            Item::Line(text) => checker.push_line(text),
            Item::Value(value) => checker.push(&value),
        };
    })?;
    let report = checker.finish();
    if report.envelopes == 0 {
        bail!("{}: there is no envelope in it", name(args.file.as_deref()));
    }
    let is_low = |source: &SourceReport| source.level < args.level;
    let is_bad = report.invalid.count > 0
        || report.sources.is_empty()
        || report.sources.iter().any(is_low)
        || (args.strict && report.sources.iter().any(|one| !one.problems.is_empty()));
    if args.json {
        terminal.json(&report)?;
    } else {
        terminal.text(&judgement(&report, terminal));
    }
    Ok(if is_bad {
        Verdict::Findings
    } else {
        Verdict::Good
    })
}

fn judgement(report: &Report, terminal: &Terminal) -> String {
    let mut text = String::new();
    for source in &report.sources {
        let level = match source.level {
            0 => "does not conform".to_owned(),
            1 => "level 1, minimal".to_owned(),
            2 => "level 2, observable".to_owned(),
            _ => "level 3, discoverable".to_owned(),
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{}: {level} ({}, {})",
            terminal.bold(&visible(&source.source)),
            counted(source.envelopes, "envelope"),
            counted(source.sessions, "session")
        );
        for requirement in &source.requirements {
            let _ = writeln!(text, "  {}", evidence(requirement, terminal));
        }
        if !source.never.is_empty() {
            let _ = writeln!(text, "  never seen: {}", source.never.join(", "));
        }
        for problem in &source.problems {
            text.push_str(&trouble(problem, terminal));
        }
        text.push('\n');
    }
    if report.invalid.count > 0 {
        text.push_str(&trouble(&report.invalid, terminal));
    }
    text
}

fn evidence(requirement: &Requirement, terminal: &Terminal) -> String {
    let mark = if requirement.met {
        terminal.paint("32", "met    ")
    } else {
        terminal.paint("31", "not met")
    };
    let mut line = format!("level {}  {mark}  {}", requirement.level, requirement.text);
    let mut notes = Vec::new();
    if let Some(note) = &requirement.note {
        notes.push(note.clone());
    } else if requirement.met && requirement.count > 1 {
        notes.push(format!("{} times", requirement.count));
    }
    if let Some(example) = &requirement.example {
        notes.push(format!("first at line {}", example.line));
    }
    if !notes.is_empty() {
        let _ = write!(line, " ({})", visible(&notes.join(", ")));
    }
    line
}

fn trouble(problem: &Problem, terminal: &Terminal) -> String {
    let code = terminal.paint("33", problem.code);
    let mut text = format!("  {code}: {}\n", problem.count);
    for example in &problem.examples {
        let _ = write!(text, "    line {}", example.line);
        if !example.session_id.is_empty() {
            let _ = write!(text, ", session {}", visible(&example.session_id));
        }
        if !example.detail.is_empty() {
            let _ = write!(text, ": {}", visible(&example.detail));
        }
        text.push('\n');
    }
    text
}

fn traced(args: &TraceArgs, terminal: &Terminal) -> anyhow::Result<Verdict> {
    let name = name(args.file.as_deref());
    let mut verdict = Verdict::Good;
    let mut kept: Vec<Envelope> = Vec::new();
    let mut out = Chunks::new(terminal);
    each(args.file.as_deref(), &mut |line, item| {
        if item.is_blank() {
            return;
        }
        let read = match item {
            Item::Line(text) => Envelope::parse(text),
            Item::Value(value) => Envelope::from_value(value),
        };
        match read {
            Ok(envelope) if args.by_session => {
                let kind = envelope.event_type.as_str();
                if matches!(kind, "file.write" | "session.end") {
                    kept.push(envelope);
                }
            }
            Ok(envelope) => {
                if let Some(record) = trace::trace(&envelope) {
                    out.text(&record.to_json_line());
                }
            }
            Err(error) => {
                verdict = Verdict::Findings;
                for finding in error.findings() {
                    terminal.note(&format!("{name}:{line}: {}", shown(finding)));
                }
            }
        }
    })?;
    for record in trace::trace_sessions(&kept) {
        out.text(&record.to_json_line());
    }
    Ok(verdict)
}

fn name(file: Option<&Path>) -> String {
    match file {
        Some(path) if path != Path::new("-") => path.display().to_string(),
        _ => "-".to_owned(),
    }
}

/// On a line of its own the line of a syntax error is always the first.
fn shown(finding: &Finding) -> String {
    let text = finding.to_string();
    visible(&text.replacen("at line 1, column", "at column", 1))
}

fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// What a stream holds.
enum Item<'a> {
    Line(&'a str),
    /// Of a document over several lines.
    Value(Value),
}

impl Item<'_> {
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

/// Hands over each line with its number; or, when the first does not stand for
/// itself and the whole is JSON, each document with the line that it begins at.
fn each(file: Option<&Path>, take: &mut dyn FnMut(u64, Item<'_>)) -> anyhow::Result<()> {
    let shown = name(file);
    let cannot = || format!("{shown} cannot be read");
    let mut reader: Box<dyn BufRead> = match file {
        Some(path) if path != Path::new("-") => Box::new(BufReader::with_capacity(
            1 << 16,
            File::open(path).with_context(cannot)?,
        )),
        _ => Box::new(BufReader::with_capacity(1 << 16, io::stdin().lock())),
    };
    let mut buffer = Vec::new();
    let mut number = 0;
    let mut is_first = true;
    while read_line(&mut *reader, &mut buffer).with_context(cannot)? {
        number += 1;
        let text = String::from_utf8_lossy(&buffer);
        let is_blank = text.trim().is_empty();
        if is_first && !is_blank {
            is_first = false;
            if serde_json::from_str::<serde::de::IgnoredAny>(&text).is_err() {
                return whole(&mut *reader, text.into_owned(), number, take).with_context(cannot);
            }
        }
        take(number, Item::Line(&text));
    }
    Ok(())
}

/// The line with its end; false at the end of the stream.
fn read_line(reader: &mut dyn BufRead, buffer: &mut Vec<u8>) -> io::Result<bool> {
    buffer.clear();
    let count = Read::take(&mut *reader, LINE_LIMIT).read_until(b'\n', buffer)?;
    if count as u64 == LINE_LIMIT && buffer.last() != Some(&b'\n') {
        return Err(io::Error::other("a line is longer than 64 MiB"));
    }
    Ok(count > 0)
}

fn whole(
    reader: &mut dyn BufRead,
    mut text: String,
    first: u64,
    take: &mut dyn FnMut(u64, Item<'_>),
) -> io::Result<()> {
    let mut rest = Vec::new();
    Read::take(reader, LINE_LIMIT).read_to_end(&mut rest)?;
    if rest.len() as u64 == LINE_LIMIT {
        return Err(io::Error::other("its first line is no JSON"));
    }
    text.push_str(&String::from_utf8_lossy(&rest));
    let mut values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let mut documents = Vec::new();
    loop {
        let from = values.byte_offset();
        match values.next() {
            Some(Ok(value)) => documents.push((line_of(&text, from, first), value)),
            None => break,
            Some(Err(_)) => {
                documents.clear();
                break;
            }
        }
    }
    if documents.is_empty() {
        for (line, text) in (first..).zip(text.lines()) {
            take(line, Item::Line(text));
        }
    }
    for (line, value) in documents {
        take(line, Item::Value(value));
    }
    Ok(())
}

/// The line of the first thing behind an offset.
fn line_of(text: &str, offset: usize, first: u64) -> u64 {
    let rest = text.get(offset..).unwrap_or_default();
    let at = offset + (rest.len() - rest.trim_start().len());
    let before = text.as_bytes().iter().take(at);
    first + before.filter(|byte| **byte == b'\n').count() as u64
}

/// Output in larger pieces; the rest is written when it is dropped.
struct Chunks<'a> {
    terminal: &'a Terminal,
    text: String,
}

impl<'a> Chunks<'a> {
    fn new(terminal: &'a Terminal) -> Self {
        Self {
            terminal,
            text: String::new(),
        }
    }

    fn text(&mut self, text: &str) {
        self.text.push_str(text);
        if self.text.len() > CHUNK {
            self.terminal.text(&self.text);
            self.text.clear();
        }
    }

    fn line(&mut self, text: &str) {
        self.text(text);
        self.text("\n");
    }
}

impl Drop for Chunks<'_> {
    fn drop(&mut self) {
        self.terminal.text(&self.text);
    }
}
