//! `context` URIs: their syntax, and file paths as `file:` URIs both ways.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What is escaped in a path: all but the unreserved characters and `/`.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');
const WINDOWS_PATH: &AsciiSet = &PATH.remove(b':');

/// An absolute URI by RFC 3986, as far as `context` needs it: a scheme, then
/// only characters that a URI may have.
///
/// A single letter before the colon is a drive of Windows, not a scheme.
///
/// ```
/// use openhook::is_uri;
/// assert!(is_uri("file:///home/user/my-project"));
/// assert!(is_uri("mailto:inbox/folder-id"));
/// assert!(!is_uri("/home/user/my-project"));
/// assert!(!is_uri("C:/Users/me"));
/// ```
pub fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let mut letters = scheme.bytes();
    let scheme_is_sound = scheme.len() > 1
        && letters.next().is_some_and(|b| b.is_ascii_alphabetic())
        && letters.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'.' | b'-'));
    scheme_is_sound && has_only_uri_characters(rest)
}

fn has_only_uri_characters(text: &str) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let sound = match byte {
            b'%' => {
                bytes.next().is_some_and(|b| b.is_ascii_hexdigit())
                    && bytes.next().is_some_and(|b| b.is_ascii_hexdigit())
            }
            _ => is_unreserved(byte) || b":/?#[]@!$&'()*+,;=".contains(&byte),
        };
        if !sound {
            return false;
        }
    }
    true
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// The `file:` URI of an absolute path, of Unix or of Windows.
///
/// ```
/// use openhook::file_uri;
/// assert_eq!(file_uri("/home/user/my project"), "file:///home/user/my%20project");
/// assert_eq!(file_uri(r"C:\Users\me"), "file:///C:/Users/me");
/// assert_eq!(file_uri(r"\\server\share"), "file://server/share");
/// ```
pub fn file_uri(path: &str) -> String {
    let windows = is_windows_path(path);
    let path = if windows {
        path.replace('\\', "/")
    } else {
        path.to_owned()
    };
    let mut uri = String::with_capacity(path.len() + 8);
    uri.push_str("file:");
    if !(windows && path.starts_with("//")) {
        uri.push_str("//");
    }
    if !path.starts_with('/') {
        uri.push('/');
    }
    let escaped = if windows { WINDOWS_PATH } else { PATH };
    uri.extend(utf8_percent_encode(&path, escaped));
    uri
}

/// The path of a `file:` URI; `None` for other URIs.
///
/// ```
/// use openhook::file_path;
/// assert_eq!(file_path("file:///home/user/my%20project").as_deref(), Some("/home/user/my project"));
/// assert_eq!(file_path("file:///C:/Users/me").as_deref(), Some("C:/Users/me"));
/// assert_eq!(file_path("https://example.org/"), None);
/// ```
pub fn file_path(uri: &str) -> Option<String> {
    let rest = uri.strip_prefix("file://")?;
    let path = match rest.strip_prefix("localhost") {
        Some(path) if path.starts_with('/') => path,
        _ => rest,
    };
    let path = percent_decode(path)?;
    Some(match path.strip_prefix('/') {
        Some(drive) if is_windows_path(drive) => drive.to_owned(),
        _ if path.starts_with('/') => path,
        _ => format!("//{path}"),
    })
}

/// None if an escape is malformed or the result is not UTF-8.
fn percent_decode(text: &str) -> Option<String> {
    let mut escapes = text.split('%').skip(1).map(str::as_bytes);
    let is_sound = escapes
        .all(|rest| matches!(rest, [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit()));
    let decoded = percent_decode_str(text).decode_utf8().ok()?;
    is_sound.then(|| decoded.into_owned())
}

/// `C:\`, `C:/` or `\\server`.
fn is_windows_path(path: &str) -> bool {
    let mut bytes = path.bytes();
    let (first, second, third) = (bytes.next(), bytes.next(), bytes.next());
    match (first, second) {
        (Some(b'\\'), Some(b'\\')) => true,
        (Some(drive), Some(b':')) => {
            drive.is_ascii_alphabetic() && matches!(third, Some(b'/' | b'\\'))
        }
        _ => false,
    }
}

pub(crate) fn is_absolute_path(path: &str) -> bool {
    path.starts_with('/') || is_windows_path(path)
}

/// `path` below `root`, with `/` between; None when it is not below it.
pub(crate) fn below(path: &str, root: &str) -> Option<String> {
    let path = path.replace('\\', "/");
    let root = root.replace('\\', "/");
    let rest = path.strip_prefix(root.trim_end_matches('/'))?;
    let rest = rest.strip_prefix('/')?.trim_start_matches('/');
    (!rest.is_empty()).then(|| rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_uris_go_both_ways() {
        for path in [
            "/home/ü ber/100%",
            "/",
            "C:/a b",
            "//server/share/x",
            "/a:b#c?d",
        ] {
            let uri = file_uri(path);
            assert!(is_uri(&uri), "{uri}");
            assert_eq!(file_path(&uri).as_deref(), Some(path), "{uri}");
        }
    }

    #[test]
    fn what_is_no_uri() {
        for text in [
            "",
            "x",
            ":",
            "a:b",
            "file:///a b",
            "http://ü",
            "x y:z",
            "ab:%4",
            "ab:%zz",
            "1a:b",
        ] {
            assert!(!is_uri(text), "{text}");
        }
    }

    #[test]
    fn below_needs_a_whole_segment() {
        assert_eq!(below("/p/src/a.rs", "/p").as_deref(), Some("src/a.rs"));
        assert_eq!(below("/p/src/a.rs", "/p/").as_deref(), Some("src/a.rs"));
        assert_eq!(below(r"C:\p\a.rs", "C:/p").as_deref(), Some("a.rs"));
        assert_eq!(below("/pp/a.rs", "/p"), None);
        assert_eq!(below("/p", "/p"), None);
        assert_eq!(below("/a.rs", "/").as_deref(), Some("a.rs"));
    }
}
