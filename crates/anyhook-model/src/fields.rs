//! Every field of a manifest and of a policy, once: the checks, the "did you
//! mean" hints, the JSON Schemas and the reference all use these tables.

use serde_json::Value;

use crate::hook::{HandlerKind, HookMode, OnFailure, SPECS, Strategy, TimeoutAction};
use crate::policy::Restriction;
use crate::word_enum::word_enum;

#[derive(Debug, Clone, Copy)]
pub struct Field {
    pub name: &'static str,
    pub shape: FieldShape,
    pub required: bool,
    /// The value that an absent field means, if there is one.
    pub default: Option<&'static str>,
    pub about: &'static str,
}

impl Field {
    const fn or(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldShape {
    Text,
    Flag,
    /// Not negative.
    Seconds,
    OneOf(&'static [&'static str]),
    Texts,
    /// Name to text.
    TextMap,
    /// Name to one of these words.
    WordMap(&'static [&'static str]),
    /// Name to object.
    ObjectMap,
    /// With any members.
    Object,
    /// An object whose members `anyhook-guard` defines.
    Condition,
    /// At least one.
    Hooks,
    Matcher,
    Handler,
    Platform,
    Mcp,
}

word_enum! {
    /// A dialect that belongs to no agent: the only list of them.
    NeutralDialect {
        Canonical = "canonical",
        Contract = "contract",
        OpenHook = "openhook",
    }
}

const fn required(name: &'static str, shape: FieldShape, about: &'static str) -> Field {
    Field {
        required: true,
        ..optional(name, shape, about)
    }
}

const fn optional(name: &'static str, shape: FieldShape, about: &'static str) -> Field {
    Field {
        name,
        shape,
        required: false,
        default: match shape {
            FieldShape::Flag => Some("false"),
            _ => None,
        },
        about,
    }
}

pub const MANIFEST: &[Field] = &[
    required(
        "spec",
        FieldShape::OneOf(&SPECS),
        "Version of the interchange format.",
    ),
    required(
        "hooks",
        FieldShape::Hooks,
        "The hooks. Those of one event run side by side, those that may rewrite the input first; their answers are merged in this order.",
    ),
    optional(
        "sequential",
        FieldShape::Flag,
        "Whether the hooks of one event run one after another, in this order. Those of a manifest of `hooks/0.1` always do.",
    ),
];

pub const HOOK: &[Field] = &[
    optional("name", FieldShape::Text, "Name of the hook in messages."),
    required(
        "event",
        FieldShape::Text,
        "Canonical event name; `anyhook events` lists them.",
    ),
    optional(
        "matcher",
        FieldShape::Matcher,
        "The tool calls that trigger the hook; all by default.",
    ),
    required("handler", FieldShape::Handler, "What runs."),
    optional(
        "blocking",
        FieldShape::Flag,
        "Whether the hook may block the action that triggers it.",
    ),
    optional(
        "on_failure",
        FieldShape::OneOf(&OnFailure::WORDS),
        "What happens when a blocking hook fails: it crashes, cannot start, times out, or gives no answer that can be read.",
    )
    .or("allow"),
    optional(
        "if",
        FieldShape::Condition,
        "The calls that the hook runs for, by what they do: the conditions of a guard rule, see [guards.md](guards.md). All calls that fit the matcher by default.",
    ),
    optional(
        "mode",
        FieldShape::OneOf(&HookMode::WORDS),
        "`observe` records what the hook would have done, and does not do it.",
    )
    .or("enforce"),
    optional(
        "degradation",
        FieldShape::WordMap(&Strategy::WORDS),
        "What a conversion does about each capability that an agent lacks.",
    ),
    optional(
        "capabilities",
        FieldShape::Texts,
        "Capabilities that the hook uses, as documentation.",
    ),
    optional(
        "provider_data",
        FieldShape::ObjectMap,
        "Data for one agent only, by agent slug.",
    ),
];

pub const HANDLER: &[Field] = &[
    required("type", FieldShape::OneOf(&HandlerKind::WORDS), "How the hook runs."),
    optional("command", FieldShape::Text, "Shell command, for type `command`; with `args`, the program."),
    optional(
        "args",
        FieldShape::Texts,
        "Arguments of the program in `command`, which then starts without a shell. `${NAME}` is replaced if anyhook sets that variable.",
    ),
    optional(
        "platform",
        FieldShape::Platform,
        "Commands for one operating system, instead of `command`.",
    ),
    optional(
        "cwd",
        FieldShape::Text,
        "Working directory, relative to the project root.",
    ),
    optional("env", FieldShape::TextMap, "Environment variables for the hook."),
    optional(
        "timeout",
        FieldShape::Seconds,
        "Time limit in seconds; 0 means the default.",
    )
    .or("30"),
    optional(
        "timeout_action",
        FieldShape::OneOf(&TimeoutAction::WORDS),
        "Effect of a timeout on a blocking hook; by default that of `on_failure`.",
    ),
    optional("async", FieldShape::Flag, "Run the hook in the background, without waiting for it."),
    optional(
        "status_message",
        FieldShape::Text,
        "Message for the user while the hook runs.",
    ),
    optional(
        "url",
        FieldShape::Text,
        "URL that the event is posted to, for type `http`.",
    ),
    optional(
        "headers",
        FieldShape::TextMap,
        "HTTP headers; `$NAME` is replaced by the environment variable.",
    ),
    optional(
        "allowed_env_vars",
        FieldShape::Texts,
        "Environment variables that `headers` may use.",
    ),
    optional(
        "prompt",
        FieldShape::Text,
        "Prompt for the model, for types `prompt` and `agent`.",
    ),
    optional("model", FieldShape::Text, "Model that receives the prompt."),
    optional(
        "server",
        FieldShape::Text,
        "MCP server, for type `mcp_tool`, which only the agent itself can run.",
    ),
    optional("tool", FieldShape::Text, "Tool of that server."),
    optional(
        "input",
        FieldShape::Object,
        "Arguments of the tool, with the agent's own placeholders.",
    ),
    optional(
        "dialect",
        FieldShape::Text,
        "Format of the payload that the hook reads and of the answer that it writes: `canonical`, `contract`, `openhook`, or an agent's slug.",
    )
    .or("canonical"),
];

pub const PLATFORM: &[Field] = &[
    optional("windows", FieldShape::Text, "Command for Windows."),
    optional("linux", FieldShape::Text, "Command for Linux."),
    optional("osx", FieldShape::Text, "Command for macOS."),
];

/// Other accepted names of `osx`.
pub(crate) const OSX_ALIASES: [&str; 2] = ["darwin", "macos"];

pub const MATCHER: &[Field] = &[
    optional(
        "pattern",
        FieldShape::Text,
        "Regular expression for the agent's own tool name, in RE2 syntax, unanchored.",
    ),
    optional("mcp", FieldShape::Mcp, "Tools of an MCP server."),
];

pub const MCP: &[Field] = &[
    required("server", FieldShape::Text, "Name of the MCP server."),
    optional(
        "tool",
        FieldShape::Text,
        "Name of one tool; all tools of the server by default.",
    ),
];

pub const POLICY: &[Field] = &[
    optional("disable_all_hooks", FieldShape::Flag, "No hook runs."),
    optional(
        "allow_managed_only",
        FieldShape::Flag,
        "Only hooks of the managed manifest run.",
    ),
    optional(
        "event_restrictions",
        FieldShape::WordMap(&Restriction::WORDS),
        "Which hooks may run, by event.",
    ),
    optional(
        "capability_restrictions",
        FieldShape::WordMap(&Restriction::WORDS),
        "Which hooks may run, by capability that they need.",
    ),
    optional(
        "fail_closed",
        FieldShape::Flag,
        "Every failure of a blocking hook blocks, as with `on_failure: block`, and so does a failure of anyhook itself. Managed policy only.",
    ),
    optional(
        "allow_env_override",
        FieldShape::Flag,
        "ANYHOOK=0, ANYHOOK_TRUST and ANYHOOK_MANAGED_DIR have an effect although an administrator's folder exists. Managed policy only.",
    ),
    optional(
        "allow_agent_changes",
        FieldShape::Flag,
        "A coding agent may run `anyhook trust`, `install` and the like without a terminal. Managed policy only.",
    ),
    Field {
        default: None,
        ..optional(
            "allow_once",
            FieldShape::Flag,
            "Whether `anyhook allow-once` may let a denied call through: `false` for no call, `true` even for calls that managed hooks deny. Without it, for calls that other hooks deny. Managed policy only.",
        )
    },
];

impl FieldShape {
    /// Whether a JSON value has this shape and differs from an absent field.
    pub fn is_filled_by(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Text, value) => value.is_string(),
            (Self::Flag, value) => value == &Value::Bool(true),
            (Self::Seconds, value) => value.as_f64().is_some_and(|seconds| seconds >= 0.0),
            (Self::OneOf(words), value) => value.as_str().is_some_and(|it| words.contains(&it)),
            (Self::Texts, Value::Array(items)) => {
                !items.is_empty() && items.iter().all(Value::is_string)
            }
            (Self::Object, Value::Object(map)) => !map.is_empty(),
            (Self::TextMap, Value::Object(map)) => {
                !map.is_empty() && map.values().all(Value::is_string)
            }
            _ => false,
        }
    }
}

/// The row of a field in a table.
pub fn find(fields: &'static [Field], name: &str) -> Option<&'static Field> {
    fields.iter().find(|field| field.name == name)
}

pub fn names(fields: &[Field]) -> impl Iterator<Item = &'static str> + '_ {
    fields.iter().map(|field| field.name)
}
