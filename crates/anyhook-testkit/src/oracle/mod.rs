//! A reference model of the real agents: given the event, the payload and what
//! the hook wrote, what does the client do?
//!
//! Each submodule is one agent, written from observations of the shipped client
//! (versions in `fixtures/reactions.json`) and, where nobody ran it, from its
//! source or documentation. Where evidence is missing the model takes the view
//! that is worse for the hook: an effect that nobody saw does not happen.
//!
//! Conventions, the same for all agents:
//! - `model_sees` and `user_sees` hold the hook's own words, without the frame,
//!   the escaping or the shortening that the client puts around them.
//! - The guarded thing of a post-tool event is the tool's result: `Blocked`
//!   means that the model does not get it. Of a stop event it is the stopping.
//!   Of an event that only observes there is nothing to block.
//! - A permission event without a decision is [`Action::AskUser`]: the client's
//!   own permission flow goes on as if there were no hook.

mod auggie;
mod call;
mod claude_code;
mod cline;
mod codex;
mod copilot_cli;
mod cursor;
mod devin;
mod factory_droid;
mod gemini_cli;
mod kiro;
mod opencode;
mod qwen_code;
mod vs_code_copilot;
mod windsurf;

use call::Call;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a hook process left behind.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// `None`: ended by a signal.
    pub exit: Option<i32>,
    pub stdout: &'a str,
    pub stderr: &'a str,
}

/// What happens to the thing that the event guards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    #[default]
    Proceeds,
    Blocked,
    AskUser,
}

/// What the client does with an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reaction {
    pub action: Action,
    /// Texts of the hook that reach the model.
    pub model_sees: Vec<String>,
    /// Texts of the hook that are shown to the user.
    pub user_sees: Vec<String>,
    /// The tool input that is used instead of the payload's; `None`: the payload's.
    pub new_input: Option<Value>,
    /// The turn or run ends because of the answer.
    pub session_ends: bool,
    /// The agent is sent back to work.
    pub retries: bool,
    /// The client hides the hook's output.
    pub output_suppressed: bool,
    /// The user's own approval of the tool call is skipped.
    pub skips_approval: bool,
    /// `false`: the client calls the answer malformed or the hook failed.
    pub accepted: bool,
    pub note: Option<String>,
}

impl Default for Reaction {
    fn default() -> Self {
        Self {
            action: Action::Proceeds,
            model_sees: Vec::new(),
            user_sees: Vec::new(),
            new_input: None,
            session_ends: false,
            retries: false,
            output_suppressed: false,
            skips_approval: false,
            accepted: true,
            note: None,
        }
    }
}

/// Slugs of the agents that are modelled.
pub const AGENTS: &[&str] = &[
    "claude-code",
    "codex",
    "gemini-cli",
    "qwen-code",
    "cursor",
    "copilot-cli",
    "vs-code-copilot",
    "opencode",
    "kiro",
    "windsurf",
    "devin",
    "cline",
    "factory-droid",
    "auggie",
];

type Model = (&'static [&'static str], fn(&Call) -> Reaction);

fn model(agent: &str) -> Option<Model> {
    Some(match agent {
        "claude-code" => (claude_code::EVENTS, claude_code::react),
        "codex" => (codex::EVENTS, codex::react),
        "gemini-cli" => (gemini_cli::EVENTS, gemini_cli::react),
        "qwen-code" => (qwen_code::EVENTS, qwen_code::react),
        "cursor" => (cursor::EVENTS, cursor::react),
        "copilot-cli" => (copilot_cli::EVENTS, copilot_cli::react),
        "vs-code-copilot" => (vs_code_copilot::EVENTS, vs_code_copilot::react),
        "opencode" => (opencode::EVENTS, opencode::react),
        "kiro" => (kiro::EVENTS, kiro::react),
        "windsurf" => (windsurf::EVENTS, windsurf::react),
        "devin" => (devin::EVENTS, devin::react),
        "cline" => (cline::EVENTS, cline::react),
        "factory-droid" => (factory_droid::EVENTS, factory_droid::react),
        "auggie" => (auggie::EVENTS, auggie::react),
        _ => return None,
    })
}

/// All native events of the agent; empty for an agent that is not modelled.
pub fn events(agent: &str) -> &'static [&'static str] {
    model(agent).map_or(&[], |(events, _)| events)
}

/// What the agent does with the answer to one call of one hook.
///
/// `headless`: nobody sits at the client (`-p`, `exec`, CI).
pub fn react(
    agent: &str,
    native_event: &str,
    payload: &Value,
    answer: &Answer,
    headless: bool,
) -> Reaction {
    let Some((events, react)) = model(agent) else {
        return Reaction::failed(format!("no agent `{agent}` is modelled"));
    };
    if !events.contains(&native_event) {
        return Reaction::failed(format!("{agent} has no event `{native_event}`"));
    }
    react(&Call {
        event: native_event,
        payload,
        exit: answer.exit,
        stdout: answer.stdout.trim(),
        stderr: answer.stderr.trim(),
        headless,
    })
}

/// What the agent does when the hook exceeds its time limit: every agent that
/// has a limit kills the hook and goes on; an in-process plugin is waited for.
pub fn on_timeout(agent: &str, native_event: &str) -> Reaction {
    if !events(agent).contains(&native_event) {
        return Reaction::failed(format!("{agent} has no event `{native_event}`"));
    }
    Reaction::failed(match agent {
        "opencode" | "windsurf" => "no time limit: the client waits for the hook",
        _ => "the hook is killed and the client goes on",
    })
}
