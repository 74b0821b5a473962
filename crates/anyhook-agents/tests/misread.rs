//! A deny that a hook has written badly never becomes silence, in the form of any agent.

use anyhook_agents::Adapter;
use anyhook_agents::spec::{AnswerPart, AnswerProfile, EventSpec};
use anyhook_model::HookEvent;
use serde_json::{Map, Value, json};

/// Every event of every agent at which a hook can deny by an answer on stdout, with an
/// answer that denies.
fn denies() -> Vec<(
    &'static Adapter,
    &'static EventSpec,
    &'static AnswerProfile,
    Value,
)> {
    let mut found = Vec::new();
    for adapter in anyhook_agents::all() {
        for event in &adapter.spec.events {
            let profile = event.answer.as_ref();
            let Some(profile) = profile.and_then(|name| adapter.spec.answers.get(name)) else {
                continue;
            };
            for answer in adapter.answer_forms(event, AnswerPart::Deny, "no") {
                if let Ok(json @ Value::Object(_)) = serde_json::from_str(&answer.stdout) {
                    found.push((adapter, event, profile, json));
                }
            }
        }
    }
    assert!(found.len() > 60, "{}", found.len());
    found
}

/// What the agent makes of the output: whether it decides, and why it would not.
fn reading(adapter: &Adapter, event: &EventSpec, stdout: &str) -> (bool, Option<String>, bool) {
    let call = HookEvent {
        event: event.is.as_deref().unwrap_or(&event.native).to_owned(),
        source: adapter.spec.id.to_string(),
        native_event: event.native.to_string(),
        ..HookEvent::default()
    };
    let read = adapter.decode_answer(&call, &event.native, stdout, "", 0);
    let decides = read.response.decision.is_some() || read.response.should_continue == Some(false);
    (decides, read.error, read.is_meant_as_deny)
}

/// Another word for a fixed value.
type Change = dyn Fn(&Value) -> Option<Value>;

/// The answer with other words where it has fixed values.
fn with_other_words(answer: &Value, other: &Change) -> Vec<Value> {
    fn walk(value: &mut Value, at: &mut Vec<String>, visit: &mut dyn FnMut(&[String], &mut Value)) {
        if let Value::Object(map) = value {
            for (key, inner) in map.iter_mut() {
                at.push(key.clone());
                walk(inner, at, visit);
                at.pop();
            }
        } else {
            visit(at, value);
        }
    }
    let mut pointers = Vec::new();
    walk(&mut answer.clone(), &mut Vec::new(), &mut |at, value| {
        let is_word = match &*value {
            Value::Bool(_) => true,
            Value::String(text) => ["deny", "block", "ask", "decline"].contains(&text.as_str()),
            _ => false,
        };
        if is_word {
            pointers.push(format!("/{}", at.join("/")));
        }
    });
    // All at once: some agents read the same decision in two places.
    let mut changed = answer.clone();
    let mut is_changed = false;
    for pointer in pointers {
        if let Some(value) = changed.pointer_mut(&pointer)
            && let Some(new) = other(value)
        {
            *value = new;
            is_changed = true;
        }
    }
    is_changed.then_some(changed).into_iter().collect()
}

#[test]
fn a_deny_in_other_words_is_never_silent() {
    let mut count = 0;
    for (adapter, event, _, answer) in denies() {
        let agent = &adapter.spec.id;
        assert!(
            reading(adapter, event, &answer.to_string()).0,
            "{agent}: {answer}"
        );
        let upper = |value: &Value| Some(json!(value.as_str()?.to_uppercase()));
        let denied = |value: &Value| value.as_str().map(|_| json!("denied"));
        let unheard = |value: &Value| value.as_str().map(|_| json!("forbid it"));
        let number = |value: &Value| value.as_str().map(|_| json!(1));
        let quoted = |value: &Value| Some(json!(value.as_bool()?.to_string()));
        let others: [&Change; 5] = [&upper, &denied, &unheard, &number, &quoted];
        for other in others {
            for changed in with_other_words(&answer, other) {
                let (decides, error, _) = reading(adapter, event, &changed.to_string());
                assert!(
                    decides || error.is_some(),
                    "{agent} {}: {changed}",
                    event.native
                );
                count += 1;
            }
        }
    }
    assert!(count > 150, "{count}");
}

#[test]
fn a_deny_in_other_words_is_known_as_one() {
    for (adapter, event, _, answer) in denies() {
        let denied = |value: &Value| (value == "deny" || value == "block").then(|| json!("Denied"));
        for changed in with_other_words(&answer, &denied) {
            let (decides, _, is_deny) = reading(adapter, event, &changed.to_string());
            assert!(
                decides || is_deny,
                "{} {}: {changed}",
                adapter.spec.id,
                event.native
            );
        }
    }
}

#[test]
fn a_deny_after_other_text_is_never_silent() {
    for (adapter, event, profile, answer) in denies() {
        let agent = &adapter.spec.id;
        for text in ["checking…\n", "[guard] rm\n\n  ", "{not json}\n"] {
            let stdout = format!("{text}{answer}\n");
            let (decides, error, _) = reading(adapter, event, &stdout);
            assert!(
                decides || error.is_some(),
                "{agent} {}: {stdout}",
                event.native
            );
        }
        let list = json!([answer]).to_string();
        if profile.plain == anyhook_agents::spec::PlainText::Ignored {
            assert!(
                reading(adapter, event, &list).1.is_some(),
                "{agent}: {list}"
            );
        }
    }
}

#[test]
fn a_misspelt_key_of_a_deny_is_never_silent() {
    for (adapter, event, _, answer) in denies() {
        let Value::Object(fields) = &answer else {
            continue;
        };
        let misspelt: Map<String, Value> = fields
            .iter()
            .map(|(key, value)| (misspell(key), value.clone()))
            .collect();
        let misspelt = Value::Object(misspelt);
        let (decides, error, _) = reading(adapter, event, &misspelt.to_string());
        // Where a mere reason denies there is no word that could be known.
        let only_reasons = fields
            .values()
            .all(|value| value.is_string() && value != "deny" && value != "block");
        let agent = &adapter.spec.id;
        assert!(
            decides || error.is_some() || only_reasons,
            "{agent} {}: {misspelt}",
            event.native
        );
    }
}

fn misspell(key: &str) -> String {
    let mut letters: Vec<char> = key.chars().collect();
    letters.pop();
    letters.into_iter().collect()
}

#[test]
fn the_form_of_another_agent_is_never_silent() {
    let foreign = [
        json!({"permissionDecision": "deny"}),
        json!({"permission": "deny"}),
        json!({"decision": "deny"}),
        json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}}),
        json!({"cancel": true, "errorMessage": "no"}),
    ];
    for (adapter, event, _, _) in denies() {
        if event.is.as_deref() != Some("before_tool_execute") {
            continue;
        }
        for answer in &foreign {
            let (decides, error, _) = reading(adapter, event, &answer.to_string());
            let agent = &adapter.spec.id;
            assert!(
                decides || error.is_some(),
                "{agent} {}: {answer}",
                event.native
            );
        }
    }
}

/// What real hooks print that has nothing against a call.
#[test]
fn harmless_output_is_no_failure() {
    let harmless = [
        "",
        "{}",
        "ok\n",
        "checked 3 files [fine]\n",
        "{\"continue\": true}",
        "{\"decision\": null}",
        "{\"decision\": \"approve\"}",
        "{\"systemMessage\": \"hello\"}",
        "{\"suppressOutput\": false}",
        "{\"status\": \"ok\", \"checked\": [1, 2]}",
        "log line\n{\"level\": \"info\", \"message\": \"done\"}\n",
    ];
    for (adapter, event, profile, _) in denies() {
        for stdout in harmless {
            let plain = !stdout.starts_with('{') && !stdout.is_empty();
            if plain && profile.plain == anyhook_agents::spec::PlainText::Error {
                continue;
            }
            let (_, error, is_deny) = reading(adapter, event, stdout);
            let agent = &adapter.spec.id;
            assert!(
                error.is_none() && !is_deny,
                "{agent} {}: {stdout}: {error:?}",
                event.native
            );
        }
    }
}
