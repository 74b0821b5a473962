//! Finds the real caller when an agent runs hooks from another agent's file.
//!
//! Some agents also read a second agent's config (`also_reads` in their
//! tables). Our entry there names that second agent, but the payload is the
//! caller's, and so must the answer be. If the caller has an entry of its own
//! too, it calls twice for one event, which
//! [`duplicate`](crate::record::duplicate) recognizes.
//!
//! The rule, cheapest check first:
//!
//! 1. The payload has the marks of the named agent: it is the named agent, unless
//!    its table names a variable of an agent whose payloads have the same form, and
//!    that one is set.
//! 2. No field contradicts the named agent, it only lacks a mark (such as a
//!    transcript outside the usual folder): it is the named agent. A field
//!    contradicts if its table forbids it (`!/field`) or does not know it, and
//!    so does an event that its table does not have.
//! 3. Only then the tables of the other agents are loaded, which doubles the
//!    time of a run: it is one that reads the named agent's file and knows the
//!    event, by its variable, else by its marks in the payload. Marks count if it has
//!    no variable, or if the named agent does not have the event at all.
//!
//! The environment alone never decides, because an agent that another one
//! started inherits its variables.

use anyhook_agents::{Adapter, AgentHandle};
use serde_json::Value;

use crate::agent::adapter::{has_caller_variable, knows_tool, variable_in_env};

/// The agent that calls instead of `named`; `None`: the named one itself.
pub(crate) fn caller(named: &Adapter, payload: &Value, event: Option<&str>) -> Option<AgentHandle> {
    let has_marks = !named.spec.detect.payload.is_empty();
    let is_unclear = has_caller_variable(named);
    let fits = || named.recognises(payload) || !contradicts(named, payload, event);
    if !has_marks || (!is_unclear && fits()) {
        return None;
    }
    let named = anyhook_agents::get(&named.spec.id)?;
    let reads = |reader: &Adapter, owner: &Adapter| {
        let mut files = owner.spec.files.iter();
        files.any(|file| reader.spec.also_reads.contains(&file.path))
    };
    let mut candidates: Vec<&Adapter> = anyhook_agents::all()
        // Agents that read each other's files know each other's payloads.
        .filter(|other| reads(other, named) && (is_unclear || !reads(named, other)))
        .filter(|other| knows_event(other, payload, event))
        // The variable may be inherited: a tool that only the named agent has is its own.
        .filter(|other| !is_unclear || knows_tool(other, payload))
        .collect();
    let with_variable = candidates
        .iter()
        .position(|other| variable_in_env(other).is_some());
    // An event that the named agent does not have cannot come from it.
    let is_foreign = !knows_event(named, payload, event);
    let found = match with_variable {
        Some(at) => candidates.swap_remove(at),
        None if variable_in_env(named).is_some() && !is_foreign => return None,
        None => candidates.into_iter().find(|other| {
            (is_foreign || other.spec.detect.env.is_empty()) && other.recognises(payload)
        })?,
    };
    anyhook_agents::agent_handle(&found.spec.id)
}

pub(super) fn knows_event(adapter: &Adapter, payload: &Value, event: Option<&str>) -> bool {
    let decoded = adapter.decode(payload, event);
    decoded.is_ok_and(|decoded| decoded.known)
}

/// Whether something in the payload speaks against the named agent.
fn contradicts(named: &Adapter, payload: &Value, event: Option<&str>) -> bool {
    let spec = &named.spec;
    let marks = spec.detect.payload.iter();
    let mut forbidden = marks.filter_map(|mark| mark.strip_prefix('!'));
    if forbidden.any(|pointer| payload.pointer(pointer).is_some()) {
        return true;
    }
    named.unknown_fields(payload) > 0 || !knows_event(named, payload, event)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_missing_mark_is_not_a_contradiction() {
        let mut checked = 0;
        for named in anyhook_agents::all() {
            let Some(field) = named.spec.payload.event_at.as_deref() else {
                continue;
            };
            let event = named.spec.events.first().unwrap();
            let name = event.payload_name.as_ref().unwrap_or(&event.native);
            let own = json!({field.trim_start_matches('/'): name});
            assert!(!contradicts(named, &own, None), "{named:?}");
            let mut others = vec!["field_of_another_agent"];
            let marks = named.spec.detect.payload.iter();
            others.extend(marks.filter_map(|mark| mark.strip_prefix("!/")));
            for other in others {
                let mut payload = own.clone();
                payload[other] = "x".into();
                assert!(contradicts(named, &payload, None), "{named:?}: {other}");
                checked += 1;
            }
            assert!(contradicts(named, &json!({}), Some("unknown_event")));
        }
        assert!(checked > 20, "{checked}");
    }
}
