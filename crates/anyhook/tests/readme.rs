//! What README and docs show really works: the first path with what it prints, the
//! commands of the tour, and every other command at least parses.
#![cfg(unix)] // the commands are lines for a POSIX shell
#![cfg(test)]

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use anyhook_testkit::Golden;
use serde_json::{Value, json};

fn root() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}

/// A developer's machine: a clean home, three agents, and the programs of the hooks.
struct Developer {
    scratch: tempfile::TempDir,
}

/// Stubs: the agents print their version, the others note that they ran.
const PROGRAMS: [(&str, &str); 5] = [
    ("claude", "echo '2.1.9 (Claude Code)'"),
    ("codex", "echo 'codex-cli 0.144.3'"),
    ("cursor-agent", "echo 2026.07.09-a3815c0"),
    ("prettier", "echo \"prettier $*\" >>\"$HOME/ran\""),
    ("notify-send", "echo \"notify-send $*\" >>\"$HOME/ran\""),
];

impl Developer {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let developer = Self { scratch };
        for folder in ["home/.local/bin", "home/project"] {
            fs::create_dir_all(developer.path(folder)).unwrap();
        }
        let bin = developer.path("home/.local/bin");
        for (name, line) in PROGRAMS {
            let path = bin.join(name);
            fs::write(&path, format!("#!/bin/sh\n{line}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::copy(env!("CARGO_BIN_EXE_anyhook"), bin.join("anyhook")).unwrap();
        let copied = Command::new("cp")
            .arg("-R")
            .arg(root().join("examples/three-hooks/.claude"))
            .arg(developer.project())
            .status();
        assert!(copied.unwrap().success());
        let git = Command::new("git")
            .args(["init", "-q"])
            .arg(developer.project())
            .status();
        assert!(git.unwrap().success());
        developer
    }

    fn path(&self, path: &str) -> PathBuf {
        fs::canonicalize(self.scratch.path()).unwrap().join(path)
    }

    fn home(&self) -> PathBuf {
        self.path("home")
    }

    fn project(&self) -> PathBuf {
        self.path("home/project")
    }

    /// Runs a line as it is written, with an environment of its own.
    fn run(&self, line: &str, stdin: &str) -> Output {
        fs::write(self.path("stdin"), stdin).unwrap();
        Command::new("sh")
            .args(["-c", line])
            .stdin(fs::File::open(self.path("stdin")).unwrap())
            .current_dir(self.project())
            .env_clear()
            .env("HOME", self.home())
            .env(
                "PATH",
                format!(
                    "{}:{}",
                    self.path("home/.local/bin").display(),
                    env::var("PATH").unwrap()
                ),
            )
            .env("ANYHOOK_MANAGED_DIR", self.path("managed"))
            .output()
            .unwrap()
    }

    /// What a command printed, with the paths of this machine as those of a developer.
    fn shown(&self, output: &Output) -> String {
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        text.replace(self.home().to_str().unwrap(), "~")
    }

    fn snapshot(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        let mut folders = vec![
            self.project(),
            self.path("home/.codex"),
            self.path("home/.cursor"),
            self.path("home/.claude"),
        ];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.ends_with(".anyhook") || path.ends_with(".git") {
                } else if path.is_dir() {
                    folders.push(path);
                } else {
                    files.push((path.clone(), fs::read(&path).unwrap()));
                }
            }
        }
        files.sort();
        files
    }

    /// Fires what an agent's file says for an event, as the agent would.
    fn fire(&self, agent: &str, file: &str, event: &str, payload: &Value) -> Output {
        let text = fs::read_to_string(self.project().join(file)).unwrap();
        let config: Value = serde_json::from_str(&text).unwrap();
        let entries = config["hooks"][event].as_array();
        let entries = entries.unwrap_or_else(|| panic!("{agent} has no {event}: {text}"));
        assert_eq!(entries.len(), 1, "{agent} {event}: {text}");
        let entry = &entries[0];
        let handler = entry["hooks"].get(0).unwrap_or(entry);
        self.run(handler["command"].as_str().unwrap(), &payload.to_string())
    }

    fn take_ran(&self) -> String {
        let path = self.path("home/ran");
        let text = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(path);
        text
    }
}

/// The text between a fence and the next one.
fn fenced<'a>(page: &'a str, fence: &str) -> &'a str {
    let (_, rest) = page.split_once(fence).unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn the_first_path() {
    let path = root().join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let block = fenced(&readme, "```console\n");
    let commands = block.lines().filter_map(|line| line.strip_prefix("$ "));
    let commands: Vec<&str> = commands.collect();
    assert_eq!(commands.len(), 4);
    let developer = Developer::new();
    let before = developer.snapshot();
    let mut printed = String::new();
    for command in &commands {
        let output = developer.run(command, "");
        assert!(
            output.status.success(),
            "{command}: {}{}",
            developer.shown(&output),
            String::from_utf8_lossy(&output.stderr)
        );
        let _ = writeln!(
            printed,
            "$ {command}\n{}\n",
            developer.shown(&output).trim_end()
        );
    }
    let printed = printed.trim_end().to_owned() + "\n";
    let mut golden = Golden::default();
    golden
        .text(path.clone(), &readme.replace(block, &printed))
        .unwrap();
    golden.end();

    // The guard holds in all three, and the formatter and the notifier run once.
    let call = |tool: &str, key: &str, event: &str, input: Value| {
        json!({"hook_event_name": event, "session_id": "s", "cwd": developer.project(), key: tool, "tool_input": input,
            "tool_use_id": format!("{event}-{tool}-{input}"), "permission_mode": "default", "transcript_path": "/t", "conversation_id": "c", "generation_id": "g", "workspace_roots": [developer.project()]})
    };
    for (agent, file, event, tool) in [
        ("claude-code", ".claude/settings.json", "PreToolUse", "Bash"),
        ("codex", ".codex/hooks.json", "PreToolUse", "Bash"),
        ("cursor", ".cursor/hooks.json", "preToolUse", "Shell"),
    ] {
        for (command, denied) in [("rm -rf /", true), ("ls", false)] {
            let payload = call(tool, "tool_name", event, json!({"command": command}));
            let output = developer.fire(agent, file, event, &payload);
            let answer = format!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
            assert_eq!(
                answer.contains("no recursive deletes"),
                denied,
                "{agent} {command}: {answer}"
            );
        }
        assert_eq!(developer.take_ran(), "", "{agent}");
        let (event, tool) = match agent {
            "cursor" => ("postToolUse", "Write"),
            "codex" => ("PostToolUse", "apply_patch"),
            _ => ("PostToolUse", "Write"),
        };
        let input = match agent {
            "codex" => json!({"command": "*** Begin Patch\n*** Add File: a.js\n+x\n*** End Patch"}),
            "cursor" => {
                json!({"file_path": "a.js", "content": "x", "contents": "x", "path": "a.js"})
            }
            _ => json!({"file_path": "a.js", "content": "x"}),
        };
        let mut payload = call(tool, "tool_name", event, input);
        payload["tool_response"] = json!({"success": true});
        payload["tool_output"] = json!("ok");
        developer.fire(agent, file, event, &payload);
        let ran = developer.take_ran();
        assert_eq!(ran.matches("prettier --write").count(), 1, "{agent}: {ran}");
        assert!(ran.contains("a.js"), "{agent}: {ran}");
    }
    let payload = json!({"hook_event_name": "Notification", "session_id": "s", "cwd": developer.project(), "message": "x", "transcript_path": "/t"});
    developer.fire(
        "claude-code",
        ".claude/settings.json",
        "Notification",
        &payload,
    );
    assert_eq!(developer.take_ran(), "notify-send The agent needs you\n");

    let output = developer.run("anyhook uninstall --yes", "");
    assert!(output.status.success());
    assert_eq!(developer.snapshot(), before);
}

#[test]
fn the_tour() {
    let root = root();
    let tour = fs::read_to_string(root.join("docs/tour.md")).unwrap();
    let developer = Developer::new();
    std::os::unix::fs::symlink(root.join("examples"), developer.project().join("examples"))
        .unwrap();

    let mut lines = tour.lines().peekable();
    let mut ran = 0;
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix("    ") else {
            continue;
        };
        let is_ours = command.starts_with("anyhook ")
            || command.contains("| anyhook ")
            || command.contains("&& anyhook ")
            || command.contains("| examples/");
        if !is_ours {
            continue;
        }
        let output = developer.run(command, "");
        let printed = String::from_utf8(output.stdout.clone()).unwrap();
        // What the page shows below the command, if it shows anything.
        let mut shown = String::new();
        lines.next_if_eq(&"");
        while let Some(line) = lines.next_if(|line| {
            line.starts_with("    -:")
                || (!shown.is_empty() && (line.is_empty() || line.starts_with("    ")))
        }) {
            shown.push_str(line.strip_prefix("    ").unwrap_or(line));
            shown.push('\n');
        }
        if shown.is_empty() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{command}: {stderr}");
        } else {
            assert_eq!(printed.trim_end(), shown.trim_end(), "{command}");
        }
        ran += 1;
    }
    assert!(ran >= 10, "{ran} commands");
}

/// Commands of the pages that need a server, a network or input: they only parse.
#[test]
fn every_command_on_a_page_exists() {
    let pages = fs::read_dir(root().join("docs")).unwrap();
    let pages = pages
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file());
    let mut parsed = 0;
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let mut in_block = false;
        for line in text.lines() {
            in_block ^= line.starts_with("```");
            let indented = line.strip_prefix("    ").filter(|_| !in_block);
            let Some(command) = indented.or(Some(line).filter(|_| in_block)) else {
                continue;
            };
            let command = command.strip_prefix("$ ").unwrap_or(command);
            let Some(arguments) = command.strip_prefix("anyhook ") else {
                continue;
            };
            let arguments = arguments.split(" #").next().unwrap_or_default();
            let arguments = arguments
                .split(['|', '<', '>', ';', '&'])
                .next()
                .unwrap_or_default();
            let words = arguments.split(" -- ").next().unwrap_or_default();
            if words.contains(['`', '…']) || words.starts_with("works ") {
                continue;
            }
            let line = format!("'{}' {words} --help", env!("CARGO_BIN_EXE_anyhook"));
            let output = Command::new("sh").args(["-c", &line]).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success(),
                "{}: {command}: {stderr}",
                page.display()
            );
            parsed += 1;
        }
    }
    assert!(parsed >= 20, "{parsed} commands");
}

/// The hooks in docs/writing-hooks.md deny a forced push and nothing else.
#[test]
fn the_hooks_of_the_page() {
    let page = fs::read_to_string(root().join("docs/writing-hooks.md")).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let mut ran = Vec::new();
    for (fence, file, program) in [
        ("```sh\n", "hook.sh", "jq --version >/dev/null && sh"),
        ("```python\n", "hook.py", "python3"),
        ("```ts\n", "hook.ts", "node --no-warnings"),
        ("```go\n", "hook.go", "go run"),
    ] {
        fs::write(scratch.path().join(file), fenced(&page, fence)).unwrap();
        let run = |event: &Value| {
            let line = format!("printf '%s' \"$EVENT\" | {{ {program} {file}; }}");
            Command::new("sh")
                .args(["-c", &line])
                .env("EVENT", event.to_string())
                .current_dir(&scratch)
                .output()
                .unwrap()
        };
        let event = |command: &str| json!({"event": "before_tool_execute", "source": "test", "data": {"tool_name": "shell", "tool_input": {"command": command}}});
        let allowed = run(&event("git push"));
        if !allowed.status.success() {
            eprintln!("skipped: `{program} {file}` does not run here");
            continue;
        }
        assert_eq!(String::from_utf8_lossy(&allowed.stdout), "", "{file}");
        let denied = run(&event("git push --force"));
        let answer = format!(
            "{}{}",
            String::from_utf8_lossy(&denied.stdout),
            String::from_utf8_lossy(&denied.stderr)
        );
        assert!(
            answer.contains("a forced push can remove"),
            "{file}: {answer}"
        );
        assert!(
            denied.status.code() == Some(2) || answer.contains("\"deny\""),
            "{file}: {answer}"
        );
        ran.push(file);
    }
    assert!(!ran.is_empty());
}
