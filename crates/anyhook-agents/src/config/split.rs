//! Agents that have one event for each class of tool: one canonical hook is
//! written to several events, and becomes one hook again when it is read.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use anyhook_model::{Hook, Matcher};

use super::kept;
use crate::Adapter;
use crate::matchers::ANY_SERVER;
use crate::spec::Event;

/// The canonical matcher that a split event stands for.
pub(super) fn matcher(event: &Event) -> Matcher {
    let mut items: Vec<Matcher> = event
        .tools
        .iter()
        .map(|tool| {
            if tool == "mcp" {
                Matcher::mcp(ANY_SERVER, None)
            } else {
                Matcher::Name(tool.to_string())
            }
        })
        .collect();
    if items.len() == 1 {
        items.remove(0)
    } else {
        Matcher::Any(items)
    }
}

/// Hooks that differ only in the class of tools become one, as far as every
/// event keeps its own order. `natives` has the native event of each hook.
pub(super) fn merge(adapter: &Adapter, hooks: Vec<Hook>, natives: &[String]) -> Vec<Hook> {
    let splits: Vec<bool> = hooks.iter().map(|hook| is_split(adapter, hook)).collect();
    if !splits.contains(&true) {
        return hooks;
    }
    let groups = group(&hooks, natives, &splits);
    let Some(order) = order(&groups, natives) else {
        // Two hooks stand in one order here and in the other there.
        return hooks;
    };
    let mut members: HashMap<usize, Vec<usize>> = HashMap::new();
    for (at, group) in groups.iter().enumerate() {
        members.entry(*group).or_default().push(at);
    }
    let mut hooks: Vec<Option<Hook>> = hooks.into_iter().map(Some).collect();
    let mut merged = Vec::with_capacity(order.len());
    for group in order {
        let mut parts = members
            .remove(&group)
            .unwrap_or_default()
            .into_iter()
            .filter_map(|at| hooks.get_mut(at)?.take());
        let Some(mut hook) = parts.next() else {
            continue;
        };
        for part in parts {
            hook.matcher = union(hook.matcher.take(), part.matcher);
        }
        if splits.get(group) == Some(&true) && covers_all(adapter, &hook) {
            hook.matcher = None;
        }
        merged.push(hook);
    }
    merged
}

fn is_split(adapter: &Adapter, hook: &Hook) -> bool {
    let own_event = hook
        .provider_data
        .get(adapter.spec.id.as_ref())
        .and_then(|data| data.get(kept::EVENT))
        .is_some();
    let mut events = adapter
        .spec
        .events
        .iter()
        .filter(|event| event.is.as_deref() == Some(hook.event.as_str()))
        .peekable();
    let any = events.peek().is_some();
    !own_event && any && events.all(|event| event.read_only || !event.tools.is_empty())
}

/// For each hook the position of the first of its group: the n-th of its kind
/// at one event belongs to the n-th of its kind at every other.
fn group(hooks: &[Hook], natives: &[String], splits: &[bool]) -> Vec<usize> {
    let mut groups = Vec::with_capacity(hooks.len());
    let mut firsts: HashMap<(String, usize), usize> = HashMap::new();
    let mut seen: HashMap<(String, &str), usize> = HashMap::new();
    for (at, ((hook, native), splits)) in hooks.iter().zip(natives).zip(splits).enumerate() {
        if !splits {
            groups.push(at);
            continue;
        }
        let kind =
            serde_json::to_string(&(&hook.event, &hook.handler, &hook.provider_data, &hook.name))
                .unwrap_or_default();
        let nth = seen.entry((kind.clone(), native)).or_default();
        groups.push(*firsts.entry((kind, *nth)).or_insert(at));
        *nth += 1;
    }
    groups
}

/// The groups in an order that every event agrees with, and otherwise in that
/// of the file; `None` when there is none.
fn order(groups: &[usize], natives: &[String]) -> Option<Vec<usize>> {
    let mut after: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut waits: HashMap<usize, usize> = HashMap::new();
    let mut last: HashMap<&str, usize> = HashMap::new();
    for (group, native) in groups.iter().zip(natives) {
        waits.entry(*group).or_default();
        if let Some(before) = last.insert(native, *group) {
            after.entry(before).or_default().push(*group);
            *waits.entry(*group).or_default() += 1;
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> = waits
        .iter()
        .filter(|(_, waits)| **waits == 0)
        .map(|(group, _)| Reverse(*group))
        .collect();
    let mut order = Vec::with_capacity(waits.len());
    while let Some(Reverse(group)) = ready.pop() {
        order.push(group);
        for next in after.remove(&group).unwrap_or_default() {
            if let Some(left) = waits.get_mut(&next) {
                *left -= 1;
                if *left == 0 {
                    ready.push(Reverse(next));
                }
            }
        }
    }
    (order.len() == waits.len()).then_some(order)
}

/// Whether a hook stands at all the events that its canonical one is split into.
fn covers_all(adapter: &Adapter, hook: &Hook) -> bool {
    let Some(has) = hook.matcher.as_ref().map(atoms) else {
        return false;
    };
    adapter
        .spec
        .events
        .iter()
        .filter(|event| {
            event.is.as_deref() == Some(hook.event.as_str())
                && !event.tools.is_empty()
                && !event.read_only
        })
        .flat_map(|event| atoms(&matcher(event)))
        .all(|one| has.contains(&one))
}

fn atoms(matcher: &Matcher) -> Vec<Matcher> {
    match matcher {
        Matcher::Any(items) => items.clone(),
        one => vec![one.clone()],
    }
}

fn union(left: Option<Matcher>, right: Option<Matcher>) -> Option<Matcher> {
    let mut items = atoms(&left?);
    items.extend(atoms(&right?));
    Some(Matcher::Any(items))
}
