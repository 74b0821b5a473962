//! The hooks of one event: which of them run, and what becomes of their answers.
//!
//! Hooks run side by side, as agents run their own. Those that may rewrite the input
//! run before the others, one after another, so that the others judge what will run;
//! if another one rewrites it all the same, [`super::rewrites`] has the guards asked
//! again. Whatever the order in which hooks end, their answers are merged and
//! recorded in the order of the manifests. A manifest with `sequential: true` has its
//! hooks run one after another.

use std::sync::mpsc::channel;

use anyhook_guard::CommandReadings;
use anyhook_model::fields::NeutralDialect;
use anyhook_model::{
    ExitRules, Failure, HandlerKind, HookOutcome, HookResponse, HookRun, Loss, RunOutcome, Scope,
    WithoutEffect, may_rewrite_input,
};

use super::can_prevent;
use super::event_run::EventRun;
use crate::config::effective::EffectiveConfig;
use crate::config::manifest::{HookVerdict, LoadedManifest, SelectedHook};
use crate::config::policy::Rulebook;
use crate::config::trust::CheckedFiles;
use crate::record::allowed_once;
use crate::run::exec::Cancel;
use crate::run::guard::{self, GuardCommand};
use crate::run::handler::{HandlerCall, HandlerRun};
use crate::run::supervise;

/// A hook for the event.
struct Candidate<'a> {
    manifest: &'a LoadedManifest,
    /// The project's own manifest, if `manifest` is its copy in a worktree inside it.
    original: Option<&'a LoadedManifest>,
    selected: SelectedHook<'a>,
}

/// A hook that may run, with its files as they were compared.
struct CheckedHook<'a> {
    /// Which of the candidates it is.
    position: usize,
    selected: SelectedHook<'a>,
    files: CheckedFiles,
}

/// What a hook adds to the outcome of the event.
struct HookEffect {
    scope: Scope,
    runs: Vec<HookRun>,
    warnings: Vec<String>,
    lost: Vec<Loss>,
    responses: Vec<HookResponse>,
}

impl HookEffect {
    fn new(scope: Scope) -> Self {
        Self {
            scope,
            runs: Vec::new(),
            warnings: Vec::new(),
            lost: Vec::new(),
            responses: Vec::new(),
        }
    }

    fn is_deny(&self) -> bool {
        self.responses.iter().any(HookResponse::is_deny)
    }

    fn push_run(
        &mut self,
        selected: &SelectedHook<'_>,
        outcome: RunOutcome,
        message: Option<String>,
    ) {
        self.runs.push(selected.new_run(outcome, message));
    }

    fn push_skipped(&mut self, selected: &SelectedHook<'_>, why: &str) {
        self.push_run(selected, RunOutcome::Skipped, Some(why.to_owned()));
    }
}

const ALREADY_DENIED: &str = "another hook already denied";

impl EventRun<'_> {
    /// Runs the hooks of these manifests, or only those that block.
    pub(super) fn run_manifests(
        &mut self,
        config: &EffectiveConfig,
        manifests: impl Iterator<Item = usize>,
        only_blocking: bool,
    ) {
        let mut together = Vec::new();
        for n in manifests.filter(|n| !config.has_copy(*n)) {
            let Some(manifest) = config.manifests.get(n) else {
                continue;
            };
            let hooks = self.candidates(config, n, only_blocking);
            if !manifest.is_sequential {
                together.extend(hooks);
                continue;
            }
            self.run_side_by_side(&std::mem::take(&mut together), &config.rules);
            for hook in hooks {
                self.run_side_by_side(&[hook], &config.rules);
            }
        }
        self.run_side_by_side(&together, &config.rules);
    }

    /// The hooks of one manifest that are for the event.
    fn candidates<'a>(
        &self,
        config: &'a EffectiveConfig,
        n: usize,
        only_blocking: bool,
    ) -> Vec<Candidate<'a>> {
        let Some(manifest) = config.manifests.get(n) else {
            return Vec::new();
        };
        let mut outer = config.manifests.iter().take(n);
        let original = outer.find(|other| manifest.is_copy_of(other));
        let mut hooks = manifest.hooks_for(&self.event);
        hooks.retain(|it| (it.hook.blocking || !only_blocking) && !self.has_judged(it));
        let candidate = |selected| Candidate {
            manifest,
            original,
            selected,
        };
        hooks.into_iter().map(candidate).collect()
    }

    fn run_side_by_side(&mut self, candidates: &[Candidate<'_>], rules: &Rulebook) {
        let scopes = candidates.iter().map(|it| it.selected.scope);
        let mut effects: Vec<HookEffect> = scopes.map(HookEffect::new).collect();
        let runs_first = rewriters(candidates);
        for (position, candidate) in candidates.iter().enumerate() {
            if runs_first.contains(&position) {
                for hook in self.check(candidate, position, rules, &mut effects) {
                    self.run_alone(&hook, &mut effects);
                }
            }
        }
        let mut batch = Vec::new();
        for (position, candidate) in candidates.iter().enumerate() {
            if runs_first.contains(&position) {
                continue;
            }
            for hook in self.check(candidate, position, rules, &mut effects) {
                if runs_elsewhere(&hook.selected) {
                    batch.push(hook);
                } else {
                    self.run_alone(&hook, &mut effects);
                }
            }
        }
        match batch.as_slice() {
            [] => {}
            [hook] => self.run_alone(hook, &mut effects),
            _ => self.run_batch(&batch, &mut effects),
        }
        for effect in effects {
            self.outcome.runs.extend(effect.runs);
            self.outcome.warnings.extend(effect.warnings);
            self.outcome.lost.extend(effect.lost);
            for response in effect.responses {
                self.merge(response);
            }
        }
    }

    /// The hooks to run for a candidate: itself, or that of the project if a file of
    /// the hook was changed in a worktree inside the project.
    fn check<'a>(
        &mut self,
        candidate: &Candidate<'a>,
        position: usize,
        rules: &Rulebook,
        effects: &mut [HookEffect],
    ) -> Vec<CheckedHook<'a>> {
        let Some(effect) = effects.get_mut(position) else {
            return Vec::new();
        };
        let (manifest, selected) = (candidate.manifest, &candidate.selected);
        let (verdict, files) = manifest.check(selected, rules);
        let (HookVerdict::Untrusted(why), Some(original)) = (&verdict, candidate.original) else {
            let admitted = self.admit(manifest, selected, verdict, effect);
            let hook = admitted.then(|| CheckedHook {
                position,
                selected: selected.clone(),
                files,
            });
            return hook.into_iter().collect();
        };
        let label = &selected.label;
        effect.warnings.push(format!(
            "hook `{label}` of the project runs, not that of the worktree: {why}"
        ));
        let mut hooks = original.hooks_for(&self.event);
        hooks.retain(|one| one.hook == selected.hook && one.label == selected.label);
        let checked = hooks.into_iter().filter_map(|selected| {
            let (verdict, files) = original.check(&selected, rules);
            let admitted = self.admit(original, &selected, verdict, effect);
            admitted.then_some(CheckedHook {
                position,
                selected,
                files,
            })
        });
        checked.collect()
    }

    /// Whether a hook runs; if it should and does not, the reason is in its effect.
    fn admit(
        &self,
        manifest: &LoadedManifest,
        selected: &SelectedHook<'_>,
        verdict: HookVerdict,
        effect: &mut HookEffect,
    ) -> bool {
        let label = &selected.label;
        let why = match verdict {
            HookVerdict::OtherEvent | HookVerdict::OtherTool | HookVerdict::OtherCall => {
                return false;
            }
            HookVerdict::Runs => return self.applies(selected, effect),
            HookVerdict::Untrusted(why) => {
                // Of a manifest that is not trusted as a whole there is a notice already.
                if manifest.distrust().is_none() {
                    let failure = Failure::Changed(why.to_string());
                    let rules = ExitRules::for_hook(&selected.hook, self.fail_closed);
                    if rules.blocks_on(&failure) && can_prevent(&self.event) {
                        let deny = HookResponse::deny(failure.deny_reason());
                        effect.responses.push(deny);
                    }
                    effect.warnings.push(format!(
                        "hook `{label}` does not run: {why}; read it, then run `anyhook trust`"
                    ));
                }
                why.to_string()
            }
            HookVerdict::Refused(refusal) => {
                // Users who rely on a guard must know that it is off.
                if selected.hook.blocking {
                    effect.warnings.push(format!(
                        "hook `{label}`, which may block, does not run: {refusal}"
                    ));
                }
                refusal.to_string()
            }
        };
        effect.push_run(selected, RunOutcome::Refused, Some(why));
        false
    }

    /// Whether the hook's `if` holds.
    fn applies(&self, selected: &SelectedHook<'_>, effect: &mut HookEffect) -> bool {
        let (hook, root) = (&selected.hook, &selected.root);
        let dirs = &self.engine.dirs;
        match guard::condition_holds(hook, root, &self.event, dirs, &self.readings) {
            Ok(holds) => holds,
            Err(why) => {
                let fail_closed = self.fail_closed && can_prevent(&self.event);
                let rules = ExitRules::for_hook(hook, fail_closed);
                let failed = HookOutcome::failed(rules, &Failure::CannotStart(why), "");
                effect.push_run(selected, failed.run, failed.message().map(str::to_owned));
                let label = &selected.label;
                let warnings = failed.warnings.iter();
                let warnings = warnings.map(|warning| format!("hook `{label}`: {warning}"));
                effect.warnings.extend(warnings);
                effect.responses.push(failed.response);
                false
            }
        }
    }

    /// Why a hook that is admitted is skipped.
    fn skips(&self, selected: &SelectedHook<'_>, effects: &[HookEffect]) -> Option<&'static str> {
        let mut binding = effects.iter().filter(|it| it.scope >= selected.scope);
        let is_denied = self.outcome.response.is_deny() || binding.any(HookEffect::is_deny);
        if is_denied && is_guard(selected) {
            return Some(ALREADY_DENIED);
        }
        let is_cancelled = self.cancel.as_ref().is_some_and(Cancel::is_set);
        is_cancelled.then_some("cancelled")
    }

    /// What every hook needs before it runs.
    fn prepare<'a>(&mut self, hooks: impl Iterator<Item = &'a SelectedHook<'a>> + Clone) {
        // A built-in guard has ended before a signal could end it.
        if self.cancel.is_none() && hooks.clone().any(|it| !runs_in_process(it)) {
            self.cancel = self.options.listen.and_then(|listen| listen());
        }
        let openhook = Some(NeutralDialect::OpenHook.as_str());
        let mut hooks = hooks;
        if hooks.any(|it| it.hook.handler.dialect.as_deref() == openhook) {
            self.envelopes = Some(self.take_envelopes());
        }
        // Hooks get the time of the event even if the agent does not send one.
        if let Some(time) = &self.outcome.arrival_time
            && self.event.timestamp.is_none()
        {
            self.event.to_mut().timestamp = Some(time.clone());
        }
    }

    /// Runs a hook while no other one does.
    fn run_alone(&mut self, hook: &CheckedHook<'_>, effects: &mut [HookEffect]) {
        let selected = &hook.selected;
        self.prepare(std::iter::once(selected));
        let skipped = self.skips(selected, effects);
        let Some(effect) = effects.get_mut(hook.position) else {
            return;
        };
        if let Some(why) = skipped {
            return effect.push_skipped(selected, why);
        }
        if selected.hook.handler.is_async {
            return self.launch(selected, effect);
        }
        let call = HandlerCall {
            selected,
            event: &self.event,
            dirs: &self.engine.dirs,
            cancel: self.cancel.as_ref(),
            fail_closed: self.blocks_on_failure(),
            owns_process: self.options.owns_process,
            keeps_stderr: self.options.keeps_stderr,
            envelopes: self.envelopes.as_deref().unwrap_or_default(),
            readings: &self.readings,
            files: &hook.files,
            deadline: self.deadline,
        };
        let mut run = call.run();
        self.limit_effect(selected, &mut run);
        let known = self.rewrite_count();
        self.take_run(selected, run, known, effect);
    }

    /// Runs hooks at once. A deny ends the guards that have not answered yet, but no
    /// project's or user's deny ends one of a greater scope: the administrator's guard
    /// decides for itself, whatever becomes of the other deny.
    ///
    /// Each hook has a thread, because it may be several programs and requests, one
    /// after another. A hook that is alone has none.
    fn run_batch(&mut self, batch: &[CheckedHook<'_>], effects: &mut [HookEffect]) {
        self.prepare(batch.iter().map(|hook| &hook.selected));
        let mut hooks = Vec::new();
        for hook in batch {
            let skipped = self.skips(&hook.selected, effects);
            match (skipped, effects.get_mut(hook.position)) {
                (Some(why), Some(effect)) => effect.push_skipped(&hook.selected, why),
                _ => hooks.push(hook),
            }
        }
        let known = self.rewrite_count();
        let runs = self.run_on_threads(&hooks);
        for (hook, run) in hooks.into_iter().zip(runs) {
            let Some(effect) = effects.get_mut(hook.position) else {
                continue;
            };
            match run {
                // Its answer does not matter any more.
                None => effect.push_skipped(&hook.selected, ALREADY_DENIED),
                Some(run) if self.rewrites_old_input(&run, known) => {
                    effect.runs.push(run.record);
                    self.run_alone(hook, effects);
                }
                Some(run) => self.take_run(&hook.selected, run, known, effect),
            }
        }
    }

    /// Whether a hook has rewritten input that another one, beside it, has rewritten too:
    /// its rewrite would undo the other one, so it has to run again.
    fn rewrites_old_input(&self, run: &HandlerRun, known: usize) -> bool {
        let response = &run.outcome.response;
        let updated = response.updated_input.as_ref();
        known != self.rewrite_count()
            && !response.is_deny()
            && updated.is_some_and(|updated| self.changes_input(updated))
    }

    /// The runs of the hooks, in their order; `None` for one that was ended because
    /// another one has denied.
    fn run_on_threads(&mut self, hooks: &[&CheckedHook<'_>]) -> Vec<Option<HandlerRun>> {
        let event = self.event.clone();
        let envelopes = self.envelopes.take();
        let cancel = self.cancel.clone();
        // Without descriptors for them, the guards run to their end.
        let stop_scope = |scope| Some((scope, Cancel::with_trigger(cancel.as_ref()).ok()?));
        let stops = Scope::ALL.into_iter().filter_map(stop_scope);
        let (mut triggers, stops): (Vec<_>, Vec<_>) = stops
            .map(|(scope, (trigger, stop))| ((scope, trigger), (scope, stop)))
            .unzip();
        let fail_closed = self.blocks_on_failure();
        let (dirs, keeps_stderr) = (&self.engine.dirs, self.options.keeps_stderr);
        let deadline = self.deadline;
        let run = |hook: &CheckedHook<'_>| {
            let scope = hook.selected.scope;
            let own = stops.iter().find(|(known, _)| *known == scope);
            let own = own.map(|(_, stop)| stop);
            let own = own.filter(|_| is_guard(&hook.selected));
            let call = HandlerCall {
                selected: &hook.selected,
                event: &event,
                dirs,
                cancel: own.or(cancel.as_ref()),
                fail_closed,
                owns_process: false,
                keeps_stderr,
                envelopes: envelopes.as_deref().unwrap_or_default(),
                readings: &CommandReadings::default(),
                files: &hook.files,
                deadline,
            };
            call.run()
        };
        let mut runs: Vec<Option<HandlerRun>> = hooks.iter().map(|_| None).collect();
        std::thread::scope(|scope| {
            let (sender, ended) = channel();
            for (n, hook) in hooks.iter().enumerate() {
                let own_sender = sender.clone();
                let run = &run;
                let thread = std::thread::Builder::new().spawn_scoped(scope, move || {
                    let _ = own_sender.send((n, run(hook)));
                });
                if thread.is_err() {
                    let _ = sender.send((n, run(hook)));
                }
            }
            drop(sender);
            let mut denied_by = None;
            for (n, mut run) in ended {
                let (Some(hook), Some(slot)) = (hooks.get(n), runs.get_mut(n)) else {
                    continue;
                };
                let scope = hook.selected.scope;
                if run.is_cancelled && denied_by >= Some(scope) {
                    continue;
                }
                self.limit_effect(&hook.selected, &mut run);
                if run.outcome.response.is_deny() {
                    denied_by = denied_by.max(Some(scope));
                    triggers.retain(|(stopped, _)| *stopped > scope);
                }
                *slot = Some(run);
            }
        });
        self.envelopes = envelopes;
        runs
    }

    /// Whether a failure of a guard blocks by policy. Where a deny prevents nothing
    /// it does not: one that makes the agent go on would do so for ever.
    fn blocks_on_failure(&self) -> bool {
        self.fail_closed && can_prevent(&self.event)
    }

    /// Takes the effect from an answer that is only observed, or that the user has
    /// overruled.
    fn limit_effect(&mut self, selected: &SelectedHook<'_>, run: &mut HandlerRun) {
        let refuses = matches!(run.outcome.run, RunOutcome::Deny | RunOutcome::Ask);
        if selected.hook.only_observes() {
            run.record.without_effect = Some(WithoutEffect::Observed);
            run.outcome.response = HookResponse::default();
        } else if refuses && self.is_allowed_once(selected.scope) {
            run.record.without_effect = Some(WithoutEffect::AllowedOnce);
            let response = &mut run.outcome.response;
            (response.decision, response.reason) = (None, None);
            response.should_continue = None;
        }
    }

    /// Adds the run of a hook that was started after `known` rewrites.
    fn take_run(
        &mut self,
        selected: &SelectedHook<'_>,
        mut run: HandlerRun,
        known: usize,
        effect: &mut HookEffect,
    ) {
        effect.lost.extend(run.lost);
        effect.warnings.append(&mut run.outcome.warnings);
        effect.runs.push(run.record);
        let response = self.take_response(selected, run.outcome.response, known);
        effect.responses.push(response);
    }

    /// Whether the user has let this call through, and hooks of this scope must
    /// accept that. The exception is used up by the first hook that refuses.
    fn is_allowed_once(&mut self, scope: Scope) -> bool {
        let dirs = &self.engine.dirs;
        if !self.excepted_scopes.contains(&scope) || !dirs.is_state_trusted() {
            return false;
        }
        if !self.has_looked_for_exception {
            self.has_looked_for_exception = true;
            self.outcome.allows = allowed_once::take(&dirs.state, self.original);
        }
        self.outcome.allows.is_some()
    }

    fn launch(&mut self, selected: &SelectedHook<'_>, effect: &mut HookEffect) {
        let (engine, record) = (self.engine, &self.outcome.record_id);
        let envelopes = self.envelopes.as_deref().unwrap_or_default();
        match supervise::launch(engine, selected, &self.event, envelopes, record) {
            Ok(()) => effect.push_run(selected, RunOutcome::Started, None),
            Err(error) => {
                let message = format!("hook `{}`: cannot be detached: {error}", selected.label);
                effect.push_run(selected, RunOutcome::Error, Some(message.clone()));
                effect.warnings.push(message);
            }
        }
    }
}

/// Whether the decision of a hook counts, so that it need not run after a deny.
fn is_guard(selected: &SelectedHook<'_>) -> bool {
    selected.hook.blocking && !selected.hook.only_observes()
}

/// Whether a hook takes time outside this process.
fn runs_elsewhere(selected: &SelectedHook<'_>) -> bool {
    !selected.hook.handler.is_async && !runs_in_process(selected)
}

/// Whether a hook is a built-in guard that starts no process.
fn runs_in_process(selected: &SelectedHook<'_>) -> bool {
    let handler = &selected.hook.handler;
    let is_command = handler.kind == HandlerKind::Command && !handler.is_async;
    is_command && GuardCommand::is_run_by(handler)
}

/// The positions of the hooks that may rewrite the input, if that makes a difference:
/// as their authors say, or because their scripts mention it.
fn rewriters(candidates: &[Candidate<'_>]) -> Vec<usize> {
    let elsewhere = |candidate: &Candidate<'_>| runs_elsewhere(&candidate.selected);
    if candidates.len() < 2 || !candidates.iter().any(elsewhere) {
        return Vec::new();
    }
    let all = candidates.iter().enumerate();
    let rewriting = all.filter(|(_, candidate)| {
        let selected = &candidate.selected;
        let script = || selected.program_text();
        elsewhere(candidate) && may_rewrite_input(&selected.hook, script)
    });
    rewriting.map(|(position, _)| position).collect()
}
