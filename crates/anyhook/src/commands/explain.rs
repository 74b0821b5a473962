//! `anyhook explain`: what an agent's payload means, and which hooks it would
//! start. Nothing runs.

use std::io::{self, IsTerminal, Read};

use anyhook_model::HookEvent;
use anyhook_run::Engine;
use anyhook_run::agent;
use anyhook_run::engine::Explained;
use anyhow::{Context, anyhow, bail};
use serde::Serialize;

use crate::cli::Verdict;
use crate::columns::{self, Cell};
use crate::commands::agents;
use crate::render::Terminal;

/// Explain a payload: the event it is, which hooks match, and why others do not
///
/// Nothing is run and nothing is recorded.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook explain --agent claude-code < payload.json\n  \
                        anyhook explain --json < payload.json"
)]
pub struct Args {
    /// The agent that sent it; recognised by the payload when absent
    #[arg(long)]
    agent: Option<String>,
    /// The agent's own name of the event, when the payload does not say
    #[arg(long)]
    event: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    agent: String,
    /// What gave the agent away.
    why: String,
    event: HookEvent,
    hooks: Vec<Explained>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    troubles: Vec<String>,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Verdict> {
    if let Some(name) = &args.agent {
        agents::find(name)?;
    }
    let payload = payload()?;
    let (agent, why) =
        agent::resolve(args.agent.as_deref(), &payload).map_err(|why| anyhow!(why))?;
    let decoded = agent
        .decode(&payload, args.event.as_deref())
        .map_err(|why| anyhow!(why))?;
    let (hooks, troubles) = Engine::from_env().explain(&decoded.event);
    let troubles: Vec<String> = troubles
        .iter()
        .map(|trouble| {
            format!(
                "{} is not used: {}",
                trouble.path.display(),
                trouble.message
            )
        })
        .collect();
    let verdict = if troubles.is_empty() {
        Verdict::Good
    } else {
        Verdict::Findings
    };
    let report = Report {
        agent: agent.slug().to_owned(),
        why,
        event: decoded.event,
        hooks,
        troubles,
    };
    if args.json {
        terminal.json(&report)?;
    } else {
        show(&report, terminal)?;
    }
    Ok(verdict)
}

/// The payload on stdin.
pub fn payload() -> anyhow::Result<Vec<u8>> {
    if io::stdin().is_terminal() {
        bail!("the payload is expected on stdin, like `< payload.json`");
    }
    let mut payload = Vec::new();
    io::stdin()
        .lock()
        .read_to_end(&mut payload)
        .context("the payload cannot be read")?;
    Ok(payload)
}

fn show(report: &Report, terminal: &Terminal) -> anyhow::Result<()> {
    let event = &report.event;
    terminal.line(&format!(
        "{} ({}) sent {}, which is {}:\n",
        terminal.bold(&report.agent),
        report.why,
        terminal.bold(&event.native_event),
        terminal.bold(&event.event),
    ));
    terminal.line(&serde_json::to_string_pretty(event)?);
    terminal.line("");
    let rows: Vec<Vec<Cell>> = report
        .hooks
        .iter()
        .map(|line| {
            let runs = if line.matches {
                Cell::painted("32", "runs")
            } else {
                Cell::painted("2", "no")
            };
            vec![
                runs,
                Cell::plain(&line.hook),
                Cell::plain(&line.why),
                Cell::painted("2", &line.manifest),
            ]
        })
        .collect();
    if rows.is_empty() {
        terminal.line("There is no hook: no manifest applies in the event's folder.");
    } else {
        columns::print(terminal, &["", "hook", "because", "manifest"], &rows);
    }
    for trouble in &report.troubles {
        terminal.note(trouble);
    }
    if std::env::var_os("ANYHOOK").is_some_and(|value| value == "0") {
        terminal.note("ANYHOOK=0 is set: no hook would run at all");
    }
    Ok(())
}
