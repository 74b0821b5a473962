//! Which agents an installation is for.

use anyhook_agents::matrix::clients;
use anyhook_agents::spec::Scope;
use anyhook_agents::{Adapter, get};

use crate::found::Found;
use crate::target::Target;
use crate::world::World;

/// An agent that was left out, and why.
#[derive(Debug, Clone)]
pub struct Skipped {
    pub adapter: &'static Adapter,
    pub why: String,
}

/// The agents that are found here, less those that another one's file serves.
pub fn found(world: &World, scope: Scope) -> (Vec<&'static Adapter>, Vec<Skipped>) {
    let here: Vec<&'static Adapter> = clients()
        .filter(|adapter| Found::look(world, adapter).is_here())
        .filter(|adapter| Target::choose(world, adapter, scope).is_ok())
        .collect();
    let mut chosen = Vec::new();
    let mut skipped = Vec::new();
    for adapter in &here {
        match here.iter().find(|other| serves(other, adapter, scope)) {
            Some(other) => skipped.push(Skipped {
                adapter,
                why: format!(
                    "it runs the file of {} in the same folder, whose entries understand it; name it with --agent to install for it nevertheless",
                    other.spec.name
                ),
            }),
            None => chosen.push(*adapter),
        }
    }
    (chosen, skipped)
}

/// Whether two agents run each other's file, and `other` is the one to keep:
/// the one that is told apart by its surroundings.
fn serves(other: &Adapter, adapter: &Adapter, scope: Scope) -> bool {
    other.spec.id != adapter.spec.id
        && reads(adapter, other, scope)
        && reads(other, adapter, scope)
        && adapter.spec.detect.env.is_empty()
        && !other.spec.detect.env.is_empty()
}

/// Whether an agent also runs what is written into another's file.
pub fn reads(adapter: &Adapter, other: &Adapter, scope: Scope) -> bool {
    let mut written = other
        .spec
        .files
        .iter()
        .filter(|file| file.write && file.scope == scope);
    written.any(|file| adapter.spec.also_reads.contains(&file.path))
}

/// The agents in whose files the bridge stands that this agent reads as well.
pub fn doubled(world: &World, adapter: &Adapter, scope: Scope) -> Vec<&'static Adapter> {
    clients()
        .filter(|other| other.spec.id != adapter.spec.id && reads(adapter, other, scope))
        .filter(|other| Target::choose(world, other, scope).is_ok_and(|target| target.has_bridge()))
        .collect()
}

/// The agents that also run what stands in this agent's file.
pub fn readers(adapter: &Adapter, scope: Scope) -> Vec<&'static Adapter> {
    clients()
        .filter(|other| other.spec.id != adapter.spec.id && reads(other, adapter, scope))
        .collect()
}

/// An agent by slug or alias.
pub fn named(name: &str) -> Option<&'static Adapter> {
    get(name).filter(|adapter| !adapter.spec.pseudo)
}
