//! The four protocols that clients speak to a model. Each module reads a request into an [`ModelRequest`] and writes a
//! [`Reply`](crate::script::Reply) as that protocol's answer; nothing here knows of scenarios or clients.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::script::Reply;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    Anthropic,
    Gemini,
    Chat,
    Responses,
}

/// What a request says about its conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelRequest {
    /// How many turns of the model its history holds.
    pub turns: usize,
    /// The text of the user's messages, without tool results.
    pub user_text: String,
    /// The names of the tools on offer.
    pub tools: Vec<String>,
    /// The JSON schema that the answer must have.
    pub schema: Option<Value>,
    pub stream: bool,
}

/// The body of an HTTP answer.
#[derive(Clone, Debug, PartialEq)]
pub enum HttpAnswer {
    Json(u16, Value),
    /// Server-sent events: an optional name and the data of each.
    Events(Vec<(Option<String>, String)>),
}

impl Protocol {
    /// The protocol of a path, or `None` if the path does not ask for a model answer.
    pub fn for_path(path: &str) -> Option<Self> {
        let route = path.split('?').next().unwrap_or(path).trim_end_matches('/');
        if route.ends_with("/messages") {
            Some(Protocol::Anthropic)
        } else if route.ends_with(":generateContent") || route.ends_with(":streamGenerateContent") {
            Some(Protocol::Gemini)
        } else if route.ends_with("/chat/completions") {
            Some(Protocol::Chat)
        } else if route.ends_with("/responses") {
            Some(Protocol::Responses)
        } else {
            None
        }
    }

    pub fn parse_request(self, path: &str, body: &Value) -> ModelRequest {
        match self {
            Protocol::Anthropic => anthropic::parse_request(body),
            Protocol::Gemini => gemini::parse_request(path, body),
            Protocol::Chat => chat::parse_request(body),
            Protocol::Responses => responses::parse_request(body),
        }
    }

    /// `serial` is the number of the request; ids are made from it.
    pub fn render_reply(
        self,
        reply: &Reply,
        request: &ModelRequest,
        body: &Value,
        serial: usize,
    ) -> HttpAnswer {
        match self {
            Protocol::Anthropic => anthropic::render_reply(reply, request, body, serial),
            Protocol::Gemini => gemini::render_reply(reply, request, serial),
            Protocol::Chat => chat::render_reply(reply, request, body, serial),
            Protocol::Responses => responses::render_reply(reply, request, body, serial),
        }
    }
}

/// The tokens of an answer: other numbers for every request, so that a sum that lacks one
/// or has one twice differs.
struct FakeUsage {
    /// Cached tokens included.
    input: usize,
    cached: usize,
    output: usize,
}

impl FakeUsage {
    fn of_request(serial: usize) -> Self {
        Self {
            input: 1000 + serial,
            cached: 100 + 7 * serial,
            output: 10 + 3 * serial,
        }
    }

    fn total(&self) -> usize {
        self.input + self.output
    }
}

/// The items of an array member, none when it is absent.
fn items<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn str_member<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The text of a content that is a string or a list of parts with a `text`.
fn content_text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts: Vec<&str> = parts.iter().map(|part| str_member(part, "text")).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

/// The id of a call; it holds the number of the request, so that the calls of one turn
/// can be recognised in its history.
fn call_id(serial: usize, index: usize) -> String {
    format!("call_{serial:04}x{index}")
}

/// Counts the turns of the model in a history: calls that one answer made are one turn, wherever a client puts them.
#[derive(Default)]
struct TurnCounter<'a> {
    turns: usize,
    seen: Vec<&'a str>,
}

impl<'a> TurnCounter<'a> {
    /// Adds a message of the model with these calls; one without calls is a turn.
    fn add(&mut self, call_ids: impl Iterator<Item = &'a str>) {
        let (mut calls, mut is_new) = (0, false);
        for id in call_ids {
            calls += 1;
            let answer = id.split('x').next().unwrap_or(id);
            if answer.is_empty() || !self.seen.contains(&answer) {
                self.seen.push(answer);
                is_new = true;
            }
        }
        if calls == 0 || is_new {
            self.turns += 1;
        }
    }
}

fn typed_event(data: &Value) -> (Option<String>, String) {
    (Some(str_member(data, "type").to_owned()), data.to_string())
}
