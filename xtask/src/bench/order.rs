//! `crates/anyhook/run.order`: the functions that `anyhook run` uses, which the
//! build puts side by side. Made anew when the dispatcher has changed much; an
//! old one only costs a little speed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::Setup;
use super::dispatch;
use crate::run::{cargo, run as must};

/// A name stands for all functions that differ in types only. It is left out
/// when it would bring in this much more than is used.
const MOST_UNUSED: usize = 3;

pub fn make() -> Result<(), String> {
    let target = crate::suite::target().join("order");
    must(
        cargo()
            .args(["build", "--release", "--package", "anyhook"])
            .arg("--target-dir")
            .arg(&target)
            .env("CARGO_PROFILE_RELEASE_STRIP", "none"),
    )?;
    let setup = Setup {
        anyhook: target.join("release/anyhook"),
        scratch: tempfile::tempdir().map_err(|error| error.to_string())?,
    };
    let mut used = BTreeSet::new();
    let deny = "#!/bin/sh\necho no >&2\nexit 2\n";
    for (name, matching, hook) in [
        ("none", false, dispatch::SILENT),
        ("silent", true, dispatch::SILENT),
        ("denies", true, deny),
    ] {
        let project = dispatch::project(&setup, name, matching, hook)?;
        used.extend(functions(&setup, &project)?);
    }
    let sizes = sizes(&setup.anyhook)?;
    let mut wanted: BTreeMap<String, usize> = BTreeMap::new();
    for name in &used {
        if let (Some(pattern), Some(size)) = (pattern(name), sizes.get(name)) {
            *wanted.entry(pattern).or_default() += size;
        }
    }
    let mut all: BTreeMap<String, usize> = BTreeMap::new();
    for (name, size) in &sizes {
        if let Some(pattern) = pattern(name) {
            *all.entry(pattern).or_default() += size;
        }
    }
    let mut text = String::from(
        "# The functions that `anyhook run` uses; `build.rs` puts them side by side.\n\
         # Written by `cargo xtask order`.\n",
    );
    for (pattern, used) in &wanted {
        let unused = all.get(pattern).copied().unwrap_or_default() - used;
        if unused <= used * MOST_UNUSED {
            let _ = writeln!(text, "{pattern}");
        }
    }
    let path = crate::root().join("crates/anyhook/run.order");
    fs::write(path, text).map_err(|error| error.to_string())
}

/// What one call runs through.
fn functions(setup: &Setup, project: &dispatch::Project) -> Result<Vec<String>, String> {
    let counted = project.folder.join("callgrind");
    let payload = project.folder.join("payload.json");
    fs::write(&payload, &project.payload).map_err(|error| error.to_string())?;
    let input = fs::File::open(&payload).map_err(|error| error.to_string())?;
    let mut command = Command::new("valgrind");
    setup.isolate(&mut command);
    let status = command
        .args(["--tool=callgrind", "--demangle=no", "--quiet"])
        .arg(format!("--callgrind-out-file={}", counted.display()))
        .arg(&setup.anyhook)
        .args(["run", "--agent", "claude-code"])
        .current_dir(&project.folder)
        .stdin(input)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| format!("valgrind: {error}"))?;
    let text = fs::read_to_string(&counted)
        .map_err(|error| format!("valgrind ended with {status}: {error}"))?;
    // `fn=(12) name` where a function is met for the first time.
    let name = |line: &str| {
        let rest = line
            .strip_prefix('c')
            .unwrap_or(line)
            .strip_prefix("fn=(")?;
        let (_, name) = rest.split_once(") ")?;
        Some(name.split('\'').next().unwrap_or(name).to_owned())
    };
    Ok(text.lines().filter_map(name).collect())
}

/// The size of every function.
fn sizes(binary: &Path) -> Result<BTreeMap<String, usize>, String> {
    let output = Command::new("nm")
        .args(["--print-size", "--defined-only"])
        .arg(binary)
        .output()
        .map_err(|error| format!("nm: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let sizes = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let size = usize::from_str_radix(words.next()?, 16).ok()?;
        let kind = words.next()?;
        matches!(kind, "t" | "T" | "w" | "W").then(|| Some((words.next()?.to_owned(), size)))?
    });
    Ok(sizes.collect())
}

/// A function's name without what changes with the compiler and the lock file.
fn pattern(name: &str) -> Option<String> {
    if name.starts_with("_ZN") {
        let at = name.rfind("17h")?;
        return Some(format!("{}17h*", name.get(..at)?));
    }
    let mut rest = name.strip_prefix("_R")?;
    let mut pattern = String::from("_R");
    while let Some((before, after)) = rest.split_once("Cs") {
        pattern.push_str(before);
        let (_, after) = after.split_once('_')?;
        pattern.push_str("Cs*_");
        rest = after;
    }
    Some(pattern + rest)
}

#[cfg(test)]
mod tests {
    use super::pattern;

    #[test]
    fn patterns() {
        assert_eq!(
            pattern("_ZN11anyhook_run5entry4main17h0123456789abcdefE").as_deref(),
            Some("_ZN11anyhook_run5entry4main17h*")
        );
        assert_eq!(
            pattern("_RNvNtCs1x_3std3env4varsCs2y_4core").as_deref(),
            Some("_RNvNtCs*_3std3env4varsCs*_4core")
        );
        assert_eq!(pattern("malloc"), None);
    }
}
