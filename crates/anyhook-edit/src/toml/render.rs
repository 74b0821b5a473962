//! Writes values as TOML text: inline, or as tables with headers.

use serde_json::{Map, Value};

use crate::error::EditError;

/// A key, bare where that is allowed.
pub(crate) fn key(name: &str) -> String {
    let bare = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if bare { name.to_owned() } else { basic(name) }
}

/// A dotted key.
pub(crate) fn dotted(names: &[String]) -> String {
    names
        .iter()
        .map(|name| key(name))
        .collect::<Vec<_>>()
        .join(".")
}

/// TOML's basic strings share JSON's escapes, but DEL must be escaped too.
fn basic(text: &str) -> String {
    Value::String(text.to_owned())
        .to_string()
        .replace('\u{7f}', "\\u007F")
}

fn string(text: &str) -> String {
    let awkward = text.contains(['\\', '"']);
    let literal = awkward && !text.chars().any(|c| c == '\'' || c.is_control());
    if literal {
        format!("'{text}'")
    } else {
        basic(text)
    }
}

/// A value in one piece on one line.
pub(crate) fn inline(value: &Value) -> Result<String, EditError> {
    Ok(match value {
        Value::Null => {
            return Err(EditError::Unwritable {
                what: "null".to_owned(),
            });
        }
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) if number.is_u64() && !number.is_i64() => {
            return Err(EditError::Unwritable {
                what: format!("the number {number}"),
            });
        }
        Value::Number(number) => number.to_string(),
        Value::String(text) => string(text),
        Value::Array(items) => {
            let items = items.iter().map(inline).collect::<Result<Vec<_>, _>>()?;
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Object(map) => {
            let members = map
                .iter()
                .map(|(name, value)| Ok(format!("{} = {}", key(name), inline(value)?)))
                .collect::<Result<Vec<_>, EditError>>()?;
            format!("{{ {} }}", members.join(", "))
        }
    })
}

/// A table with its header, its sub-tables under headers of their own, every
/// line ended by `newline`.
pub(crate) fn block(
    names: &[String],
    map: &Map<String, Value>,
    in_array: bool,
    newline: &str,
) -> Result<String, EditError> {
    let header = dotted(names);
    let body = body(names, map, newline)?;
    if in_array {
        return Ok(format!("[[{header}]]{newline}{body}"));
    }
    // A header followed only by other headers can be left out.
    if body.starts_with('[') {
        return Ok(body);
    }
    Ok(format!("[{header}]{newline}{body}"))
}

/// The lines under the header of the table called `names`.
pub(crate) fn body(
    names: &[String],
    map: &Map<String, Value>,
    newline: &str,
) -> Result<String, EditError> {
    let mut lines = String::new();
    let mut below = Vec::new();
    for (name, value) in map {
        let mut names = names.to_vec();
        names.push(name.clone());
        match value {
            Value::Object(map) if !map.is_empty() => {
                below.push(block(&names, map, false, newline)?);
            }
            Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_object) => {
                for map in items.iter().filter_map(Value::as_object) {
                    below.push(block(&names, map, true, newline)?);
                }
            }
            _ => lines.extend([&key(name), " = ", &inline(value)?, newline]),
        }
    }
    let mut parts = Vec::new();
    if !lines.is_empty() {
        parts.push(lines);
    }
    parts.append(&mut below);
    Ok(parts.join(newline))
}
