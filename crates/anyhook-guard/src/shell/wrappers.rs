//! Programs that start other programs: what they start is opened.

use std::rc::Rc;

use super::code;
use super::evaluate::{Evaluator, MAX_WRAPPERS, Scope, StageInput};
use super::invocation::{Invocation, InvocationPlace, ResolvedWord, UNKNOWN};
use super::{powershell, windows_cmd};
use crate::paths::normalize;

/// A program whose arguments, after its own options, are a command line.
struct Prefix {
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
    prefix("eatmydata", "", &[], 0),
    prefix("firejail", "", &[], 0),
    prefix("chronic", "", &[], 0),
    prefix("ts", "", &[], 0),
    prefix("retry", "", &["-t", "-d"], 0),
    prefix("entr", "", &[], 0),
    prefix("busybox", "", &[], 0),
    prefix("toybox", "", &[], 0),
    prefix("setarch", "", &[], 1),
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

pub(crate) const SHELLS: [&str; 13] = [
    "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash", "csh", "tcsh", "yash",
    "elvish",
];

/// Options of package managers before their command that take the next word.
const PACKAGE_MANAGER_VALUES: &[&str] = &[
    "--prefix",
    "-C",
    "--dir",
    "--cwd",
    "--filter",
    "-F",
    "-w",
    "--workspace",
];

/// The index of the first word that is neither an option nor an option's value.
pub(crate) fn first_operand(words: &[ResolvedWord], start: usize, values: &[&str]) -> usize {
    let mut index = start;
    while let Some(word) = words.get(index) {
        let text = word.text.as_str();
        if text == "--" {
            return index + 1;
        }
        if !text.starts_with('-') || text == "-" {
            return index;
        }
        index += 1;
        if text.contains('=') {
            continue;
        }
        let takes_value = if text.starts_with("--") || values.contains(&text) {
            values.contains(&text)
        } else {
            // The last letter of a cluster may take a value; one before it has it attached.
            let mut letters = text.char_indices().skip(1).peekable();
            let mut takes = false;
            while let Some((_, letter)) = letters.next() {
                if values.contains(&format!("-{letter}").as_str()) {
                    takes = letters.peek().is_none();
                    break;
                }
            }
            takes
        };
        index += usize::from(takes_value);
    }
    index
}

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
    /// Notes a program, and opens it if it starts others.
    pub(super) fn start_program(
        &mut self,
        started: Invocation,
        scope: &mut Scope,
        input: &StageInput,
    ) {
        if self.run_builtin(&started, scope, input) {
            return;
        }
        let name = started.name.clone();
        for script in option_commands(&started) {
            self.run_child_text(&script, scope, &StageInput::default());
        }
        if let Some(prefix) = find_prefix(&started) {
            return self.open_prefix(prefix, started, scope, input);
        }
        match name.as_str() {
            "env" => self.open_env(started, scope, input),
            "command" if !started.has_option("vV", &[]) => {
                let rest = started
                    .arguments()
                    .iter()
                    .skip_while(|word| word.text.starts_with('-'));
                let rest = rest.cloned().collect();
                self.start_inner(rest, started, scope, input, None);
            }
            "xargs" | "gxargs" => self.open_xargs(started, scope, input),
            "parallel" => self.open_parallel(started, scope, input),
            "find" | "gfind" | "bfs" => self.open_find(started, scope, input),
            "fd" | "fdfind" => self.open_fd(started, scope, input),
            "ssh" | "autossh" | "mosh" => self.open_ssh(started, scope, input),
            "su" | "runuser" | "script" | "sg" | "flock" => {
                self.open_option_script(started, scope, input);
            }
            "tmux" | "screen" => self.open_multiplexer(started, scope, input),
            "nix" if started.has_option("c", &["--command"]) => {
                let at = started
                    .words
                    .iter()
                    .position(|word| matches!(word.text.as_str(), "-c" | "--command"));
                let rest = at.and_then(|at| started.words.get(at + 1..));
                let rest = rest.unwrap_or_default().to_vec();
                self.emit(started.clone());
                self.start_inner(rest, started, &mut scope.clone(), input, Some("nix"));
            }
            "watch" | "hyperfine" | "concurrently" | "mprocs" | "repo" | "nodemon"
            | "nix-shell" | "nix" | "vagrant" | "devcontainer" => {
                self.open_text_arguments(started, scope, input);
            }
            "docker" | "podman" | "nerdctl" | "docker-compose" | "kubectl" | "oc" | "lxc"
            | "incus" => {
                self.open_container(started, scope, input);
            }
            "chroot" | "unshare" | "nsenter" | "bwrap" | "proot" => {
                let at = first_operand(&started.words, 1, &["-t", "--target", "-w", "-b"]);
                let mut child = scope.clone();
                if name == "chroot" {
                    // The root itself is no other place.
                    if started.words.get(at).is_none_or(|root| root.text != "/") {
                        child.place = InvocationPlace::Container;
                    }
                    child.cwd = Some("/".to_owned());
                }
                let at = at + usize::from(name == "chroot");
                let rest = started.words.get(at..).unwrap_or_default().to_vec();
                self.emit(started.clone());
                self.start_inner(rest, started, &mut child, input, Some(&name));
            }
            "trap" => {
                if let Some(script) = started.operands().next().map(|word| word.text.clone())
                    && !matches!(script.as_str(), "" | "-")
                {
                    self.run_child_text(&script, scope, input);
                }
                self.emit(started);
            }
            "source" | "." => {
                let text = started.operands().next().and_then(|word| {
                    let source = word.sources.last()?;
                    super::output::known_output(&self.invocations, source.clone())
                });
                let text = text.or_else(|| {
                    let file = started.operands().next()?.text.clone();
                    match file.as_str() {
                        "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0" => {
                            input.text.as_deref().map(str::to_owned)
                        }
                        _ => self.written_text(scope, &file),
                    }
                });
                self.emit(started);
                if let Some(text) = text {
                    self.run_text(&text, scope, input);
                }
            }
            "cmake" => {
                let verb = started.words.get(2).map_or("", |word| word.text.as_str());
                let deletes = matches!(verb, "rm" | "remove" | "remove_directory");
                let is_tree = verb == "remove_directory";
                let operands = started.words.get(3..).unwrap_or_default().to_vec();
                self.emit(started);
                if deletes {
                    let mut words = vec![ResolvedWord::new("rm")];
                    words.extend(is_tree.then(|| ResolvedWord::new("-r")));
                    words.extend(operands);
                    self.start(words, Invocation::in_scope(scope), scope, input);
                }
            }
            "start-stop-daemon" => {
                let program = option_value(&started.words, 'x', &["--exec", "-a", "--startas"]);
                let dashes = started.words.iter().position(|word| word.text == "--");
                let rest = dashes.and_then(|at| started.words.get(at + 1..));
                let rest = rest.unwrap_or_default().to_vec();
                self.emit(started);
                if let Some(program) = program {
                    let words = std::iter::once(ResolvedWord::new(program)).chain(rest);
                    let mut child = child_of(scope, &name);
                    self.start(
                        words.collect(),
                        Invocation::in_scope(scope),
                        &mut child,
                        input,
                    );
                }
            }
            "newgrp" | "capsh" => {
                let script = option_value(&started.words, 'c', &[]);
                self.emit(started);
                let text = script.or_else(|| input.text.as_deref().map(str::to_owned));
                if let Some(text) = text {
                    self.run_child_text(&text, scope, &StageInput::default());
                }
            }
            "at" | "batch" => {
                self.emit(started);
                if let Some(text) = input.text.clone() {
                    self.run_child_text(&text, scope, &StageInput::default());
                }
            }
            "ansible" => self.open_ansible(started, scope),
            "npm" => self.open_package_runner(started, scope, input),
            "make" | "gmake" => self.open_make(started, scope, input),
            "apply_patch" | "applypatch" => self.open_patch(started, scope, input),
            "crontab" => {
                let listed = started.operands().next().and_then(|file| {
                    let source = file.sources.last()?;
                    super::output::known_output(&self.invocations, source.clone())
                });
                let file = started.operands().next().map(|word| word.text.clone());
                let listed =
                    listed.or_else(|| file.and_then(|file| self.written_text(scope, &file)));
                self.emit(started);
                let table = listed
                    .or_else(|| input.text.as_deref().map(str::to_owned))
                    .or_else(|| {
                        super::output::partial_output(&self.invocations, input.from.clone())
                    });
                // Five fields or `@daily`, then a command.
                for line in table.as_deref().unwrap_or_default().lines().take(64) {
                    let fields = if line.trim_start().starts_with('@') {
                        1
                    } else {
                        5
                    };
                    let command: Vec<&str> = line.split_whitespace().skip(fields).collect();
                    self.run_child_text(&command.join(" "), scope, &StageInput::default());
                }
            }
            "sftp" => {
                // What its commands send.
                let sent: Vec<ResolvedWord> = input
                    .text
                    .as_deref()
                    .unwrap_or_default()
                    .lines()
                    .take(16)
                    .filter_map(|line| line.trim_start().strip_prefix("put "))
                    .filter_map(|rest| rest.split_whitespace().find(|word| !word.starts_with('-')))
                    .map(ResolvedWord::new)
                    .collect();
                if !sent.is_empty() {
                    self.emit(Invocation {
                        name: "cat".to_owned(),
                        words: std::iter::once(ResolvedWord::new("cat"))
                            .chain(sent)
                            .collect(),
                        ..Invocation::in_scope(scope)
                    });
                }
                self.emit(started);
            }
            "git" => self.open_git(started, scope, input),
            "yarn" | "pnpm" | "bun" => self.open_package_runner(started, scope, input),
            "powershell" | "pwsh" => self.open_powershell(started, scope),
            "cmd" => self.open_cmd(started, scope),
            _ if SHELLS.contains(&name.as_str()) => self.open_shell(started, scope, input),
            _ => {
                if let Some(rest) = command_after_dashes(&started) {
                    self.emit(started.clone());
                    return self.start_inner(rest, started, &mut scope.clone(), input, Some(&name));
                }
                let mut started = started;
                let program = started.words.first().map(|word| word.text.clone());
                let script = program
                    .filter(|program| program.contains('/'))
                    .and_then(|program| self.written_text(scope, &program));
                if let Some(script) = script {
                    self.emit(started);
                    let mut child = scope.clone();
                    return self.run_text(&script, &mut child, input);
                }
                if started.input_text.is_none() {
                    // A file whose text a command of this one prints.
                    started.input_text = started.arguments().iter().find_map(|word| {
                        let source = word.sources.last()?;
                        word.text.starts_with("/dev/fd/").then(|| {
                            super::output::known_output(&self.invocations, source.clone())
                        })?
                    });
                }
                if started.input_text.is_none() && !self.written.is_empty() {
                    let texts: Vec<String> = started.texts().map(str::to_owned).collect();
                    started.input_text = texts.iter().find_map(|text| {
                        self.written_text(scope, text.trim_start_matches(".read "))
                    });
                }
                code::start_interpreter(self, started, scope, input);
            }
        }
    }

    /// Starts the words as a command of their own.
    fn start_inner(
        &mut self,
        words: Vec<ResolvedWord>,
        outer: Invocation,
        scope: &mut Scope,
        input: &StageInput,
        via: Option<&str>,
    ) {
        if words.is_empty() {
            return;
        }
        if scope.via.len() > MAX_WRAPPERS {
            self.is_incomplete = true;
            return;
        }
        let mut inner = Invocation {
            words: Vec::new(),
            name: String::new(),
            code: None,
            ..outer
        };
        inner.place = scope.place;
        inner.cwd.clone_from(&scope.cwd);
        let Some(via) = via else {
            return self.start(words, inner, scope, input);
        };
        inner.via.push(via.to_owned());
        scope.via.push(via.to_owned());
        self.start(words, inner, scope, input);
        scope.via.pop();
    }

    fn open_prefix(
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
        at += prefix.operands;
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
        if rest.first().is_some_and(|word| word.text == "--") {
            rest.remove(0);
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
        if matches!(
            prefix.name,
            "npx" | "uvx" | "bunx" | "pnpx" | "pipx" | "pnpm" | "yarn" | "npm" | "uv"
        ) {
            // The guards look at the package itself.
            self.emit(Invocation {
                input_text: None,
                ..started.clone()
            });
            if let Some(at) = started
                .words
                .iter()
                .position(|word| word.text == "-c" || word.text == "--call")
                .filter(|_| prefix.name != "uv")
                && let Some(script) = started.words.get(at + 1)
            {
                return self.run_child_text(&script.text.clone(), scope, input);
            }
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

    fn open_env(&mut self, mut started: Invocation, scope: &mut Scope, input: &StageInput) {
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
                    let texts = started
                        .words
                        .iter()
                        .skip(index + 1)
                        .map(|word| word.text.as_str());
                    let script = texts.collect::<Vec<_>>().join(" ");
                    return self.run_child_text(&script, &child, input);
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

    fn open_xargs(&mut self, started: Invocation, scope: &mut Scope, input: &StageInput) {
        const VALUES: &[&str] = &[
            "-a",
            "-d",
            "-E",
            "-I",
            "-L",
            "-n",
            "-P",
            "-s",
            "-J",
            "-R",
            "-S",
            "--arg-file",
            "--delimiter",
            "--max-args",
            "--max-procs",
            "--max-lines",
            "--max-chars",
            "--process-slot-var",
        ];
        let at = first_operand(&started.words, 1, VALUES);
        let options = started.words.get(1..at).unwrap_or_default();
        let mut replaced = None;
        for (index, word) in options.iter().enumerate() {
            let attached = word
                .text
                .strip_prefix("-I")
                .or_else(|| word.text.strip_prefix("-i"))
                .or_else(|| word.text.strip_prefix("--replace="))
                .filter(|rest| !rest.is_empty());
            if let Some(attached) = attached {
                replaced = Some(attached.to_owned());
            } else if word.text == "-I" || word.text == "-J" {
                replaced = options.get(index + 1).map(|word| word.text.clone());
            } else if matches!(word.text.as_str(), "-i" | "--replace" | "--replace=") {
                replaced = Some("{}".to_owned());
            }
        }
        let mut words = started.words.get(at..).unwrap_or_default().to_vec();
        if words.is_empty() {
            return self.emit(started);
        }
        // A mark stands for a whole line.
        let mut fed = if replaced.is_some() {
            self.fed_lines(input)
        } else {
            self.fed_words(input)
        };
        let file = options.windows(2).find_map(|pair| match pair {
            [option, file] if matches!(option.text.as_str(), "-a" | "--arg-file") => {
                Some(file.text.clone())
            }
            _ => None,
        });
        if let Some(file) = file {
            // It reads the file, and the words are those of the file.
            fed = vec![ResolvedWord::unknown()];
            let mut reader = Invocation::in_scope(scope);
            "cat".clone_into(&mut reader.name);
            reader.words = vec![ResolvedWord::new("cat"), ResolvedWord::new(file)];
            self.emit(reader);
        }
        if replaced.is_some() {
            return self.start_with_each(&words, &fed, replaced.as_deref(), started, scope, input);
        }
        words = insert_fed(words, &fed, None);
        self.start_inner(words, started, scope, input, Some("xargs"));
    }

    /// Starts a command once for each word in the place of a mark.
    fn start_with_each(
        &mut self,
        words: &[ResolvedWord],
        fed: &[ResolvedWord],
        mark: Option<&str>,
        started: Invocation,
        scope: &mut Scope,
        input: &StageInput,
    ) {
        let via = started.name.clone();
        let unknown = [ResolvedWord::unknown()];
        let fed = if fed.is_empty() { &unknown } else { fed };
        for value in fed.iter().take(8) {
            let words = insert_fed(words.to_vec(), std::slice::from_ref(value), mark);
            self.start_inner(words, started.clone(), scope, input, Some(&via));
        }
    }

    /// Lines that come from the input of a command.
    fn fed_lines(&self, input: &StageInput) -> Vec<ResolvedWord> {
        let Some(text) = &input.text else {
            return self.fed_words(input);
        };
        let lines = text.lines().map(str::trim_start);
        lines
            .filter(|line| !line.is_empty())
            .take(64)
            .map(|line| ResolvedWord {
                text: line.to_owned(),
                sources: vec![input.from.clone()],
                ..ResolvedWord::default()
            })
            .collect()
    }

    /// Words that come from the input of a command.
    fn fed_words(&self, input: &StageInput) -> Vec<ResolvedWord> {
        let sources = vec![input.from.clone()];
        if let Some(text) = &input.text {
            return text
                .split_whitespace()
                .take(64)
                .map(|word| ResolvedWord {
                    text: word.to_owned(),
                    sources: sources.clone(),
                    ..ResolvedWord::default()
                })
                .collect();
        }
        let folders = self.listed_folders(&input.from);
        let texts: Vec<String> = if folders.is_empty() {
            vec![UNKNOWN.to_string()]
        } else {
            folders
                .iter()
                .map(|folder| format!("{}/{UNKNOWN}", folder.trim_end_matches('/')))
                .collect()
        };
        let word = |text| ResolvedWord {
            text,
            sources: sources.clone(),
            ..ResolvedWord::default()
        };
        texts.into_iter().map(word).collect()
    }

    fn open_parallel(&mut self, started: Invocation, scope: &mut Scope, input: &StageInput) {
        const VALUES: &[&str] = &[
            "-j",
            "-I",
            "-a",
            "-S",
            "--jobs",
            "--colsep",
            "-C",
            "--joblog",
            "-N",
            "-n",
            "-P",
            "--results",
            "--res",
            "--delay",
            "--timeout",
            "--retries",
            "--tmpdir",
            "--workdir",
            "--wd",
            "--tagstring",
            "--sshlogin",
            "--max-args",
            "--max-procs",
            "--arg-file",
            "--load",
            "--memfree",
            "--block",
            "--nice",
            "--halt",
            "--env",
            "-d",
            "--delimiter",
        ];
        let at = first_operand(&started.words, 1, VALUES);
        let words = started.words.get(at..).unwrap_or_default();
        let split = words.iter().position(|word| word.text.starts_with(":::"));
        let (words, values) = match split {
            Some(split) => words.split_at(split),
            None => (words, &[][..]),
        };
        let fed = if split.is_some() {
            values
                .iter()
                .filter(|word| !word.text.starts_with(":::"))
                .cloned()
                .collect()
        } else {
            self.fed_lines(input)
        };
        let texts: Vec<String> = words.iter().map(|word| word.text.clone()).collect();
        if texts.is_empty() {
            // Every value is a command.
            for word in fed.iter().take(16) {
                self.run_child_text(&word.text, scope, &StageInput::default());
            }
            return self.emit(started);
        }
        let script = texts.join(" ");
        if script.contains([' ', ';', '|', '&']) && words.len() == 1 {
            for value in fed.iter().take(16) {
                let text = if script.contains("{}") {
                    script.replace("{}", &value.text)
                } else {
                    format!("{script} {}", value.text)
                };
                self.run_child_text(&text, scope, &StageInput::default());
            }
            return;
        }
        let words = words.to_vec();
        self.start_with_each(&words, &fed, Some("{}"), started, scope, input);
    }

    fn open_find(&mut self, started: Invocation, scope: &mut Scope, input: &StageInput) {
        let texts: Vec<String> = started.texts().map(str::to_owned).collect();
        let roots: Vec<&String> = texts
            .iter()
            .skip_while(|text| matches!(text.as_str(), "-H" | "-L" | "-P"))
            .take_while(|text| !text.starts_with(['-', '(', '!']))
            .collect();
        let roots: Vec<String> = if roots.is_empty() {
            vec![".".to_owned()]
        } else {
            roots.into_iter().cloned().collect()
        };
        // What is left out by name still leaves everything else.
        let mut is_negated = false;
        let is_filtered = texts.iter().any(|text| {
            if matches!(text.as_str(), "!" | "-not") {
                is_negated = true;
                return false;
            }
            matches!(
                text.as_str(),
                "-name"
                    | "-iname"
                    | "-path"
                    | "-ipath"
                    | "-regex"
                    | "-mtime"
                    | "-mmin"
                    | "-newer"
                    | "-size"
                    | "-empty"
                    | "-user"
                    | "-perm"
                    | "-wholename"
                    | "-atime"
                    | "-ctime"
                    | "-cmin"
                    | "-amin"
            ) && !std::mem::take(&mut is_negated)
        });
        // One plain name is known; of a pattern only the folder is.
        let mut names = texts.windows(2).filter_map(|pair| match pair {
            [option, name] if option == "-name" => Some(name),
            _ => None,
        });
        let only_name = match (names.next(), names.next()) {
            (Some(name), None) if !name.contains(['*', '?', '[', UNKNOWN]) => Some(name),
            _ => None,
        };
        let found: Vec<ResolvedWord> = roots
            .iter()
            .map(|root| {
                let folder = root.trim_end_matches('/');
                let mut word =
                    ResolvedWord::new(if let Some(name) = only_name.filter(|_| is_filtered) {
                        format!("{folder}/{UNKNOWN}/{name}")
                    } else if is_filtered {
                        format!("{folder}/{UNKNOWN}")
                    } else if folder.is_empty() {
                        "/".to_owned()
                    } else {
                        folder.to_owned()
                    });
                // Everything below the folder, or the folder itself.
                if folder == "." && !is_filtered {
                    "./*".clone_into(&mut word.text);
                    word.is_pattern = true;
                }
                word
            })
            .collect();
        self.emit(started.clone());
        if has_delete_action(&texts) {
            let mut words = vec![ResolvedWord::new("rm"), ResolvedWord::new("-r")];
            words.extend(found.iter().cloned());
            self.start_inner(words, started.clone(), scope, input, Some("find"));
        }
        let mut index = 0;
        while let Some(text) = texts.get(index) {
            index += 1;
            if !matches!(text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir") {
                continue;
            }
            let words: Vec<ResolvedWord> = started
                .arguments()
                .iter()
                .skip(index)
                .take_while(|word| !matches!(word.text.as_str(), ";" | "+"))
                .cloned()
                .collect();
            index += words.len();
            let words = insert_fed(words, &found, Some("{}"));
            self.start_inner(
                words,
                started.clone(),
                scope,
                &StageInput::default(),
                Some("find"),
            );
        }
    }

    fn open_fd(&mut self, started: Invocation, scope: &mut Scope, input: &StageInput) {
        let exec = started
            .words
            .iter()
            .position(|word| matches!(word.text.as_str(), "-x" | "-X" | "--exec" | "--exec-batch"));
        self.emit(started.clone());
        let Some(at) = exec else {
            return;
        };
        let before = started.words.get(..at).unwrap_or_default();
        let values = &[
            "-t",
            "--type",
            "-e",
            "--extension",
            "-E",
            "--exclude",
            "-d",
            "--max-depth",
            "-S",
            "--size",
            "-j",
            "--threads",
        ];
        let pattern = first_operand(before, 1, values);
        let root = before
            .get(first_operand(before, pattern + 1, values))
            .map_or(".", |word| word.text.trim_end_matches('/'));
        let found = [ResolvedWord::new(format!("{root}/{UNKNOWN}"))];
        let words = started.words.get(at + 1..).unwrap_or_default().to_vec();
        let words = insert_fed(words, &found, Some("{}"));
        self.start_inner(words, started, scope, input, Some("fd"));
    }

    fn open_ssh(&mut self, started: Invocation, scope: &mut Scope, input: &StageInput) {
        const VALUES: &[&str] = &[
            "-b", "-c", "-D", "-E", "-e", "-F", "-I", "-i", "-J", "-L", "-l", "-m", "-O", "-o",
            "-p", "-Q", "-R", "-S", "-W", "-w", "-B",
        ];
        let at = first_operand(&started.words, 1, VALUES);
        self.emit(started.clone());
        let mut child = remote_scope(scope, InvocationPlace::Remote);
        child.via.push("ssh".to_owned());
        let rest = started.words.get(at + 1..).unwrap_or_default();
        // Options may also follow the host.
        let from = first_operand(rest, 0, VALUES);
        let texts: Vec<&str> = rest
            .iter()
            .skip(from)
            .map(|word| word.text.as_str())
            .collect();
        if texts.is_empty() {
            if let Some(text) = input.text.clone() {
                self.run_text(&text, &mut child, &StageInput::default());
            }
            return;
        }
        let script = texts.join(" ");
        self.run_text(&script, &mut child, input);
    }

    /// Programs whose option `-c` takes a script.
    fn open_option_script(&mut self, started: Invocation, scope: &mut Scope, input: &StageInput) {
        let name = started.name.clone();
        let script = option_value(&started.words, 'c', &["--command", "--session-command"]);
        self.emit(started.clone());
        let mut child = scope.clone();
        child.via.push(name.clone());
        if let Some(script) = script {
            return self.run_text(&script, &mut child, input);
        }
        match name.as_str() {
            "flock" => {
                let at = first_operand(&started.words, 1, &["-w", "-E", "--wait", "--timeout"]);
                let rest = started.words.get(at + 1..).unwrap_or_default().to_vec();
                if rest.first().is_some_and(|word| word.text == "-c") {
                    if let Some(script) = rest.get(1) {
                        self.run_text(&script.text.clone(), &mut child, input);
                    }
                    return;
                }
                self.start_inner(rest, started, scope, input, Some("flock"));
            }
            "sg" => {
                // `sg group command`, in one word or several.
                let rest = started.words.get(2..).unwrap_or_default();
                let texts: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
                self.run_text(&texts.join(" "), &mut child, input);
            }
            "su" => {
                if let Some(text) = input.text.clone() {
                    self.run_text(&text, &mut child, &StageInput::default());
                }
            }
            _ => {}
        }
    }

    /// Programs whose arguments are one or several scripts.
    fn open_text_arguments(&mut self, started: Invocation, scope: &mut Scope, input: &StageInput) {
        let name = started.name.clone();
        self.emit(started.clone());
        let mut child = scope.clone();
        child.via.push(name.clone());
        match name.as_str() {
            "watch" => {
                let at = first_operand(&started.words, 1, &["-n", "--interval"]);
                let texts: Vec<&str> = started
                    .words
                    .iter()
                    .skip(at)
                    .map(|word| word.text.as_str())
                    .collect();
                self.run_text(&texts.join(" "), &mut child, input);
            }
            "nix-shell" | "nodemon" | "repo" | "vagrant" | "devcontainer" | "nix" => {
                let named = option_value(&started.words, 'c', &["--run", "--command", "--exec"])
                    .or_else(|| option_value(&started.words, 'x', &[]));
                if let Some(script) = named {
                    self.run_text(&script, &mut child, input);
                }
            }
            _ => {
                // Arguments that look like commands.
                let scripts: Vec<String> = started
                    .arguments()
                    .iter()
                    .filter(|word| word.text.contains(' '))
                    .map(|word| word.text.clone())
                    .collect();
                for script in scripts.iter().take(16) {
                    self.run_text(script, &mut child.clone(), input);
                }
            }
        }
    }

    /// `tmux new-session 'cmd'`, `tmux send-keys 'cmd' Enter`, `screen -dm cmd`.
    fn open_multiplexer(&mut self, started: Invocation, scope: &Scope, input: &StageInput) {
        const VALUES: &[&str] = &[
            "-c", "-e", "-F", "-f", "-h", "-L", "-l", "-n", "-p", "-S", "-s", "-T", "-t", "-x",
            "-y",
        ];
        const RUNNING: &[&str] = &[
            "display-popup",
            "if",
            "if-shell",
            "new",
            "new-session",
            "new-window",
            "neww",
            "pipe-pane",
            "pipep",
            "popup",
            "respawn-pane",
            "respawn-window",
            "respawnp",
            "respawnw",
            "run",
            "run-shell",
            "send",
            "send-keys",
            "split-window",
            "splitw",
        ];
        let name = started.name.clone();
        self.emit(started.clone());
        let child = child_of(scope, &name);
        for command in started.arguments().split(|word| word.text == ";") {
            let mut at = first_operand(command, 0, VALUES);
            if name == "tmux" {
                let verb = command.get(at).map_or("", |word| word.text.as_str());
                if !RUNNING.contains(&verb) {
                    continue;
                }
                at = first_operand(command, at + 1, VALUES);
            } else if let Some(typed) = command.iter().position(|word| word.text == "stuff") {
                at = typed + 1;
            }
            let is_typed = command
                .iter()
                .any(|word| matches!(word.text.as_str(), "send-keys" | "send" | "stuff"));
            let rest = command.get(at..).unwrap_or_default();
            if !is_typed && rest.len() > 1 {
                let started = Invocation::in_scope(&child);
                self.start(rest.to_vec(), started, &mut child.clone(), input);
                continue;
            }
            let typed: Vec<&str> = command
                .iter()
                .skip(at)
                .map(|word| word.text.as_str())
                .filter(|text| !matches!(*text, "Enter" | "C-m" | "C-j"))
                .collect();
            let script = typed.join(" ").replace("\\n", "\n").replace("^M", "\n");
            self.run_child_text(&script, &child, input);
        }
    }

    fn open_container(&mut self, started: Invocation, scope: &mut Scope, input: &StageInput) {
        const VALUES: &[&str] = &[
            "-v",
            "--volume",
            "-e",
            "--env",
            "-w",
            "--workdir",
            "-p",
            "--publish",
            "--name",
            "-u",
            "--user",
            "--entrypoint",
            "--network",
            "--net",
            "--mount",
            "-l",
            "--label",
            "--env-file",
            "-m",
            "--memory",
            "--cpus",
            "--platform",
            "--gpus",
            "--add-host",
            "--hostname",
            "-h",
            "--cap-add",
            "--cap-drop",
            "--security-opt",
            "--restart",
            "--device",
            "--tmpfs",
            "--shm-size",
            "--ulimit",
            "--pull",
            "--ip",
            "--link",
            "--log-driver",
            "--log-opt",
            "--dns",
            "--expose",
            "--group-add",
            "--ipc",
            "--pid",
            "--cidfile",
            "--annotation",
            "--stop-signal",
            "--stop-timeout",
            "--sysctl",
            "--userns",
            "--uts",
            "--volumes-from",
            "--runtime",
            "--detach-keys",
            "-f",
            "--file",
            "--profile",
            "--project-name",
            "--project-directory",
            "-n",
            "--namespace",
            "--context",
            "-c",
            "--container",
            "--kubeconfig",
            "--index",
            "--host",
            "-H",
        ];
        let words = &started.words;
        let mut at = first_operand(words, 1, VALUES);
        let mut verb = words.get(at).map_or("", |word| word.text.as_str());
        if verb == "compose" || verb == "container" {
            at = first_operand(words, at + 1, VALUES);
            verb = words.get(at).map_or("", |word| word.text.as_str());
        }
        let is_run = verb == "run";
        if !is_run && verb != "exec" {
            return self.emit(started);
        }
        let target = first_operand(words, at + 1, VALUES);
        let entry = words
            .iter()
            .position(|word| word.text == "--entrypoint")
            .and_then(|at| words.get(at + 1).cloned())
            .or_else(|| {
                words.iter().find_map(|word| {
                    word.text
                        .strip_prefix("--entrypoint=")
                        .map(ResolvedWord::new)
                })
            });
        let mut rest = words.get(target + 1..).unwrap_or_default().to_vec();
        let image = words.get(target).map_or("", |word| word.text.as_str());
        let entry = entry.or_else(|| image_program(image).map(ResolvedWord::new));
        // kubectl: `exec pod -c name -- command`.
        if let Some(dashes) = rest.iter().position(|word| word.text == "--") {
            let before_is_options = rest
                .iter()
                .take(dashes)
                .all(|word| !word.text.contains(' '));
            if before_is_options
                && matches!(started.name.as_str(), "kubectl" | "oc" | "lxc" | "incus")
            {
                rest.drain(..=dashes);
            }
        }
        if is_run && let Some(entry) = entry {
            rest.insert(0, entry);
        }
        let mounts = if is_run {
            Self::container_mounts(words, scope)
        } else {
            Vec::new()
        };
        let folder = words.windows(2).find_map(|pair| match pair {
            [option, folder] if matches!(option.text.as_str(), "-w" | "--workdir") => {
                normalize(None, &folder.text)
            }
            _ => None,
        });
        self.emit(started.clone());
        let mut child = remote_scope(scope, InvocationPlace::Container);
        child.cwd = folder;
        let via = started.name.clone();
        let outer = std::mem::replace(&mut self.mounts, mounts);
        self.start_inner(rest, started, &mut child, input, Some(&via));
        self.mounts = outer;
    }

    /// `yarn prisma …`: a program of a package, unless it is a command of the manager.
    fn open_package_runner(&mut self, started: Invocation, scope: &mut Scope, input: &StageInput) {
        if started.name == "bun" && started.has_option("ep", &["--eval", "--print"]) {
            return code::start_interpreter(self, started, scope, input);
        }
        let at = first_operand(&started.words, 1, &["--filter", "-F", "--cwd", "-C", "-w"]);
        let text = |at: usize| started.words.get(at).map_or("", |word| word.text.as_str());
        if matches!(text(at), "run" | "run-script" | "test" | "start") || started.name != "npm" {
            self.run_package_script(&started, at, scope);
        }
        if started.name == "npm" {
            return self.emit(started);
        }
        let at = at + usize::from(text(at) == "run");
        let is_own = matches!(
            text(at),
            "" | "add"
                | "install"
                | "i"
                | "remove"
                | "rm"
                | "up"
                | "upgrade"
                | "update"
                | "test"
                | "build"
                | "start"
                | "dev"
                | "lint"
                | "init"
                | "create"
                | "publish"
                | "pack"
                | "link"
                | "unlink"
                | "why"
                | "list"
                | "ls"
                | "config"
                | "cache"
                | "global"
                | "workspace"
                | "workspaces"
                | "store"
                | "audit"
                | "outdated"
                | "x"
                | "un"
        );
        let rest = started.words.get(at..).unwrap_or_default().to_vec();
        let via = started.name.clone();
        self.emit(started.clone());
        if !is_own {
            self.start_inner(rest, started, scope, input, Some(&via));
        }
    }

    /// The script of a `package.json` that the command itself has written.
    fn run_package_script(&mut self, started: &Invocation, at: usize, scope: &Scope) {
        let Some(text) = self.written_text(scope, "package.json") else {
            return;
        };
        let Ok(package) = serde_json::from_str::<serde_json::Value>(&text) else {
            return;
        };
        let names = started.words.iter().skip(at).take(2);
        for name in names.map(|word| word.text.clone()).collect::<Vec<_>>() {
            let script = package.pointer(&format!("/scripts/{name}"));
            if let Some(script) = script.and_then(serde_json::Value::as_str) {
                self.run_child_text(script, scope, &StageInput::default());
            }
        }
    }

    /// `ansible HOSTS -m shell -a 'command'`.
    fn open_ansible(&mut self, started: Invocation, scope: &Scope) {
        let arguments = option_value(&started.words, 'a', &["--args"]);
        let module = option_value(&started.words, 'm', &["--module-name"]);
        let mut child = remote_scope(scope, InvocationPlace::Remote);
        child.via.push(started.name.clone());
        self.emit(started);
        let Some(arguments) = arguments else {
            return;
        };
        let module = module.unwrap_or_default();
        match module.rsplit('.').next().unwrap_or_default() {
            "" | "command" | "shell" | "raw" | "script" => {
                self.run_text(&arguments, &mut child, &StageInput::default());
            }
            "file" if arguments.contains("state=absent") => {
                let path = arguments
                    .split_whitespace()
                    .find_map(|word| word.strip_prefix("path=").or(word.strip_prefix("dest=")));
                let script = format!("rm -rf {}", path.unwrap_or("/"));
                self.run_text(&script, &mut child, &StageInput::default());
            }
            _ => {}
        }
    }

    fn open_make(&mut self, started: Invocation, scope: &Scope, input: &StageInput) {
        let mut texts: Vec<String> = Vec::new();
        for (index, word) in started.words.iter().enumerate() {
            let next = started.words.get(index + 1);
            match word.text.as_str() {
                "--eval" => texts.extend(next.map(|word| word.text.clone())),
                "-f" | "--file" | "--makefile" => {
                    let Some(file) = next else {
                        continue;
                    };
                    texts.extend(match (file.text.as_str(), file.sources.last()) {
                        ("-" | "/dev/stdin", _) => input.text.as_deref().map(str::to_owned),
                        (_, Some(source)) => {
                            super::output::known_output(&self.invocations, source.clone())
                        }
                        (path, None) => self.written_text(scope, path),
                    });
                }
                "-f-" | "--file=-" => texts.extend(input.text.as_deref().map(str::to_owned)),
                text => texts.extend(text.strip_prefix("--eval=").map(str::to_owned)),
            }
        }
        if texts.is_empty() {
            let files = ["Makefile", "makefile", "GNUmakefile"].into_iter();
            texts.extend(files.filter_map(|file| self.written_text(scope, file)));
        }
        self.emit(started);
        for text in texts {
            // Recipes follow a tab, or `target: ;` in the same line.
            let recipes: Vec<&str> = text
                .lines()
                .filter_map(|line| {
                    line.strip_prefix('\t').or_else(|| {
                        let (_, rest) = line.split_once(':')?;
                        rest.split_once(';').map(|(_, recipe)| recipe)
                    })
                })
                .map(|recipe| recipe.trim_start().trim_start_matches(['@', '-']))
                .collect();
            self.run_child_text(&recipes.join("\n"), scope, &StageInput::default());
        }
    }

    /// A patch that names its files itself: each is deleted or written.
    fn open_patch(&mut self, started: Invocation, scope: &Scope, input: &StageInput) {
        let argument = started.arguments().first().map(|word| word.text.clone());
        let patch = input.text.as_deref().map(str::to_owned).or(argument);
        let place = Invocation::in_scope(scope);
        self.emit(started);
        for line in patch.as_deref().unwrap_or_default().lines() {
            let Some((action, path)) = line
                .strip_prefix("*** ")
                .and_then(|line| line.split_once(": "))
            else {
                continue;
            };
            let program = match action {
                "Delete File" => "rm",
                "Add File" | "Update File" | "Move to" => "tee",
                _ => continue,
            };
            self.emit(Invocation {
                name: program.to_owned(),
                words: vec![ResolvedWord::new(program), ResolvedWord::new(path.trim())],
                ..place.clone()
            });
        }
    }

    fn open_git(&mut self, started: Invocation, scope: &mut Scope, input: &StageInput) {
        let words: Vec<String> = started.texts().map(str::to_owned).collect();
        let mut scripts = Vec::new();
        for (index, word) in words.iter().enumerate() {
            let next = words.get(index + 1);
            match word.as_str() {
                "-c" => {
                    // An alias that runs a shell, or a program setting.
                    if let Some((key, value)) = next.and_then(|next| next.split_once('=')) {
                        let key = key.to_ascii_lowercase();
                        if key.starts_with("alias.") {
                            scripts.extend(value.strip_prefix('!').map(str::to_owned));
                        } else if is_command_setting(&key) {
                            scripts.push(value.trim_start_matches('!').to_owned());
                        }
                    }
                }
                "config" => {
                    // An alias for a shell command.
                    let value = words
                        .iter()
                        .skip(index)
                        .skip_while(|word| !word.starts_with("alias."));
                    scripts.extend(
                        value
                            .skip(1)
                            .take(1)
                            .filter_map(|value| value.strip_prefix('!'))
                            .map(str::to_owned),
                    );
                }
                "foreach" if words.first().is_some_and(|first| first == "submodule") => {
                    let rest: Vec<&str> = words
                        .iter()
                        .skip(index + 1)
                        .skip_while(|word| word.starts_with('-'))
                        .map(String::as_str)
                        .collect();
                    scripts.push(rest.join(" "));
                }
                "-x" | "--exec" if words.first().is_some_and(|first| first == "rebase") => {
                    scripts.extend(next.cloned());
                }
                _ => {
                    if let Some(script) = word.strip_prefix("--exec=")
                        && words.first().is_some_and(|first| first == "rebase")
                    {
                        scripts.push(script.to_owned());
                    }
                }
            }
        }
        self.emit(started);
        for script in scripts.iter().take(16) {
            let mut child = scope.clone();
            child.via.push("git".to_owned());
            self.run_text(script, &mut child, input);
        }
    }

    fn open_shell(&mut self, started: Invocation, scope: &mut Scope, input: &StageInput) {
        let words = &started.words;
        let mut script = None;
        let mut parameters = 0;
        let mut reads_input = true;
        let mut index = 1;
        while let Some(word) = words.get(index) {
            let text = word.text.as_str();
            index += 1;
            let is_cluster = text.starts_with(['-', '+']) && !text.starts_with("--");
            if matches!(text, "--rcfile" | "--init-file")
                || is_cluster && text.ends_with(['o', 'O']) && !text.contains('c')
            {
                index += 1;
                continue;
            }
            if text == "--command"
                || (text.starts_with('-') && !text.starts_with("--") && text.contains('c'))
            {
                // The script follows the remaining options.
                while words.get(index).is_some_and(|next| {
                    next.text.starts_with('-') && next.text.len() > 1 && !next.text.contains(' ')
                }) {
                    index += 1;
                }
                script = words.get(index).cloned();
                parameters = index + 1;
                reads_input = false;
                break;
            }
            if text == "-s" || text == "-" {
                continue;
            }
            if !text.starts_with('-') {
                // A file; `/dev/stdin` and `<(…)` are not.
                reads_input = matches!(text, "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0");
                if let Some(text) = self.written_text(scope, text) {
                    script = Some(ResolvedWord::new(text));
                } else if let Some(source) = word.sources.last() {
                    script = super::output::known_output(&self.invocations, source.clone())
                        .map(ResolvedWord::new);
                }
                break;
            }
        }
        let mut child = scope.clone();
        let arguments = words.get(parameters..).unwrap_or_default().to_vec();
        child.via.push(started.name.clone());
        for (name, value) in &started.variables {
            Rc::make_mut(&mut child.variables).insert(name.clone(), vec![value.clone()]);
        }
        // `sh -n` only checks the syntax.
        if started.has_option("n", &["--noexec"]) {
            return self.emit(started);
        }
        let mut noted = started;
        noted.code = script.as_ref().map(|script| script.text.clone());
        self.emit(noted);
        if !Self::nesting_left(scope) || child.via.len() > MAX_WRAPPERS {
            self.is_incomplete = true;
            return;
        }
        match script {
            Some(script) => {
                if parameters > 0 {
                    let variables = Rc::make_mut(&mut child.variables);
                    for (index, word) in arguments.iter().enumerate().take(9) {
                        variables.insert(index.to_string(), vec![word.clone()]);
                    }
                    let all: Vec<_> = arguments.iter().skip(1).take(64).cloned().collect();
                    variables.insert("@".to_owned(), all.clone());
                    variables.insert("*".to_owned(), all);
                }
                self.run_text(&script.text, &mut child, input);
            }
            None if reads_input => {
                let known = input.text.as_deref().map(str::to_owned).or_else(|| {
                    super::output::partial_output(&self.invocations, input.from.clone())
                });
                if let Some(text) = known {
                    self.run_text(&text, &mut child, &StageInput::default());
                }
            }
            None => {}
        }
    }

    fn open_powershell(&mut self, started: Invocation, scope: &Scope) {
        let mut script = None;
        let texts: Vec<&str> = started.texts().collect();
        for (index, text) in texts.iter().enumerate() {
            let lower = text.to_ascii_lowercase();
            if lower.starts_with("-c") && "-command".starts_with(&lower) {
                script = Some(texts.get(index + 1..).unwrap_or_default().join(" "));
                break;
            }
            if !lower.starts_with('-') && index == 0 {
                script = Some(texts.join(" "));
                break;
            }
        }
        let script = script.or_else(|| started.input_text.clone());
        let via = started.name.clone();
        self.emit(started);
        if let Some(script) = script {
            powershell::run(self, &script, &child_of(scope, &via));
        }
    }

    fn open_cmd(&mut self, started: Invocation, scope: &Scope) {
        let texts: Vec<&str> = started.texts().collect();
        let at = texts
            .iter()
            .position(|text| text.eq_ignore_ascii_case("/c") || text.eq_ignore_ascii_case("/k"));
        let script = at.map(|at| texts.get(at + 1..).unwrap_or_default().join(" "));
        self.emit(started);
        if let Some(script) = script {
            windows_cmd::run(self, &script, &child_of(scope, "cmd"));
        }
    }
}

/// Images whose entry point is a program of that name.
const IMAGE_PROGRAMS: &[(&str, &str)] = &[
    ("aws-cli", "aws"),
    ("curl", "curl"),
    ("doctl", "doctl"),
    ("flyway", "flyway"),
    ("git", "git"),
    ("helm", "helm"),
    ("kubectl", "kubectl"),
    ("liquibase", "liquibase"),
    ("opentofu", "tofu"),
    ("rclone", "rclone"),
    ("terraform", "terraform"),
    ("terragrunt", "terragrunt"),
];

fn image_program(image: &str) -> Option<&'static str> {
    let name = image.rsplit('/').next().unwrap_or_default();
    let name = name.split([':', '@']).next().unwrap_or_default();
    IMAGE_PROGRAMS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, program)| *program)
}

/// Settings of git whose value is a command.
fn is_command_setting(key: &str) -> bool {
    const ENDS: &[&str] = &[
        ".askpass",
        ".clean",
        ".cmd",
        ".command",
        ".driver",
        ".editor",
        ".external",
        ".fsmonitor",
        ".gitproxy",
        ".helper",
        ".packobjectshook",
        ".pager",
        ".process",
        ".program",
        ".smudge",
        ".sshcommand",
        ".textconv",
    ];
    key.starts_with("pager.") || ENDS.iter().any(|end| key.ends_with(end))
}

/// Options whose value is a command, by program.
const COMMAND_OPTIONS: &[(&str, &[&str])] = &[
    (
        "git",
        &[
            "--upload-pack",
            "--receive-pack",
            "--open-files-in-pager",
            "--tree-filter",
            "--index-filter",
            "--env-filter",
            "--msg-filter",
            "--commit-filter",
            "--parent-filter",
            "--tag-name-filter",
            "--setup",
            "--extcmd",
        ],
    ),
    ("less", &["--pager"]),
    ("man", &["-P", "--pager"]),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("scp", &["-S", "-o"]),
    ("sftp", &["-S", "-o"]),
    ("sort", &["--compress-program"]),
    ("split", &["--filter"]),
    (
        "tar",
        &[
            "-I",
            "--use-compress-program",
            "--info-script",
            "--rsh-command",
            "-F",
        ],
    ),
    ("ssh", &["-o"]),
];

/// What follows a letter with a value in a cluster of options.
fn clustered_value<'t>(text: &'t str, options: &[&str]) -> Option<&'t str> {
    let cluster = text
        .strip_prefix('-')
        .filter(|cluster| !cluster.starts_with('-'))?;
    cluster.char_indices().find_map(|(at, letter)| {
        let is_option = options
            .iter()
            .any(|option| option.len() == 2 && option.ends_with(letter));
        is_option.then(|| cluster.get(at + letter.len_utf8()..).unwrap_or_default())
    })
}

/// The commands that options of a program name.
fn option_commands(started: &Invocation) -> Vec<String> {
    let Some((name, options)) = COMMAND_OPTIONS
        .iter()
        .find(|(name, _)| *name == started.name)
    else {
        return Vec::new();
    };
    let texts: Vec<&str> = started.texts().collect();
    let mut found: Vec<&str> = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        if let Some(attached) = clustered_value(text, options) {
            // `-ae 'command'`, `-voProxyCommand=command`.
            match attached {
                "" => found.extend(texts.get(index + 1)),
                attached => found.push(attached),
            }
        } else if options.contains(text) {
            found.extend(texts.get(index + 1));
        } else if let Some((option, value)) = text.split_once('=')
            && options.contains(&option)
        {
            found.push(value);
        }
    }
    let commands = found.into_iter().filter(|value| value.contains(' '));
    commands
        .filter_map(|value| match *name {
            // Of the settings of ssh only those that are commands.
            "ssh" | "scp" | "sftp" if value.contains('=') || *name == "ssh" => {
                let (setting, command) = value.split_once(['=', ' '])?;
                setting.ends_with("Command").then(|| command.to_owned())
            }
            _ => Some(value.to_owned()),
        })
        .take(4)
        .collect()
}

/// Programs whose `run` starts something of their own; what follows `--` is for it.
const RUNNERS_OF_OWN_PROGRAMS: &[&str] = &[
    "anyhook", "bazel", "cabal", "cargo", "dart", "deno", "dotnet", "dune", "flutter", "go",
    "gradle", "gradlew", "just", "lein", "mix", "nx", "pants", "sbt", "stack", "swift", "task",
    "turbo", "wasmtime", "zig",
];

/// The command of a program that is not known: `name exec … -- command`.
fn command_after_dashes(started: &Invocation) -> Option<Vec<ResolvedWord>> {
    let at = first_operand(&started.words, 1, &[]);
    let verb = started.words.get(at)?.text.as_str();
    if !matches!(verb, "exec" | "run" | "x")
        || RUNNERS_OF_OWN_PROGRAMS.contains(&started.name.as_str())
    {
        return None;
    }
    let rest = started.words.get(at + 1..)?;
    let dashes = rest.iter().position(|word| word.text == "--")?;
    rest.get(dashes + 1..)
        .filter(|rest| !rest.is_empty())
        .map(<[_]>::to_vec)
}

fn child_of(scope: &Scope, via: &str) -> Scope {
    let mut child = scope.clone();
    child.via.push(via.to_owned());
    child
}

fn remote_scope(scope: &Scope, place: InvocationPlace) -> Scope {
    let mut child = Scope::new(None);
    child.place = place;
    child.via.clone_from(&scope.via);
    child.scripts = scope.scripts;
    child.nesting = scope.nesting;
    child
}

fn find_prefix(started: &Invocation) -> Option<&'static Prefix> {
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

/// The value of an option `-c value`, `-cvalue`, `-lc value`, `--command value` or
/// `--command=value`.
fn option_value(words: &[ResolvedWord], letter: char, long: &[&str]) -> Option<String> {
    for (index, word) in words.iter().enumerate().skip(1) {
        let text = word.text.as_str();
        if let Some((name, value)) = text.split_once('=')
            && long.contains(&name)
        {
            return Some(value.to_owned());
        }
        let is_cluster = text.starts_with('-')
            && !text.starts_with("--")
            && text.ends_with(letter)
            && text.chars().skip(1).all(char::is_alphabetic);
        if is_cluster || long.contains(&text) {
            return words.get(index + 1).map(|word| word.text.clone());
        }
    }
    None
}

/// Whether `find` deletes by itself; the words of a command that it starts do not count.
fn has_delete_action(texts: &[String]) -> bool {
    let mut in_command = false;
    texts.iter().any(|text| match text.as_str() {
        "-exec" | "-execdir" | "-ok" | "-okdir" => {
            in_command = true;
            false
        }
        ";" | "+" => {
            in_command = false;
            false
        }
        "-delete" => !in_command,
        _ => false,
    })
}

/// Puts words in place of a mark, or at the end if there is no mark.
fn insert_fed(
    words: Vec<ResolvedWord>,
    fed: &[ResolvedWord],
    mark: Option<&str>,
) -> Vec<ResolvedWord> {
    let has_mark = mark.is_some_and(|mark| words.iter().any(|word| word.text.contains(mark)));
    let mut placed = Vec::with_capacity(words.len() + fed.len());
    let Some(mark) = mark.filter(|_| has_mark) else {
        placed.extend(words);
        if mark.is_none_or(|mark| mark == "{}") {
            placed.extend(fed.iter().cloned());
        }
        return placed;
    };
    for word in words {
        if !word.text.contains(mark) {
            placed.push(word);
            continue;
        }
        for value in fed.iter().take(16) {
            placed.push(ResolvedWord {
                text: word.text.replace(mark, &value.text),
                is_pattern: word.is_pattern || value.is_pattern,
                sources: value.sources.clone(),
                variables: value.variables.clone(),
            });
        }
    }
    placed
}
