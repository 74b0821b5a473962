//! The interchange format's own vectors, from `conformance/interchange`.

#![cfg(test)]

use std::fs;
use std::path::Path;

use anyhook_convert::{
    Conversion, ConversionOptions, ConversionSource, ConversionTarget, ConversionWarning, convert,
};
use anyhook_model::Manifest;
use serde_json::{Value, json};

fn read(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../conformance/interchange")
        .join(name);
    let mut value: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let map = value.as_object_mut().unwrap();
    map.remove("_comment");
    value
}

fn canonical(name: &str) -> ConversionSource {
    ConversionSource::canonical(
        serde_json::from_value::<Manifest>(read(&format!("canonical/{name}.json"))).unwrap(),
    )
}

fn to(agent: &str, source: &ConversionSource) -> Conversion {
    let adapter = anyhook_agents::get(agent).unwrap();
    convert(
        source,
        ConversionTarget::Agent {
            adapter,
            variant: None,
        },
        &ConversionOptions::default(),
    )
    .unwrap()
}

fn has(warnings: &[ConversionWarning], hook: usize, field: &str, words: &[&str]) -> bool {
    warnings.iter().any(|warning| {
        let capability = warning.capability.unwrap_or_default();
        warning.hook == Some(hook)
            && (warning.field.starts_with(field) || capability == field)
            && words.iter().all(|word| {
                warning.message.contains(word)
                    || warning
                        .strategy
                        .is_some_and(|strategy| strategy.as_str() == *word)
            })
    })
}

/// (vector, hook, field or capability, words that must stand in the message or be the strategy)
fn warned(conversion: &Conversion, wanted: &[(usize, &str, &[&str])]) {
    for (hook, field, words) in wanted {
        assert!(
            has(&conversion.warnings, *hook, field, words),
            "no warning for hook {hook} {field} {words:?} among {:#?}",
            conversion.warnings
        );
    }
}

fn equal(agent: &str, name: &str) -> Conversion {
    let conversion = to(agent, &canonical(name));
    let mut expected = read(&format!("{agent}/{name}.json"));
    expected.as_object_mut().unwrap().remove("_warnings");
    name_whole_families(agent, &mut expected);
    leave_out_empty_matchers(&mut expected);
    assert_eq!(conversion.document, expected, "{agent}/{name}");
    conversion
}

/// The vectors write `"matcher": ""` for every tool. It means the same as none, but
/// Copilot CLI, which reads Claude Code's file too, refuses all of the file for it.
fn leave_out_empty_matchers(document: &mut Value) {
    match document {
        Value::Object(map) => {
            if map.get("matcher") == Some(&json!("")) {
                map.shift_remove("matcher");
            }
            map.values_mut().for_each(leave_out_empty_matchers);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out_empty_matchers),
        _ => {}
    }
}

/// The vectors name one tool of a kind (`Bash`); anyhook names each that does the
/// same (`Bash|PowerShell|Monitor`), so that a guard sees all of them.
fn name_whole_families(agent: &str, document: &mut Value) {
    let adapter = anyhook_agents::get(agent).unwrap();
    match document {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(text) if key == "matcher" => {
                        if let Some(matcher) = adapter.read_matcher(text) {
                            *text = adapter.translate(&matcher, Some(adapter)).text.unwrap();
                        }
                    }
                    value => name_whole_families(agent, value),
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                name_whole_families(agent, item);
            }
        }
        _ => {}
    }
}

#[test]
fn a_guard_of_a_kind_names_every_tool_of_it() {
    let mut document = read("claude-code/multi-event.json");
    name_whole_families("claude-code", &mut document);
    assert_eq!(
        document.pointer("/hooks/PreToolUse/0/matcher"),
        Some(&json!("Bash|PowerShell|Monitor|Write"))
    );
}

#[test]
fn claude_code_outputs_are_equal() {
    equal("claude-code", "simple-blocking");
    equal("claude-code", "multi-event");
    let full = equal("claude-code", "full-featured");
    warned(
        &full,
        &[
            (1, "platform_commands", &["warn"]),
            (1, "configurable_cwd", &["warn"]),
            (1, "custom_env", &["warn"]),
            (1, "provider_data.windsurf", &["not for"]),
        ],
    );
}

#[test]
fn windsurf_outputs_are_equal() {
    let simple = equal("windsurf", "simple-blocking");
    warned(
        &simple,
        &[
            (1, "handler.timeout", &["no timeout"]),
            (1, "blocking", &["exit 2"]),
        ],
    );
    let full = to("windsurf", &canonical("full-featured"));
    let mut expected = read("windsurf/full-featured.json");
    expected.as_object_mut().unwrap().remove("_warnings");
    // A field that the agent has had since the vector was written.
    expected["hooks"]["pre_run_command"][0]["powershell"] = json!("./safety-check.ps1");
    assert_eq!(full.document, expected);
    warned(
        &full,
        &[
            (1, "handler.timeout", &[]),
            (1, "platform_commands", &["warn"]),
            (1, "custom_env", &["warn"]),
            (1, "handler.cwd", &["working_directory"]),
            (1, "provider_data.windsurf.show_output", &[]),
            (1, "provider_data.windsurf.working_directory", &[]),
            (2, "matcher", &["all MCP tools"]),
            (2, "handler.timeout", &[]),
            (3, "event", &["session_start", "left out"]),
        ],
    );
    let multi = equal("windsurf", "multi-event");
    warned(
        &multi,
        &[
            (1, "event", &["pre_run_command", "pre_write_code"]),
            (1, "handler.timeout", &[]),
            (
                2,
                "event",
                &[
                    "post_read_code",
                    "post_write_code",
                    "post_run_command",
                    "post_mcp_tool_use",
                ],
            ),
            (2, "handler.timeout", &[]),
            (3, "blocking", &["exit 2"]),
            (3, "handler.timeout", &[]),
            (4, "event", &["after each response"]),
            (4, "handler.timeout", &[]),
        ],
    );
    let rewrite = equal("windsurf", "degradation-input-rewrite");
    warned(
        &rewrite,
        &[
            (1, "input_rewrite", &["block", "does not run"]),
            (1, "structured_output", &["exit codes only"]),
            (1, "handler.timeout", &[]),
        ],
    );
}

#[test]
fn round_trips_hold() {
    let native = read("claude-code/roundtrip-source.json");
    let agent = anyhook_agents::get("claude-code").unwrap();
    let source = ConversionSource::decode(agent, &native, None);
    // The vectors know no dialects.
    let options = ConversionOptions {
        drop_dialect: true,
        ..ConversionOptions::default()
    };
    let back = convert(&source, ConversionTarget::Canonical, &options)
        .unwrap()
        .document;
    let mut expected = read("claude-code/roundtrip-canonical.json");
    // The version of the format is the writer's own, and the narrower matcher is
    // kept for the way back.
    expected["spec"] = back["spec"].clone();
    expected["hooks"][0]["provider_data"] = json!({"claude-code": {"$matcher": "Bash"}});
    assert_eq!(back, expected);
    assert_eq!(to("claude-code", &source).document, native);
}

/// The real file shape carries the same hooks, and the vector's own is read.
#[test]
fn gemini_and_cursor_carry_the_same_hooks() {
    let gemini = to("gemini-cli", &canonical("full-featured")).document;
    assert_eq!(
        gemini.pointer("/hooks/BeforeTool/0/matcher"),
        Some(&json!("^run_shell_command$"))
    );
    assert_eq!(
        gemini.pointer("/hooks/BeforeTool/0/hooks/0/timeout"),
        Some(&json!(10000))
    );
    assert_eq!(
        gemini.pointer("/hooks/BeforeTool/0/hooks/0/env/STRICT_MODE"),
        Some(&json!("true")),
        "Gemini takes env today"
    );
    assert_eq!(
        gemini.pointer("/hooks/BeforeTool/1/matcher"),
        Some(&json!("^mcp_github_create_issue$"))
    );
    assert_eq!(
        gemini.pointer("/hooks/SessionStart/0/hooks/0/command"),
        Some(&json!("./init-session.sh"))
    );
    for name in ["simple-blocking", "full-featured", "multi-event"] {
        let adapter = anyhook_agents::get("gemini-cli").unwrap();
        let decoded = ConversionSource::decode(
            adapter,
            &read(&format!("gemini-cli/{name}.json")),
            Some("vector"),
        );
        assert!(decoded.warnings.is_empty(), "{:?}", decoded.warnings);
        let commands = |manifest: &Manifest| {
            let mut all: Vec<String> = manifest
                .hooks
                .iter()
                .map(|hook| format!("{} {}", hook.event, hook.handler.command.clone().unwrap()))
                .collect();
            all.sort();
            all.dedup();
            all
        };
        assert_eq!(
            commands(&decoded.manifest),
            commands(&canonical(name).manifest),
            "{name}"
        );
    }
    let Some(adapter) = anyhook_agents::get("cursor") else {
        return;
    };
    let cursor = to("cursor", &canonical("multi-event"));
    let text = cursor.document.to_string();
    assert!(text.contains("preToolUse"), "{text}");
    assert!(
        !text.contains("afterFileEdit"),
        "a guard must not land after the edit: {text}"
    );
    for name in ["simple-blocking", "full-featured", "multi-event"] {
        let decoded =
            ConversionSource::decode(adapter, &read(&format!("cursor/{name}.json")), None);
        assert!(!decoded.manifest.hooks.is_empty(), "{name}");
    }
}
