//! Files that `git` and programs for transfers and archives read and write.

use super::Access;
use super::options::{follows_option, option_word};
use crate::shell::{Invocation, ResolvedWord, first_operand};

pub(super) fn git_files(invocation: &Invocation, push: &mut dyn FnMut(&ResolvedWord, Access)) {
    let at = first_operand(
        &invocation.words,
        1,
        &["-C", "-c", "--git-dir", "--work-tree", "--namespace"],
    );
    let mut words = invocation.words.iter().skip(at);
    let Some(verb) = words.next() else {
        return;
    };
    let mut operands: Vec<&ResolvedWord> =
        words.filter(|word| !word.text.starts_with('-')).collect();
    // The pattern of a search and a message are no files.
    let data = match verb.text.as_str() {
        "grep" if option_word(invocation, &["-e", "-f"]).is_none() => operands.first().copied(),
        "stash" => operands
            .iter()
            .copied()
            .find(|word| follows_option(invocation, word)),
        _ => None,
    };
    operands.retain(|word| Some(*word) != data);
    let access = match verb.text.as_str() {
        "rm" | "mv" => Access::Delete,
        "checkout" | "restore" | "apply" | "clean" => Access::Write,
        "stash" if operands.first().is_some_and(|word| word.text == "show") => Access::Read,
        "stash" if operands.first().is_some_and(|word| word.text == "push") => Access::Write,
        "diff" | "show" | "blame" | "grep" | "cat-file" | "hash-object" | "log" | "archive"
        | "add" | "stage" => Access::Read,
        _ => return,
    };
    // Paths are relative to the folder of `-C`.
    let folder = option_word(invocation, &["-C"]);
    for operand in &operands {
        push(operand, access);
        if let Some(folder) = folder.as_ref().filter(|_| !operand.text.starts_with('/')) {
            let path = format!("{}/{}", folder.text, operand.text);
            push(&ResolvedWord::new(path), access);
        }
        // `HEAD:path`.
        if let Some((_, path)) = operand.text.split_once(':') {
            push(&ResolvedWord::new(path), access);
        }
    }
    if verb.text == "apply"
        && let Some(folder) = option_word(invocation, &["--directory"])
    {
        push(&folder, Access::Write);
    }
    if verb.text == "mv"
        && let Some(last) = operands.last()
    {
        push(last, Access::Write);
    }
}

pub(super) fn transfer_files(invocation: &Invocation, push: &mut dyn FnMut(&ResolvedWord, Access)) {
    let words = &invocation.words;
    if let Some(folder) = option_word(invocation, &["--output-dir"]) {
        push(&folder, Access::Write);
    }
    if invocation.name == "wget"
        && let Some(folder) = option_word(invocation, &["-P", "--directory-prefix"])
    {
        push(&folder, Access::Write);
    }
    for (index, word) in words.iter().enumerate().skip(1) {
        let text = word.text.as_str();
        let (option, value) = match text.split_once('=') {
            Some((option, value)) if option.starts_with("--") => {
                (option, Some(ResolvedWord::new(value)))
            }
            _ => (text, words.get(index + 1).cloned()),
        };
        let value = || value.clone().unwrap_or_default();
        // `-sF value`: the last letter of a cluster of switches.
        let clustered = option
            .strip_prefix('-')
            .filter(|letters| {
                letters.len() > 1
                    && letters.ends_with(['F', 'd', 'T', 'o', 'K', 'b'])
                    && letters.get(..letters.len() - 1).is_some_and(|rest| {
                        rest.chars()
                            .all(|letter| "sSfLkgijvINqGl#".contains(letter))
                    })
            })
            .and_then(|letters| letters.chars().last());
        let last_option = clustered.map(|letter| format!("-{letter}"));
        let option = last_option
            .as_deref()
            .filter(|_| invocation.name == "curl")
            .unwrap_or(option);
        // wget accepts any unambiguous start of an option.
        let option = match option {
            _ if option.len() > 7 && "--post-file".starts_with(option) => "--post-file",
            _ if option.len() > 7 && "--body-file".starts_with(option) => "--body-file",
            option => option,
        };
        match option {
            "-o" | "--output" | "-O" | "--output-document" | "-D" | "--dump-header"
            | "--output-file" | "-c" | "--cookie-jar" | "-a"
                if !(option == "-O" && invocation.name == "curl"
                    || option == "-c" && invocation.name == "wget") =>
            {
                push(&value(), Access::Write);
            }
            "-T" | "--upload-file" | "-K" | "--config" | "--key" | "-E" | "--cert"
            | "--netrc-file" | "--post-file" | "--body-file" | "-b" | "--cookie" | "-i"
            | "--input-file"
                if !(matches!(option, "-i" | "-b" | "-E")
                    && invocation.name == "curl"
                    && !value().text.contains(['/', '.'])) =>
            {
                push(&value(), Access::Read);
            }
            "-d" | "--data" | "--data-binary" | "--data-raw" | "--data-urlencode" | "-F"
            | "--form" | "--json" | "--data-ascii" | "--form-string" | "-H" | "--header" => {
                for mark in ['@', '<'] {
                    if let Some((_, path)) = value().text.split_once(mark) {
                        let path = path.split([';', ',']).next().unwrap_or_default();
                        push(&ResolvedWord::new(path), Access::Read);
                    }
                }
            }
            _ => {
                if text.starts_with('-')
                    && !text.starts_with("--")
                    && text.len() > 2
                    && text.ends_with(['o', 'O'])
                    && !text.contains('@')
                    && !(text.ends_with('O') && invocation.name == "curl")
                {
                    push(&value(), Access::Write);
                }
                if let Some(path) = text.strip_prefix("file://") {
                    push(&ResolvedWord::new(path), Access::Read);
                }
                for prefix in ["-o", "-T", "-O", "-qO"] {
                    if let Some(path) = text.strip_prefix(prefix)
                        && !path.is_empty()
                        && !text.starts_with("--")
                        && path != "-"
                    {
                        push(
                            &ResolvedWord::new(path),
                            if prefix == "-T" {
                                Access::Read
                            } else {
                                Access::Write
                            },
                        );
                    }
                }
                // `-d@file`, `-sFname=@file`.
                let letters = text
                    .strip_prefix('-')
                    .filter(|letters| !letters.starts_with('-'))
                    .and_then(|letters| letters.split_once(['d', 'F']));
                if let Some((before, rest)) = letters
                    && before.chars().all(|letter| letter.is_ascii_alphabetic())
                    && !before.contains(['o', 'u', 'H', 'A', 'e'])
                    && let Some((_, path)) = rest.split_once('@')
                {
                    push(&ResolvedWord::new(path), Access::Read);
                }
                // httpie: `field@file`, `@file`.
                if invocation.name.starts_with("http")
                    && let Some((_, path)) = text.split_once('@')
                {
                    push(&ResolvedWord::new(path), Access::Read);
                }
            }
        }
    }
}
