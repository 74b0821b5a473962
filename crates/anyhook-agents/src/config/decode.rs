//! Agent's config → canonical manifest.

use anyhook_model::hook::SPEC;
use anyhook_model::{Handler, HandlerKind, Hook, Manifest, Matcher, Platform, TimeoutAction};
use serde_json::{Map, Value, json};

use super::{MANIFEST_PROVIDER_DATA, kept, kept_file, set_handler_field, split};
use crate::spec::{Blocking, Config, Event, Shape};
use crate::{Adapter, pointer};

/// Something that a person should know of a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Position of the hook in the manifest, from 0.
    pub hook: Option<usize>,
    pub field: String,
    pub message: String,
}

/// A config, understood.
#[derive(Debug, Clone)]
pub struct ConfigDecoded {
    pub manifest: Manifest,
    pub findings: Vec<Finding>,
    /// Hooks (by position) whose matcher key was missing rather than empty:
    /// the same to the agent, but not to a person who compares files.
    pub matcherless: Vec<usize>,
}

struct Decoder<'a> {
    adapter: &'a Adapter,
    config: &'a Config,
    hooks: Vec<Hook>,
    findings: Vec<Finding>,
    matcherless: Vec<usize>,
    unread: Vec<Value>,
    /// The native event of each hook.
    natives: Vec<String>,
}

/// One entry of a config on its way to a hook.
struct Entry<'a> {
    event: &'a str,
    index: usize,
    group: Option<&'a Map<String, Value>>,
    handler: &'a Map<String, Value>,
    joined: bool,
}

impl Adapter {
    /// Reads a config document of this agent.
    pub fn decode_config(&self, document: &Value, variant: Option<&str>) -> ConfigDecoded {
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
        let bare: Vec<&String> = config
            .preamble
            .keys()
            .filter(|key| document.get(key.as_str()).is_none())
            .collect();
        outside.retain(|key, value| config.preamble.get(key) != Some(value));
        match root {
            Some(Value::Object(map))
                if matches!(
                    config.shape,
                    Shape::Grouped | Shape::Flat | Shape::Scripts | Shape::Plugin
                ) =>
            {
                for (key, value) in &map {
                    let is_event = !config.not_events.iter().any(|other| other == key)
                        && (value.is_object()
                            || value.as_array().is_some_and(|entries| !entries.is_empty()));
                    if is_event {
                        decoder.event(key, value);
                    } else if config.root.is_empty() {
                        outside.insert(key.clone(), value.clone());
                    } else {
                        pointer::put(
                            outside.entry("$root").or_insert(Value::Null),
                            &format!("/{}", key.replace('~', "~0").replace('/', "~1")),
                            value.clone(),
                        );
                    }
                }
            }
            Some(Value::Array(items)) if matches!(config.shape, Shape::List | Shape::Single) => {
                for (index, item) in items.iter().enumerate() {
                    decoder.listed(item, index);
                }
            }
            Some(single @ Value::Object(_)) if config.shape == Shape::Single => {
                decoder.listed(&single, 0);
            }
            Some(other) => {
                decoder.find(
                    None,
                    "hooks",
                    format!(
                        "{} keeps its hooks in another form than this",
                        self.spec.name
                    ),
                );
                decoder.unread.push(json!({ "root": other }));
            }
            None => decoder.find(None, "hooks", "there are no hooks in this file".to_owned()),
        }
        decoder.finish(outside, &bare, variant)
    }
}

impl Decoder<'_> {
    fn find(&mut self, hook: Option<usize>, field: &str, message: String) {
        self.findings.push(Finding {
            hook,
            field: field.to_owned(),
            message,
        });
    }

    /// All entries of one event, with or without groups.
    fn event(&mut self, event: &str, value: &Value) {
        let single = [value.clone()];
        let entries = value.as_array().map_or(single.as_slice(), Vec::as_slice);
        let native = self.native_name(event);
        for (index, entry) in entries.iter().enumerate() {
            if self.is_foreign(&native) {
                self.skip(
                    event,
                    index,
                    entry,
                    "is at an event that this agent does not have",
                );
                continue;
            }
            let Some(map) = entry.as_object() else {
                self.skip(event, index, entry, "is not an object");
                continue;
            };
            match map.get("hooks").and_then(Value::as_array) {
                Some(handlers) => {
                    if !handlers.iter().any(|handler| self.reads(handler)) {
                        self.skip(event, index, entry, "has no handler with a canonical form");
                        continue;
                    }
                    let mut joined = false;
                    for (position, handler) in handlers.iter().enumerate() {
                        match handler.as_object().filter(|_| self.reads(handler)) {
                            Some(handler) => {
                                self.entry(
                                    &native,
                                    Entry {
                                        event,
                                        index,
                                        group: Some(map),
                                        handler,
                                        joined,
                                    },
                                );
                                joined = true;
                            }
                            None => self.skip_handler(event, index, map, position, handler),
                        }
                    }
                }
                None => self.entry(
                    &native,
                    Entry {
                        event,
                        index,
                        group: None,
                        handler: map,
                        joined: false,
                    },
                ),
            }
        }
    }

    /// One hook that says its own event.
    fn listed(&mut self, item: &Value, index: usize) {
        let at = self.config.event_at.as_deref().unwrap_or("/event");
        let (Some(map), Some(event)) = (
            item.as_object(),
            pointer::get(item, at).and_then(Value::as_str),
        ) else {
            self.skip("", index, item, "does not say its event");
            return;
        };
        let native = self.native_name(event);
        if self.is_foreign(&native) {
            self.skip(
                event,
                index,
                item,
                "is at an event that this agent does not have",
            );
            return;
        }
        let mut handler = Value::Object(map.clone());
        pointer::take(&mut handler, at);
        if let Value::Object(handler) = &handler {
            self.entry(
                &native,
                Entry {
                    event,
                    index,
                    group: None,
                    handler,
                    joined: false,
                },
            );
        }
    }

    /// An unknown event by a canonical name would be taken for that one.
    fn is_foreign(&self, native: &str) -> bool {
        self.adapter.event_by_native(native).is_none()
            && anyhook_model::registry::event(native).is_some()
    }

    /// The main name of an event that a variant spells in its own way.
    fn native_name(&self, event: &str) -> String {
        self.config
            .event_names
            .iter()
            .find(|(_, spelled)| *spelled == event)
            .map_or_else(|| event.to_owned(), |(native, _)| native.to_string())
    }

    /// What a handler is, and whether it says so, where it can; `None` when it
    /// is of a type that has no canonical form. A `null` is such a type.
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
        self.find(
            None,
            event,
            format!(
                "handler {} of entry {} of `{event}` has no canonical form; it is kept for this agent and converted for no other",
                position + 1,
                index + 1
            ),
        );
        self.unread.push(json!({
            "event": event, "index": index, "position": position, "handler": handler,
            "group": without_hooks(group),
        }));
    }

    fn skip(&mut self, event: &str, index: usize, entry: &Value, why: &str) {
        self.find(
            None,
            event,
            format!(
                "entry {} of `{event}` {why}; it is kept for this agent and converted for no other",
                index + 1
            ),
        );
        self.unread
            .push(json!({"event": event, "index": index, "entry": entry}));
    }

    fn entry(&mut self, native: &str, entry: Entry<'_>) {
        let adapter = self.adapter;
        let spec = adapter.event_by_native(native);
        let mut rest = Value::Object(entry.handler.clone());
        let Some((kind, typed)) = self.kind(&rest) else {
            let whole = entry.group.unwrap_or(entry.handler).clone();
            self.skip(
                entry.event,
                entry.index,
                &Value::Object(whole),
                "has a handler type that has no canonical form",
            );
            return;
        };
        if let Some(at) = &self.config.handler.type_at {
            pointer::take(&mut rest, at);
        }
        let mut data = Map::new();
        let written = self.config.handler.write_type || kind != HandlerKind::Command;
        if let Some(typed) = typed.filter(|typed| *typed != written) {
            data.insert(kept::TYPED.into(), Value::Bool(typed));
        }
        let matcher = self.matcher(spec, &entry, &mut rest, &mut data);
        let mut handler = Handler {
            kind,
            platform: Platform::default(),
            ..Handler::default()
        };
        let mut name = None;
        self.fields(&mut handler, &mut name, &mut rest, &mut data);
        if let Some(closed) = &self.config.handler.fail_closed
            && pointer::get(&rest, &closed.at) == Some(&closed.value)
        {
            handler.timeout_action = Some(TimeoutAction::Block);
        }
        if let Some(group) = entry.group {
            self.group(group, entry.joined, &mut data);
        }
        let nested = entry.group.is_some();
        if nested != (self.config.shape == Shape::Grouped)
            && matches!(self.config.shape, Shape::Grouped | Shape::Flat)
        {
            data.insert(kept::NESTED.into(), Value::Bool(nested));
        }
        let constants = &self.config.handler.constants;
        let bare: Vec<&String> = constants
            .keys()
            .filter(|key| rest.get(key.as_str()).is_none())
            .collect();
        if !bare.is_empty() {
            data.insert(kept::BARE.into(), json!(bare));
        }
        if let Value::Object(rest) = &mut rest {
            rest.retain(|key, value| constants.get(key) != Some(value));
            data.append(rest);
        }
        let canonical = spec
            .and_then(|spec| spec.is.as_deref())
            .or(spec.map(|spec| spec.native.as_ref()))
            .unwrap_or(native);
        if let Some(spec) = spec
            && spec.is.is_some()
            && !self.natural(spec)
        {
            data.insert(kept::EVENT.into(), json!(native));
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
            degradation: Map::new(),
            capabilities: Vec::new(),
            provider_data,
            extra: Map::new(),
        });
        self.natives.push(native.to_owned());
        if spec.is_none() {
            let position = self.hooks.len() - 1;
            self.find(Some(position), "event", format!("`{native}` is an event of {} that is not known here; it is carried for this agent only", adapter.spec.name));
        }
    }

    /// Whether the canonical event is written as this native one.
    fn natural(&self, spec: &Event) -> bool {
        let generic = spec
            .is
            .as_deref()
            .and_then(|canonical| self.adapter.event_for(canonical, None));
        !spec.read_only && generic.is_none_or(|generic| generic.native == spec.native)
    }

    fn matcher(
        &mut self,
        spec: Option<&Event>,
        entry: &Entry<'_>,
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
        let split = spec
            .filter(|spec| !spec.tools.is_empty())
            .map(split::matcher);
        let Some(text) = text else { return split };
        if self.config.matcher.list && text.is_array() && split.is_none() {
            let about_tools = spec.is_none_or(|spec| spec.matcher == "tool");
            let matcher = about_tools
                .then(|| self.adapter.read_matcher_as(&self.config.matcher, &text))
                .flatten();
            data.insert(kept::MATCHER.into(), text);
            return matcher;
        }
        let Some(written) = text.as_str() else {
            data.insert(kept::MATCHER.into(), text);
            return split;
        };
        let any = self
            .config
            .matcher
            .any_read
            .iter()
            .any(|any| any == written);
        if any || written.is_empty() {
            if self.config.matcher.any.as_deref() != Some(written) {
                data.insert(kept::MATCHER.into(), text);
            }
            return split;
        }
        if spec.is_some_and(|spec| spec.matcher != "tool") || split.is_some() {
            data.insert(kept::MATCHER.into(), text);
            return split;
        }
        let form = &self.config.matcher;
        let matcher = self.adapter.read_matcher_as(form, &text);
        let again = matcher
            .as_ref()
            .map(|matcher| self.adapter.translate_as(form, matcher, Some(self.adapter)));
        if again.and_then(|again| again.text).as_deref() != Some(written) {
            data.insert(kept::MATCHER.into(), text);
        }
        matcher
    }

    fn fields(
        &self,
        handler: &mut Handler,
        name: &mut Option<String>,
        rest: &mut Value,
        data: &mut Map<String, Value>,
    ) {
        let mut seen: Vec<&str> = Vec::new();
        for field in &self.config.handler.fields {
            if seen.contains(&field.to.as_ref()) {
                continue;
            }
            let Some(native) = pointer::get(rest, &field.at) else {
                continue;
            };
            let Some(value) = field.codec.get(native) else {
                continue;
            };
            if !field.codec.is_exact(native, &value) && field.to != "timeout" {
                continue;
            }
            let exact = field.codec.is_exact(native, &value);
            if !set_handler_field(handler, name, &field.to, &value) {
                continue;
            }
            seen.push(&field.to);
            let first = self
                .config
                .handler
                .fields
                .iter()
                .find(|other| other.to == field.to);
            if exact {
                pointer::take(rest, &field.at);
                if first.is_some_and(|first| first.at != field.at) {
                    pointer::put(
                        data.entry(kept::SPELLED).or_insert(Value::Null),
                        &format!("/{}", field.to),
                        json!(field.at),
                    );
                }
            }
        }
        if *name
            == self
                .config
                .handler
                .unnamed
                .as_ref()
                .map(ToString::to_string)
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
            data.insert(kept::JOINED.into(), Value::Bool(true));
        } else if rest.as_object().is_some_and(|rest| !rest.is_empty()) {
            data.insert(kept::GROUP.into(), rest);
        }
    }

    fn finish(
        self,
        outside: Map<String, Value>,
        bare: &[&String],
        variant: Option<&str>,
    ) -> ConfigDecoded {
        let hooks = split::merge(self.adapter, self.hooks, &self.natives);
        let mut own = Map::new();
        if !outside.is_empty() {
            own.insert(kept_file::FILE.into(), Value::Object(outside));
        }
        if !self.unread.is_empty() {
            own.insert(kept_file::UNREAD.into(), Value::Array(self.unread));
        }
        if let Some(variant) = variant {
            own.insert(kept_file::VARIANT.into(), json!(variant));
        }
        if !bare.is_empty() {
            own.insert(kept_file::BARE.into(), json!(bare));
        }
        let mut extra = Map::new();
        if !own.is_empty() {
            extra.insert(
                MANIFEST_PROVIDER_DATA.into(),
                json!({ self.adapter.spec.id.as_ref(): own }),
            );
        }
        ConfigDecoded {
            manifest: Manifest {
                spec: SPEC.to_owned(),
                hooks,
                extra,
            },
            findings: self.findings,
            matcherless: self.matcherless,
        }
    }
}

/// What a group says of all its handlers.
fn without_hooks(group: &Map<String, Value>) -> Value {
    let rest = group.iter().filter(|(key, _)| *key != "hooks");
    Value::Object(
        rest.map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    )
}
