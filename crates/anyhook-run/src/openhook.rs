//! OpenHook from canonical events: envelopes of what an agent did, and the
//! consumers that receive them.
//!
//! | to | use |
//! |---|---|
//! | turn an event into envelopes | [`envelopes`], [`envelopes_with`] |
//! | remember sessions between processes | [`LocalMachine`] |
//! | find `.openhook.json` and plan its deliveries | [`discovery`] |
//! | keep detached deliveries in order | [`Queue`] |
//! | make an envelope from parts, or from a payload of an unknown agent | [`make_envelope`], [`from_unknown`] |
//!
//! No agent is known here. The mapping itself is pure: everything that it needs
//! from the machine goes through [`Machine`]. Only [`consumers`] runs programs. An
//! event that cannot be mapped has no envelope.
//!
//! ```
//! use anyhook_run::openhook::{LocalMachine, envelopes};
//! use anyhook_model::HookEvent;
//! use serde_json::json;
//!
//! let event: HookEvent = serde_json::from_value(json!({
//!     "event": "before_prompt", "source": "my-agent", "native_event": "Prompt",
//!     "session_id": "s1", "cwd": "/p", "data": { "prompt": "hello" },
//! }))?;
//! let state = tempfile::tempdir()?;
//! let sent = envelopes(&event, &LocalMachine::new(state.path()));
//! assert_eq!(sent[0].event_type, "prompt.submit");
//! assert_eq!(sent[0].data["prompt_length"], 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod consumers;
pub mod discovery;
mod edit_lines;
mod envelopes;
mod file_changes;
mod local_machine;
mod machine;
mod make;
mod queue;
mod session_memory;
mod transcript;

pub use envelopes::{EXTENSION, EnvelopeOptions, FolderFields, envelopes, envelopes_with};
pub use local_machine::LocalMachine;
pub use machine::{FileTail, Machine, SessionKey};
pub use make::{CheckedEnvelope, EnvelopeParts, UnknownPayloadError, from_unknown, make_envelope};
pub use queue::Queue;
pub use session_memory::SessionMemory;
