//! Requests of the server that hooks may answer, as canonical events. Pure.

use anyhook_model::event::field;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::approval::{Approval, ApprovalKind, is_review_method};
use crate::map::{MappedMessage, Mapper, move_value, put_some, with_native};
use crate::tools::{Object, ToolCall, take_text, text};
use crate::wire::{IncomingMessage, is_approval_method};

#[derive(Debug, Clone, Copy)]
pub(crate) enum ApprovalMethod {
    Command,
    FileChange,
    Permissions,
    Elicitation,
    /// One that is new.
    Unknown,
}

impl ApprovalMethod {
    pub(crate) fn from_name(method: &str) -> Option<Self> {
        Some(match method {
            "item/commandExecution/requestApproval" | "execCommandApproval" => Self::Command,
            "item/fileChange/requestApproval" | "applyPatchApproval" => Self::FileChange,
            "item/permissions/requestApproval" => Self::Permissions,
            "mcpServer/elicitation/request" => Self::Elicitation,
            method if is_approval_method(method) => Self::Unknown,
            _ => return None,
        })
    }
}

impl Mapper {
    pub(crate) fn approval(
        &mut self,
        message: &IncomingMessage,
        method: ApprovalMethod,
    ) -> Option<MappedMessage> {
        let mut params = match message.params() {
            Value::Object(params) => params,
            _ if matches!(method, ApprovalMethod::Elicitation) => return None,
            Value::Null => Object::new(),
            // What cannot be read is for the hooks to judge.
            other => Object::from_iter([("params".into(), other)]),
        };
        let thread = take_text_of(&mut params, ["threadId", "conversationId"]);
        let mut item = take_text_of(&mut params, ["itemId", "callId"]);
        let key = thread.clone().zip(item.clone());
        let earlier = key.as_ref().and_then(|key| self.items.get(key));
        let cwd = take_text(&mut params, "cwd");

        let mut name = "before_tool_execute";
        let (mut kind, tool, is_complete) = match method {
            ApprovalMethod::Command => {
                let (tool, is_complete) = command_call(&mut params, cwd.as_deref(), earlier);
                (ApprovalKind::Command, tool, is_complete)
            }
            ApprovalMethod::FileChange => {
                let (tool, is_complete) = file_call(&mut params, earlier);
                (ApprovalKind::FileChange, tool, is_complete)
            }
            ApprovalMethod::Permissions => {
                name = "permission_request";
                let requested = params.remove("permissions").unwrap_or_default();
                let input = Object::from_iter([("permissions".into(), requested.clone())]);
                let permissions = serde_json::from_value(requested).unwrap_or_default();
                let tool = ToolCall::other("request_permissions", input);
                (ApprovalKind::Permissions(permissions), tool, true)
            }
            ApprovalMethod::Elicitation => {
                let (tool, call) = self.mcp_call(thread.as_deref(), &mut params)?;
                let is_complete = call.is_some();
                item = item.or(call);
                (ApprovalKind::McpTool, tool, is_complete)
            }
            // Without a tool's name every hook is asked. None can accept what
            // is not known.
            ApprovalMethod::Unknown => {
                let tool = ToolCall::unnamed(params.clone());
                (ApprovalKind::Unknown, tool, false)
            }
        };
        if is_review_method(message.method()?) {
            kind = ApprovalKind::Review;
        }
        if let (Some(key), None) = (key, earlier) {
            self.items.insert(key, tool.clone());
        }

        let mut event = self.event(name, message, thread.as_deref(), &params);
        event.cwd = cwd.or_else(|| text(&tool.input, "cwd")).or(event.cwd);
        // The native command is kept only where it differs from the canonical one.
        if params.get("command") == tool.input.get("command") {
            params.remove("command");
        }
        tool.write_to(&mut event.data);
        put_some(&mut event.data, field::TOOL_CALL_ID, item);
        move_value(&mut params, "reason", &mut event.data, field::REASON);
        move_value(&mut params, "risk", &mut event.data, "risk");
        let event = with_native(event, params);
        Some(match message.id.clone() {
            Some(id) => MappedMessage::Approval(Box::new(Approval {
                id,
                kind,
                event,
                content: content_of(message),
                is_complete,
            })),
            // The server does not wait for an answer.
            None => MappedMessage::Event(Box::new(event)),
        })
    }

    /// The approval of an MCP tool is an elicitation with a marker. It names the
    /// server; the call itself is the item in progress there.
    fn mcp_call(
        &self,
        thread: Option<&str>,
        params: &mut Object,
    ) -> Option<(ToolCall, Option<String>)> {
        let meta = params.get("_meta")?.as_object()?;
        if text(meta, "codex_approval_kind")? != "mcp_tool_call" {
            return None;
        }
        let arguments = meta.get("tool_params").cloned();
        let server = take_text(params, "serverName")?;
        let wanted = arguments.as_ref().and_then(Value::as_object);
        let mut calls = self.items.iter().filter(|((call_thread, _), call)| {
            Some(call_thread.as_str()) == thread
                && call.mcp.as_ref().is_some_and(|(name, _)| *name == server)
                && wanted.is_none_or(|arguments| *arguments == call.input)
        });
        match (calls.next(), calls.next()) {
            (Some(((_, item), call)), None) => Some((call.clone(), Some(item.clone()))),
            _ => Some((ToolCall::mcp(&server, "", arguments), None)),
        }
    }
}

fn content_of(message: &IncomingMessage) -> String {
    let params = message.params.map_or("", RawValue::get);
    [message.method().unwrap_or_default(), params].join("\n")
}

/// The command, and whether the request contains all of it.
fn command_call(
    params: &mut Object,
    cwd: Option<&str>,
    earlier: Option<&ToolCall>,
) -> (ToolCall, bool) {
    let parts = remove_of(params, ["commandActions", "parsedCmd"]);
    let mut tool = ToolCall::shell(params.get("command"), parts, cwd).completed_by(earlier);
    let input = &mut tool.input;
    move_value(params, "networkApprovalContext", input, "network");
    move_value(params, "additionalPermissions", input, "permissions");
    let is_complete = input.contains_key("command") || input.contains_key("network");
    (tool, is_complete)
}

/// The changes, and whether any file is known.
fn file_call(params: &mut Object, earlier: Option<&ToolCall>) -> (ToolCall, bool) {
    let changes = remove_of(params, ["changes", "fileChanges"]);
    let mut tool = ToolCall::file_edit(&changes.unwrap_or_default()).completed_by(earlier);
    let is_complete = tool.file_count() > 0;
    move_value(params, "grantRoot", &mut tool.input, "grant_root");
    (tool, is_complete)
}

/// The first of today's and the older name that is present.
fn remove_of(params: &mut Object, [today, older]: [&str; 2]) -> Option<Value> {
    params.remove(today).or_else(|| params.remove(older))
}

fn take_text_of(params: &mut Object, [today, older]: [&str; 2]) -> Option<String> {
    take_text(params, today).or_else(|| take_text(params, older))
}
