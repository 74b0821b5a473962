//! Encodes canonical hooks to an agent's config.
//!
//! Each `Placement` already has its event and matcher; this only writes them in
//! the agent's shape, and never reorders.

use anyhook_model::{Handler, Manifest};
use serde_json::{Map, Value, json};

use super::{MANIFEST_PROVIDER_DATA, canonical_field, file_keys, hook_keys};
use crate::spec::{Config, ConfigShape};
use crate::{Adapter, pointer};

/// One entry that is to be written.
#[derive(Debug, Clone)]
pub struct Placement {
    pub native_event: String,
    /// `None`: everything.
    pub matcher: Option<String>,
    /// The agent tests a matcher here at all.
    pub matchable: bool,
    /// The source had no matcher key where this agent would write an empty one.
    pub matcherless: bool,
    pub name: Option<String>,
    pub handler: Handler,
    /// `provider_data` of this agent, checked.
    pub data: Map<String, Value>,
}

impl Adapter {
    /// The variant of this agent's file from which a manifest was read.
    pub fn kept_variant<'a>(&self, manifest: &'a Manifest) -> Option<&'a str> {
        self.kept_file_data(manifest)?
            .get(file_keys::VARIANT)?
            .as_str()
    }

    /// What a manifest kept of this agent's own file.
    fn kept_file_data<'a>(&self, manifest: &'a Manifest) -> Option<&'a Value> {
        let data = manifest.extra.get(MANIFEST_PROVIDER_DATA)?;
        data.get(self.spec.id.as_ref())
    }

    /// A document with these hooks and nothing else, but for what the manifest
    /// kept of this agent's own file.
    pub fn encode_config(
        &self,
        manifest: &Manifest,
        placements: &[Placement],
        variant: Option<&str>,
    ) -> Value {
        let config = self.config(variant);
        let mut root = match (config.shape, placements) {
            // One file has one hook: several hooks are several files.
            (ConfigShape::Single, [one]) => listed(config, one),
            (ConfigShape::List | ConfigShape::Single, several) => {
                let entries = several.iter().map(|placement| listed(config, placement));
                let mut entries: Vec<Value> = entries.collect();
                if config.handler.unique_names {
                    number_names(&mut entries);
                }
                Value::Array(entries)
            }
            _ => event_map(config, placements),
        };
        let own = self.kept_file_data(manifest);
        let own = own.filter(|_| self.kept_variant(manifest) == variant);
        let own = own.unwrap_or(&Value::Null);
        let kept_list = |key| own.get(key).and_then(Value::as_array).into_iter().flatten();
        for entry in kept_list(file_keys::UNREAD_ENTRIES) {
            put_unread(config, &mut root, entry);
        }
        let mut preamble = config.preamble.clone();
        for key in kept_list(file_keys::ABSENT_PREAMBLE) {
            preamble.shift_remove(key.as_str().unwrap_or_default());
        }
        let mut document = Value::Object(preamble);
        let outside = own.get(file_keys::OTHER_SETTINGS);
        let mut outside = outside.cloned().unwrap_or_default();
        if let (Some(Value::Object(inside)), Value::Object(root)) =
            (pointer::take(&mut outside, "/$root"), &mut root)
        {
            // Hooks take precedence: an event that was empty may have some now.
            for (key, value) in inside {
                root.entry(key).or_insert(value);
            }
        }
        if outside.is_object() {
            pointer::overlay(&mut document, &outside);
        }
        if config.root.is_empty() {
            pointer::overlay(&mut document, &root);
        } else {
            pointer::put(&mut document, &config.root, root);
        }
        document
    }
}

fn event_map(config: &Config, placements: &[Placement]) -> Value {
    let mut map: Map<String, Value> = Map::new();
    for placement in placements {
        let spelled = config.spelled_event(&placement.native_event);
        let nested = placement
            .data
            .get(hook_keys::HAS_GROUP)
            .and_then(Value::as_bool);
        let nested = nested.unwrap_or(config.shape == ConfigShape::Grouped);
        let joined = placement.data.get(hook_keys::JOINS_PREVIOUS) == Some(&Value::Bool(true));
        let list = map.entry(spelled).or_insert_with(|| json!([]));
        let Value::Array(list) = list else { continue };
        let mut handler = handler_entry(config, placement);
        if !nested {
            put_matcher(config, placement, &mut handler, false);
            list.push(handler);
            continue;
        }
        let mut group = Value::Object(Map::new());
        put_matcher(config, placement, &mut group, true);
        let at = config.matcher.at.as_ref();
        let before = list
            .last_mut()
            // Either may have been edited since they were in one group.
            .filter(|before| {
                joined && (at.is_empty() || pointer::get(before, at) == pointer::get(&group, at))
            })
            .and_then(|group| group.get_mut("hooks"))
            .and_then(Value::as_array_mut);
        if let Some(hooks) = before {
            hooks.push(handler);
            continue;
        }
        if let Some(extra) = placement.data.get(hook_keys::GROUP_KEYS) {
            pointer::overlay(&mut group, extra);
        }
        pointer::put(&mut group, "/hooks", json!([handler]));
        list.push(group);
    }
    Value::Object(map)
}

/// Puts an entry that could not be decoded back in its place.
fn put_unread(config: &Config, root: &mut Value, unread: &Value) {
    if let Some(whole) = unread.get("root") {
        *root = whole.clone();
        return;
    }
    let number = |key: &str| usize::try_from(unread.get(key)?.as_u64()?).ok();
    let (Some(event), Some(index)) = (unread.get("event").and_then(Value::as_str), number("index"))
    else {
        return;
    };
    let list = match root {
        Value::Object(map) => map.entry(event).or_insert_with(|| json!([])),
        other => other,
    };
    let Value::Array(list) = list else { return };
    if let Some(entry) = unread.get("entry") {
        list.insert(index.min(list.len()), entry.clone());
        return;
    }
    let (handler, group) = (unread.get("handler"), unread.get("group"));
    let (Some(position), Some(handler), Some(group)) = (number("position"), handler, group) else {
        return;
    };
    let at = config.matcher.at.as_ref();
    let hooks = list
        .get_mut(index)
        // Under another matcher it would be another hook.
        .filter(|there| at.is_empty() || pointer::get(there, at) == pointer::get(group, at))
        .and_then(|there| there.get_mut("hooks"))
        .and_then(Value::as_array_mut);
    if let Some(hooks) = hooks {
        hooks.insert(position.min(hooks.len()), handler.clone());
    } else {
        let mut group = group.clone();
        pointer::put(&mut group, "/hooks", json!([handler]));
        list.push(group);
    }
}

fn put_matcher(config: &Config, placement: &Placement, entry: &mut Value, grouped: bool) {
    let at = config.matcher.at.as_ref();
    if at.is_empty() {
        return;
    }
    if let Some(written) = placement.data.get(hook_keys::NATIVE_MATCHER) {
        pointer::put(entry, at, written.clone());
        return;
    }
    match (&placement.matcher, &config.matcher.any) {
        (Some(matcher), _) if placement.matchable && config.matcher.list => {
            let names: Vec<&str> = matcher.split('|').collect();
            pointer::put(entry, at, json!(names));
        }
        (Some(matcher), _) if placement.matchable => pointer::put(entry, at, json!(matcher)),
        (_, Some(any)) if grouped && !placement.matcherless => pointer::put(entry, at, json!(any)),
        _ => {}
    }
}

/// An entry of a list: event, matcher and handler in one object.
fn listed(config: &Config, placement: &Placement) -> Value {
    let mut entry = Value::Object(Map::new());
    let spelled = config.spelled_event(&placement.native_event);
    let handler = handler_entry(config, placement);
    if let Some(name) = handler.get("name") {
        pointer::put(&mut entry, "/name", name.clone());
    }
    pointer::put(&mut entry, config.event_at(), json!(spelled));
    put_matcher(config, placement, &mut entry, false);
    pointer::overlay(&mut entry, &handler);
    // No key of the handler's data is the event.
    pointer::put(&mut entry, config.event_at(), json!(spelled));
    entry
}

/// Gives entries of the same name a number, from the second on.
fn number_names(entries: &mut [Value]) {
    let mut seen: Vec<String> = Vec::new();
    for entry in entries {
        let Some(name) = entry.get("name").and_then(Value::as_str) else {
            continue;
        };
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        let Some(free) = names.find(|name| !seen.contains(name)) else {
            continue;
        };
        pointer::put(entry, "/name", json!(free));
        seen.push(free);
    }
}

fn handler_entry(config: &Config, placement: &Placement) -> Value {
    let spec = &config.handler;
    let mut entry = Value::Object(Map::new());
    let kind = placement.handler.kind.as_str();
    let typed = placement
        .data
        .get(hook_keys::HAS_TYPE)
        .and_then(Value::as_bool);
    let typed = typed.unwrap_or(spec.write_type) || kind != "command";
    if let (Some(at), Some(native)) = (&spec.type_at, spec.types.get(kind))
        && typed
    {
        pointer::put(&mut entry, at, json!(native));
    }
    let bare = placement.data.get(hook_keys::ABSENT_CONSTANTS);
    let bare = bare
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    for (key, value) in &spec.constants {
        if !bare.iter().any(|one| one == key) && !placement.data.contains_key(key) {
            pointer::put(&mut entry, &format!("/{key}"), value.clone());
        }
    }
    let handler = serde_json::to_value(&placement.handler).unwrap_or_default();
    let name = placement.name.as_deref();
    let mut written: Vec<&str> = Vec::new();
    for field in &spec.fields {
        let to = field.to.as_ref();
        let spelled = placement.data.get(hook_keys::SECOND_POINTERS);
        let spelled = spelled.and_then(|map| map.get(to)?.as_str());
        let chosen = match spelled {
            Some(at) => field.at == at,
            None => !field.read_only,
        };
        if !chosen || written.contains(&to) {
            continue;
        }
        let name = name.or(spec.unnamed.as_deref());
        if let Some(native) =
            canonical_field(&handler, name, to).and_then(|value| field.codec.put(&value))
        {
            pointer::put(&mut entry, &field.at, native);
            written.push(to);
        }
    }
    let native_keys = placement.data.iter();
    for (key, value) in native_keys.filter(|(key, _)| !key.starts_with('$')) {
        // Data for one agent does not override the hook's own fields.
        let mut value = value.clone();
        if let Some(written) = entry.get(key)
            && !same_field(config, &handler, name, key, &value)
        {
            pointer::overlay(&mut value, written);
        }
        pointer::put(&mut entry, &pointer::to_key(key), value);
    }
    entry
}

/// Whether a native key's value equals the hook's field, in another spelling
/// (`30000` where the agent takes large numbers for milliseconds).
fn same_field(
    config: &Config,
    handler: &Value,
    name: Option<&str>,
    key: &str,
    value: &Value,
) -> bool {
    config.handler.fields.iter().any(|field| {
        field.at.strip_prefix('/') == Some(key)
            && field
                .codec
                .get(value)
                .is_some_and(|read| Some(read) == canonical_field(handler, name, &field.to))
    })
}
