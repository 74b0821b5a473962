//! `anyhook guard budget`: what it answers under several agents, and when it cannot know.

use std::path::PathBuf;

use anyhook_model::RunOutcome;
use anyhook_testkit::Scratch;
use serde_json::{Value, json};

use crate::support::{anyhook, decision_of, journal, project, run, trust};

const LIMITS: &str = "anyhook guard budget --session-usd 5 --day-usd 8";

fn hook(command: &str, more: &str) -> String {
    format!("name: budget\nhandler: {{ type: command, command: {command} }}\n{more}")
}

fn now() -> String {
    anyhook_util::time::rfc3339(jiff::Timestamp::now())
}

/// A transcript line of each agent for a call with this many output tokens, of a model
/// that costs ten dollars for a million.
fn transcript_line(agent: &str, id: u64, tokens: u64, model: &str) -> String {
    let time = now();
    let line = match agent {
        "claude-code" => {
            json!({"timestamp": time, "message": {"id": id.to_string(), "model": model,
            "usage": {"input_tokens": 1, "output_tokens": tokens}}})
        }
        "gemini-cli" => json!({"id": id.to_string(), "timestamp": time, "type": "gemini",
            "model": model, "tokens": {"input": 1, "output": tokens}}),
        "codex" => {
            json!({"timestamp": time, "type": "event_msg", "payload": {"type": "token_count",
            "model": model, "info": {"total_token_usage": {"total_tokens": id},
                "last_token_usage": {"input_tokens": 1, "output_tokens": tokens}}}})
        }
        _ => unreachable!("{agent}"),
    };
    line.to_string() + "\n"
}

fn transcript(scratch: &Scratch, agent: &str, session: &str) -> PathBuf {
    scratch.root().join(format!("{agent}-{session}.jsonl"))
}

/// The agent's model answers once more.
fn spend(scratch: &Scratch, agent: &str, session: &str, usd: f64, model: &str) {
    let path = transcript(scratch, agent, session);
    let mut text = std::fs::read_to_string(&path).unwrap_or_default();
    let id = text.len() as u64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a test"
    )]
    let tokens = (usd * 100_000.0) as u64;
    text += &transcript_line(agent, id, tokens, model);
    std::fs::write(path, text).unwrap();
    // Sums of the last seconds would count.
    let _ = std::fs::remove_file(totals(scratch));
}

fn totals(scratch: &Scratch) -> PathBuf {
    scratch.state().join("usage/totals.jsonl")
}

fn with_prices(scratch: &Scratch) {
    let prices = "date = \"2030-01-01\"\n[models]\nm = { input = 0, output = 10 }\n";
    scratch
        .file(scratch.config().join("prices.toml"), prices)
        .unwrap();
}

fn payload(scratch: &Scratch, agent: &str, session: &str) -> Value {
    let (event, tool) = match agent {
        "gemini-cli" => ("BeforeTool", "run_shell_command"),
        _ => ("PreToolUse", "Bash"),
    };
    json!({
        "session_id": session, "hook_event_name": event, "tool_name": tool,
        "tool_input": {"command": "ls"}, "cwd": scratch.project(), "timestamp": now(),
        "transcript_path": transcript(scratch, agent, session), "tool_use_id": "t",
        "turn_id": "t", "model": "m", "permission_mode": "default",
    })
}

/// The answer to the agent, and the outcome of the guard.
fn call(scratch: &Scratch, agent: &str, session: &str) -> (String, RunOutcome) {
    let payload = payload(scratch, agent, session);
    let output = anyhook(scratch)
        .run(["run", "--agent", agent], &payload.to_string())
        .unwrap();
    let record = journal(scratch).pop().unwrap();
    let outcome = record.hooks[0].outcome;
    (output.stdout + &output.stderr, outcome)
}

#[test]
fn a_session_that_reaches_its_limit_is_stopped_under_every_agent() {
    for agent in ["claude-code", "codex", "gemini-cli"] {
        let scratch = project(&[&hook(LIMITS, "")]);
        with_prices(&scratch);
        // The first event of the session: only the event names the transcript.
        spend(&scratch, agent, "s", 4.9, "m");
        let (text, outcome) = call(&scratch, agent, "s");
        assert_eq!(outcome, RunOutcome::Allow, "{agent}: {text}");
        spend(&scratch, agent, "s", 0.2, "m");
        let (text, outcome) = call(&scratch, agent, "s");
        assert_eq!(outcome, RunOutcome::Deny, "{agent}: {text}");
        assert!(text.contains("$5.10"), "{agent}: {text}");
        assert!(text.contains("deny") || text.contains("block"), "{text}");
        // Another session goes on until the day's limit.
        spend(&scratch, agent, "other", 2.0, "m");
        assert_eq!(call(&scratch, agent, "other").1, RunOutcome::Allow);
        spend(&scratch, agent, "other", 1.0, "m");
        let (text, outcome) = call(&scratch, agent, "other");
        assert_eq!(outcome, RunOutcome::Deny, "{agent}: {text}");
        assert!(text.contains("budget/day"), "{agent}: {text}");
    }
}

#[test]
fn a_budget_can_ask_or_only_warn() {
    let command = format!("{LIMITS} --decision ask");
    let scratch = project(&[&hook(&command, "")]);
    with_prices(&scratch);
    spend(&scratch, "claude-code", "s", 6.0, "m");
    let payload = payload(&scratch, "claude-code", "s").to_string();
    let output = anyhook(&scratch)
        .run(["run", "--agent", "claude-code"], &payload)
        .unwrap();
    assert_eq!(decision_of(&output).as_deref(), Some("ask"));

    let command = format!("{LIMITS} --decision warn");
    let scratch = project(&[&hook(&command, "")]);
    with_prices(&scratch);
    spend(&scratch, "claude-code", "s", 6.0, "m");
    let output = anyhook(&scratch)
        .run(["run", "--agent", "claude-code"], &payload_of(&scratch))
        .unwrap();
    assert_eq!(decision_of(&output), None);
    let message = output.json().unwrap()["systemMessage"].to_string();
    assert!(message.contains("$6.00; the budget is $5.00"), "{message}");
}

fn payload_of(scratch: &Scratch) -> String {
    payload(scratch, "claude-code", "s").to_string()
}

#[test]
fn a_budget_that_cannot_be_checked_is_a_failure() {
    // What is wrong, and a part of the message.
    type Change = fn(&Scratch);
    let cases: &[(&str, Change, &str)] = &[
        (
            "claude-code",
            |scratch| spend(scratch, "claude-code", "s", 1.0, "unheard-of"),
            "`unheard-of` has no price",
        ),
        (
            "claude-code",
            |scratch| {
                scratch
                    .file(scratch.config().join("prices.toml"), "date = 3\n")
                    .unwrap();
            },
            "could not find out in time",
        ),
        ("droid", |_| (), "does not report how many tokens"),
    ];
    for (agent, change, expected) in cases {
        for (more, blocks) in [("", false), ("on_failure: block", true)] {
            let scratch = project(&[&hook(LIMITS, more)]);
            with_prices(&scratch);
            change(&scratch);
            let (text, outcome) = call(&scratch, agent, "s");
            assert_eq!(outcome, RunOutcome::Error, "{agent} {text}");
            let record = journal(&scratch).pop().unwrap();
            let warning = record.warnings.join("\n");
            assert!(warning.contains(expected), "{agent}: {warning}");
            assert_eq!(record.response.is_deny(), blocks, "{agent}: {text}");
        }
    }
}

#[test]
fn tool_calls_without_tokens_are_not_taken_for_free() {
    let scratch = project(&[&hook(LIMITS, "on_failure: block")]);
    with_prices(&scratch);
    for _ in 0..25 {
        assert_eq!(call(&scratch, "claude-code", "s").1, RunOutcome::Allow);
    }
    let _ = std::fs::remove_file(totals(&scratch));
    let (text, outcome) = call(&scratch, "claude-code", "s");
    assert_eq!(outcome, RunOutcome::Error, "{text}");
    // The transcript appears at last.
    spend(&scratch, "claude-code", "s", 1.0, "m");
    assert_eq!(call(&scratch, "claude-code", "s").1, RunOutcome::Allow);
}

#[test]
fn a_price_that_is_added_counts_for_what_was_used_before() {
    let scratch = project(&[&hook(LIMITS, "on_failure: block")]);
    spend(&scratch, "claude-code", "s", 6.0, "m");
    assert_eq!(call(&scratch, "claude-code", "s").1, RunOutcome::Error);
    with_prices(&scratch);
    let _ = std::fs::remove_file(totals(&scratch));
    assert_eq!(call(&scratch, "claude-code", "s").1, RunOutcome::Deny);
}

#[test]
fn a_limit_that_was_reached_counts_although_more_is_unknown() {
    let scratch = project(&[&hook(LIMITS, "")]);
    with_prices(&scratch);
    spend(&scratch, "claude-code", "s", 6.0, "m");
    spend(&scratch, "claude-code", "s", 1.0, "unheard-of");
    assert_eq!(call(&scratch, "claude-code", "s").1, RunOutcome::Deny);
}

#[test]
fn sessions_that_begin_at_once_are_all_checked() {
    let scratch = project(&[&hook(LIMITS, "")]);
    with_prices(&scratch);
    let sessions: Vec<String> = (0..12).map(|n| format!("s{n}")).collect();
    for session in &sessions {
        spend(&scratch, "claude-code", session, 6.0, "m");
    }
    let outputs: Vec<String> = std::thread::scope(|scope| {
        let calls = sessions.iter().map(|session| {
            let payload = payload(&scratch, "claude-code", session).to_string();
            let command = anyhook(&scratch);
            scope.spawn(move || {
                let output = command.run(["run", "--agent", "claude-code"], &payload);
                output.unwrap().stdout
            })
        });
        let calls: Vec<_> = calls.collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    for (session, output) in sessions.iter().zip(outputs) {
        // A guard that could not read the sums in time fails; none passes silently.
        let is_checked = output.contains("used models for") || output.contains("in time");
        assert!(is_checked, "{session}: {output}");
    }
}

#[test]
fn sums_that_are_new_do_not_hide_a_session_that_they_lack() {
    let scratch = project(&[&hook("anyhook guard budget --session-usd 5", "")]);
    with_prices(&scratch);
    spend(&scratch, "claude-code", "first", 1.0, "m");
    assert_eq!(call(&scratch, "claude-code", "first").1, RunOutcome::Allow);
    let new = std::fs::read(totals(&scratch)).unwrap();
    spend(&scratch, "claude-code", "resumed", 6.0, "m");
    std::fs::write(totals(&scratch), new).unwrap();
    assert_eq!(call(&scratch, "claude-code", "resumed").1, RunOutcome::Deny);
}

#[test]
fn calls_of_the_future_cost_today() {
    let scratch = project(&[&hook("anyhook guard budget --day-usd 8", "")]);
    with_prices(&scratch);
    let line = |day: i64, usd: u64| {
        let time = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(24 * day);
        json!({"timestamp": anyhook_util::time::rfc3339(time), "message": {"id": day.to_string(),
            "model": "m", "usage": {"input_tokens": 1, "output_tokens": usd * 100_000}}})
        .to_string()
            + "\n"
    };
    // As many days as the sums keep, after the one that counts.
    let text: String = (0..50)
        .map(|day| line(day, if day == 0 { 9 } else { 1 }))
        .collect();
    std::fs::write(transcript(&scratch, "claude-code", "s"), text).unwrap();
    let (text, outcome) = call(&scratch, "claude-code", "s");
    assert_eq!(outcome, RunOutcome::Deny, "{text}");
    assert!(text.contains("$58.00"), "{text}");
}

#[test]
fn a_broken_state_costs_no_budget() {
    let scratch = project(&[&hook("anyhook guard budget --session-usd 5", "")]);
    with_prices(&scratch);
    spend(&scratch, "claude-code", "s", 6.0, "m");
    assert_eq!(call(&scratch, "claude-code", "s").1, RunOutcome::Deny);
    std::fs::remove_file(transcript(&scratch, "claude-code", "s")).unwrap();
    std::fs::write(scratch.state().join("usage/collector.json"), "{").unwrap();
    for broken in ["", "{", "{\"updated_us\":NaN,\"days\":{}}\n"] {
        std::fs::write(totals(&scratch), broken).unwrap();
        let (text, outcome) = call(&scratch, "claude-code", "s");
        assert_eq!(outcome, RunOutcome::Deny, "{broken}: {text}");
    }
}

#[test]
fn a_session_that_was_forgotten_is_added_up_again() {
    let scratch = project(&[&hook("anyhook guard budget --session-usd 5", "")]);
    with_prices(&scratch);
    spend(&scratch, "claude-code", "s", 6.0, "m");
    assert_eq!(call(&scratch, "claude-code", "s").1, RunOutcome::Deny);
    std::fs::remove_file(transcript(&scratch, "claude-code", "s")).unwrap();
    // The sums of many newer sessions.
    let path = scratch.state().join("usage/collector.json");
    let mut state: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let sessions = (0..2000).map(|n| {
        (
            format!("claude-code/n{n}"),
            json!({"usd": 1.0, "last_us": n}),
        )
    });
    state["totals"]["sessions"] = sessions.collect::<serde_json::Map<_, _>>().into();
    std::fs::write(&path, state.to_string()).unwrap();
    std::fs::remove_file(totals(&scratch)).unwrap();
    assert_eq!(call(&scratch, "claude-code", "s").1, RunOutcome::Deny);
}

#[test]
fn wrong_limits_are_found_before_they_are_needed() {
    for (options, expected) in [
        ("", "no limit"),
        ("--session-usd nan", "is not an amount"),
        ("--session-usd -1", "is not an amount"),
        ("--day-usd 0", "is not an amount"),
        ("--day-usd inf", "is not an amount"),
        ("--day-usd 5 --decision allow", "a guard never allows"),
        ("--week-usd 5", "no option"),
    ] {
        let scratch = project(&[&hook(&format!("anyhook guard budget {options}"), "")]);
        let output = run(&scratch, &["validate"]);
        let text = output.stdout + &output.stderr;
        assert_eq!(output.exit, Some(1), "{options}: {text}");
        assert!(text.contains(expected), "{options}: {text}");
    }
}

#[test]
fn prices_that_would_hide_the_cost_are_refused() {
    for price in ["nan", "inf", "-1", "1e300"] {
        let scratch = project(&[&hook(LIMITS, "")]);
        let prices =
            format!("date = \"2030-01-01\"\n[models]\nm = {{ input = 0, output = {price} }}\n");
        scratch
            .file(scratch.config().join("prices.toml"), &prices)
            .unwrap();
        trust(&scratch);
        let output = run(&scratch, &["stats"]);
        assert_eq!(output.exit, Some(1), "{price}: {output:?}");
        assert!(output.stderr.contains("`m` has a price"), "{output:?}");
    }
}
