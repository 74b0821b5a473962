//! No silent loss: whatever a generated manifest says, a conversion carries it,
//! names it in a warning, or gives no output at all.

#![cfg(test)]

use anyhook_agents::Adapter;
use anyhook_convert::{
    ConversionOptions, ConversionSource, ConversionTarget, ConvertError, WarningSeverity, convert,
};
use anyhook_model::hook::SPEC;
use anyhook_model::{
    ExitRules, Failure, Handler, HandlerKind, Hook, HookEvent, Manifest, Matcher, OnFailure,
    Platform, TimeoutAction, registry,
};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\./[a-z]{1,8}\\.sh",
        Just("echo 'it''s' // a \"test\"".to_owned()),
        Just("node \"$X/hook.js\" --deny=é".to_owned())
    ]
}

fn atom() -> impl Strategy<Value = Matcher> {
    let tools: Vec<&'static str> = registry::TOOLS.iter().map(|tool| tool.name).collect();
    prop_oneof![
        6 => prop::sample::select(tools).prop_map(|name| Matcher::Name(name.into())),
        1 => Just(Matcher::Name("CustomTool".into())),
        1 => Just(Matcher::pattern("file_(read|write)")),
        1 => Just(Matcher::pattern("^mcp__.*")),
        2 => ("[a-z]{2,6}(-[a-z]{2,4})?", option::of("[a-z]{2,6}_[a-z]{2,6}")).prop_map(|(server, tool)| Matcher::mcp(server, tool)),
    ]
}

fn matcher() -> impl Strategy<Value = Option<Matcher>> {
    prop_oneof![
        2 => Just(None),
        4 => atom().prop_map(Some),
        2 => prop::collection::vec(atom(), 1..4).prop_map(|items| Some(Matcher::Any(items))),
    ]
}

fn object(key: &'static str) -> impl Strategy<Value = Map<String, Value>> {
    prop_oneof![3 => Just(Map::new()), 1 => Just(json!({key: "some value"}).as_object().cloned().unwrap())]
}

fn arguments() -> impl Strategy<Value = Option<Vec<String>>> {
    let argument = prop_oneof![
        text(),
        "[ -~]{0,6}",
        Just("${CLAUDE_PROJECT_DIR}/x".to_owned())
    ];
    prop_oneof![
        2 => Just(None),
        1 => prop::collection::vec(argument, 0..3).prop_map(Some),
    ]
}

fn handler() -> impl Strategy<Value = Handler> {
    let kind = prop::sample::select(vec![
        HandlerKind::Command,
        HandlerKind::Command,
        HandlerKind::Command,
        HandlerKind::Http,
        HandlerKind::Prompt,
        HandlerKind::Agent,
    ]);
    let platform = (option::of(text()), option::of(text()), option::of(text())).prop_map(
        |(windows, linux, osx)| Platform {
            windows,
            linux,
            osx,
            ..Platform::default()
        },
    );
    let platform = prop_oneof![3 => Just(Platform::default()), 1 => platform];
    let timeout = prop_oneof![2 => Just(None), 2 => (1u32..900).prop_map(|secs| Some(f64::from(secs))), 1 => Just(Some(0.0)), 1 => Just(Some(1.5))];
    let action = prop::sample::select(vec![
        None,
        None,
        Some(TimeoutAction::Warn),
        Some(TimeoutAction::Block),
    ]);
    let dialect = prop::sample::select(vec![
        None,
        None,
        Some("canonical"),
        Some("claude-code"),
        Some("cursor"),
    ]);
    (
        kind,
        text(),
        platform,
        timeout,
        action,
        any::<bool>(),
        object("KEY"),
        object("extra_field"),
        option::of("[a-z ]{1,9}"),
        dialect,
        arguments(),
    )
        .prop_map(
            |(
                kind,
                command,
                platform,
                timeout,
                timeout_action,
                is_async,
                env,
                extra,
                status_message,
                dialect,
                args,
            )| {
                let mut handler = Handler {
                    kind,
                    timeout,
                    timeout_action,
                    is_async,
                    status_message,
                    extra,
                    dialect: dialect.map(str::to_owned),
                    ..Handler::default()
                };
                match kind {
                    HandlerKind::Command => {
                        handler.command = Some(command);
                        handler.args = args;
                        handler.platform = platform;
                        handler.cwd = env.contains_key("KEY").then(|| "sub".to_owned());
                        handler.env = env;
                    }
                    HandlerKind::Http => {
                        handler.url = Some("https://example.com/hook?a=1//b".into());
                        if !env.is_empty() {
                            handler.headers = json!({"Authorization": "Bearer $TOKEN"})
                                .as_object()
                                .cloned()
                                .unwrap();
                            handler.allowed_env_vars = vec!["TOKEN".into()];
                        }
                    }
                    HandlerKind::Prompt | HandlerKind::Agent => {
                        handler.prompt = Some(command);
                        handler.model = (!env.is_empty()).then(|| "small".to_owned());
                    }
                    HandlerKind::McpTool => {
                        handler.server = Some("srv".into());
                        handler.tool = Some(command);
                        handler.input = env;
                    }
                }
                handler
            },
        )
}

fn hook() -> impl Strategy<Value = Hook> {
    let events: Vec<&'static str> = registry::EVENTS.iter().map(|event| event.name).collect();
    let degradation = prop_oneof![
        3 => Just(Map::new()),
        1 => (prop::sample::select(registry::CAPABILITIES.iter().map(|one| one.name).collect::<Vec<_>>()), prop::sample::select(vec!["block", "warn", "exclude"]))
            .prop_map(|(capability, strategy)| json!({capability: strategy}).as_object().cloned().unwrap()),
    ];
    let capabilities =
        prop_oneof![4 => Just(Vec::new()), 1 => Just(vec!["input_rewrite".to_owned()])];
    let provider_data = prop_oneof![
        4 => Just(Map::new()),
        1 => Just(json!({"windsurf": {"show_output": true, "working_directory": "../../etc", "command": "evil"}, "cursor": {"failClosed": true}}).as_object().cloned().unwrap()),
    ];
    (
        prop::sample::select(events),
        matcher(),
        handler(),
        any::<bool>(),
        prop::sample::select(vec![
            None,
            None,
            Some(OnFailure::Allow),
            Some(OnFailure::Block),
        ]),
        option::of("[a-z]{1,6}"),
        degradation,
        capabilities,
        provider_data,
        object("x-note"),
    )
        .prop_map(
            |(
                event,
                matcher,
                handler,
                blocking,
                on_failure,
                name,
                degradation,
                capabilities,
                provider_data,
                extra,
            )| {
                let mut hook = Hook {
                    name,
                    event: event.to_owned(),
                    matcher,
                    handler,
                    blocking,
                    on_failure,
                    degradation,
                    capabilities,
                    provider_data,
                    ..Hook::default()
                };
                hook.extra = extra;
                hook
            },
        )
}

fn manifest() -> impl Strategy<Value = Manifest> {
    (prop::collection::vec(hook(), 1..6), object("$schema")).prop_map(|(hooks, extra)| Manifest {
        spec: SPEC.into(),
        hooks,
        sequential: false,
        extra,
    })
}

/// Agents whose config is a document.
fn targets() -> impl Iterator<Item = &'static Adapter> {
    anyhook_agents::all()
}

fn check(source: &ConversionSource, adapter: &'static Adapter) -> Result<(), TestCaseError> {
    let name = &adapter.spec.id;
    let (warnings, document) = match convert(
        source,
        ConversionTarget::Agent {
            adapter,
            variant: None,
        },
        &ConversionOptions::default(),
    ) {
        Ok(conversion) => (conversion.warnings, conversion.document),
        Err(ConvertError::NothingLeft { warnings }) => (warnings, Value::Null),
        Err(ConvertError::Unfaithful {
            differences,
            warnings,
        }) => {
            return Err(TestCaseError::fail(format!(
                "{name}: {differences:#?}\n{warnings:#?}\n{}",
                serde_json::to_string_pretty(&source.manifest).unwrap()
            )));
        }
    };
    let read = adapter.decode_config(&document, None).manifest.hooks;
    for (index, hook) in source.manifest.hooks.iter().enumerate() {
        let told = warnings.iter().any(|warning| {
            warning.hook == Some(index + 1) && warning.severity >= WarningSeverity::Critical
        });
        if let Some(how) = weakened(hook, &read, adapter) {
            prop_assert!(
                told,
                "{name}: hook {} {how}, without a word of weight: {warnings:#?}\n{}\n{document}",
                index + 1,
                serde_json::to_string_pretty(hook).unwrap()
            );
        }
    }
    Ok(())
}

/// How the target's own file protects less than the hook did. Judged by the file alone,
/// not by the warnings of the conversion.
fn weakened(hook: &Hook, read: &[Hook], adapter: &Adapter) -> Option<&'static str> {
    let rewrites = hook.capabilities.iter().any(|name| name == "input_rewrite");
    if !hook.blocking && !rewrites {
        return None;
    }
    let tag = tag(hook)?;
    let found: Vec<&Hook> = read
        .iter()
        .filter(|other| {
            tag_of(&serde_json::to_string(&other.handler).unwrap()) == Some(tag.clone())
        })
        .collect();
    if found.is_empty() {
        return Some("is gone");
    }
    let denies = found.iter().all(|other| {
        other
            .handler
            .command
            .as_ref()
            .is_some_and(|command| command.contains("BLOCKED"))
    });
    let semantic = registry::event(&hook.event).map(|event| event.blocking);
    let blocks = found.iter().all(|other| other.blocking);
    if hook.blocking && !blocks && semantic != Some(registry::Semantic::Observe) {
        return Some("only watches");
    }
    for (meant, there) in calls(hook, adapter) {
        let fires = |one: &Hook, call: &HookEvent| {
            one.event == call.event && anyhook_model::matches(one.matcher.as_ref(), call)
        };
        let missed = !there
            .iter()
            .any(|call| found.iter().any(|other| fires(other, call)));
        if fires(hook, &meant) && missed {
            return Some("misses a tool");
        }
    }
    if denies {
        return None;
    }
    for (failure, how) in [
        (Failure::Timeout, "no longer blocks when it takes too long"),
        (Failure::Exit(1), "no longer blocks when it fails"),
    ] {
        // Whether it may block at all is judged above.
        let blocks = |hook: &Hook| {
            let mut rules = ExitRules::for_hook(hook, false);
            rules.blocking = true;
            rules.blocks_on(&failure)
        };
        if hook.blocking && blocks(hook) && !found.iter().all(|other| blocks(other)) {
            return Some(how);
        }
    }
    let shorter = |other: &&Hook| {
        let (was, is) = (hook.handler.timeout, other.handler.timeout);
        was.zip(is).is_some_and(|(was, is)| was > 0.0 && is < was)
    };
    if found.iter().any(shorter) {
        return Some("has less time");
    }
    let can_rewrite = |other: &&Hook| {
        adapter
            .events_of(&other.event)
            .any(|event| adapter.can_rewrite(event))
    };
    (rewrites && !found.iter().any(can_rewrite)).then_some("rewrites nothing")
}

/// A call of every tool that the agent has, and of an MCP tool that the matcher
/// names; each with how the agent itself may call it.
fn calls(hook: &Hook, adapter: &Adapter) -> Vec<(HookEvent, Vec<HookEvent>)> {
    let call = |data: Value| HookEvent {
        event: hook.event.clone(),
        data: data.as_object().cloned().unwrap(),
        ..HookEvent::default()
    };
    let mut calls: Vec<_> = registry::TOOLS
        .iter()
        .filter(|tool| !adapter.native_names(tool.name).is_empty())
        .map(|tool| call(json!({"tool_name": tool.name})))
        .map(|call| (call.clone(), vec![call]))
        .collect();
    if let Some(Matcher::Mcp { mcp, .. }) = &hook.matcher {
        let tool = mcp.tool.as_deref().unwrap_or("some_tool");
        let named = |server: &str| {
            call(json!({"tool_name": tool, "mcp": {"server": server, "tool": tool}}))
        };
        let mut there = vec![named(&mcp.server), named(&adapter.mcp_server(&mcp.server))];
        if let Some(name) = adapter.mcp_name(&mcp.server, tool) {
            there.push(call(json!({"tool_name": name})));
        }
        calls.push((named(&mcp.server), there));
    }
    calls
}

/// Each hook's program has a tag, by which it is found again wherever it went.
fn tag(hook: &Hook) -> Option<String> {
    tag_of(&serde_json::to_string(&hook.handler).unwrap())
}

fn tag_of(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("tag-")?;
    Some(rest.chars().take(2).collect())
}

fn tagged(mut manifest: Manifest) -> Manifest {
    for (index, hook) in manifest.hooks.iter_mut().enumerate() {
        let handler = &mut hook.handler;
        let texts = [
            &mut handler.command,
            &mut handler.url,
            &mut handler.prompt,
            &mut handler.platform.windows,
            &mut handler.platform.linux,
            &mut handler.platform.osx,
        ];
        for text in texts.into_iter().flatten() {
            *text = format!("{text}tag-{index:02}");
        }
    }
    manifest
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn canonical_to_every_agent(manifest in manifest()) {
        for manifest in [tagged(manifest.clone()), manifest] {
            let source = ConversionSource::canonical(manifest);
            for adapter in targets() {
                check(&source, adapter)?;
            }
        }
    }

    /// What one agent's file says is carried to every other, or named.
    #[test]
    fn every_agent_to_every_other(manifest in manifest()) {
        let canonical = ConversionSource::canonical(tagged(manifest));
        for from in targets() {
            let Ok(first) = convert(&canonical, ConversionTarget::Agent { adapter: from, variant: None }, &ConversionOptions::default()) else { continue };
            let source = ConversionSource::decode(from, &first.document, None);
            for to in targets() {
                check(&source, to)?;
            }
            let again = convert(&source, ConversionTarget::Agent { adapter: from, variant: None }, &ConversionOptions::default());
            let again = again.map_err(|error| TestCaseError::fail(format!("{}: {error:?}", from.spec.id)))?;
            prop_assert_eq!(again.document, first.document, "{} to itself", from.spec.id);
        }
    }

    /// Decoders survive any JSON.
    #[test]
    fn decoders_never_panic(document in arbitrary_json()) {
        for adapter in targets() {
            let source = ConversionSource::decode(adapter, &document, None);
            let _ = convert(&source, ConversionTarget::Agent { adapter, variant: None }, &ConversionOptions::default());
            for variant in adapter.spec.config.variant.keys() {
                let _ = ConversionSource::decode(adapter, &document, Some(variant));
            }
            let _ = adapter.decode(&document, None);
        }
        let _ = anyhook_convert::detect(None, &document);
    }
}

fn arbitrary_json() -> impl Strategy<Value = Value> {
    let keys = prop::sample::select(vec![
        "hooks",
        "PreToolUse",
        "matcher",
        "command",
        "type",
        "preToolUse",
        "pre_run_command",
        "version",
        "trigger",
        "action",
        "timeout",
        "x",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z|^$(.*)@/]{0,12}".prop_map(Value::from),
        Just(json!("command")),
    ];
    leaf.prop_recursive(6, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..5).prop_map(|pairs| Value::Object(
                pairs
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect()
            )),
        ]
    })
}
