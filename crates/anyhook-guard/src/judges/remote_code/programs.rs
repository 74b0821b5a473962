//! Which programs download, decode and run code.

use crate::shell::{Invocation, RedirectKind, SHELLS};

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

pub(super) fn is_interpreter(name: &str) -> bool {
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    SHELLS.contains(&name) || INTERPRETERS.contains(&name) || INTERPRETERS.contains(&stem)
}

pub(super) fn is_download(invocation: &Invocation) -> bool {
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

pub(super) fn is_decoder(invocation: &Invocation) -> bool {
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

/// Whether a Python runs this module: `-m base64`, `-mbase64`.
pub(super) fn runs_module(invocation: &Invocation, module: &str) -> bool {
    let texts: Vec<&str> = invocation.texts().collect();
    texts.windows(2).any(|pair| pair == ["-m", module])
        || texts
            .iter()
            .any(|text| text.strip_prefix("-m") == Some(module))
}
