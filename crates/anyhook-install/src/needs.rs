//! The events for which the bridge is installed, and their timeouts.

use std::path::{Path, PathBuf};

use anyhook_agents::Adapter;
use anyhook_agents::spec::{Blocking, EventSpec};
use anyhook_model::parse::{self, Vocabulary};
use anyhook_model::{Format, Hook, suggest};
use anyhook_run::agent::MIN_ENTRY_TIMEOUT;
use anyhook_run::config::discover;
use anyhook_run::config::time_limit::longest_answer;

use crate::error::InstallError;
use crate::machine::Machine;

/// Which events to install the bridge for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum EventSelection {
    /// Every event that is not too frequent, for the journal, and those that a manifest names.
    #[default]
    All,
    /// Only those that a manifest, or OpenHook, needs.
    Manifest,
    /// These, by canonical or native name.
    List(Vec<String>),
}

/// What the bridge needs in addition to its hooks.
const BRIDGE_OVERHEAD_SECONDS: f64 = 5.0;

/// What the manifests that apply to a project need.
#[derive(Debug, Clone, Default)]
pub struct ManifestNeeds {
    /// Those of each manifest.
    manifests: Vec<Vec<Hook>>,
    openhook: bool,
}

impl ManifestNeeds {
    pub fn load(machine: &Machine) -> Self {
        let found = discover::discover(&machine.dirs, &machine.cwd);
        let manifests = found.manifests.iter().map(|source| {
            let format = Format::from_path(&source.path.to_string_lossy()).unwrap_or(Format::Yaml);
            let manifest = parse::manifest(&source.text, format, &Vocabulary::default()).0;
            manifest.map(|manifest| manifest.hooks).unwrap_or_default()
        });
        Self {
            manifests: manifests.collect(),
            openhook: found.openhook.is_some(),
        }
    }

    /// The agent's events to install the bridge for, in the table's order.
    pub fn events<'a>(
        &self,
        adapter: &'a Adapter,
        choice: &EventSelection,
    ) -> Result<Vec<&'a EventSpec>, InstallError> {
        let takes_defaults = *choice == EventSelection::All || self.openhook;
        let mut events: Vec<&EventSpec> = if let EventSelection::List(names) = choice {
            listed(adapter, names)?
        } else {
            let events = adapter.spec.events.iter();
            events
                .filter(|event| self.names(event) || (takes_defaults && is_default_event(event)))
                .collect()
        };
        events.retain(|event| !replaces_agent_work(event));
        Ok(events)
    }

    /// Whether a hook of a manifest is for this event.
    fn names(&self, event: &EventSpec) -> bool {
        self.manifests.iter().flatten().any(|hook| {
            hook.event == event.native.as_ref()
                || (!event.read_only && event.is.as_deref() == Some(hook.event.as_str()))
        })
    }

    /// How long the hooks of an event may take, with what the bridge needs.
    pub(crate) fn needed_seconds(&self, event: &EventSpec) -> f64 {
        let is_for = |hook: &&Hook| {
            hook.event == event.native.as_ref() || event.is.as_deref() == Some(&hook.event)
        };
        let manifests = self.manifests.iter();
        let manifests: Vec<Vec<&Hook>> = manifests
            .map(|hooks| hooks.iter().filter(is_for).collect())
            .collect();
        let can_rewrite = event.blocking == Blocking::Prevent;
        let total = longest_answer(&manifests, can_rewrite).as_secs_f64();
        (total + BRIDGE_OVERHEAD_SECONDS).ceil()
    }

    /// The timeout of one entry: longer than all of its hooks may take.
    pub fn timeout_seconds(&self, adapter: &Adapter, event: &EventSpec) -> f64 {
        // The bridge stops slow hooks itself.
        let least = MIN_ENTRY_TIMEOUT.as_secs_f64();
        let wanted = least.max(self.needed_seconds(event));
        let caps = [adapter.spec.config.handler.max_timeout, event.max_timeout];
        caps.into_iter().flatten().fold(wanted, f64::min)
    }

    /// Whether there is nothing to run.
    pub fn is_empty(&self) -> bool {
        self.manifests.iter().all(Vec::is_empty) && !self.openhook
    }
}

/// Whether the bridge is installed for the event even if no manifest names it.
pub(crate) fn is_default_event(event: &EventSpec) -> bool {
    !event.noisy && !event.read_only
}

/// An event whose hook does the agent's work, so that an empty answer would break it.
fn replaces_agent_work(event: &EventSpec) -> bool {
    event.noisy && event.blocking == Blocking::Prevent && event.answer.is_none()
}

fn listed<'a>(adapter: &'a Adapter, names: &[String]) -> Result<Vec<&'a EventSpec>, InstallError> {
    let mut wanted: Vec<&EventSpec> = Vec::new();
    for name in names {
        let mut found: Vec<&EventSpec> = adapter
            .events_of(name)
            .filter(|event| !event.read_only)
            .collect();
        if found.is_empty() {
            found.extend(adapter.event_by_native(name));
        }
        if found.is_empty() {
            let known = adapter.spec.events.iter();
            let known =
                known.flat_map(|event| std::iter::once(&*event.native).chain(event.is.as_deref()));
            return Err(InstallError::UnknownEvent {
                agent: adapter.spec.name.to_string(),
                event: name.clone(),
                hint: suggest::nearest(name, known)
                    .map(|near| format!("; did you mean `{near}`?"))
                    .unwrap_or_default(),
            });
        }
        for event in found {
            if !wanted.iter().any(|one| one.native == event.native) {
                wanted.push(event);
            }
        }
    }
    Ok(wanted)
}

/// The project's manifest, if there is one.
pub fn project_manifest(root: &Path) -> Option<PathBuf> {
    discover::manifest_in(&root.join(discover::PROJECT_FOLDER))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_installed_timeout_covers_guards_that_are_asked_again_after_a_rewrite() {
        let hook = |event: &str| -> Hook {
            let hook = json!({"event": event, "blocking": true,
                "handler": {"type": "command", "command": "./x", "timeout": 60}});
            serde_json::from_value(hook).unwrap()
        };
        let before = || hook("before_tool_execute");
        let needs = ManifestNeeds {
            manifests: vec![
                vec![before(), before(), hook("after_tool_execute")],
                vec![hook("after_tool_execute")],
            ],
            openhook: false,
        };
        let adapter = anyhook_agents::get("claude-code").unwrap();
        for (native, seconds) in [("PreToolUse", 245.0), ("PostToolUse", 125.0)] {
            let event = adapter.event_by_native(native).unwrap();
            assert!((needs.timeout_seconds(adapter, event) - seconds).abs() < 1e-9);
        }
    }
}
