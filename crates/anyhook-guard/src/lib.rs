//! The built-in guards: what they know about commands and files, and what they
//! answer about a tool call.
//!
//! Owns the reading of shell text, the guards' lists and the rules of a rules
//! file. Everything here is pure: no file, no clock, no environment, no agent's
//! name; the caller passes in what it knows as a [`GuardContext`]. A guard
//! answers deny, ask or nothing. It never allows.

#![deny(clippy::disallowed_methods)]
#![allow(
    clippy::match_same_arms,
    clippy::case_sensitive_file_extension_comparisons,
    reason = "lists of programs: one arm per program, names compared as they are typed"
)]

mod context;
mod definitions;
mod finding;
mod guard;
mod input;
mod judges;
mod paths;
mod predicate;
mod rules;
pub mod shell;

pub use context::GuardContext;
pub use definitions::{GuardDefinition, OptionDefinition, definition, definitions};
pub use finding::{GuardError, GuardFinding};
pub use guard::{CheckedRules, Guard, parse_guard, parse_guard_with};
pub use input::{CommandReadings, GuardInput};
pub use judges::budget::BudgetLimits;
pub use predicate::{ConditionDefinition, Predicate, PredicateError, Truth, conditions};
pub use rules::{RuleSet, check_rules, rule_keys};
pub use shell::{ShellAnalysis, ShellKind, analyze};
