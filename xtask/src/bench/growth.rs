//! How commands that edit files grow with the number of hooks in them.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::Setup;
use super::measure::Case;

const FEW_HOOKS: usize = 1_000;
const MANY_HOOKS: usize = 5_000;

/// How much dearer a hook may be among many than among few.
const MAX_GROWTH_PER_HOOK: f64 = 1.6;

/// Rounds of each command; the best counts.
const ROUNDS: usize = 3;

/// A settings file of five megabytes that has hardly a hook.
const LARGE_FILE_BYTES: usize = 5 * 1024 * 1024;

type Prepare = fn(&Path, usize) -> Result<(), String>;

/// A command, and what makes the project that it needs, if not the command before it.
const COMMANDS: [(&str, &[&str], Option<Prepare>); 4] = [
    (
        "convert --merge of n hooks into n",
        &[
            "convert",
            "hooks.json",
            "--to",
            "claude-code",
            "-o",
            ".",
            "--merge",
        ],
        Some(prepare_settings),
    ),
    (
        "install beside n hooks",
        &["install", "--agent", "claude-code", "--yes"],
        Some(prepare_settings),
    ),
    (
        "uninstall beside n hooks",
        &["uninstall", "--agent", "claude-code", "--yes"],
        None,
    ),
    (
        "trust of n scripts",
        &["trust", "--yes", "."],
        Some(prepare_scripts),
    ),
];

pub(super) fn report_growth(setup: &Setup) -> Result<(), String> {
    println!(
        "\n{:<40} {:>12} {:>12} {:>16}",
        "", FEW_HOOKS, MANY_HOOKS, "growth per hook"
    );
    let mut times = Vec::new();
    for hooks in [FEW_HOOKS, MANY_HOOKS] {
        times.push(best_of_rounds(setup, hooks)?);
    }
    let [few, many] = times.as_slice() else {
        return Ok(());
    };
    for (((name, ..), few), many) in COMMANDS.iter().zip(few).zip(many) {
        let more = ratio(MANY_HOOKS, FEW_HOOKS);
        let growth = many / few / more;
        let verdict = if growth <= MAX_GROWTH_PER_HOOK {
            "ok"
        } else {
            "TOO MUCH"
        };
        println!(
            "{name:<40} {few:>9.1} ms {many:>9.1} ms {growth:>12.2}  {verdict} (at most {MAX_GROWTH_PER_HOOK})"
        );
    }
    report_large_file(setup)
}

/// The best time of each command in milliseconds, by number of hooks in the project.
fn best_of_rounds(setup: &Setup, hooks: usize) -> Result<Vec<f64>, String> {
    let mut best = vec![f64::INFINITY; COMMANDS.len()];
    for round in 0..ROUNDS {
        let project = setup.folder.join(format!("growth-{hooks}-{round}"));
        for ((name, arguments, prepare), best) in COMMANDS.iter().zip(&mut best) {
            if let Some(prepare) = prepare {
                prepare(&project, hooks)?;
            }
            *best = best.min(time(setup, &project, name, arguments)?);
        }
    }
    Ok(best)
}

fn time(setup: &Setup, project: &Path, name: &str, arguments: &[&str]) -> Result<f64, String> {
    let case = Case::new(name, || {
        let mut command = setup.command();
        command.args(arguments).current_dir(project);
        command
    });
    Ok(case.run_once()?.as_secs_f64() * 1000.0)
}

fn report_large_file(setup: &Setup) -> Result<(), String> {
    let (_, arguments, _) = COMMANDS[1];
    let mut times = Vec::new();
    for bytes in [0, LARGE_FILE_BYTES] {
        let project = setup.folder.join(format!("large-{bytes}"));
        let entry = "an entry of some length, as permissions have them";
        let entries = vec![entry; bytes / (entry.len() + 8)];
        write(
            &project,
            ".claude/settings.json",
            &json!({"permissions": {"allow": entries}}),
        )?;
        times.push(time(setup, &project, "install", arguments)?);
    }
    if let [small, large] = times.as_slice() {
        println!("install into a file of 5 MB: {large:.0} ms, into a small one {small:.1} ms");
    }
    Ok(())
}

fn prepare_settings(project: &Path, hooks: usize) -> Result<(), String> {
    fs::create_dir_all(project.join(".git")).map_err(|error| error.to_string())?;
    let groups: Vec<Value> = (0..hooks)
        .map(|index| {
            let command = format!("./hooks/old-{index}.sh");
            json!({"matcher": "Bash", "hooks": [{"type": "command", "command": command}]})
        })
        .collect();
    let settings = json!({"hooks": {"PreToolUse": groups}});
    write(project, ".claude/settings.json", &settings)?;
    write(
        project,
        "hooks.json",
        &manifest(hooks, |index| format!("./hooks/new-{index}.sh")),
    )
}

fn prepare_scripts(project: &Path, hooks: usize) -> Result<(), String> {
    let script = |index: usize| format!(".anyhook/scripts/{index}.sh");
    fs::create_dir_all(project.join(".anyhook/scripts")).map_err(|error| error.to_string())?;
    for index in 0..hooks {
        fs::write(project.join(script(index)), format!("echo {index}\n"))
            .map_err(|error| error.to_string())?;
    }
    write(project, ".anyhook/hooks.json", &manifest(hooks, script))
}

fn manifest(hooks: usize, command: impl Fn(usize) -> String) -> Value {
    let hooks: Vec<Value> = (0..hooks)
        .map(|index| {
            json!({
                "event": "before_tool_execute",
                "matcher": "shell",
                "handler": {"type": "command", "command": command(index), "dialect": "claude-code"},
            })
        })
        .collect();
    json!({"spec": "hooks/1.0", "hooks": hooks})
}

fn write(project: &Path, name: &str, value: &Value) -> Result<(), String> {
    let path = project.join(name);
    let folder = path.parent().unwrap_or(project);
    let text = serde_json::to_string_pretty(value).map_err(|error| error.to_string())?;
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&path, text))
        .map_err(|error| error.to_string())
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn ratio(many: usize, few: usize) -> f64 {
    many as f64 / few as f64
}
