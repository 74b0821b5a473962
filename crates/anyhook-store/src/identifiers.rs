//! Codes for long identifiers in a text: ids, hashes, numbers.
//!
//! Every three characters of an identifier are in many events, so an index of threes cannot
//! tell one among millions. Of [`WINDOW_GRAMS`] neighbouring groups of [`GRAM_CHARS`]
//! characters, the one with the lowest hash gets a code. What a part of a text chooses, the
//! whole text chooses too: an event that contains a text has all of the text's codes.
//!
//! Owns which codes a text has. Touches no database.

use std::collections::BTreeSet;

const GRAM_CHARS: usize = 6;
const WINDOW_GRAMS: usize = 3;
/// A million codes: few enough that each is in several events, which takes little space.
const CODE_BITS: u32 = 20;
/// Letters of a code, of five bits each.
const CODE_LETTERS: u32 = CODE_BITS / 5;

/// The codes of a lowercase text, of four letters and digits each. None if it has no run of
/// eight letters and digits with a digit in every six.
pub(crate) fn codes(text: &str) -> BTreeSet<String> {
    let mut codes = BTreeSet::new();
    let is_in_word = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    for word in text.as_bytes().split(|byte| !is_in_word(byte)) {
        let hashes: Vec<Option<u32>> = word.windows(GRAM_CHARS).map(gram_hash).collect();
        for window in hashes.windows(WINDOW_GRAMS) {
            let window: Option<Vec<u32>> = window.iter().copied().collect();
            if let Some(lowest) = window.and_then(|hashes| hashes.into_iter().min()) {
                codes.insert(lowest);
            }
        }
    }
    codes.into_iter().map(code_letters).collect()
}

/// `None` without a digit: words are common.
fn gram_hash(gram: &[u8]) -> Option<u32> {
    gram.iter().any(u8::is_ascii_digit).then_some(())?;
    let all = gram
        .iter()
        .fold(0_u64, |all, byte| (all << 8) | u64::from(*byte));
    let mixed = (all ^ (all >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    u32::try_from(mixed >> (u64::BITS - CODE_BITS)).ok()
}

fn code_letters(code: u32) -> String {
    (0..CODE_LETTERS)
        .filter_map(|at| char::from_digit((code >> (5 * at)) & 31, 32))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_text_has_no_codes_but_those_of_the_text() {
        let text = "toolu_01a7f3c9e5d2b8 /src/main.rs 0190a1b2-77aa-7c01-8f00-0123456789ab ä 20260223t101530";
        let all = codes(text);
        for (from, _) in text.char_indices() {
            for (until, _) in text.char_indices().filter(|(until, _)| *until > from) {
                assert!(codes(&text[from..until]).is_subset(&all));
            }
        }
        assert!(codes("cargo test --workspace src/main.rs file_231.rs").is_empty());
        for part in ["01a7f3c9", "0123456789ab", "20260223t1"] {
            assert!(!codes(part).is_empty(), "{part}");
        }
        assert!(codes("01a7f3c9").iter().all(|code| code.len() == 4));
    }
}
