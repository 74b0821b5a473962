//! Hooks of a type that only some agents have, or none that is known.

#![cfg(test)]

use anyhook_agents::Adapter;
use anyhook_convert::{
    Conversion, ConversionOptions, ConversionSource, ConversionTarget, ConvertError,
    WarningSeverity, convert,
};
use serde_json::{Value, json};

fn agent(slug: &str) -> &'static Adapter {
    anyhook_agents::get(slug).unwrap()
}

fn converted(source: &ConversionSource, slug: &str) -> Result<Conversion, ConvertError> {
    let target = match slug {
        "canonical" => ConversionTarget::Canonical,
        slug => ConversionTarget::Agent {
            adapter: agent(slug),
            variant: None,
        },
    };
    convert(source, target, &ConversionOptions::default())
}

/// The document and the gravest severity.
fn to(source: &ConversionSource, slug: &str) -> (Value, Option<WarningSeverity>) {
    let (document, warnings) = match converted(source, slug) {
        Ok(conversion) => (conversion.document, conversion.warnings),
        Err(ConvertError::NothingLeft { warnings }) => (Value::Null, warnings),
        Err(error) => panic!("{slug}: {error:?}"),
    };
    let severities = warnings.iter().map(|warning| warning.severity);
    (document, severities.max())
}

fn claude(event: &str, handlers: &Value) -> ConversionSource {
    let document = json!({"hooks": {event: [{"hooks": handlers}]}});
    ConversionSource::decode(agent("claude-code"), &document, None)
}

#[test]
fn a_tool_of_an_mcp_server_is_carried_where_the_agent_can_call_it() {
    let handler = json!({"type": "mcp_tool", "server": "s", "tool": "check",
        "input": {"path": "${tool_input.file_path}"}});
    let source = claude("PreToolUse", &json!([handler]));
    let (manifest, severity) = to(&source, "canonical");
    // `anyhook run` cannot call it, so the hook of a canonical manifest fails.
    assert_eq!(severity, Some(WarningSeverity::Critical));
    let through = ConversionSource::canonical(serde_json::from_value(manifest).unwrap());
    let (back, severity) = to(&through, "claude-code");
    assert_eq!(back["hooks"]["PreToolUse"][0]["hooks"][0], handler);
    assert!(severity < Some(WarningSeverity::Warning), "{severity:?}");
    for adapter in anyhook_agents::all() {
        let slug = adapter.spec.id.as_ref();
        if slug == "claude-code" {
            continue;
        }
        // The tool's answer is in the format of the agent that it was written for.
        let (document, severity) = to(&source, slug);
        assert!(
            severity >= Some(WarningSeverity::Critical),
            "{slug}: {severity:?}"
        );
        let is_written = document.to_string().contains("mcp_tool");
        assert_eq!(is_written, slug == "codex", "{slug}: {document}");
    }
}

#[test]
fn a_guard_without_a_canonical_form_is_critical() {
    let handlers = json!([{"type": "oracle", "question": "is it fine?"},
        {"type": "command", "command": "true"}]);
    for (event, is_critical) in [("PreToolUse", true), ("SessionEnd", false)] {
        let source = claude(event, &handlers);
        for target in ["canonical", "gemini-cli", "codex"] {
            let (_, severity) = to(&source, target);
            let found = severity >= Some(WarningSeverity::Critical);
            assert_eq!(found, is_critical, "{event} to {target}: {severity:?}");
        }
        let (document, severity) = to(&source, "claude-code");
        assert_eq!(document["hooks"][event][0]["hooks"], handlers);
        assert!(severity < Some(WarningSeverity::Critical), "{severity:?}");
    }
}
