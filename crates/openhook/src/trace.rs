//! Agent Trace 0.1: who wrote which lines, out of `file.write` events.
//!
//! Revision, tool version and conversation URL are not in an envelope: the
//! caller fills them in.

use crate::data::{Data, FileOperation, FileWrite};
use crate::envelope::Envelope;
use crate::names::{model_id, stable_id};
use crate::time::Timestamp;
use crate::{uri, validate};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The version of Agent Trace that is produced.
pub const AGENT_TRACE_VERSION: &str = "0.1.0";

/// The key of [`TraceRecord::metadata`] for data of the envelope beyond the format.
pub const METADATA_KEY: &str = "dev.openhook";

/// A record of Agent Trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceRecord {
    pub version: String,
    /// A UUID.
    pub id: String,
    /// RFC 3339.
    pub timestamp: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vcs: Option<Vcs>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<TraceTool>,
    pub files: Vec<TraceFile>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// The revision that the line numbers refer to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vcs {
    /// `git`, `jj`, `hg` or `svn`.
    #[serde(rename = "type")]
    pub kind: String,
    pub revision: String,
}

/// The tool that wrote the lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceTool {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// A file and the conversations that contributed to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFile {
    /// Relative to the repository, if the envelope names its folder.
    pub path: String,
    pub conversations: Vec<Conversation>,
}

/// A conversation and the lines that it produced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// Where the conversation can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contributor: Option<Contributor>,
    /// Empty if the event has no line numbers, or if the file was deleted.
    pub ranges: Vec<LineRange>,
}

/// Who contributed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contributor {
    /// `human`, `ai`, `mixed` or `unknown`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `provider/model`, at most 250 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
}

/// Lines, counted from 1, both ends included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineRange {
    pub start_line: u64,
    pub end_line: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_hash: Option<String>,
}

impl TraceRecord {
    pub fn to_json_line(&self) -> String {
        format!("{}\n", json!(self))
    }

    fn new(source: &str, id: String, timestamp: String, about: Value) -> Self {
        Self {
            version: AGENT_TRACE_VERSION.to_owned(),
            id,
            timestamp,
            vcs: None,
            tool: Some(TraceTool {
                name: source.to_owned(),
                version: None,
            }),
            files: Vec::new(),
            metadata: Map::from_iter([(METADATA_KEY.to_owned(), about)]),
        }
    }
}

/// The record of one `file.write` event; `None` for other events, and for one
/// without a path or a time.
///
/// ```
/// use openhook::{Envelope, trace};
/// # let json = r#"{"openhook":"0.1","id":"a1b2c3d4-e5f6-7890-abcd-ef1234567890",
/// #  "source":"claude-code","type":"file.write","time":"2026-02-23T10:15:45.678Z",
/// #  "session_id":"s","context":"file:///home/user/my-project",
/// #  "data":{"path":"/home/user/my-project/src/utils.ts","start_line":1,"end_line":30,
/// #          "model":"claude-sonnet-4-6"}}"#;
/// let envelope = Envelope::parse(json)?;
/// let record = trace::trace(&envelope).expect("a file was written");
/// let file = &record.files[0];
/// assert_eq!(file.path, "src/utils.ts");
/// assert_eq!(file.conversations[0].ranges[0].end_line, 30);
/// # Ok::<(), openhook::ParseError>(())
/// ```
pub fn trace(envelope: &Envelope) -> Option<TraceRecord> {
    let Data::FileWrite(write) = envelope.view() else {
        return None;
    };
    let path = write.path.filter(|path| !path.is_empty())?;
    let about = [
        ("event_id", Some(envelope.id.as_str())),
        ("session_id", Some(envelope.session_id.as_str())),
        ("operation", write.operation.map(FileOperation::as_str)),
        ("tool_call_id", write.tool_call_id),
    ];
    let about: Map<String, Value> = about
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.into())))
        .collect();
    let id = if validate::is_uuid(&envelope.id) {
        envelope.id.to_ascii_lowercase()
    } else {
        stable_id(&["agent-trace", &envelope.source, &envelope.id])
    };
    let timestamp = envelope.time.parse::<Timestamp>().ok()?.to_string();
    let file = TraceFile {
        path: relative_path(envelope, path),
        conversations: vec![Conversation::new(&write)],
    };
    Some(TraceRecord {
        files: vec![file],
        ..TraceRecord::new(&envelope.source, id, timestamp, about.into())
    })
}

/// One record per session: its files, each with a conversation per model, each
/// with its ranges. The transcript that `session.end` names becomes the
/// conversation's URL.
///
/// Line numbers are those at the time of each write; a later write may have
/// moved them. A file whose last operation is `delete` keeps no ranges.
pub fn trace_sessions<'a>(events: impl IntoIterator<Item = &'a Envelope>) -> Vec<TraceRecord> {
    let mut sessions: Vec<SessionTrace<'a>> = Vec::new();
    for envelope in events {
        let known = sessions
            .iter_mut()
            .find(|s| s.source == envelope.source && s.id == envelope.session_id);
        match (envelope.view(), known) {
            (Data::FileWrite(write), Some(session)) => session.add(envelope, &write),
            (Data::FileWrite(write), None) => {
                let mut session = SessionTrace::new(envelope);
                session.add(envelope, &write);
                sessions.push(session);
            }
            (Data::SessionEnd(end), Some(session)) => {
                session.transcript = end.transcript_path.or(session.transcript);
            }
            _ => {}
        }
    }
    let sessions = sessions.into_iter();
    sessions.filter_map(SessionTrace::into_record).collect()
}

struct SessionTrace<'a> {
    source: &'a str,
    id: &'a str,
    last: Option<Timestamp>,
    transcript: Option<&'a str>,
    files: Vec<TraceFile>,
}

impl<'a> SessionTrace<'a> {
    fn new(envelope: &'a Envelope) -> Self {
        Self {
            source: &envelope.source,
            id: &envelope.session_id,
            last: None,
            transcript: None,
            files: Vec::new(),
        }
    }

    fn add(&mut self, envelope: &Envelope, write: &FileWrite<'_>) {
        let Some(path) = write.path.filter(|path| !path.is_empty()) else {
            return;
        };
        self.last = self.last.max(envelope.time.parse().ok());
        let path = relative_path(envelope, path);
        let index = self.files.iter().position(|file| file.path == path);
        let index = index.unwrap_or_else(|| {
            self.files.push(TraceFile {
                path,
                conversations: Vec::new(),
            });
            self.files.len() - 1
        });
        let Some(file) = self.files.get_mut(index) else {
            return;
        };
        if write.operation == Some(FileOperation::Delete) {
            for conversation in &mut file.conversations {
                conversation.ranges.clear();
            }
        }
        let new = Conversation::new(write);
        let known = file
            .conversations
            .iter_mut()
            .find(|known| known.contributor == new.contributor);
        match known {
            Some(known) => {
                let ranges = new.ranges.into_iter();
                let ranges: Vec<_> = ranges
                    .filter(|range| !known.ranges.contains(range))
                    .collect();
                known.ranges.extend(ranges);
            }
            None => file.conversations.push(new),
        }
    }

    fn into_record(mut self) -> Option<TraceRecord> {
        let timestamp = self.last?.to_string();
        let url = self
            .transcript
            .filter(|path| uri::is_absolute_path(path))
            .map(uri::file_uri);
        for conversation in self.files.iter_mut().flat_map(|f| &mut f.conversations) {
            conversation.url.clone_from(&url);
        }
        let id = stable_id(&["agent-trace", self.source, self.id, &timestamp]);
        let about = json!({ "session_id": self.id });
        Some(TraceRecord {
            files: self.files,
            ..TraceRecord::new(self.source, id, timestamp, about)
        })
    }
}

impl Conversation {
    fn new(write: &FileWrite<'_>) -> Self {
        Self {
            url: None,
            contributor: Some(contributor(write.model)),
            ranges: range(write).into_iter().collect(),
        }
    }
}

fn contributor(model: Option<&str>) -> Contributor {
    const MAX_MODEL_ID_CHARS: usize = 250;
    Contributor {
        kind: "ai".to_owned(),
        model_id: model
            .map(model_id)
            .filter(|id| !id.is_empty() && id.chars().count() <= MAX_MODEL_ID_CHARS),
    }
}

/// Without a first line there is no range: line numbers are never invented.
fn range(write: &FileWrite<'_>) -> Option<LineRange> {
    if write.operation == Some(FileOperation::Delete) {
        return None;
    }
    let start_line = write.start_line.filter(|line| *line > 0)?;
    let end_line = write.end_line.unwrap_or(start_line);
    (start_line <= end_line).then_some(LineRange {
        start_line,
        end_line,
        content_hash: None,
    })
}

fn relative_path(envelope: &Envelope, path: &str) -> String {
    envelope
        .directory()
        .and_then(|root| uri::below(path, &root))
        .unwrap_or_else(|| path.strip_prefix("./").unwrap_or(path).to_owned())
}
