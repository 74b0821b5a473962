//! Every code block of README.md and docs/: what can run is run, the rest is named with
//! the reason.
#![cfg(unix)] // the blocks are for a POSIX shell
#![cfg(test)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhook_export::otlp::OtlpConfig;
use anyhook_model::Format;
use anyhook_run::config::settings::Settings;
use anyhook_testkit::{ProcessOutput, Scratch};
use serde_json::Value;

/// How a block is tested.
#[derive(Clone, Copy)]
enum How {
    /// A manifest: `validate` accepts it.
    Manifest,
    /// The same for a part of one, below this text.
    Below(&'static str),
    /// Settings: they are parsed, and none of their fields is unknown.
    Settings,
    /// JSON, in which `…` marks what was left out.
    Json,
    /// The table of an agent: `agents check` accepts it.
    AgentTable,
    /// TOML.
    Toml,
    /// Commands that run, one after another, in one project; each succeeds.
    Commands,
    /// A program in this file; it gets an envelope on stdin and succeeds.
    Consumer(&'static str),
    /// The test that runs it: a file or folder of this crate's tests or of another crate's.
    By(&'static str),
    /// Why it cannot run here. Commands of anyhook are parsed all the same, by `readme.rs`.
    NotRun(&'static str),
}

use How::{
    AgentTable, Below, By, Commands, Consumer, Json, Manifest, NotRun, Settings as Config, Toml,
};

const SERVER: &str = "needs a server or a database";
const BUILDS: &str = "builds the project, which has built this test";
const SHOWN: &str = "shows a part of a file or of an output";

/// Page, first line of the block, and how it is tested.
const BLOCKS: &[(&str, &str, How)] = &[
    ("README.md", "cargo run --release -- demo", NotRun(BUILDS)),
    ("README.md", "cargo xtask test", NotRun(BUILDS)),
    (
        "README.md",
        "cargo install --path crates/anyhook",
        NotRun(BUILDS),
    ),
    (
        "README.md",
        "$ anyhook init --import",
        By("readme.rs::the_first_path"),
    ),
    (
        "docs/codex.md",
        "$ anyhook codex proxy -- codex app-server",
        By("codex/replay.rs"),
    ),
    (
        "docs/codex.md",
        "#!/bin/sh",
        NotRun("starts Codex; tests/codex starts the same command"),
    ),
    (
        "docs/codex.md",
        "$ codex app-server --listen ws://127.0.0.1:4222 &",
        NotRun("starts Codex; tests/codex/attach.rs attaches"),
    ),
    ("docs/configuration.md", "evaluator:", Config),
    (
        "docs/convert.md",
        "anyhook convert .claude/settings.json --to codex",
        Commands,
    ),
    ("docs/convert.md", "hooks:", Below("spec: hooks/1.0\n")),
    (
        "docs/convert.md",
        "PreToolUse[Bash] sanitize.sh `sanitize`",
        NotRun(SHOWN),
    ),
    ("docs/convert.md", "{ \"output\": {},", Json),
    ("docs/daemon.md", "$ anyhook serve", By("serve.rs")),
    (
        "docs/daemon.md",
        "anyhook install --scope user --via daemon",
        By("via_daemon.rs"),
    ),
    (
        "docs/daemon.md",
        "{\"hook_type\": \"pre-tool-use\", \"input_data\": {\"session_id\": \"…\", \"tool_name\": \"Bash\", \"tool_input\": {}}}",
        Json,
    ),
    (
        "docs/daemon.md",
        "anyhook run --agent claude-code --server                              # your daemon on this machine",
        By("serve.rs"),
    ),
    (
        "docs/daemon.md",
        "curl -s -H 'content-type: application/json' --data-binary @- -D /tmp/head \\",
        NotRun(SERVER),
    ),
    ("docs/daemon.md", "approvals:", Config),
    (
        "docs/daemon.md",
        "$ anyhook approve",
        By("guards/approve.rs"),
    ),
    (
        "docs/daemon.md",
        "anyhook log --decision deny --since 2h      # newest first",
        By("page_blocks.rs::the_commands_of_the_journal"),
    ),
    (
        "docs/daemon.md",
        "ANYHOOK_TOKEN=… anyhook ship --to https://hooks.example.com --follow",
        NotRun(SERVER),
    ),
    (
        "docs/daemon.md",
        "export ANYHOOK_STORE=postgres://anyhook:…@db.internal/anyhook   # sslmode=require for TLS",
        NotRun(SERVER),
    ),
    (
        "docs/fleet.md",
        "anyhook export parquet --to /srv/anyhook-archive",
        By("anyhook-archive/tests/archive.rs"),
    ),
    (
        "docs/fleet.md",
        "anyhook serve --retain 30d --archive s3://company-logs/anyhook",
        NotRun(SERVER),
    ),
    (
        "docs/fleet.md",
        "events/v=1/day=2026-02-23/<store>-<first seq>-<last seq>.parquet",
        NotRun(SHOWN),
    ),
    (
        "docs/fleet.md",
        "CREATE VIEW events AS",
        By("anyhook-archive/tests/archive.rs"),
    ),
    (
        "docs/fleet.md",
        "SELECT toDate(time) AS day, agent, countIf(decision = 'deny') AS denials, count() AS events",
        By("anyhook-archive/tests/archive.rs"),
    ),
    (
        "docs/fleet.md",
        "spark.read.parquet(\"s3a://company-logs/anyhook/events\").createOrReplaceTempView(\"events\")",
        By("anyhook-archive/tests/archive.rs"),
    ),
    ("docs/guards.md", "spec: hooks/1.0", Manifest),
    (
        "docs/guards.md",
        "  - name: network",
        Below("spec: hooks/1.0\nhooks:\n"),
    ),
    (
        "docs/guards.md",
        "  - name: ask-before-push",
        Below("spec: hooks/1.0\nhooks:\n"),
    ),
    ("docs/guards.md", "rules:", By("guards/presets.rs")),
    (
        "docs/install.md",
        "/bin/sh -c 'command -v ~/.local/share/anyhook/bin/\"$0\" >/dev/null && exec ~/.local/share/anyhook/bin/\"$0\" \"$@\"; command -v \"$0\" >/dev/null && exec \"$0\" \"$@\"; cat >/dev/null' anyhook run --agent claude-code --scope project",
        By("install_program.rs"),
    ),
    ("docs/manifest.md", "spec: hooks/1.0", Manifest),
    ("docs/openhook.md", "{", Json),
    (
        "docs/openhook.md",
        "$ anyhook validate .openhook.json",
        Commands,
    ),
    ("docs/openhook.md", "#!/bin/sh", Consumer("observe.sh")),
    (
        "docs/openhook.md",
        "import json, sys",
        Consumer("collect.py"),
    ),
    (
        "docs/openhook.md",
        "$ anyhook emit --type session.end --source my-agent --session s1 --data '{\"reason\":\"completed\"}'",
        Commands,
    ),
    (
        "docs/openhook.md",
        "anyhook emit --agent my-agent | ./observe.sh",
        Commands,
    ),
    (
        "docs/openhook.md",
        "$ anyhook openhook validate events.jsonl",
        Commands,
    ),
    (
        "docs/openhook.md",
        "$ anyhook openhook trace events.jsonl",
        Commands,
    ),
    (
        "docs/opentelemetry.md",
        "anyhook export otlp --endpoint http://localhost:4318            # what was not sent yet",
        By("export/"),
    ),
    ("docs/opentelemetry.md", "otlp:", Config),
    ("docs/opentelemetry.md", "date = \"2026-01-31\"", Toml),
    ("docs/opentelemetry.md", "spec: hooks/1.0", Manifest),
    ("docs/own-agent.md", "id = \"mine\"", AgentTable),
    (
        "docs/packaging.md",
        "cargo xtask dist            # writes dist/",
        NotRun(BUILDS),
    ),
    ("docs/prompts.md", "spec: hooks/1.0", Manifest),
    ("docs/prompts.md", "evaluator:", Config),
    ("docs/prompts.md", "#!/bin/sh", Consumer("judge.sh")),
    (
        "docs/security.md",
        "  /etc/anyhook/hooks.yaml     the guards",
        NotRun(SHOWN),
    ),
    (
        "docs/tour.md",
        "cargo build --release && alias anyhook=\"$PWD/target/release/anyhook\"",
        By("readme.rs::the_tour"),
    ),
    ("docs/tour.md", "spec: hooks/1.0", Manifest),
    (
        "docs/tour.md",
        "anyhook init --preset standard",
        By("readme.rs::the_tour"),
    ),
    (
        "docs/tour.md",
        "anyhook validate examples/guard/hooks.yaml",
        By("readme.rs::the_tour"),
    ),
    (
        "docs/tour.md",
        "sed 's/before_tool_execute/before_tool_exceute/; s/blocking: true/blocking: \"yes\"/' examples/guard/hooks.yaml | anyhook validate -",
        By("readme.rs::the_tour"),
    ),
    (
        "docs/tour.md",
        "echo '{\"event\":\"before_tool_execute\",\"data\":{\"tool_input\":{\"command\":\"rm -rf /\"}}}' | examples/guard/guard.sh; echo \"exit $?\"",
        By("readme.rs::the_tour"),
    ),
    (
        "docs/tour.md",
        "cp -r examples/guard .anyhook && anyhook trust --yes",
        By("readme.rs::the_tour"),
    ),
    (
        "docs/tour.md",
        "anyhook test --input '{\"command\": \"rm -rf /\"}'",
        By("readme.rs::the_tour"),
    ),
    (
        "docs/tour.md",
        "anyhook install --agent claude-code --agent cursor --yes",
        By("readme.rs::the_tour"),
    ),
    (
        "docs/tour.md",
        "anyhook convert examples/claude/settings.json --to cursor --allow-loss",
        By("readme.rs::the_tour"),
    ),
    ("docs/tour.md", "anyhook events", By("readme.rs::the_tour")),
    (
        "docs/writing-hooks.md",
        "anyhook new hook no-force-push --lang python",
        Commands,
    ),
    ("docs/writing-hooks.md", "anyhook trust --yes", Commands),
    (
        "docs/writing-hooks.md",
        "#!/bin/sh",
        By("readme.rs::the_hooks_of_the_page"),
    ),
    (
        "docs/writing-hooks.md",
        "import json",
        By("readme.rs::the_hooks_of_the_page"),
    ),
    (
        "docs/writing-hooks.md",
        "let text = \"\";",
        By("readme.rs::the_hooks_of_the_page"),
    ),
    (
        "docs/writing-hooks.md",
        "package main",
        By("readme.rs::the_hooks_of_the_page"),
    ),
];

const ENVELOPE: &str = r#"{"openhook":"0.1","id":"8f14e45f-ceea-467f-9f3e-1f2b6a0c9d11","type":"session.end","time":"2026-02-23T10:15:30Z","source":"my-agent","session_id":"s1","data":{"reason":"completed"}}"#;
const PAYLOAD: &str = r#"{"hook_event_name":"SessionEnd","session_id":"s1","cwd":"/tmp","transcript_path":"/tmp/t","reason":"exit"}"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

struct Block {
    page: String,
    text: String,
}

/// The fenced and the indented blocks of a page.
fn blocks_of(page: &str) -> Vec<Block> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let mut blocks = Vec::new();
    let mut add = |text: &str| {
        blocks.push(Block {
            page: page.to_owned(),
            text: text.to_owned(),
        });
    };
    for (number, part) in text.split("\n```").enumerate() {
        if number % 2 == 1 {
            add(part.split_once('\n').unwrap().1);
            continue;
        }
        let mut block = String::new();
        let mut was_empty = true;
        for line in part.lines().chain([".", "."]) {
            match line.strip_prefix("    ") {
                Some(inner) if was_empty || !block.is_empty() => {
                    block.push_str(inner);
                    block.push('\n');
                }
                _ if line.is_empty() && !block.is_empty() => block.push('\n'),
                _ if !block.is_empty() => {
                    add(block.trim_end());
                    block.clear();
                }
                _ => {}
            }
            was_empty = line.is_empty();
        }
    }
    blocks
}

fn all_blocks() -> Vec<Block> {
    let mut pages = vec!["README.md".to_owned()];
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if Path::new(&name).extension().is_some_and(|it| it == "md") {
            pages.push(format!("docs/{name}"));
        }
    }
    pages.sort();
    pages.iter().flat_map(|page| blocks_of(page)).collect()
}

fn first_line(block: &Block) -> &str {
    block.text.lines().next().unwrap_or_default()
}

/// A project with what the pages speak of.
fn project() -> Scratch {
    let scratch = Scratch::new().unwrap();
    for file in ["settings.json", "hooks/guard.sh"] {
        let from = root().join("examples/three-hooks/.claude").join(file);
        let text = fs::read_to_string(from).unwrap();
        scratch.exec(format!(".claude/{file}"), &text).unwrap();
    }
    scratch
        .file("events.jsonl", &format!("{ENVELOPE}\n"))
        .unwrap();
    scratch.file("payload.json", PAYLOAD).unwrap();
    let rules = fs::read_to_string(root().join("examples/guards/rules.yaml")).unwrap();
    scratch.file("page/rules.yaml", &rules).unwrap();
    // Until the page shows them.
    for consumer in ["observe.sh", "collect.py"] {
        scratch.exec(consumer, "").unwrap();
    }
    scratch
}

/// Runs a line as written, with `anyhook` on the PATH and no terminal.
fn run_line(scratch: &Scratch, line: &str, stdin: &str) -> ProcessOutput {
    let binary = Path::new(env!("CARGO_BIN_EXE_anyhook"));
    let mut folders = vec![binary.parent().unwrap().to_owned()];
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    scratch
        .command("sh")
        .env("PATH", std::env::join_paths(folders).unwrap())
        .env("ANYHOOK_PROGRAM", binary)
        .run(["-c", line], stdin)
        .unwrap()
}

#[track_caller]
fn assert_succeeds(block: &Block, output: &ProcessOutput) {
    assert_eq!(
        output.exit,
        Some(0),
        "{}: {}\n{}{}",
        block.page,
        block.text,
        output.stdout,
        output.stderr
    );
}

fn check(scratch: &Scratch, block: &Block, how: How) {
    let validate = |text: &str| {
        scratch.file("page/hooks.yaml", text).unwrap();
        run_line(scratch, "anyhook validate page/hooks.yaml", "")
    };
    match how {
        Manifest => assert_succeeds(block, &validate(&block.text)),
        Below(top) => assert_succeeds(block, &validate(&format!("{top}{}\n", block.text))),
        Config => {
            let settings = Settings::parse(&block.text, Format::Yaml).unwrap();
            if !settings.otlp.is_null() {
                let _: OtlpConfig = serde_json::from_value(settings.otlp).unwrap();
            }
            for field in setting_paths(&block.text) {
                let known = anyhook_model::config_fields::CONFIG;
                let is_known = known.iter().any(|one| field.starts_with(one.path));
                assert!(is_known, "{}: `{field}`", block.page);
            }
        }
        Json => {
            let _: Value = serde_json::from_str(&block.text)
                .unwrap_or_else(|error| panic!("{}: {error}: {}", block.page, block.text));
            if block.page == "docs/openhook.md" {
                scratch.file(".openhook.json", &block.text).unwrap();
            }
        }
        AgentTable => {
            scratch.file("mine/agent.toml", &block.text).unwrap();
            assert_succeeds(
                block,
                &run_line(scratch, "anyhook agents check mine/agent.toml", ""),
            );
        }
        Toml => {
            let _: toml::Table = block.text.parse().unwrap();
        }
        Commands => {
            for line in block.text.lines() {
                let line = line.strip_prefix("$ ").unwrap_or(line);
                // Nobody can be asked here.
                let line = line
                    .replace("anyhook trust", "anyhook trust --yes")
                    .replace("--yes --yes", "--yes");
                assert_succeeds(block, &run_line(scratch, &line, PAYLOAD));
            }
        }
        Consumer(name) => {
            let text = block.text.replace("/tmp/", "");
            scratch.exec(name, &text).unwrap();
            let program = if Path::new(name).extension().is_some_and(|it| it == "py") {
                "python3"
            } else {
                "sh"
            };
            if Command::new(program).arg("-c").arg("").output().is_err() {
                eprintln!("skipped: `{program}` is not installed");
                return;
            }
            let line = format!("{program} ./{name}");
            assert_succeeds(block, &run_line(scratch, &line, ENVELOPE));
        }
        By(test) => assert_test_exists(test),
        NotRun(why) => eprintln!("not run: {}: {}: {why}", block.page, first_line(block)),
    }
}

#[track_caller]
fn assert_test_exists(test: &str) {
    let (file, function) = test.split_once("::").unwrap_or((test, ""));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = [
        folder.join("tests").join(file),
        folder.join("..").join(file),
    ];
    let place = places.iter().find(|place| place.exists());
    let place = place.unwrap_or_else(|| panic!("there is no {file}"));
    if !function.is_empty() {
        let text = fs::read_to_string(place).unwrap();
        assert!(text.contains(&format!("fn {function}(")), "{test}");
    }
}

/// The settings that a YAML text names, such as `otlp.headers.x-api-key`.
fn setting_paths(text: &str) -> Vec<String> {
    fn walk(value: &Value, path: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    let inner = if path.is_empty() {
                        name.clone()
                    } else {
                        format!("{path}.{name}")
                    };
                    walk(member, &inner, found);
                }
            }
            _ => found.push(path.to_owned()),
        }
    }
    let (tree, _) = anyhook_model::document::parse(text, Format::Yaml);
    let mut found = Vec::new();
    walk(&tree.unwrap().to_json(), "", &mut found);
    found
}

#[test]
fn every_block_is_tested_or_named() {
    let blocks = all_blocks();
    let mut scratch = project();
    let mut page = String::new();
    for block in &blocks {
        if block.page != page {
            scratch = project();
            page.clone_from(&block.page);
        }
        let mut rows = BLOCKS.iter();
        let row = rows.find(|(page, line, _)| *page == block.page && *line == first_line(block));
        let Some((_, _, how)) = row else {
            panic!("{}: this block has no row: {}", block.page, block.text);
        };
        check(&scratch, block, *how);
    }
    for (page, line, _) in BLOCKS {
        let is_there = |block: &Block| block.page == *page && first_line(block) == *line;
        assert!(blocks.iter().any(is_there), "{page} has no block {line:?}");
    }
}

/// The commands about the journal in docs/daemon.md, with the id of an event that exists.
#[test]
fn the_commands_of_the_journal() {
    let scratch = project();
    let payload = PAYLOAD.replace("/tmp\"", &format!("{}\"", scratch.project().display()));
    let run = run_line(&scratch, "anyhook run --agent claude-code", &payload);
    assert_eq!(run.exit, Some(0), "{run:?}");
    let log = run_line(&scratch, "anyhook log --json", "");
    let event: Value = serde_json::from_str(log.stdout.lines().next().unwrap()).unwrap();
    let id = event["id"].as_str().unwrap();
    let page = fs::read_to_string(root().join("docs/daemon.md")).unwrap();
    let (_, rest) = page
        .split_once("## The journal on the command line")
        .unwrap();
    let block = rest
        .split("```")
        .nth(1)
        .unwrap()
        .strip_prefix("sh\n")
        .unwrap();
    let mut ran = 0;
    for line in block.lines().filter(|line| !line.contains("tail -f")) {
        let line = line.replace("4f1c09aa", id);
        let output = run_line(&scratch, &line, "");
        assert_eq!(output.exit, Some(0), "{line}: {output:?}");
        ran += 1;
    }
    assert!(ran >= 6, "{ran}");
}
