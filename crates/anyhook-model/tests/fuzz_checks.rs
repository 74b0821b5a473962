//! A short run of the fuzz targets' own checks: over their corpora, over
//! mutations of these, and over arbitrary bytes.

#![cfg(test)]

use corpus::corpus;
use mutate::mutations;
use proptest::prelude::*;

#[path = "../../../fuzz/checks/corpus.rs"]
mod corpus;
#[path = "../../../fuzz/checks/manifest.rs"]
mod manifest;
#[path = "../../../fuzz/checks/matcher.rs"]
mod matcher;
#[path = "../../../fuzz/checks/mutate.rs"]
mod mutate;

#[test]
fn the_corpora_pass() {
    for data in corpus("manifest") {
        manifest::check(&data);
    }
    for data in corpus("matcher") {
        matcher::check(&data);
    }
}

#[test]
fn deep_nesting_is_a_finding() {
    for unit in ["[", "{\"a\":", "- ", "{a: ", "? ", "(("] {
        manifest::check(unit.repeat(50_000).as_bytes());
        matcher::check(unit.repeat(50_000).as_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_manifests(data in mutations(corpus("manifest"))) {
        manifest::check(&data);
    }

    #[test]
    fn mutated_matchers(data in mutations(corpus("matcher"))) {
        matcher::check(&data);
    }

    #[test]
    fn arbitrary_bytes(data in proptest::collection::vec(any::<u8>(), 0..200)) {
        manifest::check(&data);
        matcher::check(&data);
    }

    #[test]
    fn arbitrary_punctuation(text in "[\\[\\]{}:,\"'#&*!|>%@`\\- \n\ta01.?\\\\/]{0,60}") {
        manifest::check(text.as_bytes());
        matcher::check(text.as_bytes());
    }
}
