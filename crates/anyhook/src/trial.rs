//! One event under one agent, without the agent: hooks run for real, the answer
//! is what the agent would get. No event is recorded, and none counts as
//! delivered before.

use anyhook_agents::respond::RenderOptions;
use anyhook_agents::{Adapter, Rendered};
use anyhook_model::{HookEvent, HookResponse, HookRun, Loss};
use anyhook_run::{Engine, Handled, Options, agent};
use serde::Serialize;
use serde_json::Value;

/// What came of it.
#[derive(Debug, Serialize)]
pub struct Trial {
    pub agent: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub native_event: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_tool: Option<String>,
    pub payload: Value,
    pub response: HookResponse,
    pub stdout: String,
    pub stderr: String,
    pub exit: i32,
    /// What the agent does with it.
    pub effect: String,
    pub lost: Vec<Loss>,
    pub hooks: Vec<HookRun>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Trial {
    /// An agent that never sends such an event.
    pub fn without_event(adapter: &Adapter, event: &str) -> Self {
        let effect = format!("{} has no event like `{event}`", adapter.spec.name);
        Self {
            agent: adapter.spec.id.to_string(),
            native_event: String::new(),
            native_tool: None,
            payload: Value::Null,
            response: HookResponse::default(),
            stdout: String::new(),
            stderr: String::new(),
            exit: 0,
            lost: vec![Loss::new("event", effect.clone())],
            effect,
            hooks: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Gives a payload to the dispatcher as the agent would. `folder` is where
    /// the agent works, for those that do not say.
    pub fn run(
        engine: &Engine,
        adapter: &Adapter,
        native_event: &str,
        payload: Value,
        folder: &str,
    ) -> Result<Self, String> {
        let (agent, _) = agent::resolve(Some(&adapter.spec.id), b"")?;
        let bytes = payload.to_string();
        let mut event: HookEvent = agent.decode(bytes.as_bytes(), Some(native_event))?.event;
        event.cwd = Some(folder.to_owned());
        let Handled {
            response,
            runs,
            warnings,
            mut lost,
            ..
        } = engine.handle(&event, &Options::default());
        let rendered = adapter.render(&event, &response, RenderOptions::default());
        let Rendered {
            stdout,
            stderr,
            exit,
            lost: unsaid,
            effect,
        } = rendered;
        lost.extend(unsaid);
        let effect = if effect.is_empty() {
            "it goes on as if there were no hook".to_owned()
        } else {
            effect.join("; ")
        };
        Ok(Self {
            agent: adapter.spec.id.to_string(),
            native_tool: event.native_tool_name().map(str::to_owned),
            native_event: event.native_event,
            payload,
            response,
            stdout,
            stderr,
            exit,
            effect,
            lost,
            hooks: runs,
            warnings,
        })
    }

    /// What the hooks have decided, in a word or two.
    pub fn decided(&self) -> &'static str {
        match (&self.response.decision, &self.response.updated_input) {
            (Some(decision), None) => decision.as_str(),
            (None, None) if self.response.context.is_some() => "context",
            (None, None) => "-",
            (_, Some(_)) => "rewrite",
        }
    }

    /// The colour of the decision.
    pub fn colour(&self) -> &'static str {
        match self.decided() {
            "deny" => "31",
            "ask" => "33",
            "rewrite" | "context" => "36",
            "allow" => "32",
            _ => "2",
        }
    }
}
