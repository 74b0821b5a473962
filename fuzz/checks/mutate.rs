//! Variations of the inputs in a corpus.

use proptest::prelude::*;

/// Cuts, repeats and overwrites parts of an input.
pub(crate) fn mutations(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let edit = (
        any::<u16>(),
        any::<u16>(),
        proptest::collection::vec(any::<u8>(), 0..6),
    );
    let edits = proptest::collection::vec(edit, 1..5);
    (proptest::sample::select(seeds), edits).prop_map(|(mut data, edits)| {
        for (at, length, bytes) in edits {
            let at = usize::from(at) % (data.len() + 1);
            let end = (at + usize::from(length) % 40).min(data.len());
            let cut: Vec<u8> = data.splice(at..end, bytes).collect();
            if length % 3 == 0 {
                data.extend(cut);
            }
        }
        data
    })
}
