//! The registries: canonical events, tools, capabilities, conformance levels.
//!
//! The data is in `registry/*.toml` and is compiled in by build.rs. Which
//! agent has what is not known here.

use serde::Serialize;

use crate::hook::Strategy;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    pub name: &'static str,
    pub tier: Tier,
    pub category: &'static str,
    /// What a blocking hook can do at best.
    pub blocking: Semantic,
    /// Whether the event is about one tool call, so that a matcher applies.
    pub tool: bool,
    /// Its type in the unified event model, such as `BEFORE_TOOL`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unified: Option<&'static str>,
    /// Further types of the unified event model that mean this event.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub also: &'static [&'static str],
    pub description: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    Core,
    Extended,
    /// One agent's own idea.
    Exclusive,
}

impl Tier {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Extended => "extended",
            Self::Exclusive => "exclusive",
        }
    }
}

/// What becomes of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Semantic {
    /// The action does not happen.
    Prevent,
    /// The agent is sent back to work.
    Retry,
    /// Nothing: it has happened already.
    Observe,
}

impl Semantic {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prevent => "prevent",
            Self::Retry => "retry",
            Self::Observe => "observe",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tool {
    pub name: &'static str,
    pub description: &'static str,
    /// Canonical keys of `tool_input`.
    pub input: &'static [&'static str],
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Capability {
    pub name: &'static str,
    pub description: &'static str,
    /// How a hook is seen to need it, in words.
    pub inference: &'static str,
    /// What a conversion does when the author did not say.
    pub default: Strategy,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Level {
    pub name: &'static str,
    pub requires: &'static [&'static str],
}

include!(concat!(env!("OUT_DIR"), "/registry.rs"));

pub fn event(name: &str) -> Option<&'static Event> {
    EVENTS.iter().find(|event| event.name == name)
}

/// The event that a type of the unified event model means.
pub fn event_by_unified(unified: &str) -> Option<&'static Event> {
    EVENTS
        .iter()
        .find(|event| event.unified == Some(unified) || event.also.contains(&unified))
}

pub fn tool(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

pub fn capability(name: &str) -> Option<&'static Capability> {
    CAPABILITIES
        .iter()
        .find(|capability| capability.name == name)
}
