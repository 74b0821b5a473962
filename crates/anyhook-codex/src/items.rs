//! Items of a turn: prompts, tools that ran, messages. Pure.

use anyhook_model::HookEvent;
use anyhook_model::event::field;
use serde_json::Value;

use crate::map::{
    Mapper, canonical_status, error_message, move_value, params_object, put_some, with_native,
};
use crate::tools::{Object, ToolCall, put, take_text, text};
use crate::wire::IncomingMessage;

impl Mapper {
    pub(crate) fn item_started(&mut self, message: &IncomingMessage) -> Option<HookEvent> {
        let (thread, mut params, mut item) = item_params(message)?;
        let kind = text(&item, "type")?;
        let name = match kind.as_str() {
            "userMessage" => "before_prompt",
            "contextCompaction" => "before_compact",
            _ => {
                let id = text(&item, "id")?;
                let tool = ToolCall::from_item(&mut item)?;
                self.items.insert((thread, id), tool);
                return None;
            }
        };
        let mut event = self.event(name, message, Some(&thread), &params);
        let item = Value::Object(item);
        if kind == "userMessage" {
            let turn = text(&params, "turnId").unwrap_or_default();
            if self.new_turns.remove(&turn).is_some() {
                event.native_event = "turn/started".into();
            }
            put_some(&mut event.data, field::PROMPT, user_prompt(&item));
        }
        put(&mut params, "item", item);
        Some(with_native(event, params))
    }

    pub(crate) fn item_completed(&mut self, message: &IncomingMessage) -> Option<HookEvent> {
        let (thread, mut params, mut item) = item_params(message)?;
        if let Some(text) = agent_message(&Value::Object(item.clone())) {
            self.threads.entry(thread).last_message = Some(text);
            return None;
        }
        let tool = ToolCall::from_item(&mut item)?;
        let id = take_text(&mut item, "id");
        let key = id.clone().map(|id| (thread.clone(), id));
        let earlier = key.and_then(|key| self.items.remove(&key));
        let tool = tool.completed_by(earlier.as_ref());
        let mut event = self.event("after_tool_execute", message, Some(&thread), &params);
        if let Some(cwd) = text(&tool.input, "cwd") {
            event.cwd = Some(cwd);
        }
        let data = &mut event.data;
        tool.write_to(data);
        put_some(data, field::TOOL_CALL_ID, id);
        for output in ["aggregatedOutput", "result", "contentItems", "results"] {
            if !data.contains_key(field::TOOL_OUTPUT) {
                move_value(&mut item, output, data, field::TOOL_OUTPUT);
            }
        }
        move_value(&mut item, "exitCode", data, "exit_code");
        move_value(&mut item, "durationMs", data, field::DURATION_MS);
        if let Some(status) = text(&item, "status") {
            let outcome = canonical_status(&status);
            put(data, field::STATUS, outcome);
            let status = Some(Value::from(status)).filter(|_| outcome == "error");
            put_some(data, field::ERROR, error_message(&item).or(status));
        }
        put(&mut params, "item", Value::Object(item));
        Some(with_native(event, params))
    }

    pub(crate) fn patch_updated(&mut self, message: &IncomingMessage) {
        let mut params = params_object(message).unwrap_or_default();
        let changes = params.remove("changes").unwrap_or_default();
        if let (Some(thread), Some(item)) = (text(&params, "threadId"), text(&params, "itemId")) {
            let tool = ToolCall::file_edit(&changes);
            self.items.insert((thread, item), tool);
        }
    }
}

/// The thread, the other parameters and the item of a message about an item.
fn item_params(message: &IncomingMessage) -> Option<(String, Object, Object)> {
    let mut params = params_object(message)?;
    let item = params.remove("item")?.as_object()?.clone();
    Some((take_text(&mut params, "threadId")?, params, item))
}

/// The text of a user's message; other parts are shown as their type.
pub(crate) fn user_prompt(item: &Value) -> Option<String> {
    if item.get("type")? != "userMessage" {
        return None;
    }
    let parts = item.get("content")?.as_array()?.iter();
    let texts = parts.filter_map(|part| match part.get("text").and_then(Value::as_str) {
        Some(text) => Some(text.to_owned()),
        None => Some(format!("[{}]", part.get("type")?.as_str()?)),
    });
    Some(texts.collect::<Vec<_>>().join("\n"))
}

pub(crate) fn agent_message(item: &Value) -> Option<String> {
    let is_message = item.get("type")? == "agentMessage";
    let text = item.get("text")?.as_str().filter(|_| is_message)?;
    Some(text.to_owned())
}
