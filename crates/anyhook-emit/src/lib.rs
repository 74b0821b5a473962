//! OpenHook out of canonical events: what an agent did, as envelopes, and who
//! wants to hear of it.
//!
//! | to | use |
//! |---|---|
//! | turn an event into envelopes | [`envelopes`], [`envelopes_with`] |
//! | remember sessions between processes | [`StateWorld`]; [`PureWorld`] in tests |
//! | find `.openhook.json` and plan its deliveries | [`discovery`] |
//! | keep detached deliveries in order | [`Queue`] |
//! | make an envelope from parts, or from a payload of an unknown agent | [`make`], [`from_unknown`] |
//!
//! No agent is known here. The mapping itself is pure: everything that it asks
//! of the machine goes through [`World`]. Nothing here runs a program, prints,
//! or fails: an event that cannot be told gives no envelope.
//!
//! ```
//! use anyhook_emit::{PureWorld, envelopes};
//! use anyhook_model::HookEvent;
//! use serde_json::json;
//!
//! let event: HookEvent = serde_json::from_value(json!({
//!     "event": "before_prompt", "source": "my-agent", "native_event": "Prompt",
//!     "session_id": "s1", "cwd": "/p", "data": { "prompt": "hello" },
//! }))?;
//! let sent = envelopes(&event, &PureWorld::default());
//! assert_eq!(sent[0].event_type, "prompt.submit");
//! assert_eq!(sent[0].data["prompt_length"], 5);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod change;
pub mod discovery;
mod envelopes;
mod lines;
mod make;
mod memory;
mod queue;
mod state;
mod transcript;
mod world;

pub use envelopes::{EXTENSION, Options, envelopes, envelopes_with};
pub use make::{Made, NotTold, Parts, from_unknown, make};
pub use memory::Memory;
pub use queue::Queue;
pub use state::StateWorld;
pub use world::{PureWorld, Session, Tail, World};
