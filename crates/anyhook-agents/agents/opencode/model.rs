//! OpenCode 1.18.33: hooks are functions in its process, so this models a plugin
//! that runs a command and applies its answer.
//!
//! The answer is one JSON object on stdout at exit 0:
//! - `{"deny": reason}`: the plugin throws an error with that text;
//! - `{"args": {…}}`: the plugin sets these keys of `output.args` in place (a new
//!   object would have no effect);
//! - `{"context": text}`: the plugin adds the text to the output that the hook
//!   may edit, if there is one.
//!
//! Keys may stand together; anything else is a failed hook, and nothing happens.
//! The experiments ran a plugin that threw, set and appended; their answers are
//! written in this contract.

use crate::reference_model::call::{Call, text};
use crate::reference_model::{Model, Reaction};
use serde_json::Value;

pub(super) const MODEL: Model = Model {
    events: &[
        "tool.execute.before",
        "tool.execute.after",
        "chat.message",
        "chat.params",
        "chat.headers",
        "experimental.chat.system.transform",
        "experimental.chat.messages.transform",
        "experimental.text.complete",
        "experimental.session.compacting",
        "experimental.compaction.autocontinue",
        "experimental.provider.small_model",
        "command.execute.before",
        "shell.env",
        "tool.definition",
        "permission.ask",
        "config",
        "event",
        "dispose",
        // The event bus: observed, not awaited.
        "session.created",
        "session.updated",
        "session.deleted",
        "session.idle",
        "session.status",
        "session.error",
        "session.compacted",
        "session.diff",
        "message.updated",
        "message.removed",
        "message.part.updated",
        "message.part.removed",
        "message.part.delta",
        "permission.asked",
        "permission.replied",
        "question.asked",
        "question.replied",
        "question.rejected",
        "todo.updated",
        "file.edited",
        "file.watcher.updated",
        "command.executed",
        "lsp.updated",
        "lsp.client.diagnostics",
        "mcp.tools.changed",
        "tui.prompt.append",
        "tui.command.execute",
        "tui.toast.show",
        "vcs.branch.updated",
        "server.connected",
        "server.instance.disposed",
        "installation.updated",
        "plugin.added",
    ],
    react,
    has_time_limit: false,
};

fn react(call: &Call) -> Reaction {
    if call.exit != Some(0) {
        return Reaction::failed("the command failed: the plugin does nothing");
    }
    if call.stdout.is_empty() {
        return Reaction::default();
    }
    let Some(json) = call.json() else {
        return Reaction::failed("the answer is no JSON object");
    };
    let mut r = Reaction::default();
    if let Some(reason) = text(&json, "/deny") {
        throw(call.event, reason, &mut r);
        return r;
    }
    if let Some(args) = json.get("args").and_then(Value::as_object) {
        if call.event == "tool.execute.before" {
            let mut input = call.tool_input("/output/args");
            input.extend(args.clone());
            r.new_input = Some(Value::Object(input));
        } else {
            r.add_note("there are no arguments to set here");
        }
    }
    if let Some(words) = text(&json, "/context") {
        match call.event {
            "tool.execute.after"
            | "chat.message"
            | "experimental.chat.system.transform"
            | "experimental.chat.messages.transform"
            | "experimental.session.compacting" => r.show_model(Some(words)),
            _ => r.add_note("context has no place here"),
        }
    }
    r
}

fn throw(event: &str, reason: &str, r: &mut Reaction) {
    match event {
        "tool.execute.before" | "tool.execute.after" => r.deny(Some(reason)),
        "chat.message" | "experimental.chat.system.transform" => {
            r.block();
            r.session_ends = true;
            r.add_note("the user sees a general error, the run ends with 1");
        }
        "permission.ask" => r.add_note("never called"),
        _ => r.add_note("a throw is ignored here"),
    }
}
