//! Tool names and tool inputs, both ways.
//!
//! A tool of the vocabulary gets canonical keys; keys that the vocabulary does
//! not have stay under their own names. Other tools pass as they are.

use serde_json::{Map, Value, json};

use crate::codec;
use crate::patch;
use crate::spec::{Codec, Edits, Str, Tool};
use crate::{Adapter, pointer};

impl Adapter {
    /// The row for a native tool name. With an input, `when` decides between
    /// several rows of one name.
    pub fn tool_by_native(
        &self,
        native: &str,
        input: Option<&Map<String, Value>>,
    ) -> Option<&Tool> {
        let mut rows = self.spec.tools.iter().filter(|tool| {
            tool.native == native || tool.aliases.iter().any(|alias| alias == native)
        });
        match input {
            Some(input) => rows.find(|tool| {
                tool.when
                    .iter()
                    .all(|(key, value)| input.get(key) == Some(value))
            }),
            None => rows.next(),
        }
    }

    /// The row by which a canonical tool is written.
    pub fn tool_by_canonical(&self, canonical: &str) -> Option<&Tool> {
        let writable = || self.spec.tools.iter().filter(|tool| !tool.read_only);
        writable()
            .find(|tool| tool.is == canonical)
            .or_else(|| writable().find(|tool| tool.also.iter().any(|also| also == canonical)))
    }

    /// Every native name under which a canonical tool may be called, the one
    /// that is written first.
    pub fn native_names(&self, canonical: &str) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        let rows =
            self.spec.tools.iter().filter(|tool| {
                tool.is == canonical || tool.also.iter().any(|also| also == canonical)
            });
        for tool in rows {
            for name in std::iter::once(&tool.native).chain(&tool.aliases) {
                if !names.contains(&name.as_ref()) {
                    names.push(name);
                }
            }
        }
        names
    }

    /// The combined name of an MCP tool, where the agent has one.
    pub fn mcp_name(&self, server: &str, tool: &str) -> Option<String> {
        let names = &self.spec.mcp;
        if names.format.is_empty() {
            return None;
        }
        Some(fill_mcp(&names.format, &self.mcp_server(server), tool))
    }

    /// A server's name as it stands in combined names.
    pub fn mcp_server(&self, server: &str) -> String {
        server
            .chars()
            .map(|letter| {
                if self.spec.mcp.server_replaces.contains(letter) {
                    '_'
                } else {
                    letter
                }
            })
            .collect()
    }

    /// Server and tool of a combined name. Agents whose names do not tell them
    /// apart give the first reading that their format allows.
    pub fn parse_mcp(&self, native: &str) -> Option<(String, String)> {
        let format = self.spec.mcp.format.as_ref();
        let (before_first, rest) = format.split_once('{')?;
        let (first, rest) = rest.split_once('}')?;
        let inner = native.strip_prefix(before_first)?;
        let Some((separator, rest)) = rest.split_once('{') else {
            return (first == "tool" && !inner.is_empty())
                .then(|| (String::new(), inner.to_owned()));
        };
        let (_, after) = rest.split_once('}')?;
        let inner = inner.strip_suffix(after)?;
        let (left, right) = inner.split_once(separator)?;
        if left.is_empty() || right.is_empty() {
            return None;
        }
        let (server, tool) = if first == "server" {
            (left, right)
        } else {
            (right, left)
        };
        Some((server.to_owned(), tool.to_owned()))
    }
}

/// Fills `{server}` and `{tool}`.
pub(crate) fn fill_mcp(template: &str, server: &str, tool: &str) -> String {
    template.replace("{server}", server).replace("{tool}", tool)
}

/// A native input with canonical keys.
pub fn decode_input(tool: &Tool, native: &Map<String, Value>) -> Map<String, Value> {
    let mut out = Map::new();
    let mut edit = Map::new();
    for (name, value) in native {
        if tool.when.get(name) == Some(value) {
            // What chose the row is said by the tool's canonical name.
        } else if let Some((key, place)) = tool.keys.iter().find(|(_, place)| place.at == *name) {
            match place.codec.get(value) {
                Some(canonical) => {
                    out.insert(key.to_string(), canonical);
                    if let Some(list) = codec::listed(place.codec, value) {
                        out.insert(format!("{key}s"), list);
                    }
                }
                None => {
                    out.insert(name.clone(), value.clone());
                }
            }
        } else if let Some(part) = tool.edits.as_ref().and_then(|edits| edit_part(edits, name)) {
            match part {
                EditPart::List => {
                    let edits = tool.edits.as_ref();
                    out.extend(
                        edits
                            .and_then(|edits| decode_edits(edits, value))
                            .unwrap_or_default(),
                    );
                }
                EditPart::Key(key) => {
                    edit.insert(key.into(), value.clone());
                }
            }
        } else if tool.patch.as_deref() == Some(name.as_str()) {
            out.insert("patch".into(), value.clone());
            let files = patch::files(value.as_str().unwrap_or_default());
            if let [file] = files.as_slice() {
                for key in ["path", "edits", "content"] {
                    if let Some(value) = file.get(key) {
                        out.insert(key.into(), value.clone());
                    }
                }
            }
            out.insert("files".into(), Value::Array(files));
        } else if !tool.keys.contains_key(name.as_str()) {
            out.insert(name.clone(), value.clone());
        }
    }
    // A native key with a canonical name, where the table expects another: the
    // agent may call it so after all, and a guard must not miss it.
    for (name, value) in native {
        if tool.keys.contains_key(name.as_str()) && !out.contains_key(name) {
            out.insert(name.clone(), value.clone());
        }
    }
    if !edit.is_empty() {
        out.insert("edits".into(), json!([edit]));
    }
    out
}

enum EditPart {
    List,
    Key(&'static str),
}

fn edit_part(edits: &Edits, name: &str) -> Option<EditPart> {
    match &edits.list {
        Some(list) => (list == name).then_some(EditPart::List),
        None => edit_keys(edits)
            .find(|(native, _)| *native == name)
            .map(|(_, key)| EditPart::Key(key)),
    }
}

fn edit_keys(edits: &Edits) -> impl Iterator<Item = (&str, &'static str)> {
    [(edits.old.as_ref(), "old"), (edits.new.as_ref(), "new")]
        .into_iter()
        .chain(
            edits
                .replace_all
                .as_deref()
                .map(|native| (native, "replace_all")),
        )
        .chain(edits.path.as_deref().map(|native| (native, "path")))
}

/// A list of edits; by file where each names its own.
fn decode_edits(spec: &Edits, native: &Value) -> Option<Map<String, Value>> {
    let mut edits = Vec::new();
    for item in native.as_array()? {
        let mut edit = Map::new();
        for (name, value) in item.as_object()? {
            let key = edit_keys(spec)
                .find(|(native, _)| native == name)
                .map(|(_, key)| key);
            edit.insert(key.unwrap_or(name).to_owned(), value.clone());
        }
        edits.push(edit);
    }
    let mut out = Map::new();
    if spec.path.is_some() {
        let mut files: Vec<Map<String, Value>> = Vec::new();
        for mut edit in edits.clone() {
            let path = edit.shift_remove("path").unwrap_or_default();
            if let Some(file) = files
                .iter_mut()
                .find(|file| file.get("path") == Some(&path))
            {
                if let Some(Value::Array(list)) = file.get_mut("edits") {
                    list.push(Value::Object(edit));
                }
            } else {
                let mut file = Map::new();
                file.insert("path".into(), path);
                file.insert("operation".into(), json!("update"));
                file.insert("edits".into(), json!([edit]));
                files.push(file);
            }
        }
        out.insert("files".into(), json!(files));
    }
    out.insert("edits".into(), json!(edits));
    Some(out)
}

/// A canonical input with the tool's own keys.
pub fn encode_input(tool: &Tool, canonical: &Map<String, Value>) -> Map<String, Value> {
    let mut out = tool.when.clone();
    let stands_for_several = |codec: Codec| matches!(codec, Codec::Lines | Codec::Paths);
    let lists: Vec<Str> = tool
        .keys
        .iter()
        .filter(|(_, place)| stands_for_several(place.codec))
        .map(|(key, _)| Str::from(format!("{key}s")))
        .collect();
    for (name, value) in canonical {
        if lists.iter().any(|list| list == name) {
            continue;
        }
        if let Some(place) = tool.keys.get(name.as_str()) {
            let whole = stands_for_several(place.codec)
                .then(|| canonical.get(&format!("{name}s")))
                .flatten();
            match listed_again(place.codec, value, whole).or_else(|| place.codec.put(value)) {
                Some(native) => {
                    out.insert(place.at.to_string(), native);
                }
                None => {
                    out.insert(name.clone(), value.clone());
                }
            }
        } else if name == "edits" && tool.edits.is_some() {
            if let Some(edits) = &tool.edits {
                encode_edits(edits, value, &mut out);
            }
        } else if let Some(patch_key) = &tool.patch {
            match name.as_str() {
                "patch" => {
                    out.insert(patch_key.to_string(), value.clone());
                }
                "files" | "path" | "edits" | "content" => {}
                _ => {
                    out.insert(name.clone(), value.clone());
                }
            }
        } else if name == "files"
            && tool
                .edits
                .as_ref()
                .is_some_and(|edits| edits.path.is_some())
        {
            // The edits say their files themselves.
        } else {
            out.insert(name.clone(), value.clone());
        }
    }
    if let Some(patch_key) = &tool.patch
        && !out.contains_key(patch_key.as_ref())
    {
        let files = canonical_files(canonical);
        out.insert(patch_key.to_string(), Value::String(patch::write(&files)));
    }
    out
}

fn listed_again(codec: Codec, value: &Value, whole: Option<&Value>) -> Option<Value> {
    let items = whole?.as_array()?;
    let texts: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
    match codec {
        Codec::Lines => (texts.join("\n") == value.as_str()?).then(|| json!(items)),
        Codec::Paths => (texts.first().copied() == value.as_str())
            .then(|| Value::Array(texts.iter().map(|path| json!({ "path": path })).collect())),
        _ => None,
    }
}

fn encode_edits(spec: &Edits, edits: &Value, out: &mut Map<String, Value>) {
    let native = |edit: &Value| -> Map<String, Value> {
        let mut item = Map::new();
        for (key, value) in edit.as_object().into_iter().flatten() {
            let name = edit_keys(spec)
                .find(|(_, canonical)| canonical == key)
                .map(|(native, _)| native);
            item.insert(name.unwrap_or(key).to_owned(), value.clone());
        }
        item
    };
    let items = edits.as_array().map(Vec::as_slice).unwrap_or_default();
    match &spec.list {
        Some(list) => {
            let items: Vec<Value> = items
                .iter()
                .map(|edit| Value::Object(native(edit)))
                .collect();
            out.insert(list.to_string(), Value::Array(items));
        }
        None => out.extend(items.first().map(native).unwrap_or_default()),
    }
}

/// The files that a write, edit or patch touches, each `{path, operation, ...}`.
pub fn canonical_files(input: &Map<String, Value>) -> Vec<Value> {
    if let Some(Value::Array(files)) = input.get("files")
        && !files.is_empty()
    {
        return files.clone();
    }
    let Some(path) = input.get("path") else {
        return Vec::new();
    };
    let mut file = Map::new();
    file.insert("path".into(), path.clone());
    if let Some(content) = input.get("content") {
        file.insert("operation".into(), json!("create"));
        file.insert("content".into(), content.clone());
    } else {
        file.insert("operation".into(), json!("update"));
        file.insert(
            "edits".into(),
            input.get("edits").cloned().unwrap_or_else(|| json!([])),
        );
    }
    vec![Value::Object(file)]
}

/// `input` changed by a rewrite: its keys replace, `null` removes, others stay.
pub fn rewritten(input: &Map<String, Value>, rewrite: &Map<String, Value>) -> Map<String, Value> {
    let mut value = Value::Object(input.clone());
    if let Value::Object(map) = &mut value {
        // A list that stands beside a changed value says the old thing.
        for key in rewrite.keys() {
            map.shift_remove(&format!("{key}s"));
        }
        if rewrite
            .keys()
            .any(|key| matches!(key.as_str(), "path" | "edits" | "content" | "files"))
        {
            map.shift_remove("patch");
            if !rewrite.contains_key("files") {
                map.shift_remove("files");
            }
        }
        if rewrite.contains_key("patch") {
            for key in ["files", "path", "edits", "content"] {
                map.shift_remove(key);
            }
        }
        for (key, new) in rewrite {
            if new.is_null() {
                map.shift_remove(key);
            } else {
                map.insert(key.clone(), new.clone());
            }
        }
    }
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// The keys of a native rewrite that differ from the native original.
pub fn changed(original: &Map<String, Value>, new: &Map<String, Value>) -> Map<String, Value> {
    new.iter()
        .filter(|(key, value)| original.get(*key) != Some(value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// The keys of the original that the new one has no more.
pub fn removed<'a>(
    original: &'a Map<String, Value>,
    new: &'a Map<String, Value>,
) -> impl Iterator<Item = &'a str> {
    original
        .keys()
        .map(String::as_str)
        .filter(|key| !new.contains_key(*key))
}

/// The value under a JSON pointer as an object.
pub(crate) fn object_at<'a>(value: &'a Value, at: &str) -> Option<&'a Map<String, Value>> {
    pointer::get(value, at)?.as_object()
}
