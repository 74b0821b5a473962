//! Tool names and tool inputs, in both directions.
//!
//! A known tool gets canonical keys; keys without a canonical name keep their
//! native name. Unknown tools are passed on unchanged.

use serde_json::{Map, Value, json};

use crate::codec;
use crate::patch;
use crate::spec::{Codec, EditKeys, ToolSpec};
use crate::{Adapter, pointer};

impl ToolSpec {
    /// The canonical tools that this native tool does.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        let kinds = std::iter::once(&self.is).chain(&self.also);
        kinds.map(AsRef::as_ref)
    }

    /// Its native name, then its aliases.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names = std::iter::once(&self.native).chain(&self.aliases);
        names.map(AsRef::as_ref)
    }
}

/// Appends an item that the list does not have yet.
pub(crate) fn push_new<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

pub(crate) fn extend_new<T: PartialEq>(list: &mut Vec<T>, items: impl IntoIterator<Item = T>) {
    for item in items {
        push_new(list, item);
    }
}

impl Adapter {
    /// The row for a native tool name. With an input, `when` decides between
    /// several rows of one name.
    pub fn tool_by_native(
        &self,
        native: &str,
        input: Option<&Map<String, Value>>,
    ) -> Option<&ToolSpec> {
        let rows = self.spec.tools.iter();
        let mut rows = rows.filter(|tool| tool.names().any(|name| name == native));
        match input {
            Some(input) => rows.find(|tool| {
                tool.when
                    .iter()
                    .all(|(key, value)| input.get(key) == Some(value))
            }),
            None => rows.next(),
        }
    }

    /// The canonical tools that a native one may be: a guard of a tool that does
    /// several things holds for all of them.
    pub(crate) fn kinds_named(&self, native: &str) -> Vec<&str> {
        let mut kinds: Vec<&str> = Vec::new();
        for tool in &self.spec.tools {
            if tool.names().any(|name| name == native) {
                extend_new(&mut kinds, tool.kinds());
            }
        }
        kinds
    }

    /// The row by which a canonical tool is written.
    pub fn tool_by_canonical(&self, canonical: &str) -> Option<&ToolSpec> {
        let writable = || self.spec.tools.iter().filter(|tool| !tool.read_only);
        writable()
            .find(|tool| tool.is == canonical)
            .or_else(|| writable().find(|tool| tool.also.iter().any(|also| also == canonical)))
    }

    /// Whether calls of this tool have a canonical key of the input, as far as the
    /// table says: encoding passes on every key.
    pub fn tool_has_key(&self, tool: &ToolSpec, key: &str) -> bool {
        let is_file_key = || matches!(key, "path" | "content" | "edits" | "files");
        let is_renamed = || {
            let input = Map::from_iter([(key.to_owned(), json!("value"))]);
            let written = self.quirks.encode_tool(&tool.native, &input);
            written.is_some_and(|written| !written.contains_key(key))
        };
        tool.keys.contains_key(key)
            || (key == "edits" && tool.edits.is_some())
            || (tool.patch.is_some() && is_file_key())
            || is_renamed()
    }

    /// Every native name under which a canonical tool may be called, the one
    /// that is written first.
    pub fn native_names(&self, canonical: &str) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        let rows = self.spec.tools.iter();
        for tool in rows.filter(|tool| tool.kinds().any(|kind| kind == canonical)) {
            extend_new(&mut names, tool.names());
        }
        names
    }

    /// The combined name of an MCP tool, where the agent has one.
    pub fn mcp_name(&self, server: &str, tool: &str) -> Option<String> {
        let format = &self.spec.mcp.format;
        (!format.is_empty()).then(|| fill_mcp(format, &self.mcp_server(server), tool))
    }

    /// A server's name as it is in combined names.
    pub fn mcp_server(&self, server: &str) -> String {
        server.replace(|letter| self.spec.mcp.server_replaces.contains(letter), "_")
    }

    /// Server and tool of a combined name. Agents whose names do not tell them
    /// apart give the first reading that their format allows.
    pub(crate) fn parse_mcp(&self, native: &str) -> Option<(String, String)> {
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
pub(crate) fn decode_input(tool: &ToolSpec, native: &Map<String, Value>) -> Map<String, Value> {
    let mut out = Map::new();
    let mut edit = Map::new();
    let list_of_edits = |name: &str| {
        let edits = tool.edits.as_ref();
        edits.filter(|edits| edits.list.as_deref() == Some(name))
    };
    let single_edit = tool.edits.iter().filter(|edits| edits.list.is_none());
    let edit_keys: Vec<_> = single_edit.flat_map(edit_keys).collect();
    for (name, value) in native {
        if tool.when.get(name) == Some(value) {
            // Implied by the row, and so by the tool's canonical name.
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
        } else if let Some(edits) = list_of_edits(name) {
            out.extend(decode_edits(edits, value).unwrap_or_default());
        } else if let Some((_, key)) = edit_keys.iter().find(|(native, _)| native == name) {
            edit.insert((*key).to_owned(), value.clone());
        } else if tool.patch.as_deref() == Some(name.as_str()) {
            out.insert("patch".into(), value.clone());
            patch::insert_files(value.as_str().unwrap_or_default(), &mut out);
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

/// Native and canonical key of each part of an edit.
fn edit_keys(edits: &EditKeys) -> impl Iterator<Item = (&str, &'static str)> {
    let keys = [
        (Some(edits.old.as_ref()), "old"),
        (Some(edits.new.as_ref()), "new"),
        (edits.replace_all.as_deref(), "replace_all"),
        (edits.path.as_deref(), "path"),
    ];
    let keys = keys.into_iter();
    keys.filter_map(|(native, canonical)| Some((native?, canonical)))
}

/// A list of edits; by file where each names its own.
fn decode_edits(spec: &EditKeys, native: &Value) -> Option<Map<String, Value>> {
    let mut edits = Vec::new();
    for item in native.as_array()? {
        let mut edit = Map::new();
        for (name, value) in item.as_object()? {
            let known = edit_keys(spec).find(|(native, _)| native == name);
            let key = known.map_or(name.as_str(), |(_, key)| key);
            edit.insert(key.to_owned(), value.clone());
        }
        edits.push(edit);
    }
    let mut out = Map::new();
    if spec.path.is_some() {
        let mut files: Vec<Value> = Vec::new();
        for mut edit in edits.clone() {
            let path = edit.shift_remove("path").unwrap_or_default();
            let mut known = files.iter_mut();
            match known.find(|file| file.get("path") == Some(&path)) {
                Some(file) => {
                    if let Some(Value::Array(list)) = file.get_mut("edits") {
                        list.push(Value::Object(edit));
                    }
                }
                None => files.push(json!({"path": path, "operation": "update", "edits": [edit]})),
            }
        }
        out.insert("files".into(), json!(files));
    }
    out.insert("edits".into(), json!(edits));
    Some(out)
}

/// A canonical input with the tool's own keys.
pub(crate) fn encode_input(tool: &ToolSpec, canonical: &Map<String, Value>) -> Map<String, Value> {
    let mut out = tool.when.clone();
    let stands_for_several = |codec: Codec| matches!(codec, Codec::Lines | Codec::Paths);
    let is_list = |name: &str| {
        let place = name.strip_suffix('s').and_then(|key| tool.keys.get(key));
        place.is_some_and(|place| stands_for_several(place.codec))
    };
    for (name, value) in canonical.iter().filter(|(name, _)| !is_list(name)) {
        let (key, native) = if let Some(place) = tool.keys.get(name.as_str()) {
            let whole = stands_for_several(place.codec)
                .then(|| canonical.get(&format!("{name}s")))
                .flatten();
            match listed_again(place.codec, value, whole).or_else(|| place.codec.put(value)) {
                Some(native) => (place.at.as_ref(), native),
                None => (name.as_str(), value.clone()),
            }
        } else {
            let key = match (name.as_str(), &tool.edits, &tool.patch) {
                ("edits", Some(edits), _) => {
                    encode_edits(edits, value, &mut out);
                    continue;
                }
                ("patch", _, Some(patch_key)) => patch_key,
                ("files" | "path" | "edits" | "content", _, Some(_)) => continue,
                // Each edit names its file.
                ("files", Some(edits), None) if edits.path.is_some() => continue,
                (name, ..) => name,
            };
            (key, value.clone())
        };
        out.insert(key.to_owned(), native);
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

fn encode_edits(spec: &EditKeys, edits: &Value, out: &mut Map<String, Value>) {
    let native = |edit: &Value| -> Map<String, Value> {
        let mut item = Map::new();
        for (key, value) in edit.as_object().into_iter().flatten() {
            let known = edit_keys(spec).find(|(_, canonical)| canonical == key);
            let name = known.map_or(key.as_str(), |(native, _)| native);
            item.insert(name.to_owned(), value.clone());
        }
        item
    };
    let mut items = edits.as_array().into_iter().flatten().map(native);
    match &spec.list {
        Some(list) => {
            let items = items.map(Value::Object).collect();
            out.insert(list.to_string(), Value::Array(items));
        }
        None => out.extend(items.next().unwrap_or_default()),
    }
}

/// The files that a write, edit or patch touches, each `{path, operation, ...}`.
pub(crate) fn canonical_files(input: &Map<String, Value>) -> Vec<Value> {
    if let Some(Value::Array(files)) = input.get("files")
        && !files.is_empty()
    {
        return files.clone();
    }
    let Some(path) = input.get("path") else {
        return Vec::new();
    };
    vec![if let Some(content) = input.get("content") {
        json!({"path": path, "operation": "create", "content": content})
    } else {
        let edits = input.get("edits").cloned().unwrap_or_else(|| json!([]));
        json!({"path": path, "operation": "update", "edits": edits})
    }]
}

/// `input` changed by a rewrite: its keys replace, `null` removes, others stay.
pub fn rewritten(input: &Map<String, Value>, rewrite: &Map<String, Value>) -> Map<String, Value> {
    let mut map = input.clone();
    // The list of a changed value is outdated.
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
    map
}

/// The keys of a native rewrite that differ from the native original.
pub fn changed(original: &Map<String, Value>, new: &Map<String, Value>) -> Map<String, Value> {
    new.iter()
        .filter(|(key, value)| original.get(*key) != Some(value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// The keys of the original that the new one lacks.
pub fn removed<'a>(
    original: &'a Map<String, Value>,
    new: &'a Map<String, Value>,
) -> impl Iterator<Item = &'a str> {
    let keys = original.keys().map(String::as_str);
    keys.filter(|key| !new.contains_key(*key))
}

/// The value under a JSON pointer as an object.
pub(crate) fn object_at<'a>(value: &'a Value, at: &str) -> Option<&'a Map<String, Value>> {
    pointer::get(value, at)?.as_object()
}
