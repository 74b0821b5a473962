//! Where a path lies: in the project, at home, in the system, on a device.

use crate::input::GuardInput;
use crate::paths::{glob_matches, is_same_name, is_within, normalize, path_matches};
use crate::shell::{Invocation, InvocationPlace, ResolvedWord, UNKNOWN};

/// Where a path lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Location {
    /// The root, a home folder, a system folder itself, the project or one above it.
    Critical,
    /// `.git` or inside it.
    Git,
    /// Inside a system folder.
    System,
    /// Somewhere else outside the project.
    Outside,
    /// The folder for temporary files, and what is in it.
    Temporary,
    /// Inside the project.
    Inside,
    /// Known only at run time.
    Unknown,
}

const SYSTEM_FOLDERS: &[&str] = &[
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/usr",
    "/var",
    "/mnt",
    "/media",
    "/snap",
    "/home",
    "/Users",
    "/System",
    "/Library",
    "/Applications",
    "/Volumes",
    "/private",
    "/nix",
    "C:/Windows",
    "C:/Program Files",
    "C:/Program Files (x86)",
    "C:/ProgramData",
    "C:/Users",
];

pub(super) struct Places<'i> {
    pub(super) project: Option<&'i str>,
    pub(super) home: Option<&'i str>,
    pub(super) input: &'i GuardInput<'i>,
    pub(super) allowed: Vec<&'i str>,
}

impl Places<'_> {
    pub(super) fn is_project(&self, path: &str) -> bool {
        let project = self.project;
        project.is_some_and(|project| is_same_name(project, path))
    }

    /// Classifies a word that a command deletes or changes.
    pub(super) fn locate(&self, invocation: &Invocation, word: &ResolvedWord) -> Location {
        let text = word.text.as_str();
        if text.is_empty() {
            return Location::Temporary;
        }
        if text.starts_with(UNKNOWN) && invocation.place != InvocationPlace::Container {
            return Location::Unknown;
        }
        // Above a folder that is not known.
        if text.contains("\0/..") && invocation.place == InvocationPlace::Local {
            return Location::Unknown;
        }
        let is_away = invocation.place != InvocationPlace::Local;
        let Some(path) = normalize(invocation.cwd.as_deref(), text) else {
            // Relative to a folder that is not known.
            return match invocation.place {
                InvocationPlace::Container => Location::Temporary,
                _ if text == ".git" || text.ends_with("/.git") => Location::Git,
                _ => Location::Unknown,
            };
        };
        let found = self.locate_path(&path, word.is_pattern);
        match (found, invocation.place) {
            (Location::Inside, _) if is_away => Location::Outside,
            // What is in an image is not the user's.
            (Location::Outside | Location::System, InvocationPlace::Container) => {
                Location::Temporary
            }
            (found, _) => found,
        }
    }

    pub(super) fn locate_path(&self, path: &str, is_pattern: bool) -> Location {
        if path.starts_with(&format!("/{UNKNOWN}"))
            && path.len() > 2
            && !path.contains("/\0/")
            && path == format!("/{UNKNOWN}")
        {
            return Location::Unknown;
        }
        // Everything in a folder is the folder.
        let mut path = path;
        let mut has_wildcard = false;
        while let Some((folder, last)) = path.rsplit_once('/') {
            let is_all = (is_pattern
                && matches!(
                    last,
                    "*" | "**" | ".*" | "?*" | "*.*" | "{*,.*}" | ".[!.]*" | "..?*" | ".??*"
                ))
                || last.chars().all(|letter| letter == UNKNOWN) && !last.is_empty();
            if !is_all {
                break;
            }
            has_wildcard = true;
            if last.contains(UNKNOWN) {
                return self.locate_below(folder);
            }
            path = if folder.is_empty() { "/" } else { folder };
            if path == "/" {
                break;
            }
        }
        if path.contains(UNKNOWN) {
            if path.split('/').any(|part| is_same_name(part, ".git")) {
                return Location::Git;
            }
            let known = path.split(UNKNOWN).next().unwrap_or_default();
            let folder = known.rsplit_once('/').map_or("", |(folder, _)| folder);
            return self.locate_below(folder);
        }
        // A pattern near the root matches system folders.
        if is_pattern && !has_wildcard && path.contains(['*', '?', '[']) {
            let critical = SYSTEM_FOLDERS
                .iter()
                .copied()
                .chain(self.home)
                .chain(self.project);
            for folder in critical {
                if glob_matches(path, folder) {
                    return Location::Critical;
                }
            }
            let git = self.project.map(|project| format!("{project}/.git"));
            if git.is_some_and(|git| glob_matches(path, &git)) {
                return Location::Git;
            }
        }
        self.locate_known(path, has_wildcard)
    }

    /// Something unknown in a known folder.
    fn locate_below(&self, folder: &str) -> Location {
        let folder = folder
            .split(UNKNOWN)
            .next()
            .unwrap_or_default()
            .trim_end_matches('/');
        if self.is_project(folder) {
            return Location::Inside;
        }
        if matches!(folder, "/tmp" | "/var/tmp" | "/private/tmp" | "/dev/shm") {
            return Location::Temporary;
        }
        let is_above = |inner: &str| is_within(inner, folder);
        if folder.is_empty()
            || self.project.is_some_and(is_above)
            || self.home.is_some_and(is_above)
        {
            return Location::Unknown;
        }
        match self.locate_known(folder, false) {
            Location::Critical => Location::System,
            found => found,
        }
    }

    fn locate_known(&self, path: &str, has_wildcard: bool) -> Location {
        let path = if path.is_empty() { "/" } else { path };
        if self
            .allowed
            .iter()
            .any(|pattern| path_matches(pattern, path, self.project, self.home))
        {
            return Location::Inside;
        }
        let is_drive = path.len() <= 3 && path.as_bytes().get(1) == Some(&b':');
        if path == "/" || is_drive {
            return Location::Critical;
        }
        if path.split('/').any(|part| is_same_name(part, ".git")) {
            return Location::Git;
        }
        let above_or_same = |folder: &str| is_within(folder, path);
        if self.project.is_some_and(above_or_same) || self.home.is_some_and(above_or_same) {
            return Location::Critical;
        }
        if self.project.is_some_and(|project| is_within(path, project)) {
            return Location::Inside;
        }
        for folder in [
            "/tmp",
            "/var/tmp",
            "/private/tmp",
            "/private/var/tmp",
            "/dev/shm",
        ] {
            if path == folder {
                return if has_wildcard {
                    Location::Temporary
                } else {
                    Location::Critical
                };
            }
            if is_within(path, folder) {
                return Location::Temporary;
            }
        }
        let temporary = self.input.context.temporary.iter();
        let is_temporary = temporary
            .filter_map(|folder| normalize(None, &folder.to_string_lossy()))
            .any(|folder| is_within(path, &folder) && path != folder)
            || is_within(path, "/var/folders") && path.matches('/').count() > 4
            || path.to_ascii_lowercase().contains("/appdata/local/temp/");
        if is_temporary {
            return Location::Temporary;
        }
        if path.starts_with("/home/") && path.matches('/').count() == 2
            || path.starts_with("/Users/") && path.matches('/').count() == 2
        {
            return Location::Critical;
        }
        if SYSTEM_FOLDERS
            .iter()
            .any(|folder| path.eq_ignore_ascii_case(folder))
            || path == "/root"
        {
            return Location::Critical;
        }
        let is_home = self.home.is_some_and(|home| is_within(path, home))
            || path.starts_with("/home/")
            || path.starts_with("/Users/")
            || path.starts_with("C:/Users/");
        if !is_home && SYSTEM_FOLDERS.iter().any(|folder| is_within(path, folder)) {
            return Location::System;
        }
        Location::Outside
    }
}

/// Folders of the system in which users install and keep things themselves.
const USERS_OWN_FOLDERS: &[&str] = &[
    "/media",
    "/mnt",
    "/opt",
    "/run",
    "/srv",
    "/usr/local",
    "/var/run",
    "/Volumes",
];

pub(super) fn is_file_of_system(invocation: &Invocation, word: &ResolvedWord) -> bool {
    normalize(invocation.cwd.as_deref(), &word.text).is_some_and(|path| {
        !USERS_OWN_FOLDERS
            .iter()
            .any(|folder| is_within(&path, folder))
    })
}

pub(super) fn is_in_key_folder(invocation: &Invocation, word: &ResolvedWord) -> bool {
    normalize(invocation.cwd.as_deref(), &word.text).is_some_and(|path| {
        [".ssh", ".gnupg", ".aws", ".kube", ".password-store"]
            .iter()
            .any(|folder| path.split('/').any(|part| is_same_name(part, folder)))
            && !path.ends_with("/known_hosts.old")
    })
}

/// What the names of devices begin with.
const DEVICE_PREFIXES: [&str; 17] = [
    "sd", "hd", "nvme", "vd", "xvd", "disk", "rdisk", "mmcblk", "loop", "md", "dm-", "mapper/",
    "mem", "kmem", "sr", "block/", "nbd",
];

/// A block device or the memory; not the harmless files of `/dev`.
pub(super) fn is_device(path: &str) -> bool {
    let Some(name) = path.strip_prefix("/dev/") else {
        return path.starts_with("\\\\.\\physicaldrive") || path.starts_with("/proc/sysrq");
    };
    DEVICE_PREFIXES
        .iter()
        .any(|prefix| name.starts_with(prefix))
        && !name.starts_with("stdout")
}
