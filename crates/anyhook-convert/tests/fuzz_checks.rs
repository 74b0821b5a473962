//! A short run of the fuzz targets' own checks of every agent's decoders: over
//! their corpora, over mutations of these, and over arbitrary bytes.

#![cfg(test)]

use corpus::corpus;
use proptest::prelude::*;

#[path = "../../../fuzz/checks/answer.rs"]
mod answer;
#[path = "../../../fuzz/checks/config.rs"]
mod config;
#[path = "../../../fuzz/checks/corpus.rs"]
mod corpus;
#[path = "../../../fuzz/checks/payload.rs"]
mod payload;

/// Cuts, repeats, and overwrites, with pieces that keep JSON alive.
fn mutations(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let pieces = [
        "", "null", "0", "\"\"", "[]", "{}", "-1e308", "\"*\"", "true", ",", "}", "\u{e9}",
    ];
    let edit = (
        any::<u16>(),
        any::<u16>(),
        proptest::sample::select(pieces.to_vec()),
    );
    let edits = proptest::collection::vec(edit, 1..4);
    (proptest::sample::select(seeds), edits).prop_map(|(mut data, edits)| {
        for (at, length, piece) in edits {
            let at = usize::from(at) % (data.len() + 1);
            let end = (at + usize::from(length) % 12).min(data.len());
            data.splice(at..end, piece.bytes());
        }
        data
    })
}

#[test]
fn the_corpora_pass() {
    for data in &corpus("config") {
        config::check(data);
    }
    for data in &corpus("payload") {
        payload::check(data);
    }
    for data in &corpus("answer") {
        answer::check(data);
    }
}

#[test]
fn deep_nesting_is_survived() {
    for unit in ["[", "{\"hooks\":", "{\"hooks\":["] {
        config::check(unit.repeat(50_000).as_bytes());
        payload::check(unit.repeat(50_000).as_bytes());
        answer::check(unit.repeat(50_000).as_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_configs(data in mutations(corpus("config"))) {
        config::check(&data);
    }

    #[test]
    fn mutated_payloads(data in mutations(corpus("payload"))) {
        payload::check(&data);
    }

    #[test]
    fn mutated_answers(data in mutations(corpus("answer"))) {
        answer::check(&data);
    }

    #[test]
    fn arbitrary_bytes(data in proptest::collection::vec(any::<u8>(), 0..200)) {
        config::check(&data);
        payload::check(&data);
        answer::check(&data);
    }
}
