//! What a script takes from elsewhere: modules that it loads, and programs to which it
//! hands what it reads.

/// Endings of modules whose name has none.
const MODULE_ENDINGS: [&str; 10] = [
    ".py",
    "/__init__.py",
    ".js",
    ".cjs",
    ".mjs",
    ".ts",
    "/index.js",
    ".rb",
    ".sh",
    ".pl",
];

/// Words that load a module.
const LOADING_WORDS: [&str; 6] = [
    "import",
    "from",
    "require",
    "require_relative",
    "source",
    ".",
];

/// Ways to start a program from another language than a shell's, and to give it an input.
const STARTING: [&str; 5] = [
    "subprocess",
    "child_process",
    "os.popen",
    "os.system",
    "Open3",
];
const GIVING_INPUT: [&str; 6] = ["input=", "input =", "input:", "stdin=", "stdin_data", " | "];

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "_./-".contains(letter)
}

/// Paths that a script names, as they may be found beside it or in the project.
pub(super) fn named_paths(text: &str) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    let mut add = |path: &str| {
        if !path.is_empty() && !paths.iter().any(|known| known == path) {
            paths.push(path.to_owned());
        }
    };
    for line in text.lines() {
        let words = line.split(|letter: char| !is_of_name(letter));
        let is_loading = words.clone().any(|word| LOADING_WORDS.contains(&word));
        for word in words {
            let name = word.trim_start_matches(['.', '/']);
            if name.contains(['.', '/']) && !name.ends_with('/') {
                add(name);
                // `$FOLDER/file`: the variable's name is no folder.
                let below = name.split_once('/');
                add(below.map_or("", |(_, below)| below));
            }
            if is_loading && !name.is_empty() && !LOADING_WORDS.contains(&name) {
                let module = name.replace('.', "/");
                for ending in MODULE_ENDINGS {
                    add(&format!("{name}{ending}"));
                    add(&format!("{module}{ending}"));
                }
            }
        }
    }
    paths
}

/// Programs to which a shell script pipes something.
pub(super) fn piped_programs(text: &str) -> Vec<&str> {
    let first = text.lines().next().unwrap_or_default();
    let is_shell = !first.starts_with("#!") || first.ends_with("sh");
    let lines = text
        .lines()
        .filter(|line| is_shell && !line.trim_start().starts_with('#'));
    let mut programs = Vec::new();
    for line in lines {
        let mut parts = line.split('|');
        let mut before = parts.next().unwrap_or_default();
        for part in parts {
            let program = part.split_whitespace().next().unwrap_or_default();
            let is_or = before.is_empty();
            if !is_or && !program.is_empty() && program.chars().all(is_of_name) {
                programs.push(program);
            }
            before = part;
        }
    }
    // Its own functions are part of it.
    programs.retain(|name| {
        !text.contains(&format!("{name}()")) && !text.contains(&format!("function {name}"))
    });
    programs
}

/// Whether a program in another language than a shell's starts one and gives it an input.
pub(super) fn hands_input_on(text: &str) -> bool {
    STARTING.iter().any(|word| text.contains(word))
        && GIVING_INPUT.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_and_files_behind_variables_are_named() {
        for (text, path) in [
            (". \"$HERE/lib/judge\"", "lib/judge"),
            ("source ${DIR}/judge.sh", "judge.sh"),
            ("from judge import check", "judge.py"),
            ("import lib.judge", "lib/judge.py"),
            ("const judge = require('./judge')", "judge.js"),
            ("import { judge } from './judge'", "judge.ts"),
            ("require_relative 'judge'", "judge.rb"),
        ] {
            assert!(named_paths(text).iter().any(|name| name == path), "{text}");
        }
    }

    #[test]
    fn programs_behind_a_pipe_are_named() {
        for (text, programs) in [
            ("printf %s \"$p\" | judge -q || exit 2", &["judge"] as &[_]),
            ("case $c in rm|mv) exit 2 ;; esac", &[]),
            ("grep -E 'rm|mv' || exit 0", &[]),
            ("# cat | judge", &[]),
            ("judge() { exit 2; }\ncat | judge", &[]),
            ("#!/usr/bin/env python3\nx = a | b", &[]),
            ("cat | jq . | sort", &["jq", "sort"]),
        ] {
            assert_eq!(piped_programs(text), programs, "{text}");
        }
    }
}
