//! `anyhook doctor` on projects with one fault each, and on sound ones. A case
//! is a folder: `project/` and `home/` are put in place, `mode` makes files
//! executable, `expected` lists what has to be found, one `id agent` per line.
#![cfg(unix)] // its cases have shell scripts and modes
#![cfg(test)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhook_agents::spec::{Scope, VerifiedHow};
use anyhook_testkit::cases::{self, Case};
use anyhook_testkit::{ProcessOutput, Scratch};
use serde_json::Value;

fn prepare(case: &Case) -> Scratch {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    for (name, text) in &case.files {
        let place: PathBuf = match name.split_once('/') {
            Some(("project", rest)) => scratch.project().join(rest),
            Some(("home", rest)) => scratch.home().join(rest),
            _ => continue,
        };
        let root = scratch.project().canonicalize().unwrap();
        let text = text.replace("@project@", &root.to_string_lossy());
        scratch.file(place, &text).unwrap();
    }
    for name in case
        .files
        .get("mode")
        .map(String::as_str)
        .unwrap_or_default()
        .lines()
    {
        let path = scratch.project().join(name);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    scratch
}

/// Runs with the program's own folder first on PATH.
fn anyhook(scratch: &Scratch, arguments: &[&str]) -> io::Result<ProcessOutput> {
    let program = Path::new(env!("CARGO_BIN_EXE_anyhook"));
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    scratch
        .command(program)
        .env("PATH", path)
        .env("SHELL", "/bin/sh")
        // The proof's own folder is made here.
        .env("TMPDIR", scratch.config())
        .run(arguments, "")
}

fn found(report: &Value) -> Vec<String> {
    let mut found: Vec<String> = report["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["severity"] != "info")
        .map(|finding| {
            for key in ["message", "why", "help"] {
                assert!(
                    finding[key].as_str().is_some_and(|text| !text.is_empty()),
                    "{finding}"
                );
            }
            let agent = finding["agent"].as_str().unwrap_or("-");
            format!("{} {agent}", finding["code"].as_str().unwrap())
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

#[test]
fn each_fault_is_found_and_nothing_else() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/doctor");
    for case in cases::read_cases(folder).unwrap() {
        let scratch = prepare(&case);
        let ran = anyhook(&scratch, &["doctor", "--no-run", "--json"]).unwrap();
        let report = ran
            .json()
            .unwrap_or_else(|_| panic!("{}: {}", case.name, ran.stderr));
        let mut expected: Vec<String> = case
            .text("expected")
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect();
        expected.sort();
        assert_eq!(found(&report), expected, "{}: {}", case.name, ran.stdout);
        assert_eq!(
            ran.exit,
            Some(i32::from(!expected.is_empty())),
            "{}",
            case.name
        );
        let shown = anyhook(&scratch, &["doctor", "--no-run"]).unwrap();
        for line in &expected {
            let id = line.split(' ').next().unwrap();
            assert!(
                shown.stdout.contains(&format!("[{id}]")),
                "{}",
                shown.stdout
            );
        }
    }
}

/// Every entry of every agent answers, through the command line in its file.
#[test]
fn every_installed_entry_is_proved() {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    for adapter in anyhook_agents::matrix::clients() {
        let slug = adapter.spec.id.as_ref();
        let scope = if adapter.spec.is_written_at(Scope::Project) {
            "project"
        } else {
            "user"
        };
        let arguments = [
            "install",
            "--agent",
            slug,
            "--scope",
            scope,
            "--command",
            "absolute",
            "--accept-trust",
        ];
        let ran = anyhook(&scratch, &arguments).unwrap();
        assert_eq!(ran.exit, Some(0), "{}", ran.stderr);
        let ran = anyhook(&scratch, &["doctor", "--agent", slug, "--json"]).unwrap();
        let report = ran.json().unwrap();
        // An agent that was never run is reported as such, and nothing else is wrong.
        let is_proven = adapter.spec.verified.how == VerifiedHow::Run;
        let unproven = (!is_proven).then(|| format!("unproven {slug}"));
        assert_eq!(
            found(&report),
            unproven.into_iter().collect::<Vec<_>>(),
            "{slug}: {}",
            ran.stdout
        );
        let (fired, answered) = (
            report["fired"].as_u64().unwrap(),
            report["answered"].as_u64().unwrap(),
        );
        // One agent has a single event.
        let least = adapter.spec.events.len().min(3) as u64;
        assert!(
            fired >= least && fired == answered,
            "{slug}: {answered} of {fired}"
        );
        let uninstall = ["uninstall", "--agent", slug, "--scope", scope];
        let ran = anyhook(&scratch, &uninstall).unwrap();
        assert_eq!(ran.exit, Some(0), "{}", ran.stderr);
    }
    let leftover = fs::read_dir(scratch.config()).unwrap().flatten();
    assert_eq!(leftover.count(), 0, "the folder of the proof stays");
}

#[test]
fn a_dead_bridge_is_found_and_mended() {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    let dead = r#"{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"/no/such/anyhook run --agent claude-code"}]}]}}"#;
    let path = scratch.file(".claude/settings.json", dead).unwrap();
    let ran = anyhook(&scratch, &["doctor", "--json"]).unwrap();
    let ids = found(&ran.json().unwrap());
    assert_eq!(
        ids,
        ["bridge-dead claude-code", "script-missing claude-code"],
        "{}",
        ran.stdout
    );
    let ran = anyhook(&scratch, &["doctor", "--fix", "--json"]).unwrap();
    assert_eq!(ran.exit, Some(0), "{}", ran.stdout);
    let report = ran.json().unwrap();
    assert!(report["answered"].as_u64().unwrap() > 20);
    assert!(!fs::read_to_string(path).unwrap().contains("/no/such"));
}

/// A line that starts something else looks like approval to the agent, and may
/// be anyone's program.
#[test]
fn a_bridge_that_is_not_reached_is_found() {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    scratch.exec("bin/anyhook", "#!/bin/sh\nexit 0\n").unwrap();
    let settings = r#"{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"./bin/anyhook run --agent claude-code"}]}]}}"#;
    scratch.file(".claude/settings.json", settings).unwrap();
    let ran = anyhook(&scratch, &["doctor", "--json"]).unwrap();
    assert_eq!(
        found(&ran.json().unwrap()),
        ["not-fired claude-code"],
        "{}",
        ran.stdout
    );
}

/// A profile that greets makes the agent's reader choke, and the deny is lost.
#[test]
fn a_profile_that_prints_is_found() {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    scratch
        .file(scratch.home().join(".profile"), "echo Welcome back\n")
        .unwrap();
    let ran = anyhook(
        &scratch,
        &[
            "install",
            "--agent",
            "codex",
            "--command",
            "absolute",
            "--accept-trust",
        ],
    )
    .unwrap();
    assert_eq!(ran.exit, Some(0), "{}", ran.stderr);
    let ran = anyhook(&scratch, &["doctor", "--agent", "codex", "--json"]).unwrap();
    assert_eq!(
        found(&ran.json().unwrap()),
        ["deny-lost codex"],
        "{}",
        ran.stdout
    );
}

#[test]
fn a_run_bit_is_put_back() {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    let ran = anyhook(&scratch, &["init", "--yes"]).unwrap();
    assert_eq!(ran.exit, Some(0), "{}", ran.stderr);
    let guard = scratch.project().join(".anyhook/guard.sh");
    fs::set_permissions(&guard, fs::Permissions::from_mode(0o644)).unwrap();
    let ran = anyhook(&scratch, &["doctor", "--json"]).unwrap();
    assert_eq!(
        found(&ran.json().unwrap()),
        ["script-not-executable -"],
        "{}",
        ran.stdout
    );
    let ran = anyhook(&scratch, &["doctor", "--fix"]).unwrap();
    assert_eq!(ran.exit, Some(0), "{}", ran.stdout);
}
