//! Reads TOML into located trees, by way of `toml_edit`'s spans.

use toml_edit::{Document, Item, Table, Value};

use crate::error::EditError;
use crate::node::{Form, Kind, Member, Node};
use crate::source::slice;

pub(crate) fn parse(text: &str) -> Result<Node, EditError> {
    match Document::parse(text) {
        Ok(document) => Ok(table(document.as_table(), Form::Header)),
        Err(error) => {
            let span = error.span().unwrap_or(text.len()..text.len());
            let message = match error.message().trim() {
                "duplicate key" => format!("duplicate key `{}`", slice(text, span.clone())),
                other => other.to_owned(),
            };
            Err(EditError::parse(text, span.start, message))
        }
    }
}

fn table(table: &Table, form: Form) -> Node {
    let members = table
        .iter()
        .filter_map(|(name, entry)| {
            let key_span = table.key(name).and_then(toml_edit::Key::span);
            let value = item(entry)?;
            Some(Member {
                key: name.to_owned(),
                key_span: key_span.unwrap_or_default(),
                value,
            })
        })
        .collect();
    Node {
        kind: Kind::Object(members),
        form,
        span: table.span().unwrap_or_default(),
    }
}

fn item(entry: &Item) -> Option<Node> {
    match entry {
        Item::None => None,
        Item::Value(one) => Some(value(one)),
        Item::Table(one) => {
            let form = if one.is_dotted() {
                Form::Dotted
            } else if one.is_implicit() {
                Form::Implicit
            } else {
                Form::Header
            };
            Some(table(one, form))
        }
        Item::ArrayOfTables(tables) => Some(Node {
            kind: Kind::Array(tables.iter().map(|one| table(one, Form::Header)).collect()),
            form: Form::Tables,
            span: tables.span().unwrap_or_default(),
        }),
    }
}

fn value(value: &Value) -> Node {
    let span = value.span().unwrap_or_default();
    let kind = match value {
        Value::String(text) => Kind::Text(text.value().clone()),
        Value::Integer(number) => Kind::Number(number.value().to_string()),
        Value::Float(number) => {
            let number = *number.value();
            match serde_json::Number::from_f64(number) {
                Some(number) => Kind::Number(number.to_string()),
                None => Kind::Other(number.to_string()),
            }
        }
        Value::Boolean(flag) => Kind::Bool(*flag.value()),
        Value::Datetime(date) => Kind::Other(date.value().to_string()),
        Value::Array(items) => Kind::Array(items.iter().map(self::value).collect()),
        Value::InlineTable(table) => {
            let members = table
                .iter()
                .map(|(name, entry)| {
                    let key_span = table.key(name).and_then(toml_edit::Key::span);
                    let mut entry = self::value(entry);
                    if entry.span.is_empty() {
                        entry.form = Form::Dotted;
                    }
                    Member {
                        key: name.to_owned(),
                        key_span: key_span.unwrap_or_default(),
                        value: entry,
                    }
                })
                .collect();
            Kind::Object(members)
        }
    };
    Node::inline(kind, span)
}
