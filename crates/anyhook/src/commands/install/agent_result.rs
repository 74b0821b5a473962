//! What `install` and `uninstall` did for one agent.

use anyhook_agents::Adapter;
use anyhook_agents::spec::Scope;
use anyhook_install::{FileChange, InstallNote, Machine, scope_name};
use serde_json::{Value, json};

use crate::render::{Terminal, counted};

/// What installing or uninstalling changed for one agent, or why it failed.
pub(crate) struct AgentResult {
    pub adapter: &'static Adapter,
    pub scope: Scope,
    pub files: Vec<FileChange>,
    pub error: Option<String>,
    pub events: Vec<String>,
    /// The user's own hooks that were taken out of the file.
    pub moved: Vec<String>,
    /// How many of them were put back.
    pub put_back: usize,
    pub notes: Vec<InstallNote>,
}

impl AgentResult {
    pub(crate) fn changed(adapter: &'static Adapter, scope: Scope, files: Vec<FileChange>) -> Self {
        Self {
            adapter,
            scope,
            files,
            error: None,
            events: Vec::new(),
            moved: Vec::new(),
            put_back: 0,
            notes: Vec::new(),
        }
    }

    pub(crate) fn failed(adapter: &'static Adapter, scope: Scope, error: &impl ToString) -> Self {
        Self {
            error: Some(error.to_string()),
            ..Self::changed(adapter, scope, Vec::new())
        }
    }

    pub(crate) fn is_changed(&self) -> bool {
        self.files.iter().any(|file| !file.change.is_empty())
    }

    pub(crate) fn files_json(&self, world: &Machine) -> Vec<Value> {
        let file_json = |file: &FileChange| {
            json!({
                "path": file.path,
                "changed": !file.change.is_empty(),
                "created": file.change.before.is_none() && file.change.after.is_some(),
                "removed": file.change.before.is_some() && file.change.after.is_none(),
                "diff": file.change.diff(&world.display_path(&file.path)),
            })
        };
        self.files.iter().map(file_json).collect()
    }

    pub(super) fn install_json(&self, world: &Machine) -> Value {
        json!({
            "agent": self.adapter.spec.id,
            "scope": scope_name(self.scope),
            "events": self.events,
            "moved": self.moved,
            "changed": self.is_changed(),
            "files": self.files_json(world),
            "notes": self.notes,
            "error": self.error,
        })
    }

    pub(super) fn print_installed(&self, world: &Machine, dry_run: bool, terminal: &Terminal) {
        let name = &self.adapter.spec.name;
        if let Some(error) = &self.error {
            terminal.error(&format!("{name}: {error}"));
            return;
        }
        let paths: Vec<String> = self
            .files
            .iter()
            .map(|file| world.display_path(&file.path))
            .collect();
        let paths = match paths.as_slice() {
            [first, _, .., last] => {
                format!("{first} … {last} ({} files)", paths.len())
            }
            _ => paths.join(", "),
        };
        let done = match (self.is_changed(), dry_run) {
            (false, _) => "already installed",
            (true, true) => "would be installed",
            (true, false) => "installed",
        };
        let events = counted(self.events.len(), "event");
        terminal.line(&format!("{name}: {done}, {events}, {paths}"));
        if !self.moved.is_empty() {
            let (count, moved) = (counted(self.moved.len(), "hook"), self.moved.join(", "));
            let moved = if dry_run {
                format!("would take out {count}: {moved}")
            } else {
                format!("took out {count}, which the manifest runs now: {moved}")
            };
            terminal.line(&format!("  {moved}"));
            if self.scope == Scope::Project {
                terminal.note("  note: everyone who shares this file needs anyhook for them to run; `--keep-native` leaves them in it");
            }
        }
        for note in &self.notes {
            terminal.note(&format!("  note: {}", note.text));
        }
    }
}
