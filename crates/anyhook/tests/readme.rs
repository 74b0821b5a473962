//! The tour of the README really works, and prints what the README says.
#![cfg(unix)] // runs the lines of the README in a shell

use std::path::Path;
use std::process::Command;
use std::{env, fs};

#[test]
fn the_tour() {
    let root = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root.join("examples"), scratch.path().join("examples")).unwrap();
    let binaries = Path::new(env!("CARGO_BIN_EXE_anyhook")).parent().unwrap();
    let path = env::join_paths(
        std::iter::once(binaries.to_owned()).chain(env::split_paths(&env::var_os("PATH").unwrap())),
    )
    .unwrap();

    let mut lines = readme.lines().peekable();
    let mut ran = 0;
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix("    ") else {
            continue;
        };
        let is_ours = command.starts_with("anyhook ")
            || command.contains("| anyhook ")
            || command.contains("&& anyhook ")
            || command.contains("| examples/");
        if !is_ours {
            continue;
        }
        let output = Command::new("sh")
            .args(["-c", command])
            .current_dir(scratch.path())
            .env("PATH", &path)
            .env("ANYHOOK_STATE_DIR", scratch.path().join("state"))
            .env("ANYHOOK_CONFIG_DIR", scratch.path().join("config"))
            .env("ANYHOOK_MANAGED_DIR", scratch.path().join("managed"))
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        // What the README shows below the command, if it shows anything.
        let mut shown = String::new();
        lines.next_if_eq(&"");
        while let Some(line) = lines.next_if(|line| {
            line.starts_with("    -:")
                || (!shown.is_empty() && (line.is_empty() || line.starts_with("    ")))
        }) {
            shown.push_str(line.strip_prefix("    ").unwrap_or(line));
            shown.push('\n');
        }
        if shown.is_empty() {
            assert!(
                output.status.success(),
                "{command}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        } else {
            assert_eq!(printed.trim_end(), shown.trim_end(), "{command}");
        }
        ran += 1;
    }
    assert!(ran >= 10, "{ran} commands");
}
