//! Which files a shell command reads and writes, by the meaning of its operands.

mod options;
mod programs;
mod scripts;
mod transfers;

use crate::paths::normalize;
use crate::shell::{Invocation, InvocationPlace, RedirectKind, ResolvedWord, first_operand};
use options::{file_in, follows_option, option_word, target_option};
use programs::{READERS, formats_in_place, is_in_place_cluster};
use scripts::files_in_script;
use transfers::{git_files, transfer_files};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Its content is shown or sent.
    Read,
    /// Looked through for a pattern, with everything below it.
    Search,
    Write,
    Delete,
}

#[derive(Debug, Clone)]
pub(crate) struct ShellFile {
    /// Absolute, with unknown parts; `None` if the folder is not known.
    pub(crate) path: Option<String>,
    pub(crate) word: ResolvedWord,
    pub(crate) access: Access,
}

impl ShellFile {
    fn new(invocation: &Invocation, word: &ResolvedWord, access: Access) -> Self {
        let path = if invocation.place == InvocationPlace::Local || word.text.starts_with('/') {
            normalize(invocation.cwd.as_deref(), &word.text)
        } else {
            None
        };
        Self {
            path,
            word: word.clone(),
            access,
        }
    }
}

/// The files of a command, as far as its words name them.
pub(crate) fn shell_files(invocation: &Invocation) -> Vec<ShellFile> {
    let mut found = Vec::new();
    for redirect in &invocation.redirects {
        let access = match redirect.kind {
            RedirectKind::Input => Access::Read,
            RedirectKind::Output | RedirectKind::Append | RedirectKind::ReadWrite => Access::Write,
            RedirectKind::Duplicate | RedirectKind::Text => continue,
        };
        found.push(ShellFile::new(invocation, &redirect.target, access));
    }
    let mut push =
        |word: &ResolvedWord, access| found.push(ShellFile::new(invocation, word, access));
    let operands: Vec<&ResolvedWord> = invocation
        .operands()
        .filter(|word| word.text != "--")
        .collect();
    let name = invocation.name.as_str();
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    match name {
        "cp" | "gcp" | "install" | "ln" | "link" | "rsync" | "scp" | "ditto" => {
            let target = target_option(invocation);
            let (last, sources) = match (&target, operands.split_last()) {
                (Some(_), _) => (None, operands.as_slice()),
                (None, Some((last, sources))) if !sources.is_empty() => (Some(*last), sources),
                (None, _) => (None, operands.as_slice()),
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
        "mv" | "gmv" | "rename" => {
            let target = target_option(invocation);
            let (last, sources) = match (&target, operands.split_last()) {
                (None, Some((last, sources))) => (Some(*last), sources),
                _ => (None, operands.as_slice()),
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
        "rm" | "unlink" | "rmdir" | "shred" | "srm" | "trash" | "trash-put" | "rimraf"
        | "del-cli" | "grm" => {
            for operand in operands {
                push(operand, Access::Delete);
            }
        }
        "tee" | "truncate" | "touch" | "sponge" | "mkdir" | "mkfifo" | "mknod" | "patch"
        | "gtee" => {
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
        "chmod" | "chown" | "chgrp" | "chattr" | "setfacl" | "xattr" => {
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
        "dd" => {
            for word in invocation.arguments() {
                if let Some(path) = word.text.strip_prefix("of=") {
                    push(&ResolvedWord::new(path), Access::Write);
                } else if let Some(path) = word.text.strip_prefix("if=") {
                    push(&ResolvedWord::new(path), Access::Read);
                }
            }
        }
        "sed" | "gsed" | "perl" | "ruby" | "awk" | "gawk" | "mawk" | "nawk" | "sd" => {
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
        "grep" | "egrep" | "fgrep" | "rg" | "ag" | "ack" | "ugrep" | "ggrep" | "zgrep" => {
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
        "git" => git_files(invocation, &mut push),
        "curl" | "wget" | "http" | "https" | "aria2c" => {
            transfer_files(invocation, &mut push);
        }
        "tar" | "bsdtar" | "zip" | "7z" => {
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
        "find" | "gfind" => {
            for pair in invocation.words.windows(2) {
                if let [option, file] = pair
                    && matches!(
                        option.text.as_str(),
                        "-fprint" | "-fprint0" | "-fprintf" | "-fls"
                    )
                {
                    push(file, Access::Write);
                }
            }
        }
        "cpio" => {
            if let Some(folder) = option_word(invocation, &["-D", "--directory"]) {
                push(&folder, Access::Write);
            }
        }
        "uniq" | "objcopy" => {
            for (index, operand) in operands.iter().enumerate() {
                let access = if index == 1 {
                    Access::Write
                } else {
                    Access::Read
                };
                push(operand, access);
            }
        }
        "mktemp" | "fallocate" | "script" | "crudini" => {
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
        "pg_dump" | "pg_dumpall" | "mysqldump" | "mariadb-dump" | "mongodump" => {
            if let Some(file) = option_word(
                invocation,
                &["-f", "--file", "-r", "--result-file", "-o", "--out"],
            ) {
                push(&file, Access::Write);
            }
        }
        "psql" | "mysql" | "mariadb" => {
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
        "xargs" => {
            if let Some(file) = option_word(invocation, &["-a", "--arg-file"]) {
                push(&file, Access::Read);
            }
        }
        "split" | "csplit" => {
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
        "docker" | "podman" => {
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
        "ffmpeg" | "convert" | "magick" => {
            if let Some((last, sources)) = operands.split_last() {
                push(last, Access::Write);
                for source in sources {
                    push(source, Access::Read);
                }
            }
        }
        "sqlite3" | "sqlite" | "duckdb" => {
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
            for operand in &operands {
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
        "age" | "openssl" | "gpg" => {
            for operand in operands {
                push(operand, Access::Read);
            }
        }
        "vim" | "vi" | "nvim" | "nano" | "emacs" | "ed" | "ex" | "code" | "pico" | "micro"
        | "hx" | "subl" => {
            for operand in operands {
                push(operand, Access::Read);
                push(operand, Access::Write);
            }
        }
        "gzip" | "bzip2" | "xz" | "zstd" | "gunzip" | "unzip" => {
            for operand in operands {
                push(operand, Access::Read);
                push(operand, Access::Write);
            }
        }
        _ if formats_in_place(invocation) => {
            for operand in operands {
                push(operand, Access::Write);
            }
        }
        _ if (stem == "python" || stem == "node" || crate::shell::SHELLS.contains(&name))
            // The script itself and its arguments.
            && invocation.code.is_none() =>
        {
            for operand in operands {
                push(operand, Access::Read);
            }
        }
        // A filter, values and files.
        "jq" | "yq" | "gojq" | "jaq" => {
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
                    text if skipped > 0
                        && !(name == "yq" && operands.len() == 1 && text.contains('/')) =>
                    {
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
                words.first().is_some_and(|option| {
                    matches!(option.text.as_str(), "--slurpfile" | "--rawfile")
                })
            });
            for file in slurped.filter_map(<[_]>::last).chain(has_file.as_ref()) {
                push(file, Access::Read);
            }
        }
        _ if READERS.contains(&name) => {
            for operand in operands {
                push(operand, Access::Read);
                if let Some((_, value)) = operand.text.split_once(['=', '@']) {
                    push(&ResolvedWord::new(value), Access::Read);
                }
            }
        }
        _ => {}
    }
    if matches!(
        name,
        "sort"
            | "gcc"
            | "cc"
            | "clang"
            | "g++"
            | "rustc"
            | "pandoc"
            | "go"
            | "ld"
            | "protoc"
            | "esbuild"
            | "openssl"
            | "keytool"
    ) {
        for pair in invocation.words.windows(2) {
            if let [option, value] = pair
                && matches!(
                    option.text.as_str(),
                    "-o" | "-out" | "-keyout" | "-keystore"
                )
            {
                found.push(ShellFile::new(invocation, value, Access::Write));
            }
        }
    }
    // Options with files that many programs share.
    for word in invocation.arguments() {
        if let Some((option, value)) = word.text.split_once('=')
            && matches!(
                option,
                "--output"
                    | "--outfile"
                    | "--out"
                    | "--output-document"
                    | "--log-file"
                    | "--target-directory"
            )
        {
            found.push(ShellFile::new(
                invocation,
                &ResolvedWord::new(value),
                Access::Write,
            ));
        }
    }
    found
}
