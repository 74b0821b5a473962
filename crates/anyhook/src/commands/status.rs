//! `anyhook status`: where anyhook is installed, and when each agent last called it.

use anyhook_codex::map::SOURCE;
use anyhook_codex::state::RunningBridge;
use anyhook_install::status::{AgentStatus, agent_statuses};
use serde_json::Value;

use super::{agents, install};
use crate::cli::CommandStatus;
use crate::render::Terminal;
use crate::table::{self, Cell};

/// Show which agents have anyhook installed and when each last called it
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  anyhook status\n  anyhook status --agent codex --json")]
pub(crate) struct StatusArgs {
    /// Only this agent; repeat for more [default: all agents found]
    #[arg(long, value_name = "AGENT")]
    agent: Vec<String>,
    /// Do not start the agents' programs to get their versions
    #[arg(long)]
    no_versions: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &StatusArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let world = install::world()?;
    let named = agents::find_clients(&args.agent)?;
    let statuses = agent_statuses(&world, &named, !args.no_versions);
    let app_servers = anyhook_codex::state::running_bridges(&world.dirs.state);
    if args.json {
        return terminal.json(&with_app_servers(&statuses, &app_servers)?);
    }
    if statuses.is_empty() && app_servers.is_empty() {
        terminal.line("No agent found, and anyhook is not installed in any agent's config.");
        return Ok(CommandStatus::Success);
    }
    let titles = [
        "agent",
        "scope",
        "installed",
        "events",
        "trusted",
        "version",
        "last event",
    ];
    table::print_unwrapped(terminal, titles, statuses.iter().flat_map(rows));
    for status in &statuses {
        let mut scopes = status.scopes.iter();
        if scopes.any(|scope| scope.installed && !scope.read_here) {
            terminal.note(&format!(
                "{} reads the project's config only in the folder that it is started in: started here it runs no hook of it. Start it in {}, or run `anyhook install --scope user`.",
                status.name,
                world.root.display()
            ));
        }
    }
    if !app_servers.is_empty() {
        terminal.line("");
        let rows = app_servers.iter().map(|bridge| {
            let server = bridge.server.as_deref();
            [
                (&bridge.url).into(),
                server.unwrap_or("not connected").into(),
                bridge.pid.to_string().into(),
                (&bridge.since).into(),
            ]
        });
        table::print_unwrapped(terminal, ["app server", "is", "pid", "since"], rows);
    }
    Ok(CommandStatus::Success)
}

/// The agents, with the app servers that `anyhook codex` is connected to.
fn with_app_servers(
    statuses: &[AgentStatus],
    app_servers: &[RunningBridge],
) -> anyhow::Result<Value> {
    let mut value = serde_json::to_value(statuses)?;
    let row = value.as_array_mut().and_then(|rows| {
        rows.iter_mut()
            .find(|row| row.get("agent").and_then(Value::as_str) == Some(SOURCE))
    });
    if let (Some(Value::Object(row)), false) = (row, app_servers.is_empty()) {
        row.insert("app_servers".to_owned(), serde_json::to_value(app_servers)?);
    }
    Ok(value)
}

/// One row per scope; only the first repeats what applies to the whole agent.
fn rows(status: &AgentStatus) -> Vec<[Cell; 7]> {
    let version = match (&status.version, status.coverage) {
        (None, _) => "-".to_owned(),
        (Some(version), "same" | "unknown") => version.clone(),
        (Some(version), than) => {
            format!("{version} ({than} than the checked {})", status.facts)
        }
    };
    let last = status.last.as_ref().map_or("-".to_owned(), |seen| {
        format!("{} {}", seen.time, seen.event)
    });
    let scopes = status.scopes.iter().enumerate();
    scopes
        .map(|(n, scope)| {
            let first = |text: &str| Cell::from(if n == 0 { text } else { "" });
            let installed = scope.installed;
            let events = format!("{}/{}", scope.events.len(), scope.possible);
            [
                first(&status.agent),
                scope.scope.into(),
                match (installed, scope.read_here) {
                    (true, true) => "yes",
                    (true, false) => "not read here",
                    (false, _) => "no",
                }
                .into(),
                if installed { &events } else { "-" }.into(),
                if installed { scope.trusted } else { "-" }.into(),
                first(&version),
                first(&last),
            ]
        })
        .collect()
}
