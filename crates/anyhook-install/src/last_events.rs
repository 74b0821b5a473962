//! The last event of each agent, from the end of the journal.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use anyhook_run::record::journal::{CURRENT_FILE_NAME, Journal};
use serde::Serialize;
use serde_json::Value;

/// How much of the end of a file is read.
const MAX_TAIL_BYTES: u64 = 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LastEvent {
    /// RFC 3339.
    pub time: String,
    /// The native event.
    pub event: String,
}

/// Agent → its last event, from the current file and the one before it.
pub(crate) fn last_events(state: &Path) -> BTreeMap<String, LastEvent> {
    let journal = Journal::new(state);
    let mut events = BTreeMap::new();
    let before = journal.rotated().into_iter().next_back();
    let current = journal.folder().join(CURRENT_FILE_NAME);
    for path in before.into_iter().chain([current]) {
        for line in read_tail(&path).lines() {
            let Ok(record) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            let text = |at: &str| record.pointer(at).and_then(Value::as_str);
            let event = text("/event/native_event").or_else(|| text("/event/event"));
            if let (Some(agent), Some(time), Some(event)) = (text("/agent"), text("/time"), event) {
                let one = LastEvent {
                    time: time.to_owned(),
                    event: event.to_owned(),
                };
                events.insert(agent.to_owned(), one);
            }
        }
    }
    events
}

/// The last whole lines of a file.
fn read_tail(path: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(MAX_TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(MAX_TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}
