//! `anyhook test`: runs the hooks on a sample or given event, and shows what each
//! agent would get and do.

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use anyhook_model::event::field;
use anyhook_model::{HookEvent, HookRun, RunOutcome, registry, suggest};
use anyhook_run::Engine;
use anyhook_util::time::rfc3339;
use anyhow::{Context, anyhow, bail};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::cli::CommandStatus;
use crate::commands::{agents, explain};
use crate::render::{Terminal, colour, visible};
use crate::simulation::SimulatedCall;
use crate::table::{self, Cell};

/// Run the hooks on a sample event and show what each agent would get and do
///
/// The hooks really run, with the current folder as the project; no agent is
/// needed. Nothing is recorded, except when an async hook ends. Exits with 1 if
/// a hook times out, cannot be started, prints an invalid answer or is not
/// allowed to run.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook test --input '{\"command\": \"rm -rf /\"}'\n  \
                        anyhook test --agent cursor --agent codex --event before_prompt\n  \
                        anyhook test --payload --agent all < payload.json"
)]
pub(crate) struct TestArgs {
    /// An agent (repeat for more) or `all`
    #[arg(long, default_value = "all")]
    agent: Vec<String>,
    /// The event, by its canonical or an agent's own name [default: before_tool_execute]
    #[arg(long)]
    event: Option<String>,
    /// The tool that the agent calls
    #[arg(long, default_value = "shell")]
    tool: String,
    /// The tool's input with canonical keys, or the event's data
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// Read an agent's payload from stdin instead
    #[arg(long, conflicts_with_all = ["tool", "input"])]
    payload: bool,
    /// The agent that sent the payload [default: detected from the payload]
    #[arg(long, requires = "payload", value_name = "AGENT")]
    from: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &TestArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let adapters: Vec<&'static Adapter> = if args.agent.iter().any(|name| name == "all") {
        clients().collect()
    } else {
        let names = args.agent.iter();
        names
            .map(|name| agents::find(name))
            .collect::<Result<_, _>>()?
    };
    let folder = std::env::current_dir().context("could not read the current folder")?;
    let folder = folder.to_string_lossy();
    let event = if args.payload {
        explain::event_from_stdin(args.from.as_deref(), args.event.as_deref())
            .map_err(|error| anyhow!(format!("{error:#}").replace("--agent", "--from")))?
            .0
    } else {
        event_from_args(args, &adapters, &folder)?
    };
    let engine = Engine::from_env();
    let mut calls = Vec::new();
    for adapter in adapters {
        calls.push(simulate(&engine, adapter, &event, &folder)?);
    }
    if args.json {
        terminal.json(&calls)?;
    } else {
        for call in &calls {
            print_call(call, terminal);
        }
        if calls.len() > 1 {
            print_summary(&calls, terminal);
        }
        if calls.iter().all(|call| call.hooks.is_empty()) {
            terminal.note("No hook is for this event; `anyhook explain` shows why.");
        }
    }
    let has_failed = |run: &HookRun| {
        matches!(
            run.outcome,
            RunOutcome::Error | RunOutcome::Timeout | RunOutcome::Refused
        )
    };
    let mut runs = calls.iter().flat_map(|call| &call.hooks);
    Ok(CommandStatus::success_if(!runs.any(has_failed)))
}

fn simulate(
    engine: &Engine,
    adapter: &'static Adapter,
    event: &HookEvent,
    folder: &str,
) -> anyhow::Result<SimulatedCall> {
    let native = adapter.event_by_native(&event.event);
    let native = native.map(|native| native.native.as_ref());
    let Some(encoded) = adapter.encode(event, native) else {
        return Ok(SimulatedCall::unsupported(adapter, &event.event));
    };
    let name = &encoded.native_event;
    let mut call = SimulatedCall::run(engine, adapter, name, encoded.payload, folder)
        .map_err(|why| anyhow!("{}: {why}", adapter.spec.id))?;
    call.lost.extend(encoded.lost);
    Ok(call)
}

fn event_from_args(
    args: &TestArgs,
    adapters: &[&'static Adapter],
    folder: &str,
) -> anyhow::Result<HookEvent> {
    let name = args.event.as_deref().unwrap_or("before_tool_execute");
    let known = registry::event(name);
    let is_native = |adapter: &&Adapter| adapter.event_by_native(name).is_some();
    if known.is_none() && !adapters.iter().any(is_native) {
        let names = registry::EVENTS.iter().map(|event| event.name);
        let hint = match suggest::nearest(name, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`anyhook events` lists all events".to_owned(),
        };
        bail!("unknown event `{name}`; {hint}");
    }
    let mut event = HookEvent {
        event: name.to_owned(),
        source: "canonical".to_owned(),
        session_id: Some("anyhook-test".to_owned()),
        timestamp: Some(rfc3339(Timestamp::now())),
        cwd: Some(folder.to_owned()),
        ..HookEvent::default()
    };
    let input: Option<Map<String, Value>> = args
        .input
        .as_deref()
        .map(serde_json::from_str)
        .transpose()
        .context("--input is not a JSON object")?;
    let data = &mut event.data;
    if known.is_none_or(|known| known.tool) {
        let input = input.map_or_else(|| sample_input(&args.tool), Value::Object);
        data.insert(field::TOOL_NAME.to_owned(), json!(args.tool));
        data.insert(field::TOOL_INPUT.to_owned(), input);
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
            data.insert((*key).to_owned(), json!(value));
        }
        data.extend(input.unwrap_or_default());
    }
    Ok(event)
}

/// Input for a harmless call of a tool.
fn sample_input(tool: &str) -> Value {
    match tool {
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
    }
}

fn print_call(call: &SimulatedCall, terminal: &Terminal) {
    let tool = call.native_tool.as_deref();
    let what = [Some(call.native_event.as_str()), tool];
    let what: Vec<&str> = what.into_iter().flatten().collect();
    terminal.line(&format!(
        "{}  {}",
        terminal.bold(&call.agent),
        visible(&what.join(" "))
    ));
    let row = |label: &str, text: &str| {
        for (n, line) in text.trim_end().lines().enumerate() {
            let label = if n == 0 { label } else { "" };
            terminal.line(&format!("  {label:<7} {}", visible(line)));
        }
    };
    for run in &call.hooks {
        let outcome = run.outcome_text();
        let message = run.message.as_deref().unwrap_or_default();
        row("hook", &format!("{}: {outcome} {message}", run.hook));
    }
    if !call.payload.is_null() {
        row("stdout", &call.stdout);
        row("stderr", &call.stderr);
        row("exit", &call.exit.to_string());
    }
    row("effect", &call.effect);
    for loss in &call.lost {
        row("lost", &format!("{}: {}", loss.field, loss.message));
    }
    for warning in &call.warnings {
        row("warning", warning);
    }
    terminal.line("");
}

fn print_summary(calls: &[SimulatedCall], terminal: &Terminal) {
    let rows = calls.iter().map(|call| {
        [
            Cell::painted(colour::BOLD, &call.agent),
            (&call.native_event).into(),
            Cell::painted(call.colour(), call.decision_label()),
            (&call.effect).into(),
        ]
    });
    table::print(terminal, ["agent", "event", "decision", "effect"], rows);
}
