//! How the store's queries grow with its events.

use crate::bench::Setup;
use crate::run::{cargo, run as run_command};

const DEFAULT_EVENTS: &str = "1000000";

/// `--events N`, `--store ADDRESS` and `--only fill|measure` are handed on; without an address,
/// a SQLite file in the folder.
pub(crate) fn run(setup: &Setup) -> Result<(), String> {
    std::fs::create_dir_all(&setup.folder).map_err(|error| error.to_string())?;
    let file = setup
        .folder
        .join("growth.db")
        .to_string_lossy()
        .into_owned();
    let option = |name: &str, default: &str| {
        let at = setup.options.iter().position(|option| option == name);
        let value = at.and_then(|at| setup.options.get(at + 1));
        value.map_or_else(|| default.to_owned(), String::clone)
    };
    let mut command = cargo();
    command.args(["run", "--release", "--package", "anyhook-store"]);
    command.args(["--example", "growth", "--"]);
    command.args(["--events", &option("--events", DEFAULT_EVENTS)]);
    command.args(["--store", &option("--store", &file)]);
    command.args(["--only", &option("--only", "")]);
    run_command(&mut command)
}
