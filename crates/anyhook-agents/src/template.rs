//! Answers with holes: filled to answer an agent, matched to read an answer.
//!
//! A text that is only `{name}` is a hole for any JSON value; a hole inside a
//! longer text takes text. `{updated_input.x}` is a part of the rewritten input.

use serde_json::{Map, Value};

/// The values of the holes: `reason`, `context`, `message`, `updated_input` and
/// `event`.
pub(crate) type Holes = Map<String, Value>;

/// The template with its holes filled. A hole without a value leaves its key out.
pub(crate) fn fill(template: &Value, holes: &Holes) -> Option<Value> {
    match template {
        Value::String(text) => fill_text(text, holes),
        Value::Array(items) => Some(Value::Array(
            items.iter().filter_map(|item| fill(item, holes)).collect(),
        )),
        Value::Object(map) => Some(Value::Object(
            map.iter()
                .filter_map(|(key, value)| Some((key.clone(), fill(value, holes)?)))
                .collect(),
        )),
        other => Some(other.clone()),
    }
}

fn fill_text(text: &str, holes: &Holes) -> Option<Value> {
    if let Some(name) = hole(text) {
        return lookup(holes, name).cloned();
    }
    let mut out = text.to_owned();
    for (name, value) in holes {
        if let Some(value) = value.as_str() {
            out = out.replace(&format!("{{{name}}}"), value);
        }
    }
    Some(Value::String(out))
}

fn hole(text: &str) -> Option<&str> {
    let name = text.strip_prefix('{')?.strip_suffix('}')?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._".contains(letter);
    (!name.is_empty() && name.chars().all(is_plain)).then_some(name)
}

/// The parts of `updated_input` that a template has a hole for; `None` if it
/// takes the whole input.
pub(crate) fn parts_of_input(template: &Value) -> Option<Vec<&str>> {
    fn walk<'a>(template: &'a Value, parts: &mut Vec<&'a str>, whole: &mut bool) {
        match template {
            Value::String(text) => {
                match hole(text).map(|name| name.strip_prefix("updated_input.").ok_or(name)) {
                    Some(Ok(part)) => parts.push(part),
                    Some(Err("updated_input")) => *whole = true,
                    _ => {}
                }
            }
            Value::Object(map) => map.values().for_each(|inner| walk(inner, parts, whole)),
            Value::Array(items) => items.iter().for_each(|inner| walk(inner, parts, whole)),
            _ => {}
        }
    }
    let (mut parts, mut whole) = (Vec::new(), false);
    walk(template, &mut parts, &mut whole);
    (!whole).then_some(parts)
}

fn lookup<'a>(holes: &'a Holes, name: &str) -> Option<&'a Value> {
    match name.split_once('.') {
        Some((first, rest)) => holes.get(first)?.get(rest),
        None => holes.get(name),
    }
}

/// What `actual` has in the template's holes; `None` if it does not fit the
/// template.
pub(crate) fn unfill(template: &Value, actual: &Value) -> Option<Holes> {
    let mut found = HoleMatch::default();
    if !found.walk(template, actual) {
        return None;
    }
    (found.fixed > 0 || !found.holes.is_empty()).then_some(found.holes)
}

#[derive(Default)]
struct HoleMatch {
    holes: Holes,
    /// Number of fixed leaves that are equal: these identify the answer.
    fixed: usize,
}

impl HoleMatch {
    fn walk(&mut self, template: &Value, actual: &Value) -> bool {
        match (template, actual) {
            (Value::String(text), actual) if hole(text).is_some() => {
                let name = hole(text).unwrap_or_default();
                // The event is known anyway; a mistake there must not void a deny.
                if name != "event" {
                    self.put(name, actual.clone());
                }
                true
            }
            (Value::String(text), Value::String(actual)) if text.contains('{') => {
                let (before, rest) = text.split_once('{').unwrap_or_default();
                let (name, after) = rest.split_once('}').unwrap_or_default();
                let inner = actual.strip_prefix(before);
                let inner = inner.and_then(|text| text.strip_suffix(after));
                if let Some(inner) = inner {
                    self.put(name, Value::from(inner));
                }
                inner.is_some()
            }
            (Value::Object(template), Value::Object(actual)) => {
                template.iter().all(|(key, inner)| {
                    match actual.get(key) {
                        Some(actual) if !actual.is_null() => self.walk(inner, actual),
                        // A missing reason does not void a decision; a missing decision does.
                        _ => only_holes(inner),
                    }
                })
            }
            (template, actual) if template == actual => {
                self.fixed += 1;
                true
            }
            _ => false,
        }
    }

    fn put(&mut self, name: &str, value: Value) {
        match name.split_once('.') {
            Some((first, rest)) => {
                let object = self.holes.entry(first);
                if let Value::Object(object) = object.or_insert_with(|| Map::new().into()) {
                    object.insert(rest.to_owned(), value);
                }
            }
            None => {
                self.holes.insert(name.to_owned(), value);
            }
        }
    }
}

pub(crate) fn only_holes(template: &Value) -> bool {
    match template {
        Value::String(text) => text.contains('{'),
        Value::Object(map) => map.values().all(only_holes),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_filled_is_read_again() {
        let template = json!({"h": {"event": "{event}", "decision": "deny", "why": "{reason}"}});
        let holes = json!({"reason": "no", "event": "Pre"});
        let holes = holes.as_object().expect("object");
        let filled = fill(&template, holes).expect("filled");
        assert_eq!(
            filled,
            json!({"h": {"event": "Pre", "decision": "deny", "why": "no"}})
        );
        let read = unfill(&template, &filled).expect("read");
        assert_eq!(read.get("reason"), Some(&json!("no")));
    }

    #[test]
    fn a_decision_holds_without_its_reason_and_not_without_itself() {
        let template = json!({"decision": "deny", "reason": "{reason}"});
        assert!(unfill(&template, &json!({"decision": "deny"})).is_some());
        assert!(unfill(&template, &json!({"reason": "no"})).is_none());
        assert!(unfill(&template, &json!({"decision": "allow", "reason": "no"})).is_none());
    }

    #[test]
    fn holes_reach_into_the_rewritten_input() {
        let template = json!({"prompt": "{updated_input.prompt}"});
        let holes = json!({"updated_input": {"prompt": "better"}});
        let filled = fill(&template, holes.as_object().expect("object"));
        assert_eq!(filled, Some(json!({"prompt": "better"})));
        let read = unfill(&template, &json!({"prompt": "better"})).expect("read");
        assert_eq!(
            read.get("updated_input"),
            Some(&json!({"prompt": "better"}))
        );
    }
}
