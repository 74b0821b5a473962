//! `anyhook status`: where anyhook is installed, and when each agent last called it.

use std::fmt;
use std::path::Path;

use anyhook_codex::map::SOURCE;
use anyhook_codex::state::RunningBridge;
use anyhook_daemon::source_file;
use anyhook_install::status::{AgentStatus, agent_statuses};
use anyhook_run::record::journal::Journal;
use anyhook_store::journal::JournalImporter;
use anyhook_store::{StoreError, UpgradeProgress};
use serde_json::Value;

use super::log::event_log;
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
    let world = install::this_machine()?;
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
        "agent trusts it",
        "version",
        "last event",
    ];
    table::print_at_margin(terminal, titles, statuses.iter().flat_map(rows));
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
    match StoreLag::measure(&world.dirs.state) {
        Ok(None) => {}
        Ok(Some(lag)) => terminal.note(&lag.to_string()),
        Err(error) => terminal.note(&format!(
            "Nothing can be stored now, the journal keeps it: {error}."
        )),
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
        table::print_at_margin(terminal, ["app server", "is", "pid", "since"], rows);
    }
    Ok(CommandStatus::Success)
}

/// What this machine's store lacks.
struct StoreLag {
    behind_bytes: u64,
    upgrade: Option<UpgradeProgress>,
}

impl StoreLag {
    /// `None` if there is no store, or it lacks next to nothing.
    fn measure(state: &Path) -> Result<Option<Self>, StoreError> {
        const WORTH_A_WORD_BYTES: u64 = 16 << 20;
        let Some(address) = event_log::own_store(state) else {
            return Ok(None);
        };
        let store = anyhook_store::open(&address)?;
        let Ok(source) = source_file(&state.join(event_log::JOURNAL_ID_FILE)) else {
            return Ok(None);
        };
        let importer = JournalImporter::new(Journal::new(state).folder(), source);
        let lag = Self {
            behind_bytes: importer.unread_bytes(&*store)?,
            upgrade: store.upgrade_progress()?,
        };
        let is_worth_a_word = lag.behind_bytes >= WORTH_A_WORD_BYTES || lag.upgrade.is_some();
        Ok(is_worth_a_word.then_some(lag))
    }
}

impl fmt::Display for StoreLag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = self.behind_bytes / 1_000_000;
        write!(f, "The store is {megabytes} MB behind the journal")?;
        if let Some(UpgradeProgress { done, left }) = self.upgrade {
            let percent = done * 100 / (done + left).max(1);
            write!(f, " and {percent} % moved to the layout of this version")?;
        }
        write!(f, "; a running `anyhook serve` catches up.")
    }
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
