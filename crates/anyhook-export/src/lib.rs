//! The journal for other systems: OpenTelemetry, and lines for a SIEM.
//!
//! Owns the reader with a saved position ([`JournalReader`], [`StateFile`]) and the mapping
//! of records to the formats of others. Runs in processes of its own or in the daemon,
//! never in `anyhook run`. Runs no hook and prints nothing.

#![deny(clippy::disallowed_methods)]

mod content;
mod error;
pub mod ocsf;
pub mod otlp;
mod reader;
mod recorded_event;
mod state_file;
pub mod usage;

pub use content::ContentLevel;
pub use error::{ExportError, Result};
pub use reader::{JournalCursor, JournalReader};
pub use recorded_event::RecordedEvent;
pub use state_file::StateFile;
