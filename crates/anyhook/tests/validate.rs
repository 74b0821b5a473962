//! `anyhook validate` as users see it. A case is a folder in `cases/validate`:
//! one file to check, and `expected` with the exit code and what is printed.
//! `UPDATE=1` rewrites the expectations.

#![cfg(test)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhook_testkit::Golden;
use serde_json::Value;

fn anyhook(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anyhook"));
    command
        .current_dir(folder)
        .env_remove("NO_COLOR")
        .env("HOME", "/nonexistent")
        .env("ANYHOOK_CONFIG_DIR", folder.join("no-user"))
        .env("ANYHOOK_MANAGED_DIR", folder.join("no-managed"));
    command
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("an exit code")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let mut all: Vec<_> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    all.sort();
    assert!(!all.is_empty());
    all
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn cases() {
    let mut golden = Golden::default();
    for folder in folders(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/validate")) {
        let file = folders(&folder)
            .into_iter()
            .find(|path| path.file_name().unwrap() != "expected")
            .expect("a file to check");
        let output = anyhook(&folder)
            .arg("validate")
            .arg(file.file_name().unwrap())
            .output()
            .unwrap();
        assert_eq!(text(&output.stderr), "", "{}", folder.display());
        let found = format!("exit {}\n{}", code(&output), text(&output.stdout));
        golden.text(folder.join("expected"), &found).unwrap();
    }
    golden.end();
}

#[test]
fn the_interchange_vectors() {
    for (folder, expected) in [("canonical", 0), ("invalid", 1)] {
        for file in folders(&root().join("conformance/interchange").join(folder)) {
            let output = anyhook(&root())
                .arg("validate")
                .arg(&file)
                .output()
                .unwrap();
            assert_eq!(
                code(&output),
                expected,
                "{}\n{}",
                file.display(),
                text(&output.stdout)
            );
        }
    }
}

#[test]
fn the_shipped_examples() {
    for folder in folders(&root().join("examples")) {
        let file = folder.join("hooks.yaml");
        if !file.exists() {
            continue;
        }
        let output = anyhook(&root())
            .args(["validate", "--strict"])
            .arg(&file)
            .output()
            .unwrap();
        assert_eq!(code(&output), 0, "{}", text(&output.stdout));
        assert!(!text(&output.stdout).contains("info"));
    }
}

#[test]
fn json_has_the_places() {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/validate/five-mistakes-yaml");
    let output = anyhook(&folder)
        .args(["validate", "--json", "hooks.yaml"])
        .output()
        .unwrap();
    assert_eq!(code(&output), 1);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["ok"], false);
    let file = &report["files"][0];
    assert_eq!(file["kind"], "manifest");
    let places: Vec<_> = file["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["severity"] == "error")
        .map(|it| {
            format!(
                "{}:{}:{}",
                it["line"],
                it["column"],
                it["code"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(
        places,
        [
            "1:7:unknown-spec",
            "5:24:bad-pattern",
            "7:13:unknown-handler",
            "9:5:missing-field",
            "10:15:wrong-type",
            "12:22:unknown-strategy"
        ]
    );
}

#[test]
fn without_a_file_all_scopes_are_found() {
    let scratch = tempfile::tempdir().unwrap();
    let base = fs::canonicalize(scratch.path()).unwrap();
    let manifest = "spec: hooks/1.0\nhooks: [{event: agent_stop, handler: {type: command, command: 'true'}}]\n";
    for (path, content) in [
        ("managed/hooks.yaml", manifest),
        ("managed/policy.yaml", "fail_closed: true\n"),
        ("user/hooks.yml", manifest),
        ("repository/.git/HEAD", ""),
        ("repository/.anyhook/hooks.yaml", manifest),
        ("repository/.anyhook/policy.yaml", "fail_closed: true\n"),
        (
            "repository/.openhook.json",
            r#"{"openhook": "0.1", "hooks": [{"command": "cat"}]}"#,
        ),
        ("repository/a/b/keep", ""),
    ] {
        let path = base.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let run = |folder: &str, arguments: &[&str]| {
        anyhook(&base.join(folder))
            .arg("validate")
            .args(arguments)
            .env("ANYHOOK_CONFIG_DIR", base.join("user"))
            .env("ANYHOOK_MANAGED_DIR", base.join("managed"))
            .output()
            .unwrap()
    };
    let output = run("repository/a/b", &["--json"]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let files: Vec<_> = report["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| {
            let path = Path::new(file["path"].as_str().unwrap());
            let name = path
                .strip_prefix(&base)
                .unwrap_or(path)
                .display()
                .to_string();
            (name, file["diagnostics"].as_array().unwrap().len())
        })
        .collect();
    let expected = [
        ("managed/hooks.yaml", 0),
        ("user/hooks.yml", 0),
        ("repository/.anyhook/hooks.yaml", 0),
        ("managed/policy.yaml", 0),
        // Only the managed policy may fail closed.
        ("repository/.anyhook/policy.yaml", 1),
        ("repository/.openhook.json", 0),
    ];
    assert_eq!(
        files,
        expected.map(|(name, count)| (name.to_owned(), count))
    );
    assert_eq!(code(&run("repository", &["--strict"])), 1);

    // The nearest is the one that is used.
    fs::write(base.join("repository/a/.openhook.json"), "[]").unwrap();
    assert_eq!(code(&run("repository", &[])), 0);
    let output = run("repository/a/b", &[]);
    assert_eq!(code(&output), 1);
    let all = [text(&output.stdout), text(&output.stderr)].concat();
    assert!(
        all.contains("../.openhook.json") || all.contains("a/.openhook.json"),
        "{all}"
    );
}

#[test]
fn nothing_to_validate_is_a_failure_that_says_where_it_looked() {
    let scratch = tempfile::tempdir().unwrap();
    let output = anyhook(scratch.path()).arg("validate").output().unwrap();
    assert_eq!(code(&output), 1);
    assert!(
        text(&output.stderr).contains("no-user"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn one_unreadable_file_does_not_hide_the_others() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/validate");
    let output = anyhook(&folder)
        .args(["validate", "absent.yaml", "clean-jsonc/hooks.jsonc"])
        .output()
        .unwrap();
    assert_eq!(code(&output), 1);
    let out = text(&output.stdout);
    assert!(out.contains("absent.yaml:1:1: error[unreadable]"), "{out}");
    assert!(
        out.contains("clean-jsonc/hooks.jsonc: ok (1 hook)"),
        "{out}"
    );
}

#[test]
fn stdin_is_read_in_any_format() {
    use std::io::Write;
    for input in [
        "spec: hooks/1.0\nhooks: [{event: agent_stop, handler: {type: command, command: ./x}}]\n",
        "// c\n{\"spec\": \"hooks/1.0\", \"hooks\": [{\"event\": \"agent_stop\", \"handler\": {\"type\": \"command\", \"command\": \"./x\"}}]}",
    ] {
        let mut child = anyhook(&root())
            .args(["validate", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (code(&output), text(&output.stdout).as_str()),
            (0, "-: ok (1 hook)\n")
        );
    }
}
