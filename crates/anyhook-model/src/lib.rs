//! The canonical model of anyhook.
//!
//! Everything here is pure: values in, values and findings out. No file, no
//! clock, no environment, no agent's name.

pub mod event;
pub mod hook;
pub mod matcher;
pub mod record;
pub mod response;

pub use event::HookEvent;
pub use hook::{Handler, HandlerKind, Hook, Manifest, Platform, Strategy, TimeoutAction};
pub use matcher::{Matcher, Mcp};
pub use record::{Answer, HookRun, Loss, Record, RecordKind, RunOutcome};
pub use response::{Decision, HookResponse};
