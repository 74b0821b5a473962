//! Simulates one agent sending one event: the hooks really run, and the result
//! is the answer that the agent would get.
//!
//! Nothing is recorded, and a simulated event never counts as a duplicate.

use anyhook_agents::Adapter;
use anyhook_agents::respond::RenderOptions;
use anyhook_model::{HookResponse, HookRun, Loss, RunOutcome};
use anyhook_run::engine::is_preventable;
use anyhook_run::{Engine, EventOptions, agent};
use serde::Serialize;
use serde_json::Value;

use crate::render::colour;

/// What one agent would send, get and do.
#[derive(Debug, Default, Serialize)]
pub(crate) struct SimulatedCall {
    pub agent: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub native_event: String,
    /// The canonical event.
    #[serde(skip)]
    pub event: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_tool: Option<String>,
    pub payload: Value,
    pub response: HookResponse,
    pub stdout: String,
    pub stderr: String,
    pub exit: i32,
    /// What the agent does with the answer.
    pub effect: String,
    pub lost: Vec<Loss>,
    pub hooks: Vec<HookRun>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl SimulatedCall {
    /// For an agent that does not have the event.
    pub(crate) fn unsupported(adapter: &Adapter, event: &str) -> Self {
        let effect = format!("{} has no event like `{event}`", adapter.spec.name);
        Self {
            agent: adapter.spec.id.to_string(),
            lost: vec![Loss::new("event", effect.clone())],
            effect,
            ..Self::default()
        }
    }

    /// Runs the hooks on an agent's payload, with `folder` as the agent's working
    /// directory.
    pub(crate) fn run(
        engine: &Engine,
        adapter: &Adapter,
        native_event: &str,
        payload: Value,
        folder: &str,
    ) -> Result<Self, String> {
        let (agent, _) = agent::resolve(Some(&adapter.spec.id), b"")?;
        let bytes = payload.to_string();
        let mut event = agent.decode(bytes.as_bytes(), Some(native_event))?.event;
        event.cwd = Some(folder.to_owned());
        let options = EventOptions {
            keeps_stderr: true,
            ..EventOptions::default()
        };
        let outcome = engine.handle(&event, &options);
        let rendered = adapter.render(&event, &outcome.response, RenderOptions::default());
        let mut lost = outcome.lost;
        lost.extend(rendered.lost);
        let has_failed = outcome.runs.iter().any(HookRun::has_failed);
        let is_decided = outcome.response.decision.is_some();
        let effect = if rendered.effect.is_empty() {
            "allowed (no hook objected)".to_owned()
        } else if has_failed && !is_decided && is_preventable(&event.event) {
            // That a message appears is not what matters of a guard that failed.
            format!("the tool runs; {}", rendered.effect.join("; "))
        } else {
            rendered.effect.join("; ")
        };
        Ok(Self {
            agent: adapter.spec.id.to_string(),
            native_tool: event.native_tool_name().map(str::to_owned),
            native_event: event.native_event,
            event: event.event,
            payload,
            response: outcome.response,
            stdout: rendered.stdout,
            stderr: rendered.stderr,
            exit: rendered.exit,
            effect,
            lost,
            hooks: outcome.runs,
            warnings: outcome.warnings,
        })
    }

    /// What becomes of the call, in words for a heading.
    pub(crate) fn verdict(&self) -> (&'static str, &'static str) {
        let has_failed = self.hooks.iter().any(anyhook_model::HookRun::has_failed);
        let cannot_block = self.lost.iter().any(|loss| loss.field == "decision");
        match self.decision_label() {
            _ if self.payload.is_null() => ("no such event", colour::DIM),
            "deny" if cannot_block => ("denied, but this agent cannot block it", colour::BOLD_RED),
            "deny" => ("blocked", colour::GREEN),
            "ask" => ("asks the user", colour::YELLOW),
            _ if has_failed
                && self
                    .hooks
                    .iter()
                    .any(|run| run.outcome == RunOutcome::Refused) =>
            {
                (
                    "hooks not allowed to run: nothing is checked",
                    colour::BOLD_RED,
                )
            }
            _ if has_failed && is_preventable(&self.event) => {
                ("failed open: the tool runs", colour::BOLD_RED)
            }
            _ if has_failed => ("a hook failed", colour::BOLD_RED),
            "rewrite" => ("changed", colour::CYAN),
            "context" => ("allowed, with context", colour::GREEN),
            _ if self.hooks.is_empty() => ("no hook", colour::DIM),
            _ => ("allowed", colour::GREEN),
        }
    }

    /// The hooks' decision in one word.
    pub(crate) fn decision_label(&self) -> &'static str {
        match (&self.response.decision, &self.response.updated_input) {
            (Some(decision), None) => decision.as_str(),
            (None, None) if self.response.context.is_some() => "context",
            (None, None) => "-",
            (_, Some(_)) => "rewrite",
        }
    }

    /// The colour of the decision.
    pub(crate) fn colour(&self) -> &'static str {
        match self.decision_label() {
            "deny" => colour::RED,
            "ask" => colour::YELLOW,
            "rewrite" | "context" => colour::CYAN,
            "allow" => colour::GREEN,
            _ => colour::DIM,
        }
    }
}
