//! Runs tests for Windows under Wine: `cargo xtask cross test-windows`.
//!
//! Tests that Wine cannot run are named in `xtask/cross/windows-skips.txt`, with
//! the reason; the closing line counts them.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::tools::install_packages;
use super::{CrossBuild, WINDOWS, folder_of_builds, prepare};
use crate::run::{run, succeeds};

/// The program as users meet it.
const TEST_SETS: [&[&str]; 1] = [&["--package=anyhook", "--test=windows"]];

/// Wine 8 lacks a library that Rust's own needs; this stands for it.
const RANDOM_LIBRARY: &str = "\
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T count) {
    return SystemFunction036(bytes, (ULONG)count);
}
";

/// How many tests passed, failed, and were not run.
#[derive(Debug, Default, PartialEq, Eq)]
struct TestCounts {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl TestCounts {
    /// Adds a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
    fn add(&mut self, line: &str) {
        let Some(counts) = line.strip_prefix("test result: ") else {
            return;
        };
        let count = |name: &str| {
            let parts = counts.split(['.', ';']).map(str::trim);
            let mut found = parts.filter_map(|part| part.strip_suffix(name));
            found.next().and_then(|count| count.trim().parse().ok())
        };
        self.passed += count("passed").unwrap_or(0);
        self.failed += count("failed").unwrap_or(0);
        self.skipped += count("filtered out").unwrap_or(0);
    }
}

/// A test that Wine cannot run, and why.
#[derive(Debug, PartialEq, Eq)]
struct SkippedTest<'a> {
    name: &'a str,
    reason: &'a str,
}

/// The lines `name: reason`.
fn parse_skips(text: &str) -> Vec<SkippedTest<'_>> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let (name, reason) = line.split_once(": ")?;
            Some(SkippedTest { name, reason })
        })
        .collect()
}

/// Builds the tests and runs them.
pub(super) fn run_tests(if_possible: bool) -> Result<(), String> {
    let tools = prepare(WINDOWS).and_then(|build| Ok((build, Wine::prepare()?)));
    let (build, wine) = match tools {
        Ok(tools) => tools,
        Err(why) if if_possible => {
            println!("cross: the tests under Wine are skipped: {why}");
            return Ok(());
        }
        Err(why) => return Err(why),
    };
    let list = crate::root().join("xtask/cross/windows-skips.txt");
    let list = std::fs::read_to_string(list).map_err(|error| error.to_string())?;
    let skips = parse_skips(&list);
    for skip in &skips {
        println!("cross: not run under Wine: {} ({})", skip.name, skip.reason);
    }
    let mut counts = TestCounts::default();
    let mut is_broken = false;
    for set in TEST_SETS {
        is_broken |= !wine.test(&build, set, &skips, &mut counts)?;
    }
    let TestCounts {
        passed,
        failed,
        skipped,
    } = counts;
    println!(
        "cross: tests for Windows under Wine: {passed} passed, {failed} failed, {skipped} skipped"
    );
    match failed {
        0 if !is_broken => Ok(()),
        0 => Err("a test program did not build or ended early".to_owned()),
        _ => Err(format!("{failed} tests failed")),
    }
}

/// Wine with a machine of its own.
struct Wine {
    /// The script that runs a program of Windows.
    runner: PathBuf,
}

impl Wine {
    fn prepare() -> Result<Self, String> {
        let known = [
            "/usr/lib/wine/wine64",
            "/usr/bin/wine64",
            "/usr/local/bin/wine",
        ];
        let find = || known.into_iter().find(|path| Path::new(path).is_file());
        let program = if let Some(program) = find() {
            program
        } else {
            install_packages(&["wine", "wine64"])
                .map_err(|why| format!("Wine could not be installed: {why}"))?;
            find().ok_or("Wine was installed and is not where it is expected")?
        };
        let folder = folder_of_builds().join("tools/wine");
        let prefix = folder.join("prefix");
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let runner = folder.join("runner");
        let script = format!(
            "#!/bin/sh\nexport WINEPREFIX='{}' WINEDEBUG=-all\nexec {program} \"$@\"\n",
            prefix.display()
        );
        std::fs::write(&runner, script).map_err(failed)?;
        run(Command::new("chmod").arg("+x").arg(&runner))?;
        let library = prefix.join("drive_c/windows/system32/bcryptprimitives.dll");
        if !library.is_file() {
            println!("cross: setting up Wine");
            for arguments in [["wineboot", "-i"], ["winecfg", "-vwin10"]] {
                // It complains about what these tests do not need.
                succeeds(Command::new(&runner).args(arguments));
            }
            let source = folder.join("random.c");
            std::fs::write(&source, RANDOM_LIBRARY).map_err(failed)?;
            run(Command::new("x86_64-w64-mingw32-gcc")
                .args(["-shared", "-o"])
                .arg(&library)
                .arg(&source)
                .arg("-ladvapi32"))?;
        }
        Ok(Self { runner })
    }

    /// Whether all of a set passed.
    fn test(
        &self,
        build: &CrossBuild,
        set: &[&str],
        skips: &[SkippedTest<'_>],
        counts: &mut TestCounts,
    ) -> Result<bool, String> {
        let mut command = build.command("cargo", "test");
        command
            .args(set)
            .args(["--no-fail-fast", "--"])
            // Its processes are slow to start and quick to run.
            .args(["--quiet", "--test-threads=2"])
            .env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", &self.runner)
            .stdout(Stdio::piped());
        for skip in skips {
            command.args(["--skip", skip.name]);
        }
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let stdout = child.stdout.take().ok_or("no output")?;
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            counts.add(line.trim());
            println!("{line}");
        }
        let status = child.wait().map_err(|error| error.to_string())?;
        Ok(status.success())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_added_up() {
        let mut counts = TestCounts::default();
        for line in [
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 1.2s",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0s",
            "running 3 tests",
        ] {
            counts.add(line);
        }
        let expected = TestCounts {
            passed: 13,
            failed: 2,
            skipped: 3,
        };
        assert_eq!(counts, expected);
    }

    #[test]
    fn every_skipped_test_has_a_reason() {
        let text = std::fs::read_to_string(crate::root().join("xtask/cross/windows-skips.txt"));
        let text = text.unwrap();
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(parse_skips(&text).len(), lines.count());
        assert!(parse_skips(&text).iter().all(|skip| skip.reason.len() > 10));
    }
}
