//! An agent's own config file and the canonical manifest, in both directions.
//!
//! Works on the parsed document; text format and path are the caller's concern.
//! What has no canonical field is kept under `provider_data` of the hook, or of
//! the manifest if it is outside the hooks.

mod decode;
mod encode;
mod split;

use anyhook_model::{HandlerKind, fields};
use serde_json::Value;

pub use decode::{ConfigFinding, DecodedConfig};
pub use encode::Placement;

use crate::spec::{Config, HandlerSpec};
use crate::{Adapter, pointer};

/// Keys of `provider_data[<agent>]` of a hook. Those with a `$` describe how and
/// where the hook is written; all others are native keys of its handler.
pub mod hook_keys {
    /// The native event, if the canonical one is normally written as another.
    pub const NATIVE_EVENT: &str = "$event";
    /// The native matcher, if the canonical one is normally written differently.
    pub const NATIVE_MATCHER: &str = "$matcher";
    /// Native keys of the group around the handler.
    pub const GROUP_KEYS: &str = "$group";
    /// The hook is in the same group as the hook before it.
    pub(crate) const JOINS_PREVIOUS: &str = "$joined";
    /// Whether the entry has a group, if that differs from the agent's main shape.
    pub(crate) const HAS_GROUP: &str = "$nested";
    /// Canonical field → pointer of the second spelling that the entry uses.
    pub const SECOND_POINTERS: &str = "$spelled";
    /// Whether the entry states its type, if that differs from what is written.
    pub(crate) const HAS_TYPE: &str = "$typed";
    /// The entry has no timeout; the hook's is the agent's default.
    pub const DEFAULT_TIMEOUT: &str = "$default_timeout";
    /// The entry has a command for Windows only; the hook's is [`NO_COMMAND`].
    pub const WINDOWS_ONLY: &str = "$windows_only";
    /// What a manifest, which needs a command, has where nothing runs.
    pub const NO_COMMAND: &str = ":";
    /// Constant keys of an entry that this entry lacks.
    pub(crate) const ABSENT_CONSTANTS: &str = "$bare";
}

/// Keys of `provider_data[<agent>]` of the manifest.
pub(crate) mod file_keys {
    /// Everything in the file except its hooks.
    pub(crate) const OTHER_SETTINGS: &str = "file";
    /// Entries that could not be decoded: `{event, index, entry}`.
    pub(crate) const UNREAD_ENTRIES: &str = "unread";
    /// The variant of the file, if not the main one.
    pub(crate) const VARIANT: &str = "variant";
    /// Keys of the preamble that the file lacks.
    pub(crate) const ABSENT_PREAMBLE: &str = "bare";
}

/// The manifest's key for data of one agent that belongs to no hook.
pub const MANIFEST_PROVIDER_DATA: &str = "provider_data";

impl Adapter {
    /// The variables that this agent gives to its hooks.
    pub fn variables_of_hooks(&self) -> impl Iterator<Item = &str> {
        let spec = &self.spec;
        let marks = spec.detect.env.iter().map(AsRef::as_ref);
        let marks = marks.map(|mark: &str| mark.split_once('=').map_or(mark, |(name, _)| name));
        let named = spec.env.keys().chain(&spec.other_env).map(AsRef::as_ref);
        named.chain(marks)
    }

    /// The main config shape, or a named variant.
    pub fn config(&self, variant: Option<&str>) -> &Config {
        let main = &self.spec.config;
        let variant = variant.and_then(|name| main.variant.get(name));
        variant.unwrap_or(main)
    }
}

/// The value of a canonical field, by the name that a table's row gives it: a
/// field of the handler (`timeout`, `platform.windows`) or the hook's `name`.
fn canonical_field(handler: &Value, name: Option<&str>, to: &str) -> Option<Value> {
    match to {
        "name" => name.map(Value::from),
        _ => pointer::get(handler, &canonical_pointer(to)).cloned(),
    }
}

/// Sets a canonical field; false if the value is of another kind, or means the
/// same as an absent field (`async: false`): it is kept as it was written.
fn set_canonical_field(
    handler: &mut Value,
    name: &mut Option<String>,
    to: &str,
    value: &Value,
) -> bool {
    if to == "name" {
        *name = value.as_str().map(str::to_owned);
        return name.is_some();
    }
    let row = match to.strip_prefix("platform.") {
        Some(system) => fields::find(fields::PLATFORM, system),
        None => fields::find(fields::HANDLER, to),
    };
    let is_filled = row.is_some_and(|row| row.shape.is_filled_by(value));
    if is_filled {
        pointer::put(handler, &canonical_pointer(to), value.clone());
    }
    is_filled
}

fn canonical_pointer(to: &str) -> String {
    format!("/{}", to.replace('.', "/"))
}

impl Config {
    /// Pointer to the event's name in an entry of a list.
    pub fn event_at(&self) -> &str {
        self.event_at.as_deref().unwrap_or("/event")
    }

    /// This variant's name of a native event.
    fn spelled_event<'a>(&'a self, native: &'a str) -> &'a str {
        self.event_names.get(native).map_or(native, AsRef::as_ref)
    }
}

impl HandlerSpec {
    /// Whether a name is the one of a hook without any, perhaps numbered.
    fn is_unnamed(&self, name: &str) -> bool {
        let Some(rest) = self
            .unnamed
            .as_deref()
            .and_then(|none| name.strip_prefix(none))
        else {
            return false;
        };
        let number = rest.strip_prefix('-').filter(|_| self.unique_names);
        rest.is_empty() || number.is_some_and(|number| number.parse::<usize>().is_ok())
    }

    /// Whether the agent's entries have a place for a canonical field.
    pub fn has(&self, to: &str) -> bool {
        let mut written = self.fields.iter().filter(|field| !field.read_only);
        written.any(|field| field.to == to)
    }

    /// Whether the agent runs handlers of this type, for this native event.
    pub fn runs(&self, kind: HandlerKind, native_event: &str) -> bool {
        let known = self.types.contains_key(kind.as_str())
            || (self.types.is_empty() && kind == HandlerKind::Command);
        let events = self.type_events.get(kind.as_str());
        known && events.is_none_or(|events| events.iter().any(|event| event == native_event))
    }
}
