//! `anyhook guard`: a built-in guard as a program, for whatever does not run it in
//! its own process.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use anyhook_guard::{CommandReadings, definitions};
use anyhook_model::{HookEvent, Scope};
use anyhook_run::agent;
use anyhook_run::config::discover::{Dirs, discover};
use anyhook_run::run::exec::command::CommandContext;
use anyhook_run::run::guard::{
    GuardCommand, agent_files, error_text, guard_context, judge_knowing_spend,
};
use anyhow::{Context as _, Error};
use serde_json::json;

use crate::cli::CommandStatus;
use crate::commands::explain::payload_from_stdin;
use crate::render::Terminal;
use crate::table;

/// Judge a tool call with a built-in guard, or list the guards
///
/// In a manifest, `command: anyhook guard NAME` runs inside `anyhook run`, without
/// a process. As a program it reads the canonical event, or the payload of any
/// agent, on stdin and answers in the same format: a denial, a question, or
/// nothing. A guard that cannot be used exits with 1.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook guard\n  anyhook guard git < event.json\n  \
                  anyhook guard paths --read-only '*.lock' < event.json"
)]
pub(crate) struct GuardArgs {
    /// The guard and its options; without a name, the guards are listed
    #[arg(
        value_name = "NAME",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    words: Vec<String>,
}

pub(crate) fn run(args: &GuardArgs, terminal: &Terminal) -> anyhow::Result<u8> {
    if let [] | ["--json"] = args.words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        list(!args.words.is_empty(), terminal)?;
        return Ok(CommandStatus::Success as u8);
    }
    let cwd = std::env::current_dir().context("could not read the current folder")?;
    let place = CommandContext {
        scope: Scope::Project,
        root: &cwd,
        folder: &cwd,
        cwd: &cwd,
    };
    let command = GuardCommand {
        words: args.words.clone(),
    };
    let guard = command.parse(place);
    let guard = guard.map_err(|error| Error::msg(error_text(&error)))?;
    if io::stdin().is_terminal() {
        anyhow::bail!("pass the event on stdin, for example `< event.json`");
    }
    let payload = payload_from_stdin()?;
    let call = Call::decode(&payload)?;
    let dirs = Dirs::from_env();
    let folder = call.event.cwd.as_deref().map_or(cwd.as_path(), Path::new);
    let mut context = guard_context(&dirs, &project_root(&dirs, folder));
    context.agent_files = agent_files();
    let readings = CommandReadings::default();
    let finding = judge_knowing_spend(&guard, &call.event, context, &dirs, &readings);
    let finding = finding.map_err(Error::msg)?;
    let response = finding.map(|finding| finding.to_response());
    match call.agent {
        None => {
            if let Some(response) = response {
                terminal.line(&serde_json::to_string(&response)?);
            }
            Ok(CommandStatus::Success as u8)
        }
        Some(agent) => {
            let (answer, _) =
                agent.render(&call.event, &response.unwrap_or_default(), call.can_ask);
            terminal.text(&answer.stdout);
            if !answer.stderr.is_empty() {
                terminal.note(answer.stderr.trim_end());
            }
            Ok(u8::try_from(answer.exit).unwrap_or(CommandStatus::Failure as u8))
        }
    }
}

fn project_root(dirs: &Dirs, folder: &Path) -> PathBuf {
    discover(dirs, folder).root
}

/// A call on stdin, and the agent whose format it has; `None`: canonical.
struct Call {
    event: HookEvent,
    agent: Option<Box<dyn agent::Agent>>,
    can_ask: bool,
}

impl Call {
    fn decode(payload: &[u8]) -> anyhow::Result<Self> {
        if let Ok(event) = serde_json::from_slice::<HookEvent>(payload) {
            return Ok(Self {
                event,
                agent: None,
                can_ask: true,
            });
        }
        if payload.trim_ascii().is_empty() {
            anyhow::bail!("nothing came on stdin; pass the event, for example `< event.json`");
        }
        if let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(payload) {
            anyhow::bail!("the event on stdin is not JSON: {error}");
        }
        let (agent, _) = agent::resolve(None, payload).map_err(Error::msg)?;
        let decoded = agent.decode(payload, None).map_err(Error::msg)?;
        let decoded = decoded.or_current_dir();
        Ok(Self {
            event: decoded.event,
            can_ask: decoded.can_ask,
            agent: Some(agent),
        })
    }
}

fn list(json: bool, terminal: &Terminal) -> anyhow::Result<()> {
    if json {
        let guards = definitions().iter().map(|guard| {
            let options = guard.options.iter().map(|option| {
                json!({"name": option.name, "value": option.value, "summary": option.summary,
                    "repeatable": option.repeatable})
            });
            json!({"name": guard.name, "summary": guard.summary,
                "options": options.collect::<Vec<_>>(), "catches": guard.catches,
                "misses": guard.misses})
        });
        terminal.json(&guards.collect::<Vec<_>>())?;
        return Ok(());
    }
    let rows = definitions().iter().map(|guard| {
        let options = guard.options.iter().map(|option| option.name);
        let options = options.collect::<Vec<_>>().join(" ");
        [guard.name.into(), guard.summary.into(), options.into()]
    });
    table::print(terminal, ["guard", "about", "options"], rows);
    Ok(())
}
