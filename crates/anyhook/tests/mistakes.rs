//! The mistakes that authors of hooks make: each is named, with its fix, by
//! `validate` and `trust` where files show it, and by `test` when the hook runs.
#![cfg(unix)] // the hooks are shell scripts with modes
#![cfg(test)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use anyhook_testkit::{ProcessOutput, Scratch};

/// A manifest with one hook.
const HOOK: &str = "spec: hooks/1.0\nhooks:\n  - event: EVENT\n    matcher: MATCHER\n    handler: {type: command, command: COMMAND}\n    blocking: true\n";

#[derive(Clone, Copy)]
struct Mistake {
    name: &'static str,
    /// Replacements in [`HOOK`].
    changes: &'static [(&'static str, &'static str)],
    /// `.anyhook/guard.sh`, executable.
    script: &'static str,
    /// Exit code of `validate`, and texts in what it prints.
    validate: (i32, &'static [&'static str]),
    /// Texts in the listing of `trust`.
    trust: &'static [&'static str],
    /// Exit code of `test`, and texts in what it prints.
    test: (i32, &'static [&'static str]),
}

const FINE: Mistake = Mistake {
    name: "no mistake",
    changes: &[],
    script: "#!/bin/sh\necho no >&2\nexit 2\n",
    validate: (0, &[": ok (1 hook, project)"]),
    trust: &[],
    test: (0, &["claude-code  blocked", "deny no"]),
};

const MISTAKES: &[Mistake] = &[
    FINE,
    Mistake {
        name: "a typing error in the path",
        changes: &[("COMMAND", "./gaurd.sh")],
        validate: (
            1,
            &[
                "error[script-missing]: `./gaurd.sh` does not exist",
                "looked for `gaurd.sh` and `.anyhook/gaurd.sh`",
                "help: did you mean `./guard.sh`?",
            ],
        ),
        trust: &[
            "PROBLEM `./gaurd.sh` does not exist",
            "did you mean `./guard.sh`?",
        ],
        test: (
            1,
            &["failed open: the tool runs", "did you mean `./guard.sh`?"],
        ),
        ..FINE
    },
    Mistake {
        name: "no slash",
        changes: &[("COMMAND", "guard.sh")],
        validate: (
            1,
            &["`guard.sh` is not on PATH", "help: write `./guard.sh`"],
        ),
        trust: &["PROBLEM `guard.sh` is not on PATH"],
        test: (1, &["write `./guard.sh`"]),
        ..FINE
    },
    Mistake {
        name: "an interpreter's script is missing",
        changes: &[("COMMAND", "sh .anyhook/guards.sh")],
        validate: (
            1,
            &[
                "`.anyhook/guards.sh` does not exist",
                "did you mean `.anyhook/guard.sh`?",
            ],
        ),
        trust: &["did you mean `.anyhook/guard.sh`?"],
        test: (0, &[]),
        ..FINE
    },
    Mistake {
        name: "names of an agent",
        changes: &[("EVENT", "PreToolUse"), ("MATCHER", "Bash")],
        validate: (
            0,
            &[
                "that is Claude Code's name, and the hook runs only in agents that have it; write `before_tool_execute`",
                "write `shell`",
            ],
        ),
        ..FINE
    },
    Mistake {
        name: "a list of an agent's names",
        changes: &[("MATCHER", "Bash|Write|Edit")],
        validate: (0, &["write `[shell, file_write, file_edit]`"]),
        test: (0, &["no hook"]),
        ..FINE
    },
    Mistake {
        name: "an invalid pattern",
        changes: &[("MATCHER", "{pattern: \"file_(\"}")],
        validate: (
            1,
            &["error[bad-pattern]", "regular expressions in RE2 syntax"],
        ),
        trust: &["see `anyhook validate"],
        test: (
            1,
            &["invalid pattern", "`anyhook validate` shows all mistakes"],
        ),
        ..FINE
    },
    Mistake {
        name: "not blocking",
        changes: &[("blocking: true", "blocking: false")],
        validate: (0, &["warning[exit-2-ignored]", "add `blocking: true`"]),
        trust: &["PROBLEM the script has `exit 2`, which denies nothing"],
        test: (
            1,
            &[
                "failed open: the tool runs",
                "denies only if the hook has `blocking: true`",
            ],
        ),
        ..FINE
    },
    Mistake {
        name: "exit 1",
        script: "#!/bin/sh\necho nope >&2\nexit 1\n",
        validate: (0, &["warning[exit-1-allows]", "write `exit 2` to deny"]),
        trust: &["PROBLEM the script has `exit 1` and no `exit 2`"],
        test: (
            1,
            &[
                "failed open: the tool runs",
                "only exit code 2 denies",
                "effect  the tool runs; ",
            ],
        ),
        ..FINE
    },
    Mistake {
        name: "debug text on stdout",
        script: "#!/bin/sh\necho checking the command\n",
        test: (1, &["`checking the command`", "print debug text to stderr"]),
        ..FINE
    },
    Mistake {
        name: "an answer that is not JSON",
        script: "#!/bin/sh\necho \"{decision: 'deny'}\"\n",
        test: (
            1,
            &["`{decision: 'deny'}`", "names and texts need double quotes"],
        ),
        ..FINE
    },
    Mistake {
        name: "too slow",
        changes: &[("command: COMMAND", "command: ./guard.sh, timeout: 0.2")],
        script: "#!/bin/sh\nsleep 30\n",
        test: (
            1,
            &[
                "stopped after 0.2 s",
                "`timeout_action: block` would deny it",
            ],
        ),
        ..FINE
    },
    Mistake {
        name: "a crash",
        script: "#!/bin/sh\necho 'Traceback: KeyError' >&2\nexit 3\n",
        test: (
            1,
            &[
                "Traceback: KeyError",
                "3 is a failure, and the call was allowed",
                "`on_failure: block`",
            ],
        ),
        ..FINE
    },
    Mistake {
        name: "Windows line endings",
        script: "#!/bin/sh\r\nexit 2\r\n",
        validate: (
            1,
            &["error[script-crlf]", "sed -i 's/\\r$//' .anyhook/guard.sh"],
        ),
        trust: &["PROBLEM `.anyhook/guard.sh` has Windows line endings"],
        test: (1, &["Windows line endings (CRLF)"]),
        ..FINE
    },
    Mistake {
        name: "a missing program in the script",
        script: "#!/bin/sh\nx=$(no-such-program -r .x)\nexit 0\n",
        test: (
            0,
            &[
                "stderr: ",
                "a program or file is missing, and the hook went on without it",
            ],
        ),
        ..FINE
    },
    Mistake {
        name: "a missing interpreter",
        script: "#!/usr/bin/env pyhton3\n",
        validate: (0, &["warning[interpreter-missing]", "runs with `pyhton3`"]),
        trust: &["PROBLEM `.anyhook/guard.sh` runs with `pyhton3`"],
        test: (1, &["exit code 127: a program was not found"]),
        ..FINE
    },
    Mistake {
        name: "an answer in the form of an agent",
        script: "#!/bin/sh\necho '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"no\"}}'\n",
        test: (
            0,
            &["claude-code  blocked", "give the handler its `dialect`"],
        ),
        ..FINE
    },
    Mistake {
        name: "a decision of an agent",
        script: "#!/bin/sh\necho '{\"decision\":\"block\",\"reason\":\"no\"}'\n",
        test: (0, &["claude-code  blocked", "is taken as `deny`"]),
        ..FINE
    },
    Mistake {
        name: "a tab",
        changes: &[("    matcher", "\tmatcher")],
        validate: (1, &["indent YAML with spaces, not tabs"]),
        trust: &["see `anyhook validate"],
        test: (1, &["`anyhook validate` shows all mistakes"]),
        ..FINE
    },
    Mistake {
        name: "no version",
        changes: &[("spec: hooks/1.0\n", "")],
        validate: (1, &["add `spec: hooks/1.0` at the top"]),
        trust: &["see `anyhook validate"],
        test: (1, &["`spec` is missing"]),
        ..FINE
    },
    Mistake {
        name: "several at once",
        changes: &[
            ("event: EVENT", "evnt: x"),
            ("matcher", "matchr"),
            ("type: command", "type: comand, timeout: 30000"),
            ("true", "\"yes\""),
        ],
        validate: (
            1,
            &[
                "did you mean `event`?",
                "did you mean `matcher`?",
                "did you mean `command`?",
                "if milliseconds are meant, write 30",
                "must be true or false",
            ],
        ),
        trust: &["see `anyhook validate"],
        test: (1, &["`anyhook validate` shows all mistakes"]),
        ..FINE
    },
];

fn project(mistake: &Mistake) -> Scratch {
    let scratch = Scratch::new().unwrap();
    let mut manifest = HOOK.to_owned();
    for (from, to) in mistake.changes {
        assert!(manifest.contains(from), "{}: {from}", mistake.name);
        manifest = manifest.replace(from, to);
    }
    for (from, to) in [
        ("EVENT", "before_tool_execute"),
        ("MATCHER", "shell"),
        ("COMMAND", "./guard.sh"),
    ] {
        manifest = manifest.replace(from, to);
    }
    scratch.file(".anyhook/hooks.yaml", &manifest).unwrap();
    scratch.file(".anyhook/guard.sh", mistake.script).unwrap();
    let script = scratch.project().join(".anyhook/guard.sh");
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    scratch
}

fn anyhook(scratch: &Scratch, arguments: &[&str]) -> ProcessOutput {
    let binary = scratch.command(env!("CARGO_BIN_EXE_anyhook"));
    binary.run(arguments, "").unwrap()
}

fn printed(output: &ProcessOutput) -> String {
    format!("{}{}", output.stdout, output.stderr)
}

#[track_caller]
fn check(name: &str, output: &ProcessOutput, code: i32, texts: &[&str]) {
    let all = printed(output);
    assert_eq!(output.exit, Some(code), "{name}: {all}");
    for text in texts {
        assert!(all.contains(text), "{name}: no `{text}` in\n{all}");
    }
}

#[test]
fn each_mistake_is_named_with_its_fix() {
    for mistake in MISTAKES {
        let scratch = project(mistake);
        let name = mistake.name;
        let (code, texts) = mistake.validate;
        check(
            &format!("validate: {name}"),
            &anyhook(&scratch, &["validate"]),
            code,
            texts,
        );
        let listing = anyhook(&scratch, &["trust", "--yes"]);
        let is_parsed = !mistake
            .trust
            .iter()
            .any(|text| text.contains("see `anyhook validate"));
        check(
            &format!("trust: {name}"),
            &listing,
            i32::from(!is_parsed),
            mistake.trust,
        );
        let says_problem = printed(&listing).contains("PROBLEM");
        let expects = mistake
            .trust
            .iter()
            .any(|text| text.contains("PROBLEM") || text.contains("did you mean"));
        assert_eq!(
            says_problem,
            expects,
            "trust: {name}: {}",
            printed(&listing)
        );
        let (code, texts) = mistake.test;
        // A script that is missing for its interpreter ends as the interpreter likes.
        if !texts.is_empty() {
            let test = anyhook(&scratch, &["test", "--agent", "claude-code"]);
            check(&format!("test: {name}"), &test, code, texts);
        }
    }
}

#[test]
fn a_script_that_is_not_executable() {
    let scratch = project(&FINE);
    let script = scratch.project().join(".anyhook/guard.sh");
    fs::set_permissions(script, fs::Permissions::from_mode(0o644)).unwrap();
    let help = [
        "`.anyhook/guard.sh` is not executable",
        "chmod +x .anyhook/guard.sh",
    ];
    check("validate", &anyhook(&scratch, &["validate"]), 1, &help);
    check("trust", &anyhook(&scratch, &["trust", "--yes"]), 0, &help);
    check(
        "test",
        &anyhook(&scratch, &["test", "--agent", "codex"]),
        1,
        &help,
    );
}

#[test]
fn a_well_known_program_that_a_script_needs() {
    let scratch = project(&FINE);
    let script = "#!/bin/sh\n# jq -r\nif jq -e .x; then exit 2; fi\n";
    scratch.file(".anyhook/guard.sh", script).unwrap();
    let script = scratch.project().join(".anyhook/guard.sh");
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    let bare = scratch.project().join("bin");
    fs::create_dir(&bare).unwrap();
    let binary = scratch.command(env!("CARGO_BIN_EXE_anyhook"));
    let output = binary
        .env("PATH", bare.to_str().unwrap())
        .run(["validate"], "")
        .unwrap();
    check(
        "validate",
        &output,
        0,
        &["`.anyhook/guard.sh` uses `jq`, which is not on this machine"],
    );
}

#[test]
fn two_manifests_in_one_folder() {
    let scratch = project(&FINE);
    let other = r#"{"spec": "hooks/1.0", "hooks": [{"event": "session_start", "handler": {"type": "command", "command": "true"}}]}"#;
    scratch.file(".anyhook/hooks.json", other).unwrap();
    let validate = anyhook(&scratch, &["validate"]);
    check(
        "validate",
        &validate,
        1,
        &["error[manifest-ignored]: `hooks.json` in the same folder is ignored"],
    );
    let named = anyhook(&scratch, &["validate", ".anyhook/hooks.json"]);
    check("named", &named, 1, &["this file is ignored"]);
    check(
        "trust",
        &anyhook(&scratch, &["trust", "--yes"]),
        0,
        &["PROBLEM", "hooks.json is ignored"],
    );
    let doctor = anyhook(&scratch, &["doctor"]);
    assert!(
        printed(&doctor).contains("hooks.json` is ignored"),
        "{}",
        printed(&doctor)
    );
}

#[test]
fn a_config_of_an_agent_is_no_manifest() {
    let scratch = Scratch::new().unwrap();
    let settings = r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "x"}]}]}}"#;
    for path in [".claude/settings.json", ".anyhook/hooks.json"] {
        scratch.file(path, settings).unwrap();
        let output = anyhook(&scratch, &["validate", path]);
        let texts = [
            "this is a config file of Claude Code, not a manifest",
            "anyhook init --import",
            "--to canonical",
        ];
        check(path, &output, 1, &texts);
    }
}

#[test]
fn fix_writes_the_names_that_are_meant() {
    let yaml = "spec: hooks/1.0 # keep\nhooks:\n  - event: PreToolUse\n    matcher: Bash\n    handler: {type: command, command: \"true\"}\n  - event: 'after_tool_exceute'\n    matcher: [Edit, \"Write\"]\n    handler: {type: command, command: \"true\"}\n  - event: Stop\n    handler: {type: command, command: \"true\"}\n";
    let fixed = "spec: hooks/1.0 # keep\nhooks:\n  - event: before_tool_execute\n    matcher: shell\n    handler: {type: command, command: \"true\"}\n  - event: 'after_tool_execute'\n    matcher: [file_edit, \"file_write\"]\n    handler: {type: command, command: \"true\"}\n  - event: agent_stop\n    handler: {type: command, command: \"true\"}\n";
    let json = r#"{"spec": "hooks/1.0", "hooks": [{"event": "PreToolUse", "matcher": "Bash|Write", "handler": {"type": "command", "command": "true"}}]}"#;
    let fixed_json = r#"{"spec": "hooks/1.0", "hooks": [{"event": "before_tool_execute", "matcher": ["shell", "file_write"], "handler": {"type": "command", "command": "true"}}]}"#;
    for (name, text, expected) in [
        ("hooks.yaml", yaml, fixed),
        ("hooks.json", json, fixed_json),
    ] {
        let scratch = Scratch::new().unwrap();
        scratch.file(format!(".anyhook/{name}"), text).unwrap();
        let path = scratch.project().join(".anyhook").join(name);
        let output = anyhook(&scratch, &["validate", "--fix", "--strict"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        check(name, &output, 0, &["fixed ", "`anyhook trust`"]);
        let again = anyhook(&scratch, &["validate", "--fix", "--strict"]);
        assert_eq!(
            printed(&again),
            format!(
                ".anyhook/{name}: ok ({}, project)\n",
                if name == "hooks.yaml" {
                    "3 hooks"
                } else {
                    "1 hook"
                }
            )
        );
    }
}

#[test]
fn fix_leaves_what_is_uncertain() {
    let scratch = Scratch::new().unwrap();
    let text = "spec: hooks/1.0\nhooks:\n  - event: my_own_event\n    matcher: mcp__x__y\n    handler: {type: command, command: \"true\"}\n";
    scratch.file(".anyhook/hooks.yaml", text).unwrap();
    anyhook(&scratch, &["validate", "--fix"]);
    let path = scratch.project().join(".anyhook/hooks.yaml");
    assert_eq!(fs::read_to_string(path).unwrap(), text);
}

#[test]
fn slips_on_the_command_line() {
    let scratch = project(&FINE);
    anyhook(&scratch, &["trust", "--yes"]);
    for (arguments, text) in [
        (
            ["test", "--agent", "claud"],
            "unknown agent `claud`; did you mean `claude`?",
        ),
        (
            ["test", "--agent", "gemini-clu"],
            "did you mean `gemini-cli`?",
        ),
        (["test", "--agent", "xyz"], "the agents are auggie, "),
        (
            ["test", "--event", "PreTooluse"],
            "did you mean `PreToolUse`?",
        ),
        (
            ["test", "--tool", "shel"],
            "unknown tool `shel`; did you mean `shell`?",
        ),
    ] {
        let output = anyhook(&scratch, &arguments);
        check(&arguments.join(" "), &output, 2, &[text]);
        assert!(!output.stderr.contains("contract"));
    }
}
