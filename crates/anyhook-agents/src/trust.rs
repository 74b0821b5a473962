//! An agent's own record of what its user trusts.
//!
//! The agent's table has the path of the record, its quirks know what must be
//! in it. Nothing is read or written here.

use std::path::Path;

use serde_json::Value;

use crate::Adapter;
use crate::spec::{Ledger, Scope};

/// A hook entry of an installed config file.
#[derive(Debug, Clone)]
pub struct InstalledEntry {
    /// The native event.
    pub event: String,
    /// Position of the group under its event.
    pub index: usize,
    /// Position in the group.
    pub position: usize,
    /// As written; `None` if the event takes no matcher.
    pub matcher: Option<Value>,
    pub handler: Value,
}

/// The config whose hooks the agent must trust.
#[derive(Debug)]
pub struct TrustSubject<'a> {
    pub project: &'a Path,
    pub scope: Scope,
    /// The config file with the entries, with symbolic links resolved.
    pub config_path: &'a Path,
    pub entries: Vec<InstalledEntry>,
    /// Lower-case hex SHA-256.
    pub sha256: fn(&[u8]) -> String,
}

/// A value that must be in the record, by the names that lead to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustRecord {
    pub path: Vec<String>,
    pub value: Value,
    /// The value is an element of the list at `path`, which may have more keys.
    pub is_element: bool,
}

impl TrustRecord {
    pub fn new<const N: usize>(path: [&str; N], value: impl Into<Value>) -> Self {
        Self {
            path: path.map(str::to_owned).into(),
            value: value.into(),
            is_element: false,
        }
    }

    /// An object that must be in the list at `path`.
    pub fn element<const N: usize>(path: [&str; N], value: Value) -> Self {
        Self {
            is_element: true,
            ..Self::new(path, value)
        }
    }

    pub fn is_in(&self, document: &Value) -> bool {
        let mut path = self.path.iter();
        let found = path.try_fold(document, |value, name| value.get(name));
        match found {
            Some(Value::Array(items)) if self.is_element => {
                items.iter().any(|item| self.is_element_like(item))
            }
            found => !self.is_element && found == Some(&self.value),
        }
    }

    /// Whether an element of the list has every key of this one.
    pub fn is_element_like(&self, item: &Value) -> bool {
        let mut keys = self.value.as_object().into_iter().flatten();
        keys.all(|(key, value)| item.get(key) == Some(value))
    }
}

pub trait TrustLedger: Sync {
    /// The records that make the agent trust the subject.
    fn records(&self, subject: &TrustSubject) -> Vec<TrustRecord>;

    /// A sentence about what the ledger lacks; `None` if the subject is trusted.
    fn missing(&self, subject: &TrustSubject, document: &Value) -> Option<String>;
}

impl Adapter {
    /// Where the agent keeps what its user trusts, and how to read it, if both
    /// are known.
    pub fn trust_ledger(&self) -> Option<(&Ledger, &'static dyn TrustLedger)> {
        Some((self.spec.ledger.as_ref()?, self.quirks.trust_ledger()?))
    }
}
