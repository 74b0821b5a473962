//! From a hook's end to a decision, row by row and by property; and what
//! several hooks come to.

use anyhook_model::answer::{ParsedStdout, parse_answer};
use anyhook_model::decide::apply_exit_contract;
use anyhook_model::{
    Decision, Ending, ExitRules, Failure, HookOutcome, HookResponse, OnFailure, RunOutcome,
    TimeoutAction, merge, merge_all, resolve_ask,
};
use proptest::prelude::*;
use serde_json::{Map, json};

/// The contract for a canonical handler.
fn decide(rules: ExitRules, ending: &Ending, stdout: &str, stderr: &str) -> HookOutcome {
    let stdout = match ending {
        Ending::Exit(0 | 2) => parse_answer(stdout),
        _ => ParsedStdout::Empty,
    };
    apply_exit_contract(rules, ending, stdout, stderr)
}

const BLOCKING: ExitRules = ExitRules {
    blocking: true,
    on_failure: OnFailure::Allow,
    timeout_action: None,
    fail_closed: false,
};
const OBSERVING: ExitRules = ExitRules {
    blocking: false,
    ..BLOCKING
};

fn exit(rules: ExitRules, code: i32, stdout: &str, stderr: &str) -> HookOutcome {
    decide(rules, &Ending::Exit(code), stdout, stderr)
}

#[track_caller]
fn assert_outcome(
    outcome: &HookOutcome,
    decision: Option<Decision>,
    run: RunOutcome,
    warnings: usize,
) {
    assert_eq!(outcome.response.decision, decision, "{outcome:?}");
    assert_eq!(outcome.run, run, "{outcome:?}");
    assert_eq!(outcome.warnings.len(), warnings, "{outcome:?}");
}

const ALLOW: &str = r#"{"decision": "allow"}"#;
const DENY: &str = r#"{"decision": "deny", "reason": "no"}"#;
const ASK: &str = r#"{"decision": "ask", "reason": "sure?"}"#;

#[test]
fn exit_0_without_a_deny_allows() {
    for rules in [BLOCKING, OBSERVING] {
        for stdout in ["", " \n", "{}", "\u{feff}{}", r#"{"decision": null}"#] {
            assert_outcome(&exit(rules, 0, stdout, "noise"), None, RunOutcome::Allow, 0);
        }
        assert_outcome(
            &exit(rules, 0, ALLOW, ""),
            Some(Decision::Allow),
            RunOutcome::Allow,
            0,
        );
    }
}

#[test]
fn exit_0_with_a_decision_counts_blocking_or_not() {
    for rules in [BLOCKING, OBSERVING] {
        let denied = exit(rules, 0, DENY, "");
        assert_outcome(&denied, Some(Decision::Deny), RunOutcome::Deny, 0);
        assert_eq!(denied.message(), Some("no"));
        assert_outcome(
            &exit(rules, 0, ASK, ""),
            Some(Decision::Ask),
            RunOutcome::Ask,
            0,
        );
    }
}

#[test]
fn exit_2_blocks_when_blocking() {
    for (stdout, stderr, reason) in [
        ("", "because", "because"),
        (DENY, "because", "no"),
        (r#"{"reason": "json"}"#, "because", "json"),
        (ALLOW, "because", "because"),
        (ASK, "", "sure?"),
        ("not json", " because \n", "because"),
        ("", "", "denied by a hook that gave no reason"),
    ] {
        let outcome = exit(BLOCKING, 2, stdout, stderr);
        assert_outcome(&outcome, Some(Decision::Deny), RunOutcome::Deny, 0);
        assert_eq!(outcome.response.reason.as_deref(), Some(reason));
    }
}

#[test]
fn exit_2_of_an_observer_is_a_warning() {
    for stdout in ["", DENY, "x"] {
        let outcome = exit(OBSERVING, 2, stdout, "because");
        assert_outcome(&outcome, None, RunOutcome::Warn, 1);
        assert!(outcome.warnings.concat().contains("because"));
    }
}

/// Every failure, with the outcome that the journal shows when it blocks nothing.
fn failures() -> Vec<(Ending, &'static str, RunOutcome)> {
    let mut failures = vec![
        (Ending::Signal(9), DENY, RunOutcome::Error),
        (Ending::CannotStart("x".into()), DENY, RunOutcome::Error),
        (Ending::Timeout, DENY, RunOutcome::Timeout),
    ];
    for code in [1, 3, 126, 127, 255, -1] {
        failures.push((Ending::Exit(code), DENY, RunOutcome::Warn));
    }
    for stdout in [
        "deny",
        "[]",
        "1",
        "\"deny\"",
        "{} {}",
        "{\"decision\": \"deny\"",
        r#"{"decision": "perhaps"}"#,
        r#"{"decision": 5}"#,
        r#"{"decision": "allow", "continue": "no"}"#,
        r#"{"updated_input": "x"}"#,
        r#"{"desicion": "allow"}"#,
        r#"{"verdict": "no"}"#,
    ] {
        failures.push((Ending::Exit(0), stdout, RunOutcome::Error));
    }
    failures
}

#[test]
fn a_failure_blocks_by_the_rule_and_only_by_it() {
    let block_on_failure = ExitRules {
        on_failure: OnFailure::Block,
        ..BLOCKING
    };
    let closed = ExitRules {
        fail_closed: true,
        ..BLOCKING
    };
    for (ending, stdout, run) in failures() {
        let is_timeout = ending == Ending::Timeout;
        for (rules, blocks) in [
            (BLOCKING, false),
            (block_on_failure, true),
            (closed, true),
            (
                with_timeout_action(BLOCKING, TimeoutAction::Block),
                is_timeout,
            ),
            (
                with_timeout_action(block_on_failure, TimeoutAction::Warn),
                !is_timeout,
            ),
            (with_timeout_action(closed, TimeoutAction::Warn), true),
        ] {
            let outcome = decide(rules, &ending, stdout, "detail");
            assert_eq!(
                outcome.response.is_deny(),
                blocks,
                "{rules:?} {ending:?} {stdout}"
            );
            let run = match run {
                RunOutcome::Warn if blocks => RunOutcome::Error,
                run => run,
            };
            assert_eq!(outcome.run, run, "{rules:?} {ending:?} {stdout}");
            assert!(!outcome.warnings.is_empty());
            let observer = ExitRules {
                blocking: false,
                ..rules
            };
            let outcome = decide(observer, &ending, stdout, "detail");
            assert!(
                !outcome.response.is_deny(),
                "{observer:?} {ending:?} {stdout}"
            );
        }
    }
}

fn with_timeout_action(rules: ExitRules, action: TimeoutAction) -> ExitRules {
    ExitRules {
        timeout_action: Some(action),
        ..rules
    }
}

#[test]
fn the_model_learns_that_a_guard_failed_and_the_user_why() {
    let rules = ExitRules {
        on_failure: OnFailure::Block,
        ..BLOCKING
    };
    let outcome = exit(rules, 1, "", "Traceback in /home/me/guard.py");
    let reason = outcome.response.reason.unwrap();
    assert!(reason.contains("exit code 1") && reason.contains("ask the user"));
    assert!(!reason.contains("guard.py"), "{reason}");
    assert_eq!(
        outcome.warnings,
        ["exit code 1: Traceback in /home/me/guard.py"]
    );
}

#[test]
fn an_answer_is_repaired_like_a_payload() {
    for stdout in [
        r#"{"decision": "deny", "reason": "x\ud83d"}"#,
        r#"{"decision": "deny", "metadata": {"n": 1e999}}"#,
        "\u{feff}{\"decision\": \"deny\"}\u{feff}\n",
        &format!(
            r#"{{"decision": "deny", "metadata": {{"a": {}{}}}}}"#,
            "[".repeat(5000),
            "]".repeat(5000)
        ),
    ] {
        let outcome = exit(OBSERVING, 0, stdout, "");
        assert_outcome(&outcome, Some(Decision::Deny), RunOutcome::Deny, 0);
    }
}

#[test]
fn what_can_be_read_of_an_unclear_answer_counts() {
    let stdout = r#"{"decision": "perhaps", "context": "note", "system_message": "hello"}"#;
    let outcome = exit(BLOCKING, 0, stdout, "");
    assert_outcome(&outcome, None, RunOutcome::Error, 1);
    assert_eq!(outcome.response.context.as_deref(), Some("note"));
    assert_eq!(outcome.response.system_message.as_deref(), Some("hello"));
}

#[test]
fn a_malformed_field_does_not_cost_the_decision() {
    let stdout = r#"{"decision": "deny", "reason": 5, "context": ["x"], "continue": "no",
        "updated_input": "x", "metadata": 1, "system_message": "kept", "desicion": "allow"}"#;
    let outcome = exit(OBSERVING, 0, stdout, "from stderr");
    assert_outcome(&outcome, Some(Decision::Deny), RunOutcome::Deny, 6);
    assert_eq!(outcome.response.reason.as_deref(), Some("from stderr"));
    assert_eq!(outcome.response.system_message.as_deref(), Some("kept"));
    assert!(
        outcome
            .warnings
            .iter()
            .any(|warning| warning.contains("did you mean `decision`"))
    );
}

#[test]
fn other_words_for_a_decision_are_understood_aloud() {
    for (word, decision) in [
        ("block", Some(Decision::Deny)),
        ("DENY", Some(Decision::Deny)),
        ("approve", Some(Decision::Allow)),
        ("perhaps", None),
    ] {
        let outcome = exit(BLOCKING, 0, &json!({"decision": word}).to_string(), "");
        assert_eq!(outcome.response.decision, decision);
        assert_eq!(outcome.warnings.len(), 1);
    }
}

#[test]
fn the_older_name_of_updated_input_is_read() {
    let outcome = exit(BLOCKING, 0, r#"{"modify_args": {"a": 1}}"#, "");
    assert_eq!(json!(outcome.response.updated_input), json!({"a": 1}));
    let both = r#"{"updated_input": {"a": 2}, "modify_args": {"a": 1}}"#;
    assert_eq!(
        json!(exit(BLOCKING, 0, both, "").response.updated_input),
        json!({"a": 2})
    );
}

#[test]
fn several_answers_become_one() {
    let answers = [
        r#"{"decision": "allow", "reason": "fine", "context": "one", "updated_input": {"a": 1, "b": 1}}"#,
        r#"{"decision": "deny", "reason": "first", "continue": true}"#,
        r#"{"context": "two", "suppress_output": true, "updated_input": {"b": 2}}"#,
        r#"{"decision": "ask", "reason": "sure?", "continue": false, "system_message": "hello"}"#,
        r#"{"decision": "deny", "reason": "second", "suppress_output": false}"#,
    ];
    let merged = merge_all(answers.map(|answer| serde_json::from_str(answer).unwrap()));
    assert_eq!(
        json!(merged),
        json!({
            "decision": "deny", "reason": "first\nsecond", "continue": false, "context": "one\ntwo",
            "system_message": "hello", "suppress_output": true, "updated_input": {"a": 1, "b": 2},
        })
    );
}

#[test]
fn asking_nobody_is_denying() {
    let ask: HookResponse = serde_json::from_str(ASK).unwrap();
    assert_eq!(resolve_ask(ask.clone(), true), ask);
    let denied = resolve_ask(ask, false);
    assert!(denied.is_deny());
    assert!(denied.reason.unwrap().starts_with("sure?"));
    assert_eq!(
        resolve_ask(HookResponse::default(), false),
        HookResponse::default()
    );
}

fn stdout() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just(DENY.to_owned()),
        Just(ASK.to_owned()),
        Just(ALLOW.to_owned()),
        ".{0,20}",
        "\\{\"decision\": ?\"(allow|deny|block|x)\",?\"reason\":(1|\"r\"|null)\\}",
    ]
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![
        4 => (0..4i32).prop_map(Ending::Exit),
        2 => any::<i32>().prop_map(Ending::Exit),
        1 => Just(Ending::Signal(9)),
        1 => Just(Ending::Timeout),
        1 => Just(Ending::CannotStart("x".into())),
    ]
}

fn rules() -> impl Strategy<Value = ExitRules> {
    let on_failure = proptest::sample::select(OnFailure::ALL.to_vec());
    let timeout_action =
        proptest::option::of(proptest::sample::select(TimeoutAction::ALL.to_vec()));
    let rules = (any::<bool>(), on_failure, timeout_action, any::<bool>());
    rules.prop_map(
        |(blocking, on_failure, timeout_action, fail_closed)| ExitRules {
            blocking,
            on_failure,
            timeout_action,
            fail_closed,
        },
    )
}

fn response() -> impl Strategy<Value = HookResponse> {
    let word = || proptest::option::of(proptest::sample::select(vec!["", "a", "b c", "d\n"]));
    let flag = || proptest::option::of(any::<bool>());
    let keys = || proptest::collection::vec(("[abc]", 0..3i32), 0..3);
    let decision = proptest::sample::select(vec![
        None,
        Some(Decision::Allow),
        Some(Decision::Ask),
        Some(Decision::Deny),
    ]);
    (
        decision,
        word(),
        word(),
        word(),
        flag(),
        flag(),
        proptest::option::of(keys()),
        keys(),
        word(),
    )
        .prop_map(
            |(
                decision,
                reason,
                context,
                message,
                should_continue,
                suppress,
                input,
                metadata,
                action,
            )| {
                let map = |pairs: Vec<(String, i32)>| -> Map<_, _> {
                    pairs
                        .into_iter()
                        .map(|(key, value)| (key, value.into()))
                        .collect()
                };
                HookResponse {
                    decision,
                    reason: reason.map(Into::into),
                    should_continue,
                    context: context.map(Into::into),
                    system_message: message.map(Into::into),
                    suppress_output: suppress,
                    updated_input: input.map(map),
                    trigger_action: action.map(Into::into),
                    metadata: map(metadata),
                    extra: Map::new(),
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_contract_holds(rules in rules(), ending in ending(), stdout in stdout(), stderr in ".{0,10}") {
        let outcome = decide(rules, &ending, &stdout, &stderr);
        let denied = outcome.response.is_deny();
        match ending {
            Ending::Exit(2) => prop_assert_eq!(denied, rules.blocking),
            Ending::Exit(0) => {
                let says_deny = stdout.contains("deny") || stdout.contains("block");
                let failed = rules.blocks_on(&Failure::Answer(String::new()));
                prop_assert!(!denied || says_deny || failed);
            }
            Ending::Timeout => prop_assert_eq!(denied, rules.blocks_on(&Failure::Timeout)),
            Ending::Exit(_) | Ending::Signal(_) | Ending::CannotStart(_) => {
                let blocks = rules.on_failure == OnFailure::Block || rules.fail_closed;
                prop_assert_eq!(denied, rules.blocking && blocks);
            }
        }
        if denied {
            prop_assert!(!outcome.response.reason.unwrap_or_default().trim().is_empty());
        }
        if matches!(outcome.run, RunOutcome::Warn | RunOutcome::Error | RunOutcome::Timeout) {
            prop_assert!(!outcome.warnings.is_empty());
        }
    }

    #[test]
    fn merging_is_associative_and_has_an_identity(a in response(), b in response(), c in response()) {
        let left = merge(merge(a.clone(), b.clone()), c.clone());
        let right = merge(a.clone(), merge(b.clone(), c.clone()));
        prop_assert_eq!(&left, &right);
        prop_assert_eq!(&merge(a.clone(), HookResponse::default()), &a);
        prop_assert_eq!(&merge(HookResponse::default(), a.clone()), &a);
        prop_assert_eq!(left.is_deny(), a.is_deny() || b.is_deny() || c.is_deny());
    }
}
