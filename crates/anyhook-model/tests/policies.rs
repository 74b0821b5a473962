//! Which hooks may run, and which capabilities a hook is seen to need.

#![cfg(test)]

use anyhook_model::{Format, Hook, Policies, Policy, Scope, Vocabulary, infer_capabilities, parse};
use serde_json::{Value, json};

fn policy(text: &str) -> Option<Policy> {
    let (policy, findings) =
        parse::policy(text, Format::Yaml, Scope::Managed, &Vocabulary::default());
    assert_eq!(findings, [], "{text}");
    policy
}

fn hook(value: Value) -> Hook {
    serde_json::from_value(value).unwrap()
}

fn guard() -> Hook {
    hook(
        json!({"event": "before_tool_execute", "handler": {"type": "http", "url": "https://x"}, "blocking": true}),
    )
}

/// The refusing rule and scope for hooks of each scope, managed first.
fn verdicts(policies: &Policies) -> [Refused; 3] {
    let guard = guard();
    let needs = infer_capabilities(&guard, None);
    [Scope::Managed, Scope::User, Scope::Project].map(|scope| {
        let names = needs.iter().map(|need| need.capability);
        policies
            .admit(scope, &guard, names)
            .err()
            .map(|refusal| (refusal.rule, refusal.scope))
    })
}

type Refused = Option<(String, Scope)>;

fn refused(rule: &str, scope: Scope) -> Refused {
    Refused::from((rule.to_owned(), scope))
}

#[test]
fn without_a_policy_all_may_run() {
    assert_eq!(verdicts(&Policies::default()), [None, None, None]);
}

#[test]
fn each_rule_refuses() {
    for (text, rule, managed_too) in [
        ("disable_all_hooks: true", "disable_all_hooks", true),
        ("allow_managed_only: true", "allow_managed_only", false),
        (
            "event_restrictions: {before_tool_execute: deny}",
            "event_restrictions.before_tool_execute",
            true,
        ),
        (
            "event_restrictions: {before_tool_execute: managed_only}",
            "event_restrictions.before_tool_execute",
            false,
        ),
        (
            "capability_restrictions: {http_handler: deny}",
            "capability_restrictions.http_handler",
            true,
        ),
        (
            "capability_restrictions: {http_handler: managed_only}",
            "capability_restrictions.http_handler",
            false,
        ),
    ] {
        let policies = Policies {
            managed: policy(text),
            ..Policies::default()
        };
        let refusal = refused(rule, Scope::Managed);
        let managed = refusal.clone().filter(|_| managed_too);
        assert_eq!(
            verdicts(&policies),
            [managed, refusal.clone(), refusal],
            "{text}"
        );
    }
}

#[test]
fn others_events_and_capabilities_are_not_restricted() {
    let policies = Policies {
        managed: policy(
            "event_restrictions: {before_prompt: deny}\ncapability_restrictions: {llm_evaluated: deny}",
        ),
        ..Policies::default()
    };
    assert_eq!(verdicts(&policies), [None, None, None]);
}

#[test]
fn the_first_refusal_is_named_and_the_higher_scope_first() {
    let all = "disable_all_hooks: true\nallow_managed_only: true\nevent_restrictions: {before_tool_execute: deny}";
    let policies = Policies {
        managed: policy("event_restrictions: {before_tool_execute: managed_only}"),
        user: policy(all),
        project: policy(all),
    };
    assert_eq!(
        verdicts(&policies),
        [
            None,
            refused("disable_all_hooks", Scope::User),
            refused("disable_all_hooks", Scope::User)
        ]
    );
}

#[test]
fn a_lower_scope_tightens_for_itself_and_never_loosens() {
    let policies = Policies {
        managed: policy("event_restrictions: {before_tool_execute: managed_only}"),
        user: policy("event_restrictions: {before_tool_execute: allow}"),
        project: policy("event_restrictions: {before_tool_execute: allow}"),
    };
    let refusal = refused("event_restrictions.before_tool_execute", Scope::Managed);
    assert_eq!(verdicts(&policies), [None, refusal.clone(), refusal]);

    let project_only = Policies {
        project: policy("disable_all_hooks: true"),
        ..Policies::default()
    };
    assert_eq!(
        verdicts(&project_only),
        [None, None, refused("disable_all_hooks", Scope::Project)]
    );
}

#[test]
fn only_the_managed_policy_fails_closed() {
    let closed = policy("fail_closed: true");
    assert!(
        Policies {
            managed: closed.clone(),
            ..Policies::default()
        }
        .fail_closed()
    );
    assert!(
        !Policies {
            user: closed.clone(),
            project: closed,
            ..Policies::default()
        }
        .fail_closed()
    );
}

#[test]
fn mistakes_in_a_policy_are_found() {
    let text = "disable_all_hook: true\nevent_restrictions:\n  before_promt: deny\n  before_prompt: never\nfail_closed: 1\n";
    let (policy, findings) = parse::policy(text, Format::Yaml, Scope::User, &Vocabulary::default());
    assert_eq!(policy, None);
    let codes: Vec<_> = findings.iter().map(|finding| finding.code).collect();
    assert_eq!(
        codes,
        [
            "unknown-field",
            "unknown-event",
            "unknown-restriction",
            "no-effect",
            "wrong-type"
        ]
    );
}

#[track_caller]
fn assert_needs(handler: Value, rest: Value, script: Option<&str>, expected: &[(&str, bool)]) {
    let mut value = json!({"event": "before_tool_execute", "handler": handler});
    value
        .as_object_mut()
        .unwrap()
        .extend(rest.as_object().unwrap().clone());
    let needs = infer_capabilities(&hook(value), script);
    let found: Vec<_> = needs
        .iter()
        .map(|need| (need.capability, need.certain))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn capabilities_are_read_off_the_hook() {
    let command = || json!({"type": "command", "command": "./x"});
    assert_needs(command(), json!({}), None, &[]);
    assert_needs(command(), json!({}), Some("echo ok"), &[]);
    assert_needs(
        command(),
        json!({"blocking": true}),
        None,
        &[("structured_output", true)],
    );
    assert_needs(
        command(),
        json!({}),
        Some("print(updatedInput)"),
        &[("input_rewrite", false)],
    );
    let both = [("structured_output", true), ("input_rewrite", true)];
    assert_needs(
        command(),
        json!({"degradation": {"input_rewrite": "block"}}),
        None,
        &both,
    );
    assert_needs(
        command(),
        json!({"capabilities": ["input_rewrite", "http_handler"]}),
        None,
        &both,
    );
    assert_needs(
        command(),
        json!({"degradation": {"custom_env": "warn"}}),
        None,
        &[],
    );
    for (handler, capability) in [
        (json!({"type": "http", "url": "https://x"}), "http_handler"),
        (json!({"type": "prompt", "prompt": "x"}), "llm_evaluated"),
        (json!({"type": "agent", "prompt": "x"}), "llm_evaluated"),
        (
            json!({"type": "command", "command": "x", "async": true}),
            "async_execution",
        ),
        (
            json!({"type": "command", "command": "x", "platform": {"darwin": "y"}}),
            "platform_commands",
        ),
        (
            json!({"type": "command", "command": "x", "env": {"A": "b"}}),
            "custom_env",
        ),
        (
            json!({"type": "command", "command": "x", "cwd": "."}),
            "configurable_cwd",
        ),
    ] {
        assert_needs(handler, json!({}), None, &[(capability, true)]);
    }
}
