//! Every labelled call of `corpus/` gets the answer that its row expects.

#![cfg(test)]

#[path = "support/labelled.rs"]
mod labelled;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhook_guard::GuardInput;
use labelled::LabelledCall;

#[test]
fn every_row_gets_its_answer() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let context = labelled::context();
    let mut wrong = String::new();
    // Wrong answers and all rows, by guard and kind.
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "jsonl")
        })
        .collect();
    files.sort();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for (number, line) in text.lines().enumerate() {
            let place = format!("{}:{}", file.display(), number + 1);
            let call = LabelledCall::parse(line).unwrap_or_else(|error| panic!("{place}: {error}"));
            let event = call.event();
            let input = GuardInput::new(&event, &context);
            for guard in call.guards() {
                let found = guard.judge_input(&input);
                let answer = found
                    .as_ref()
                    .map_or("none", |found| found.decision.as_str());
                let name = guard.name();
                let count = counts.entry(format!("{name} {}", call.kind())).or_default();
                count.1 += 1;
                if !call.expected().contains(&answer) {
                    count.0 += 1;
                    let reason =
                        found.map_or_else(String::new, |found| format!(" -- {}", found.reason));
                    let _ = writeln!(
                        wrong,
                        "{place}: {name} answers {answer}, not {}: {}{reason}",
                        call.expected().join(" or "),
                        call.subject(),
                    );
                }
            }
        }
    }
    let rows: usize = counts.values().map(|count| count.1).sum();
    assert!(rows > 4000, "only {rows} rows");
    assert!(wrong.is_empty(), "{wrong}\n{counts:#?}");
}
