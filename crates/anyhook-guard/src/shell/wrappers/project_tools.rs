//! Tools of a project that start programs: package managers, `make`, `patch`, `git`.

use super::first_operand;
use crate::shell::code;
use crate::shell::evaluate::{Evaluator, Scope, StageInput};
use crate::shell::invocation::{Invocation, ResolvedWord};

/// Options of package managers before their command that take the next word.
pub(super) const PACKAGE_MANAGER_VALUES: &[&str] = &[
    "--prefix",
    "-C",
    "--dir",
    "--cwd",
    "--filter",
    "-F",
    "-w",
    "--workspace",
];

impl Evaluator<'_> {
    /// `yarn prisma …`: a program of a package, unless it is a command of the manager.
    pub(super) fn open_package_runner(
        &mut self,
        started: Invocation,
        scope: &mut Scope,
        input: &StageInput,
    ) {
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

    pub(super) fn open_make(&mut self, started: Invocation, scope: &Scope, input: &StageInput) {
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
                            crate::shell::output::known_output(&self.invocations, source.clone())
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
    pub(super) fn open_patch(&mut self, started: Invocation, scope: &Scope, input: &StageInput) {
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

    pub(super) fn open_git(&mut self, started: Invocation, scope: &mut Scope, input: &StageInput) {
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
                    // A setting that names a program.
                    let keys = words.windows(2).skip(index);
                    scripts.extend(keys.filter_map(|pair| match pair {
                        [key, value] if is_command_setting(&key.to_ascii_lowercase()) => {
                            Some(value.trim_start_matches('!').to_owned())
                        }
                        _ => None,
                    }));
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
                "-x" | "--exec"
                    if words
                        .first()
                        .is_some_and(|first| matches!(first.as_str(), "rebase" | "difftool")) =>
                {
                    scripts.extend(next.cloned());
                }
                _ => {
                    let verb = words.first().map_or("", String::as_str);
                    let script = match verb {
                        "rebase" => word.strip_prefix("--exec="),
                        "grep" => word.strip_prefix("-O"),
                        _ => None,
                    };
                    scripts.extend(
                        script
                            .filter(|script| !script.is_empty())
                            .map(str::to_owned),
                    );
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
