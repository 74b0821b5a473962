//! `anyhook explain`: what an agent's payload means and which hooks it would
//! run. Runs nothing.

use std::io::{self, IsTerminal, Read};

use anyhook_guard::ShellKind;
use anyhook_model::HookEvent;
use anyhook_run::Engine;
use anyhook_run::agent;
use anyhook_run::config::discover::LoadProblem;
use anyhook_run::engine::HookExplanation;
use anyhow::{Context, Error, bail};
use serde::Serialize;

use crate::cli::CommandStatus;
use crate::commands::agents;
use crate::commands::check::{self, CheckResult};
use crate::diagnostics::unused_files;
use crate::render::{Terminal, colour};
use crate::table::{self, Cell};

/// Show which event a payload is, which hooks match it and why others do not
///
/// Runs nothing and records nothing.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook explain --agent claude-code < payload.json\n  \
                        anyhook explain --json < payload.json\n  \
                        anyhook explain --command 'git push --force'"
)]
pub(crate) struct ExplainArgs {
    /// The agent that sent the payload [default: detected from the payload]
    #[arg(long)]
    agent: Option<String>,
    /// The agent's name for the event, if the payload does not contain it
    #[arg(long)]
    event: Option<String>,
    /// Explain a shell command in the current folder instead of a payload
    #[arg(long, conflicts_with_all = ["agent", "event"])]
    command: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Explanation {
    agent: String,
    /// How the agent was recognized.
    why: String,
    event: HookEvent,
    hooks: Vec<HookExplanation>,
    #[serde(
        rename = "diagnostics",
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "unused_files"
    )]
    troubles: Vec<String>,
    /// What the guards say about a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<CheckResult>,
}

pub(crate) fn run(args: &ExplainArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let (event, agent, why) = match &args.command {
        Some(command) => {
            let event = check::shell_event(command, check::shell_kind(None))?;
            let agent = event.source.clone();
            (event, agent, "--command".to_owned())
        }
        None => event_from_stdin(args.agent.as_deref(), args.event.as_deref())?,
    };
    let check = args.command.as_ref();
    let check = check.map(|_| check::judge(&event, Some(ShellKind::Posix), None));
    let engine = Engine::from_env();
    let (hooks, troubles) = engine.explain(&event);
    let mut troubles: Vec<String> = troubles.iter().map(unused_file).collect();
    troubles.extend(engine.lost_guards(&event));
    let explanation = Explanation {
        agent,
        why,
        event,
        hooks,
        troubles,
        check,
    };
    if args.json {
        terminal.json(&explanation)?;
    } else {
        explanation.print(terminal)?;
    }
    Ok(CommandStatus::success_if(explanation.troubles.is_empty()))
}

/// Why a manifest or policy is not used.
pub(crate) fn unused_file(trouble: &LoadProblem) -> String {
    let path = trouble.path.display();
    format!("{path} is not used: {}", trouble.message)
}

/// Decodes the payload on stdin: its event, the agent's slug and how it was recognized.
pub(crate) fn event_from_stdin(
    agent: Option<&str>,
    event: Option<&str>,
) -> anyhow::Result<(HookEvent, String, String)> {
    if let Some(name) = agent {
        agents::find(name)?;
    }
    let payload = payload_from_stdin()?;
    let (agent, why) = agent::resolve(agent, &payload).map_err(Error::msg)?;
    let decoded = agent.decode(&payload, event).map_err(Error::msg)?;
    Ok((decoded.or_current_dir().event, agent.slug().to_owned(), why))
}

pub(crate) fn payload_from_stdin() -> anyhow::Result<Vec<u8>> {
    if io::stdin().is_terminal() {
        bail!("pass the payload on stdin, for example `< payload.json`");
    }
    let mut payload = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut payload);
    read.context("could not read the payload")?;
    Ok(payload)
}

impl Explanation {
    fn print(&self, terminal: &Terminal) -> anyhow::Result<()> {
        let event = &self.event;
        if self.check.is_some() {
            let name = terminal.bold(&event.event);
            terminal.line(&format!(
                "An agent would ask before this command, with {name}:\n"
            ));
        } else {
            terminal.line(&format!(
                "{} ({}) sent {}, which is {}:\n",
                terminal.bold(&self.agent),
                self.why,
                terminal.bold(&event.native_event),
                terminal.bold(&event.event),
            ));
        }
        terminal.line(&serde_json::to_string_pretty(event)?);
        terminal.line("");
        let rows = self.hooks.iter().map(|hook| {
            let runs = if hook.matches {
                Cell::painted(colour::GREEN, "runs")
            } else {
                Cell::painted(colour::DIM, "no")
            };
            let trusted = hook.trusted_in.as_ref().map(|path| {
                format!(
                    "{}; trusted for the repository in {}",
                    hook.why,
                    path.display()
                )
            });
            [
                runs,
                (&hook.hook).into(),
                trusted.as_ref().unwrap_or(&hook.why).into(),
                Cell::painted(colour::DIM, &hook.manifest),
            ]
        });
        if self.hooks.is_empty() {
            terminal.line("No hooks: no manifest applies in the event's folder.");
        } else {
            table::print(terminal, ["", "hook", "because", "manifest"], rows);
        }
        if let Some(check) = &self.check {
            terminal.line("");
            check.print(terminal);
        }
        for trouble in &self.troubles {
            terminal.note(trouble);
        }
        if anyhook_util::env::ANYHOOK.is("0") {
            terminal.note("ANYHOOK=0 is set: no hook would run");
        }
        Ok(())
    }
}
