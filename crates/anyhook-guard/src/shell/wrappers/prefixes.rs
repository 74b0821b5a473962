//! Programs whose arguments are a command line: `sudo`, `nice`, `env` and others.

use super::first_operand;
use super::project_tools::PACKAGE_MANAGER_VALUES;
use crate::paths::normalize;
use crate::shell::evaluate::{Evaluator, Scope, StageInput};
use crate::shell::invocation::{Invocation, ResolvedWord};

/// A program whose arguments, after its own options, are a command line.
pub(super) struct Prefix {
    name: &'static str,
    /// A word that must follow, such as `run`; empty for none.
    subcommand: &'static str,
    /// Options that take the next word.
    values: &'static [&'static str],
    /// Operands before the command.
    operands: usize,
}

const fn prefix(
    name: &'static str,
    subcommand: &'static str,
    values: &'static [&'static str],
    operands: usize,
) -> Prefix {
    Prefix {
        name,
        subcommand,
        values,
        operands,
    }
}

const SUDO_VALUES: &[&str] = &[
    "-u",
    "-g",
    "-h",
    "-p",
    "-C",
    "-r",
    "-t",
    "-T",
    "-U",
    "-D",
    "-R",
    "--user",
    "--group",
    "--host",
    "--prompt",
    "--chdir",
    "--chroot",
    "--role",
    "--type",
    "--close-from",
    "--command-timeout",
];

static PREFIXES: &[Prefix] = &[
    prefix("sudo", "", SUDO_VALUES, 0),
    prefix("doas", "", &["-u", "-C"], 0),
    prefix(
        "run0",
        "",
        &[
            "-u",
            "--user",
            "-g",
            "--group",
            "--unit",
            "--property",
            "--chdir",
            "-D",
        ],
        0,
    ),
    prefix("pkexec", "", &["--user"], 0),
    prefix("gosu", "", &[], 1),
    prefix("su-exec", "", &[], 1),
    prefix("runuser", "", &["-u", "-g", "-G"], 0),
    prefix("nice", "", &["-n", "--adjustment"], 0),
    prefix(
        "ionice",
        "",
        &["-c", "-n", "-p", "--class", "--classdata"],
        0,
    ),
    prefix("chrt", "", &[], 1),
    prefix("taskset", "", &[], 1),
    prefix("nohup", "", &[], 0),
    prefix("setsid", "", &[], 0),
    prefix("timeout", "", &["-s", "-k", "--signal", "--kill-after"], 1),
    prefix("gtimeout", "", &["-s", "-k", "--signal", "--kill-after"], 1),
    prefix("time", "", &["-f", "-o", "--format", "--output"], 0),
    prefix("gtime", "", &["-f", "-o", "--format", "--output"], 0),
    prefix("stdbuf", "", &["-i", "-o", "-e"], 0),
    prefix("unbuffer", "", &[], 0),
    prefix("caffeinate", "", &["-t", "-w"], 0),
    prefix("builtin", "", &[], 0),
    prefix("noglob", "", &[], 0),
    prefix("nocorrect", "", &[], 0),
    prefix("exec", "", &["-a"], 0),
    prefix("strace", "", &["-o", "-e", "-s", "-p", "-u", "-E"], 0),
    prefix("numactl", "", &["-N", "-m", "-C", "-i", "-p"], 0),
    prefix("perf", "stat", &["-e", "-o", "-r", "-C", "-I"], 0),
    prefix("perf", "record", &["-e", "-o", "-F", "-c", "-C"], 0),
    prefix("perf", "trace", &["-e", "-o"], 0),
    prefix("ltrace", "", &["-o", "-e", "-s", "-p", "-u"], 0),
    prefix("valgrind", "", &[], 0),
    prefix("xvfb-run", "", &["-s", "-n", "-e", "-f", "-p", "-w"], 0),
    prefix("dbus-run-session", "", &[], 0),
    prefix(
        "systemd-run",
        "",
        &[
            "-u",
            "--unit",
            "-p",
            "--property",
            "-E",
            "--setenv",
            "--slice",
            "--uid",
            "--gid",
        ],
        0,
    ),
    prefix("systemd-inhibit", "", &[], 0),
    prefix("proxychains", "", &["-f"], 0),
    prefix("proxychains4", "", &["-f"], 0),
    prefix("torsocks", "", &[], 0),
    prefix("rlwrap", "", &[], 0),
    prefix("fakeroot", "", &[], 0),
    prefix("catchsegv", "", &[], 0),
    prefix("ssh-agent", "", &["-a", "-t"], 0),
    prefix("dumb-init", "", &[], 0),
    prefix("tini", "", &["-p", "-e"], 0),
    prefix("catatonit", "", &[], 0),
    prefix("torify", "", &[], 0),
    prefix("tsocks", "", &[], 0),
    prefix("proxychains-ng", "", &["-f"], 0),
    prefix("ld.so", "", &[], 0),
    prefix("ld-linux-x86-64.so.2", "", &[], 0),
    prefix("cgexec", "", &["-g"], 0),
    prefix("chpst", "", &["-u", "-U", "-b", "-e", "-n", "-l", "-L"], 0),
    prefix("setuidgid", "", &[], 1),
    prefix("envdir", "", &[], 1),
    prefix("envuidgid", "", &[], 1),
    prefix("setlock", "", &[], 1),
    prefix("softlimit", "", &["-m", "-d", "-s", "-c", "-f"], 0),
    prefix("run-one", "", &[], 0),
    prefix("sem", "", &["-j", "--id"], 0),
    prefix("tsp", "", &["-L", "-N"], 0),
    prefix("sshpass", "", &["-p", "-f", "-d", "-P"], 0),
    prefix("heaptrack", "", &[], 0),
    prefix("rr", "record", &[], 0),
    prefix("gdbserver", "", &[], 1),
    prefix("winpty", "", &[], 0),
    prefix("mangohud", "", &[], 0),
    prefix("prime-run", "", &[], 0),
    prefix("optirun", "", &[], 0),
    prefix("infisical", "run", &["--env", "--path"], 0),
    prefix("teller", "run", &[], 0),
    prefix("chamber", "exec", &[], 1),
    prefix("sops", "exec-env", &[], 1),
    prefix("foreman", "run", &["-e", "-f"], 0),
    prefix("honcho", "run", &["-e", "-f"], 0),
    prefix("mise", "x", &[], 0),
    prefix("mise", "exec", &[], 0),
    prefix("rtx", "exec", &[], 0),
    prefix("devbox", "run", &[], 0),
    prefix("pixi", "run", &["-e", "--environment"], 0),
    prefix("micromamba", "run", &["-n", "-p"], 0),
    prefix("nvm", "exec", &[], 1),
    prefix("fnm", "exec", &["--using"], 0),
    prefix("rvm", "do", &[], 0),
    prefix("rustup", "run", &[], 1),
    prefix("opam", "exec", &["--switch"], 0),
    prefix("stack", "exec", &[], 0),
    prefix("cabal", "exec", &[], 0),
    prefix("guix", "shell", &["-m"], 0),
    prefix("distrobox", "enter", &["-n", "--name"], 0),
    prefix("toolbox", "run", &["-c", "--container"], 0),
    prefix("flatpak-spawn", "", &[], 0),
    prefix("eatmydata", "", &[], 0),
    prefix("firejail", "", &[], 0),
    prefix("chronic", "", &[], 0),
    prefix("ts", "", &[], 0),
    prefix("retry", "", &["-t", "-d"], 0),
    prefix("entr", "", &[], 0),
    prefix("busybox", "", &[], 0),
    prefix("toybox", "", &[], 0),
    prefix("setarch", "", &[], 1),
    prefix("ifne", "", &[], 0),
    prefix("lerna", "exec", &["--scope", "--ignore"], 0),
    prefix("meta", "exec", &[], 0),
    prefix("just", "--command", &[], 0),
    prefix("lima", "", &[], 0),
    prefix("cmake", "-E chdir", &[], 1),
    prefix("linux32", "", &[], 0),
    prefix("linux64", "", &[], 0),
    prefix("prlimit", "", &[], 0),
    prefix("cpulimit", "", &["-l"], 0),
    prefix("arch", "", &[], 0),
    prefix("poetry", "run", &[], 0),
    prefix(
        "uv",
        "run",
        &[
            "--with",
            "--python",
            "-p",
            "--project",
            "--extra",
            "--group",
            "--env-file",
        ],
        0,
    ),
    prefix("pipenv", "run", &[], 0),
    prefix("pdm", "run", &[], 0),
    prefix("rye", "run", &[], 0),
    prefix("hatch", "run", &[], 0),
    prefix("pipx", "run", &["--spec"], 0),
    prefix("bundle", "exec", &[], 0),
    prefix("npx", "", &["-p", "--package", "-w", "--workspace"], 0),
    prefix("bunx", "", &[], 0),
    prefix("pnpx", "", &[], 0),
    prefix("uvx", "", &["--from", "--with", "-p", "--python"], 0),
    prefix("npm", "explore", &[], 1),
    prefix("npm", "exec", &["-p", "--package", "-w", "--workspace"], 0),
    prefix("pnpm", "exec", &[], 0),
    prefix("pnpm", "dlx", &["--package"], 0),
    prefix("yarn", "exec", &[], 0),
    prefix("yarn", "dlx", &["-p", "--package"], 0),
    prefix("conda", "run", &["-n", "--name", "-p", "--prefix"], 0),
    prefix("mamba", "run", &["-n", "--name", "-p", "--prefix"], 0),
    prefix("rbenv", "exec", &[], 0),
    prefix("pyenv", "exec", &[], 0),
    prefix("asdf", "exec", &[], 0),
    prefix("volta", "run", &["--node", "--npm"], 0),
    prefix("direnv", "exec", &[], 1),
    prefix("doppler", "run", &["-p", "-c", "--project", "--config"], 0),
    prefix("op", "run", &["--env-file"], 0),
    prefix("aws-vault", "exec", &[], 1),
    prefix("dotenvx", "run", &["-f"], 0),
    prefix("envchain", "", &[], 1),
    prefix("cross-env", "", &[], 0),
    prefix("cross-env-shell", "", &[], 0),
    prefix("env-cmd", "", &["-f", "--file", "-e", "-r"], 0),
    prefix("shx", "", &[], 0),
    prefix(
        "heroku",
        "run",
        &["-a", "--app", "-s", "--size", "-e", "--env"],
        0,
    ),
    prefix(
        "railway",
        "run",
        &["-s", "--service", "-e", "--environment"],
        0,
    ),
    prefix(
        "watchexec",
        "",
        &[
            "-e",
            "-w",
            "-W",
            "-i",
            "-f",
            "-d",
            "-s",
            "-E",
            "--exts",
            "--watch",
            "--ignore",
            "--filter",
            "--debounce",
            "--signal",
            "--env",
        ],
        0,
    ),
    prefix("dotenv", "", &["-e", "-f"], 0),
    prefix("git", "bisect run", &[], 0),
    prefix(
        "wsl",
        "",
        &["-d", "-u", "--distribution", "--user", "--cd"],
        0,
    ),
    prefix("start", "", &[], 0),
    prefix(
        "setpriv",
        "",
        &["--reuid", "--regid", "--groups", "--bounding-set"],
        0,
    ),
    prefix("faketime", "", &["-f"], 1),
    prefix(
        "daemonize",
        "",
        &["-a", "-c", "-e", "-o", "-p", "-l", "-u", "-E"],
        0,
    ),
    prefix("cmake", "-E env", &[], 0),
    prefix("cmake", "-E time", &[], 0),
    prefix("sail", "", &[], 0),
];

/// Prefixes that start a program of a package.
const RUNNERS_OF_PACKAGES: &[&str] = &[
    "npx", "uvx", "bunx", "pnpx", "pipx", "pnpm", "yarn", "npm", "uv",
];

/// Prefixes that take names before the `--` in front of the command.
const NAMES_BEFORE_DASHES: &[&str] = &["mise", "rtx", "guix", "distrobox", "devbox", "chamber"];

/// Prefixes that give a single argument to a shell.
const STARTERS_OF_TEXTS: &[&str] = &[
    "watchexec",
    "yarn",
    "lerna",
    "meta",
    "heroku",
    "npm",
    "pnpm",
    "entr",
];

fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && !name.starts_with(|first: char| first.is_ascii_digit())
    })
}

impl Evaluator<'_> {
    pub(super) fn open_prefix(
        &mut self,
        prefix: &Prefix,
        mut started: Invocation,
        scope: &mut Scope,
        input: &StageInput,
    ) {
        if matches!(prefix.name, "npm" | "pnpm" | "yarn") {
            let at = first_operand(&started.words, 1, PACKAGE_MANAGER_VALUES);
            started.words.drain(1..at.min(started.words.len()));
        }
        let skipped = 1 + prefix.subcommand.split_whitespace().count();
        let is_shell = prefix.name == "sudo" && started.has_option("is", &["--login", "--shell"]);
        let mut at = first_operand(&started.words, skipped, prefix.values);
        if prefix.operands > 0 {
            // `setarch x86_64 -R git`: options may also follow the operand.
            at = first_operand(&started.words, at + prefix.operands, prefix.values);
        }
        let runs_packages = RUNNERS_OF_PACKAGES.contains(&prefix.name);
        if runs_packages
            && prefix.name != "uv"
            && let Some(option) = started.words.get(..at.min(started.words.len()))
            && let Some(option) = option
                .iter()
                .position(|word| word.text == "-c" || word.text == "--call")
            && let Some(script) = started.words.get(option + 1).cloned()
        {
            self.emit(Invocation {
                input_text: None,
                ..started
            });
            return self.run_child_text(&script.text, scope, input);
        }
        while let Some(word) = started.words.get(at) {
            if !is_assignment(&word.text) {
                break;
            }
            if let Some((name, value)) = word.text.split_once('=') {
                started
                    .variables
                    .push((name.to_owned(), ResolvedWord::new(value)));
            }
            at += 1;
        }
        let mut rest = started.words.get(at..).unwrap_or_default().to_vec();
        let mut is_behind_dashes = at
            .checked_sub(1)
            .and_then(|before| started.words.get(before))
            .is_some_and(|word| word.text == "--");
        if rest.first().is_some_and(|word| word.text == "--") {
            rest.remove(0);
            is_behind_dashes = true;
        }
        if !is_behind_dashes
            && NAMES_BEFORE_DASHES.contains(&prefix.name)
            && let Some(dashes) = rest.iter().position(|word| word.text == "--")
        {
            // `mise x node -- git`: names of tools come first.
            rest.drain(..=dashes);
        }
        if STARTERS_OF_TEXTS.contains(&prefix.name)
            && let [script] = rest.as_slice()
            && script.text.contains(' ')
        {
            let script = script.text.clone();
            self.emit(started);
            return self.run_child_text(&script, scope, input);
        }
        if prefix.name == "runuser" && started.has_option("c", &["--command"]) {
            return self.open_option_script(started, scope, input);
        }
        if rest.is_empty() {
            if is_shell {
                started.via.push("sudo".to_owned());
                let words = vec![ResolvedWord::new("sh")];
                return self.start_inner(words, started, scope, input, None);
            }
            return self.emit(started);
        }
        // npx takes a version: `rimraf@5`.
        if matches!(
            prefix.name,
            "npx" | "bunx" | "pnpx" | "uvx" | "npm" | "pnpm" | "yarn" | "pipx"
        ) && let Some(first) = rest.first_mut()
            && let Some(at) = first.text.rfind('@').filter(|at| *at > 0)
            && !first.text.contains("://")
        {
            first.text.truncate(at);
        }
        if runs_packages {
            // The guards look at the package itself.
            self.emit(Invocation {
                input_text: None,
                ..started.clone()
            });
        }
        let mut child = scope.clone();
        if prefix.name == "sudo"
            && let Some(at) = started
                .words
                .iter()
                .position(|word| matches!(word.text.as_str(), "-D" | "--chdir"))
            && let Some(folder) = started.words.get(at + 1)
        {
            child.cwd = normalize(scope.cwd.as_deref(), &folder.text);
        }
        self.start_inner(rest, started, &mut child, input, Some(prefix.name));
        scope.cwd = if prefix.name == "builtin" {
            child.cwd
        } else {
            scope.cwd.take()
        };
    }

    pub(super) fn open_env(
        &mut self,
        mut started: Invocation,
        scope: &mut Scope,
        input: &StageInput,
    ) {
        let mut index = 1;
        let mut child = scope.clone();
        while let Some(word) = started.words.get(index) {
            let text = word.text.as_str();
            match text {
                "-" | "-i" | "--ignore-environment" | "-0" | "-v" | "--null" => index += 1,
                "-u" | "--unset" | "-P" => index += 2,
                "-C" | "--chdir" => {
                    let folder = started.words.get(index + 1);
                    child.cwd =
                        folder.and_then(|folder| normalize(scope.cwd.as_deref(), &folder.text));
                    index += 2;
                }
                "-S" | "--split-string" => {
                    // The value is split; the words after it are whole.
                    let mut words = started.words.iter().skip(index + 1);
                    let first = words.next().map(|word| word.text.clone());
                    let rest = words.map(|word| anyhook_util::shell::quote_if_needed(&word.text));
                    let script: Vec<String> = first.into_iter().chain(rest).collect();
                    return self.run_child_text(&script.join(" "), &child, input);
                }
                _ if text.starts_with("--chdir=") => {
                    let folder = text.trim_start_matches("--chdir=");
                    child.cwd = normalize(scope.cwd.as_deref(), folder);
                    index += 1;
                }
                _ if text.starts_with("-S") || text.starts_with("-vS") => {
                    let attached = text.split_once('S').map_or("", |(_, rest)| rest);
                    let texts = started
                        .words
                        .iter()
                        .skip(index + 1)
                        .map(|word| word.text.as_str());
                    let script = std::iter::once(attached)
                        .chain(texts)
                        .collect::<Vec<_>>()
                        .join(" ");
                    return self.run_child_text(&script, &child, input);
                }
                _ if text.starts_with("--split-string=") => {
                    let script = text.trim_start_matches("--split-string=").to_owned();
                    return self.run_child_text(&script, &child, input);
                }
                "--" => {
                    index += 1;
                    break;
                }
                _ if text.starts_with('-') => index += 1,
                _ if is_assignment(text) => {
                    if let Some((name, value)) = text.split_once('=') {
                        let value = ResolvedWord::new(value);
                        started.variables.push((name.to_owned(), value));
                    }
                    index += 1;
                }
                _ => break,
            }
        }
        let rest = started.words.get(index..).unwrap_or_default().to_vec();
        if rest.is_empty() {
            return self.emit(started);
        }
        self.start_inner(rest, started, &mut child, input, Some("env"));
    }
}

pub(super) fn find_prefix(started: &Invocation) -> Option<&'static Prefix> {
    // `npm --prefix x exec …`.
    if matches!(started.name.as_str(), "npm" | "pnpm" | "yarn")
        && started
            .texts()
            .next()
            .is_some_and(|first| first.starts_with('-'))
    {
        let at = first_operand(&started.words, 1, PACKAGE_MANAGER_VALUES);
        let mut plain = started.clone();
        plain.words.drain(1..at.min(plain.words.len()));
        return find_prefix(&plain);
    }
    PREFIXES.iter().find(|prefix| {
        prefix.name == started.name
            && prefix
                .subcommand
                .split_whitespace()
                .zip(started.texts().map(Some).chain(std::iter::repeat(None)))
                .all(|(wanted, found)| found == Some(wanted))
    })
}
