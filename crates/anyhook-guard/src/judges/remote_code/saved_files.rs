//! Code that arrives as a file: downloaded in a command and run in the same.

use super::programs::{is_decoder, is_download, is_interpreter};
use crate::judges::Objections;
use crate::judges::access::{Access, shell_files};
use crate::paths::{glob_matches, normalize};
use crate::shell::{Invocation, RedirectKind, ResolvedWord, ShellAnalysis, UNKNOWN};

/// A file that was downloaded in this command and is run now.
pub(super) fn judge_saved(
    analysis: &ShellAnalysis,
    index: usize,
    invocation: &Invocation,
    downloaded: &mut Vec<String>,
    found: &mut Objections<'_>,
) {
    let name = invocation.name.as_str();
    let absolute = |text: &str| normalize(folder_of(invocation), text);
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
                downloaded.extend(file.path.or_else(|| absolute(&file.word.text)));
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

/// The folder of a command. On another machine it is not known, but the same for all
/// commands that run there.
fn folder_of(invocation: &Invocation) -> Option<&str> {
    invocation.cwd.as_deref().or(Some("/unknown"))
}
