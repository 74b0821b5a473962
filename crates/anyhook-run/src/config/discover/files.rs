//! Reads config files: those of given names in a folder, up to a size.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use anyhook_model::Scope;
use anyhook_util::fs::{read_text, read_text_and_metadata};
use anyhook_util::hash::sha256;

use super::{LoadProblem, MANIFEST_NAMES, MAX_UNAPPROVED_BYTES, POLICY_NAMES, SETTINGS_NAMES};
use crate::config::cache::FileStamp;
use crate::config::owner::FileOwner;

/// A larger manifest, policy or settings file is an error.
const MAX_CONFIG_BYTES: u64 = 4 * 1024 * 1024;

/// Of a folder with more entries each name is tried instead.
const MAX_LISTED_ENTRIES: usize = 512;

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
    pub(in crate::config) known_hash: Option<String>,
    /// The owner of the file that was read.
    pub(in crate::config) owner: FileOwner,
    /// That of the file before it was read.
    pub(in crate::config) stamp: Option<FileStamp>,
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

    pub(in crate::config) fn text_hash(&self) -> String {
        let known = self.known_hash.clone();
        known.unwrap_or_else(|| sha256(self.text.as_bytes()))
    }

    /// Reads a text of which only the hash is known.
    pub(in crate::config) fn load_text(&mut self) -> Result<(), LoadProblem> {
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

/// The names in a folder: one listing takes 5 µs, an attempt for each of eight names
/// 10. If the folder cannot be listed or is large, all names that could be there.
pub(super) fn list_folder(folder: &Path) -> io::Result<Vec<OsString>> {
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
pub(super) fn listed_paths(
    folder: &Path,
    listing: &[OsString],
    names: &[&str],
) -> impl Iterator<Item = PathBuf> {
    let listed = |name: &&&str| listing.iter().any(|entry| entry == **name);
    names.iter().filter(listed).map(|name| folder.join(name))
}

/// A file of a folder.
pub(super) struct ListedFile {
    pub(super) path: PathBuf,
    pub(super) text: String,
    /// Instead of the text.
    pub(super) known_hash: Option<String>,
    pub(super) metadata: Metadata,
}

/// The first file of these names that exists. One that is too large for an
/// unapproved file is not read, nor is one whose hash is known.
pub(super) fn read_listed(
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
