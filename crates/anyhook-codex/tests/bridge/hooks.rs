//! Hooks that follow a script and log the events that they get.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhook_codex::{Decide, Ruling};
use anyhook_model::{HookEvent, HookResponse};
use anyhook_testkit::codex::ProxyProcess;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Script {
    #[serde(default)]
    pub idle: bool,
    /// The response to whatever can be answered.
    #[serde(default)]
    pub response: HookResponse,
    /// Where each event goes, one JSON object per line.
    #[serde(default)]
    pub log: Option<PathBuf>,
    /// Calls with this tool call id wait until the file `<gate>.<id>` exists.
    #[serde(default)]
    pub gate: Option<PathBuf>,
    /// Answers by tool call id, before `response`.
    #[serde(default)]
    pub by_call: std::collections::BTreeMap<String, HookResponse>,
    /// The file for the answers to the server, by tool call id.
    #[serde(default)]
    pub answers: Option<PathBuf>,
    /// Made when the bridge gives the hooks up.
    #[serde(default)]
    pub abandoned: Option<PathBuf>,
}

impl Decide for Script {
    fn decide(&self, event: HookEvent) -> Ruling {
        if let Some(log) = &self.log {
            let line = serde_json::to_string(&event).unwrap();
            append(log, &format!("{line}\n"));
        }
        let call = event
            .data
            .get("tool_call_id")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if let Some(gate) = &self.gate {
            let gate = gate.with_extension(call);
            let abandoned = || self.abandoned.as_ref().is_some_and(|path| path.exists());
            while !gate.exists() && !abandoned() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        let response = self.by_call.get(call).unwrap_or(&self.response).clone();
        let log = self.answers.clone();
        let call = call.to_owned();
        Ruling::new(response, move |answer| {
            if let Some(log) = log {
                let answer = answer.as_deref().unwrap_or("-");
                append(&log, &format!("{call} {answer}\n"));
            }
        })
    }

    fn could_decide(&self, _: &HookEvent) -> bool {
        !self.idle
    }

    fn abandon(&self) {
        if let Some(path) = &self.abandoned {
            std::fs::write(path, "").unwrap();
        }
    }
}

fn append(path: &Path, line: &str) {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.unwrap().write_all(line.as_bytes()).unwrap();
}

/// Starts a proxy with these hooks in front of a server that this binary plays.
pub(crate) fn start_proxy(script: &Script, hold_ms: Option<u64>, server: &[&str]) -> ProxyProcess {
    let me = std::env::current_exe().unwrap();
    let mut command = Command::new(&me);
    command
        .args(["play", "proxy", &serde_json::to_string(script).unwrap()])
        .arg(hold_ms.map_or_else(|| "-".into(), |ms| ms.to_string()))
        .arg("--")
        .arg(&me)
        .arg("play")
        .args(server);
    ProxyProcess::spawn(&mut command)
}
