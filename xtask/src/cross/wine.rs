//! Runs tests for Windows under Wine: `cargo xtask wine`.
//!
//! All tests of the workspace that compile for Windows run, except for those that
//! Wine cannot run; what does not run is named with the reason, and the closing
//! line counts it.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::tools::install_packages;
use super::windows_tests::WindowsTests;
use super::{CrossBuild, WINDOWS, folder_of_builds, prepare};
use crate::run::{run, succeeds};

/// Wine 8 lacks a library that Rust's own needs; this replaces it.
const RANDOM_LIBRARY: &str = "\
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T count) {
    return SystemFunction036(bytes, (ULONG)count);
}
";

/// No test program may run longer: what hangs under Wine must not hang the caller.
const PROGRAM_SECONDS: u32 = 1800;
/// The same for a quick run.
const QUICK_PROGRAM_SECONDS: u32 = 900;

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

/// Builds the tests and runs them; with names of test programs only those.
pub(super) fn run_tests(arguments: &[String]) -> Result<(), String> {
    let (options, filters): (Vec<&str>, Vec<&str>) = arguments
        .iter()
        .map(String::as_str)
        .partition(|argument| argument.starts_with('-'));
    let (mut if_possible, mut is_quick, mut is_run) = (false, false, true);
    for option in options {
        match option {
            "--if-possible" => if_possible = true,
            "--quick" => is_quick = true,
            "--no-run" => is_run = false,
            other => {
                return Err(format!(
                    "unknown option `{other}`; known: --if-possible, --no-run, --quick"
                ));
            }
        }
    }
    let filters = filters.as_slice();
    let build = match prepare(WINDOWS) {
        Err(why) if if_possible => {
            println!("cross: the build for Windows and its tests are skipped: {why}");
            return Ok(());
        }
        prepared => prepared?,
    };
    let wine = match Wine::prepare(is_quick) {
        Err(why) if if_possible => {
            println!("cross: the tests for Windows are skipped: {why}");
            return build.program(false).map(|_| ());
        }
        prepared => prepared?,
    };
    let root = crate::root();
    let skips = std::fs::read_to_string(root.join("xtask/cross/windows-skips.txt"));
    let skips = skips.map_err(|error| error.to_string())?;
    let tests = WindowsTests::find(&root.join("crates"), &skips, is_quick)?;
    for skip in &tests.skipped {
        let count = match skip.count {
            0 => String::new(),
            count => format!(", {count} tests"),
        };
        println!("cross: not run: {}{count}: {}", skip.name, skip.reason);
    }
    let mut counts = TestCounts {
        skipped: tests.skipped.iter().map(|skip| skip.count).sum(),
        ..TestCounts::default()
    };
    if !is_run {
        return run(wine.command(&build, &tests, filters).arg("--no-run"));
    }
    let is_broken = !wine.test(&build, &tests, filters, &mut counts)?;
    let TestCounts {
        passed,
        failed,
        skipped,
    } = counts;
    println!(
        "cross: tests for Windows under Wine: {passed} passed, {failed} failed, {skipped} skipped"
    );
    if !filters.is_empty() {
        let is_asked = |name: &&String| filters.contains(&name.as_str());
        let asked = tests.programs.iter().filter(is_asked).count();
        let all = tests.programs.len();
        println!(
            "cross: asked for {asked} of {all} names of test programs, and for no tests beside the code"
        );
    }
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
    fn prepare(is_quick: bool) -> Result<Self, String> {
        let seconds = if is_quick {
            QUICK_PROGRAM_SECONDS
        } else {
            PROGRAM_SECONDS
        };
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
            "#!/bin/sh\nexport WINEPREFIX='{}' WINEDEBUG=-all\nexec timeout {seconds} {program} \"$@\"\n",
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

    /// The command that builds and runs the tests. `filters` are names of test programs,
    /// all if empty.
    fn command(&self, build: &CrossBuild, tests: &WindowsTests, filters: &[&str]) -> Command {
        let mut command = build.command("cargo", "test");
        command.args(build.compiler.deny_warnings());
        for package in &tests.packages {
            command.args(["--package", package]);
        }
        if filters.is_empty() {
            command.args(["--lib", "--bins"]);
        }
        for program in &tests.programs {
            if filters.is_empty() || filters.contains(&program.as_str()) {
                command.args(["--test", program]);
            }
        }
        command
            .arg("--no-fail-fast")
            .env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", &self.runner);
        command
    }

    /// Whether all tests passed.
    fn test(
        &self,
        build: &CrossBuild,
        tests: &WindowsTests,
        filters: &[&str],
        counts: &mut TestCounts,
    ) -> Result<bool, String> {
        let mut command = self.command(build, tests, filters);
        command
            // Its processes are slow to start and quick to run.
            .args(["--", "--quiet", "--test-threads=2"])
            .stdout(Stdio::piped());
        for name in &tests.skipped_names {
            command.args(["--skip", name]);
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
}
