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
    /// What it needs on the machine beside a shell.
    program: Option<&'static str>,
    /// It asks the user or ends the run.
    asks_or_ends: bool,
}

const BASH: &str = "PreToolUse-Bash.json";
const WRITE: &str = "PreToolUse-Write.json";
const DESCRIBED: &str = "PreToolUse-Bash-subagent.json";
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
        program: None,
        asks_or_ends: false,
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
        Case {
            asks_or_ends: true,
            ..case(
                "question to the user",
                "Bash",
                plain(),
                &[(
                    "g.sh",
                    "#!/bin/sh\nread -r payload\ncase $payload in *'\"tool_input\":'*'\"command\":'*) printf '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"ask\",\"permissionDecisionReason\":\"sure?\"}}' ;; esac\n",
                )],
            )
        },
        Case {
            asks_or_ends: true,
            ..case(
                "end of the run",
                "Bash",
                plain(),
                &[(
                    "g.sh",
                    "#!/bin/sh\nread -r payload\ncase $payload in *'\"tool_input\":'*'\"command\":'*) printf '{\"continue\": false, \"stopReason\": \"no\"}' ;; esac\n",
                )],
            )
        },
        case(
            "decision with exit 1",
            "Bash",
            plain(),
            &[(
                "g.sh",
                "#!/bin/sh\nread -r payload\ncase $payload in *'\"tool_input\":'*'\"command\":'*) printf '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"no\"}}'; exit 1 ;; esac\n",
            )],
        ),
        case(
            "decision with exit 2 and nothing on stderr",
            "Bash",
            plain(),
            &[(
                "g.sh",
                "#!/bin/sh\nread -r payload || echo nothing >&2\ncase $payload in *'\"tool_input\":'*'\"command\":'*) printf '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"no\"}}'; exit 2 ;; esac\n",
            )],
        ),
        // What decides is in another file.
        on(
            DESCRIBED,
            case(
                "library beside the script, in quotes with a variable",
                "Bash",
                plain(),
                &[
                    (
                        "g.sh",
                        "#!/bin/sh\nhere=$(dirname \"$0\")\n. \"$here/judge\"\nread -r payload\njudge \"$payload\" '\"tool_input\":'\n",
                    ),
                    (
                        "judge",
                        "judge() { case $1 in *\"$2\"*'\"description\":'*) echo no >&2; exit 2 ;; esac; }\n",
                    ),
                ],
            ),
        ),
        on(
            DESCRIBED,
            Case {
                program: Some("python3"),
                ..case(
                    "module beside the script",
                    "Bash",
                    line("./g.py"),
                    &[
                        (
                            "g.py",
                            "#!/usr/bin/env python3\nimport json, sys\nfrom judge import check\np = json.load(sys.stdin)\nprint(p['tool_input']['command'], file=sys.stderr)\nsys.exit(check(p))\n",
                        ),
                        (
                            "judge.py",
                            "def check(p):\n    return 2 if p['tool_input'].get('description') else 0\n",
                        ),
                    ],
                )
            },
        ),
        on(
            DESCRIBED,
            Case {
                program: Some("node"),
                ..case(
                    "module without an ending",
                    "Bash",
                    line("./g.js"),
                    &[
                        (
                            "g.js",
                            "#!/usr/bin/env node\nconst p = JSON.parse(require('fs').readFileSync(0, 'utf8'));\nconst judge = require('./judge');\nif (judge(p) && p.tool_input.command) {\n  console.error('no');\n  process.exit(2);\n}\n",
                        ),
                        (
                            "judge.js",
                            "module.exports = (p) => p.tool_input.description;\n",
                        ),
                    ],
                )
            },
        ),
        on(
            DESCRIBED,
            case(
                "program that gets the payload by a pipe",
                "Bash",
                line("PATH=./bin:$PATH ./g.sh"),
                &[
                    (
                        "g.sh",
                        "#!/bin/sh\nread -r payload\ncase $payload in *'\"tool_input\":'*'\"command\":'*) ;; *) exit 0 ;; esac\nprintf '%s' \"$payload\" | judge || { echo no >&2; exit 2; }\n",
                    ),
                    (
                        "bin/judge",
                        "#!/bin/sh\nread -r payload\ncase $payload in *'\"description\":'*) exit 1 ;; esac\n",
                    ),
                ],
            ),
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

/// Guards as people write them in the languages that they use, and what each reads.
fn programs() -> Vec<Case> {
    const PYTHON: &str = "#!/usr/bin/env python3\nimport json, os, sys\np = json.load(sys.stdin)\n";
    const NODE: &str =
        "#!/usr/bin/env node\nconst p = JSON.parse(require('fs').readFileSync(0, 'utf8'));\n";
    const JQ: &str = "#!/bin/sh\npayload=$(cat)\n";
    /// Call, matcher, and what must be true to deny.
    type Row = (&'static str, &'static str, &'static str);
    let python: &[Row] = &[
        (
            BASH,
            "Bash",
            "'echo' in p.get('tool_input', {}).get('command', '')",
        ),
        (BASH, "Bash", "'echo' in (p['tool_input'] or {})['command']"),
        (BASH, "", "p['tool_name'] == 'Bash'"),
        (BASH, "", "p['tool_name'].lower() == 'bash'"),
        (BASH, "", "p['tool_name'].startswith('Ba')"),
        (BASH, "", "p.get('tool_name') in {'Bash', 'Write'}"),
        (WRITE, "", "p.get('tool_name') in ('Write', 'Edit')"),
        (
            WRITE,
            "Write|Edit",
            "p['tool_input']['file_path'].endswith('.txt')",
        ),
        (
            WRITE,
            "Write|Edit",
            "'fake' in p['tool_input'].get('content', '')",
        ),
        (
            EDIT,
            "Edit",
            "p['tool_input'].get('new_string') == 'goodbye'",
        ),
        (EDIT, "Edit", "p['tool_input'].get('replace_all') is False"),
        (BASH, "Bash", "p['cwd'].startswith('/')"),
        (
            BASH,
            "Bash",
            "p.get('permission_mode') == 'bypassPermissions'",
        ),
        (
            BASH,
            "Bash",
            "p.get('tool_use_id', '').startswith('toolu_')",
        ),
        (BASH, "Bash", "bool(p.get('prompt_id'))"),
        (BASH, "Bash", "p['transcript_path'].endswith('.jsonl')"),
        (BASH, "Bash", "p['hook_event_name'] == 'PreToolUse'"),
        (
            BASH,
            "Bash",
            "os.environ.get('CLAUDE_PROJECT_DIR') and p['tool_input']['command']",
        ),
        (
            DESCRIBED,
            "Bash",
            "'Run' in p['tool_input'].get('description', '')",
        ),
        (
            DESCRIBED,
            "Bash",
            "any('Run' in p['tool_input'].get(k, '') for k in ('description', 'x'))",
        ),
        (
            DESCRIBED,
            "Bash",
            "p.get('agent_type') == 'general-purpose'",
        ),
        (DESCRIBED, "Bash", "'agent_id' in p"),
        (DESCRIBED, "Bash", "'Run a command' in json.dumps(p)"),
        (
            DESCRIBED,
            "Bash",
            "'Run a command' in json.dumps(p['tool_input'])",
        ),
        (
            DESCRIBED,
            "Bash",
            "any('Run a command' in str(v) for v in p['tool_input'].values())",
        ),
        (
            DESCRIBED,
            "Bash",
            "'Run' in p['tool_input'].get('desc' + 'ription', '')",
        ),
        (
            DESCRIBED,
            "Bash",
            "[k for k in p['tool_input'] if k.startswith('desc')]",
        ),
        (
            MCP,
            "mcp__.*",
            "p['tool_input'].get('text') == 'hello-from-mcp'",
        ),
        (MCP, "mcp__.*", "p['tool_name'].split('__')[1] == 'e2e'"),
        (
            MCP,
            "mcp__.*",
            "p.get('mcp_server', {}).get('name') == 'e2e'",
        ),
    ];
    let node: &[Row] = &[
        (BASH, "Bash", "/echo/.test(p.tool_input?.command ?? '')"),
        (BASH, "", "['Bash', 'Write'].includes(p.tool_name)"),
        (
            DESCRIBED,
            "Bash",
            "(({ tool_input: { description = '' } }) => description)(p)",
        ),
        (
            DESCRIBED,
            "Bash",
            "p.tool_input[`description`] !== undefined",
        ),
        (
            DESCRIBED,
            "Bash",
            "Object.values(p.tool_input).some((v) => /Run a command/.test(v))",
        ),
        (BASH, "Bash", "p.tool_use_id"),
        (WRITE, "Write", "p.tool_input.content.length > 3"),
    ];
    let jq: &[Row] = &[
        (
            BASH,
            "Bash",
            "(.tool_input.command // \"\") | test(\"echo\")",
        ),
        (
            DESCRIBED,
            "Bash",
            "(.tool_input.description // \"\") | test(\"Run\")",
        ),
        (DESCRIBED, "Bash", ".tool_input | has(\"description\")"),
        (DESCRIBED, "Bash", ".tool_input[\"description\"] != null"),
        (
            DESCRIBED,
            "Bash",
            ".tool_input | to_entries | any(.key | startswith(\"desc\"))",
        ),
        (
            DESCRIBED,
            "Bash",
            ". as {tool_input: {description: $d}} | $d != null",
        ),
        (
            DESCRIBED,
            "Bash",
            "[.. | strings] | any(test(\"Run a command\"))",
        ),
        (BASH, "", ".tool_name | ascii_downcase == \"bash\""),
        (BASH, "", ".tool_name | test(\"^Ba\")"),
        (BASH, "Bash", ".permission_mode == \"bypassPermissions\""),
    ];
    let mut all = Vec::new();
    let mut add = |program, ending, rows: &[Row], text: &dyn Fn(&str) -> String| {
        for &(call, matcher, condition) in rows {
            let name: &str = format!("g.{ending}").leak();
            let script: &str = text(condition).leak();
            all.push(Case {
                label: format!("{program}: {condition}").leak(),
                call,
                matcher,
                handler: line(&format!("./{name}")),
                settings: Value::Null,
                files: vec![(name, script)].leak(),
                program: Some(program),
                asks_or_ends: false,
            });
        }
    };
    add("python3", "py", python, &|condition| {
        format!("{PYTHON}if {condition}:\n    print('no', file=sys.stderr)\n    sys.exit(2)\n")
    });
    add("node", "js", node, &|condition| {
        format!("{NODE}if ({condition}) {{\n  console.error('no');\n  process.exit(2);\n}}\n")
    });
    add("jq", "sh", jq, &|condition| {
        format!(
            "{JQ}if printf '%s' \"$payload\" | jq -e '{condition}' >/dev/null; then echo no >&2; exit 2; fi\nexit 0\n"
        )
    });
    // Inline, and through other shells.
    let check = "grep -q '\"description\":\"Run' && { echo no >&2; exit 2; }; exit 0";
    let inline = |label, handler| Case {
        label,
        call: DESCRIBED,
        matcher: "Bash",
        handler,
        settings: Value::Null,
        files: &[],
        program: None,
        asks_or_ends: false,
    };
    all.push(inline("inline grep", line(check)));
    all.push(inline(
        "exec form of a shell's text",
        json!({"command": "sh", "args": ["-c", check]}),
    ));
    all.push(inline(
        "key in a variable",
        line("key=description; grep -q \"\\\"$key\\\"\" && { echo no >&2; exit 2; }; exit 0"),
    ));
    all.push(inline(
        "text without its key",
        line("grep -q 'Run a command' && { echo no >&2; exit 2; }; exit 0"),
    ));
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
        let mut text = text.replace("./g.", &format!("./{id}/g."));
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
            if let Some(first) = handler.get_mut("args").and_then(|args| args.get_mut(0))
                && first != "-c"
            {
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
        reads_one_key: false,
        asks_or_ends: case.asks_or_ends,
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
    let cases: Vec<Case> = cases().into_iter().chain(programs()).collect();
    for (index, case) in cases.iter().enumerate() {
        let is_other = only.as_deref().is_some_and(|only| only != case.label);
        let is_there = |program: &str| {
            let found = executor.scratch.command("sh");
            let found = found.run(["-c", &format!("command -v {program}")], "");
            found.unwrap().exit == Some(0)
        };
        if is_other || !case.program.is_none_or(is_there) {
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
