//! Where manifests were trusted, by folder and by tree of a repository.
//!
//! A consent is found by the path of its manifest. The index finds the others:
//! a manifest that was trusted in a folder and is gone, one whose record is gone,
//! and those of the same project in other trees of the repository. One small
//! file per place, so that the cost does not grow with the number of projects.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Consent, Inspected, RequiredHook, TrustStore, file_key, read_record};
use crate::config::discover::PROJECT_FOLDER;
use crate::config::worktree::GitTree;

/// The manifests that were trusted in one place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IndexEntry {
    pub(crate) manifests: Vec<PathBuf>,
}

/// The consents of one place in the trees of a repository.
#[derive(Debug, Default)]
pub(crate) struct TreeConsents {
    pub(crate) consents: Vec<Consent>,
    /// Why there may be others.
    pub(crate) damage: Option<String>,
}

impl TreeConsents {
    /// The calls that are blocked without them.
    pub(crate) fn required(&self) -> Vec<RequiredHook> {
        let consents = self.consents.iter();
        consents
            .flat_map(|consent| consent.required.clone())
            .collect()
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
        let file = self.folder_file(folder);
        inspected.borrow_mut().push(file.clone());
        let entry: Option<IndexEntry> = read_record(&file)?;
        Ok(entry.unwrap_or_default().manifests)
    }

    /// Whether the index knows a manifest, or cannot be read.
    pub(super) fn knows(&self, manifest: &Path, root: &Path, inspected: &Inspected) -> bool {
        let known = self.trusted_in(root, inspected);
        known.is_ok_and(|known| known.iter().any(|known| known == manifest))
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
        let manifests = match entry {
            Ok(entry) => entry.unwrap_or_default().manifests,
            Err(why) => {
                found.damage = Some(why);
                return found;
            }
        };
        for manifest in &manifests {
            inspected.borrow_mut().push(self.file(manifest));
            match self.lookup(manifest) {
                Ok(Some(consent)) if consent.is_in(&tree.common_dir) => {
                    found.consents.push(consent);
                }
                Ok(Some(_)) => {}
                Ok(None) => {
                    let shown = manifest.display();
                    found.damage = Some(format!("that of `{shown}` is gone"));
                }
                Err(why) => found.damage = Some(why),
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
        match self.lookup(manifest) {
            Ok(Some(consent)) => return Some(consent.required),
            Err(_) => return Some(Vec::new()),
            Ok(None) if self.knows(manifest, root, inspected) => return Some(Vec::new()),
            Ok(None) => {}
        }
        let tree = GitTree::containing(root)?;
        let found = self.of_tree(&tree, root, inspected);
        let is_known = !found.consents.is_empty() || found.damage.is_some();
        is_known.then(|| found.required())
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
            let mut entry = entry.ok().flatten().unwrap_or_default();
            if !entry.manifests.contains(&consent.manifest) {
                entry.manifests.push(consent.manifest.clone());
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
