//! Every name that the OpenTelemetry export uses, in one table.
//!
//! The GenAI conventions of OpenTelemetry are in development and change; the names of
//! OpenInference make spans readable in Phoenix. docs/opentelemetry.md is generated from
//! these tables.

/// The version of the conventions that the names below follow.
pub const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.38.0";
pub(crate) const SCOPE_NAME: &str = "anyhook";

/// One attribute, for the documentation.
#[derive(Debug, Clone, Copy)]
pub struct AttributeRow {
    pub name: &'static str,
    /// Where it is used: resource, turn, agent, tool, hook, chat, event, log.
    pub used_on: &'static str,
    /// The content level from which on it is sent.
    pub level: &'static str,
    pub meaning: &'static str,
}

macro_rules! attributes {
    ($($constant:ident = $name:literal, $used_on:literal, $level:literal, $meaning:literal;)+) => {
        $(pub(crate) const $constant: &str = $name;)+

        pub const ATTRIBUTES: &[AttributeRow] = &[
            $(AttributeRow { name: $name, used_on: $used_on, level: $level, meaning: $meaning },)+
        ];
    };
}

attributes! {
    SERVICE_NAME = "service.name", "resource", "metadata", "`anyhook`, unless the settings name another";
    SERVICE_VERSION = "service.version", "resource", "metadata", "the version of anyhook";
    HOST_NAME = "host.name", "resource", "metadata", "the machine that exports";
    OPERATION = "gen_ai.operation.name", "turn, agent, tool, chat", "metadata", "`invoke_agent`, `execute_tool` or `chat`";
    CONVERSATION = "gen_ai.conversation.id", "all spans, log", "metadata", "the agent's session id";
    SESSION = "session.id", "all spans, log", "metadata", "the same, under the name by which Phoenix, MLflow and Langfuse group";
    AGENT_NAME = "gen_ai.agent.name", "all spans, log, metrics", "metadata", "the agent: `claude-code`, `codex`, …; for a sub-agent its type";
    AGENT_ID = "gen_ai.agent.id", "agent, tool, log", "metadata", "the sub-agent's id";
    MODEL = "gen_ai.request.model", "turn, chat", "metadata", "the model, where the agent names it";
    TOOL_NAME = "gen_ai.tool.name", "tool, log", "metadata", "the tool, by the agent's own name";
    TOOL_TYPE = "gen_ai.tool.type", "tool", "metadata", "`function`, or `extension` for a tool of an MCP server";
    TOOL_CALL_ID = "gen_ai.tool.call.id", "tool, log", "metadata", "the call's id, where the agent has one";
    TOOL_ARGUMENTS = "gen_ai.tool.call.arguments", "tool, log", "tools", "the tool's input as JSON, with canonical keys";
    TOOL_RESULT = "gen_ai.tool.call.result", "tool, log", "tools", "the tool's output";
    ERROR_TYPE = "error.type", "turn, tool, hook", "metadata", "`denied`, `tool_error`, `agent_error`, `hook_error` or `hook_timeout`";
    USER_ID = "user.id", "turn, log", "metadata", "the user, where the event names one";
    WORKING_DIRECTORY = "process.working_directory", "turn", "metadata", "the folder in which the agent works";
    LOG_UID = "log.record.uid", "log", "metadata", "the id of the event in the journal: a record that is sent twice has the same";
    SPAN_KIND = "openinference.span.kind", "all spans", "metadata", "`AGENT`, `TOOL`, `GUARDRAIL`, `LLM` or `CHAIN`";
    OI_TOOL_NAME = "tool.name", "tool", "metadata", "the tool, by the agent's own name";
    OI_INPUT = "input.value", "turn, agent, tool", "tools (prompts: full)", "the tool's input, the user's prompt";
    OI_OUTPUT = "output.value", "turn, agent, tool", "tools (messages: full)", "the tool's output, the agent's last message";
    EVENT_NAME = "anyhook.event", "event, log, metrics", "metadata", "the canonical name of the event";
    NATIVE_EVENT = "anyhook.native_event", "event, log", "metadata", "the agent's name of the event";
    EVENT_ID = "anyhook.event.id", "turn, agent, tool, hook, event", "metadata", "the id of the journal's record with which it began: `anyhook log <ID>` shows it";
    EVENT_KIND = "anyhook.kind", "log", "metadata", "`event`, `async_end`, `failure` or `allowed_once`";
    CANONICAL_TOOL = "anyhook.tool", "tool, log, metrics", "metadata", "the tool, by anyhook's name: `shell`, `file_write`, …";
    MCP_SERVER = "anyhook.mcp.server", "tool", "metadata", "the MCP server of the tool";
    DECISION = "anyhook.decision", "turn, tool, event, log, metrics", "metadata", "`allow`, `ask` or `deny`, where hooks decided";
    DECISION_REASON = "anyhook.decision.reason", "turn, tool, event, log", "metadata", "the reason that the hook gave";
    REWRITTEN = "anyhook.rewritten", "tool, log", "metadata", "a hook changed the tool's input";
    LOST = "anyhook.lost", "tool, log", "metadata", "parts of the answer that the agent cannot express";
    TOOL_END = "anyhook.tool.end", "tool", "metadata", "`unknown`: the end of the call was not seen, and the span ends with its start event";
    TOOL_START = "anyhook.tool.start", "tool", "metadata", "`unknown`: the start of the call was not seen";
    INCOMPLETE = "anyhook.incomplete", "turn, agent", "metadata", "the end was not seen";
    END_REASON = "anyhook.end_reason", "turn", "metadata", "`stop`, `prompt_denied`, `next_prompt`, `session_end`, `idle` or `limit`";
    IMPLICIT_START = "anyhook.implicit_start", "turn, agent", "metadata", "the start was not seen; the span begins with the first event";
    TURN_TOOL_CALLS = "anyhook.turn.tool_calls", "turn", "metadata", "tool calls in this turn";
    TURN_DENIED = "anyhook.turn.denied", "turn", "metadata", "denied calls in this turn";
    TURN_ASKED = "anyhook.turn.asked", "turn", "metadata", "calls about which hooks asked the user";
    HOOK_NAME = "anyhook.hook.name", "hook, metrics", "metadata", "the hook's name, or `#3` by position";
    HOOK_MANIFEST = "anyhook.hook.manifest", "hook", "metadata", "the file that defines the hook";
    HOOK_OUTCOME = "anyhook.hook.outcome", "hook, metrics", "metadata", "`allow`, `deny`, `ask`, `warn`, `error`, `timeout`, `started` or `refused`";
    HOOK_EXIT = "anyhook.hook.exit_code", "hook", "metadata", "the exit code of the hook's program";
    HOOK_MESSAGE = "anyhook.hook.message", "hook", "metadata", "the reason of a decision, the text of a warning";
    WITHOUT_EFFECT = "anyhook.hook.without_effect", "hook", "metadata", "`observed` or `allowed_once`: why the outcome had no effect";
    LINK = "anyhook.link", "turn", "metadata", "on a link: `previous_turn`";
    WARNINGS = "anyhook.warnings", "log", "metadata", "problems of anyhook itself";
    PROVIDER = "gen_ai.provider.name", "turn, chat", "metadata", "who serves the model, by its name: `anthropic`, `openai`, `gcp.gemini`, …";
    RESPONSE_MODEL = "gen_ai.response.model", "chat", "metadata", "the model that answered";
    INPUT_TOKENS = "gen_ai.usage.input_tokens", "chat", "metadata", "input tokens, cached ones included";
    OUTPUT_TOKENS = "gen_ai.usage.output_tokens", "chat", "metadata", "output tokens, reasoning included";
    CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens", "chat", "metadata", "input tokens that were read from the provider's cache";
    CACHE_CREATION_TOKENS = "gen_ai.usage.cache_creation.input_tokens", "chat", "metadata", "input tokens that were written to the provider's cache";
    TOKEN_TYPE = "gen_ai.token.type", "metrics", "metadata", "`input` or `output`";
    OI_MODEL = "llm.model_name", "chat", "metadata", "the model";
    OI_PROMPT_TOKENS = "llm.token_count.prompt", "chat", "metadata", "input tokens";
    OI_COMPLETION_TOKENS = "llm.token_count.completion", "chat", "metadata", "output tokens";
    OI_TOTAL_TOKENS = "llm.token_count.total", "chat", "metadata", "their sum";
    OI_CACHE_READ_TOKENS = "llm.token_count.prompt_details.cache_read", "chat", "metadata", "input tokens from the cache";
    OI_CACHE_WRITE_TOKENS = "llm.token_count.prompt_details.cache_write", "chat", "metadata", "input tokens to the cache";
    COST = "anyhook.cost.usd", "chat", "metadata", "the price in US dollars, by the price table";
    TURN_INPUT_TOKENS = "anyhook.turn.input_tokens", "turn", "metadata", "input tokens of all calls of the model that were known when the turn ended";
    TURN_OUTPUT_TOKENS = "anyhook.turn.output_tokens", "turn", "metadata", "their output tokens";
    TURN_CACHE_READ_TOKENS = "anyhook.turn.cache_read_tokens", "turn", "metadata", "their input tokens that were read from the cache";
    TURN_CACHE_CREATION_TOKENS = "anyhook.turn.cache_creation_tokens", "turn", "metadata", "their input tokens that were written to the cache";
    TURN_COST = "anyhook.turn.cost_usd", "turn", "metadata", "their price in US dollars; without those of models that have no price";
    TURN_UNPRICED_CALLS = "anyhook.turn.unpriced_calls", "turn", "metadata", "calls of models that have no price, which are not in the cost";
    OVERFLOW = "otel.metric.overflow", "metrics", "metadata", "the sum of all series beyond the limit";
}

/// One kind of span, for the documentation.
#[derive(Debug, Clone, Copy)]
pub struct SpanRow {
    pub name: &'static str,
    pub label: &'static str,
    pub parent: &'static str,
    pub meaning: &'static str,
}

pub const SPANS: &[SpanRow] = &[
    SpanRow {
        name: "invoke_agent {agent}",
        label: "turn",
        parent: "none; a link names the previous turn",
        meaning: "one turn, from the user's prompt to the agent's stop: one trace",
    },
    SpanRow {
        name: "invoke_agent {type}",
        label: "agent",
        parent: "the tool call that started it, else the turn",
        meaning: "a sub-agent",
    },
    SpanRow {
        name: "execute_tool {tool}",
        label: "tool",
        parent: "the turn or the sub-agent",
        meaning: "a tool call, from the event before it to the event after it",
    },
    SpanRow {
        name: "hook {hook}",
        label: "hook",
        parent: "the tool call, turn, sub-agent or event for which it ran",
        meaning: "one run of one hook",
    },
    SpanRow {
        name: "chat {model}",
        label: "chat",
        parent: "the turn; none for a call outside of turns",
        meaning: "one call of the model, with its tokens, where the agent reports them",
    },
    SpanRow {
        name: "{event}",
        label: "event",
        parent: "none",
        meaning: "an event outside of a turn for which hooks ran, such as the start of a session",
    },
];

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct MetricRow {
    pub name: &'static str,
    pub unit: &'static str,
    pub kind: &'static str,
    pub attributes: &'static str,
    pub meaning: &'static str,
}

pub(crate) const METRIC_EVENTS: &str = "anyhook.events";
pub(crate) const METRIC_DECISIONS: &str = "anyhook.decisions";
pub(crate) const METRIC_HOOK_DURATION: &str = "anyhook.hook.duration";
pub(crate) const METRIC_TOKENS: &str = "gen_ai.client.token.usage";
pub(crate) const METRIC_COST: &str = "anyhook.cost";

pub const METRICS: &[MetricRow] = &[
    MetricRow {
        name: METRIC_EVENTS,
        unit: "{event}",
        kind: "sum",
        attributes: "`gen_ai.agent.name`, `anyhook.event`",
        meaning: "events that agents sent",
    },
    MetricRow {
        name: METRIC_DECISIONS,
        unit: "{decision}",
        kind: "sum",
        attributes: "`gen_ai.agent.name`, `anyhook.event`, `anyhook.tool`, `anyhook.decision`",
        meaning: "decisions of hooks",
    },
    MetricRow {
        name: METRIC_HOOK_DURATION,
        unit: "s",
        kind: "histogram",
        attributes: "`gen_ai.agent.name`, `anyhook.hook.name`, `anyhook.hook.outcome`",
        meaning: "how long hooks ran",
    },
    MetricRow {
        name: METRIC_TOKENS,
        unit: "{token}",
        kind: "histogram",
        attributes: "`gen_ai.agent.name`, `gen_ai.provider.name`, `gen_ai.request.model`, `gen_ai.token.type`",
        meaning: "tokens of each call of a model",
    },
    MetricRow {
        name: METRIC_COST,
        unit: "{USD}",
        kind: "sum",
        attributes: "`gen_ai.agent.name`, `gen_ai.request.model`",
        meaning: "the price of the tokens, by the price table",
    },
];
