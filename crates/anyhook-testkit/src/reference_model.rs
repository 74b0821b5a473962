//! Reference models of the real agents: given the event, the payload and what
//! the hook wrote, what does the client do?
//!
//! The model of an agent is `model.rs` in its folder, found by `build.rs`. It is
//! written from observations of the shipped client (`cases/experiments.json`
//! has the versions) or, where the client could not be run, from its source or
//! documentation, and shares neither code nor tables with the adapter. Where
//! evidence is missing the model assumes what is worse for the hook: an effect
//! that was not observed does not happen.
//!
//! Conventions, the same for all agents:
//! - `model_sees` and `user_sees` hold the hook's own text, without the frame,
//!   the escaping or the shortening that the client puts around them.
//! - The guarded thing of a post-tool event is the tool's result: `Blocked`
//!   means that the model does not get it. Of a stop event it is the stopping.
//!   Of an event that only observes there is nothing to block.
//! - A permission event without a decision is [`Action::AskUser`]: the client's
//!   own permission flow goes on as if there were no hook.

mod call;

mod generated {
    include!(concat!(env!("OUT_DIR"), "/reference_models.rs"));
}

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

/// What happens to the action that the event announces.
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

/// What `agents/<slug>/model.rs` states.
struct Model {
    /// Native names.
    events: &'static [&'static str],
    react: fn(&Call) -> Reaction,
    /// Whether the client kills a hook that takes too long.
    has_time_limit: bool,
}

/// Slugs of the modelled agents, in alphabetical order.
pub fn agents() -> impl Iterator<Item = &'static str> {
    generated::MODELS.iter().map(|(slug, _)| *slug)
}

fn model(agent: &str) -> Option<&'static Model> {
    let (_, model) = generated::MODELS.iter().find(|(slug, _)| *slug == agent)?;
    Some(model)
}

/// All native events of the agent; empty for an agent that is not modelled.
pub fn events(agent: &str) -> &'static [&'static str] {
    model(agent).map_or(&[], |model| model.events)
}

/// What the agent does with the answer to one call of one hook.
///
/// `headless`: no user is at the client (`-p`, `exec`, CI).
pub fn react(
    agent: &str,
    native_event: &str,
    payload: &Value,
    answer: &Answer,
    headless: bool,
) -> Reaction {
    let model = match model_with_event(agent, native_event) {
        Ok(model) => model,
        Err(why) => return Reaction::failed(why),
    };
    (model.react)(&Call {
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
    match model_with_event(agent, native_event) {
        Ok(model) if model.has_time_limit => {
            Reaction::failed("the hook is killed and the client goes on")
        }
        Ok(_) => Reaction::failed("no time limit: the client waits for the hook"),
        Err(why) => Reaction::failed(why),
    }
}

fn model_with_event(agent: &str, native_event: &str) -> Result<&'static Model, String> {
    let model = model(agent).ok_or_else(|| format!("no agent `{agent}` is modelled"))?;
    if model.events.contains(&native_event) {
        Ok(model)
    } else {
        Err(format!("{agent} has no event `{native_event}`"))
    }
}
