//! Stage 4: the output is read again and compared with the source. What
//! differs and is named by no warning is a defect of ours, and stops the
//! conversion.

use anyhook_agents::Adapter;
use anyhook_model::{Hook, Matcher, TimeoutAction};
use serde_json::Value;

use crate::Source;
use crate::report::Warning;
use crate::validate::Validated;

/// A field that came back otherwise than it went in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Position of the hook in the source, from 1.
    pub hook: usize,
    pub field: String,
    pub expected: String,
    pub found: String,
}

pub(crate) fn verify(
    source: &Source,
    adapter: &Adapter,
    variant: Option<&str>,
    document: &Value,
    validated: &[Validated],
    warnings: &[Warning],
) -> Vec<Difference> {
    let decoded = adapter.decode_config(document, variant).manifest.hooks;
    let mut taken = vec![false; decoded.len()];
    let mut differences = Vec::new();
    for hook in validated {
        let Some(original) = source.manifest.hooks.get(hook.index) else {
            continue;
        };
        let about = |field: &str| {
            warnings.iter().any(|warning| {
                warning.hook == Some(hook.index + 1)
                    && (warning.field == field
                        || warning.field == "hook"
                        || field.starts_with(&format!("{}.", warning.field)))
            })
        };
        let Some(placement) = hook.placements.first() else {
            if !warnings
                .iter()
                .any(|warning| warning.hook == Some(hook.index + 1))
            {
                differences.push(missing(hook.index, "the hook"));
            }
            continue;
        };
        let wanted = &placement.handler;
        let same = |found: &Hook| {
            found.handler.command == wanted.command
                && found.handler.url == wanted.url
                && found.handler.prompt == wanted.prompt
                && found.handler.kind == wanted.kind
        };
        let position =
            best(original, &decoded, &taken, &same).or_else(|| decoded.iter().position(same));
        let Some((position, found)) = position.and_then(|at| Some((at, decoded.get(at)?))) else {
            differences.push(missing(hook.index, "the hook"));
            continue;
        };
        if let Some(taken) = taken.get_mut(position) {
            *taken = true;
        }
        for (field, expected, got) in compare(original, found, &adapter.spec.id) {
            if !about(&field) {
                differences.push(Difference {
                    hook: hook.index + 1,
                    field,
                    expected,
                    found: got,
                });
            }
        }
    }
    for (hook, taken) in decoded.iter().zip(&taken) {
        if !taken {
            differences.push(Difference {
                hook: 0,
                field: "hooks".into(),
                expected: "nothing".into(),
                found: hook.handler.command.clone().unwrap_or_default(),
            });
        }
    }
    differences
}

/// Of the hooks that run the same thing, the one that is most like it.
fn best(
    original: &Hook,
    decoded: &[Hook],
    taken: &[bool],
    same: &dyn Fn(&Hook) -> bool,
) -> Option<usize> {
    decoded
        .iter()
        .enumerate()
        .filter(|(at, found)| same(found) && taken.get(*at) == Some(&false))
        .max_by_key(|(at, found)| {
            let alike = usize::from(found.event == original.event) * 4
                + usize::from(plain(found.matcher.as_ref()) == plain(original.matcher.as_ref()))
                    * 2
                + usize::from(found.handler == original.handler);
            (alike, decoded.len() - at)
        })
        .map(|(at, _)| at)
}

fn missing(index: usize, what: &str) -> Difference {
    Difference {
        hook: index + 1,
        field: "hook".into(),
        expected: what.into(),
        found: "nothing".into(),
    }
}

/// Fields in which the two differ, with both values.
fn compare(original: &Hook, found: &Hook, id: &str) -> Vec<(String, String, String)> {
    let mut out = Vec::new();
    let mut check = |field: &str, left: Value, right: Value| {
        if left != right {
            out.push((field.to_owned(), left.to_string(), right.to_string()));
        }
    };
    let (was, is) = (&original.handler, &found.handler);
    check(
        "event",
        Value::from(original.event.clone()),
        Value::from(found.event.clone()),
    );
    check(
        "matcher",
        plain(original.matcher.as_ref()),
        plain(found.matcher.as_ref()),
    );
    check(
        "name",
        Value::from(original.name.clone()),
        Value::from(found.name.clone()),
    );
    check(
        "blocking",
        Value::from(original.blocking),
        Value::from(found.blocking),
    );
    check(
        "handler.type",
        Value::from(was.kind.as_str()),
        Value::from(is.kind.as_str()),
    );
    check(
        "handler.command",
        Value::from(was.command.clone()),
        Value::from(is.command.clone()),
    );
    check(
        "handler.timeout",
        Value::from(was.timeout),
        Value::from(is.timeout),
    );
    let blocks = |action: Option<TimeoutAction>| Value::from(action == Some(TimeoutAction::Block));
    check(
        "handler.timeout_action",
        blocks(was.timeout_action),
        blocks(is.timeout_action),
    );
    check(
        "handler.async",
        Value::from(was.is_async),
        Value::from(is.is_async),
    );
    check(
        "handler.cwd",
        Value::from(was.cwd.clone()),
        Value::from(is.cwd.clone()),
    );
    check(
        "handler.env",
        Value::Object(was.env.clone()),
        Value::Object(is.env.clone()),
    );
    let platform =
        |platform: &anyhook_model::Platform| serde_json::to_value(platform).unwrap_or_default();
    check(
        "handler.platform",
        platform(&was.platform),
        platform(&is.platform),
    );
    check(
        "handler.url",
        Value::from(was.url.clone()),
        Value::from(is.url.clone()),
    );
    check(
        "handler.headers",
        Value::Object(was.headers.clone()),
        Value::Object(is.headers.clone()),
    );
    check(
        "handler.allowed_env_vars",
        Value::from(was.allowed_env_vars.clone()),
        Value::from(is.allowed_env_vars.clone()),
    );
    check(
        "handler.prompt",
        Value::from(was.prompt.clone()),
        Value::from(is.prompt.clone()),
    );
    check(
        "handler.model",
        Value::from(was.model.clone()),
        Value::from(is.model.clone()),
    );
    check(
        "handler.status_message",
        Value::from(was.status_message.clone()),
        Value::from(is.status_message.clone()),
    );
    check(
        "handler.dialect",
        Value::from(was.dialect.clone()),
        Value::from(is.dialect.clone()),
    );
    check(
        "degradation",
        Value::Object(original.degradation.clone()),
        Value::Object(found.degradation.clone()),
    );
    check(
        "capabilities",
        Value::from(original.capabilities.clone()),
        Value::from(found.capabilities.clone()),
    );
    for (key, value) in &was.extra {
        check(&format!("handler.{key}"), value.clone(), Value::Null);
    }
    for (key, value) in &original.extra {
        check(key, value.clone(), Value::Null);
    }
    for agent in original.provider_data.keys().filter(|agent| *agent != id) {
        check(
            &format!("provider_data.{agent}"),
            Value::Bool(true),
            Value::Bool(false),
        );
    }
    out
}

/// A matcher without the freedoms of writing: order, doubles, lists of one.
fn plain(matcher: Option<&Matcher>) -> Value {
    fn atoms(matcher: &Matcher, out: &mut Vec<String>) {
        match matcher {
            Matcher::Any(items) => items.iter().for_each(|item| atoms(item, out)),
            one => out.push(serde_json::to_string(one).unwrap_or_default()),
        }
    }
    let mut all = Vec::new();
    if let Some(matcher) = matcher {
        atoms(matcher, &mut all);
    }
    all.sort();
    all.dedup();
    Value::from(all)
}
