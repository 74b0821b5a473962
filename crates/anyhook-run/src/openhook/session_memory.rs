//! The memory of a session between its events: when it started, which tool calls
//! are open, which files existed before they ran.
//!
//! Pure and bounded. If an agent gives its events no ids, this distinguishes an
//! event that is delivered twice from two equal ones.

use openhook::stable_id;
use serde::{Deserialize, Serialize};

/// Beyond this number of calls that have not ended, the oldest are dropped.
const MAX_OPEN_CALLS: usize = 64;

/// Ended calls that are kept to recognise a second delivery of their end.
const MAX_CLOSED_CALLS: usize = 16;

/// The memory of one session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionMemory {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) started_ms: Option<i64>,
    /// The name that the agent uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transcript: Option<String>,
    /// The generated name of a session whose agent gives none.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// How many events have a number.
    count: u64,
    /// The last event, by its digest, and its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<(String, u64)>,
    /// Set until another event follows the end of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<SessionEndRecord>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    open: Vec<ToolCall>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    closed: Vec<ToolCall>,
}

/// The state in which an event finds its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionPhase {
    /// It is the first event of the session.
    Started,
    /// The session had ended.
    Reopened,
    Running,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionEndRecord {
    pub id: String,
    pub duration_ms: Option<u64>,
    pub model: Option<String>,
    pub transcript: Option<String>,
}

/// One call of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ToolCall {
    pub id: String,
    /// Digest of the tool and its input.
    key: String,
    tool: String,
    /// The agent gave no id: `id` was generated.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    made: bool,
    /// The agent's own time of the start; of the end once it has ended.
    #[serde(skip_serializing_if = "String::is_empty")]
    mark: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Files that did not exist before the call; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absent: Option<Vec<String>>,
}

/// A tool call as one event describes it.
#[derive(Debug, Clone)]
pub(crate) struct ToolCallEvent<'a> {
    /// The agent's id of the call.
    pub id: Option<&'a str>,
    pub key: &'a str,
    pub tool: &'a str,
    /// The agent's own time, or nothing.
    pub mark: &'a str,
    pub at_ms: i64,
    /// Different for different events; see [`SessionMemory::number`].
    pub digest: String,
    /// Keeps generated ids of different sessions apart.
    pub scope: [&'a str; 2],
}

impl SessionMemory {
    /// The number of an event: unchanged if it is the previous event delivered
    /// again, else a new one.
    pub(crate) fn number(&mut self, digest: &str) -> u64 {
        if let Some((last, number)) = &self.last
            && last == digest
        {
            return *number;
        }
        self.count += 1;
        self.last = Some((digest.to_owned(), self.count));
        self.count
    }

    /// The name of a session whose agent gives none: another one once a session begins,
    /// unless that is the previous event delivered again.
    pub(crate) fn session_name(
        &mut self,
        begins: bool,
        digest: &str,
        make: impl FnOnce() -> String,
    ) -> String {
        let is_again = matches!(&self.last, Some((last, _)) if last == digest);
        match &self.name {
            Some(name) if !begins || is_again => name.clone(),
            _ => self.name.insert(make()).clone(),
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// An event happens within the session: it has not ended, and it has started
    /// by now.
    pub(crate) fn continue_session(&mut self, at_ms: i64) -> SessionPhase {
        let was_ended = self.ended.take().is_some();
        let is_first = self.started_ms.is_none();
        self.started_ms.get_or_insert(at_ms);
        match (was_ended, is_first) {
            (true, _) => SessionPhase::Reopened,
            (false, true) => SessionPhase::Started,
            (false, false) => SessionPhase::Running,
        }
    }

    pub(crate) fn start_session(&mut self, at_ms: i64) {
        self.ended = None;
        self.started_ms = Some(at_ms);
    }

    /// The turn ends: calls that have not ended by now were refused. Calls with the
    /// agent's own ids may stay, since they are never confused with others.
    pub(crate) fn end_turn(&mut self) {
        self.open.retain(|call| !call.made);
    }

    /// The given end, or the earlier one if it was already recorded. Only what
    /// identifies a second delivery or a continued session is kept.
    pub(crate) fn end_session(&mut self, end: SessionEndRecord) -> SessionEndRecord {
        if let Some(earlier) = &self.ended {
            return earlier.clone();
        }
        *self = Self {
            name: self.name.take(),
            count: self.count,
            last: self.last.take(),
            ended: Some(end.clone()),
            ..Self::default()
        };
        end
    }

    /// The id of the call that starts. `absent_files` is called once per call.
    pub(crate) fn start_call(
        &mut self,
        call_event: &ToolCallEvent<'_>,
        absent_files: impl FnOnce() -> Option<Vec<String>>,
    ) -> String {
        self.number(&call_event.digest);
        let again = self.open.iter_mut().find(|call| match call_event.id {
            Some(id) => call.id == id,
            None => call.made && call.key == call_event.key && call.mark == call_event.mark,
        });
        if let Some(call) = again {
            // The earlier one may have been refused: the time since is not run time.
            call.started_ms = Some(call_event.at_ms);
            return call.id.clone();
        }
        let call = ToolCall {
            started_ms: Some(call_event.at_ms),
            absent: absent_files(),
            ..self.new_call(call_event)
        };
        let id = call.id.clone();
        if self.open.len() >= MAX_OPEN_CALLS {
            self.open.remove(0);
        }
        self.open.push(call);
        id
    }

    /// The call that ends. Its start is the latest match: by id, else by tool and
    /// input, else by tool alone, since a hook may rewrite the input.
    pub(crate) fn end_call(&mut self, call_event: &ToolCallEvent<'_>) -> ToolCall {
        let is_again = matches!(&self.last, Some((digest, _)) if *digest == call_event.digest);
        self.number(&call_event.digest);
        if let Some(call) = self.closed_call(call_event, is_again) {
            return call;
        }
        let start = match call_event.id {
            Some(id) => self.open.iter().rposition(|call| call.id == id),
            None => self
                .latest_open(|call| call.key == call_event.key)
                .or_else(|| self.latest_open(|call| call.tool == call_event.tool)),
        };
        let mut call = match start {
            Some(start) => self.open.remove(start),
            None => self.new_call(call_event),
        };
        call.duration_ms = call
            .started_ms
            .and_then(|start| u64::try_from(call_event.at_ms.saturating_sub(start)).ok());
        call_event.key.clone_into(&mut call.key);
        call_event.mark.clone_into(&mut call.mark);
        if self.closed.len() >= MAX_CLOSED_CALLS {
            self.closed.remove(0);
        }
        self.closed.push(call.clone());
        call
    }

    /// The ended call whose end is delivered again.
    fn closed_call(&self, call_event: &ToolCallEvent<'_>, is_again: bool) -> Option<ToolCall> {
        let mut ended = self.closed.iter().rev();
        let Some(id) = call_event.id else {
            let call = ended.find(|call| {
                call.made && call.key == call_event.key && call.mark == call_event.mark
            })?;
            let is_open = self
                .latest_open(|call| call.key == call_event.key)
                .is_some();
            // An agent that reports starts does not end a call that it did not start.
            let pairs = call.started_ms.is_some() && !is_open;
            return (is_again || !call_event.mark.is_empty() || pairs).then(|| call.clone());
        };
        let is_open = self.open.iter().any(|call| call.id == id);
        ended
            .find(|call| call.id == id && call.key == call_event.key && !is_open)
            .cloned()
    }

    fn latest_open(&self, fits: impl Fn(&ToolCall) -> bool) -> Option<usize> {
        self.open.iter().rposition(|call| call.made && fits(call))
    }

    fn new_call(&mut self, call_event: &ToolCallEvent<'_>) -> ToolCall {
        let id = if let Some(id) = call_event.id {
            id.to_owned()
        } else {
            let [source, session] = call_event.scope;
            // The agent's own time distinguishes calls better than a counter.
            let number = call_event.mark.is_empty().then(|| self.count.to_string());
            let number = number.unwrap_or_default();
            stable_id(&[
                source,
                session,
                "call",
                call_event.key,
                call_event.mark,
                &number,
            ])
        };
        ToolCall {
            id,
            key: call_event.key.to_owned(),
            tool: call_event.tool.to_owned(),
            made: call_event.id.is_none(),
            mark: call_event.mark.to_owned(),
            ..ToolCall::default()
        }
    }
}
