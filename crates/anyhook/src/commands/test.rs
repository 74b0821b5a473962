//! `anyhook test`: hooks run on a made or given event, and what each agent
//! would be told of it.

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use anyhook_model::event::field;
use anyhook_model::{HookEvent, RunOutcome, registry, suggest};
use anyhook_run::{Engine, agent, clock};
use anyhow::{Context, anyhow, bail};
use serde_json::{Map, Value, json};

use crate::cli::Verdict;
use crate::columns::{self, Cell};
use crate::commands::{agents, explain};
use crate::render::{Terminal, visible};
use crate::trial::Trial;

/// Run the hooks on a made event, and show what each agent would be told and do
///
/// The hooks run for real, with this folder as the project, and no agent is
/// needed. Nothing is recorded but the end of a hook that is detached. Exits
/// with 1 when a hook fails or may not run.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook test --input '{\"command\": \"rm -rf /\"}'\n  \
                        anyhook test --agent cursor --agent codex --event before_prompt\n  \
                        anyhook test --payload --agent all < payload.json"
)]
pub struct Args {
    /// An agent, again for more, or `all`
    #[arg(long, default_value = "all")]
    agent: Vec<String>,
    /// The event: canonical, or an agent's own name; before_tool_execute when absent
    #[arg(long)]
    event: Option<String>,
    /// The tool that is called
    #[arg(long, default_value = "shell")]
    tool: String,
    /// The tool's input, with canonical keys
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// Take the event from a payload on stdin instead
    #[arg(long, conflicts_with_all = ["tool", "input"])]
    payload: bool,
    /// The agent that sent the payload; recognised when absent
    #[arg(long, requires = "payload", value_name = "AGENT")]
    from: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Verdict> {
    let adapters = chosen(&args.agent)?;
    let folder = std::env::current_dir().context("the current folder cannot be read")?;
    let folder = folder.to_string_lossy().into_owned();
    let event = if args.payload {
        given(args)?
    } else {
        made(args, &adapters, &folder)?
    };
    let engine = Engine::from_env();
    let mut trials = Vec::new();
    for adapter in adapters {
        trials.push(under(&engine, adapter, &event, &folder)?);
    }
    if args.json {
        terminal.json(&trials)?;
    } else {
        for trial in &trials {
            show(trial, terminal);
        }
        if trials.len() > 1 {
            summarise(&trials, terminal);
        }
        if trials.iter().all(|trial| trial.hooks.is_empty()) {
            terminal.note("No hook is for this event; `anyhook explain` says why.");
        }
    }
    let failed = trials.iter().flat_map(|trial| &trial.hooks).any(|run| {
        matches!(
            run.outcome,
            RunOutcome::Error | RunOutcome::Timeout | RunOutcome::Refused
        )
    });
    Ok(if failed {
        Verdict::Findings
    } else {
        Verdict::Good
    })
}

fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static Adapter>> {
    if names.iter().any(|name| name == "all") {
        return Ok(clients().collect());
    }
    names.iter().map(|name| agents::find(name)).collect()
}

fn under(
    engine: &Engine,
    adapter: &'static Adapter,
    event: &HookEvent,
    folder: &str,
) -> anyhow::Result<Trial> {
    let native = adapter.event_by_native(&event.event);
    let native = native.map(|native| native.native.as_ref());
    match adapter.encode(event, native) {
        Some(encoded) => {
            let name = &encoded.native_event;
            let mut trial = Trial::run(engine, adapter, name, encoded.payload, folder)
                .map_err(|why| anyhow!("{}: {why}", adapter.spec.id))?;
            trial.lost.extend(encoded.lost);
            Ok(trial)
        }
        None => Ok(Trial::without_event(adapter, &event.event)),
    }
}

fn given(args: &Args) -> anyhow::Result<HookEvent> {
    if let Some(name) = &args.from {
        agents::find(name)?;
    }
    let payload = explain::payload()?;
    let (agent, _) = agent::resolve(args.from.as_deref(), &payload)
        .map_err(|why| anyhow!(why.replace("--agent", "--from")))?;
    let decoded = agent.decode(&payload, args.event.as_deref());
    Ok(decoded.map_err(|why| anyhow!(why))?.event)
}

fn made(args: &Args, adapters: &[&'static Adapter], folder: &str) -> anyhow::Result<HookEvent> {
    let name = args.event.as_deref().unwrap_or("before_tool_execute");
    let known = registry::event(name);
    let is_native = |adapter: &&Adapter| adapter.event_by_native(name).is_some();
    if known.is_none() && !adapters.iter().any(is_native) {
        let names = registry::EVENTS.iter().map(|event| event.name);
        let hint = match suggest::nearest(name, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`anyhook events` lists them".to_owned(),
        };
        bail!("there is no event `{name}`; {hint}");
    }
    let mut event = HookEvent {
        event: name.to_owned(),
        source: "canonical".to_owned(),
        session_id: Some("anyhook-test".to_owned()),
        timestamp: Some(clock::rfc3339(clock::now_ms())),
        cwd: Some(folder.to_owned()),
        ..HookEvent::default()
    };
    let is_tool_event = known.is_none_or(|known| known.tool);
    if is_tool_event {
        let input = match &args.input {
            Some(text) => serde_json::from_str(text).context("--input is not a JSON object")?,
            None => sample(&args.tool),
        };
        let data = &mut event.data;
        data.insert(field::TOOL_NAME.to_owned(), json!(args.tool));
        data.insert(field::TOOL_INPUT.to_owned(), Value::Object(input));
        data.insert(field::TOOL_CALL_ID.to_owned(), json!("call_anyhook_test"));
        if name == "after_tool_execute" {
            data.insert(field::TOOL_OUTPUT.to_owned(), json!("hello\n"));
            data.insert(field::STATUS.to_owned(), json!("success"));
        }
    } else {
        let defaults = [
            ("before_prompt", field::PROMPT, "Say hello."),
            ("session_start", field::START_SOURCE, "startup"),
            ("session_end", field::REASON, "exit"),
            ("before_compact", field::TRIGGER, "manual"),
        ];
        for (_, key, value) in defaults.iter().filter(|(event, ..)| *event == name) {
            event.data.insert((*key).to_owned(), json!(value));
        }
        if let Some(text) = &args.input {
            let more: Map<String, Value> =
                serde_json::from_str(text).context("--input is not a JSON object")?;
            event.data.extend(more);
        }
    }
    Ok(event)
}

/// A harmless call of a tool.
fn sample(tool: &str) -> Map<String, Value> {
    let input = match tool {
        "shell" => json!({"command": "echo hello"}),
        "file_read" => json!({"path": "README.md"}),
        "file_write" => json!({"path": "hello.txt", "content": "hello\n"}),
        "file_edit" => json!({"path": "hello.txt", "edits": [{"old": "hello", "new": "good day"}]}),
        "search" => json!({"pattern": "hello", "path": "."}),
        "find" => json!({"pattern": "*.txt", "path": "."}),
        "web_search" => json!({"query": "hello"}),
        "web_fetch" => json!({"url": "https://example.com/"}),
        "agent" => json!({"prompt": "Say hello.", "description": "a greeting"}),
        _ => json!({}),
    };
    match input {
        Value::Object(input) => input,
        _ => Map::new(),
    }
}

fn show(trial: &Trial, terminal: &Terminal) {
    let tool = trial.native_tool.as_deref();
    let what = [Some(trial.native_event.as_str()), tool];
    let what: Vec<&str> = what.into_iter().flatten().collect();
    terminal.line(&format!(
        "{}  {}",
        terminal.bold(&trial.agent),
        visible(&what.join(" "))
    ));
    let row = |label: &str, text: &str| {
        for (n, line) in text.trim_end().lines().enumerate() {
            let label = if n == 0 { label } else { "" };
            terminal.line(&format!("  {label:<7} {}", visible(line)));
        }
    };
    for run in &trial.hooks {
        let outcome = serde_json::to_value(run.outcome).unwrap_or_default();
        let outcome = outcome.as_str().unwrap_or_default();
        let message = run.message.as_deref().unwrap_or_default();
        row("hook", &format!("{}: {outcome} {message}", run.hook));
    }
    if !trial.payload.is_null() {
        row("stdout", &trial.stdout);
        row("stderr", &trial.stderr);
        row("exit", &trial.exit.to_string());
    }
    row("effect", &trial.effect);
    for loss in &trial.lost {
        row("lost", &format!("{}: {}", loss.field, loss.message));
    }
    for warning in &trial.warnings {
        row("warning", warning);
    }
    terminal.line("");
}

fn summarise(trials: &[Trial], terminal: &Terminal) {
    let rows: Vec<Vec<Cell>> = trials
        .iter()
        .map(|trial| {
            vec![
                Cell::painted("1", &trial.agent),
                Cell::plain(&trial.native_event),
                Cell::painted(trial.colour(), trial.decided()),
                Cell::plain(&trial.effect),
            ]
        })
        .collect();
    columns::print(terminal, &["agent", "event", "hooks say", "it does"], &rows);
}
