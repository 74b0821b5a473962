//! Speed, as ratios in one run: machines are noisy, ratios are not.
//!
//! Every table measures its baseline and its candidates by turns, so that what
//! disturbs one disturbs the other, and compares the best of many runs.

mod codex;
mod convert;
mod daemon;
mod dispatch;
mod measure;
mod openhook;
pub mod order;

use std::path::PathBuf;
use std::process::Command;

use crate::run::{cargo, run as must};

type Bench = fn(&Setup) -> Result<(), String>;

const ALL: &[(&str, Bench)] = &[
    ("validate", convert::validate),
    ("convert", convert::convert),
    ("run", dispatch::run),
    ("openhook", openhook::run),
    ("codex", codex::run),
    ("daemon", daemon::run),
];

/// What every benchmark needs.
pub struct Setup {
    /// The release build.
    pub anyhook: PathBuf,
    pub scratch: tempfile::TempDir,
}

impl Setup {
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.anyhook);
        self.isolate(&mut command);
        command
    }

    /// Nothing of the user's own configuration takes part.
    pub fn isolate(&self, command: &mut Command) {
        for (name, folder) in [
            ("ANYHOOK_CONFIG_DIR", "config"),
            ("ANYHOOK_STATE_DIR", "state"),
            ("ANYHOOK_MANAGED_DIR", "managed"),
        ] {
            command.env(name, self.scratch.path().join(folder));
        }
        command.env("HOME", self.scratch.path());
    }
}

pub fn run(arguments: &[String]) -> Result<(), String> {
    must(cargo().args(["build", "--release", "--package", "anyhook"]))?;
    let setup = Setup {
        anyhook: crate::suite::target().join("release/anyhook"),
        scratch: tempfile::tempdir().map_err(|error| error.to_string())?,
    };
    let wanted =
        |name: &str| arguments.is_empty() || arguments.iter().any(|argument| argument == name);
    for (name, bench) in ALL.iter().filter(|(name, _)| wanted(name)) {
        println!("\n== {name}");
        bench(&setup)?;
    }
    Ok(())
}
