//! Consent: a project's hooks run only after the user has approved them.
//!
//! Consent is by content: the SHA-256 of the manifest, of the policy next to it
//! and of every file that its commands name, resolved as they will be when they
//! run. One small file per manifest stores it, so that a check opens one file.
//! For an event the manifest is compared first, and then the files of the hooks
//! that are about to run: a changed script stops the hooks that use it, and one
//! that changes while they run makes the run a failure. Files that a script
//! loads are not covered, nor is a name that only the shell can complete; the
//! listing names them.
//!
//! Consent follows the repository: it counts in every worktree of it that has
//! the same content. An [index](index) finds it there, and knows of manifests
//! that were trusted and are gone.
//!
//! Managed and user manifests are trusted by their location: only their owner or
//! root can have written them.

mod checked_files;
mod file_watch;
mod index;
mod listing;
mod location;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use anyhook_model::{HookEvent, Matcher, matches};
use anyhook_util::fs::read_bytes;
use anyhook_util::hash::sha256;
use anyhook_util::paths::normal_form;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub(crate) use checked_files::CheckedFiles;
use index::{IndexedConsent, TreeConsents};
pub(crate) use listing::command_files;
pub use listing::{HookToApprove, ProjectManifest, label};
pub(super) use listing::{hook_files, required_hooks, variables as hook_variables};
pub(crate) use location::by_file_location;
pub use location::by_location;
pub(super) use location::by_script_location;

use crate::config::discover::{TRUST_FOLDER, canonical_path, is_project, is_projects_own};
use crate::config::worktree::GitTree;
use crate::run::exec::command_files::CommandFiles;

/// A larger consent or index entry was not written by anyhook.
const MAX_RECORD_BYTES: u64 = 4 * 1024 * 1024;

/// Fewer files are looked up one by one.
const LINEAR_SEARCH_FILES: usize = 16;

/// Why a manifest or hook is not trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Distrust {
    #[error("not trusted yet")]
    Never,
    /// These files differ from what the user consented to, or are gone.
    #[error("changed since it was trusted: {}", quoted_paths(.0))]
    Changed(Vec<PathBuf>),
    /// These manifests of other trees of the repository are trusted.
    #[error("not what was trusted for this repository in {}", quoted_paths(.0))]
    OtherTree(Vec<PathBuf>),
    /// As [`Self::OtherTree`], but the repository does not know this tree.
    #[error(
        "the repository in which {} is trusted does not know this worktree (if it was moved, \
         `git worktree repair` helps)", quoted_paths(.0)
    )]
    UnknownTree(Vec<PathBuf>),
    #[error("the record of its approval cannot be read: {0}")]
    Unreadable(String),
    #[error("it was trusted, and the record of its approval is gone")]
    Forgotten,
    /// There is no record of any approval.
    #[error("not trusted yet")]
    NoRecords,
    /// Someone other than its owner can write it.
    #[error("{0}")]
    Location(String),
}

impl Distrust {
    /// In words for a model, which must not learn how to switch a guard off.
    pub(crate) fn in_general(&self) -> &'static str {
        match self {
            Self::Never => "the user has not approved it",
            Self::Changed(_) => "it has changed since the user approved it",
            Self::OtherTree(_) | Self::UnknownTree(_) => {
                "it is not what the user approved for this repository"
            }
            Self::Unreadable(_) | Self::Forgotten => "the record of the user's approval is damaged",
            Self::NoRecords => "there is no record of what the user has approved",
            Self::Location(_) => "others could have written it",
        }
    }
}

fn quoted_paths(paths: &[PathBuf]) -> String {
    let names = paths.iter().map(|path| format!("`{}`", path.display()));
    names.collect::<Vec<_>>().join(", ")
}

/// The files that the user has consented to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Consent {
    pub manifest: PathBuf,
    pub sha256: String,
    pub files: Vec<TrustedFile>,
    /// RFC 3339.
    pub time: String,
    /// Where the project lies in a repository; consent counts in its other trees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<TreeInRepository>,
    /// Calls that are blocked when their hook cannot run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<RequiredHook>,
    /// Other manifests that are trusted in the same folder. Only one applies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<PathBuf>,
    /// The manifest in another tree of the repository that it was given to.
    #[serde(skip)]
    pub given_to: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedFile {
    pub path: PathBuf,
    pub sha256: String,
}

/// A tree of a git repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeInRepository {
    /// The directory that all trees of the repository share.
    pub common_dir: PathBuf,
    /// The tree's folder.
    pub tree: PathBuf,
}

/// The calls that a hook with `on_failure: block` decides about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequiredHook {
    pub event: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matcher: Option<Matcher>,
}

impl RequiredHook {
    pub(crate) fn is_for(&self, event: &HookEvent) -> bool {
        (self.event == event.event || self.event == event.native_event)
            && matches(self.matcher.as_ref(), event)
    }
}

impl Consent {
    /// Whether it covers a manifest with this text.
    pub fn covers_manifest(&self, text: &str) -> bool {
        self.sha256 == sha256(text.as_bytes())
    }

    fn has_manifest_hash(&self, text_hash: &str) -> bool {
        self.sha256 == text_hash
    }

    /// Whether it covers another file with this text.
    pub(super) fn covers(&self, path: &Path, text: &str) -> bool {
        self.hash(path) == Some(&sha256(text.as_bytes()))
    }

    /// Whether it is about a file, whatever its content.
    pub(super) fn names(&self, path: &Path) -> bool {
        self.hash(path).is_some()
    }

    fn hash(&self, path: &Path) -> Option<&String> {
        let known = self.files.iter().find(|file| file.path == path);
        known.map(|known| &known.sha256)
    }

    /// Compares the files of a hook just before it runs; `read_limit` is the size up to
    /// which a hook reads them in this process.
    pub(crate) fn check(
        &self,
        named: &CommandFiles,
        read_limit: Option<u64>,
    ) -> Result<CheckedFiles, Distrust> {
        // One hook names a few files; all hooks of a manifest may name thousands.
        let is_few = named.files.len() + named.absent.len() < LINEAR_SEARCH_FILES;
        let entries = self.files.iter().filter(|_| !is_few);
        let map: HashMap<&Path, &String> = entries
            .map(|file| (file.path.as_path(), &file.sha256))
            .collect();
        let hash = |path: &Path| {
            if is_few {
                self.hash(path)
            } else {
                map.get(path).copied()
            }
        };
        let (checked, mut changed) = match read_limit {
            Some(limit) => CheckedFiles::check_contents(&named.files, limit, hash),
            None => CheckedFiles::check(&named.files, hash),
        };
        let is_known = |path: &&PathBuf| hash(path).is_some();
        changed.extend(named.absent.iter().filter(is_known).cloned());
        if changed.is_empty() {
            Ok(checked)
        } else {
            Err(Distrust::Changed(changed))
        }
    }

    /// Whether it was given in a tree of this repository.
    fn is_in(&self, common_dir: &Path) -> bool {
        let own = self.repository.as_ref();
        own.is_some_and(|own| own.common_dir == common_dir)
    }

    /// The consent as it counts in another tree of the repository.
    fn in_tree(&self, tree: &GitTree) -> Option<Self> {
        let own = self.repository.as_ref()?;
        let moved = |path: &Path| Some(tree.top.join(path.strip_prefix(&own.tree).ok()?));
        // A command may name a file of the other tree by its absolute path.
        let mut files = self.files.clone();
        files.extend(self.files.iter().filter_map(|file| {
            let path = moved(&file.path)?;
            Some(TrustedFile {
                path,
                ..file.clone()
            })
        }));
        Some(Self {
            manifest: moved(&self.manifest)?,
            files,
            given_to: Some(self.manifest.clone()),
            ..self.clone()
        })
    }

    /// Whether the other is consent to the same manifest of the same repository.
    pub(crate) fn is_of_same_project(&self, other: &Self) -> bool {
        let place = |consent: &Self| {
            let own = consent.repository.clone()?;
            let given_to = consent.given_to.as_ref().unwrap_or(&consent.manifest);
            let path = given_to.strip_prefix(&own.tree).ok()?.to_owned();
            Some((own.common_dir, path))
        };
        let own = place(self);
        own.is_some() && own == place(other)
    }
}

/// What is known about the approval of a manifest.
#[derive(Debug)]
pub(crate) struct Approval {
    pub(crate) trust: Result<Consent, Distrust>,
    /// Of a consent that does not cover the present content; `None` if it was
    /// given and is not known.
    pub(crate) required: Option<Vec<RequiredHook>>,
}

impl Approval {
    fn given(consent: Consent) -> Self {
        Self {
            trust: Ok(consent),
            required: Some(Vec::new()),
        }
    }
}

/// The paths that an answer depends on, for a process that keeps it.
pub(crate) type Inspected = RefCell<Vec<PathBuf>>;

#[derive(Debug, Clone)]
pub struct TrustStore {
    folder: PathBuf,
}

impl TrustStore {
    pub fn new(state: &Path) -> Self {
        Self {
            folder: state.join(TRUST_FOLDER),
        }
    }

    /// The file of the consent to a manifest.
    pub fn file(&self, manifest: &Path) -> PathBuf {
        let manifest = normal_form(manifest.to_owned());
        let key = file_key(&[manifest.as_os_str().as_encoded_bytes()]);
        self.folder.join(format!("{key}.json"))
    }

    /// The consent to a manifest, whether or not its text is still the same.
    pub fn get(&self, manifest: &Path) -> Option<Consent> {
        self.lookup(manifest).ok().flatten()
    }

    /// An error is why the consent cannot be read.
    pub(crate) fn lookup(&self, manifest: &Path) -> Result<Option<Consent>, String> {
        let file = self.file(manifest);
        let consent: Option<Consent> = read_record(&file)?;
        match consent {
            Some(consent) if consent.manifest != manifest => {
                let shown = file.display();
                Err(format!("`{shown}` is about another manifest"))
            }
            consent => Ok(consent),
        }
    }

    /// Whether the user has approved a manifest with this text, here or in
    /// another tree of the repository. `root` is its project's.
    pub(crate) fn approval(
        &self,
        manifest: &Path,
        root: &Path,
        text_hash: &str,
        inspected: &Inspected,
    ) -> Approval {
        inspected.borrow_mut().push(self.file(manifest));
        let own = self.lookup(manifest);
        if let Some(project) = self.project_around_both(manifest) {
            let why = format!(
                "`{}` is inside `{}`, which could have written it",
                self.folder.display(),
                project.display()
            );
            let given = own.ok().flatten();
            return Approval {
                trust: Err(Distrust::Unreadable(why)),
                required: Some(given.map(|consent| consent.required).unwrap_or_default()),
            };
        }
        let own = match own {
            Ok(Some(consent)) if consent.has_manifest_hash(text_hash) => {
                return Approval::given(consent);
            }
            own => own,
        };
        let (is_linked, elsewhere) = match GitTree::containing(root) {
            None => (false, TreeConsents::default()),
            Some(tree) => {
                let links = tree.link_files.iter().cloned();
                inspected.borrow_mut().extend(links);
                let mut elsewhere = self.of_tree(&tree, root, inspected);
                let found = &mut elsewhere.consents;
                found.retain(|consent| consent.manifest.file_name() == manifest.file_name());
                let mut here = found.iter().filter_map(|consent| consent.in_tree(&tree));
                let covering =
                    here.find(|it| it.manifest == manifest && it.has_manifest_hash(text_hash));
                if let Some(consent) = covering.filter(|_| tree.is_linked) {
                    return Approval::given(consent);
                }
                (tree.is_linked, elsewhere)
            }
        };
        let mut required = elsewhere.required();
        let indexed = || self.indexed(manifest, root, inspected);
        let others = elsewhere.consents.into_iter();
        let others = others.map(|consent| consent.manifest);
        let others: Vec<PathBuf> = others.filter(|other| other != manifest).collect();
        let why = match own {
            Ok(Some(consent)) => {
                required = Some(consent.required);
                Distrust::Changed(vec![manifest.to_owned()])
            }
            Err(why) => {
                required = indexed().required();
                Distrust::Unreadable(why)
            }
            Ok(None) => match (indexed(), elsewhere.damage) {
                (IndexedConsent::Known(indexed), _) => {
                    required = indexed;
                    Distrust::Forgotten
                }
                _ if !others.is_empty() && is_linked => Distrust::OtherTree(others),
                _ if !others.is_empty() => Distrust::UnknownTree(others),
                (_, Some(why)) => Distrust::Unreadable(why),
                (IndexedConsent::Damaged(why), None) => {
                    required = None;
                    Distrust::Unreadable(why)
                }
                (IndexedConsent::Never, None) if self.has_no_records(inspected) => {
                    Distrust::NoRecords
                }
                (IndexedConsent::Never, None) => Distrust::Never,
            },
        };
        Approval {
            trust: Err(why),
            required,
        }
    }

    /// The project that holds a manifest and the approvals too. It cannot approve itself,
    /// whatever the environment says.
    fn project_around_both(&self, manifest: &Path) -> Option<PathBuf> {
        let real = canonical_path(&self.folder).0;
        let both = real
            .ancestors()
            .filter(|folder| folder.parent().is_some() && manifest.starts_with(folder));
        let mut projects = both.filter(|folder| is_project(folder));
        let project = projects.find(|folder| is_projects_own(&self.folder, &real, folder));
        project.map(Path::to_owned)
    }

    /// Whether nothing was ever approved, as far as is known. What is missing may
    /// also have been deleted, so a place without records is not an empty one.
    pub(crate) fn has_no_records(&self, inspected: &Inspected) -> bool {
        inspected.borrow_mut().push(self.folder.clone());
        !self.folder.is_dir()
    }

    /// Makes a place for approvals, to say that there are none yet.
    pub fn initialize(&self) -> io::Result<()> {
        anyhook_util::fs::create_private_dir(&self.folder)
    }

    /// Whether a manifest with this text is trusted, whatever its scripts are.
    pub fn covers(&self, manifest: &Path, root: &Path, text: &str) -> bool {
        let approval = self.approval(
            manifest,
            root,
            &sha256(text.as_bytes()),
            &Inspected::default(),
        );
        approval.trust.is_ok()
    }

    /// Compares the manifest and all files of all its hooks.
    pub fn check(&self, project: &ProjectManifest<'_>) -> Result<Consent, Distrust> {
        let (manifest, root) = (project.path, project.root);
        let hash = sha256(project.text.as_bytes());
        let approval = self.approval(manifest, root, &hash, &Inspected::default());
        let (consent, mut changed) = match approval.trust {
            Ok(consent) => (Some(consent), Vec::new()),
            Err(Distrust::Changed(changed)) => (self.get(manifest), changed),
            Err(why) => return Err(why),
        };
        let consent = consent.ok_or(Distrust::Never)?;
        if let Err(Distrust::Changed(files)) = consent.check(&project.files(), None) {
            changed.extend(files);
        }
        if changed.is_empty() {
            Ok(consent)
        } else {
            Err(Distrust::Changed(changed))
        }
    }

    /// Records consent to the present content.
    pub fn record(&self, project: &ProjectManifest<'_>) -> io::Result<Consent> {
        let hashed = project.files().files.into_iter().map(|path| {
            let sha256 = checked_files::hash_file(&path)?;
            Ok(TrustedFile { path, sha256 })
        });
        let files = hashed.collect::<io::Result<_>>()?;
        let consent = Consent {
            manifest: project.path.to_owned(),
            sha256: sha256(project.text.as_bytes()),
            files,
            time: anyhook_util::time::rfc3339(jiff::Timestamp::now()),
            repository: repository_of(project.root),
            required: required_hooks(&project.manifest.hooks),
            beside: Vec::new(),
            given_to: None,
        };
        self.write(&consent)?;
        self.add_to_index(&consent)?;
        Ok(consent)
    }

    fn write(&self, consent: &Consent) -> io::Result<()> {
        let json = serde_json::to_vec_pretty(consent)?;
        anyhook_util::fs::replace(&self.file(&consent.manifest), &json)
    }

    /// Adds to an older consent, which stays as it is, what a newer one records.
    pub fn complete(&self, project: &ProjectManifest<'_>) -> io::Result<()> {
        let Ok(Some(mut consent)) = self.lookup(project.path) else {
            return Ok(());
        };
        let inspected = Inspected::default();
        if !consent.covers_manifest(project.text)
            || matches!(
                self.indexed(project.path, project.root, &inspected),
                IndexedConsent::Known(Some(_))
            )
        {
            return Ok(());
        }
        consent.repository = repository_of(project.root);
        consent.required = required_hooks(&project.manifest.hooks);
        self.write(&consent)?;
        self.add_to_index(&consent)
    }

    /// The manifest of another tree of the repository by whose consent a manifest
    /// with this text runs.
    pub fn covered_by(&self, manifest: &Path, root: &Path, text: &str) -> Option<PathBuf> {
        let approval = self.approval(
            manifest,
            root,
            &sha256(text.as_bytes()),
            &Inspected::default(),
        );
        approval.trust.ok()?.given_to
    }

    /// The records that cannot be read, and why.
    pub fn damaged(&self) -> Vec<String> {
        let files = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten();
        let records = files(self.folder.clone()).chain(files(self.folder.join("index")));
        let paths = records.map(|entry| entry.path());
        let paths = paths.filter(|path| path.extension().is_some_and(|end| end == "json"));
        let broken = paths.filter_map(|path| read_record::<serde_json::Value>(&path).err());
        let mut broken: Vec<String> = broken.collect();
        broken.sort();
        broken
    }

    /// Withdraws consent; returns whether there was any.
    pub fn remove(&self, manifest: &Path) -> io::Result<bool> {
        // The index first: what it still names would count as lost.
        let was_known = self.remove_from_index(manifest)?;
        match std::fs::remove_file(self.file(manifest)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(was_known),
            Err(error) => Err(error),
        }
    }

    /// Every consent that can be read, sorted by manifest.
    pub fn all(&self) -> Vec<Consent> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten();
        let mut all: Vec<Consent> = entries
            .flatten()
            .filter_map(|entry| read_record(&entry.path()).ok()?)
            .collect();
        all.sort_by(|a, b| a.manifest.cmp(&b.manifest));
        all
    }
}

/// The repository that consent in a folder counts for.
fn repository_of(folder: &Path) -> Option<TreeInRepository> {
    let tree = GitTree::containing(folder)?;
    tree.represents_repository().then_some(TreeInRepository {
        common_dir: tree.common_dir,
        tree: tree.top,
    })
}

/// The name of a record's file.
fn file_key(parts: &[&[u8]]) -> String {
    let key = sha256(&parts.join(&0));
    key.get(..32).unwrap_or(&key).to_owned()
}

/// `None` if there is no such file; an error is why it cannot be read.
fn read_record<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("`{}`: {error}", path.display());
    let bytes = match read_bytes(path, MAX_RECORD_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(unreadable(&error)),
    };
    let record = serde_json::from_slice(&bytes);
    record.map(Some).map_err(|error| unreadable(&error))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
