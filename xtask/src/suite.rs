//! The tests, and the proof in the real agents.

use crate::run::{cargo, run, works};

/// Everything that `cargo test` knows, by nextest where it is there.
pub fn test(arguments: &[String]) -> Result<(), String> {
    if works(cargo().args(["nextest", "--version"])) {
        run(cargo()
            .args(["nextest", "run", "--workspace", "--no-fail-fast"])
            .args(arguments))?;
        run(cargo().args(["test", "--workspace", "--doc"]))
    } else {
        run(cargo()
            .args(["test", "--workspace", "--no-fail-fast"])
            .args(arguments))
    }
}

/// The runner of `e2e/`, with a release build of the binary on its path.
pub fn e2e(arguments: &[String]) -> Result<(), String> {
    run(cargo().args(["build", "--quiet", "--release", "--package", "anyhook"]))?;
    run(cargo().args(["build", "--quiet", "--package", "anyhook-e2e"]))?;
    run(cargo()
        .args(["run", "--quiet", "--package", "anyhook-e2e", "--", "run"])
        .args(arguments))
}
