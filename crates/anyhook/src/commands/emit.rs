//! `anyhook emit`: OpenHook envelopes, from parts or from what an agent sends,
//! to stdout or to those who listen.

use std::fs;
use std::path::{Path, PathBuf};

use anyhook_emit::{Parts, from_unknown, make};
use anyhook_model::{HookEvent, HookRun, RunOutcome};
use anyhook_run::discover::discover;
use anyhook_run::openhook::{Audience, Look, Manner, envelopes};
use anyhook_run::{Engine, agent, clock};
use anyhow::{Context, anyhow, bail};
use openhook::{Envelope, event_type};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::cli::Verdict;
use crate::commands::explain::payload;
use crate::render::{Terminal, visible};

/// Make OpenHook envelopes, and send them to those who listen
///
/// From parts, with --type, --source and --session; or from the payload that an
/// agent sends, on stdin. A payload of an agent that nobody has described is
/// guessed at; an envelope stays as it is.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook emit --type session.end --source my-agent --session s1 --data '{\"reason\":\"completed\"}'\n  \
                  anyhook emit --agent claude-code < payload.json\n  \
                  anyhook emit --agent my-agent --dispatch < payload.json"
)]
pub struct Args {
    /// Make an event of this type, such as session.end
    #[arg(long = "type", value_name = "TYPE", requires_all = ["source", "session"])]
    kind: Option<String>,
    /// The tool that it comes from, in kebab-case
    #[arg(long)]
    source: Option<String>,
    /// The session's id
    #[arg(long, requires = "kind")]
    session: Option<String>,
    /// What the event says: a JSON object, or @FILE with one
    #[arg(long, value_name = "JSON|@FILE", value_parser = object, requires = "kind")]
    data: Option<Map<String, Value>>,
    /// Further fields of yours: a JSON object, or @FILE with one
    #[arg(long, value_name = "JSON|@FILE", value_parser = object, requires = "kind")]
    extensions: Option<Map<String, Value>>,
    /// The event's id; made when absent
    #[arg(long, value_name = "UUID", requires = "kind")]
    id: Option<String>,
    /// When it happened; now when absent
    #[arg(long, value_name = "RFC3339", requires = "kind")]
    time: Option<String>,
    /// Where it happened as a URI; made of --cwd when absent
    #[arg(long, value_name = "URI", requires = "kind")]
    context: Option<String>,
    /// The folder that it happened in
    #[arg(long, value_name = "FOLDER")]
    cwd: Option<PathBuf>,
    /// The agent whose payload is on stdin; recognised when absent
    #[arg(long, conflicts_with = "kind")]
    agent: Option<String>,
    /// The agent's own name of the event, when the payload does not say
    #[arg(long, conflicts_with = "kind")]
    event: Option<String>,
    /// Give them to the consumers of the nearest .openhook.json
    #[arg(long)]
    dispatch: bool,
    /// With --dispatch: print what came of it as JSON
    #[arg(long, requires = "dispatch")]
    json: bool,
}

/// A JSON object, or a file that holds one.
fn object(text: &str) -> Result<Map<String, Value>, String> {
    let file = text.strip_prefix('@').map(fs::read_to_string);
    let file = file.transpose().map_err(|error| error.to_string())?;
    match serde_json::from_str(file.as_deref().unwrap_or(text)) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err("it must be a JSON object, like {\"reason\":\"completed\"}".to_owned()),
        Err(error) => Err(format!("not JSON: {error}")),
    }
}

#[derive(Serialize)]
struct Report {
    envelopes: Vec<Envelope>,
    /// The discovery file.
    #[serde(skip_serializing_if = "Option::is_none")]
    discovery: Option<PathBuf>,
    deliveries: Vec<HookRun>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notices: Vec<String>,
}

/// Envelopes, and the event that they tell of.
struct Told {
    event: HookEvent,
    envelopes: Vec<Envelope>,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Verdict> {
    let engine = Engine::from_env();
    let told = match &args.kind {
        Some(kind) => Some(from_parts(args, kind, terminal)?),
        None => from_payload(args, &engine)?,
    };
    let Some(told) = told else {
        terminal.note("OpenHook has nothing to say of this event");
        return Ok(Verdict::Good);
    };
    if !args.dispatch {
        for envelope in &told.envelopes {
            terminal.text(&envelope.to_json_line());
        }
        return Ok(Verdict::Good);
    }
    let report = dispatch(args, &engine, told)?;
    let failed = |run: &HookRun| !matches!(run.outcome, RunOutcome::Allow | RunOutcome::Started);
    let is_good = report.notices.is_empty() && !report.deliveries.iter().any(failed);
    if args.json {
        terminal.json(&report)?;
    } else {
        show(&report, terminal);
    }
    Ok(if is_good {
        Verdict::Good
    } else {
        Verdict::Findings
    })
}

fn from_parts(args: &Args, kind: &str, terminal: &Terminal) -> anyhow::Result<Told> {
    let cwd = match &args.cwd {
        Some(cwd) => Some(
            std::path::absolute(cwd)
                .with_context(|| format!("{} is no folder", cwd.display()))?
                .to_string_lossy()
                .into_owned(),
        ),
        None => None,
    };
    let parts = Parts {
        event_type: kind.to_owned(),
        source: args.source.clone().unwrap_or_default(),
        session_id: args.session.clone().unwrap_or_default(),
        data: args.data.clone().unwrap_or_default(),
        id: args.id.clone(),
        time: args.time.clone(),
        cwd,
        context: args.context.clone(),
        extensions: args.extensions.clone().unwrap_or_default(),
    };
    let now = clock::now_ms();
    let made = make(
        parts,
        i64::try_from(now).unwrap_or(i64::MAX),
        &clock::uuid(now),
    );
    for finding in &made.findings {
        terminal.note(&visible(&finding.to_string()));
    }
    if !made.is_sound() {
        bail!("this is no OpenHook envelope, and none was made");
    }
    Ok(told_by(made.envelope))
}

/// `None` when the event has no envelope.
fn from_payload(args: &Args, engine: &Engine) -> anyhow::Result<Option<Told>> {
    let bytes = payload()?;
    let known = match &args.agent {
        Some(name) => agent::resolve(Some(name), &bytes).ok(),
        None if is_envelope(&bytes) => None,
        None => agent::resolve(None, &bytes).ok(),
    };
    let Some((agent, _)) = known else {
        return guessed(args, &bytes).map(Some);
    };
    let mut event = agent
        .decode(&bytes, args.event.as_deref())
        .map_err(|why| anyhow!(why))?
        .event;
    if let Some(cwd) = &args.cwd {
        event.cwd = Some(cwd.to_string_lossy().into_owned());
    }
    let envelopes = envelopes(engine, &event);
    Ok((!envelopes.is_empty()).then_some(Told { event, envelopes }))
}

fn is_envelope(bytes: &[u8]) -> bool {
    serde_json::from_slice(bytes).is_ok_and(|value| openhook::is_envelope(&value))
}

/// By the names that agents have used for the same thing.
fn guessed(args: &Args, bytes: &[u8]) -> anyhow::Result<Told> {
    let mut payload: Value = serde_json::from_slice(bytes).context("the payload is not JSON")?;
    if let (Some(event), Value::Object(map)) = (&args.event, &mut payload) {
        map.entry("hook_event_name")
            .or_insert_with(|| event.as_str().into());
    }
    let source = args.agent.as_deref().or(args.source.as_deref());
    let now = i64::try_from(clock::now_ms()).unwrap_or(i64::MAX);
    let mut envelope = from_unknown(payload, source.unwrap_or("unknown"), now)?;
    if let Some(cwd) = &args.cwd {
        let cwd = std::path::absolute(cwd).unwrap_or_else(|_| cwd.clone());
        let cwd = cwd.to_string_lossy().into_owned();
        envelope.context = Some(openhook::file_uri(&cwd));
        envelope.cwd = Some(cwd);
    }
    Ok(told_by(envelope))
}

/// The event that an envelope tells of, as far as policies and records ask.
fn told_by(envelope: Envelope) -> Told {
    let event = match envelope.event_type.as_str() {
        event_type::SESSION_START => "session_start",
        event_type::SESSION_END => "session_end",
        event_type::PROMPT_SUBMIT => "before_prompt",
        event_type::TOOL_START => "before_tool_execute",
        event_type::TOOL_END | event_type::FILE_WRITE => "after_tool_execute",
        other => other,
    };
    let event = HookEvent {
        event: event.to_owned(),
        source: envelope.source.clone(),
        session_id: Some(envelope.session_id.clone()),
        timestamp: Some(envelope.time.clone()),
        cwd: envelope.directory(),
        ..HookEvent::default()
    };
    Told {
        event,
        envelopes: vec![envelope],
    }
}

fn dispatch(args: &Args, engine: &Engine, told: Told) -> anyhow::Result<Report> {
    let given = args.cwd.clone();
    let folder = given.or_else(|| told.event.cwd.as_ref().map(PathBuf::from));
    let folder = match folder {
        Some(folder) => folder,
        None => std::env::current_dir().context("the current folder cannot be read")?,
    };
    let found = discover(&engine.dirs, &folder);
    let Look { audience, notices } = Audience::find(engine, found.openhook.as_deref());
    let mut report = Report {
        envelopes: told.envelopes,
        discovery: None,
        deliveries: Vec::new(),
        notices,
    };
    let Some(audience) = audience else {
        return Ok(report);
    };
    report.discovery = Some(audience.path().to_owned());
    let (rules, notices) = engine.rules(found.policies, &mut Vec::new());
    report.notices.extend(notices);
    let mut telling = audience.invite(&report.envelopes, &told.event.event, &rules);
    report.deliveries.append(&mut telling.refused);
    report.notices.append(&mut telling.notices);
    let ends = telling.deliver(engine, &told.event, Manner::default(), "");
    report.deliveries.extend(ends);
    Ok(report)
}

fn show(report: &Report, terminal: &Terminal) {
    for notice in &report.notices {
        terminal.note(&visible(notice));
    }
    let path = report.discovery.as_deref().map(Path::display);
    match path {
        None if report.notices.is_empty() => {
            terminal.note("nobody listens: there is no .openhook.json from here upward");
        }
        Some(path) if report.deliveries.is_empty() => {
            terminal.note(&format!("nobody in {path} listens to this event"));
        }
        _ => {}
    }
    for run in &report.deliveries {
        let what = match run.outcome {
            RunOutcome::Allow => "heard it".to_owned(),
            RunOutcome::Started => "will hear it".to_owned(),
            RunOutcome::Refused => "may not hear it".to_owned(),
            _ => "failed".to_owned(),
        };
        let why = run.message.as_deref().map(visible);
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        terminal.line(&format!("consumer {} {what}{why}", run.hook));
    }
}
