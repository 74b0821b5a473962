//! Agent by agent and scope by scope: is the bridge there, and does it work?

use std::path::PathBuf;

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use anyhook_agents::spec::Scope;
use serde::Serialize;

use crate::found::{self, Found};
use crate::seen::{self, Seen};
use crate::target::{Target, scope_name};
use crate::trust::{self, Trust};
use crate::world::World;

#[derive(Debug, Clone, Serialize)]
pub struct Status {
    pub agent: String,
    pub name: String,
    /// Where the agent is seen; empty: nowhere.
    pub here: String,
    pub version: Option<String>,
    /// The version that our facts were checked against.
    pub facts: String,
    /// `same`, `newer`, `older` or `unknown`, against the facts.
    pub coverage: &'static str,
    pub scopes: Vec<ScopeStatus>,
    pub last: Option<Seen>,
}

#[derive(Debug, Clone, Serialize)]
pub struct ScopeStatus {
    pub scope: &'static str,
    pub installed: bool,
    pub files: Vec<PathBuf>,
    /// The events at which the bridge stands, and how many there could be.
    pub events: Vec<String>,
    pub possible: usize,
    /// `yes`, `no` or `unknown`: the agent's own consent.
    pub trusted: &'static str,
    pub trust: Option<String>,
}

/// The agents that were named, or all that are here or have the bridge.
pub fn status(world: &World, named: &[&'static Adapter], versions: bool) -> Vec<Status> {
    let last = seen::last(&world.dirs.state);
    let adapters: Vec<&'static Adapter> = if named.is_empty() {
        clients().collect()
    } else {
        named.to_vec()
    };
    let rows = adapters.into_iter().map(|adapter| {
        let found = Found::look(world, adapter);
        let scopes: Vec<ScopeStatus> = [Scope::Project, Scope::User]
            .into_iter()
            .map(|scope| of_scope(world, adapter, scope))
            .collect();
        (adapter, found, scopes)
    });
    rows.filter(|(_, found, scopes)| {
        !named.is_empty() || found.is_here() || scopes.iter().any(|scope| scope.installed)
    })
    .map(|(adapter, found, scopes)| {
        let version = versions.then(|| found.version(world)).flatten();
        Status {
            agent: adapter.spec.id.to_string(),
            name: adapter.spec.name.to_string(),
            here: found.shown(world),
            coverage: version.as_ref().map_or("unknown", |version| {
                found::coverage(adapter, version).as_str()
            }),
            version,
            facts: adapter.spec.verified.version.to_string(),
            scopes,
            last: last.get(adapter.spec.id.as_ref()).cloned(),
        }
    })
    .collect()
}

fn of_scope(world: &World, adapter: &'static Adapter, scope: Scope) -> ScopeStatus {
    let mut targets = Target::present(world, adapter, &[scope]);
    targets.retain(Target::has_bridge);
    let mut events: Vec<String> = Vec::new();
    for event in targets.iter().flat_map(Target::bridged) {
        if !events.contains(&event) {
            events.push(event);
        }
    }
    let (trusted, trust) = match targets.first().map(|target| trust::state(world, target)) {
        None | Some(Trust::Unknown(None)) => ("unknown", None),
        Some(Trust::Given) => ("yes", None),
        Some(Trust::Missing(what)) => ("no", Some(what)),
        Some(Trust::Unknown(text)) => ("unknown", text),
    };
    ScopeStatus {
        scope: scope_name(scope),
        installed: !targets.is_empty(),
        files: targets.into_iter().map(|target| target.path).collect(),
        events,
        possible: adapter
            .spec
            .events
            .iter()
            .filter(|event| !event.noisy && !event.read_only)
            .count(),
        trusted,
        trust,
    }
}
