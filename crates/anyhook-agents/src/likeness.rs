//! What a call does where its tool's name does not say it.
//!
//! A guard names tools of the vocabulary. But agents have tools that no table
//! knows, call a tool through another one, and edit files through the shell. This
//! module finds commands, patches and paths in the input of such a call, adds the
//! canonical tools that the call amounts to, and adds the canonical keys that the
//! input lacks. It never removes anything: a guard is asked too often rather than
//! too seldom.

mod keys;

use std::borrow::Cow;

use anyhook_model::event::field;
use anyhook_model::{HookEvent, registry};
use anyhook_util::shell;
use serde_json::{Map, Value, json};

use crate::patch;
use crate::tools::{extend_new, push_new};
use keys::{
    ARGUMENT_KEYS, CODE_KEYS, COMMAND_KEYS, COMMAND_LIST_KEYS, CONTENT_KEYS, DELETE_WORDS,
    KEYBOARD_WORDS, KEYSTROKE_KEYS, LANGUAGE_KEYS, LANGUAGES, NEW_TEXT_KEYS, OLD_TEXT_KEYS,
    OUTPUT_KEYS, PASSIVE_WORDS, PATH_KEYS, PROGRAM_KEYS, RUN_WORDS, RUNNABLE_WORDS, SHELL_WORDS,
    TYPED_TEXT_KEYS, WEAK_CONTENT_KEYS, WEAK_PATH_KEYS, WRAPPER_KEYS, WRITE_WORDS,
};

/// Key of `metadata`: the keys of `tool_input` that were inferred, each with the
/// value that it replaced, or `null`.
pub(crate) const INFERRED_INPUT: &str = "inferred_input";

/// In [`INFERRED_INPUT`]: an input that is not an object, as a whole.
const WHOLE_INPUT: &str = "";

/// How deep an input is searched, lists included.
const MAX_DEPTH: usize = 5;

/// Adds to a tool call what its input shows: `tool_kinds`, and canonical keys.
pub fn complete_call(event: &mut HookEvent) {
    let is_mcp = event.mcp().is_some();
    complete_named_call(event, !is_mcp);
}

/// As [`complete_call`]. `has_own_name`: the tool's name was chosen by the agent's maker,
/// so that its words count. An MCP tool can have any name.
pub(crate) fn complete_named_call(event: &mut HookEvent, has_own_name: bool) {
    let is_about_tool = event.data.contains_key(field::TOOL_INPUT)
        || event.tool_name().is_some_and(|name| !name.is_empty());
    if !is_about_tool {
        return;
    }
    let native_name = event.native_tool_name().unwrap_or_default();
    let known = event.tool_name().and_then(registry::tool);
    let input = event.data.get(field::TOOL_INPUT).unwrap_or(&Value::Null);
    let findings = match known.map(|tool| tool.name) {
        Some("shell") => Findings::of_shell_tool(input),
        Some("file_write" | "file_edit") => Findings::of_file_tool(native_name, input),
        Some(_) => return,
        None => Findings::of_unknown_tool(native_name, has_own_name, input),
    };
    let findings = findings.with_patches(input, event.cwd.as_deref());
    let mut kinds: Vec<String> = event.tool_kinds().map(str::to_owned).collect();
    let count = kinds.len();
    if let Some(known) = known
        && kinds.is_empty()
    {
        kinds.push(known.name.to_owned());
    }
    extend_new(&mut kinds, findings.kinds().map(str::to_owned));
    let is_more = known.map_or(!kinds.is_empty(), |_| kinds.len() > count.max(1));
    findings.write_to(event);
    if is_more {
        event.data.insert(field::TOOL_KINDS.into(), json!(kinds));
    }
}

/// The event with the input that the agent sent.
pub(crate) fn without_inferred(event: &HookEvent) -> Cow<'_, HookEvent> {
    let Some(Value::Object(inferred)) = event.metadata.get(INFERRED_INPUT) else {
        return Cow::Borrowed(event);
    };
    let mut sent = event.clone();
    sent.metadata.shift_remove(INFERRED_INPUT);
    let input = sent.data.entry(field::TOOL_INPUT);
    let input = input.or_insert_with(|| json!({}));
    if let Some(whole) = inferred.get(WHOLE_INPUT) {
        input.clone_from(whole);
    } else if let Value::Object(input) = input {
        for (key, original) in inferred {
            if original.is_null() {
                input.shift_remove(key);
            } else {
                input.insert(key.clone(), original.clone());
            }
        }
    }
    Cow::Owned(sent)
}

/// The first key of a rewrite that the agent's own input does not have.
pub(crate) fn inferred_key<'a>(
    event: &HookEvent,
    rewrite: &'a Map<String, Value>,
) -> Option<&'a str> {
    let inferred = event.metadata.get(INFERRED_INPUT)?.as_object()?;
    let mut keys = rewrite.keys().map(String::as_str);
    let is_whole = inferred.contains_key(WHOLE_INPUT);
    keys.find(|key| is_whole || inferred.contains_key(*key))
}

/// What the input of a call shows.
#[derive(Debug, Default)]
struct Findings {
    runs: bool,
    writes: bool,
    deletes: bool,
    commands: Vec<String>,
    /// The program of a command, and its arguments.
    program: Option<String>,
    arguments: Vec<String>,
    /// The command under its own key lacks its arguments, which are under another.
    replaces_command: bool,
    paths: Vec<String>,
    /// Paths under a key that has other meanings too.
    weak_paths: Vec<String>,
    has_content: bool,
    has_weak_content: bool,
    content: Option<String>,
    edits: Vec<Value>,
    /// Texts that contain a patch.
    patches: Vec<String>,
    /// The files of patches.
    files: Vec<Value>,
}

impl Findings {
    fn of_shell_tool(input: &Value) -> Self {
        let mut found = Self::default();
        if let Some(Value::String(command)) = input.get("command") {
            found.commands.push(command.clone());
            if let Value::Object(map) = input {
                found.arguments = arguments_in(map);
            }
            found.take_program();
        } else {
            found.search(input, MAX_DEPTH);
            found.take_program();
            if found.commands.is_empty() {
                found.commands.extend(typed_text(input));
            }
        }
        // Whatever else is there belongs to the command.
        Self {
            runs: true,
            commands: found.commands,
            patches: found.patches,
            replaces_command: found.replaces_command,
            ..Self::default()
        }
    }

    fn of_file_tool(name: &str, input: &Value) -> Self {
        let words = words_of(name);
        let mut found = Self {
            writes: true,
            deletes: has_word(&words, DELETE_WORDS),
            ..Self::default()
        };
        let has_path = input.get("path").is_some_and(Value::is_string);
        let has_files = input.get("files").is_some_and(Value::is_array);
        if has_files {
            return found;
        }
        if !has_path || found.deletes {
            let mut all = Self::default();
            all.search(input, MAX_DEPTH);
            all.paths.append(&mut all.weak_paths);
            found.paths = all.paths;
            found.patches = all.patches;
        }
        found
    }

    fn of_unknown_tool(name: &str, has_own_name: bool, input: &Value) -> Self {
        let mut found = Self::default();
        found.search(input, MAX_DEPTH);
        found.take_program();
        let words = words_of(name);
        if found.commands.is_empty() {
            found.commands.extend(named_code(&words, input));
        }
        let words = if has_own_name { words } else { Vec::new() };
        let is_passive = has_word(&words, PASSIVE_WORDS);
        let changes_files = has_word(&words, WRITE_WORDS);
        if changes_files {
            found.paths.append(&mut found.weak_paths);
        }
        let runs_by_name = has_word(&words, SHELL_WORDS)
            || (has_word(&words, RUN_WORDS) && has_word(&words, RUNNABLE_WORDS));
        found.runs = !found.commands.is_empty() || (runs_by_name && !is_passive);
        if found.runs && found.commands.is_empty() {
            found.commands.extend(typed_text(input));
        }
        let has_content =
            found.has_content || (found.has_weak_content && (changes_files || !is_passive));
        found.writes |= !found.paths.is_empty() && (has_content || changes_files);
        found.deletes = found.writes && has_word(&words, DELETE_WORDS);
        found
    }

    /// Collects what is in a value, and in the objects and lists inside.
    fn search(&mut self, value: &Value, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        match value {
            Value::Object(map) => self.search_object(map, depth),
            Value::Array(items) => {
                if items.first().and_then(Value::as_str).is_some() {
                    self.note_patch(&texts_in(value).join("\n"));
                }
                for item in items.iter().filter(|item| !item.is_string()) {
                    self.search(item, depth);
                }
            }
            Value::String(text) => self.note_patch(text),
            _ => {}
        }
    }

    fn search_object(&mut self, map: &Map<String, Value>, depth: usize) {
        let mut old = None;
        let mut new = None;
        for (key, value) in map {
            let key = plain_key(key);
            let is = |keys: &[&str]| keys.contains(&key.as_str());
            if is(COMMAND_KEYS) {
                self.commands
                    .extend(command_text(value, is(COMMAND_LIST_KEYS)));
            }
            if is(PROGRAM_KEYS) {
                self.program = self.program.take().or_else(|| nonblank(value));
            }
            if is(OUTPUT_KEYS)
                && let Some(path) = nonblank(value)
            {
                self.writes = true;
                self.paths.insert(0, path);
            }
            if is(PATH_KEYS) {
                let paths = path_texts(value);
                let list = if is(WEAK_PATH_KEYS) {
                    &mut self.weak_paths
                } else {
                    &mut self.paths
                };
                extend_new(list, paths);
            }
            self.note_content(&key, value);
            if is(OLD_TEXT_KEYS) {
                old = value.as_str();
            }
            if is(NEW_TEXT_KEYS) {
                new = value.as_str();
            }
            match value {
                Value::String(text) => match wrapped_input(text).filter(|_| is(WRAPPER_KEYS)) {
                    Some(inner) => self.search(&inner, depth),
                    None => self.note_patch(text),
                },
                value => self.search(value, depth),
            }
        }
        if self.arguments.is_empty() {
            self.arguments = arguments_in(map);
        }
        self.commands.extend(code_in(map));
        if let (Some(old), Some(new)) = (old, new) {
            self.edits.push(json!({"old": old, "new": new}));
        }
    }

    fn note_content(&mut self, key: &str, value: &Value) {
        let is_strong = CONTENT_KEYS.contains(&key);
        let is_weak = WEAK_CONTENT_KEYS.contains(&key);
        let is_something = match value {
            Value::String(_) | Value::Object(_) => true,
            Value::Array(items) => is_strong || !items.is_empty(),
            _ => false,
        };
        if !is_something || !(is_strong || is_weak) {
            return;
        }
        self.has_content |= is_strong;
        self.has_weak_content |= is_weak;
        if let Value::String(text) = value
            && self.content.is_none()
            && !OLD_TEXT_KEYS.contains(&key)
        {
            self.content = Some(text.clone());
        }
    }

    fn note_patch(&mut self, text: &str) {
        if patch::has_mark(text) {
            push_new(&mut self.patches, text.to_owned());
        }
    }

    /// A program with its arguments is a command, also where the program is under the key
    /// of a command.
    fn take_program(&mut self) {
        if let [command] = self.commands.as_mut_slice() {
            if !self.arguments.is_empty() {
                let arguments = std::mem::take(&mut self.arguments);
                *command = if command.contains(char::is_whitespace) {
                    format!("{command} {}", shell::join(&arguments))
                } else {
                    shell::join_script(&[vec![command.clone()], arguments].concat())
                };
                self.replaces_command = true;
            }
            return;
        }
        if !self.commands.is_empty() {
            return;
        }
        let mut words: Vec<String> = self.program.take().into_iter().collect();
        words.append(&mut self.arguments);
        if !words.is_empty() {
            self.commands.push(shell::join_script(&words));
        }
    }

    /// Reads the patches, of which those in a command are relative to its folder.
    fn with_patches(mut self, input: &Value, event_cwd: Option<&str>) -> Self {
        let cwd = input.get("cwd").and_then(Value::as_str);
        let cwd = cwd.filter(|cwd| Some(*cwd) != event_cwd);
        let mut files: Vec<Value> = Vec::new();
        for command in self.commands.iter().filter(|_| self.runs) {
            if let Some(found) = patch::files_in_command(command, cwd) {
                self.writes = true;
                extend_new(&mut files, found);
            }
        }
        for text in &self.patches {
            let found = patch::files_in_command(text, cwd).unwrap_or_default();
            self.writes |= !found.is_empty();
            // A command's own text was read above.
            let is_new = |file: &Value| !files.iter().any(|known| known == file);
            let found: Vec<Value> = found.into_iter().filter(is_new).collect();
            files.extend(found);
        }
        self.files = files;
        self
    }

    fn kinds(&self) -> impl Iterator<Item = &'static str> {
        let runs = self.runs.then_some("shell");
        let [first, second] = if self.deletes || !self.files.is_empty() {
            ["file_edit", "file_write"]
        } else {
            ["file_write", "file_edit"]
        };
        let writes = [first, second].into_iter().filter(|_| self.writes);
        runs.into_iter().chain(writes)
    }

    /// Adds the canonical keys that the event's input lacks.
    fn write_to(self, event: &mut HookEvent) {
        let mut draft = InputDraft::new(event);
        if self.runs && !self.commands.is_empty() {
            let command = json!(self.commands.join("\n"));
            if self.replaces_command {
                draft.replace("command", command);
            } else {
                draft.add("command", command);
            }
            if self.commands.len() > 1 {
                draft.add("commands", json!(self.commands));
            }
        }
        if self.writes {
            let from_patch = !self.files.is_empty();
            let files = if from_patch {
                self.files
            } else if self.paths.len() > 1 || self.deletes {
                let operation = if self.deletes { "delete" } else { "update" };
                let file = |path: &String| json!({"path": path, "operation": operation});
                self.paths.iter().map(file).collect()
            } else {
                Vec::new()
            };
            if let [file] = files.as_slice() {
                for key in ["path", "edits", "content"] {
                    if let Some(value) = file.get(key) {
                        draft.add(key, value.clone());
                    }
                }
            }
            if !files.is_empty() {
                draft.add("files", Value::Array(files));
            } else if let Some(path) = self.paths.first() {
                draft.add("path", json!(path));
                if !self.edits.is_empty() {
                    draft.add("edits", Value::Array(self.edits));
                } else if let Some(content) = self.content {
                    draft.add("content", json!(content));
                }
            }
        }
        draft.write_to(event);
    }
}

/// The input of a call while keys are added to it.
struct InputDraft {
    input: Map<String, Value>,
    inferred: Map<String, Value>,
}

impl InputDraft {
    fn new(event: &HookEvent) -> Self {
        let inferred = match event.metadata.get(INFERRED_INPUT) {
            Some(Value::Object(inferred)) => inferred.clone(),
            _ => Map::new(),
        };
        let input = event.tool_input().cloned().unwrap_or_default();
        Self { input, inferred }
    }

    /// A value of the same type that is already there stays.
    fn add(&mut self, key: &str, value: Value) {
        let here = self.input.get(key);
        let is_there = here.is_some_and(|here| here.is_string() == value.is_string());
        if !is_there {
            self.replace(key, value);
        }
    }

    fn replace(&mut self, key: &str, value: Value) {
        let original = self.input.insert(key.to_owned(), value);
        let original = original.unwrap_or_default();
        self.inferred.entry(key).or_insert(original);
    }

    fn write_to(mut self, event: &mut HookEvent) {
        if self.inferred.is_empty() {
            return;
        }
        let data = &mut event.data;
        let before = data.insert(field::TOOL_INPUT.into(), Value::Object(self.input));
        if let Some(whole) = before.filter(|before| !before.is_object()) {
            self.inferred.insert(WHOLE_INPUT.into(), whole);
        }
        let inferred = Value::Object(self.inferred);
        event.metadata.insert(INFERRED_INPUT.into(), inferred);
    }
}

/// A key in small letters, without separators.
fn plain_key(key: &str) -> String {
    let letters = key.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}

/// The words of a tool's name: `WriteShellStdin`, `write_shell_stdin` and
/// `write-shell-stdin` have the same.
fn words_of(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for letter in name.chars() {
        let starts = !before.is_alphanumeric()
            || (letter.is_uppercase() && !before.is_uppercase())
            || letter.is_numeric() != before.is_numeric();
        if letter.is_alphanumeric() {
            match words.last_mut().filter(|_| !starts) {
                Some(word) => word.extend(letter.to_lowercase()),
                None => words.push(letter.to_lowercase().collect()),
            }
        }
        before = letter;
    }
    words
}

fn has_word(words: &[String], wanted: &[&str]) -> bool {
    words.iter().any(|word| wanted.contains(&word.as_str()))
}

fn nonblank(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    (!text.trim().is_empty()).then(|| text.to_owned())
}

/// The texts of a list.
fn texts_in(value: &Value) -> Vec<&str> {
    let items = value.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).collect()
}

/// The commands in a value: a text, the words of one command, or several.
fn command_text(value: &Value, is_several: bool) -> Vec<String> {
    let texts = texts_in(value).into_iter().map(str::to_owned);
    let texts: Vec<String> = texts.collect();
    let is_line = |text: &String| text.trim().contains(char::is_whitespace);
    match nonblank(value) {
        Some(text) => vec![text],
        None if texts.is_empty() => Vec::new(),
        None if is_several || texts.len() == 1 => texts,
        // Lines rather than the words of one command, unless the program's path has a space.
        None if texts.first().is_some_and(is_line) => {
            let words = shell::join_script(&texts);
            texts.into_iter().chain([words]).collect()
        }
        None => vec![shell::join_script(&texts)],
    }
}

/// The arguments that an object has for its program.
fn arguments_in(map: &Map<String, Value>) -> Vec<String> {
    let is_arguments = |key: &str| ARGUMENT_KEYS.contains(&plain_key(key).as_str());
    let lists = map.iter().filter(|(key, _)| is_arguments(key));
    let mut texts = lists.map(|(_, value)| texts_in(value));
    let first = texts.find(|texts| !texts.is_empty()).unwrap_or_default();
    first.into_iter().map(str::to_owned).collect()
}

/// Code in an object that names its language, as a command.
fn code_in(map: &Map<String, Value>) -> Option<String> {
    let under = |keys: &[&str]| {
        let mut members = map.iter();
        let found = members.find(|(key, _)| keys.contains(&plain_key(key).as_str()))?;
        nonblank(found.1)
    };
    let language = under(LANGUAGE_KEYS)?.trim().to_ascii_lowercase();
    let (_, runner) = LANGUAGES.iter().find(|(name, _)| *name == language)?;
    Some(run_by(runner, under(CODE_KEYS)?))
}

/// Code as a shell runs it.
fn run_by(runner: &[&str], code: String) -> String {
    if runner.is_empty() {
        return code;
    }
    let words = runner.iter().map(|word| (*word).to_owned()).chain([code]);
    shell::join_script(&words.collect::<Vec<_>>())
}

/// Code for a tool whose name says the language (`execute_python`), or keys typed into a
/// shell (`terminal_send_keys`), as commands. The input decides as well, so this also
/// holds for MCP tools, whose names alone mean nothing.
fn named_code(words: &[String], input: &Value) -> Vec<String> {
    let Value::Object(map) = input else {
        return Vec::new();
    };
    if has_word(words, PASSIVE_WORDS) {
        return Vec::new();
    }
    // A node is more often a part of a document than the interpreter.
    let language = LANGUAGES
        .iter()
        .find(|(name, _)| *name != "node" && words.iter().any(|word| word == name));
    let texts = |keys: &[&str]| -> Vec<String> {
        let is_named = |key: &str| keys.contains(&plain_key(key).as_str());
        let members = map.iter().filter(|(key, _)| is_named(key));
        members
            .flat_map(|(_, value)| command_text(value, false))
            .collect()
    };
    if let Some((_, runner)) = language {
        let codes = texts(CODE_KEYS).into_iter();
        return codes.map(|code| run_by(runner, code)).collect();
    }
    if has_word(words, KEYBOARD_WORDS) {
        return texts(KEYSTROKE_KEYS);
    }
    Vec::new()
}

/// What is typed into a tool that runs it.
fn typed_text(input: &Value) -> Vec<String> {
    let texts = match input {
        Value::Object(map) => {
            let typed = map
                .iter()
                .filter(|(key, _)| TYPED_TEXT_KEYS.contains(&plain_key(key).as_str()));
            return typed
                .flat_map(|(_, value)| command_text(value, false))
                .collect();
        }
        other => command_text(other, false),
    };
    texts.into_iter().collect()
}

/// Paths of files, not addresses of pages.
fn path_texts(value: &Value) -> Vec<String> {
    let one = value.as_str().into_iter();
    let all = one.chain(texts_in(value)).map(str::trim);
    let is_path = |text: &&str| {
        let is_address = text.starts_with("http://") || text.starts_with("https://");
        !text.is_empty() && !text.contains('\n') && !is_address
    };
    let local = |text: &str| text.strip_prefix("file://").unwrap_or(text).to_owned();
    all.filter(is_path).map(local).collect()
}

/// The object or list in a text.
fn wrapped_input(text: &str) -> Option<Value> {
    let text = text.trim_start();
    text.starts_with(['{', '['])
        .then(|| serde_json::from_str(text).ok())?
}
