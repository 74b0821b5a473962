//! Writes values as JSON text in the manner of the file that they go into.

use serde_json::Value;

use crate::list::Layout;
use crate::node::{Kind, Node};
use crate::source::{indent_at, newline, slice};

/// The habits of a JSON text.
#[derive(Debug, Clone)]
pub(crate) struct Style {
    pub newline: &'static str,
    /// One level of indentation.
    pub unit: String,
    /// `:` or `: `
    pub colon: &'static str,
    /// White space after a comma on one line.
    pub gap: &'static str,
    pub escape_slashes: bool,
}

impl Style {
    pub(crate) fn detect(text: &str, root: Option<&Node>, escape_slashes: bool) -> Self {
        let tight = root.and_then(|root| first_colon_is_tight(text, root)) == Some(true);
        Self {
            newline: newline(text),
            unit: root
                .and_then(|root| indent_unit(text, root))
                .unwrap_or_else(|| "  ".to_owned()),
            colon: if tight { ":" } else { ": " },
            gap: if tight { "" } else { " " },
            escape_slashes,
        }
    }

    pub(crate) fn string(&self, text: &str) -> String {
        let quoted = Value::String(text.to_owned()).to_string();
        if self.escape_slashes {
            // `/*` begins a comment for such readers, even with a `\` before it.
            quoted.replace('/', "\\/").replace("/*", "/\\u002a")
        } else {
            quoted
        }
    }

    pub(crate) fn member(&self, key: &str, value: &Value, layout: &Layout) -> String {
        format!(
            "{}{}{}",
            self.string(key),
            self.colon,
            self.value(value, layout)
        )
    }

    pub(crate) fn value(&self, value: &Value, layout: &Layout) -> String {
        match value {
            Value::String(text) => self.string(text),
            Value::Array(items) => {
                let flat = !items.iter().any(|item| item.is_array() || item.is_object());
                let layout = if flat { &Layout::Inline } else { layout };
                let parts =
                    |inner: &Layout| items.iter().map(|item| self.value(item, inner)).collect();
                self.brackets(['[', ']'], layout, &parts)
            }
            Value::Object(map) => {
                let parts = |inner: &Layout| {
                    map.iter()
                        .map(|(key, value)| self.member(key, value, inner))
                        .collect()
                };
                self.brackets(['{', '}'], layout, &parts)
            }
            scalar => scalar.to_string(),
        }
    }

    fn brackets(
        &self,
        [open, close]: [char; 2],
        layout: &Layout,
        parts: &dyn Fn(&Layout) -> Vec<String>,
    ) -> String {
        match layout {
            Layout::Inline => {
                let inner = parts(layout).join(&format!(",{}", self.gap));
                format!("{open}{inner}{close}")
            }
            Layout::Block { indent } => {
                let deeper = format!("{indent}{}", self.unit);
                let parts = parts(&Layout::Block {
                    indent: deeper.clone(),
                });
                if parts.is_empty() {
                    return format!("{open}{close}");
                }
                let nl = self.newline;
                let inner = parts.join(&format!(",{nl}{deeper}"));
                format!("{open}{nl}{deeper}{inner}{nl}{indent}{close}")
            }
        }
    }
}

fn children(node: &Node) -> Vec<(usize, &Node)> {
    match &node.kind {
        Kind::Array(items) => items.iter().map(|item| (item.span.start, item)).collect(),
        Kind::Object(members) => members
            .iter()
            .map(|member| (member.key_span.start, &member.value))
            .collect(),
        _ => Vec::new(),
    }
}

/// What the first container that is spread over lines adds to its children's indentation.
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
    if let Some(member) = node.members().and_then(<[_]>::first) {
        let between = slice(text, member.key_span.end..member.value.span.start);
        return Some(between.ends_with(':'));
    }
    children(node)
        .into_iter()
        .find_map(|(_, child)| first_colon_is_tight(text, child))
}
