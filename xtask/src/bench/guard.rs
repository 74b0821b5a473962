//! Built-in guards compared with a run without hooks.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use super::Setup;
use super::dispatch::{Project, trust, write};
use super::measure::{Case, measure, report};

/// The most that built-in guards may add to a run without hooks, in runs of
/// `/bin/true`: a preset, and a file of 200 rules.
const PRESET_LIMIT: f64 = 0.3;
const RULES_LIMIT: f64 = 2.0 * PRESET_LIMIT;

/// Compares runs with built-in guards with one without hooks.
pub(super) fn run(setup: &Setup) -> Result<(), String> {
    let (none, preset, rules) = projects(setup)?;
    let cases = [
        Case::new("/bin/true", || Command::new("/bin/true")),
        none.call(setup, "run without hooks"),
        preset.call(setup, "run, standard preset"),
        rules.call(setup, "run, 200 rules"),
    ];
    let times = measure(&cases, 150)?;
    report(&cases, &times, &[]);
    if let [base, none, preset, rules] = times.as_slice() {
        for (name, time, limit) in [
            ("the standard preset", preset, PRESET_LIMIT),
            ("200 rules", rules, RULES_LIMIT),
        ] {
            let extra = (time.best_ms - none.best_ms) / base.best_ms;
            let verdict = if extra <= limit { "within" } else { "OVER" };
            println!("{name} adds {extra:.2}  {verdict} {limit}");
        }
    }
    Ok(())
}

/// Projects without hooks, with the standard preset, and with 200 rules.
pub(super) fn projects(setup: &Setup) -> Result<(Project, Project, Project), String> {
    let none = guard_project(setup, "no-guards", None)?;
    let preset = guard_project(setup, "preset", Some(PRESET))?;
    let mut rules = String::from("rules:\n");
    for n in 0..200 {
        let _ = writeln!(
            rules,
            "  - name: rule-{n}\n    when: {{ command: tool-{n} deploy }}\n    decision: deny\n    reason: not here"
        );
    }
    let rules_path = setup.folder.join("rules/rules.yaml");
    write(&rules_path, &rules, 0o644)?;
    let manifest = "spec: hooks/1.0\nhooks:\n  - event: before_tool_execute\n    blocking: true\n    handler: { type: command, command: anyhook guard rules --file rules.yaml }\n";
    let rules = guard_project(setup, "rules", Some(manifest))?;
    Ok((none, preset, rules))
}

const PRESET: &str = include_str!("../../../crates/anyhook-install/src/init/standard.yaml");

/// A trusted project with this manifest.
fn guard_project(setup: &Setup, name: &str, manifest: Option<&str>) -> Result<Project, String> {
    let folder = setup.folder.join(name);
    fs::create_dir_all(folder.join(".git")).map_err(|error| error.to_string())?;
    if let Some(manifest) = manifest {
        write(&folder.join(".anyhook/hooks.yaml"), manifest, 0o644)?;
        trust(setup, &folder)?;
    }
    Ok(Project::new(folder))
}
