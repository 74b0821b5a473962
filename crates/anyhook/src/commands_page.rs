//! docs/commands.md, made from the definitions of the command line; `UPDATE=1` writes it.

#![cfg(test)]

use std::fmt::Write as _;
use std::path::Path;

use anyhook_testkit::Golden;
use clap::{Arg, Command, CommandFactory as _};

use crate::cli::{Cli, EXIT_CODES};

const PAGE_HEAD: &str = "<!-- Generated from the command line's definitions by `UPDATE=1 cargo test -p anyhook commands_page`. Do not edit. -->\n\n\
# Commands\n\nEvery command with its arguments and options. `anyhook help COMMAND` shows the same with examples, \
`anyhook man` as a manual page. `--color auto|always|never` and `--help` work with each of them.\n\n";

/// Options that every command has.
const GLOBAL_OPTIONS: [&str; 3] = ["help", "version", "color"];

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// How an argument is written.
fn usage(arg: &Arg) -> String {
    let values = arg.get_value_names().unwrap_or_default();
    let values: Vec<String> = values.iter().map(|name| format!("<{name}>")).collect();
    let takes_value = arg.get_action().takes_values();
    let value = if takes_value {
        values.join(" ")
    } else {
        String::new()
    };
    let names = [
        arg.get_short().map(|short| format!("-{short}")),
        arg.get_long().map(|long| format!("--{long}")),
    ];
    let names: Vec<String> = names.into_iter().flatten().collect();
    [names.join(", "), value].join(" ").trim().to_owned()
}

fn what(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help());
    let mut text = help.map(ToString::to_string).unwrap_or_default();
    let is_hidden = arg.is_hide_possible_values_set() || !arg.get_action().takes_values();
    let words: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| !is_hidden && !value.is_hide_set())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !words.is_empty() {
        let _ = write!(text, " ({})", words.join(", "));
    }
    text
}

fn add_command(page: &mut String, name: &str, command: &Command) {
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(page, "## `{name}`\n\n{}\n", about.trim_end());
    let rows: Vec<String> = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && !GLOBAL_OPTIONS.contains(&arg.get_id().as_str()))
        .map(|arg| format!("| `{}` | {} |", cell(&usage(arg)), cell(&what(arg))))
        .collect();
    if !rows.is_empty() {
        let _ = writeln!(
            page,
            "| argument | what |\n| --- | --- |\n{}\n",
            rows.join("\n")
        );
    }
    for sub in visible_commands(command) {
        add_command(page, &format!("{name} {}", sub.get_name()), sub);
    }
}

fn visible_commands(command: &Command) -> impl Iterator<Item = &Command> {
    command
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
}

fn page() -> String {
    let mut cli = Cli::command();
    cli.build();
    let mut page = PAGE_HEAD.to_owned();
    page.push_str("| exit code | meaning |\n| --- | --- |\n");
    for (code, meaning) in EXIT_CODES {
        let _ = writeln!(page, "| {code} | {meaning} |");
    }
    page.push_str("\n`anyhook run`, `guard` and `codex` are exceptions: the agent or client that starts them defines what their exit codes mean.\n\n");
    for sub in visible_commands(&cli) {
        add_command(&mut page, &format!("anyhook {}", sub.get_name()), sub);
    }
    page.trim_end().to_owned() + "\n"
}

#[test]
fn every_command_and_option_is_on_the_page() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    let mut golden = Golden::default();
    golden.text(path, &page()).unwrap();
    golden.end();
}

#[test]
fn every_exit_code_is_on_the_page_about_configuration() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, section) = text.split_once("## Exit codes").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| "));
    let codes: Vec<u8> = rows
        .filter_map(|line| line.split(' ').nth(1)?.parse().ok())
        .collect();
    assert_eq!(codes, EXIT_CODES.map(|(code, _)| code));
}
