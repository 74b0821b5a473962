//! Selects the agents to install for.

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use anyhook_agents::spec::Scope;

use crate::detect::DetectedAgent;
use crate::machine::Machine;
use crate::target::Target;

/// An agent that was left out, and why.
#[derive(Debug, Clone)]
pub struct SkippedAgent {
    pub adapter: &'static Adapter,
    pub why: String,
}

/// The agents on this machine, without those that run another agent's entries.
pub fn detected_agents(
    machine: &Machine,
    scope: Scope,
) -> (Vec<&'static Adapter>, Vec<SkippedAgent>) {
    let (here, without_file): (Vec<&'static Adapter>, Vec<&'static Adapter>) = clients()
        .filter(|adapter| DetectedAgent::detect(machine, adapter).is_present())
        .partition(|adapter| Target::for_scope(machine, adapter, scope).is_ok());
    let mut chosen = Vec::new();
    let mut skipped: Vec<SkippedAgent> = without_file
        .into_iter()
        .filter(|adapter| scope == Scope::Project && !Target::is_installed(machine, adapter))
        .map(|adapter| SkippedAgent {
            adapter,
            why: format!(
                "it reads no hooks from a project, so none of them holds there; use `--scope user --agent {}`",
                adapter.spec.id
            ),
        })
        .collect();
    for adapter in &here {
        match here.iter().find(|other| replaces(other, adapter, scope)) {
            Some(other) => skipped.push(SkippedAgent {
                adapter,
                why: format!(
                    "it also runs the entries of {}, which recognize it; use --agent to install for it anyway",
                    other.spec.name
                ),
            }),
            None => chosen.push(*adapter),
        }
    }
    (chosen, skipped)
}

/// Whether two agents run each other's file, and `other` is the one to install
/// for: the one that can be recognized by its environment.
fn replaces(other: &Adapter, adapter: &Adapter, scope: Scope) -> bool {
    other.spec.id != adapter.spec.id
        && also_runs(adapter, other, scope)
        && also_runs(other, adapter, scope)
        && adapter.spec.detect.env.is_empty()
        && !other.spec.detect.env.is_empty()
}

/// Whether an agent also runs the hooks that are installed in another's file.
fn also_runs(adapter: &Adapter, other: &Adapter, scope: Scope) -> bool {
    let files = other.spec.files.iter();
    files
        .filter(|file| file.write && file.scope == scope)
        .any(|file| adapter.spec.also_reads.contains(&file.path))
}

/// The other agents with an installed bridge whose files this agent runs as well.
pub(crate) fn bridges_run_twice(
    machine: &Machine,
    adapter: &Adapter,
    scope: Scope,
) -> Vec<&'static Adapter> {
    clients()
        .filter(|other| other.spec.id != adapter.spec.id && also_runs(adapter, other, scope))
        .filter(|other| {
            Target::for_scope(machine, other, scope).is_ok_and(|target| target.has_bridge())
        })
        .collect()
}

/// The agents that were named, or else all.
pub(crate) fn named_or_all(named: &[&'static Adapter]) -> Vec<&'static Adapter> {
    if named.is_empty() {
        clients().collect()
    } else {
        named.to_vec()
    }
}
