//! Paths as text: made absolute, compared with folders and patterns.

mod windows;

use std::borrow::Cow;

/// Whether the usual file systems of this system take `.ENV` for `.env`.
const IGNORES_CASE: bool = cfg!(any(windows, target_os = "macos"));

/// An absolute path without `.`, `..` and double slashes. `None`: the path is
/// relative and its folder is not known.
pub(crate) fn normalize(cwd: Option<&str>, path: &str) -> Option<String> {
    let slashed;
    let path = if cfg!(windows) {
        slashed = windows::plain_name(path);
        slashed.as_str()
    } else if is_windows_path(path) {
        slashed = path.replace('\\', "/");
        slashed.as_str()
    } else {
        path
    };
    let absolute = path.starts_with('/') || has_drive(path);
    let base = if absolute { "" } else { cwd? };
    let mut parts: Vec<&str> = Vec::new();
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                if parts.last().is_some_and(|last| !last.ends_with(':')) {
                    parts.pop();
                }
            }
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    Some(if has_drive(&joined) {
        joined
    } else {
        format!("/{joined}")
    })
}

fn has_drive(path: &str) -> bool {
    let bytes = path.as_bytes();
    matches!(bytes, [drive, b':', ..] if drive.is_ascii_alphabetic())
        && matches!(bytes.get(2), None | Some(b'/' | b'\\'))
}

fn is_windows_path(path: &str) -> bool {
    has_drive(path) || (path.contains('\\') && !path.contains('/'))
}

/// What is equal for all names of a file that differ in nothing but capital letters.
pub(crate) fn fold_case(path: &str) -> Cow<'_, str> {
    if IGNORES_CASE {
        Cow::Owned(path.to_lowercase())
    } else {
        Cow::Borrowed(path)
    }
}

/// Whether two names are those of one file.
pub(crate) fn is_same_name(name: &str, other: &str) -> bool {
    name == other || IGNORES_CASE && fold_case(name) == fold_case(other)
}

/// Whether `path` is `folder` or inside it. Both are normalized.
pub(crate) fn is_within(path: &str, folder: &str) -> bool {
    let (path, folder) = (fold_case(path), fold_case(folder));
    let (path, folder) = (&*path, &*folder);
    folder == "/"
        || path
            .strip_prefix(folder)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a glob matches a whole text: `?`, `[…]`, `*` within a part of a path and
/// `**` across parts.
pub(crate) fn glob_matches(pattern: &str, text: &str) -> bool {
    exact_glob_matches(&fold_case(pattern), &fold_case(text))
        || cfg!(windows) && text.contains('~') && matches_short_names(pattern, text)
}

/// Whether a glob matches a path with short names of Windows in it.
fn matches_short_names(pattern: &str, text: &str) -> bool {
    let pattern = pattern.strip_prefix("**/").unwrap_or(pattern);
    let parts: Vec<&str> = pattern.split('/').collect();
    let texts: Vec<&str> = text.split('/').collect();
    let is_match = |(part, text): (&&str, &&str)| {
        exact_glob_matches(&fold_case(part), &fold_case(text)) || windows::is_short_name(text, part)
    };
    texts.len() == parts.len() && parts.iter().zip(&texts).all(is_match)
}

fn exact_glob_matches(pattern: &str, text: &str) -> bool {
    // Most patterns are plain names, and a file of rules has hundreds.
    if !pattern.bytes().any(|byte| b"*?[".contains(&byte)) {
        return pattern == text;
    }
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut from) = (0, 0);
    // Where to go on after the last `*` and the last `**`.
    let mut star: Option<(usize, usize)> = None;
    let mut double: Option<(usize, usize)> = None;
    loop {
        let token = pattern.get(at);
        if token.is_none() && from == text.len() {
            return true;
        }
        let matched = match token {
            Some('*') if pattern.get(at + 1) == Some(&'*') => {
                at += 2;
                // `**/` also stands for no folder at all.
                if pattern.get(at) == Some(&'/') && (from == 0 || text.get(from - 1) == Some(&'/'))
                {
                    at += 1;
                }
                double = Some((at, from));
                star = None;
                continue;
            }
            Some('*') => {
                at += 1;
                star = Some((at, from));
                continue;
            }
            Some('?') => text
                .get(from)
                .is_some_and(|letter| *letter != '/')
                .then_some(1),
            Some('[') => text
                .get(from)
                .and_then(|letter| class_length(pattern.get(at..).unwrap_or_default(), *letter)),
            Some(literal) => (text.get(from) == Some(literal)).then_some(1),
            None => None,
        };
        if let Some(length) = matched {
            at += length;
            from += 1;
            continue;
        }
        if let Some((after, start)) = star
            && text.get(start).is_some_and(|letter| *letter != '/')
        {
            star = Some((after, start + 1));
            (at, from) = (after, start + 1);
            continue;
        }
        let Some((after, start)) = double else {
            return false;
        };
        if start >= text.len() {
            return false;
        }
        double = Some((after, start + 1));
        star = None;
        (at, from) = (after, start + 1);
    }
}

/// The length of a class such as `[a-z]` if it contains the letter.
fn class_length(pattern: &[char], letter: char) -> Option<usize> {
    let negated = matches!(pattern.get(1), Some('!' | '^'));
    let start = 1 + usize::from(negated);
    let end = pattern
        .iter()
        .skip(start + 1)
        .position(|character| *character == ']')
        .map(|found| found + start + 1);
    let Some(end) = end else {
        return (letter == '[').then_some(1);
    };
    let class = pattern.get(start..end).unwrap_or_default();
    let mut found = class.contains(&letter);
    for range in class.windows(3) {
        if let [low, '-', high] = range {
            found |= (*low..=*high).contains(&letter);
        }
    }
    (found != negated && letter != '/').then_some(end + 1)
}

/// For `/`, `~` and `.`, also with `/**` behind them: whether the path is in that folder.
fn matches_whole_folder(
    pattern: &str,
    path: &str,
    project: Option<&str>,
    home: Option<&str>,
) -> Option<bool> {
    let folder = pattern.strip_suffix("**").unwrap_or(pattern);
    let is_slashed = folder.len() == pattern.len() || folder.ends_with('/');
    let is_within_known = |folder: Option<&str>| folder.is_some_and(|it| is_within(path, it));
    match folder.trim_end_matches('/') {
        "" if folder.starts_with('/') => Some(path.starts_with('/') || has_drive(path)),
        "~" if is_slashed => Some(is_within_known(home)),
        "." if is_slashed => Some(is_within_known(project)),
        _ => None,
    }
}

/// Whether a pattern of a user matches a path: a pattern without slash matches any
/// part of the path, a relative one is taken from the project or any folder, and a
/// pattern matches everything inside a folder that it matches.
pub(crate) fn path_matches(
    pattern: &str,
    path: &str,
    project: Option<&str>,
    home: Option<&str>,
) -> bool {
    let (path, project) = (fold_case(path), project.map(fold_case));
    let (path, project) = (&*path, project.as_deref());
    let folded = fold_case(pattern);
    let folded_home = home.map(fold_case);
    if let Some(matches) = matches_whole_folder(&folded, path, project, folded_home.as_deref()) {
        return matches;
    }
    let pattern = folded.trim_end_matches('/');
    let is_anchored = pattern.contains('/');
    let pattern = pattern.strip_suffix("/**").unwrap_or(pattern);
    let expanded;
    let pattern = match (pattern.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => {
            expanded = format!("{}/{rest}", fold_case(home));
            expanded.as_str()
        }
        _ => pattern,
    };
    if pattern.is_empty() {
        return false;
    }
    let prefixes = || {
        let ends = path
            .match_indices('/')
            .map(|(at, _)| at)
            .filter(|at| *at > 0);
        ends.chain(std::iter::once(path.len()))
            .filter_map(|end| path.get(..end))
    };
    if pattern.starts_with('/') || has_drive(pattern) {
        return prefixes().any(|prefix| glob_matches(pattern, prefix));
    }
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    if !is_anchored {
        return path
            .split('/')
            .any(|part| !part.is_empty() && glob_matches(pattern, part));
    }
    let relative = project.and_then(|project| path.strip_prefix(project)?.strip_prefix('/'));
    if let Some(relative) = relative {
        let ends = relative.match_indices('/').map(|(at, _)| at);
        return ends
            .chain(std::iter::once(relative.len()))
            .filter_map(|end| relative.get(..end))
            .any(|prefix| glob_matches(pattern, prefix));
    }
    pattern.starts_with("**/")
        && prefixes().any(|prefix| {
            prefix.match_indices('/').any(|(at, _)| {
                prefix
                    .get(at + 1..)
                    .is_some_and(|tail| glob_matches(pattern, tail))
            })
        })
}

#[cfg(test)]
mod tests {
    use super::path_matches;

    #[test]
    fn a_pattern_for_a_whole_folder_matches_what_is_in_it() {
        let matches =
            |pattern: &str, path: &str| path_matches(pattern, path, Some("/h/p"), Some("/h"));
        for (pattern, inside, outside) in [
            ("/", "/", None),
            ("/", "/etc/x", None),
            ("/**", "/etc", None),
            ("~", "/h/a", Some("/etc/a")),
            ("~/", "/h", Some("/home")),
            ("~/**", "/h/p/a", Some("/")),
            (".", "/h/p", Some("/h")),
            ("./", "/h/p/a", Some("/h/q/a")),
            ("./**", "/h/p/a/b", Some("/h/pq")),
        ] {
            assert!(matches(pattern, inside), "{pattern} {inside}");
            let matches_outside = outside.is_some_and(|path| matches(pattern, path));
            assert!(!matches_outside, "{pattern} {outside:?}");
        }
    }
}
