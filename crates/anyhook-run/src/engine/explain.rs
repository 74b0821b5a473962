//! What would run for an event, without running it.

use std::path::{Path, PathBuf};

use anyhook_guard::CommandReadings;
use anyhook_model::HookEvent;

use super::Engine;
use crate::config::discover::LoadProblem;
use crate::config::effective::EffectiveConfig;
use crate::config::manifest::HookVerdict;
use crate::run::guard::{self, GuardReport};

/// Whether one hook would run for an event, and why.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct HookExplanation {
    pub hook: String,
    pub manifest: String,
    /// Whether it would run.
    pub matches: bool,
    pub why: String,
    /// The same manifest in another worktree of the repository, which was trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted_in: Option<PathBuf>,
}

impl Engine {
    /// Whether hooks may decide about an event: some exist here, or existed, or
    /// a config file cannot be read.
    pub fn concerns(&self, event: &HookEvent) -> bool {
        let config = EffectiveConfig::load(self, event, false);
        !config.manifests.is_empty() || !config.problems.is_empty() || !config.lost.is_empty()
    }

    /// Which hooks would run for an event, and why the others would not.
    pub fn explain(&self, event: &HookEvent) -> (Vec<HookExplanation>, Vec<LoadProblem>) {
        let config = EffectiveConfig::load(self, event, false);
        let mut lines = Vec::new();
        let readings = CommandReadings::default();
        for (n, manifest) in config.manifests.iter().enumerate() {
            for selected in manifest.all_hooks() {
                let mut verdict = manifest.judge(&selected, event, &config.rules);
                let hook = &selected.hook;
                let condition =
                    guard::condition_holds(hook, &selected.root, event, &self.dirs, &readings);
                if verdict == HookVerdict::Runs && condition == Ok(false) {
                    verdict = HookVerdict::OtherCall;
                }
                let mut why = verdict.explain(hook, event);
                let mut matches = verdict == HookVerdict::Runs;
                if let (true, Err(problem)) = (matches, condition) {
                    why = format!("{why}; it fails: {problem}");
                }
                if matches && hook.only_observes() {
                    why.push_str("; `mode: observe`: its answer is only recorded");
                }
                if matches && config.has_copy(n) {
                    matches = false;
                    "its copy in this worktree runs instead".clone_into(&mut why);
                }
                lines.push(HookExplanation {
                    why,
                    matches,
                    trusted_in: manifest.trusted_in().map(Path::to_owned),
                    manifest: selected.manifest.to_string_lossy().into_owned(),
                    hook: selected.label,
                });
            }
        }
        (lines, config.problems.clone())
    }

    /// What the guards of the manifests that apply say about a call.
    pub fn judge_guards(&self, event: &HookEvent) -> (Vec<GuardReport>, Vec<LoadProblem>) {
        let config = EffectiveConfig::load(self, event, false);
        let mut reports = Vec::new();
        let readings = CommandReadings::default();
        for (n, manifest) in config.manifests.iter().enumerate() {
            if config.has_copy(n) {
                continue;
            }
            for selected in manifest.hooks_for(event) {
                let verdict = manifest.may_run(&selected, &config.rules);
                let report = guard::report(&selected, event, &self.dirs, &readings);
                reports.extend(report.map(|report| match verdict {
                    HookVerdict::Runs => report,
                    verdict => GuardReport {
                        finding: None,
                        problem: Some(verdict.explain(&selected.hook, event)),
                        ..report
                    },
                }));
            }
        }
        (reports, config.problems.clone())
    }

    /// Trusted manifests that do not apply any more, in words for the user.
    pub fn lost_guards(&self, event: &HookEvent) -> Vec<String> {
        let config = EffectiveConfig::load(self, event, false);
        config.lost.iter().map(|lost| lost.notice.clone()).collect()
    }
}
