//! Which notices a session has shown, so that each is shown once.
//!
//! A marker is one of [`SLOT_COUNT`] files, chosen by the hash of session and notice,
//! and contains that hash. The next one with the same slot overwrites it: a
//! notice may then be shown again, and nothing accumulates.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhook_util::fs::{open_in_private_dir, private_file_options};
use anyhook_util::hash::{sha256, slot_of_hash};

const FOLDER: &str = "notices";
const SLOT_COUNT: u32 = 1024;

/// The marker of one notice in one session.
#[derive(Debug)]
pub(crate) struct NoticeMarker {
    path: PathBuf,
    hash: String,
}

impl NoticeMarker {
    pub(crate) fn new(state: &Path, session: &str, notice: &str) -> Self {
        let hash = sha256([session, notice].join("\0").as_bytes());
        let slot = slot_of_hash(&hash, SLOT_COUNT);
        Self {
            path: state.join(FOLDER).join(format!("{slot:03x}")),
            hash,
        }
    }

    pub(crate) fn exists(&self) -> bool {
        let limit = self.hash.len() as u64;
        anyhook_util::fs::read_text(&self.path, limit).is_ok_and(|text| text == self.hash)
    }

    pub(crate) fn create(&self) {
        let mut options = private_file_options();
        options.write(true).create(true).truncate(true);
        let file = open_in_private_dir(&options, &self.path);
        // If this fails, the notice is shown again.
        let _ = file.and_then(|mut file| file.write_all(self.hash.as_bytes()));
    }
}
