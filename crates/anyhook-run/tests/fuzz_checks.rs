//! A short run of the fuzz targets' own checks: over their corpora, over mutations
//! of these, and over arbitrary bytes.

#![cfg(test)]

use corpus::corpus;
use mutate::mutations;
use proptest::prelude::*;

#[path = "../../../fuzz/checks/cache.rs"]
mod cache;
#[path = "../../../fuzz/checks/consent.rs"]
mod consent;
#[path = "../../../fuzz/checks/corpus.rs"]
mod corpus;
#[path = "../../../fuzz/checks/mutate.rs"]
mod mutate;
#[path = "../../../fuzz/checks/policy.rs"]
mod policy;
#[path = "../../../fuzz/checks/redact.rs"]
mod redact;
#[path = "../../../fuzz/checks/settings.rs"]
mod settings;

type Check = (&'static str, fn(&[u8]));

const CHECKS: [Check; 5] = [
    ("cache", cache::check),
    ("consent", consent::check),
    ("policy", policy::check),
    ("redact", redact::check),
    ("settings", settings::check),
];

#[test]
fn the_corpora_pass() {
    for (name, check) in CHECKS {
        for data in corpus(name) {
            check(&data);
        }
    }
}

fn all_mutations() -> impl Strategy<Value = (Check, Vec<u8>)> {
    proptest::sample::select(CHECKS.to_vec())
        .prop_flat_map(|target| (Just(target), mutations(corpus(target.0))))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated(((_, check), data) in all_mutations()) {
        check(&data);
    }

    #[test]
    fn arbitrary(data in prop::collection::vec(any::<u8>(), 0..400)) {
        for (_, check) in CHECKS {
            check(&data);
        }
    }
}
