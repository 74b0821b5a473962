//! Stage 4: decodes the output again and compares it with the source. A
//! difference that no warning names is a bug in anyhook and stops the conversion.

use std::collections::{HashMap, HashSet, VecDeque};

use anyhook_agents::matchers::{alternatives, plain_pattern, tool_matcher};
use anyhook_agents::{Adapter, Placement};
use anyhook_model::{Handler, Hook, Matcher, OnFailure, TimeoutAction};
use serde_json::{Map, Value};

use crate::ConversionSource;
use crate::fit::FittedHook;
use crate::report::{ConversionWarning, agent_specific_parts, hook_as_json};

#[cfg(test)]
mod tests;

/// A field that differs between the source and the decoded output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldDifference {
    /// Position of the hook in the source, from 1.
    pub hook: usize,
    pub field: String,
    pub expected: String,
    pub found: String,
}

pub(crate) fn verify(
    source: &ConversionSource,
    adapter: &Adapter,
    variant: Option<&str>,
    document: &Value,
    fitted: &[FittedHook],
    warnings: &[ConversionWarning],
) -> Vec<FieldDifference> {
    let decoded = adapter.decode_config(document, variant).manifest.hooks;
    let mut candidates = DecodedHooks::new(&decoded);
    let mut warned_fields: HashMap<usize, Vec<&str>> = HashMap::new();
    for warning in warnings {
        if let Some(hook) = warning.hook {
            warned_fields.entry(hook).or_default().push(&warning.field);
        }
    }
    let mut differences = Vec::new();
    for hook in fitted {
        let Some(original) = source.manifest.hooks.get(hook.index) else {
            continue;
        };
        let fields = warned_fields.get(&(hook.index + 1));
        let missing = || FieldDifference {
            hook: hook.index + 1,
            field: "hook".into(),
            expected: "the hook".into(),
            found: "nothing".into(),
        };
        let Some(placement) = hook.placements.first() else {
            differences.extend(fields.is_none().then(missing));
            continue;
        };
        let at = candidates.take(original, &placement.handler, adapter);
        let Some(found) = at.and_then(|at| decoded.get(at)) else {
            differences.push(missing());
            continue;
        };
        let about = |field: &str| {
            fields.into_iter().flatten().any(|named| {
                *named == field
                    || *named == "hook"
                    || field
                        .strip_prefix(named)
                        .is_some_and(|rest| rest.starts_with('.'))
            })
        };
        let mut found = found.clone();
        if is_split(adapter, &original.event)
            && let Some(atoms) = split_atoms(adapter, &hook.placements)
            && candidates.covers(&found, &placement.handler, &atoms)
        {
            // Hooks of one program at several split events may be decoded as one
            // hook or grouped differently: compare the events of this hook.
            found.matcher = Some(Matcher::Any(atoms));
            if original.matcher.is_none() && covers_all_split_tools(adapter, &found) {
                found.matcher = None;
            }
        }
        let compared = compare(original, &found, &adapter.spec.id).into_iter();
        differences.extend(compared.filter(|(field, ..)| !about(field)).map(
            |(field, expected, found)| FieldDifference {
                hook: hook.index + 1,
                field,
                expected,
                found,
            },
        ));
    }
    for hook in candidates.unclaimed(adapter) {
        differences.push(FieldDifference {
            hook: 0,
            field: "hooks".into(),
            expected: "nothing".into(),
            found: hook.handler.command.clone().unwrap_or_default(),
        });
    }
    differences
}

/// The decoded hooks, indexed by what they run, so that each lookup takes
/// constant time.
struct DecodedHooks<'a> {
    decoded: &'a [Hook],
    taken: Vec<bool>,
    /// Positions by lookup key, from the most specific key to the least.
    tiers: [HashMap<String, VecDeque<usize>>; 4],
    /// By program and event: the first hook, whether taken or not. Several source
    /// hooks may have become one where events are split.
    first: HashMap<String, usize>,
    /// By program and event: what all its hooks together match; `None` for
    /// everything.
    matched: HashMap<String, Option<HashSet<String>>>,
}

impl<'a> DecodedHooks<'a> {
    fn new(decoded: &'a [Hook]) -> Self {
        let mut candidates = Self {
            decoded,
            taken: vec![false; decoded.len()],
            tiers: Default::default(),
            first: HashMap::new(),
            matched: HashMap::new(),
        };
        for (at, hook) in decoded.iter().enumerate() {
            let keys = lookup_keys(hook, &hook.handler);
            let [_, _, at_event, _] = &keys;
            candidates.first.entry(at_event.clone()).or_insert(at);
            let matched = candidates.matched.entry(at_event.clone());
            let matched = matched.or_insert_with(|| Some(HashSet::new()));
            if hook.matcher.is_none() {
                *matched = None;
            } else if let Some(all) = matched {
                all.extend(atom_texts(hook.matcher.as_ref()));
            }
            for (tier, key) in candidates.tiers.iter_mut().zip(keys) {
                tier.entry(key).or_default().push_back(at);
            }
        }
        candidates
    }

    /// Takes the hook most like the original among those that run `wanted`.
    fn take(&mut self, original: &Hook, wanted: &Handler, adapter: &Adapter) -> Option<usize> {
        let keys = lookup_keys(original, wanted);
        let [_, _, at_event, _] = &keys;
        for (tier, key) in self.tiers.iter_mut().zip(&keys) {
            let mut queue = tier.get_mut(key);
            while let Some(at) = queue.as_mut().and_then(|queue| queue.pop_front()) {
                if let Some(taken @ false) = self.taken.get_mut(at) {
                    *taken = true;
                    return Some(at);
                }
            }
            if key == at_event
                && is_split(adapter, &original.event)
                && let Some(shared) = self.first.get(at_event)
            {
                return Some(*shared);
            }
        }
        None
    }

    /// Whether the hooks of this program at this event match all of these.
    fn covers(&self, found: &Hook, handler: &Handler, atoms: &[Matcher]) -> bool {
        let [_, _, at_event, _] = lookup_keys(found, handler);
        match self.matched.get(&at_event) {
            Some(Some(all)) => atoms.iter().all(|atom| all.contains(&atom_text(atom))),
            Some(None) => true,
            None => false,
        }
    }

    /// Decoded hooks that belong to no hook of the source.
    fn unclaimed(&self, adapter: &Adapter) -> impl Iterator<Item = &'a Hook> {
        let at_event = |hook: &Hook| {
            let [_, _, at_event, _] = lookup_keys(hook, &hook.handler);
            at_event
        };
        let (taken, unclaimed): (Vec<_>, Vec<_>) = self
            .decoded
            .iter()
            .zip(&self.taken)
            .partition(|(_, taken)| **taken);
        let taken: HashSet<String> = taken.into_iter().map(|(hook, _)| at_event(hook)).collect();
        unclaimed
            .into_iter()
            .map(|(hook, _)| hook)
            .filter(move |hook| {
                // One hook may be written at several events that mean the same.
                let is_spread = adapter.written_events(&hook.event).count() > 1;
                !(is_spread && taken.contains(&at_event(hook)))
            })
    }
}

/// Whether an agent splits this event into one event per class of tools.
fn is_split(adapter: &Adapter, event: &str) -> bool {
    let mut written = adapter.written_events(event).peekable();
    written.peek().is_some() && written.all(|native| !native.tools.is_empty())
}

/// The tools of the events at which a hook is written; `None` if one of them is
/// not split.
fn split_atoms(adapter: &Adapter, placements: &[Placement]) -> Option<Vec<Matcher>> {
    let mut atoms = Vec::new();
    for placement in placements {
        let event = adapter.event_by_native(&placement.native_event)?;
        if event.tools.is_empty() {
            return None;
        }
        atoms.extend(event.tools.iter().map(|tool| tool_matcher(tool)));
    }
    Some(atoms)
}

/// Whether a hook is written at every event that its own event is split into.
fn covers_all_split_tools(adapter: &Adapter, hook: &Hook) -> bool {
    let all = atom_texts(hook.matcher.as_ref());
    adapter
        .written_events(&hook.event)
        .flat_map(|native| &native.tools)
        .all(|tool| all.contains(&atom_text(&tool_matcher(tool))))
}

fn atom_text(atom: &Matcher) -> String {
    let mut atom = atom.clone();
    if let Matcher::Pattern { pattern, .. } = &mut atom {
        *pattern = plain_pattern(pattern).to_owned();
    }
    serde_json::to_string(&atom).unwrap_or_default()
}

fn atom_texts(matcher: Option<&Matcher>) -> HashSet<String> {
    let atoms = matcher.into_iter().flat_map(alternatives);
    atoms.map(atom_text).collect()
}

/// Lookup keys of a hook, from the whole hook to only what it runs.
fn lookup_keys(hook: &Hook, handler: &Handler) -> [String; 4] {
    let program = handler.program().unwrap_or_default();
    let runs = format!("{}\0{program}", handler.kind.as_str());
    let at_event = format!("{runs}\0{}", hook.event);
    let matched = format!("{at_event}\0{}", normalized_matcher(hook.matcher.as_ref()));
    let handler = serde_json::to_string(handler).unwrap_or_default();
    let whole = format!("{matched}\0{handler}");
    [whole, matched, at_event, runs]
}

/// Fields in which the two differ, with both values. Every serialized field is
/// compared; exceptions are made only in [`comparable`].
fn compare(original: &Hook, found: &Hook, id: &str) -> Vec<(String, String, String)> {
    let (mut was, mut is) = (comparable(original, id), comparable(found, id));
    let (was_handler, is_handler) = (take_handler(&mut was), take_handler(&mut is));
    let mut out = Vec::new();
    compare_fields("", &was, &is, &mut out);
    compare_fields("handler.", &was_handler, &is_handler, &mut out);
    out
}

/// The fields of a hook, normalized so that equal meanings compare equal.
fn comparable(hook: &Hook, id: &str) -> Map<String, Value> {
    let mut fields = hook_as_json(hook);
    fields.insert("matcher".into(), normalized_matcher(hook.matcher.as_ref()));
    if hook.on_failure == Some(OnFailure::Allow) {
        // The same as absent.
        fields.shift_remove("on_failure");
    }
    if hook.handler.timeout_action == Some(TimeoutAction::Warn)
        && let Some(Value::Object(handler)) = fields.get_mut("handler")
    {
        // The same as absent.
        handler.shift_remove("timeout_action");
    }
    // The target's own data is not compared. Data of other agents is never
    // written, and matters only if it is more than a position in their file.
    fields.shift_remove("provider_data");
    for agent in hook.provider_data.keys() {
        if agent != id && !agent_specific_parts(hook, agent).is_empty() {
            fields.insert(format!("provider_data.{agent}"), Value::Bool(true));
        }
    }
    fields
}

fn take_handler(fields: &mut Map<String, Value>) -> Map<String, Value> {
    match fields.shift_remove("handler") {
        Some(Value::Object(handler)) => handler,
        _ => Map::new(),
    }
}

fn compare_fields(
    prefix: &str,
    was: &Map<String, Value>,
    is: &Map<String, Value>,
    out: &mut Vec<(String, String, String)>,
) {
    let added = is.keys().filter(|key| !was.contains_key(*key));
    for key in was.keys().chain(added) {
        let value = |fields: &Map<String, Value>| fields.get(key).cloned().unwrap_or_default();
        let (left, right) = (value(was), value(is));
        if left != right {
            let field = format!("{prefix}{key}");
            out.push((field, left.to_string(), right.to_string()));
        }
    }
}

/// A matcher without differences in order, duplicates and nesting.
fn normalized_matcher(matcher: Option<&Matcher>) -> Value {
    let mut all: Vec<String> = atom_texts(matcher).into_iter().collect();
    all.sort();
    Value::from(all)
}
