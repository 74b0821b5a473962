//! `self`: the hooks themselves.

use std::cell::OnceCell;

use super::Objections;
use super::access::{Access, shell_files};
use super::own_switches;
use super::path_lists::patched_paths;
use crate::input::{FileUse, GuardInput};
use crate::paths::{glob_matches, is_same_name, is_within, normalize};
use crate::shell::{Invocation, RedirectKind, UNKNOWN, program_name, without_prose};

/// Commands of anyhook that only the user may give.
const USER_COMMANDS: [&str; 5] = ["uninstall", "trust", "untrust", "allow-once", "approve"];

/// Programs that give another one a terminal, or type into it.
const TERMINAL_PROGRAMS: [&str; 6] = ["expect", "screen", "script", "socat", "tmux", "unbuffer"];

/// With these the daemon takes a request for the user's.
const DAEMON_FILES: [&str; 2] = ["token", "daemon.sock"];

pub(crate) fn judge(input: &GuardInput<'_>, found: &mut Objections<'_>) {
    let protected = ProtectedFiles::new(input);
    for file in input.files() {
        if matches!(file.file_use, FileUse::Write | FileUse::Delete)
            && let Some(what) = protected.names(&file.path, file.file_use == FileUse::Delete, false)
        {
            found.deny(
                "files",
                &file.path,
                format!("this changes {what}; only the user may do that"),
            );
        }
    }
    for file in input.files() {
        if protected.is_daemon_file(&file.path) {
            found.deny("questions", &file.path, ANSWERS_FOR_USER);
        }
    }
    own_switches::judge(input, found);
    for analysis in input.analyses() {
        for (index, invocation) in analysis.invocations.iter().enumerate() {
            protected.judge_answers(invocation, found);
            protected.judge(invocation, found);
            let deletes = invocation.name == "find"
                && invocation.has_word("-delete")
                && names_manifest(invocation);
            // `find . -name hooks.yaml | xargs sed -i …`.
            let changes_found = invocation.via.iter().any(|via| via == "xargs")
                && (matches!(
                    invocation.name.as_str(),
                    "rm" | "mv" | "shred" | "truncate" | "tee" | "chmod" | "unlink"
                ) || matches!(invocation.name.as_str(), "sed" | "perl" | "yq")
                    && invocation.has_option("i", &["--in-place"]))
                && analysis
                    .upstream([index])
                    .iter()
                    .any(|source| source.name == "find" && names_manifest(source));
            // `find . -name hooks.yaml -exec rm {} \;`.
            let changes_each = invocation.name == "find"
                && names_manifest(invocation)
                && invocation.words.windows(2).any(|pair| {
                    matches!(pair, [option, program] if matches!(option.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir")
                        && matches!(program_name(&program.text).as_str(), "rm" | "mv" | "shred" | "truncate" | "unlink" | "chmod"))
                });
            if deletes || changes_found || changes_each {
                found.deny(
                    "files",
                    invocation.shown(),
                    "this changes anyhook's manifests; only the user may do that",
                );
            }
            // Programs that find a process or a program by its name.
            let finders: &[&str] = match invocation.name.as_str() {
                "kill" | "Stop-Process" | "spps" => {
                    &["pgrep", "pidof", "ps", "grep", "Get-Process", "gps"]
                }
                "rm" | "mv" | "chmod" | "unlink" | "shred" => {
                    &["which", "command", "type", "whereis"]
                }
                _ => &[],
            };
            let is_fed = !invocation.input_from.is_empty()
                || invocation.words.iter().any(|word| !word.sources.is_empty());
            let ends = !finders.is_empty()
                && is_fed
                && analysis.upstream([index]).iter().any(|source| {
                    finders.contains(&source.name.as_str())
                        && source.texts().any(|text| text.contains("anyhook"))
                });
            if ends {
                found.deny(
                    "program",
                    invocation.shown(),
                    "this ends or removes anyhook",
                );
            }
            if found.is_settled() {
                return;
            }
        }
    }
    found.ask_if_incomplete(input);
}

/// Whether `find` looks for manifests.
fn names_manifest(find: &Invocation) -> bool {
    find.texts()
        .any(|text| text.contains("anyhook") || text == "hooks.yaml")
}

const ANSWERS_FOR_USER: &str =
    "with this a question of the hooks could be answered; only the user may do that";

/// The lists are made when the first path is compared: most calls name none, and all
/// paths of all agents take as long as the other guards together.
struct ProtectedFiles<'i> {
    /// Absolute, with patterns.
    agent_files: OnceCell<Vec<String>>,
    /// Absolute.
    folders: OnceCell<Vec<String>>,
    input: &'i GuardInput<'i>,
}

impl<'i> ProtectedFiles<'i> {
    fn new(input: &'i GuardInput<'i>) -> Self {
        Self {
            agent_files: OnceCell::new(),
            folders: OnceCell::new(),
            input,
        }
    }

    fn agent_files(&self) -> &[String] {
        self.agent_files.get_or_init(|| {
            let input = self.input;
            let mut agent_files = Vec::new();
            for file in &input.context.agent_files {
                if file.starts_with('/') {
                    agent_files.push(file.clone());
                    continue;
                }
                let relative = file.trim_start_matches("~/");
                for base in [input.project.as_deref(), input.home.as_deref()]
                    .into_iter()
                    .flatten()
                {
                    agent_files.push(format!("{base}/{relative}"));
                }
            }
            agent_files
        })
    }

    fn folders(&self) -> &[String] {
        self.folders.get_or_init(|| {
            let own = self.input.context.own_folders.iter();
            let mut folders: Vec<String> = own
                .filter_map(|folder| normalize(None, &folder.to_string_lossy()))
                .collect();
            if let Some(home) = &self.input.home {
                folders.push(format!("{home}/.config/anyhook"));
                folders.push(format!("{home}/.local/state/anyhook"));
                folders.push(format!("{home}/.local/share/anyhook"));
                folders.push(format!("{home}/Library/Application Support/anyhook"));
            }
            folders.push("/etc/anyhook".to_owned());
            folders.push("/Library/Application Support/anyhook".to_owned());
            folders.push("C:/ProgramData/anyhook".to_owned());
            folders
        })
    }

    fn is_daemon_file(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or_default();
        DAEMON_FILES.contains(&name) && self.folders().iter().any(|folder| is_within(path, folder))
    }

    /// Requests to the daemon in the user's place, and a terminal for commands that ask for
    /// the user's.
    fn judge_answers(&self, invocation: &Invocation, found: &mut Objections<'_>) {
        let is_daemon_file = |text: &str| {
            // `socat - UNIX-CONNECT:daemon.sock`.
            let mut paths = std::iter::once(text).chain(text.split_once(':').map(|it| it.1));
            paths.any(|text| {
                let path = normalize(invocation.cwd.as_deref(), text);
                path.is_some_and(|path| self.is_daemon_file(&path))
            })
        };
        let reads_file = shell_files(invocation).iter().any(|file| {
            file.path
                .as_deref()
                .is_some_and(|path| self.is_daemon_file(path))
        });
        let is_request = |text: &str| {
            let mut local = ["localhost", "127.0.0.1", "[::1]", "0.0.0.0"].into_iter();
            text.contains("/approvals/") && local.any(|host| text.contains(host))
        };
        // An address is one word; in code it is a text of its own. Prose has blanks.
        let is_request = |text: &str| {
            is_request(text)
                && (!text.trim().contains([' ', '\n'])
                    || invocation.code.as_deref() == Some(text) && is_request(&without_prose(text)))
        };
        let uses_terminal = || {
            let line: Vec<&str> = invocation.texts().collect();
            let line = line.join(" ");
            let mut words = line
                .split(|c: char| c.is_whitespace() || "'\",:;=".contains(c))
                .skip_while(|word| program_name(word) != "anyhook")
                .skip(1);
            words.any(|word| USER_COMMANDS.contains(&word))
        };
        let mut texts = invocation.texts();
        if reads_file
            || texts.any(|text| is_request(text) || is_daemon_file(text))
            || (TERMINAL_PROGRAMS.contains(&invocation.name.as_str()) && uses_terminal())
        {
            found.deny("questions", invocation.shown(), ANSWERS_FOR_USER);
        }
    }

    /// What a protected path is; for a tree also if the path is above one.
    fn names(&self, path: &str, is_tree: bool, is_pattern: bool) -> Option<&'static str> {
        let parts: Vec<&str> = path.split('/').collect();
        let file_name = parts.last().copied().unwrap_or_default();
        let matches_name = |part: &str, name: &str| {
            is_same_name(part, name) || part.contains('~') && glob_matches(name, part)
        };
        let matches_part = |name: &str| {
            parts.iter().any(|part| {
                matches_name(part, name)
                    || is_pattern
                        && part.contains(['*', '?', '['])
                        && *part != "*"
                        && glob_matches(part, name)
            })
        };
        let is_copy = ["/tmp/", "/var/tmp/"].iter().any(|folder| {
            path.starts_with(folder)
                && !self
                    .input
                    .project
                    .as_deref()
                    .is_some_and(|project| project.starts_with(folder))
        });
        if matches_part(".anyhook") && !is_copy || matches_name(file_name, ".openhook.json") {
            return Some("anyhook's manifest or policy");
        }
        if self.folders().iter().any(|folder| is_within(path, folder)) {
            return Some("anyhook's settings or state");
        }
        let git = parts.iter().position(|part| matches_name(part, ".git"));
        let git_hooks = git.and_then(|at| parts.get(at + 1));
        if git_hooks.is_some_and(|part| is_same_name(part, "hooks")) {
            return Some("a git hook");
        }
        if is_tree && matches_name(file_name, ".husky") {
            return Some("a git hook");
        }
        if parts
            .windows(2)
            .any(|pair| matches!(pair, [folder, ..] if matches_name(folder, ".husky")))
            && !matches_name(file_name, ".husky")
            && !file_name.starts_with("README")
        {
            return Some("a git hook");
        }
        if self.agent_files().iter().any(|file| {
            is_same_name(file, path)
                || file.contains('*') && glob_matches(file, path)
                || is_pattern && glob_matches(path, file)
        }) {
            return Some("a file in which an agent keeps its hooks");
        }
        if is_tree {
            let home = self.input.home.as_deref().unwrap_or("/");
            let project = self.input.project.as_deref().unwrap_or("/");
            let is_small = path != home
                && path != project
                && !is_within(home, path)
                && !is_within(project, path);
            let is_above = |file: &String| {
                is_within(
                    file.split('*')
                        .next()
                        .unwrap_or_default()
                        .trim_end_matches('/'),
                    path,
                )
            };
            if is_small
                && (self.agent_files().iter().any(is_above) || self.folders().iter().any(is_above))
            {
                return Some("a folder with the hooks of an agent");
            }
        }
        None
    }

    fn judge(&self, invocation: &Invocation, found: &mut Objections<'_>) {
        let shown = || invocation.shown();
        for file in shell_files(invocation) {
            if matches!(file.access, Access::Read | Access::Search) {
                continue;
            }
            if matches!(invocation.name.as_str(), "vim" | "vi" | "nvim" | "view")
                && invocation.has_option("R", &[])
            {
                continue;
            }
            let Some(path) = &file.path else {
                continue;
            };
            let known = path
                .split(UNKNOWN)
                .next()
                .unwrap_or_default()
                .trim_end_matches('/');
            let is_tree =
                file.access == Access::Delete || invocation.has_option("R", &["--recursive"]);
            // Folders that only `find` knows are left out.
            let is_found = !file.word.is_pattern && invocation.via.iter().any(|via| via == "find");
            let without_unknown = if is_found {
                path.replace(&format!("/{UNKNOWN}"), "")
            } else {
                known.to_owned()
            };
            let what = [known, &without_unknown]
                .into_iter()
                .find_map(|path| self.names(path, is_tree, file.word.is_pattern));
            if let Some(what) = what {
                found.deny(
                    "files",
                    shown(),
                    format!("this changes {what}; only the user may do that"),
                );
            }
        }
        for path in patched_paths(invocation) {
            if let Some(path) = normalize(invocation.cwd.as_deref(), &path)
                && let Some(what) = self.names(&path, false, false)
            {
                found.deny(
                    "files",
                    &path,
                    format!("this changes {what}; only the user may do that"),
                );
            }
        }
        self.judge_commands(invocation, found);
        Self::judge_variables(invocation, found);
    }

    fn judge_commands(&self, invocation: &Invocation, found: &mut Objections<'_>) {
        let shown = || invocation.shown();
        let texts: Vec<&str> = invocation.texts().collect();
        let lower = || texts.iter().map(|text| text.to_ascii_lowercase());
        let deny = |found: &mut Objections<'_>| {
            found.deny(
                "commands",
                shown(),
                "this weakens or switches off the hooks; only the user may do that",
            );
        };
        match invocation.name.as_str() {
            "anyhook" => {
                let verb = texts
                    .iter()
                    .find(|text| !text.starts_with('-'))
                    .copied()
                    .unwrap_or_default();
                let is_help = texts
                    .iter()
                    .any(|text| matches!(*text, "--help" | "-h" | "--dry-run"));
                let is_list = texts.contains(&"--list");
                let weakens = matches!(
                    verb,
                    "uninstall"
                        | "trust"
                        | "untrust"
                        | "allow-once"
                        | "approve"
                        | "pause"
                        | "install"
                        | "init"
                );
                if weakens && !is_help && !is_list && !(matches!(verb, "install" | "init")) {
                    deny(found);
                }
                if verb == "doctor" && texts.contains(&"--fix") {
                    found.ask_user(
                        "commands",
                        shown(),
                        "this changes files in which agents keep their hooks",
                    );
                }
            }
            "cargo" | "npm" | "brew" | "pip" | "pip3" | "apt" | "apt-get" | "pipx" | "dnf"
            | "pacman" | "scoop" | "winget" | "yarn" | "pnpm" | "dpkg" | "rpm" | "yum" | "apk"
            | "snap" | "flatpak" | "zypper" | "emerge" | "port" | "uv" | "nix" | "nix-env"
            | "choco" | "bun" | "mise" | "asdf" | "paru" | "yay" => {
                let removes = lower().any(|text| {
                    matches!(
                        text.as_str(),
                        "uninstall"
                            | "remove"
                            | "purge"
                            | "rm"
                            | "un"
                            | "unlink"
                            | "del"
                            | "zap"
                            | "-c"
                            | "--unmerge"
                            | "-r"
                            | "-rs"
                            | "autoremove"
                            | "-e"
                            | "erase"
                    )
                });
                if removes
                    && texts
                        .iter()
                        .any(|text| *text == "anyhook" || text.starts_with("@anyhook/"))
                {
                    deny(found);
                }
            }
            // Settings on the command line of an agent.
            _ if texts.windows(2).any(
                |pair| matches!(pair, ["--settings", value] if value.contains("disableAllHooks")),
            ) =>
            {
                deny(found);
            }
            "husky" | "lefthook" | "pre-commit" if texts.first() == Some(&"uninstall") => {
                found.deny("git-hooks", shown(), "this removes the project's git hooks");
            }
            "pkill" | "killall" | "taskkill" | "Stop-Process" | "skill" | "killall5"
                if texts.iter().any(|text| text.contains("anyhook")) =>
            {
                deny(found);
            }
            "systemctl" | "launchctl" | "service"
                if texts.iter().any(|text| text.contains("anyhook"))
                    && lower().any(|text| {
                        matches!(
                            text.as_str(),
                            "stop" | "disable" | "mask" | "kill" | "unload" | "bootout" | "remove"
                        )
                    }) =>
            {
                deny(found);
            }
            _ if invocation.redirects.iter().any(|redirect| {
                redirect.target.text.ends_with("/bin/anyhook")
                    && !matches!(
                        redirect.kind,
                        RedirectKind::Input | RedirectKind::Text | RedirectKind::Duplicate
                    )
            }) =>
            {
                deny(found);
            }
            "Remove-Item" | "ri" | "del"
                if invocation.words.iter().any(|word| {
                    word.text.contains("Get-Command anyhook") || word.text.contains("gcm anyhook")
                }) =>
            {
                deny(found);
            }
            "rm" | "mv" | "chmod" | "unlink" | "cp" | "ln" | "install"
                if texts.iter().any(|text| {
                    text == &"anyhook"
                        && invocation.words.iter().any(|word| !word.sources.is_empty())
                        || text.ends_with("/bin/anyhook")
                        || text.ends_with("/anyhook.exe")
                }) =>
            {
                deny(found);
            }
            "git" => {
                let at = texts.iter().position(|text| *text == "config");
                let sets_hooks =
                    |text: &str| text.to_ascii_lowercase().starts_with("core.hookspath");
                if let Some(at) = at {
                    let reads = texts.iter().any(|text| {
                        matches!(
                            *text,
                            "--get" | "--get-all" | "--list" | "-l" | "get" | "--get-regexp"
                        )
                    });
                    let key = texts.iter().skip(at + 1).position(|text| sets_hooks(text));
                    let has_value = key.is_some_and(|key| texts.len() > at + 2 + key)
                        || texts
                            .iter()
                            .any(|text| matches!(*text, "--unset" | "--unset-all" | "unset"));
                    if key.is_some() && has_value && !reads {
                        found.deny("git-hooks", shown(), "this changes which git hooks run");
                    }
                }
                if texts
                    .windows(2)
                    .any(|pair| matches!(pair, ["-c", value] if sets_hooks(value)))
                {
                    found.deny("git-hooks", shown(), "this changes which git hooks run");
                }
                let verb = texts
                    .iter()
                    .find(|text| !text.starts_with('-'))
                    .copied()
                    .unwrap_or_default();
                if matches!(
                    verb,
                    "stash"
                        | "checkout"
                        | "restore"
                        | "rm"
                        | "mv"
                        | "clean"
                        | "reset"
                        | "update-index"
                ) {
                    for operand in invocation.operands() {
                        if let Some(path) = normalize(invocation.cwd.as_deref(), &operand.text)
                            && let Some(what) = self.names(&path, true, operand.is_pattern)
                        {
                            found.deny(
                                "files",
                                shown(),
                                format!("this changes {what}; only the user may do that"),
                            );
                        }
                    }
                }
            }
            _ => {}
        }
    }

    fn judge_variables(invocation: &Invocation, found: &mut Objections<'_>) {
        let exported = invocation
            .operands()
            .filter_map(|word| word.text.split_once('='))
            .filter(|_| {
                matches!(
                    invocation.name.as_str(),
                    "export"
                        | "declare"
                        | "typeset"
                        | "readonly"
                        | "setx"
                        | "set"
                        | "local"
                        | "launchctl"
                )
            });
        let assigned = invocation
            .variables
            .iter()
            .map(|(name, value)| (name.as_str(), value.text.as_str()));
        let printed = (invocation.name == "setx" || invocation.name == "launchctl")
            .then(|| {
                invocation
                    .texts()
                    .find(|text| text.to_ascii_lowercase().starts_with("anyhook"))
            })
            .flatten()
            .map(|name| (name, ""));
        for (name, value) in assigned.chain(exported).chain(printed) {
            let weakens = anyhook_switch(name, value)
                || name.starts_with("GIT_CONFIG_KEY_")
                    && value.eq_ignore_ascii_case("core.hooksPath");
            if weakens {
                found.deny(
                    "variables",
                    invocation.shown(),
                    format!("`{name}` switches the hooks off or redirects them"),
                );
            }
        }
    }
}

/// Whether a variable of anyhook weakens the hooks. Every one that is not about
/// output might.
pub(super) fn anyhook_switch(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    match name.strip_prefix("anyhook") {
        Some("") => value != "1",
        Some(rest) => {
            rest.starts_with('_') && !matches!(rest, "_log" | "_debug" | "_color" | "_no_color")
        }
        None => false,
    }
}
