//! Which hooks may run at all.
//!
//! A policy restricts the hooks of its own scope and of the scopes below it,
//! never those above: otherwise a project could switch off the guard of its
//! user, which would be a weakening. So managed policy rules over all hooks, a
//! user's over the user's and the projects', a project's over its own.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::hook::Hook;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    pub disable_all_hooks: bool,
    pub allow_managed_only: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub event_restrictions: BTreeMap<String, Restriction>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub capability_restrictions: BTreeMap<String, Restriction>,
    /// A blocking hook that crashes or cannot start blocks. Counts in the
    /// managed policy only.
    pub fail_closed: bool,
    /// Variables of the user may switch hooks off, trust everything or name
    /// another managed folder. Counts in the managed policy only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_env_override: bool,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Restriction {
    Allow,
    Deny,
    ManagedOnly,
}

impl Restriction {
    pub const ALL: [Self; 3] = [Self::Allow, Self::Deny, Self::ManagedOnly];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::ManagedOnly => "managed_only",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|restriction| restriction.as_str() == text)
    }

    fn refuses(self, hook: Scope) -> bool {
        match self {
            Self::Allow => false,
            Self::Deny => true,
            Self::ManagedOnly => hook != Scope::Managed,
        }
    }
}

/// Whose file it is. A greater scope rules over a lesser one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    Project,
    User,
    Managed,
}

impl Scope {
    /// In the order in which manifests apply.
    pub const ALL: [Self; 3] = [Self::Managed, Self::User, Self::Project];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
            Self::Managed => "managed",
        }
    }
}

/// The policies that apply, one per scope.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Policies {
    pub managed: Option<Policy>,
    pub user: Option<Policy>,
    pub project: Option<Policy>,
}

/// Why a hook may not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Like `event_restrictions.before_prompt`.
    pub rule: String,
    /// Whose policy says so.
    pub scope: Scope,
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "refused by the {} policy: {}",
            self.scope.as_str(),
            self.rule
        )
    }
}

impl Policies {
    /// Whether a blocking hook that fails blocks.
    pub fn fail_closed(&self) -> bool {
        self.managed
            .as_ref()
            .is_some_and(|policy| policy.fail_closed)
    }

    /// Whether a hook of a manifest of this scope may run. The first refusal
    /// ends the questions: all off, managed only, its event, each capability.
    pub fn admit<'c>(
        &self,
        scope: Scope,
        hook: &Hook,
        capabilities: impl IntoIterator<Item = &'c str>,
    ) -> Result<(), Refusal> {
        self.ask(scope, "disable_all_hooks", |policy| {
            policy.disable_all_hooks
        })?;
        self.ask(scope, "allow_managed_only", |policy| {
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
        of: impl Fn(&Policy) -> &BTreeMap<String, Restriction>,
    ) -> Result<(), Refusal> {
        self.ask(scope, &format!("{table}.{name}"), |policy| {
            of(policy)
                .get(name)
                .is_some_and(|restriction| restriction.refuses(scope))
        })
    }

    /// Asks the policies that rule over hooks of a scope, the greatest first.
    fn ask(
        &self,
        hook: Scope,
        rule: &str,
        refuses: impl Fn(&Policy) -> bool,
    ) -> Result<(), Refusal> {
        let layers = [
            (Scope::Managed, &self.managed),
            (Scope::User, &self.user),
            (Scope::Project, &self.project),
        ];
        for (scope, policy) in layers {
            if scope >= hook && policy.as_ref().is_some_and(&refuses) {
                return Err(Refusal {
                    rule: rule.to_owned(),
                    scope,
                });
            }
        }
        Ok(())
    }
}
