//! The sample configs: `agents/<slug>/configs/<case>/<path as the agent has it>`.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::fs;
use std::path::{Path, PathBuf};

use anyhook_agents::Adapter;
use anyhook_convert::{ConversionSource, detect};
use anyhook_model::document::{self, Format};
use serde_json::Value;

pub(crate) struct Sample {
    pub agent: &'static Adapter,
    /// `slug/case`, for messages.
    pub name: String,
    /// Relative to the case: `.claude/settings.json`.
    pub path: String,
    pub text: String,
    pub document: Value,
}

impl Sample {
    /// The config's variant, by the file's path.
    pub(crate) fn variant(&self) -> Option<&'static str> {
        let guess = detect(Some(&self.path), &self.document).unwrap_or_else(|| {
            panic!("{}: nothing speaks for any agent", self.name);
        });
        if guess
            .agent
            .is_some_and(|agent| agent.spec.id == self.agent.spec.id)
        {
            guess.variant
        } else {
            None
        }
    }

    pub(crate) fn source(&self) -> ConversionSource {
        ConversionSource::decode(self.agent, &self.document, self.variant())
    }
}

pub(crate) fn samples() -> Vec<Sample> {
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../anyhook-agents/agents");
    let mut samples = Vec::new();
    for agent in anyhook_agents::all() {
        let configs = agents.join(agent.spec.id.as_ref()).join("configs");
        for case in sorted(&configs) {
            let mut files = Vec::new();
            walk(&case, &mut files);
            for file in files {
                let text = fs::read_to_string(&file).unwrap();
                let path = file.strip_prefix(&case).unwrap().display().to_string();
                let name = case.file_name().unwrap().display().to_string();
                samples.push(Sample {
                    agent,
                    name: format!("{}/{name}", agent.spec.id),
                    document: parse(&path, &text),
                    path,
                    text,
                });
            }
        }
    }
    samples
}

pub(crate) fn parse(path: &str, text: &str) -> Value {
    if Path::new(path).extension().is_some_and(|end| end == "toml") {
        return toml::from_str(text).unwrap();
    }
    let format = Format::from_path(path).filter(|format| *format == Format::Yaml);
    let (tree, findings) = document::parse(text, format.unwrap_or(Format::Jsonc));
    assert!(findings.is_empty(), "{path}: {findings:?}");
    tree.unwrap().to_json()
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    entries
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in sorted(folder) {
        if path.is_dir() {
            walk(&path, files);
        } else {
            files.push(path);
        }
    }
}
