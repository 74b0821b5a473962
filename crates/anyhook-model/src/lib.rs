//! The canonical model of anyhook.
//!
//! Everything here is pure: values in, values and findings out. No file, no
//! clock, no environment, no agent's name.

#![deny(clippy::disallowed_methods)]

pub mod answer;
pub mod capability;
pub mod config_fields;
pub mod decide;
pub mod diagnostic;
pub mod document;
pub mod event;
pub mod fields;
pub mod hook;
pub mod interpreter;
pub mod lenient_json;
pub mod matcher;
pub mod matching;
pub mod merge;
pub mod message_fields;
pub mod message_schema;
pub mod parse;
pub mod policy;
pub mod record;
pub mod registry;
pub mod response;
pub mod schema;
pub mod snippet;
pub mod spend;
mod strict_members;
pub mod suggest;
mod word_enum;

pub use capability::{InferredCapability, infer_capabilities, may_rewrite_input};
pub use decide::{Ending, ExitRules, Failure, HookOutcome};
pub use diagnostic::{Diagnostic, Severity, Span};
pub use document::Format;
pub use event::HookEvent;
pub use hook::{
    Handler, HandlerKind, Hook, HookMode, Manifest, OnFailure, Platform, Strategy, TimeoutAction,
};
pub use matcher::{Matcher, Mcp};
pub use matching::{
    CompiledMatcher, MatchExplanation, MatchTarget, explain, has_unreadable_tool, matches,
};
pub use merge::{merge, merge_all, resolve_ask};
pub use parse::Vocabulary;
pub use policy::{Policies, Policy, PolicyRefusal, Restriction, Scope};
pub use record::{Answer, HookRun, Loss, Record, RecordKind, RunOutcome, WithoutEffect};
pub use response::{Decision, HookResponse};
pub use snippet::SourceText;
