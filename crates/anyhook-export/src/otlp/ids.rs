//! Trace and span ids, derived from the ids of journal records: what is sent twice is the
//! same span.

use anyhook_util::hash::PartsHash;
use serde::{Deserialize, Serialize};

/// A trace and a span in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SpanRef {
    pub trace: TraceId,
    pub span: SpanId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct TraceId([u8; 16]);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SpanId([u8; 8]);

impl TraceId {
    /// The trace that begins with a record.
    pub(crate) fn of_record(id: &str) -> Self {
        Self(derived_bytes("trace", id, 0))
    }

    pub(crate) fn to_vec(self) -> Vec<u8> {
        self.0.to_vec()
    }
}

impl SpanId {
    /// A span that begins with a record. `purpose` and `index` tell several of them apart.
    pub(crate) fn of_record(purpose: &str, id: &str, index: usize) -> Self {
        Self(derived_bytes(purpose, id, index))
    }

    pub(crate) fn to_vec(self) -> Vec<u8> {
        self.0.to_vec()
    }
}

/// Never all zero, which means "none" in OpenTelemetry.
fn derived_bytes<const N: usize>(purpose: &str, id: &str, index: usize) -> [u8; N] {
    let mut hash = PartsHash::default();
    hash.add(purpose.as_bytes());
    hash.add(id.as_bytes());
    hash.add(&index.to_le_bytes());
    let mut bytes = [0; N];
    for (byte, digit) in bytes.iter_mut().zip(hash.finish_bytes()) {
        *byte = digit;
    }
    if bytes == [0; N] {
        bytes.fill(1);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_depend_on_the_record_and_the_purpose_alone() {
        let id = |purpose, record, index| SpanId::of_record(purpose, record, index);
        assert_eq!(id("tool", "a", 0), id("tool", "a", 0));
        let others = [id("hook", "a", 0), id("tool", "b", 0), id("tool", "a", 1)];
        assert!(others.iter().all(|other| *other != id("tool", "a", 0)));
        assert_eq!(TraceId::of_record("a").to_vec().len(), 16);
    }
}
