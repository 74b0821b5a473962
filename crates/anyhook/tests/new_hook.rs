//! `anyhook new hook`: in every language, the written test passes where the language is
//! installed, and the hook blocks through the dispatcher.
#![cfg(unix)] // the hooks run through a POSIX shell
#![cfg(test)]

use std::fs;
use std::process::Command;

use anyhook_testkit::{ProcessOutput, Scratch};
use serde_json::Value;

fn anyhook(scratch: &Scratch, arguments: &[&str]) -> ProcessOutput {
    let binary = scratch.command(env!("CARGO_BIN_EXE_anyhook"));
    // Compilers keep their caches in the real home.
    let home = std::env::var("HOME").unwrap();
    binary.env("HOME", &home).run(arguments, "").unwrap()
}

/// Whether the language can run hooks here.
fn is_installed(language: &str) -> bool {
    let check = match language {
        "sh" => "true",
        "python" => "python3 --version",
        // Older ones do not run TypeScript.
        "ts" => {
            "printf 'const x: number = 1; export {x}' > /tmp/anyhook-ts-$$.ts && node --no-warnings /tmp/anyhook-ts-$$.ts; code=$?; rm -f /tmp/anyhook-ts-$$.ts; exit $code"
        }
        "go" => "go version",
        "rust" => "cargo --version",
        other => panic!("{other}"),
    };
    let output = Command::new("sh").args(["-c", check]).output().unwrap();
    if !output.status.success() {
        eprintln!("skipped: `{language}` cannot run hooks here");
    }
    output.status.success()
}

#[track_caller]
fn check_language(language: &str) {
    let scratch = Scratch::new().unwrap();
    let new = anyhook(
        &scratch,
        &["new", "hook", "no-force", "--lang", language, "--json"],
    );
    assert_eq!(new.exit, Some(0), "{}", new.stderr);
    let written: Value = new.json().unwrap();
    let validate = anyhook(&scratch, &["validate"]);
    assert!(
        validate.stdout.contains("ok (1 hook"),
        "{}",
        validate.stdout
    );
    if !is_installed(language) {
        return;
    }
    let test = Command::new("sh")
        .args(["-c", written["test_command"].as_str().unwrap()])
        .current_dir(scratch.project())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        test.status.success(),
        "{}{}",
        text(&test.stdout),
        text(&test.stderr)
    );
    assert_eq!(anyhook(&scratch, &["trust", "--yes"]).exit, Some(0));
    for (command, verdict) in [
        ("git push --force", "  blocked  "),
        ("git push", "  allowed  "),
    ] {
        let input = format!("{{\"command\": \"{command}\"}}");
        let run = anyhook(
            &scratch,
            &[
                "test",
                "--agent",
                "claude-code",
                "--agent",
                "cursor",
                "--input",
                &input,
            ],
        );
        assert_eq!(run.exit, Some(0), "{}{}", run.stdout, run.stderr);
        for agent in ["claude-code", "cursor"] {
            assert!(
                run.stdout.contains(&format!("{agent}{verdict}")),
                "{}",
                run.stdout
            );
        }
    }
}

#[test]
fn in_sh() {
    check_language("sh");
}

#[test]
fn in_python() {
    check_language("python");
}

#[test]
fn in_typescript() {
    check_language("ts");
}

#[test]
fn in_go() {
    check_language("go");
}

#[test]
fn in_rust() {
    check_language("rust");
}

#[test]
fn the_test_of_a_hook_can_fail() {
    let scratch = Scratch::new().unwrap();
    anyhook(&scratch, &["new", "hook", "guard"]);
    let path = scratch.project().join(".anyhook/hooks/guard.sh");
    let text = fs::read_to_string(&path)
        .unwrap()
        .replace("exit 2", "exit 1");
    fs::write(&path, text).unwrap();
    let test = Command::new(scratch.project().join(".anyhook/hooks/guard_test.sh"))
        .output()
        .unwrap();
    assert_eq!(test.status.code(), Some(1));
}

#[test]
fn hooks_are_added_and_nothing_is_replaced() {
    let scratch = Scratch::new().unwrap();
    let manifest = "# mine\nspec: hooks/1.0\nhooks:\n  - event: agent_stop # end\n    handler: {type: command, command: \"true\"}\n";
    scratch.file(".anyhook/hooks.yaml", manifest).unwrap();
    for name in ["one", "two"] {
        let new = anyhook(&scratch, &["new", "hook", name]);
        assert_eq!(new.exit, Some(0), "{}", new.stderr);
    }
    let path = scratch.project().join(".anyhook/hooks.yaml");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with(manifest), "{text}");
    let list = anyhook(&scratch, &["validate", "--strict"]);
    assert!(list.stdout.contains("ok (3 hooks"), "{}", list.stdout);
    let again = anyhook(&scratch, &["new", "hook", "two"]);
    assert_eq!(again.exit, Some(1));
    assert!(again.stderr.contains("already exists"), "{}", again.stderr);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    for name in ["", "../x", "a b", "-x", "1"] {
        let new = anyhook(&scratch, &["new", "hook", "--", name]);
        assert_ne!(new.exit, Some(0), "{name}");
    }
}
