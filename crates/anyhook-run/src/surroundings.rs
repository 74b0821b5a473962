//! What applies where an event happens: manifests, policies, and what is
//! missing of them.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use anyhook_model::{HookEvent, Scope};

use crate::discover::{self, Found, MANIFESTS, PROJECT_FOLDER, Source, Trouble};
use crate::engine::Engine;
use crate::places::Places;
use crate::plan::Loaded;
use crate::policy::Rulebook;

#[derive(Debug)]
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
    pub fn load(engine: &Engine, event: &HookEvent, is_own: bool) -> Arc<Self> {
        let at = Places::of(event, is_own);
        let Some(memory) = &engine.memory else {
            return Arc::new(Self::look(engine, &at).0);
        };
        if let Some(here) = memory.recall(&at) {
            return here;
        }
        let begun = SystemTime::now();
        let (mut here, mut looked) = Self::look(engine, &at);
        let manifests = looked.iter().filter(|path| is_manifest(path));
        let consents: Vec<_> = manifests.map(|path| engine.trust.file(path)).collect();
        looked.extend(consents);
        looked.sort();
        looked.dedup();
        here.loaded.iter_mut().for_each(Loaded::read_all);
        let here = Arc::new(here);
        memory.remember(at, looked, &here, begun);
        here
    }

    /// What is remembered of where an event happens, and holds.
    pub fn recall(engine: &Engine, event: &HookEvent) -> Option<Arc<Self>> {
        engine.memory.as_ref()?.recall(&Places::of(event, false))
    }

    /// With every path that had a part in this, but for the consents to those
    /// that are manifests.
    fn look(engine: &Engine, at: &Places) -> (Self, Vec<PathBuf>) {
        let asked = RefCell::new(Vec::new());
        let has_consent = |path: &Path| {
            asked.borrow_mut().push(path.to_owned());
            engine.trust.get(path).is_some()
        };
        let Found {
            manifests,
            policies,
            openhook,
            mut troubles,
            places,
            mut looked,
            ..
        } = discover::discover_at(&engine.dirs, at, &has_consent);
        looked.extend(asked.into_inner());
        let (rules, notices) = engine.rules(policies, &mut troubles);
        let loaded = manifests
            .into_iter()
            .filter_map(|source| Loaded::new(source, engine, &mut troubles))
            .collect();
        let here = Self {
            loaded,
            rules,
            troubles,
            openhook,
            notices,
            places,
        };
        (here, looked)
    }

    /// Whether an event runs nothing here, and nobody is to hear of it.
    pub fn is_quiet(&self, event: &HookEvent) -> bool {
        self.troubles.is_empty()
            && self.notices.is_empty()
            && self.openhook.is_none()
            && !self.rules.fail_closed()
            && self
                .loaded
                .iter()
                .all(|loaded| loaded.distrust().is_none() && loaded.due(event).is_empty())
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

impl Engine {
    /// Whether hooks may have a say about an event: there are some, or there is
    /// what cannot be read.
    pub fn concerns(&self, event: &HookEvent) -> bool {
        let has_consent = |path: &Path| self.trust.get(path).is_some();
        let at = Places::of(event, false);
        let found = discover::discover_at(&self.dirs, &at, &has_consent);
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
