//! `remote-code`: running what was just downloaded or decoded.

use super::Objections;
use super::access::{Access, shell_files};
use super::hosts::{contacted_hosts, host_matches};
use crate::input::GuardInput;
use crate::paths::{glob_matches, normalize};
use crate::shell::{
    Invocation, RedirectKind, ResolvedWord, SHELLS, ShellAnalysis, UNKNOWN, is_option, program_name,
};

const DOWNLOADERS: &[&str] = &[
    "curl",
    "wget",
    "wget2",
    "http",
    "https",
    "xh",
    "fetch",
    "aria2c",
    "axel",
    "lynx",
    "w3m",
    "nc",
    "ncat",
    "netcat",
    "socat",
    "ftp",
    "lftp",
    "scp",
    "sftp",
    "ssh",
    "rsync",
    "curlie",
    "bitsadmin",
    "certutil",
    "openssl-s_client",
    "GET",
    "lwp-request",
    "lwp-download",
    "gh",
    "aws",
    "gsutil",
    "dig",
    "telnet",
    "links",
    "elinks",
    "tftp",
    "busybox-wget",
];

const INTERPRETERS: &[&str] = &[
    "python",
    "python2",
    "python3",
    "pypy",
    "pypy3",
    "node",
    "nodejs",
    "deno",
    "bun",
    "perl",
    "ruby",
    "php",
    "lua",
    "luajit",
    "Rscript",
    "R",
    "osascript",
    "tclsh",
    "groovy",
    "julia",
    "elixir",
    "ipython",
    "tsx",
    "ts-node",
    "powershell",
    "pwsh",
    "cmd",
    "cscript",
    "wscript",
    "make",
    "gdb",
    "irb",
    "ghci",
    "scala",
    "swift",
    "racket",
    "guile",
    "clisp",
    "sbcl",
    "octave",
    "expect",
    "awk",
    "gawk",
];

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

fn is_interpreter(name: &str) -> bool {
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    SHELLS.contains(&name) || INTERPRETERS.contains(&name) || INTERPRETERS.contains(&stem)
}

fn is_download(invocation: &Invocation) -> bool {
    let name = invocation.name.as_str();
    match name {
        "ssh" => invocation.operands().count() > 1,
        "gh" => {
            invocation.has_word("api")
                || invocation.has_word("view") && invocation.has_word("gist")
                || invocation.has_word("download")
        }
        "aws" => {
            invocation.has_word("cp")
                && invocation
                    .operands()
                    .nth(2)
                    .is_some_and(|word| word.text.starts_with("s3:"))
        }
        "gsutil" => invocation.has_word("cat") || invocation.has_word("cp"),
        "git" => {
            invocation.has_word("archive")
                && invocation.texts().any(|text| text.starts_with("--remote"))
        }
        "openssl" => invocation.has_word("s_client"),
        "dig" | "host" | "nslookup" => true,
        _ => {
            DOWNLOADERS.contains(&name)
                || invocation.redirects.iter().any(|redirect| {
                    matches!(redirect.kind, RedirectKind::Input | RedirectKind::ReadWrite)
                        && redirect.target.text.starts_with("/dev/tcp/")
                })
        }
    }
}

fn is_decoder(invocation: &Invocation) -> bool {
    let decodes = || invocation.has_option("dD", &["--decode", "-decode"]);
    if invocation
        .words
        .iter()
        .any(|word| word.text.to_ascii_lowercase().contains("frombase64string"))
    {
        return true;
    }
    match invocation.name.as_str() {
        "base64" | "base32" | "gbase64" | "basenc" => decodes(),
        "openssl" => {
            (invocation.has_word("base64") || invocation.has_word("enc"))
                && invocation.has_word("-d")
        }
        "xxd" => invocation.has_option("r", &[]),
        "certutil" => invocation
            .texts()
            .any(|text| matches!(text.get(1..), Some("decode" | "decodehex"))),
        _ if invocation.name.starts_with("python") && runs_module(invocation, "base64") => {
            invocation.has_word("-d")
        }
        "uudecode" | "gunzip" | "zcat" | "bunzip2" | "xzcat" | "bzcat" | "unxz" | "uncompress"
        | "zstdcat" => true,
        "gzip" | "bzip2" | "xz" | "zstd" => decodes(),
        "tar" | "bsdtar" => {
            invocation.has_option("O", &["--to-stdout"])
                || invocation
                    .texts()
                    .next()
                    .is_some_and(|text| text.contains('O') && !text.contains('/'))
        }
        "unzip" => invocation.has_option("p", &[]),
        "gpg" => invocation.has_option("d", &["--decrypt"]),
        "rev" | "rot13" => true,
        "printf" | "echo" => invocation.texts().any(|text| {
            text.contains("\\x")
                || text
                    .as_bytes()
                    .windows(2)
                    .any(|pair| matches!(pair, [b'\\', b'0'..=b'7']))
        }),
        "tr" => {
            !invocation.has_option("ds", &["--delete", "--squeeze-repeats"])
                && invocation.operands().count() == 2
        }
        _ => invocation.code.as_deref().is_some_and(|code| {
            [
                "b64decode",
                "fromhex",
                "atob(",
                "unpack",
                "decode_base64",
                "Base64.decode",
                "unhexlify",
            ]
            .iter()
            .any(|mark| code.contains(mark))
        }),
    }
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
                    "this runs a download without anybody having seen it; save it, read it, then run it",
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

/// Whether a Python runs this module: `-m base64`, `-mbase64`.
fn runs_module(invocation: &Invocation, module: &str) -> bool {
    let texts: Vec<&str> = invocation.texts().collect();
    texts.windows(2).any(|pair| pair == ["-m", module])
        || texts
            .iter()
            .any(|text| text.strip_prefix("-m") == Some(module))
}

/// Whether a program prints a file that the command has downloaded.
fn reads_download(source: &Invocation, downloaded: &[String]) -> bool {
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
fn judge_writes_to_shell(
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
                "this runs a download without anybody having seen it; save it, read it, then run it",
            );
        }
    }
}

/// Whether a program runs what it reads.
fn runs_standard_input(invocation: &Invocation) -> bool {
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
fn code_sources(analysis: &ShellAnalysis, index: usize, runs_input: bool) -> Vec<&Invocation> {
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

/// A file that was downloaded in this command and is run now.
fn judge_saved(
    analysis: &ShellAnalysis,
    index: usize,
    invocation: &Invocation,
    downloaded: &mut Vec<String>,
    found: &mut Objections<'_>,
) {
    let name = invocation.name.as_str();
    let absolute = |text: &str| normalize(invocation.cwd.as_deref(), text);
    // What is run: the program itself, or the script of an interpreter.
    let mut run: Vec<String> = Vec::new();
    if let Some(program) = invocation.words.first()
        && (program.text.contains(['/', '\\'])
            || [".exe", ".bat", ".cmd", ".ps1", ".py"]
                .iter()
                .any(|extension| program.text.ends_with(extension)))
    {
        run.extend(absolute(&program.text));
        run.extend(absolute(&program.text.replace('\\', "/")));
    } else if let Some(program) = invocation.words.first() {
        // A program that was put into a folder of programs.
        let installed = downloaded.iter().find(|file| {
            file.rsplit_once("/bin/")
                .is_some_and(|(_, name)| name == program.text)
        });
        run.extend(installed.cloned());
    }
    if is_interpreter(name)
        || matches!(
            name,
            "source"
                | "."
                | "eval"
                | "chmod"
                | "sudo"
                | "msiexec"
                | "dpkg"
                | "rpm"
                | "apt"
                | "apt-get"
                | "dnf"
                | "yum"
                | "zypper"
                | "java"
                | "installer"
                | "call"
                | "start"
                | "open"
        )
    {
        if name != "chmod" {
            for operand in invocation
                .operands()
                .take(if is_interpreter(name) { 1 } else { 3 })
            {
                run.extend(absolute(&operand.text));
                run.extend(absolute(&operand.text.replace('\\', "/")));
            }
        }
        for redirect in invocation
            .redirects
            .iter()
            .filter(|redirect| redirect.kind == RedirectKind::Input)
        {
            run.extend(absolute(&redirect.target.text));
        }
    }
    // A package that is a file.
    if matches!(
        name,
        "pip" | "pip3" | "pipx" | "uv" | "npm" | "pnpm" | "yarn" | "gem" | "snap" | "flatpak"
    ) {
        let packages = invocation.operands().filter(|word| {
            [
                ".whl", ".tgz", ".tar.gz", ".zip", ".gem", ".snap", ".flatpak",
            ]
            .iter()
            .any(|end| word.text.ends_with(end))
        });
        run.extend(packages.filter_map(|word| absolute(&word.text)));
    }
    // `python3 -m x` runs `x.py`, `make` the file that it finds.
    if name.starts_with("python") {
        let texts: Vec<&str> = invocation.texts().collect();
        let module = texts.windows(2).find_map(|pair| match pair {
            ["-m", module] => Some(*module),
            _ => None,
        });
        run.extend(module.and_then(|module| absolute(&format!("{}.py", module.replace('.', "/")))));
    }
    if matches!(name, "make" | "gmake") && !invocation.has_option("f", &["--file", "--makefile"]) {
        let folder = invocation.words.windows(2).find_map(|pair| match pair {
            [option, folder] if matches!(option.text.as_str(), "-C" | "--directory") => {
                Some(folder.text.as_str())
            }
            _ => None,
        });
        for file in ["Makefile", "makefile", "GNUmakefile"] {
            run.extend(absolute(&format!("{}/{file}", folder.unwrap_or("."))));
        }
    }
    if name == "java" || invocation.has_word("-jar") {
        run.extend(
            invocation
                .operands()
                .filter_map(|word| absolute(&word.text)),
        );
    }
    let runs = run.iter().any(|path| {
        // Two names that are not known are not the same name.
        !path.contains(UNKNOWN)
            && downloaded.iter().any(|file| {
                file == path
                    || file.ends_with('/') && path.starts_with(file.as_str())
                    || file.contains('*') && glob_matches(file, path)
            })
    });
    if runs {
        found.deny(
            "download",
            invocation.shown(),
            "this runs a file that the same command downloads; read it before you run it",
        );
    }
    // What is downloaded: by options, redirects, pipes into tee, and names of URLs.
    let is_source = is_download(invocation) || matches!(name, "Invoke-WebRequest" | "git");
    let writes = !invocation.redirects.is_empty()
        || matches!(name, "tee" | "dd" | "sponge" | "tar" | "unzip" | "bsdtar");
    let from_download = writes
        && analysis
            .upstream([index])
            .iter()
            .skip(1)
            .any(|source| is_download(source) || is_decoder(source));
    if matches!(name, "xxd" | "certutil") && is_decoder(invocation) {
        let target = invocation.operands().last();
        downloaded.extend(target.and_then(|word| absolute(&word.text)));
    }
    if name == "axel" || name == "tftp" {
        let target = invocation.words.windows(2).find_map(|pair| match pair {
            [option, file] if matches!(option.text.as_str(), "-o" | "get" | "-l") => {
                absolute(&file.text)
            }
            _ => None,
        });
        downloaded.extend(target);
    }
    if let Some(code) = &invocation.code {
        downloaded.extend(saved_by_code(code).filter_map(absolute));
    }
    if is_source || from_download || is_decoder(invocation) {
        for file in shell_files(invocation) {
            if file.access == Access::Write {
                downloaded.extend(file.path);
            }
        }
        for redirect in &invocation.redirects {
            if matches!(redirect.kind, RedirectKind::Output | RedirectKind::Append) {
                downloaded.extend(absolute(&redirect.target.text));
            }
        }
    }
    let exports = name == "svn" && invocation.has_word("export");
    if exports
        || matches!(
            name,
            "curl" | "wget" | "wget2" | "aria2c" | "axel" | "fetch"
        )
    {
        let names =
            name != "curl" || invocation.has_option("O", &["--remote-name", "--remote-name-all"]);
        let folder = invocation.words.windows(2).find_map(|pair| match pair {
            [option, value]
                if matches!(
                    option.text.as_str(),
                    "-P" | "--directory-prefix" | "--output-dir" | "-d" | "--dir"
                ) && name != "curl"
                    || matches!(pair, [option, _] if option.text == "--output-dir") =>
            {
                Some(value.text.clone())
            }
            _ => None,
        });
        for text in invocation
            .texts()
            .filter(|text| names && text.contains('/') && !text.starts_with('-'))
        {
            let base = text
                .split(['?', '#'])
                .next()
                .unwrap_or_default()
                .rsplit('/')
                .next()
                .unwrap_or_default();
            if !base.is_empty() {
                let path = folder
                    .as_ref()
                    .map_or(base.to_owned(), |folder| format!("{folder}/{base}"));
                downloaded.extend(absolute(&path));
            }
        }
        for text in invocation
            .texts()
            .filter(|text| text.starts_with("--directory-prefix="))
        {
            downloaded.extend(
                absolute(text.trim_start_matches("--directory-prefix="))
                    .map(|folder| format!("{folder}/")),
            );
        }
    }
    if matches!(name, "git" | "gh") && (invocation.has_word("clone")) {
        let operands: Vec<&str> = invocation
            .operands()
            .map(|word| word.text.as_str())
            .skip_while(|text| *text != "clone")
            .skip(1)
            .collect();
        if let Some(url) = operands
            .first()
            .filter(|url| url.contains("://") || url.contains('@') || name == "gh")
        {
            let base = url
                .trim_end_matches('/')
                .trim_end_matches(".git")
                .rsplit(['/', ':'])
                .next()
                .unwrap_or_default();
            let folder = operands.get(1).copied().unwrap_or(base);
            downloaded.extend(absolute(folder).map(|folder| format!("{folder}/")));
        }
    }
    if matches!(
        name,
        "scp" | "rsync" | "sftp" | "certutil" | "bitsadmin" | "curl" | "aws" | "gsutil"
    ) && let Some(last) = invocation.operands().last()
        && (matches!(name, "aws" | "gsutil") && is_download(invocation)
            || matches!(name, "certutil" | "bitsadmin")
                && invocation.texts().any(|text| text.contains("://"))
            || matches!(name, "scp" | "rsync")
                && invocation.operands().any(|word| word.text.contains(':')))
    {
        downloaded.extend(absolute(&last.text));
        downloaded.extend(absolute(&last.text.replace('\\', "/")));
        // Into a folder, under its own name.
        let operands: Vec<&ResolvedWord> = invocation.operands().collect();
        let name = operands
            .get(operands.len().wrapping_sub(2))
            .and_then(|source| source.text.rsplit(['/', ':']).next());
        if let Some(name) = name {
            downloaded.extend(absolute(&format!("{}/{name}", last.text)));
        }
    }
    // `gh release download -p '*.sh'`.
    if name == "gh" && invocation.has_word("download") {
        let pattern = invocation.words.windows(2).find_map(|pair| match pair {
            [option, value] if matches!(option.text.as_str(), "-p" | "--pattern") => {
                absolute(&value.text)
            }
            _ => None,
        });
        downloaded.extend(pattern);
    }
    // `copy('https://…', 'file')` in an interpreter's code.
    if name == "cp"
        && invocation.texts().any(|text| text.contains("://"))
        && let Some(last) = invocation.operands().last()
    {
        downloaded.extend(absolute(&last.text));
    }
    if name == "dd" {
        let value = |prefix: &str| {
            let mut texts = invocation.texts();
            texts
                .find_map(|text| text.strip_prefix(prefix))
                .and_then(absolute)
        };
        if let (Some(from), Some(to)) = (value("if="), value("of="))
            && downloaded.contains(&from)
        {
            downloaded.push(to);
        }
    }
    if matches!(name, "mv" | "cp" | "ln" | "install") {
        let operands: Vec<String> = invocation
            .operands()
            .filter_map(|word| absolute(&word.text))
            .collect();
        if let [from, to] = operands.as_slice()
            && downloaded.contains(from)
        {
            let name = from.rsplit('/').next().unwrap_or_default();
            downloaded.push(format!("{to}/{name}"));
            downloaded.push(to.clone());
        }
    }
    if matches!(name, "tar" | "unzip" | "bsdtar")
        && (from_download
            || invocation
                .operands()
                .any(|word| absolute(&word.text).is_some_and(|path| downloaded.contains(&path))))
    {
        // Anything below the folder may come from the archive.
        let folder = invocation
            .words
            .windows(2)
            .find_map(|pair| match pair {
                [option, folder] if matches!(option.text.as_str(), "-C" | "-d" | "--directory") => {
                    absolute(&folder.text)
                }
                _ => None,
            })
            .or_else(|| invocation.cwd.clone());
        downloaded.extend(folder.map(|folder| format!("{folder}/")));
    }
}

/// The files that a one-liner saves a download to: every text in quotes that follows an
/// address.
fn saved_by_code(code: &str) -> impl Iterator<Item = &str> {
    let saves = [
        "urlretrieve",
        "copyfileobj",
        "IO.copy_stream",
        "getstore",
        "download",
    ]
    .iter()
    .any(|mark| code.contains(mark));
    code.split(['\'', '"'])
        .filter(move |_| saves)
        .skip_while(|text| !text.contains("://"))
        .skip(1)
        .filter(|text| !text.is_empty() && !text.contains([' ', '(', ',']))
}

fn judge_code(code: &str, invocation: &Invocation, found: &mut Objections<'_>) {
    let has = |marks: &[&str]| marks.iter().any(|mark| code.contains(mark));
    // Languages that load a module from an address.
    let loads = [
        "include 'http",
        "include \"http",
        "include('http",
        "include(\"http",
        "require 'http",
        "require \"http",
        "require('http",
        "require(\"http",
        "import 'http",
        "import \"http",
        "import('http",
        "import(\"http",
        "from 'http",
        "from \"http",
        "source('http",
        "source(\"http",
        "source http",
        "source_url(",
    ];
    // Node's own modules `http` and `https`.
    let is_module = ["'http'", "\"http\"", "'https'", "\"https\""]
        .iter()
        .any(|module| code.contains(module));
    let imports_address = has(&["import 'http", "import \"http"]);
    let loads_address = has(&loads) && code.contains("://");
    if loads_address && (imports_address || !is_module) {
        found.deny("download", invocation.shown(), "this code runs a download");
    }
    let runs = has(&[
        "exec(",
        "(eval)",
        "eval get",
        "eval(",
        "eval ",
        "system(",
        "subprocess",
        "popen",
        "execSync",
        "child_process",
        "Function(",
        "vm.run",
        ".runIn",
        "instance_eval",
        "runpy",
        "importlib",
        "loadstring",
        " load(",
        "(load(",
        "`",
        "compile(",
    ]);
    let uses_web = code.contains("://")
        && has(&[
            ".get(", " get(", "get ", "getstore", "request(", "curl ", "wget ", "open(",
        ]);
    let loads_web = invocation
        .texts()
        .any(|text| text.starts_with("-MLWP") || text.starts_with("-MHTTP"));
    let fetches = uses_web
        || loads_web
        || has(&[
            "urlopen",
            "requests.get",
            "requests.post",
            "httpx.get",
            "fetch(",
            "http.get",
            "https.get",
            "urlretrieve",
            "Net::HTTP",
            "URI.open",
            "open-uri",
            "LWP",
            "file_get_contents('http",
            "file_get_contents(\"http",
            "axios",
            "HTTP::Tiny",
            "curl_exec",
        ]);
    let decodes = has(&[
        "b64decode",
        "atob(",
        "'base64'",
        "\"base64\"",
        "fromhex",
        "unhexlify",
        "decode_base64",
        "base64_decode",
        "Base64.decode",
        "zlib.decompress",
        "marshal.loads",
        "pack(",
        "codecs.decode",
        "'hex'",
        "\"hex\"",
        "pickle.loads",
        "str_rot13",
        "gzinflate",
        ".unpack",
    ]);
    if runs && fetches {
        found.deny("download", invocation.shown(), "this code runs a download");
    } else if runs && decodes {
        found.deny(
            "decode",
            invocation.shown(),
            "this code runs decoded text, which hides what it does",
        );
    } else if has(&["socket"])
        && has(&[
            "dup2",
            "pty.spawn",
            "/bin/sh",
            "/bin/bash",
            "subprocess.call",
        ])
    {
        found.deny(
            "reverse-shell",
            invocation.shown(),
            "this hands a shell to another machine",
        );
    }
}

fn is_address(text: &str) -> bool {
    let text = text.trim_start_matches("git+").trim_start_matches('@');
    let url = text
        .split_once(" @ ")
        .or_else(|| {
            text.split_once('@')
                .filter(|(_, url)| url.contains("://") || url.contains("hub:"))
        })
        .map_or(text, |(_, url)| url.trim());
    [
        "http://",
        "https://",
        "git://",
        "ssh://",
        "git@",
        "git+",
        "ftp://",
        "github:",
        "gitlab:",
        "bitbucket:",
        "gist:",
        "git+ssh://",
        "git+https://",
    ]
    .iter()
    .any(|prefix| url.starts_with(prefix) || text.starts_with(prefix))
}

/// Packages from an address instead of a registry.
fn judge_installs(invocation: &Invocation, found: &mut Objections<'_>) {
    let texts: Vec<&str> = invocation.texts().collect();
    let has = |word: &str| texts.contains(&word);
    let first = texts
        .iter()
        .find(|text| !text.starts_with('-'))
        .copied()
        .unwrap_or_default();
    let name = invocation.name.as_str();
    // `--package=…`, `--editable=…`: the value is the package.
    let attached = || {
        texts.iter().any(|text| {
            text.split_once('=').is_some_and(|(option, value)| {
                matches!(
                    option,
                    "--package" | "-p" | "--editable" | "--from" | "--with" | "--spec"
                ) && is_address(value)
            })
        })
    };
    let names_address = || {
        let mut is_value = false;
        texts.iter().any(|text| {
            let skip = std::mem::take(&mut is_value);
            is_value = matches!(
                *text,
                "--index-url"
                    | "-i"
                    | "--extra-index-url"
                    | "--registry"
                    | "--find-links"
                    | "--proxy"
                    | "--cert"
                    | "--source"
            );
            !skip && is_address(text) && !text.starts_with("--")
        }) || attached()
    };
    let is_shorthand = || {
        texts.iter().skip(1).any(|text| {
            let mut parts = text.split('/');
            matches!((parts.next(), parts.next(), parts.next()), (Some(owner), Some(repository), None)
                if !owner.is_empty() && !repository.is_empty() && !owner.starts_with(['@', '.', '-', '~']) && !owner.contains([':', '=']) && !owner.is_empty() && owner.chars().all(|c| c.is_alphanumeric() || c == '-'))
        })
    };
    let foreign_index = || {
        texts.windows(2).any(|pair| matches!(pair, ["--index-url" | "-i" | "--extra-index-url" | "--registry" | "--source" | "--find-links" | "-f" | "--index", url] if url.contains("://") && !is_known_registry(url)))
            || texts.iter().any(|text| text.split_once('=').is_some_and(|(option, url)| matches!(option, "--index-url" | "--extra-index-url" | "--registry" | "--source" | "--index") && url.contains("://") && !is_known_registry(url)))
    };
    let installs = match name {
        "pip" | "pip3" | "pipx" | "uv" | "poetry" | "conda" | "mamba" | "pdm" | "easy_install"
        | "uvx" | "rye" => {
            (has("install")
                || has("add")
                || has("tool")
                || name == "easy_install"
                || has("run")
                || name == "uvx"
                || has("--from"))
                && (names_address() || foreign_index())
        }
        _ if name.starts_with("python") => {
            runs_module(invocation, "pip") && has("install") && (names_address() || foreign_index())
                || texts
                    .iter()
                    .any(|text| text.starts_with("http") && name == "python")
        }
        "npm" | "pnpm" | "yarn" | "bun" | "npx" | "bunx" | "pnpx" => {
            let adds = matches!(
                first,
                "install"
                    | "i"
                    | "add"
                    | "in"
                    | "ins"
                    | "isntall"
                    | "global"
                    | "dlx"
                    | "exec"
                    | "x"
                    | "create"
                    | "init"
            ) || matches!(name, "npx" | "bunx" | "pnpx");
            adds && (names_address()
                || foreign_index()
                || is_shorthand() && matches!(first, "install" | "i" | "add")
                || matches!(name, "npx" | "bunx")
                    && texts.iter().any(|text| text.starts_with("github:")))
        }
        "cargo" => {
            (has("install") || has("add"))
                && (has("--git") || texts.iter().any(|text| text.starts_with("--git=")))
        }
        "go" => {
            matches!(first, "run" | "install") && texts.iter().any(|text| text.contains("://"))
                || first == "run"
                    && texts
                        .iter()
                        .any(|text| text.contains('@') && text.contains('.'))
        }
        "gem" => {
            first == "install" && (names_address() || foreign_index())
                || first == "specific_install"
        }
        "bundle" => first == "add" && (has("--git") || has("--github") || has("--source")),
        "brew" => {
            matches!(first, "install" | "tap" | "cask")
                && (names_address()
                    || texts
                        .iter()
                        .any(|text| text.contains("raw.githubusercontent")))
        }
        "apt" | "apt-get" | "dnf" | "yum" | "zypper" | "rpm" | "dpkg" | "apk" | "pacman"
        | "snap" | "flatpak" => texts.iter().any(|text| is_address(text)),
        "deno" => matches!(first, "run" | "install" | "eval" | "test" | "serve") && names_address(),
        "docker" | "podman" => first == "build" && names_address(),
        "kubectl" | "oc" => {
            matches!(first, "apply" | "create")
                && texts
                    .iter()
                    .any(|text| text.starts_with("http") || text.contains("=http"))
        }
        "helm" => {
            (matches!(first, "install" | "upgrade") || first == "plugin" && has("install"))
                && texts.iter().any(|text| text.starts_with("http"))
        }
        "code" | "cursor" => has("--install-extension") && names_address(),
        "composer" => {
            first == "require"
                && (names_address() || texts.iter().any(|text| text.starts_with("--repository")))
        }
        "nix" | "nix-env" | "nix-shell" | "nix-build" => {
            names_address()
                || first == "run" && texts.iter().any(|text| text.starts_with("github:"))
        }
        "msiexec" => texts.iter().any(|text| text.contains("://")),
        "bash" | "sh" => false,
        "luarocks" => first == "install" && names_address(),
        "terraform" => first == "init" && texts.iter().any(|text| text.starts_with("-from-module")),
        "add-apt-repository" | "apt-add-repository" => true,
        "asdf" => first == "plugin" && names_address(),
        "krew" => texts.iter().any(|text| text.contains("=http")),
        "cpanm" | "cpan" | "cpm" => names_address(),
        "ansible-pull" => true,
        "ansible-galaxy" => names_address(),
        "gh" => first == "extension" && (has("install") || has("upgrade")),
        "julia" => invocation.code.as_deref().is_some_and(|code| {
            code.contains("Pkg.add") && (code.contains("url=") || code.contains("url ="))
        }),
        "Rscript" | "R" => invocation
            .code
            .as_deref()
            .is_some_and(|code| code.contains("install_github") || code.contains("install_url")),
        "bunch" => false,
        _ => false,
    };
    if installs {
        found.ask_user(
            "install",
            invocation.shown(),
            "this installs from an address instead of a registry",
        );
    }
}

fn is_known_registry(url: &str) -> bool {
    [
        "https://pypi.org",
        "https://registry.npmjs.org",
        "https://registry.yarnpkg.com",
        "https://rubygems.org",
        "https://files.pythonhosted.org",
        "https://test.pypi.org",
        "https://npm.pkg.github.com",
        "https://index.crates.io",
        "https://download.pytorch.org",
    ]
    .iter()
    .any(|known| url.starts_with(known))
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
            let is_encoded = invocation.texts().any(|text| {
                let lower = text.to_ascii_lowercase();
                let lower = lower.replacen('/', "-", 1);
                lower.len() >= 2
                    && lower.starts_with("-e")
                    && ("-encodedcommand".starts_with(&lower) || lower == "-ec" || lower == "-enc")
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
                "this runs a download without anybody having seen it",
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
