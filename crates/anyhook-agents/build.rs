//! Finds the agents: every folder of `agents/` with an `agent.toml` is one.
//!
//! A table that does not fit `src/spec.rs` stops the build with its file and
//! line. The output is each table in compact form and a list of the agents with
//! their `quirks.rs`.

#![allow(
    unreachable_pub,
    reason = "shares modules with the crate, where they are public"
)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a build script reports by failing"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, process};

#[path = "src/agent_toml.rs"]
mod agent_toml;
#[path = "src/spec.rs"]
#[allow(dead_code, reason = "the build only reads and writes the structs")]
mod spec;

fn main() {
    let root = env::var("CARGO_MANIFEST_DIR").unwrap();
    let agents = Path::new(&root).join("agents");
    println!("cargo::rerun-if-changed={}", agents.display());
    println!("cargo::rerun-if-changed=src/agent_toml.rs");
    println!("cargo::rerun-if-changed=src/agent_toml");
    println!("cargo::rerun-if-changed=src/spec.rs");
    println!("cargo::rerun-if-changed=src/spec");

    let slugs = find_agents(&agents);
    let texts: Vec<(&str, String)> = slugs
        .iter()
        .map(|slug| {
            let path = agents.join(slug).join("agent.toml");
            println!("cargo::rerun-if-changed={}", path.display());
            (slug.as_str(), fs::read_to_string(&path).unwrap())
        })
        .collect();
    let known: agent_toml::KnownTables<'_> = texts
        .iter()
        .map(|(slug, text)| (*slug, text.as_str()))
        .collect();

    let out = env::var("OUT_DIR").unwrap();
    let mut list = format!(
        "pub(crate) static AGENTS: [CompiledAgent; {}] = [\n",
        slugs.len()
    );
    let mut modules = String::new();
    let mut roots: Vec<String> = Vec::new();
    for slug in &slugs {
        let path = agents.join(slug).join("agent.toml");
        let file = agent_toml::file_name(slug);
        let text = known.get(slug.as_str()).unwrap();
        let agent = agent_toml::parse(&file, text, &known).unwrap_or_else(|message| {
            println!("cargo::error={message}");
            process::exit(1);
        });
        assert_eq!(
            &agent.id, slug,
            "agents/{slug}/agent.toml: `id` must be the folder's name"
        );
        let keep = |name: &str, bytes: Vec<u8>| {
            let path = Path::new(&out).join(format!("{slug}.{name}"));
            fs::write(&path, bytes).unwrap();
            format!("include_bytes!({:?})", path.display().to_string())
        };
        let whole = keep("whole", postcard::to_allocvec(&agent).unwrap());
        let for_run = agent.clone().for_run();
        let run = keep("run", postcard::to_allocvec(&for_run).unwrap());
        let (core, parts) = for_run.split_events();
        let core = keep("core", postcard::to_allocvec(&core).unwrap());
        let events = compiled_events(&parts, keep);
        add_workspace_roots(&agent, &mut roots);
        let event_at = agent.payload.event_at.as_deref().unwrap_or_default();
        let longest_wait = agent.config.handler.longest_wait();

        let quirks_path = agents.join(slug).join("quirks.rs");
        println!("cargo::rerun-if-changed={}", quirks_path.display());
        if quirks_path.is_file() {
            let module = slug.replace('-', "_");
            let path = quirks_path.display().to_string();
            writeln!(modules, "#[path = {path:?}]\nmod {module};").unwrap();
        }
        let quirks = quirks_of(&agent, &agents);
        let source = format!("include_str!({:?})", path.display().to_string());
        let aliases = &agent.aliases;
        let paths: Vec<_> = agent.files.iter().map(|file| &file.path).collect();
        writeln!(
            list,
            "CompiledAgent {{ slug: {slug:?}, aliases: &{aliases:?}, paths: &{paths:?}, whole: LazyTable::new({whole}), run: LazyTable::new({run}), core: {core}, events: {{ static EVENTS: [CompiledEvent; {}] = [{events}]; &EVENTS }}, event_at: {event_at:?}, longest_wait: {longest_wait:?}, quirks: {quirks}, source: {source} }},",
            parts.len(),
        )
        .unwrap();
    }
    list.push_str("];\n");
    writeln!(
        list,
        "pub(crate) static WORKSPACE_ROOTS: &[&str] = &{roots:?};"
    )
    .unwrap();
    let usage = usage_tables(&slugs, &agents);
    writeln!(
        list,
        "pub static USAGE_TABLES: &[(&str, &str)] = &[{usage}];"
    )
    .unwrap();
    fs::write(
        Path::new(&out).join("agents.rs"),
        format!("use crate::{{CompiledAgent, CompiledEvent, LazyTable}};\n{modules}\n{list}"),
    )
    .unwrap();
}

/// The slugs of all agents, sorted.
fn find_agents(agents: &Path) -> Vec<String> {
    let mut slugs: Vec<String> = fs::read_dir(agents)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|slug| agents.join(slug).join("agent.toml").is_file())
        .collect();
    slugs.sort();
    slugs
}

/// The events of an agent as Rust expressions; `keep` stores bytes and returns an
/// expression for them.
fn compiled_events(parts: &[spec::EventPart], keep: impl Fn(&str, Vec<u8>) -> String) -> String {
    let mut events = String::new();
    for (index, part) in parts.iter().enumerate() {
        let bytes = keep(&index.to_string(), postcard::to_allocvec(part).unwrap());
        let event = &part.0;
        let others = event.payload_name.iter().chain(&event.aliases);
        let names: Vec<_> = std::iter::once(&event.native).chain(others).collect();
        write!(
            events,
            "CompiledEvent {{ names: &{names:?}, part: LazyTable::new({bytes}) }}, "
        )
        .unwrap();
    }
    events
}

/// If the working directory is the first of a list, the list has the workspace's roots.
fn add_workspace_roots(agent: &spec::AgentSpec, roots: &mut Vec<String>) {
    let event_rows = agent.events.iter().flat_map(|event| &event.rows);
    let rows = agent.payload.rows.values().flatten().chain(event_rows);
    for row in rows.filter(|row| row.to == "cwd" && row.codec == spec::Codec::First) {
        if !roots.iter().any(|root| *root == row.at) {
            roots.push(row.at.to_string());
        }
    }
}

/// The quirks of an agent; without its own it has those of the one that it extends.
fn quirks_of(agent: &spec::AgentSpec, agents: &Path) -> String {
    let has_quirks = |slug: &&str| agents.join(slug).join("quirks.rs").is_file();
    let own_or_inherited = [Some(&*agent.id), agent.extends.as_deref()];
    match own_or_inherited.into_iter().flatten().find(has_quirks) {
        Some(slug) => format!("&{}::QUIRKS", slug.replace('-', "_")),
        None => "&crate::quirks::NoQuirks".to_owned(),
    }
}

/// Pairs of slug and text of the agents that have a `usage.toml`.
fn usage_tables(slugs: &[String], agents: &Path) -> String {
    let mut tables = String::new();
    for slug in slugs {
        let path = agents.join(slug).join("usage.toml");
        if path.is_file() {
            println!("cargo::rerun-if-changed={}", path.display());
            let path = path.display().to_string();
            write!(tables, "({slug:?}, include_str!({path:?})), ").unwrap();
        }
    }
    tables
}
