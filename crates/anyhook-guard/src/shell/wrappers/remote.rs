//! What starts on other machines and in containers: `ssh`, `docker`, `ansible`.

use super::{first_operand, option_value};
use crate::paths::normalize;
use crate::shell::evaluate::{Evaluator, Scope, StageInput};
use crate::shell::invocation::{Invocation, InvocationPlace, ResolvedWord};

impl Evaluator<'_> {
    pub(super) fn open_ssh(&mut self, started: Invocation, scope: &mut Scope, input: &StageInput) {
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

    pub(super) fn open_container(
        &mut self,
        started: Invocation,
        scope: &mut Scope,
        input: &StageInput,
    ) {
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
        if !is_run && !matches!(verb, "exec" | "rsh" | "debug" | "attach") {
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
                .all(|word| !word.text.contains(' '))
                && rest.first().is_some_and(|word| word.text.starts_with('-'));
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

    /// `gcloud compute ssh vm --command=…`, `fly ssh console -C …`, `az vm run-command …`:
    /// shells that a client opens on a machine of its provider.
    pub(super) fn open_provider_shell(&mut self, started: Invocation, scope: &Scope) {
        let script = option_value(
            &started.words,
            'C',
            &["--command", "--cmd", "--scripts", "--ssh-command", "-c"],
        );
        let mut child = remote_scope(scope, InvocationPlace::Remote);
        child.via.push(started.name.clone());
        let dashes = started.words.iter().position(|word| word.text == "--");
        let rest = dashes.and_then(|at| started.words.get(at + 1..));
        let rest: Vec<&str> = rest
            .unwrap_or_default()
            .iter()
            .map(|word| word.text.as_str())
            .collect();
        let script = script.unwrap_or_else(|| rest.join(" "));
        self.emit(started);
        if !script.is_empty() {
            self.run_text(&script, &mut child, &StageInput::default());
        }
    }

    /// `pdsh -w HOSTS command`, `salt HOSTS cmd.run 'command'`, `adb shell command`.
    pub(super) fn open_many_machines(&mut self, started: Invocation, scope: &Scope) {
        const VALUES: &[&str] = &[
            "-h", "-H", "-l", "-p", "-t", "-o", "-w", "-x", "-u", "-f", "-g", "-m", "-s", "-c",
        ];
        let named =
            option_value(&started.words, 'c', &["--command"]).filter(|_| started.name == "mussh");
        let at = first_operand(&started.words, 1, VALUES);
        let skipped = match started.name.as_str() {
            "salt" => 2,
            "adb" | "rsh" => 1,
            _ => 0,
        };
        let words = started.words.get(at + skipped..).unwrap_or_default();
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let script = named.unwrap_or_else(|| texts.join(" "));
        let mut child = remote_scope(scope, InvocationPlace::Remote);
        child.via.push(started.name.clone());
        self.emit(started);
        self.run_text(&script, &mut child, &StageInput::default());
    }

    /// `ansible HOSTS -m shell -a 'command'`.
    pub(super) fn open_ansible(&mut self, started: Invocation, scope: &Scope) {
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

fn remote_scope(scope: &Scope, place: InvocationPlace) -> Scope {
    let mut child = Scope::new(None);
    child.place = place;
    child.via.clone_from(&scope.via);
    child.scripts = scope.scripts;
    child.nesting = scope.nesting;
    child
}
