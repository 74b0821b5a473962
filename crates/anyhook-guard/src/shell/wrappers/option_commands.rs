//! Options and arguments of other programs that are a command or a script.

use super::{first_operand, option_value};
use crate::shell::evaluate::{Evaluator, Scope, StageInput};
use crate::shell::invocation::Invocation;

impl Evaluator<'_> {
    /// Programs whose option `-c` takes a script.
    pub(super) fn open_option_script(
        &mut self,
        started: Invocation,
        scope: &mut Scope,
        input: &StageInput,
    ) {
        let name = started.name.clone();
        // What follows the lock of `flock` is a command with options of its own.
        let script = match name.as_str() {
            "flock" => None,
            _ => option_value(&started.words, 'c', &["--command", "--session-command"]),
        };
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
                if rest
                    .first()
                    .is_some_and(|word| matches!(word.text.as_str(), "-c" | "--command"))
                {
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
    pub(super) fn open_text_arguments(
        &mut self,
        started: Invocation,
        scope: &mut Scope,
        input: &StageInput,
    ) {
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
                    .or_else(|| option_value(&started.words, 'x', &[]))
                    .or_else(|| {
                        // `vagrant ssh -- command`.
                        let dashes = started.words.iter().position(|word| word.text == "--")?;
                        let rest = started.words.get(dashes + 1..)?;
                        let texts: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
                        Some(texts.join(" "))
                    });
                if let Some(script) = named {
                    self.run_text(&script, &mut child, input);
                }
            }
            _ => {
                // Arguments that look like commands.
                let scripts: Vec<String> = started
                    .arguments()
                    .iter()
                    .filter(|word| word.text.contains(' ') || name == "hyperfine")
                    .map(|word| word.text.clone())
                    .collect();
                for script in scripts.iter().take(16) {
                    self.run_text(script, &mut child.clone(), input);
                }
            }
        }
    }
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
    ("cargo", &["-s", "--shell"]),
    ("rg", &["--pre"]),
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
pub(super) fn option_commands(started: &Invocation) -> Vec<String> {
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
    found
        .into_iter()
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
