//! `anyhook test`: runs the hooks on a sample or given event, and shows what each
//! agent would get and do.

mod hints;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use anyhook_install::DetectedAgent;
use anyhook_model::event::field;
use anyhook_model::{HookEvent, HookRun, registry, suggest};
use anyhook_run::Engine;
use anyhook_run::config::discover::{LoadProblem, PROJECT_FOLDER};
use anyhook_run::config::in_force::{HookInForce, HookState};
use anyhook_util::shell::{self, Syntax};
use anyhook_util::time::rfc3339;
use anyhow::{Context, anyhow, bail};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::cli::{CommandStatus, UsageError};
use crate::commands::{agents, explain, install};
use crate::render::{Terminal, colour, visible};
use crate::simulation::SimulatedCall;
use crate::table::{self, Cell};

/// Run the hooks on a sample event and show what each agent would get and do
///
/// The hooks really run, with the current folder as the project; no agent is
/// needed. Nothing is recorded, except when an async hook ends. Exits with 1 if
/// a hook fails or is not allowed to run, or a manifest cannot be read.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook test --input '{\"command\": \"rm -rf /\"}'\n  \
                        anyhook test --agent cursor --agent codex --event before_prompt\n  \
                        anyhook test --payload --all < payload.json\n  \
                        anyhook test --watch"
)]
pub(crate) struct TestArgs {
    /// An agent (repeat for more) or `all` [default: the agents found here, or all]
    #[arg(long)]
    agent: Vec<String>,
    /// All supported agents
    #[arg(long, conflicts_with = "agent")]
    all: bool,
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
    /// Run again whenever a manifest or one of its scripts changes, until interrupted
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &TestArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let adapters = selected_agents(args)?;
    let folder = std::env::current_dir().context("could not read the current folder")?;
    let text = folder.to_string_lossy();
    let event = if args.payload {
        explain::event_from_stdin(args.from.as_deref(), args.event.as_deref())
            .map_err(|error| anyhow!(format!("{error:#}").replace("--agent", "--from")))?
            .0
    } else {
        event_from_args(args, &adapters, &text)?
    };
    loop {
        let engine = Engine::from_env();
        let before = watched_files(&engine, &folder);
        let status = run_once(args, &engine, &adapters, &event, &folder, terminal)?;
        if !args.watch {
            return Ok(status);
        }
        terminal.note("Waiting for a change; Ctrl-C ends.");
        while watched_files(&engine, &folder) == before {
            std::thread::sleep(WATCH_INTERVAL);
        }
        terminal.line("");
    }
}

/// How often `--watch` looks at the files.
const WATCH_INTERVAL: Duration = Duration::from_millis(300);

fn selected_agents(args: &TestArgs) -> anyhow::Result<Vec<&'static Adapter>> {
    if args.all || args.agent.iter().any(|name| name == "all") {
        return Ok(clients().collect());
    }
    if !args.agent.is_empty() {
        let names = args.agent.iter();
        let mut found = names
            .map(|name| agents::find(name))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let mut seen = HashSet::new();
        found.retain(|adapter| seen.insert(&*adapter.spec.id));
        return Ok(found);
    }
    let machine = install::this_machine()?;
    let is_here =
        |adapter: &&'static Adapter| DetectedAgent::detect(&machine, adapter).is_present();
    let here: Vec<&'static Adapter> = clients().filter(is_here).collect();
    Ok(if here.is_empty() {
        clients().collect()
    } else {
        here
    })
}

/// The manifests, and the files beside them and in their commands, with their times.
fn watched_files(engine: &Engine, folder: &Path) -> Vec<(PathBuf, Option<SystemTime>)> {
    let mut files: Vec<PathBuf> = Vec::new();
    let (hooks, problems) = engine.hooks_in_force(folder);
    files.extend(problems.into_iter().map(|problem| problem.path));
    for one in hooks {
        if let Some(parent) = one.manifest.parent() {
            let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
            files.extend(entries.map(|entry| entry.path()));
        }
        let line = one.hook.handler.command.unwrap_or_default();
        let words = shell::split(&line, Syntax::SCRIPT).words;
        files.extend(words.iter().map(|word| one.root.join(&word.text)));
        files.push(one.manifest);
    }
    files.push(folder.join(PROJECT_FOLDER));
    files.sort();
    files.dedup();
    let time = |path: &PathBuf| path.metadata().and_then(|meta| meta.modified()).ok();
    files
        .into_iter()
        .map(|path| (path.clone(), time(&path)))
        .collect()
}

fn run_once(
    args: &TestArgs,
    engine: &Engine,
    adapters: &[&'static Adapter],
    event: &HookEvent,
    folder: &Path,
    terminal: &Terminal,
) -> anyhow::Result<CommandStatus> {
    let (hooks, problems) = engine.hooks_in_force(folder);
    if !args.json
        && let Some(status) = print_obstacles(&hooks, &problems, terminal)
    {
        return Ok(status);
    }
    let text = folder.to_string_lossy();
    let (sender, receiver) = mpsc::channel();
    let mut calls = std::thread::scope(|scope| {
        for (position, adapter) in adapters.iter().enumerate() {
            let (sender, text) = (sender.clone(), &text);
            scope.spawn(move || {
                let call = simulate(engine, adapter, event, text);
                // The receiver is gone only if another call has failed.
                let _ = sender.send((position, call));
            });
        }
        drop(sender);
        let mut calls = Vec::new();
        for (position, call) in receiver {
            let call = call?;
            if !args.json {
                print_call(&call, &hooks, terminal);
            }
            calls.push((position, call));
        }
        anyhow::Ok(calls)
    })?;
    calls.sort_by_key(|(position, _)| *position);
    let calls: Vec<SimulatedCall> = calls.into_iter().map(|(_, call)| call).collect();
    if args.json {
        terminal.json(&calls)?;
    } else {
        if calls.len() > 1 {
            print_summary(&calls, terminal);
        }
        if calls.iter().all(|call| call.payload.is_null()) {
            terminal.note(&format!(
                "None of these agents has an event like `{}`.",
                event.event
            ));
        } else if calls.iter().all(|call| call.hooks.is_empty()) {
            terminal.note("No hook is for this event; `anyhook explain` shows why.");
        }
    }
    let mut runs = calls.iter().flat_map(|call| &call.hooks);
    let has_failed = runs.any(HookRun::has_failed);
    Ok(CommandStatus::success_if(
        !has_failed && problems.is_empty(),
    ))
}

/// What keeps every hook from running, once instead of once per agent.
fn print_obstacles(
    hooks: &[HookInForce],
    problems: &[LoadProblem],
    terminal: &Terminal,
) -> Option<CommandStatus> {
    for problem in problems {
        let path = problem.path.display();
        terminal.error(&format!(
            "`{path}`: {}; `anyhook validate` shows all mistakes",
            problem.message
        ));
    }
    if hooks.iter().any(HookInForce::is_active) {
        return None;
    }
    let Some(first) = hooks.first() else {
        if problems.is_empty() {
            terminal.error("no hook applies here; `anyhook init` writes a first manifest");
        }
        return Some(CommandStatus::Failure);
    };
    let path = first.manifest.display();
    terminal.error(&match &first.state {
        HookState::Untrusted(why) => {
            format!("`{path}`: {why}, so none of its hooks run; review them with `anyhook trust`")
        }
        HookState::Refused(why) => format!("`{path}`: {why}"),
        _ => format!("`{path}`: none of its hooks run here"),
    });
    Some(CommandStatus::Failure)
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
        let canonical = registry::EVENTS.iter().map(|event| event.name);
        let events = adapters.iter().flat_map(|adapter| &adapter.spec.events);
        let names = canonical.chain(events.map(|event| &*event.native));
        let hint = match suggest::nearest(name, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`anyhook events` lists all events".to_owned(),
        };
        bail!(UsageError(format!("unknown event `{name}`; {hint}")));
    }
    check_tool(&args.tool, adapters)?;
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

/// Refuses a tool whose name is probably a typing error. Any other name may be that of
/// an MCP tool.
fn check_tool(tool: &str, adapters: &[&'static Adapter]) -> anyhow::Result<()> {
    let is_native = |adapter: &&Adapter| adapter.tool_by_native(tool, None).is_some();
    if registry::tool(tool).is_some() || adapters.iter().any(is_native) {
        return Ok(());
    }
    match suggest::nearest(tool, registry::TOOLS.iter().map(|tool| tool.name)) {
        Some(near) => bail!(UsageError(format!(
            "unknown tool `{tool}`; did you mean `{near}`?"
        ))),
        None => Ok(()),
    }
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

fn print_call(call: &SimulatedCall, hooks: &[HookInForce], terminal: &Terminal) {
    let tool = call.native_tool.as_deref();
    let what = [Some(call.native_event.as_str()), tool];
    let what: Vec<&str> = what.into_iter().flatten().collect();
    let (verdict, colour) = call.verdict();
    let head = format!(
        "{}  {}  {}",
        terminal.bold(&call.agent),
        terminal.paint(colour, verdict),
        visible(&what.join(" "))
    );
    terminal.line(head.trim_end());
    let row = |label: &str, text: &str| {
        for (n, line) in text.trim_end().lines().enumerate() {
            let label = if n == 0 { label } else { "" };
            terminal.line(&format!("  {label:<7} {}", visible(line)));
        }
    };
    for run in &call.hooks {
        let outcome = run.outcome_text();
        let message = run.message.as_deref().unwrap_or_default();
        let prefix = format!("hook `{}`: ", run.hook);
        let message = message.strip_prefix(&prefix).unwrap_or(message);
        row("hook", &format!("{}: {outcome} {message}", run.hook));
        let stderr = run.stderr.as_deref().unwrap_or_default().trim();
        if !message.contains(stderr) {
            row("", &format!("stderr: {stderr}"));
        }
        let hook = hooks
            .iter()
            .find(|one| one.label == run.hook && one.manifest.to_string_lossy() == run.manifest);
        for hint in hints::hints(run, hook) {
            row("help", &hint);
        }
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
    let said = |warning: &&String| {
        let mut runs = call.hooks.iter();
        runs.any(|run| {
            let message = run.message.as_deref().unwrap_or_default();
            !message.is_empty() && warning.contains(message.trim())
        })
    };
    for warning in call.warnings.iter().filter(|warning| !said(warning)) {
        row("warning", warning);
    }
    terminal.line("");
}

fn print_summary(calls: &[SimulatedCall], terminal: &Terminal) {
    let rows = calls.iter().map(|call| {
        let (verdict, colour) = call.verdict();
        [
            Cell::painted(colour::BOLD, &call.agent),
            (&call.native_event).into(),
            Cell::painted(colour, verdict),
            (&call.effect).into(),
        ]
    });
    table::print(terminal, ["agent", "event", "result", "effect"], rows);
}
