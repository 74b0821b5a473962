//! Checks a recorded stream: `cargo run -p openhook --example judge < stream.jsonl`

#![allow(clippy::print_stdout, reason = "an example shows its result")]

use openhook::StreamChecker;
use std::io::{self, BufRead};

fn main() -> io::Result<()> {
    let mut checker = StreamChecker::new();
    let mut input = io::stdin().lock();
    let mut line = String::new();
    while input.read_line(&mut line)? > 0 {
        checker.push_line(&line);
        line.clear();
    }
    for source in checker.finish().sources {
        println!("{}: level {}", source.source, source.level);
        for unmet in source.requirements.iter().filter(|each| !each.met) {
            println!("  level {} needs: {}", unmet.level, unmet.text);
        }
        for problem in &source.problems {
            println!("  {} × {}", problem.count, problem.code);
        }
    }
    Ok(())
}
