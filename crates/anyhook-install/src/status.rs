//! Where the bridge is installed, by agent and scope, and when each last called it.

use std::path::PathBuf;

use anyhook_agents::Adapter;
use anyhook_agents::spec::Scope;
use serde::Serialize;

use crate::agent_trust::{self, AgentTrust};
use crate::detect::{DetectedAgent, version_coverage};
use crate::last_events::{self, LastEvent};
use crate::machine::Machine;
use crate::needs::is_default_event;
use crate::select;
use crate::target::{Target, scope_name};

#[derive(Debug, Clone, Serialize)]
pub struct AgentStatus {
    pub agent: String,
    pub name: String,
    /// Where the agent was detected; empty: nowhere.
    pub here: String,
    pub version: Option<String>,
    /// The version that the agent's table was verified against.
    pub facts: String,
    /// `same`, `newer`, `older` or `unknown`, compared to `facts`.
    pub coverage: &'static str,
    pub scopes: Vec<ScopeStatus>,
    pub last: Option<LastEvent>,
}

#[derive(Debug, Clone, Serialize)]
pub struct ScopeStatus {
    pub scope: &'static str,
    pub installed: bool,
    /// Whether the agent reads it if it is started in the current folder.
    pub read_here: bool,
    pub files: Vec<PathBuf>,
    /// The events for which the bridge is installed, and how many are possible.
    pub events: Vec<String>,
    pub possible: usize,
    /// `yes`, `no` or `unknown`: whether the agent trusts the entries.
    pub trusted: &'static str,
    pub trust: Option<String>,
}

/// The agents that were named, or all that are on this machine or have the bridge.
pub fn agent_statuses(
    machine: &Machine,
    named: &[&'static Adapter],
    versions: bool,
) -> Vec<AgentStatus> {
    let last = last_events::last_events(&machine.dirs.state);
    let rows = select::named_or_all(named).into_iter().map(|adapter| {
        let found = DetectedAgent::detect(machine, adapter);
        let scopes: Vec<ScopeStatus> = [Scope::Project, Scope::User]
            .into_iter()
            .map(|scope| scope_status(machine, adapter, scope))
            .collect();
        (adapter, found, scopes)
    });
    rows.filter(|(_, found, scopes)| {
        !named.is_empty() || found.is_present() || scopes.iter().any(|scope| scope.installed)
    })
    .map(|(adapter, found, scopes)| {
        let version = versions.then(|| found.query_version(machine)).flatten();
        AgentStatus {
            agent: adapter.spec.id.to_string(),
            name: adapter.spec.name.to_string(),
            here: found.display_paths(machine),
            coverage: version
                .as_ref()
                .map_or("unknown", |version| version_coverage(adapter, version)),
            version,
            facts: adapter.spec.verified.version.to_string(),
            scopes,
            last: last.get(adapter.spec.id.as_ref()).cloned(),
        }
    })
    .collect()
}

fn scope_status(machine: &Machine, adapter: &'static Adapter, scope: Scope) -> ScopeStatus {
    let mut targets = Target::existing(machine, adapter, &[scope]);
    targets.retain(Target::has_bridge);
    let mut events: Vec<String> = Vec::new();
    for event in targets.iter().flat_map(Target::bridged_events) {
        if !events.contains(&event) {
            events.push(event);
        }
    }
    let possible = adapter.spec.events.iter();
    let first = targets.first();
    let state = first.map(|target| agent_trust::trust_state(machine, target));
    let (trusted, trust) = match state {
        None | Some(AgentTrust::Unknown(None)) => ("unknown", None),
        Some(AgentTrust::Given) => ("yes", None),
        Some(AgentTrust::Missing(what)) => ("no", Some(what)),
        Some(AgentTrust::Unknown(text)) => ("unknown", text),
    };
    ScopeStatus {
        scope: scope_name(scope),
        installed: !targets.is_empty(),
        read_here: targets.iter().any(|target| target.is_read_here(machine)),
        files: targets.into_iter().map(|target| target.path).collect(),
        events,
        possible: possible.filter(|event| is_default_event(event)).count(),
        trusted,
        trust,
    }
}
