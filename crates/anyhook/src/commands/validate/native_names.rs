//! What agents' own names of events and tools are called in a manifest.

use std::cmp::Reverse;

use anyhook_agents::Adapter;
use anyhook_agents::matchers::alternatives;
use anyhook_agents::matrix::clients;
use anyhook_model::parse::NativeNames;
use anyhook_model::{Matcher, registry};

/// The names of every supported agent.
pub(super) struct AgentNames {
    /// The richest first: most names that others share come from it.
    agents: Vec<&'static Adapter>,
}

impl AgentNames {
    pub(super) fn new() -> Self {
        let mut agents: Vec<&'static Adapter> = clients().collect();
        agents.sort_by_key(|agent| Reverse(agent.spec.events.len()));
        Self { agents }
    }
}

impl NativeNames for AgentNames {
    fn event(&self, name: &str) -> Option<(String, String)> {
        let mut meanings = self.agents.iter().filter_map(|agent| {
            let event = agent.event_by_native(name)?;
            Some((event.is.as_deref()?, agent.spec.name.as_ref()))
        });
        let (event, agent) = meanings.next()?;
        // A name that means something else elsewhere is not certain.
        let is_certain = meanings.all(|(other, _)| other == event);
        (is_certain && registry::event(event).is_some())
            .then(|| (event.to_owned(), agent.to_owned()))
    }

    fn tools(&self, name: &str) -> Option<(Vec<String>, String)> {
        self.agents.iter().find_map(|agent| {
            let matcher = agent.read_matcher(name)?;
            let tools = alternatives(&matcher).into_iter().map(|one| match one {
                Matcher::Name(tool) => registry::tool(tool).map(|tool| tool.name.to_owned()),
                _ => None,
            });
            let tools: Vec<String> = tools.collect::<Option<_>>()?;
            Some((tools, agent.spec.name.to_string()))
        })
    }
}
