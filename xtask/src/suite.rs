//! Runs the test suite and the end-to-end checks.

use std::path::PathBuf;

use crate::run::{cargo, run, succeeds};

/// Runs all tests, with nextest where it is installed.
pub(crate) fn run_tests(arguments: &[String]) -> Result<(), String> {
    if succeeds(cargo().args(["nextest", "--version"])) {
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

/// Runs `e2e/` with a release build of the binary, or with `--debug` the build
/// that the tests use.
pub(crate) fn run_e2e(arguments: &[String]) -> Result<(), String> {
    let debug = arguments.iter().any(|argument| argument == "--debug");
    let rest = arguments.iter().filter(|argument| *argument != "--debug");
    let mut rest: Vec<&String> = rest.collect();
    let is_bench = rest.first().is_some_and(|first| *first == "bench");
    let command = if is_bench {
        rest.remove(0);
        "bench"
    } else {
        "run"
    };
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
            command,
            "--binary",
        ])
        .arg(binary)
        .args(rest))
}

/// Cargo's target folder.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::root().join("target"), PathBuf::from)
}
