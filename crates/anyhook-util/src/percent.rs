//! Percent coding of UTF-8 text.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// All but the unreserved characters of RFC 3986: letters, digits and `-._~`.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Encodes everything but letters, digits and `-._~`.
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// The decoded text. `None` if an escape is malformed or the result is not UTF-8.
pub fn decode(text: &str) -> Option<String> {
    let mut parts = text.split('%').skip(1).map(str::as_bytes);
    parts
        .all(|part| matches!(part, [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit()))
        .then(|| decode_lenient(text))
        .flatten()
}

/// The decoded text; malformed escapes stay as they are. `None` if the result
/// is not UTF-8.
pub fn decode_lenient(text: &str) -> Option<String> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.ok().map(std::borrow::Cow::into_owned)
}

/// The decoded text; malformed escapes stay as they are and bytes that are not
/// UTF-8 become U+FFFD.
pub fn decode_lossy(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_text_comes_back() {
        for text in ["", "plain", "a b\nc%41", "grüß 🙂", "-._~/:"] {
            let encoded = encode(text);
            assert_eq!(decode(&encoded).as_deref(), Some(text));
            assert_eq!(decode_lenient(&encoded).as_deref(), Some(text));
            assert_eq!(decode_lossy(&encoded), text);
        }
        assert_eq!(encode("a-._~ b/ü"), "a-._~%20b%2F%C3%BC");
    }

    #[test]
    fn malformed_escapes_are_refused_or_kept() {
        for text in ["%zz", "%4", "%", "a%+4b", "%%41"] {
            assert_eq!(decode(text), None, "{text}");
        }
        assert_eq!(decode_lenient("%zz%4").as_deref(), Some("%zz%4"));
        assert_eq!(decode_lossy("%zz%4%41"), "%zz%4A");
        assert_eq!(decode("%ff"), None);
        assert_eq!(decode_lenient("%ff"), None);
        assert_eq!(decode_lossy("%ff"), "\u{fffd}");
    }
}
