//! Every field of an event, of a response and of a journal record, once: the schemas,
//! the SDKs and docs/writing-hooks.md are made from these tables.

use crate::response::Decision;

/// An object of the messages between anyhook and a hook.
#[derive(Debug, Clone, Copy)]
pub struct MessageType {
    /// In the schemas, such as `tool_input`.
    pub name: &'static str,
    pub about: &'static str,
    pub fields: &'static [MessageField],
}

#[derive(Debug, Clone, Copy)]
pub struct MessageField {
    pub name: &'static str,
    pub kind: MessageKind,
    pub required: bool,
    pub about: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    Text,
    Flag,
    Number,
    Integer,
    Texts,
    /// One of these words.
    Words(&'static [&'static str]),
    /// An object with any members.
    Object,
    Any,
    /// Another [`MessageType`], by name.
    Type(&'static str),
    /// A list of another [`MessageType`].
    List(&'static str),
}

use MessageKind::{Any, Flag, Integer, List, Number, Object, Text, Texts, Type, Words};

const fn must(name: &'static str, kind: MessageKind, about: &'static str) -> MessageField {
    MessageField {
        name,
        kind,
        required: true,
        about,
    }
}

const fn may(name: &'static str, kind: MessageKind, about: &'static str) -> MessageField {
    MessageField {
        name,
        kind,
        required: false,
        about,
    }
}

const EVENT: MessageType = MessageType {
    name: "event",
    about: "What happened in an agent: what a hook reads on stdin.",
    fields: &[
        must(
            "event",
            Text,
            "Canonical name of the event, or the agent's own name where there is no canonical one.",
        ),
        must("source", Text, "Slug of the agent."),
        may("native_event", Text, "The agent's own name of the event."),
        may("session_id", Text, "The agent's session."),
        may("timestamp", Text, "RFC 3339."),
        may("cwd", Text, "The agent's working directory."),
        may(
            "data",
            Type("event_data"),
            "The fields of this kind of event.",
        ),
        may(
            "machine_id",
            Text,
            "Identifies the machine in OpenHook envelopes.",
        ),
        may(
            "user_id",
            Text,
            "Identifies the user, where the agent reports one.",
        ),
        may(
            "project_id",
            Text,
            "Identifies the project, where the agent reports one.",
        ),
        may(
            "workflow_id",
            Text,
            "Identifies the workflow, where the agent reports one.",
        ),
        may(
            "metadata",
            Object,
            "What has no canonical place; the agent's own fields are under `native`.",
        ),
    ],
};

const EVENT_DATA: MessageType = MessageType {
    name: "event_data",
    about: "By event; other members are the agent's own.",
    fields: &[
        may(
            "tool_name",
            Text,
            "Canonical tool, such as `shell`; the agent's own name for a tool outside the vocabulary.",
        ),
        may(
            "native_tool_name",
            Text,
            "The agent's own name of the tool.",
        ),
        may("tool_call_id", Text, "The same before and after a call."),
        may(
            "tool_kinds",
            Texts,
            "All canonical tools that the called one covers, if several.",
        ),
        may("tool_input", Type("tool_input"), "The tool's arguments."),
        may("tool_output", Any, "What the tool returned."),
        may("status", Text, "`success` or `error`."),
        may("error", Any, "Why the tool or the agent failed."),
        may("duration_ms", Number, "How long the tool ran."),
        may("prompt", Text, "What the user wrote."),
        may(
            "transcript_path",
            Text,
            "The agent's record of the conversation.",
        ),
        may("reason", Text, "Why a session or turn ended."),
        may("model", Any, "The model of the session."),
        may(
            "mcp",
            Type("mcp"),
            "The server and tool that are called, for the tool of an MCP server.",
        ),
        may("last_message", Text, "The model's last message."),
        may(
            "stop_hook_active",
            Flag,
            "A stop hook has already made the agent continue.",
        ),
        may("agent_id", Text, "Which subagent."),
        may("agent_type", Text, "Which kind of subagent."),
        may(
            "trigger",
            Text,
            "What started a compaction: `manual` or `auto`.",
        ),
        may("message", Text, "The text of a notification."),
        may(
            "permission_mode",
            Text,
            "The agent's mode of asking for permission.",
        ),
        may(
            "start_source",
            Text,
            "How a session began: `startup`, `resume`, `clear` or `compact`.",
        ),
    ],
};

const TOOL_INPUT: MessageType = MessageType {
    name: "tool_input",
    about: "The arguments of a tool of the vocabulary, with canonical keys. Other tools have their own.",
    fields: &[
        may("command", Any, "`shell`: the command line."),
        may(
            "commands",
            Any,
            "`shell`: the command lines, if one call has several.",
        ),
        may("description", Any, "`shell`, `agent`: what it is for."),
        may("timeout_ms", Any, "`shell`: the time limit."),
        may("cwd", Any, "`shell`: the folder."),
        may(
            "path",
            Any,
            "The file or folder of `file_*`, `search` and `find`.",
        ),
        may("offset", Any, "`file_read`: the first line."),
        may("limit", Any, "`file_read`: the number of lines."),
        may("content", Any, "`file_write`: the whole file."),
        may(
            "edits",
            Any,
            "`file_edit`: a list of `{old, new, replace_all}`.",
        ),
        may(
            "files",
            Any,
            "`file_edit`: every file of a patch, each `{path, edits}`.",
        ),
        may("pattern", Any, "`search`, `find`: what is looked for."),
        may("glob", Any, "`search`: in which files."),
        may("query", Any, "`web_search`."),
        may("url", Any, "`web_fetch`."),
        may("prompt", Any, "`web_fetch`, `agent`: the task."),
        may("type", Any, "`agent`: the kind of subagent."),
    ],
};

const MCP: MessageType = MessageType {
    name: "mcp",
    about: "A tool of an MCP server.",
    fields: &[
        must("server", Text, "The server."),
        must("tool", Text, "Its tool."),
    ],
};

const RESPONSE: MessageType = MessageType {
    name: "response",
    about: "What a hook answers on stdout. An empty output means no objection.",
    fields: &[
        may(
            "decision",
            Words(&Decision::WORDS),
            "`deny` blocks, `ask` asks the user (and blocks where no user can be asked), `allow` means no objection.",
        ),
        may("reason", Text, "Why; the model sees it."),
        may("continue", Flag, "`false` ends the agent's turn."),
        may("context", Text, "Text for the model."),
        may("system_message", Text, "Text for the user."),
        may(
            "suppress_output",
            Flag,
            "The agent shows less of the hook's output.",
        ),
        may(
            "updated_input",
            Object,
            "The tool's new arguments, with canonical keys.",
        ),
        may(
            "trigger_action",
            Text,
            "An action of the agent, where it has some.",
        ),
        may(
            "metadata",
            Object,
            "For consumers of the record; agents do not get it.",
        ),
    ],
};

const RECORD: MessageType = MessageType {
    name: "record",
    about: "One line of the journal: an event, what the hooks did, and the answer. Secrets are redacted.",
    fields: &[
        must("v", Integer, "Version of the record."),
        must("id", Text, "UUID."),
        must("time", Text, "RFC 3339, time of the answer."),
        must(
            "kind",
            Text,
            "`event`: an agent called; `async_end`: a detached hook ended; `failure`: anyhook itself failed; `allowed_once`: the user allowed a denied call.",
        ),
        must("agent", Text, "Slug of the agent."),
        must("event", Type("event"), "What the agent sent."),
        may(
            "decision",
            Words(&Decision::WORDS),
            "What the hooks decided together.",
        ),
        may("response", Type("response"), "The merged response."),
        may("hooks", List("hook_run"), "Each hook that matched."),
        may(
            "answer",
            Object,
            "The answer as it was sent: `{stdout, stderr, exit}`.",
        ),
        may(
            "lost",
            List("loss"),
            "What could not be expressed for this agent.",
        ),
        may("warnings", Texts, "Problems of anyhook itself."),
        may("duration_ms", Number, "From the payload to the answer."),
    ],
};

const OUTCOMES: [&str; 9] = [
    "allow", "deny", "ask", "warn", "error", "timeout", "started", "refused", "skipped",
];

const HOOK_RUN: MessageType = MessageType {
    name: "hook_run",
    about: "One hook of one event.",
    fields: &[
        must("hook", Text, "Its name, or `#3` by position."),
        must("manifest", Text, "Path of its manifest."),
        may(
            "content",
            Text,
            "A hash of what the manifest says about it.",
        ),
        must("outcome", Words(&OUTCOMES), "Its outcome."),
        may("exit", Integer, "Its exit code."),
        may("duration_ms", Number, "How long it ran."),
        may(
            "message",
            Text,
            "Reason of a decision, text of a warning, rule of a refusal.",
        ),
        may(
            "stderr",
            Text,
            "What it wrote to stderr; only `anyhook test` keeps it.",
        ),
        may(
            "without_effect",
            Words(&["observed", "allowed_once"]),
            "Why the outcome had no effect, if it had none.",
        ),
    ],
};

const LOSS: MessageType = MessageType {
    name: "loss",
    about: "A part of a response that an agent cannot be given.",
    fields: &[
        must("field", Text, "The field of the response."),
        must("message", Text, "What is lost."),
    ],
};

/// Every type, each after those that use it.
pub const MESSAGE_TYPES: &[MessageType] = &[
    RECORD, HOOK_RUN, LOSS, RESPONSE, EVENT, EVENT_DATA, TOOL_INPUT, MCP,
];

/// A type by name.
pub fn message_type(name: &str) -> Option<&'static MessageType> {
    MESSAGE_TYPES.iter().find(|one| one.name == name)
}

/// The type of this name and all that it uses, itself first.
pub(crate) fn with_used_types(name: &str) -> Vec<&'static MessageType> {
    let mut types: Vec<&'static MessageType> = message_type(name).into_iter().collect();
    let mut next = 0;
    while let Some(one) = types.get(next).copied() {
        for field in one.fields {
            let (Type(used) | List(used)) = field.kind else {
                continue;
            };
            if !types.iter().any(|known| known.name == used) {
                types.extend(message_type(used));
            }
        }
        next += 1;
    }
    types
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{HookEvent, HookResponse, HookRun, Loss, Record, registry};

    /// A value of the kind, for a field.
    fn example(kind: MessageKind) -> Value {
        match kind {
            Text => json!("text"),
            Flag => json!(true),
            Number => json!(1.5),
            Integer => json!(1),
            Texts => json!(["text"]),
            Words(words) => json!(words[0]),
            Object => json!({"key": 1}),
            Any => json!([1]),
            Type(name) => object(name),
            List(name) => json!([object(name)]),
        }
    }

    fn object(name: &str) -> Value {
        let fields = message_type(name).unwrap().fields.iter();
        fields
            .map(|field| (field.name.to_owned(), example(field.kind)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }

    /// Every row is a field of the type, and the type writes no other.
    #[track_caller]
    fn assert_same<T: serde::Serialize + serde::de::DeserializeOwned>(name: &str) {
        let written = object(name);
        let value: T = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(value).unwrap(), written);
    }

    #[test]
    fn the_tables_and_the_types_agree() {
        assert_same::<HookEvent>("event");
        assert_same::<HookResponse>("response");
        assert_same::<HookRun>("hook_run");
        assert_same::<Loss>("loss");
        let mut record = object("record");
        record["kind"] = json!("event");
        record["answer"] = json!({"stdout": "x", "exit": 2});
        let value: Record = serde_json::from_value(record.clone()).unwrap();
        assert!(value.extra.is_empty(), "{:?}", value.extra);
        assert_eq!(serde_json::to_value(value).unwrap(), record);
    }

    #[test]
    fn every_key_of_a_tools_input_is_listed() {
        let known: Vec<&str> = TOOL_INPUT.fields.iter().map(|field| field.name).collect();
        for key in registry::TOOLS.iter().flat_map(|tool| tool.input) {
            assert!(known.contains(key), "{key}");
        }
    }

    #[test]
    fn outcomes_are_those_of_the_record() {
        for word in OUTCOMES {
            serde_json::from_value::<crate::RunOutcome>(json!(word)).unwrap();
        }
    }
}
