//! `crates/anyhook/run.order`: the functions that `anyhook run` uses, which
//! `build.rs` puts side by side. An old list costs some speed and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::dispatch::{self, Project};
use super::{Setup, guard};
use crate::run::{cargo, run as run_command};

const HEADER: &str = "\
# The functions that `anyhook run` uses; `build.rs` puts them side by side.
# Written by `cargo xtask order`.
";

/// A name stands for every function that differs in its hash only. Names that bring in
/// more than this many times what is used come last.
const MAX_UNUSED: usize = 3;

/// They are left out altogether if their functions have more bytes than this.
const MAX_WASTEFUL_BYTES: usize = 32 * 1024;

/// Code around a hook that is a program, of which the end is not traced.
const UNTRACED_FUNCTIONS: [&str; 4] = [
    "_ZN11anyhook_run3run*",
    "_ZN*20signal_hook_registry*",
    "_RN*3std7process*",
    "_RN*3std3sys7process*",
];

/// Traces a call in which nothing runs first, so that its functions are the closest.
pub(crate) fn make() -> Result<(), String> {
    let target = crate::suite::target().join("order");
    run_command(
        cargo()
            .args(["build", "--release", "--package", "anyhook"])
            .arg("--target-dir")
            .arg(&target)
            .env("CARGO_PROFILE_RELEASE_STRIP", "none"),
    )?;
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let setup = Setup {
        anyhook: target.join("release/anyhook"),
        folder: scratch.path().to_owned(),
        options: Vec::new(),
    };
    let (empty, preset, rules) = guard::projects(&setup)?;
    let none = dispatch::project(&setup, "none", false, dispatch::SILENT_SCRIPT)?;
    let one = dispatch::project(&setup, "one", true, dispatch::SILENT_SCRIPT)?;
    let sizes = function_sizes(&setup.anyhook)?;
    let mut order = Order::new(&sizes);
    for project in [empty, none, one, preset, rules] {
        // The first call fills the caches.
        project.call(&setup, "warm").run_once()?;
        order.add(&traced_functions(&setup, &project)?);
    }
    let path = crate::root().join("crates/anyhook/run.order");
    fs::write(path, order.into_text()).map_err(|error| error.to_string())
}

/// The patterns of used functions, in the order in which they were met.
struct Order<'a> {
    sizes: &'a BTreeMap<String, usize>,
    used: BTreeSet<String>,
    patterns: Vec<String>,
    used_bytes: BTreeMap<String, usize>,
}

impl<'a> Order<'a> {
    fn new(sizes: &'a BTreeMap<String, usize>) -> Self {
        Self {
            sizes,
            used: BTreeSet::new(),
            patterns: Vec::new(),
            used_bytes: BTreeMap::new(),
        }
    }

    fn add(&mut self, functions: &[String]) {
        for name in functions {
            let (Some(pattern), Some(size)) = (pattern(name), self.sizes.get(name)) else {
                continue;
            };
            if !self.used.insert(name.clone()) {
                continue;
            }
            if !self.used_bytes.contains_key(&pattern) {
                self.patterns.push(pattern.clone());
            }
            *self.used_bytes.entry(pattern).or_default() += size;
        }
    }

    fn into_text(self) -> String {
        let mut all: BTreeMap<String, usize> = BTreeMap::new();
        for (name, size) in self.sizes {
            if let Some(pattern) = pattern(name) {
                *all.entry(pattern).or_default() += size;
            }
        }
        let size = |pattern: &String| all.get(pattern).copied().unwrap_or_default();
        let (lean, wasteful): (Vec<_>, Vec<_>) = self.patterns.iter().partition(|pattern| {
            let used = self.used_bytes.get(*pattern).copied().unwrap_or_default();
            size(pattern) <= used * (MAX_UNUSED + 1)
        });
        let wasteful = wasteful
            .into_iter()
            .filter(|pattern| size(pattern) <= MAX_WASTEFUL_BYTES);
        let mut text = HEADER.to_owned();
        for pattern in lean.into_iter().chain(wasteful) {
            let _ = writeln!(text, "{pattern}");
        }
        for pattern in UNTRACED_FUNCTIONS {
            let _ = writeln!(text, "{pattern}");
        }
        text
    }
}

/// The functions that one call runs through.
fn traced_functions(setup: &Setup, project: &Project) -> Result<Vec<String>, String> {
    let trace = project.folder.join("callgrind");
    let payload = project.folder.join("payload.json");
    fs::write(&payload, &project.payload).map_err(|error| error.to_string())?;
    let input = fs::File::open(&payload).map_err(|error| error.to_string())?;
    let mut command = Command::new("valgrind");
    setup.isolate(&mut command);
    let status = command
        .args(["--tool=callgrind", "--demangle=no", "--quiet"])
        // Valgrind gives up at the start of the watchdog, which shares our memory.
        .arg("--dump-before=clone")
        .arg(format!("--callgrind-out-file={}", trace.display()))
        .arg(&setup.anyhook)
        .args(["run", "--agent", "claude-code"])
        .current_dir(&project.folder)
        .stdin(input)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| format!("valgrind: {error}"))?;
    let mut names = Vec::new();
    for part in [trace.with_extension("1"), trace] {
        let text = fs::read_to_string(part).unwrap_or_default();
        names.extend(text.lines().filter_map(function_name));
    }
    if names.is_empty() {
        return Err(format!("valgrind ended with {status} and traced nothing"));
    }
    Ok(names)
}

/// `fn=(12) name`, where a function is met for the first time.
fn function_name(line: &str) -> Option<String> {
    let line = line.strip_prefix('c').unwrap_or(line);
    let (_, name) = line.strip_prefix("fn=(")?.split_once(") ")?;
    Some(name.split('\'').next().unwrap_or(name).to_owned())
}

fn function_sizes(binary: &Path) -> Result<BTreeMap<String, usize>, String> {
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
    use super::*;

    #[test]
    fn patterns_survive_another_compiler() {
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

    #[test]
    fn names_in_a_trace() {
        assert_eq!(function_name("fn=(12) _ZN1a").as_deref(), Some("_ZN1a"));
        assert_eq!(function_name("cfn=(3) b'2").as_deref(), Some("b"));
        assert_eq!(function_name("fn=(12)"), None);
        assert_eq!(function_name("calls=1 0"), None);
    }

    #[test]
    fn names_that_bring_in_much_come_last_or_not_at_all() {
        let sizes = [
            ("_ZN1a17h1E", 10),
            ("_ZN1a17h2E", 40),
            ("_ZN1b17h1E", 10),
            ("_ZN1c17h1E", 10),
            ("_ZN1c17h2E", MAX_WASTEFUL_BYTES),
        ];
        let sizes: BTreeMap<String, usize> =
            sizes.map(|(name, size)| (name.to_owned(), size)).into();
        let mut order = Order::new(&sizes);
        order.add(&["_ZN1c17h1E", "_ZN1a17h1E", "_ZN1b17h1E", "unknown"].map(str::to_owned));
        let text = order.into_text();
        let is_traced = |line: &&str| line.ends_with("17h*");
        let names: Vec<&str> = text.lines().filter(is_traced).collect();
        assert_eq!(names, ["_ZN1b17h*", "_ZN1a17h*"]);
    }
}
