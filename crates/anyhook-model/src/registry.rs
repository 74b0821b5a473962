//! The registries: canonical events, tools, capabilities, conformance levels.
//!
//! The data is in `registry/*.toml` and is compiled in by build.rs. It does not
//! contain which agent has what.

use serde::Serialize;

use crate::hook::Strategy;
use crate::word_enum::word_enum;

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
    /// Other names that manifests and policies may use for it.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub aliases: &'static [&'static str],
    /// Where the event is not about a tool: the key of its data that a matcher is
    /// compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<&'static str>,
    pub description: &'static str,
}

word_enum! {
    Tier {
        Core = "core",
        Extended = "extended",
        /// Only one agent has the event.
        Exclusive = "exclusive",
    }
}

word_enum! {
    /// The effect of a block.
    Semantic {
        /// The action does not happen.
        Prevent = "prevent",
        /// The agent continues to work.
        Retry = "retry",
        /// None: the action has happened already.
        Observe = "observe",
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
    /// How the need for it is inferred from a hook.
    pub inference: &'static str,
    /// What a conversion does by default.
    pub default: Strategy,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Level {
    pub name: &'static str,
    pub requires: &'static [&'static str],
}

include!(concat!(env!("OUT_DIR"), "/registry.rs"));

/// The event of this name or alias.
pub fn event(name: &str) -> Option<&'static Event> {
    let named = EVENTS.iter().find(|event| event.name == name);
    named.or_else(|| EVENTS.iter().find(|event| event.aliases.contains(&name)))
}

/// The canonical name of an event that may be given by an alias. Other names,
/// such as an agent's own, stay as they are.
pub fn event_name(name: &str) -> &str {
    event(name).map_or(name, |event| event.name)
}

/// The event that a type of the unified event model means.
pub(crate) fn event_by_unified(unified: &str) -> Option<&'static Event> {
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
