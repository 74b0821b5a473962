//! A finished span with its attributes, and its form on the wire.

use std::borrow::Cow;

use opentelemetry_proto::tonic::common::v1::any_value::Value as ProtoValue;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::span::{Link, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use serde::{Deserialize, Serialize};

use super::ids::{SpanId, SpanRef, TraceId};
use super::names;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum AttributeValue {
    Flag(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<String>),
}

/// Attributes in the order in which they were added.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct AttributeList(Vec<(Cow<'static, str>, AttributeValue)>);

impl AttributeList {
    pub(crate) fn set(&mut self, key: &'static str, value: AttributeValue) {
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key.into(), value)),
        }
    }

    /// Empty texts are left out.
    pub(crate) fn text(&mut self, key: &'static str, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() {
            self.set(key, AttributeValue::Text(text));
        }
    }

    pub(crate) fn optional_text(&mut self, key: &'static str, text: Option<&str>) {
        self.text(key, text.unwrap_or_default());
    }

    pub(crate) fn int(&mut self, key: &'static str, number: i64) {
        self.set(key, AttributeValue::Int(number));
    }

    pub(crate) fn flag(&mut self, key: &'static str) {
        self.set(key, AttributeValue::Flag(true));
    }

    pub(crate) fn list(&mut self, key: &'static str, items: Vec<String>) {
        if !items.is_empty() {
            self.set(key, AttributeValue::List(items));
        }
    }

    pub(crate) fn extend(&mut self, others: &Self) {
        self.0.extend(others.0.iter().cloned());
    }

    /// Adds what is not there yet.
    pub(crate) fn add_missing(&mut self, others: Self) {
        for (key, value) in others.0 {
            if self.0.iter().all(|(known, _)| *known != key) {
                self.0.push((key, value));
            }
        }
    }

    pub(crate) fn remove(&mut self, key: &str) {
        self.0.retain(|(known, _)| known != key);
    }

    pub(crate) fn into_key_values(self) -> Vec<KeyValue> {
        self.0
            .into_iter()
            .map(|(key, value)| key_value(key.into_owned(), value))
            .collect()
    }
}

pub(crate) fn text_value(text: impl Into<String>) -> AnyValue {
    AnyValue {
        value: Some(ProtoValue::StringValue(text.into())),
    }
}

pub(crate) fn key_value(key: String, value: AttributeValue) -> KeyValue {
    let value = match value {
        AttributeValue::Flag(flag) => ProtoValue::BoolValue(flag),
        AttributeValue::Int(number) => ProtoValue::IntValue(number),
        AttributeValue::Float(number) => ProtoValue::DoubleValue(number),
        AttributeValue::Text(text) => ProtoValue::StringValue(text),
        AttributeValue::List(items) => ProtoValue::ArrayValue(ArrayValue {
            values: items.into_iter().map(text_value).collect(),
        }),
    };
    KeyValue {
        key,
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

/// A span that will not change any more.
#[derive(Debug, Clone)]
pub(crate) struct FinishedSpan {
    pub(crate) at: SpanRef,
    pub(crate) parent: Option<SpanId>,
    pub(crate) name: String,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) attributes: AttributeList,
    /// The previous turn.
    pub(crate) link: Option<SpanRef>,
    /// What went wrong.
    pub(crate) error: Option<String>,
}

impl FinishedSpan {
    pub(crate) fn into_proto(self) -> Span {
        let link = self.link.map(|link| {
            let mut attributes = AttributeList::default();
            attributes.text(names::LINK, "previous_turn");
            Link {
                trace_id: link.trace.to_vec(),
                span_id: link.span.to_vec(),
                attributes: attributes.into_key_values(),
                ..Link::default()
            }
        });
        let status = self.error.map(|message| Status {
            message,
            code: StatusCode::Error.into(),
        });
        Span {
            trace_id: self.at.trace.to_vec(),
            span_id: self.at.span.to_vec(),
            parent_span_id: self.parent.map(SpanId::to_vec).unwrap_or_default(),
            name: self.name,
            kind: SpanKind::Internal.into(),
            start_time_unix_nano: self.start,
            end_time_unix_nano: self.end.max(self.start),
            attributes: self.attributes.into_key_values(),
            links: link.into_iter().collect(),
            status,
            ..Span::default()
        }
    }
}

/// Where the finished spans of one trace go.
pub(crate) struct SpanSink<'a> {
    pub(crate) trace: TraceId,
    /// For every span of the trace.
    pub(crate) common: &'a AttributeList,
    pub(crate) spans: &'a mut Vec<FinishedSpan>,
}

impl SpanSink<'_> {
    pub(crate) fn push(&mut self, mut span: UnplacedSpan) {
        span.attributes.extend(self.common);
        self.spans.push(FinishedSpan {
            at: SpanRef {
                trace: self.trace,
                span: span.id,
            },
            parent: Some(span.parent),
            name: span.name,
            start: span.start,
            end: span.end,
            attributes: span.attributes,
            link: None,
            error: span.error,
        });
    }
}

/// A finished span below another one.
pub(crate) struct UnplacedSpan {
    pub(crate) id: SpanId,
    pub(crate) parent: SpanId,
    pub(crate) name: String,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) attributes: AttributeList,
    pub(crate) error: Option<String>,
}
