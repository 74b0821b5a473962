//! Regular expressions and globs as texts: their parts, anchors and escapes.

use regex_lite::Regex;

use super::between;
use crate::Adapter;
use crate::tools::fill_mcp;

/// What makes a text a glob and not a name.
pub(crate) const GLOB_CHARS: [char; 3] = ['*', '?', '['];

/// A glob as a regular expression for the whole name.
pub(crate) fn glob_regex(glob: &str) -> String {
    let pattern = regex_lite::escape(glob);
    format!("^{}$", pattern.replace(r"\*", ".*").replace(r"\?", "."))
}

/// The format of [`anyhook_model::matching::canonical_mcp_name`].
pub(super) const CANONICAL_MCP_FORMAT: &str = "mcp__{server}__{tool}";

/// Regular expressions that match every name.
pub(super) const EVERYTHING: [&str; 6] = [".*", ".+", "^.*$", "^.+$", "^.*", ".*$"];

/// The forms of MCP tools' names that a pattern is about: the canonical one, and that of
/// the agent it was written for.
pub(super) fn mcp_formats_named<'a>(
    pattern: &str,
    regex: &Regex,
    from: Option<&'a Adapter>,
) -> Vec<&'a str> {
    let own = from.map(|from| from.spec.mcp.format.as_ref());
    let own = own.filter(|format| *format != CANONICAL_MCP_FORMAT);
    let start = pattern.trim_start_matches(['^', '(']);
    let mut formats: Vec<&str> = [Some(CANONICAL_MCP_FORMAT), own]
        .into_iter()
        .flatten()
        .collect();
    formats.retain(|format| {
        let prefix = format.split('{').next().unwrap_or_default();
        let is_named = !prefix.is_empty() && start.starts_with(prefix);
        is_named || (!prefix.is_empty() && regex.is_match(&fill_mcp(format, "server", "tool")))
    });
    formats
}

/// The parts of a regular expression between the `|` that are in no group.
pub(super) fn top_level_alternatives(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut in_class, mut start) = (0_usize, false, 0);
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            '[' => in_class = true,
            ']' => in_class = false,
            _ if in_class => {}
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '|' if depth == 0 => {
                parts.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(text.get(start..));
    parts
}

/// A pattern without what changes nothing at its ends: `^a.*` is `^a`.
pub fn plain_pattern(pattern: &str) -> &str {
    if top_level_alternatives(pattern).len() > 1 {
        return pattern;
    }
    let start = pattern.strip_prefix("^.*").or(pattern.strip_prefix(".*"));
    let rest = start.unwrap_or(pattern);
    let end = rest.strip_suffix(".*$").or(rest.strip_suffix(".*"));
    end.filter(|inner| !inner.ends_with('\\')).unwrap_or(rest)
}

/// A pattern that may match anywhere, as one for the whole name.
pub(super) fn anchored_form(pattern: &str) -> String {
    if top_level_alternatives(pattern).len() > 1 {
        return format!(".*(?:{pattern}).*");
    }
    let (start, rest) = match pattern.strip_prefix('^') {
        Some(rest) => ("", rest),
        None if pattern.starts_with(".*") => ("", pattern),
        None => (".*", pattern),
    };
    let (rest, end) = match rest.strip_suffix('$') {
        Some(inner) if !inner.ends_with('\\') => (inner, ""),
        _ if rest.ends_with(".*") => (rest, ""),
        _ => (rest, ".*"),
    };
    format!("{start}{rest}{end}")
}

/// A pattern for the whole name, as one that may match anywhere.
pub(super) fn unanchored_form(pattern: &str) -> String {
    if top_level_alternatives(pattern).len() > 1 {
        return format!("^(?:{pattern})$");
    }
    let (start, rest) = match pattern.strip_prefix(".*") {
        Some(rest) => ("", rest),
        None => ("^", pattern),
    };
    let (rest, end) = match rest.strip_suffix(".*") {
        Some(inner) if !inner.ends_with('\\') => (inner, ""),
        _ => (rest, "$"),
    };
    format!("{start}{rest}{end}")
}

/// The inside of `^a$`, `^(a|b)$`, `^(?:a|b)$`; other texts unchanged.
pub(super) fn unanchored(text: &str) -> &str {
    let Some(inner) = between(text, "^", "$") else {
        return text;
    };
    between(inner, "(?:", ")")
        .or_else(|| between(inner, "(", ")"))
        .unwrap_or(inner)
}

/// A regex that is only a name; `None` when it is more than that.
pub(super) fn unescaped(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => out.push(letters.next().filter(|next| !next.is_alphanumeric())?),
            letter if ".*+?()[]{}^$|".contains(letter) => return None,
            other => out.push(other),
        }
    }
    Some(out)
}
