//! Every way of `corpus/matrix` to write a command is read: what the guards promise is
//! caught in each of them, and as mere text in none.

#![cfg(test)]

#[path = "support/labelled.rs"]
#[allow(dead_code, reason = "only the context is used here")]
mod labelled;
#[path = "support/matrix.rs"]
mod matrix;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhook_guard::{Guard, GuardContext, GuardInput, definitions, parse_guard};
use matrix::{Promise, promises, templates};
use serde_json::json;

/// Promises of a guard that are put into every wrapping; each of the others is put into
/// one of `STEP`.
const FULL_PROMISES: usize = 3;
const STEP: usize = 6;

fn guard(words: &[String]) -> Guard {
    parse_guard(words, &|file| Err(format!("no file `{file}`"))).expect("a guard")
}

fn answer(guard: &Guard, context: &GuardContext, command: &str) -> Option<String> {
    let event = serde_json::from_value(json!({
        "event": "before_tool_execute", "source": "x", "cwd": "/home/dev/project",
        "data": {
            "tool_name": "shell", "native_tool_name": "bash",
            "tool_input": {"command": command},
        },
    }))
    .expect("an event");
    let found = guard.judge_input(&GuardInput::new(&event, context))?;
    Some(format!("{}: {}", found.decision.as_str(), found.reason))
}

#[test]
fn what_is_promised_is_caught_in_every_wrapping() {
    check_wrappings(STEP);
}

#[test]
#[ignore = "a minute: every promise in every wrapping"]
fn all_that_is_promised_is_caught_in_every_wrapping() {
    check_wrappings(1);
}

fn check_wrappings(step: usize) {
    let context = labelled::context();
    let wrappings = templates("wrappings.txt");
    let mut rows = 0;
    let mut promises_of_guard = 0;
    let mut guard_before = None;
    let mut wrong: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for promise in promises() {
        let guard = guard(&promise.guard);
        assert!(
            answer(&guard, &context, &promise.command).is_some(),
            "{} is silent about {}",
            guard.name(),
            promise.command
        );
        promises_of_guard = match &guard_before {
            Some(name) if *name == promise.guard => promises_of_guard + 1,
            _ => 0,
        };
        guard_before = Some(promise.guard.clone());
        for (index, wrapping) in wrappings.iter().enumerate() {
            // Every wrapping with the first promises, then in turn.
            if promises_of_guard >= FULL_PROMISES && index % step != promises_of_guard % step {
                continue;
            }
            let Some(command) = wrapping.fill(&promise) else {
                continue;
            };
            rows += 1;
            if answer(&guard, &context, &command).is_none() {
                wrong
                    .entry(&wrapping.text)
                    .or_default()
                    .push(format!("{}: {command}", guard.name()));
            }
        }
    }
    report(rows, &wrong);
}

#[test]
fn the_same_as_text_is_free() {
    let context = labelled::context();
    let places = templates("data.txt");
    let mut rows = 0;
    let mut wrong: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for promise in promises() {
        let guards = guards_that_may_object(&promise);
        for place in &places {
            let Some(command) = place.fill(&promise) else {
                continue;
            };
            for guard in &guards {
                rows += 1;
                if let Some(answer) = answer(guard, &context, &command) {
                    wrong
                        .entry(&place.text)
                        .or_default()
                        .push(format!("{command} -- {answer}"));
                }
            }
        }
    }
    report(rows, &wrong);
}

/// The guard of the promise, and all the others as they are without options.
fn guards_that_may_object(promise: &Promise) -> Vec<Guard> {
    let others = definitions()
        .iter()
        .filter(|guard| !matches!(guard.name, "rules" | "budget" | "network" | "paths"))
        .filter(|guard| Some(guard.name) != promise.guard.first().map(String::as_str))
        .map(|other| guard(&[other.name.to_owned()]));
    std::iter::once(guard(&promise.guard))
        .chain(others)
        .collect()
}

fn report(rows: usize, wrong: &BTreeMap<&str, Vec<String>>) {
    let mut text = String::new();
    for (template, commands) in wrong {
        let _ = writeln!(text, "{template}: {}", commands.len());
        for command in commands.iter().take(12) {
            let _ = writeln!(text, "    {command}");
        }
    }
    let count: usize = wrong.values().map(Vec::len).sum();
    assert!(count == 0, "{text}{count} of {rows} wrong");
}
