//! Where manifests were trusted, by folder and by tree of a repository.
//!
//! A consent is found by the path of its manifest. The index finds the others:
//! a manifest that was trusted in a folder and is gone, one whose record is gone,
//! and those of the same project in other trees of the repository. One small
//! file per place, so that the cost does not grow with the number of projects.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Consent, Inspected, RequiredHook, TrustStore, file_key, read_record};
use crate::config::discover::PROJECT_FOLDER;
use crate::config::worktree::GitTree;

/// The manifests that were trusted in one place.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct IndexEntry {
    pub(crate) manifests: Vec<PathBuf>,
    /// The calls that each of them must decide about, for the case that its consent
    /// is damaged. Entries of older versions have none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) required: BTreeMap<PathBuf, Vec<RequiredHook>>,
}

/// What the index says about a manifest.
#[derive(Debug, PartialEq)]
pub(crate) enum IndexedConsent {
    Never,
    /// It was trusted; the calls that it must decide about, if the entry has them.
    Known(Option<Vec<RequiredHook>>),
    /// Why that is not known.
    Damaged(String),
}

impl IndexedConsent {
    /// The calls that are blocked without the manifest; `None` if unknown.
    pub(crate) fn required(self) -> Option<Vec<RequiredHook>> {
        match self {
            Self::Known(required) => required,
            Self::Never | Self::Damaged(_) => None,
        }
    }
}

/// The consents of one place in the trees of a repository.
#[derive(Debug, Default)]
pub(crate) struct TreeConsents {
    pub(crate) consents: Vec<Consent>,
    /// Why there may be others.
    pub(crate) damage: Option<String>,
    /// What those others require, as far as the index says it.
    required_by_damaged: Vec<RequiredHook>,
    /// The index does not say it.
    is_required_unknown: bool,
}

impl TreeConsents {
    /// The calls that are blocked without them; `None` if that is not known.
    pub(crate) fn required(&self) -> Option<Vec<RequiredHook>> {
        let consents = self.consents.iter();
        let required = consents.flat_map(|consent| &consent.required);
        let required = required.chain(&self.required_by_damaged).cloned();
        (!self.is_required_unknown).then(|| required.collect())
    }
}

impl TrustStore {
    fn index_folder(&self) -> PathBuf {
        self.folder.join("index")
    }

    fn folder_file(&self, folder: &Path) -> PathBuf {
        let key = file_key(&[b"folder", folder.as_os_str().as_encoded_bytes()]);
        self.index_folder().join(format!("{key}.json"))
    }

    fn tree_file(&self, common_dir: &Path, relative: &Path) -> PathBuf {
        let parts = [common_dir, relative].map(|path| path.as_os_str().as_encoded_bytes());
        let key = file_key(&[b"tree", parts[0], parts[1]]);
        self.index_folder().join(format!("{key}.json"))
    }

    /// The manifests that were trusted in a project's folder. An error is why
    /// that is not known.
    pub(crate) fn trusted_in(
        &self,
        folder: &Path,
        inspected: &Inspected,
    ) -> Result<Vec<PathBuf>, String> {
        Ok(self.folder_entry(folder, inspected)?.manifests)
    }

    fn folder_entry(&self, folder: &Path, inspected: &Inspected) -> Result<IndexEntry, String> {
        let file = self.folder_file(folder);
        inspected.borrow_mut().push(file.clone());
        Ok(read_record(&file)?.unwrap_or_default())
    }

    /// What the index says about a manifest of a project's folder.
    pub(crate) fn indexed(
        &self,
        manifest: &Path,
        root: &Path,
        inspected: &Inspected,
    ) -> IndexedConsent {
        match self.folder_entry(root, inspected) {
            Err(why) => IndexedConsent::Damaged(why),
            Ok(entry) if entry.manifests.iter().any(|known| known == manifest) => {
                IndexedConsent::Known(entry.required.get(manifest).cloned())
            }
            Ok(_) => IndexedConsent::Never,
        }
    }

    /// The consents to manifests of a project in all trees of its repository;
    /// `folder` is the project's in this tree.
    pub(crate) fn of_tree(
        &self,
        tree: &GitTree,
        folder: &Path,
        inspected: &Inspected,
    ) -> TreeConsents {
        let mut found = TreeConsents::default();
        let Some(relative) = tree.relative(folder) else {
            return found;
        };
        let file = self.tree_file(&tree.common_dir, relative);
        let entry = read_record::<IndexEntry>(&file);
        inspected.borrow_mut().push(file);
        let entry = match entry {
            Ok(entry) => entry.unwrap_or_default(),
            Err(why) => {
                found.damage = Some(why);
                found.is_required_unknown = true;
                return found;
            }
        };
        for manifest in &entry.manifests {
            inspected.borrow_mut().push(self.file(manifest));
            let damage = match self.lookup(manifest) {
                Ok(Some(consent)) => {
                    if consent.is_in(&tree.common_dir) {
                        found.consents.push(consent);
                    }
                    continue;
                }
                Ok(None) => format!("that of `{}` is gone", manifest.display()),
                Err(why) => why,
            };
            found.damage = Some(damage);
            match entry.required.get(manifest) {
                Some(required) => found.required_by_damaged.extend_from_slice(required),
                None => found.is_required_unknown = true,
            }
        }
        found
    }

    /// Whether a manifest was ever trusted, here or in another tree, and which
    /// calls are blocked without it.
    pub(crate) fn past_consent(
        &self,
        manifest: &Path,
        inspected: &Inspected,
    ) -> Option<Vec<RequiredHook>> {
        let root = project_root(manifest);
        inspected.borrow_mut().push(self.file(manifest));
        let indexed = || self.indexed(manifest, root, inspected);
        match self.lookup(manifest) {
            Ok(Some(consent)) => return Some(consent.required),
            Err(_) => return Some(indexed().required().unwrap_or_default()),
            Ok(None) => {}
        }
        if let known @ IndexedConsent::Known(_) = indexed() {
            return Some(known.required().unwrap_or_default());
        }
        let tree = GitTree::containing(root)?;
        let found = self.of_tree(&tree, root, inspected);
        let is_known = !found.consents.is_empty() || found.damage.is_some();
        is_known.then(|| found.required().unwrap_or_default())
    }

    /// The index entries of a consent.
    fn places(&self, consent: &Consent) -> Vec<PathBuf> {
        let root = project_root(&consent.manifest);
        let tree = consent.repository.as_ref().and_then(|repository| {
            let relative = root.strip_prefix(&repository.tree).ok()?;
            Some(self.tree_file(&repository.common_dir, relative))
        });
        tree.into_iter().chain([self.folder_file(root)]).collect()
    }

    pub(super) fn add_to_index(&self, consent: &Consent) -> io::Result<()> {
        let _lock = self.lock_index()?;
        for file in self.places(consent) {
            // One that cannot be read has nothing to keep.
            let entry = read_record::<IndexEntry>(&file);
            let before = entry.ok().flatten();
            let mut entry = before.clone().unwrap_or_default();
            if !entry.manifests.contains(&consent.manifest) {
                entry.manifests.push(consent.manifest.clone());
            }
            let required = consent.required.clone();
            entry.required.insert(consent.manifest.clone(), required);
            if before.as_ref() != Some(&entry) {
                anyhook_util::fs::replace(&file, &serde_json::to_vec(&entry)?)?;
            }
        }
        self.note_neighbours(project_root(&consent.manifest))
    }

    /// Lets each consent of a folder name the others, so that a check of one file
    /// shows that there are more.
    fn note_neighbours(&self, folder: &Path) -> io::Result<()> {
        let entry = read_record::<IndexEntry>(&self.folder_file(folder));
        let all = entry.ok().flatten().unwrap_or_default().manifests;
        for manifest in all.iter().filter(|_| all.len() > 1) {
            let others = all.iter().filter(|other| *other != manifest);
            if let Some(mut consent) = self.get(manifest) {
                consent.beside = others.cloned().collect();
                self.write(&consent)?;
            }
        }
        Ok(())
    }

    /// Returns whether the index knew it.
    pub(super) fn remove_from_index(&self, manifest: &Path) -> io::Result<bool> {
        if !self.index_folder().is_dir() {
            return Ok(false);
        }
        let _lock = self.lock_index()?;
        let mut was_known = false;
        let root = project_root(manifest);
        let own = self.folder_file(root);
        let files = match self.lookup(manifest) {
            Ok(Some(consent)) => self.places(&consent),
            Ok(None) => {
                let tree = GitTree::containing(root);
                let tree = tree
                    .and_then(|tree| Some(self.tree_file(&tree.common_dir, tree.relative(root)?)));
                tree.into_iter().chain([own.clone()]).collect()
            }
            // It may have been in a repository that is gone, so all are searched.
            Err(_) => {
                let entries = std::fs::read_dir(self.index_folder())?;
                entries.flatten().map(|entry| entry.path()).collect()
            }
        };
        for file in files {
            match read_record::<IndexEntry>(&file) {
                Ok(Some(mut entry)) if entry.manifests.contains(&manifest.to_owned()) => {
                    was_known = true;
                    entry.manifests.retain(|known| known != manifest);
                    entry.required.remove(manifest);
                    if entry.manifests.is_empty() {
                        std::fs::remove_file(&file)?;
                    } else {
                        anyhook_util::fs::replace(&file, &serde_json::to_vec(&entry)?)?;
                    }
                }
                Err(_) if file == own => {
                    was_known = true;
                    std::fs::remove_file(&file)?;
                }
                _ => {}
            }
        }
        Ok(was_known)
    }

    /// Two commands at once must not lose each other's entries.
    fn lock_index(&self) -> io::Result<File> {
        let path = self.folder.join("index.lock");
        let mut options = anyhook_util::fs::private_file_options();
        options.write(true).create(true);
        let file = anyhook_util::fs::open_in_private_dir(&options, &path)?;
        file.lock()?;
        Ok(file)
    }
}

/// The folder of the project that a manifest or a discovery file belongs to.
pub(crate) fn project_root(manifest: &Path) -> &Path {
    let folder = manifest.parent().unwrap_or(manifest);
    let is_inside = folder
        .file_name()
        .is_some_and(|name| name == PROJECT_FOLDER);
    let above = folder.parent().filter(|_| is_inside);
    above.unwrap_or(folder)
}
