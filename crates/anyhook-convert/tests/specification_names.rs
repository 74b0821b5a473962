//! The names in the tables of the Hook Interchange Format: what each agent calls the
//! tools and events. All are read; all are written but those that are deliberately
//! different (docs/conformance.md).
#![cfg(test)]

use anyhook_agents::Adapter;
use anyhook_convert::{ConversionOptions, ConversionSource, ConversionTarget, convert};
use anyhook_model::Matcher;
use serde_json::{Value, json};

const AGENTS: [&str; 5] = ["claude-code", "gemini-cli", "cursor", "copilot-cli", "kiro"];

/// Section 7: the canonical name, then that of each agent; empty where it has none.
const TOOLS: [(&str, [&str; 5]); 9] = [
    (
        "shell",
        [
            "Bash",
            "run_shell_command",
            "run_terminal_cmd",
            "bash",
            "execute_bash",
        ],
    ),
    (
        "file_read",
        ["Read", "read_file", "read_file", "view", "fs_read"],
    ),
    (
        "file_write",
        ["Write", "write_file", "edit_file", "create", "fs_write"],
    ),
    (
        "file_edit",
        ["Edit", "replace", "edit_file", "edit", "fs_write"],
    ),
    (
        "search",
        ["Grep", "grep_search", "grep_search", "grep", "grep"],
    ),
    ("find", ["Glob", "glob", "file_search", "glob", "glob"]),
    (
        "web_search",
        [
            "WebSearch",
            "google_web_search",
            "web_search",
            "",
            "web_search",
        ],
    ),
    (
        "web_fetch",
        ["WebFetch", "web_fetch", "", "web_fetch", "web_fetch"],
    ),
    ("agent", ["Agent", "", "", "task", "use_subagent"]),
];

/// Section 6, in the same way.
const EVENTS: [(&str, [&str; 5]); 4] = [
    (
        "before_tool_execute",
        [
            "PreToolUse",
            "BeforeTool",
            "beforeShellExecution",
            "preToolUse",
            "preToolUse",
        ],
    ),
    (
        "after_tool_execute",
        [
            "PostToolUse",
            "AfterTool",
            "afterFileEdit",
            "postToolUse",
            "postToolUse",
        ],
    ),
    (
        "before_prompt",
        [
            "UserPromptSubmit",
            "BeforeAgent",
            "beforeSubmitPrompt",
            "userPromptSubmitted",
            "userPromptSubmit",
        ],
    ),
    ("agent_stop", ["Stop", "AfterAgent", "stop", "", "stop"]),
];

/// Whether the specification's name of an agent is only read.
fn is_only_read(slug: &str, name: &str) -> bool {
    let is_general = ["beforeSubmitPrompt", "stop"].contains(&name);
    slug == "cursor" && !is_general
}

fn adapter(slug: &str) -> &'static Adapter {
    anyhook_agents::get(slug).unwrap()
}

/// The form of the agent's config that has the specification's names.
fn variant(slug: &str) -> Option<&'static str> {
    (slug == "kiro").then_some("cli-2")
}

/// A config of the agent with one hook.
fn config(slug: &str, event: &str, matcher: Option<&str>) -> Value {
    let mut entry = match slug {
        "claude-code" | "gemini-cli" => json!({"hooks": [{"type": "command", "command": "./x"}]}),
        "copilot-cli" => json!({"type": "command", "bash": "./x"}),
        _ => json!({"command": "./x"}),
    };
    if let Some(matcher) = matcher {
        entry["matcher"] = matcher.into();
    }
    let mut document = json!({"hooks": {event: [entry]}});
    if ["cursor", "copilot-cli"].contains(&slug) {
        document["version"] = 1.into();
    }
    document
}

fn written(slug: &str, hook: &Value) -> Value {
    let manifest = json!({"spec": "hooks/1.0", "hooks": [hook]});
    let source = ConversionSource::canonical(serde_json::from_value(manifest).unwrap());
    let target = ConversionTarget::Agent {
        adapter: adapter(slug),
        variant: variant(slug),
    };
    let converted = convert(&source, target, &ConversionOptions::default());
    converted
        .unwrap_or_else(|error| panic!("{slug} {hook}: {error:#?}"))
        .document
}

fn names(matcher: Option<&Matcher>) -> Vec<&str> {
    match matcher {
        Some(Matcher::Name(name)) => vec![name],
        Some(Matcher::Any(list)) => list.iter().flat_map(|one| names(Some(one))).collect(),
        _ => Vec::new(),
    }
}

fn has_word(text: &str, word: &str) -> bool {
    let mut words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    words.any(|other| other == word)
}

#[test]
fn tools_of_the_specification_are_read_and_written() {
    let mut wrong = Vec::new();
    for (kind, natives) in TOOLS {
        for (slug, native) in AGENTS.into_iter().zip(natives) {
            if native.is_empty() {
                continue;
            }
            let event = match slug {
                "claude-code" => "PreToolUse",
                "gemini-cli" => "BeforeTool",
                _ => "preToolUse",
            };
            let document = config(slug, event, Some(native));
            let source = ConversionSource::decode(adapter(slug), &document, variant(slug));
            let hook = &source.manifest.hooks[0];
            if !names(hook.matcher.as_ref()).contains(&kind) {
                wrong.push(format!("{slug} {native} is read as {:?}", hook.matcher));
            }
            if is_only_read(slug, native) {
                continue;
            }
            let hook = json!({"event": "before_tool_execute", "matcher": kind,
                "handler": {"type": "command", "command": "./x"}});
            let document = written(slug, &hook);
            // A list of names that the agent cannot write becomes a hook for all tools.
            let has_matcher = document.to_string().contains("matcher");
            if has_matcher && !has_word(&document.to_string(), native) {
                wrong.push(format!("{slug} {kind} is written as {document}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn events_of_the_specification_are_read_and_written() {
    let mut wrong = Vec::new();
    for (event, natives) in EVENTS {
        for (slug, native) in AGENTS.into_iter().zip(natives) {
            if native.is_empty() {
                continue;
            }
            let document = config(slug, native, None);
            let source = ConversionSource::decode(adapter(slug), &document, variant(slug));
            let read = source
                .manifest
                .hooks
                .first()
                .map(|hook| hook.event.as_str());
            if read != Some(event) {
                wrong.push(format!("{slug} {native} is read as {read:?}"));
            }
            if is_only_read(slug, native) {
                continue;
            }
            let hook = json!({"event": event, "handler": {"type": "command", "command": "./x"}});
            let document = written(slug, &hook);
            if document.pointer(&format!("/hooks/{native}")).is_none() {
                wrong.push(format!("{slug} {event} is written as {document}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The table of the hook contract: its event, and the names in Cursor, Claude Code and
/// OpenCode; empty where the contract names none.
const CONTRACT_EVENTS: [(&str, [&str; 3]); 7] = [
    ("sessionStart", ["sessionStart", "SessionStart", ""]),
    (
        "beforeSubmitPrompt",
        ["beforeSubmitPrompt", "UserPromptSubmit", ""],
    ),
    (
        "preToolUse",
        ["preToolUse", "PreToolUse", "tool.execute.before"],
    ),
    (
        "postToolUse",
        ["postToolUse", "PostToolUse", "tool.execute.after"],
    ),
    ("stop", ["stop", "Stop", ""]),
    ("preCompact", ["preCompact", "PreCompact", ""]),
    ("sessionEnd", ["sessionEnd", "SessionEnd", ""]),
];

#[test]
fn events_of_the_contract_have_their_names_in_every_agent() {
    let mut wrong = Vec::new();
    for (event, natives) in CONTRACT_EVENTS {
        let document = json!({"hooks": {event: [{"command": "./x"}]}});
        let source = ConversionSource::decode(adapter("contract"), &document, None);
        for (slug, native) in ["cursor", "claude-code", "opencode"]
            .into_iter()
            .zip(natives)
        {
            let target = ConversionTarget::Agent {
                adapter: adapter(slug),
                variant: None,
            };
            let converted = convert(&source, target, &ConversionOptions::default());
            let document = converted.map(|converted| converted.document);
            let text = document.map_or_else(|error| format!("{error:?}"), |it| it.to_string());
            if !text.contains(&format!("\"{native}\"")) && !native.is_empty() {
                wrong.push(format!("{event} in {slug}: {text}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
