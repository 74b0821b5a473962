//! Traps of the targets, each avoided by construction. Where a trap is one of
//! a kind of file or matcher, every agent of that kind is tried.

#![cfg(test)]

use anyhook_agents::Adapter;
use anyhook_convert::{
    Conversion, ConversionOptions, ConversionSource, ConversionTarget, ConversionWarning,
    ConvertError, WarningSeverity, convert,
};
use anyhook_model::{HandlerKind, OnFailure};
use serde_json::{Value, json};

fn agent(slug: &str) -> &'static Adapter {
    anyhook_agents::get(slug).unwrap()
}

fn manifest(hooks: Value) -> ConversionSource {
    let manifest = json!({"spec": "hooks/1.0", "hooks": hooks});
    ConversionSource::canonical(serde_json::from_value(manifest).unwrap())
}

fn to(slug: &str, source: &ConversionSource) -> Conversion {
    let target = ConversionTarget::Agent {
        adapter: agent(slug),
        variant: None,
    };
    convert(source, target, &ConversionOptions::default())
        .unwrap_or_else(|error| panic!("{slug}: {error:#?}"))
}

fn guard(command: &str) -> Value {
    json!([{"event": "before_tool_execute", "matcher": "shell", "blocking": true,
            "handler": {"type": "command", "command": command}}])
}

fn text(slug: &str, conversion: &Conversion) -> String {
    agent(slug).files(&conversion.document, None)[0]
        .text
        .clone()
}

fn find<'a>(warnings: &'a [ConversionWarning], field: &str) -> &'a ConversionWarning {
    warnings
        .iter()
        .find(|warning| warning.field == field)
        .unwrap_or_else(|| panic!("nothing about {field}: {warnings:#?}"))
}

/// Cursor deletes from `//` to the end of the line, and `/*…*/`, inside strings too.
#[test]
fn cursor_s_loader_finds_no_comment_in_a_command() {
    let source = manifest(guard("curl https://example.com/a /* not a comment */ //x"));
    let text = text("cursor", &to("cursor", &source));
    assert!(!text.contains("//") && !text.contains("/*"), "{text}");
    let read: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        read.pointer("/hooks/preToolUse/0/command"),
        Some(&json!("curl https://example.com/a /* not a comment */ //x"))
    );
}

/// One unknown event, a timeout of 0, a value of the wrong kind: each voids the file.
#[test]
fn cursor_gets_nothing_that_voids_its_file() {
    let sheet = agent("cursor");
    for event in anyhook_model::registry::EVENTS {
        let source = manifest(json!([
            {"event": event.name, "handler": {"type": "command", "command": "./x", "timeout": 0},
             "provider_data": {"cursor": {"failClosed": "yes", "loop_limit": 0, "timeout": 0, "$event": "beforeFileEdit"}}},
            {"event": "session_start", "handler": {"type": "command", "command": "./y"}},
        ]));
        let document = to("cursor", &source).document;
        assert_eq!(document["version"], 1);
        for (name, entries) in document["hooks"].as_object().unwrap() {
            assert!(sheet.event_by_native(name).is_some(), "{name}");
            for entry in entries.as_array().unwrap() {
                assert!(entry["command"].is_string(), "{entry}");
                for key in ["failClosed", "loop_limit"] {
                    assert!(entry.get(key).is_none(), "{entry}");
                }
                // A guard's default may be written out.
                assert_ne!(entry.get("timeout"), Some(&json!(0)), "{entry}");
            }
        }
    }
    // An event that only another agent has is not copied.
    let claude = json!({"hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./a"}]}],
        "WorktreeCreate": [{"hooks": [{"type": "command", "command": "./b"}]}],
        "EventOfTomorrow": [{"hooks": [{"type": "command", "command": "./c"}]}],
    }});
    let source = ConversionSource::decode(agent("claude-code"), &claude, None);
    let conversion = to("cursor", &source);
    let names: Vec<&String> = conversion.document["hooks"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(names, ["preToolUse"]);
    assert_eq!(
        conversion
            .warnings
            .iter()
            .filter(|warning| warning.message.contains("left out"))
            .count(),
        2
    );
}

/// A handler of an unknown type under PreToolUse voids Claude Code's file.
#[test]
fn data_for_an_agent_brings_no_foreign_handler_type() {
    for adapter in anyhook_agents::all() {
        let id = adapter.spec.id.as_ref();
        let mut hooks = guard("./x");
        hooks[0]["provider_data"] = json!({id: {"type": "mcp_tool", "action": {"type": "evil"}, "command": "evil", "bash": "evil", "hooks": [{"type": "evil"}]}});
        let conversion = to(id, &manifest(hooks));
        let text = conversion.document.to_string();
        let typed = adapter.spec.config.handler.type_at.as_deref() == Some("/type");
        assert!(!typed || !text.contains("mcp_tool"), "{id}: {text}");
        let read = adapter.decode_config(&conversion.document, None);
        assert!(read.findings.is_empty(), "{id}: {:?}", read.findings);
        let [hook] = read.manifest.hooks.as_slice() else {
            panic!("{id}: {text}")
        };
        assert_eq!(hook.handler.kind, HandlerKind::Command, "{id}");
        assert_eq!(hook.handler.command.as_deref(), Some("./x"), "{id}");
    }
}

#[test]
fn data_for_an_agent_leads_out_of_no_folder() {
    for adapter in anyhook_agents::all() {
        let id = adapter.spec.id.as_ref();
        for path in ["../../etc", "a/../../b", "..\\x"] {
            let mut hooks = guard("./x");
            hooks[0]["provider_data"] =
                json!({id: {"working_directory": path, "scriptPath": path}});
            let conversion = to(id, &manifest(hooks));
            assert!(
                !conversion.document.to_string().contains(".."),
                "{id}: {}",
                conversion.document
            );
            let told = conversion.warnings.iter().any(|warning| {
                warning.field == format!("provider_data.{id}.working_directory")
                    && warning.severity == WarningSeverity::Warning
            });
            assert!(told, "{id}: {:#?}", conversion.warnings);
        }
    }
}

#[test]
fn droid_reads_its_events_at_the_top() {
    let document = to("factory-droid", &manifest(guard("./x"))).document;
    assert!(document.get("hooks").is_none());
    assert_eq!(document["PreToolUse"][0]["hooks"][0]["command"], "./x");
    let wrapped = convert(
        &manifest(guard("./x")),
        ConversionTarget::Agent {
            adapter: agent("factory-droid"),
            variant: Some("settings"),
        },
        &ConversionOptions::default(),
    )
    .unwrap();
    assert_eq!(
        wrapped.document["hooks"]["PreToolUse"][0]["hooks"][0]["command"],
        "./x"
    );
}

#[test]
fn timeouts_have_the_target_s_unit() {
    let hooks = json!([{"event": "before_tool_execute", "handler": {"type": "command", "command": "./x", "timeout": 30}}]);
    for (slug, pointer, value) in [
        ("auggie", "/hooks/PreToolUse/0/hooks/0/timeout", 30_000),
        ("gemini-cli", "/hooks/BeforeTool/0/hooks/0/timeout", 30_000),
        ("claude-code", "/hooks/PreToolUse/0/hooks/0/timeout", 30),
        ("copilot-cli", "/hooks/preToolUse/0/timeoutSec", 30),
        ("qwen-code", "/hooks/PreToolUse/0/hooks/0/timeout", 30),
        ("kiro", "/hooks/0/timeout", 30),
    ] {
        let document = to(slug, &manifest(hooks.clone())).document;
        assert_eq!(
            document.pointer(pointer),
            Some(&json!(value)),
            "{slug}: {document}"
        );
    }
    // From one unit into another.
    let gemini = json!({"hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": "./x", "timeout": 1500}]}]}});
    let source = ConversionSource::decode(agent("gemini-cli"), &gemini, None);
    assert_eq!(
        to("claude-code", &source)
            .document
            .pointer("/hooks/PreToolUse/0/hooks/0/timeout"),
        Some(&json!(1.5))
    );
    let codex = to("codex", &source);
    assert_eq!(
        codex
            .document
            .pointer("/hooks/PreToolUse/0/hooks/0/timeout"),
        Some(&json!(2))
    );
    find(&codex.warnings, "handler.timeout");
}

/// `timeout: 0` is the default in a manifest, "at once" or "never" elsewhere.
#[test]
fn a_timeout_of_nothing_is_written_for_no_agent() {
    for adapter in anyhook_agents::all() {
        let id = adapter.spec.id.as_ref();
        let mut hooks = guard("./x");
        hooks[0]["handler"]["timeout"] = json!(0);
        let document = to(id, &manifest(hooks)).document.to_string();
        // The default itself is written where the agent's is another.
        let mut times = document.split("imeout").skip(1);
        let is_zero = |rest: &str| {
            let value = rest.split_once(':').map(|(_, value)| value);
            value.is_none_or(|value| !value.starts_with("30"))
        };
        assert!(!times.any(is_zero), "{id}: {document}");
    }
}

/// `*` is an invalid regex that drops Auggie's whole event, and matches nothing for Copilot.
#[test]
fn everything_is_never_written_as_a_star() {
    let source = ConversionSource::decode(
        agent("claude-code"),
        &json!({"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": "./x"}]}]}}),
        None,
    );
    for adapter in anyhook_agents::all().filter(|adapter| adapter.spec.id != "claude-code") {
        let document = to(&adapter.spec.id, &source).document.to_string();
        assert!(
            !document.contains("\"*\""),
            "{}: {document}",
            adapter.spec.id
        );
    }
}

/// The key's casing chooses Copilot's dialect: camelCase, which its answers and
/// matchers here are of.
#[test]
fn copilot_s_keys_are_of_one_dialect() {
    for event in anyhook_model::registry::EVENTS {
        let source = manifest(json!([
            {"event": event.name, "handler": {"type": "command", "command": "./x"}},
            {"event": "before_tool_execute", "matcher": "shell", "handler": {"type": "command", "command": "./y"}},
        ]));
        let document = to("copilot-cli", &source).document;
        for name in document["hooks"].as_object().unwrap().keys() {
            assert!(
                name.starts_with(|letter: char| letter.is_ascii_lowercase()),
                "{name}"
            );
        }
        let text = document.to_string();
        assert!(
            text.contains("\"matcher\":\"bash|") && !text.contains("Bash"),
            "{text}"
        );
    }
    // A file of the other dialect keeps it.
    let pascal = json!({"version": 1, "hooks": {"PreToolUse": [{"type": "command", "bash": "./x", "matcher": "Bash"}]}});
    let source = ConversionSource::decode(agent("copilot-cli"), &pascal, None);
    assert_eq!(to("copilot-cli", &source).document, pascal);
    assert_eq!(
        to("factory-droid", &source)
            .document
            .pointer("/PreToolUse/0/matcher"),
        Some(&json!("^Execute$"))
    );
}

#[test]
fn codex_s_file_has_only_keys_that_it_knows_and_needs_trust() {
    let mut hooks = guard("./x");
    hooks[0]["provider_data"] =
        json!({"codex": {"additionalContextLimit": 100, "$schema": "x", "unknown": 1}});
    let mut source = manifest(hooks);
    source
        .manifest
        .extra
        .insert("$schema".into(), json!("https://example.com"));
    let conversion = to("codex", &source);
    let roots: Vec<&String> = conversion.document.as_object().unwrap().keys().collect();
    assert_eq!(roots, ["hooks"], "another key at the root voids the file");
    let entry = conversion
        .document
        .pointer("/hooks/PreToolUse/0/hooks/0")
        .unwrap();
    assert_eq!(entry["additionalContextLimit"], 100);
    assert!(entry.get("unknown").is_none());
    assert!(
        find(&conversion.warnings, "trust")
            .message
            .contains("/hooks")
    );
}

/// Agents that read `.claude/settings.json` too would run its hooks twice.
#[test]
fn hooks_that_would_run_twice_are_named() {
    let claude = json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./x"}]}]}});
    let source = ConversionSource::decode(agent("claude-code"), &claude, None);
    let mut twice = 0;
    for adapter in anyhook_agents::all() {
        let reads = adapter
            .spec
            .also_reads
            .iter()
            .any(|file| file == ".claude/settings.json");
        let told = to(&adapter.spec.id, &source)
            .warnings
            .iter()
            .any(|warning| {
                warning.severity == WarningSeverity::Warning
                    && warning.message.contains("run twice")
            });
        assert_eq!(reads, told, "{}", adapter.spec.id);
        twice += usize::from(told);
    }
    assert!(twice >= 4);
}

/// A guard for the shell fires under every agent's own name for it.
#[test]
fn tool_names_are_translated() {
    let sources = [
        (
            "claude-code",
            json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./x"}]}]}}),
        ),
        (
            "cursor",
            json!({"version": 1, "hooks": {"preToolUse": [{"matcher": "Shell", "command": "./x"}]}}),
        ),
        (
            "factory-droid",
            json!({"PreToolUse": [{"matcher": "Execute", "hooks": [{"type": "command", "command": "./x"}]}]}),
        ),
    ];
    let wanted = [
        (
            "claude-code",
            "/hooks/PreToolUse/0/matcher",
            "Bash|PowerShell|Monitor",
        ),
        ("codex", "/hooks/PreToolUse/0/matcher", "Bash"),
        (
            "cursor",
            "/hooks/preToolUse/0/matcher",
            "^(Shell|WriteShellStdin)$",
        ),
        ("factory-droid", "/PreToolUse/0/matcher", "^Execute$"),
        (
            "copilot-cli",
            "/hooks/preToolUse/0/matcher",
            "bash|powershell",
        ),
        (
            "gemini-cli",
            "/hooks/BeforeTool/0/matcher",
            "^run_shell_command$",
        ),
        (
            "qwen-code",
            "/hooks/PreToolUse/0/matcher",
            "^(run_shell_command|monitor)$",
        ),
        (
            "auggie",
            "/hooks/PreToolUse/0/matcher",
            "^(launch\\-process|write\\-process)$",
        ),
        ("devin", "/PreToolUse/0/matcher", "^exec$"),
        ("kiro", "/hooks/0/matcher", "^(execute_bash|use_aws)$"),
    ];
    for (from, document) in &sources {
        let source = ConversionSource::decode(agent(from), document, None);
        for (slug, pointer, name) in wanted.iter().filter(|(slug, _, _)| slug != from) {
            let document = to(slug, &source).document;
            // An agent may have a second form of the event for this program.
            let second = pointer.replace("preToolUse", "PreToolUse");
            assert_eq!(
                document.pointer(pointer).or(document.pointer(&second)),
                Some(&json!(name)),
                "{from} to {slug}: {document}"
            );
        }
        let windsurf = to("windsurf", &source).document;
        let events: Vec<&String> = windsurf["hooks"].as_object().unwrap().keys().collect();
        assert_eq!(events, ["pre_run_command"], "{from} to windsurf");
    }
}

#[test]
fn a_matcher_that_can_never_match_is_an_error() {
    // Codex has no tool of its own for searching.
    let absent = anyhook_model::registry::TOOLS
        .iter()
        .map(|tool| tool.name)
        .find(|tool| agent("codex").native_names(tool).is_empty())
        .unwrap();
    let mut hooks = guard("./x");
    hooks[0]["matcher"] = json!(absent);
    let error = convert(
        &manifest(hooks.clone()),
        ConversionTarget::Agent {
            adapter: agent("codex"),
            variant: None,
        },
        &ConversionOptions::default(),
    );
    let Err(ConvertError::NothingLeft { warnings }) = error else {
        panic!("{error:#?}")
    };
    assert_eq!(find(&warnings, "matcher").severity, WarningSeverity::Error);
    // Beside another hook it is still an error, and still left out.
    hooks.as_array_mut().unwrap().push(guard("./y")[0].clone());
    let conversion = to("codex", &manifest(hooks));
    assert_eq!(
        find(&conversion.warnings, "matcher").severity,
        WarningSeverity::Error
    );
    assert!(!conversion.document.to_string().contains("./x"));
}

/// A deny that some agents expand variables in before a shell sees its quotes.
#[test]
fn a_written_deny_holds_no_variable() {
    for adapter in anyhook_agents::all() {
        let hooks = json!([{"event": "before_tool_execute", "blocking": true,
            "handler": {"type": "agent", "prompt": "$HOME ${X} it's `id`"},
            "degradation": {"llm_evaluated": "block"}}]);
        let document = to(&adapter.spec.id, &manifest(hooks)).document.to_string();
        assert!(
            !document.contains("BLOCKED") || !document.contains('$'),
            "{}: {document}",
            adapter.spec.id
        );
    }
}

/// Hooks of one group are written as two after one of them was edited.
#[test]
fn a_group_that_was_taken_apart_stays_apart() {
    let claude = json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
        {"type": "command", "command": "./a"}, {"type": "command", "command": "./b"}]}]}});
    let mut source = ConversionSource::decode(agent("claude-code"), &claude, None);
    source.manifest.hooks[1].matcher = Some(anyhook_model::Matcher::Name("file_write".into()));
    let edited = ConversionSource::canonical(source.manifest);
    let document = to("claude-code", &edited).document;
    assert_eq!(
        document.pointer("/hooks/PreToolUse/0/matcher"),
        Some(&json!("Bash"))
    );
    assert_eq!(
        document.pointer("/hooks/PreToolUse/1/matcher"),
        Some(&json!("Write"))
    );
}

/// A matcher kept word for word must not override what the manifest says now.
#[test]
fn a_kept_matcher_gives_way_to_the_hook_s_own() {
    let mut hooks = guard("./x");
    hooks[0]["provider_data"] =
        json!({"claude-code": {"$matcher": "NeverThere", "$event": "UserPromptSubmit"}});
    let source = manifest(hooks);
    match convert(
        &source,
        ConversionTarget::Agent {
            adapter: agent("claude-code"),
            variant: None,
        },
        &ConversionOptions::default(),
    ) {
        Ok(conversion) => assert_eq!(
            conversion.document.pointer("/hooks/PreToolUse/0/matcher"),
            Some(&json!("Bash|PowerShell|Monitor")),
            "{}",
            conversion.document
        ),
        Err(error) => panic!("{error:#?}"),
    }
}

/// Every class of tools by name, and hooks of one program side by side.
#[test]
fn a_target_of_split_events_takes_any_list_of_tools() {
    let every = json!(["shell", "file_read", "file_write", "file_edit", {"mcp": {"server": "*"}}]);
    for matchers in [
        vec![every.clone()],
        vec![json!("shell"), every.clone()],
        vec![
            json!("shell"),
            json!({"mcp": {"server": "*"}}),
            json!(["shell", "file_read"]),
        ],
        vec![json!("shell"), Value::Null, json!("shell"), Value::Null],
    ] {
        let hooks: Vec<Value> = matchers
            .iter()
            .map(|matcher| {
                let mut hook = guard("./same.sh")[0].clone();
                hook["matcher"] = matcher.clone();
                if matcher.is_null() {
                    hook.as_object_mut().unwrap().remove("matcher");
                }
                hook
            })
            .collect();
        let conversion = to("windsurf", &manifest(json!(hooks)));
        let entries = |event: &str| {
            conversion.document["hooks"][event]
                .as_array()
                .map_or(0, Vec::len)
        };
        let shell = matchers
            .iter()
            .filter(|matcher| matcher.is_null() || matcher.to_string().contains("shell"));
        assert_eq!(entries("pre_run_command"), shell.count());
    }
}

/// A guard whose failure blocks is weaker in an agent that lets failures pass:
/// critical, unless the agent has a field for it, which is kept both ways.
#[test]
fn a_guard_that_blocks_on_failure_stays_one_or_the_loss_is_critical() {
    let mut hooks = guard("./x");
    hooks[0]["on_failure"] = json!("block");
    let source = manifest(hooks);
    for adapter in anyhook_agents::all() {
        let slug = adapter.spec.id.as_ref();
        let conversion = to(slug, &source);
        let found = adapter.decode_config(&conversion.document, None);
        let keeps = adapter.spec.config.handler.fail_closed.is_some();
        for hook in &found.manifest.hooks {
            let expected = keeps.then_some(OnFailure::Block);
            assert_eq!(hook.on_failure, expected, "{slug}");
        }
        let severity = find(&conversion.warnings, "on_failure").severity;
        let is_critical = severity == WarningSeverity::Critical;
        assert_eq!(is_critical, !keeps, "{slug}: {severity:?}");
    }
    for (slug, entry) in [
        ("cursor", json!({"command": "./x", "failClosed": true})),
        (
            "claude-code",
            json!({"type": "command", "command": "./x", "onFailure": "block"}),
        ),
    ] {
        let document = match slug {
            "cursor" => json!({"version": 1, "hooks": {"preToolUse": [entry]}}),
            _ => json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [entry]}]}}),
        };
        let source = ConversionSource::decode(agent(slug), &document, None);
        let hook = &source.manifest.hooks[0];
        assert_eq!(hook.on_failure, Some(OnFailure::Block), "{slug}");
        assert_eq!(to(slug, &source).document, document, "{slug}");
        let warnings = to("codex", &source).warnings;
        let severity = find(&warnings, "on_failure").severity;
        assert_eq!(severity, WarningSeverity::Critical, "{slug}");
    }
}
