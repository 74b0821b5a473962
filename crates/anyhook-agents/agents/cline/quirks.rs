//! Two runtimes with one set of scripts. The CLI sends a tool call twice, once
//! unchanged and once with every value as text; the VS Code extension sends only
//! the second, and reads different answers.

use anyhook_model::event::NATIVE;
use anyhook_model::{Decision, HookEvent, HookResponse, Loss};
use serde_json::{Map, Value, json};

use crate::Quirks;
use crate::quirks::{set_mcp, set_status};
use crate::respond::{RenderedAnswer, stuck_rewrite_reason};
use crate::tools::decode_input;

pub(super) struct ClineQuirks;

pub(super) static QUIRKS: ClineQuirks = ClineQuirks;

const ID: &str = "cline";
const FETCH: &str = "fetch_web_content";
const EDITOR: &str = "editor";

/// The extension names an event as its script is named.
fn from_extension(event: &HookEvent) -> bool {
    let native = event.metadata.get(NATIVE);
    let name = native.and_then(|native| native.get("hookName")?.as_str());
    name == Some(event.native_event.as_str())
}

/// An input with every value as text.
fn as_texts(input: &Map<String, Value>) -> Value {
    let mut texts = input.clone();
    for value in texts.values_mut().filter(|value| !value.is_string()) {
        *value = Value::String(value.to_string());
    }
    Value::Object(texts)
}

/// The input with lists and objects parsed out of texts; `None` if there are none.
fn from_texts(input: &Map<String, Value>) -> Option<Map<String, Value>> {
    let mut found = false;
    let mut out = input.clone();
    for value in out.values_mut() {
        let text = value.as_str().filter(|text| text.starts_with(['[', '{']));
        if let Some(inner) = text.and_then(|text| serde_json::from_str(text).ok()) {
            found = true;
            *value = inner;
        }
    }
    found.then_some(out)
}

fn requests(input: &Map<String, Value>) -> Option<Map<String, Value>> {
    let list = input.get("requests")?.as_array()?;
    let urls: Option<Vec<&Value>> = list.iter().map(|request| request.get("url")).collect();
    let urls = urls.filter(|urls| !urls.is_empty())?;
    let mut out = Map::new();
    out.insert("url".into(), json!(urls.first()));
    if let Some(prompt) = list.first().and_then(|first| first.get("prompt")) {
        out.insert("prompt".into(), prompt.clone());
    }
    if urls.len() > 1 {
        out.insert("urls".into(), json!(urls));
    }
    Some(out)
}

impl Quirks for ClineQuirks {
    fn deny_pattern(&self) -> &'static str {
        "*'\"cancel\"'*true*"
    }

    fn decoded(&self, payload: &Value, event: &mut HookEvent) {
        let success = payload.pointer("/postToolUse/success");
        if let Some(success) = success.and_then(Value::as_bool) {
            set_status(event, success);
        }
        // The extension up to 3.x has one tool for all MCP tools.
        let part = |key: &str| {
            let part = |call| payload.pointer(&format!("/{call}/parameters/{key}"));
            part("preToolUse").or_else(|| part("postToolUse"))?.as_str()
        };
        if event.native_tool_name() == Some("use_mcp_tool")
            && let (Some(server), Some(tool)) = (part("server_name"), part("tool_name"))
        {
            set_mcp(event, server, tool);
        }
    }

    /// Keeps the call as texts in step with the call as it is.
    fn encoded(&self, event: &HookEvent, payload: &mut Value) {
        let own = event.source == ID;
        let Value::Object(map) = payload else { return };
        if !own && let Some(time) = &event.timestamp {
            map.insert("timestamp".into(), json!(time));
        }
        for (typed, texts) in [("tool_call", "preToolUse"), ("tool_result", "postToolUse")] {
            let name = map.get("hookName").and_then(Value::as_str);
            let is_named =
                name.is_some_and(|name| name == typed || name.eq_ignore_ascii_case(texts));
            let twin = map.get(texts);
            if !is_named || twin.is_some_and(|twin| twin.get("parameters").is_some()) {
                continue;
            }
            let typed = map.get(typed).cloned().unwrap_or_default();
            let native = event.native_tool_name().unwrap_or_default();
            let input = match typed.get("input").and_then(Value::as_object) {
                Some(input) => input.clone(),
                None => native_input(native, event.tool_input()),
            };
            let tool = typed.get("name").cloned().unwrap_or_else(|| json!(native));
            let twin = map.entry(texts).or_insert_with(|| json!({}));
            if let Value::Object(twin) = twin {
                twin.entry("toolName").or_insert(tool);
                twin.insert("parameters".into(), as_texts(&input));
            }
        }
    }

    fn decode_tool(&self, native: &str, input: &Value) -> Option<(String, Map<String, Value>)> {
        let input = input.as_object()?;
        let parsed = from_texts(input);
        let typed = parsed.as_ref().unwrap_or(input);
        if native == FETCH {
            return Some(("web_fetch".to_owned(), requests(typed)?));
        }
        let creates = native == EDITOR
            && !typed.contains_key("old_text")
            && !typed.contains_key("insert_line");
        if creates && let Some(content) = typed.get("new_text") {
            let mut out = typed.clone();
            out.shift_remove("new_text");
            out.insert("content".into(), content.clone());
            return Some(("file_write".to_owned(), out));
        }
        let row = crate::get(ID)?.tool_by_native(native, Some(parsed.as_ref()?))?;
        Some((row.is.to_string(), decode_input(row, typed)))
    }

    fn encode_tool(&self, native: &str, input: &Map<String, Value>) -> Option<Map<String, Value>> {
        let mut out = input.clone();
        match native {
            FETCH => {
                let prompt = out.shift_remove("prompt");
                let url = out.shift_remove("url");
                let urls = match out.shift_remove("urls") {
                    Some(Value::Array(urls)) => urls,
                    _ => url.into_iter().collect(),
                };
                let requests = urls.into_iter().map(|url| match &prompt {
                    Some(prompt) => json!({"url": url, "prompt": prompt}),
                    None => json!({ "url": url }),
                });
                out.insert("requests".into(), requests.collect());
            }
            EDITOR => {
                let content = out.shift_remove("content")?;
                out.insert("new_text".into(), content);
            }
            _ => return None,
        }
        Some(out)
    }

    /// The extension obeys `cancel` at the start of a task, takes no changed
    /// input, and reads no `errorMessage` without `cancel`.
    fn rendered(&self, event: &HookEvent, response: &HookResponse, rendered: &mut RenderedAnswer) {
        if event.source != ID || !from_extension(event) {
            return;
        }
        let mut answer: Map<String, Value> =
            serde_json::from_str(&rendered.stdout).unwrap_or_default();
        match event.native_event.as_str() {
            "TaskStart" => {
                let denies = matches!(response.decision, Some(Decision::Deny | Decision::Ask));
                if !denies && response.should_continue != Some(false) {
                    return;
                }
                answer.insert("cancel".into(), json!(true));
                answer.insert("errorMessage".into(), json!(response.reason));
                let is_done = |loss: &Loss| matches!(loss.field.as_str(), "deny" | "continue");
                rendered.lost.retain(|loss| !is_done(loss));
                let effect = "the task does not begin; the user sees the reason";
                rendered.effect.push(effect.to_owned());
            }
            "PreToolUse" if answer.shift_remove("overrideInput").is_some() => {
                let why = "the extension of Cline takes no changed input at PreToolUse";
                answer.insert("cancel".into(), json!(true));
                answer.insert("errorMessage".into(), json!(stuck_rewrite_reason(why)));
                let loss = Loss::new("updated_input", format!("{why}; denied instead"));
                rendered.lost.push(loss);
                rendered.effect = vec!["the tool does not run and the whole run ends".to_owned()];
            }
            "PostToolUse" if answer.get("cancel").is_none() => {
                let Some(Value::String(mut text)) = answer.shift_remove("errorMessage") else {
                    return;
                };
                if let Some(Value::String(context)) = answer.get("contextModification") {
                    text = format!("{text}\n\n{context}");
                }
                answer.insert("contextModification".into(), json!(text));
            }
            _ => return,
        }
        rendered.stdout = format!("{}\n", Value::Object(answer));
    }
}

/// A canonical input in the tool's own keys.
fn native_input(native: &str, input: Option<&Map<String, Value>>) -> Map<String, Value> {
    let input = input.cloned().unwrap_or_default();
    let Some(adapter) = crate::get(ID) else {
        return input;
    };
    adapter.native_input(Some(native), adapter.tool_by_native(native, None), &input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Adapter;
    use crate::respond::RenderOptions;

    fn decoded(text: &str) -> (&'static Adapter, HookEvent) {
        let adapter = crate::get(ID).unwrap();
        let payload = serde_json::from_str(text).unwrap();
        (adapter, adapter.decode(&payload, None).unwrap().event)
    }

    const CALL: &str = include_str!("captures/vscode/PreToolUse-run_commands.json");
    const TYPED: &str = include_str!("captures/PreToolUse-run_commands.json");
    const RESULT: &str = include_str!("captures/vscode/PostToolUse-read_files.json");
    const START: &str = include_str!("captures/vscode/TaskStart.json");

    fn rewrite() -> Map<String, Value> {
        let mut rewrite = Map::new();
        rewrite.insert("command".into(), json!("echo changed"));
        rewrite
    }

    fn answer(text: &str, response: &HookResponse) -> (Value, Vec<String>) {
        let (adapter, event) = decoded(text);
        let rendered = adapter.render(&event, response, RenderOptions::default());
        let lost = rendered.lost.into_iter().map(|loss| loss.field).collect();
        (serde_json::from_str(&rendered.stdout).unwrap(), lost)
    }

    #[test]
    fn lists_inside_texts_are_seen() {
        let (_, event) = decoded(CALL);
        let input = event.tool_input().unwrap();
        assert_eq!(input.get("command"), Some(&json!("ls\npwd")));
    }

    #[test]
    fn the_extension_denies_what_it_cannot_change() {
        let response = HookResponse {
            updated_input: Some(rewrite()),
            ..HookResponse::default()
        };
        let (said, lost) = answer(CALL, &response);
        assert_eq!(said.get("cancel"), Some(&json!(true)));
        assert_eq!(said.get("overrideInput"), None);
        assert_eq!(lost, ["updated_input"]);
        let (said, lost) = answer(TYPED, &response);
        assert_eq!(
            said,
            json!({"overrideInput": {"commands": ["echo changed"]}})
        );
        assert!(lost.is_empty());
    }

    #[test]
    fn the_extension_reads_feedback_as_context() {
        let response = HookResponse {
            context: Some("mind".into()),
            ..HookResponse::deny("no")
        };
        let (said, lost) = answer(RESULT, &response);
        assert_eq!(said, json!({"contextModification": "no\n\nmind"}));
        assert!(lost.is_empty());
    }

    #[test]
    fn the_extension_can_keep_a_task_from_starting() {
        let (said, lost) = answer(START, &HookResponse::deny("no"));
        assert_eq!(said, json!({"cancel": true, "errorMessage": "no"}));
        assert!(lost.is_empty());
    }

    #[test]
    fn the_call_as_texts_follows_a_changed_input() {
        for text in [CALL, TYPED] {
            let (adapter, event) = decoded(text);
            let changed = Adapter::rewritten_event(&event, &rewrite());
            let payload = adapter.encode(&changed, None).unwrap().payload;
            assert_eq!(
                payload.pointer("/preToolUse/parameters/commands"),
                Some(&json!("[\"echo changed\"]")),
                "{payload}"
            );
            let typed = payload.pointer("/tool_call/input/commands");
            assert!(typed.is_none_or(|typed| *typed == json!(["echo changed"])));
        }
    }
}
