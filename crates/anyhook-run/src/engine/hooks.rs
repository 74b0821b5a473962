//! The hooks of one event: which of them run, and what becomes of their answers.

use ::openhook::Envelope;
use anyhook_model::fields::NeutralDialect;
use anyhook_model::{
    Decision, ExitRules, Failure, HookOutcome, HookResponse, RunOutcome, Scope, WithoutEffect,
};

use super::can_prevent;
use super::event_run::EventRun;
use crate::config::effective::EffectiveConfig;
use crate::config::manifest::{HookVerdict, LoadedManifest, SelectedHook};
use crate::config::policy::Rulebook;
use crate::config::trust::CheckedFiles;
use crate::record::allowed_once;
use crate::run::exec::Cancel;
use crate::run::guard;
use crate::run::handler::{HandlerCall, HandlerRun};
use crate::run::supervise;

impl EventRun<'_> {
    /// Runs the hooks of one manifest, or only those that block.
    pub(super) fn run_manifest(&mut self, config: &EffectiveConfig, n: usize, only_blocking: bool) {
        let Some(manifest) = config.manifests.get(n).filter(|_| !config.has_copy(n)) else {
            return;
        };
        let mut outer = config.manifests.iter().take(n);
        let original = outer.find(|other| manifest.is_copy_of(other));
        for selected in manifest.hooks_for(&self.event) {
            if (only_blocking && !selected.hook.blocking) || self.has_judged(&selected) {
                continue;
            }
            let (verdict, files) = manifest.check(&selected, &config.rules);
            match (&verdict, original) {
                (HookVerdict::Untrusted(why), Some(original)) => {
                    let label = &selected.label;
                    self.outcome.warnings.push(format!(
                        "hook `{label}` of the project runs, not that of the worktree: {why}"
                    ));
                    self.run_original(original, &selected, &config.rules);
                }
                _ => self.apply_verdict(manifest, &selected, verdict, &files),
            }
        }
    }

    /// In a worktree inside its own project: a file of the hook has changed in
    /// the worktree, so the project's own hook runs.
    fn run_original(
        &mut self,
        original: &LoadedManifest,
        changed: &SelectedHook<'_>,
        rules: &Rulebook,
    ) {
        let hooks = original.hooks_for(&self.event);
        for selected in hooks
            .iter()
            .filter(|one| one.hook == changed.hook && one.label == changed.label)
        {
            let (verdict, files) = original.check(selected, rules);
            self.apply_verdict(original, selected, verdict, &files);
        }
    }

    fn apply_verdict(
        &mut self,
        manifest: &LoadedManifest,
        selected: &SelectedHook<'_>,
        verdict: HookVerdict,
        files: &CheckedFiles,
    ) {
        let label = &selected.label;
        let why = match verdict {
            HookVerdict::OtherEvent | HookVerdict::OtherTool | HookVerdict::OtherCall => return,
            HookVerdict::Runs => return self.run_if_it_applies(selected, files),
            HookVerdict::Untrusted(why) => {
                // Of a manifest that is not trusted as a whole there is a notice already.
                if manifest.distrust().is_none() {
                    let notice = format!(
                        "hook `{label}` does not run: {why}; read it, then run `anyhook trust`"
                    );
                    let failure = Failure::Changed(why.to_string());
                    let rules = ExitRules::for_hook(&selected.hook, self.fail_closed);
                    if rules.blocks_on(&failure) && can_prevent(&self.event) {
                        self.merge(HookResponse::deny(failure.deny_reason()));
                    }
                    self.outcome.warnings.push(notice);
                }
                why.to_string()
            }
            HookVerdict::Refused(refusal) => {
                // Users who rely on a guard must know that it is off.
                if selected.hook.blocking {
                    self.outcome.warnings.push(format!(
                        "hook `{label}`, which may block, does not run: {refusal}"
                    ));
                }
                refusal.to_string()
            }
        };
        self.push_run(selected, RunOutcome::Refused, Some(why));
    }

    /// Runs a hook unless its `if` does not hold.
    fn run_if_it_applies(&mut self, selected: &SelectedHook<'_>, files: &CheckedFiles) {
        let (hook, root) = (&selected.hook, &selected.root);
        let dirs = &self.engine.dirs;
        match guard::condition_holds(hook, root, &self.event, dirs, &self.readings) {
            Ok(true) => self.run_hook(selected, files),
            Ok(false) => {}
            Err(why) => {
                let fail_closed = self.fail_closed && can_prevent(&self.event);
                let rules = ExitRules::for_hook(hook, fail_closed);
                let failed = HookOutcome::failed(rules, &Failure::CannotStart(why), "");
                self.push_run(selected, failed.run, failed.message().map(str::to_owned));
                let label = &selected.label;
                let warnings = failed.warnings.iter();
                let warnings = warnings.map(|warning| format!("hook `{label}`: {warning}"));
                self.outcome.warnings.extend(warnings);
                self.merge(failed.response);
            }
        }
    }

    fn run_hook(&mut self, selected: &SelectedHook<'_>, files: &CheckedFiles) {
        let is_denied = self.outcome.response.decision == Some(Decision::Deny);
        if is_denied && selected.hook.blocking && !selected.hook.only_observes() {
            let why = "an earlier hook already denied".to_owned();
            return self.push_run(selected, RunOutcome::Skipped, Some(why));
        }
        if self.cancel.is_none() {
            self.cancel = self.options.listen.and_then(|listen| listen());
        }
        if self.cancel.as_ref().is_some_and(Cancel::is_set) {
            return self.push_run(selected, RunOutcome::Skipped, Some("cancelled".to_owned()));
        }
        let handler = &selected.hook.handler;
        let is_openhook = handler.dialect.as_deref() == Some(NeutralDialect::OpenHook.as_str());
        let envelopes = is_openhook.then(|| self.take_envelopes());
        // Hooks get the time of the event even if the agent does not send one.
        if let Some(time) = &self.outcome.arrival_time
            && self.event.timestamp.is_none()
        {
            self.event.to_mut().timestamp = Some(time.clone());
        }
        if handler.is_async {
            self.launch(selected, envelopes.as_deref().unwrap_or_default());
        } else {
            self.run_and_wait(selected, files, envelopes.as_deref().unwrap_or_default());
        }
        self.envelopes = envelopes.or(self.envelopes.take());
    }

    fn run_and_wait(
        &mut self,
        selected: &SelectedHook<'_>,
        files: &CheckedFiles,
        envelopes: &[Envelope],
    ) {
        let call = HandlerCall {
            selected,
            event: &self.event,
            dirs: &self.engine.dirs,
            cancel: self.cancel.as_ref(),
            // Elsewhere a deny prevents nothing, and one that makes the agent go on
            // would do so for ever.
            fail_closed: self.fail_closed && can_prevent(&self.event),
            owns_process: self.options.owns_process,
            keeps_stderr: self.options.keeps_stderr,
            envelopes,
            readings: &self.readings,
            files,
        };
        let HandlerRun {
            mut outcome,
            mut record,
            lost,
        } = call.run();
        self.outcome.lost.extend(lost);
        self.outcome.warnings.append(&mut outcome.warnings);
        let refuses = matches!(outcome.run, RunOutcome::Deny | RunOutcome::Ask);
        if selected.hook.only_observes() {
            record.without_effect = Some(WithoutEffect::Observed);
            outcome.response = HookResponse::default();
        } else if refuses && self.is_allowed_once(selected.scope) {
            record.without_effect = Some(WithoutEffect::AllowedOnce);
            let response = &mut outcome.response;
            (response.decision, response.reason) = (None, None);
            response.should_continue = None;
        }
        self.outcome.runs.push(record);
        self.take_response(selected, outcome.response);
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

    fn launch(&mut self, selected: &SelectedHook<'_>, envelopes: &[Envelope]) {
        let (engine, record) = (self.engine, &self.outcome.record_id);
        match supervise::launch(engine, selected, &self.event, envelopes, record) {
            Ok(()) => self.push_run(selected, RunOutcome::Started, None),
            Err(error) => {
                let message = format!("hook `{}`: cannot be detached: {error}", selected.label);
                self.push_run(selected, RunOutcome::Error, Some(message.clone()));
                self.outcome.warnings.push(message);
            }
        }
    }
}
