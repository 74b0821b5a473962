//! Policy.

use std::collections::BTreeMap;

use super::checker::{Checker, suggestion};
use super::path::Path;
use crate::diagnostic::Diagnostic;
use crate::document::Node;
use crate::fields::{self, RESTRICTIONS};
use crate::policy::{Policy, Restriction, Scope};
use crate::registry::{self, EVENTS};
use crate::suggest::nearest;

impl Checker<'_> {
    pub(super) fn policy(&mut self, node: &Node, scope: Scope, path: &Path<'_>) -> Option<Policy> {
        let Some(members) = node.as_object() else {
            let finding = Diagnostic::error(
                "wrong-type",
                node.span,
                format!("a policy is an object, not {}", node.kind()),
            );
            self.push(finding, path);
            return None;
        };
        let mut policy = Policy::default();
        for member in members {
            let at = path.key(&member.key);
            let known = fields::names(fields::POLICY).any(|field| field == member.key);
            if known && self.is_null(member, path) {
                continue;
            }
            let value = &member.value;
            match member.key.as_str() {
                "disable_all_hooks" => {
                    policy.disable_all_hooks = self.flag(value, &at).unwrap_or_default();
                }
                "allow_managed_only" => {
                    policy.allow_managed_only = self.flag(value, &at).unwrap_or_default();
                }
                "fail_closed" | "allow_env_override" => {
                    let name = member.key.as_str();
                    let flag = self.flag(value, &at).unwrap_or_default();
                    match name {
                        "fail_closed" => policy.fail_closed = flag,
                        _ => policy.allow_env_override = flag,
                    }
                    if scope != Scope::Managed {
                        let finding = Diagnostic::warning(
                            "no-effect",
                            member.key_span,
                            format!("`{name}` has an effect in the managed policy only"),
                        );
                        self.push(finding, &at);
                    }
                }
                "event_restrictions" => {
                    policy.event_restrictions = self.restrictions(value, &at);
                    self.event_keys(value, &at);
                }
                "capability_restrictions" => {
                    policy.capability_restrictions = self.restrictions(value, &at);
                    for member in value.as_object().unwrap_or_default() {
                        self.capability_name(&member.key, member.key_span, &at.key(&member.key));
                    }
                }
                _ => {
                    self.unknown_field(member, fields::POLICY, path);
                    policy.extra.insert(member.key.clone(), value.to_json());
                }
            }
        }
        Some(policy)
    }

    fn restrictions(&mut self, node: &Node, path: &Path<'_>) -> BTreeMap<String, Restriction> {
        let mut map = BTreeMap::new();
        for member in self.object(node, path).unwrap_or_default() {
            let at = path.key(&member.key);
            let word = self.word(
                &member.value,
                &RESTRICTIONS,
                "unknown-restriction",
                "restriction",
                &at,
            );
            if let Some(restriction) = word.and_then(Restriction::parse) {
                map.insert(member.key.clone(), restriction);
            }
        }
        map
    }

    fn event_keys(&mut self, node: &Node, path: &Path<'_>) {
        for member in node.as_object().unwrap_or_default() {
            let name = member.key.as_str();
            if registry::event(name).is_some() || self.vocabulary.native_events.contains(&name) {
                continue;
            }
            let near = nearest(name, EVENTS.iter().map(|event| event.name));
            let finding = Diagnostic::warning(
                "unknown-event",
                member.key_span,
                format!("unknown event `{name}`"),
            )
            .help(suggestion(near, "`anyhook events` lists them"));
            self.push(finding, &path.key(name));
        }
    }
}
