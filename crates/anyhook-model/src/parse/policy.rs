//! Checks of a policy.

use serde_json::Value as Json;

use super::checker::{Checker, suggestion};
use super::path::Path;
use crate::diagnostic::Diagnostic;
use crate::document::Node;
use crate::fields;
use crate::policy::{Policy, Restriction, Scope};
use crate::registry::{self, EVENTS};
use crate::suggest::nearest;

impl Checker<'_> {
    pub(super) fn policy(&mut self, node: &Node, scope: Scope, path: &Path<'_>) -> Option<Policy> {
        let Some(members) = node.as_object() else {
            let finding = Diagnostic::error(
                "wrong-type",
                node.span,
                format!("a policy is an object, not {}", node.type_name()),
            );
            self.push(finding, path);
            return None;
        };
        let policy = self.fields(
            members,
            fields::POLICY,
            path,
            |checker, member, field, at| {
                let value = &member.value;
                match field.name {
                    "event_restrictions" => {
                        checker.event_keys(value, at);
                        Some(checker.restrictions(value, at))
                    }
                    "capability_restrictions" => {
                        checker.capability_keys(value, at);
                        Some(checker.restrictions(value, at))
                    }
                    name => {
                        let managed_only = [
                            "fail_closed",
                            "allow_env_override",
                            "allow_agent_changes",
                            "allow_once",
                        ];
                        if managed_only.contains(&name) && scope != Scope::Managed {
                            let message =
                                format!("`{name}` only has an effect in the managed policy");
                            let finding =
                                Diagnostic::warning("no-effect", member.key_span, message);
                            checker.push(finding, at);
                        }
                        checker.shaped(value, field, at)
                    }
                }
            },
        );
        self.build(policy, node.span, path)
    }

    /// An unknown restriction is reported, and counts as the strictest one.
    fn restrictions(&mut self, node: &Node, path: &Path<'_>) -> Json {
        let names = ("unknown-restriction", "restriction");
        let mut map = self.word_map(node, &Restriction::WORDS, names, path);
        if let Some(map) = map.as_object_mut() {
            for member in node.as_object().unwrap_or_default() {
                let strictest = || Restriction::Deny.as_str().into();
                map.entry(&member.key).or_insert_with(strictest);
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
