//! A project that is set up with the commands that README.md shows, and restored by `anyhook uninstall`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::bridge;
use crate::command::run_to_success;
use crate::error::{AtPath, Error, Result};
use crate::expect::CheckResult;
use crate::sandbox::Sandbox;

/// What `anyhook uninstall` did not restore; nothing if it restored all.
pub(super) const NOT_RESTORED_FILE: &str = "not-restored.txt";

/// Files that the commands changed, with what they were; `None`: they did not exist.
pub(super) type ChangedFiles = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// What a new file of anyhook contains. Clients that the commands start write files of their own as well.
const ENTRY: &[u8] = b"anyhook run --agent";

/// The commands of the block with what they print.
fn commands() -> Result<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let text = fs::read_to_string(&path).at("read", &path)?;
    let block = text
        .split("```")
        .find_map(|part| part.strip_prefix("console\n"));
    let lines = block.unwrap_or_default().lines();
    let commands: Vec<String> = lines
        .filter_map(|line| line.strip_prefix("$ "))
        .map(str::to_owned)
        .collect();
    if commands.is_empty() {
        let message = "it shows no commands".to_owned();
        return Err(Error::Data { path, message });
    }
    Ok(commands)
}

/// Runs the commands in the project.
pub(super) fn follow(sandbox: &Sandbox) -> Result<ChangedFiles> {
    let before = bridge::snapshot(sandbox)?;
    for command in commands()? {
        run_to_success(sandbox.command("sh").args(["-e", "-c", &command]))?;
    }
    let after = bridge::snapshot(sandbox)?;
    let mut changed = ChangedFiles::new();
    for (path, bytes) in after {
        let old = before.get(&path).cloned().flatten();
        let is_ours = old.is_some() || contains(bytes.as_deref().unwrap_or_default(), ENTRY);
        if bytes != old && is_ours {
            changed.insert(path, old);
        }
    }
    Ok(changed)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Uninstalls, and compares what the commands changed with what it was.
pub(super) fn uninstall(sandbox: &Sandbox, changed: &ChangedFiles) -> Result<()> {
    bridge::run_anyhook(sandbox, &["uninstall", "--yes"])?;
    let now = bridge::snapshot(sandbox)?;
    let mut report = String::new();
    if changed.is_empty() {
        report.push_str("the commands changed no file\n");
    }
    for (path, before) in changed {
        if now.get(path).cloned().flatten() != *before {
            let _ = writeln!(report, "{}", path.display());
        }
    }
    let path = sandbox.run.join(NOT_RESTORED_FILE);
    fs::write(&path, report).at("write", path)
}

pub(super) fn is_restored(run: &Path) -> CheckResult {
    match fs::read_to_string(run.join(NOT_RESTORED_FILE)) {
        Ok(text) if text.is_empty() => Ok(()),
        Ok(text) => Err(format!("not as before: {}", text.trim_end())),
        Err(error) => Err(error.to_string()),
    }
}
