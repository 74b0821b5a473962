//! Capabilities that a hook needs and the target lacks. The author's strategy, or
//! else the registry's default, decides what the converted hook does.

use anyhook_agents::spec::Blocking;
use anyhook_model::capability::infer_capabilities;
use anyhook_model::{Strategy, registry};

use super::{FitOutcome, HookFitter, TargetEvent};
use crate::ScriptText;
use crate::report::WarningSeverity::{Critical, Info, Warning};

impl HookFitter<'_> {
    pub(super) fn report_blocking(&mut self, target_events: &[TargetEvent<'_>]) {
        let target = self.target();
        let can_block = registry::event(&self.hook.event)
            .is_some_and(|event| event.blocking != registry::Semantic::Observe);
        for event in target_events.iter().filter_map(|target| target.event) {
            let native = &event.native;
            let exit_only = !self.adapter.has_structured_answer(event);
            let (severity, message) = match (self.hook.blocking, event.blocking) {
                (true, Blocking::Observe) => (
                    Critical,
                    format!("{target} cannot be blocked at {native}: the hook can only observe"),
                ),
                (true, Blocking::Feedback) if can_block => (
                    Critical,
                    format!(
                        "{native} fires after the action: a block only gives the model feedback"
                    ),
                ),
                (true, Blocking::Feedback) => (
                    Info,
                    format!("at {native} a block gives the model feedback; nothing is undone"),
                ),
                (true, _) if exit_only && !self.is_same_config => (
                    Info,
                    format!("{native} has no field for it: exit 2 blocks there"),
                ),
                (false, Blocking::Prevent | Blocking::Retry) if !self.is_same_config => (
                    Info,
                    format!(
                        "{target} blocks on exit 2 at {native} even if the hook is not `blocking`"
                    ),
                ),
                _ => continue,
            };
            self.warnings.warn(severity, "blocking", message);
        }
    }

    fn supports(&self, capability: &str, target_event: &TargetEvent<'_>) -> bool {
        let handler = &self.config.handler;
        let TargetEvent { event, native, .. } = target_event;
        match capability {
            "http_handler" | "llm_evaluated" => handler.runs(self.hook.handler.kind, native),
            "async_execution" => handler.has("async"),
            "platform_commands" => self
                .systems()
                .all(|system| handler.has(&format!("platform.{system}"))),
            "custom_env" => handler.has("env"),
            "configurable_cwd" => handler.has("cwd"),
            "structured_output" => event.is_none_or(|it| self.adapter.has_structured_answer(it)),
            "input_rewrite" => {
                event.is_none_or(|it| self.adapter.can_rewrite(it) && self.reads_rewrite(it))
            }
            _ => true,
        }
    }

    pub(super) fn fit_capabilities(&mut self, target_events: &[TargetEvent<'_>]) -> FitOutcome {
        if self.is_same_config {
            return FitOutcome::Runs;
        }
        let script = self.script();
        let mut outcome = FitOutcome::Runs;
        for need in infer_capabilities(self.hook, script.known()) {
            let lacking = target_events
                .iter()
                .filter(|target_event| !self.supports(need.capability, target_event));
            let lacking: Vec<&str> = lacking.map(|event| event.native.as_str()).collect();
            if lacking.is_empty() {
                continue;
            }
            let mut events = target_events.iter().map(|target_event| target_event.event);
            let can_deny =
                events.all(|event| event.is_some_and(|event| event.blocking == Blocking::Prevent));
            let guess = (!need.certain).then_some(need.why.as_ref());
            let result = self.apply_strategy(need.capability, guess, &lacking.join(", "), can_deny);
            if outcome != FitOutcome::LeftOut && result != FitOutcome::Runs {
                outcome = result;
            }
        }
        outcome
    }

    /// Reports a capability that the target lacks, and decides what the converted
    /// hook does without it. `guess`: why the hook probably needs it, if that is
    /// not certain.
    fn apply_strategy(
        &mut self,
        capability: &'static str,
        guess: Option<&str>,
        lacking: &str,
        can_deny: bool,
    ) -> FitOutcome {
        let default = registry::capability(capability).map_or(Strategy::Warn, |one| one.default);
        let strategy = self.hook.strategy(capability).unwrap_or(default);
        let is_chosen = self.hook.strategy(capability).is_some();
        let (field, lost, reduced) = self.capability_wording(capability);
        let target = self.target();
        let is_rewrite = capability == "input_rewrite";
        let is_declared = self.hook.capabilities.iter().any(|name| name == capability);
        if is_rewrite && guess.is_none() && !is_declared {
            // A strategy is given, but nothing shows that the hook rewrites its input.
            self.warnings.capability(
                Critical,
                field,
                (capability, Strategy::Warn),
                format!("{lost}: if the hook rewrites the input, the rewrite is ignored. List `input_rewrite` in its `capabilities` to apply the strategy `{}`", strategy.as_str()),
            );
            return FitOutcome::Runs;
        }
        let lost_guess = match guess {
            Some(why) => format!("{lost} (a guess: {why})"),
            None => lost.clone(),
        };
        let (severity, field, message, outcome) = match strategy {
            Strategy::Block if can_deny => (
                Warning,
                "handler",
                format!(
                    "{lost_guess}: the converted hook denies everything it matches and does not run"
                ),
                FitOutcome::Denies(capability),
            ),
            Strategy::Block => (
                Critical,
                "hook",
                format!(
                    "{lost_guess}, and {target} cannot deny at {lacking}: the hook is left out"
                ),
                FitOutcome::LeftOut,
            ),
            Strategy::Exclude => (
                self.weakening_severity(),
                "hook",
                format!("{lost_guess}: the hook is left out"),
                FitOutcome::LeftOut,
            ),
            Strategy::Warn if capability == "llm_evaluated" => (
                self.weakening_severity(),
                "hook",
                format!("{lost}: there is nothing to run, the hook is left out"),
                FitOutcome::LeftOut,
            ),
            Strategy::Warn => (
                match capability {
                    "input_rewrite" => Critical,
                    // The project's folder is where hooks are meant to run anyway.
                    "configurable_cwd" if self.runs_in_project() => Warning,
                    // The author accepts it, and there is no program that would miss it.
                    "custom_env" | "configurable_cwd"
                        if is_chosen && self.script() == ScriptText::Missing =>
                    {
                        Warning
                    }
                    // The program may not find what it needs, and then allows.
                    "custom_env" | "configurable_cwd" => self.weakening_severity(),
                    _ => Warning,
                },
                field,
                format!("{lost_guess}: {reduced}"),
                FitOutcome::Runs,
            ),
        };
        self.warnings
            .capability(severity, field, (capability, strategy), message);
        outcome
    }

    fn runs_in_project(&self) -> bool {
        let cwd = self.hook.handler.cwd.as_deref();
        cwd.is_some_and(|cwd| matches!(cwd.trim_end_matches('/'), "" | "."))
    }

    /// The field, what the target lacks, and what the hook does without it.
    fn capability_wording(&self, capability: &str) -> (&'static str, String, &'static str) {
        let kind = self.hook.handler.kind.as_str();
        let llm_evaluated = format!("has no `{kind}` handlers here");
        let (field, lack, reduced) = match capability {
            "http_handler" => (
                "handler.type",
                "has no http handlers",
                "a `curl` command sends the same POST",
            ),
            "llm_evaluated" => ("handler.type", llm_evaluated.as_str(), ""),
            "async_execution" => (
                "handler.async",
                "waits for every hook",
                "the hook runs, and the agent waits",
            ),
            "platform_commands" => (
                "handler.platform",
                "has no commands per operating system",
                "only the commands that it supports are written",
            ),
            "custom_env" => (
                "handler.env",
                "cannot set environment variables",
                "the hook runs without them",
            ),
            "configurable_cwd" => (
                "handler.cwd",
                "cannot set a hook's working directory",
                "the hook runs where the agent starts it",
            ),
            "structured_output" => (
                "output",
                "does not read a JSON response here",
                "exit codes only",
            ),
            _ => (
                "output",
                "does not accept rewritten input here",
                "the hook's changes are ignored and the original call continues",
            ),
        };
        (field, format!("{} {lack}", self.target()), reduced)
    }
}
