//! Which tests of the workspace run on Windows, and which do not and why.
//!
//! A file of tests with `#![cfg(unix)] // reason`, and a test with
//! `#[cfg(unix)]`, are for Unix alone. What compiles and cannot run under Wine is
//! in `xtask/cross/windows-skips.txt`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A test, a file of tests or a test program that does not run, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SkippedTests {
    pub(super) name: String,
    pub(super) reason: String,
    pub(super) count: usize,
}

/// What there is to run.
#[derive(Debug, Default)]
pub(super) struct WindowsTests {
    pub(super) packages: BTreeSet<String>,
    /// Names of test programs, as `cargo test --test` takes them.
    pub(super) programs: BTreeSet<String>,
    /// Tests of these programs that are left out, as `--skip` takes them.
    pub(super) skipped_names: Vec<String>,
    /// All that is left out.
    pub(super) skipped: Vec<SkippedTests>,
}

/// The begin of a line in the list of skips that names a test program.
const PROGRAM_LINE: &str = "program ";

/// The begin of a line that counts only for a quick run.
const SLOW_LINE: &str = "slow ";

impl WindowsTests {
    /// Finds the tests of all crates below a folder. `skips` is the list of what
    /// cannot run, and of what a quick run leaves out.
    pub(super) fn find(crates: &Path, skips: &str, is_quick: bool) -> Result<Self, String> {
        let mut found = Self::default();
        let skips = parse_skips(skips, is_quick)?;
        for folder in sorted_entries(crates)? {
            let package = file_name(&folder);
            if !folder.join("Cargo.toml").is_file() {
                continue;
            }
            found.packages.insert(package.clone());
            for (name, files) in test_programs(&folder.join("tests"))? {
                let shown = format!("{package}/{name}");
                let listed = skips
                    .iter()
                    .find(|skip| skip.name == format!("{PROGRAM_LINE}{shown}"));
                if let Some(skip) = listed {
                    found.skip(shown, &skip.reason, 1);
                    continue;
                }
                found.add_program(&shown, name, &files)?;
            }
            found.add_single_tests(&package, &folder.join("src"))?;
        }
        for skip in skips {
            if !skip.name.starts_with(PROGRAM_LINE) {
                found.skipped_names.push(skip.name.clone());
                found.skip(skip.name, &skip.reason, 0);
            }
        }
        Ok(found)
    }

    fn skip(&mut self, name: String, reason: &str, count: usize) {
        let reason = reason.to_owned();
        self.skipped.push(SkippedTests {
            name,
            reason,
            count,
        });
    }

    fn add_program(&mut self, shown: &str, name: String, files: &[PathBuf]) -> Result<(), String> {
        let texts: Vec<String> = files
            .iter()
            .map(|file| fs::read_to_string(file).map_err(|error| error.to_string()))
            .collect::<Result<_, _>>()?;
        let first = texts.first().map(String::as_str).unwrap_or_default();
        if let Some(reason) = unix_reason(first) {
            if reason.is_empty() {
                return Err(format!(
                    "{shown}: write the reason after `#![cfg(unix)]`, as a comment"
                ));
            }
            let count = texts.iter().map(|text| count_tests(text)).sum();
            self.skip(shown.to_owned(), reason, count);
            return Ok(());
        }
        let mut count = 0;
        for (text, file) in texts.iter().zip(files) {
            if let Some(reason) = unix_reason(text) {
                let shown = format!("{shown}, {}", file_name(file));
                self.skip(shown, reason, count_tests(text));
            } else {
                // A module with `#[cfg(unix)]` is the last thing in its file.
                let (text, module) = text.split_once(UNIX_MODULE).unwrap_or((text, ""));
                count += count_unix_tests(text) + count_tests(module);
            }
        }
        if count > 0 {
            self.skip(format!("{shown} (some)"), SINGLE_REASON, count);
        }
        self.programs.insert(name);
        Ok(())
    }

    /// Tests beside the code that are for Unix alone.
    fn add_single_tests(&mut self, package: &str, source: &Path) -> Result<(), String> {
        let mut count = 0;
        for file in rust_files(source)? {
            let text = fs::read_to_string(&file).map_err(|error| error.to_string())?;
            count += match text.split_once("#[cfg(all(test, unix))]\nmod ") {
                Some((before, after)) => count_unix_tests(before) + count_tests(after),
                None => count_unix_tests(&text),
            };
        }
        if count > 0 {
            self.skip(format!("{package}, beside the code"), SINGLE_REASON, count);
        }
        Ok(())
    }
}

const UNIX_MODULE: &str = "#[cfg(unix)]\nmod ";

const SINGLE_REASON: &str = "modes, owners, links, sockets or signals of Unix";

/// The lines `name: reason`; comments begin with `#`.
fn parse_skips(text: &str, is_quick: bool) -> Result<Vec<SkippedTests>, String> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .filter_map(|line| match line.strip_prefix(SLOW_LINE) {
            Some(line) => is_quick.then_some(line),
            None => Some(line),
        })
        .map(|line| match line.split_once(": ") {
            Some((name, reason)) if !reason.trim().is_empty() => Ok(SkippedTests {
                name: name.to_owned(),
                reason: reason.trim().to_owned(),
                count: 0,
            }),
            _ => Err(format!("`{line}` is not `name: reason`")),
        })
        .collect()
}

/// The test programs of a crate, with their files, the main one first.
fn test_programs(tests: &Path) -> Result<Vec<(String, Vec<PathBuf>)>, String> {
    let mut programs = Vec::new();
    if !tests.is_dir() {
        return Ok(programs);
    }
    for path in sorted_entries(tests)? {
        let main = path.join("main.rs");
        if main.is_file() {
            let mut files = rust_files(&path)?;
            files.sort_by_key(|file| *file != main);
            programs.push((file_name(&path), files));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            programs.push((name.into_owned(), vec![path.clone()]));
        }
    }
    Ok(programs)
}

/// The reason why a file of tests is for Unix alone, perhaps empty; `None` if it is not.
fn unix_reason(text: &str) -> Option<&str> {
    let lines = text.lines().map(str::trim);
    let reason = lines.filter_map(|line| line.strip_prefix("#![cfg(unix)]"));
    let reason = reason.map(|rest| rest.trim().trim_start_matches('/').trim());
    reason.into_iter().next()
}

fn count_tests(text: &str) -> usize {
    text.lines().filter(|line| line.trim() == "#[test]").count()
}

/// Tests with `#[cfg(unix)]`, before or after `#[test]`.
fn count_unix_tests(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let pairs = lines.windows(2);
    pairs
        .filter(|pair| {
            matches!(
                pair,
                ["#[cfg(unix)]", "#[test]"] | ["#[test]", "#[cfg(unix)]"]
            )
        })
        .count()
}

fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    if !folder.is_dir() {
        return Ok(files);
    }
    for path in sorted_entries(folder)? {
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}

fn sorted_entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_for_unix_are_counted_with_their_reason() {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("a/Cargo.toml", ""),
            ("a/src/lib.rs", "#[cfg(unix)]\n#[test]\nfn x() {}\n"),
            (
                "a/tests/both.rs",
                "#[test]\nfn x() {}\n#[cfg(unix)]\nmod y {\n    #[test]\n",
            ),
            ("a/tests/one/main.rs", "mod sh;\n"),
            ("a/tests/one/sh.rs", "#![cfg(unix)] // has sh\n#[test]\n"),
            ("a/tests/own.rs", ""),
            (
                "a/tests/sh/main.rs",
                "#![cfg(unix)] // needs sh\n#[test]\nfn x() {}\n",
            ),
            ("a/tests/sh/more.rs", "#[test]\nfn y() {}\n"),
            ("a/tests/support/mod.rs", ""),
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let skips = "# why\nprogram a/own: has its own main\nslow slow_one: takes an hour\n";
        let all = WindowsTests::find(folder.path(), skips, false).unwrap();
        assert_eq!(all.skipped_names, [""; 0]);
        let found = WindowsTests::find(folder.path(), skips, true).unwrap();
        assert_eq!(Vec::from_iter(&found.programs), ["both", "one"]);
        assert_eq!(found.skipped_names, ["slow_one"]);
        let skipped: Vec<(&str, &str, usize)> = found
            .skipped
            .iter()
            .map(|skip| (&*skip.name, &*skip.reason, skip.count))
            .collect();
        let expected = [
            ("a/both (some)", SINGLE_REASON, 1),
            ("a/one, sh.rs", "has sh", 1),
            ("a/own", "has its own main", 1),
            ("a/sh", "needs sh", 2),
            ("a, beside the code", SINGLE_REASON, 1),
            ("slow_one", "takes an hour", 0),
        ];
        assert_eq!(skipped, expected);
    }

    #[test]
    fn every_skipped_test_of_the_workspace_has_a_reason() {
        let root = crate::root();
        let skips = fs::read_to_string(root.join("xtask/cross/windows-skips.txt")).unwrap();
        let found = WindowsTests::find(&root.join("crates"), &skips, true).unwrap();
        assert!(found.skipped.iter().all(|skip| skip.reason.len() > 10));
        for program in skips
            .lines()
            .filter_map(|line| line.strip_prefix("program "))
        {
            let name = program.split(':').next().unwrap();
            let is_found = found.skipped.iter().any(|skip| skip.name == name);
            assert!(is_found, "there is no test program `{name}`");
        }
    }
}
