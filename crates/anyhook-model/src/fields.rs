//! Every field of a manifest and of a policy, once: the checks, the "did you
//! mean" and the JSON Schemas all read these tables.

use crate::hook::SPECS;

#[derive(Debug, Clone, Copy)]
pub struct Field {
    pub name: &'static str,
    pub shape: Shape,
    pub required: bool,
    pub about: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
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
    /// At least one.
    Hooks,
    Matcher,
    Handler,
    Platform,
    Mcp,
}

pub const HANDLER_KINDS: [&str; 4] = ["command", "http", "prompt", "agent"];
pub const STRATEGIES: [&str; 3] = ["block", "warn", "exclude"];
pub const TIMEOUT_ACTIONS: [&str; 2] = ["warn", "block"];
pub const RESTRICTIONS: [&str; 3] = ["allow", "deny", "managed_only"];

/// Dialects that are no agent's.
pub const NEUTRAL_DIALECTS: [&str; 3] = ["canonical", "contract", "openhook"];

const fn required(name: &'static str, shape: Shape, about: &'static str) -> Field {
    Field {
        name,
        shape,
        required: true,
        about,
    }
}

const fn optional(name: &'static str, shape: Shape, about: &'static str) -> Field {
    Field {
        name,
        shape,
        required: false,
        about,
    }
}

pub const MANIFEST: &[Field] = &[
    required(
        "spec",
        Shape::OneOf(&SPECS),
        "Version of the interchange format.",
    ),
    required(
        "hooks",
        Shape::Hooks,
        "The hooks, in the order in which they run.",
    ),
];

pub const HOOK: &[Field] = &[
    optional("name", Shape::Text, "What the hook is called in messages."),
    required(
        "event",
        Shape::Text,
        "Canonical event name; `anyhook events` lists them.",
    ),
    optional(
        "matcher",
        Shape::Matcher,
        "Which tool calls the hook is for; absent: all.",
    ),
    required("handler", Shape::Handler, "What runs."),
    optional(
        "blocking",
        Shape::Flag,
        "Whether the hook may prevent what triggers it.",
    ),
    optional(
        "degradation",
        Shape::WordMap(&STRATEGIES),
        "What to do about each capability that an agent lacks.",
    ),
    optional(
        "capabilities",
        Shape::Texts,
        "Capabilities that the hook uses, for people.",
    ),
    optional(
        "provider_data",
        Shape::ObjectMap,
        "What only one agent understands, by that agent's slug.",
    ),
];

pub const HANDLER: &[Field] = &[
    required("type", Shape::OneOf(&HANDLER_KINDS), "How the hook runs."),
    optional("command", Shape::Text, "Shell command, for type `command`."),
    optional(
        "platform",
        Shape::Platform,
        "Commands for one operating system, in place of `command`.",
    ),
    optional(
        "cwd",
        Shape::Text,
        "Working directory, relative to the project root.",
    ),
    optional("env", Shape::TextMap, "Environment variables for the hook."),
    optional(
        "timeout",
        Shape::Seconds,
        "Seconds that the hook may take; absent and 0 mean 30.",
    ),
    optional(
        "timeout_action",
        Shape::OneOf(&TIMEOUT_ACTIONS),
        "What a timeout of a blocking hook means.",
    ),
    optional("async", Shape::Flag, "Nobody waits for the hook."),
    optional(
        "status_message",
        Shape::Text,
        "What the user sees while the hook runs.",
    ),
    optional(
        "url",
        Shape::Text,
        "Where the event is posted, for type `http`.",
    ),
    optional(
        "headers",
        Shape::TextMap,
        "HTTP headers; `$NAME` is replaced.",
    ),
    optional(
        "allowed_env_vars",
        Shape::Texts,
        "Environment variables that `headers` may refer to.",
    ),
    optional(
        "prompt",
        Shape::Text,
        "What the model is asked, for types `prompt` and `agent`.",
    ),
    optional("model", Shape::Text, "Which model is asked."),
    optional(
        "dialect",
        Shape::Text,
        "Whose payload the program reads and whose answer it writes: `canonical` (default), `contract`, `openhook`, or an agent's slug.",
    ),
];

pub const PLATFORM: &[Field] = &[
    optional("windows", Shape::Text, "Command for Windows."),
    optional("linux", Shape::Text, "Command for Linux."),
    optional("osx", Shape::Text, "Command for macOS."),
];

/// Other names of `osx` that are read.
pub const OSX_ALIASES: [&str; 2] = ["darwin", "macos"];

pub const MATCHER: &[Field] = &[
    optional(
        "pattern",
        Shape::Text,
        "Regular expression over the agent's own tool name, RE2 syntax, unanchored.",
    ),
    optional("mcp", Shape::Mcp, "Tools of an MCP server."),
];

pub const MCP: &[Field] = &[
    required("server", Shape::Text, "Name of the MCP server."),
    optional(
        "tool",
        Shape::Text,
        "Name of one tool; absent: all of the server.",
    ),
];

pub const POLICY: &[Field] = &[
    optional("disable_all_hooks", Shape::Flag, "No hook runs."),
    optional(
        "allow_managed_only",
        Shape::Flag,
        "Only hooks of the managed manifest run.",
    ),
    optional(
        "event_restrictions",
        Shape::WordMap(&RESTRICTIONS),
        "By event name.",
    ),
    optional(
        "capability_restrictions",
        Shape::WordMap(&RESTRICTIONS),
        "By capability.",
    ),
    optional(
        "fail_closed",
        Shape::Flag,
        "A blocking hook that crashes or cannot start blocks. Managed policy only.",
    ),
    optional(
        "allow_env_override",
        Shape::Flag,
        "ANYHOOK=0, ANYHOOK_TRUST and ANYHOOK_MANAGED_DIR count although an administrator's folder is there. Managed policy only.",
    ),
];

pub fn names(fields: &[Field]) -> impl Iterator<Item = &'static str> + '_ {
    fields.iter().map(|field| field.name)
}
