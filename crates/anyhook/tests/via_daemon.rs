//! `anyhook install --via daemon`: entries and generated programs that ask a running
//! daemon. Whatever happens to the daemon, a guard holds.
#![cfg(unix)] // drives Node.js and signals
#![cfg(test)]

#[path = "serve_support/mod.rs"]
mod serve_support;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhook_agents::spec::{ConfigShape, Scope};
use anyhook_testkit::{ProcessOutput, Scratch, files_below};
use serde_json::{Value, json};
use serve_support::{Daemon, anyhook, send};

/// A user's guard that denies everything, and says in whose process it ran.
fn guarded() -> Scratch {
    guarded_by("echo \"denied by ${TZ}\" >&2; exit 2")
}

fn guarded_by(command: &str) -> Scratch {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    let manifest = json!({"spec": "hooks/1.0", "hooks": [{
        "name": "guard", "event": "before_tool_execute", "blocking": true,
        "handler": {"type": "command", "command": command}
    }]});
    let path = scratch.config().join("hooks.json");
    scratch.file(path, &manifest.to_string()).unwrap();
    scratch
}

fn install(scratch: &Scratch, agent: &str, via: &str) -> ProcessOutput {
    let args = ["install", "--agent", agent, "--scope", "user", "--yes"];
    let ran = anyhook(scratch, &[&args[..], &["--via", via]].concat(), "");
    assert_eq!(ran.exit, Some(0), "{agent}: {}{}", ran.stdout, ran.stderr);
    ran
}

fn claude_settings(scratch: &Scratch) -> PathBuf {
    scratch.home().join(".claude/settings.json")
}

fn claude_handlers(scratch: &Scratch) -> Value {
    let text = std::fs::read_to_string(claude_settings(scratch)).unwrap();
    let settings: Value = serde_json::from_str(&text).unwrap();
    settings["hooks"].clone()
}

const CLAUDE_CALL: &str = r#"{"hook_event_name":"PreToolUse","session_id":"s","transcript_path":"/t.jsonl","cwd":"/","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"t1"}"#;

#[test]
fn claude_code_asks_the_daemon_at_tool_calls_and_fails_closed() {
    let scratch = guarded();
    let before = "{\n  // mine\n  \"model\": \"x\"\n}\n";
    scratch.file(claude_settings(&scratch), before).unwrap();
    let daemon = Daemon::start(&scratch, &[]);
    let said = install(&scratch, "claude-code", &daemon.url);
    assert!(said.stdout.contains("installed"), "{}", said.stdout);
    assert!(
        said.stderr
            .contains("blocks there while `anyhook serve` does not run"),
        "{}",
        said.stderr
    );
    let hooks = claude_handlers_jsonc(&scratch);
    for event in ["PreToolUse", "PostToolUse", "PostToolBatch"] {
        let entry = &hooks[event][0]["hooks"][0];
        assert_eq!(entry["type"], "http", "{event}");
        assert_eq!(entry["onFailure"], "block", "{event}");
    }
    // Exit codes, a run that could not end, or no http hooks at all.
    for event in [
        "PostToolUseFailure",
        "Stop",
        "SessionStart",
        "UserPromptSubmit",
    ] {
        assert_eq!(hooks[event][0]["hooks"][0]["type"], "command", "{event}");
    }
    let url = hooks["PreToolUse"][0]["hooks"][0]["url"].as_str().unwrap();
    let path = url.strip_prefix(&daemon.url).unwrap();
    let reply = daemon.post(path, CLAUDE_CALL);
    let answer: Value = serde_json::from_str(&reply.body).unwrap();
    let output = &answer["hookSpecificOutput"];
    assert_eq!(output["permissionDecision"], "deny", "{answer}");
    assert_eq!(output["permissionDecisionReason"], "denied by UTC");

    // What was chosen stays until something else is chosen.
    let text = std::fs::read_to_string(claude_settings(&scratch)).unwrap();
    let again = anyhook(
        &scratch,
        &[
            "install",
            "--agent",
            "claude-code",
            "--scope",
            "user",
            "--yes",
        ],
        "",
    );
    assert!(
        again.stdout.contains("already installed"),
        "{}",
        again.stdout
    );
    assert_eq!(
        std::fs::read_to_string(claude_settings(&scratch)).unwrap(),
        text
    );
    install(&scratch, "claude-code", "process");
    assert!(
        !std::fs::read_to_string(claude_settings(&scratch))
            .unwrap()
            .contains("\"http\"")
    );
    install(&scratch, "claude-code", &daemon.url);
    let gone = anyhook(
        &scratch,
        &[
            "uninstall",
            "--agent",
            "claude-code",
            "--scope",
            "user",
            "--yes",
        ],
        "",
    );
    assert_eq!(gone.exit, Some(0), "{}", gone.stderr);
    assert_eq!(
        std::fs::read_to_string(claude_settings(&scratch)).unwrap(),
        before
    );
}

fn claude_handlers_jsonc(scratch: &Scratch) -> Value {
    let text = std::fs::read_to_string(claude_settings(scratch)).unwrap();
    let plain: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().starts_with("//"))
        .collect();
    let settings: Value = serde_json::from_str(&plain.join("\n")).unwrap();
    settings["hooks"].clone()
}

#[test]
fn no_agent_gets_an_http_entry_that_fails_open() {
    let scratch = guarded();
    let mut by_daemon = Vec::new();
    for adapter in anyhook_agents::all().filter(|adapter| !adapter.spec.pseudo) {
        let slug = &*adapter.spec.id;
        let has_user_file = adapter
            .spec
            .files
            .iter()
            .any(|file| file.scope == Scope::User && file.write);
        if !has_user_file {
            continue;
        }
        let said = install(&scratch, slug, "daemon");
        let is_plugin = adapter.spec.config.shape == ConfigShape::Plugin;
        let text = written_text(&scratch, slug);
        if is_plugin {
            assert!(text.contains("\"socket\":"), "{slug}: {text}");
            by_daemon.push(slug.to_owned());
        } else if text.contains("/hooks/") && text.contains("24665") {
            let closed = adapter.spec.config.handler.fail_closed.as_ref().unwrap();
            let key = closed.at.trim_start_matches('/');
            let entries = text.matches("24665").count();
            assert_eq!(
                text.matches(&format!("\"{key}\"")).count(),
                entries,
                "{slug}: {text}"
            );
            by_daemon.push(slug.to_owned());
        } else {
            assert!(
                said.stderr
                    .contains("still starts the program at every event"),
                "{slug}: {}",
                said.stderr
            );
        }
        let gone = anyhook(
            &scratch,
            &["uninstall", "--agent", slug, "--scope", "user", "--yes"],
            "",
        );
        assert_eq!(gone.exit, Some(0), "{slug}: {}", gone.stderr);
    }
    assert_eq!(by_daemon, ["claude-code", "kilo", "opencode", "pi"]);
}

/// The text of every file below the home that names anyhook, apart from its own folders.
fn written_text(scratch: &Scratch, slug: &str) -> String {
    let status = anyhook(scratch, &["status", "--agent", slug, "--json"], "");
    let status: Value = serde_json::from_str(&status.stdout).unwrap_or_default();
    let mut text = String::new();
    for path in files_below(&scratch.home()) {
        let content = std::fs::read_to_string(&path).unwrap_or_default();
        let is_ours = content.contains("--agent") || content.contains("/hooks/");
        text.push_str(if is_ours { &content } else { "" });
    }
    assert!(!text.is_empty(), "{slug}: {status}");
    text
}

#[test]
fn a_shared_file_never_refers_to_a_daemon() {
    let scratch = guarded();
    let ran = anyhook(
        &scratch,
        &[
            "install",
            "--agent",
            "claude-code",
            "--via",
            "daemon",
            "--yes",
        ],
        "",
    );
    assert_ne!(ran.exit, Some(0));
    assert!(
        ran.stderr.contains("`--via daemon` needs `--scope user`"),
        "{}",
        ran.stderr
    );
    let ran = anyhook(
        &scratch,
        &["install", "--scope", "user", "--via", "http://example.com"],
        "",
    );
    assert_ne!(ran.exit, Some(0));
    assert!(
        ran.stderr.contains("a daemon on this machine"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_fail_closed_policy_keeps_the_program_and_blocks_when_it_fails() {
    let scratch = guarded();
    let policy = scratch.managed().join("policy.yaml");
    scratch.file(policy, "fail_closed: true\n").unwrap();
    let said = install(&scratch, "claude-code", "daemon");
    assert!(
        said.stderr.contains("a managed policy has `fail_closed`"),
        "{}",
        said.stderr
    );
    let hooks = claude_handlers(&scratch);
    let entry = &hooks["PreToolUse"][0]["hooks"][0];
    assert_eq!(
        (&entry["type"], &entry["onFailure"]),
        (&json!("command"), &json!("block"))
    );
    // A run that could never end is worse than a stop hook that does not run.
    assert_eq!(hooks["Stop"][0]["hooks"][0]["onFailure"], Value::Null);
    install(&scratch, "mistral-vibe", "process");
    let vibe = std::fs::read_to_string(scratch.home().join(".vibe/hooks.toml")).unwrap();
    let entries: Vec<&str> = vibe.split("[[hooks]]").skip(1).collect();
    for entry in entries {
        let is_closed = entry.contains("strict = true");
        assert_eq!(is_closed, entry.contains("type = \"pre_tool\""), "{vibe}");
    }
}

/// A process of the user that answers in the daemon's place must not decide for the
/// administrator's hooks.
#[test]
fn no_daemon_is_asked_where_the_administrator_has_hooks() {
    let scratch = guarded();
    install(&scratch, "claude-code", "daemon");
    install(&scratch, "opencode", "daemon");
    let manifest = std::fs::read_to_string(scratch.config().join("hooks.json")).unwrap();
    let path = scratch.managed().join("hooks.json");
    scratch.file(path, &manifest).unwrap();
    let is_told = |agent| {
        let found = errors(&doctor(&scratch, agent));
        found.iter().any(|one| one == "daemon-for-managed-hooks")
    };
    for agent in ["claude-code", "opencode"] {
        assert!(is_told(agent), "{agent}");
        let said = install(&scratch, agent, "daemon");
        assert!(
            said.stderr.contains("the administrator has hooks"),
            "{agent}: {}",
            said.stderr
        );
        assert!(!is_told(agent), "{agent}");
    }
    let text = written_text(&scratch, "opencode");
    assert!(
        !text.contains("daemon.sock") && !text.contains("\"http\""),
        "{text}"
    );
}

#[test]
fn the_daemon_answers_before_the_agent_stops_waiting() {
    let scratch = guarded_by("sleep 100");
    let path = scratch.config().join("hooks.json");
    let manifest = std::fs::read_to_string(&path).unwrap();
    let mut manifest: Value = serde_json::from_str(&manifest).unwrap();
    manifest["hooks"][0]["on_failure"] = json!("block");
    manifest["hooks"][0]["handler"]["timeout"] = json!(100);
    scratch.file(path, &manifest.to_string()).unwrap();
    let daemon = Daemon::start(&scratch, &[]);
    let reply = daemon.post("/hooks/claude-code?scope=user&timeout=2", CLAUDE_CALL);
    assert!(reply.body.contains("\"deny\""), "{}", reply.body);
}

#[test]
fn doctor_proves_both_ways() {
    let scratch = guarded();
    let daemon = Daemon::start(&scratch, &[]);
    install(&scratch, "claude-code", &daemon.url);
    let report = doctor(&scratch, "claude-code");
    assert_eq!(report["fired"], report["answered"], "{report}");
    assert_eq!(errors(&report), Vec::<String>::new(), "{report}");
    daemon.kill();
    let report = doctor(&scratch, "claude-code");
    assert_eq!(errors(&report), ["daemon-away"], "{report}");
    // Something else listens there and lets everything pass.
    let other = Scratch::new().unwrap();
    let stranger = Daemon::start(&other, &[]);
    install(&scratch, "claude-code", &stranger.url);
    let report = doctor(&scratch, "claude-code");
    assert_eq!(errors(&report), ["daemon-away"], "{report}");
    let strict = Daemon::start(&scratch, &["--require-token"]);
    install(&scratch, "claude-code", &strict.url);
    let report = doctor(&scratch, "claude-code");
    assert_eq!(errors(&report), ["daemon-away"], "{report}");
    assert!(report.to_string().contains("--require-token"), "{report}");
    install(&scratch, "opencode", "daemon");
    let report = doctor(&scratch, "opencode");
    assert_eq!(errors(&report), Vec::<String>::new(), "{report}");
}

#[test]
fn doctor_notices_a_daemon_that_runs_other_hooks() {
    let scratch = guarded();
    let moved = scratch.root().join("moved").to_string_lossy().into_owned();
    let home = scratch.root().to_string_lossy().into_owned();
    for (variable, value) in [
        ("ANYHOOK", "0"),
        ("ANYHOOK_CONFIG_DIR", moved.as_str()),
        ("HOME", home.as_str()),
    ] {
        let daemon = Daemon::start_with(&scratch, &[], &[(variable, value)]);
        for agent in ["claude-code", "opencode"] {
            install(&scratch, agent, &daemon.url);
            let report = doctor(&scratch, agent);
            let expected = ["daemon-other-hooks"];
            assert_eq!(errors(&report), expected, "{variable} {agent}: {report}");
            assert!(report.to_string().contains(variable), "{report}");
        }
        assert_eq!(daemon.end(), Some(0));
    }
}

/// Another user's daemon may listen on the port while the user's own is stopped, and a daemon
/// may have been started with other folders, or to run no hooks.
#[test]
fn a_daemon_that_does_not_run_the_users_hooks_answers_no_entry() {
    let scratch = guarded();
    let moved = scratch.root().join("moved").to_string_lossy().into_owned();
    let other = Scratch::new().unwrap();
    for (of, variable, value) in [
        (&other, "TZ", "UTC"),
        (&scratch, "ANYHOOK", "0"),
        (&scratch, "ANYHOOK_CONFIG_DIR", moved.as_str()),
        (&scratch, "HOME", moved.as_str()),
    ] {
        let daemon = Daemon::start_with(of, &[], &[(variable, value)]);
        install(&scratch, "claude-code", &daemon.url);
        let hooks = claude_handlers_jsonc(&scratch);
        for event in ["PreToolUse", "PostToolUse", "PostToolBatch"] {
            let url = hooks[event][0]["hooks"][0]["url"].as_str().unwrap();
            let reply = daemon.post(url.strip_prefix(&daemon.url).unwrap(), CLAUDE_CALL);
            assert_eq!(reply.status, 503, "{variable} {event}: {}", reply.body);
        }
        let server = ["run", "--agent", "claude-code", "--server", &daemon.url];
        let ran = anyhook(&scratch, &server, CLAUDE_CALL);
        assert!(ran.stdout.contains("\"deny\""), "{variable}: {ran:?}");
        if has_node() {
            install(&scratch, "opencode", "daemon");
            assert_eq!(plugin_call(&scratch), "denied by the program", "{variable}");
        }
        assert_eq!(daemon.end(), Some(0));
    }
}

#[test]
fn serve_says_at_its_start_that_no_hook_will_run() {
    let scratch = guarded();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--json"];
    let mut serve = serve_support::command(&scratch, &serve);
    let mut serve = serve
        .env("ANYHOOK", "0")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = serve.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    serve.kill().unwrap();
    let notes = serve.wait_with_output().unwrap().stderr;
    let notes = String::from_utf8(notes).unwrap();
    assert!(notes.contains("no hook runs"), "{notes}");
}

fn doctor(scratch: &Scratch, agent: &str) -> Value {
    let ran = anyhook(scratch, &["doctor", "--agent", agent, "--json"], "");
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr))
}

fn errors(report: &Value) -> Vec<String> {
    let findings = report["diagnostics"].as_array().unwrap().iter();
    let findings = findings.filter(|one| one["severity"] == "error");
    findings
        .map(|one| one["code"].as_str().unwrap().to_owned())
        .collect()
}

const DRIVER: &str = r#"
const module = await import(process.argv[2]);
const hooks = await module.anyhook({ directory: process.cwd() });
const told = { args: { command: "ls" } };
try {
  await hooks["tool.execute.before"]({ tool: "bash", sessionID: "s", callID: "c" }, told);
  console.log("it ran");
} catch (error) {
  console.log(error.message);
}
process.exit(0);
"#;

/// What becomes of a tool call under OpenCode's plugin.
fn plugin_call(scratch: &Scratch) -> String {
    let driver = scratch.file("driver.mjs", DRIVER).unwrap();
    let plugin = scratch.home().join(".config/opencode/plugin/anyhook.js");
    let plugin = if plugin.exists() {
        plugin
    } else {
        scratch.home().join(".config/opencode/plugins/anyhook.js")
    };
    let ran = scratch
        .command("node")
        .env("TZ", "the program")
        .env("ANYHOOK_TRUST", "all")
        .run([driver.to_str().unwrap(), plugin.to_str().unwrap()], "")
        .unwrap();
    assert_eq!(ran.exit, Some(0), "{}", ran.stderr);
    ran.stdout.trim().to_owned()
}

fn has_node() -> bool {
    let found = Command::new("node")
        .arg("--version")
        .output()
        .is_ok_and(|ran| ran.status.success());
    if !found {
        eprintln!("skipped: there is no `node` on PATH");
    }
    found
}

#[test]
fn a_plugin_asks_the_daemon_and_starts_the_program_without_it() {
    if !has_node() {
        return;
    }
    let scratch = guarded();
    let daemon = Daemon::start(&scratch, &[]);
    install(&scratch, "opencode", "daemon");
    assert_eq!(plugin_call(&scratch), "denied by UTC");
    let socket = scratch.state().join("daemon.sock");
    std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o666)).unwrap();
    assert_eq!(
        plugin_call(&scratch),
        "denied by the program",
        "a socket for everyone"
    );
    std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o600)).unwrap();
    let pid = daemon.pid().to_string();
    let signal = |name: &str| Command::new("kill").args([name, &pid]).status().unwrap();
    assert!(signal("-STOP").success());
    assert_eq!(
        plugin_call(&scratch),
        "denied by the program",
        "a daemon that hangs"
    );
    assert!(signal("-CONT").success());
    assert_eq!(plugin_call(&scratch), "denied by UTC");
    daemon.kill();
    assert_eq!(
        plugin_call(&scratch),
        "denied by the program",
        "a killed daemon"
    );
    std::fs::remove_file(&socket).unwrap();
    assert_eq!(plugin_call(&scratch), "denied by the program", "no socket");
}

#[test]
fn a_daemon_that_dies_inside_a_hook_opens_no_guard() {
    if !has_node() {
        return;
    }
    // Kills the daemon that started it, and waits until it is gone.
    let script = r#"if [ "$TZ" = UTC ]; then kill -KILL $(cat "$HOME/daemon.pid"); sleep 1; fi; echo "denied by $TZ" >&2; exit 2"#;
    let scratch = guarded_by(script);
    let daemon = Daemon::start(&scratch, &[]);
    scratch
        .file(scratch.home().join("daemon.pid"), &daemon.pid().to_string())
        .unwrap();
    install(&scratch, "opencode", "daemon");
    assert_eq!(plugin_call(&scratch), "denied by the program");
}

#[test]
fn what_pretends_to_be_the_daemon_on_its_socket_is_not_believed() {
    if !has_node() {
        return;
    }
    let scratch = guarded();
    install(&scratch, "opencode", "daemon");
    let socket = scratch.state().join("daemon.sock");
    std::fs::create_dir_all(scratch.state()).unwrap();
    for answer in [
        "",
        "HTTP/1.0 200 OK\r\n\r\n{}",
        "HTTP/1.0 503 Busy\r\nx-anyhook-exit-code: 0\r\n\r\n{}",
        "HTTP/1.0 200 OK\r\nx-anyhook-exit-code: 0\r\ncontent-length: 90\r\n\r\n{\"deny\":",
        "garbage",
    ] {
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o600)).unwrap();
        std::thread::spawn(move || {
            use std::io::{Read as _, Write as _};
            if let Ok((mut stream, _)) = listener.accept() {
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        assert_eq!(plugin_call(&scratch), "denied by the program", "{answer}");
        std::fs::remove_file(&socket).unwrap();
    }
}

#[test]
fn the_entries_of_two_scopes_are_told_apart_over_http() {
    let runs = "echo run >> \"$HOME/runs\"; echo no >&2; exit 2";
    let scratch = guarded_by(runs);
    let daemon = Daemon::start(&scratch, &[]);
    for scope in ["user", "local"] {
        let path = format!("/hooks/claude-code?scope={scope}");
        let reply = send(&daemon.url, "POST", &path, &[], CLAUDE_CALL);
        assert!(reply.body.contains("\"deny\""), "{}", reply.body);
    }
    let count = std::fs::read_to_string(scratch.home().join("runs")).unwrap();
    assert_eq!(
        count.lines().count(),
        1,
        "one call, delivered by two entries"
    );
}
