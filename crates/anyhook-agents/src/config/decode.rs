//! Decodes an agent's config to the canonical manifest.

use anyhook_model::hook::SPEC;
use anyhook_model::registry::{self, Tier};
use anyhook_model::{Handler, HandlerKind, Hook, Manifest, Matcher, OnFailure};
use serde_json::{Map, Value, json};

use super::{MANIFEST_PROVIDER_DATA, file_keys, hook_keys, set_canonical_field, split};
use crate::spec::{Blocking, Config, ConfigShape, EventSpec, MatcherSubject};
use crate::{Adapter, pointer};

/// A problem of a config that the user should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFinding {
    /// Position of the hook in the manifest, from 0.
    pub hook: Option<usize>,
    pub field: String,
    pub message: String,
}

/// A config as a manifest.
#[derive(Debug, Clone)]
pub struct DecodedConfig {
    pub manifest: Manifest,
    pub findings: Vec<ConfigFinding>,
    /// Hooks (by position) whose matcher key was missing rather than empty:
    /// the same to the agent, but not to a person who compares files.
    pub matcherless: Vec<usize>,
}

const FOREIGN_EVENT_REASON: &str = "is at an event that this agent does not have";

struct Decoder<'a> {
    adapter: &'a Adapter,
    config: &'a Config,
    hooks: Vec<Hook>,
    findings: Vec<ConfigFinding>,
    matcherless: Vec<usize>,
    unread: Vec<Value>,
    /// The native event of each hook.
    natives: Vec<String>,
}

/// One entry of a config on its way to a hook.
#[derive(Clone, Copy)]
struct ConfigEntry<'a> {
    event: &'a str,
    index: usize,
    group: Option<&'a Map<String, Value>>,
    handler: &'a Map<String, Value>,
    joined: bool,
}

impl Adapter {
    /// Reads a config document of this agent.
    pub fn decode_config(&self, document: &Value, variant: Option<&str>) -> DecodedConfig {
        let config = self.config(variant);
        let variant = variant.filter(|name| self.spec.config.variant.contains_key(*name));
        let mut decoder = Decoder {
            adapter: self,
            config,
            hooks: Vec::new(),
            findings: Vec::new(),
            matcherless: Vec::new(),
            unread: Vec::new(),
            natives: Vec::new(),
        };
        let mut file = document.clone();
        let root = if config.root.is_empty() {
            Some(std::mem::take(&mut file))
        } else {
            pointer::take(&mut file, &config.root)
        };
        let mut outside = file.as_object().cloned().unwrap_or_default();
        let bare = absent_keys(&config.preamble, document);
        outside.retain(|key, value| config.preamble.get(key) != Some(value));
        let is_list = matches!(config.shape, ConfigShape::List | ConfigShape::Single);
        match root {
            Some(Value::Object(map)) if !is_list => {
                for (key, value) in &map {
                    let is_event = !config.not_events.iter().any(|other| other == key)
                        && (value.is_object()
                            || value.as_array().is_some_and(|entries| !entries.is_empty()));
                    if is_event {
                        decoder.decode_event(key, value);
                    } else if config.root.is_empty() {
                        outside.insert(key.clone(), value.clone());
                    } else {
                        let inside = outside.entry("$root").or_insert(Value::Null);
                        pointer::put(inside, &pointer::to_key(key), value.clone());
                    }
                }
            }
            Some(Value::Array(items)) if is_list => {
                for (index, item) in items.iter().enumerate() {
                    decoder.decode_listed(item, index);
                }
            }
            Some(single @ Value::Object(_)) if config.shape == ConfigShape::Single => {
                decoder.decode_listed(&single, 0);
            }
            Some(other) => {
                let message = format!("{} has its hooks in a different form", self.spec.name);
                decoder.find(None, "hooks", message);
                decoder.unread.push(json!({ "root": other }));
            }
            None => decoder.find(None, "hooks", "there are no hooks in this file".to_owned()),
        }
        decoder.finish(outside, &bare, variant)
    }
}

impl Decoder<'_> {
    fn find(&mut self, hook: Option<usize>, field: &str, message: String) {
        self.findings.push(ConfigFinding {
            hook,
            field: field.to_owned(),
            message,
        });
    }

    /// Decodes all entries of one event, with or without groups.
    fn decode_event(&mut self, event: &str, value: &Value) {
        let list = value.as_array();
        let entries = list.map_or(std::slice::from_ref(value), Vec::as_slice);
        let native = self.native_name(event);
        for (index, entry) in entries.iter().enumerate() {
            if self.is_foreign(&native) {
                self.skip(event, index, entry, FOREIGN_EVENT_REASON);
                continue;
            }
            let Some(map) = entry.as_object() else {
                self.skip(event, index, entry, "is not an object");
                continue;
            };
            let single = ConfigEntry {
                event,
                index,
                group: None,
                handler: map,
                joined: false,
            };
            let Some(handlers) = map.get("hooks").and_then(Value::as_array) else {
                self.decode_entry(&native, single);
                continue;
            };
            if !handlers.iter().any(|handler| self.reads(handler)) {
                self.skip(event, index, entry, "has no handler with a canonical form");
                continue;
            }
            let mut joined = false;
            for (position, handler) in handlers.iter().enumerate() {
                let Some(handler) = handler.as_object().filter(|_| self.reads(handler)) else {
                    self.skip_handler(event, index, map, position, handler);
                    continue;
                };
                let grouped = ConfigEntry {
                    group: Some(map),
                    handler,
                    joined,
                    ..single
                };
                self.decode_entry(&native, grouped);
                joined = true;
            }
        }
    }

    /// Decodes one hook that names its event.
    fn decode_listed(&mut self, item: &Value, index: usize) {
        let at = self.config.event_at();
        let event = pointer::get(item, at).and_then(Value::as_str);
        let (Value::Object(_), Some(event)) = (item, event) else {
            self.skip("", index, item, "does not name its event");
            return;
        };
        let native = self.native_name(event);
        if self.is_foreign(&native) {
            self.skip(event, index, item, FOREIGN_EVENT_REASON);
            return;
        }
        let mut handler = item.clone();
        pointer::take(&mut handler, at);
        if let Value::Object(handler) = &handler {
            let entry = ConfigEntry {
                event,
                index,
                group: None,
                handler,
                joined: false,
            };
            self.decode_entry(&native, entry);
        }
    }

    /// Whether an unknown event has the name of a canonical one, which it would be
    /// mistaken for.
    fn is_foreign(&self, native: &str) -> bool {
        self.adapter.event_by_native(native).is_none() && registry::event(native).is_some()
    }

    /// The main name of an event that a variant spells differently.
    fn native_name(&self, event: &str) -> String {
        let mut names = self.config.event_names.iter();
        let native = names.find(|(_, spelled)| *spelled == event);
        native.map_or(event, |(native, _)| native).to_owned()
    }

    /// The type of a handler, and whether the handler states it, where it can;
    /// `None` for a type without a canonical form, such as `null`.
    fn kind(&self, handler: &Value) -> Option<(HandlerKind, Option<bool>)> {
        let spec = &self.config.handler;
        let Some(at) = &spec.type_at else {
            return Some((HandlerKind::Command, None));
        };
        let Some(written) = pointer::find(handler, at) else {
            return Some((HandlerKind::Command, Some(false)));
        };
        let mut types = spec.types.iter();
        let (kind, _) = types.find(|(_, native)| written == native.as_ref())?;
        Some((HandlerKind::parse(kind)?, Some(true)))
    }

    fn reads(&self, handler: &Value) -> bool {
        handler.is_object() && self.kind(handler).is_some()
    }

    /// One handler of a group that has others.
    fn skip_handler(
        &mut self,
        event: &str,
        index: usize,
        group: &Map<String, Value>,
        position: usize,
        handler: &Value,
    ) {
        let message = format!(
            "handler {} of entry {} of `{event}` has no canonical form; it is kept for this agent only",
            position + 1,
            index + 1
        );
        self.find(None, event, message);
        self.unread.push(json!({
            "event": event, "index": index, "position": position, "handler": handler,
            "group": without_hooks(group),
        }));
    }

    fn skip(&mut self, event: &str, index: usize, entry: &Value, why: &str) {
        let number = index + 1;
        let message = format!("entry {number} of `{event}` {why}; it is kept for this agent only");
        self.find(None, event, message);
        self.unread
            .push(json!({"event": event, "index": index, "entry": entry}));
    }

    fn decode_entry(&mut self, native: &str, entry: ConfigEntry<'_>) {
        let adapter = self.adapter;
        let spec = adapter.event_by_native(native);
        let mut rest = Value::Object(entry.handler.clone());
        let Some((kind, typed)) = self.kind(&rest) else {
            let whole = entry.group.unwrap_or(entry.handler).clone();
            let why = "has a handler type without a canonical form";
            self.skip(entry.event, entry.index, &Value::Object(whole), why);
            return;
        };
        if let Some(at) = &self.config.handler.type_at {
            pointer::take(&mut rest, at);
        }
        let mut data = Map::new();
        let written = self.config.handler.write_type || kind != HandlerKind::Command;
        if let Some(typed) = typed.filter(|typed| *typed != written) {
            data.insert(hook_keys::HAS_TYPE.into(), Value::Bool(typed));
        }
        let matcher = self.matcher(spec, &entry, &mut rest, &mut data);
        let mut handler = json!({ "type": kind });
        let mut name = None;
        self.fields(&mut handler, &mut name, &mut rest, &mut data);
        let handler: Handler = serde_json::from_value(handler).unwrap_or_default();
        let closed = self.config.handler.fail_closed.as_ref();
        let blocks =
            closed.is_some_and(|closed| pointer::get(&rest, &closed.at) == Some(&closed.value));
        if let Some(group) = entry.group {
            self.group(group, entry.joined, &mut data);
        }
        let nested = entry.group.is_some();
        if nested != (self.config.shape == ConfigShape::Grouped)
            && matches!(self.config.shape, ConfigShape::Grouped | ConfigShape::Flat)
        {
            data.insert(hook_keys::HAS_GROUP.into(), Value::Bool(nested));
        }
        let constants = &self.config.handler.constants;
        let bare = absent_keys(constants, &rest);
        if !bare.is_empty() {
            data.insert(hook_keys::ABSENT_CONSTANTS.into(), json!(bare));
        }
        if let Value::Object(rest) = &mut rest {
            rest.retain(|key, value| constants.get(key) != Some(value));
            data.append(rest);
        }
        let canonical = spec.map_or(native, |spec| spec.is.as_deref().unwrap_or(&spec.native));
        // An unknown event is kept by name, so that it is written back.
        if spec.is_none_or(|spec| spec.is.is_some() && !self.natural(spec)) {
            data.insert(hook_keys::NATIVE_EVENT.into(), json!(native));
        }
        let mut provider_data = Map::new();
        if !data.is_empty() {
            provider_data.insert(adapter.spec.id.to_string(), Value::Object(data));
        }
        self.hooks.push(Hook {
            name,
            event: canonical.to_owned(),
            matcher,
            handler,
            blocking: spec
                .is_some_and(|spec| matches!(spec.blocking, Blocking::Prevent | Blocking::Retry)),
            on_failure: blocks.then_some(OnFailure::Block),
            provider_data,
            ..Hook::default()
        });
        self.natives.push(native.to_owned());
        if spec.is_none() {
            let position = self.hooks.len() - 1;
            let agent = &adapter.spec.name;
            let message = format!(
                "`{native}` is an unknown event of {agent}; it is kept for this agent only"
            );
            self.find(Some(position), "event", message);
        }
    }

    /// Whether the canonical event is written as this native one.
    fn natural(&self, spec: &EventSpec) -> bool {
        let canonical = spec.is.as_deref();
        let known = canonical.and_then(registry::event);
        let is_exclusive = known.is_some_and(|known| known.tier == Tier::Exclusive);
        let written = canonical.into_iter();
        let mut written = written.flat_map(|canonical| self.adapter.written_events(canonical));
        if is_exclusive && written.nth(1).is_some() {
            return false;
        }
        let generic = canonical.and_then(|canonical| self.adapter.event_for(canonical, None));
        !spec.read_only && generic.is_none_or(|generic| generic.native == spec.native)
    }

    fn matcher(
        &mut self,
        spec: Option<&EventSpec>,
        entry: &ConfigEntry<'_>,
        rest: &mut Value,
        data: &mut Map<String, Value>,
    ) -> Option<Matcher> {
        let at = self.config.matcher.at.as_ref();
        let text = if at.is_empty() {
            None
        } else if let Some(group) = entry.group {
            pointer::get(&without_hooks(group), at).cloned()
        } else {
            pointer::take(rest, at)
        };
        if text.is_none() {
            self.matcherless.push(self.hooks.len());
        }
        let split = spec.filter(|spec| !spec.tools.is_empty());
        let split = split.map(split::matcher);
        let Some(text) = text else { return split };
        let form = &self.config.matcher;
        let about_tools = spec.is_none_or(|spec| spec.matcher == MatcherSubject::Tool);
        if form.list && text.is_array() && split.is_none() {
            let matcher = about_tools.then(|| self.adapter.read_matcher_as(form, &text));
            let matcher = matcher.flatten();
            data.insert(hook_keys::NATIVE_MATCHER.into(), text);
            return matcher;
        }
        let Some(written) = text.as_str() else {
            data.insert(hook_keys::NATIVE_MATCHER.into(), text);
            return split;
        };
        if written.is_empty() || form.any_read.iter().any(|any| any == written) {
            if form.any.as_deref() != Some(written) {
                data.insert(hook_keys::NATIVE_MATCHER.into(), text);
            }
            return split;
        }
        if spec.is_some_and(|spec| spec.subject().is_some()) && split.is_none() {
            let matcher = self.adapter.read_subject(form, written);
            if self.adapter.translate_subject(form, &matcher).as_deref() != Some(written) {
                data.insert(hook_keys::NATIVE_MATCHER.into(), text);
            }
            return Some(matcher);
        }
        if !about_tools || split.is_some() {
            data.insert(hook_keys::NATIVE_MATCHER.into(), text);
            return split;
        }
        let matcher = self.adapter.read_matcher_as(form, &text);
        let again = matcher.as_ref();
        let again = again.map(|it| self.adapter.translate_as(form, it, Some(self.adapter)));
        if again.and_then(|again| again.text).as_deref() != Some(written) {
            data.insert(hook_keys::NATIVE_MATCHER.into(), text);
        }
        matcher
    }

    fn fields(
        &self,
        handler: &mut Value,
        name: &mut Option<String>,
        rest: &mut Value,
        data: &mut Map<String, Value>,
    ) {
        let mut seen: Vec<&str> = Vec::new();
        for field in &self.config.handler.fields {
            if seen.contains(&field.to.as_ref()) {
                continue;
            }
            let Some((native, value)) = pointer::get(rest, &field.at)
                .and_then(|native| Some((native, field.codec.get(native)?)))
            else {
                continue;
            };
            let exact = field.codec.is_exact(native, &value);
            if (!exact && field.to != "timeout")
                || !set_canonical_field(handler, name, &field.to, &value)
            {
                continue;
            }
            seen.push(&field.to);
            let mut fields = self.config.handler.fields.iter();
            let first = fields.find(|other| other.to == field.to);
            if exact {
                pointer::take(rest, &field.at);
                if field.read_only || first.is_some_and(|first| first.at != field.at) {
                    let spelled = data.entry(hook_keys::SECOND_POINTERS);
                    let spelled = spelled.or_insert(Value::Null);
                    pointer::put(spelled, &format!("/{}", field.to), json!(field.at));
                }
            }
        }
        if name
            .as_deref()
            .is_some_and(|name| self.config.handler.is_unnamed(name))
        {
            *name = None;
        }
    }

    fn group(&self, group: &Map<String, Value>, joined: bool, data: &mut Map<String, Value>) {
        let mut rest = without_hooks(group);
        if !self.config.matcher.at.is_empty() {
            pointer::take(&mut rest, &self.config.matcher.at);
        }
        if joined {
            data.insert(hook_keys::JOINS_PREVIOUS.into(), Value::Bool(true));
        } else if rest.as_object().is_some_and(|rest| !rest.is_empty()) {
            data.insert(hook_keys::GROUP_KEYS.into(), rest);
        }
    }

    fn finish(
        self,
        outside: Map<String, Value>,
        bare: &[&String],
        variant: Option<&str>,
    ) -> DecodedConfig {
        let hooks = split::merge(self.adapter, self.hooks, &self.natives);
        let mut own = Map::new();
        if !outside.is_empty() {
            own.insert(file_keys::OTHER_SETTINGS.into(), Value::Object(outside));
        }
        if !self.unread.is_empty() {
            own.insert(file_keys::UNREAD_ENTRIES.into(), Value::Array(self.unread));
        }
        if let Some(variant) = variant {
            own.insert(file_keys::VARIANT.into(), json!(variant));
        }
        if !bare.is_empty() {
            own.insert(file_keys::ABSENT_PREAMBLE.into(), json!(bare));
        }
        let mut extra = Map::new();
        if !own.is_empty() {
            let own = json!({ self.adapter.spec.id.as_ref(): own });
            extra.insert(MANIFEST_PROVIDER_DATA.into(), own);
        }
        DecodedConfig {
            manifest: Manifest {
                spec: SPEC.to_owned(),
                hooks,
                sequential: false,
                extra,
            },
            findings: self.findings,
            matcherless: self.matcherless,
        }
    }
}

/// The keys of a group that apply to all its handlers.
fn without_hooks(group: &Map<String, Value>) -> Value {
    let mut rest = group.clone();
    rest.shift_remove("hooks");
    Value::Object(rest)
}

/// The expected keys that a native object lacks.
fn absent_keys<'a>(expected: &'a Map<String, Value>, native: &Value) -> Vec<&'a String> {
    let keys = expected.keys();
    keys.filter(|key| native.get(key.as_str()).is_none())
        .collect()
}
