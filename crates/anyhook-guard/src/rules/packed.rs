//! Checked rules as bytes, of which a call decodes only the rules that it may need.
//!
//! Each rule follows the patterns of the programs that it is about: to skip a rule costs
//! a comparison, to decode it a dozen allocations, and of hundreds of rules a command
//! needs one or none.

use anyhook_model::Decision;
use serde::{Deserialize, Serialize};

use super::GuardRule;
use crate::input::GuardInput;
use crate::paths::glob_matches;
use crate::predicate::{Predicate, may_be_any_program};

#[derive(Debug, Clone)]
pub(super) struct PackedRules {
    bytes: Vec<u8>,
    count: usize,
}

#[derive(Serialize, Deserialize)]
struct PackedRule<'b> {
    /// One pattern per line, of which the command must start a program; empty: the rule
    /// is not only about programs.
    programs: &'b str,
    rule: &'b [u8],
}

pub(super) fn pack<'r>(rules: impl Iterator<Item = &'r GuardRule>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for rule in rules {
        let encoded = postcard::to_allocvec(rule).ok()?;
        let packed = PackedRule {
            programs: &rule.when.program_patterns().join("\n"),
            rule: &encoded,
        };
        bytes.extend(postcard::to_allocvec(&packed).ok()?);
    }
    Some(bytes)
}

impl PackedRules {
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        let mut rest = bytes.as_slice();
        let mut count = 0;
        while !rest.is_empty() {
            (_, rest) = postcard::take_from_bytes::<PackedRule<'_>>(rest).ok()?;
            count += 1;
        }
        Some(Self { bytes, count })
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Every rule but those about programs that the call does not start.
    pub(super) fn needed_for(&self, input: &GuardInput<'_>) -> impl Iterator<Item = GuardRule> {
        let mut rest = self.bytes.as_slice();
        let mut programs = None;
        let next = move || loop {
            let (packed, after) = postcard::take_from_bytes::<PackedRule<'_>>(rest).ok()?;
            rest = after;
            let is_needed = packed.programs.is_empty()
                || programs
                    .get_or_insert_with(|| Programs::of_call(input))
                    .may_include(packed.programs);
            if is_needed {
                let rule = postcard::from_bytes(packed.rule);
                return Some(rule.unwrap_or_else(|_| unreadable_rule()));
            }
        };
        std::iter::from_fn(next)
    }
}

/// Instead of a rule that cannot be decoded, which must not be passed over.
fn unreadable_rule() -> GuardRule {
    GuardRule {
        name: "unreadable".to_owned(),
        decision: Decision::Ask,
        reason: "a rule could not be read back".to_owned(),
        when: Predicate::default(),
    }
}

/// The programs that a call starts.
enum Programs<'i> {
    /// A part is only known at run time, or was not read.
    Any,
    Known(Vec<&'i str>),
}

impl<'i> Programs<'i> {
    fn of_call(input: &'i GuardInput<'_>) -> Self {
        if may_be_any_program(input) {
            return Self::Any;
        }
        let names = input.invocations().map(|invocation| &*invocation.name);
        Self::Known(names.collect())
    }

    fn may_include(&self, patterns: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Known(names) => patterns
                .lines()
                .any(|pattern| names.iter().any(|name| glob_matches(pattern, name))),
        }
    }
}
