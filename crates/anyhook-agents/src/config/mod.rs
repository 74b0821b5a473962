//! An agent's own config file and the canonical manifest, both ways.
//!
//! Works on the parsed document; which text format it came from, and where the
//! file lies, is the caller's business. What has no canonical place is kept
//! under `provider_data` of the hook, or of the manifest for what stands
//! outside the hooks.

mod decode;
mod encode;
mod split;

use anyhook_model::{Handler, HandlerKind};
use serde_json::{Map, Value};

pub use decode::{ConfigDecoded, Finding};
pub use encode::Placement;

use crate::Adapter;
use crate::spec::{Config, HandlerSpec};

/// Keys of `provider_data[<agent>]` of a hook. Those with a `$` are about the
/// place of the hook; all others are native keys of its handler.
pub mod kept {
    /// The native event, where the canonical one would be written otherwise.
    pub const EVENT: &str = "$event";
    /// The native matcher, where the canonical one would be written otherwise.
    pub const MATCHER: &str = "$matcher";
    /// Native keys of the group around the handler.
    pub const GROUP: &str = "$group";
    /// The hook stands in the same group as the one before it.
    pub const JOINED: &str = "$joined";
    /// The entry has, or has not, a group around it, unlike the agent's main shape.
    pub const NESTED: &str = "$nested";
    /// Canonical field → the second spelling under which it stood.
    pub const SPELLED: &str = "$spelled";
    /// The entry says, or does not say, its type, unlike what is written.
    pub const TYPED: &str = "$typed";
    /// Fixed keys of an entry that this one does not have.
    pub const BARE: &str = "$bare";
}

/// Keys of the manifest's own `provider_data[<agent>]`.
pub(crate) mod kept_file {
    /// Everything of the file that is not hooks.
    pub const FILE: &str = "file";
    /// Entries that could not be read: `{event, index, entry}`.
    pub const UNREAD: &str = "unread";
    /// The variant that the file had, where not the main one.
    pub const VARIANT: &str = "variant";
    /// Keys that a fresh file begins with and that this one does not have.
    pub const BARE: &str = "bare";
}

/// The manifest's key for data of one agent that belongs to no hook.
pub const MANIFEST_PROVIDER_DATA: &str = "provider_data";

impl Adapter {
    /// The main config shape, or a named variant.
    pub fn config(&self, variant: Option<&str>) -> &Config {
        let main = &self.spec.config;
        variant
            .and_then(|name| main.variant.get(name))
            .unwrap_or(main)
    }
}

/// A canonical handler field as JSON.
fn handler_field(handler: &Handler, name: Option<&str>, to: &str) -> Option<Value> {
    let text = |value: &Option<String>| value.clone().map(Value::String);
    let object = |map: &Map<String, Value>| (!map.is_empty()).then(|| Value::Object(map.clone()));
    match to {
        "name" => name.map(|name| Value::String(name.to_owned())),
        "command" => text(&handler.command),
        "platform.windows" => text(&handler.platform.windows),
        "platform.linux" => text(&handler.platform.linux),
        "platform.osx" => text(&handler.platform.osx),
        "cwd" => text(&handler.cwd),
        "env" => object(&handler.env),
        "timeout" => handler.timeout.map(crate::codec::number),
        "async" => handler.is_async.then_some(Value::Bool(true)),
        "status_message" => text(&handler.status_message),
        "url" => text(&handler.url),
        "headers" => object(&handler.headers),
        "allowed_env_vars" => (!handler.allowed_env_vars.is_empty())
            .then(|| Value::from(handler.allowed_env_vars.clone())),
        "prompt" => text(&handler.prompt),
        "model" => text(&handler.model),
        _ => None,
    }
}

/// Sets a canonical handler field; false when the value is of another kind.
fn set_handler_field(
    handler: &mut Handler,
    name: &mut Option<String>,
    to: &str,
    value: &Value,
) -> bool {
    let text = value.as_str().map(str::to_owned);
    let slot = match to {
        "name" => name,
        "command" => &mut handler.command,
        "platform.windows" => &mut handler.platform.windows,
        "platform.linux" => &mut handler.platform.linux,
        "platform.osx" => &mut handler.platform.osx,
        "cwd" => &mut handler.cwd,
        "status_message" => &mut handler.status_message,
        "url" => &mut handler.url,
        "prompt" => &mut handler.prompt,
        "model" => &mut handler.model,
        "timeout" => {
            handler.timeout = value.as_f64().filter(|timeout| *timeout >= 0.0);
            return handler.timeout.is_some();
        }
        "async" => {
            handler.is_async = value.as_bool().unwrap_or_default();
            // `false` is the default: kept as it was written.
            return value == &Value::Bool(true);
        }
        "env" | "headers" => {
            let Some(map) = value
                .as_object()
                .filter(|map| map.values().all(Value::is_string))
            else {
                return false;
            };
            let place = if to == "env" {
                &mut handler.env
            } else {
                &mut handler.headers
            };
            place.clone_from(map);
            return !map.is_empty();
        }
        "allowed_env_vars" => {
            let names: Option<Vec<String>> = value.as_array().and_then(|items| {
                items
                    .iter()
                    .map(|item| item.as_str().map(str::to_owned))
                    .collect()
            });
            handler.allowed_env_vars = names.unwrap_or_default();
            return !handler.allowed_env_vars.is_empty();
        }
        _ => return false,
    };
    *slot = text;
    slot.is_some()
}

impl HandlerSpec {
    /// Whether the agent's entries have a place for a canonical field.
    pub fn has(&self, to: &str) -> bool {
        self.fields
            .iter()
            .any(|field| field.to == to && !field.read_only)
    }

    /// Whether the agent runs handlers of this type, for this native event.
    pub fn runs(&self, kind: HandlerKind, native_event: &str) -> bool {
        let known = self.types.contains_key(kind.as_str())
            || (self.types.is_empty() && kind == HandlerKind::Command);
        known
            && self
                .type_events
                .get(kind.as_str())
                .is_none_or(|events| events.iter().any(|event| event == native_event))
    }
}
