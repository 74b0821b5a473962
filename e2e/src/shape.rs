//! The shape of a payload: its members and their kinds, regardless of values.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Members whose contents the model chose: they say nothing about the client.
const MODEL_CHOSEN_MEMBERS: [&str; 5] =
    ["tool_input", "toolArgs", "args", "parameters", "tool_calls"];

/// Kinds of value by path; `/items/[]/name` is a member of the objects in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape(BTreeMap<String, BTreeSet<&'static str>>);

impl Shape {
    pub fn from_value(value: &Value) -> Shape {
        let mut shape = Shape::default();
        shape.add("", value);
        shape
    }

    fn add(&mut self, path: &str, value: &Value) {
        self.0
            .entry(path.to_owned())
            .or_default()
            .insert(kind_name(value));
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    let path = format!("{path}/{key}");
                    if MODEL_CHOSEN_MEMBERS.contains(&key.as_str()) {
                        self.0.entry(path).or_default().insert(kind_name(member));
                    } else {
                        self.add(&path, member);
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.add(&format!("{path}/[]"), item);
                }
            }
            _ => {}
        }
    }

    /// What only this payload has, and what all the others have and it lacks.
    pub fn differs_from(&self, others: &[Shape]) -> Vec<String> {
        let mut differences = Vec::new();
        for (path, kinds) in &self.0 {
            let known: BTreeSet<&str> = others
                .iter()
                .filter_map(|other| other.0.get(path))
                .flatten()
                .copied()
                .collect();
            if known.is_empty() {
                // If the parent is new too, only the parent is reported.
                let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
                if others.iter().any(|other| other.0.contains_key(parent)) {
                    differences.push(format!("new `{path}` ({})", join(kinds)));
                }
            } else if let Some(kind) = kinds.iter().find(|kind| !known.contains(*kind)) {
                differences.push(format!("`{path}` is {kind}, was {}", join(&known)));
            }
        }
        let Some((first, rest)) = others.split_first() else {
            return differences;
        };
        for path in first.0.keys() {
            let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
            // A list may be empty.
            if !path.ends_with("/[]")
                && rest.iter().all(|other| other.0.contains_key(path))
                && !self.0.contains_key(path)
                && self.0.contains_key(parent)
            {
                differences.push(format!("gone `{path}`"));
            }
        }
        differences
    }
}

fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn join(kinds: &BTreeSet<&str>) -> String {
    kinds.iter().copied().collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn new_gone_and_changed_members_are_reported() {
        let old = [
            Shape::from_value(&json!({"a": 1, "b": {"c": "x"}, "e": [{"f": 1}], "only": 1})),
            Shape::from_value(&json!({"a": null, "b": {"c": "x"}, "e": []})),
        ];
        let new =
            Shape::from_value(&json!({"a": 2, "b": {"c": 3}, "d": {"x": 1}, "e": [{"f": 2}]}));
        assert_eq!(
            new.differs_from(&old),
            ["`/b/c` is a number, was a string", "new `/d` (an object)"]
        );
        let less = Shape::from_value(&json!({"a": 2, "e": [], "only": 2}));
        assert_eq!(less.differs_from(&old), ["gone `/b`"]);
        assert!(
            Shape::from_value(&json!({"a": 1, "b": {"c": ""}, "e": []}))
                .differs_from(&old)
                .is_empty()
        );
    }
}
