//! OpenTelemetry: the journal as traces, logs and metrics over OTLP/HTTP.

mod config;
mod exporter;
mod ids;
mod logs;
mod metrics;
pub mod names;
mod request;
mod send;
mod span;
mod turns;

pub use config::{Compression, HeaderValue, OtlpConfig, Protocol, Signal};
pub use exporter::{ExportControl, ExportNotice, ExportSummary, OtlpExporter, OtlpSetup};
pub use metrics::Temporality;
