//! Measures the guards: `cargo run --release -p anyhook-guard --example measure -- COMMAND`.
//!
//! | command | prints |
//! |---|---|
//! | `calls FILE…` | recall and false answers on labelled calls (the format of `corpus/`), with every wrong row |
//! | `scripts [FOLDER…]` | what the standard guards object to in the shell scripts of this machine, line by line |
//! | `hostile` | the longest time that an answer to hostile text takes |

#![allow(
    dead_code,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a tool for people who work on the guards"
)]

mod calls;
mod hostile;
#[path = "../../tests/support/hostile_texts.rs"]
mod hostile_texts;
#[path = "../../tests/support/labelled.rs"]
mod labelled;
mod scripts;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((command, files)) if command == "calls" => calls::measure(files),
        Some((command, folders)) if command == "scripts" => scripts::measure(folders),
        Some((command, _)) if command == "hostile" => hostile::measure(),
        _ => println!("usage: measure calls FILE… | scripts [FOLDER…] | hostile"),
    }
}
