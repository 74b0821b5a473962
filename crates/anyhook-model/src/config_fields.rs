//! Every field of `config.yaml`, once: the schema and docs/configuration.md are made
//! from this table, and a test compares it with what the programs parse.

use crate::message_fields::MessageKind;

use MessageKind::{Flag, Integer, Number, Object, Text, Texts, Words};

#[derive(Debug, Clone, Copy)]
pub struct ConfigField {
    /// With the section, such as `approvals.hold`.
    pub path: &'static str,
    pub kind: MessageKind,
    /// What an absent field means, in Markdown; may be empty.
    pub default: &'static str,
    pub about: &'static str,
}

impl ConfigField {
    /// The section, if the field is in one, and its name.
    pub fn section_and_name(&self) -> (Option<&'static str>, &'static str) {
        match self.path.split_once('.') {
            Some((section, name)) => (Some(section), name),
            None => (None, self.path),
        }
    }
}

/// The sections, with what they are about.
pub(crate) const CONFIG_SECTIONS: &[(&str, &str)] = &[
    (
        "evaluator",
        "What evaluates hooks of the types `prompt` and `agent`: a program or an API.",
    ),
    ("http", "Calls over HTTP."),
    ("openhook", "OpenHook envelopes."),
    (
        "approvals",
        "Questions of hooks that the agent cannot ask its user.",
    ),
    (
        "otlp",
        "Where `anyhook export otlp` and `anyhook serve` send traces, logs and metrics.",
    ),
];

const fn field(
    path: &'static str,
    kind: MessageKind,
    default: &'static str,
    about: &'static str,
) -> ConfigField {
    ConfigField {
        path,
        kind,
        default,
        about,
    }
}

pub const CONFIG: &[ConfigField] = &[
    field(
        "evaluator.command",
        Text,
        "",
        "Program that evaluates hooks of the types `prompt` and `agent`: prompt on standard input, answer on standard output, as `{\"ok\": true, \"reason\": \"…\"}` or a canonical response. Takes precedence over `api`.",
    ),
    field(
        "evaluator.api",
        Words(&["openai", "anthropic"]),
        "",
        "Which API evaluates them, if there is no `command`.",
    ),
    field(
        "evaluator.base_url",
        Text,
        "the vendor's address",
        "Any compatible endpoint.",
    ),
    field(
        "evaluator.key_env",
        Text,
        "`OPENAI_API_KEY`, `ANTHROPIC_API_KEY`",
        "Name of the variable that holds the key. Without `base_url` the key is required.",
    ),
    field(
        "evaluator.model",
        Text,
        "",
        "Model, for hooks that name none.",
    ),
    field(
        "http.allow_plain",
        Texts,
        "`[]`",
        "Hosts that may be called without TLS. This machine always may. It does not count for managed hooks.",
    ),
    field(
        "openhook.folder",
        Words(&["cwd", "context", "both"]),
        "`both`",
        "Which fields of an OpenHook envelope name the folder: `cwd` of the older text of the protocol, `context` (a URI) of the newer one.",
    ),
    field(
        "approvals.hold",
        Number,
        "`0`",
        "Seconds that a call waits for your answer on the page or by `anyhook approve`, where the agent cannot ask you itself; at most 45, because agents stop hooks after 60. See [daemon.md](daemon.md).",
    ),
    field(
        "otlp.endpoint",
        Text,
        "`http://localhost:4318`",
        "Address of the receiver; `/v1/traces` and the like are added. `anyhook serve` sends only if it is set. See [opentelemetry.md](opentelemetry.md).",
    ),
    field(
        "otlp.headers",
        Object,
        "`{}`",
        "Name to text, `{env: NAME}` or `{file: PATH}`: headers of each request.",
    ),
    field(
        "otlp.content",
        Words(&["metadata", "tools", "full"]),
        "`metadata`",
        "How much of the events is sent: names, times and decisions; also inputs and outputs of tools; also prompts.",
    ),
    field(
        "otlp.resource",
        Object,
        "`{}`",
        "Attributes of the resource, such as `service.name`.",
    ),
    field(
        "otlp.signals",
        Texts,
        "all",
        "Of `traces`, `logs`, `metrics`.",
    ),
    field(
        "otlp.protocol",
        Words(&["protobuf", "json"]),
        "`protobuf`",
        "Encoding of the requests.",
    ),
    field(
        "otlp.compression",
        Words(&["gzip", "none"]),
        "`gzip`",
        "Compression of the requests.",
    ),
    field(
        "otlp.temporality",
        Words(&["cumulative", "delta"]),
        "`cumulative`",
        "Whether metrics count from the first export or from the last batch.",
    ),
    field(
        "otlp.timeout_seconds",
        Integer,
        "`30`",
        "Time limit of one request.",
    ),
    field(
        "otlp.turn_idle_minutes",
        Integer,
        "`30`",
        "A turn without an event for this long has ended.",
    ),
    field(
        "allow_agent_changes",
        Flag,
        "`false`",
        "A coding agent may run `trust`, `install` and other commands that switch hooks on or off, without a terminal.",
    ),
];
