//! Stage 4: the output is read again and compared with the source. What
//! differs and is named by no warning is a defect of ours, and stops the
//! conversion.

use std::collections::{HashMap, HashSet, VecDeque};

use anyhook_agents::matchers::ANY_SERVER;
use anyhook_agents::{Adapter, Placement};
use anyhook_model::{Handler, Hook, Matcher, TimeoutAction};
use serde_json::Value;

use crate::Source;
use crate::report::{Warning, own_words};
use crate::validate::Validated;

/// A field that came back otherwise than it went in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Position of the hook in the source, from 1.
    pub hook: usize,
    pub field: String,
    pub expected: String,
    pub found: String,
}

pub(crate) fn verify(
    source: &Source,
    adapter: &Adapter,
    variant: Option<&str>,
    document: &Value,
    validated: &[Validated],
    warnings: &[Warning],
) -> Vec<Difference> {
    let decoded = adapter.decode_config(document, variant).manifest.hooks;
    let mut candidates = Candidates::new(&decoded);
    let mut told: HashMap<usize, Vec<&str>> = HashMap::new();
    for warning in warnings {
        if let Some(hook) = warning.hook {
            told.entry(hook).or_default().push(&warning.field);
        }
    }
    let mut differences = Vec::new();
    for hook in validated {
        let Some(original) = source.manifest.hooks.get(hook.index) else {
            continue;
        };
        let fields = told.get(&(hook.index + 1));
        let Some(placement) = hook.placements.first() else {
            if fields.is_none() {
                differences.push(missing(hook.index));
            }
            continue;
        };
        let Some(found) = candidates
            .take(original, &placement.handler, adapter)
            .and_then(|at| decoded.get(at))
        else {
            differences.push(missing(hook.index));
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
            // Hooks of one program at several events of split tools may be read
            // as one, or otherwise than they were: what counts is where this
            // one stands.
            found.matcher = Some(Matcher::Any(atoms));
            if original.matcher.is_none() && is_whole(adapter, &found) {
                found.matcher = None;
            }
        }
        for (field, expected, got) in compare(original, &found, &adapter.spec.id) {
            if !about(&field) {
                differences.push(Difference {
                    hook: hook.index + 1,
                    field,
                    expected,
                    found: got,
                });
            }
        }
    }
    for hook in candidates.left(adapter) {
        differences.push(Difference {
            hook: 0,
            field: "hooks".into(),
            expected: "nothing".into(),
            found: hook.handler.command.clone().unwrap_or_default(),
        });
    }
    differences
}

/// The hooks that were read back, by what they run. Each is found in constant
/// time, however many there are.
struct Candidates<'a> {
    decoded: &'a [Hook],
    taken: Vec<bool>,
    /// From the closest likeness to the faintest: each key holds positions.
    tiers: [HashMap<String, VecDeque<usize>>; 4],
    /// By program and event: the first hook, whether taken or not. Several of
    /// the source may have become one where events are split.
    first: HashMap<String, usize>,
    /// By program and event: what all its hooks together match; `None` for
    /// everything.
    matched: HashMap<String, Option<HashSet<String>>>,
}

impl<'a> Candidates<'a> {
    fn new(decoded: &'a [Hook]) -> Self {
        let mut candidates = Self {
            decoded,
            taken: vec![false; decoded.len()],
            tiers: Default::default(),
            first: HashMap::new(),
            matched: HashMap::new(),
        };
        for (at, hook) in decoded.iter().enumerate() {
            let keys = keys(hook, &hook.handler);
            let [_, _, at_event, _] = &keys;
            candidates.first.entry(at_event.clone()).or_insert(at);
            let matched = candidates
                .matched
                .entry(at_event.clone())
                .or_insert_with(|| Some(HashSet::new()));
            match (&hook.matcher, matched.as_mut()) {
                (Some(matcher), Some(all)) => texts(matcher, all),
                (None, _) => *matched = None,
                (Some(_), None) => {}
            }
            for (tier, key) in candidates.tiers.iter_mut().zip(keys) {
                tier.entry(key).or_default().push_back(at);
            }
        }
        candidates
    }

    /// Of the hooks that run `wanted`, the one most like the original.
    fn take(&mut self, original: &Hook, wanted: &Handler, adapter: &Adapter) -> Option<usize> {
        let keys = keys(original, wanted);
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
        let [_, _, at_event, _] = keys(found, handler);
        self.matched.get(&at_event).is_some_and(|matched| {
            matched
                .as_ref()
                .is_none_or(|all| atoms.iter().all(|atom| all.contains(&text(atom))))
        })
    }

    /// Hooks of which the source knows nothing.
    fn left(&self, adapter: &Adapter) -> impl Iterator<Item = &'a Hook> {
        let taken: HashSet<String> = self
            .decoded
            .iter()
            .zip(&self.taken)
            .filter(|(_, taken)| **taken)
            .map(|(hook, _)| keys(hook, &hook.handler)[2].clone())
            .collect();
        self.decoded
            .iter()
            .zip(&self.taken)
            .filter_map(move |(hook, is_taken)| {
                let [_, _, at_event, _] = keys(hook, &hook.handler);
                let part = is_split(adapter, &hook.event) && taken.contains(&at_event);
                (!is_taken && !part).then_some(hook)
            })
    }
}

/// Whether an agent has this event once for each class of tools.
fn is_split(adapter: &Adapter, event: &str) -> bool {
    let mut written = adapter
        .events_of(event)
        .filter(|native| !native.read_only)
        .peekable();
    written.peek().is_some() && written.all(|native| !native.tools.is_empty())
}

/// The tools of the events at which a hook stands, where these are split.
fn split_atoms(adapter: &Adapter, placements: &[Placement]) -> Option<Vec<Matcher>> {
    let mut atoms = Vec::new();
    for placement in placements {
        let event = adapter.event_by_native(&placement.native_event)?;
        if event.tools.is_empty() {
            return None;
        }
        atoms.extend(event.tools.iter().map(|tool| tool_atom(tool)));
    }
    Some(atoms)
}

/// Whether a hook stands at each of the events that its own is split into.
fn is_whole(adapter: &Adapter, hook: &Hook) -> bool {
    let mut all = HashSet::new();
    if let Some(matcher) = &hook.matcher {
        texts(matcher, &mut all);
    }
    adapter
        .events_of(&hook.event)
        .filter(|native| !native.read_only)
        .flat_map(|native| &native.tools)
        .all(|tool| all.contains(&text(&tool_atom(tool))))
}

fn tool_atom(tool: &str) -> Matcher {
    match tool {
        "mcp" => Matcher::mcp(ANY_SERVER, None),
        tool => Matcher::Name(tool.to_owned()),
    }
}

fn text(atom: &Matcher) -> String {
    serde_json::to_string(atom).unwrap_or_default()
}

fn texts(matcher: &Matcher, out: &mut HashSet<String>) {
    match matcher {
        Matcher::Any(items) => items.iter().for_each(|item| texts(item, out)),
        one => {
            out.insert(text(one));
        }
    }
}

/// What a hook is found by, from the whole of it to only what it runs.
fn keys(hook: &Hook, handler: &Handler) -> [String; 4] {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let runs = format!(
        "{}\0{}\0{}\0{}",
        handler.kind.as_str(),
        text(&handler.command),
        text(&handler.url),
        text(&handler.prompt)
    );
    let at_event = format!("{runs}\0{}", hook.event);
    let matched = format!("{at_event}\0{}", plain(hook.matcher.as_ref()));
    let whole = format!(
        "{matched}\0{}",
        serde_json::to_string(handler).unwrap_or_default()
    );
    [whole, matched, at_event, runs]
}

fn missing(index: usize) -> Difference {
    Difference {
        hook: index + 1,
        field: "hook".into(),
        expected: "the hook".into(),
        found: "nothing".into(),
    }
}

/// Fields in which the two differ, with both values.
fn compare(original: &Hook, found: &Hook, id: &str) -> Vec<(String, String, String)> {
    let mut out = Vec::new();
    let mut check = |field: &str, left: Value, right: Value| {
        if left != right {
            out.push((field.to_owned(), left.to_string(), right.to_string()));
        }
    };
    let (was, is) = (&original.handler, &found.handler);
    check(
        "event",
        Value::from(original.event.clone()),
        Value::from(found.event.clone()),
    );
    check(
        "matcher",
        plain(original.matcher.as_ref()),
        plain(found.matcher.as_ref()),
    );
    check(
        "name",
        Value::from(original.name.clone()),
        Value::from(found.name.clone()),
    );
    check(
        "blocking",
        Value::from(original.blocking),
        Value::from(found.blocking),
    );
    check(
        "handler.type",
        Value::from(was.kind.as_str()),
        Value::from(is.kind.as_str()),
    );
    check(
        "handler.command",
        Value::from(was.command.clone()),
        Value::from(is.command.clone()),
    );
    check(
        "handler.timeout",
        Value::from(was.timeout),
        Value::from(is.timeout),
    );
    let blocks = |action: Option<TimeoutAction>| Value::from(action == Some(TimeoutAction::Block));
    check(
        "handler.timeout_action",
        blocks(was.timeout_action),
        blocks(is.timeout_action),
    );
    check(
        "handler.async",
        Value::from(was.is_async),
        Value::from(is.is_async),
    );
    check(
        "handler.cwd",
        Value::from(was.cwd.clone()),
        Value::from(is.cwd.clone()),
    );
    check(
        "handler.env",
        Value::Object(was.env.clone()),
        Value::Object(is.env.clone()),
    );
    let platform =
        |platform: &anyhook_model::Platform| serde_json::to_value(platform).unwrap_or_default();
    check(
        "handler.platform",
        platform(&was.platform),
        platform(&is.platform),
    );
    check(
        "handler.url",
        Value::from(was.url.clone()),
        Value::from(is.url.clone()),
    );
    check(
        "handler.headers",
        Value::Object(was.headers.clone()),
        Value::Object(is.headers.clone()),
    );
    check(
        "handler.allowed_env_vars",
        Value::from(was.allowed_env_vars.clone()),
        Value::from(is.allowed_env_vars.clone()),
    );
    check(
        "handler.prompt",
        Value::from(was.prompt.clone()),
        Value::from(is.prompt.clone()),
    );
    check(
        "handler.model",
        Value::from(was.model.clone()),
        Value::from(is.model.clone()),
    );
    check(
        "handler.status_message",
        Value::from(was.status_message.clone()),
        Value::from(is.status_message.clone()),
    );
    check(
        "handler.dialect",
        Value::from(was.dialect.clone()),
        Value::from(is.dialect.clone()),
    );
    check(
        "degradation",
        Value::Object(original.degradation.clone()),
        Value::Object(found.degradation.clone()),
    );
    check(
        "capabilities",
        Value::from(original.capabilities.clone()),
        Value::from(found.capabilities.clone()),
    );
    for (key, value) in &was.extra {
        check(&format!("handler.{key}"), value.clone(), Value::Null);
    }
    for (key, value) in &original.extra {
        check(key, value.clone(), Value::Null);
    }
    for agent in original.provider_data.keys() {
        if agent == id || own_words(original, agent).is_empty() {
            continue;
        }
        check(
            &format!("provider_data.{agent}"),
            Value::Bool(true),
            Value::Bool(false),
        );
    }
    out
}

/// A matcher without the freedoms of writing: order, doubles, lists of one.
fn plain(matcher: Option<&Matcher>) -> Value {
    let mut all = HashSet::new();
    if let Some(matcher) = matcher {
        texts(matcher, &mut all);
    }
    let mut all: Vec<String> = all.into_iter().collect();
    all.sort();
    Value::from(all)
}
