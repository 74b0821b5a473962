//! Files by the operands of single programs.

use super::Access;
use super::options::{file_in, follows_option, option_word, target_option};
use super::programs::is_in_place_cluster;
use super::scripts::files_in_script;
use crate::shell::{Invocation, ResolvedWord, first_operand};

/// Sources that are read and the destination that is written.
pub(super) fn copied_files(
    invocation: &Invocation,
    operands: &[&ResolvedWord],
    push: &mut impl FnMut(&ResolvedWord, Access),
) {
    let target = target_option(invocation);
    let (last, sources) = match (&target, operands.split_last()) {
        (Some(_), _) => (None, operands),
        (None, Some((last, sources))) if !sources.is_empty() => (Some(*last), sources),
        (None, _) => (None, operands),
    };
    for source in sources {
        push(source, Access::Read);
    }
    let folder = last.cloned().or(target);
    if let Some(folder) = folder {
        push(&folder, Access::Write);
        for source in sources {
            push(&file_in(&folder, source), Access::Write);
        }
    }
}

/// Sources that disappear and the destination that is written.
pub(super) fn moved_files(
    invocation: &Invocation,
    operands: &[&ResolvedWord],
    push: &mut impl FnMut(&ResolvedWord, Access),
) {
    let target = target_option(invocation);
    let (last, sources) = match (&target, operands.split_last()) {
        (None, Some((last, sources))) => (Some(*last), sources),
        _ => (None, operands),
    };
    for source in sources {
        push(source, Access::Delete);
        push(source, Access::Read);
    }
    if let Some(folder) = last.cloned().or(target) {
        push(&folder, Access::Write);
        for source in sources {
            push(&file_in(&folder, source), Access::Write);
        }
    }
}

/// Files that a program creates or fills.
pub(super) fn created_files(invocation: &Invocation, push: &mut impl FnMut(&ResolvedWord, Access)) {
    let name = invocation.name.as_str();
    let skipped = if name == "truncate" {
        &["-s", "--size", "-r"][..]
    } else {
        &["-i", "-t", "-d", "-r", "-m"]
    };
    let mut index = 1;
    while index < invocation.words.len() {
        index = first_operand(&invocation.words, index, skipped);
        if let Some(word) = invocation.words.get(index) {
            push(word, Access::Write);
        }
        index += 1;
    }
    if name == "patch"
        && let Some(folder) = option_word(invocation, &["-d", "--directory"])
    {
        push(&folder, Access::Write);
    }
}

/// Files whose mode, owner or attributes change.
pub(super) fn files_with_new_modes(
    invocation: &Invocation,
    operands: &[&ResolvedWord],
    push: &mut impl FnMut(&ResolvedWord, Access),
) {
    let name = invocation.name.as_str();
    // `chmod -x file` has its mode among the options.
    let modes = if name == "chattr" {
        "acdijstuADST"
    } else {
        "rwxXst"
    };
    let has_mode = invocation.texts().any(|text| {
        text.len() > 1
            && text.starts_with('-')
            && text.chars().skip(1).all(|letter| modes.contains(letter))
    });
    for operand in operands.iter().skip(usize::from(!has_mode)) {
        push(operand, Access::Write);
    }
}

/// Files of a program whose script comes first, read or edited in place.
pub(super) fn edited_files(invocation: &Invocation, push: &mut impl FnMut(&ResolvedWord, Access)) {
    let name = invocation.name.as_str();
    let has_code = invocation.has_option("ef", &["--expression", "--file"]);
    let is_in_place = match name {
        "sd" => true,
        "awk" | "gawk" | "mawk" | "nawk" => invocation.has_word("inplace"),
        _ => invocation
            .texts()
            .any(|text| text.starts_with("--in-place") || is_in_place_cluster(text)),
    };
    let skipped = match name {
        "sd" => 2,
        "perl" | "ruby" => 0,
        _ => usize::from(!has_code),
    };
    let values: &[&str] = &[
        "-e",
        "-f",
        "-F",
        "-v",
        "--expression",
        "--file",
        "-E",
        "-I",
        "-M",
    ];
    let values = if matches!(name, "sed" | "gsed") {
        &["-e", "-f", "--expression", "--file"][..]
    } else {
        values
    };
    let code = invocation.texts().filter(|text| text.contains(' '));
    for (file, access) in code.flat_map(|code| files_in_script(name, code)) {
        push(&ResolvedWord::new(file), access);
    }
    let mut index = 1;
    let mut place = 0;
    while index < invocation.words.len() {
        index = first_operand(&invocation.words, index, values);
        if let Some(word) = invocation.words.get(index) {
            if place >= skipped {
                push(
                    word,
                    if is_in_place {
                        Access::Write
                    } else {
                        Access::Read
                    },
                );
            }
            place += 1;
        }
        index += 1;
    }
}

/// Files that are looked through for a pattern.
pub(super) fn searched_files(
    invocation: &Invocation,
    push: &mut impl FnMut(&ResolvedWord, Access),
) {
    let name = invocation.name.as_str();
    let values: &[&str] = &[
        "-e",
        "-f",
        "-A",
        "-B",
        "-C",
        "-m",
        "-g",
        "--glob",
        "-t",
        "-T",
        "--type",
        "-d",
        "-D",
        "--regexp",
        "--include",
        "--exclude",
        "--max-count",
    ];
    let has_pattern = invocation.has_option("e", &["--regexp", "--files"]);
    let lists = invocation.has_option(
        "lLc",
        &[
            "--files-with-matches",
            "--files-without-match",
            "--count",
            "--files",
        ],
    ) || invocation.has_option("q", &["--quiet", "--silent"]);
    let is_recursive = matches!(name, "rg" | "ag" | "ack")
        || invocation.has_option("rR", &["--recursive", "--dereference-recursive"]);
    let mut index = 1;
    let mut place = 0;
    while index < invocation.words.len() {
        index = first_operand(&invocation.words, index, values);
        if let Some(word) = invocation.words.get(index) {
            if place > 0 || has_pattern {
                push(
                    word,
                    if lists || is_recursive {
                        Access::Search
                    } else {
                        Access::Read
                    },
                );
                if !lists {
                    push(word, Access::Read);
                }
            }
            place += 1;
        }
        index += 1;
    }
    if let Some(at) = invocation.words.iter().position(|word| word.text == "-f")
        && let Some(word) = invocation.words.get(at + 1)
    {
        push(word, Access::Read);
    }
}

/// Files that are packed, and those that come out of an archive.
pub(super) fn archived_files(
    invocation: &Invocation,
    operands: &[&ResolvedWord],
    push: &mut impl FnMut(&ResolvedWord, Access),
) {
    let name = invocation.name.as_str();
    let extracts = invocation
        .texts()
        .next()
        .is_some_and(|text| text.contains('x') && !text.starts_with("--c"))
        || invocation.has_option("x", &["--extract"]);
    for (index, operand) in operands.iter().enumerate() {
        if name == "zip" && index == 0 {
            push(operand, Access::Write);
        } else {
            push(operand, Access::Read);
        }
        // Members that are named come out into the current folder.
        let is_archive = [".tar", ".tgz", ".gz", ".xz", ".bz2", ".zst", ".zip", ".7z"]
            .iter()
            .any(|end| operand.text.ends_with(end));
        if extracts
            && index > 0
            && !is_archive
            && operand.text.contains('/')
            && !operand.text.starts_with(['/', '~', '.'])
            && !follows_option(invocation, operand)
        {
            push(operand, Access::Write);
        }
    }
    if extracts && let Some(folder) = option_word(invocation, &["-C", "--directory"]) {
        push(&folder, Access::Write);
    }
    if let Some(at) = invocation.words.iter().position(|word| word.text == "-T")
        && let Some(word) = invocation.words.get(at + 1)
    {
        push(word, Access::Read);
    }
}

/// The one file that a program names first.
pub(super) fn named_output(invocation: &Invocation, push: &mut impl FnMut(&ResolvedWord, Access)) {
    let at = first_operand(
        &invocation.words,
        1,
        &[
            "-l",
            "-o",
            "-p",
            "-c",
            "-t",
            "--length",
            "--offset",
            "--command",
            "--set",
            "--del",
        ],
    );
    if let Some(word) = invocation.words.get(at) {
        push(word, Access::Write);
    }
    if let Some(file) = option_word(invocation, &["--set", "--del"]) {
        push(&file, Access::Write);
    }
}

/// Files in the statements of a database client.
pub(super) fn statement_files(
    invocation: &Invocation,
    push: &mut impl FnMut(&ResolvedWord, Access),
) {
    for text in invocation.texts() {
        let lower = text.to_ascii_lowercase();
        let is_copy = ["copy ", "infile ", "outfile "]
            .iter()
            .any(|word| lower.contains(word));
        let quoted = text.split('\'').skip(1).step_by(2);
        for file in quoted.filter(|file| is_copy && file.contains(['/', '.'])) {
            let writes = lower.contains(" to '") || lower.contains("outfile ");
            let access = if writes { Access::Write } else { Access::Read };
            push(&ResolvedWord::new(file), access);
        }
    }
}

/// The file that is split and the prefix of its parts.
pub(super) fn split_files(invocation: &Invocation, push: &mut impl FnMut(&ResolvedWord, Access)) {
    let name = invocation.name.as_str();
    let values = &["-b", "-C", "-l", "-n", "-a", "-t", "-f", "-k"];
    let at = first_operand(&invocation.words, 1, values);
    let operands: Vec<&ResolvedWord> = invocation.words.iter().skip(at).collect();
    // The prefix of what is written.
    if let Some(prefix) = operands.get(1).filter(|_| name == "split") {
        push(prefix, Access::Write);
    }
    if let Some(prefix) = option_word(invocation, &["-f", "--prefix"]) {
        push(&prefix, Access::Write);
    }
    operands
        .first()
        .into_iter()
        .for_each(|file| push(file, Access::Read));
}

/// Files that are copied into or out of a container.
pub(super) fn container_copies(
    invocation: &Invocation,
    operands: &[&ResolvedWord],
    push: &mut impl FnMut(&ResolvedWord, Access),
) {
    let texts: Vec<&str> = invocation.texts().collect();
    if texts.first() == Some(&"cp") {
        for operand in operands
            .iter()
            .skip(1)
            .take(operands.len().saturating_sub(2))
        {
            push(operand, Access::Read);
        }
        if let Some(last) = operands.last().filter(|last| !last.text.contains(':')) {
            push(last, Access::Write);
        }
    }
}

/// A database file, and the files in its statements.
pub(super) fn database_files(
    invocation: &Invocation,
    operands: &[&ResolvedWord],
    push: &mut impl FnMut(&ResolvedWord, Access),
) {
    let name = invocation.name.as_str();
    let writes = operands.iter().skip(1).any(|operand| {
        let statement = operand.text.trim_start().to_ascii_lowercase();
        [
            "insert", "update", "delete", "create", "drop", "alter", "replace", "vacuum",
        ]
        .iter()
        .any(|verb| statement.starts_with(verb))
    });
    if let Some(file) = operands.first().filter(|_| writes) {
        push(file, Access::Write);
    }
    for operand in operands {
        push(operand, Access::Read);
        // `select * from 'file.csv'`.
        let quoted = operand.text.split('\'').skip(1).step_by(2);
        for file in quoted.filter(|file| name == "duckdb" && file.contains('.')) {
            push(&ResolvedWord::new(file), Access::Read);
        }
        // `.import FILE TABLE`, `.read FILE`, `.output FILE`.
        let mut words = operand.text.split_whitespace();
        let access = match words.next() {
            Some(".import" | ".read" | ".open" | ".restore") => Access::Read,
            Some(".output" | ".once" | ".backup" | ".save") => Access::Write,
            _ => continue,
        };
        if let Some(file) = words.find(|word| !word.starts_with('-')) {
            push(&ResolvedWord::new(file), access);
        }
    }
}

/// Files of a filter language, after its filter and values.
pub(super) fn filter_files(
    invocation: &Invocation,
    operands: &[&ResolvedWord],
    push: &mut impl FnMut(&ResolvedWord, Access),
) {
    let name = invocation.name.as_str();
    let is_in_place = invocation.has_option("i", &["--inplace", "--in-place"]);
    let has_file = option_word(invocation, &["-f", "--from-file"]);
    let mut words = invocation.arguments().iter();
    let mut skipped = usize::from(has_file.is_none());
    while let Some(word) = words.next() {
        match word.text.as_str() {
            "--arg" | "--argjson" => drop(words.nth(1)),
            "--args" | "--jsonargs" => break,
            "--slurpfile" | "--rawfile" => drop(words.nth(1)),
            "-f" | "--from-file" | "-L" | "--indent" => drop(words.next()),
            text if text.starts_with('-') && text != "-" => {}
            text if skipped > 0 && !(name == "yq" && operands.len() == 1 && text.contains('/')) => {
                skipped -= 1;
            }
            _ => {
                push(word, Access::Read);
                if is_in_place {
                    push(word, Access::Write);
                }
            }
        }
    }
    let texts = invocation.words.windows(3);
    let slurped = texts.filter(|words| {
        words
            .first()
            .is_some_and(|option| matches!(option.text.as_str(), "--slurpfile" | "--rawfile"))
    });
    for file in slurped.filter_map(<[_]>::last).chain(has_file.as_ref()) {
        push(file, Access::Read);
    }
}
