//! Finds the manifests and policies that apply to an event, and anyhook's own
//! folders.
//!
//! Order: managed, user, project. A project may have several manifests between
//! the event's folder and the root of its repository; all of them apply, the
//! outermost first, because a guard at the root must hold in a subfolder that
//! has its own hooks. For the same reason a manifest above the repository
//! applies if the user has trusted it.

mod dirs;
mod files;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::path::{Component, Path, PathBuf};

use anyhook_model::Scope;
use anyhook_util::paths::canonicalize;
use openhook::discovery::FILE_NAME;

use crate::config::account::Account;
use crate::config::cache::FileStamp;
use crate::config::folders::EventFolders;
use crate::config::owner::FileOwner;
use crate::run::exec::command::normalize_path;
use dirs::USUAL_CONFIG_BASE;
use files::{list_folder, listed_paths, read_listed};

pub(crate) use dirs::TRUST_FOLDER;
pub use dirs::{Dirs, is_locked};
pub use files::ConfigSource;

/// File names of a manifest, preferred first.
pub const MANIFEST_NAMES: [&str; 4] = ["hooks.yaml", "hooks.yml", "hooks.json", "hooks.jsonc"];

/// File names of a policy, preferred first.
const POLICY_NAMES: [&str; 4] = ["policy.json", "policy.jsonc", "policy.yaml", "policy.yml"];

/// File names of the user's settings, preferred first.
const SETTINGS_NAMES: [&str; 4] = ["config.yaml", "config.yml", "config.json", "config.jsonc"];

/// Whether a manifest, a policy or the settings can have this file name.
pub(crate) fn is_config_name(name: &std::ffi::OsStr) -> bool {
    let names = [MANIFEST_NAMES, POLICY_NAMES, SETTINGS_NAMES];
    names.as_flattened().iter().any(|known| name == *known)
}

/// The folder of a project's manifest.
pub const PROJECT_FOLDER: &str = ".anyhook";

/// Unapproved content is read only up to this size, and parsed only as far
/// as all such files of an event are not larger together: an unapproved
/// repository must not make every call slow.
pub(crate) const MAX_UNAPPROVED_BYTES: u64 = 32 * 1024;

/// Of more folders with hooks in each other, the inner ones are read only if their
/// hooks are approved.
const MAX_UNAPPROVED_PROJECTS: usize = 16;

/// Whether a file or folder belongs to the project that it is in, and not to the user.
/// `path` is its name, `real` where it really is.
pub(super) fn is_projects_own(path: &Path, real: &Path, project: &Path) -> bool {
    // Behind a link, `..` leads elsewhere than the name says.
    let has_parent_parts = path.components().any(|part| part == Component::ParentDir);
    let named = if has_parent_parts { real } else { path };
    let is_home = |home: &Path| {
        let usual = home.join(USUAL_CONFIG_BASE).join("anyhook");
        home.starts_with(project) || named.starts_with(usual)
    };
    let is_users = || {
        let account = Account::current();
        account.is_some_and(|account| {
            is_home(&account.home) || is_home(&canonical_path(&account.home).0)
        })
    };
    (path.starts_with(project) || real.starts_with(project)) && !is_users()
}

/// The repository or project that a file of the user is really in, links followed, unless
/// it is the user's own folder there.
pub(crate) fn project_around(path: &Path) -> Option<PathBuf> {
    let real = canonical_path(path).0;
    let folder = real.parent()?;
    let project = folder.ancestors().find(|folder| is_project(folder))?;
    is_projects_own(&real, &real, project).then(|| project.to_owned())
}

/// Whether a folder is a repository, or has hooks.
pub(super) fn is_project(folder: &Path) -> bool {
    let mut marks = [".git", PROJECT_FOLDER].iter();
    marks.any(|mark| folder.join(mark).exists())
}

/// The config that applies to one event.
#[derive(Debug, Clone, Default)]
pub struct FoundConfig {
    pub manifests: Vec<ConfigSource>,
    pub policies: Vec<ConfigSource>,
    /// The event's project: the repository's root, else the nearest folder with
    /// `.anyhook`, else the event's folder.
    pub root: PathBuf,
    /// The nearest folder with an OpenHook discovery file.
    pub openhook: Option<PathBuf>,
    /// Roots of repositories whose data are elsewhere: worktrees and submodules.
    pub(super) linked_trees: Vec<PathBuf>,
    /// The canonical paths of the folders where the search began.
    pub(super) start_folders: Vec<PathBuf>,
    /// Every folder and file that the result depends on.
    pub(super) inspected_paths: Vec<PathBuf>,
    pub problems: Vec<LoadProblem>,
}

/// A config file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadProblem {
    pub scope: Scope,
    pub path: PathBuf,
    pub message: String,
}

/// What is known about approvals during a search.
#[derive(Clone, Copy)]
pub(crate) enum Approvals<'a> {
    /// For a command, which shows what is there, approved or not.
    Ignored,
    Known {
        /// Whether a manifest was ever approved, here or in another tree of the
        /// repository.
        manifest: &'a dyn Fn(&Path) -> bool,
        /// Whether one was approved in a project's folder, which is cheaper to know.
        project: &'a dyn Fn(&Path) -> bool,
        /// The hash of a manifest's text, if it need not be read.
        text_hash: &'a dyn Fn(&Path, &Metadata) -> Option<String>,
    },
}

impl Approvals<'_> {
    /// Whether one of the manifests in a folder with these entries was approved.
    fn include(self, folder: &Path, listing: &[OsString]) -> bool {
        match self {
            Self::Ignored => false,
            Self::Known { manifest, .. } => {
                listed_paths(folder, listing, &MANIFEST_NAMES).any(|path| manifest(&path))
            }
        }
    }
}

/// Searches from a folder up to the root of its repository.
pub fn discover(dirs: &Dirs, cwd: &Path) -> FoundConfig {
    discover_at(dirs, &EventFolders::from_folder(cwd), Approvals::Ignored)
}

/// Searches from every folder of an event. Above the root of a repository only
/// trusted manifests count: a nested repository must not disable the hooks of
/// its parent project, and an untrusted manifest further up must not add any.
pub(crate) fn discover_at(
    dirs: &Dirs,
    start: &EventFolders,
    approvals: Approvals<'_>,
) -> FoundConfig {
    let home = dirs.home.as_deref();
    let mut found = FoundConfig::default();
    let mut projects: Vec<ProjectFolder> = Vec::new();
    let mut roots = Vec::new();
    found.problems.clone_from(&dirs.problems);
    for folder in &start.folders {
        let (canonical, missing) = canonical_path(folder);
        let named = folder.ancestors().take(missing + 1);
        found.inspected_paths.extend(named.map(Path::to_owned));
        roots.extend(found.walk_up(&canonical, home, &mut projects));
        found.start_folders.push(canonical);
    }
    let event_root = found.root.clone();
    found.read_folder(
        Scope::Managed,
        &dirs.managed,
        &event_root,
        Approvals::Ignored,
    );
    if dirs.is_config_in(&roots) {
        found.inspected_paths.push(dirs.config.clone());
        if dirs.config.exists() {
            found.problems.push(LoadProblem {
                scope: Scope::User,
                path: dirs.config.clone(),
                message: "your configuration folder is inside a project of this call, so its files are the project's".to_owned(),
            });
        }
    } else {
        found.read_folder(Scope::User, &dirs.config, &event_root, Approvals::Ignored);
    }
    projects.sort_by_key(|project| project.root.as_os_str().len());
    found.read_projects(&projects, approvals);
    found
}

/// The one path of a folder, because consent is by path and an agent may use a
/// symbolic link; of a folder that does not exist, the existing part is
/// resolved. With the number of components that do not exist.
pub fn canonical_path(path: &Path) -> (PathBuf, usize) {
    let mut ancestors = path.ancestors().enumerate();
    let known = ancestors.find_map(|(missing, ancestor)| {
        let real = canonicalize(ancestor).ok()?;
        Some((real.join(path.strip_prefix(ancestor).ok()?), missing))
    });
    let (real, missing) = known.unwrap_or_else(|| (path.to_owned(), 0));
    (normalize_path(&real), missing)
}

/// The path of the manifest in a folder.
pub fn manifest_in(folder: &Path) -> Option<PathBuf> {
    let listing = list_folder(folder).unwrap_or_default();
    listed_paths(folder, &listing, &MANIFEST_NAMES).next()
}

/// The other manifests beside one, which are never read: a folder has one manifest.
pub fn ignored_manifests(manifest: &Path) -> Vec<PathBuf> {
    let folder = manifest.parent().unwrap_or(manifest);
    let used = manifest_in(folder);
    let listing = list_folder(folder).unwrap_or_default();
    let others = listed_paths(folder, &listing, &MANIFEST_NAMES);
    others
        .filter(|path| path.file_name() != used.as_ref().and_then(|used| used.file_name()))
        .collect()
}

/// The path of the policy in a folder.
pub(super) fn policy_in(folder: &Path) -> Option<PathBuf> {
    let listing = list_folder(folder).unwrap_or_default();
    listed_paths(folder, &listing, &POLICY_NAMES).next()
}

/// Where a policy could be in a folder.
pub(super) fn policy_paths(folder: &Path) -> impl Iterator<Item = PathBuf> {
    POLICY_NAMES.iter().map(|name| folder.join(name))
}

/// A folder that contains `.anyhook`.
struct ProjectFolder {
    root: PathBuf,
    is_above_repository: bool,
}

impl FoundConfig {
    /// Notices of files of the user that are links into a project of the event: whoever
    /// works there can change them. They count all the same, because without them the
    /// user's guards would be gone.
    pub(super) fn links_into_projects(&self) -> Vec<String> {
        let files = self.manifests.iter().chain(&self.policies);
        let users = files.filter(|file| file.scope == Scope::User);
        let notice = |file: &ConfigSource| {
            let real = canonical_path(&file.path).0;
            if real == file.path {
                return None;
            }
            let project = project_around(&real)?;
            let mut folders = self.start_folders.iter();
            let is_here = folders.any(|folder| folder.starts_with(&project));
            is_here.then(|| {
                format!(
                    "your `{}` is a link to `{}` in the project that the agent works in, which can change it; keep a copy in its place",
                    file.path.display(),
                    real.display()
                )
            })
        };
        users.filter_map(notice).collect()
    }

    /// Adds the projects from a folder upwards, and of the first folder the root
    /// and the OpenHook discovery file. Returns the root of the project that it is in.
    fn walk_up(
        &mut self,
        cwd: &Path,
        home: Option<&Path>,
        projects: &mut Vec<ProjectFolder>,
    ) -> Option<PathBuf> {
        let (mut openhook, mut repository, mut nearest) = (None, None, None);
        for folder in cwd.ancestors() {
            self.inspected_paths.push(folder.to_owned());
            // Anything of that name counts, so that a folder there is reported as a mistake.
            if repository.is_none() && openhook.is_none() && folder.join(FILE_NAME).exists() {
                openhook = Some(folder);
            }
            if folder.join(PROJECT_FOLDER).is_dir() {
                nearest = nearest.or(Some(folder));
                let is_above_repository = repository.is_some();
                // By bytes: comparing the parts of a thousand nested folders takes seconds.
                let is_same =
                    |known: &&mut ProjectFolder| known.root.as_os_str() == folder.as_os_str();
                match projects.iter_mut().find(is_same) {
                    Some(known) => known.is_above_repository &= is_above_repository,
                    None => projects.push(ProjectFolder {
                        root: folder.to_owned(),
                        is_above_repository,
                    }),
                }
            }
            if repository.is_none()
                && let Ok(git) = folder.join(".git").metadata()
            {
                repository = Some(folder);
                if !git.is_dir() {
                    self.linked_trees.push(folder.to_owned());
                }
            }
            if home.is_some_and(|home| home.as_os_str() == folder.as_os_str()) {
                break;
            }
        }
        let root = repository.or(nearest);
        if self.start_folders.is_empty() {
            root.unwrap_or(cwd).clone_into(&mut self.root);
            self.openhook = openhook.map(Path::to_owned);
        }
        root.map(Path::to_owned)
    }

    /// The managed config in this folder.
    pub(crate) fn managed(folder: &Path) -> Self {
        let mut found = Self::default();
        found.read_folder(Scope::Managed, folder, Path::new(""), Approvals::Ignored);
        found
    }

    /// Reads the outermost projects and, of many, only the approved ones among the
    /// others.
    fn read_projects(&mut self, projects: &[ProjectFolder], approvals: Approvals<'_>) {
        let (mut count, mut skipped) = (0, None);
        for project in projects {
            let folder = project.root.join(PROJECT_FOLDER);
            self.inspected_paths.push(folder.clone());
            let is_wanted = match approvals {
                _ if project.is_above_repository => {
                    let listing = list_folder(&folder).unwrap_or_default();
                    approvals.include(&folder, &listing)
                }
                Approvals::Known {
                    project: is_approved,
                    ..
                } if count >= MAX_UNAPPROVED_PROJECTS => is_approved(&project.root),
                _ => true,
            };
            if is_wanted {
                count += 1;
                self.read_folder(Scope::Project, &folder, &project.root, approvals);
            } else if !project.is_above_repository {
                skipped = Some(folder);
            }
        }
        self.problems.extend(skipped.map(|path| LoadProblem {
            scope: Scope::Project,
            path,
            message: format!(
                "more than {MAX_UNAPPROVED_PROJECTS} folders around this one have hooks, and those of the inner ones are not trusted"
            ),
        }));
    }

    fn read_folder(&mut self, scope: Scope, folder: &Path, root: &Path, approvals: Approvals<'_>) {
        let listing = match list_folder(folder) {
            Ok(listing) => listing,
            Err(error) => {
                self.problems
                    .push(LoadProblem::unreadable(scope, folder, &error));
                Vec::new()
            }
        };
        self.inspected_paths.push(folder.to_owned());
        for (names, files) in [
            (MANIFEST_NAMES, &mut self.manifests),
            (POLICY_NAMES, &mut self.policies),
        ] {
            let listed = listed_paths(folder, &listing, &names);
            self.inspected_paths.extend(listed);
            let is_limited = |size: u64| {
                size > MAX_UNAPPROVED_BYTES
                    && !matches!(approvals, Approvals::Ignored)
                    && !approvals.include(folder, &listing)
            };
            // The administrator's files are read, and policies are small.
            let known_hash = |path: &Path, metadata: &Metadata| match approvals {
                Approvals::Known { text_hash, .. }
                    if scope != Scope::Managed && names == MANIFEST_NAMES =>
                {
                    text_hash(path, metadata)
                }
                _ => None,
            };
            match read_listed(scope, folder, &listing, &names, is_limited, known_hash) {
                Ok(file) => files.extend(file.map(|file| ConfigSource {
                    scope,
                    path: file.path,
                    root: root.to_owned(),
                    text: file.text,
                    known_hash: file.known_hash,
                    owner: FileOwner::from_metadata(&file.metadata),
                    stamp: FileStamp::from_metadata(&file.metadata),
                })),
                Err(problem) => self.problems.push(problem),
            }
        }
    }
}

impl LoadProblem {
    fn unreadable(scope: Scope, path: &Path, error: &io::Error) -> Self {
        Self {
            scope,
            path: path.to_owned(),
            message: format!("cannot be read: {error}"),
        }
    }

    /// Whether it hides the administrator's policy: it is about that file, or
    /// about its whole folder.
    pub(super) fn hides_managed_policy(&self) -> bool {
        let name = self.path.file_name().unwrap_or_default();
        self.scope == Scope::Managed && !MANIFEST_NAMES.iter().any(|manifest| name == *manifest)
    }
}

/// Where the user's settings may be.
pub(super) fn settings_paths(folder: &Path) -> impl Iterator<Item = PathBuf> {
    SETTINGS_NAMES.iter().map(|name| folder.join(name))
}

/// The path and text of the user's settings.
pub(super) fn read_settings(folder: &Path) -> Result<Option<(PathBuf, String)>, LoadProblem> {
    let listing = list_folder(folder);
    let listing = listing.map_err(|error| LoadProblem::unreadable(Scope::User, folder, &error))?;
    let names = &SETTINGS_NAMES;
    let file = read_listed(Scope::User, folder, &listing, names, |_| false, |_, _| None)?;
    Ok(file.map(|file| (file.path, file.text)))
}
