//! Input that hooks rewrite, and the guards that must decide about the result.
//!
//! Hooks that may rewrite the input run in order, the administrator's first, and each
//! sees it as the earlier ones have rewritten it. A guard would thus never see what a
//! later hook makes of the call that it let pass, nor what a hook that runs beside it
//! does. So after a rewrite every blocking hook that does not know the final input is
//! asked about it:
//!
//! * It can still deny or ask. Its approval of the earlier input does not count.
//! * A hook of a greater scope than the last rewriter's may rewrite again, so that
//!   a user's hook cannot undo what the administrator's has changed.

use std::borrow::Cow;

use anyhook_agents::Adapter;
use anyhook_agents::respond::APPROVE_KEY;
use anyhook_model::{Decision, HookResponse, Scope};
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
    hook: String,
    manifest: String,
    decision: Option<Decision>,
    /// How many rewrites it knows of, its own included.
    known: usize,
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
        let manifest = selected.manifest.to_string_lossy();
        let is_same = |label: &str, of: &str| label == selected.label && of == manifest;
        let judgements = self.rewrites.judgements.iter();
        let own = judgements.filter(|it| is_same(&it.hook, &it.manifest));
        let known: Vec<usize> = own.map(|it| it.known).collect();
        if known.is_empty() {
            // It was refused, which is reported already, or it is for this input only.
            let mut runs = self.outcome.runs.iter();
            return runs.any(|run| is_same(&run.hook, &run.manifest));
        }
        // Two hooks may have one name: then both are asked.
        known.iter().all(|known| *known == self.rewrites.count)
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
        let updated = response.updated_input.take().filter(|_| may_rewrite);
        if let Some(updated) = updated {
            // The next hook sees the input as this one has rewritten it.
            self.rewrite(&updated, selected.scope);
            self.merge(HookResponse {
                updated_input: Some(updated),
                ..HookResponse::default()
            });
        }
        self.rewrites.judgements.push(Judgement {
            hook: selected.label.clone(),
            manifest: selected.manifest.to_string_lossy().into_owned(),
            decision: response.decision,
            known: if is_current {
                self.rewrites.count
            } else {
                known
            },
        });
        if !is_second_look {
            return response;
        }
        // What it has said before is in the response already.
        let is_new = response.decision > self.outcome.response.decision
            && response.decision != Some(Decision::Allow);
        HookResponse {
            decision: response.decision.filter(|_| is_new),
            reason: response.reason.filter(|_| is_new),
            should_continue: response.should_continue,
            ..HookResponse::default()
        }
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
        // The administrator's last: nobody changes the input after them.
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
