//! Calls in code: where they stand, their names and the values of their arguments.

use super::rewriting::replace_holes;
use super::{CallEffect, MAX_CALLS, call_effect};
use crate::shell::evaluate::{Evaluator, Scope};
use crate::shell::invocation::UNKNOWN;

pub(super) fn between(code: &str, open: char, close: char) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(open) {
        let inside = rest.get(at + open.len_utf8()..).unwrap_or_default();
        let Some(end) = inside.find(close) else {
            break;
        };
        found.extend(inside.get(..end).map(str::to_owned));
        rest = inside.get(end + close.len_utf8()..).unwrap_or_default();
    }
    found
}

pub(super) struct CodeCall<'a> {
    pub(super) name: &'a str,
    /// The text between the parentheses, or the rest of the statement.
    pub(super) arguments: &'a str,
}

/// Other names that the code gives to functions: `{execSync: e}`, `system as s`.
fn renamed_functions(code: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for mark in [":", " as "] {
        for (at, _) in code.match_indices(mark).take(MAX_CALLS) {
            let before = code.get(..at).unwrap_or_default().trim_end();
            let start = before
                .rfind(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
                .map_or(0, |found| found + 1);
            let name = before.get(start..).unwrap_or_default();
            let after = code.get(at + mark.len()..).unwrap_or_default().trim_start();
            let other = identifier(after);
            if !name.is_empty()
                && !other.is_empty()
                && matches!(
                    call_effect(name, ""),
                    Some(CallEffect::Shell | CallEffect::Path | CallEffect::DeleteTree)
                )
            {
                found.push((other, name));
            }
        }
    }
    found
}

/// Calls in the order in which they stand.
pub(super) fn find_calls(code: &str) -> Vec<CodeCall<'_>> {
    let renamed = renamed_functions(code);
    let bytes = code.as_bytes();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:>$-".contains(&byte);
    let mut calls = Vec::new();
    let mut index = 0;
    while let Some(byte) = bytes.get(index) {
        let start = index;
        if !(byte.is_ascii_alphabetic() || *byte == b'_') {
            index += 1;
            continue;
        }
        while bytes.get(index).is_some_and(|byte| is_name(*byte)) {
            index += 1;
        }
        let name = code.get(start..index).unwrap_or_default();
        let name = renamed
            .iter()
            .find(|(other, _)| *other == name)
            .map_or(name, |(_, original)| original);
        let mut open = index;
        while bytes
            .get(open)
            .is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'&'))
        {
            open += 1;
        }
        // elixir: `File.rm_rf!(…)`.
        if bytes.get(open) == Some(&b'!') && bytes.get(open + 1) == Some(&b'(') {
            open += 1;
        }
        let arguments = match bytes.get(open) {
            Some(b'(') => {
                let end = closing(bytes, open);
                code.get(open + 1..end).unwrap_or_default()
            }
            Some(b'\'' | b'"') if open > index => {
                let rest = code.get(open..).unwrap_or_default();
                let end = rest.find([';', '\n']).unwrap_or(rest.len());
                rest.get(..end).unwrap_or_default()
            }
            // perl: `open F, "file"`.
            Some(b'A'..=b'Z' | b'$' | b'm') if name == "open" && open > index => {
                let rest = code.get(open..).unwrap_or_default();
                let end = rest.find([';', '\n']).unwrap_or(rest.len());
                rest.get(..end).unwrap_or_default()
            }
            _ => continue,
        };
        if call_effect(name, arguments).is_some() {
            calls.push(CodeCall { name, arguments });
            if calls.len() >= MAX_CALLS {
                break;
            }
        }
    }
    calls
}

/// The place of the parenthesis that closes the one at `open`.
pub(super) fn closing(bytes: &[u8], open: usize) -> usize {
    let mut depth = 0usize;
    let mut quote = None;
    let mut index = open;
    while let Some(byte) = bytes.get(index) {
        match (quote, byte) {
            (_, b'\\') => index += 1,
            (Some(open), byte) if open == *byte => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"' | b'`') => quote = Some(*byte),
            (None, b'(') => depth += 1,
            (None, b')') => {
                depth -= 1;
                if depth == 0 {
                    return index;
                }
            }
            _ => {}
        }
        index += 1;
        // Calls are short; a longer text is cut.
        if index > open + 4096 {
            break;
        }
    }
    index.min(bytes.len())
}

/// A string literal at the start and its length in bytes.
pub(super) fn literal(text: &str) -> Option<(String, usize)> {
    let quote = text
        .chars()
        .next()
        .filter(|quote| matches!(quote, '\'' | '"' | '`'))?;
    let mut value = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, 't')) => value.push('\t'),
                Some((_, other)) => value.push(other),
                None => break,
            },
            _ if character == quote => return Some((value, at + 1)),
            _ => value.push(character),
        }
    }
    None
}

/// All string literals.
pub(in crate::shell) fn literals(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(['\'', '"', '`']) {
        rest = rest.get(at..).unwrap_or_default();
        match literal(rest) {
            Some((text, length)) if found.len() < MAX_CALLS => {
                found.push(text);
                rest = rest.get(length..).unwrap_or_default();
            }
            Some(_) => break,
            None => rest = rest.get(1..).unwrap_or_default(),
        }
    }
    found
}

/// Lists that hold nothing but string literals: `["rm", "-rf", "/"]`.
pub(super) fn literal_lists(code: &str) -> Vec<Vec<String>> {
    let mut found: Vec<Vec<String>> = Vec::new();
    let starts = code.match_indices(['[', '(']);
    for (start, _) in starts.take(MAX_CALLS) {
        let mut rest = code.get(start + 1..).unwrap_or_default().trim_start();
        let mut words = Vec::new();
        while let Some((word, length)) = literal(rest) {
            words.push(word);
            rest = rest.get(length..).unwrap_or_default().trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
            if words.len() >= MAX_CALLS {
                break;
            }
        }
        let is_list = code.as_bytes().get(start) == Some(&b'[');
        if words.len() > usize::from(!is_list) && rest.starts_with([']', ')']) {
            found.push(words);
        }
    }
    found
}

/// `name = 'text'` anywhere in the code.
pub(super) fn literal_constants(code: &str, home: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices('=').take(MAX_CALLS) {
        let before = code.get(..at).unwrap_or_default().trim_end();
        let start = before
            .rfind(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
            .map_or(0, |found| found + 1);
        let name = before.get(start..).unwrap_or_default();
        let after = code.get(at + 1..).unwrap_or_default().trim_start();
        if name.is_empty() {
            continue;
        }
        let wrapper = identifier(after);
        let inside = after.get(wrapper.len()..).unwrap_or_default();
        let value = match wrapper.rsplit('.').next().unwrap_or_default() {
            "mkdtemp" | "mkdtempSync" | "gettempdir" | "TemporaryDirectory" => {
                Some("/tmp/tmp.code".to_owned())
            }
            "expanduser" | "abspath" | "realpath" | "normpath" | "resolve" | "expandvars" => {
                literal(inside.trim_start_matches('(')).map(|(value, _)| value)
            }
            _ => literal(after).map(|(value, _)| value),
        };
        if let Some(value) = value {
            let value = match value.strip_prefix("~/") {
                Some(rest) => format!("{home}/{rest}"),
                None => value,
            };
            found.push((name.to_owned(), value));
        }
    }
    found
}

/// The values of a call's arguments: literals, known names, and an unknown for
/// what is joined to a literal.
pub(super) fn call_values(
    call: &CodeCall<'_>,
    constants: &[(String, String)],
    evaluator: &Evaluator<'_>,
    scope: &Scope,
) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    let mut rest = call.arguments;
    let mut joins = false;
    let mut is_keyword = false;
    while let Some(first) = rest.chars().next() {
        if let Some((mut value, length)) = literal(rest) {
            let before = call.arguments.len() - rest.len();
            let prefix = call.arguments.get(..before).unwrap_or_default();
            if prefix.ends_with(['f', 'F']) {
                value = replace_holes(&value, "{", "}");
            }
            value = replace_holes(&value, "${", "}");
            value = replace_holes(&value, "#{", "}");
            if value == "~" || value.starts_with("~/") {
                value = evaluator.home(scope) + value.get(1..).unwrap_or_default();
            }
            if joins {
                if let Some(last) = values.last_mut() {
                    last.push_str(&value);
                }
            } else if !is_keyword {
                values.push(value);
            }
            joins = false;
            rest = rest.get(length..).unwrap_or_default();
            // awk joins adjacent values, perl and php with a dot.
            let next = rest.trim_start();
            let next = next.strip_prefix('.').map_or(next, str::trim_start);
            if next.starts_with('$')
                && let Some(last) = values.last_mut()
            {
                last.push(UNKNOWN);
            }
            continue;
        }
        match first {
            '+' | '%' => {
                joins = !values.is_empty();
                rest = rest.get(1..).unwrap_or_default();
                // A name after it is unknown or a constant.
                let name = identifier(rest.trim_start());
                if joins && !name.is_empty() {
                    let value = constant(name, constants).unwrap_or_else(|| UNKNOWN.to_string());
                    if let Some(last) = values.last_mut() {
                        last.push_str(&value);
                    }
                    joins = false;
                }
            }
            ',' => {
                joins = false;
                is_keyword = false;
                rest = rest.get(1..).unwrap_or_default();
            }
            // A list that is the value of a keyword has values of its own.
            '[' => {
                is_keyword = false;
                rest = rest.get(1..).unwrap_or_default();
            }
            '=' | ':' => {
                is_keyword = true;
                rest = rest.get(1..).unwrap_or_default();
            }
            _ if first.is_ascii_alphabetic() || first == '_' => {
                let name = identifier(rest);
                let after = rest.get(name.len()..).unwrap_or_default();
                let is_home = ["HOME", "homedir", "Path.home", "USERPROFILE", "home_dir"]
                    .iter()
                    .any(|mark| {
                        name.contains(mark)
                            || after.starts_with(&format!("['{mark}']"))
                            || after.starts_with(&format!("[\"{mark}\"]"))
                    });
                if values.is_empty()
                    && !after.trim_start().starts_with(['=', ':', '\'', '"'])
                    && !is_keyword
                {
                    if is_home {
                        values.push(evaluator.home(scope));
                        joins = true;
                    } else if let Some(value) = constant(name, constants) {
                        values.push(value);
                    } else if !after.starts_with(['(', '[']) && !name.contains('.') {
                        values.push(UNKNOWN.to_string());
                    }
                }
                rest = after;
            }
            _ => rest = rest.get(first.len_utf8()..).unwrap_or_default(),
        }
    }
    values
}

pub(super) fn identifier(text: &str) -> &str {
    let end = text
        .find(|letter: char| !(letter.is_ascii_alphanumeric() || "_.$".contains(letter)))
        .unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

fn constant(name: &str, constants: &[(String, String)]) -> Option<String> {
    constants
        .iter()
        .find(|(known, _)| known == name)
        .map(|(_, value)| value.clone())
}
