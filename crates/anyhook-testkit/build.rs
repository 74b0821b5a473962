//! Finds the reference models: `agents/<slug>/model.rs` of `anyhook-agents`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a build script reports by failing"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    let root = env::var("CARGO_MANIFEST_DIR").unwrap();
    let agents = Path::new(&root).join("../anyhook-agents/agents");
    println!("cargo::rerun-if-changed={}", agents.display());

    let mut slugs: Vec<String> = fs::read_dir(&agents)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|slug| agents.join(slug).join("model.rs").is_file())
        .collect();
    slugs.sort();

    let mut modules = String::new();
    let mut list = String::new();
    for slug in &slugs {
        let path = agents.join(slug).join("model.rs").display().to_string();
        let module = slug.replace('-', "_");
        writeln!(modules, "#[path = {path:?}]\nmod {module};").unwrap();
        writeln!(list, "({slug:?}, {module}::MODEL),").unwrap();
    }
    fs::write(
        Path::new(&env::var("OUT_DIR").unwrap()).join("reference_models.rs"),
        format!(
            "use super::Model;\n{modules}\npub(super) static MODELS: &[(&str, Model)] = &[\n{list}];\n"
        ),
    )
    .unwrap();
}
