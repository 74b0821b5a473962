//! Which manifests apply to an event, and where our own files are.
//!
//! Order: managed, user, project. A project may have several manifests between
//! the event's folder and the root of its repository; all of them apply, the
//! outermost first, because a guard at the root must hold in a subfolder that
//! has hooks of its own. For the same reason a manifest above the repository
//! applies when the user has consented to it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use anyhook_model::Scope;
use openhook::discovery::FILE_NAME;

use crate::exec::command::normalized;
use crate::lock;
use crate::places::Places;

/// Names of a manifest, in the order of preference.
pub const MANIFESTS: [&str; 4] = ["hooks.yaml", "hooks.yml", "hooks.json", "hooks.jsonc"];

/// Names of a policy, in the order of preference.
pub const POLICIES: [&str; 4] = ["policy.json", "policy.jsonc", "policy.yaml", "policy.yml"];

/// Names of the user's settings, in the order of preference.
pub const CONFIGS: [&str; 4] = ["config.yaml", "config.yml", "config.json", "config.jsonc"];

/// Folder of a project's manifest.
pub const PROJECT_FOLDER: &str = ".anyhook";

/// A manifest or policy larger than this is not read.
const SIZE_LIMIT: u64 = 4 * 1024 * 1024;

/// Where our own files are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dirs {
    pub config: PathBuf,
    pub state: PathBuf,
    pub managed: PathBuf,
    /// Projects are not looked for above it.
    pub home: Option<PathBuf>,
}

impl Dirs {
    /// By `ANYHOOK_*_DIR`, else by the conventions of the platform.
    pub fn from_env() -> Self {
        Self::from_lookup(|name| std::env::var_os(name))
    }

    pub fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Self {
        let path = |name: &str| {
            lookup(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let home = path("HOME").or_else(|| path("USERPROFILE"));
        let under_home = |rest: &str| home.clone().unwrap_or_default().join(rest);
        // A relative base is against the XDG rules and would follow the agent's folder.
        let base = |name: &str| path(name).filter(|base| base.is_absolute());
        let (config, state) = if cfg!(windows) {
            (
                base("APPDATA").unwrap_or_else(|| under_home("AppData/Roaming")),
                base("LOCALAPPDATA").unwrap_or_else(|| under_home("AppData/Local")),
            )
        } else {
            (
                base("XDG_CONFIG_HOME").unwrap_or_else(|| under_home(".config")),
                base("XDG_STATE_HOME").unwrap_or_else(|| under_home(".local/state")),
            )
        };
        let managed = platform_managed(&lookup);
        let redirected = path("ANYHOOK_MANAGED_DIR").filter(|_| !lock::is_locked(&managed));
        Self {
            config: path("ANYHOOK_CONFIG_DIR").unwrap_or_else(|| config.join("anyhook")),
            state: path("ANYHOOK_STATE_DIR").unwrap_or_else(|| state.join("anyhook")),
            managed: redirected.unwrap_or(managed),
            home,
        }
    }
}

/// Whether the administrator's word is above `ANYHOOK=0` and `ANYHOOK_TRUST`.
pub fn is_locked(lookup: impl Fn(&str) -> Option<OsString>) -> bool {
    lock::is_locked(&platform_managed(&lookup))
}

/// Where this platform's administrator puts what holds for everybody.
pub(crate) fn platform_managed(lookup: &impl Fn(&str) -> Option<OsString>) -> PathBuf {
    if cfg!(windows) {
        let data = lookup("ProgramData").map(PathBuf::from);
        data.filter(|data| data.is_absolute())
            .unwrap_or_else(|| PathBuf::from("C:/ProgramData"))
            .join("anyhook")
    } else if cfg!(target_os = "macos") {
        PathBuf::from("/Library/Application Support/anyhook")
    } else {
        PathBuf::from("/etc/anyhook")
    }
}

/// A file of one scope, read.
#[derive(Debug, Clone)]
pub struct Source {
    pub scope: Scope,
    pub path: PathBuf,
    /// The project that this file stands for: for a project's own file the
    /// folder that holds `.anyhook`, else the event's project.
    pub root: PathBuf,
    pub text: String,
}

impl Source {
    /// The folder it lies in.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(&self.root)
    }
}

/// What applies at one folder.
#[derive(Debug, Clone, Default)]
pub struct Found {
    pub manifests: Vec<Source>,
    pub policies: Vec<Source>,
    /// The event's project: the repository's root, else the nearest folder with
    /// `.anyhook`, else the event's folder.
    pub root: PathBuf,
    /// The nearest folder with an OpenHook discovery file.
    pub openhook: Option<PathBuf>,
    /// The folders that were looked from, each by its real name.
    pub places: Vec<PathBuf>,
    /// Every folder and file that had a part in this.
    pub looked: Vec<PathBuf>,
    pub troubles: Vec<Trouble>,
}

/// A file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    pub scope: Scope,
    pub path: PathBuf,
    pub message: String,
}

/// Looks from a folder, up to the root of its repository.
pub fn discover(dirs: &Dirs, cwd: &Path) -> Found {
    discover_at(dirs, &Places::at(cwd), &|_| false)
}

/// Looks from every place of an event. Above the root of a repository only
/// those manifests count that have consent: a repository within the project
/// must not end the guard of the project, nor may a stranger's file above it
/// begin one.
pub fn discover_at(dirs: &Dirs, places: &Places, has_consent: &dyn Fn(&Path) -> bool) -> Found {
    let home = dirs.home.as_deref();
    let mut found = Found::default();
    let mut folders: Vec<Folder> = Vec::new();
    let mut is_in_project = false;
    let spare = places.spare.as_ref();
    for (n, place) in places.folders.iter().chain(spare).enumerate() {
        if n == places.folders.len() && is_in_project {
            break;
        }
        let (real, missing) = real(place);
        let named = place.ancestors().take(missing + 1);
        found.looked.extend(named.map(Path::to_owned));
        let place = real;
        let walked = walk(&place, home);
        let visited = place.ancestors().take(walked.visited);
        found.looked.extend(visited.map(Path::to_owned));
        found.places.push(place);
        if n == 0 {
            is_in_project = walked.is_project;
            found.root = walked.root;
            found.openhook = walked.openhook;
        }
        for folder in walked.folders {
            match folders.iter_mut().find(|known| known.path == folder.path) {
                Some(known) => known.is_above &= folder.is_above,
                None => folders.push(folder),
            }
        }
    }
    let event_root = found.root.clone();
    found.read(Scope::Managed, &dirs.managed, &event_root);
    found.read(Scope::User, &dirs.config, &event_root);
    folders.sort_by_key(|folder| folder.path.components().count());
    for Folder {
        path: root,
        is_above,
    } in &folders
    {
        let folder = root.join(PROJECT_FOLDER);
        found.looked.push(folder.clone());
        if !is_above || manifest_in(&folder).is_some_and(|path| has_consent(&path)) {
            found.read(Scope::Project, &folder, root);
        }
    }
    found
}

/// One name per place, because consent is by path and an agent may come by a
/// link; also for a folder that is not there, by as much of it as is. With how
/// many of its parts are not there.
fn real(path: &Path) -> (PathBuf, usize) {
    let mut ancestors = path.ancestors().enumerate().filter(|_| cfg!(unix));
    let known = ancestors.find_map(|(missing, ancestor)| {
        let real = std::fs::canonicalize(ancestor).ok()?;
        Some((real.join(path.strip_prefix(ancestor).ok()?), missing))
    });
    let (real, missing) = known.unwrap_or_else(|| (path.to_owned(), 0));
    (normalized(&real), missing)
}

/// The manifest of a folder, read or not.
pub fn manifest_in(folder: &Path) -> Option<PathBuf> {
    first_in(folder, &MANIFESTS)
}

/// The policy of a folder, read or not.
pub fn policy_in(folder: &Path) -> Option<PathBuf> {
    first_in(folder, &POLICIES)
}

fn first_in(folder: &Path, names: &[&str]) -> Option<PathBuf> {
    let listing = listing(folder);
    let is_there = |name: &&&str| listing.iter().any(|entry| entry == **name);
    names.iter().find(is_there).map(|name| folder.join(name))
}

/// A folder that has an `.anyhook`.
struct Folder {
    path: PathBuf,
    /// It lies above the root of the repository.
    is_above: bool,
}

/// What lies between a folder and the top of what can be its project.
struct Walked {
    root: PathBuf,
    /// Whether there is a repository, or an `.anyhook`.
    is_project: bool,
    folders: Vec<Folder>,
    openhook: Option<PathBuf>,
    /// How many folders that is.
    visited: usize,
}

fn walk(cwd: &Path, home: Option<&Path>) -> Walked {
    let mut folders: Vec<Folder> = Vec::new();
    let mut openhook = None;
    let mut top = None;
    let mut visited = 0;
    for folder in cwd.ancestors() {
        visited += 1;
        // Also what is there and no file: somebody meant something by it.
        if top.is_none() && openhook.is_none() && folder.join(FILE_NAME).exists() {
            openhook = Some(folder.to_owned());
        }
        if folder.join(PROJECT_FOLDER).is_dir() {
            folders.push(Folder {
                path: folder.to_owned(),
                is_above: top.is_some(),
            });
        }
        if top.is_none() && folder.join(".git").exists() {
            top = Some(folder.to_owned());
        }
        if Some(folder) == home {
            break;
        }
    }
    let nearest = || {
        folders
            .first()
            .map_or(cwd, |folder| &folder.path)
            .to_owned()
    };
    Walked {
        is_project: top.is_some() || !folders.is_empty(),
        root: top.unwrap_or_else(nearest),
        folders,
        openhook,
        visited,
    }
}

impl Found {
    /// What applies everywhere on this machine, by the folder of that.
    pub fn managed(folder: &Path) -> Self {
        let mut found = Self::default();
        found.read(Scope::Managed, folder, Path::new(""));
        found
    }

    fn read(&mut self, scope: Scope, folder: &Path, root: &Path) {
        let source = |(path, text)| Source {
            scope,
            path,
            root: root.to_owned(),
            text,
        };
        let listing = listing(folder);
        self.looked.push(folder.to_owned());
        let names = MANIFESTS.iter().chain(&POLICIES);
        let listed = names.filter(|name| listing.iter().any(|entry| entry == **name));
        self.looked.extend(listed.map(|name| folder.join(name)));
        match read_listed(folder, &listing, &MANIFESTS) {
            Ok(file) => self.manifests.extend(file.map(source)),
            Err(trouble) => self.troubles.push(trouble.of(scope)),
        }
        match read_listed(folder, &listing, &POLICIES) {
            Ok(file) => self.policies.extend(file.map(source)),
            Err(trouble) => self.troubles.push(trouble.of(scope)),
        }
    }
}

pub struct Unreadable {
    path: PathBuf,
    message: String,
}

impl Unreadable {
    fn of(self, scope: Scope) -> Trouble {
        Trouble {
            scope,
            path: self.path,
            message: self.message,
        }
    }
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.message)
    }
}

/// The first of the names that is there.
pub fn read_first(folder: &Path, names: &[&str]) -> Result<Option<(PathBuf, String)>, Unreadable> {
    read_listed(folder, &listing(folder), names)
}

/// The names in a folder: asking once is cheaper than trying every name. All
/// that could be there, when the folder does not tell.
fn listing(folder: &Path) -> Vec<OsString> {
    match std::fs::read_dir(folder) {
        Ok(entries) => entries.flatten().map(|entry| entry.file_name()).collect(),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let names = [MANIFESTS, POLICIES, CONFIGS].into_iter().flatten();
            names.map(OsString::from).collect()
        }
        Err(_) => Vec::new(),
    }
}

fn read_listed(
    folder: &Path,
    listing: &[OsString],
    names: &[&str],
) -> Result<Option<(PathBuf, String)>, Unreadable> {
    for name in names {
        if !listing.iter().any(|entry| entry == name) {
            continue;
        }
        let path = folder.join(name);
        match read_text(&path) {
            Ok(text) => return Ok(Some((path, text))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(Unreadable {
                    message: format!("cannot be read: {error}"),
                    path,
                });
            }
        }
    }
    Ok(None)
}

fn read_text(path: &Path) -> io::Result<String> {
    use std::io::Read;
    let file = std::fs::File::open(path)?;
    let data = file.metadata()?;
    // A pipe in its place would never end.
    if !data.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if data.len() > SIZE_LIMIT {
        return Err(io::Error::other("it is larger than 4 MiB"));
    }
    let mut text = String::with_capacity(usize::try_from(data.len()).unwrap_or_default());
    file.take(SIZE_LIMIT).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(found: &Found) -> Vec<(Scope, String)> {
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
    fn managed_then_user_then_every_manifest_up_to_the_repository() {
        let scratch = tempfile::tempdir().unwrap();
        let base = &scratch.path().canonicalize().unwrap();
        let dirs = Dirs {
            config: base.join("config"),
            state: base.join("state"),
            managed: base.join("managed"),
            home: Some(base.to_owned()),
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
        assert_eq!(found.troubles, []);

        // Above the repository only what has consent, and a folder that is gone.
        let places = Places::at(&base.join("above/repo/pkg/gone/../gone/deep"));
        let found = discover_at(&dirs, &places, &|path| {
            path == base.join("above/.anyhook/hooks.yaml")
        });
        assert_eq!(
            paths(&found)[2],
            (Scope::Project, "above/hooks.yaml".to_owned())
        );
        assert_eq!(found.manifests.len(), 5);

        // Several roots; the spare one counts when the first is no project.
        let places = Places {
            folders: vec![base.join("none"), base.join("above/repo/pkg")],
            spare: Some(base.join("above")),
        };
        let found = discover_at(&dirs, &places, &|_| false);
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
    fn what_is_no_text_file_is_a_trouble_and_not_an_end() {
        let scratch = tempfile::tempdir().unwrap();
        let base = &scratch.path().canonicalize().unwrap();
        let dirs = Dirs {
            config: base.join("config"),
            state: base.join("state"),
            managed: base.join("none"),
            home: None,
        };
        write(&base.join(".git/HEAD"), "");
        std::fs::create_dir_all(base.join("config/hooks.yaml")).unwrap();
        std::fs::create_dir_all(base.join(".anyhook")).unwrap();
        std::fs::write(base.join(".anyhook/hooks.json"), [0xff, 0xfe, 0]).unwrap();
        let found = discover(&dirs, base);
        assert!(found.manifests.is_empty());
        assert_eq!(found.troubles.len(), 2);
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
