//! Finds the agents: every folder of `agents/` with an `agent.toml` is one.
//!
//! A table that does not fit `src/spec.rs` stops the build with its file and
//! line. What comes out is one compact form per agent and a list of the
//! `quirks.rs` that some of them have.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a build script reports by failing"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, process};

#[path = "src/spec.rs"]
#[allow(dead_code, reason = "the build only reads and writes the structs")]
mod spec;

fn main() {
    let root = env::var("CARGO_MANIFEST_DIR").unwrap();
    let agents = Path::new(&root).join("agents");
    println!("cargo::rerun-if-changed={}", agents.display());
    println!("cargo::rerun-if-changed=src/spec.rs");
    println!("cargo::rerun-if-changed=src/spec");

    let mut slugs: Vec<String> = fs::read_dir(&agents)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|slug| agents.join(slug).join("agent.toml").is_file())
        .collect();
    slugs.sort();

    let out = env::var("OUT_DIR").unwrap();
    let mut list = String::from("pub(crate) static RAW: &[Raw] = &[\n");
    let mut modules = String::new();
    for slug in &slugs {
        let path = agents.join(slug).join("agent.toml");
        println!("cargo::rerun-if-changed={}", path.display());
        let text = fs::read_to_string(&path).unwrap();
        let agent: spec::Agent = toml::from_str(&text).unwrap_or_else(|error| {
            let line = error.span().map_or(1, |span| {
                text.get(..span.start)
                    .unwrap_or_default()
                    .matches('\n')
                    .count()
                    + 1
            });
            eprintln!("agents/{slug}/agent.toml:{line}: {}", error.message());
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
        let (core, parts) = for_run.apart();
        let core = keep("core", postcard::to_allocvec(&core).unwrap());
        let mut events = String::new();
        for (index, part) in parts.iter().enumerate() {
            let bytes = keep(&index.to_string(), postcard::to_allocvec(part).unwrap());
            let event = &part.0;
            let names: Vec<String> = std::iter::once(&event.native)
                .chain(&event.payload_name)
                .chain(&event.aliases)
                .map(|name| format!("{name:?}"))
                .collect();
            write!(events, "(&[{}], {bytes}), ", names.join(", ")).unwrap();
        }
        let event_at = agent.payload.event_at.as_deref().unwrap_or_default();

        let quirks_path = agents.join(slug).join("quirks.rs");
        println!("cargo::rerun-if-changed={}", quirks_path.display());
        let quirks = if quirks_path.is_file() {
            let module = slug.replace('-', "_");
            writeln!(
                modules,
                "#[path = {:?}]\nmod {module};",
                quirks_path.display().to_string()
            )
            .unwrap();
            format!("&{module}::QUIRKS")
        } else {
            "&crate::quirks::NoQuirks".to_owned()
        };
        let aliases: Vec<String> = agent
            .aliases
            .iter()
            .map(|alias| format!("{alias:?}"))
            .collect();
        let paths: Vec<String> = agent
            .files
            .iter()
            .map(|file| format!("{:?}", file.path))
            .collect();
        writeln!(
            list,
            "Raw {{ slug: {slug:?}, aliases: &[{}], paths: &[{}], whole: {whole}, run: {run}, core: {core}, events: &[{events}], event_at: {event_at:?}, quirks: {quirks} }},",
            aliases.join(", "),
            paths.join(", "),
        )
        .unwrap();
    }
    list.push_str("];\n");
    fs::write(
        Path::new(&out).join("agents.rs"),
        format!("use crate::Raw;\n{modules}\n{list}"),
    )
    .unwrap();
}
