//! The code that an interpreter, an editor or `sed` is started with.

use super::MAX_CALLS;
use super::rewriting::quoted;
use crate::shell::evaluate::StageInput;
use crate::shell::invocation::{Invocation, ResolvedWord, UNKNOWN};
use crate::shell::wrappers::first_operand;

/// `python -m alembic …` starts what `alembic …` starts.
pub(super) fn python_module(started: &Invocation) -> Option<Vec<ResolvedWord>> {
    let at = started
        .words
        .iter()
        .position(|word| word.text.starts_with("-m"))?;
    let mut words = started.words.get(at + 1..)?.to_vec();
    let attached = started.words.get(at)?.text.get(2..).unwrap_or_default();
    if !attached.is_empty() {
        words.insert(0, ResolvedWord::new(attached));
    }
    // A tool of the library that prints its file.
    if let Some(module) = words.first_mut()
        && matches!(
            module.text.as_str(),
            "json.tool" | "base64" | "zipfile" | "tarfile" | "tokenize"
        )
    {
        *module = ResolvedWord::new("cat");
    }
    (started.name.starts_with("python") && at < 4 && !words.is_empty()).then_some(words)
}

pub(super) fn interpreter_code(started: &Invocation, input: &StageInput) -> Option<String> {
    let name = started.name.as_str();
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let words = &started.words;
    let after = |letters: &str, long: &[&str]| -> Option<String> {
        let mut codes: Vec<&str> = Vec::new();
        for (index, word) in words.iter().enumerate().skip(1) {
            let text = word.text.as_str();
            let is_flag = text.strip_prefix('-').is_some_and(|cluster| {
                !cluster.is_empty()
                    && !cluster.starts_with('-')
                    && cluster.len() <= 5
                    && cluster
                        .chars()
                        .last()
                        .is_some_and(|last| letters.contains(last))
                    && cluster.chars().all(char::is_alphanumeric)
            });
            if is_flag || long.contains(&text) {
                codes.extend(words.get(index + 1).map(|word| word.text.as_str()));
            } else if let Some((option, value)) = text.split_once('=')
                && long.contains(&option)
            {
                codes.push(value);
            }
        }
        (!codes.is_empty()).then(|| codes.join("\n"))
    };
    let from_input = || {
        let at = first_operand(words, 1, &["-m", "-W", "-X", "-I", "-r"]);
        let reads = words
            .get(at)
            .is_none_or(|word| matches!(word.text.as_str(), "-" | "/dev/stdin"));
        reads
            .then(|| input.text.as_deref().map(str::to_owned))
            .flatten()
    };
    match stem {
        "python" | "pypy" | "ipython" => after("c", &[]).or_else(from_input),
        "node" | "nodejs" | "bun" | "tsx" | "ts-node" => {
            after("ep", &["--eval", "--print", "-pe"]).or_else(from_input)
        }
        "deno" => (words.get(1).is_some_and(|word| word.text == "eval"))
            .then(|| words.last().map(|word| word.text.clone()))
            .flatten(),
        "perl" => after("eE", &[]).or_else(from_input),
        "ruby" | "irb" | "jruby" => after("e", &[]).or_else(from_input),
        "guile" | "racket" | "sbcl" | "clojure" | "bb" | "raku" | "crystal" | "kotlin"
        | "octave" | "ghc" => after("ce", &["--eval", "-eval", "--execute"]).or_else(from_input),
        "lua" | "luajit" | "Rscript" | "R" | "groovy" | "scala" | "julia" | "elixir" | "swift" => {
            after("e", &["--eval"]).or_else(from_input)
        }
        "php" => after("r", &["--run"]).or_else(from_input),
        "expect" => after("c", &[]).or_else(from_input),
        "tclsh" | "wish" | "jshell" => from_input(),
        // Lines that leave the client for a shell: `\! cmd`, `.shell cmd`, `system cmd`.
        "psql" | "sqlite" | "mysql" | "mariadb" => {
            let lines = started.texts().chain(input.text.as_deref());
            let commands: Vec<&str> = lines
                .flat_map(str::lines)
                .filter_map(|line| {
                    [r"\!", ".shell ", ".system ", "system "]
                        .iter()
                        .find_map(|mark| line.trim_start().strip_prefix(mark))
                })
                .take(MAX_CALLS)
                .collect();
            (!commands.is_empty()).then(|| format!("system({})", quoted(&commands.join("; "))))
        }
        // A line with `!` runs a command.
        "ed" => {
            let lines = input.text.as_deref().unwrap_or_default().lines();
            let commands: Vec<&str> = lines.filter_map(|line| line.strip_prefix('!')).collect();
            (!commands.is_empty()).then(|| format!("system({})", quoted(&commands.join("; "))))
        }
        "less" | "more" => {
            let commands: Vec<String> = started
                .texts()
                .filter(|text| text.starts_with('+'))
                .filter_map(editor_command)
                .collect();
            (!commands.is_empty()).then(|| commands.join("\n"))
        }
        "osascript" => after("e", &[]).or_else(from_input),
        "awk" | "gawk" | "mawk" | "nawk" => {
            let at = first_operand(words, 1, &["-F", "-v", "-f"]);
            let has_file = started.has_option("f", &["--file"]);
            (!has_file)
                .then(|| words.get(at).map(|word| word.text.clone()))
                .flatten()
        }
        "emacs" => after("", &["--eval", "-eval", "--execute"]),
        "gdb" => {
            let commands: Vec<&str> = started
                .texts()
                .filter_map(|text| {
                    text.strip_prefix("shell ")
                        .or_else(|| text.strip_prefix('!'))
                })
                .collect();
            (!commands.is_empty()).then(|| format!("system({})", quoted(&commands.join("; "))))
        }
        "zip" => {
            let at = words.iter().position(|word| word.text == "-TT");
            at.and_then(|at| words.get(at + 1))
                .map(|word| format!("system({})", quoted(&word.text)))
        }
        "vim" | "nvim" | "vi" | "ex" | "view" => {
            let commands: Vec<String> = started.texts().filter_map(editor_command).collect();
            (!commands.is_empty()).then(|| commands.join("\n"))
        }
        "sed" | "gsed" => {
            let commands: Vec<String> = started.texts().filter_map(sed_command).collect();
            (!commands.is_empty()).then(|| format!("system({})", quoted(&commands.join("; "))))
        }
        // m4, without its number; its quotes are `text'.
        "m" => from_input().map(|text| text.replace('`', "'")),
        "tar" => {
            let actions: Vec<&str> = started
                .texts()
                .filter_map(|text| {
                    text.strip_prefix("--checkpoint-action=exec=")
                        .or_else(|| text.strip_prefix("--to-command="))
                        .or_else(|| text.strip_prefix("--use-compress-program="))
                })
                .collect();
            (!actions.is_empty()).then(|| format!("system({})", quoted(&actions.join("; "))))
        }
        _ => None,
    }
}

/// A command of vim that runs a program: `!cmd`, `silent !cmd`, `call system('cmd')`.
fn editor_command(text: &str) -> Option<String> {
    let text = text.trim_start_matches(['+', ':', ' ']);
    let text = text.strip_prefix("silent").map_or(text, |rest| {
        // `silent!` also hides errors; the `!` of the command follows a space.
        let rest = rest.strip_prefix("! ").unwrap_or(rest);
        rest.trim_start_matches(' ')
    });
    if ["system(", "execute(", "termopen("]
        .iter()
        .any(|call| text.contains(call))
    {
        return Some(text.to_owned());
    }
    let program = ["!", "r !", "r!", "w !", "term ", "terminal ", "%!"]
        .iter()
        .find_map(|start| text.strip_prefix(start))?;
    Some(format!("system({})", quoted(program)))
}

/// What a sed script runs: `1e command`, or the result of `s/…/…/e`.
fn sed_command(text: &str) -> Option<String> {
    let text = text
        .strip_prefix("--expression=")
        .or_else(|| text.strip_prefix("-e").filter(|script| !script.is_empty()))
        .unwrap_or(text);
    if text.starts_with('-') {
        return None;
    }
    let rest = text.trim_start_matches(|letter: char| {
        letter.is_ascii_digit() || matches!(letter, '$' | ',' | ' ' | '{')
    });
    let rest = rest.trim_end_matches([' ', '}']);
    if let Some(command) = rest.strip_prefix("e ") {
        return Some(command.to_owned());
    }
    let mut letters = rest.strip_prefix('s')?.chars();
    let separator = letters.next().filter(|letter| !letter.is_alphanumeric())?;
    let script: String = letters.collect();
    let escaped = format!("\\{separator}");
    let parts: Vec<String> = script
        .replace(&escaped, &UNKNOWN.to_string())
        .split(separator)
        .map(|part| part.replace(UNKNOWN, &separator.to_string()))
        .collect();
    let [_, replacement, flags] = parts.as_slice() else {
        return None;
    };
    flags.contains('e').then(|| replacement.clone())
}
