//! The config that applies to one event, loaded: manifests, policies, problems.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhook_model::{Hook, HookEvent};

use crate::config::discover::{self, Approvals, LoadProblem};
use crate::config::folders::EventFolders;
use crate::config::known_texts;
use crate::config::lost_guards::{self, LostGuard};
use crate::config::manifest::{LoadedManifest, ManifestLoader, SelectedHook};
use crate::config::policy::Rulebook;
use crate::config::time_limit::longest_answer;
use crate::config::trust::Inspected;
use crate::engine::{Engine, can_prevent};

#[derive(Debug)]
pub struct EffectiveConfig {
    pub(crate) manifests: Vec<LoadedManifest>,
    pub(crate) rules: Rulebook,
    pub(crate) problems: Vec<LoadProblem>,
    /// The folder of the OpenHook discovery file.
    pub(crate) openhook: Option<PathBuf>,
    /// For the user.
    pub(crate) notices: Vec<String>,
    /// Trusted manifests that do not apply any more.
    pub(crate) lost: Vec<LostGuard>,
    /// How long a call may be held for an answer; only known where configs are cached.
    approval_hold: Duration,
}

impl EffectiveConfig {
    /// Loads the config from the cache, if the engine has one and it is valid,
    /// else from files. For `owns_process` see [`EventFolders::from_event`].
    pub fn load(engine: &Engine, event: &HookEvent, owns_process: bool) -> Arc<Self> {
        Self::load_at(engine, EventFolders::from_event(event, owns_process), event)
    }

    /// As [`Self::load`], for the given folders.
    pub fn load_at(engine: &Engine, folders: EventFolders, event: &HookEvent) -> Arc<Self> {
        let Some(cache) = &engine.config_cache else {
            return Arc::new(Self::load_from_files(engine, &folders, Some(event)).0);
        };
        if let Some(config) = cache.get(&folders) {
            return config;
        }
        let begun = SystemTime::now();
        let (mut config, mut inspected) = Self::load_from_files(engine, &folders, None);
        config.approval_hold = engine.approval_hold();
        inspected.extend(discover::settings_paths(&engine.dirs.config));
        inspected.sort();
        inspected.dedup();
        for manifest in &mut config.manifests {
            manifest.hooks.compile();
        }
        let config = Arc::new(config);
        cache.insert(folders, inspected, &config, begun);
        config
    }

    /// The cached config of an event, if it is still valid.
    pub fn from_cache(engine: &Engine, event: &HookEvent) -> Option<Arc<Self>> {
        Self::from_cache_at(engine, &EventFolders::from_event(event, false))
    }

    /// As [`Self::from_cache`], for the given folders.
    pub fn from_cache_at(engine: &Engine, folders: &EventFolders) -> Option<Arc<Self>> {
        engine.config_cache.as_ref()?.get(folders)
    }

    /// How long an event may take in a process that caches configs: its hooks together,
    /// and the time for which it may be held for an answer.
    pub fn time_limit(&self, event: &HookEvent) -> Duration {
        self.approval_hold
            .saturating_add(self.longest_answer(event, |_| true))
    }

    /// How long those hooks of an event that `counts` names may take together.
    pub(crate) fn longest_answer(
        &self,
        event: &HookEvent,
        counts: impl Fn(&Hook) -> bool,
    ) -> Duration {
        let manifests = self.manifests.iter().map(|it| it.hooks_for(event));
        let manifests: Vec<Vec<SelectedHook<'_>>> = manifests.collect();
        let hooks = manifests.iter().map(|selected| {
            let hooks = selected.iter().map(|it| &*it.hook);
            hooks.filter(|hook| counts(hook)).collect()
        });
        let hooks: Vec<Vec<&Hook>> = hooks.collect();
        longest_answer(&hooks, can_prevent(event))
    }

    /// Also returns every path that the result depends on. With an event, only
    /// its hooks are loaded.
    pub(crate) fn load_from_files(
        engine: &Engine,
        folders: &EventFolders,
        event: Option<&HookEvent>,
    ) -> (Self, Vec<PathBuf>) {
        let inspected = Inspected::default();
        let trust = &engine.trust;
        let is_approved = |path: &Path| trust.past_consent(path, &inspected).is_some();
        let has_approved = |root: &Path| {
            let approved = trust.trusted_in(root, &inspected);
            approved.is_ok_and(|approved| !approved.is_empty())
        };
        let dirs = &engine.dirs;
        // Without an event, hooks of every event are loaded from the text.
        let is_enough = event.is_some() && dirs.is_state_trusted();
        let text_hash = |path: &Path, metadata: &Metadata| {
            is_enough.then(|| known_texts::known_hash(&dirs.state, path, metadata))?
        };
        let approvals = if engine.trust_all {
            Approvals::Ignored
        } else {
            Approvals::Known {
                manifest: &is_approved,
                project: &has_approved,
                text_hash: &text_hash,
            }
        };
        let mut found = discover::discover_at(&engine.dirs, folders, approvals);
        let mut problems = std::mem::take(&mut found.problems);
        let links = found.links_into_projects();
        let mut loader = ManifestLoader::new(engine, event, &inspected);
        let sources = std::mem::take(&mut found.manifests).into_iter();
        let manifests: Vec<LoadedManifest> = sources
            .filter_map(|source| loader.load(source, &mut problems))
            .collect();
        let cache_notices = loader.notices;
        let consent_in = |folder: &Path| {
            let mut beside = manifests.iter();
            let manifest = beside.find(|manifest| manifest.source.folder() == folder)?;
            let past = || engine.trust.get(&manifest.source.path);
            manifest.consent().cloned().or_else(past)
        };
        let policies = std::mem::take(&mut found.policies);
        let (rules, mut notices) =
            Rulebook::load_trusted(engine, policies, consent_in, &mut problems);
        notices.extend(cache_notices);
        notices.extend(links);
        notices.extend(manifests.iter().filter_map(missing_policy));
        notices.extend(manifests.iter().flat_map(LoadedManifest::mistaken_names));
        let lost = lost_guards::find(engine, &found, &manifests, &problems, &inspected);
        found.inspected_paths.extend(inspected.into_inner());
        let config = Self {
            manifests,
            rules,
            problems,
            openhook: found.openhook,
            notices,
            lost,
            approval_hold: Duration::ZERO,
        };
        (config, found.inspected_paths)
    }

    /// Whether a manifest has a copy further inside, in a worktree that lies in its
    /// own project: the hooks would run twice.
    pub(crate) fn has_copy(&self, position: usize) -> bool {
        let mut rest = self.manifests.iter().skip(position);
        let manifest = rest.next();
        manifest.is_some_and(|manifest| rest.any(|other| other.is_copy_of(manifest)))
    }

    /// Whether all that can run, block or be reported here does so there too.
    pub(crate) fn is_part_of(&self, other: &Self) -> bool {
        let path = |manifest: &LoadedManifest| manifest.source.path.clone();
        let there: Vec<PathBuf> = other.manifests.iter().map(path).collect();
        self.manifests
            .iter()
            .all(|it| there.contains(&it.source.path))
            && self.lost.iter().all(|it| other.lost.contains(it))
            && self.problems.iter().all(|it| other.problems.contains(it))
            && (!self.rules.fail_closed() || other.rules.fail_closed())
    }

    /// Whether an event runs nothing here and nothing about it is to be reported.
    pub fn is_quiet(&self, event: &HookEvent) -> bool {
        let is_quiet = |manifest: &LoadedManifest| {
            manifest.distrust().is_none() && manifest.hooks_for(event).is_empty()
        };
        self.problems.is_empty()
            && self.notices.is_empty()
            && self.lost.is_empty()
            && self.openhook.is_none()
            && !self.rules.fail_closed()
            && self.manifests.iter().all(is_quiet)
    }
}

/// A notice of a policy that was approved with the hooks and is gone.
fn missing_policy(manifest: &LoadedManifest) -> Option<String> {
    let consent = manifest.consent()?;
    let mut policies = discover::policy_paths(manifest.source.folder());
    let policy = policies.find(|path| consent.names(path) && !path.exists())?;
    Some(format!(
        "the policy `{}` was trusted with the hooks and is gone: they run without it",
        policy.display()
    ))
}
