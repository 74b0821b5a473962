//! Agent Trace 0.1: who wrote which lines, out of `file.write` events.
//!
//! Revision, tool version and conversation URL are not in an envelope: the
//! caller, who can look, fills them in.

use crate::data::{Data, FileOperation, FileWrite};
use crate::envelope::Envelope;
use crate::names::{model_id, stable_id};
use crate::time::Timestamp;
use crate::{uri, validate};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The version of Agent Trace that is written.
pub const AGENT_TRACE_VERSION: &str = "0.1.0";

/// The key of [`TraceRecord::metadata`] for what the envelope says beyond the format.
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
    pub tool: Option<Tool>,
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

/// The tool that wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// A file and the conversations that contributed to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFile {
    /// Relative to the repository where the envelope lets one know it.
    pub path: String,
    pub conversations: Vec<Conversation>,
}

/// A conversation and the lines that it produced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// Where the conversation can be looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contributor: Option<Contributor>,
    /// Empty when the event did not say its lines, or when the file is gone.
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
        let mut line = json!(self).to_string();
        line.push('\n');
        line
    }
}

/// The record of one `file.write` event; None for other events, and for one
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
    let write = write_of(envelope)?;
    let mut about = Map::new();
    about.insert("event_id".to_owned(), envelope.id.clone().into());
    about.insert("session_id".to_owned(), envelope.session_id.clone().into());
    if let Some(operation) = write.operation {
        about.insert("operation".to_owned(), operation.as_str().into());
    }
    if let Some(call) = write.tool_call_id {
        about.insert("tool_call_id".to_owned(), call.into());
    }
    Some(TraceRecord {
        version: AGENT_TRACE_VERSION.to_owned(),
        id: if validate::is_uuid(&envelope.id) {
            envelope.id.to_ascii_lowercase()
        } else {
            stable_id(&["agent-trace", &envelope.source, &envelope.id])
        },
        timestamp: envelope.time.parse::<Timestamp>().ok()?.to_string(),
        vcs: None,
        tool: Some(Tool {
            name: envelope.source.clone(),
            version: None,
        }),
        files: vec![TraceFile {
            path: relative_path(envelope, write.path?),
            conversations: vec![Conversation {
                url: None,
                contributor: Some(contributor(write.model)),
                ranges: range(&write).into_iter().collect(),
            }],
        }],
        metadata: Map::from_iter([(METADATA_KEY.to_owned(), about.into())]),
    })
}

/// One record per session: its files, each with a conversation per model, each
/// with its ranges. The transcript that `session.end` names becomes the
/// conversation's URL.
///
/// Line numbers are those at the time of each write; a later write may have
/// moved them. A file whose last operation is `delete` keeps no ranges.
pub fn trace_sessions<'a>(events: impl IntoIterator<Item = &'a Envelope>) -> Vec<TraceRecord> {
    let mut sessions: Vec<Session<'a>> = Vec::new();
    for envelope in events {
        let found = sessions
            .iter_mut()
            .find(|s| s.source == envelope.source && s.id == envelope.session_id);
        match envelope.view() {
            Data::FileWrite(write) => {
                let session = if let Some(session) = found {
                    session
                } else {
                    sessions.push(Session::new(envelope));
                    let Some(session) = sessions.last_mut() else {
                        continue;
                    };
                    session
                };
                session.add(envelope, &write);
            }
            Data::SessionEnd(end) => {
                if let (Some(session), Some(path)) = (found, end.transcript_path) {
                    session.transcript = Some(path);
                }
            }
            _ => {}
        }
    }
    sessions.into_iter().filter_map(Session::record).collect()
}

struct Session<'a> {
    source: &'a str,
    id: &'a str,
    last: Option<Timestamp>,
    transcript: Option<&'a str>,
    files: Vec<TraceFile>,
}

impl<'a> Session<'a> {
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
        let contributor = Some(contributor(write.model));
        let range = range(write);
        match file
            .conversations
            .iter_mut()
            .find(|conversation| conversation.contributor == contributor)
        {
            Some(conversation) => {
                let new = range.filter(|range| !conversation.ranges.contains(range));
                conversation.ranges.extend(new);
            }
            None => file.conversations.push(Conversation {
                url: None,
                contributor,
                ranges: range.into_iter().collect(),
            }),
        }
    }

    fn record(mut self) -> Option<TraceRecord> {
        let timestamp = self.last?.to_string();
        let url = self
            .transcript
            .filter(|path| uri::is_absolute_path(path))
            .map(uri::file_uri);
        for conversation in self.files.iter_mut().flat_map(|f| &mut f.conversations) {
            conversation.url.clone_from(&url);
        }
        Some(TraceRecord {
            version: AGENT_TRACE_VERSION.to_owned(),
            id: stable_id(&["agent-trace", self.source, self.id, &timestamp]),
            timestamp,
            vcs: None,
            tool: Some(Tool {
                name: self.source.to_owned(),
                version: None,
            }),
            files: self.files,
            metadata: Map::from_iter([(METADATA_KEY.to_owned(), json!({ "session_id": self.id }))]),
        })
    }
}

fn write_of(envelope: &Envelope) -> Option<FileWrite<'_>> {
    match envelope.view() {
        Data::FileWrite(write) if write.path.is_some_and(|path| !path.is_empty()) => Some(write),
        _ => None,
    }
}

fn contributor(model: Option<&str>) -> Contributor {
    const LONGEST: usize = 250;
    Contributor {
        kind: "ai".to_owned(),
        model_id: model
            .map(model_id)
            .filter(|id| !id.is_empty() && id.chars().count() <= LONGEST),
    }
}

/// Lines are never made up: without a first line there is no range.
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
