//! What is remembered of a session between its events: when it began, which
//! tool calls are open, what was there before they ran.
//!
//! Pure and bounded. Where an agent gives its events no identity of their own,
//! this is where one delivered twice is told from two alike.

use openhook::stable_id;
use serde::{Deserialize, Serialize};

/// Calls that have not ended; beyond this the oldest are given up.
const MOST_OPEN: usize = 64;

/// Ended calls that a second delivery of their end is recognised by.
const MOST_CLOSED: usize = 16;

/// The memory of one session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    #[serde(skip_serializing_if = "Option::is_none")]
    started_ms: Option<i64>,
    /// As the agent names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transcript: Option<String>,
    /// How many things have been given a number.
    count: u64,
    /// The last event, by its digest, and its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<(String, u64)>,
    /// Set while nothing has come after the session's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<Ended>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    open: Vec<Call>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    closed: Vec<Call>,
}

/// What an event means for its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Course {
    /// It is the first that is heard of it.
    Begun,
    /// It had ended.
    Reopened,
    Running,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub id: String,
    pub duration_ms: Option<u64>,
    pub model: Option<String>,
    pub transcript: Option<String>,
}

/// One call of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Call {
    pub id: String,
    /// Digest of the tool and its input.
    key: String,
    tool: String,
    /// The agent gave no id: `id` was made here.
    #[serde(skip_serializing_if = "is_false")]
    made: bool,
    /// The agent's own time of the start; of the end once it has ended.
    #[serde(skip_serializing_if = "String::is_empty")]
    mark: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Files that were not there before the call. None: nobody has looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absent: Option<Vec<String>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !value
}

/// A call as one event tells of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'a> {
    /// The agent's id of the call.
    pub id: Option<&'a str>,
    pub key: &'a str,
    pub tool: &'a str,
    /// The agent's own time, or nothing.
    pub mark: &'a str,
    pub at_ms: i64,
    /// Tells events apart that are not the same; see [`Memory::number`].
    pub digest: &'a str,
    /// What made ids must not share with other sessions.
    pub scope: [&'a str; 2],
}

impl Memory {
    pub(crate) fn started_ms(&self) -> Option<i64> {
        self.started_ms
    }

    /// A number for an event: the same when it is the one before, delivered
    /// again; a new one when anything came between.
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

    /// Something happens in the session: it is not at its end, and it has begun
    /// at the latest now.
    pub(crate) fn go_on(&mut self, at_ms: i64) -> Course {
        let was_ended = self.ended.take().is_some();
        let is_first = self.started_ms.is_none();
        self.started_ms.get_or_insert(at_ms);
        match (was_ended, is_first) {
            (true, _) => Course::Reopened,
            (false, true) => Course::Begun,
            (false, false) => Course::Running,
        }
    }

    pub(crate) fn start_session(&mut self, at_ms: i64) {
        self.ended = None;
        self.started_ms = Some(at_ms);
    }

    /// The agent rests: what it did not end by now was refused. Calls with the
    /// agent's own ids may stay, since those are never mistaken for others.
    pub(crate) fn end_turn(&mut self) {
        self.open.retain(|call| !call.made);
    }

    /// The end, or the one that was told already. Only what tells a second
    /// delivery, and a session that goes on, from new ones is kept.
    pub(crate) fn end_session(&mut self, end: Ended) -> Ended {
        if let Some(told) = &self.ended {
            return told.clone();
        }
        *self = Self {
            count: self.count,
            last: self.last.take(),
            ended: Some(end.clone()),
            ..Self::default()
        };
        end
    }

    /// The call that starts. `look` is asked once per call which files are absent.
    pub(crate) fn start_call(
        &mut self,
        seen: Seen<'_>,
        look: impl FnOnce() -> Option<Vec<String>>,
    ) -> String {
        self.number(seen.digest);
        let again = self.open.iter_mut().find(|call| match seen.id {
            Some(id) => call.id == id,
            None => call.made && call.key == seen.key && call.mark == seen.mark,
        });
        if let Some(call) = again {
            // The earlier one may have been refused: the wait since is no run time.
            call.started_ms = Some(seen.at_ms);
            return call.id.clone();
        }
        let call = Call {
            started_ms: Some(seen.at_ms),
            absent: look(),
            ..self.new_call(seen)
        };
        let id = call.id.clone();
        if self.open.len() >= MOST_OPEN {
            self.open.remove(0);
        }
        self.open.push(call);
        id
    }

    /// The call that ends. Its start is the latest that fits: by id, else by
    /// tool and input, else by tool alone, since a hook may rewrite the input.
    pub(crate) fn end_call(&mut self, seen: Seen<'_>) -> Call {
        let before = self.last.as_ref().map(|(digest, _)| digest.clone());
        let is_again = before.as_deref() == Some(seen.digest);
        self.number(seen.digest);
        if let Some(told) = self.told(seen, is_again) {
            return told;
        }
        let start = match seen.id {
            Some(id) => self.open.iter().rposition(|call| call.id == id),
            None => self
                .latest_open(|call| call.key == seen.key)
                .or_else(|| self.latest_open(|call| call.tool == seen.tool)),
        };
        let mut call = match start {
            Some(start) => self.open.remove(start),
            None => self.new_call(seen),
        };
        call.duration_ms = call
            .started_ms
            .and_then(|start| u64::try_from(seen.at_ms.saturating_sub(start)).ok());
        seen.key.clone_into(&mut call.key);
        seen.mark.clone_into(&mut call.mark);
        if self.closed.len() >= MOST_CLOSED {
            self.closed.remove(0);
        }
        self.closed.push(call.clone());
        call
    }

    /// The ended call of which this is the end once more.
    fn told(&self, seen: Seen<'_>, is_again: bool) -> Option<Call> {
        let mut ended = self.closed.iter().rev();
        let Some(id) = seen.id else {
            let call =
                ended.find(|call| call.made && call.key == seen.key && call.mark == seen.mark)?;
            let is_open = self.latest_open(|call| call.key == seen.key).is_some();
            // An agent that tells starts does not end a call that it did not start.
            let pairs = call.started_ms.is_some() && !is_open;
            return (is_again || !seen.mark.is_empty() || pairs).then(|| call.clone());
        };
        let is_open = self.open.iter().any(|call| call.id == id);
        ended
            .find(|call| call.id == id && call.key == seen.key && !is_open)
            .cloned()
    }

    fn latest_open(&self, fits: impl Fn(&Call) -> bool) -> Option<usize> {
        self.open.iter().rposition(|call| call.made && fits(call))
    }

    fn new_call(&mut self, seen: Seen<'_>) -> Call {
        let id = if let Some(id) = seen.id {
            id.to_owned()
        } else {
            let [source, session] = seen.scope;
            // The agent's own time tells calls apart better than our counting.
            let number = if seen.mark.is_empty() {
                self.count.to_string()
            } else {
                String::new()
            };
            stable_id(&[source, session, "call", seen.key, seen.mark, &number])
        };
        Call {
            id,
            key: seen.key.to_owned(),
            tool: seen.tool.to_owned(),
            made: seen.id.is_none(),
            mark: seen.mark.to_owned(),
            ..Call::default()
        }
    }
}
