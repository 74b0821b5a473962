//! What a hook needs and the target lacks, and what becomes of the hook then:
//! the author's strategy, else the registry's default.

use anyhook_agents::spec::Blocking;
use anyhook_model::capability::infer_capabilities;
use anyhook_model::{Strategy, registry};

use super::{Fate, OneHook, Place};
use crate::report::Severity;

impl OneHook<'_> {
    pub(super) fn blocking(&mut self, places: &[Place<'_>]) {
        for place in places {
            let Some(event) = place.event else { continue };
            let native = &event.native;
            let exit_only = !self.adapter.has_structured_answer(event);
            match (self.hook.blocking, event.blocking) {
                (true, Blocking::Observe) => {
                    self.report.say(
                        Severity::Critical,
                        "blocking",
                        format!(
                            "{} cannot be blocked at {native}: the hook only watches there",
                            self.target()
                        ),
                    );
                }
                (true, Blocking::Feedback)
                    if registry::event(&self.hook.event)
                        .is_some_and(|event| event.blocking != registry::Semantic::Observe) =>
                {
                    self.report.say(
                        Severity::Critical,
                        "blocking",
                        format!(
                            "at {native} it has happened already: a block is only told to the model"
                        ),
                    );
                }
                (true, Blocking::Feedback) => {
                    self.report.say(
                        Severity::Info,
                        "blocking",
                        format!("at {native} a block is told to the model; nothing is undone"),
                    );
                }
                (true, _) if exit_only && !self.own => {
                    self.report.say(
                        Severity::Info,
                        "blocking",
                        format!("{native} has no field for it: exit 2 blocks there"),
                    );
                }
                (false, Blocking::Prevent | Blocking::Retry) if !self.own => {
                    self.report.say(
                        Severity::Info,
                        "blocking",
                        format!(
                            "{} obeys exit 2 at {native} whether a hook is meant to block or not",
                            self.target()
                        ),
                    );
                }
                _ => {}
            }
        }
    }

    fn supports(&self, capability: &str, place: &Place<'_>) -> bool {
        let handler = &self.config.handler;
        match capability {
            "http_handler" | "llm_evaluated" => handler.runs(self.hook.handler.kind, &place.native),
            "async_execution" => handler.has("async"),
            "platform_commands" => {
                let platform = &self.hook.handler.platform;
                [
                    ("platform.windows", &platform.windows),
                    ("platform.linux", &platform.linux),
                    ("platform.osx", &platform.osx),
                ]
                .iter()
                .all(|(to, command)| command.is_none() || handler.has(to))
            }
            "custom_env" => handler.has("env"),
            "configurable_cwd" => handler.has("cwd"),
            "structured_output" => place
                .event
                .is_none_or(|event| self.adapter.has_structured_answer(event)),
            "input_rewrite" => place
                .event
                .is_none_or(|event| self.adapter.can_rewrite(event)),
            _ => true,
        }
    }

    pub(super) fn capabilities(&mut self, places: &[Place<'_>]) -> Fate {
        if self.own {
            return Fate::Runs;
        }
        let script = self
            .hook
            .handler
            .command
            .as_deref()
            .and_then(|command| (self.options.script?)(command));
        let mut fate = Fate::Runs;
        for need in infer_capabilities(self.hook, script.as_deref()) {
            let lacking: Vec<&str> = places
                .iter()
                .filter(|place| !self.supports(need.capability, place))
                .map(|place| place.native.as_str())
                .collect();
            if lacking.is_empty() {
                continue;
            }
            let default = registry::capability(need.capability)
                .map_or(Strategy::Warn, |capability| capability.default);
            let strategy = self.hook.strategy(need.capability).unwrap_or(default);
            let can_deny = places.iter().all(|place| {
                place
                    .event
                    .is_some_and(|event| event.blocking == Blocking::Prevent)
            });
            let guess = if need.certain {
                String::new()
            } else {
                format!(" (a guess: {})", need.why)
            };
            let (field, lost, reduced) = self.words(need.capability);
            let target = self.target();
            let shown = need.capability != "input_rewrite"
                || !need.certain
                || self
                    .hook
                    .capabilities
                    .iter()
                    .any(|name| name == need.capability);
            if !shown {
                // A strategy was named, but nothing tells that the hook rewrites.
                self.report.capability(
                    Severity::Critical,
                    field,
                    need.capability,
                    Strategy::Warn,
                    format!("{lost}: if the hook changes the input, the change is ignored. List `input_rewrite` in its `capabilities` and the strategy `{}` is applied", strategy.as_str()),
                );
                continue;
            }
            match strategy {
                Strategy::Block if can_deny => {
                    self.report.capability(Severity::Warning, "handler", need.capability, strategy, format!("{lost}{guess}: the hook denies everything that it matches, and does not run"));
                    fate = if fate == Fate::Out {
                        fate
                    } else {
                        Fate::Denies(need.capability)
                    };
                }
                Strategy::Block => {
                    self.report.capability(
                        Severity::Critical,
                        "hook",
                        need.capability,
                        strategy,
                        format!(
                            "{lost}{guess}, and {target} cannot deny at {}: the hook is left out",
                            lacking.join(", ")
                        ),
                    );
                    fate = Fate::Out;
                }
                Strategy::Exclude => {
                    let severity = self.weakening();
                    self.report.capability(
                        severity,
                        "hook",
                        need.capability,
                        strategy,
                        format!("{lost}{guess}: the hook is left out"),
                    );
                    fate = Fate::Out;
                }
                Strategy::Warn if need.capability == "llm_evaluated" => {
                    let severity = self.weakening();
                    self.report.capability(
                        severity,
                        "hook",
                        need.capability,
                        strategy,
                        format!("{lost}: there is nothing to run, the hook is left out"),
                    );
                    fate = Fate::Out;
                }
                Strategy::Warn => {
                    let severity = if need.capability == "input_rewrite" {
                        Severity::Critical
                    } else {
                        Severity::Warning
                    };
                    self.report.capability(
                        severity,
                        field,
                        need.capability,
                        strategy,
                        format!("{lost}{guess}: {reduced}"),
                    );
                }
            }
        }
        fate
    }

    /// Field, what is missing, and what a hook does without it.
    fn words(&self, capability: &str) -> (&'static str, String, &'static str) {
        let target = self.target();
        match capability {
            "http_handler" => (
                "handler.type",
                format!("{target} has no http handlers"),
                "a `curl` command does the same POST",
            ),
            "llm_evaluated" => (
                "handler.type",
                format!(
                    "{target} has no `{}` handlers here",
                    self.hook.handler.kind.as_str()
                ),
                "",
            ),
            "async_execution" => (
                "handler.async",
                format!("{target} waits for every hook"),
                "the hook runs, and the agent waits",
            ),
            "platform_commands" => (
                "handler.platform",
                format!("{target} has no commands per operating system"),
                "only those that it has a place for are written",
            ),
            "custom_env" => (
                "handler.env",
                format!("{target} sets no environment variables"),
                "the hook runs without them",
            ),
            "configurable_cwd" => (
                "handler.cwd",
                format!("{target} has no working directory for hooks"),
                "the hook runs where the agent starts it",
            ),
            "structured_output" => (
                "output",
                format!("{target} reads no JSON answer here"),
                "exit codes only",
            ),
            _ => (
                "output",
                format!("{target} takes no changed input here"),
                "what the hook changes is ignored, and the unchanged call goes on",
            ),
        }
    }
}
