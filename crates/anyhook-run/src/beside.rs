//! Who really calls, when an agent runs hooks out of another agent's file.
//!
//! Some agents read a second agent's config as well (`also_reads` in their
//! tables). Our entry there names that second agent, but the payload is the
//! caller's and so must the answer be. Where the caller has an entry of its own
//! too, it asks twice about one event: then this call keeps quiet about what
//! the other says, but never about a refusal.
//!
//! The surroundings alone never decide: an agent that was started by another
//! inherits its variables. They count only when the payload is not the named
//! agent's.

use std::path::{Path, PathBuf};

use anyhook_agents::{Adapter, Caller};
use anyhook_model::HookEvent;
use serde_json::Value;

use crate::native::has_variable;

/// How much of an answer is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Voice {
    #[default]
    Full,
    /// The decision; words are left to the caller's own entry.
    Decision,
}

/// The agent that calls in the place of `named`; `None`: the named one itself.
pub fn caller(named: &Adapter, payload: &Value, event: Option<&str>) -> Option<Caller> {
    if named.spec.detect.payload.is_empty() || named.recognises(payload) {
        return None;
    }
    let whole = anyhook_agents::get(&named.spec.id)?;
    let shares = |other: &&Adapter| {
        let reads = |reader: &Adapter, owner: &Adapter| {
            let mut files = owner.spec.files.iter();
            files.any(|file| reader.spec.also_reads.contains(&file.path))
        };
        // Agents that read each other's files know each other's payloads.
        reads(other, whole) && !reads(whole, other)
    };
    let knows = |other: &&Adapter| {
        other
            .decode(payload, event)
            .is_ok_and(|decoded| decoded.known)
    };
    let marked = |adapter: &Adapter| {
        adapter
            .spec
            .detect
            .env
            .iter()
            .any(|mark| has_variable(mark))
    };
    let mut candidates: Vec<&Adapter> =
        anyhook_agents::all().filter(shares).filter(knows).collect();
    let found = match candidates.iter().position(|other| marked(other)) {
        Some(at) => candidates.swap_remove(at),
        None if marked(whole) => return None,
        None => candidates
            .into_iter()
            .find(|other| other.spec.detect.env.is_empty() && other.recognises(payload))?,
    };
    anyhook_agents::caller(&found.spec.id)
}

/// What the caller's own entry leaves to say.
pub fn voice(caller: Caller, event: &HookEvent) -> Voice {
    if has_own_entry(caller, event.cwd.as_deref()) {
        Voice::Decision
    } else {
        Voice::Full
    }
}

fn has_own_entry(caller: Caller, cwd: Option<&str>) -> bool {
    let Some(adapter) = anyhook_agents::get(caller.slug()) else {
        return false;
    };
    let mark = format!("--agent {}", caller.slug());
    let written = adapter.spec.files.iter().filter(|file| file.write);
    written
        .flat_map(|file| places(&file.path, cwd))
        .any(|path| std::fs::read_to_string(path).is_ok_and(|text| text.contains(&mark)))
}

/// Where a file of the table may lie.
fn places(path: &str, cwd: Option<&str>) -> Vec<PathBuf> {
    if let Some(rest) = path.strip_prefix("~/") {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        return home.map(|home| home.join(rest)).into_iter().collect();
    }
    let cwd = cwd.map(Path::new).into_iter();
    cwd.flat_map(Path::ancestors)
        .map(|folder| folder.join(path))
        .collect()
}
