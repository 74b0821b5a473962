//! The policy files next to the manifests.
//!
//! What a policy means is defined in `anyhook-model`. A policy that cannot be
//! read refuses nothing, but a managed one then counts as `fail_closed: true`:
//! what the administrator wanted is not known. A project's policy applies to the
//! manifest in the same folder only. The managed policy also decides whether the
//! user's environment counts.

use std::path::{Path, PathBuf};

use anyhook_model::parse::{self, Vocabulary};
use anyhook_model::{Format, Hook, Policies, Policy, PolicyRefusal, Scope, infer_capabilities};

use crate::config::discover::{ConfigSource, FoundConfig, LoadProblem};
use crate::config::manifest;
use crate::config::trust::{self, Consent};
use crate::engine::Engine;

/// All policies that apply to an event.
#[derive(Debug, Clone, Default)]
pub struct Rulebook {
    /// Managed and user.
    base: Policies,
    /// Each with its folder.
    projects: Vec<(PathBuf, Policy)>,
}

impl Rulebook {
    /// Loads the policies that are trusted, with notices of those that are not:
    /// a project's policy must be approved like its hooks. `consent_in` is the
    /// consent to the manifest of a folder.
    pub fn load_trusted(
        engine: &Engine,
        mut policies: Vec<ConfigSource>,
        consent_in: impl Fn(&Path) -> Option<Consent>,
        problems: &mut Vec<LoadProblem>,
    ) -> (Self, Vec<String>) {
        let mut notices = Vec::new();
        policies.retain(|policy| {
            if engine.trust_all {
                return true;
            }
            if policy.scope != Scope::Project {
                let distrust = trust::by_location(policy).err();
                problems.extend(distrust.iter().map(|why| LoadProblem {
                    scope: policy.scope,
                    path: policy.path.clone(),
                    message: why.to_string(),
                }));
                return distrust.is_none();
            }
            let Some(consent) = consent_in(policy.folder()) else {
                return false;
            };
            let is_trusted = consent.covers(&policy.path, &policy.text);
            if !is_trusted {
                let path = policy.path.display();
                notices.push(format!(
                    "the policy `{path}` is not used: it is not what was trusted; read it, then run `anyhook trust`"
                ));
            }
            is_trusted
        });
        (Self::load(&policies, problems), notices)
    }

    /// The administrator's policy alone.
    pub(crate) fn managed(folder: &Path) -> Self {
        let found = FoundConfig::managed(folder);
        let mut problems = found.problems;
        Self::load(&found.policies, &mut problems)
    }

    /// The administrator's policy with this text, for tests with arbitrary content.
    #[doc(hidden)]
    pub fn from_managed_text(name: &str, text: &str) -> Self {
        let source = ConfigSource {
            scope: Scope::Managed,
            ..ConfigSource::of_project(PathBuf::from(name), PathBuf::new(), text.to_owned())
        };
        Self::load(&[source], &mut Vec::new())
    }

    /// `problems` contains those that were met before.
    pub(crate) fn load(sources: &[ConfigSource], problems: &mut Vec<LoadProblem>) -> Self {
        let mut rules = Self::default();
        for source in sources {
            let format = Format::from_path(&source.path.to_string_lossy()).unwrap_or(Format::Jsonc);
            let vocabulary = Vocabulary::default();
            let (mut policy, findings) =
                parse::policy(&source.text, format, source.scope, &vocabulary);
            if policy.is_none() {
                problems.push(manifest::parse_problem(source, &findings));
                policy = parse::readable_policy(&source.text, format, source.scope, &vocabulary);
            }
            match source.scope {
                Scope::Managed => rules.base.managed = policy,
                Scope::User => rules.base.user = policy,
                Scope::Project => {
                    let folder = source.folder().to_owned();
                    rules.projects.extend(policy.map(|policy| (folder, policy)));
                }
            }
        }
        if problems.iter().any(LoadProblem::hides_managed_policy) {
            let policy = rules.base.managed.get_or_insert_default();
            policy.fail_closed = true;
            policy.allow_env_override = false;
            policy.allow_agent_changes = false;
            policy.allow_once = Some(false);
        }
        rules
    }

    pub fn fail_closed(&self) -> bool {
        self.base.fail_closed()
    }

    /// Whether the managed policy lets agents change what is installed and trusted.
    pub(crate) fn allow_agent_changes(&self) -> bool {
        let managed = self.base.managed.as_ref();
        managed.is_some_and(|policy| policy.allow_agent_changes)
    }

    /// Whether the user may let a call through that a hook of this scope denies.
    pub(crate) fn allow_once(&self, scope: Scope) -> bool {
        self.base.allow_once(scope)
    }

    /// Whether a capability is restricted that only the script's text reveals.
    pub(super) fn needs_script(&self) -> bool {
        let base = [&self.base.managed, &self.base.user].into_iter().flatten();
        let projects = self.projects.iter().map(|(_, policy)| policy);
        base.chain(projects)
            .any(|policy| policy.capability_restrictions.contains_key("input_rewrite"))
    }

    /// Whether a hook may run. Of the projects' policies the one in `folder`
    /// counts, or all of them if there is none.
    pub(crate) fn admit(
        &self,
        folder: Option<&Path>,
        scope: Scope,
        hook: &Hook,
        script: Option<&str>,
    ) -> Result<(), PolicyRefusal> {
        if self.base == Policies::default() && self.projects.is_empty() {
            return Ok(());
        }
        let inferred = infer_capabilities(hook, script);
        let capabilities = || inferred.iter().map(|inferred| inferred.capability);
        self.base.admit(scope, hook, capabilities())?;
        let applies = |own: &Path| folder.is_none_or(|folder| folder == own);
        for (_, policy) in self.projects.iter().filter(|(own, _)| applies(own)) {
            let policies = Policies {
                project: Some(policy.clone()),
                ..Policies::default()
            };
            policies.admit(scope, hook, capabilities())?;
        }
        Ok(())
    }
}

/// Whether the user's environment is ignored: the platform's managed folder
/// exists, only root can change it, and its policy does not have
/// `allow_env_override`.
pub(super) fn locks_env(managed_folder: &Path) -> bool {
    belongs_to_root(managed_folder) && {
        let managed = Rulebook::managed(managed_folder).base.managed;
        !managed.is_some_and(|policy| policy.allow_env_override)
    }
}

/// Also through a symbolic link that root has made.
#[cfg(unix)]
fn belongs_to_root(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(named) = std::fs::symlink_metadata(folder) else {
        return false;
    };
    let is_link = named.is_symlink();
    let data = if is_link {
        std::fs::metadata(folder)
    } else {
        Ok(named.clone())
    };
    named.uid() == 0
        && data.is_ok_and(|data| data.is_dir() && data.uid() == 0 && data.mode() & 0o022 == 0)
}

/// Owners are not checked on this platform.
#[cfg(not(unix))]
fn belongs_to_root(_folder: &Path) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_a_folder_of_root_overrides_the_user() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path();
        let mode = |mode| std::fs::set_permissions(folder, PermissionsExt::from_mode(mode));
        let is_root = rustix::process::geteuid().is_root();
        mode(0o755).unwrap();
        assert_eq!(locks_env(folder), is_root);
        mode(0o775).unwrap();
        assert!(!locks_env(folder));
        mode(0o755).unwrap();
        let policy = folder.join("policy.json");
        std::fs::write(&policy, r#"{"allow_env_override": true}"#).unwrap();
        assert!(!locks_env(folder));
        std::fs::write(&policy, r#"{"allow_env_override": false}"#).unwrap();
        assert_eq!(locks_env(folder), is_root);
        // What the administrator wanted is not known.
        for broken in [
            "{",
            "{\"allow_env_override\": true, \"fail_closed\": 1}",
            "\0",
        ] {
            std::fs::write(&policy, broken).unwrap();
            assert_eq!(locks_env(folder), is_root, "{broken}");
            assert!(Rulebook::managed(folder).fail_closed(), "{broken}");
        }
        std::fs::remove_file(&policy).unwrap();
        std::fs::create_dir(&policy).unwrap();
        assert_eq!(locks_env(folder), is_root);
        assert!(Rulebook::managed(folder).fail_closed());
        let link = scratch.path().join("link");
        std::os::unix::fs::symlink(folder, &link).unwrap();
        assert_eq!(locks_env(&link), is_root);
        assert!(!locks_env(&folder.join("none")));
    }
}
