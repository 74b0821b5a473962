//! The SDKs for hook authors: typed models in `sdk/`, generated from the same tables
//! as `anyhook schema`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhook_model::message_fields::{MESSAGE_TYPES, MessageField, MessageKind, MessageType};

const PYTHON: &str = include_str!("sdk/python.txt");
const TYPESCRIPT: &str = include_str!("sdk/typescript.txt");

/// The generated files, with their paths.
pub(crate) fn files() -> BTreeMap<PathBuf, String> {
    let python = PYTHON.replace("{{TYPES}}\n", &python_types());
    let typescript = TYPESCRIPT
        .replace("{{TYPES}}\n", &typescript_types())
        .replace("{{FIELDS}}", &typescript_fields());
    BTreeMap::from([
        (PathBuf::from("sdk/python/anyhook_sdk/__init__.py"), python),
        (PathBuf::from("sdk/typescript/src/index.ts"), typescript),
    ])
}

/// `tool_input` as `ToolInput`.
fn type_name(name: &str) -> String {
    let words = name.split('_').map(|word| {
        let mut letters = word.chars();
        let first = letters.next().into_iter().flat_map(char::to_uppercase);
        first.chain(letters).collect::<String>()
    });
    words.collect()
}

fn python_type(kind: MessageKind) -> String {
    match kind {
        MessageKind::Text => "str".to_owned(),
        MessageKind::Flag => "bool".to_owned(),
        MessageKind::Number => "float".to_owned(),
        MessageKind::Integer => "int".to_owned(),
        MessageKind::Texts => "List[str]".to_owned(),
        MessageKind::Words(words) => format!("Literal[\"{}\"]", words.join("\", \"")),
        MessageKind::Object => "Dict[str, Any]".to_owned(),
        MessageKind::Any => "Any".to_owned(),
        MessageKind::Type(name) => type_name(name),
        MessageKind::List(name) => format!("List[{}]", type_name(name)),
    }
}

/// The functional form: `continue` cannot be the name of a class's member.
fn python_types() -> String {
    let mut out = String::new();
    for one in MESSAGE_TYPES.iter().rev() {
        let name = type_name(one.name);
        let (required, optional): (Vec<_>, Vec<_>) =
            one.fields.iter().partition(|field| field.required);
        let is_split = !required.is_empty() && !optional.is_empty();
        if !required.is_empty() {
            let name = if is_split {
                format!("_{name}Required")
            } else {
                name.clone()
            };
            python_type_definition(&mut out, &name, &required, "");
        }
        if !optional.is_empty() {
            let name = if is_split {
                format!("_{name}Optional")
            } else {
                name.clone()
            };
            python_type_definition(&mut out, &name, &optional, "total=False");
        }
        if is_split {
            let _ = writeln!(
                out,
                "\n\nclass {name}(_{name}Required, _{name}Optional):\n    \"\"\"{}\"\"\"\n\n",
                one.about
            );
        }
    }
    out.trim_end().to_owned() + "\n\n"
}

fn python_type_definition(out: &mut String, name: &str, fields: &[&MessageField], options: &str) {
    let _ = writeln!(out, "{name} = TypedDict(\n    \"{name}\",\n    {{");
    for field in fields {
        let (key, kind) = (field.name, python_type(field.kind));
        let _ = writeln!(out, "        \"{key}\": {kind},  # {}", field.about);
    }
    let _ = writeln!(out, "    }},");
    if !options.is_empty() {
        let _ = writeln!(out, "    {options},");
    }
    let _ = writeln!(out, ")");
}

fn typescript_type(kind: MessageKind) -> String {
    match kind {
        MessageKind::Text => "string".to_owned(),
        MessageKind::Flag => "boolean".to_owned(),
        MessageKind::Number | MessageKind::Integer => "number".to_owned(),
        MessageKind::Texts => "string[]".to_owned(),
        MessageKind::Words(words) => format!("\"{}\"", words.join("\" | \"")),
        MessageKind::Object => "{ [name: string]: unknown }".to_owned(),
        MessageKind::Any => "unknown".to_owned(),
        MessageKind::Type(name) => type_name(name),
        MessageKind::List(name) => format!("{}[]", type_name(name)),
    }
}

fn typescript_types() -> String {
    let mut out = String::new();
    for one in MESSAGE_TYPES {
        let _ = writeln!(out, "/** {} */", one.about);
        let _ = writeln!(out, "export interface {} {{", type_name(one.name));
        for field in one.fields {
            let mark = if field.required { "" } else { "?" };
            let kind = typescript_type(field.kind);
            let _ = writeln!(out, "  {}{mark}: {kind}; // {}", field.name, field.about);
        }
        out.push_str("}\n\n");
    }
    out
}

/// The types again as values, because TypeScript's are gone at run time.
fn typescript_fields() -> String {
    let lines = MESSAGE_TYPES.iter().map(|one: &MessageType| {
        let fields = one.fields.iter().map(|field| {
            let kind = match field.kind {
                MessageKind::Text => "string".to_owned(),
                MessageKind::Flag => "boolean".to_owned(),
                MessageKind::Number | MessageKind::Integer => "number".to_owned(),
                MessageKind::Texts => "string[]".to_owned(),
                MessageKind::Words(words) => words.join("|"),
                MessageKind::Object => "object".to_owned(),
                MessageKind::Any => "any".to_owned(),
                MessageKind::Type(name) => name.to_owned(),
                MessageKind::List(name) => format!("{name}[]"),
            };
            let mark = if field.required { "!" } else { "" };
            format!("{}: \"{kind}{mark}\"", field.name)
        });
        let fields: Vec<String> = fields.collect();
        format!("  {}: {{ {} }},", one.name, fields.join(", "))
    });
    lines.collect::<Vec<_>>().join("\n")
}
