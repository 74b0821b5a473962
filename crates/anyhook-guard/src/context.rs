//! What the guards know about a call besides the event.

use std::path::PathBuf;

use anyhook_model::spend::KnownSpend;

#[derive(Debug, Clone, Default)]
pub struct GuardContext {
    /// The root of the repository; without it, the event's folder.
    pub project: Option<PathBuf>,
    pub home: Option<PathBuf>,
    /// Folders for temporary files besides `/tmp`, `/var/tmp` and `$TMPDIR`.
    pub temporary: Vec<PathBuf>,
    /// Files in which agents keep their hooks and settings, as the adapters list
    /// them: relative to the project or the home folder, or absolute. `*` stands
    /// for a part of a name.
    pub agent_files: Vec<String>,
    /// Where anyhook keeps its own manifests, settings and state: absolute.
    pub own_folders: Vec<PathBuf>,
    /// Whether the call is on Windows, where a shell that is not named may be any.
    pub is_windows: bool,
    /// What the event's session and this day have cost so far, for the guard `budget`.
    pub spend: Option<KnownSpend>,
}
