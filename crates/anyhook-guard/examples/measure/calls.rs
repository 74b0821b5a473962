//! Recall and false answers on labelled calls.

use std::collections::BTreeMap;
use std::fs;

use anyhook_guard::GuardInput;

use crate::labelled::{self, LabelledCall};

#[derive(Default)]
struct Count {
    rows: usize,
    silent: usize,
    denied: usize,
    asked: usize,
    wrong: usize,
}

pub(crate) fn measure(files: &[String]) {
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
