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
        let whole = Path::new(&out).join(format!("{slug}.whole"));
        fs::write(&whole, postcard::to_allocvec(&agent).unwrap()).unwrap();
        let run = Path::new(&out).join(format!("{slug}.run"));
        fs::write(
            &run,
            postcard::to_allocvec(&agent.clone().for_run()).unwrap(),
        )
        .unwrap();

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
        writeln!(
            list,
            "Raw {{ slug: {slug:?}, aliases: &[{}], whole: include_bytes!({:?}), run: include_bytes!({:?}), quirks: {quirks} }},",
            aliases.join(", "),
            whole.display().to_string(),
            run.display().to_string(),
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
