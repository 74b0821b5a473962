//! Where an archive is: a folder or a bucket, with calls that block.

use std::fs::File;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use anyhook_util::fs::{open_in_private_dir, private_file_options, try_lock};
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, UpdateVersion};
use tokio::runtime::Runtime;

use crate::error::{ArchiveError, Result};

const S3_SCHEME: &str = "s3://";

pub(crate) struct Place {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    runtime: Runtime,
    name: String,
    /// A folder cannot compare before it replaces: one process at a time.
    folder: Option<PathBuf>,
}

/// A file and its size.
#[derive(Debug, Clone)]
pub(crate) struct PlacedFile {
    /// Relative to the place.
    pub path: String,
    pub bytes: u64,
}

/// What a file was when it was read.
#[derive(Debug, Clone)]
pub(crate) enum FileVersion {
    Missing,
    Known(UpdateVersion),
}

impl Place {
    pub(crate) fn open(address: &str) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ArchiveError::Runtime)?;
        let name = address.to_owned();
        let invalid = || ArchiveError::Address(name.clone());
        if let Some(rest) = address.strip_prefix(S3_SCHEME) {
            // Another part of this process may have chosen one already.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            if bucket.is_empty() {
                return Err(invalid());
            }
            let builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
            let store = builder.build().map_err(|_| invalid())?;
            return Ok(Self {
                store: Arc::new(store),
                prefix: Path::parse(prefix.trim_matches('/')).map_err(|_| invalid())?,
                runtime,
                name,
                folder: None,
            });
        }
        if address.is_empty() || address.contains("://") {
            return Err(invalid());
        }
        let folder = PathBuf::from(address);
        let made = anyhook_util::fs::create_private_dir(&folder);
        made.map_err(|source| ArchiveError::Folder {
            path: folder.clone(),
            source,
        })?;
        Ok(Self {
            store: Arc::new(LocalFileSystem::new_with_prefix(&folder)?),
            prefix: Path::default(),
            runtime,
            name,
            folder: Some(folder),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Keeps other processes on this machine out until the result is dropped.
    pub(crate) fn lock(&self, path: &str) -> Result<Option<File>> {
        let Some(folder) = &self.folder else {
            return Ok(None);
        };
        let path = folder.join(FilePath::new(path));
        let mut options = private_file_options();
        options.write(true).create(true);
        let lock = open_in_private_dir(&options, &path);
        let lock = lock.map_err(|source| ArchiveError::Folder { path, source })?;
        try_lock(&lock).map_err(|_| self.busy())?;
        Ok(Some(lock))
    }

    fn busy(&self) -> ArchiveError {
        ArchiveError::Busy {
            place: self.name.clone(),
        }
    }

    fn path(&self, path: &str) -> Path {
        let parts = self.prefix.parts().map(|part| part.as_ref().to_owned());
        let parts: Vec<String> = parts.chain(path.split('/').map(str::to_owned)).collect();
        Path::from(parts.join("/"))
    }

    pub(crate) fn read_file(&self, path: &str) -> Result<Option<(Bytes, FileVersion)>> {
        self.runtime.block_on(async {
            let found = match self.store.get(&self.path(path)).await {
                Ok(found) => found,
                Err(object_store::Error::NotFound { .. }) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let version = UpdateVersion {
                e_tag: found.meta.e_tag.clone(),
                version: found.meta.version.clone(),
            };
            Ok(Some((found.bytes().await?, FileVersion::Known(version))))
        })
    }

    pub(crate) fn exists(&self, path: &str) -> Result<bool> {
        match self.runtime.block_on(self.store.head(&self.path(path))) {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a file as a whole: a reader sees the old one or the new one.
    pub(crate) fn write_file(&self, path: &str, bytes: Vec<u8>) -> Result<()> {
        let path = self.path(path);
        let put = self.store.put(&path, bytes.into());
        self.runtime.block_on(put)?;
        Ok(())
    }

    /// Replaces a file that is still what it was when it was read.
    pub(crate) fn replace_file(
        &self,
        path: &str,
        bytes: Vec<u8>,
        was: FileVersion,
    ) -> Result<FileVersion> {
        let mode = match was {
            // A lock keeps others out.
            _ if self.folder.is_some() => PutMode::Overwrite,
            FileVersion::Missing => PutMode::Create,
            FileVersion::Known(version) => PutMode::Update(version),
        };
        let options = PutOptions::from(mode);
        let path = self.path(path);
        let put = self.store.put_opts(&path, bytes.into(), options);
        match self.runtime.block_on(put) {
            Ok(done) => Ok(FileVersion::Known(done.into())),
            Err(
                object_store::Error::AlreadyExists { .. }
                | object_store::Error::Precondition { .. },
            ) => Err(self.busy()),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn delete_file(&self, path: &str) -> Result<()> {
        match self.runtime.block_on(self.store.delete(&self.path(path))) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Every file below a folder, in the order of their names.
    pub(crate) fn list_files(&self, folder: &str) -> Result<Vec<PlacedFile>> {
        let below = self.path(folder);
        let found = self.store.list(Some(&below)).try_collect::<Vec<_>>();
        let found = self.runtime.block_on(found)?;
        let skipped = self.prefix.parts().count();
        let mut files: Vec<PlacedFile> = found
            .into_iter()
            .map(|meta| {
                let parts = meta.location.parts().skip(skipped);
                let parts: Vec<String> = parts.map(|part| part.as_ref().to_owned()).collect();
                PlacedFile {
                    path: parts.join("/"),
                    bytes: meta.size,
                }
            })
            .collect();
        files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        Ok(files)
    }
}
