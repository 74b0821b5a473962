//! Consent: a project's hooks run only as the user has seen them.
//!
//! Consent is by content: the SHA-256 of the manifest, of the policy beside it
//! and of every file that its commands name, found as they would be found when they run. One small
//! file per manifest holds it, so that asking costs one open. When an event
//! comes, the manifest is compared first, and the files of those hooks that
//! would run now: a changed script stops the hooks that use it. What a script
//! loads in its turn is not followed, nor a name that only the shell can
//! complete; the listing says which those are.
//!
//! Managed and user manifests are trusted by their place: only their owner, or
//! root, can have written them.

use std::io;
use std::path::{Path, PathBuf};

use anyhook_model::{Hook, Manifest, Scope};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::clock;
use crate::discover::{PROJECT_FOLDER, policy_in};
use crate::exec::command::Place;
use crate::exec::named::Named;
use crate::files;

/// Files under these belong to the system, not to a project.
const SYSTEM: [&str; 8] = [
    "/bin",
    "/lib",
    "/lib64",
    "/nix/store",
    "/opt",
    "/sbin",
    "/usr",
    "/System",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustStatus {
    Trusted,
    Untrusted(Distrust),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Distrust {
    /// Nobody has consented to it.
    Never,
    /// These files are not what was consented to.
    Changed(Vec<PathBuf>),
    /// Others than its owner can write it.
    Place(String),
}

impl std::fmt::Display for Distrust {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Never => f.write_str("not trusted yet"),
            Self::Changed(paths) => {
                let names: Vec<String> = paths
                    .iter()
                    .map(|path| format!("`{}`", path.display()))
                    .collect();
                write!(f, "changed since it was trusted: {}", names.join(", "))
            }
            Self::Place(why) => f.write_str(why),
        }
    }
}

/// What the user has consented to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consent {
    pub manifest: PathBuf,
    pub sha256: String,
    pub files: Vec<TrustedFile>,
    /// RFC 3339.
    pub time: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedFile {
    pub path: PathBuf,
    pub sha256: String,
}

impl Consent {
    /// Whether the manifest is the one that was consented to.
    pub fn covers_manifest(&self, text: &str) -> bool {
        self.sha256 == hash(text.as_bytes())
    }

    /// Whether a file with this text was consented to.
    pub fn covers(&self, path: &Path, text: &str) -> bool {
        let known = self.files.iter().find(|file| file.path == path);
        known.is_some_and(|known| known.sha256 == hash(text.as_bytes()))
    }

    /// Those of the files that are not what was consented to.
    pub fn changed(&self, files: &[PathBuf]) -> Vec<PathBuf> {
        let is_same = |path: &PathBuf| {
            let known = self.files.iter().find(|file| file.path == *path);
            known.is_some_and(|known| hash_file(path).is_ok_and(|now| now == known.sha256))
        };
        files
            .iter()
            .filter(|path| !is_same(path))
            .cloned()
            .collect()
    }
}

#[derive(Debug, Clone)]
pub struct TrustStore {
    folder: PathBuf,
}

impl TrustStore {
    pub fn new(state: &Path) -> Self {
        Self {
            folder: state.join("trust"),
        }
    }

    /// Where consent to a manifest is kept.
    pub fn file(&self, manifest: &Path) -> PathBuf {
        let key = hash(manifest.as_os_str().as_encoded_bytes());
        self.folder
            .join(format!("{}.json", key.get(..32).unwrap_or(&key)))
    }

    /// The consent for a manifest, if there is one.
    pub fn get(&self, manifest: &Path) -> Option<Consent> {
        let bytes = std::fs::read(self.file(manifest)).ok()?;
        let consent: Consent = serde_json::from_slice(&bytes).ok()?;
        (consent.manifest == manifest).then_some(consent)
    }

    /// Compares everything: the manifest and all files of all its hooks.
    pub fn status(&self, project: &Project<'_>) -> TrustStatus {
        let Some(consent) = self.get(project.path) else {
            return TrustStatus::Untrusted(Distrust::Never);
        };
        let mut changed = Vec::new();
        if !consent.covers_manifest(project.text) {
            changed.push(project.path.to_owned());
        }
        changed.extend(consent.changed(&project.files()));
        if changed.is_empty() {
            TrustStatus::Trusted
        } else {
            TrustStatus::Untrusted(Distrust::Changed(changed))
        }
    }

    /// Records consent to what is there now.
    pub fn record(&self, project: &Project<'_>) -> io::Result<Consent> {
        let mut files = Vec::new();
        for path in project.files() {
            files.push(TrustedFile {
                sha256: hash_file(&path)?,
                path,
            });
        }
        let consent = Consent {
            manifest: project.path.to_owned(),
            sha256: hash(project.text.as_bytes()),
            files,
            time: clock::rfc3339(clock::now_ms()),
        };
        files::replace(
            &self.file(project.path),
            &serde_json::to_vec_pretty(&consent)?,
        )?;
        Ok(consent)
    }

    /// Takes consent back; whether there was any.
    pub fn remove(&self, manifest: &Path) -> io::Result<bool> {
        match std::fs::remove_file(self.file(manifest)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Every consent there is.
    pub fn all(&self) -> Vec<Consent> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten();
        let mut all: Vec<Consent> = entries
            .flatten()
            .filter_map(|entry| std::fs::read(entry.path()).ok())
            .filter_map(|bytes| serde_json::from_slice(&bytes).ok())
            .collect();
        all.sort_by(|a, b| a.manifest.cmp(&b.manifest));
        all
    }
}

/// A project's manifest, parsed, with what it is relative to.
#[derive(Debug, Clone, Copy)]
pub struct Project<'a> {
    pub path: &'a Path,
    pub root: &'a Path,
    pub text: &'a str,
    pub manifest: &'a Manifest,
}

/// One line of what consent would allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WouldRun {
    /// Its name, or `#3` by position.
    pub hook: String,
    pub event: String,
    pub blocking: bool,
    /// `command`, `http`, `prompt` or `agent`.
    pub handler: &'static str,
    /// Every command line (for this and other systems), the address, or the prompt.
    pub runs: Vec<String>,
    /// The files that consent would cover.
    pub files: Vec<PathBuf>,
    /// Words of its commands that name files which consent cannot cover.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uncovered: Vec<String>,
}

impl Project<'_> {
    /// What would run, hook by hook.
    pub fn listing(&self) -> Vec<WouldRun> {
        let hooks = self.manifest.hooks.iter().enumerate();
        hooks
            .map(|(n, hook)| {
                let handler = &hook.handler;
                let named = named(hook, Scope::Project, self.root, self.folder());
                let runs = commands(hook)
                    .chain(handler.url.as_deref())
                    .chain(handler.prompt.as_deref())
                    .map(str::to_owned)
                    .collect();
                WouldRun {
                    hook: label(hook, n),
                    event: hook.event.clone(),
                    blocking: hook.blocking,
                    handler: handler.kind.as_str(),
                    runs,
                    files: named.files,
                    uncovered: named.unknown,
                }
            })
            .collect()
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(self.root)
    }

    /// The policy that rules over this manifest.
    pub fn policy(&self) -> Option<PathBuf> {
        let folder = self.folder();
        let is_own = folder
            .file_name()
            .is_some_and(|name| name == PROJECT_FOLDER);
        is_own.then(|| policy_in(folder)).flatten()
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = self.policy().into_iter().collect();
        for hook in &self.manifest.hooks {
            for file in hook_files(hook, Scope::Project, self.root, self.folder()) {
                if !files.contains(&file) {
                    files.push(file);
                }
            }
        }
        files
    }
}

/// A hook's name, or its position from 1.
pub fn label(hook: &Hook, position: usize) -> String {
    match &hook.name {
        Some(name) => name.clone(),
        None => format!("#{}", position + 1),
    }
}

/// Its command lines for every system: consent given here may be used there.
fn commands(hook: &Hook) -> impl Iterator<Item = &str> {
    let platform = &hook.handler.platform;
    [
        &hook.handler.command,
        &platform.linux,
        &platform.osx,
        &platform.windows,
    ]
    .into_iter()
    .filter_map(Option::as_deref)
}

/// The files of a hook that consent covers.
pub fn hook_files(hook: &Hook, scope: Scope, root: &Path, folder: &Path) -> Vec<PathBuf> {
    named(hook, scope, root, folder).files
}

fn named(hook: &Hook, scope: Scope, root: &Path, folder: &Path) -> Named {
    let cwd = match &hook.handler.cwd {
        Some(cwd) => root.join(cwd),
        None => root.to_owned(),
    };
    let place = Place {
        scope,
        root,
        folder,
        cwd: &cwd,
    };
    covered(commands(hook), place, &variables(hook, root, folder))
}

/// Those variables of a hook that do not depend on the event; what its
/// handler sets wins.
fn variables(hook: &Hook, root: &Path, folder: &Path) -> Vec<(String, String)> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let own = hook.handler.env.iter().filter_map(|(name, value)| {
        let value = value.as_str()?;
        Some((name.clone(), value.to_owned()))
    });
    let dialect = hook.handler.dialect.as_deref();
    let adapter = dialect.and_then(anyhook_agents::get_for_run);
    let given = adapter.into_iter().flat_map(|adapter| &adapter.spec.env);
    let given = given.filter_map(|(name, template)| {
        let value = template.replace("{project}", &text(root));
        (!value.contains('{')).then(|| (name.to_string(), value))
    });
    own.chain(given)
        .chain([
            ("ANYHOOK_PROJECT_DIR".to_owned(), text(root)),
            ("ANYHOOK_MANIFEST_DIR".to_owned(), text(folder)),
        ])
        .collect()
}

/// The files of a project's own command line that consent covers, where it
/// runs in the project's root.
pub fn command_files(command: &str, root: &Path) -> Vec<PathBuf> {
    let place = Place {
        scope: Scope::Project,
        root,
        folder: root,
        cwd: root,
    };
    let project = root.to_string_lossy().into_owned();
    let variables = [("ANYHOOK_PROJECT_DIR".to_owned(), project)];
    covered(std::iter::once(command), place, &variables).files
}

fn covered<'a>(
    commands: impl Iterator<Item = &'a str>,
    place: Place<'_>,
    variables: &[(String, String)],
) -> Named {
    let is_foreign = |file: &Path| {
        SYSTEM.iter().any(|system| file.starts_with(system)) && !file.starts_with(place.root)
    };
    let mut all = Named::default();
    for command in commands {
        let named = place.named(command, variables);
        for file in named.files {
            if !is_foreign(&file) && !all.files.contains(&file) {
                all.files.push(file);
            }
        }
        for word in named.unknown {
            if !all.unknown.contains(&word) {
                all.unknown.push(word);
            }
        }
    }
    all
}

pub fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hash_file(path: &Path) -> io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let mut digest = Sha256::new();
    // Scripts are small; a larger buffer costs more to clear than it saves.
    let mut buffer = [0_u8; 4096];
    loop {
        match io::Read::read(&mut file, &mut buffer)? {
            0 => return Ok(hex(&digest.finalize())),
            count => digest.update(buffer.get(..count).unwrap_or_default()),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or('0');
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// Whether only its owner, who is the user or root, can write a file and its
/// folder.
#[cfg(unix)]
pub fn by_place(path: &Path) -> TrustStatus {
    let me = rustix::process::geteuid().as_raw();
    for path in [Some(path), path.parent()].into_iter().flatten() {
        if let Err(why) = is_safe_place(path, me) {
            return TrustStatus::Untrusted(Distrust::Place(why));
        }
    }
    TrustStatus::Trusted
}

#[cfg(unix)]
fn is_safe_place(path: &Path, me: u32) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;
    let shown = path.display();
    let data = std::fs::metadata(path).map_err(|error| format!("`{shown}`: {error}"))?;
    if data.uid() != 0 && data.uid() != me {
        return Err(format!("`{shown}` belongs to another user"));
    }
    // Where every user has a group of his own, it has his number and no other member.
    let own_group = data.gid() == data.uid();
    if data.mode() & 0o002 != 0 || (data.mode() & 0o020 != 0 && !own_group) {
        return Err(format!(
            "others can write `{shown}`; run `chmod go-w {shown}`"
        ));
    }
    Ok(())
}

/// Windows keeps these folders to their owner unless told otherwise.
#[cfg(not(unix))]
pub fn by_place(_path: &Path) -> TrustStatus {
    TrustStatus::Trusted
}
