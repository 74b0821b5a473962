//! Checks that the Codex bridge handles any bytes of an app server, in chunks of any size.

use std::io::{self, Read};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use anyhook_codex::ApprovalVerdict;
use anyhook_codex::approval::Approval;
use anyhook_codex::map::{MappedMessage, Mapper};
use anyhook_codex::pump::{Pump, PumpEnd};
use anyhook_codex::wire::IncomingMessage;
use anyhook_model::{HookEvent, HookResponse};
use serde_json::Value;

/// Reads its bytes in chunks of these sizes, repeated.
struct ChunkedReader<'a> {
    bytes: &'a [u8],
    sizes: std::iter::Cycle<std::slice::Iter<'a, u8>>,
}

impl Read for ChunkedReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let wanted = self
            .sizes
            .next()
            .map_or(usize::MAX, |size| usize::from(*size).max(1));
        let taken = wanted.min(into.len()).min(self.bytes.len());
        let (chunk, rest) = self.bytes.split_at(taken);
        into[..taken].copy_from_slice(chunk);
        self.bytes = rest;
        Ok(taken)
    }
}

/// The first line has the chunk sizes, the rest is the stream.
pub(crate) fn check(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n');
    let (sizes, stream) = end.map_or((&[][..], data), |at| (&data[..at], &data[at + 1..]));
    let reader = ChunkedReader {
        bytes: stream,
        sizes: sizes.iter().cycle(),
    };

    let mut mapper = Mapper::default();
    let out = Mutex::new(Some(Vec::new()));
    let (mut passed, mut held) = (Vec::new(), Vec::new());
    let look = |line: &[u8]| {
        let approval = requested_approval(&mut mapper, line);
        if approval.is_none() {
            passed.extend_from_slice(line);
        }
        approval
    };
    let hold = |approval: Box<Approval>, line: &[u8]| {
        assert_answers(&approval);
        held.push(line.to_vec());
    };
    let ended = Pump::new(reader, &out, &AtomicBool::new(false)).run(look, hold);

    // Everything that is not held passes unchanged and in order.
    let PumpEnd::Reader(last) = ended else {
        panic!("the writer never fails");
    };
    assert_eq!(out.into_inner().ok().flatten(), Some(passed));
    let whole = &stream[..stream.len() - last.len()];
    assert!(!last.contains(&b'\n') && stream.ends_with(&last));
    let mut again = Mapper::default();
    let lines = whole.split_inclusive(|byte| *byte == b'\n');
    let expected: Vec<&[u8]> = lines
        .filter(|line| requested_approval(&mut again, line).is_some())
        .collect();
    assert_eq!(held, expected);
}

/// Passes a line to a mapper as a message of either side; the approval it asks for.
fn requested_approval(mapper: &mut Mapper, line: &[u8]) -> Option<Box<Approval>> {
    let message = IncomingMessage::parse(line)?;
    mapper.observe_client(&message);
    match mapper.map_server(&message) {
        MappedMessage::Event(event) => {
            assert_round_trip(&event);
            None
        }
        MappedMessage::Approval(approval) => Some(approval),
        MappedMessage::Nothing | MappedMessage::Resolved(_) => None,
    }
}

fn assert_round_trip(event: &HookEvent) {
    assert_eq!(event.source, "codex");
    assert!(
        anyhook_model::registry::event(&event.event).is_some(),
        "{}",
        event.event
    );
    let json = serde_json::to_string(event).expect("an event is JSON");
    let back: HookEvent = serde_json::from_str(&json).expect("and comes back");
    assert_eq!(&back, event);
}

fn assert_answers(approval: &Approval) {
    assert_round_trip(&approval.event);
    assert_eq!(
        approval.verdict(&HookResponse::default()),
        ApprovalVerdict::NoOpinion
    );
    for verdict in [ApprovalVerdict::Ask, ApprovalVerdict::NoOpinion] {
        assert!(approval.kind.answer(verdict, None).is_none());
    }
    for verdict in [
        ApprovalVerdict::Accept,
        ApprovalVerdict::AcceptForSession,
        ApprovalVerdict::Decline,
        ApprovalVerdict::Cancel,
    ] {
        let answer = approval
            .kind
            .answer(verdict, Some("no\n"))
            .expect("an answer");
        let reply = approval.reply(&answer);
        assert!(!reply.contains('\n'), "one line: {reply}");
        let reply: Value = serde_json::from_str(&reply).expect("a reply is JSON");
        assert_eq!(
            reply["id"],
            serde_json::from_str::<Value>(&approval.id.to_json()).expect("an id")
        );
    }
}
