//! Input that hooks rewrite, and the guards that must decide about the result.
//!
//! Hooks that may rewrite the input run in order, the administrator's first, and each
//! sees it as the earlier ones have rewritten it. So a guard would never see what a
//! later hook makes of the call that it let pass, nor what a hook that runs beside it
//! does. So after a rewrite every blocking hook that does not know the final input is
//! asked about it:
//!
//! * It can still deny or ask. Its approval of the earlier input does not count.
//! * A hook of a greater scope than the last rewriter's may rewrite again, so that
//!   a user's hook cannot undo what the administrator's has changed.

use std::borrow::Cow;
use std::path::PathBuf;

use anyhook_agents::Adapter;
use anyhook_agents::respond::APPROVE_KEY;
use anyhook_model::{Decision, HookResponse, RunOutcome, Scope};
use serde_json::{Map, Value};

use super::can_prevent;
use super::event_run::EventRun;
use crate::config::effective::EffectiveConfig;
use crate::config::manifest::SelectedHook;

/// What hooks have made of an event's input.
#[derive(Debug, Default)]
pub(super) struct Rewrites {
    count: usize,
    /// The scope of the last one.
    scope: Option<Scope>,
    judgements: Vec<Judgement>,
    /// Guards are being asked about the final input.
    is_second_look: bool,
}

/// A hook that has seen the input.
#[derive(Debug)]
struct Judgement {
    /// The hook's position in its manifest.
    position: usize,
    manifest: PathBuf,
    decision: Option<Decision>,
    /// How many rewrites it knows of, its own included.
    known: usize,
    /// Its own rewrite has had effect.
    has_rewritten: bool,
}

impl Rewrites {
    fn judgements_of(&self, selected: &SelectedHook<'_>) -> impl Iterator<Item = &Judgement> {
        let is_own =
            |it: &&Judgement| it.position == selected.position && it.manifest == selected.manifest;
        self.judgements.iter().filter(is_own)
    }
}

impl EventRun<'_> {
    /// In a second look: whether a hook need not be asked again.
    pub(super) fn has_judged(&self, selected: &SelectedHook<'_>) -> bool {
        if !self.rewrites.is_second_look {
            return false;
        }
        let hook = &selected.hook;
        if !hook.blocking || hook.only_observes() || hook.handler.is_async {
            return true;
        }
        match self.rewrites.judgements_of(selected).last() {
            Some(last) => last.known == self.rewrites.count,
            // It was refused, which is reported already. Otherwise it is for this input only.
            None => self.is_refused(selected),
        }
    }

    /// Whether every run of the hook so far was refused. Runs are known by name, so of
    /// hooks of the same name none counts as refused as soon as one of them ran.
    fn is_refused(&self, selected: &SelectedHook<'_>) -> bool {
        let manifest = selected.manifest.to_string_lossy();
        let runs = self.outcome.runs.iter();
        let mut own = runs
            .filter(|run| run.hook == selected.label && run.manifest == manifest)
            .peekable();
        own.peek().is_some() && own.all(|run| run.outcome == RunOutcome::Refused)
    }

    /// How often hooks have rewritten the input so far.
    pub(super) fn rewrite_count(&self) -> usize {
        self.rewrites.count
    }

    /// Takes the response of a hook that ran when the input had been rewritten
    /// `known` times. Its rewrite has effect at once; the rest is returned, to be
    /// merged in the order of the manifests.
    pub(super) fn take_response(
        &mut self,
        selected: &SelectedHook<'_>,
        mut response: HookResponse,
        known: usize,
    ) -> HookResponse {
        let is_second_look = self.rewrites.is_second_look;
        let may_rewrite = !is_second_look
            || (!self.outcome.duplicate && Some(selected.scope) > self.rewrites.scope);
        let is_current = known == self.rewrites.count;
        let updated = response.updated_input.take();
        if let Some(dropped) = updated.as_ref().filter(|_| !may_rewrite)
            && selected.hook.blocking
            && !self
                .rewrites
                .judgements_of(selected)
                .any(|it| it.has_rewritten)
            && self.changes_input(dropped)
        {
            // What a guard wants to change must not run without its change.
            response.turn_into_deny(&format!(
                "hook `{}` changes this call, and so does another hook after it; `sequential: true` in the manifest makes them run in order",
                selected.label
            ));
        }
        let updated = updated.filter(|_| may_rewrite);
        let has_rewritten = updated.is_some();
        if let Some(updated) = updated {
            // The next hook sees the input as this one has rewritten it.
            self.rewrite(&updated, selected.scope);
            self.merge(HookResponse {
                updated_input: Some(updated),
                ..HookResponse::default()
            });
        }
        self.rewrites.judgements.push(Judgement {
            position: selected.position,
            manifest: selected.manifest.to_path_buf(),
            decision: response.decision,
            has_rewritten,
            known: if is_current {
                self.rewrites.count
            } else {
                known
            },
        });
        if !is_second_look {
            return response;
        }
        // Its earlier answer is in the response already.
        let is_new = response.decision > self.outcome.response.decision
            && response.decision != Some(Decision::Allow);
        HookResponse {
            decision: response.decision.filter(|_| is_new),
            reason: response.reason.filter(|_| is_new),
            should_continue: response.should_continue,
            ..HookResponse::default()
        }
    }

    /// Whether a rewrite would change the input as it is now.
    pub(super) fn changes_input(&self, updated: &Map<String, Value>) -> bool {
        Adapter::rewritten_event(&self.event, updated).data != self.event.data
    }

    fn rewrite(&mut self, updated: &Map<String, Value>, scope: Scope) {
        let event = Adapter::rewritten_event(&self.event, updated);
        if event.data != self.event.data {
            self.rewrites.count += 1;
            self.rewrites.scope = Some(scope);
        }
        self.event = Cow::Owned(event);
    }

    /// Asks the guards, or those of one scope, about input that they have not seen.
    pub(super) fn judge_rewritten(&mut self, config: &EffectiveConfig, only: Option<Scope>) {
        if self.outcome.duplicate
            && let Some(updated) = self.outcome.response.updated_input.clone()
        {
            // Of the first entry, as the file says that it left for this one.
            self.rewrite(&updated, Scope::Project);
        }
        if self.rewrites.count == 0 || self.is_denied() || !can_prevent(&self.event) {
            return;
        }
        self.rewrites.is_second_look = true;
        let known = std::mem::take(&mut self.outcome.warnings);
        // The administrator's last: nothing changes the input after them.
        for (n, manifest) in config.manifests.iter().enumerate().rev() {
            if only.is_none_or(|scope| scope == manifest.source.scope) {
                self.run_manifests(config, std::iter::once(n), true);
            }
        }
        let new = std::mem::replace(&mut self.outcome.warnings, known);
        for warning in new {
            if !self.outcome.warnings.contains(&warning) {
                self.outcome.warnings.push(warning);
            }
        }
        let mut final_judgements = self.rewrites.judgements.iter();
        let is_approved = self.outcome.duplicate
            || final_judgements
                .any(|it| it.known == self.rewrites.count && it.decision == Some(Decision::Allow));
        let response = &mut self.outcome.response;
        if response.decision == Some(Decision::Allow) && !is_approved {
            (response.decision, response.reason) = (None, None);
            response.metadata.shift_remove(APPROVE_KEY);
        }
    }
}
