//! Reports what keeps hooks from running to the user, and denies where a guard is missing.

use anyhook_model::{HookResponse, Scope};

use super::can_prevent;
use super::event_run::EventRun;
use crate::config::discover::LoadProblem;
use crate::config::manifest::LoadedManifest;
use crate::config::trust::{Distrust, Inspected};

impl EventRun<'_> {
    /// Problems with config files: a notice, and a deny under `fail_closed`.
    pub(super) fn report_problems(&mut self, problems: &[LoadProblem]) {
        for problem in problems {
            let path = problem.path.display();
            let message = format!("`{path}` is not used: {}", problem.message);
            // A project's file that was never trusted cannot have been a guard.
            let past = match problem.scope {
                Scope::Project if !self.engine.trust_all => {
                    let (trust, inspected) = (&self.engine.trust, Inspected::default());
                    let past = trust.past_consent(&problem.path, &inspected);
                    past.or_else(|| trust.has_no_records(&inspected).then(Vec::new))
                }
                _ => Some(Vec::new()),
            };
            let blocks = past.is_some_and(|required| {
                self.fail_closed || required.iter().any(|hook| hook.is_for(&self.event))
            });
            let path = problem.path.display();
            let why = format!("hooks that may guard this cannot be read, in `{path}`");
            self.report(message, &why, blocks);
        }
    }

    pub(super) fn report_distrust(&mut self, manifest: &LoadedManifest, all: &[LoadedManifest]) {
        let Some(why) = manifest.distrust() else {
            return;
        };
        let path = manifest.source.path.display();
        let advice = match (manifest.source.scope, why) {
            (Scope::Project, Distrust::NoRecords) if self.fail_closed => {
                "; calls are blocked, because there is no record of any approval: read it, then run `anyhook trust`, or `anyhook untrust` if you have approved nothing"
            }
            (Scope::Project, _) => "; read it, then run `anyhook trust`",
            (Scope::User | Scope::Managed, _) => "",
        };
        let notice = format!("the hooks of `{path}` do not run: {why}{advice}");
        let is_guard = match why {
            // It cannot have been a guard.
            Distrust::Never => false,
            // A worktree in its own project: the hooks of the project run.
            Distrust::OtherTree(trusted) | Distrust::UnknownTree(trusted) => {
                let mut running = all.iter().filter(|other| other.distrust().is_none());
                !running.any(|other| trusted.contains(&other.source.path))
            }
            _ => true,
        };
        let is_required = manifest.is_required_for(&self.event);
        let general = format!("the hooks of `{path}` do not run: {}", why.in_general());
        self.report(
            notice,
            &general,
            is_guard && (self.fail_closed || is_required),
        );
    }

    /// A notice to the user, and a deny if it `blocks`. The reason for the model
    /// is in general words: it must not learn how to switch a guard off.
    pub(super) fn report(&mut self, notice: String, why: &str, blocks: bool) {
        if blocks {
            self.block(&format!("{why}; ask the user to look at it"));
        }
        self.outcome.warnings.push(notice);
    }

    /// Denies on behalf of anyhook, where a deny prevents anything.
    pub(super) fn block(&mut self, why: &str) {
        if can_prevent(&self.event) {
            self.merge(HookResponse::deny(format!("blocked, because {why}")));
        }
    }
}
