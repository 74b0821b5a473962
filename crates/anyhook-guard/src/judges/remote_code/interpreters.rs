//! Code of an interpreter that downloads or decodes what it runs.

use crate::judges::Objections;
use crate::shell::{Invocation, without_prose};

/// Calls that run code or a command, in any of the languages.
const RUNNING_CALLS: &[&str] = &[
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
];

pub(super) fn judge_code(code: &str, invocation: &Invocation, found: &mut Objections<'_>) {
    // What is only inside string literals does not run, unless something runs those.
    let outer = without_prose(code);
    let runs = RUNNING_CALLS.iter().any(|mark| outer.contains(mark));
    let code = if runs { code } else { outer.as_str() };
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
