//! Counters and histograms over the exported events.
//!
//! Cumulative sums are part of the saved state, so that a batch that is sent twice gives the
//! same points. Times are those of the events, for the same reason.

use std::collections::BTreeMap;

use anyhook_model::{RecordKind, RunOutcome};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as NumberValue;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum,
};
use serde::{Deserialize, Serialize};

use super::names;
use super::span::{AttributeValue, key_value};
use super::turns::{PricedCall, outcome_word};
use crate::recorded_event::RecordedEvent;

/// Series beyond this number are counted together.
const MAX_SERIES: usize = 2000;

/// In seconds, as the conventions advise for durations.
const DURATION_BOUNDS: [f64; 14] = [
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
];
/// As the conventions advise for tokens.
const TOKEN_BOUNDS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Temporality {
    /// Sums since the first export.
    #[default]
    Cumulative,
    /// Sums since the last batch.
    Delta,
}

/// The sums so far.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct MetricSums {
    /// When counting began.
    start: u64,
    /// The time of the newest event.
    end: u64,
    series: BTreeMap<String, Series>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Series {
    metric: String,
    attributes: Vec<(String, String)>,
    count: u64,
    sum: f64,
    /// Of a histogram.
    buckets: Vec<u64>,
}

type Labels<'a> = &'a [(&'static str, &'a str)];

impl MetricSums {
    /// `now` bounds what a clock that was ahead has written.
    pub(crate) fn observe(&mut self, event: &RecordedEvent<'_>, now: u64) {
        let Some(time) = event.end_nanos() else {
            return;
        };
        self.add_time(event.start_nanos().unwrap_or(time), time, now);
        let agent = (names::AGENT_NAME, event.agent.as_ref());
        let name = (names::EVENT_NAME, event.event.event.as_ref());
        if event.kind == RecordKind::Event {
            self.add(names::METRIC_EVENTS, &[agent, name], 1.0);
            if let Some(decision) = event.decision {
                let tool = event.event.data.tool_name.as_deref().unwrap_or_default();
                let labels = [
                    agent,
                    name,
                    (names::CANONICAL_TOOL, tool),
                    (names::DECISION, decision.as_str()),
                ];
                self.add(names::METRIC_DECISIONS, &labels, 1.0);
            }
        }
        for run in &event.hooks {
            // These did not run.
            if matches!(
                run.outcome,
                RunOutcome::Skipped | RunOutcome::Refused | RunOutcome::Started
            ) {
                continue;
            }
            let labels = [
                agent,
                (names::HOOK_NAME, run.hook.as_ref()),
                (names::HOOK_OUTCOME, outcome_word(run.outcome)),
            ];
            let seconds = Some(run.duration_ms / 1000.0).filter(|it| it.is_finite() && *it >= 0.0);
            self.add(
                names::METRIC_HOOK_DURATION,
                &labels,
                seconds.unwrap_or_default(),
            );
        }
    }

    /// Tokens and price of a call of a model.
    pub(crate) fn observe_call(&mut self, priced: &PricedCall, now: u64) {
        let call = &priced.call;
        let time = u64::try_from(call.time_us).unwrap_or_default();
        let time = time.saturating_mul(1000);
        self.add_time(time, time, now);
        let agent = (names::AGENT_NAME, call.agent.as_str());
        let model = (names::MODEL, call.model.as_str());
        let provider = priced.provider.as_deref().unwrap_or_default();
        for (kind, count) in [("input", call.tokens.input), ("output", call.tokens.output)] {
            let labels = [
                agent,
                model,
                (names::PROVIDER, provider),
                (names::TOKEN_TYPE, kind),
            ];
            #[expect(clippy::cast_precision_loss, reason = "tokens of one call")]
            let count = count as f64;
            self.add(names::METRIC_TOKENS, &labels, count);
        }
        if let Some(usd) = priced.cost_usd {
            self.add(names::METRIC_COST, &[agent, model], usd);
        }
    }

    fn add_time(&mut self, start: u64, end: u64, now: u64) {
        if self.start == 0 {
            self.start = start.min(now);
        }
        self.end = self.end.max(end.min(now));
    }

    pub(crate) fn add(&mut self, metric: &'static str, labels: Labels<'_>, value: f64) {
        let mut key = metric.to_owned();
        for (name, value) in labels {
            key.push('\n');
            key.push_str(name);
            key.push('\n');
            key.push_str(value);
        }
        let is_new = !self.series.contains_key(&key);
        let labels: Labels<'_> = if is_new && self.series.len() >= MAX_SERIES {
            key = format!("{metric}\noverflow");
            &[(names::OVERFLOW, "true")]
        } else {
            labels
        };
        let series = self.series.entry(key).or_insert_with(|| Series {
            metric: metric.to_owned(),
            attributes: labels
                .iter()
                .filter(|(_, value)| !value.is_empty())
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            count: 0,
            sum: 0.0,
            buckets: vec![0; bounds(metric).map_or(0, |bounds| bounds.len() + 1)],
        });
        series.count += 1;
        series.sum += value;
        let bucket = bounds(metric).map(|bounds| bounds.partition_point(|bound| value > *bound));
        if let Some(count) = bucket.and_then(|bucket| series.buckets.get_mut(bucket)) {
            *count += 1;
        }
    }

    /// The points for one request. With delta temporality counting starts over.
    pub(crate) fn collect(&mut self, temporality: Temporality) -> Vec<Metric> {
        let mut metrics: Vec<Metric> = Vec::new();
        let code = match temporality {
            Temporality::Cumulative => AggregationTemporality::Cumulative,
            Temporality::Delta => AggregationTemporality::Delta,
        };
        for row in names::METRICS {
            let series = self.series.values().filter(|it| it.metric == row.name);
            let data = if bounds(row.name).is_some() {
                let points = series.map(|series| self.histogram_point(series));
                Data::Histogram(Histogram {
                    data_points: points.collect(),
                    aggregation_temporality: code.into(),
                })
            } else {
                let points = series.map(|series| self.number_point(series));
                Data::Sum(Sum {
                    data_points: points.collect(),
                    aggregation_temporality: code.into(),
                    is_monotonic: true,
                })
            };
            metrics.push(Metric {
                name: row.name.to_owned(),
                description: row.meaning.to_owned(),
                unit: row.unit.to_owned(),
                data: Some(data),
                ..Metric::default()
            });
        }
        metrics.retain(|metric| match &metric.data {
            Some(Data::Sum(sum)) => !sum.data_points.is_empty(),
            Some(Data::Histogram(histogram)) => !histogram.data_points.is_empty(),
            _ => false,
        });
        if temporality == Temporality::Delta {
            self.start = self.end;
            self.series.clear();
        }
        metrics
    }

    fn number_point(&self, series: &Series) -> NumberDataPoint {
        #[expect(clippy::cast_possible_wrap, reason = "no one counts that far")]
        let value = if series.metric == names::METRIC_COST {
            NumberValue::AsDouble(series.sum)
        } else {
            NumberValue::AsInt(series.count as i64)
        };
        NumberDataPoint {
            attributes: series.key_values(),
            start_time_unix_nano: self.start,
            time_unix_nano: self.end,
            value: Some(value),
            ..NumberDataPoint::default()
        }
    }

    fn histogram_point(&self, series: &Series) -> HistogramDataPoint {
        HistogramDataPoint {
            attributes: series.key_values(),
            start_time_unix_nano: self.start,
            time_unix_nano: self.end,
            count: series.count,
            sum: Some(series.sum),
            bucket_counts: series.buckets.clone(),
            explicit_bounds: bounds(&series.metric).unwrap_or_default().to_vec(),
            ..HistogramDataPoint::default()
        }
    }
}

impl Series {
    fn key_values(&self) -> Vec<opentelemetry_proto::tonic::common::v1::KeyValue> {
        let text = |value: &String| AttributeValue::Text(value.clone());
        self.attributes
            .iter()
            .map(|(name, value)| key_value(name.clone(), text(value)))
            .collect()
    }
}

fn bounds(metric: &str) -> Option<&'static [f64]> {
    match metric {
        names::METRIC_HOOK_DURATION => Some(&DURATION_BOUNDS),
        names::METRIC_TOKENS => Some(&TOKEN_BOUNDS),
        _ => None,
    }
}
