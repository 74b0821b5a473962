//! The keys of the large vendors, by their prefixes.

/// A prefix that only keys have, and what follows it.
pub struct Shape {
    pub kind: &'static str,
    pub prefix: &'static str,
    /// How many characters of the alphabet follow at least.
    pub least: usize,
    pub alphabet: fn(u8) -> bool,
}

const fn shape(
    kind: &'static str,
    prefix: &'static str,
    least: usize,
    alphabet: fn(u8) -> bool,
) -> Shape {
    Shape {
        kind,
        prefix,
        least,
        alphabet,
    }
}

/// Longer prefixes first where one begins another.
const SHAPES: [Shape; 43] = [
    shape("anthropic-key", "sk-ant-", 16, is_url_safe),
    shape("openai-key", "sk-proj-", 16, is_url_safe),
    shape("openrouter-key", "sk-or-", 16, is_url_safe),
    shape("api-key", "sk-", 20, is_url_safe),
    shape("stripe-key", "sk_live_", 10, is_alphanumeric),
    shape("stripe-key", "sk_test_", 10, is_alphanumeric),
    shape("stripe-key", "rk_live_", 10, is_alphanumeric),
    shape("stripe-key", "rk_test_", 10, is_alphanumeric),
    shape("webhook-secret", "whsec_", 16, is_base64),
    shape("aws-key", "AKIA", 16, is_upper),
    shape("aws-key", "ASIA", 16, is_upper),
    shape("google-key", "AIza", 30, is_url_safe),
    shape("google-token", "ya29.", 20, is_url_safe),
    shape("google-secret", "GOCSPX-", 20, is_url_safe),
    shape("github-token", "github_pat_", 20, is_url_safe),
    shape("github-token", "ghp_", 20, is_alphanumeric),
    shape("github-token", "gho_", 20, is_alphanumeric),
    shape("github-token", "ghu_", 20, is_alphanumeric),
    shape("github-token", "ghs_", 20, is_alphanumeric),
    shape("github-token", "ghr_", 20, is_alphanumeric),
    shape("gitlab-token", "glpat-", 16, is_url_safe),
    shape("gitlab-token", "gldt-", 16, is_url_safe),
    shape("gitlab-token", "glrt-", 16, is_url_safe),
    shape("gitlab-token", "glcbt-", 16, is_url_safe),
    shape("slack-token", "xoxb-", 10, is_url_safe),
    shape("slack-token", "xoxp-", 10, is_url_safe),
    shape("slack-token", "xoxa-", 10, is_url_safe),
    shape("slack-token", "xoxr-", 10, is_url_safe),
    shape("slack-token", "xoxs-", 10, is_url_safe),
    shape("slack-token", "xoxe.", 10, is_token),
    shape("slack-token", "xapp-", 10, is_url_safe),
    shape("slack-webhook", "hooks.slack.com/services/", 16, is_path),
    shape("xai-key", "xai-", 30, is_alphanumeric),
    shape("groq-key", "gsk_", 30, is_alphanumeric),
    shape("huggingface-token", "hf_", 25, is_alphanumeric),
    shape("npm-token", "npm_", 30, is_alphanumeric),
    shape("pypi-token", "pypi-", 40, is_url_safe),
    shape("digitalocean-token", "dop_v1_", 32, is_alphanumeric),
    shape("sendgrid-key", "SG.", 30, is_token),
    shape("linear-key", "lin_api_", 20, is_alphanumeric),
    shape("age-key", "AGE-SECRET-KEY-1", 20, is_upper),
    shape("vault-token", "hvs.", 20, is_url_safe),
    shape("databricks-token", "dapi", 32, is_hex),
];

/// A bit for each shape, and two for what is known otherwise.
type Set = u64;

const WORDS: Set = 1 << 62;
const MARKS: Set = 1 << 63;

/// What has a byte as its first, and what has it as its second. Every byte of
/// every text is asked, and next to none of them begins anything.
struct Heads {
    first: [Set; 256],
    second: [Set; 256],
}

static HEADS: Heads = Heads::new();

#[allow(clippy::indexing_slicing, reason = "a byte is less than 256")]
impl Heads {
    const fn new() -> Self {
        let mut heads = Self {
            first: [0; 256],
            second: [0; 256],
        };
        let mut shapes: &[Shape] = &SHAPES;
        let mut set = 1;
        while let [shape, rest @ ..] = shapes {
            heads.add(shape.prefix.as_bytes(), set);
            set <<= 1;
            shapes = rest;
        }
        // Web tokens, and `Bearer …` and `Basic …` in any case.
        let mut words: &[&[u8]] = &[
            b"ey", b"be", b"bE", b"Be", b"BE", b"ba", b"bA", b"Ba", b"BA",
        ];
        while let [head, rest @ ..] = words {
            heads.add(head, WORDS);
            words = rest;
        }
        // Assignments, addresses, options and private keys.
        let mut byte = 0;
        while byte < heads.second.len() {
            heads.second[byte] |= MARKS;
            byte += 1;
        }
        let mut marks: &[u8] = b"=:-";
        while let [mark, rest @ ..] = marks {
            heads.first[*mark as usize] |= MARKS;
            marks = rest;
        }
        heads
    }

    const fn add(&mut self, head: &[u8], set: Set) {
        if let [first, second, ..] = head {
            self.first[*first as usize] |= set;
            self.second[*second as usize] |= set;
        }
    }

    fn of(&self, first: u8, second: u8) -> Set {
        self.first[usize::from(first)] & self.second[usize::from(second)]
    }
}

/// Where in a text the next thing may begin that is known; nothing is of one byte.
pub fn next_begin(text: &[u8]) -> Option<usize> {
    text.iter()
        .zip(text.get(1..)?)
        .position(|(first, second)| HEADS.of(*first, *second) != 0)
}

/// The shapes whose prefix this starts with.
pub fn starting(word: &[u8]) -> impl Iterator<Item = &'static Shape> {
    let may = match word {
        [first, second, ..] => HEADS.of(*first, *second),
        _ => 0,
    };
    SHAPES
        .iter()
        .enumerate()
        .filter(move |(n, _)| may & (1 << n) != 0)
        .map(|(_, shape)| shape)
        .filter(move |shape| word.starts_with(shape.prefix.as_bytes()))
}

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

fn is_upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

pub fn is_url_safe(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

pub fn is_token(byte: u8) -> bool {
    is_url_safe(byte) || byte == b'.'
}

pub fn is_base64(byte: u8) -> bool {
    is_url_safe(byte) || matches!(byte, b'+' | b'/' | b'=')
}

fn is_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'/'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_is_found_by_its_first_bytes() {
        for shape in &SHAPES {
            assert!(shape.prefix.len() >= 2, "{}", shape.prefix);
            let letter = (b'0'..=b'z').find(|byte| (shape.alphabet)(*byte)).unwrap();
            let key = [shape.prefix.as_bytes(), &vec![letter; shape.least]].concat();
            let text = ["é ".as_bytes(), &key].concat();
            assert_eq!(next_begin(&text), Some(3), "{}", shape.prefix);
            let mut found = starting(&key);
            assert!(
                found.any(|found| found.prefix == shape.prefix),
                "{}",
                shape.prefix
            );
        }
        for head in [
            "eyJ", "Bearer ", "bEARER ", "basic ", "BASIC ", "=x", ":/", "-p",
        ] {
            assert_eq!(next_begin(head.as_bytes()), Some(0), "{head}");
        }
        assert_eq!(next_begin("nothing of that sort".as_bytes()), None);
        assert_eq!(next_begin(b"-"), None);
    }
}
