//! Parses TOML into located trees, with the spans of `toml_edit`.

use std::ops::Range;

use anyhook_model::Span;
use anyhook_model::document::{self, Member, Node, Notation};
use toml_edit::{Document, Item, Table, TableLike, Value};

use crate::error::EditError;
use crate::text::slice;

pub(crate) fn parse(text: &str) -> Result<Node, EditError> {
    match Document::parse(text) {
        Ok(document) => Ok(table_node(document.as_table(), Notation::Header)),
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

fn table_node(table: &Table, notation: Notation) -> Node {
    Node {
        value: members(table),
        notation,
        span: span_or_empty(table.span()),
    }
}

fn members(table: &dyn TableLike) -> document::Value {
    let members = table.iter().filter_map(|(name, entry)| {
        let key_span = table.key(name).and_then(toml_edit::Key::span);
        Some(Member {
            key: name.to_owned(),
            key_span: span_or_empty(key_span),
            value: item_node(entry)?,
        })
    });
    document::Value::Object(members.collect())
}

fn item_node(entry: &Item) -> Option<Node> {
    match entry {
        Item::None => None,
        Item::Value(one) => Some(value_node(one)),
        Item::Table(one) => {
            let notation = if one.is_dotted() {
                Notation::Dotted
            } else if one.is_implicit() {
                Notation::Implicit
            } else {
                Notation::Header
            };
            Some(table_node(one, notation))
        }
        Item::ArrayOfTables(tables) => Some(Node {
            value: document::Value::Array(
                tables
                    .iter()
                    .map(|one| table_node(one, Notation::Header))
                    .collect(),
            ),
            notation: Notation::ArrayOfTables,
            span: span_or_empty(tables.span()),
        }),
    }
}

fn value_node(value: &Value) -> Node {
    let span = span_or_empty(value.span());
    let value = match value {
        Value::String(text) => document::Value::String(text.value().clone()),
        Value::Integer(number) => document::Value::Number(number.value().to_string()),
        Value::Float(number) => {
            let number = *number.value();
            match serde_json::Number::from_f64(number) {
                Some(number) => document::Value::Number(number.to_string()),
                None => document::Value::Literal(number.to_string()),
            }
        }
        Value::Boolean(flag) => document::Value::Bool(*flag.value()),
        Value::Datetime(date) => document::Value::Literal(date.value().to_string()),
        Value::Array(items) => document::Value::Array(items.iter().map(value_node).collect()),
        Value::InlineTable(table) => members(table),
    };
    // Only a table that exists because of dotted keys has no text.
    let notation = if span.is_empty() {
        Notation::Dotted
    } else {
        Notation::Inline
    };
    Node {
        value,
        notation,
        span,
    }
}

fn span_or_empty(range: Option<Range<usize>>) -> Span {
    range.map(Span::from).unwrap_or_default()
}
