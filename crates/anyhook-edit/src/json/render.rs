//! Writes values as JSON text in the style of the file around them.

use anyhook_model::document::Node;
use serde_json::Value;

use crate::list::ListStyle;
use crate::text::{indent_at, newline, slice};
use crate::tree::children;

/// How a JSON text is formatted.
#[derive(Debug, Clone)]
pub(crate) struct JsonStyle {
    pub list: ListStyle,
    /// `:` or `: `
    pub colon: &'static str,
    pub escape_slashes: bool,
}

impl JsonStyle {
    pub(crate) fn detect(text: &str, root: Option<&Node>, escape_slashes: bool) -> Self {
        let tight = root.and_then(|root| first_colon_is_tight(text, root)) == Some(true);
        Self {
            list: ListStyle {
                newline: newline(text),
                indent: root
                    .and_then(|root| indent_unit(text, root))
                    .unwrap_or_else(|| "  ".to_owned()),
                block_when_empty: false,
                gap: if tight { "" } else { " " },
                pad: "",
            },
            colon: if tight { ":" } else { ": " },
            escape_slashes,
        }
    }

    pub(crate) fn string(&self, text: &str) -> String {
        let quoted = Value::String(text.to_owned()).to_string();
        if self.escape_slashes {
            // `/*` starts a comment for such readers, even after a `\`.
            quoted.replace('/', "\\/").replace("/*", "/\\u002a")
        } else {
            quoted
        }
    }

    pub(crate) fn member(&self, key: &str, value: &Value, indent: Option<&str>) -> String {
        self.string(key) + self.colon + &self.value(value, indent)
    }

    /// A value on one line, or over several lines that start with `indent`.
    pub(crate) fn value(&self, value: &Value, indent: Option<&str>) -> String {
        match value {
            Value::String(text) => self.string(text),
            Value::Array(items) => {
                let flat = !items.iter().any(|item| item.is_array() || item.is_object());
                self.brackets(['[', ']'], indent.filter(|_| !flat), &|inner| {
                    items.iter().map(|item| self.value(item, inner)).collect()
                })
            }
            Value::Object(map) => {
                let members = map.iter();
                self.brackets(['{', '}'], indent, &|inner| {
                    let members = members.clone();
                    members
                        .map(|(key, value)| self.member(key, value, inner))
                        .collect()
                })
            }
            scalar => scalar.to_string(),
        }
    }

    fn brackets(
        &self,
        [open, close]: [char; 2],
        indent: Option<&str>,
        parts: &dyn Fn(Option<&str>) -> Vec<String>,
    ) -> String {
        let Some(indent) = indent else {
            let inner = parts(None).join(&format!(",{}", self.list.gap));
            return format!("{open}{inner}{close}");
        };
        let deeper = format!("{indent}{}", self.list.indent);
        let parts = parts(Some(&deeper));
        if parts.is_empty() {
            return format!("{open}{close}");
        }
        let nl = self.list.newline;
        let inner = parts.join(&format!(",{nl}{deeper}"));
        format!("{open}{nl}{deeper}{inner}{nl}{indent}{close}")
    }
}

/// One level of indentation, as in the first container that spans several lines.
fn indent_unit(text: &str, node: &Node) -> Option<String> {
    let children = children(node);
    if let Some((start, _)) = children.first()
        && slice(text, node.span.start..*start).contains('\n')
    {
        let outer = indent_at(text, node.span.start);
        let inner = indent_at(text, *start);
        if let Some(unit) = inner.strip_prefix(outer)
            && !unit.is_empty()
        {
            return Some(unit.to_owned());
        }
    }
    children
        .into_iter()
        .find_map(|(_, child)| indent_unit(text, child))
}

fn first_colon_is_tight(text: &str, node: &Node) -> Option<bool> {
    if let Some(member) = node.as_object().and_then(<[_]>::first) {
        let between = slice(text, member.key_span.end..member.value.span.start);
        return Some(between.ends_with(':'));
    }
    children(node)
        .into_iter()
        .find_map(|(_, child)| first_colon_is_tight(text, child))
}
