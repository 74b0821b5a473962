//! The policy files that lie beside the manifests.
//!
//! What a policy means is the model's matter. A policy that cannot be read
//! refuses nothing, except that a managed one still says `fail_closed`. A
//! project's rules over the manifest that it lies beside, and no other.

use std::path::{Path, PathBuf};

use anyhook_model::parse::{self, Vocabulary};
use anyhook_model::{Format, Hook, Policies, Policy, Refusal, Scope, document, infer_capabilities};

use crate::discover::{Source, Trouble};
use crate::plan;

/// Everything that restricts hooks here.
#[derive(Debug, Clone, Default)]
pub struct Rulebook {
    /// Managed and user; each project's in turn takes the third place.
    base: Policies,
    /// With the folder of each.
    projects: Vec<(PathBuf, Policy)>,
}

impl Rulebook {
    pub fn load(sources: &[Source], troubles: &mut Vec<Trouble>) -> Self {
        let mut rules = Self::default();
        for source in sources {
            let format = Format::from_path(&source.path.to_string_lossy()).unwrap_or(Format::Jsonc);
            let (policy, findings) =
                parse::policy(&source.text, format, source.scope, &Vocabulary::default());
            let policy = policy.or_else(|| {
                troubles.push(plan::broken(source, &findings));
                (source.scope == Scope::Managed).then(|| salvage(&source.text, format))
            });
            match source.scope {
                Scope::Managed => rules.base.managed = policy,
                Scope::User => rules.base.user = policy,
                Scope::Project => {
                    let folder = source.folder().to_owned();
                    rules.projects.extend(policy.map(|policy| (folder, policy)));
                }
            }
        }
        rules
    }

    pub fn fail_closed(&self) -> bool {
        self.base.fail_closed()
    }

    /// Whether the user's variables may overrule the administrator.
    pub fn allows_env_override(&self) -> bool {
        let managed = self.base.managed.as_ref();
        managed.is_some_and(|policy| policy.allow_env_override)
    }

    pub fn is_empty(&self) -> bool {
        self.base == Policies::default() && self.projects.is_empty()
    }

    /// Whether a capability is restricted that only the script's text tells.
    pub fn needs_script(&self) -> bool {
        let policies = [&self.base.managed, &self.base.user];
        policies
            .into_iter()
            .flatten()
            .chain(self.projects.iter().map(|(_, policy)| policy))
            .any(|policy| policy.capability_restrictions.contains_key("input_rewrite"))
    }

    /// Whether what belongs to the whole project may run.
    pub fn admit(&self, scope: Scope, hook: &Hook, script: Option<&str>) -> Result<(), Refusal> {
        self.ask(None, scope, hook, script)
    }

    /// Whether a hook of the manifest in a folder may run.
    pub fn admit_at(
        &self,
        folder: &Path,
        scope: Scope,
        hook: &Hook,
        script: Option<&str>,
    ) -> Result<(), Refusal> {
        self.ask(Some(folder), scope, hook, script)
    }

    fn ask(
        &self,
        folder: Option<&Path>,
        scope: Scope,
        hook: &Hook,
        script: Option<&str>,
    ) -> Result<(), Refusal> {
        if self.is_empty() {
            return Ok(());
        }
        let inferred = infer_capabilities(hook, script);
        let capabilities = || inferred.iter().map(|inferred| inferred.capability);
        self.base.admit(scope, hook, capabilities())?;
        for (own, policy) in &self.projects {
            if folder.is_some_and(|folder| folder != own) {
                continue;
            }
            let policies = Policies {
                project: Some(policy.clone()),
                ..Policies::default()
            };
            policies.admit(scope, hook, capabilities())?;
        }
        Ok(())
    }
}

/// What a broken managed policy still says about failures.
fn salvage(text: &str, format: Format) -> Policy {
    let (tree, _) = document::parse(text, format);
    let value = tree.as_ref().and_then(|tree| tree.get("fail_closed"));
    Policy {
        fail_closed: value.is_some_and(|value| value.value == document::Value::Bool(true)),
        ..Policy::default()
    }
}
