//! Manifests that the user has trusted and that do not apply any more.
//!
//! A guard that is deleted, renamed or shadowed must not be missing silently, nor
//! one that the worktree of a trusted project does not have.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::Path;

use anyhook_model::{HookEvent, Scope};
use anyhook_util::shell;

use crate::config::discover::{FoundConfig, LoadProblem, MANIFEST_NAMES, PROJECT_FOLDER};
use crate::config::manifest::LoadedManifest;
use crate::config::trust::{Consent, Inspected, RequiredHook, TrustStore};
use crate::config::worktree::GitTree;
use crate::engine::Engine;

/// A trusted manifest that does not apply.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LostGuard {
    /// For the user: what is lost, and what to do.
    pub(crate) notice: String,
    /// For the model.
    pub(crate) why: &'static str,
    required: Vec<RequiredHook>,
}

impl LostGuard {
    /// Whether an event is blocked without it.
    pub(crate) fn is_required_for(&self, event: &HookEvent) -> bool {
        self.required.iter().any(|hook| hook.is_for(event))
    }
}

/// Those of an event's folders.
pub(super) fn find(
    engine: &Engine,
    found: &FoundConfig,
    manifests: &[LoadedManifest],
    problems: &[LoadProblem],
    inspected: &Inspected,
) -> Vec<LostGuard> {
    if engine.trust_all {
        return Vec::new();
    }
    let projects = manifests.iter();
    let search = Search {
        store: &engine.trust,
        manifests: projects
            .filter(|one| one.source.scope == Scope::Project)
            .collect(),
        problems,
        inspected,
    };
    let home = engine.dirs.home.as_deref();
    let mut lost = Vec::new();
    let mut done: HashSet<&OsStr> = HashSet::new();
    for start in &found.start_folders {
        for folder in start.ancestors() {
            if done.insert(folder.as_os_str()) {
                lost.extend(search.in_folder(folder));
            }
            if Some(folder) == home {
                break;
            }
        }
    }
    for linked in &found.linked_trees {
        // A submodule may lie in a worktree of its parent.
        let trees = linked.ancestors().filter_map(GitTree::at);
        for tree in trees.filter(|tree| !tree.common_dir.starts_with(&tree.top)) {
            let starts = found.start_folders.iter();
            for start in starts.filter(|start| start.starts_with(&tree.top)) {
                for guard in search.in_tree(&tree, start) {
                    if !lost.contains(&guard) {
                        lost.push(guard);
                    }
                }
            }
        }
    }
    lost
}

struct Search<'a> {
    store: &'a TrustStore,
    /// Those of projects.
    manifests: Vec<&'a LoadedManifest>,
    problems: &'a [LoadProblem],
    inspected: &'a Inspected,
}

impl Search<'_> {
    /// The trusted manifests of a project's folder that are not loaded.
    fn in_folder(&self, folder: &Path) -> Vec<LostGuard> {
        let mut loaded = self.manifests.iter();
        let loaded = loaded.find(|one| one.source.root.as_os_str() == folder.as_os_str());
        let other = loaded.map(|other| other.source.path.as_path());
        if let Some(consent) = loaded.and_then(|one| one.consent()) {
            let mut beside = consent.beside.clone();
            beside.retain(|path| !self.is_handled(path) && self.store.get(path).is_some());
            return beside
                .iter()
                .map(|path| self.lost_manifest(path, other))
                .collect();
        }
        let trusted = match self.store.trusted_in(folder, self.inspected) {
            Ok(trusted) => trusted,
            Err(why) => {
                // The consents themselves may be readable.
                let names = MANIFEST_NAMES.iter();
                let paths = names.map(|name| folder.join(PROJECT_FOLDER).join(name));
                let consents = paths.filter_map(|path| self.store.get(&path));
                let required = consents.flat_map(|consent| consent.required);
                return vec![unknown_trust(folder, &why, required.collect())];
            }
        };
        let lost = trusted.into_iter().filter(|path| !self.is_handled(path));
        lost.map(|path| self.lost_manifest(&path, other)).collect()
    }

    /// Whether there is another report about a manifest.
    fn is_handled(&self, path: &Path) -> bool {
        !is_project_manifest(path)
            || self.manifests.iter().any(|one| one.source.path == path)
            || self.problems.iter().any(|problem| problem.path == path)
    }

    fn lost_manifest(&self, path: &Path, other: Option<&Path>) -> LostGuard {
        let (shown, quoted) = (path.display(), quoted(path));
        let required = self.store.past_consent(path, self.inspected);
        let (notice, why) = match other {
            Some(other) if path.exists() => (
                format!(
                    "the hooks of `{shown}`, which is trusted, do not run: `{}` takes precedence over it",
                    other.display()
                ),
                "another file has taken the place of the one that the user approved",
            ),
            _ => (
                format!(
                    "`{shown}` was trusted and is gone, so its hooks do not run; if that is intended, run `anyhook untrust {quoted}`"
                ),
                "the file with the hooks that the user approved is gone",
            ),
        };
        LostGuard {
            notice,
            why,
            required: required.unwrap_or_default(),
        }
    }

    /// The manifests that are trusted in the repository and that this tree of it
    /// does not have, from a folder in it upwards.
    fn in_tree(&self, tree: &GitTree, start: &Path) -> Vec<LostGuard> {
        self.inspected
            .borrow_mut()
            .extend(tree.link_files.iter().cloned());
        let inside = start
            .ancestors()
            .take_while(|folder| folder.starts_with(&tree.top));
        let mut lost = Vec::new();
        for folder in inside {
            let has_own = self.manifests.iter().any(|one| one.source.root == folder)
                || self
                    .problems
                    .iter()
                    .any(|problem| problem.path.starts_with(folder.join(PROJECT_FOLDER)));
            if has_own {
                continue;
            }
            let found = self.store.of_tree(tree, folder, self.inspected);
            if let Some(why) = found.damage.as_ref().filter(|_| found.consents.is_empty()) {
                let required = found.required().unwrap_or_default();
                lost.push(unknown_trust(folder, why, required));
            }
            let elsewhere = found.consents.iter().find(|consent| {
                // What was trusted here has its own report.
                is_project_manifest(&consent.manifest) && !consent.manifest.starts_with(folder)
            });
            let Some(elsewhere) = elsewhere.filter(|consent| !self.is_applied(consent)) else {
                continue;
            };
            lost.push(LostGuard {
                notice: format!(
                    "the hooks of `{}`, which is trusted, do not run in this worktree of its repository: `{}` does not have it",
                    elsewhere.manifest.display(),
                    folder.display()
                ),
                why: "this worktree does not have the hooks that the user approved for the repository",
                required: found.required().unwrap_or_default(),
            });
        }
        lost
    }

    /// Whether the same project's hooks run here from another tree, which contains
    /// this one.
    fn is_applied(&self, consent: &Consent) -> bool {
        let mut consents = self.manifests.iter().filter_map(|one| one.consent());
        consents.any(|other| other.is_of_same_project(consent))
    }
}

fn unknown_trust(folder: &Path, why: &str, required: Vec<RequiredHook>) -> LostGuard {
    LostGuard {
        notice: format!(
            "what was trusted in `{}` is not known: {why}",
            folder.display()
        ),
        why: "the record of what the user approved here is damaged",
        required,
    }
}

/// A path as an argument of a command.
fn quoted(path: &Path) -> String {
    shell::quote_if_needed(&path.to_string_lossy())
}

/// False for an OpenHook discovery file, which has a consent too.
fn is_project_manifest(path: &Path) -> bool {
    let is = |part: Option<&OsStr>, name: &str| part.is_some_and(|part| part == name);
    is(path.parent().and_then(Path::file_name), PROJECT_FOLDER)
        && MANIFEST_NAMES.iter().any(|name| is(path.file_name(), name))
}
