//! What many events share is stored once, and events refer to it by number.

use crate::query::{EventFilter, EventSummary};

/// What an event is. An absent name is empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Facet {
    pub kind: String,
    pub agent: String,
    pub event: String,
    pub unified: String,
    pub native_event: String,
    pub tool: String,
    pub decision: String,
}

/// Where an event comes from. An absent name is empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    pub machine: String,
    pub user_id: String,
    pub project_id: String,
    pub workflow_id: String,
}

fn or_empty(text: Option<&String>) -> String {
    text.cloned().unwrap_or_default()
}

/// Whether a name is the one that is asked for; every name is, if none is asked for.
fn is(wanted: Option<&String>, actual: &str) -> bool {
    wanted.is_none_or(|wanted| wanted == actual && !actual.is_empty())
}

impl Facet {
    pub(crate) fn from_summary(event: &EventSummary) -> Self {
        Self {
            kind: event.kind.clone(),
            agent: event.agent.clone(),
            event: event.event.clone(),
            unified: event.unified.clone(),
            native_event: or_empty(event.native_event.as_ref()),
            tool: or_empty(event.tool.as_ref()),
            decision: or_empty(event.decision.as_ref()),
        }
    }

    /// The part of [`EventFilter::matches_summary`] that a facet decides.
    pub(crate) fn matches(&self, filter: &EventFilter) -> bool {
        let decision = match filter.decision.as_deref() {
            Some("none") => self.decision.is_empty(),
            _ => is(filter.decision.as_ref(), &self.decision),
        };
        let names = [&self.event, &self.unified, &self.native_event];
        decision
            && filter
                .agent
                .as_ref()
                .is_none_or(|agent| *agent == self.agent)
            && is(filter.tool.as_ref(), &self.tool)
            && names.iter().any(|name| is(filter.event.as_ref(), name))
    }

    pub(crate) fn is_asked_for(filter: &EventFilter) -> bool {
        [&filter.agent, &filter.event, &filter.decision, &filter.tool]
            .iter()
            .any(|field| field.is_some())
    }

    pub(crate) fn columns(&self) -> [&str; 7] {
        [
            &self.kind,
            &self.agent,
            &self.event,
            &self.unified,
            &self.native_event,
            &self.tool,
            &self.decision,
        ]
    }
}

impl Origin {
    pub(crate) fn from_summary(event: &EventSummary) -> Self {
        Self {
            machine: or_empty(event.machine.as_ref()),
            user_id: or_empty(event.user_id.as_ref()),
            project_id: or_empty(event.project_id.as_ref()),
            workflow_id: or_empty(event.workflow_id.as_ref()),
        }
    }

    pub(crate) fn matches(&self, filter: &EventFilter) -> bool {
        is(filter.machine.as_ref(), &self.machine)
            && is(filter.user_id.as_ref(), &self.user_id)
            && is(filter.project_id.as_ref(), &self.project_id)
            && is(filter.workflow_id.as_ref(), &self.workflow_id)
    }

    pub(crate) fn is_asked_for(filter: &EventFilter) -> bool {
        [
            &filter.machine,
            &filter.user_id,
            &filter.project_id,
            &filter.workflow_id,
        ]
        .iter()
        .any(|field| field.is_some())
    }

    pub(crate) fn columns(&self) -> [&str; 4] {
        [
            &self.machine,
            &self.user_id,
            &self.project_id,
            &self.workflow_id,
        ]
    }
}

/// An id as it is stored: the bytes of a UUID, else the text after a byte that no UUID of
/// that length can be confused with.
pub(crate) fn id_bytes(id: &str) -> Vec<u8> {
    if let Some(uuid) = uuid_bytes(id) {
        return uuid;
    }
    let mut bytes = vec![0xff];
    bytes.extend(id.as_bytes());
    if bytes.len() == 16 {
        bytes.push(0xff);
    }
    bytes
}

/// The milliseconds since 1970 in a UUID of version 7.
pub(crate) fn uuid_v7_millis(id: &str) -> Option<i64> {
    let bytes = uuid_bytes(id)?;
    let version = bytes.get(6)? >> 4;
    let millis = bytes.get(..6)?.iter();
    (version == 7).then(|| millis.fold(0, |all, byte| all << 8 | i64::from(*byte)))
}

/// Only the usual form, so that each stored id has one text.
fn uuid_bytes(id: &str) -> Option<Vec<u8>> {
    let bytes = id.as_bytes();
    if bytes.len() != 36 {
        return None;
    }
    let mut found = Vec::with_capacity(16);
    let mut half = None;
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 8 | 13 | 18 | 23) {
            (*byte == b'-').then_some(())?;
            continue;
        }
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        half = match half {
            None => Some(digit),
            Some(high) => {
                found.push(high << 4 | digit);
                None
            }
        };
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_differ_are_stored_differently() {
        let ids = [
            "0190a1b2-0000-7000-8000-0123456789ab",
            "0190A1B2-0000-7000-8000-0123456789ab",
            "0190a1b2-0000-7000-8000-0123456789a",
            "0190a1b200007000-8000-0123456789ab--",
            "15 characters.....",
            "abcdefghijklmno",
            "x",
        ];
        let stored: std::collections::HashSet<_> = ids.map(id_bytes).into_iter().collect();
        assert_eq!(stored.len(), ids.len());
        assert_eq!(id_bytes(ids[0]).len(), 16);
        assert_eq!(id_bytes("abcdefghijklmno").len(), 17);
    }
}
