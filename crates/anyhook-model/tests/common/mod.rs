//! Generated manifests, as JSON values.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Words that formats like to read as something else are among them.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z][a-z0-9_./-]{0,12}",
        "[ -~]{1,20}",
        "[a-zäß€😀\"\\\\\n\t:#'-]{1,12}",
        proptest::sample::select(vec![
            "yes",
            "no",
            "null",
            "~",
            "true",
            "1.5",
            "0x1F",
            "1e3",
            "- a",
            "a: b",
            "# no",
            "%x",
            "@y",
            "`z`",
            "*a",
            "&b",
            "!c",
            "2024-01-01",
            "|",
            ">",
            "",
            " ",
            "<<",
            "..",
            "---",
            "=",
            ".inf",
        ])
        .prop_map(str::to_owned),
    ]
}

fn filled() -> impl Strategy<Value = String> {
    text().prop_map(|text| {
        if text.trim().is_empty() {
            "x".into()
        } else {
            text
        }
    })
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e9..1e9f64).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            object_of(inner).prop_map(Value::from),
        ]
    })
}

fn object_of(values: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    vec((text(), values), 0..4).prop_map(|pairs| pairs.into_iter().collect())
}

fn texts() -> impl Strategy<Value = Value> {
    object_of(text().prop_map(Value::from)).prop_map(Value::from)
}

fn matcher() -> impl Strategy<Value = Value> {
    let one = prop_oneof![
        proptest::sample::select(vec!["shell", "file_edit", "Bash"]).prop_map(Value::from),
        "[a-z_|().*]{1,4}[a-z]".prop_filter_map("a pattern", |pattern| {
            anyhook_model::matching::Pattern::new(&pattern).ok()?;
            Some(json!({"pattern": pattern}))
        }),
        filled().prop_map(|server| json!({"mcp": {"server": server}})),
        (filled(), filled())
            .prop_map(|(server, tool)| json!({"mcp": {"server": server, "tool": tool}, "x": 1})),
    ];
    prop_oneof![one.clone(), vec(one, 0..4).prop_map(Value::from),]
}

fn handler() -> impl Strategy<Value = Value> {
    let kind = prop_oneof![
        filled().prop_map(|command| json!({"type": "command", "command": command})),
        Just(json!({"type": "http", "url": "https://example.com/hook"})),
        filled().prop_map(|prompt| json!({"type": "prompt", "prompt": prompt})),
        filled().prop_map(|prompt| json!({"type": "agent", "prompt": prompt, "model": "m"})),
    ];
    let timeout = prop_oneof![
        (0..100u32).prop_map(Value::from),
        (0.0..99.0f64).prop_map(Value::from)
    ];
    let optional = (
        proptest::option::of(timeout),
        proptest::option::of(any::<bool>()),
        proptest::option::of(texts()),
        proptest::option::of(filled()),
        proptest::option::of(proptest::sample::select(vec!["osx", "linux", "windows"])),
        object_of(anything()),
    );
    (kind, optional).prop_map(|(kind, (timeout, flag, env, cwd, platform, extra))| {
        let mut object = extra_fields(extra);
        object.extend(kind.as_object().cloned().unwrap_or_default());
        let fields = [
            ("timeout", timeout),
            ("async", flag.map(Value::from)),
            ("env", env),
            ("cwd", cwd.map(Value::from)),
            ("platform", platform.map(|key| json!({key: "./x"}))),
        ];
        for (key, value) in fields {
            object.extend(value.map(|value| (key.to_owned(), value)));
        }
        Value::from(object)
    })
}

/// Renamed, so that they never collide with a known field.
fn extra_fields(fields: Map<String, Value>) -> Map<String, Value> {
    fields
        .into_iter()
        .map(|(key, value)| (format!("x-{key}"), value))
        .collect()
}

fn hook() -> impl Strategy<Value = Value> {
    let event = prop_oneof![
        proptest::sample::select(vec![
            "before_tool_execute",
            "session_start",
            "agent_stop",
            "SomeNativeEvent"
        ])
        .prop_map(str::to_owned),
        filled(),
    ];
    let optional = (
        proptest::option::of(filled()),
        proptest::option::of(matcher()),
        proptest::option::of(any::<bool>()),
        proptest::option::of(proptest::sample::select(vec!["block", "warn", "exclude"])),
        object_of(anything()),
    );
    (event, handler(), optional).prop_map(
        |(event, handler, (name, matcher, blocking, strategy, extra))| {
            let mut object = extra_fields(extra);
            object.insert("event".into(), event.into());
            object.insert("handler".into(), handler);
            let fields = [
                ("name", name.map(Value::from)),
                ("matcher", matcher),
                ("blocking", blocking.map(Value::from)),
                (
                    "degradation",
                    strategy.map(|strategy| json!({"input_rewrite": strategy})),
                ),
                (
                    "provider_data",
                    strategy.map(|strategy| json!({"some-agent": {"a": strategy}})),
                ),
            ];
            for (key, value) in fields {
                object.extend(value.map(|value| (key.to_owned(), value)));
            }
            Value::from(object)
        },
    )
}

/// Valid manifests.
pub(crate) fn manifest() -> impl Strategy<Value = Value> {
    let spec = proptest::sample::select(vec!["hooks/1.0", "hooks/0.1"]);
    (spec, vec(hook(), 1..5), object_of(anything())).prop_map(|(spec, hooks, extra)| {
        let mut object = extra_fields(extra);
        object.insert("spec".into(), spec.into());
        object.insert("hooks".into(), hooks.into());
        Value::from(object)
    })
}
