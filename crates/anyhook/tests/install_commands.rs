//! `init`, `install`, `uninstall` and `status` as a user meets them.
#![cfg(unix)] // looks at modes, owners and links
#![cfg(test)]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use anyhook_testkit::{ProcessOutput, Scratch};
use serde_json::{Value, json};

fn anyhook(scratch: &Scratch, arguments: &[&str]) -> ProcessOutput {
    with_input(scratch, arguments, "")
}

fn with_input(scratch: &Scratch, arguments: &[&str], stdin: &str) -> ProcessOutput {
    scratch
        .command(env!("CARGO_BIN_EXE_anyhook"))
        .env("PATH", "/usr/bin:/bin")
        .run(arguments, stdin)
        .unwrap()
}

fn good(scratch: &Scratch, arguments: &[&str]) -> ProcessOutput {
    let ran = anyhook(scratch, arguments);
    assert_eq!(
        ran.exit,
        Some(0),
        "{arguments:?}: {}{}",
        ran.stdout,
        ran.stderr
    );
    ran
}

fn project() -> Scratch {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    scratch
}

fn read(scratch: &Scratch, path: &str) -> String {
    fs::read_to_string(scratch.project().join(path)).unwrap()
}

#[test]
fn from_nothing_to_a_guard_that_denies() {
    let scratch = project();
    scratch.file(".claude/settings.json", "{}\n").unwrap();
    let ran = good(&scratch, &["init", "--yes"]);
    assert!(ran.stdout.contains("Claude Code"), "{}", ran.stdout);
    assert!(ran.stdout.contains("anyhook install"), "{}", ran.stdout);
    good(&scratch, &["install", "--yes"]);
    let root = scratch.project();
    let call = |command: &str| {
        let payload = json!({
            "session_id": "s", "transcript_path": "/t", "cwd": root, "hook_event_name": "PreToolUse",
            "tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "t1",
        });
        with_input(
            &scratch,
            &["run", "--agent", "claude-code"],
            &payload.to_string(),
        )
        .stdout
    };
    let denied: Value = serde_json::from_str(&call("cd / && rm -rf \"$HOME\"")).unwrap();
    assert_eq!(denied["hookSpecificOutput"]["permissionDecision"], "deny");
    assert!(!call("rm -rf target/debug").contains("deny"));

    let status = good(&scratch, &["status", "--json"]).json().unwrap();
    let claude = &status.as_array().unwrap()[0];
    assert_eq!(claude["agent"], "claude-code");
    assert_eq!(claude["last"]["event"], "PreToolUse");
    assert_eq!(claude["scopes"][0]["installed"], true);
    assert_eq!(claude["scopes"][1]["installed"], false);
    // A second init writes nothing.
    let manifest = read(&scratch, ".anyhook/hooks.yaml");
    good(&scratch, &["init", "--yes"]);
    assert_eq!(read(&scratch, ".anyhook/hooks.yaml"), manifest);
}

#[test]
fn init_takes_over_what_is_there_with_its_dialect() {
    let scratch = project();
    let settings = r#"{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"./old.sh"},
        {"type":"command","command":"anyhook run --agent claude-code"}]}]}}"#;
    scratch.file(".claude/settings.json", settings).unwrap();
    scratch.exec("old.sh", "#!/bin/sh\n").unwrap();
    let report = good(&scratch, &["init", "--import", "--json"])
        .json()
        .unwrap();
    assert_eq!(
        report["existing"].as_array().unwrap().len(),
        1,
        "our own entry is not taken over"
    );
    assert_eq!(
        report["trusted"], false,
        "what came with the project needs consent"
    );
    let manifest = read(&scratch, ".anyhook/hooks.yaml");
    assert!(
        manifest.contains("./old.sh") && manifest.contains("dialect: claude-code"),
        "{manifest}"
    );
    good(&scratch, &["validate", ".anyhook/hooks.yaml"]);
}

#[test]
fn a_file_that_does_not_parse_is_left_alone() {
    let scratch = project();
    let broken = "{\"hooks\": {\n  oops\n";
    scratch.file(".claude/settings.json", broken).unwrap();
    let ran = anyhook(
        &scratch,
        &["install", "--agent", "claude-code", "--agent", "cursor"],
    );
    assert_eq!(ran.exit, Some(1));
    assert!(
        ran.stderr.contains(".claude/settings.json") && ran.stderr.contains("line 2"),
        "{}",
        ran.stderr
    );
    assert_eq!(read(&scratch, ".claude/settings.json"), broken);
    assert!(
        read(&scratch, ".cursor/hooks.json").contains("anyhook run"),
        "the others are done"
    );
}

/// A client that reads strictly ignores such a file, with the bridge in it.
#[test]
fn a_group_without_a_list_of_hooks_is_refused() {
    let scratch = project();
    let text = "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      { \"hooks\": {} }\n    ]\n  }\n}\n";
    for (agent, path) in [
        ("codex", ".codex/hooks.json"),
        ("claude-code", ".claude/settings.json"),
    ] {
        scratch.file(path, text).unwrap();
        let ran = anyhook(
            &scratch,
            &["install", "--agent", agent, "--scope", "project"],
        );
        assert_eq!(ran.exit, Some(1), "{}", ran.stdout);
        let expected =
            "line 4, column 18: `hooks.PreToolUse[0].hooks` must be a list, not an object";
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
        assert_eq!(read(&scratch, path), text);
    }
}

#[test]
fn links_and_modes_stay() {
    let scratch = project();
    let real = scratch.file("dotfiles/claude.json", "{}\n").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir(scratch.project().join(".claude")).unwrap();
    let link = scratch.project().join(".claude/settings.json");
    symlink("../dotfiles/claude.json", &link).unwrap();
    good(&scratch, &["install", "--agent", "claude-code"]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&real).unwrap().contains("anyhook run"));
    assert_eq!(fs::metadata(&real).unwrap().mode() & 0o777, 0o640);
    good(&scratch, &["uninstall"]);
    assert_eq!(fs::read_to_string(&real).unwrap(), "{}\n");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn consent_is_given_only_when_asked_for_and_taken_back() {
    let scratch = project();
    let config = "# mine\nmodel = \"x\"\n";
    let path = scratch.home().join(".codex/config.toml");
    scratch.file(&path, config).unwrap();
    let ran = good(&scratch, &["install", "--agent", "codex"]);
    assert!(ran.stderr.contains("not trusted"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(&path).unwrap(), config);
    good(&scratch, &["install", "--agent", "codex", "--accept-trust"]);
    let trusted = fs::read_to_string(&path).unwrap();
    assert!(
        trusted.starts_with(config) && trusted.contains("trusted_hash = \"sha256:"),
        "{trusted}"
    );
    let status = good(&scratch, &["status", "--agent", "codex", "--json"])
        .json()
        .unwrap();
    assert_eq!(status[0]["scopes"][0]["trusted"], "yes");
    // Another command line is another hash.
    good(
        &scratch,
        &[
            "install",
            "--agent",
            "codex",
            "--accept-trust",
            "--command",
            "absolute",
        ],
    );
    let status = good(&scratch, &["status", "--agent", "codex", "--json"])
        .json()
        .unwrap();
    assert_eq!(status[0]["scopes"][0]["trusted"], "yes");
    good(&scratch, &["uninstall", "--agent", "codex"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), config);
    assert!(!scratch.project().join(".codex").exists());
}

#[test]
fn the_user_scope_names_the_program_by_its_path() {
    let scratch = project();
    good(
        &scratch,
        &["install", "--agent", "gemini-cli", "--scope", "user"],
    );
    let path = scratch.home().join(".gemini/settings.json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        text.contains(&format!(
            "{} run --agent gemini-cli",
            env!("CARGO_BIN_EXE_anyhook")
        )),
        "{text}"
    );
    assert!(!scratch.project().join(".gemini").exists());
    good(&scratch, &["uninstall", "--scope", "user"]);
    assert!(!scratch.home().join(".gemini").exists());
}

#[test]
fn events_are_chosen() {
    let scratch = project();
    let manifest = "spec: hooks/1.0\nhooks:\n  - event: before_model\n    handler: {type: command, command: \"true\", timeout: 90}\n";
    scratch.file(".anyhook/hooks.yaml", manifest).unwrap();
    let events = |choice: &str| {
        let ran = good(
            &scratch,
            &[
                "install",
                "--agent",
                "gemini-cli",
                "--events",
                choice,
                "--json",
                "--dry-run",
            ],
        );
        ran.json().unwrap()["agents"][0]["events"].clone()
    };
    assert_eq!(events("manifest"), json!(["BeforeModel"]));
    assert_eq!(
        events("session_start,BeforeTool"),
        json!(["SessionStart", "BeforeTool"])
    );
    let all = events("all");
    let all: Vec<&str> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event.as_str().unwrap())
        .collect();
    assert!(
        all.contains(&"BeforeModel"),
        "a manifest may ask for what is frequent"
    );
    assert!(!all.contains(&"AfterModel"));
    good(
        &scratch,
        &["install", "--agent", "gemini-cli", "--events", "manifest"],
    );
    let settings: Value = serde_json::from_str(&read(&scratch, ".gemini/settings.json")).unwrap();
    assert_eq!(
        settings["hooks"]["BeforeModel"][0]["hooks"][0]["timeout"],
        95_000
    );

    let ran = anyhook(
        &scratch,
        &[
            "install",
            "--agent",
            "claude-code",
            "--events",
            "PreToolUsage",
        ],
    );
    assert_eq!(ran.exit, Some(1));
    assert!(
        ran.stderr.contains("did you mean `PreToolUse`"),
        "{}",
        ran.stderr
    );
    // Silence would break what this hook has to do itself.
    let ran = good(
        &scratch,
        &[
            "install",
            "--agent",
            "claude-code",
            "--events",
            "WorktreeCreate,Stop",
            "--json",
        ],
    );
    assert_eq!(ran.json().unwrap()["agents"][0]["events"], json!(["Stop"]));
}

#[test]
fn an_agent_file_of_an_older_kiro_on_request() {
    let scratch = project();
    let agent = "{\n  \"name\": \"dev\"\n}\n";
    scratch.file(".kiro/agents/dev.json", agent).unwrap();
    good(
        &scratch,
        &[
            "install",
            "--agent",
            "kiro",
            "--file",
            ".kiro/agents/dev.json",
        ],
    );
    let document: Value = serde_json::from_str(&read(&scratch, ".kiro/agents/dev.json")).unwrap();
    assert_eq!(document["hooks"]["preToolUse"][0]["timeout_ms"], 60_000);
    assert_eq!(document["name"], "dev");
    good(&scratch, &["uninstall", "--agent", "kiro"]);
    assert_eq!(read(&scratch, ".kiro/agents/dev.json"), agent);
    let ran = anyhook(
        &scratch,
        &["install", "--agent", "kiro", "--file", "other.json"],
    );
    assert_eq!(ran.exit, Some(1));
    assert!(
        ran.stderr.contains(".kiro/hooks/anyhook.json"),
        "{}",
        ran.stderr
    );
}

#[test]
fn two_agents_of_one_folder_get_one_file() {
    let scratch = project();
    for folder in [".vscode", ".github/copilot"] {
        fs::create_dir_all(scratch.project().join(folder)).unwrap();
    }
    let report = good(&scratch, &["install", "--json"]).json().unwrap();
    assert_eq!(report["agents"][0]["agent"], "copilot-cli");
    assert_eq!(report["agents"].as_array().unwrap().len(), 1);
    assert_eq!(report["skipped"][0]["agent"], "vs-code-copilot");
}

#[test]
fn a_hand_made_entry_goes_and_its_neighbour_stays() {
    let scratch = project();
    let settings = "{\n  \"hooks\": {\n    \"Stop\": [\n      { \"hooks\": [\n        { \"type\": \"command\", \"command\": \"./mine.sh\" },\n        { \"type\": \"command\", \"command\": \"/opt/bin/anyhook run --agent claude\" }\n      ] }\n    ]\n  }\n}\n";
    scratch.file(".claude/settings.json", settings).unwrap();
    good(&scratch, &["uninstall", "--agent", "claude-code"]);
    let text = read(&scratch, ".claude/settings.json");
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        document["hooks"]["Stop"][0]["hooks"],
        json!([{"type": "command", "command": "./mine.sh"}]),
        "{text}"
    );
}

#[test]
fn a_plugin_of_the_users_is_not_replaced() {
    let scratch = project();
    let own = "export const mine = async () => ({});\n";
    scratch.file(".opencode/plugin/anyhook.js", own).unwrap();
    let ran = anyhook(&scratch, &["install", "--agent", "opencode"]);
    assert_eq!(ran.exit, Some(1), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("not written by anyhook"),
        "{}",
        ran.stderr
    );
    assert_eq!(read(&scratch, ".opencode/plugin/anyhook.js"), own);
    let ran = good(&scratch, &["uninstall"]);
    assert!(ran.stdout.contains("not installed"), "{}", ran.stdout);
    assert_eq!(read(&scratch, ".opencode/plugin/anyhook.js"), own);
}

#[test]
fn nothing_to_do_is_said() {
    let scratch = project();
    let ran = anyhook(&scratch, &["install"]);
    assert_eq!(ran.exit, Some(1));
    assert!(ran.stderr.contains("no agent was found"), "{}", ran.stderr);
    let ran = scratch
        .command(env!("CARGO_BIN_EXE_anyhook"))
        .dir(scratch.home())
        .run(["install", "--agent", "claude-code"], "")
        .unwrap();
    assert_eq!(ran.exit, Some(1));
    assert!(ran.stderr.contains("--scope user"), "{}", ran.stderr);
    let ran = anyhook(&scratch, &["install", "--agent", "claude-cod"]);
    assert!(ran.stderr.contains("did you mean"), "{}", ran.stderr);
}
