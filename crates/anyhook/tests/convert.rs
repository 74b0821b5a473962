//! `anyhook convert` as users see it. A case is a folder in `cases/convert`:
//! `args` (one word per line), the files of a project, perhaps `stdin`; and
//! `expected` with the exit code, what is printed, and every file that was
//! written. `UPDATE=1` rewrites the expectations.

#![cfg(test)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::{fs, thread};

use anyhook_testkit::{Golden, ProcessOutput, Scratch, cases};
use serde_json::{Value, json};

const ANYHOOK: &str = env!("CARGO_BIN_EXE_anyhook");

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/convert")
}

fn files_of(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = format!("{prefix}{}", entry.file_name().display());
        if entry.path().is_dir() {
            files_of(&entry.path(), &format!("{name}/"), files);
        } else {
            files.insert(name, fs::read_to_string(entry.path()).unwrap());
        }
    }
}

#[test]
fn each_case_is_as_expected() {
    let mut golden = Golden::default();
    for case in cases::read_cases(folder()).unwrap() {
        let scratch = Scratch::new().unwrap();
        let mut stdin = "";
        for (name, text) in &case.files {
            match name.as_str() {
                "args" | "expected" => {}
                "stdin" => stdin = text,
                _ => drop(scratch.file(name, text).unwrap()),
            }
        }
        let mut before = BTreeMap::new();
        files_of(&scratch.project(), "", &mut before);
        let args = case.text("args").unwrap().lines();
        let ran = scratch
            .command(ANYHOOK)
            .run(std::iter::once("convert").chain(args), stdin)
            .unwrap();
        let mut found = format!("exit {}\n", ran.exit.unwrap());
        for (title, text) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
            if !text.is_empty() {
                let _ = write!(found, "-- {title}\n{text}");
            }
        }
        let mut after = BTreeMap::new();
        files_of(&scratch.project(), "", &mut after);
        for (name, text) in after {
            if before.get(&name) != Some(&text) {
                let _ = write!(found, "-- {name}\n{text}");
            }
        }
        golden.text(case.path.join("expected"), &found).unwrap();
    }
    golden.end();
}

fn convert(scratch: &Scratch, args: &[&str], stdin: &str) -> ProcessOutput {
    let args = std::iter::once("convert").chain(args.iter().copied());
    scratch.command(ANYHOOK).run(args, stdin).unwrap()
}

const GUARD: &str = r#"{"spec": "hooks/1.0", "hooks": [
  {"event": "before_tool_execute", "matcher": "shell", "blocking": true, "handler": {"type": "command", "command": "./guard.sh", "timeout": 5}}]}"#;

/// Whoever reads the JSON can rely on these keys.
#[test]
fn the_json_has_the_documented_shape() {
    let scratch = Scratch::new().unwrap();
    for adapter in anyhook_agents::all() {
        let ran = convert(&scratch, &["-", "--to", &adapter.spec.id, "--json"], GUARD);
        let report = ran.json().unwrap();
        let mut keys: Vec<&String> = report.as_object().unwrap().keys().collect();
        let has_error = keys.pop_if(|key| *key == "error").is_some();
        assert_eq!(has_error, ran.exit != Some(0), "{report}");
        assert_eq!(
            keys,
            ["output", "warnings", "verified"],
            "{}",
            adapter.spec.id
        );
        assert_eq!(report["verified"], true);
        for warning in report["warnings"].as_array().unwrap() {
            for key in [
                "hook",
                "field",
                "capability",
                "strategy",
                "severity",
                "message",
            ] {
                assert!(warning.get(key).is_some(), "no {key}: {warning}");
            }
            assert!(
                ["info", "warning", "critical", "error"]
                    .contains(&warning["severity"].as_str().unwrap())
            );
        }
        assert_eq!(ran.stderr, "", "{}", adapter.spec.id);
    }
}

/// The project, or the home for an agent that reads nothing else.
fn output_folder(scratch: &Scratch, adapter: &anyhook_agents::Adapter) -> PathBuf {
    use anyhook_agents::spec::Scope;
    if adapter.spec.is_written_at(Scope::Project) {
        return scratch.project();
    }
    scratch.home()
}

/// A file that the agent never reads would be a guard that holds nothing.
#[test]
fn a_user_s_config_is_not_written_into_a_project() {
    for id in ["kimi-code", "hermes-agent"] {
        let scratch = Scratch::new().unwrap();
        let ran = convert(&scratch, &["-", "--to", id, "-o", "."], GUARD);
        assert_eq!(ran.exit, Some(1), "{id}: {ran:?}");
        assert!(
            ran.stderr.contains("reads no hooks from a project"),
            "{ran:?}"
        );
    }
}

/// What is written where the agent looks is read back as that agent's own, and
/// adding it once more changes nothing.
#[test]
fn every_agent_s_file_is_known_where_it_was_put() {
    for adapter in anyhook_agents::all().filter(|adapter| !adapter.spec.pseudo) {
        let id = adapter.spec.id.as_ref();
        let scratch = Scratch::new().unwrap();
        let output = output_folder(&scratch, adapter);
        let output_name = output.to_str().unwrap();
        let ran = convert(
            &scratch,
            &["-", "--to", id, "-o", output_name, "--allow-loss"],
            GUARD,
        );
        assert_eq!(ran.exit, Some(0), "{id}: {ran:?}");
        let mut first = BTreeMap::new();
        files_of(&output, "", &mut first);
        assert!(!first.is_empty());
        let written = output.join(first.keys().next().unwrap());
        let is_scripts = adapter.spec.config.shape == anyhook_agents::spec::ConfigShape::Scripts;
        let input = if is_scripts {
            written.parent().unwrap()
        } else {
            &written
        };
        let input = input.to_str().unwrap();
        let back = convert(&scratch, &[input, "--to", "canonical", "--json"], "");
        let back = back.json().unwrap_or_else(|_| panic!("{id}: {back:?}"));
        assert_eq!(
            back["output"]["hooks"][0]["event"], "before_tool_execute",
            "{id}"
        );
        assert!(back.to_string().contains("./guard.sh"), "{id}: {back}");
        for flag in ["--merge", "--force"] {
            let again = convert(
                &scratch,
                &["-", "--to", id, "-o", output_name, flag, "--allow-loss"],
                GUARD,
            );
            assert_eq!(again.exit, Some(0), "{id}: {again:?}");
            let mut second = BTreeMap::new();
            files_of(&output, "", &mut second);
            assert_eq!(first, second, "{id} {flag}");
        }
    }
}

/// Merging puts entries behind those that are there, in every agent: some know
/// an entry by its position.
#[test]
fn merging_only_appends() {
    let other = GUARD.replace("./guard.sh", "./mine.sh");
    for adapter in anyhook_agents::all().filter(|adapter| !adapter.spec.pseudo) {
        use anyhook_agents::spec::ConfigShape;
        let id = adapter.spec.id.as_ref();
        if matches!(
            adapter.spec.config.shape,
            ConfigShape::Scripts | ConfigShape::Plugin
        ) {
            continue;
        }
        let scratch = Scratch::new().unwrap();
        let output = output_folder(&scratch, adapter);
        let name = output.to_str().unwrap();
        let to = ["-", "--to", id, "-o", name];
        convert(&scratch, &to, &other);
        let more = ["--merge", "--allow-loss"];
        let ran = convert(&scratch, &[&to[..], &more].concat(), GUARD);
        assert_eq!(ran.exit, Some(0), "{id}: {ran:?}");
        let mut files = BTreeMap::new();
        files_of(&output, "", &mut files);
        let text = files.values().next().unwrap();
        let (mine, ours) = (text.find("mine.sh"), text.find("guard.sh"));
        assert!(mine.is_some() && mine < ours, "{id}: {text}");
    }
}

#[test]
fn colour_is_for_terminals() {
    let scratch = Scratch::new().unwrap();
    for stdin in [GUARD, "{\"spec\": \"hooks/1.0\", \"hooks\": [}"] {
        let ran = scratch
            .command(ANYHOOK)
            .env("NO_COLOR", "")
            .run(
                ["convert", "-", "--from", "canonical", "--to", "windsurf"],
                stdin,
            )
            .unwrap();
        assert!(
            !ran.stderr.is_empty() && !ran.stderr.contains('\u{1b}'),
            "{ran:?}"
        );
    }
}

/// An http handler as a command does the same POST.
#[test]
fn an_http_handler_s_command_really_posts() {
    let scratch = Scratch::new().unwrap();
    if scratch.command("curl").run(["--version"], "").is_err() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = String::new();
        let mut buffer = [0; 4096];
        while !request.contains("\"rm -rf\"}") {
            let read = stream.read(&mut buffer).unwrap();
            assert!(read > 0, "the request ended early: {request}");
            request.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
        let body = r#"{"decision":"deny","reason":"no"}"#;
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        request
    });
    let manifest = json!({"spec": "hooks/1.0", "hooks": [{
        "event": "before_tool_execute",
        "blocking": true,
        "handler": {"type": "http", "url": format!("http://127.0.0.1:{port}/a'b?x=1"), "timeout": 20,
            "headers": {"Authorization": "Bearer $TOKEN", "X-Secret": "${SECRET}`id`"},
            "allowed_env_vars": ["TOKEN"]},
    }]});
    let ran = convert(
        &scratch,
        &["-", "--to", "gemini-cli", "--json"],
        &manifest.to_string(),
    );
    let report = ran.json().unwrap();
    let command = report
        .pointer("/output/hooks/BeforeTool/0/hooks/0/command")
        .and_then(Value::as_str);
    let posted = scratch
        .command("sh")
        .env("TOKEN", "t0ken")
        .env("SECRET", "hidden")
        .env("NO_PROXY", "*")
        .run(["-c", command.unwrap()], r#"{"tool":"rm -rf"}"#)
        .unwrap();
    let request = server.join().unwrap();
    assert!(request.starts_with("POST /a'b?x=1 "), "{request}");
    assert!(request.contains("Authorization: Bearer t0ken"), "{request}");
    assert!(request.contains("X-Secret: `id`"), "{request}");
    assert!(
        request
            .to_ascii_lowercase()
            .contains("content-type: application/json"),
        "{request}"
    );
    assert!(!request.contains("hidden"), "{request}");
    assert!(request.ends_with(r#"{"tool":"rm -rf"}"#), "{request}");
    assert_eq!(posted.exit, Some(0));
    assert_eq!(posted.json().unwrap()["decision"], "deny");
}

/// A guard is looked for in the project's folder, which may be below the root of its
/// repository; a config that is kept elsewhere says nothing of where that is.
#[test]
fn a_project_below_the_root_of_its_repository_keeps_its_folder() {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    let settings = r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
        {"type": "command", "command": "\"$CLAUDE_PROJECT_DIR\"/guard.sh"}]}]}}"#;
    for (path, expected) in [
        (".claude/settings.json", "|| pwd)\\\"/guard.sh"),
        (
            "packages/app/.claude/settings.json",
            "|| pwd)/packages/app\\\"/guard.sh",
        ),
        ("claude/settings.json", "|| pwd)\\\"/guard.sh"),
    ] {
        scratch.file(path, settings).unwrap();
        let arguments = [
            "convert",
            path,
            "--from",
            "claude-code",
            "--to",
            "codex",
            "--allow-loss",
        ];
        let ran = scratch
            .command(env!("CARGO_BIN_EXE_anyhook"))
            .run(arguments, "")
            .unwrap();
        assert!(ran.stdout.contains(expected), "{path}: {}", ran.stdout);
    }
}
