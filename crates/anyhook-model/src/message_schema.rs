//! JSON Schemas of events, responses and records, made from `message_fields`.

use serde_json::{Map, Value, json};

use crate::message_fields::{MessageField, MessageKind, MessageType, with_used_types};
use crate::schema::DRAFT;

/// Schema of a message type, with those that it uses in `$defs`.
pub fn message(name: &str) -> Value {
    let types = with_used_types(name);
    let Some((root, used)) = types.split_first() else {
        return Value::Null;
    };
    let mut schema = json!({"$schema": DRAFT, "title": format!("anyhook {name}")});
    let definitions: Map<String, Value> = used
        .iter()
        .map(|one| (one.name.to_owned(), object(one)))
        .collect();
    if let (Some(schema), Value::Object(root)) = (schema.as_object_mut(), object(root)) {
        schema.extend(root);
        if !definitions.is_empty() {
            schema.insert("$defs".to_owned(), Value::Object(definitions));
        }
    }
    schema
}

/// Unknown members are allowed everywhere: fields are only ever added.
fn object(one: &MessageType) -> Value {
    let properties: Map<String, Value> = one
        .fields
        .iter()
        .map(|field| (field.name.to_owned(), property(field)))
        .collect();
    let required = one.fields.iter().filter(|field| field.required);
    let required: Vec<&str> = required.map(|field| field.name).collect();
    let mut schema = json!({
        "type": "object",
        "description": one.about,
        "properties": properties,
    });
    if let (Some(schema), false) = (schema.as_object_mut(), required.is_empty()) {
        schema.insert("required".to_owned(), json!(required));
    }
    schema
}

fn property(field: &MessageField) -> Value {
    let reference = |name: &str| json!({"$ref": format!("#/$defs/{name}")});
    let mut schema = match field.kind {
        MessageKind::Text => json!({"type": "string"}),
        MessageKind::Flag => json!({"type": "boolean"}),
        MessageKind::Number => json!({"type": "number"}),
        MessageKind::Integer => json!({"type": "integer"}),
        MessageKind::Texts => json!({"type": "array", "items": {"type": "string"}}),
        MessageKind::Words(words) => json!({"enum": words}),
        MessageKind::Object => json!({"type": "object"}),
        MessageKind::Any => json!({}),
        MessageKind::Type(name) => reference(name),
        MessageKind::List(name) => json!({"type": "array", "items": reference(name)}),
    };
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("description".to_owned(), json!(field.about));
    }
    schema
}

/// Schema of `config.yaml`, the user's settings.
pub fn config() -> Value {
    json!({
        "$schema": DRAFT,
        "title": "anyhook config",
        "description": "The user's settings: config.yaml in the configuration folder.",
        "type": "object",
        "properties": {
            "evaluator": {
                "type": "object",
                "description": "What evaluates hooks of type `prompt` and `agent`: a program or an API.",
                "properties": {
                    "command": {"type": "string", "description": "A program: prompt on stdin, answer on stdout."},
                    "api": {"enum": ["anthropic", "openai"], "description": "The kind of API."},
                    "base_url": {"type": "string", "description": "Its address."},
                    "key_env": {"type": "string", "description": "The environment variable that holds the key."},
                    "model": {"type": "string", "description": "The model."},
                },
            },
            "http": {
                "type": "object",
                "description": "Hooks of type `http`.",
                "properties": {
                    "allow_plain": {"type": "array", "items": {"type": "string"}, "description": "Hosts that may be called without TLS."},
                },
            },
            "openhook": {
                "type": "object",
                "description": "OpenHook envelopes.",
                "properties": {
                    "folder": {"enum": ["cwd", "context", "both"], "description": "Which fields name the folder."},
                },
            },
            "allow_agent_changes": {"type": "boolean", "description": "A coding agent may run `trust`, `install` and the like."},
        },
    })
}
