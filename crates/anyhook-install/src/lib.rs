//! Installs the bridge into each agent's own config, removes it without a trace,
//! and diagnoses hooks that do not run.
//!
//! Owns the decisions of where the bridge goes and what is wrong with a config.
//! Prints nothing and asks nothing: everything is returned as a value. Texts are
//! edited by `anyhook-edit`, facts about agents come from their folders.

#![deny(clippy::disallowed_methods)]

pub mod agent_trust;
pub mod command;
mod detect;
pub mod doctor;
mod error;
mod folders;
mod hook_entries;
pub mod hook_scripts;
pub mod import;
pub mod init;
mod installation;
pub mod kept_program;
mod last_events;
mod machine;
pub mod native_hooks;
mod needs;
pub mod new_hook;
pub mod notes;
mod program;
mod scripts;
pub mod select;
pub mod status;
mod target;
mod via_daemon;

pub use command::BridgeProgram;
pub use detect::DetectedAgent;
pub use error::InstallError;
pub use installation::{FileChange, Installation};
pub use last_events::LastEvent;
pub use machine::Machine;
pub use needs::{EventSelection, ManifestNeeds, project_manifest};
pub use notes::InstallNote;
pub use program::{ProgramNaming, ProgramPlan};
pub use target::{Target, scope_name};
pub use via_daemon::{BridgeTransport, is_personal};
