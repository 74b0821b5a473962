//! Detects which agents are on this machine, and their versions.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhook_agents::Adapter;
use anyhook_run::run::exec::command::CommandLine;
use anyhook_run::run::exec::{self, ProcessEnd, ProcessRequest};

use crate::machine::Machine;

/// How long a program may take to print its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);

/// Traces of an agent on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DetectedAgent {
    pub program: Option<PathBuf>,
    /// Its folders in the project.
    pub project: Vec<PathBuf>,
    /// Its folders in the home.
    pub home: Vec<PathBuf>,
}

impl DetectedAgent {
    pub fn detect(machine: &Machine, adapter: &Adapter) -> Self {
        let detect = &adapter.spec.detect;
        let mut programs = detect.binary.iter();
        let mut found = Self {
            program: programs.find_map(|name| machine.own_programs(name).into_iter().next()),
            ..Self::default()
        };
        for folder in &detect.folders {
            let path = machine.expand_path(folder, None);
            let Some(path) = path.filter(|path| path.is_dir()) else {
                continue;
            };
            // In the home folder itself, `.agent/` is not a project's.
            let home_folder = machine.home.as_ref().map(|home| home.join(&**folder));
            if folder.starts_with("~/") {
                found.home.push(path);
            } else if home_folder.as_ref() != Some(&path) {
                found.project.push(path);
            }
        }
        found
    }

    pub fn is_present(&self) -> bool {
        *self != Self::default()
    }

    /// For people: `~/.local/bin/claude, .claude/`.
    pub fn display_paths(&self, machine: &Machine) -> String {
        let folders = self.project.iter().chain(&self.home);
        let program = self.program.iter().map(|path| machine.display_path(path));
        program
            .chain(folders.map(|path| format!("{}/", machine.display_path(path))))
            .collect::<Vec<_>>()
            .join(", ")
    }

    pub fn query_version(&self, machine: &Machine) -> Option<String> {
        program_version(machine, self.program.as_ref()?)
    }
}

/// The version that a program prints, if it does so in time.
pub(crate) fn program_version(machine: &Machine, program: &Path) -> Option<String> {
    let program = program.to_string_lossy().into_owned();
    let ended = exec::run(&ProcessRequest {
        command_line: CommandLine::Direct(vec![program, "--version".to_owned()]),
        cwd: machine.home.clone().unwrap_or_else(|| machine.cwd.clone()),
        owns_process: false,
        env: vec![("NO_COLOR".to_owned(), "1".to_owned())],
        stdin: b"",
        timeout: VERSION_TIMEOUT,
        cancel: None,
    });
    if ended.end != ProcessEnd::Exit(0) {
        return None;
    }
    first_version(&String::from_utf8_lossy(&ended.stdout.bytes))
}

/// The first word that looks like a version.
fn first_version(text: &str) -> Option<String> {
    text.split(|c: char| c.is_whitespace() || "(),;".contains(c))
        .map(|word| word.trim_start_matches('v'))
        .find(|word| {
            word.starts_with(|c: char| c.is_ascii_digit())
                && word.contains('.')
                && word
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || ".-+_".contains(c))
        })
        .map(str::to_owned)
}

/// How an agent's version compares to the one that its table was verified
/// against: `same`, `newer`, `older` or `unknown`.
pub(crate) fn version_coverage(adapter: &Adapter, version: &str) -> &'static str {
    let numbers = |text: &str| -> Vec<u64> {
        text.split(['.', '-', '+'])
            .map_while(|part| part.parse().ok())
            .collect()
    };
    let verified = first_version(&adapter.spec.verified.version).unwrap_or_default();
    let (verified, installed) = (numbers(&verified), numbers(version));
    if verified.is_empty() || installed.is_empty() {
        return "unknown";
    }
    match installed.cmp(&verified) {
        Ordering::Equal => "same",
        Ordering::Greater => "newer",
        Ordering::Less => "older",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_output() {
        for (text, version) in [
            ("2.1.325 (Claude Code)", Some("2.1.325")),
            ("codex-cli 0.166.0\n", Some("0.166.0")),
            ("v1.18.33", Some("1.18.33")),
            ("hello", None),
            ("2026.09.10-abc", Some("2026.09.10-abc")),
        ] {
            assert_eq!(first_version(text).as_deref(), version, "{text}");
        }
    }
}
