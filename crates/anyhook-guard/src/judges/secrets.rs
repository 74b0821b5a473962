//! `secrets`: reading key files, dumping the environment, writing and sending secrets.

mod environment;
mod files;
mod stores;

use super::Objections;
use super::access::{Access, shell_files};
use super::secret_values::known_secret;
use crate::input::{FileUse, GuardInput};
use crate::paths::{glob_matches, normalize};
use crate::shell::{Invocation, InvocationPlace, MAX_COMMAND_BYTES, ShellAnalysis, UNKNOWN};
use environment::{is_filtered_dump, judge_code, judge_dump, judge_variables};
use files::{SecretFiles, is_secret_folder};
use stores::judge_stores;

pub(crate) fn judge(input: &GuardInput<'_>, found: &mut Objections<'_>) {
    let secret_files = SecretFiles {
        more: found.options.all("--path").map(str::to_owned).collect(),
        allowed: found.options.all("--allow").map(str::to_owned).collect(),
        project: input.project.as_deref(),
        home: input.home.as_deref(),
    };
    for file in input.files() {
        match file.file_use {
            FileUse::Read if secret_files.is_secret(&file.path) => {
                found.deny(
                    "read",
                    &file.path,
                    "this file holds secrets; ask the user for what you need of it",
                );
            }
            FileUse::Search => {
                let glob_hits = file
                    .glob
                    .as_deref()
                    .is_some_and(|glob| secret_files.pattern_names_secret(glob));
                let is_find = input.is_tool("find");
                if secret_files.is_secret(&file.path)
                    || is_secret_folder(&file.path) && !is_find
                    || glob_hits && !is_find
                {
                    found.deny(
                        "read",
                        &file.path,
                        "this searches in files that hold secrets",
                    );
                } else if glob_hits {
                    found.ask_user(
                        "read",
                        file.glob.clone().unwrap_or_default(),
                        "this lists files that hold secrets",
                    );
                }
            }
            FileUse::Write => {
                if let Some(what) = known_secret(&file.content) {
                    found.deny("write", &file.path, format!("this writes {what} into a file; read it from the environment or a secret store"));
                }
            }
            _ => {}
        }
    }
    let prompt = input
        .event
        .tool_input()
        .filter(|_| input.fetched_url().is_some())
        .and_then(|tool_input| tool_input.get("prompt"))
        .and_then(serde_json::Value::as_str);
    if let Some(what) = prompt.and_then(known_secret) {
        found.deny("send", "", format!("this sends {what}"));
    }
    if let Some(url) = input.fetched_url() {
        if let Some(what) = known_secret(url) {
            found.deny("send", "", format!("this sends {what} in a URL"));
        }
        if let Some(path) = url.strip_prefix("file://")
            && secret_files.is_secret(path)
        {
            found.deny("read", path, "this file holds secrets");
        }
    }
    let mut sourced = false;
    for analysis in input.analyses() {
        for (index, invocation) in analysis.invocations.iter().enumerate() {
            if is_filtered_dump(analysis, index) {
                continue;
            }
            judge_invocation(invocation, &secret_files, &mut sourced, found);
            judge_listed(analysis, invocation, &secret_files, found);
            judge_variables(analysis, index, invocation, found);
            if found.is_settled() {
                return;
            }
        }
    }
    // What is longer was not read, and is asked about.
    let commands = input.commands().into_iter();
    for command in commands.filter(|command| command.len() <= MAX_COMMAND_BYTES) {
        if let Some(what) = known_secret(&command) {
            found.deny(
                "write",
                "",
                format!(
                    "this command contains {what}; read it from the environment or a secret store"
                ),
            );
        }
    }
    found.ask_if_incomplete(input);
}

fn judge_invocation(
    invocation: &Invocation,
    files: &SecretFiles<'_>,
    sourced: &mut bool,
    found: &mut Objections<'_>,
) {
    let shown = || invocation.shown();
    let name = invocation.name.as_str();
    if invocation.shows_help() {
        return;
    }
    let texts: Vec<&str> = invocation.texts().collect();
    judge_dump(invocation, &texts, *sourced, found);
    judge_stores(invocation, &texts, found);
    if let Some(code) = &invocation.code {
        judge_code(code, invocation, found);
    }
    let is_away = invocation.place == InvocationPlace::Container;
    for file in shell_files(invocation) {
        if !matches!(file.access, Access::Read | Access::Search) {
            continue;
        }
        let path = match &file.path {
            Some(path) => path.clone(),
            None => format!("/{UNKNOWN}/{}", file.word.text),
        };
        let is_pattern = file.word.is_pattern || path.contains(UNKNOWN);
        let last = path.rsplit('/').next().unwrap_or_default();
        let hits = if files.pattern_matches_secret(&file.word, &path) {
            true
        } else if last.contains(['*', '?', '[']) && is_pattern {
            files.pattern_names_secret(&path)
                || path
                    .rsplit_once('/')
                    .is_some_and(|(folder, _)| is_secret_folder(folder))
                    && !path.contains("/.ssh/")
                || files.is_secret(&path.replace(['*', '?'], "x")) && path.contains("/.ssh/")
        } else {
            files.is_secret(&path)
        };
        let packs = matches!(
            name,
            "tar" | "zip" | "rsync" | "scp" | "cp" | "7z" | "bsdtar"
        );
        // `find ~/.ssh -exec cat {} +` reads everything in it.
        let is_listed = invocation
            .via
            .iter()
            .any(|via| matches!(via.as_str(), "find" | "xargs" | "fd"));
        let is_folder =
            (file.access == Access::Search || packs || is_listed) && is_secret_folder(&path);
        if (hits || is_folder) && !is_exempt(invocation, &file.word.text) {
            if matches!(name, "source" | ".") {
                // Loading it into the shell shows nothing; what follows may.
                *sourced = true;
                continue;
            }
            if file.access == Access::Search
                && !is_folder
                && invocation.has_option("lLqc", &["--files-with-matches", "--quiet", "--count"])
            {
                continue;
            }
            let reason = "this file holds secrets; ask the user for what you need of it";
            if is_away {
                // A container may have nothing but test data.
                found.ask_user("read", shown(), reason);
            } else {
                found.deny("read", shown(), reason);
            }
        }
    }
    // `find -name .env -exec cat {} +`, `xargs cat` below a folder.
    if invocation
        .via
        .iter()
        .any(|via| matches!(via.as_str(), "find" | "xargs" | "fd"))
        && !is_away
    {
        let reads_unknown = shell_files(invocation)
            .iter()
            .any(|file| file.access == Access::Read && file.word.has_unknown());
        if reads_unknown && *sourced {
            found.ask_user("read", shown(), "this may read files that hold secrets");
        }
    }
    if matches!(
        name,
        "find" | "fd" | "locate" | "git" | "ls" | "rg" | "grep"
    ) {
        let names_secret = texts.windows(2).any(|pair| matches!(pair, ["-name" | "-iname" | "-path" | "-g" | "--glob" | "--include", pattern] if files.pattern_names_secret(pattern) || glob_matches(pattern, ".env")&& pattern.len() > 2 && pattern.starts_with('.')))
            || texts.iter().any(|text| text.strip_prefix("--include=").or_else(|| text.strip_prefix("--glob=")).is_some_and(|pattern| files.pattern_names_secret(pattern)));
        let looks_for_secrets = matches!(name, "fd" | "locate")
            && invocation
                .operands()
                .any(|word| files.pattern_names_secret(word.text.trim_matches(['^', '$'])));
        if looks_for_secrets {
            *sourced = true;
        }
        if names_secret {
            *sourced = true;
            if matches!(name, "rg" | "grep")
                && !invocation.has_option("lLc", &["--files-with-matches"])
            {
                found.deny("read", shown(), "this searches in files that hold secrets");
            }
        }
    }
    // Files that are sent or packed by programs of any kind.
    if matches!(
        name,
        "docker"
            | "kubectl"
            | "gh"
            | "vercel"
            | "heroku"
            | "gist"
            | "pastebinit"
            | "mailx"
            | "mutt"
    ) && !is_away
    {
        for text in texts.iter().filter(|text| !text.contains([' ', '\n'])) {
            let path = text.rsplit(['=', '@']).next().unwrap_or_default();
            if let Some(path) = normalize(invocation.cwd.as_deref(), path)
                && files.is_secret(&path)
                && (!matches!(name, "docker" | "kubectl" | "vercel" | "heroku")
                    || texts.first() == Some(&"cp"))
                && !texts.contains(&"secret")
            {
                found.deny("send", shown(), "this sends a file that holds secrets");
            }
        }
    }
}

/// Files that are only known at run time, from a listing that looks for secret ones:
/// `cat $(find . -name .env)`, `ls -a | grep env$ | xargs cat`.
fn judge_listed(
    analysis: &ShellAnalysis,
    invocation: &Invocation,
    files: &SecretFiles<'_>,
    found: &mut Objections<'_>,
) {
    let sources: Vec<usize> = shell_files(invocation)
        .into_iter()
        .filter(|file| file.access == Access::Read && file.word.has_unknown())
        .flat_map(|file| file.word.sources)
        .flatten()
        .collect();
    if sources.is_empty() {
        return;
    }
    let looks_for_secrets = analysis.upstream(sources).iter().any(|source| {
        let texts: Vec<&str> = source.texts().collect();
        match source.name.as_str() {
            "find" | "fd" | "fdfind" | "ls" | "locate" => {
                texts.iter().any(|text| files.pattern_names_secret(text))
            }
            "grep" | "egrep" | "rg" => texts
                .iter()
                .find(|text| !text.starts_with('-'))
                .is_some_and(|pattern| {
                    let plain = pattern.trim_matches(['^', '$']).replace('\\', "");
                    matches!(plain.as_str(), "env" | ".env") || files.pattern_names_secret(&plain)
                }),
            _ => false,
        }
    });
    if looks_for_secrets {
        found.ask_user(
            "read",
            invocation.shown(),
            "this may read files that hold secrets",
        );
    }
}

/// Uses of key files that show nothing.
fn is_exempt(invocation: &Invocation, text: &str) -> bool {
    let texts: Vec<&str> = invocation.texts().collect();
    let follows = |options: &[&str]| {
        texts.windows(2).any(
            |pair| matches!(pair, [option, value] if options.contains(option) && *value == text),
        )
    };
    match invocation.name.as_str() {
        "ssh" | "scp" | "sftp" | "rsync" | "ssh-add" => {
            follows(&["-i", "-F", "-e"]) || invocation.name == "ssh-add"
        }
        "ssh-keygen" => !texts.contains(&"-e") && !texts.contains(&"-p") && !texts.contains(&"-y"),
        "curl" | "wget" | "openssl" => {
            follows(&[
                "--key",
                "--cert",
                "-E",
                "--cacert",
                "-key",
                "-inkey",
                "-signkey",
                "-CAkey",
                "-keyout",
                "--netrc-file",
                "-out",
            ]) || texts.first() == Some(&"x509")
                || texts.contains(&"-pubout")
                || texts.contains(&"-noout") && !texts.contains(&"-text")
        }
        "git" => {
            texts.first() == Some(&"log")
                && !invocation.has_option("pu", &["--patch"])
                && !texts.contains(&"-p")
                || matches!(texts.first(), Some(&"check-ignore" | &"rm" | &"mv"))
                || texts.contains(&"--stat")
                || texts.contains(&"--name-only")
        }
        "docker" | "podman" => texts.first() != Some(&"cp"),
        "dotenv" => true,
        "cp" | "ln" | "install" => false,
        "python" | "node" | "python3" => true,
        "touch" => true,
        "export" => true,
        "jq" | "yq" => follows(&["-f", "--arg"]),
        "gpg" => texts.iter().any(|option| {
            matches!(
                *option,
                "--import" | "-c" | "--symmetric" | "-e" | "--encrypt" | "--list-keys" | "--verify"
            )
        }),
        "comm" | "diff" | "cmp" => false,
        _ => false,
    }
}
