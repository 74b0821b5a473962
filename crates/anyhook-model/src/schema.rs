//! JSON Schemas, made from the tables of `fields`.

use serde_json::{Value, json};

use crate::fields::{self, Field, FieldShape, OSX_ALIASES};
use crate::registry::{CAPABILITIES, EVENTS, TOOLS};

pub(crate) const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Schema of `hooks.json` and `hooks.yaml`.
pub fn manifest() -> Value {
    let mut platform = object(fields::PLATFORM);
    for alias in OSX_ALIASES {
        set(
            &mut platform,
            alias,
            json!({"type": "string", "description": "As `osx`."}),
        );
    }
    let mut hook = object(fields::HOOK);
    set(
        &mut hook,
        "event",
        with_examples(fields::HOOK, "event", EVENTS.iter().map(|event| event.name)),
    );
    set(&mut hook, "capabilities", {
        let mut field = described(fields::HOOK, "capabilities");
        merge(
            &mut field,
            json!({"items": {"examples": CAPABILITIES.iter().map(|it| it.name).collect::<Vec<_>>()}}),
        );
        field
    });
    let mut handler = object(fields::HANDLER);
    merge(
        &mut handler,
        json!({
            "allOf": [
                needs("command", "command"),
                needs("http", "url"),
                needs("prompt", "prompt"),
                needs("agent", "prompt"),
                needs("mcp_tool", "tool"),
            ]
        }),
    );
    let pattern = matcher_variant("pattern");
    let mcp = matcher_variant("mcp");
    let mut root = json!({
        "$schema": DRAFT,
        "title": "anyhook manifest",
        "description": "Hooks for coding agents, in the Hook Interchange Format.",
    });
    merge(&mut root, object(fields::MANIFEST));
    merge(
        &mut root,
        json!({
            "$defs": {
                "hook": hook,
                "matcher": {
                    "oneOf": [
                        {
                            "type": "string",
                            "minLength": 1,
                            "description": "A name of the tool vocabulary; another name matches literally.",
                            "examples": TOOLS.iter().map(|tool| tool.name).collect::<Vec<_>>(),
                        },
                        pattern,
                        mcp,
                        {"type": "array", "description": "Any of these.", "items": {"$ref": "#/$defs/matcher"}},
                    ]
                },
                "handler": handler,
                "platform": platform,
                "mcp": object(fields::MCP),
            }
        }),
    );
    root
}

/// Schema of `policy.json` and `policy.yaml`.
pub fn policy() -> Value {
    let mut root = json!({
        "$schema": DRAFT,
        "title": "anyhook policy",
        "description": "Which hooks may run.",
    });
    merge(&mut root, object(fields::POLICY));
    root
}

/// Unknown fields are kept, so no schema closes an object.
fn object(table: &[Field]) -> Value {
    let properties: serde_json::Map<String, Value> = table
        .iter()
        .map(|field| (field.name.to_owned(), property(field)))
        .collect();
    let required: Vec<&str> = table
        .iter()
        .filter(|field| field.required)
        .map(|field| field.name)
        .collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        merge(&mut schema, json!({"required": required}));
    }
    schema
}

fn property(field: &Field) -> Value {
    let mut schema = match field.shape {
        FieldShape::Text => json!({"type": "string"}),
        FieldShape::Flag => json!({"type": "boolean"}),
        FieldShape::Seconds => json!({"type": "number", "minimum": 0}),
        FieldShape::OneOf(words) => json!({"enum": words}),
        FieldShape::Texts => json!({"type": "array", "items": {"type": "string"}}),
        FieldShape::TextMap => {
            json!({"type": "object", "additionalProperties": {"type": "string"}})
        }
        FieldShape::WordMap(words) => {
            json!({"type": "object", "additionalProperties": {"enum": words}})
        }
        FieldShape::Object | FieldShape::ObjectMap | FieldShape::Condition => {
            json!({"type": "object"})
        }
        FieldShape::Hooks => {
            json!({"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/hook"}})
        }
        FieldShape::Matcher => json!({"$ref": "#/$defs/matcher"}),
        FieldShape::Handler => json!({"$ref": "#/$defs/handler"}),
        FieldShape::Platform => json!({"$ref": "#/$defs/platform"}),
        FieldShape::Mcp => json!({"$ref": "#/$defs/mcp"}),
    };
    merge(&mut schema, json!({"description": field.about}));
    schema
}

fn described(table: &[Field], name: &str) -> Value {
    table
        .iter()
        .find(|field| field.name == name)
        .map(property)
        .unwrap_or_default()
}

fn with_examples<'a>(
    table: &[Field],
    name: &str,
    examples: impl Iterator<Item = &'a str>,
) -> Value {
    let mut schema = described(table, name);
    merge(
        &mut schema,
        json!({"examples": examples.collect::<Vec<_>>()}),
    );
    schema
}

fn matcher_variant(name: &str) -> Value {
    json!({
        "type": "object",
        "required": [name],
        "properties": {name: described(fields::MATCHER, name)},
    })
}

fn needs(kind: &str, field: &str) -> Value {
    json!({
        "if": {"properties": {"type": {"const": kind}}, "required": ["type"]},
        "then": {"required": [field]},
    })
}

fn set(schema: &mut Value, name: &str, property: Value) {
    merge(schema, json!({"properties": {name: property}}));
}

/// Objects are merged, other values replaced.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}
