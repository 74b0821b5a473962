//! The last event of each agent, from the end of the journal.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use anyhook_run::journal::{CURRENT, Journal};
use serde::Serialize;
use serde_json::Value;

/// So much of a file's end is looked at.
const TAIL: u64 = 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// RFC 3339.
    pub time: String,
    /// The native event.
    pub event: String,
}

/// Agent → its last event, in the current file and the one before it.
pub fn last(state: &Path) -> BTreeMap<String, Seen> {
    let journal = Journal::new(state);
    let mut seen = BTreeMap::new();
    let before = journal.rotated().into_iter().next_back();
    for path in before.into_iter().chain([journal.folder().join(CURRENT)]) {
        for line in tail(&path).lines() {
            let Ok(record) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            let text = |at: &str| record.pointer(at).and_then(Value::as_str);
            let event = text("/event/native_event").or_else(|| text("/event/event"));
            if let (Some(agent), Some(time), Some(event)) = (text("/agent"), text("/time"), event) {
                let one = Seen {
                    time: time.to_owned(),
                    event: event.to_owned(),
                };
                seen.insert(agent.to_owned(), one);
            }
        }
    }
    seen
}

/// The last whole lines of a file.
fn tail(path: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(TAIL)))?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}
