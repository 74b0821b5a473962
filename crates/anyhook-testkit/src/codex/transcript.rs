//! Recorded conversations between a client and an app server.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// The fixtures folder of `anyhook-codex`.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../anyhook-codex/fixtures")
}

#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    Client(Value),
    Server(Value),
}

#[derive(Debug, Clone)]
pub struct Transcript {
    pub name: String,
    pub path: PathBuf,
    pub lines: Vec<Line>,
}

impl Transcript {
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().filter_map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            let message = line["msg"].take();
            match line["dir"].as_str().unwrap() {
                "->" => Some(Line::Client(message)),
                "<-" => Some(Line::Server(message)),
                // The transport handshake.
                _ => None,
            }
        });
        Self {
            name: path.file_stem().unwrap().to_string_lossy().into_owned(),
            path: path.to_owned(),
            lines: lines.collect(),
        }
    }

    pub fn all() -> Vec<Self> {
        let mut paths: Vec<_> = std::fs::read_dir(fixtures().join("transcripts"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        paths.sort();
        assert!(paths.len() > 10, "the transcripts are missing");
        paths.iter().map(|path| Self::read(path)).collect()
    }

    /// The server's requests for approval.
    pub fn approvals(&self) -> Vec<Value> {
        let server = self.lines.iter().filter_map(|line| match line {
            Line::Server(message) if is_request(message) => Some(message.clone()),
            _ => None,
        });
        server.collect()
    }
}

pub fn is_request(message: &Value) -> bool {
    message.get("id").is_some() && message.get("method").is_some()
}

pub fn is_answer(message: &Value) -> bool {
    message.get("id").is_some() && message.get("method").is_none()
}
