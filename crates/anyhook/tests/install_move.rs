//! Hooks that agents already have move into the manifest: imported once, taken
//! out of the agents' files by `install`, put back by `uninstall` byte for byte.
#![cfg(unix)] // its hooks are shell scripts
#![cfg(test)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhook_testkit::{ProcessOutput, Scratch};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_anyhook");

/// A project with `anyhook` on PATH.
fn project() -> Scratch {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    let bin = scratch.home().join("bin");
    fs::create_dir(&bin).unwrap();
    symlink(PROGRAM, bin.join("anyhook")).unwrap();
    scratch
}

fn run(scratch: &Scratch, arguments: &[&str], stdin: &str) -> ProcessOutput {
    let path = format!("{}:/usr/bin:/bin", scratch.home().join("bin").display());
    let command = scratch.command(PROGRAM).env("PATH", path);
    command.run(arguments, stdin).unwrap()
}

fn good(scratch: &Scratch, arguments: &[&str]) -> ProcessOutput {
    let ran = run(scratch, arguments, "");
    let text = format!("{arguments:?}: {}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.exit, Some(0), "{text}");
    ran
}

fn read(scratch: &Scratch, path: &str) -> String {
    fs::read_to_string(scratch.project().join(path)).unwrap()
}

/// Every file below a folder, except anyhook's and git's.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.ends_with(".anyhook") || path.ends_with(".git") {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

const SETTINGS: &str = r#"{
  "permissions": { "allow": ["Bash(ls:*)"] },
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "Bash",
        "hooks": [
          { "type": "command", "command": "\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/guard.sh" }
        ]
      }
    ],
    "Notification": [
      { "hooks": [ { "type": "command", "command": "./notify.sh" } ] }
    ]
  }
}
"#;

/// Denies what contains `forbidden`, and counts its calls.
const GUARD: &str = "#!/bin/sh\ninput=$(cat)\necho x >> \"$HOME/calls\"\n\
    case $input in *forbidden*) echo no >&2; exit 2;; esac\n";

fn claude_project() -> Scratch {
    let scratch = project();
    scratch.file(".claude/settings.json", SETTINGS).unwrap();
    scratch.exec(".claude/hooks/guard.sh", GUARD).unwrap();
    scratch.exec("notify.sh", "#!/bin/sh\n").unwrap();
    scratch
}

/// What the agent does at a tool call: starts every entry of its file for it.
fn denied_by(scratch: &Scratch) -> (usize, usize) {
    let settings: Value = serde_json::from_str(&read(scratch, ".claude/settings.json")).unwrap();
    let payload = json!({
        "session_id": "s", "transcript_path": "/t", "cwd": scratch.project(), "hook_event_name": "PreToolUse",
        "tool_name": "Bash", "tool_input": {"command": "forbidden"}, "tool_use_id": "t1",
    });
    let path = format!("{}:/usr/bin:/bin", scratch.home().join("bin").display());
    let _ = fs::remove_file(scratch.home().join("calls"));
    let mut denials = 0;
    let groups = settings["hooks"]["PreToolUse"].as_array().cloned();
    for handler in groups
        .iter()
        .flatten()
        .flat_map(|group| group["hooks"].as_array().unwrap())
    {
        let command = scratch.command("/bin/sh").env("PATH", &path);
        let command = command.env("CLAUDE_PROJECT_DIR", scratch.project());
        let line = handler["command"].as_str().unwrap();
        let ran = command.run(["-c", line], &payload.to_string()).unwrap();
        denials += usize::from(ran.exit == Some(2) || ran.stdout.contains("deny"));
    }
    let calls = fs::read_to_string(scratch.home().join("calls")).unwrap_or_default();
    (denials, calls.lines().count())
}

#[test]
fn a_moved_guard_holds_at_every_step_and_runs_once() {
    let scratch = claude_project();
    let before = files(&scratch.project());
    assert_eq!(denied_by(&scratch), (1, 1));
    let ran = good(&scratch, &["init", "--import", "--yes"]);
    assert!(
        ran.stdout.contains("PreToolUse[Bash] guard.sh"),
        "{}",
        ran.stdout
    );
    assert_eq!(
        files(&scratch.project()),
        before,
        "init leaves the agents' files alone"
    );
    assert!(
        !scratch.project().join(".anyhook/guard.sh").exists(),
        "a project with a guard gets no other"
    );
    // Not trusted: the bridge would not run it, so it stays where it is.
    good(&scratch, &["install", "--agent", "claude-code", "--yes"]);
    assert_eq!(denied_by(&scratch), (1, 1));
    good(&scratch, &["trust", "--yes"]);
    let report = run(&scratch, &["doctor", "--no-run", "--json"], "")
        .json()
        .unwrap();
    let twice = |report: &Value| {
        let findings = report["diagnostics"].as_array().unwrap().iter();
        findings
            .filter(|one| one["code"] == "runs-natively-too")
            .count()
    };
    assert_eq!(twice(&report), 2, "{report}");
    let ran = good(&scratch, &["install", "--agent", "claude-code", "--yes"]);
    assert!(ran.stdout.contains("took out 2 hooks"), "{}", ran.stdout);
    assert_eq!(denied_by(&scratch), (1, 1));
    let report = run(&scratch, &["doctor", "--no-run", "--json"], "")
        .json()
        .unwrap();
    assert_eq!(twice(&report), 0, "{report}");
    // Again changes nothing.
    let installed = files(&scratch.project());
    good(&scratch, &["install", "--agent", "claude-code", "--yes"]);
    assert_eq!(files(&scratch.project()), installed);
    let ran = good(&scratch, &["uninstall", "--yes"]);
    assert!(ran.stdout.contains("put back 2 hooks"), "{}", ran.stdout);
    assert_eq!(files(&scratch.project()), before);
    assert_eq!(denied_by(&scratch), (1, 1));
}

#[test]
fn doctor_takes_out_what_runs_twice() {
    let scratch = claude_project();
    good(&scratch, &["init", "--import", "--yes"]);
    good(&scratch, &["install", "--agent", "claude-code", "--yes"]);
    good(&scratch, &["trust", "--yes"]);
    assert_eq!(denied_by(&scratch), (2, 2));
    run(&scratch, &["doctor", "--fix", "--no-run"], "");
    assert_eq!(denied_by(&scratch), (1, 1));
    good(&scratch, &["uninstall", "--yes"]);
    assert_eq!(read(&scratch, ".claude/settings.json"), SETTINGS);
}

#[test]
fn what_the_user_changes_in_between_stays() {
    let scratch = claude_project();
    good(&scratch, &["init", "--import", "--yes"]);
    good(&scratch, &["trust", "--yes"]);
    good(&scratch, &["install", "--agent", "claude-code", "--yes"]);
    let changed = read(&scratch, ".claude/settings.json").replace("ls:*", "pwd:*");
    scratch.file(".claude/settings.json", &changed).unwrap();
    good(&scratch, &["uninstall", "--yes"]);
    assert_eq!(
        read(&scratch, ".claude/settings.json"),
        SETTINGS.replace("ls:*", "pwd:*")
    );
    // A hook that is gone from the manifest does not come back by itself.
    good(&scratch, &["install", "--agent", "claude-code", "--yes"]);
    let manifest = read(&scratch, ".anyhook/hooks.yaml");
    let without = manifest
        .split("\n  # From")
        .take(2)
        .collect::<Vec<_>>()
        .join("\n  # From");
    scratch.file(".anyhook/hooks.yaml", &without).unwrap();
    good(&scratch, &["trust", "--yes"]);
    good(&scratch, &["install", "--agent", "claude-code", "--yes"]);
    assert!(!read(&scratch, ".claude/settings.json").contains("notify.sh"));
    // Rewritten by a formatter, with the bridge cut out by hand: all of it comes back.
    scratch
        .file(".claude/settings.json", "{\"model\": \"x\"}")
        .unwrap();
    good(&scratch, &["uninstall", "--yes"]);
    let restored: Value = serde_json::from_str(&read(&scratch, ".claude/settings.json")).unwrap();
    assert_eq!(restored["model"], "x");
    let original: Value = serde_json::from_str(SETTINGS).unwrap();
    assert_eq!(
        restored["hooks"]["PreToolUse"],
        original["hooks"]["PreToolUse"]
    );
    assert_eq!(
        restored["hooks"]["Notification"],
        original["hooks"]["Notification"]
    );
}

#[test]
fn a_program_that_cannot_start_takes_no_guard_out() {
    let scratch = claude_project();
    good(&scratch, &["init", "--import", "--yes"]);
    good(&scratch, &["trust", "--yes"]);
    fs::remove_file(scratch.home().join("bin/anyhook")).unwrap();
    let ran = run(
        &scratch,
        &["install", "--agent", "claude-code", "--command", "name"],
        "",
    );
    assert_eq!(ran.exit, Some(1), "{}", ran.stdout);
    assert_eq!(read(&scratch, ".claude/settings.json"), SETTINGS);
}

/// The same guard for each agent, in its own file.
const SAME_GUARD: &[(&str, &str)] = &[
    (
        ".claude/settings.json",
        r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./guard.sh"}]}]}}"#,
    ),
    (
        ".cursor/hooks.json",
        r#"{"version": 1, "hooks": {"preToolUse": [{"command": "./guard.sh", "matcher": "Shell"}]}}"#,
    ),
    (
        ".gemini/settings.json",
        r#"{"hooks": {"BeforeTool": [{"matcher": "run_shell_command", "hooks": [{"type": "command", "command": "$GEMINI_PROJECT_DIR/guard.sh"}]}]}}"#,
    ),
    (
        ".qwen/settings.json",
        r#"{"hooks": {"PreToolUse": [{"matcher": "run_shell_command", "hooks": [{"type": "command", "command": "./copy/guard.sh"}]}]}}"#,
    ),
    (
        ".factory/hooks.json",
        r#"{"PreToolUse": [{"matcher": "Execute", "hooks": [{"type": "command", "command": "\"$FACTORY_PROJECT_DIR\"/guard.sh"}]}]}"#,
    ),
];

#[test]
fn the_same_hook_of_five_agents_is_imported_once_and_taken_out_of_all() {
    let scratch = project();
    for (path, text) in SAME_GUARD {
        scratch.file(path, text).unwrap();
    }
    scratch.exec("guard.sh", GUARD).unwrap();
    scratch.exec("copy/guard.sh", GUARD).unwrap();
    let before = files(&scratch.project());
    let report = good(&scratch, &["init", "--import", "--json"])
        .json()
        .unwrap();
    assert_eq!(report["existing"].as_array().unwrap().len(), 5, "{report}");
    assert_eq!(report["imported"].as_array().unwrap().len(), 1, "{report}");
    good(&scratch, &["trust", "--yes"]);
    good(&scratch, &["install", "--yes"]);
    for (path, _) in SAME_GUARD {
        let text = read(&scratch, path);
        assert!(
            !text.contains("guard.sh") && text.contains("anyhook run"),
            "{path}: {text}"
        );
    }
    good(&scratch, &["uninstall", "--yes"]);
    assert_eq!(files(&scratch.project()), before);
}

#[test]
fn a_later_import_adds_what_is_new() {
    for (manifest, text) in [
        (
            ".anyhook/hooks.yaml",
            "spec: hooks/1.0\nhooks:\n- name: mine\n  event: stop\n  handler: {type: command, command: ./a.sh}\n# the end\n",
        ),
        (
            ".anyhook/hooks.json",
            "{\n  // mine\n  \"spec\": \"hooks/1.0\",\n  \"hooks\": [\n    {\"name\": \"mine\", \"event\": \"stop\", \"handler\": {\"type\": \"command\", \"command\": \"./a.sh\"}}\n  ]\n}\n",
        ),
    ] {
        let scratch = claude_project();
        scratch.file(manifest, text).unwrap();
        scratch.exec("a.sh", "#!/bin/sh\n").unwrap();
        good(&scratch, &["init", "--yes"]);
        assert_eq!(read(&scratch, manifest), text, "only with --import");
        let report = good(&scratch, &["init", "--import", "--json"])
            .json()
            .unwrap();
        assert_eq!(report["imported"].as_array().unwrap().len(), 2, "{report}");
        let extended = read(&scratch, manifest);
        assert!(
            extended.contains("mine") && extended.contains("guard.sh"),
            "{extended}"
        );
        good(&scratch, &["validate", manifest]);
        let report = good(&scratch, &["init", "--import", "--json"])
            .json()
            .unwrap();
        assert_eq!(report["written"], false, "{report}");
        assert_eq!(read(&scratch, manifest), extended);
    }
    // A manifest that cannot be extended is left alone, and says why.
    let scratch = claude_project();
    let flow = "spec: hooks/1.0\nhooks: []\n";
    scratch.file(".anyhook/hooks.yaml", flow).unwrap();
    let ran = run(&scratch, &["init", "--import", "--yes"], "");
    assert_eq!(ran.exit, Some(1), "{}", ran.stdout);
    assert!(ran.stderr.contains("could not add hooks"), "{}", ran.stderr);
    assert_eq!(read(&scratch, ".anyhook/hooks.yaml"), flow);
}

#[test]
fn what_cannot_be_imported_is_named() {
    let scratch = project();
    scratch
        .file(".opencode/plugin/mine.ts", "export const x = 1\n")
        .unwrap();
    scratch
        .file(scratch.home().join(".claude/settings.json"), SETTINGS)
        .unwrap();
    scratch.file(".cursor/hooks.json", "{oops").unwrap();
    let ran = good(&scratch, &["init", "--import", "--yes"]);
    for file in [
        ".opencode/plugin/mine.ts",
        "~/.claude/settings.json",
        ".cursor/hooks.json",
    ] {
        assert!(
            ran.stdout.contains(&format!("not imported: {file}")),
            "{file}: {}",
            ran.stdout
        );
    }
}

#[test]
fn install_covers_the_events_of_the_manifest_unless_told() {
    let scratch = claude_project();
    good(&scratch, &["init", "--import", "--yes"]);
    good(&scratch, &["trust", "--yes"]);
    let events = |arguments: &[&str]| {
        let arguments = [
            &["install", "--agent", "claude-code", "--dry-run", "--json"],
            arguments,
        ]
        .concat();
        let report = good(&scratch, &arguments).json().unwrap();
        report["agents"][0]["events"].as_array().unwrap().len()
    };
    assert_eq!(events(&[]), 2);
    assert!(events(&["--events", "all"]) > 20);
    assert!(
        events(&["--scope", "user"]) > 20,
        "the user's entries serve every project"
    );
    let ran = good(
        &scratch,
        &["install", "--agent", "claude-code", "--dry-run"],
    );
    assert!(!ran.stdout.contains("+++"), "{}", ran.stdout);
    let ran = good(
        &scratch,
        &["install", "--agent", "claude-code", "--dry-run", "--diff"],
    );
    assert!(ran.stdout.contains("+++"), "{}", ran.stdout);
}

/// The hooks of every agent's own example go out and come back.
#[test]
fn the_hooks_of_every_agent_come_back_byte_for_byte() {
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../anyhook-agents/agents");
    let mut moved = 0;
    let in_projects = |adapter: &&anyhook_agents::Adapter| {
        let scope = anyhook_agents::spec::Scope::Project;
        adapter.spec.is_written_at(scope)
    };
    for adapter in anyhook_agents::matrix::clients().filter(in_projects) {
        let slug = adapter.spec.id.as_ref();
        for case in ["existing", "comments"] {
            let example = agents.join(slug).join("install").join(case).join("before");
            let scratch = project();
            for (path, content) in files(&example) {
                let relative = path.strip_prefix(&example).unwrap();
                let text = String::from_utf8(content).unwrap();
                scratch.exec(relative, &text).unwrap();
            }
            let before = files(&scratch.project());
            good(&scratch, &["init", "--import", "--yes"]);
            good(&scratch, &["trust", "--yes"]);
            let install = [
                "install",
                "--agent",
                slug,
                "--yes",
                "--json",
                "--accept-trust",
            ];
            let report = good(&scratch, &install).json().unwrap();
            moved += report["agents"][0]["moved"].as_array().unwrap().len();
            good(&scratch, &["uninstall", "--agent", slug, "--yes"]);
            assert_eq!(files(&scratch.project()), before, "{slug}/{case}");
        }
    }
    assert!(moved >= 10, "only {moved} hooks were moved");
}
