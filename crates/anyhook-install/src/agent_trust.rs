//! The agent's own approval of hooks: whether it is given, and giving it if the
//! user asks for that.
//!
//! This replaces the vendor's review, so it is done only on request and only
//! for bridge entries. Each installation has a separate record, so that removing
//! one keeps the approval of the others.

use std::path::Path;
use std::time::Duration;

use anyhook_agents::spec::MatcherSubject;
use anyhook_agents::trust::{InstalledEntry, TrustLedger, TrustRecord, TrustSubject};
use anyhook_edit::{
    ContentChange, EditError, EditOptions, EditableFile, FileLock, Key, TextEditor,
};
use anyhook_model::Format;
use anyhook_util::hash::sha256;
use serde_json::Value;

use crate::error::InstallError;
use crate::hook_entries;
use crate::installation::FileChange;
use crate::machine::{Machine, real_path};
use crate::target::Target;

/// How long to wait for another process that edits the ledger.
const LEDGER_LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// What is known about an agent's approval of the bridge entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentTrust {
    Given,
    /// A sentence that states what is missing.
    Missing(String),
    /// Not recorded in a file; the agent's own description, if there is one.
    Unknown(Option<String>),
}

/// Whether [`accept`] can approve the entries.
pub fn can_accept(target: &Target) -> bool {
    target.adapter.trust_ledger().is_some()
}

/// Whether the agent's user must approve each entry, so that a new one does not
/// run at first. Other agents approve folders, with whatever they contain.
pub fn reviews_entries(machine: &Machine, target: &Target) -> bool {
    let Some((_, rules)) = target.adapter.trust_ledger() else {
        return false;
    };
    let subject = |entries| TrustSubject {
        project: &machine.root,
        scope: target.scope,
        config_path: &target.path,
        entries,
        sha256,
    };
    let events = target.adapter.spec.events.iter();
    let entries = events.take(1).map(|event| InstalledEntry {
        event: event.native.to_string(),
        index: 0,
        position: 0,
        matcher: None,
        handler: serde_json::json!({"type": "command", "command": "true"}),
    });
    let with_entry = rules.records(&subject(entries.collect())).len();
    with_entry > rules.records(&subject(Vec::new())).len()
}

pub(crate) fn trust_state(machine: &Machine, target: &Target) -> AgentTrust {
    let Some((ledger, rules)) = target.adapter.trust_ledger() else {
        return AgentTrust::Unknown(target.adapter.spec.trust.as_deref().map(str::to_owned));
    };
    let variable = ledger.env.as_deref().and_then(|name| machine.var(name));
    if variable.is_some_and(|value| value == "true") {
        return AgentTrust::Given;
    }
    let document = ledger_file(machine, target).and_then(|(file, _)| {
        let text = anyhook_edit::read_text(&file.path).ok()??;
        anyhook_edit::get(&text, file.format, &[]).ok()?
    });
    let real_path = real_path(&target.path);
    let subject = trust_subject(machine, target, &real_path);
    let missing = rules.missing(&subject, &document.unwrap_or_default());
    missing.map_or(AgentTrust::Given, AgentTrust::Missing)
}

/// Approves the bridge entries in the target's file.
pub fn accept(machine: &Machine, target: &Target) -> Result<Vec<FileChange>, InstallError> {
    let Some((file, rules)) = ledger_file(machine, target) else {
        return Ok(Vec::new());
    };
    let real_path = real_path(&target.path);
    let records: Vec<(Vec<Key>, TrustRecord)> = rules
        .records(&trust_subject(machine, target, &real_path))
        .into_iter()
        .map(|record| (record.path.iter().cloned().map(Key::from).collect(), record))
        .collect();
    let _lock = FileLock::acquire(&machine.records_dir(), &file.path, LEDGER_LOCK_TIMEOUT)?;
    let before = anyhook_edit::read_text(&file.path)?;
    let is_stale = records.iter().any(|(path, record)| {
        let text = before.as_deref().unwrap_or_default();
        let existing = anyhook_edit::get(text, file.format, path);
        existing.is_ok_and(|existing| existing.is_some_and(|existing| existing != record.value))
            && !record.is_element
    });
    if is_stale {
        file.uninstall(&[], &|_| false)?;
    }
    let change = file.install(&mut |editor: &mut TextEditor| {
        for (path, record) in &records {
            if record.is_element {
                let is_there = |item: &Value| record.is_element_like(item);
                editor.append_unless(path, &record.value, &is_there)?;
            } else if editor.get(path)?.is_none() {
                // An existing value of the user stays; the agent will ask.
                editor.set(path, &record.value)?;
            }
        }
        Ok::<(), EditError>(())
    })?;
    let (path, change) = (file.path, ContentChange::written(before, change.after));
    Ok(vec![FileChange { path, change }])
}

/// Undoes [`accept`] for this target.
pub fn withdraw(machine: &Machine, target: &Target) -> Result<Vec<FileChange>, InstallError> {
    let Some((file, _)) = ledger_file(machine, target) else {
        return Ok(Vec::new());
    };
    if anyhook_edit::InstallLog::load(&file.state, &file.path)?.is_none() {
        return Ok(Vec::new());
    }
    let _lock = FileLock::acquire(&machine.records_dir(), &file.path, LEDGER_LOCK_TIMEOUT)?;
    let (change, path) = (file.uninstall(&[], &|_| false)?, file.path);
    Ok(vec![FileChange { path, change }])
}

/// The file in which the agent records its approval, and the rules for it.
fn ledger_file(
    machine: &Machine,
    target: &Target,
) -> Option<(EditableFile, &'static dyn TrustLedger)> {
    let (ledger, rules) = target.adapter.trust_ledger()?;
    let path = machine.expand_path(&ledger.file, ledger.home_env.as_deref())?;
    let is_toml = path.extension().is_some_and(|ending| ending == "toml");
    let mut id = sha256(target.path.as_os_str().as_encoded_bytes());
    id.truncate(16);
    let file = EditableFile {
        state: machine.records_dir().join(format!("trust-{id}")),
        path,
        format: if is_toml { Format::Toml } else { Format::Jsonc },
        options: EditOptions::default(),
    };
    Some((file, rules))
}

/// The bridge entries in the target's file, and where they are.
fn trust_subject<'a>(
    machine: &'a Machine,
    target: &Target,
    real_path: &'a Path,
) -> TrustSubject<'a> {
    let config = target.config();
    let document = target.document().unwrap_or_default();
    let entries = hook_entries::entries(config, &document)
        .into_iter()
        .filter(|entry| entry.is_bridge(config))
        .map(|entry| {
            let subject = target
                .adapter
                .event_by_native(entry.event)
                .is_some_and(|event| event.matcher != MatcherSubject::None);
            InstalledEntry {
                event: entry.event.to_owned(),
                index: entry.index,
                position: entry.position,
                matcher: entry.matcher(config).filter(|_| subject).cloned(),
                handler: entry.handler.clone(),
            }
        })
        .collect();
    TrustSubject {
        project: &machine.root,
        scope: target.scope,
        config_path: real_path,
        entries,
        sha256,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhook_agents::spec::Scope;
    use serde_json::json;

    fn ledger(agent: &str) -> &'static dyn anyhook_agents::trust::TrustLedger {
        let adapter = anyhook_agents::get(agent).unwrap();
        adapter.trust_ledger().unwrap().1
    }

    fn subject(project: &str, entries: Vec<InstalledEntry>) -> TrustSubject<'_> {
        TrustSubject {
            project: Path::new(project),
            scope: Scope::User,
            config_path: Path::new("/h/hooks.json"),
            entries,
            sha256,
        }
    }

    /// As Codex 0.166.0 lists them for these entries.
    #[test]
    fn hashes_are_those_of_the_client() {
        let entry = |event: &str, seconds: u64| InstalledEntry {
            event: event.to_owned(),
            index: 1,
            position: 2,
            matcher: None,
            handler: json!({"type": "command", "command": "anyhook run --agent codex", "timeout": seconds}),
        };
        let entries = vec![entry("PreToolUse", 60), entry("SessionEnd", 3)];
        let records = ledger("codex").records(&subject("/p", entries));
        let found: Vec<_> = records
            .iter()
            .map(|record| (record.path[2].as_str(), record.value.as_str().unwrap()))
            .collect();
        assert_eq!(
            found,
            [
                (
                    "/h/hooks.json:pre_tool_use:1:2",
                    "sha256:0c3035450b6d86d77c7f63cc638bef203635dbbd1e38d459c2bc9a8516a7b06d"
                ),
                (
                    "/h/hooks.json:session_end:1:2",
                    "sha256:08e481bd684a116e12250d1fa70658dbdce4633ee2a8140e48231327041a964d"
                ),
            ]
        );
    }

    #[test]
    fn trusted_folders() {
        let known = json!({"/a": "TRUST_FOLDER", "/b/c": "TRUST_PARENT", "/d": "DO_NOT_TRUST"});
        for (folder, trusted) in [
            ("/a/x", true),
            ("/a", true),
            ("/b/z", true),
            ("/ab", false),
            ("/d", false),
        ] {
            let missing = ledger("gemini-cli").missing(&subject(folder, Vec::new()), &known);
            assert_eq!(missing.is_none(), trusted, "{folder}");
        }
    }

    /// A table with a ledger that its quirks do not know would be silent.
    #[test]
    fn every_ledger_of_a_table_can_be_read() {
        for adapter in anyhook_agents::all() {
            assert_eq!(
                adapter.spec.ledger.is_some(),
                adapter.trust_ledger().is_some(),
                "{adapter:?}"
            );
        }
    }
}
