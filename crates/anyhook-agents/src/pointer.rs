//! JSON pointers that also write: `/a/b/0`.

use serde_json::{Map, Value};

/// The value at `pointer`; `None` for a missing value and for `null`.
pub fn get<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    value.pointer(pointer).filter(|found| !found.is_null())
}

fn segments(pointer: &str) -> impl Iterator<Item = String> + '_ {
    pointer
        .split('/')
        .skip(1)
        .map(|part| part.replace("~1", "/").replace("~0", "~"))
}

/// Puts `value` at `pointer`, making objects on the way. A number makes an
/// array only where one is missing and the number is 0.
pub fn put(root: &mut Value, pointer: &str, value: Value) {
    let mut here = root;
    let parts: Vec<String> = segments(pointer).collect();
    for (index, part) in parts.iter().enumerate() {
        if let Value::Array(items) = here {
            let Ok(at) = part.parse::<usize>() else {
                return;
            };
            while items.len() <= at {
                items.push(Value::Null);
            }
            let Some(next) = items.get_mut(at) else {
                return;
            };
            here = next;
        } else {
            if !here.is_object() {
                *here = Value::Object(Map::new());
            }
            let Value::Object(map) = here else { return };
            let next = map.entry(part.clone()).or_insert(Value::Null);
            if next.is_null() && parts.get(index + 1).is_some_and(|part| part == "0") {
                *next = Value::Array(Vec::new());
            }
            here = next;
        }
    }
    *here = value;
}

/// Takes the value at `pointer` out, with the objects that this leaves empty.
pub fn take(root: &mut Value, pointer: &str) -> Option<Value> {
    let parts: Vec<String> = segments(pointer).collect();
    take_parts(root, &parts)
}

fn take_parts(here: &mut Value, parts: &[String]) -> Option<Value> {
    let (first, rest) = parts.split_first()?;
    let map = here.as_object_mut()?;
    if rest.is_empty() {
        return map.shift_remove(first);
    }
    let next = map.get_mut(first)?;
    let taken = take_parts(next, rest)?;
    if next.as_object().is_some_and(Map::is_empty) {
        map.shift_remove(first);
    }
    Some(taken)
}

/// Lays `over` upon `base`: objects are merged, everything else replaces.
pub fn overlay(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                match base.get_mut(key) {
                    Some(place) => overlay(place, value),
                    None => {
                        base.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (base, over) => *base = over.clone(),
    }
}

/// Whether a payload has a mark: `/a`, `!/a` (missing), `/a=text`, `/a*=part`.
pub fn marked(value: &Value, mark: &str) -> bool {
    if let Some(pointer) = mark.strip_prefix('!') {
        return value.pointer(pointer).is_none();
    }
    match mark.split_once('=') {
        Some((pointer, text)) => {
            let (pointer, part) = match pointer.strip_suffix('*') {
                Some(pointer) => (pointer, true),
                None => (pointer, false),
            };
            value
                .pointer(pointer)
                .and_then(Value::as_str)
                .is_some_and(|found| found == text || (part && found.contains(text)))
        }
        None => value.pointer(mark).is_some(),
    }
}
