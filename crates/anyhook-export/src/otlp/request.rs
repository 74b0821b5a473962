//! The messages of the three signals.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::logs::v1::{
    ExportLogsServiceRequest, ExportLogsServiceResponse,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::{Metric, ResourceMetrics, ScopeMetrics};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::config::Signal;
use super::names;
use super::span::{AttributeValue, key_value};

/// A request that can be sent in parts.
pub(crate) trait SignalRequest: Message + Serialize + Sized {
    type Response: Message + Default + DeserializeOwned;
    const SIGNAL: Signal;

    fn item_count(&self) -> usize;
    /// Moves the items from `at` on into a request of their own.
    fn split_off(&mut self, at: usize) -> Self;
    /// How many items the receiver has rejected, and why.
    fn rejections(response: Self::Response) -> Option<(i64, String)>;
}

/// Who sends: the same for every request.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    resource: Resource,
    scope: InstrumentationScope,
}

impl Origin {
    /// `settings` wins over the defaults.
    pub(crate) fn new(host: Option<&str>, settings: &BTreeMap<String, String>) -> Self {
        let mut attributes = BTreeMap::from([
            (names::SERVICE_NAME.to_owned(), names::SCOPE_NAME.to_owned()),
            (
                names::SERVICE_VERSION.to_owned(),
                env!("CARGO_PKG_VERSION").to_owned(),
            ),
        ]);
        if let Some(host) = host {
            attributes.insert(names::HOST_NAME.to_owned(), host.to_owned());
        }
        attributes.extend(settings.clone());
        let attributes = attributes.into_iter();
        Self {
            resource: Resource {
                attributes: attributes
                    .map(|(key, value)| key_value(key, AttributeValue::Text(value)))
                    .collect(),
                ..Resource::default()
            },
            scope: InstrumentationScope {
                name: names::SCOPE_NAME.to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                ..InstrumentationScope::default()
            },
        }
    }

    pub(crate) fn traces(&self, spans: Vec<Span>) -> ExportTraceServiceRequest {
        ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.resource.clone()),
                scope_spans: vec![ScopeSpans {
                    scope: Some(self.scope.clone()),
                    spans,
                    schema_url: names::SCHEMA_URL.to_owned(),
                }],
                schema_url: names::SCHEMA_URL.to_owned(),
            }],
        }
    }

    pub(crate) fn logs(&self, log_records: Vec<LogRecord>) -> ExportLogsServiceRequest {
        ExportLogsServiceRequest {
            resource_logs: vec![ResourceLogs {
                resource: Some(self.resource.clone()),
                scope_logs: vec![ScopeLogs {
                    scope: Some(self.scope.clone()),
                    log_records,
                    schema_url: names::SCHEMA_URL.to_owned(),
                }],
                schema_url: names::SCHEMA_URL.to_owned(),
            }],
        }
    }

    pub(crate) fn metrics(&self, metrics: Vec<Metric>) -> ExportMetricsServiceRequest {
        ExportMetricsServiceRequest {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(self.resource.clone()),
                scope_metrics: vec![ScopeMetrics {
                    scope: Some(self.scope.clone()),
                    metrics,
                    schema_url: names::SCHEMA_URL.to_owned(),
                }],
                schema_url: names::SCHEMA_URL.to_owned(),
            }],
        }
    }
}

/// The three requests differ in names only.
macro_rules! signal_request {
    ($request:ty, $response:ty, $signal:expr, $resources:ident, $scopes:ident, $items:ident, $rejected:ident) => {
        impl SignalRequest for $request {
            type Response = $response;
            const SIGNAL: Signal = $signal;

            fn item_count(&self) -> usize {
                let scopes = self.$resources.iter().flat_map(|it| &it.$scopes);
                scopes.map(|scope| scope.$items.len()).sum()
            }

            fn split_off(&mut self, at: usize) -> Self {
                let mut others = Vec::new();
                for resource in &mut self.$resources {
                    let scopes = std::mem::take(&mut resource.$scopes);
                    let mut other = resource.clone();
                    for mut scope in scopes {
                        let mut items = std::mem::take(&mut scope.$items);
                        let mut second = scope.clone();
                        second.$items = items.split_off(at.min(items.len()));
                        scope.$items = items;
                        resource.$scopes.push(scope);
                        other.$scopes.push(second);
                    }
                    others.push(other);
                }
                Self { $resources: others }
            }

            fn rejections(response: Self::Response) -> Option<(i64, String)> {
                let partial = response.partial_success?;
                Some((partial.$rejected, partial.error_message))
            }
        }
    };
}

signal_request!(
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
    Signal::Traces,
    resource_spans,
    scope_spans,
    spans,
    rejected_spans
);
signal_request!(
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
    Signal::Logs,
    resource_logs,
    scope_logs,
    log_records,
    rejected_log_records
);
signal_request!(
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
    Signal::Metrics,
    resource_metrics,
    scope_metrics,
    metrics,
    rejected_data_points
);
