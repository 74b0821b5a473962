//! What of a store is in an archive, and what was begun.

use serde::{Deserialize, Serialize};

use crate::error::{ArchiveError, Result};
use crate::place::{FileVersion, Place};

const STATE_VERSION: u32 = 1;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ArchiveState {
    v: u32,
    /// Events up to this number are in the archive.
    pub exported: i64,
    /// What was begun: an interrupted export ends it first, in the same files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<Begun>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Begun {
    /// Writes the events from one number to another.
    Export { first: i64, last: i64 },
    /// Has written `output`; `inputs` are deleted.
    Merge { inputs: Vec<String>, output: String },
}

/// The state of one store, in a file of the archive.
pub(crate) struct ArchiveStateFile<'a> {
    place: &'a Place,
    path: String,
    version: FileVersion,
    pub state: ArchiveState,
}

impl<'a> ArchiveStateFile<'a> {
    pub(crate) fn load(place: &'a Place, store_id: &str) -> Result<Self> {
        let path = format!("_anyhook/{store_id}.json");
        let mut file = Self {
            place,
            path,
            version: FileVersion::Missing,
            state: ArchiveState {
                v: STATE_VERSION,
                exported: 0,
                begun: None,
            },
        };
        if let Some((bytes, version)) = place.read_file(&file.path)? {
            file.version = version;
            file.state = file.parse(&bytes)?;
        }
        Ok(file)
    }

    fn parse(&self, bytes: &[u8]) -> Result<ArchiveState> {
        let failed = |why: String| ArchiveError::State {
            path: self.path.clone(),
            why,
        };
        let state: ArchiveState =
            serde_json::from_slice(bytes).map_err(|error| failed(error.to_string()))?;
        if state.v > STATE_VERSION {
            return Err(failed(format!("version {}", state.v)));
        }
        Ok(state)
    }

    pub(crate) fn save(&mut self) -> Result<()> {
        let bytes = serde_json::to_vec(&self.state).map_err(|error| ArchiveError::State {
            path: self.path.clone(),
            why: error.to_string(),
        })?;
        self.version = self
            .place
            .replace_file(&self.path, bytes, self.version.clone())?;
        Ok(())
    }
}
