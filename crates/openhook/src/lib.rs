//! OpenHook 0.1: the envelope in which AI coding agents report what they do.
//!
//! Both texts of version 0.1 are covered: the five lifecycle events and
//! `file.write`, `cwd` and `context`, discovery files, conformance levels. The
//! crate is pure: no files, no processes, no clock, no environment. Values and
//! text go in; values and findings come out.
//!
//! | to | use |
//! |---|---|
//! | read or write an event | [`Envelope`] and the views of [`data`](Data) |
//! | validate one | [`validate()`] |
//! | find its subscribers | [`Discovery`] |
//! | check a recorded stream | [`StreamChecker`] |
//! | attribute written lines | [`trace`] |
//! | convert what agents sent before OpenHook | [`legacy`] |
//! | check with other tools | [`schema`], [`bundle`] |
//!
//! # A consumer
//!
//! ```
//! use openhook::{Data, Envelope};
//!
//! fn consume(stdin: &str) -> Result<Option<u64>, openhook::ParseError> {
//!     let envelope = Envelope::parse(stdin)?;
//!     Ok(match envelope.view() {
//!         Data::SessionEnd(end) => end.output_tokens,
//!         _ => None,
//!     })
//! }
//!
//! let tokens = consume(r#"{
//!   "openhook": "0.1",
//!   "id": "550e8400-e29b-41d4-a716-446655440000",
//!   "source": "claude-code",
//!   "type": "session.end",
//!   "time": "2026-02-23T10:15:30.123Z",
//!   "session_id": "sess_abc123",
//!   "data": { "reason": "completed", "output_tokens": 12000 }
//! }"#)?;
//! assert_eq!(tokens, Some(12_000));
//! # Ok::<(), openhook::ParseError>(())
//! ```
//!
//! # A producer
//!
//! ```
//! use openhook::{Envelope, FileOperation, FileWrite, event_type, model_id, stable_id};
//!
//! let model = model_id("claude-sonnet-4-6");
//! let envelope = Envelope::builder("my-agent", event_type::FILE_WRITE, "session-7")
//!     .id(stable_id(&["my-agent", "session-7", "call-1", "src/main.rs"]))
//!     .time("2026-02-23T10:15:45.678Z")
//!     .directory("/home/user/my-project")
//!     .data(FileWrite {
//!         path: Some("src/main.rs"),
//!         operation: Some(FileOperation::Create),
//!         start_line: Some(1),
//!         end_line: Some(30),
//!         model: Some(&model),
//!         ..FileWrite::default()
//!     })
//!     .build()?;
//! assert!(envelope.findings().is_empty());
//! # Ok::<(), openhook::ParseError>(())
//! ```
//!
//! # Strict and lenient
//!
//! Parsing is lenient and [`validate()`] is strict. [`Envelope::parse`] rejects
//! only what it cannot represent; unknown versions, event types and fields pass
//! through and are written unchanged. Findings have a stable [`code`] and a
//! message that explains what is wrong and how to fix it.

#![deny(clippy::disallowed_methods)]

pub mod check;
mod data;
pub mod discovery;
mod envelope;
pub mod event_type;
mod finding;
pub mod legacy;
mod names;
mod schema;
mod string_list;
mod time;
pub mod trace;
mod uri;
mod validate;

pub use check::{StreamChecker, StreamReport};
pub use data::{
    Data, EndReason, FileOperation, FileWrite, PromptSubmit, SessionEnd, SessionStart, ToolEnd,
    ToolStart, ToolStatus,
};
pub use discovery::{Discovery, Subscriber};
pub use envelope::{Envelope, EnvelopeBuilder, ParseError, VERSION, is_envelope};
pub use finding::{Finding, FindingSeverity, SyntaxPosition, code};
pub use names::{end_reason, model_id, stable_id};
pub use schema::{bundle, schema, schema_names};
pub use time::{TimeError, Timestamp};
pub use trace::TraceRecord;
pub use uri::{file_path, file_uri, is_uri};
pub use validate::{check_version, validate, validate_text};
