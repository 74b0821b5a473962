//! A place where an entry of the bridge finds only the hook of `doctor`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhook_agents::Adapter;
use anyhook_model::HookEvent;
use anyhook_run::record::journal::{CURRENT_FILE_NAME, Journal};
use anyhook_util::env;
use anyhook_util::fs::{private_dir_builder, replace};
use serde_json::{Value, json};

use crate::machine::Machine;

/// The reason that the probe's hook gives for its deny.
const PROBE_DENY_REASON: &str = "anyhook-doctor-denies";

/// A temporary folder in which the bridge finds only the probe's hook.
pub(super) struct ProbeSandbox {
    folder: PathBuf,
}

impl ProbeSandbox {
    pub(super) fn new(adapter: &Adapter) -> std::io::Result<Self> {
        let temp = std::env::temp_dir();
        let folder = (0_u32..1000)
            .map(|n| temp.join(format!("anyhook-doctor-{}-{n}", std::process::id())))
            .find_map(|path| match private_dir_builder().create(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => None,
                made => Some(made.map(|()| path)),
            })
            .ok_or(std::io::ErrorKind::AlreadyExists)??;
        let sandbox = Self {
            folder: anyhook_util::paths::canonicalize(&folder).unwrap_or(folder),
        };
        for name in ["config", "managed", "state", "project", "project/.git"] {
            private_dir_builder().create(sandbox.folder.join(name))?;
        }
        let path = sandbox.folder.join("config/hooks.json");
        replace(&path, denying_manifest(adapter).to_string().as_bytes())?;
        Ok(sandbox)
    }

    pub(super) fn project(&self) -> PathBuf {
        self.folder.join("project")
    }

    pub(super) fn environment(
        &self,
        machine: &Machine,
        adapter: &Adapter,
        event: &HookEvent,
    ) -> Vec<(String, String)> {
        let own = |name: &str| self.folder.join(name).to_string_lossy().into_owned();
        let mut variables = vec![
            env::ANYHOOK.with("1"),
            env::ANYHOOK_CONFIG_DIR.with(own("config")),
            env::ANYHOOK_MANAGED_DIR.with(own("managed")),
            env::ANYHOOK_STATE_DIR.with(own("state")),
        ];
        let root = machine.root.to_string_lossy();
        for (name, template) in &adapter.spec.env {
            let session = event.session_id.as_deref().unwrap_or_default();
            let value = template
                .replace("{project}", &root)
                .replace("{session_id}", session)
                .replace("{transcript_path}", "")
                .replace("{event}", &event.native_event)
                .replace("{tool}", event.native_tool_name().unwrap_or_default());
            variables.push((name.to_string(), value));
        }
        variables
    }

    /// Whether the probe's hook ran for this event.
    pub(super) fn has_record(&self, session: &str, native: &str) -> bool {
        let journal = Journal::new(&self.folder.join("state"));
        let text =
            std::fs::read_to_string(journal.folder().join(CURRENT_FILE_NAME)).unwrap_or_default();
        text.lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .any(|record| {
                let text = |at: &str| record.pointer(at).and_then(Value::as_str);
                text("/event/native_event") == Some(native)
                    && text("/event/session_id").is_none_or(|known| known == session)
                    && record.pointer("/hooks/0").is_some()
            })
    }
}

impl Drop for ProbeSandbox {
    fn drop(&mut self) {
        let _best_effort = std::fs::remove_dir_all(&self.folder);
    }
}

/// A manifest with one hook per event of the agent, which denies.
fn denying_manifest(adapter: &Adapter) -> Value {
    let events = adapter.spec.events.iter();
    let names: BTreeSet<&str> = events
        .map(|event| event.is.as_deref().unwrap_or(&event.native))
        .collect();
    let hooks: Vec<Value> = names
        .into_iter()
        .map(|name| {
            json!({"name": "doctor", "event": name, "blocking": true, "handler": {
                "type": "command",
                "command": format!("echo {PROBE_DENY_REASON} >&2; exit 2"),
                "platform": {"windows": format!("echo {PROBE_DENY_REASON} 1>&2 & exit 2")},
            }})
        })
        .collect();
    json!({"spec": "hooks/1.0", "hooks": hooks})
}
