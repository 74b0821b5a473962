//! Guards that are hard to carry, converted by the real command: what decides is in
//! a variable, in another file, in the agent's settings, or in a part of the payload
//! that other agents do not send.

use std::fmt::Write as _;

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use serde_json::{Value, json};

use crate::calls::{NativeCall, captured, made_by};
use crate::execute::Executor;
use crate::guards::Guard;

/// A guard of Claude Code in a project of its own.
struct Case {
    label: &'static str,
    /// The capture that it denies.
    call: &'static str,
    matcher: &'static str,
    /// The handler; `command` alone is a line.
    handler: Value,
    /// Settings besides the hooks.
    settings: Value,
    /// Path and text of its files.
    files: &'static [(&'static str, &'static str)],
}

const BASH: &str = "PreToolUse-Bash.json";
const WRITE: &str = "PreToolUse-Write.json";
const EDIT: &str = "PreToolUse-Edit.json";
const MCP: &str = "PreToolUse-mcp__e2e__echo_back.json";

/// Denies a payload with Claude's keys.
const READS: &str = "#!/bin/sh\nread -r payload\ncase $payload in *'\"tool_input\":'*'\"command\":'*) echo no >&2; exit 2 ;; esac\n";
const DENIES: &str = "#!/bin/sh\necho no payload >&2\nexit 2\n";

fn line(command: &str) -> Value {
    json!(command)
}

fn cases() -> Vec<Case> {
    let case = |label, matcher, handler: Value, files| Case {
        label,
        call: BASH,
        matcher,
        handler,
        settings: Value::Null,
        files,
    };
    let on = |call, case: Case| Case { call, ..case };
    let file: &[(&str, &str)] = &[("g.sh", DENIES)];
    let plain = || line("./g.sh");
    let mut all = vec![
        // Variables and folders.
        case(
            "variable before the command",
            "Bash",
            line("STRICT=1 ./g.sh"),
            &[(
                "g.sh",
                "#!/bin/sh\n# payload\n[ \"$STRICT\" = 1 ] || exit 0\necho no >&2; exit 2\n",
            )],
        ),
        case(
            "env before the command",
            "Bash",
            line("env STRICT=1 ./g.sh"),
            &[(
                "g.sh",
                "#!/bin/sh\n# payload\n[ \"$STRICT\" = 1 ] || exit 0\necho no >&2; exit 2\n",
            )],
        ),
        Case {
            settings: json!({"env": {"STRICT": "1"}}),
            ..case(
                "variable of the settings",
                "Bash",
                plain(),
                &[(
                    "g.sh",
                    "#!/bin/sh\n# payload\n[ \"$STRICT\" = 1 ] || exit 0\necho no >&2; exit 2\n",
                )],
            )
        },
        Case {
            settings: json!({"env": {"GUARDS": "rules"}}),
            ..case(
                "variable of the settings in the line",
                "Bash",
                line("./$GUARDS/g.sh"),
                &[("rules/g.sh", DENIES)],
            )
        },
        case(
            "another folder",
            "Bash",
            line("cd rules && sh g.sh"),
            &[("rules/g.sh", DENIES)],
        ),
        case(
            "blanks in path and argument",
            "Bash",
            line("'./my rules/g.sh' 'a b'"),
            &[(
                "my rules/g.sh",
                "#!/bin/sh\n# payload\n[ \"$1\" = 'a b' ] || exit 0\necho no >&2; exit 2\n",
            )],
        ),
        case(
            "plugin folder",
            "Bash",
            line("\"$CLAUDE_PLUGIN_ROOT\"/g.sh"),
            file,
        ),
        case(
            "project folder by a default",
            "Bash",
            line("${CLAUDE_PROJECT_DIR:?}/g.sh"),
            file,
        ),
        case(
            "project folder in an inner shell",
            "Bash",
            line("sh -c '\"$CLAUDE_PROJECT_DIR\"/g.sh'"),
            file,
        ),
        case(
            "project folder by printenv",
            "Bash",
            line("\"$(printenv CLAUDE_PROJECT_DIR)\"/g.sh"),
            file,
        ),
        case(
            "project folder by eval",
            "Bash",
            line("eval \"\\$CLAUDE_PROJECT_DIR/g.sh\""),
            file,
        ),
        // Interpreters.
        case(
            "interpreter in an interpreter",
            "Bash",
            line("sh -c 'sh -c ./g.sh'"),
            &[("g.sh", READS)],
        ),
        case(
            "text of a file as code",
            "Bash",
            line("sh -c \"$(cat g.sh)\""),
            &[("g.sh", READS)],
        ),
        case(
            "wrapper",
            "Bash",
            line("timeout 5 ./g.sh"),
            &[("g.sh", READS)],
        ),
        case(
            "library",
            "Bash",
            plain(),
            &[
                ("g.sh", "#!/bin/sh\n. ./lib/judge\njudge \"$payload\"\n"),
                (
                    "lib/judge",
                    "read -r payload\njudge() { case $1 in *'\"tool_input\":'*'\"command\":'*) echo no >&2; exit 2 ;; esac; }\n",
                ),
            ],
        ),
        case(
            "program with a file of rules",
            "Bash",
            line("PATH=./bin:$PATH judge rules.txt"),
            &[
                ("bin/judge", READS),
                ("rules.txt", "# checks tool_input and command\n"),
            ],
        ),
        case(
            "keys from two parts",
            "Bash",
            plain(),
            &[(
                "g.sh",
                "#!/bin/sh\nread -r payload\nfirst=tool; second=input; third=comm\ncase $payload in *\"\\\"${first}_$second\\\":\"*\"\\\"${third}and\\\":\"*) echo no >&2; exit 2 ;; esac\n",
            )],
        ),
        // Parts of the payload beside the tool's input.
        case(
            "name of the event",
            "Bash",
            plain(),
            &[(
                "g.sh",
                "#!/bin/sh\nread -r payload\ncase $payload in *'\"hook_event_name\":\"PreToolUse\"'*) echo no >&2; exit 2 ;; esac\n",
            )],
        ),
        case(
            "name of the event and the command",
            "Bash",
            plain(),
            &[(
                "g.sh",
                "#!/bin/sh\nread -r payload\ncase $payload in *'\"hook_event_name\":\"PreToolUse\"'*) case $payload in *'\"tool_input\":'*) echo no >&2; exit 2 ;; esac ;; esac\n",
            )],
        ),
        case(
            "permission mode",
            "Bash",
            plain(),
            &[(
                "g.sh",
                "#!/bin/sh\nread -r payload\ncase $payload in *'\"permission_mode\":\"'*) echo no >&2; exit 2 ;; esac\n",
            )],
        ),
        case(
            "session",
            "Bash",
            plain(),
            &[(
                "g.sh",
                "#!/bin/sh\nread -r payload\ncase $payload in *'\"session_id\":\"'*) case $payload in *'\"tool_input\":'*) echo no >&2; exit 2 ;; esac ;; esac\n",
            )],
        ),
        case(
            "transcript",
            "Bash",
            plain(),
            &[(
                "g.sh",
                "#!/bin/sh\nread -r payload\ncase $payload in *'\"transcript_path\":\"/'*) echo no >&2; exit 2 ;; esac\n",
            )],
        ),
        case(
            "folder of the session",
            "Bash",
            plain(),
            &[(
                "g.sh",
                "#!/bin/sh\nread -r payload\ncase $payload in *'\"cwd\":\"/'*) echo no >&2; exit 2 ;; esac\n",
            )],
        ),
        on(
            WRITE,
            case(
                "content of a file",
                "Write",
                plain(),
                &[(
                    "g.sh",
                    "#!/bin/sh\nread -r payload\ncase $payload in *'\"tool_input\":'*'\"content\":'*) echo no >&2; exit 2 ;; esac\n",
                )],
            ),
        ),
        on(
            EDIT,
            case(
                "new text of an edit",
                "Edit",
                plain(),
                &[(
                    "g.sh",
                    "#!/bin/sh\nread -r payload\ncase $payload in *'\"tool_input\":'*'\"new_string\":'*) echo no >&2; exit 2 ;; esac\n",
                )],
            ),
        ),
        on(
            WRITE,
            case(
                "absolute path",
                "Write|Edit",
                plain(),
                &[(
                    "g.sh",
                    "#!/bin/sh\nread -r payload\ncase $payload in *'\"tool_input\":'*'\"file_path\":\"/'*) echo no >&2; exit 2 ;; esac\n",
                )],
            ),
        ),
        case(
            "name of the tool, written in a list",
            "",
            plain(),
            &[(
                "g.sh",
                "#!/bin/sh\nread -r payload\nfor tool in Write Bash Edit; do case $payload in *\"\\\"tool_name\\\":\\\"$tool\\\"\"*) echo no >&2; exit 2 ;; esac; done\n",
            )],
        ),
        // Answers.
        case(
            "exit code of a variable",
            "Bash",
            plain(),
            &[(
                "g.sh",
                "#!/bin/sh\n# payload\ncode=2\necho no >&2\nexit $code\n",
            )],
        ),
        case(
            "exit code of a sum",
            "Bash",
            plain(),
            &[(
                "g.sh",
                "#!/bin/sh\n# payload\necho no >&2\nexit $((1 + 1))\n",
            )],
        ),
        case(
            "exit code of a function",
            "Bash",
            plain(),
            &[(
                "g.sh",
                "#!/bin/sh\n# payload\njudge() { echo no >&2; return 2; }\njudge\n",
            )],
        ),
        case(
            "decision of a variable",
            "Bash",
            plain(),
            &[(
                "g.sh",
                "#!/bin/sh\n# payload\nword=deny\nprintf '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"%s\",\"permissionDecisionReason\":\"no\"}}' \"$word\"\n",
            )],
        ),
        case(
            "older form of a decision",
            "Bash",
            plain(),
            &[(
                "g.sh",
                "#!/bin/sh\n# payload\nprintf '{\"decision\":\"block\",\"reason\":\"no\"}'\n",
            )],
        ),
        case(
            "decision in a file",
            "Bash",
            line("cat deny.json # payload"),
            &[(
                "deny.json",
                "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"no\"}}",
            )],
        ),
        case(
            "decision in a file that a script prints",
            "Bash",
            plain(),
            &[
                ("g.sh", "#!/bin/sh\n# payload, tool_input\ncat deny.txt\n"),
                (
                    "deny.txt",
                    "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"no\"}}",
                ),
            ],
        ),
        // Handlers.
        case(
            "exec form with blanks",
            "Bash",
            json!({"command": "sh", "args": ["my rules/g.sh", "a b"]}),
            &[(
                "my rules/g.sh",
                "#!/bin/sh\n# payload\n[ \"$1\" = 'a b' ] || exit 0\necho no >&2; exit 2\n",
            )],
        ),
        case(
            "condition of the agent",
            "Bash",
            json!({"command": "./g.sh", "if": "Bash(*)"}),
            file,
        ),
        case(
            "unknown keys",
            "Bash",
            json!({"command": "./g.sh", "once": true, "enabled": true}),
            file,
        ),
        case(
            "failure blocks",
            "Bash",
            json!({"command": "./g.sh", "onFailure": "block"}),
            &[("g.sh", "#!/bin/sh\n# payload\nexit 1\n")],
        ),
    ];
    for (label, matcher) in [
        ("anchored", "^Bash$"),
        ("anchored alternatives", "^(Bash|Edit)$"),
        ("alternatives with anchors", "^Edit$|^Bash$"),
        ("list", "Edit|Bash"),
        ("list with commas", "Edit, Bash"),
        ("class", "[BE](ash|dit)"),
        ("any letter", "Ba.h"),
        ("without case", "(?i)bash"),
        ("everything", "*"),
        ("part of a name", "Bas.?"),
    ] {
        all.push(case(label, matcher, plain(), file));
    }
    for (label, matcher) in [
        ("every MCP tool", "mcp__.*"),
        ("every tool of a server", "mcp__e2e__.*"),
        ("a tool of every server", "mcp__.*__echo_back"),
        ("MCP tools with a prefix", "mcp__.*__echo.*"),
        ("one MCP tool", "mcp__e2e__echo_back"),
        ("MCP tools beside another", "Bash|mcp__e2e__.*"),
        ("anchored MCP tools", "^mcp__(e2e|other)__.*$"),
    ] {
        all.push(on(MCP, case(label, matcher, plain(), file)));
    }
    all
}

/// A case in the project of the executor, and its guard.
fn set_up(executor: &Executor, index: usize, case: &Case) -> Guard {
    let scratch = &executor.scratch;
    let id = format!("case{index:02}");
    for (path, text) in case.files {
        scratch.exec(format!("{id}/{path}"), text).unwrap();
    }
    // Each case has a folder of its own below the project.
    let within = |text: &str| {
        let mut text = text.replace("./g.sh", &format!("./{id}/g.sh"));
        for folder in ["my rules/", "rules/", "$GUARDS/"] {
            text = text.replace(&format!("./{folder}"), &format!("./{id}/{folder}"));
        }
        text.replace("_ROOT\"/", &format!("_ROOT\"/{id}/"))
            .replace("_DIR:?}/", &format!("_DIR:?}}/{id}/"))
            .replace("_DIR\"/", &format!("_DIR\"/{id}/"))
            .replace("_DIR)\"/", &format!("_DIR)\"/{id}/"))
            .replace("_DIR/", &format!("_DIR/{id}/"))
            .replace("cd rules", &format!("cd {id}/rules"))
            .replace("cat ", &format!("cat {id}/"))
            .replace("./bin:", &format!("./{id}/bin:"))
            .replace("judge rules", &format!("judge {id}/rules"))
            .replace(". ./lib", &format!(". ./{id}/lib"))
    };
    let mut handler = match &case.handler {
        Value::String(text) => json!({"command": within(text)}),
        other => {
            let mut handler = other.clone();
            handler["command"] = within(other["command"].as_str().unwrap()).into();
            if let Some(first) = handler.get_mut("args").and_then(|args| args.get_mut(0)) {
                *first = format!("{id}/{}", first.as_str().unwrap()).into();
            }
            handler
        }
    };
    handler["type"] = json!("command");
    for (path, text) in case.files {
        scratch.exec(format!("{id}/{path}"), &within(text)).unwrap();
    }
    let mut entry = json!({"hooks": [handler]});
    if !case.matcher.is_empty() {
        entry["matcher"] = case.matcher.into();
    }
    let mut document = json!({"hooks": {"PreToolUse": [entry]}});
    for (key, value) in case.settings.as_object().into_iter().flatten() {
        document[key] = value.clone();
    }
    let script = case.files.iter().map(|(_, text)| *text);
    Guard {
        label: case.label.to_owned(),
        id,
        document,
        script: script.collect(),
    }
}

/// Whether the command refuses, or the converted config.
fn convert(executor: &Executor, guard: &Guard, to: &str) -> Option<Value> {
    let scratch = &executor.scratch;
    let path = scratch
        .file(
            format!(".claude/{}.json", guard.id),
            &guard.document.to_string(),
        )
        .unwrap();
    let path = path.display().to_string();
    let arguments = [
        "convert",
        &path,
        "--from",
        "claude-code",
        "--to",
        to,
        "--json",
    ];
    let output = scratch.command(env!("CARGO_BIN_EXE_anyhook"));
    let output = output.run(arguments, "").unwrap();
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    let document = &report["output"];
    // A plugin is given as text, with its document in one line.
    let line = document.as_str().unwrap_or_default().lines();
    let mut line = line.filter_map(|line| line.split_once("anyhook-config: "));
    let in_line = line
        .next()
        .map(|(_, text)| serde_json::from_str(text).unwrap());
    (output.exit == Some(0)).then(|| in_line.unwrap_or_else(|| document.clone()))
}

/// What a client other than Claude Code makes of the converted guard, if anything is
/// wrong.
fn wrong_cell(
    executor: &Executor,
    guard: &Guard,
    call: &NativeCall,
    target: &'static Adapter,
) -> Option<String> {
    let document = convert(executor, guard, &target.spec.id)?;
    for made in made_by(target, &call.canonical, &call.name) {
        if let Err(log) = executor.denies(target, &document, guard, &made) {
            let text = document.to_string();
            let text: String = text.chars().take(600).collect();
            return Some(format!("  {text}\n  {}\n{log}", made.events[0].1));
        }
    }
    None
}

pub(crate) fn check() {
    let executor = Executor::new();
    let claude = anyhook_agents::get("claude-code").unwrap();
    let project = executor.scratch.project().display().to_string();
    let calls = captured(claude, &project);
    let only = std::env::var("PROBE_CASE").ok();
    let mut wrong = String::new();
    let mut count = 0;
    for (index, case) in cases().iter().enumerate() {
        if only.as_deref().is_some_and(|only| only != case.label) {
            continue;
        }
        let guard = set_up(&executor, index, case);
        let call = calls.iter().find(|call| call.name == case.call).unwrap();
        // What the settings and plugins of the client set is not executed here.
        let is_assumed = !case.settings.is_null() || case.label == "plugin folder";
        if !is_assumed && let Err(log) = executor.denies(claude, &guard.document, &guard, call) {
            let _ = writeln!(wrong, "{}: does not deny in Claude Code\n{log}", case.label);
            continue;
        }
        for target in clients().filter(|target| target.spec.id != "claude-code") {
            if !executor.can_run(target) {
                continue;
            }
            count += 1;
            if let Some(log) = wrong_cell(&executor, &guard, call, target) {
                let _ = writeln!(wrong, "{} → {}:\n{log}", case.label, target.spec.id);
            }
        }
    }
    println!("{count} conversions");
    assert!(wrong.is_empty(), "{wrong}");
}
