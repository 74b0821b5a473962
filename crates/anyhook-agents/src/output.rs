//! Writes a config document as the files that the agent reads.
//!
//! Most agents read one JSON file, some one script per event or a program. A
//! script or program has the document in a comment, so that it can be read back.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::Adapter;
use crate::quirks::BridgeCall;
use crate::spec::{ConfigShape, EventSpec};

/// Precedes the document in a generated script or program.
pub(crate) const DOCUMENT_MARKER: &str = "anyhook-config: ";

/// A file to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeFile {
    /// Its name, where the agent reads a folder of several.
    pub name: Option<String>,
    pub text: String,
    pub executable: bool,
}

impl Adapter {
    /// The files for a document of this agent.
    pub fn files(&self, document: &Value, variant: Option<&str>) -> Vec<NativeFile> {
        let text = match self.config(variant).shape {
            ConfigShape::Scripts => return scripts(document, self.quirks.deny_pattern()),
            ConfigShape::Single if document.is_array() => {
                return self.single_files(document, variant);
            }
            ConfigShape::Plugin => {
                let text = self.quirks.plugin_text(document);
                text.unwrap_or_else(|| pretty(document))
            }
            _ => self.quirks.config_text(pretty(document)),
        };
        vec![NativeFile {
            name: None,
            text,
            executable: false,
        }]
    }

    /// One file per hook, named after it, with the ending that the agent reads.
    fn single_files(&self, document: &Value, variant: Option<&str>) -> Vec<NativeFile> {
        let mut files = self.spec.files.iter();
        let file = files.find(|file| file.variant.as_deref() == variant);
        let ending = file
            .and_then(|file| file.path.rsplit_once('*'))
            .map_or("", |(_, ending)| ending);
        let items = document.as_array().into_iter().flatten().enumerate();
        let file = |(index, item): (usize, &Value)| {
            let name = item.get("name").and_then(Value::as_str).unwrap_or("hook");
            let stem = name.replace(|letter: char| !letter.is_alphanumeric(), "-");
            let stem = stem.to_ascii_lowercase();
            NativeFile {
                name: Some(format!("{stem}-{}{ending}", index + 1)),
                text: self.quirks.config_text(pretty(item)),
                executable: false,
            }
        };
        items.map(file).collect()
    }

    /// Whether slashes in this agent's JSON strings must be written as `\/`.
    pub fn escapes_slashes(&self) -> bool {
        self.quirks.config_text("\"/\"".to_owned()) != "\"/\""
    }

    /// The program through which this agent calls the bridge, for agents that load
    /// one. It runs `command`, for at most `seconds`.
    pub fn bridge_plugin(&self, call: &BridgeCall<'_>) -> Option<String> {
        self.quirks.bridge_plugin(call)
    }

    /// The payload as a converted hook reads it.
    #[must_use]
    pub fn payload_of_program(&self, mut payload: Value) -> Value {
        self.quirks.payload_of_program(&mut payload);
        payload
    }

    /// The answer of a converted hook as the agent gets it.
    pub fn answer_of_program(&self, stdout: &str) -> String {
        let answer = serde_json::from_str(stdout).ok();
        let answer = answer.and_then(|answer| self.quirks.answer_of_program(&answer));
        answer.map_or_else(|| stdout.to_owned(), |answer| answer.to_string())
    }

    /// The document of a folder of scripts, from their names and texts.
    pub fn document_of_scripts<'a>(
        &self,
        scripts: impl Iterator<Item = (&'a str, &'a str, &'a str)>,
    ) -> Value {
        let mut map = Map::new();
        // Scripts for Windows alone come last: each joins the script of the same event.
        let (windows, others): (Vec<_>, Vec<_>) =
            scripts.partition(|(name, ..)| is_for_windows(name));
        for (name, path, text) in others.into_iter().chain(windows) {
            let Some(event) = self.event_of_script(name) else {
                continue;
            };
            let list = map.entry(event.native.as_ref());
            let list = list.or_insert_with(|| json!([]));
            let Value::Array(list) = list else { continue };
            if is_for_windows(name) {
                match list.first_mut().and_then(Value::as_object_mut) {
                    Some(entry) => drop(entry.insert(WINDOWS_KEY.to_owned(), json!(path))),
                    None => list.push(json!({ WINDOWS_KEY: path })),
                }
                continue;
            }
            match marked(text) {
                Some(Value::Array(entries)) => list.extend(entries),
                _ => list.push(json!({ "command": path })),
            }
        }
        Value::Object(map)
    }

    /// Whether a file in the folder of this agent's scripts is the script of an event.
    pub fn is_event_script(&self, name: &str) -> bool {
        self.event_of_script(name).is_some()
    }

    fn event_of_script(&self, name: &str) -> Option<&EventSpec> {
        let stem = name.split('.').next().unwrap_or(name);
        let mut events = self.spec.events.iter();
        events.find(|event| event.native.eq_ignore_ascii_case(stem))
    }
}

/// The key of the script for Windows in the document of a folder of scripts.
const WINDOWS_KEY: &str = "windows";

fn is_for_windows(name: &str) -> bool {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| ending.eq_ignore_ascii_case("ps1"))
}

/// The document that a generated script or program carries.
pub fn marked(text: &str) -> Option<Value> {
    let mut lines = text.lines();
    let (_, line) = lines.find_map(|line| line.split_once(DOCUMENT_MARKER))?;
    serde_json::from_str(line.trim_end().trim_end_matches("*/").trim_end()).ok()
}

fn pretty(document: &Value) -> String {
    serde_json::to_string_pretty(document).unwrap_or_default() + "\n"
}

/// One script per event. Each hook gets the payload; the script answers with the
/// first answer that denies, or else with the last one.
fn scripts(document: &Value, deny: &str) -> Vec<NativeFile> {
    let mut files = Vec::new();
    for (event, entries) in document.as_object().into_iter().flatten() {
        let commands = entries.as_array().into_iter().flatten();
        let commands: Vec<&str> = commands
            .filter_map(|entry| entry.get("command")?.as_str())
            .collect();
        let mut text = String::from("#!/bin/sh\n# Generated by anyhook; the hooks in one line:\n");
        let _ = writeln!(text, "# {DOCUMENT_MARKER}{entries}");
        if let [one] = commands.as_slice() {
            let _ = writeln!(text, "{one}");
        } else {
            text.push_str("payload=$(cat)\nanswer=\n");
            for command in commands {
                let quoted = anyhook_util::shell::quote(command);
                let _ = writeln!(text, "output=$(printf '%s' \"$payload\" | sh -c {quoted})");
                let _ = writeln!(
                    text,
                    "case $output in {deny}) printf '%s\\n' \"$output\"; exit 0 ;; ?*) answer=$output ;; esac"
                );
            }
            text.push_str("printf '%s\\n' \"$answer\"\n");
        }
        files.push(NativeFile {
            name: Some(event.clone()),
            text,
            executable: true,
        });
    }
    files
}
