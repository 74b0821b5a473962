//! A guard of an agent that only this test has, with all that a table may say: names of
//! MCP tools that cannot be taken apart, one tool for several kinds of changes, fields
//! that every call has. Converted, it is called for the same tools and finds what it
//! looks for, or the loss is critical.

#![cfg(test)]

use anyhook_agents::own::{OwnTable, add, read_own_table};
use anyhook_agents::{Adapter, Placement};
use anyhook_convert::{
    Conversion, ConversionOptions, ConversionSource, ConversionTarget, ConvertError, ScriptText,
    WarningSeverity, convert,
};
use anyhook_model::{Handler, HookEvent, Manifest, matches};
use serde_json::{Value, json};

const TABLE: &str = r#"id = "invented"
extends = "claude-code"
name = "Invented Agent"
homepage = "https://example.com"
summary = "An agent that only this test has."
verified = { version = "0.1", date = "2026-11-19", how = "docs" }

[inherit]
events = ["PreToolUse"]
tools = ["Read", "Grep", "Glob", "WebSearch", "WebFetch", "Agent"]
hazards = []
without = [
  "/config/matcher/list_chars", "/config/handler/type_events", "/config/handler/fail_closed",
  "/payload/defaults", "/payload/rows", "/mcp",
]

[detect]
folders = [".invented"]

[[file]]
scope = "project"
path = ".invented/hooks.json"
format = "jsonc"
write = true

[config.matcher]
syntax = "regex"

[config.handler]
types = { command = "command" }

[payload.rows]
common = [{ to = "session_id", at = "/session_id" }, { to = "cwd", at = "/cwd" }]

[[event]]
native = "PreToolUse"
rows = [{ to = "tool_name", at = "/tool_name" }, { to = "tool_input", at = "/tool_input" }]
other_keys = ["agent_id"]

[[tool]]
is = "shell"
native = "bash"
keys = { command = "command" }

[[tool]]
is = "file_write"
native = "editor"
when = { command = "write" }
keys = { path = "path", content = "text" }

[[tool]]
is = "file_edit"
native = "editor"
when = { command = "replace" }
keys = { path = "path" }
edits = { old = "old", new = "new" }

[mcp]
format = "mcp_{server}_{tool}"
server_matcher = "mcp_{server}_.*"
ambiguous = true
"#;

fn invented() -> &'static Adapter {
    let table = OwnTable {
        file: "agent.toml".to_owned(),
        slug: "invented".to_owned(),
        text: TABLE.to_owned(),
    };
    let problems = add(&[table], read_own_table);
    assert!(problems.is_empty(), "{problems:?}");
    anyhook_agents::get("invented").unwrap()
}

fn converted(
    from: &'static Adapter,
    to: &'static Adapter,
    document: &Value,
    script: &str,
) -> Result<Conversion, ConvertError> {
    let read = |_: &str| ScriptText::Known(script.to_owned());
    let options = ConversionOptions {
        script: Some(&read),
        ..ConversionOptions::default()
    };
    let source = ConversionSource::decode(from, document, None);
    let target = ConversionTarget::Agent {
        adapter: to,
        variant: None,
    };
    convert(&source, target, &options)
}

fn is_critical(conversion: &Result<Conversion, ConvertError>) -> bool {
    let (Ok(Conversion { warnings, .. }) | Err(ConvertError::NothingLeft { warnings })) =
        conversion
    else {
        panic!("{conversion:?}");
    };
    let mut warnings = warnings.iter();
    warnings.any(|warning| warning.severity >= WarningSeverity::Critical)
}

/// Whether the hooks of a document are called for a tool of an MCP server.
fn is_called_for(adapter: &'static Adapter, document: &Value, server: &str, tool: &str) -> bool {
    let name = adapter.mcp_name(server, tool);
    let call = HookEvent {
        event: "before_tool_execute".to_owned(),
        data: json!({
            "tool_name": name,
            "native_tool_name": name,
            "mcp": {"server": server, "tool": tool},
        })
        .as_object()
        .cloned()
        .unwrap(),
        ..HookEvent::default()
    };
    let hooks = adapter.decode_config(document, None).manifest.hooks;
    hooks
        .iter()
        .any(|hook| matches(hook.matcher.as_ref(), &call))
}

/// The matchers that people write for MCP tools, in names of that form.
const MATCHERS: [&str; 7] = [
    "bash|mcp_github_delete_repo",
    "^(bash|mcp_github_delete_repo)$",
    "mcp_github_(create|delete)_.*",
    "(bash|mcp_github_delete)",
    "^mcp_github_delete",
    "mcp_.*_delete.*",
    "mcp_github_.*",
];

#[test]
fn mcp_tools_of_a_matcher_are_kept_or_critical() {
    let script = "#!/bin/sh\necho no >&2\nexit 2\n";
    let mut kept = 0;
    for (source, event) in [
        (invented(), "PreToolUse"),
        (anyhook_agents::get("gemini-cli").unwrap(), "BeforeTool"),
    ] {
        for matcher in MATCHERS {
            let hook = json!({"type": "command", "command": "./g.sh"});
            let document = json!({"hooks": {event: [{"matcher": matcher, "hooks": [hook]}]}});
            if !is_called_for(source, &document, "github", "delete_repo") {
                continue;
            }
            for target in anyhook_agents::matrix::clients() {
                if target.spec.id == source.spec.id {
                    continue;
                }
                let conversion = converted(source, target, &document, script);
                if is_critical(&conversion) || target.mcp_name("a", "b").is_none() {
                    continue;
                }
                kept += 1;
                let output = conversion.unwrap().document;
                assert!(
                    is_called_for(target, &output, "github", "delete_repo"),
                    "{} → {}, {matcher}: {output}",
                    source.spec.id,
                    target.spec.id
                );
            }
        }
    }
    assert!(kept > 50, "{kept}");
}

#[test]
fn what_a_guard_looks_for_is_sent_or_critical() {
    let source = invented();
    let hook = json!({"type": "command", "command": "./g.sh"});
    let document = json!({"hooks": {"PreToolUse": [{"hooks": [hook]}]}});
    // A word of the agent's own, and a field that other agents send in some calls only.
    for script in [
        "#!/bin/sh\n[ \"$(jq -r .tool_input.command)\" = \"write\" ] || exit 0\necho no >&2\nexit 2\n",
        "#!/bin/sh\n[ -n \"$(jq -r '.agent_id // empty')\" ] || exit 0\necho no >&2\nexit 2\n",
    ] {
        for target in anyhook_agents::matrix::clients() {
            let conversion = converted(source, target, &document, script);
            assert!(
                target.spec.id == source.spec.id || is_critical(&conversion),
                "→ {}: {script}",
                target.spec.id
            );
        }
    }
    // What every agent sends is no loss.
    let script =
        "#!/bin/sh\njq -r .tool_input.command | grep -q rm || exit 0\necho no >&2\nexit 2\n";
    let claude = anyhook_agents::get("claude-code").unwrap();
    let bash = json!({"hooks": {"PreToolUse": [{"matcher": "bash", "hooks": [hook]}]}});
    assert!(!is_critical(&converted(source, claude, &bash, script)));
}

/// What only one agent has survives the way through the canonical form and back.
#[test]
fn every_event_of_an_agent_survives_the_canonical_form() {
    let empty: Manifest =
        serde_json::from_value(json!({"spec": "hooks/1.0", "hooks": []})).unwrap();
    let mut lost = Vec::new();
    let mut count = 0;
    for adapter in anyhook_agents::matrix::clients() {
        for event in adapter.spec.events.iter().filter(|event| !event.read_only) {
            let placement = Placement {
                native_event: event.native.to_string(),
                matcher: None,
                matchable: false,
                matcherless: false,
                name: None,
                handler: Handler {
                    command: Some("./x.sh".to_owned()),
                    ..Handler::default()
                },
                data: serde_json::Map::new(),
            };
            let document = adapter.encode_config(&empty, &[placement], None);
            let source = ConversionSource::decode(adapter, &document, None);
            let options = ConversionOptions::default();
            let canonical = convert(&source, ConversionTarget::Canonical, &options).unwrap();
            let manifest = serde_json::from_value(canonical.document).unwrap();
            let target = ConversionTarget::Agent {
                adapter,
                variant: None,
            };
            let back = convert(&ConversionSource::canonical(manifest), target, &options);
            count += 1;
            if back.as_ref().map(|back| &back.document).ok() != Some(&document) {
                lost.push(format!(
                    "{} {}: {document} {back:?}",
                    adapter.spec.id, event.native
                ));
            }
        }
    }
    assert!(
        count > 200 && lost.is_empty(),
        "{count}\n{}",
        lost.join("\n")
    );
}
