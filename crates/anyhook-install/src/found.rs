//! Which agents are on this machine, and in which version.

use std::path::PathBuf;
use std::time::Duration;

use anyhook_agents::Adapter;
use anyhook_run::exec::command::Launch;
use anyhook_run::exec::{self, End, Job};

use crate::world::World;

/// How long a program may take to say its version.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where an agent is seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    pub program: Option<PathBuf>,
    /// Folders of the project that are its own.
    pub project: Vec<PathBuf>,
    /// Folders of the home that are its own.
    pub home: Vec<PathBuf>,
}

impl Found {
    pub fn look(world: &World, adapter: &Adapter) -> Self {
        let detect = &adapter.spec.detect;
        let mut found = Self {
            program: detect
                .binary
                .iter()
                .find_map(|name| world.on_path(name).into_iter().next()),
            ..Self::default()
        };
        for folder in &detect.folders {
            let Some(path) = world.expand(folder, None).filter(|path| path.is_dir()) else {
                continue;
            };
            if folder.starts_with("~/") {
                found.home.push(path);
            } else if Some(&path)
                != world
                    .home
                    .as_ref()
                    .map(|home| home.join(folder.as_ref()))
                    .as_ref()
            {
                found.project.push(path);
            }
        }
        found
    }

    pub fn is_here(&self) -> bool {
        self.program.is_some() || !self.project.is_empty() || !self.home.is_empty()
    }

    /// In words: `~/.local/bin/claude, .claude/`.
    pub fn shown(&self, world: &World) -> String {
        let folders = self.project.iter().chain(&self.home);
        let program = self.program.iter().map(|path| world.shown(path));
        program
            .chain(folders.map(|path| format!("{}/", world.shown(path))))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// The version that the program tells, if it tells one in time.
    pub fn version(&self, world: &World) -> Option<String> {
        let program = self.program.as_ref()?;
        let ended = exec::run(&Job {
            launch: Launch::Direct(vec![
                program.to_string_lossy().into_owned(),
                "--version".to_owned(),
            ]),
            cwd: world.home.clone().unwrap_or_else(|| world.cwd.clone()),
            owns_process: false,
            env: vec![("NO_COLOR".to_owned(), "1".to_owned())],
            stdin: b"",
            timeout: PATIENCE,
            cancel: None,
        });
        if ended.end != End::Exit(0) {
            return None;
        }
        first_version(&String::from_utf8_lossy(&ended.stdout.bytes))
    }
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

/// How a version stands to the one that the facts were checked against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    Same,
    /// Newer: most likely right, not checked.
    Newer,
    Older,
    Unknown,
}

impl Coverage {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Newer => "newer",
            Self::Older => "older",
            Self::Unknown => "unknown",
        }
    }
}

pub fn coverage(adapter: &Adapter, version: &str) -> Coverage {
    let numbers = |text: &str| -> Vec<u64> {
        text.split(['.', '-', '+'])
            .map_while(|part| part.parse().ok())
            .collect()
    };
    let (Some(known), here) = (
        first_version(&adapter.spec.verified.version),
        numbers(version),
    ) else {
        return Coverage::Unknown;
    };
    let known = numbers(&known);
    if known.is_empty() || here.is_empty() {
        return Coverage::Unknown;
    }
    match here.cmp(&known) {
        std::cmp::Ordering::Equal => Coverage::Same,
        std::cmp::Ordering::Greater => Coverage::Newer,
        std::cmp::Ordering::Less => Coverage::Older,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_in_what_programs_say() {
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
