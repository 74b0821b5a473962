//! The rules of ARCHITECTURE.md about names, module files and the crate graph.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::{code_lines, sources};
use crate::root;

/// How often a type name may be defined in the workspace.
const MAX_DEFINITIONS: usize = 2;

/// Function names that say neither what is returned nor what is done.
const VAGUE_FUNCTIONS: [&str; 6] = ["of", "read", "place", "tell", "ask", "look"];

/// Names and texts of the product crates' sources.
fn product_sources() -> Vec<(std::path::PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join("crates"))
        .into_iter()
        .flatten()
        .flatten()
    {
        if entry.file_name() != "anyhook-testkit" {
            found.extend(sources(&entry.path().join("src")));
            found.extend(sources(&entry.path().join("agents")));
        }
    }
    found.retain(|(path, _)| {
        !path.ends_with("model.rs") || !path.to_string_lossy().contains("/agents/")
    });
    found
}

/// The name that follows a keyword at the start of an item.
fn defined_name<'a>(line: &'a str, keyword: &str) -> Option<&'a str> {
    let line = line.trim_start();
    let line = line.strip_prefix("pub").map_or(line, |rest| {
        let scoped = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        scoped.map_or(rest, |(_, rest)| rest).trim_start()
    });
    let rest = line.strip_prefix(keyword)?.strip_prefix(' ')?;
    let end = rest
        .find(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .unwrap_or(rest.len());
    // The name of a macro's item is a variable.
    rest.get(..end).filter(|name| !name.is_empty())
}

#[test]
fn a_type_name_has_one_meaning() {
    let mut definitions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in product_sources() {
        for (number, line) in code_lines(&text) {
            for keyword in ["struct", "enum", "trait", "union"] {
                if let Some(name) = defined_name(line, keyword) {
                    let at = format!("{}:{}", path.display(), number + 1);
                    definitions.entry(name.to_owned()).or_default().insert(at);
                }
            }
        }
    }
    let repeated: Vec<_> = definitions
        .iter()
        .filter(|(_, places)| places.len() > MAX_DEFINITIONS)
        .collect();
    assert!(
        repeated.is_empty(),
        "defined more than {MAX_DEFINITIONS} times: {repeated:#?}"
    );
    assert!(
        definitions.len() > 300,
        "only {} types found",
        definitions.len()
    );
}

#[test]
fn a_function_name_says_what_it_does() {
    let mut faults = Vec::new();
    for (path, text) in product_sources() {
        for (number, line) in code_lines(&text) {
            if defined_name(line, "fn").is_some_and(|name| VAGUE_FUNCTIONS.contains(&name)) {
                faults.push(format!(
                    "{}:{}: {}",
                    path.display(),
                    number + 1,
                    line.trim()
                ));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "give these a name that says more:\n{}",
        faults.join("\n")
    );
}

#[test]
fn module_files_have_one_style() {
    let faults: Vec<_> = product_sources()
        .into_iter()
        .filter(|(path, _)| path.ends_with("mod.rs"))
        .map(|(path, _)| path)
        .collect();
    assert!(
        faults.is_empty(),
        "name these after their folder, beside it: {faults:?}"
    );
}

#[test]
fn the_documented_crate_graph_is_the_real_one() {
    let document = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let mut documented: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let rows = document
        .lines()
        .skip_while(|line| *line != "| crate | depends on |")
        .skip(2);
    for row in rows.take_while(|line| line.starts_with('|')) {
        let mut cells = row
            .split('|')
            .skip(1)
            .map(|cell| cell.split('`').skip(1).step_by(2));
        let (crates, needs) = (cells.next().unwrap(), cells.next().unwrap());
        let needs: BTreeSet<String> = needs.map(full_name).collect();
        documented.extend(crates.map(|name| (full_name(name), needs.clone())));
    }
    let mut real: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in fs::read_dir(root().join("crates")).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name != "anyhook-testkit" {
            real.insert(name, dependencies(&entry.path().join("Cargo.toml")));
        }
    }
    // The binary uses every crate, which the document says in words.
    let all = real
        .keys()
        .filter(|name| *name != "anyhook")
        .cloned()
        .collect();
    documented.insert("anyhook".to_owned(), all);
    assert_eq!(documented, real);
}

/// The fuzz targets are a workspace of their own, so no build of this one notices a
/// dependency that their lock file lacks.
#[test]
fn the_lock_file_of_the_fuzz_targets_is_current() {
    let lock = fs::read_to_string(root().join("fuzz/Cargo.lock")).unwrap();
    let mut compared = 0;
    for package in lock.split("[[package]]").skip(1) {
        let package: toml::Table = package.parse().unwrap();
        let name = package["name"].as_str().unwrap();
        let manifest = root().join("crates").join(name).join("Cargo.toml");
        if package.contains_key("source") || !manifest.exists() {
            continue;
        }
        let listed = package.get("dependencies").and_then(|it| it.as_array());
        let listed: BTreeSet<&str> = listed
            .into_iter()
            .flatten()
            .filter_map(|line| line.as_str()?.split(' ').next())
            .collect();
        let manifest = fs::read_to_string(manifest).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let targets = manifest.get("target").and_then(|it| it.as_table());
        let targets = targets.into_iter().flat_map(toml::Table::values);
        let targets = targets.filter_map(toml::Value::as_table);
        let sections = std::iter::once(&manifest).chain(targets).flat_map(|table| {
            let names = ["dependencies", "build-dependencies"];
            names
                .into_iter()
                .filter_map(|name| table.get(name)?.as_table())
        });
        let mut known = BTreeSet::new();
        for (dependency, how) in sections.flatten() {
            known.insert(dependency.as_str());
            let is_optional = how.get("optional").and_then(toml::Value::as_bool);
            assert!(
                is_optional == Some(true) || listed.contains(dependency.as_str()),
                "fuzz/Cargo.lock lacks `{dependency}` of {name}: run `cargo update -w` in fuzz"
            );
        }
        for dependency in &listed {
            assert!(
                known.contains(dependency),
                "fuzz/Cargo.lock still has `{dependency}` of {name}: run `cargo update -w` in fuzz"
            );
        }
        compared += 1;
    }
    assert!(compared > 5, "{compared}");
}

fn full_name(short: &str) -> String {
    match short {
        "openhook" | "anyhook" => short.to_owned(),
        _ if short.starts_with("anyhook-") => short.to_owned(),
        _ => format!("anyhook-{short}"),
    }
}

/// The crates of this workspace that a crate is built with.
fn dependencies(manifest: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(manifest).unwrap();
    let section = text
        .lines()
        .skip_while(|line| *line != "[dependencies]")
        .skip(1);
    section
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', ' ']).next())
        .filter(|name| name.starts_with("anyhook-") || *name == "openhook")
        .map(str::to_owned)
        .collect()
}
