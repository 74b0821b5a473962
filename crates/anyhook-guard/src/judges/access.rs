//! Which files a shell command reads and writes, by the meaning of its operands.

mod operands;
mod options;
mod programs;
mod scripts;
mod transfers;

use crate::paths::normalize;
use crate::shell::{Invocation, InvocationPlace, RedirectKind, ResolvedWord};
use operands::{
    archived_files, container_copies, copied_files, created_files, database_files, edited_files,
    files_with_new_modes, filter_files, moved_files, named_output, searched_files, split_files,
    statement_files,
};
use options::option_word;
use programs::{READERS, formats_in_place};
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
            copied_files(invocation, &operands, &mut push);
        }
        "mv" | "gmv" | "rename" => moved_files(invocation, &operands, &mut push),
        "rm" | "unlink" | "rmdir" | "shred" | "srm" | "trash" | "trash-put" | "rimraf"
        | "del-cli" | "grm" => {
            for operand in operands {
                push(operand, Access::Delete);
            }
        }
        "tee" | "truncate" | "touch" | "sponge" | "mkdir" | "mkfifo" | "mknod" | "patch"
        | "gtee" => created_files(invocation, &mut push),
        "chmod" | "chown" | "chgrp" | "chattr" | "setfacl" | "xattr" => {
            files_with_new_modes(invocation, &operands, &mut push);
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
            edited_files(invocation, &mut push);
        }
        "grep" | "egrep" | "fgrep" | "rg" | "ag" | "ack" | "ugrep" | "ggrep" | "zgrep" => {
            searched_files(invocation, &mut push);
        }
        "git" => git_files(invocation, &mut push),
        "curl" | "wget" | "http" | "https" | "aria2c" => {
            transfer_files(invocation, &mut push);
        }
        "tar" | "bsdtar" | "zip" | "7z" => archived_files(invocation, &operands, &mut push),
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
        "mktemp" | "fallocate" | "script" | "crudini" => named_output(invocation, &mut push),
        "pg_dump" | "pg_dumpall" | "mysqldump" | "mariadb-dump" | "mongodump" => {
            if let Some(file) = option_word(
                invocation,
                &["-f", "--file", "-r", "--result-file", "-o", "--out"],
            ) {
                push(&file, Access::Write);
            }
        }
        "psql" | "mysql" | "mariadb" => statement_files(invocation, &mut push),
        "xargs" => {
            if let Some(file) = option_word(invocation, &["-a", "--arg-file"]) {
                push(&file, Access::Read);
            }
        }
        "split" | "csplit" => split_files(invocation, &mut push),
        "docker" | "podman" => container_copies(invocation, &operands, &mut push),
        "ffmpeg" | "convert" | "magick" => {
            if let Some((last, sources)) = operands.split_last() {
                push(last, Access::Write);
                for source in sources {
                    push(source, Access::Read);
                }
            }
        }
        "sqlite3" | "sqlite" | "duckdb" => database_files(invocation, &operands, &mut push),
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
        "jq" | "yq" | "gojq" | "jaq" => filter_files(invocation, &operands, &mut push),
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
    found.extend(option_files(invocation));
    found
}

/// Files that options name, of some programs or of any.
fn option_files(invocation: &Invocation) -> Vec<ShellFile> {
    let name = invocation.name.as_str();
    let mut found = Vec::new();
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
