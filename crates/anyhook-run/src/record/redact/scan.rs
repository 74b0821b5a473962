//! Alphabets, and the fast scan for the places at which a secret may be found.

use super::names::may_end_secret_name;
use super::tokens::TOKEN_RULES;

/// A set of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Alphabet(u16);

const DIGIT: u16 = 1;
const LOWER_A_TO_F: u16 = 1 << 1;
const LOWER_G_TO_Z: u16 = 1 << 2;
const UPPER_A_TO_F: u16 = 1 << 3;
const UPPER_G_TO_Z: u16 = 1 << 4;
const DASH: u16 = 1 << 5;
const UNDERSCORE: u16 = 1 << 6;
const DOT: u16 = 1 << 7;
const SLASH: u16 = 1 << 8;
const PLUS_OR_EQUALS: u16 = 1 << 9;
const TILDE: u16 = 1 << 10;
const PERCENT_SIGN: u16 = 1 << 11;
const DOLLAR_SIGN: u16 = 1 << 12;
const AT_SIGN: u16 = 1 << 13;

impl Alphabet {
    pub(super) const DIGITS: Self = Self(DIGIT);
    pub(super) const HEX: Self = Self(DIGIT | LOWER_A_TO_F | UPPER_A_TO_F);
    pub(super) const LOWER: Self = Self(DIGIT | LOWER_A_TO_F | LOWER_G_TO_Z);
    pub(super) const UPPER: Self = Self(DIGIT | UPPER_A_TO_F | UPPER_G_TO_Z);
    pub(super) const UPPER_DASH: Self = Self(Self::UPPER.0 | DASH);
    pub(super) const HEX_DASH: Self = Self(Self::HEX.0 | DASH);
    pub(super) const ALPHANUMERIC: Self = Self(Self::LOWER.0 | Self::UPPER.0);
    pub(super) const WORD: Self = Self(Self::ALPHANUMERIC.0 | UNDERSCORE);
    pub(super) const URL_SAFE: Self = Self(Self::WORD.0 | DASH);
    pub(super) const TOKEN: Self = Self(Self::URL_SAFE.0 | DOT);
    pub(super) const BASE64: Self = Self(Self::URL_SAFE.0 | SLASH | PLUS_OR_EQUALS);
    pub(super) const PERCENT: Self = Self(Self::BASE64.0 | PERCENT_SIGN);
    pub(super) const DOLLAR: Self = Self(Self::WORD.0 | DOLLAR_SIGN);
    pub(super) const PATH: Self = Self(Self::TOKEN.0 | SLASH | AT_SIGN);
    /// What a token in a header may consist of.
    pub(super) const HEADER: Self = Self(Self::BASE64.0 | DOT | TILDE);

    pub(super) fn contains(self, byte: u8) -> bool {
        CLASSES
            .get(usize::from(byte))
            .is_some_and(|class| class & self.0 != 0)
    }

    /// The number of bytes from `at` on that belong to the alphabet.
    pub(super) fn run(self, bytes: &[u8], at: usize) -> usize {
        run_length(bytes, at, |byte| self.contains(byte))
    }

    /// The number of bytes before `at` that belong to the alphabet, at most `limit`.
    pub(super) fn run_before(self, bytes: &[u8], at: usize, limit: usize) -> usize {
        let head = bytes.get(..at).unwrap_or_default().iter().rev();
        head.take(limit)
            .take_while(|byte| self.contains(**byte))
            .count()
    }

    #[cfg(test)]
    pub(super) fn describe(self) -> &'static str {
        let names = [
            (Self::DIGITS, "digits"),
            (Self::HEX, "hex digits"),
            (Self::LOWER, "lowercase letters, digits"),
            (Self::UPPER, "uppercase letters, digits"),
            (Self::UPPER_DASH, "uppercase letters, digits, `-`"),
            (Self::HEX_DASH, "hex digits, `-`"),
            (Self::ALPHANUMERIC, "letters, digits"),
            (Self::WORD, "letters, digits, `_`"),
            (Self::URL_SAFE, "letters, digits, `-`, `_`"),
            (Self::TOKEN, "letters, digits, `-`, `_`, `.`"),
            (Self::BASE64, "base64"),
            (Self::PERCENT, "base64, `%`"),
            (Self::DOLLAR, "letters, digits, `_`, `$`"),
            (Self::PATH, "letters, digits, `-`, `_`, `.`, `/`, `@`"),
            (Self::HEADER, "base64, `.`, `~`"),
        ];
        let name = names.iter().find(|(alphabet, _)| *alphabet == self);
        name.map_or("unknown", |(_, name)| name)
    }
}

static CLASSES: [u16; 256] = classes();

#[allow(clippy::indexing_slicing, reason = "a byte is less than 256")]
const fn classes() -> [u16; 256] {
    let mut classes = [0; 256];
    let mut byte: u8 = 0;
    while byte < 128 {
        classes[byte as usize] = match byte {
            b'0'..=b'9' => DIGIT,
            b'a'..=b'f' => LOWER_A_TO_F,
            b'g'..=b'z' => LOWER_G_TO_Z,
            b'A'..=b'F' => UPPER_A_TO_F,
            b'G'..=b'Z' => UPPER_G_TO_Z,
            b'-' => DASH,
            b'_' => UNDERSCORE,
            b'.' => DOT,
            b'/' => SLASH,
            b'+' | b'=' => PLUS_OR_EQUALS,
            b'~' => TILDE,
            b'%' => PERCENT_SIGN,
            b'$' => DOLLAR_SIGN,
            b'@' => AT_SIGN,
            _ => 0,
        };
        byte += 1;
    }
    classes
}

/// The number of bytes from `at` on that are wanted.
pub(super) fn run_length(bytes: &[u8], at: usize, wanted: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.iter().take_while(|byte| wanted(**byte)).count()
}

pub(super) fn starts_with_ignore_case(text: &[u8], head: &[u8]) -> bool {
    text.get(..head.len())
        .is_some_and(|text| text.eq_ignore_ascii_case(head))
}

pub(super) fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

/// Whether a token can begin at `at`: it is not inside a word.
pub(super) fn is_word_start(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| bytes.get(before));
    before.is_none_or(|byte| !Alphabet::WORD.contains(*byte))
}

/// Words that announce a secret and are no prefix of a token: web tokens, schemes of
/// credentials, commands that set a variable, SQL, passwords, and numeric ids in base64.
#[rustfmt::skip]
const WORD_HEADS: &[&[u8]] = &[
    b"eyJ", b"bea", b"bas", b"Bea", b"Bas", b"BEA", b"BAS", b"bEA", b"bAS", b"by ", b"By ", b"BY ", b"bY ",
    b"set", b"Set", b"con", b"ENV", b"def", b"aut", b"pas", b"Pas", b"PAS", b"pat",
    b"MD", b"MT", b"Mj", b"Mz", b"ND", b"NT", b"Nj", b"Nz", b"OD", b"OT", b"Oj", b"Oz",
];

/// A bit for each letter and one for the digits, for the words that begin with them, and
/// these for places within words and for marks.
type HeadSet = u64;

const DIGIT_WORD: HeadSet = 1 << 52;
const OPTION: HeadSet = 1 << 53;
const INFIX: HeadSet = 1 << 54;
const ESCAPE: HeadSet = 1 << 55;
const DASH_INFIX: HeadSet = 1 << 56;
const TAG: HeadSet = 1 << 57;
const QUOTE: HeadSet = 1 << 58;
const OPEN: HeadSet = 1 << 59;
const DOT_MARK: HeadSet = 1 << 60;
const COLON: HeadSet = 1 << 61;
const EQUALS: HeadSet = 1 << 62;
const CONTROL: HeadSet = 1 << 63;
/// The heads that must begin a word.
const WORDS: HeadSet = INFIX - 1;

/// The heads that have a byte as their first, second and third, and that may follow it.
/// Every byte of every text is looked up here without a branch, and few places are left.
struct HeadTable {
    after: [HeadSet; 256],
    first: [HeadSet; 256],
    second: [HeadSet; 256],
    third: [HeadSet; 256],
}

static HEAD_TABLE: HeadTable = HeadTable::new();

#[allow(clippy::indexing_slicing, reason = "a byte is less than 256")]
impl HeadTable {
    const fn new() -> Self {
        let mut table = Self {
            after: [HeadSet::MAX; 256],
            first: [0; 256],
            second: [0; 256],
            third: [0; 256],
        };
        let mut rules = TOKEN_RULES;
        while let [rule, rest @ ..] = rules {
            table.add_word(rule.prefix.as_bytes());
            rules = rest;
        }
        let mut words = WORD_HEADS;
        while let [head, rest @ ..] = words {
            table.add_word(head);
            words = rest;
        }
        let mut byte: usize = 0;
        while byte < 256 {
            if CLASSES[byte] & Alphabet::WORD.0 != 0 {
                table.after[byte] &= !WORDS;
            }
            byte += 1;
        }
        table.add(b"AJN", b"ZQR", b"DQA", INFIX);
        table.add(b"Q", b"~", b"", INFIX);
        table.add(b"\x1b", b"[", b"", CONTROL);
        table.add(b"\\%", b"ntru0123456789abcdefABCDEF", b"", ESCAPE);
        let alphanumeric = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-";
        table.add(b"-", alphanumeric, b"", OPTION);
        table.add(b"-", b"0123456789abcdefuSs", b"", DASH_INFIX);
        table.add(b"<", alphanumeric, b"", TAG);
        table.add(b"\"'", b",", b"", QUOTE);
        table.add(b"(", b"\"'\\", b"", OPEN);
        table.add(b".", b"a", b"t", DOT_MARK);
        table.add(b":", b"", b"", COLON);
        table.add(b"=", b"", b"", EQUALS);
        table.second[b':' as usize] &= !COLON;
        table.second[b'=' as usize] &= !EQUALS;
        table
    }

    /// Adds all combinations of bytes; none means any.
    const fn add(&mut self, first: &[u8], second: &[u8], third: &[u8], set: HeadSet) {
        add_all(&mut self.first, first, set);
        add_all(&mut self.second, second, set);
        add_all(&mut self.third, third, set);
    }

    const fn add_word(&mut self, head: &[u8]) {
        if let [first, second, tail @ ..] = head {
            let set = match first {
                b'a'..=b'z' => 1 << (*first - b'a'),
                b'A'..=b'Z' => 1 << (*first - b'A' + 26),
                _ => DIGIT_WORD,
            };
            let third: &[u8] = match tail {
                [third, ..] => &[*third],
                [] => &[],
            };
            self.add(&[*first], &[*second], third, set);
        }
    }
}

#[allow(clippy::indexing_slicing, reason = "a byte is less than 256")]
const fn add_all(table: &mut [HeadSet; 256], mut bytes: &[u8], set: HeadSet) {
    if bytes.is_empty() {
        let mut byte = 0;
        while byte < 256 {
            table[byte] |= set;
            byte += 1;
        }
    }
    while let [byte, rest @ ..] = bytes {
        table[*byte as usize] |= set;
        bytes = rest;
    }
}

/// The next place from `from` on at which a secret may be found; none has less than
/// three bytes.
pub(super) fn next_candidate(text: &[u8], from: usize) -> Option<usize> {
    let mut from = from;
    loop {
        let at = next_head(text, from)?;
        if is_candidate(text, at) {
            return Some(at);
        }
        from = at + 1;
    }
}

#[allow(clippy::indexing_slicing, reason = "a byte is less than 256")]
fn next_head(text: &[u8], from: usize) -> Option<usize> {
    let head = |before: HeadSet, first: u8, second: u8, third: u8| {
        let first = before & HEAD_TABLE.first[usize::from(first)];
        first & HEAD_TABLE.second[usize::from(second)] & HEAD_TABLE.third[usize::from(third)] != 0
    };
    let Some(before) = from.checked_sub(1) else {
        let [first, second, third, ..] = text else {
            return None;
        };
        if head(HeadSet::MAX, *first, *second, *third) {
            return Some(0);
        }
        return next_head(text, 1);
    };
    let text = text.get(before..)?;
    let [second, third, fourth] = [text.get(1..)?, text.get(2..)?, text.get(3..)?];
    let mut bytes = text.iter().zip(second).zip(third).zip(fourth);
    let position = bytes.position(|(((before, first), second), third)| {
        head(
            HEAD_TABLE.after[usize::from(*before)],
            *first,
            *second,
            *third,
        )
    });
    position.map(|position| from + position)
}

/// Whether a rule may apply at a head: most names before a mark lack a letter.
fn is_candidate(text: &[u8], at: usize) -> bool {
    match text.get(at..) {
        Some([b':', second, third, ..]) => {
            let before = at.checked_sub(1).and_then(|before| text.get(before));
            match second {
                b'/' if *third == b'/' => true,
                b'0'..=b'9' | b'*' | b'f' | b'A' => true,
                _ => before.is_some_and(u8::is_ascii_digit) || has_secret_name(text, at),
            }
        }
        Some([b'=' | b'"' | b'\'' | b'(', ..]) => has_secret_name(text, at),
        // Within a word: `-us1`, `-SecureString`, the second group of a Mailgun key.
        Some([b'-', second, ..]) if !is_word_start(text, at) => {
            matches!(second, b'u' | b'S' | b's') || text.get(at + 9) == Some(&b'-')
        }
        _ => true,
    }
}

/// Whether the name before `at` has the letters of one that marks a secret.
fn has_secret_name(text: &[u8], at: usize) -> bool {
    let head = text.get(at.saturating_sub(96)..at).unwrap_or_default();
    let name = head
        .iter()
        .rev()
        .skip_while(|byte| !Alphabet::WORD.contains(**byte));
    let letters = name
        .take_while(|byte| Alphabet::URL_SAFE.contains(**byte))
        .fold(0, |all, byte| all | super::names::letter(*byte));
    may_end_secret_name(letters)
}

/// Whether a text begins with a word, in any case, and a blank.
pub(super) fn strip_word<'a>(text: &'a [u8], word: &str) -> Option<&'a [u8]> {
    let tail = text.get(word.len()..)?;
    let is_end = tail
        .first()
        .is_some_and(|byte| matches!(byte, b' ' | b'\t'));
    (starts_with_ignore_case(text, word.as_bytes()) && is_end).then_some(tail)
}
