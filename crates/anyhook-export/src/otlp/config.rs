//! Where and what to export: the section `otlp` of the user's settings.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::metrics::Temporality;
use crate::content::ContentLevel;

pub(crate) const DEFAULT_ENDPOINT: &str = "http://localhost:4318";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const DEFAULT_TURN_IDLE: Duration = Duration::from_secs(30 * 60);

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OtlpConfig {
    /// Without a path; `/v1/traces` and the like are added.
    pub endpoint: Option<String>,
    pub headers: BTreeMap<String, HeaderValue>,
    pub content: ContentLevel,
    /// Attributes of the resource, such as `service.name`.
    pub resource: BTreeMap<String, String>,
    pub signals: Option<Vec<Signal>>,
    pub protocol: Protocol,
    pub compression: Compression,
    pub temporality: Temporality,
    /// For one request.
    pub timeout_seconds: Option<u32>,
    /// Minutes without an event after which a turn has ended.
    pub turn_idle_minutes: Option<u32>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum HeaderValue {
    Text(String),
    /// A secret does not belong into the settings.
    FromVariable {
        env: String,
    },
    FromFile {
        file: PathBuf,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Signal {
    Traces,
    Logs,
    Metrics,
}

impl Signal {
    pub const ALL: [Self; 3] = [Self::Traces, Self::Logs, Self::Metrics];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Logs => "logs",
            Self::Metrics => "metrics",
        }
    }
}

impl FromStr for Signal {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|signal| signal.as_str() == word);
        found.ok_or_else(|| "expected `traces`, `logs` or `metrics`".to_owned())
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    #[default]
    Protobuf,
    Json,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    #[default]
    Gzip,
    None,
}

impl OtlpConfig {
    pub fn endpoint(&self) -> &str {
        self.endpoint.as_deref().unwrap_or(DEFAULT_ENDPOINT)
    }

    /// The endpoint for messages: without a user and a password.
    pub fn shown_endpoint(&self) -> String {
        let endpoint = self.endpoint();
        let Some((scheme, rest)) = endpoint.split_once("://") else {
            return endpoint.to_owned();
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        let place = user.and_then(|user| rest.strip_prefix(user)?.strip_prefix('@'));
        format!("{scheme}://{}", place.unwrap_or(rest))
    }

    pub fn signals(&self) -> Vec<Signal> {
        self.signals.clone().unwrap_or_else(|| Signal::ALL.to_vec())
    }

    pub(crate) fn timeout(&self) -> Duration {
        let seconds = self.timeout_seconds.map(u64::from);
        seconds.map_or(DEFAULT_TIMEOUT, |seconds| {
            Duration::from_secs(seconds.max(1))
        })
    }

    pub(crate) fn turn_idle(&self) -> Duration {
        let minutes = self.turn_idle_minutes.map(u64::from);
        minutes.map_or(DEFAULT_TURN_IDLE, |minutes| {
            Duration::from_secs(minutes * 60)
        })
    }
}

/// The address to which a signal is sent. An endpoint with the path of one signal is
/// understood as well.
pub(crate) fn signal_url(endpoint: &str, signal: Signal) -> String {
    let mut base = endpoint.trim_end_matches('/');
    for signal in Signal::ALL {
        base = base
            .strip_suffix(&format!("/v1/{}", signal.as_str()))
            .unwrap_or(base);
    }
    format!("{base}/v1/{}", signal.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_the_endpoint_is_not_shown() {
        for (endpoint, shown) in [
            ("http://a:1/b", "http://a:1/b"),
            ("https://user:secret@a:1/b@c", "https://a:1/b@c"),
            ("https://user:se@cret@a", "https://a"),
            ("no address", "no address"),
        ] {
            let config = OtlpConfig {
                endpoint: Some(endpoint.to_owned()),
                ..OtlpConfig::default()
            };
            assert_eq!(config.shown_endpoint(), shown);
        }
    }

    #[test]
    fn an_endpoint_may_have_the_path_of_a_signal() {
        for endpoint in ["http://a:1", "http://a:1/", "http://a:1/v1/traces"] {
            assert_eq!(signal_url(endpoint, Signal::Logs), "http://a:1/v1/logs");
        }
        let langfuse = "https://cloud.langfuse.com/api/public/otel";
        assert_eq!(
            signal_url(langfuse, Signal::Traces),
            "https://cloud.langfuse.com/api/public/otel/v1/traces"
        );
    }
}
