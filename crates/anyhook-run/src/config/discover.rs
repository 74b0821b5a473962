//! Finds the manifests and policies that apply to an event, and anyhook's own
//! folders.
//!
//! Order: managed, user, project. A project may have several manifests between
//! the event's folder and the root of its repository; all of them apply, the
//! outermost first, because a guard at the root must hold in a subfolder that
//! has its own hooks. For the same reason a manifest above the repository
//! applies if the user has trusted it.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use anyhook_model::Scope;
use anyhook_util::env;
use anyhook_util::fs::{read_text, read_text_and_metadata};
use anyhook_util::hash::{PartsHash, sha256};
use anyhook_util::paths::{canonicalize, normal_form};
use anyhook_util::system::OperatingSystem;
use openhook::discovery::FILE_NAME;

use crate::config::account::Account;
use crate::config::cache::FileStamp;
use crate::config::folders::EventFolders;
use crate::config::owner::FileOwner;
use crate::config::policy::locks_env;
use crate::run::exec::command::normalize_path;

/// File names of a manifest, preferred first.
pub const MANIFEST_NAMES: [&str; 4] = ["hooks.yaml", "hooks.yml", "hooks.json", "hooks.jsonc"];

/// File names of a policy, preferred first.
const POLICY_NAMES: [&str; 4] = ["policy.json", "policy.jsonc", "policy.yaml", "policy.yml"];

/// File names of the user's settings, preferred first.
const SETTINGS_NAMES: [&str; 4] = ["config.yaml", "config.yml", "config.json", "config.jsonc"];

/// The folder of the consents in the state folder.
pub(crate) const TRUST_FOLDER: &str = "trust";

/// Whether a manifest, a policy or the settings can have this file name.
pub(crate) fn is_config_name(name: &std::ffi::OsStr) -> bool {
    let names = [MANIFEST_NAMES, POLICY_NAMES, SETTINGS_NAMES];
    names.as_flattened().iter().any(|known| name == *known)
}

/// The folder of a project's manifest.
pub const PROJECT_FOLDER: &str = ".anyhook";

/// A larger manifest, policy or settings file is an error.
const MAX_CONFIG_BYTES: u64 = 4 * 1024 * 1024;

/// What nobody has approved is read only up to this size, and parsed only as far
/// as all such files of an event are not larger together: a repository that
/// nobody has approved must not make every call slow.
pub(crate) const MAX_UNAPPROVED_BYTES: u64 = 32 * 1024;

/// Of more folders with hooks in each other, the inner ones are read only if their
/// hooks are approved.
const MAX_UNAPPROVED_PROJECTS: usize = 16;

/// Of a folder with more entries each name is tried instead.
const MAX_LISTED_ENTRIES: usize = 512;

/// Where programs keep their configuration, in the home folder.
const USUAL_CONFIG_BASE: &str = if cfg!(windows) {
    "AppData/Roaming"
} else {
    ".config"
};

/// Stands for a folder whose place is not known: nothing can be there.
const NO_FOLDER: &str = if cfg!(windows) {
    r"\\.\NUL\anyhook"
} else {
    "/dev/null/anyhook"
};

/// The folders of anyhook's own files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dirs {
    pub config: PathBuf,
    pub state: PathBuf,
    pub managed: PathBuf,
    /// No project is searched above it.
    pub home: Option<PathBuf>,
    /// Folders that the environment names and that are not used.
    pub problems: Vec<LoadProblem>,
}

impl Dirs {
    /// By `ANYHOOK_*_DIR`, else by the conventions of the platform.
    pub fn from_env() -> Self {
        Self::from_lookup(env::by_name_os)
    }

    /// Of relative paths none counts: they would depend on the agent's folder, so
    /// that a repository could contain the user's configuration. On a locked
    /// installation the environment does not count at all.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Self {
        let managed = platform_managed(&lookup);
        let is_locked = locks_env(&managed);
        let mut problems = Vec::new();
        let mut path = |variable: env::Variable| {
            let value = lookup(variable.name).filter(|value| !value.is_empty() && !is_locked);
            let path = normal_form(PathBuf::from(value?));
            if path.is_absolute() {
                return Some(path);
            }
            problems.push(LoadProblem {
                scope: Scope::User,
                message: format!("`{}` is not an absolute path", variable.name),
                path,
            });
            None
        };
        let mut home = None;
        if cfg!(windows) {
            // A POSIX shell may have set the other one, to something else.
            home = path(env::USERPROFILE);
        }
        let home = home.or_else(|| path(env::HOME));
        let home = home.or_else(|| Account::current().map(|account| account.home.clone()));
        let mut base = |variable: env::Variable, default: &str| {
            let base = path(variable).or_else(|| Some(home.as_ref()?.join(default)));
            base.map(|base| base.join("anyhook"))
        };
        let (config, state) = if cfg!(windows) {
            (
                base(env::APPDATA, USUAL_CONFIG_BASE),
                base(env::LOCALAPPDATA, "AppData/Local"),
            )
        } else {
            (
                base(env::XDG_CONFIG_HOME, USUAL_CONFIG_BASE),
                base(env::XDG_STATE_HOME, ".local/state"),
            )
        };
        let config = path(env::ANYHOOK_CONFIG_DIR).or(config);
        let state = path(env::ANYHOOK_STATE_DIR).or(state);
        let redirected = path(env::ANYHOOK_MANAGED_DIR);
        if config.is_none() || state.is_none() {
            problems.push(LoadProblem {
                scope: Scope::User,
                path: PathBuf::from("~"),
                message: format!(
                    "your home folder is not known: `{}` is not set, and you have no entry in the password database",
                    env::HOME.name
                ),
            });
        }
        let state = state.unwrap_or_else(|| PathBuf::from(NO_FOLDER));
        if let Ok(owner) = FileOwner::from_path(&state)
            && let Err(why) = owner.check_user(&state)
        {
            problems.push(LoadProblem {
                scope: Scope::User,
                message: format!("{why}; approvals and caches in it do not count"),
                path: state.clone(),
            });
        }
        Self {
            config: config.unwrap_or_else(|| PathBuf::from(NO_FOLDER)),
            state,
            managed: redirected.unwrap_or(managed),
            home,
            problems,
        }
    }

    /// Whether the configuration folder is part of a project. A repository's
    /// files are not the user's, whatever the environment says; a home folder
    /// that is a repository is, and so is the usual configuration folder in it.
    fn is_config_in(&self, project: &Path) -> bool {
        is_projects_own(&self.config, project)
    }

    /// Equal for all processes that look for hooks in the same folders.
    pub fn digest(&self) -> String {
        let mut digest = PartsHash::default();
        for path in [Some(&self.config), Some(&self.managed), self.home.as_ref()] {
            let path = path.map(|path| canonical_path(path).0).unwrap_or_default();
            digest.add(path.as_os_str().as_encoded_bytes());
        }
        digest.finish()
    }

    /// Whether the administrator has hooks, or may have: in a folder that cannot be read.
    pub(crate) fn has_managed_manifest(&self) -> bool {
        let listing = list_folder(&self.managed);
        listing.map_or(true, |listing| {
            let mut manifests = listed_paths(&self.managed, &listing, &MANIFEST_NAMES);
            manifests.next().is_some()
        })
    }

    /// Whether approvals and caches in the state folder count: only the user can
    /// have written them.
    pub(crate) fn is_state_trusted(&self) -> bool {
        !self
            .problems
            .iter()
            .any(|problem| problem.path == self.state)
    }

    /// Why nothing can be written to the state folder, for the user. Creates it if
    /// it is missing.
    pub(crate) fn recording_problem(&self) -> Option<String> {
        let why = state_write_problem(&self.state)?;
        let state = self.state.display();
        Some(format!("events cannot be recorded in `{state}`: {why}"))
    }

    /// The state folder for approvals: one that is empty if another user can
    /// have written them.
    pub(crate) fn approvals_state(&self) -> &Path {
        if self.is_state_trusted() {
            &self.state
        } else {
            Path::new(NO_FOLDER)
        }
    }
}

/// Whether a file or folder belongs to the project that it is in, and not to the user.
fn is_projects_own(path: &Path, project: &Path) -> bool {
    let is_users = || {
        let account = Account::current();
        account.is_some_and(|account| {
            let usual = account.home.join(USUAL_CONFIG_BASE).join("anyhook");
            account.home.starts_with(project) || path.starts_with(usual)
        })
    };
    path.starts_with(project) && !is_users()
}

/// The repository or project that a file of the user is really in, links followed, unless
/// it is the user's own folder there.
pub(crate) fn project_around(path: &Path) -> Option<PathBuf> {
    let real = canonical_path(path).0;
    let is_project = |folder: &&Path| {
        let mut marks = [".git", PROJECT_FOLDER].iter();
        marks.any(|mark| folder.join(mark).exists())
    };
    let folder = real.parent()?;
    let project = folder.ancestors().find(is_project)?;
    is_projects_own(&real, project).then(|| project.to_owned())
}

#[cfg(unix)]
fn state_write_problem(state: &Path) -> Option<String> {
    use rustix::fs::{Access, access, statvfs};
    let volume = match statvfs(state) {
        Err(rustix::io::Errno::NOENT) => {
            return anyhook_util::fs::create_private_dir(state)
                .err()
                .map(|error| error.to_string());
        }
        Err(error) => return Some(error.to_string()),
        Ok(volume) => volume,
    };
    if volume.f_blocks > 0 && volume.f_bavail == 0 {
        return Some("the disk is full".to_owned());
    }
    let error = access(state, Access::WRITE_OK | Access::EXEC_OK).err()?;
    Some(error.to_string())
}

#[cfg(not(unix))]
fn state_write_problem(_state: &Path) -> Option<String> {
    None
}

/// Whether the managed folder overrides the user's environment.
pub fn is_locked(lookup: impl Fn(&str) -> Option<OsString>) -> bool {
    locks_env(&platform_managed(&lookup))
}

/// The folder of this platform for the config of all users.
fn platform_managed(lookup: &impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let _ = lookup;
    #[cfg(windows)]
    {
        use known_folders::{KnownFolder, get_known_folder_path};
        // A project could set the variable, through an agent.
        let data = get_known_folder_path(KnownFolder::ProgramData);
        let data = data.or_else(|| lookup(env::PROGRAM_DATA.name).map(PathBuf::from));
        let data = data.filter(|data| data.is_absolute());
        let data = data.unwrap_or_else(|| PathBuf::from(r"C:\ProgramData"));
        normal_form(data).join("anyhook")
    }
    #[cfg(not(windows))]
    PathBuf::from(unix_managed_folder(OperatingSystem::CURRENT))
}

#[cfg_attr(
    windows,
    allow(dead_code, reason = "Windows itself names the folder there")
)]
fn unix_managed_folder(system: OperatingSystem) -> &'static str {
    match system {
        OperatingSystem::MacOs => "/Library/Application Support/anyhook",
        OperatingSystem::Linux | OperatingSystem::Windows => "/etc/anyhook",
    }
}

/// The text of a manifest or policy.
#[derive(Debug, Clone)]
pub struct ConfigSource {
    pub scope: Scope,
    pub path: PathBuf,
    /// The project's root: for a project's own file the folder that contains
    /// `.anyhook`, else the event's project.
    pub root: PathBuf,
    /// Empty if only its hash is known.
    pub text: String,
    /// The hash of a text that was not read.
    pub(super) known_hash: Option<String>,
    /// The owner of the file that was read.
    pub(super) owner: FileOwner,
    /// That of the file before it was read.
    pub(super) stamp: Option<FileStamp>,
}

impl ConfigSource {
    /// A file of a project, whose owner does not matter.
    pub fn of_project(path: PathBuf, root: PathBuf, text: String) -> Self {
        Self {
            scope: Scope::Project,
            path,
            root,
            text,
            known_hash: None,
            owner: FileOwner::default(),
            stamp: None,
        }
    }

    pub(super) fn text_hash(&self) -> String {
        let known = self.known_hash.clone();
        known.unwrap_or_else(|| sha256(self.text.as_bytes()))
    }

    /// Reads a text of which only the hash is known.
    pub(super) fn load_text(&mut self) -> Result<(), LoadProblem> {
        let Some(hash) = &self.known_hash else {
            return Ok(());
        };
        let text = read_text(&self.path, MAX_CONFIG_BYTES);
        let same = text.and_then(|text| {
            if sha256(text.as_bytes()) == *hash {
                Ok(text)
            } else {
                Err(io::Error::other("it was changed while it was read"))
            }
        });
        let unreadable = |error| LoadProblem::unreadable(self.scope, &self.path, &error);
        self.text = same.map_err(unreadable)?;
        self.known_hash = None;
        Ok(())
    }

    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(&self.root)
    }
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
    let mut is_in_project = false;
    found.problems.clone_from(&dirs.problems);
    for (n, folder) in start.folders.iter().enumerate() {
        let (canonical, missing) = canonical_path(folder);
        let named = folder.ancestors().take(missing + 1);
        found.inspected_paths.extend(named.map(Path::to_owned));
        let is_project = found.walk_up(&canonical, home, &mut projects);
        if n == 0 {
            is_in_project = is_project;
        }
        found.start_folders.push(canonical);
    }
    let event_root = found.root.clone();
    found.read_folder(
        Scope::Managed,
        &dirs.managed,
        &event_root,
        Approvals::Ignored,
    );
    if is_in_project && dirs.is_config_in(&event_root) {
        found.inspected_paths.push(dirs.config.clone());
        if dirs.config.exists() {
            found.problems.push(LoadProblem {
                scope: Scope::User,
                path: dirs.config.clone(),
                message: "your configuration folder is inside the project, so its files are the project's".to_owned(),
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
    /// and the OpenHook discovery file. Returns whether the folder is in a project.
    fn walk_up(
        &mut self,
        cwd: &Path,
        home: Option<&Path>,
        projects: &mut Vec<ProjectFolder>,
    ) -> bool {
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
        root.is_some()
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

/// The names in a folder: one listing is cheaper than an attempt per name. If the
/// folder cannot be listed or is large, all names that could be there.
fn list_folder(folder: &Path) -> io::Result<Vec<OsString>> {
    let all_names = || {
        let names = [MANIFEST_NAMES, POLICY_NAMES, SETTINGS_NAMES];
        names.into_iter().flatten().map(OsString::from).collect()
    };
    match std::fs::read_dir(folder) {
        Ok(entries) => {
            let names = entries.flatten().map(|entry| entry.file_name());
            let names: Vec<_> = names.take(MAX_LISTED_ENTRIES).collect();
            if names.len() < MAX_LISTED_ENTRIES {
                Ok(names)
            } else {
                Ok(all_names())
            }
        }
        Err(error) => match error.kind() {
            io::ErrorKind::PermissionDenied => Ok(all_names()),
            io::ErrorKind::NotFound => Ok(Vec::new()),
            // The place for which there is no folder, below a file.
            io::ErrorKind::NotADirectory if !folder.exists() => Ok(Vec::new()),
            _ => Err(error),
        },
    }
}

/// The files of these names in a listing of their folder.
fn listed_paths(
    folder: &Path,
    listing: &[OsString],
    names: &[&str],
) -> impl Iterator<Item = PathBuf> {
    let listed = |name: &&&str| listing.iter().any(|entry| entry == **name);
    names.iter().filter(listed).map(|name| folder.join(name))
}

/// A file of a folder.
struct ListedFile {
    path: PathBuf,
    text: String,
    /// Instead of the text.
    known_hash: Option<String>,
    metadata: Metadata,
}

/// The first file of these names that exists. One that is too large for a file
/// that nobody has approved is not read, nor one whose hash is known.
fn read_listed(
    scope: Scope,
    folder: &Path,
    listing: &[OsString],
    names: &[&str],
    is_too_large: impl Fn(u64) -> bool,
    known_hash: impl Fn(&Path, &Metadata) -> Option<String>,
) -> Result<Option<ListedFile>, LoadProblem> {
    for path in listed_paths(folder, listing, names) {
        let metadata = path.metadata().ok().filter(Metadata::is_file);
        if scope == Scope::Project && metadata.as_ref().is_some_and(|it| is_too_large(it.len())) {
            let limit = MAX_UNAPPROVED_BYTES / 1024;
            let message = format!(
                "it is not trusted, and larger than {limit} KiB; read it, then run `anyhook trust`"
            );
            return Err(LoadProblem {
                scope,
                path,
                message,
            });
        }
        if let Some(metadata) = metadata
            && let Some(hash) = known_hash(&path, &metadata)
        {
            return Ok(Some(ListedFile {
                path,
                text: String::new(),
                known_hash: Some(hash),
                metadata,
            }));
        }
        match read_text_and_metadata(&path, MAX_CONFIG_BYTES) {
            Ok((text, metadata)) => {
                return Ok(Some(ListedFile {
                    path,
                    text,
                    known_hash: None,
                    metadata,
                }));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if path.is_symlink() {
                    let error = io::Error::other("it is a link to a file that does not exist");
                    return Err(LoadProblem::unreadable(scope, &path, &error));
                }
            }
            Err(error) => return Err(LoadProblem::unreadable(scope, &path, &error)),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(found: &FoundConfig) -> Vec<(Scope, String)> {
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        found
            .manifests
            .iter()
            .map(|source| {
                (
                    source.scope,
                    format!("{}/{}", name(&source.root), name(&source.path)),
                )
            })
            .collect()
    }

    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn every_unix_has_its_own_managed_folder() {
        let folders = [OperatingSystem::MacOs, OperatingSystem::Linux].map(unix_managed_folder);
        let expected = ["/Library/Application Support/anyhook", "/etc/anyhook"];
        assert_eq!(folders, expected);
    }

    #[test]
    fn managed_then_user_then_every_manifest_up_to_the_repository() {
        let scratch = tempfile::tempdir().unwrap();
        let base = &anyhook_util::paths::canonicalize(scratch.path()).unwrap();
        let dirs = Dirs {
            config: base.join("config"),
            state: base.join("state"),
            managed: base.join("managed"),
            home: Some(base.to_owned()),
            problems: Vec::new(),
        };
        write(&base.join("config/hooks.json"), "{}");
        write(&base.join("managed/hooks.yaml"), "{}");
        write(&base.join("above/.anyhook/hooks.yaml"), "not looked at");
        write(&base.join("above/repo/.git/HEAD"), "");
        write(&base.join("above/repo/.anyhook/hooks.yml"), "");
        write(&base.join("above/repo/.anyhook/policy.json"), "{}");
        write(&base.join("above/repo/pkg/.anyhook/hooks.json"), "");
        write(&base.join("above/repo/pkg/src/main"), "");
        let found = discover(&dirs, &base.join("above/repo/pkg/src"));
        assert_eq!(found.root, base.join("above/repo"));
        let expected = [
            (Scope::Managed, "repo/hooks.yaml"),
            (Scope::User, "repo/hooks.json"),
            (Scope::Project, "repo/hooks.yml"),
            (Scope::Project, "pkg/hooks.json"),
        ];
        assert_eq!(
            paths(&found),
            expected.map(|(scope, path)| (scope, path.to_owned()))
        );
        assert_eq!(found.policies.len(), 1);
        assert_eq!(found.problems, []);

        // Above the repository only what has consent, and a folder that does not exist.
        let start = EventFolders::from_folder(&base.join("above/repo/pkg/gone/../gone/deep"));
        let is_approved = |path: &Path| path == base.join("above/.anyhook/hooks.yaml");
        let approvals = Approvals::Known {
            manifest: &is_approved,
            project: &|_| false,
            text_hash: &|_, _| None,
        };
        let found = discover_at(&dirs, &start, approvals);
        assert_eq!(
            paths(&found)[2],
            (Scope::Project, "above/hooks.yaml".to_owned())
        );
        assert_eq!(found.manifests.len(), 5);

        // Several roots.
        let start = EventFolders {
            folders: ["none", "above/repo/pkg", "above"]
                .map(|folder| base.join(folder))
                .to_vec(),
        };
        let found = discover_at(&dirs, &start, Approvals::Ignored);
        let expected = ["above/hooks.yaml", "repo/hooks.yml", "pkg/hooks.json"];
        assert_eq!(
            paths(&found)[2..],
            expected.map(|path| (Scope::Project, path.to_owned()))
        );

        // Outside a repository the walk ends at the home folder.
        let found = discover(&dirs, &base.join("above"));
        assert_eq!(found.root, base.join("above"));
        assert_eq!(found.manifests.len(), 3);
    }

    #[test]
    fn a_file_that_is_not_text_is_a_problem_and_does_not_end_the_search() {
        let scratch = tempfile::tempdir().unwrap();
        let base = &anyhook_util::paths::canonicalize(scratch.path()).unwrap();
        let dirs = Dirs {
            config: base.join("config"),
            state: base.join("state"),
            managed: base.join("none"),
            home: None,
            problems: Vec::new(),
        };
        write(&base.join(".git/HEAD"), "");
        std::fs::create_dir_all(base.join("config/hooks.yaml")).unwrap();
        std::fs::create_dir_all(base.join(".anyhook")).unwrap();
        std::fs::write(base.join(".anyhook/hooks.json"), [0xff, 0xfe, 0]).unwrap();
        let found = discover(&dirs, base);
        assert!(found.manifests.is_empty());
        assert_eq!(found.problems.len(), 2);
    }

    #[test]
    fn folders_by_environment() {
        let lookup = |name: &str| match name {
            "HOME" => Some("/home/me".into()),
            "XDG_STATE_HOME" => Some("/state".into()),
            "ANYHOOK_MANAGED_DIR" => Some("/managed".into()),
            _ => None,
        };
        if cfg!(unix) {
            let dirs = Dirs::from_lookup(lookup);
            assert_eq!(dirs.config, Path::new("/home/me/.config/anyhook"));
            assert_eq!(dirs.state, Path::new("/state/anyhook"));
            assert_eq!(dirs.managed, Path::new("/managed"));
        }
    }
}
