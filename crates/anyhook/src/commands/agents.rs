//! `anyhook agents`: what is known of each agent, and what is here.

use std::path::{Path, PathBuf};

use anyhook_agents::Adapter;
use anyhook_agents::matrix::{Support, clients};
use anyhook_model::registry::{CAPABILITIES, EVENTS, TOOLS};
use anyhook_model::suggest;
use anyhow::anyhow;
use serde_json::{Value, json};

use crate::cli::Verdict;
use crate::render::Terminal;

/// List the agents: what is known of each, and which are here
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook agents\n  anyhook agents cursor\n  anyhook agents --json"
)]
pub struct Args {
    /// One agent in full
    agent: Option<String>,
    /// Print JSON: the whole matrix of events, tools and capabilities
    #[arg(long)]
    json: bool,
}

/// An agent by slug or alias, with a hint where there is none.
pub fn find(name: &str) -> anyhow::Result<&'static Adapter> {
    anyhook_agents::get(name).ok_or_else(|| {
        let slugs: Vec<&str> = anyhook_agents::slugs().collect();
        let hint = suggest::nearest(name, slugs.iter().copied())
            .map(|near| format!("; did you mean `{near}`?"))
            .unwrap_or_default();
        anyhow!(
            "there is no agent `{name}`{hint} There are: {}",
            slugs.join(", ")
        )
    })
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Verdict> {
    if let Some(name) = &args.agent {
        let adapter = find(name)?;
        if args.json {
            terminal.json(&described(adapter))?;
        } else {
            one(adapter, terminal);
        }
        return Ok(Verdict::Good);
    }
    if args.json {
        let all: Vec<Value> = clients().map(described).collect();
        terminal.json(&json!({ "agents": all }))?;
        return Ok(Verdict::Good);
    }
    let rows: Vec<Vec<String>> = clients()
        .map(|adapter| {
            let spec = &adapter.spec;
            let native = spec.events.iter().filter(|event| !event.read_only).count();
            let canonical = EVENTS
                .iter()
                .filter(|event| adapter.events_of(event.name).next().is_some())
                .count();
            vec![
                spec.id.to_string(),
                spec.name.to_string(),
                here(adapter).unwrap_or_else(|| "-".into()),
                spec.verified.version.to_string(),
                spec.verified.how.to_string(),
                format!("{native} ({canonical} canonical)"),
                if adapter.capability("input_rewrite") == Support::Yes {
                    "yes"
                } else {
                    ""
                }
                .to_owned(),
            ]
        })
        .collect();
    terminal.table(
        &[
            "agent",
            "name",
            "here",
            "facts of",
            "checked by",
            "events",
            "rewrites input",
        ],
        &rows,
    );
    Ok(Verdict::Good)
}

fn described(adapter: &'static Adapter) -> Value {
    let mut value = adapter.describe();
    if let Value::Object(map) = &mut value {
        map.insert("here".into(), json!(here(adapter)));
    }
    value
}

/// Where the agent is seen on this machine: its program, or its folder.
pub fn here(adapter: &Adapter) -> Option<String> {
    let detect = &adapter.spec.detect;
    let program = detect.binary.iter().find_map(|name| on_path(name));
    program.or_else(|| {
        let folder = detect
            .folders
            .iter()
            .find(|folder| expand(folder).is_some_and(|path| path.is_dir()))?;
        Some(folder.to_string())
    })
}

fn on_path(name: &str) -> Option<String> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .map(|file| file.display().to_string())
}

fn expand(path: &str) -> Option<PathBuf> {
    match path.strip_prefix("~/") {
        Some(rest) => Some(Path::new(&std::env::var_os("HOME")?).join(rest)),
        None => Some(PathBuf::from(path)),
    }
}

fn one(adapter: &Adapter, terminal: &Terminal) {
    let spec = &adapter.spec;
    terminal.line(&format!(
        "{} ({})\n{}\n{}",
        spec.name, spec.id, spec.summary, spec.homepage
    ));
    terminal.line(&format!(
        "facts of {}, {}, checked by: {}\n",
        spec.verified.version, spec.verified.date, spec.verified.how
    ));
    let files: Vec<Vec<String>> = spec
        .files
        .iter()
        .map(|file| {
            vec![
                format!("{:?}", file.scope).to_lowercase(),
                file.path.to_string(),
                if file.write { "written" } else { "" }.to_owned(),
            ]
        })
        .collect();
    terminal.table(&["scope", "file", ""], &files);
    let events: Vec<Vec<String>> = EVENTS
        .iter()
        .map(|event| {
            let native: Vec<String> = adapter
                .events_of(event.name)
                .filter(|event| !event.read_only)
                .map(|event| format!("{} ({})", event.native, event.blocking.as_str()))
                .collect();
            let absent = spec
                .absent
                .events
                .get(event.name)
                .map(|why| format!("- {why}"));
            vec![
                event.name.to_owned(),
                absent.unwrap_or_else(|| native.join(", ")),
            ]
        })
        .collect();
    terminal.line("");
    terminal.table(&["event", "native"], &events);
    let tools: Vec<Vec<String>> = TOOLS
        .iter()
        .map(|tool| {
            vec![
                tool.name.to_owned(),
                spec.absent.tools.get(tool.name).map_or_else(
                    || adapter.native_names(tool.name).join(", "),
                    |why| format!("- {why}"),
                ),
            ]
        })
        .collect();
    terminal.line("");
    terminal.table(&["tool", "native"], &tools);
    let capabilities: Vec<Vec<String>> = CAPABILITIES
        .iter()
        .map(|one| {
            let support = match adapter.capability(one.name) {
                Support::Yes => "yes".to_owned(),
                Support::No => "no".to_owned(),
                Support::Partly(how) => how,
            };
            vec![one.name.to_owned(), support]
        })
        .collect();
    terminal.line("");
    terminal.table(&["capability", ""], &capabilities);
    for hazard in &spec.hazards {
        terminal.line(&format!(
            "\n! {} {}.\n  {}",
            hazard.what, hazard.why, hazard.remedy
        ));
    }
}
