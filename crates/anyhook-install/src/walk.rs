//! The entries of an agent's file, whatever its shape: as they stand, without
//! judging them.

use anyhook_agents::spec::{Config, Shape};
use anyhook_edit::Key;
use serde_json::{Map, Value};

use crate::command::{self, Ours};

/// One handler in a file.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// The event's name as it is written.
    pub event: &'a str,
    /// Position of the group or entry under its event, or in the list.
    pub index: usize,
    /// Position in its group.
    pub position: usize,
    /// The group around it, where there is one.
    pub group: Option<&'a Map<String, Value>>,
    pub handler: &'a Value,
}

impl Entry<'_> {
    /// Every command line of the entry, for this and other systems.
    pub fn commands<'v>(&'v self, config: &'v Config) -> impl Iterator<Item = &'v str> {
        commands(config, self.handler)
    }

    pub fn ours(&self, config: &Config) -> Option<Ours> {
        self.commands(config).find_map(command::ours)
    }

    /// The matcher as it is written.
    pub fn matcher(&self, config: &Config) -> Option<&Value> {
        let at = config.matcher.at.as_ref();
        if at.is_empty() {
            return None;
        }
        match self.group {
            Some(group) => group.get(at.trim_start_matches('/')),
            None => self.handler.pointer(at),
        }
    }
}

fn commands<'v>(config: &'v Config, handler: &'v Value) -> impl Iterator<Item = &'v str> {
    config
        .handler
        .fields
        .iter()
        .filter(|field| field.to == "command" || field.to.starts_with("platform."))
        .filter_map(|field| handler.pointer(&field.at)?.as_str())
}

/// Where the events or hooks stand in the document.
pub fn root<'v>(config: &Config, document: &'v Value) -> Option<&'v Value> {
    if config.root.is_empty() {
        Some(document)
    } else {
        document.pointer(&config.root)
    }
}

pub fn root_path(config: &Config) -> Vec<Key> {
    config.root.split('/').skip(1).map(Key::from).collect()
}

/// Whether a key of the root is an event's.
pub fn is_event_key(config: &Config, key: &str, value: &Value) -> bool {
    !config.not_events.iter().any(|other| other == key) && (value.is_array() || value.is_object())
}

pub fn entries<'v>(config: &Config, document: &'v Value) -> Vec<Entry<'v>> {
    let mut found = Vec::new();
    match (root(config, document), config.shape) {
        (Some(Value::Object(map)), Shape::Grouped | Shape::Flat) => {
            for (event, list) in map {
                if !is_event_key(config, event, list) {
                    continue;
                }
                for (index, item) in list.as_array().into_iter().flatten().enumerate() {
                    push(&mut found, event, index, item);
                }
            }
        }
        (Some(Value::Array(items)), Shape::List) => {
            for (index, item) in items.iter().enumerate() {
                push_listed(&mut found, config, index, item);
            }
        }
        (Some(single @ Value::Object(_)), Shape::Single) => {
            push_listed(&mut found, config, 0, single);
        }
        _ => {}
    }
    found
}

fn push<'v>(found: &mut Vec<Entry<'v>>, event: &'v str, index: usize, item: &'v Value) {
    let Some(map) = item.as_object() else { return };
    match map.get("hooks").and_then(Value::as_array) {
        Some(handlers) => {
            found.extend(
                handlers
                    .iter()
                    .enumerate()
                    .map(|(position, handler)| Entry {
                        event,
                        index,
                        position,
                        group: Some(map),
                        handler,
                    }),
            );
        }
        None => found.push(Entry {
            event,
            index,
            position: 0,
            group: None,
            handler: item,
        }),
    }
}

fn push_listed<'v>(found: &mut Vec<Entry<'v>>, config: &Config, index: usize, item: &'v Value) {
    let at = config.event_at.as_deref().unwrap_or("/event");
    if let Some(event) = item.pointer(at).and_then(Value::as_str) {
        found.push(Entry {
            event,
            index,
            position: 0,
            group: None,
            handler: item,
        });
    }
}

/// Whether an element of an array is a bridge entry of this agent and nothing
/// else: a handler, or a group of nothing but those.
pub fn is_bridge(config: &Config, slug: &str, element: &Value) -> bool {
    let one = |handler: &Value| {
        commands(config, handler)
            .filter_map(command::ours)
            .any(|ours| is_agent(&ours.agent, slug))
    };
    match element.get("hooks").and_then(Value::as_array) {
        Some(handlers) => !handlers.is_empty() && handlers.iter().all(one),
        None => one(element),
    }
}

/// Whether a name on a command line, perhaps an alias, is this agent's.
pub fn is_agent(name: &str, slug: &str) -> bool {
    name == slug || anyhook_agents::get(name).is_some_and(|adapter| adapter.spec.id == slug)
}

/// The arrays in which bridge entries can stand: of each event, and inside the
/// user's own groups.
pub fn places(config: &Config, slug: &str, document: &Value) -> Vec<Vec<Key>> {
    let base = root_path(config);
    let mut places = Vec::new();
    match (root(config, document), config.shape) {
        (Some(Value::Object(map)), Shape::Grouped | Shape::Flat) => {
            for (event, list) in map {
                if !is_event_key(config, event, list) {
                    continue;
                }
                let mut path = base.clone();
                path.push(Key::from(event.as_str()));
                for (index, item) in list.as_array().into_iter().flatten().enumerate() {
                    let is_group = item.get("hooks").is_some_and(Value::is_array);
                    if is_group && !is_bridge(config, slug, item) {
                        let mut inner = path.clone();
                        inner.extend([Key::from(index), Key::from("hooks")]);
                        places.push(inner);
                    }
                }
                // After the inner ones: taking a group out moves those behind it.
                if list.is_array() {
                    places.push(path);
                }
            }
        }
        (Some(Value::Array(_)), Shape::List) => places.push(base),
        _ => {}
    }
    places
}
