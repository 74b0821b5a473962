//! What must hold for any bytes that an app-server says, however they are cut.

use std::io::{self, Read};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use anyhook_codex::Verdict;
use anyhook_codex::approval::Approval;
use anyhook_codex::map::{Mapper, Seen};
use anyhook_codex::pump::{Ended, Pump};
use anyhook_codex::wire::Incoming;
use anyhook_model::{HookEvent, HookResponse};
use serde_json::Value;

/// Gives its bytes in pieces of the wanted sizes, over and over.
struct Pieces<'a> {
    bytes: &'a [u8],
    sizes: std::iter::Cycle<std::slice::Iter<'a, u8>>,
}

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let wanted = self
            .sizes
            .next()
            .map_or(usize::MAX, |size| usize::from(*size).max(1));
        let taken = wanted.min(into.len()).min(self.bytes.len());
        let (now, later) = self.bytes.split_at(taken);
        into[..taken].copy_from_slice(now);
        self.bytes = later;
        Ok(taken)
    }
}

/// The first line says how the rest is cut.
pub fn check(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n');
    let (sizes, stream) = end.map_or((&[][..], data), |at| (&data[..at], &data[at + 1..]));
    let reader = Pieces {
        bytes: stream,
        sizes: sizes.iter().cycle(),
    };

    let mut mapper = Mapper::default();
    let out = Mutex::new(Some(Vec::new()));
    let (mut passed, mut held) = (Vec::new(), Vec::new());
    let look = |line: &[u8]| {
        let approval = seen(&mut mapper, line);
        if approval.is_none() {
            passed.extend_from_slice(line);
        }
        approval
    };
    let hold = |approval: Box<Approval>, line: &[u8]| {
        judge(&approval);
        held.push(line.to_vec());
    };
    let ended = Pump::new(reader, &out, &AtomicBool::new(false)).run(look, hold);

    // Nothing is lost, changed or out of its order but what is held.
    let Ended::Reader(last) = ended else {
        panic!("the writer takes everything");
    };
    assert_eq!(out.into_inner().ok().flatten(), Some(passed));
    let whole = &stream[..stream.len() - last.len()];
    assert!(!last.contains(&b'\n') && stream.ends_with(&last));
    let mut again = Mapper::default();
    let lines = whole.split_inclusive(|byte| *byte == b'\n');
    let expected: Vec<&[u8]> = lines
        .filter(|line| seen(&mut again, line).is_some())
        .collect();
    assert_eq!(held, expected);
}

/// Shows a line to a mapper, as one of either side.
fn seen(mapper: &mut Mapper, line: &[u8]) -> Option<Box<Approval>> {
    let message = Incoming::read(line)?;
    mapper.client(&message);
    match mapper.server(&message) {
        Seen::Event(event) => {
            round_trip(&event);
            None
        }
        Seen::Approval(approval) => Some(approval),
        Seen::Nothing | Seen::Resolved(_) => None,
    }
}

fn round_trip(event: &HookEvent) {
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

fn judge(approval: &Approval) {
    round_trip(&approval.event);
    assert_eq!(
        approval.verdict(&HookResponse::default()),
        Verdict::NoOpinion
    );
    for verdict in [Verdict::Ask, Verdict::NoOpinion] {
        assert!(approval.kind.answer(verdict, None).is_none());
    }
    for verdict in [
        Verdict::Accept,
        Verdict::AcceptForSession,
        Verdict::Decline,
        Verdict::Cancel,
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
            serde_json::to_value(&approval.id).expect("an id")
        );
    }
}
