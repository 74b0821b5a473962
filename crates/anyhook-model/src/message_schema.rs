//! JSON Schemas of events, responses and records, made from `message_fields`, and of the
//! settings, made from `config_fields`.

use serde_json::{Map, Value, json};

use crate::config_fields::{CONFIG, CONFIG_SECTIONS, ConfigField};
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
    described(kind_schema(field.kind), field.about)
}

fn described(mut schema: Value, about: &str) -> Value {
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("description".to_owned(), json!(about));
    }
    schema
}

fn kind_schema(kind: MessageKind) -> Value {
    let reference = |name: &str| json!({"$ref": format!("#/$defs/{name}")});
    match kind {
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
    }
}

/// Schema of `config.yaml`, the user's settings.
pub fn config() -> Value {
    let mut properties = Map::new();
    for (section, about) in CONFIG_SECTIONS {
        let fields = CONFIG
            .iter()
            .filter(|field| field.section_and_name().0 == Some(*section));
        let schema = json!({"type": "object", "description": about, "properties": config_properties(fields)});
        properties.insert((*section).to_owned(), schema);
    }
    let fields = CONFIG.iter();
    properties.extend(config_properties(
        fields.filter(|field| field.section_and_name().0.is_none()),
    ));
    json!({
        "$schema": DRAFT,
        "title": "anyhook config",
        "description": "The user's settings: config.yaml in the configuration folder.",
        "type": "object",
        "properties": properties,
    })
}

fn config_properties<'a>(fields: impl Iterator<Item = &'a ConfigField>) -> Map<String, Value> {
    let property = |field: &ConfigField| {
        let name = field.section_and_name().1.to_owned();
        (name, described(kind_schema(field.kind), field.about))
    };
    fields.map(property).collect()
}
