//! Items of a turn: prompts, tools that ran, messages. Pure.

use anyhook_model::HookEvent;
use anyhook_model::event::field;
use serde_json::{Value, json};

use crate::map::{Mapper, Remembered, native, object, place};
use crate::tools::{Tool, put, take_text, text};
use crate::wire::Incoming;

impl Mapper {
    pub(crate) fn item_started(&mut self, message: &Incoming) -> Option<HookEvent> {
        let mut params = object(message)?;
        let mut item = params.remove("item")?.as_object()?.clone();
        let thread = take_text(&mut params, "threadId")?;
        match text(&item, "type")?.as_str() {
            "userMessage" => {
                let turn = text(&params, "turnId").unwrap_or_default();
                let first = self.fresh_turns.remove(&turn).is_some();
                let name = if first {
                    "turn/started"
                } else {
                    "item/started"
                };
                let mut event = self.event("before_prompt", name, message, Some(&thread), &params);
                let item = Value::Object(item);
                if let Some(prompt) = prompt_of(&item) {
                    put(&mut event.data, field::PROMPT, prompt);
                }
                put(&mut params, "item", item);
                native(&mut event, params);
                Some(event)
            }
            "contextCompaction" => {
                let mut event = self.event(
                    "before_compact",
                    "item/started",
                    message,
                    Some(&thread),
                    &params,
                );
                put(&mut params, "item", Value::Object(item));
                native(&mut event, params);
                Some(event)
            }
            _ => {
                let id = text(&item, "id")?;
                let tool = Tool::of_item(&mut item)?;
                self.remember(thread, id, tool);
                None
            }
        }
    }

    pub(crate) fn item_completed(&mut self, message: &Incoming) -> Option<HookEvent> {
        let mut params = object(message)?;
        let mut item = params.remove("item")?.as_object()?.clone();
        let thread = take_text(&mut params, "threadId")?;
        if let Some(said) = message_of(&Value::Object(item.clone())) {
            self.threads.entry(thread).last_message = Some(said);
            return None;
        }
        let mut tool = Tool::of_item(&mut item)?;
        let id = take_text(&mut item, "id");
        if let Some(earlier) = id
            .clone()
            .and_then(|id| self.items.remove(&(thread.clone(), id)))
        {
            tool = tool.or_earlier(&earlier.tool);
        }
        let mut event = self.event(
            "after_tool_execute",
            "item/completed",
            message,
            Some(&thread),
            &params,
        );
        if let Some(cwd) = tool.input.get("cwd").and_then(Value::as_str) {
            event.cwd = Some(cwd.into());
        }
        tool.place(&mut event.data);
        if let Some(id) = id {
            put(&mut event.data, field::TOOL_CALL_ID, id);
        }
        place(
            &mut item,
            "aggregatedOutput",
            &mut event.data,
            field::TOOL_OUTPUT,
        );
        for output in ["result", "contentItems", "results"] {
            if !event.data.contains_key(field::TOOL_OUTPUT) {
                place(&mut item, output, &mut event.data, field::TOOL_OUTPUT);
            }
        }
        place(&mut item, "exitCode", &mut event.data, "exit_code");
        place(&mut item, "durationMs", &mut event.data, field::DURATION_MS);
        if let Some(status) = text(&item, "status") {
            let outcome = if status == "completed" {
                "success"
            } else {
                "error"
            };
            put(&mut event.data, field::STATUS, outcome);
            match item.get("error").filter(|error| !error.is_null()) {
                Some(error) => {
                    let message = error.get("message").unwrap_or(error).clone();
                    put(&mut event.data, field::ERROR, message);
                }
                None if outcome == "error" => put(&mut event.data, field::ERROR, status),
                None => {}
            }
        }
        put(&mut params, "item", Value::Object(item));
        native(&mut event, params);
        Some(event)
    }

    pub(crate) fn patch_updated(&mut self, message: &Incoming) {
        let Some(mut params) = object(message) else {
            return;
        };
        let changes = params.remove("changes").unwrap_or_default();
        if let (Some(thread), Some(item)) = (text(&params, "threadId"), text(&params, "itemId")) {
            self.remember(thread, item, Tool::file_edit(&changes));
        }
    }

    pub(crate) fn remember(&mut self, thread: String, item: String, tool: Tool) {
        let known = Remembered {
            thread: thread.clone(),
            item: item.clone(),
            tool,
        };
        self.items.insert((thread, item), known);
    }
}

/// The text of a user's message; what is no text is named by its kind.
pub(crate) fn prompt_of(item: &Value) -> Option<String> {
    if item.get("type")? != "userMessage" {
        return None;
    }
    let parts = item.get("content")?.as_array()?;
    let said: Vec<String> = parts
        .iter()
        .filter_map(|part| match part.get("text").and_then(Value::as_str) {
            Some(text) => Some(text.to_owned()),
            None => Some(format!("[{}]", part.get("type")?.as_str()?)),
        })
        .collect();
    Some(said.join("\n"))
}

pub(crate) fn message_of(item: &Value) -> Option<String> {
    let kind = item.get("type")?;
    (kind == &json!("agentMessage")).then_some(())?;
    item.get("text")?.as_str().map(str::to_owned)
}
