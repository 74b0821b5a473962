//! The hook entries in an agent's file, whatever its shape, without judging them.

use std::fmt;

use anyhook_agents::spec::{Config, ConfigShape};
use anyhook_edit::Key;
use serde_json::{Map, Value};

use crate::command::{self, BridgeCommand};
use crate::via_daemon;

/// One handler in a file.
#[derive(Debug, Clone)]
pub(crate) struct HookEntry<'a> {
    /// The event's name, as written.
    pub event: &'a str,
    /// Position of the group or entry in the array of its event, or in the list.
    pub index: usize,
    /// Position in its group.
    pub position: usize,
    /// The group that contains it, if any.
    pub group: Option<&'a Map<String, Value>>,
    pub handler: &'a Value,
}

impl HookEntry<'_> {
    /// Every command line of the entry, for this and other systems, and the address of a
    /// daemon that it calls.
    pub(crate) fn commands<'v>(&'v self, config: &'v Config) -> impl Iterator<Item = &'v str> {
        commands(config, self.handler)
    }

    pub(crate) fn is_bridge(&self, config: &Config) -> bool {
        self.commands(config)
            .any(|line| BridgeCommand::parse(line).is_some())
    }

    /// The matcher, as written.
    pub(crate) fn matcher(&self, config: &Config) -> Option<&Value> {
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

impl fmt::Display for HookEntry<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "entry {} of `{}`", self.index + 1, self.event)
    }
}

fn commands<'v>(config: &'v Config, handler: &'v Value) -> impl Iterator<Item = &'v str> {
    config.handler.fields.iter().filter_map(|field| {
        let line = handler.pointer(&field.at)?.as_str()?;
        let is_line = match field.to.as_ref() {
            "url" => via_daemon::parse_url(line).is_some(),
            to => to == "command" || to.starts_with("platform."),
        };
        is_line.then_some(line)
    })
}

/// The part of the document that contains the events or hooks.
pub(crate) fn hooks_root<'v>(config: &Config, document: &'v Value) -> Option<&'v Value> {
    document.pointer(&config.root)
}

pub(crate) fn root_path(config: &Config) -> Vec<Key> {
    config.root.split('/').skip(1).map(Key::from).collect()
}

/// Whether a key of the root is an event.
pub(crate) fn is_event_key(config: &Config, key: &str, value: &Value) -> bool {
    !config.not_events.iter().any(|other| other == key) && (value.is_array() || value.is_object())
}

pub(crate) fn entries<'v>(config: &Config, document: &'v Value) -> Vec<HookEntry<'v>> {
    let mut found = Vec::new();
    for (event, list) in event_lists(config, document) {
        for (index, item) in list.as_array().into_iter().flatten().enumerate() {
            push(&mut found, event, index, item);
        }
    }
    let listed = match (hooks_root(config, document), config.shape) {
        (Some(Value::Array(items)), ConfigShape::List) => items.as_slice(),
        (Some(single @ Value::Object(_)), ConfigShape::Single) => std::slice::from_ref(single),
        _ => &[],
    };
    let at = config.event_at.as_deref().unwrap_or("/event");
    for (index, handler) in listed.iter().enumerate() {
        if let Some(event) = handler.pointer(at).and_then(Value::as_str) {
            found.push(HookEntry {
                event,
                index,
                position: 0,
                group: None,
                handler,
            });
        }
    }
    found
}

/// The events of a document that has a list per event.
fn event_lists<'v>(
    config: &Config,
    document: &'v Value,
) -> impl Iterator<Item = (&'v String, &'v Value)> {
    let has_lists = matches!(config.shape, ConfigShape::Grouped | ConfigShape::Flat);
    let root = hooks_root(config, document).filter(|_| has_lists);
    let events = root.and_then(Value::as_object).into_iter().flatten();
    events.filter(|(event, list)| is_event_key(config, event, list))
}

fn push<'v>(found: &mut Vec<HookEntry<'v>>, event: &'v str, index: usize, item: &'v Value) {
    let Some(map) = item.as_object() else { return };
    let mut push = |position, group, handler| {
        found.push(HookEntry {
            event,
            index,
            position,
            group,
            handler,
        });
    };
    match map.get("hooks").and_then(Value::as_array) {
        Some(handlers) => {
            for (position, handler) in handlers.iter().enumerate() {
                push(position, Some(map), handler);
            }
        }
        None => push(0, None, item),
    }
}

/// Whether an element of an array is a bridge entry of this agent and nothing
/// else: a handler, or a group that contains only those.
pub(crate) fn is_bridge_element(config: &Config, slug: &str, element: &Value) -> bool {
    let one = |handler: &Value| {
        bridge_command(config, slug, handler).is_some()
            && commands(config, handler).all(command::is_only_bridge)
    };
    match element.get("hooks").and_then(Value::as_array) {
        Some(handlers) => !handlers.is_empty() && handlers.iter().all(one),
        None => one(element),
    }
}

/// Every command line of an element: of a handler, or of those of a group.
pub(crate) fn element_commands<'v>(config: &'v Config, element: &'v Value) -> Vec<&'v str> {
    match element.get("hooks").and_then(Value::as_array) {
        Some(handlers) => {
            let handlers = handlers.iter();
            handlers
                .flat_map(|handler| commands(config, handler))
                .collect()
        }
        None => commands(config, element).collect(),
    }
}

/// The command line by which a handler calls the bridge for this agent.
pub(crate) fn bridge_command<'v>(
    config: &'v Config,
    slug: &str,
    handler: &'v Value,
) -> Option<(&'v str, BridgeCommand)> {
    commands(config, handler)
        .filter_map(|line| Some((line, BridgeCommand::parse(line)?)))
        .find(|(_, command)| is_agent(&command.agent, slug))
}

/// Whether a name on a command line, perhaps an alias, means this agent.
fn is_agent(name: &str, slug: &str) -> bool {
    name == slug || anyhook_agents::get(name).is_some_and(|adapter| adapter.spec.id == slug)
}

/// The arrays that can contain bridge entries: of each event, and inside the
/// user's own groups.
pub(crate) fn array_paths(config: &Config, slug: &str, document: &Value) -> Vec<Vec<Key>> {
    let base = root_path(config);
    let root = hooks_root(config, document);
    if config.shape == ConfigShape::List && root.is_some_and(Value::is_array) {
        return vec![base];
    }
    let mut paths = Vec::new();
    for (event, list) in event_lists(config, document) {
        let Some(items) = list.as_array() else {
            continue;
        };
        let mut path = base.clone();
        path.push(Key::from(event.as_str()));
        for (index, item) in items.iter().enumerate() {
            let is_group = item.get("hooks").is_some_and(Value::is_array);
            if is_group && !is_bridge_element(config, slug, item) {
                let mut inner = path.clone();
                inner.extend([Key::from(index), Key::from("hooks")]);
                paths.push(inner);
            }
        }
        // After the inner ones: removing a group moves those behind it.
        paths.push(path);
    }
    paths
}
