//! `anyhook emit`: makes OpenHook envelopes from arguments or an agent's payload,
//! and prints them or delivers them to consumers.

use std::fs;
use std::path::{Path, PathBuf};

use anyhook_model::{HookEvent, HookRun, RunOutcome};
use anyhook_run::config::discover::discover;
use anyhook_run::config::policy::Rulebook;
use anyhook_run::openhook::consumers::{Consumers, envelopes, folder_fields};
use anyhook_run::openhook::{EnvelopeParts, from_unknown, make_envelope};
use anyhook_run::{Engine, EventOptions, agent};
use anyhook_util::time::uuid_v7;
use anyhow::{Context, Error, bail};
use jiff::Timestamp;
use openhook::{Envelope, Finding, event_type};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::cli::CommandStatus;
use crate::commands::explain::payload_from_stdin;
use crate::render::{Terminal, visible};

/// Make OpenHook envelopes and deliver them to consumers
///
/// Builds an envelope from --type, --source and --session, or from an agent's
/// payload on stdin. For an unknown agent the fields are guessed; an envelope on
/// stdin is passed on unchanged.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook emit --type session.end --source my-agent --session s1 --data '{\"reason\":\"completed\"}'\n  \
                  anyhook emit --agent claude-code < payload.json\n  \
                  anyhook emit --agent my-agent --dispatch < payload.json"
)]
pub(crate) struct EmitArgs {
    /// Make an envelope of this type, such as session.end
    #[arg(long = "type", value_name = "TYPE", requires_all = ["source", "session"])]
    event_type: Option<String>,
    /// The tool that the event comes from, in kebab-case
    #[arg(long)]
    source: Option<String>,
    /// The session's id
    #[arg(long, requires = "event_type")]
    session: Option<String>,
    /// The event's data: a JSON object or @FILE
    #[arg(long, value_name = "JSON|@FILE", value_parser = parse_object, requires = "event_type")]
    data: Option<Map<String, Value>>,
    /// Additional custom fields: a JSON object or @FILE
    #[arg(long, value_name = "JSON|@FILE", value_parser = parse_object, requires = "event_type")]
    extensions: Option<Map<String, Value>>,
    /// The event's id [default: a new one]
    #[arg(long, value_name = "UUID", requires = "event_type")]
    id: Option<String>,
    /// When the event happened [default: now]
    #[arg(long, value_name = "RFC3339", requires = "event_type")]
    time: Option<String>,
    /// Where the event happened, as a URI [default: made from --cwd]
    #[arg(long, value_name = "URI", requires = "event_type")]
    context: Option<String>,
    /// The folder in which the event happened
    #[arg(long, value_name = "FOLDER")]
    cwd: Option<PathBuf>,
    /// The agent that sent the payload on stdin [default: detected from the payload]
    #[arg(long, conflicts_with = "event_type")]
    agent: Option<String>,
    /// The agent's name for the event, if the payload does not contain it
    #[arg(long, conflicts_with = "event_type")]
    event: Option<String>,
    /// Deliver the envelopes to the consumers in the nearest .openhook.json
    #[arg(long)]
    dispatch: bool,
    /// Print the deliveries of --dispatch as JSON
    #[arg(long, requires = "dispatch")]
    json: bool,
}

/// A JSON object, or one from `@FILE`.
fn parse_object(text: &str) -> Result<Map<String, Value>, String> {
    let file = text.strip_prefix('@').map(fs::read_to_string);
    let file = file.transpose().map_err(|error| error.to_string())?;
    match serde_json::from_str(file.as_deref().unwrap_or(text)) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err("expected a JSON object like {\"reason\":\"completed\"}".to_owned()),
        Err(error) => Err(format!("not JSON: {error}")),
    }
}

#[derive(Serialize)]
struct DeliveryReport {
    envelopes: Vec<Envelope>,
    /// The discovery file that lists the consumers.
    #[serde(skip_serializing_if = "Option::is_none")]
    discovery: Option<PathBuf>,
    deliveries: Vec<HookRun>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notices: Vec<String>,
}

/// An event and its envelopes.
struct EventEnvelopes {
    event: HookEvent,
    envelopes: Vec<Envelope>,
}

pub(crate) fn run(args: &EmitArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let engine = Engine::from_env();
    let made = match &args.event_type {
        Some(event_type) => Some(from_args(args, &engine, event_type, terminal)?),
        None => from_payload(args, &engine, terminal)?,
    };
    let Some(made) = made else {
        terminal.note("OpenHook has no envelope for this event");
        return Ok(CommandStatus::Success);
    };
    if !args.dispatch {
        for envelope in &made.envelopes {
            terminal.text(&envelope.to_json_line());
        }
        return Ok(CommandStatus::Success);
    }
    let report = dispatch(args, &engine, made)?;
    if args.json {
        terminal.json(&report)?;
    } else {
        report.print(terminal);
    }
    let is_delivered =
        |run: &HookRun| matches!(run.outcome, RunOutcome::Allow | RunOutcome::Started);
    Ok(CommandStatus::success_if(
        report.notices.is_empty() && report.deliveries.iter().all(is_delivered),
    ))
}

fn from_args(
    args: &EmitArgs,
    engine: &Engine,
    event_type: &str,
    terminal: &Terminal,
) -> anyhow::Result<EventEnvelopes> {
    let cwd = args.cwd.as_deref().map(|cwd| {
        let absolute = std::path::absolute(cwd);
        let absolute = absolute.with_context(|| format!("{} is not a folder", cwd.display()))?;
        anyhow::Ok(absolute.to_string_lossy().into_owned())
    });
    let parts = EnvelopeParts {
        event_type: event_type.to_owned(),
        source: args.source.clone().unwrap_or_default(),
        session_id: args.session.clone().unwrap_or_default(),
        data: args.data.clone().unwrap_or_default(),
        id: args.id.clone(),
        time: args.time.clone(),
        cwd: cwd.transpose()?,
        context: args.context.clone(),
        extensions: args.extensions.clone().unwrap_or_default(),
    };
    let now = Timestamp::now();
    let mut made = make_envelope(parts, now.as_millisecond(), &uuid_v7(now));
    print_findings(&made.findings, terminal);
    if args.context.is_none() {
        folder_fields(engine).apply(&mut made.envelope);
    }
    if !made.is_sound() {
        bail!("the arguments do not make a valid OpenHook envelope");
    }
    Ok(from_envelope(made.envelope))
}

/// `None` if the event has no envelope.
fn from_payload(
    args: &EmitArgs,
    engine: &Engine,
    terminal: &Terminal,
) -> anyhow::Result<Option<EventEnvelopes>> {
    let bytes = payload_from_stdin()?;
    let known = match &args.agent {
        Some(name) => agent::resolve(Some(name), &bytes).ok(),
        None if is_envelope(&bytes) => None,
        None => agent::resolve(None, &bytes).ok(),
    };
    let Some((agent, _)) = known else {
        return from_unknown_agent(args, engine, &bytes, terminal).map(Some);
    };
    let decoded = agent.decode(&bytes, args.event.as_deref());
    let mut event = decoded.map_err(Error::msg)?.or_current_dir().event;
    if let Some(cwd) = &args.cwd {
        event.cwd = Some(cwd.to_string_lossy().into_owned());
    }
    let envelopes = envelopes(engine, &event);
    Ok((!envelopes.is_empty()).then_some(EventEnvelopes { event, envelopes }))
}

fn is_envelope(bytes: &[u8]) -> bool {
    serde_json::from_slice(bytes).is_ok_and(|value| openhook::is_envelope(&value))
}

/// Guesses the fields by the names that known agents use for them.
fn from_unknown_agent(
    args: &EmitArgs,
    engine: &Engine,
    bytes: &[u8],
    terminal: &Terminal,
) -> anyhow::Result<EventEnvelopes> {
    let mut payload: Value = serde_json::from_slice(bytes).context("the payload is not JSON")?;
    if let (Some(event), Value::Object(map)) = (&args.event, &mut payload) {
        map.entry("hook_event_name")
            .or_insert_with(|| event.as_str().into());
    }
    let is_complete = openhook::is_envelope(&payload);
    if is_complete {
        // Another version is passed on as well, with a warning.
        print_findings(&openhook::validate(&payload), terminal);
    }
    let source = args.agent.as_deref().or(args.source.as_deref());
    let now = Timestamp::now().as_millisecond();
    let mut envelope = from_unknown(payload, source.unwrap_or("unknown"), now)?;
    if let Some(cwd) = &args.cwd {
        let cwd = std::path::absolute(cwd).unwrap_or_else(|_| cwd.clone());
        let cwd = cwd.to_string_lossy().into_owned();
        envelope.context = Some(openhook::file_uri(&cwd));
        envelope.cwd = Some(cwd);
    }
    if !is_complete {
        folder_fields(engine).apply(&mut envelope);
    }
    Ok(from_envelope(envelope))
}

fn print_findings(findings: &[Finding], terminal: &Terminal) {
    for finding in findings {
        terminal.note(&visible(&finding.to_string()));
    }
}

/// An envelope and its event, as far as policies and records need it.
fn from_envelope(envelope: Envelope) -> EventEnvelopes {
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
    EventEnvelopes {
        event,
        envelopes: vec![envelope],
    }
}

fn dispatch(
    args: &EmitArgs,
    engine: &Engine,
    made: EventEnvelopes,
) -> anyhow::Result<DeliveryReport> {
    let given = args.cwd.clone();
    let folder = given.or_else(|| made.event.cwd.as_ref().map(PathBuf::from));
    let folder = match folder {
        Some(folder) => folder,
        None => std::env::current_dir().context("could not read the current folder")?,
    };
    let found = discover(&engine.dirs, &folder);
    let (consumers, notices) = Consumers::find(engine, found.openhook.as_deref());
    let mut report = DeliveryReport {
        envelopes: made.envelopes,
        discovery: None,
        deliveries: Vec::new(),
        notices,
    };
    let Some(consumers) = consumers else {
        return Ok(report);
    };
    report.discovery = Some(consumers.path.clone());
    let (rules, notices) = Rulebook::load_trusted(
        engine,
        found.policies,
        |folder| engine.consent_in(folder),
        &mut Vec::new(),
    );
    report.notices.extend(notices);
    let mut telling = consumers.plan_deliveries(&report.envelopes, &made.event.event, &rules);
    report.deliveries.append(&mut telling.refused);
    report.notices.append(&mut telling.notices);
    let ends = telling.deliver(engine, &made.event, EventOptions::default(), "");
    report.deliveries.extend(ends);
    Ok(report)
}

impl DeliveryReport {
    fn print(&self, terminal: &Terminal) {
        for notice in &self.notices {
            terminal.note(&visible(notice));
        }
        match self.discovery.as_deref().map(Path::display) {
            None if self.notices.is_empty() => {
                terminal.note("no consumers: there is no .openhook.json from here upward");
            }
            Some(path) if self.deliveries.is_empty() => {
                terminal.note(&format!("no consumer in {path} subscribes to this event"));
            }
            _ => {}
        }
        for run in &self.deliveries {
            let result = match run.outcome {
                RunOutcome::Allow => "received it",
                RunOutcome::Started => "was started",
                RunOutcome::Refused => "is not allowed to run",
                _ => "failed",
            };
            let why = run.message.as_deref().map(visible);
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            terminal.line(&format!("consumer {} {result}{why}", run.hook));
        }
    }
}
