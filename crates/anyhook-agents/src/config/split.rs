//! Agents that have one event for each class of tool: one canonical hook is
//! written at several events, and becomes one hook again when it is decoded.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use anyhook_model::{Hook, Matcher};

use super::hook_keys;
use crate::Adapter;
use crate::matchers::{alternatives, tool_matcher};
use crate::spec::EventSpec;

/// The canonical matcher that a split event implies.
pub(super) fn matcher(event: &EventSpec) -> Matcher {
    match event.tools.as_slice() {
        [one] => tool_matcher(one),
        tools => Matcher::Any(tools.iter().map(|tool| tool_matcher(tool)).collect()),
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
        // Two events have the same two hooks in opposite order.
        return hooks;
    };
    let mut members: HashMap<usize, Vec<usize>> = HashMap::new();
    for (at, group) in groups.iter().enumerate() {
        members.entry(*group).or_default().push(at);
    }
    let mut hooks: Vec<Option<Hook>> = hooks.into_iter().map(Some).collect();
    let mut merged = Vec::with_capacity(order.len());
    for group in order {
        let parts = members.remove(&group).unwrap_or_default().into_iter();
        let mut parts = parts.filter_map(|at| hooks.get_mut(at)?.take());
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
    let own_data = hook.provider_data.get(adapter.spec.id.as_ref());
    let own_event = own_data.is_some_and(|data| data.get(hook_keys::NATIVE_EVENT).is_some());
    let mut events = adapter.events_of(&hook.event).peekable();
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
    let ready = waits.iter().filter(|(_, waits)| **waits == 0);
    let mut ready: BinaryHeap<_> = ready.map(|(group, _)| Reverse(*group)).collect();
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

/// Whether a hook is at all the events that its canonical one is split into.
fn covers_all(adapter: &Adapter, hook: &Hook) -> bool {
    let Some(matched) = hook.matcher.as_ref().map(alternatives) else {
        return false;
    };
    adapter
        .written_events(&hook.event)
        .flat_map(|event| &event.tools)
        .all(|tool| matched.contains(&&tool_matcher(tool)))
}

fn union(left: Option<Matcher>, right: Option<Matcher>) -> Option<Matcher> {
    let (left, right) = (left?, right?);
    let both = alternatives(&left).into_iter().chain(alternatives(&right));
    Some(Matcher::Any(both.cloned().collect()))
}
