//! Requests that wait for the hooks.
//!
//! The server repeats a request when a client joins its thread, and that is still
//! one request. Two different requests of one id are another matter: an answer
//! would count for both. Then hooks decide about each, a no counts at once, and a
//! yes is left to the user.

use std::collections::HashMap;

use crate::approval::{Approval, ApprovalVerdict};
use crate::wire::RequestId;

/// One decision of the hooks. An id may be used again before they have decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecisionToken(u64);

#[derive(Debug, Default)]
pub(crate) struct OpenRequests {
    open: HashMap<RequestId, OpenRequest>,
    decisions: u64,
}

#[derive(Debug, Default)]
struct OpenRequest {
    /// The messages, repeated ones included.
    lines: Vec<Vec<u8>>,
    /// What they ask for.
    contents: Vec<String>,
    /// How many of them the client has got.
    forwarded: usize,
    /// Decisions that are not made yet.
    pending: Vec<DecisionToken>,
}

/// What follows from a decision of the hooks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OpenVerdict {
    /// The request is answered, or another decision about it is not made yet.
    Nothing,
    /// The request is answered by this verdict, or left to the client with these
    /// lines.
    Decided(ApprovalVerdict, Vec<u8>),
}

impl OpenRequests {
    /// Adds a request; a token if hooks have to decide about it.
    pub(crate) fn add(&mut self, approval: &Approval, line: &[u8]) -> Option<DecisionToken> {
        let request = self.open.entry(approval.id.clone()).or_default();
        request.lines.push(line.to_vec());
        if request.contents.contains(&approval.content) {
            return None;
        }
        request.contents.push(approval.content.clone());
        self.decisions += 1;
        let token = DecisionToken(self.decisions);
        request.pending.push(token);
        Some(token)
    }

    /// The request is answered or withdrawn.
    pub(crate) fn remove(&mut self, id: &RequestId) {
        self.open.remove(id);
    }

    pub(crate) fn decide(
        &mut self,
        id: &RequestId,
        token: DecisionToken,
        verdict: ApprovalVerdict,
    ) -> OpenVerdict {
        let Some(request) = self.open.get_mut(id) else {
            return OpenVerdict::Nothing;
        };
        let pending = request.pending.len();
        request.pending.retain(|waiting| *waiting != token);
        if request.pending.len() == pending {
            return OpenVerdict::Nothing;
        }
        let is_no = matches!(verdict, ApprovalVerdict::Decline | ApprovalVerdict::Cancel);
        if !is_no && !request.pending.is_empty() {
            return OpenVerdict::Nothing;
        }
        let verdict = if is_no || request.contents.len() < 2 {
            verdict
        } else {
            ApprovalVerdict::NoOpinion
        };
        let lines = request.take_lines();
        self.open.remove(id);
        OpenVerdict::Decided(verdict, lines)
    }

    /// The lines of a request that the client has not got; it stays open.
    pub(crate) fn take_lines(&mut self, id: &RequestId) -> Vec<u8> {
        let request = self.open.get_mut(id);
        request.map(OpenRequest::take_lines).unwrap_or_default()
    }

    /// The lines of all requests that the client has not got.
    pub(crate) fn drain(&mut self) -> Vec<u8> {
        let mut open: Vec<_> = self.open.drain().collect();
        open.sort_by(|(left, _), (right, _)| left.cmp(right));
        let lines = open.iter_mut().map(|(_, request)| request.take_lines());
        lines.flatten().collect()
    }
}

impl OpenRequest {
    fn take_lines(&mut self) -> Vec<u8> {
        let lines = self.lines.get(self.forwarded..).unwrap_or_default();
        let lines = lines.concat();
        self.forwarded = self.lines.len();
        lines
    }
}

#[cfg(test)]
mod tests {
    use anyhook_model::HookEvent;

    use super::*;
    use crate::approval::ApprovalKind;
    use ApprovalVerdict::{Accept, Decline, NoOpinion};

    const ID: RequestId = RequestId::Number(1);

    fn approval(content: &str) -> Approval {
        Approval {
            id: ID,
            kind: ApprovalKind::Command,
            event: HookEvent::default(),
            content: content.to_owned(),
            is_complete: true,
        }
    }

    fn decided(verdict: ApprovalVerdict, lines: &str) -> OpenVerdict {
        OpenVerdict::Decided(verdict, lines.as_bytes().to_vec())
    }

    #[test]
    fn a_repeated_request_is_decided_once() {
        let mut open = OpenRequests::default();
        let token = open.add(&approval("a"), b"a").unwrap();
        assert_eq!(open.add(&approval("a"), b"a"), None);
        assert_eq!(open.decide(&ID, token, Accept), decided(Accept, "aa"));
        assert_eq!(open.decide(&ID, token, Accept), OpenVerdict::Nothing);
    }

    #[test]
    fn no_request_gets_the_yes_of_another() {
        let mut open = OpenRequests::default();
        let first = open.add(&approval("a"), b"a").unwrap();
        let second = open.add(&approval("b"), b"b").unwrap();
        assert_eq!(open.decide(&ID, first, Accept), OpenVerdict::Nothing);
        assert_eq!(open.decide(&ID, second, Accept), decided(NoOpinion, "ab"));

        let first = open.add(&approval("a"), b"a").unwrap();
        let second = open.add(&approval("b"), b"b").unwrap();
        assert_eq!(open.decide(&ID, second, Decline), decided(Decline, "ab"));
        assert_eq!(open.decide(&ID, first, Accept), OpenVerdict::Nothing);

        // The client has answered the first, and the id is used again.
        let first = open.add(&approval("a"), b"a").unwrap();
        open.remove(&ID);
        let second = open.add(&approval("b"), b"b").unwrap();
        assert_eq!(open.decide(&ID, first, Accept), OpenVerdict::Nothing);
        assert_eq!(open.decide(&ID, second, NoOpinion), decided(NoOpinion, "b"));
    }
}
