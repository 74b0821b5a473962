//! The same value in other notations.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// JSON with a comment or a trailing comma wherever one may be.
pub(crate) fn to_jsonc(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(to_jsonc).collect();
            bracketed("[", &items, "]")
        }
        Value::Object(members) => {
            let members: Vec<String> = members
                .iter()
                .map(|(key, value)| format!("{} /* , }} */ :\n{}", json!(key), to_jsonc(value)))
                .collect();
            bracketed("{", &members, "}")
        }
        leaf => leaf.to_string(),
    }
}

fn bracketed(open: &str, parts: &[String], close: &str) -> String {
    let trailing = if parts.is_empty() { "" } else { "," };
    format!(
        "{open} // \"{close}\n{}{trailing} /* */ {close}",
        parts.join(" , // x\n")
    )
}

/// YAML in block style, with plain scalars and literal blocks where they say
/// the same.
pub(crate) fn to_yaml(value: &Value) -> String {
    let mut out = String::from("# generated\n---\n");
    block(value, 0, &mut out);
    out
}

fn block(value: &Value, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                write!(out, "{indent}-").unwrap();
                nested(item, depth, out);
            }
        }
        Value::Object(members) if !members.is_empty() => {
            for (key, value) in members {
                write!(out, "{indent}{}:", scalar(&json!(key))).unwrap();
                nested(value, depth, out);
            }
        }
        leaf => writeln!(out, "{indent}{}", scalar(leaf)).unwrap(),
    }
}

fn nested(value: &Value, depth: usize, out: &mut String) {
    let container = match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => false,
    };
    if container {
        out.push('\n');
        block(value, depth + 1, out);
    } else {
        writeln!(out, " {} # end", scalar(value)).unwrap();
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => {
            let plain = text.starts_with(|letter: char| letter.is_ascii_lowercase())
                && text
                    .chars()
                    .all(|letter| letter.is_ascii_lowercase() || "_./".contains(letter))
                && !["true", "false", "null"].contains(&text.as_str());
            if plain {
                text.clone()
            } else if text.contains(['\n', '\t', '\\']) {
                value.to_string()
            } else {
                format!("'{}'", text.replace('\'', "''"))
            }
        }
        Value::Array(_) => "[]".into(),
        Value::Object(_) => "{}".into(),
        leaf => leaf.to_string(),
    }
}
