//! Paths to values in a document.

use serde::{Deserialize, Serialize};

/// One step into a document: a member of an object or an element of an array.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Key {
    Index(usize),
    Name(String),
}

impl From<&str> for Key {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl From<String> for Key {
    fn from(name: String) -> Self {
        Self::Name(name)
    }
}

impl From<usize> for Key {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// A path in readable form: `hooks.PreToolUse[0]`; the whole document is `.`.
pub(crate) fn display_path(path: &[Key]) -> String {
    let mut shown = String::new();
    for key in path {
        match key {
            Key::Name(name) if shown.is_empty() => shown.push_str(name),
            Key::Name(name) => shown.extend([".", name]),
            Key::Index(index) => shown.extend(["[", &index.to_string(), "]"]),
        }
    }
    if shown.is_empty() {
        shown.push('.');
    }
    shown
}
