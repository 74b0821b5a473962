//! Hooks that do as a script says, and write down what they heard.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhook_codex::Decide;
use anyhook_model::{HookEvent, HookResponse};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Script {
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
    /// Made when the bridge gives the hooks up.
    #[serde(default)]
    pub abandoned: Option<PathBuf>,
}

impl Decide for Script {
    fn decide(&self, event: HookEvent) -> HookResponse {
        if let Some(log) = &self.log {
            let mut line = serde_json::to_vec(&event).unwrap();
            line.push(b'\n');
            let mut log = OpenOptions::new()
                .create(true)
                .append(true)
                .open(log)
                .unwrap();
            log.write_all(&line).unwrap();
        }
        let call = event
            .data
            .get("tool_call_id")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if let Some(gate) = &self.gate {
            let gate = gate.with_extension(call);
            while !gate.exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        self.by_call.get(call).unwrap_or(&self.response).clone()
    }

    fn is_idle(&self) -> bool {
        self.idle
    }

    fn abandon(&self) {
        if let Some(path) = &self.abandoned {
            std::fs::write(path, "").unwrap();
        }
    }
}
