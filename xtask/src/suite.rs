//! The tests, and the proof in the real agents.

use std::path::PathBuf;

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

/// The runner of `e2e/`, with a build of the binary on its path: a release
/// build, or with `--debug` the one that the tests have made already.
pub fn e2e(arguments: &[String]) -> Result<(), String> {
    let debug = arguments.iter().any(|argument| argument == "--debug");
    let rest = arguments.iter().filter(|argument| *argument != "--debug");
    let profile = if debug { "dev" } else { "release" };
    run(cargo().args([
        "build",
        "--quiet",
        "--package",
        "anyhook",
        "--profile",
        profile,
    ]))?;
    run(cargo().args(["build", "--quiet", "--package", "anyhook-e2e"]))?;
    let folder = if debug { "debug" } else { "release" };
    let binary = target().join(folder).join("anyhook");
    run(cargo()
        .args([
            "run",
            "--quiet",
            "--package",
            "anyhook-e2e",
            "--",
            "run",
            "--binary",
        ])
        .arg(binary)
        .args(rest))
}

/// Where cargo builds to.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::root().join("target"), PathBuf::from)
}
