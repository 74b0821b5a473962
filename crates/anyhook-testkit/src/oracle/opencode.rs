//! OpenCode 1.18.33: hooks are functions in its own process, so what is modelled
//! is a plugin that calls a command and does what its answer says.
//!
//! The contract between the two, one JSON object on stdout at exit 0:
//! - `{"deny": reason}`: the plugin throws an error with that text;
//! - `{"args": {…}}`: the plugin sets these keys of `output.args` in place (a new
//!   object in its stead would have no effect);
//! - `{"context": text}`: the plugin adds the text to the output that the hook
//!   may edit, if there is one.
//!
//! Keys may stand together; anything else is a failed hook, and nothing happens.

use super::Reaction;
use super::call::{Call, text};
use serde_json::Value;

pub(super) const EVENTS: &[&str] = &[
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
];

pub(super) fn react(call: &Call) -> Reaction {
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
            r.say("there are no arguments to set here");
        }
    }
    if let Some(words) = text(&json, "/context") {
        match call.event {
            "tool.execute.after"
            | "chat.message"
            | "experimental.chat.system.transform"
            | "experimental.chat.messages.transform"
            | "experimental.session.compacting" => r.tell_model(Some(words)),
            _ => r.say("context has no place here"),
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
            r.say("the user sees a general error, the run ends with 1");
        }
        "permission.ask" => r.say("never called"),
        _ => r.say("a throw is ignored here"),
    }
}
