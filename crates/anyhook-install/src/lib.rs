//! The bridge in each agent's own config: in with one command, out again
//! without a trace, and checked.
//!
//! Owns the decisions of where the bridge goes and what is wrong with what is
//! there. Prints nothing and asks nothing: everything comes back as a value.
//! Texts are edited by `anyhook-edit`, facts about agents come from their
//! tables; what these have no place for is in [`vendor`].

pub mod bridge;
pub mod command;
pub mod doctor;
pub mod error;
mod folders;
pub mod found;
pub mod init;
pub mod needs;
pub mod notes;
pub mod scripts;
pub mod seen;
pub mod select;
pub mod status;
pub mod target;
pub mod trust;
pub mod vendor;
pub mod walk;
pub mod world;

pub use bridge::{Bridge, FileChange};
pub use command::{Naming, Quoting};
pub use error::InstallError;
pub use found::{Coverage, Found, coverage};
pub use needs::{Events, Needs};
pub use notes::Note;
pub use target::{Target, scope_name};
pub use trust::Trust;
pub use world::World;
