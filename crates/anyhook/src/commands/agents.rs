//! `anyhook agents`: what anyhook knows about each agent, and which are installed here.

use std::path::{Path, PathBuf};

use anyhook_agents::matrix::{Support, clients};
use anyhook_agents::{Adapter, own};
use anyhook_install::Machine;
use anyhook_model::registry::{CAPABILITIES, EVENTS, TOOLS};
use anyhook_model::suggest;
use anyhook_run::agent::own::read_table;
use anyhow::bail;
use serde_json::{Value, json};

use super::install;
use crate::cli::{CommandStatus, UsageError};
use crate::diagnostics::TableCheck;
use crate::render::Terminal;
use crate::table;

/// List the supported agents and which are installed here
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook agents\n  anyhook agents cursor\n  anyhook agents --json\n  anyhook agents check ~/.config/anyhook/agents/mine/agent.toml",
    args_conflicts_with_subcommands = true
)]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    command: Option<AgentsCommand>,
    /// Show everything about one agent
    agent: Option<String>,
    /// Print JSON: the whole matrix of events, tools and capabilities
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum AgentsCommand {
    /// Check the table of an agent of your own
    #[command(
        after_help = "Example:\n  anyhook agents check ~/.config/anyhook/agents/mine/agent.toml"
    )]
    Check {
        /// An `agent.toml`; the name of its folder is the agent's
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// An agent by slug or alias; the error suggests a similar name.
pub(crate) fn find(name: &str) -> anyhow::Result<&'static Adapter> {
    anyhook_agents::get(name).ok_or_else(|| {
        let slugs: Vec<&str> = clients().map(|adapter| &*adapter.spec.id).collect();
        let usage = |message: String| anyhow::Error::new(UsageError(message));
        let starts_alike = || {
            let mut longer = slugs.iter().filter(|slug| slug.starts_with(name));
            longer
                .next()
                .filter(|_| name.len() >= MIN_PREFIX_CHARS)
                .copied()
        };
        match suggest::nearest(name, anyhook_agents::names()).or_else(starts_alike) {
            Some(near) => usage(format!("unknown agent `{name}`; did you mean `{near}`?")),
            None => usage(format!(
                "unknown agent `{name}`; the agents are {}",
                slugs.join(", ")
            )),
        }
    })
}

/// A shorter name is not taken for the beginning of an agent's.
const MIN_PREFIX_CHARS: usize = 3;

/// The named agents, each once; hook formats that are not agents are refused.
pub(crate) fn find_clients(names: &[String]) -> anyhow::Result<Vec<&'static Adapter>> {
    let mut adapters: Vec<&'static Adapter> = Vec::new();
    for name in names {
        let adapter = find(name)?;
        if adapter.spec.pseudo {
            bail!("`{name}` is a hook format, not an agent");
        }
        if !adapters
            .iter()
            .any(|other| other.spec.id == adapter.spec.id)
        {
            adapters.push(adapter);
        }
    }
    Ok(adapters)
}

pub(crate) fn run(args: &AgentsArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    if let Some(AgentsCommand::Check { file, json }) = &args.command {
        return check(file, *json, terminal);
    }
    let world = install::this_machine()?;
    if let Some(name) = &args.agent {
        let adapter = find(name)?;
        if args.json {
            return terminal.json(&described(adapter, &world));
        }
        print_agent(adapter, terminal);
        return Ok(CommandStatus::Success);
    }
    if args.json {
        let all: Vec<Value> = clients()
            .map(|adapter| described(adapter, &world))
            .collect();
        return terminal.json(&all);
    }
    let titles = [
        "agent",
        "name",
        "found at",
        "checked version",
        "checked by",
        "events",
        "rewrites input",
    ];
    let rows = clients().map(|adapter| {
        let spec = &adapter.spec;
        let native = spec.events.iter().filter(|event| !event.read_only).count();
        let is_supported = |name: &str| adapter.events_of(name).next().is_some();
        let canonical = EVENTS.iter().filter(|event| is_supported(event.name));
        let rewrites = adapter.capability("input_rewrite") == Support::Yes;
        [
            (&spec.id).into(),
            (&spec.name).into(),
            found_at(adapter, &world).as_deref().unwrap_or("-").into(),
            (&spec.verified.version).into(),
            spec.verified.how.to_string().into(),
            format!("{native} ({} canonical)", canonical.count()).into(),
            if rewrites { "yes" } else { "" }.into(),
        ]
    });
    table::print_at_margin(terminal, titles, rows);
    Ok(CommandStatus::Success)
}

/// What is wrong with a user's own table, or what it describes.
fn check(file: &Path, as_json: bool, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let table = std::path::absolute(file).map_err(|error| error.to_string());
    let table = table.and_then(|file| read_table(&file));
    let read = table.and_then(|table| Ok((own::read_own_table(&table)?, table.file)));
    let (agent, problems) = match read {
        Ok((agent, file)) => {
            let gaps = own::gaps(&agent).into_iter();
            let problems = gaps.map(|gap| format!("{file}: {gap}")).collect();
            (Some(agent), problems)
        }
        Err(problem) => (None, vec![problem]),
    };
    let status = if problems.is_empty() {
        CommandStatus::Success
    } else {
        CommandStatus::Failure
    };
    if as_json {
        terminal.json(&TableCheck {
            agent: agent.as_ref().map(|agent| &*agent.id),
            diagnostics: &problems,
        })?;
        return Ok(status);
    }
    for problem in &problems {
        terminal.error(problem);
    }
    if let Some(agent) = agent.filter(|_| problems.is_empty()) {
        let extends = agent.extends.as_deref();
        terminal.line(&format!(
            "`{}` can be used: {} events, {} tools{}",
            agent.id,
            agent.events.len(),
            agent.tools.len(),
            extends.map_or(String::new(), |base| format!(", extends `{base}`")),
        ));
    }
    Ok(status)
}

fn described(adapter: &'static Adapter, world: &Machine) -> Value {
    let mut value = adapter.describe();
    if let Value::Object(map) = &mut value {
        map.insert("here".into(), json!(found_at(adapter, world)));
    }
    value
}

/// The agent's program or folder on this machine.
fn found_at(adapter: &Adapter, world: &Machine) -> Option<String> {
    let detect = &adapter.spec.detect;
    let mut programs = detect
        .binary
        .iter()
        .flat_map(|name| world.programs_on_path(name));
    if let Some(program) = programs.next() {
        return Some(program.display().to_string());
    }
    let mut folders = detect.folders.iter();
    let is_here = |folder: &str| {
        world
            .expand_path(folder, None)
            .is_some_and(|path| path.is_dir())
    };
    let folder = folders.find(|folder| is_here(folder))?;
    Some(folder.to_string())
}

fn print_agent(adapter: &Adapter, terminal: &Terminal) {
    let spec = &adapter.spec;
    terminal.line(&format!(
        "{} ({})\n{}\n{}",
        spec.name, spec.id, spec.summary, spec.homepage
    ));
    terminal.line(&format!(
        "checked with version {} on {} by {}\n",
        spec.verified.version, spec.verified.date, spec.verified.how
    ));
    let files = spec.files.iter().map(|file| {
        [
            file.scope.to_string().into(),
            (&file.path).into(),
            if file.write { "written" } else { "" }.into(),
        ]
    });
    table::print_at_margin(terminal, ["scope", "file", ""], files);
    let events = EVENTS.iter().map(|event| {
        let native: Vec<String> = adapter
            .events_of(event.name)
            .filter(|event| !event.read_only)
            .map(|event| format!("{} ({})", event.native, event.blocking))
            .collect();
        let absent = adapter.absent_event_note(event.name);
        let absent = absent.map(|note| format!("- {note}"));
        [
            event.name.into(),
            absent.unwrap_or_else(|| native.join(", ")).into(),
        ]
    });
    terminal.line("");
    table::print_at_margin(terminal, ["event", "native"], events);
    let tools = TOOLS.iter().map(|tool| {
        let native = spec.absent.tools.get(tool.name).map_or_else(
            || adapter.native_names(tool.name).join(", "),
            |why| format!("- {why}"),
        );
        [tool.name.into(), native.into()]
    });
    terminal.line("");
    table::print_at_margin(terminal, ["tool", "native"], tools);
    let capabilities = CAPABILITIES.iter().map(|capability| {
        let support = match adapter.capability(capability.name) {
            Support::Yes => "yes".into(),
            Support::No => "no".into(),
            Support::Partly(how) => how.into(),
        };
        [capability.name.into(), support]
    });
    terminal.line("");
    table::print_at_margin(terminal, ["capability", ""], capabilities);
    for hazard in &spec.hazards {
        terminal.line(&format!(
            "\n! {} {}.\n  {}",
            hazard.what, hazard.why, hazard.remedy
        ));
    }
}
