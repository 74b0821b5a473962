//! Which hooks may run at all.
//!
//! A policy restricts the hooks of its scope and of the scopes below it, never
//! those above: otherwise a project could turn off a guard of its user. The
//! managed policy applies to all hooks, a user's policy to the hooks of the user
//! and of projects, and a project's policy to its hooks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::hook::Hook;
use crate::registry;
use crate::word_enum::word_enum;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    pub disable_all_hooks: bool,
    pub allow_managed_only: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub event_restrictions: BTreeMap<String, Restriction>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub capability_restrictions: BTreeMap<String, Restriction>,
    /// A blocking hook that crashes or cannot start blocks. Managed policy only.
    pub fail_closed: bool,
    /// The user's environment variables may turn hooks off, trust everything or
    /// name another managed folder. Managed policy only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_env_override: bool,
    /// A coding agent may change what is installed and trusted. Managed policy only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_agent_changes: bool,
    /// Whether `anyhook allow-once` has an effect; absent: on hooks of the user and
    /// of projects. Managed policy only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_once: Option<bool>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

word_enum! {
    Restriction {
        Allow = "allow",
        Deny = "deny",
        ManagedOnly = "managed_only",
    }
}

impl Restriction {
    fn refuses(self, hook: Scope) -> bool {
        match self {
            Self::Allow => false,
            Self::Deny => true,
            Self::ManagedOnly => hook != Scope::Managed,
        }
    }
}

word_enum! {
    /// Whose file it is. A greater scope rules over a lesser one.
    Scope { Project = "project", User = "user", Managed = "managed" }
}

/// The policies that apply, one per scope.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Policies {
    pub managed: Option<Policy>,
    pub user: Option<Policy>,
    pub project: Option<Policy>,
}

/// Why a hook may not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("refused by the {} policy: {rule}", scope.as_str())]
pub struct PolicyRefusal {
    /// For example `event_restrictions.before_prompt`.
    pub rule: String,
    /// Whose policy it is.
    pub scope: Scope,
}

impl Policies {
    /// Whether a blocking hook that fails blocks.
    pub fn fail_closed(&self) -> bool {
        self.managed
            .as_ref()
            .is_some_and(|policy| policy.fail_closed)
    }

    /// Whether the user may let a call through that a hook of this scope denies.
    pub fn allow_once(&self, scope: Scope) -> bool {
        let managed = self.managed.as_ref();
        let stated = managed.and_then(|policy| policy.allow_once);
        stated.unwrap_or(scope != Scope::Managed)
    }

    /// Whether a hook of a manifest of this scope may run. The first refusal
    /// counts: all off, managed only, its event, each capability.
    pub fn admit<'c>(
        &self,
        scope: Scope,
        hook: &Hook,
        capabilities: impl IntoIterator<Item = &'c str>,
    ) -> Result<(), PolicyRefusal> {
        self.check_layers(scope, "disable_all_hooks", |policy| {
            policy.disable_all_hooks
        })?;
        self.check_layers(scope, "allow_managed_only", |policy| {
            policy.allow_managed_only && scope != Scope::Managed
        })?;
        self.restrict(scope, "event_restrictions", &hook.event, |policy| {
            &policy.event_restrictions
        })?;
        for capability in capabilities {
            self.restrict(scope, "capability_restrictions", capability, |policy| {
                &policy.capability_restrictions
            })?;
        }
        Ok(())
    }

    fn restrict(
        &self,
        scope: Scope,
        table: &str,
        name: &str,
        restrictions: impl Fn(&Policy) -> &BTreeMap<String, Restriction>,
    ) -> Result<(), PolicyRefusal> {
        self.check_layers(scope, &format!("{table}.{name}"), |policy| {
            // An event may be restricted by an alias.
            restrictions(policy).iter().any(|(key, restriction)| {
                registry::event_name(key) == name && restriction.refuses(scope)
            })
        })
    }

    /// Checks the policies that apply to hooks of a scope, the greatest scope first.
    fn check_layers(
        &self,
        hook: Scope,
        rule: &str,
        refuses: impl Fn(&Policy) -> bool,
    ) -> Result<(), PolicyRefusal> {
        let layers = [
            (Scope::Managed, &self.managed),
            (Scope::User, &self.user),
            (Scope::Project, &self.project),
        ];
        for (scope, policy) in layers {
            if scope >= hook && policy.as_ref().is_some_and(&refuses) {
                return Err(PolicyRefusal {
                    rule: rule.to_owned(),
                    scope,
                });
            }
        }
        Ok(())
    }
}
