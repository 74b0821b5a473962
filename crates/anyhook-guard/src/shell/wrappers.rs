//! Programs that start other programs: what they start is opened.
//!
//! Owns the choice by program; each family of programs has its own file.

mod fed_words;
mod file_finders;
mod option_commands;
mod prefixes;
mod project_tools;
mod remote;
mod shells;
mod unknown_launchers;

use super::code;
use super::evaluate::{Evaluator, MAX_WRAPPERS, Scope, StageInput};
use super::invocation::{Invocation, InvocationPlace, ResolvedWord};
use option_commands::option_commands;
use prefixes::find_prefix;
use unknown_launchers::launched_command;

pub(crate) use shells::{SHELLS, is_encoded_command};

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

impl Evaluator<'_> {
    /// Notes a program, and opens it if it starts others.
    pub(super) fn start_program(
        &mut self,
        mut started: Invocation,
        scope: &mut Scope,
        input: &StageInput,
    ) {
        name_open_files(&mut started, scope);
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
            "devcontainer" | "limactl" if launched_command(&started).is_some() => {
                let rest = launched_command(&started).unwrap_or_default();
                self.emit(started.clone());
                self.start_inner(rest, started, &mut scope.clone(), input, Some(&name));
            }
            "nix" if nix_program(&started).is_some() => {
                let rest = nix_program(&started).unwrap_or_default();
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
                if let Some(launched) = launched_command(&started) {
                    // Behind options with several values.
                    let outer = started.clone();
                    self.start_inner(launched, outer, &mut child.clone(), input, Some(&name));
                }
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
                let file = started
                    .words
                    .windows(2)
                    .find(|pair| pair.first().is_some_and(|word| word.text == "-f"))
                    .and_then(|pair| pair.get(1))
                    .and_then(|file| self.file_text(file, scope));
                self.emit(started);
                if let Some(text) = file.or_else(|| input.text.as_deref().map(str::to_owned)) {
                    self.run_child_text(&text, scope, &StageInput::default());
                }
            }
            "gcloud" | "fly" | "flyctl" | "az" | "aws" | "doctl" | "coder" | "gh" | "tsh"
            | "eb" | "multipass" | "limactl" | "colima" | "teleport"
                if started.texts().take(3).any(|text| {
                    matches!(
                        text,
                        "ssh"
                            | "run-command"
                            | "ssm"
                            | "execute-command"
                            | "shell"
                            | "exec"
                            | "codespace"
                    )
                }) =>
            {
                self.open_provider_shell(started, scope);
            }
            "pssh" | "parallel-ssh" | "pdsh" | "clush" | "dsh" | "mussh" | "fab" | "salt"
            | "adb" | "rsh" | "cssh" | "knife" => {
                self.open_many_machines(started, scope);
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
                if let Some(rest) = launched_command(&started) {
                    let outer = started.clone();
                    self.start_inner(rest, outer, &mut scope.clone(), input, Some(&name));
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
}

/// `bash /dev/fd/3` reads what `exec 3< …` has opened.
fn name_open_files(started: &mut Invocation, scope: &Scope) {
    if scope.descriptors.is_empty() {
        return;
    }
    for word in started.words.iter_mut().skip(1) {
        let number = ["/dev/fd/", "/proc/self/fd/"]
            .into_iter()
            .find_map(|folder| word.text.strip_prefix(folder));
        let opened = number.and_then(|number| {
            let mut opened = scope.descriptors.iter().rev();
            opened.find(|(descriptor, _)| descriptor.as_str() == number)
        });
        if let Some((_, opened)) = opened {
            *word = opened.target.clone();
        }
    }
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

/// What `nix run nixpkgs#git -- …` starts.
fn nix_program(started: &Invocation) -> Option<Vec<ResolvedWord>> {
    let package = started.words.get(2)?;
    let (_, program) = package.text.rsplit_once('#')?;
    let is_run = started.texts().next() == Some("run");
    let dashes = started.words.iter().position(|word| word.text == "--")?;
    let arguments = started.words.get(dashes + 1..)?;
    let words = std::iter::once(ResolvedWord::new(program)).chain(arguments.iter().cloned());
    is_run.then(|| words.collect())
}

fn child_of(scope: &Scope, via: &str) -> Scope {
    let mut child = scope.clone();
    child.via.push(via.to_owned());
    child
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
