//! Code that arrives through a pipe or a word: `curl … | sh`, `sh -c "$(curl …)"`.

use super::programs::{is_decoder, is_download, is_interpreter};
use crate::judges::Objections;
use crate::judges::access::{Access, shell_files};
use crate::shell::{Invocation, RedirectKind, SHELLS, ShellAnalysis};

/// Whether a program prints a file that the command has downloaded.
pub(super) fn reads_download(source: &Invocation, downloaded: &[String]) -> bool {
    !downloaded.is_empty()
        && shell_files(source).iter().any(|file| {
            file.access == Access::Read
                && file
                    .path
                    .as_ref()
                    .is_some_and(|path| downloaded.contains(path))
        })
}

/// A download that is written into `>(sh)`.
pub(super) fn judge_writes_to_shell(
    analysis: &ShellAnalysis,
    index: usize,
    invocation: &Invocation,
    found: &mut Objections<'_>,
) {
    let redirects = invocation
        .redirects
        .iter()
        .filter(|redirect| matches!(redirect.kind, RedirectKind::Output | RedirectKind::Append));
    let targets = redirects.map(|redirect| &redirect.target).chain(
        invocation
            .arguments()
            .iter()
            .filter(|_| invocation.name == "tee"),
    );
    let mut readers = targets
        .filter(|target| target.text.starts_with("/dev/fd/"))
        .flat_map(|target| target.sources.iter().cloned().flatten())
        .filter_map(|source| analysis.invocations.get(source));
    if readers.any(|reader| is_interpreter(&reader.name) && reader.code.is_none()) {
        let mut sources = analysis.upstream([index]).into_iter();
        if sources.any(|source| is_download(source) || is_decoder(source)) {
            found.deny(
                "download",
                invocation.shown(),
                "this runs a download that no one has read; save it, read it, then run it",
            );
        }
    }
}

/// Whether a program runs what it reads.
pub(super) fn runs_standard_input(invocation: &Invocation) -> bool {
    let name = invocation.name.as_str();
    if invocation.input_from.is_empty()
        && invocation.input_text.is_none()
        && !invocation
            .redirects
            .iter()
            .any(|redirect| redirect.kind == RedirectKind::Input)
    {
        return false;
    }
    let at = crate::shell::first_operand(&invocation.words, 1, &["-o", "+o", "-O", "--rcfile"]);
    let first = invocation.words.get(at).map(|word| word.text.as_str());
    if name.is_empty() {
        return !invocation.words.is_empty();
    }
    if SHELLS.contains(&name) {
        let has_script = invocation.texts().any(|text| {
            text.starts_with('-')
                && !text.starts_with("--")
                && text.contains('c')
                && text.len() <= 5
        });
        let reads = invocation.has_option("s", &[])
            || first.is_none_or(|first| {
                matches!(first, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
            });
        // `sh -n` only checks the syntax.
        let checks_only = invocation.has_option("n", &[]) && !invocation.has_option("s", &[]);
        return !has_script && reads && !checks_only
            || has_script && invocation.via.iter().any(|via| via == "xargs");
    }
    match name {
        // PowerShell's takes its text from the pipe; a shell's only from its words.
        "eval" => invocation.arguments().is_empty(),
        "source" | "." => {
            matches!(first, Some("/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0"))
        }
        "xargs" => false,
        "parallel" => invocation.operands().next().is_none(),
        "deno" | "bun" => invocation.has_word("-"),
        "sed" | "gsed" => invocation.code.is_some(),
        "powershell" | "pwsh" => invocation.has_word("-") || invocation.arguments().is_empty(),
        "vim" | "vi" | "ex" | "nvim" => invocation.has_word("/dev/stdin"),
        "psql" | "sqlite3" | "mysql" => false,
        "docker" | "kubectl" | "podman" => false,
        "ssh" | "at" | "batch" | "crontab" => {
            name != "ssh" && name != "crontab" || name == "crontab" && first == Some("-")
        }
        "make" => invocation.has_word("-") || invocation.has_word("/dev/stdin"),
        "awk" | "gawk" | "mawk" | "nawk" => {
            let runs_lines = invocation.code.as_deref().is_some_and(|code| {
                code.contains("system($") || code.contains("| \"sh\"") || code.contains("|\"sh\"")
            });
            let reads_program = invocation.has_word("/dev/stdin") || invocation.has_word("-");
            runs_lines || reads_program && invocation.has_option("f", &[])
        }
        _ if runs_what_it_reads(invocation) => true,
        _ if is_interpreter(name) => {
            invocation
                .code
                .as_deref()
                .is_none_or(|code| Some(code) == invocation.input_text.as_deref())
                && first.is_none_or(|first| matches!(first, "-" | "/dev/stdin" | "/dev/fd/0"))
                && !invocation.has_option("mncpei", &[])
                && !matches!(name, "make" | "awk")
        }
        _ => false,
    }
}

/// Code that runs the text of its standard input: `exec(sys.stdin.read())`.
fn runs_what_it_reads(invocation: &Invocation) -> bool {
    let code: String = invocation
        .code
        .as_deref()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    [
        "exec(sys.stdin",
        "exec(input(",
        "exec(open(0)",
        "exec(compile(sys.stdin",
        "eval(sys.stdin",
        "evalSTDIN",
        "eval(STDIN",
        "eval$stdin",
        "eval(gets",
        "eval(require('fs').readFileSync(0",
        "eval(require(\"fs\").readFileSync(0",
        "eval(fs.readFileSync(0",
        "eval(join'',<STDIN>)",
        "eval<STDIN>",
        "system($_)",
        "system(line)",
        "os.system(sys.stdin",
    ]
    .iter()
    .any(|mark| code.contains(mark))
}

/// The invocations whose output is run.
pub(super) fn code_sources(
    analysis: &ShellAnalysis,
    index: usize,
    runs_input: bool,
) -> Vec<&Invocation> {
    let Some(invocation) = analysis.invocations.get(index) else {
        return Vec::new();
    };
    let mut starts: Vec<usize> = Vec::new();
    if runs_input {
        starts.extend(invocation.input_from.clone());
        for redirect in &invocation.redirects {
            starts.extend(redirect.target.sources.iter().cloned().flatten());
        }
    }
    // The words that are code: of `eval` and `source` all, of an interpreter its
    // script or the text of `-c`.
    let name = invocation.name.as_str();
    let is_code_word = |place: usize| match name {
        "eval" | "source" | "." | "dpkg" | "rpm" => place > 0,
        "trap" => place == 1,
        "" => place == 0,
        _ => {
            let before = invocation
                .words
                .get(place.wrapping_sub(1))
                .map_or("", |word| word.text.as_str());
            let is_flagged = before.starts_with('-')
                && before.len() <= 6
                && before.contains(['c', 'e', 'r', 'p', 'C', 'E']);
            let is_first_operand = invocation
                .words
                .iter()
                .take(place)
                .skip(1)
                .all(|word| word.text.starts_with('-'));
            place > 0 && (is_flagged || is_first_operand)
        }
    };
    for (place, word) in invocation.words.iter().enumerate() {
        if is_code_word(place) {
            starts.extend(word.sources.iter().cloned().flatten());
        }
    }
    // A program whose output is not its input ends the chain.
    let ends_chain = |index: &usize| {
        analysis.invocations.get(*index).is_some_and(|source| {
            matches!(
                source.name.as_str(),
                "ssh-agent" | "direnv" | "brew" | "pyenv"
            )
        })
    };
    starts.retain(|start| !ends_chain(start));
    analysis.upstream(starts)
}
