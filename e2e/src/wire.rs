//! The four protocols that clients speak to a model. Each module reads a request into an [`Ask`] and writes a
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

/// What a request tells of its conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ask {
    /// How many turns of the model its history holds.
    pub turns: usize,
    /// What the user said, without tool results.
    pub said: String,
    /// The names of the tools on offer.
    pub tools: Vec<String>,
    /// The JSON schema that the answer must have.
    pub schema: Option<Value>,
    pub stream: bool,
}

/// The body of an HTTP answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Json(u16, Value),
    /// Server-sent events: an optional name and the data of each.
    Events(Vec<(Option<String>, String)>),
}

impl Protocol {
    /// The protocol of a path, or `None` for a path that asks for no answer of the model.
    pub fn of_path(path: &str) -> Option<Self> {
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

    pub fn read(self, path: &str, body: &Value) -> Ask {
        match self {
            Protocol::Anthropic => anthropic::read(body),
            Protocol::Gemini => gemini::read(path, body),
            Protocol::Chat => chat::read(body),
            Protocol::Responses => responses::read(body),
        }
    }

    /// `serial` is the number of the request; ids are made from it.
    pub fn write(self, reply: &Reply, ask: &Ask, body: &Value, serial: usize) -> Answer {
        match self {
            Protocol::Anthropic => anthropic::write(reply, ask, body, serial),
            Protocol::Gemini => gemini::write(reply, ask, serial),
            Protocol::Chat => chat::write(reply, ask, body, serial),
            Protocol::Responses => responses::write(reply, ask, body, serial),
        }
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

fn text_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The text of a content that is a string or a list of parts with a `text`.
fn said_in(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts: Vec<&str> = parts.iter().map(|part| text_of(part, "text")).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

fn typed_event(data: &Value) -> (Option<String>, String) {
    (Some(text_of(data, "type").to_owned()), data.to_string())
}
