//! The hooks that an agent's own file contains beside the bridge, as canonical
//! hooks, and which of them the manifest runs as well.
//!
//! A hook that both run would run twice. `install` takes it out of the agent's file,
//! but only if the manifest's hook is active there: otherwise a guard would be missing
//! without anyone noticing.

mod identity;

use std::path::PathBuf;

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use anyhook_agents::spec::{ConfigShape, EventSpec, Scope};
use anyhook_convert::{
    ConversionOptions, ConversionSource, ConversionTarget, ConversionWarning, convert, hook_label,
};
use anyhook_edit::Key;
use anyhook_model::{HandlerKind, Hook};
use anyhook_run::Engine;
use anyhook_run::config::in_force::HookInForce;
use serde_json::{Map, Value};

use crate::hook_entries::{self, HookEntry};
use crate::machine::Machine;
use crate::scripts;
use crate::target::Target;

pub use identity::HookIdentity;

/// One hook of an agent's own file.
#[derive(Debug, Clone)]
pub struct NativeHook {
    pub adapter: &'static Adapter,
    pub path: PathBuf,
    /// As it would be in a manifest.
    pub hook: Hook,
    pub identity: HookIdentity,
    /// `PreToolUse[Bash] guard.sh`.
    pub label: String,
    /// What the conversion loses, or what users should know.
    pub warnings: Vec<ConversionWarning>,
    place: EntryPlace,
}

/// Where an entry is in its document.
#[derive(Debug, Clone)]
pub(crate) struct EntryPlace {
    /// The array of its event, or of all hooks; `None`: the file is the hook.
    array: Option<Vec<Key>>,
    /// Its element of that array: the handler, or the group around it.
    element: Value,
    index: usize,
    /// The handler itself, if a group is around it.
    in_group: Option<Value>,
}

/// Elements to take out of one array.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TakenElement {
    pub array: Vec<Key>,
    pub element: Value,
    /// Where it goes back if its place is gone.
    pub fallback: (Vec<Key>, Value),
}

/// The hooks of a file that anyhook can run, without bridge entries.
pub fn native_hooks(machine: &Machine, target: &Target) -> Vec<NativeHook> {
    let Some(document) = target.document().filter(|_| target.is_editable()) else {
        return Vec::new();
    };
    let config = target.config();
    hook_entries::entries(config, &document)
        .iter()
        .filter(|entry| !entry.is_bridge(config))
        .flat_map(|entry| converted(machine, target, &document, entry))
        .collect()
}

/// One entry as canonical hooks: usually one.
fn converted(
    machine: &Machine,
    target: &Target,
    document: &Value,
    entry: &HookEntry<'_>,
) -> Vec<NativeHook> {
    let Some(alone) = document_with_only(target, document, entry) else {
        return Vec::new();
    };
    let source = ConversionSource::decode(target.adapter, &alone, target.variant);
    let options = ConversionOptions::default();
    let Ok(conversion) = convert(&source, ConversionTarget::Canonical, &options) else {
        return Vec::new();
    };
    let hooks = conversion.document.get("hooks").and_then(Value::as_array);
    let hooks = hooks.into_iter().flatten();
    let hooks = hooks.filter_map(|hook| serde_json::from_value::<Hook>(hook.clone()).ok());
    hooks
        .filter(|hook| hook.handler.kind != HandlerKind::McpTool)
        .map(|hook| NativeHook {
            adapter: target.adapter,
            path: target.path.clone(),
            identity: HookIdentity::new(&hook, &machine.root),
            label: hook_label(&hook, Some(target.adapter)),
            hook,
            warnings: conversion.warnings.clone(),
            place: entry_place(target, entry),
        })
        .collect()
}

fn element(entry: &HookEntry<'_>) -> Value {
    match entry.group {
        Some(group) => Value::Object(with_handler(group, entry.handler)),
        None => entry.handler.clone(),
    }
}

/// A group with one of its handlers.
fn with_handler(group: &Map<String, Value>, handler: &Value) -> Map<String, Value> {
    let mut group = group.clone();
    group.insert("hooks".to_owned(), Value::Array(vec![handler.clone()]));
    group
}

/// The document with this entry as its only hook; other settings stay.
fn document_with_only(target: &Target, document: &Value, entry: &HookEntry<'_>) -> Option<Value> {
    let config = target.config();
    let mut alone = document.clone();
    let root = alone.pointer_mut(&config.root)?;
    match config.shape {
        ConfigShape::List => *root = Value::Array(vec![entry.handler.clone()]),
        ConfigShape::Grouped | ConfigShape::Flat => {
            let map = root.as_object_mut()?;
            map.retain(|key, value| !hook_entries::is_event_key(config, key, value));
            map.insert(entry.event.to_owned(), Value::Array(vec![element(entry)]));
        }
        _ => {}
    }
    Some(alone)
}

fn entry_place(target: &Target, entry: &HookEntry<'_>) -> EntryPlace {
    let config = target.config();
    let mut array = hook_entries::root_path(config);
    let array = match config.shape {
        ConfigShape::Grouped | ConfigShape::Flat => {
            array.push(Key::from(entry.event));
            Some(array)
        }
        ConfigShape::List => Some(array),
        _ => None,
    };
    EntryPlace {
        array,
        element: match entry.group {
            Some(group) => Value::Object(group.clone()),
            None => entry.handler.clone(),
        },
        index: entry.index,
        in_group: entry.group.map(|_| entry.handler.clone()),
    }
}

impl NativeHook {
    /// Whether it can be taken out of its file, which stays a config file then.
    pub(crate) fn can_be_taken_out(&self) -> bool {
        self.place.array.is_some()
    }
}

/// The hooks that a manifest runs here.
#[derive(Debug, Clone, Default)]
pub struct ActiveHooks {
    hooks: Vec<(HookIdentity, Hook)>,
}

impl ActiveHooks {
    pub fn load(machine: &Machine) -> Self {
        let engine = Engine::new(machine.dirs.clone(), false);
        let (hooks, _) = engine.hooks_in_force(&machine.cwd);
        let active = hooks.into_iter().filter(HookInForce::is_active);
        let hooks = active.map(|one| (HookIdentity::new(&one.hook, &one.root), one.hook));
        Self {
            hooks: hooks.collect(),
        }
    }

    /// Whether one of them does at least what the agent's own hook does.
    fn replaces(&self, native: &NativeHook) -> bool {
        let is_as_strict = |hook: &Hook| {
            (hook.blocking || !native.hook.blocking)
                && !hook.only_observes()
                && hook.condition.is_none()
        };
        let mut hooks = self.hooks.iter();
        hooks.any(|(identity, hook)| *identity == native.identity && is_as_strict(hook))
    }

    /// The hooks of a file that run through the bridge as well, if it is installed
    /// there for `events`.
    pub fn running_twice(
        &self,
        machine: &Machine,
        target: &Target,
        events: &[&EventSpec],
    ) -> Vec<NativeHook> {
        let is_delivered = |hook: &Hook| {
            events.iter().any(|event| {
                hook.event == event.native.as_ref() || event.is.as_deref() == Some(&*hook.event)
            })
        };
        let mut hooks = native_hooks(machine, target);
        hooks.retain(|native| self.replaces(native) && is_delivered(&native.hook));
        hooks
    }
}

/// Every hook that an agent runs by itself and through the bridge.
pub fn running_twice(machine: &Machine) -> Vec<NativeHook> {
    let active = ActiveHooks::load(machine);
    let scopes = [Scope::Project, Scope::Local, Scope::User];
    let mut found = Vec::new();
    for adapter in clients() {
        let targets = Target::existing(machine, adapter, &scopes);
        let bridged = BridgedEvents::new(&targets);
        for target in targets.iter().filter(|target| target.is_editable()) {
            found.extend(active.running_twice(machine, target, &bridged.of_target(target)));
        }
    }
    found
}

/// The events for which an agent has the bridge, in any of its files.
pub(crate) struct BridgedEvents {
    names: Vec<String>,
}

impl BridgedEvents {
    pub(crate) fn new(targets: &[Target]) -> Self {
        let names = targets.iter().flat_map(Target::bridged_events);
        Self {
            names: names.collect(),
        }
    }

    pub(crate) fn of_target(&self, target: &Target) -> Vec<&'static EventSpec> {
        let written = &target.config().event_names;
        let is_bridged = |event: &&EventSpec| {
            let name = written.get(&event.native).unwrap_or(&event.native);
            let mut names = self.names.iter();
            names.any(|bridged| *bridged == event.native || bridged == name)
        };
        let events = target.adapter.spec.events.iter();
        events.filter(is_bridged).collect()
    }
}

/// The elements to take out so that these hooks are gone: a group whose handlers
/// all go, goes as a whole.
pub(crate) fn elements_to_take_out(hooks: &[NativeHook]) -> Vec<TakenElement> {
    let mut inner = Vec::new();
    let mut outer: Vec<TakenElement> = Vec::new();
    for NativeHook { place, .. } in hooks {
        let Some(array) = &place.array else { continue };
        let taken = match &place.in_group {
            None => TakenElement {
                array: array.clone(),
                element: place.element.clone(),
                fallback: (array.clone(), place.element.clone()),
            },
            Some(handler) if is_whole_group_taken(place, hooks) => TakenElement {
                array: array.clone(),
                element: place.element.clone(),
                fallback: (array.clone(), group_around(place, handler)),
            },
            Some(handler) => {
                let mut path = array.clone();
                path.extend([Key::from(place.index), Key::from("hooks")]);
                let taken = TakenElement {
                    array: path,
                    element: handler.clone(),
                    fallback: (array.clone(), group_around(place, handler)),
                };
                inner.push(taken);
                continue;
            }
        };
        let known = outer
            .iter()
            .any(|one| one.array == taken.array && one.element == taken.element);
        if !known {
            let whole = (taken.array.clone(), taken.element.clone());
            outer.push(TakenElement {
                fallback: whole,
                ..taken
            });
        }
    }
    // The inner ones first: removing a group moves those behind it.
    inner.extend(outer);
    inner
}

fn is_whole_group_taken(place: &EntryPlace, hooks: &[NativeHook]) -> bool {
    let handlers = place.element.get("hooks").and_then(Value::as_array);
    handlers.is_some_and(|handlers| {
        handlers.iter().all(|handler| {
            hooks.iter().any(|other| {
                let other = &other.place;
                other.array == place.array
                    && other.index == place.index
                    && other.in_group.as_ref() == Some(handler)
            })
        })
    })
}

fn group_around(place: &EntryPlace, handler: &Value) -> Value {
    let group = place.element.as_object().cloned().unwrap_or_default();
    Value::Object(with_handler(&group, handler))
}

/// A file with hooks that cannot be imported, and why.
#[derive(Debug, Clone)]
pub struct UnimportableFile {
    pub adapter: &'static Adapter,
    pub path: PathBuf,
    pub why: String,
}

/// Scripts and plugins beside the place of the generated ones.
fn own_programs(machine: &Machine, adapter: &'static Adapter) -> Vec<PathBuf> {
    let files = adapter.spec.files.iter();
    let files = files.filter(|file| file.scope == Scope::Project);
    let folders = files.filter_map(|file| {
        let path = machine.config_path(file)?;
        match adapter.config(file.variant.as_deref()).shape {
            ConfigShape::Scripts => Some(path),
            ConfigShape::Plugin => Some(path.parent()?.to_owned()),
            _ => None,
        }
    });
    let folders: Vec<PathBuf> = folders.collect();
    folders
        .iter()
        .flat_map(|folder| scripts::foreign_files(folder))
        .collect()
}

/// Hooks that stay where they are: an agent's own programs, and files of the user.
pub fn unimportable_files(machine: &Machine) -> Vec<UnimportableFile> {
    let mut found: Vec<UnimportableFile> = Vec::new();
    let mut add = |adapter, path: PathBuf, why: String| {
        if !found.iter().any(|other| other.path == path) {
            found.push(UnimportableFile { adapter, path, why });
        }
    };
    for adapter in clients() {
        let name = &adapter.spec.name;
        for target in Target::existing(machine, adapter, &[Scope::Project]) {
            if let Some(error) = target.syntax_error() {
                add(
                    adapter,
                    target.path.clone(),
                    format!("could not read it: {error}"),
                );
            }
        }
        for path in own_programs(machine, adapter) {
            let why = format!("a program for {name} alone, not a config entry");
            add(adapter, path, why);
        }
        for target in Target::existing(machine, adapter, &[Scope::Local, Scope::User]) {
            let count = native_hooks(machine, &target).len();
            if count > 0 {
                let plural = if count == 1 { "hook" } else { "hooks" };
                let whose = match target.scope {
                    Scope::Local => "your own for this project",
                    _ => "your own for every project",
                };
                add(
                    adapter,
                    target.path.clone(),
                    format!("{count} {plural}, {whose}"),
                );
            }
        }
    }
    found
}
