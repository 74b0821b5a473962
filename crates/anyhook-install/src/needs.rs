//! Which events the bridge asks an agent for, and how long it may take.

use std::path::Path;

use anyhook_agents::Adapter;
use anyhook_agents::spec::{Blocking, Event};
use anyhook_model::parse::{self, Vocabulary};
use anyhook_model::{Format, Hook, suggest};
use anyhook_run::{discover, plan};

use crate::error::InstallError;
use crate::vendor;
use crate::world::World;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Events {
    /// All that are not too frequent, for the record; and those that a manifest names.
    #[default]
    All,
    /// Only those that a manifest, or OpenHook, needs.
    Manifest,
    /// These, by canonical or native name.
    List(Vec<String>),
}

/// Seconds that an entry gets at least: the bridge ends slow hooks itself.
const TIME: f64 = 60.0;

/// Seconds that the bridge needs beside its hooks.
const MARGIN: f64 = 5.0;

/// All that the manifests around a project say.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    hooks: Vec<Hook>,
    openhook: bool,
}

impl Needs {
    pub fn read(world: &World) -> Self {
        let found = discover::discover(&world.dirs, &world.cwd);
        let hooks = found.manifests.iter().flat_map(|source| {
            let format = Format::from_path(&source.path.to_string_lossy()).unwrap_or(Format::Yaml);
            let manifest = parse::manifest(&source.text, format, &Vocabulary::default()).0;
            manifest.map(|manifest| manifest.hooks).unwrap_or_default()
        });
        Self {
            hooks: hooks.collect(),
            openhook: found.openhook.is_some(),
        }
    }

    /// The agent's events that the bridge is to stand at, in the table's order.
    pub fn events<'a>(
        &self,
        adapter: &'a Adapter,
        choice: &Events,
    ) -> Result<Vec<&'a Event>, InstallError> {
        let all = adapter.spec.events.iter();
        let wanted: Vec<&Event> = match choice {
            Events::All => all
                .filter(|event| self.names(event) || (!event.noisy && !event.read_only))
                .collect(),
            Events::Manifest => all
                .filter(|event| {
                    self.names(event) || (self.openhook && !event.noisy && !event.read_only)
                })
                .collect(),
            Events::List(names) => listed(adapter, names)?,
        };
        Ok(wanted
            .into_iter()
            .filter(|event| !does_the_work(event))
            .collect())
    }

    /// Whether a hook of a manifest is for this event.
    fn names(&self, event: &Event) -> bool {
        self.hooks.iter().any(|hook| {
            hook.event == event.native.as_ref()
                || (!event.read_only && event.is.as_deref() == Some(hook.event.as_str()))
        })
    }

    /// Seconds for one entry: more than any of its hooks may take.
    pub fn seconds(&self, adapter: &Adapter, event: &Event) -> f64 {
        let of_event = self.hooks.iter().filter(|hook| {
            hook.event == event.native.as_ref() || event.is.as_deref() == Some(&hook.event)
        });
        // One after another in the worst case.
        let together: f64 = of_event
            .map(|hook| plan::timeout(&hook.handler).as_secs_f64())
            .sum();
        let wanted = TIME.max((together + MARGIN).ceil());
        let caps = [
            adapter.spec.config.handler.max_timeout,
            vendor::limit(&adapter.spec.id, &event.native),
        ];
        caps.into_iter().flatten().fold(wanted, f64::min)
    }

    /// Whether nothing is to be run here.
    pub fn is_empty(&self) -> bool {
        self.hooks.is_empty() && !self.openhook
    }
}

/// An event at which a hook takes the agent's place: silence would break it.
fn does_the_work(event: &Event) -> bool {
    event.noisy && event.blocking == Blocking::Prevent && event.answer.is_none()
}

fn listed<'a>(adapter: &'a Adapter, names: &[String]) -> Result<Vec<&'a Event>, InstallError> {
    let mut wanted: Vec<&Event> = Vec::new();
    for name in names {
        let mut found: Vec<&Event> = adapter
            .events_of(name)
            .filter(|event| !event.read_only)
            .collect();
        if found.is_empty() {
            found.extend(adapter.event_by_native(name));
        }
        if found.is_empty() {
            let known = adapter.spec.events.iter();
            let known = known.flat_map(|event| {
                [Some(event.native.as_ref()), event.is.as_deref()]
                    .into_iter()
                    .flatten()
            });
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

/// The project's manifest, where there is one.
pub fn project_manifest(root: &Path) -> Option<std::path::PathBuf> {
    let folder = root.join(discover::PROJECT_FOLDER);
    discover::MANIFESTS
        .iter()
        .map(|name| folder.join(name))
        .find(|path| path.is_file())
}
