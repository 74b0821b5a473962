//! Parses and checks a manifest or a policy, and reports every error in one pass.
//!
//! A value is returned only if there are no errors; warnings do not count.

mod checker;
mod handler;
mod hook;
mod matcher;
mod path;
mod policy;

use crate::diagnostic::{Diagnostic, has_errors};
use crate::document::{self, Format};
use crate::hook::Manifest;
use crate::policy::{Policy, Scope};

use checker::Checker;
use path::Path;

/// Names that the model does not know; the caller supplies them.
#[derive(Clone, Copy, Default)]
pub struct Vocabulary<'a> {
    /// Agents' slugs and their aliases. Empty: slugs are not checked.
    pub agents: &'a [&'a str],
    /// Agents' own event names that have no canonical one.
    pub native_events: &'a [&'a str],
    /// What an agent's own name of an event or a tool is called here.
    pub names: Option<&'a dyn NativeNames>,
}

/// Agents' own names in canonical terms.
pub trait NativeNames {
    /// The event that this is an agent's own name of, and the agent.
    fn event(&self, name: &str) -> Option<(String, String)>;
    /// The tools that this is an agent's own name or list of, and the agent.
    fn tools(&self, name: &str) -> Option<(Vec<String>, String)>;
}

/// Parses and checks a manifest.
pub fn manifest(
    text: &str,
    format: Format,
    vocabulary: &Vocabulary<'_>,
) -> (Option<Manifest>, Vec<Diagnostic>) {
    let (tree, findings) = document::parse(text, format);
    let mut checker = Checker::new(vocabulary, findings);
    let manifest = tree.and_then(|tree| checker.manifest(&tree, &Path::ROOT));
    finish(manifest, checker)
}

/// Parses and checks a policy. The scope decides which fields are allowed.
pub fn policy(
    text: &str,
    format: Format,
    scope: Scope,
    vocabulary: &Vocabulary<'_>,
) -> (Option<Policy>, Vec<Diagnostic>) {
    let (tree, findings) = document::parse(text, format);
    let mut checker = Checker::new(vocabulary, findings);
    let policy = tree.and_then(|tree| checker.policy(&tree, scope, &Path::ROOT));
    finish(policy, checker)
}

/// What can be read of a policy that has errors: an unknown restriction is a `deny`,
/// so that a mistake never lets more hooks run than the policy was meant to.
pub fn readable_policy(
    text: &str,
    format: Format,
    scope: Scope,
    vocabulary: &Vocabulary<'_>,
) -> Option<Policy> {
    let (tree, findings) = document::parse(text, format);
    let mut checker = Checker::new(vocabulary, findings);
    checker.policy(&tree?, scope, &Path::ROOT)
}

fn finish<T>(value: Option<T>, checker: Checker<'_>) -> (Option<T>, Vec<Diagnostic>) {
    let mut findings = checker.findings;
    findings.sort_by_key(|finding| (finding.span.start, finding.span.end));
    let value = value.filter(|_| !has_errors(&findings));
    (value, findings)
}
