//! Every hook of the manifests that apply in a folder, and whether it may run.

use std::path::{Path, PathBuf};

use anyhook_model::{Hook, Scope};
use serde::Serialize;

use crate::config::discover::LoadProblem;
use crate::config::effective::EffectiveConfig;
use crate::config::folders::EventFolders;
use crate::config::manifest::HookVerdict;
use crate::config::unknown_names::unknown_names;
use crate::engine::Engine;

/// A hook that applies in a folder.
#[derive(Debug, Clone)]
pub struct HookInForce {
    /// Its name, or `#3` by position.
    pub label: String,
    pub hook: Hook,
    pub manifest: PathBuf,
    pub root: PathBuf,
    pub scope: Scope,
    pub state: HookState,
    /// Names in it that mean nothing: it never runs for them.
    pub unknown_names: Vec<String>,
}

/// Whether a hook may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "why")]
pub enum HookState {
    Active,
    /// The user has not approved it as it is.
    Untrusted(String),
    /// A policy refuses it.
    Refused(String),
    /// Another copy of the manifest applies instead.
    Copy,
}

impl HookInForce {
    pub fn is_active(&self) -> bool {
        self.state == HookState::Active
    }
}

impl Engine {
    /// The hooks of every manifest that applies in a folder, in their order.
    pub fn hooks_in_force(&self, folder: &Path) -> (Vec<HookInForce>, Vec<LoadProblem>) {
        let folders = EventFolders::from_folder(folder);
        let (config, _) = EffectiveConfig::load_from_files(self, &folders, None);
        let mut problems = config.problems.clone();
        let mut hooks = Vec::new();
        for (position, manifest) in config.manifests.iter().enumerate() {
            // Mistakes in an unapproved manifest do not count as problems of a call.
            let mistakes = manifest.mistakes().into_iter();
            problems.extend(mistakes.filter(|one| !config.problems.contains(one)));
            for selected in manifest.all_hooks() {
                let state = match manifest.may_run(&selected, &config.rules) {
                    _ if config.has_copy(position) => HookState::Copy,
                    HookVerdict::Untrusted(why) => HookState::Untrusted(why.to_string()),
                    HookVerdict::Refused(why) => HookState::Refused(why.to_string()),
                    _ => HookState::Active,
                };
                hooks.push(HookInForce {
                    label: selected.label.clone(),
                    manifest: selected.manifest.clone().into_owned(),
                    root: selected.root.clone().into_owned(),
                    scope: selected.scope,
                    unknown_names: unknown_names(&selected.hook),
                    hook: selected.hook.into_owned(),
                    state,
                });
            }
        }
        (hooks, problems)
    }
}
