//! Names of files on Windows: one file has many, and a guard must know all of them.

use std::borrow::Cow;

use anyhook_util::paths::windows_form;

/// A path of Windows in one form, with `/`: without the prefixes `\\?\` and `\\.\`, a
/// drive's own share and `/c/` as that drive, no stream of a file, and no dots and
/// blanks at the end of a name, which Windows takes off.
pub(super) fn plain_name(path: &str) -> String {
    // `/s` and `/q` are options of many programs, and rarely drives.
    let is_option = matches!(path.as_bytes(), [b'/', letter] if !b"cC".contains(letter));
    let form = if is_option {
        path.to_owned()
    } else {
        windows_form(path)
    };
    let slashed = form.replace('\\', "/");
    let of_device = ["//?/", "//./"]
        .into_iter()
        .find_map(|prefix| slashed.strip_prefix(prefix));
    let of_drive = of_device.filter(|path| path.as_bytes().get(1) == Some(&b':'));
    let local = of_drive.unwrap_or(&slashed);
    let local = drive_of_share(local).unwrap_or(Cow::Borrowed(local));
    let parts = local.split('/').enumerate();
    let parts: Vec<&str> = parts.map(|(n, part)| file_name(part, n)).collect();
    parts.join("/")
}

/// `//host/c$/x` as `c:/x`: whose drive it is, only the host knows.
fn drive_of_share(path: &str) -> Option<Cow<'_, str>> {
    let (_host, rest) = path.strip_prefix("//")?.split_once('/')?;
    let (share, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let letter = share.strip_suffix('$')?;
    let is_drive = matches!(letter.as_bytes(), [letter] if letter.is_ascii_alphabetic());
    is_drive.then(|| format!("{}:/{rest}", letter.to_ascii_uppercase()).into())
}

/// The file that a part of a path means.
fn file_name(part: &str, position: usize) -> &str {
    let is_drive = position == 0 && part.len() == 2 && part.ends_with(':');
    if is_drive || matches!(part, "." | "..") {
        return part;
    }
    let name = part.split(':').next().unwrap_or(part);
    let name = if position == 0 && name.len() == 1 {
        part
    } else {
        name
    };
    name.trim_end_matches(['.', ' '])
}

/// Whether `text` may be the short name (`CREDEN~1.JSO`) of a file that a pattern
/// without folders matches.
pub(super) fn is_short_name(text: &str, pattern: &str) -> bool {
    let (stem, ending) = text.split_once('.').unwrap_or((text, ""));
    let Some((begin, number)) = stem.split_once('~') else {
        return false;
    };
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let pattern = pattern.trim_start_matches('.');
    let (name, extension) = pattern.rsplit_once('.').unwrap_or((pattern, ""));
    let starts = |name: &str, begin: &str, length: usize| {
        let is_literal = |letter: &char| !matches!(letter, '*' | '?' | '[');
        let kept = name.chars().filter(|letter| !matches!(letter, '.' | ' '));
        let literal: String = kept.take_while(is_literal).take(length).collect();
        let has_glob = name.contains(['*', '?', '[']);
        let begin = begin.to_lowercase();
        let literal = literal.to_lowercase();
        begin == literal || has_glob && begin.starts_with(&literal)
    };
    // Of a name that only begins with something unknown nothing can be compared.
    !name.starts_with(['*', '?', '[']) && starts(name, begin, 6) && starts(extension, ending, 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_of_a_file_have_one_form() {
        for (path, plain) in [
            (r"C:\p\.env", "C:/p/.env"),
            (r"c:/p\.env", "C:/p/.env"),
            (r"\\?\C:\p\.env", "C:/p/.env"),
            (r"\\.\C:\p\.env", "C:/p/.env"),
            (r"\\?\C:\p\.env. .", "C:/p/.env"),
            (r"\\localhost\c$\p\.env", "C:/p/.env"),
            ("//127.0.0.1/C$/p", "C:/p"),
            ("/c/p/.env", "C:/p/.env"),
            ("/c", "C:/"),
            ("/s", "/s"),
            (".env::$DATA", ".env"),
            (r"sub/..\.env:x", "sub/../.env"),
            (".env. . ", ".env"),
            (r".anyhook.\hooks.yaml", ".anyhook/hooks.yaml"),
            (r"..\.\x", ".././x"),
            (r"\\server\share\x", "//server/share/x"),
            (r"\\.\PhysicalDrive0", "//./PhysicalDrive0"),
            ("C:x", "C:x"),
            ("", ""),
        ] {
            assert_eq!(plain_name(path), plain, "{path}");
        }
    }

    #[test]
    fn short_names_are_known() {
        for (text, pattern) in [
            ("ENV~1", ".env"),
            ("env~2", ".env"),
            ("ENV~1.LOC", ".env.*"),
            ("CREDEN~1.JSO", "credentials.json"),
            ("SERVIC~1.JSO", "service-account*.json"),
            ("ANYHOO~1", ".anyhook"),
            ("OPENHO~1.JSO", ".openhook.json"),
            ("NETRC~1", ".netrc"),
        ] {
            assert!(is_short_name(text, pattern), "{text} {pattern}");
        }
        for (text, pattern) in [
            ("ENV~1.TXT", ".env"),
            ("PROGRA~1", ".env"),
            ("env", ".env"),
            ("env~x", ".env"),
            ("A~1.PEM", "*.pem"),
            ("~1", ".env"),
        ] {
            assert!(!is_short_name(text, pattern), "{text} {pattern}");
        }
    }
}
