//! The canonical model of anyhook.
//!
//! Everything here is pure: values in, values and findings out. No file, no
//! clock, no environment, no agent's name.

pub mod answer;
pub mod capability;
pub mod decide;
pub mod diagnostic;
pub mod document;
pub mod event;
pub mod fields;
pub mod hook;
pub mod matcher;
pub mod matching;
pub mod merge;
pub mod parse;
pub mod policy;
pub mod record;
pub mod registry;
pub mod response;
pub mod schema;
pub mod snippet;
pub mod suggest;

pub use capability::{Inferred, infer_capabilities};
pub use decide::{Ending, Outcome, Rules, decide};
pub use diagnostic::{Diagnostic, Severity, Span};
pub use document::Format;
pub use event::HookEvent;
pub use hook::{Handler, HandlerKind, Hook, Manifest, Platform, Strategy, TimeoutAction};
pub use matcher::{Matcher, Mcp};
pub use matching::{CompiledMatcher, Subject, Verdict, explain, matches};
pub use merge::{merge, merge_all, resolve_ask};
pub use parse::Vocabulary;
pub use policy::{Policies, Policy, Refusal, Restriction, Scope};
pub use record::{Answer, HookRun, Loss, Record, RecordKind, RunOutcome};
pub use response::{Decision, HookResponse};
pub use snippet::Source;
