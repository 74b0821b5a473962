//! Requests of the server that hooks may answer, as canonical events. Pure.

use anyhook_model::event::field;
use serde_json::Value;

use crate::approval::{Approval, ApprovalKind};
use crate::map::{Mapper, Remembered, Seen, native, object, place};
use crate::tools::{Object, Tool, put, take_text, text};
use crate::wire::Incoming;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    Command,
    FileChange,
    Permissions,
    Elicitation,
    OldCommand,
    OldPatch,
}

impl Shape {
    pub(crate) fn of(method: &str) -> Option<Self> {
        Some(match method {
            "item/commandExecution/requestApproval" => Self::Command,
            "item/fileChange/requestApproval" => Self::FileChange,
            "item/permissions/requestApproval" => Self::Permissions,
            "mcpServer/elicitation/request" => Self::Elicitation,
            "execCommandApproval" => Self::OldCommand,
            "applyPatchApproval" => Self::OldPatch,
            _ => return None,
        })
    }
}

impl Mapper {
    pub(crate) fn approval(&mut self, message: &Incoming, method: &str, shape: Shape) -> Seen {
        let Some(mut params) = object(message) else {
            return Seen::Nothing;
        };
        let thread =
            take_text(&mut params, "threadId").or_else(|| take_text(&mut params, "conversationId"));
        let mut item =
            take_text(&mut params, "itemId").or_else(|| take_text(&mut params, "callId"));
        let key = thread.clone().zip(item.clone());
        let earlier = key
            .as_ref()
            .and_then(|key| self.items.get(key))
            .map(|known| known.tool.clone());
        let cwd = take_text(&mut params, "cwd");

        let mut name = "before_tool_execute";
        let (kind, tool, complete) = match shape {
            Shape::Command | Shape::OldCommand => {
                let parts = params
                    .remove("commandActions")
                    .or_else(|| params.remove("parsedCmd"));
                let mut tool = Tool::shell(params.get("command"), parts, cwd.as_deref());
                if let Some(earlier) = &earlier {
                    tool = tool.or_earlier(earlier);
                }
                for (from, to) in [
                    ("networkApprovalContext", "network"),
                    ("additionalPermissions", "permissions"),
                ] {
                    place(&mut params, from, &mut tool.input, to);
                }
                let complete =
                    tool.input.contains_key("command") || tool.input.contains_key("network");
                let kind = match shape {
                    Shape::Command => ApprovalKind::Command,
                    _ => ApprovalKind::Review,
                };
                (kind, tool, complete)
            }
            Shape::FileChange | Shape::OldPatch => {
                let changes = params
                    .remove("changes")
                    .or_else(|| params.remove("fileChanges"));
                let mut tool = Tool::file_edit(&changes.unwrap_or_default());
                if let Some(earlier) = &earlier {
                    tool = tool.or_earlier(earlier);
                }
                let files = tool.input.get("files").and_then(Value::as_array);
                let complete = files.is_some_and(|files| !files.is_empty());
                place(&mut params, "grantRoot", &mut tool.input, "grant_root");
                let kind = match shape {
                    Shape::FileChange => ApprovalKind::FileChange,
                    _ => ApprovalKind::Review,
                };
                (kind, tool, complete)
            }
            Shape::Permissions => {
                name = "permission_request";
                let wanted = params.remove("permissions").unwrap_or_default();
                let input = Object::from_iter([("permissions".into(), wanted.clone())]);
                let kind =
                    ApprovalKind::Permissions(serde_json::from_value(wanted).unwrap_or_default());
                (kind, Tool::other("request_permissions", input), true)
            }
            Shape::Elicitation => {
                let Some((tool, call)) = self.mcp_tool(thread.as_deref(), &mut params) else {
                    return Seen::Nothing;
                };
                let complete = call.is_some();
                item = item.or(call);
                (ApprovalKind::McpTool, tool, complete)
            }
        };
        if let (Some((thread, item)), None) = (key, earlier) {
            self.remember(thread, item, tool.clone());
        }

        let mut event = self.event(name, method, message, thread.as_deref(), &params);
        let tool_cwd = || tool.input.get("cwd").and_then(Value::as_str);
        event.cwd = cwd.or_else(|| tool_cwd().map(str::to_owned)).or(event.cwd);
        // Only worth keeping where the canonical command is not the whole of it.
        if params.get("command") == tool.input.get("command") {
            params.remove("command");
        }
        tool.place(&mut event.data);
        if let Some(item) = item {
            put(&mut event.data, field::TOOL_CALL_ID, item);
        }
        place(&mut params, "reason", &mut event.data, field::REASON);
        place(&mut params, "risk", &mut event.data, "risk");
        native(&mut event, params);
        match message.id.clone() {
            Some(id) => Seen::Approval(Box::new(Approval {
                id,
                kind,
                event,
                complete,
            })),
            // Nobody waits for an answer.
            None => Seen::Event(Box::new(event)),
        }
    }

    /// The approval of an MCP tool comes as an elicitation that is marked as
    /// one. It names the server; the call itself is the item under way there.
    fn mcp_tool(
        &self,
        thread: Option<&str>,
        params: &mut Object,
    ) -> Option<(Tool, Option<String>)> {
        let meta = params.get("_meta")?.as_object()?;
        if text(meta, "codex_approval_kind")? != "mcp_tool_call" {
            return None;
        }
        let arguments = meta.get("tool_params").cloned();
        let server = take_text(params, "serverName")?;
        let here = |known: &&Remembered| {
            let to = known.tool.mcp.as_ref().map(|(server, _)| server);
            Some(known.thread.as_str()) == thread
                && to == Some(&server)
                && arguments
                    .as_ref()
                    .and_then(Value::as_object)
                    .is_none_or(|arguments| *arguments == known.tool.input)
        };
        let mut calls = self.items.values().filter(here);
        match (calls.next(), calls.next()) {
            (Some(call), None) => Some((call.tool.clone(), Some(call.item.clone()))),
            _ => Some((Tool::mcp(&server, "", arguments), None)),
        }
    }
}
