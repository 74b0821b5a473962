//! Benchmarks, reported as ratios within one run: absolute times are too noisy.
//!
//! Every table measures its baseline and its candidates in turn, so that noise
//! affects both, and compares the best of many runs.

mod codex;
mod convert;
mod daemon;
mod dispatch;
mod export;
mod growth;
mod guard;
mod measure;
mod openhook;
pub(crate) mod order;
mod retention;
mod store;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{cargo, run as run_command};

type Benchmark = fn(&Setup) -> Result<(), String>;

const BENCHMARKS: &[(&str, Benchmark)] = &[
    ("validate", convert::validate),
    ("convert", convert::convert),
    ("run", dispatch::run),
    ("guard", guard::run),
    ("openhook", openhook::run),
    ("codex", codex::run),
    ("daemon", daemon::run),
    ("store", store::run),
    ("retention", retention::run),
    ("export", export::run),
];

/// What every benchmark needs.
pub(crate) struct Setup {
    /// A copy of the release build.
    pub anyhook: PathBuf,
    /// Everything that it writes is below it.
    pub folder: PathBuf,
    /// Arguments that name no benchmark.
    pub options: Vec<String>,
}

impl Setup {
    /// The same binary with folders of its own.
    fn beside(&self, name: &str) -> Self {
        Self {
            anyhook: self.anyhook.clone(),
            folder: self.folder.join(name),
            options: self.options.clone(),
        }
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.anyhook);
        self.isolate(&mut command);
        command
    }

    /// Keeps the user's own configuration out of the measurement.
    pub(crate) fn isolate(&self, command: &mut Command) {
        for (name, folder) in [
            ("ANYHOOK_CONFIG_DIR", "config"),
            ("ANYHOOK_STATE_DIR", "state"),
            ("ANYHOOK_MANAGED_DIR", "managed"),
        ] {
            command.env(name, self.folder.join(folder));
        }
        command.env("HOME", &self.folder);
    }
}

/// Copies the release build, as every installation does (`cargo install`, archives,
/// packages, `anyhook install`). No user runs the file that the linker has written, and
/// that one is slower: its pages are in the page cache one by one instead of in large
/// folios, so each page fault maps less at a higher price. A call in which nothing
/// matches costs 1.96 × `/bin/true` with the linker's file and 1.60 × with a copy of it.
fn copy_program(folder: &Path) -> Result<PathBuf, String> {
    let copy = folder.join("anyhook");
    std::fs::copy(crate::suite::target().join("release/anyhook"), &copy)
        .map_err(|error| format!("the release build cannot be copied: {error}"))?;
    Ok(copy)
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let at = arguments.iter().position(|it| it.starts_with("--"));
    let (names, options) = arguments.split_at(at.unwrap_or(arguments.len()));
    run_command(cargo().args(["build", "--release", "--package", "anyhook"]))?;
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let setup = Setup {
        anyhook: copy_program(scratch.path())?,
        folder: scratch.path().to_owned(),
        options: options.to_vec(),
    };
    let wanted = |name: &str| names.is_empty() || names.iter().any(|argument| argument == name);
    for (name, benchmark) in BENCHMARKS.iter().filter(|(name, _)| wanted(name)) {
        println!("\n== {name}");
        benchmark(&setup)?;
    }
    Ok(())
}
