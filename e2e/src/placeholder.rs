//! Placeholders of the form `@name@` in the data files; at signs leave JSON, TOML and shell text readable.

use serde_json::Value;

/// Names and their values.
#[derive(Clone, Debug, Default)]
pub struct Placeholders(Vec<(String, String)>);

impl Placeholders {
    pub fn set(&mut self, name: &str, value: impl AsRef<str>) {
        let mark = format!("@{name}@");
        self.0.retain(|(known, _)| *known != mark);
        self.0.push((mark, value.as_ref().to_owned()));
    }

    pub fn with(&self, name: &str, value: impl AsRef<str>) -> Self {
        let mut placeholders = self.clone();
        placeholders.set(name, value);
        placeholders
    }

    /// Fills in one pass from left to right, so that a value is never searched for placeholders itself.
    pub fn fill_text(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, from_mark)) = split_before(rest, '@') {
            out.push_str(before);
            let hit = self
                .0
                .iter()
                .find_map(|(mark, value)| Some((value, from_mark.strip_prefix(mark.as_str())?)));
            if let Some((value, after)) = hit {
                out.push_str(value);
                rest = after;
            } else {
                out.push('@');
                rest = from_mark.strip_prefix('@').unwrap_or("");
            }
        }
        out.push_str(rest);
        out
    }

    /// Fills every string inside a JSON value; keys stay as they are.
    pub fn fill_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill_text(text)),
            Value::Array(items) => items.iter().map(|item| self.fill_value(item)).collect(),
            Value::Object(members) => members
                .iter()
                .map(|(key, member)| (key.clone(), self.fill_value(member)))
                .collect(),
            other => other.clone(),
        }
    }
}

fn split_before(text: &str, mark: char) -> Option<(&str, &str)> {
    text.find(mark).map(|at| text.split_at(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filled_value_is_not_filled_again() {
        let mut placeholders = Placeholders::default();
        placeholders.set("a", "@b@");
        placeholders.set("b", "no");
        assert_eq!(
            placeholders.fill_text("x @a@ a@b.c @b@ @"),
            "x @b@ a@b.c no @"
        );
    }
}
