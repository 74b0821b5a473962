//! Secrets in environment variables: what prints one, or all of them.

use crate::judges::Objections;
use crate::shell::{Invocation, RedirectKind, ShellAnalysis, UNKNOWN, first_operand};

/// Variables whose names say that they are secret, where they are printed or put
/// into a URL. A header of a request is the place for them, and no objection.
pub(super) fn judge_variables(
    analysis: &ShellAnalysis,
    index: usize,
    invocation: &Invocation,
    found: &mut Objections<'_>,
) {
    let name = invocation.name.to_ascii_lowercase();
    let is_printing = matches!(
        name.as_str(),
        "echo" | "printf" | "cat" | "tee" | "xxd" | "base64" | "od" | "write-output" | "write-host"
    );
    let is_sending = matches!(name.as_str(), "curl" | "wget" | "http" | "xh");
    if !is_printing && !is_sending {
        return;
    }
    // `echo "$TOKEN" | docker login --password-stdin` shows nothing.
    let is_password_input = analysis.invocations.iter().any(|reader| {
        reader.input_from.contains(&index)
            && reader
                .texts()
                .any(|text| text.contains("-stdin") || text == "login" || text == "--with-token")
    });
    if is_password_input {
        return;
    }
    let writes_file = invocation
        .redirects
        .iter()
        .any(|redirect| matches!(redirect.kind, RedirectKind::Output | RedirectKind::Append));
    // The text of a here-document that goes into a file is not shown.
    let input = invocation
        .redirects
        .iter()
        .filter(|redirect| redirect.kind == RedirectKind::Text && !writes_file)
        .map(|redirect| &redirect.target);
    for word in invocation.arguments().iter().chain(input) {
        let Some(variable) = word
            .variables
            .iter()
            .find(|variable| is_secret_variable(variable))
        else {
            continue;
        };
        if is_printing {
            found.ask_user(
                "print",
                format!("${variable}"),
                "this prints a variable that holds a secret",
            );
        } else if word
            .text
            .split_once("://")
            .and_then(|(_, rest)| rest.split_once(['/', '?']))
            .is_some_and(|(_, path)| path.contains(UNKNOWN))
        {
            found.ask_user(
                "send",
                format!("${variable}"),
                "this sends a variable that holds a secret in a URL",
            );
        }
    }
}

pub(super) fn is_secret_variable(name: &str) -> bool {
    if name.is_empty() || name.chars().any(|letter| letter.is_ascii_lowercase()) {
        return false;
    }
    let parts: Vec<&str> = name.split('_').collect();
    let has = |wanted: &[&str]| parts.iter().any(|part| wanted.contains(part));
    has(&[
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "APIKEY",
        "CREDENTIALS",
        "PAT",
        "PGPASSWORD",
        "SECRETS",
        "PASS",
    ]) || name.ends_with("_KEY")
        && has(&[
            "API",
            "ACCESS",
            "SECRET",
            "PRIVATE",
            "ENCRYPTION",
            "SIGNING",
            "MASTER",
            "AUTH",
            "SERVICE",
            "DEPLOY",
        ])
        || name.ends_with("_KEY_BASE")
        || matches!(
            name,
            "DATABASE_URL"
                | "REDIS_URL"
                | "MONGO_URL"
                | "MONGODB_URI"
                | "API_KEY"
                | "PGPASSWORD"
                | "KUBECONFIG_DATA"
                | "GH_TOKEN"
        )
}

/// Variables that hold no secrets, and ends of such names.
const HARMLESS_VARIABLES: &[&str] = &[
    "PATH",
    "HOME",
    "LANG",
    "LC",
    "SHELL",
    "USER",
    "TERM",
    "NODE_ENV",
    "NODE",
    "PYTHON",
    "VIRTUAL_ENV",
    "JAVA",
    "GO",
    "CARGO",
    "RUST",
    "DISPLAY",
    "XDG",
    "EDITOR",
    "PAGER",
    "TZ",
    "RAILS_ENV",
    "GOPATH",
    "GOROOT",
    "CONDA",
    "NVM",
    "HOSTNAME",
    "PWD",
    "CI",
];

/// `env | grep PATH`: only variables that hold no secrets are printed.
pub(super) fn is_filtered_dump(analysis: &ShellAnalysis, index: usize) -> bool {
    let is_dump = analysis.invocations.get(index).is_some_and(|invocation| {
        matches!(invocation.name.as_str(), "env" | "printenv")
            && invocation.words.len() == 1
            && invocation.redirects.is_empty()
    });
    let reader = analysis
        .invocations
        .get(index + 1)
        .filter(|reader| is_dump && reader.input_from == (index..index + 1));
    let counts = |reader: &Invocation| {
        reader.name == "wc" || reader.name == "grep" && reader.has_option("cq", &["--count"])
    };
    if reader.is_some_and(counts) {
        return true;
    }
    let Some(reader) = reader.filter(|reader| matches!(reader.name.as_str(), "grep" | "rg")) else {
        return false;
    };
    let mut patterns = reader.operands();
    let (Some(pattern), None) = (patterns.next(), patterns.next()) else {
        return false;
    };
    let name = pattern.text.trim_matches(['^', '=', '$', '_', '.', '*']);
    // `^NAME=` matches one variable only.
    let is_whole_name = pattern.text.starts_with('^')
        && pattern.text.contains('=')
        && name
            .chars()
            .all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_')
        && !is_secret_variable(name);
    let is_harmless = is_whole_name
        || HARMLESS_VARIABLES.contains(&name)
        || ["_HOME", "_PATH", "PATH", "_VERSION", "_ENV"]
            .iter()
            .any(|end| name.ends_with(end) && !is_secret_variable(name));
    is_harmless && !reader.has_option("viefPE", &["--invert-match", "--regexp", "--file"])
}

/// `env` without a program: everything that is no option is an assignment.
fn is_env_dump(invocation: &Invocation) -> bool {
    let values = ["-u", "--unset", "-C", "--chdir"];
    let start = first_operand(&invocation.words, 1, &values);
    let mut rest = invocation.words.iter().skip(start);
    rest.all(|word| word.text.contains('='))
}

pub(super) fn judge_dump(
    invocation: &Invocation,
    texts: &[&str],
    sourced: bool,
    found: &mut Objections<'_>,
) {
    let shown = || invocation.shown();
    let reason = "this prints the whole environment, with the secrets in it; print the variable that you need";
    let mut operands = invocation.operands().filter(|word| word.text != "--");
    let _ = sourced;
    match invocation.name.as_str() {
        "env" if is_env_dump(invocation) => {
            found.deny("environment", shown(), reason);
        }
        "printenv" => match operands.next() {
            None => found.deny("environment", shown(), reason),
            Some(word) if is_secret_variable(&word.text) => {
                found.deny(
                    "print",
                    shown(),
                    "this prints a variable that holds a secret",
                );
            }
            Some(_) => {}
        },
        "export" | "declare" | "typeset" | "readonly" => {
            let prints = invocation.has_option("p", &[]) && operands.next().is_none();
            let is_bare = texts.is_empty()
                || invocation.name != "export"
                    && texts
                        .iter()
                        .all(|text| *text == "-x" || *text == "-xp" || *text == "-px");
            let names_secret = invocation.has_option("p", &[])
                && invocation
                    .operands()
                    .any(|word| is_secret_variable(&word.text));
            if prints || is_bare {
                found.deny("environment", shown(), reason);
            } else if names_secret {
                found.deny(
                    "print",
                    shown(),
                    "this prints a variable that holds a secret",
                );
            }
        }
        "set" if texts.is_empty() => found.deny("environment", shown(), reason),
        "compgen" if invocation.has_option("v", &[]) || invocation.has_option("e", &[]) => {
            found.ask_user("environment", shown(), "this lists the environment");
        }
        "ps" if texts.iter().any(|text| {
            *text == "e"
                || text.starts_with("aux") && text.contains('e')
                || text.contains("eww")
                || *text == "auxe"
        }) =>
        {
            found.ask_user(
                "environment",
                shown(),
                "this prints the environment of processes",
            );
        }
        "docker" | "podman"
            if texts.first() == Some(&"inspect")
                && texts.iter().any(|text| text.contains(".Env")) =>
        {
            found.ask_user(
                "environment",
                shown(),
                "this prints the environment of a container",
            );
        }
        "systemctl" if texts.contains(&"show-environment") => {
            found.deny("environment", shown(), reason);
        }
        "launchctl" if texts.contains(&"export") => found.deny("environment", shown(), reason),
        "tmux"
            if texts
                .iter()
                .any(|text| matches!(*text, "show-environment" | "showenv")) =>
        {
            found.ask_user("environment", shown(), "this prints the environment");
        }
        "launchctl"
            if texts.first() == Some(&"getenv")
                && texts.iter().any(|text| is_secret_variable(text)) =>
        {
            found.deny(
                "print",
                shown(),
                "this prints a variable that holds a secret",
            );
        }
        "jq" | "yq"
            if texts.iter().any(|text| {
                ["$ENV.", "env.", "strenv("].iter().any(|mark| {
                    text.split(mark)
                        .skip(1)
                        .any(|rest| is_secret_variable(leading_name(rest)))
                })
            }) =>
        {
            found.ask_user(
                "print",
                shown(),
                "this prints a variable that holds a secret",
            );
        }
        "sops"
            if texts.first() == Some(&"exec-env")
                && texts.iter().skip(2).any(|text| {
                    matches!(
                        text.split_whitespace().next(),
                        Some("env" | "printenv" | "set")
                    )
                }) =>
        {
            found.deny("environment", shown(), reason);
        }
        "jq" if texts.iter().enumerate().any(|(at, text)| {
            let is_value = at > 1 && texts.get(at - 2).is_some_and(|option| *option == "--arg");
            !is_value && text.trim() == "env"
                || text.contains("$ENV") && !text.contains("$ENV.")
                || text.contains(".Config.Env")
        }) =>
        {
            found.deny("environment", shown(), reason);
        }
        "awk" | "gawk" | "mawk" if texts.iter().any(|text| text.contains("in ENVIRON")) => {
            found.deny("environment", shown(), reason);
        }
        "awk" | "gawk" | "mawk" => {
            let names = texts
                .iter()
                .flat_map(|text| text.split("ENVIRON[\"").skip(1));
            if names.map(leading_name).any(is_secret_variable) {
                found.deny("environment", shown(), reason);
            }
        }
        _ => {}
    }
}

/// The name of a variable at the start of a text.
fn leading_name(text: &str) -> &str {
    let end = text
        .find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
        .unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// Whole dumps of the environment by an interpreter's code.
pub(super) fn judge_code(code: &str, invocation: &Invocation, found: &mut Objections<'_>) {
    if crate::shell::SHELLS.contains(&invocation.name.as_str()) {
        return;
    }
    for (mark, allowed) in [
        (
            "os.environ",
            &["[", ".get(", ".setdefault(", ".pop(", ".update("][..],
        ),
        ("process.env", &[".", "["]),
        ("ENV", &["[", ".fetch", ".key?", "IRON["]),
        ("$ENV{", &["", "'", "\""]),
        ("dotenv').config()", &[";", ""]),
        ("dotenv\").config()", &[";", ""]),
        ("%ENV", &[]),
        ("os.getenv(", &["'", "\"", ")"]),
        ("Deno.env.get(", &["'", "\""]),
        ("getenv(", &["'", "\""]),
        ("print(environ", &["[", ".get("]),
        ("getenv()", &[]),
        ("$_ENV", &["["]),
        ("Deno.env.toObject", &[]),
        ("System.getenv()", &[]),
    ] {
        for (at, _) in code.match_indices(mark) {
            let before = code.get(..at).and_then(|before| before.chars().next_back());
            if before.is_some_and(|letter| {
                letter.is_alphanumeric()
                    || letter == '_'
                    || letter == '$' && mark == "ENV"
                    || letter == '%' && mark == "ENV"
                    || letter == '.' && mark == "getenv("
            }) {
                continue;
            }
            let rest = code.get(at + mark.len()..).unwrap_or_default();
            // Only whether a variable exists.
            let start = code.get(..at).unwrap_or_default().trim_end();
            if start.ends_with("' in")
                || start.ends_with("\" in")
                || start.ends_with("!!")
                || start.ends_with("bool(")
                || (start.ends_with("Object.keys(") || start.ends_with("len("))
                    && code.matches(mark).count() == 1
            {
                continue;
            }
            if mark == "ENV"
                && rest.starts_with(|letter: char| {
                    letter.is_alphanumeric() || letter == '_' || letter == '{'
                })
            {
                continue;
            }
            if allowed.iter().any(|next| rest.starts_with(next)) {
                // A single variable; its name may say that it is a secret.
                let inside: String = rest
                    .trim_start_matches("IRON[")
                    .chars()
                    .skip_while(|letter| !letter.is_ascii_uppercase())
                    .take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
                    .collect();
                if mark.starts_with("dotenv") {
                    // `console.log(require('dotenv').config())` shows what it has loaded.
                    if code.contains("console.log(require(") || rest.starts_with(".parsed") {
                        found.deny(
                            "read",
                            invocation.shown(),
                            "this prints what a file with secrets holds",
                        );
                    }
                    continue;
                }
                let prints = ["print", "console.log", "puts", "echo", "stdout"]
                    .iter()
                    .any(|word| code.contains(word))
                    || invocation.has_option("p", &["--print"]);
                if is_secret_variable(&inside) && prints {
                    found.ask_user(
                        "print",
                        invocation.shown(),
                        "this prints a variable that holds a secret",
                    );
                }
                continue;
            }
            found.deny(
                "environment",
                invocation.shown(),
                "this prints the whole environment, with the secrets in it",
            );
        }
    }
}
