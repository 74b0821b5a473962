//! What applies where an event happens: manifests, policies, and what is
//! missing of them.

use std::path::{Path, PathBuf};

use anyhook_model::{HookEvent, Scope};

use crate::discover::{self, Found, MANIFESTS, PROJECT_FOLDER, Source, Trouble};
use crate::engine::Engine;
use crate::places::Places;
use crate::plan::Loaded;
use crate::policy::Rulebook;

pub struct Surroundings {
    pub loaded: Vec<Loaded>,
    pub rules: Rulebook,
    pub troubles: Vec<Trouble>,
    /// The folder of the discovery file.
    pub openhook: Option<PathBuf>,
    /// For the user.
    pub notices: Vec<String>,
    /// Where the event happens, each place by its real name.
    places: Vec<PathBuf>,
}

impl Surroundings {
    /// `is_own`: see [`Places::of`].
    pub fn load(engine: &Engine, event: &HookEvent, is_own: bool) -> Self {
        let Found {
            manifests,
            policies,
            openhook,
            mut troubles,
            places,
            ..
        } = find(engine, event, is_own);
        let (rules, notices) = engine.rules(policies, &mut troubles);
        let loaded = manifests
            .into_iter()
            .filter_map(|source| Loaded::new(source, engine, &mut troubles))
            .collect();
        Self {
            loaded,
            rules,
            troubles,
            openhook,
            notices,
            places,
        }
    }

    /// Manifests that were trusted and are not read any more, each with the
    /// reason. That is not for every event to find out: it reads every consent.
    pub fn gone(&self, engine: &Engine) -> Vec<String> {
        let mut gone = Vec::new();
        for consent in engine.trust.all() {
            let path = consent.manifest;
            if !is_manifest(&path) || !self.is_here(&path) {
                continue;
            }
            let same_folder = |source: &Source| source.path.parent() == path.parent();
            let found = self.loaded.iter().map(|loaded| &loaded.source);
            let mut beside = found.filter(|source| same_folder(source));
            let shown = path.display();
            if !path.exists() {
                gone.push(format!(
                    "`{shown}` was trusted and is gone; if that is right, run `anyhook untrust {shown}`"
                ));
            } else if beside.any(|source| source.path != path) {
                gone.push(format!(
                    "`{shown}` was trusted, and another file is before it"
                ));
            }
        }
        gone
    }

    /// Whether a manifest is of a project that the event happens in.
    fn is_here(&self, manifest: &Path) -> bool {
        let project = manifest.parent().and_then(Path::parent);
        project.is_some_and(|project| self.places.iter().any(|place| place.starts_with(project)))
    }
}

/// A project's, and not a discovery file.
fn is_manifest(path: &Path) -> bool {
    let is = |part: Option<&std::ffi::OsStr>, name: &str| part.is_some_and(|part| part == name);
    is(path.parent().and_then(Path::file_name), PROJECT_FOLDER)
        && MANIFESTS.iter().any(|name| is(path.file_name(), name))
}

fn find(engine: &Engine, event: &HookEvent, is_own: bool) -> Found {
    let has_consent = |path: &Path| engine.trust.get(path).is_some();
    discover::discover_at(&engine.dirs, &Places::of(event, is_own), &has_consent)
}

impl Engine {
    /// Whether hooks may have a say about an event: there are some, or there is
    /// what cannot be read.
    pub fn concerns(&self, event: &HookEvent) -> bool {
        let found = find(self, event, false);
        !found.manifests.is_empty() || !found.troubles.is_empty()
    }

    /// The rules that count, and what the user should know of the others: a
    /// project's policy is as little to be obeyed unseen as its hooks.
    pub fn rules(
        &self,
        mut policies: Vec<Source>,
        troubles: &mut Vec<Trouble>,
    ) -> (Rulebook, Vec<String>) {
        let mut notices = Vec::new();
        policies.retain(|policy| {
            if policy.scope != Scope::Project || self.trust_all {
                return true;
            }
            let manifest = discover::manifest_in(policy.folder());
            let Some(consent) = manifest.and_then(|manifest| self.trust.get(&manifest)) else {
                return false;
            };
            let is_seen = consent.covers(&policy.path, &policy.text);
            if !is_seen {
                let path = policy.path.display();
                notices.push(format!(
                    "the policy `{path}` is not used: it is not what was trusted; read it, then run `anyhook trust`"
                ));
            }
            is_seen
        });
        (Rulebook::load(&policies, troubles), notices)
    }
}
