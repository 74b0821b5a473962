//! `remote-code`: running what was just downloaded or decoded.

mod interpreters;
mod packages;
mod pipes;
mod programs;
mod saved_files;

use super::Objections;
use super::hosts::{contacted_hosts, host_matches};
use crate::input::GuardInput;
use crate::shell::{
    Invocation, SHELLS, ShellAnalysis, is_encoded_command, is_option, program_name,
};
use interpreters::judge_code;
use packages::judge_installs;
use pipes::{code_sources, judge_writes_to_shell, reads_download, runs_standard_input};
use programs::{is_decoder, is_download, is_interpreter};
use saved_files::judge_saved;

pub(crate) fn judge(input: &GuardInput<'_>, found: &mut Objections<'_>) {
    for analysis in input.analyses() {
        let mut downloaded: Vec<String> = Vec::new();
        for (index, invocation) in analysis.invocations.iter().enumerate() {
            judge_invocation(analysis, index, invocation, &mut downloaded, found);
            if found.is_settled() {
                return;
            }
        }
    }
    found.ask_if_incomplete(input);
}

fn judge_invocation(
    analysis: &ShellAnalysis,
    index: usize,
    invocation: &Invocation,
    downloaded: &mut Vec<String>,
    found: &mut Objections<'_>,
) {
    let shown = || invocation.shown();
    let name = invocation.name.as_str();
    if invocation.shows_help() && !SHELLS.contains(&name) {
        // A file that was just downloaded runs with any option.
        return judge_saved(analysis, index, invocation, downloaded, found);
    }
    let is_allowed = |source: &Invocation, found: &Objections<'_>| {
        let hosts = contacted_hosts(source);
        !hosts.is_empty()
            && hosts.iter().all(|host| {
                found
                    .options
                    .all("--allow-host")
                    .any(|pattern| host_matches(pattern, host))
            })
    };
    // What runs its input or a word as code.
    let runs_input = runs_standard_input(invocation);
    let runs_words = matches!(
        name,
        "eval" | "source" | "." | "trap" | "dpkg" | "rpm" | "su"
    ) || is_interpreter(name)
        || name.is_empty() && !invocation.words.is_empty()
        || matches!(name, "xargs" | "crontab");
    if runs_input || runs_words {
        let mut reason = None;
        for source in code_sources(analysis, index, runs_input) {
            if is_download(source) && !is_allowed(source, found) {
                reason = Some((
                    "download",
                    "this runs a download that no one has read; save it, read it, then run it",
                ));
            } else if reads_download(source, downloaded) {
                reason = Some((
                    "download",
                    "this runs a file that the same command downloads; read it before you run it",
                ));
            } else if is_decoder(source) && reason.is_none() {
                reason = Some(("decode", "this runs decoded text, which hides what it does"));
            }
        }
        if let Some((rule, text)) = reason {
            // An unknown program that gets a download may be an interpreter.
            if name.is_empty() {
                found.ask_user(rule, shown(), text);
            } else {
                found.deny(rule, shown(), text);
            }
        }
    }
    judge_writes_to_shell(analysis, index, invocation, found);
    if let Some(code) = &invocation.code
        && !SHELLS.contains(&name)
    {
        judge_code(code, invocation, found);
    }
    judge_saved(analysis, index, invocation, downloaded, found);
    judge_installs(invocation, found);
    judge_shells(invocation, found);
    // `sh -i < pipe | nc host port > pipe`.
    let feeds_shell = matches!(name, "nc" | "ncat" | "netcat" | "socat" | "telnet")
        && invocation.input_from.clone().any(|source| {
            analysis.invocations.get(source).is_some_and(|source| {
                SHELLS.contains(&source.name.as_str())
                    && (source.has_option("i", &[]) || source.arguments().is_empty())
            })
        });
    if feeds_shell {
        found.deny(
            "reverse-shell",
            shown(),
            "this hands a shell to another machine",
        );
    }
    judge_windows(invocation, found);
}

/// Shells that are handed to another machine.
fn judge_shells(invocation: &Invocation, found: &mut Objections<'_>) {
    let name = invocation.name.as_str();
    let texts: Vec<&str> = invocation.texts().collect();
    let is_reverse = match name {
        "nc" | "ncat" | "netcat" => {
            texts.iter().any(|text| ["--exec=", "--sh-exec=", "--lua-exec="].iter().any(|option| text.starts_with(option)))
                || texts.windows(2).any(|pair| matches!(pair, [option, program] if is_option(option, "ec", &[]) && SHELLS.contains(&program_name(program).as_str())))
                || texts.windows(2).any(|pair| matches!(pair, [option, program] if matches!(*option, "-e" | "-c" | "--exec" | "--sh-exec" | "-ec") && SHELLS.contains(&program_name(program).as_str()) || matches!(pair, ["-e" | "--exec" | "--sh-exec", _])))
        }
        "socat" => texts.iter().any(|text| text.to_ascii_lowercase().starts_with("exec:") || text.to_ascii_lowercase().starts_with("system:") || text.to_ascii_lowercase().starts_with("shell")),
        _ => {
            SHELLS.contains(&name) && invocation.redirects.iter().any(|redirect| redirect.target.text.starts_with("/dev/tcp/") || redirect.target.text.starts_with("/dev/udp/"))
        }
    };
    if is_reverse {
        found.deny(
            "reverse-shell",
            invocation.shown(),
            "this hands a shell to another machine",
        );
    }
}

fn judge_windows(invocation: &Invocation, found: &mut Objections<'_>) {
    let shown = || invocation.shown();
    let has_url = || {
        invocation.texts().any(|text| {
            text.contains("://")
                || text.to_ascii_lowercase().contains("http")
                || text.starts_with("\\\\")
        })
    };
    match invocation.name.to_ascii_lowercase().as_str() {
        "powershell" | "pwsh" => {
            // An option without a command runs nothing.
            let texts: Vec<&str> = invocation.texts().collect();
            let is_encoded = texts.windows(2).any(|pair| {
                pair.first()
                    .is_some_and(|option| is_encoded_command(option))
            });
            if is_encoded {
                found.deny(
                    "decode",
                    shown(),
                    "this runs an encoded command, which hides what it does",
                );
            }
        }
        "certutil" | "bitsadmin" if has_url() => {
            found.deny(
                "download",
                shown(),
                "this downloads with a program that is made for something else",
            );
        }
        "mshta" | "regsvr32" | "rundll32" | "wmic" | "cscript" | "wscript" | "msbuild"
        | "installutil"
            if has_url()
                || invocation
                    .texts()
                    .any(|text| text.starts_with("javascript:")) =>
        {
            found.deny("download", shown(), "this runs a script from an address");
        }
        "eval"
            if invocation
                .words
                .iter()
                .any(|word| word.text.contains("DownloadString")) =>
        {
            found.deny(
                "download",
                shown(),
                "this runs a download that no one has read",
            );
        }
        "start" | "explorer"
            if has_url()
                && invocation
                    .texts()
                    .any(|text| text.ends_with(".exe") || text.ends_with(".ps1")) =>
        {
            found.deny("download", shown(), "this runs a program from an address");
        }
        _ => {}
    }
}
