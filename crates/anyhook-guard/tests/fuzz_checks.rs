//! A short run of the fuzz target's own check: over its corpus, over mutations of
//! it, and over arbitrary bytes.

#![cfg(test)]

use corpus::corpus;
use mutate::mutations;
use proptest::prelude::*;

#[path = "../../../fuzz/checks/corpus.rs"]
mod corpus;
#[path = "../../../fuzz/checks/guard.rs"]
mod guard;
#[path = "../../../fuzz/checks/mutate.rs"]
mod mutate;

#[test]
fn the_corpus_passes() {
    for data in corpus("guard") {
        guard::check(&data);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated(data in mutations(corpus("guard"))) {
        guard::check(&data);
    }

    #[test]
    fn arbitrary(data in prop::collection::vec(any::<u8>(), 0..400)) {
        guard::check(&data);
    }
}
