//! A short run of the fuzz target's own check: over its corpus, over mutations
//! of that, and over arbitrary bytes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use corpus::corpus;
use proptest::prelude::*;

#[path = "../../../fuzz/checks/corpus.rs"]
mod corpus;
#[path = "../../../fuzz/checks/redact.rs"]
mod redact;

#[test]
fn the_corpus_passes() {
    for data in corpus("redact") {
        redact::check(&data);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Cuts, and overwrites.
    #[test]
    fn mutated(mut data in prop::sample::select(corpus("redact")), edits in prop::collection::vec((any::<u16>(), 0_usize..40, prop::collection::vec(any::<u8>(), 0..6)), 1..5)) {
        for (at, length, bytes) in edits {
            let at = usize::from(at) % (data.len() + 1);
            let end = (at + length).min(data.len());
            data.splice(at..end, bytes);
        }
        redact::check(&data);
    }

    #[test]
    fn arbitrary(data in prop::collection::vec(any::<u8>(), 0..400)) {
        redact::check(&data);
    }
}
