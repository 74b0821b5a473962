//! Measures the guards: `cargo run --release -p anyhook-guard --example measure -- COMMAND`.
//!
//! `calls FILE…` prints recall and false answers on labelled calls (the format of
//! `corpus/`), with every wrong row.

#![allow(
    dead_code,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a tool for people who work on the guards"
)]

use std::collections::BTreeMap;
use std::fs;

#[path = "../tests/support/labelled.rs"]
mod labelled;

use anyhook_guard::GuardInput;
use labelled::LabelledCall;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((command, files)) if command == "calls" => measure_calls(files),
        _ => println!("usage: measure calls FILE…"),
    }
}

#[derive(Default)]
struct Count {
    rows: usize,
    silent: usize,
    denied: usize,
    asked: usize,
    wrong: usize,
}

fn measure_calls(files: &[String]) {
    let context = labelled::context();
    let mut counts: BTreeMap<(bool, String), Count> = BTreeMap::new();
    for file in files {
        let text = fs::read_to_string(file).expect("a readable file");
        for (number, line) in text.lines().enumerate() {
            let call = LabelledCall::parse(line).expect("a row");
            let event = call.event();
            let input = GuardInput::new(&event, &context);
            let expected = call.expected();
            let is_dangerous = !expected.contains(&"none");
            for guard in call.guards() {
                let found = guard.judge_input(&input);
                let answer = found
                    .as_ref()
                    .map_or("none", |found| found.decision.as_str());
                let count = counts
                    .entry((is_dangerous, guard.name().to_owned()))
                    .or_default();
                count.rows += 1;
                match answer {
                    "none" => count.silent += 1,
                    "deny" => count.denied += 1,
                    _ => count.asked += 1,
                }
                if !expected.contains(&answer) {
                    count.wrong += 1;
                    let reason =
                        found.map_or_else(String::new, |found| format!(" -- {}", found.reason));
                    println!(
                        "{file}:{}: {} answers {answer}: {}{reason}",
                        number + 1,
                        guard.name(),
                        call.subject()
                    );
                }
            }
        }
    }
    for is_dangerous in [true, false] {
        let mut all = Count::default();
        println!(
            "{}",
            if is_dangerous {
                "dangerous calls"
            } else {
                "harmless calls"
            }
        );
        for ((_, name), count) in counts.iter().filter(|((kind, _), _)| *kind == is_dangerous) {
            print_count(name, count);
            all.rows += count.rows;
            all.silent += count.silent;
            all.denied += count.denied;
            all.asked += count.asked;
            all.wrong += count.wrong;
        }
        print_count("all", &all);
    }
}

fn print_count(name: &str, count: &Count) {
    println!(
        "  {name:12} rows {:5}  silent {:5}  asked {:4}  denied {:5}  wrong {:4}",
        count.rows, count.silent, count.asked, count.denied, count.wrong
    );
}
