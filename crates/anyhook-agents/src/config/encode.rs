//! Canonical hooks → agent's config.
//!
//! What goes where was decided before (see `Placement`); this only writes it
//! in the agent's shape, and never reorders.

use anyhook_model::{Handler, Manifest};
use serde_json::{Map, Value, json};

use super::{MANIFEST_PROVIDER_DATA, handler_field, kept, kept_file};
use crate::spec::{Config, Field, Shape};
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
        manifest
            .extra
            .get(MANIFEST_PROVIDER_DATA)?
            .get(self.spec.id.as_ref())?
            .get(kept_file::VARIANT)?
            .as_str()
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
        let mut root = match config.shape {
            Shape::List => Value::Array(
                placements
                    .iter()
                    .map(|placement| listed(config, placement))
                    .collect(),
            ),
            // One file holds one hook: several are several files.
            Shape::Single => match placements {
                [one] => listed(config, one),
                _ => Value::Array(
                    placements
                        .iter()
                        .map(|placement| listed(config, placement))
                        .collect(),
                ),
            },
            _ => event_map(config, placements),
        };
        let own = manifest
            .extra
            .get(MANIFEST_PROVIDER_DATA)
            .and_then(|data| data.get(self.spec.id.as_ref()))
            .filter(|_| self.kept_variant(manifest) == variant)
            .cloned()
            .unwrap_or_default();
        for entry in own
            .get(kept_file::UNREAD)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            put_unread(config, &mut root, entry);
        }
        let mut preamble = config.preamble.clone();
        for key in own
            .get(kept_file::BARE)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            preamble.shift_remove(key.as_str().unwrap_or_default());
        }
        let mut document = Value::Object(preamble);
        let mut outside = own.get(kept_file::FILE).cloned().unwrap_or_default();
        if let (Some(Value::Object(inside)), Value::Object(root)) =
            (pointer::take(&mut outside, "/$root"), &mut root)
        {
            // What the hooks say stands: an event that was empty may have some now.
            for (key, value) in inside {
                root.entry(key).or_insert(value);
            }
        }
        if outside.is_object() {
            pointer::overlay(&mut document, &outside);
        }
        if config.root.is_empty() {
            if let (Value::Object(map), Value::Object(_)) = (document, &root) {
                let mut whole = Value::Object(map);
                pointer::overlay(&mut whole, &root);
                return whole;
            }
            return root;
        }
        pointer::put(&mut document, &config.root, root);
        document
    }
}

fn event_map(config: &Config, placements: &[Placement]) -> Value {
    let mut map: Map<String, Value> = Map::new();
    for placement in placements {
        let spelled = config
            .event_names
            .get(placement.native_event.as_str())
            .map_or(placement.native_event.as_str(), AsRef::as_ref);
        let nested = placement
            .data
            .get(kept::NESTED)
            .and_then(Value::as_bool)
            .unwrap_or(config.shape == Shape::Grouped);
        let joined = placement.data.get(kept::JOINED) == Some(&Value::Bool(true));
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
            // Both may have been edited since they stood in one group.
            .filter(|before| {
                joined && (at.is_empty() || pointer::get(before, at) == pointer::get(&group, at))
            })
            .and_then(|group| group.get_mut("hooks"))
            .and_then(Value::as_array_mut);
        if let Some(hooks) = before {
            hooks.push(handler);
            continue;
        }
        if let Some(extra) = placement.data.get(kept::GROUP) {
            pointer::overlay(&mut group, extra);
        }
        pointer::put(&mut group, "/hooks", json!([handler]));
        list.push(group);
    }
    Value::Object(map)
}

/// An entry that could not be read goes back to where it stood.
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
        Value::Array(list) => list,
        Value::Object(map) => match map.entry(event).or_insert_with(|| json!([])) {
            Value::Array(list) => list,
            _ => return,
        },
        _ => return,
    };
    if let Some(entry) = unread.get("entry") {
        list.insert(index.min(list.len()), entry.clone());
        return;
    }
    let (Some(position), Some(handler), Some(group)) = (
        number("position"),
        unread.get("handler"),
        unread.get("group"),
    ) else {
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
    if let Some(written) = placement.data.get(kept::MATCHER) {
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
    let spelled = config
        .event_names
        .get(placement.native_event.as_str())
        .map_or(placement.native_event.as_str(), AsRef::as_ref);
    let handler = handler_entry(config, placement);
    if let Some(name) = handler.get("name") {
        pointer::put(&mut entry, "/name", name.clone());
    }
    pointer::put(
        &mut entry,
        config.event_at.as_deref().unwrap_or("/event"),
        json!(spelled),
    );
    put_matcher(config, placement, &mut entry, false);
    pointer::overlay(&mut entry, &handler);
    entry
}

fn handler_entry(config: &Config, placement: &Placement) -> Value {
    let spec = &config.handler;
    let mut entry = Value::Object(Map::new());
    let kind = placement.handler.kind.as_str();
    let typed = placement
        .data
        .get(kept::TYPED)
        .and_then(Value::as_bool)
        .unwrap_or(spec.write_type)
        || kind != "command";
    if let (Some(at), Some(native)) = (&spec.type_at, spec.types.get(kind))
        && typed
    {
        pointer::put(&mut entry, at, json!(native));
    }
    let bare = placement.data.get(kept::BARE).and_then(Value::as_array);
    for (key, value) in &spec.constants {
        if bare.is_some_and(|bare| bare.iter().any(|one| one == key))
            || placement.data.contains_key(key)
        {
            continue;
        }
        pointer::put(&mut entry, &format!("/{key}"), value.clone());
    }
    let mut written: Vec<&str> = Vec::new();
    for field in &spec.fields {
        let to = field.to.as_ref();
        let spelled = placement
            .data
            .get(kept::SPELLED)
            .and_then(|map| map.get(to))
            .and_then(Value::as_str);
        let chosen = match spelled {
            Some(at) => field.at == at,
            None => !field.read_only,
        };
        if !chosen || written.contains(&to) {
            continue;
        }
        if let Some(native) = native_field(config, field, placement) {
            pointer::put(&mut entry, &field.at, native);
            written.push(to);
        }
    }
    for (key, value) in placement
        .data
        .iter()
        .filter(|(key, _)| !key.starts_with('$'))
    {
        // What the hook says itself is not changed by data for one agent.
        let mut value = value.clone();
        if let Some(said) = entry.get(key)
            && !same_field(config, placement, key, &value)
        {
            pointer::overlay(&mut value, said);
        }
        pointer::put(
            &mut entry,
            &format!("/{}", key.replace('~', "~0").replace('/', "~1")),
            value,
        );
    }
    entry
}

fn native_field(config: &Config, field: &Field, placement: &Placement) -> Option<Value> {
    let name = placement
        .name
        .as_deref()
        .or(config.handler.unnamed.as_deref());
    let value = handler_field(&placement.handler, name, &field.to)?;
    field.codec.put(&value)
}

/// Whether a native key's value says what the hook says, in another spelling
/// (`30000` where the agent takes large numbers for milliseconds).
fn same_field(config: &Config, placement: &Placement, key: &str, value: &Value) -> bool {
    config.handler.fields.iter().any(|field| {
        field.at.strip_prefix('/') == Some(key)
            && field.codec.get(value).is_some_and(|read| {
                Some(read)
                    == handler_field(&placement.handler, placement.name.as_deref(), &field.to)
            })
    })
}
