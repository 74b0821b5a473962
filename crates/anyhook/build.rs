//! Puts the git revision into `--version`, when there is one.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let root = Path::new("../..");
    let head = root.join(".git/HEAD");
    if let Ok(text) = fs::read_to_string(&head) {
        println!("cargo::rerun-if-changed={}", head.display());
        if let Some(reference) = text.strip_prefix("ref: ") {
            let reference = root.join(".git").join(reference.trim());
            println!("cargo::rerun-if-changed={}", reference.display());
        }
    }
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let version = match revision(root) {
        Some(revision) => format!("{version} ({revision})"),
        None => version,
    };
    println!("cargo::rustc-env=ANYHOOK_VERSION={version}");
}

fn revision(root: &Path) -> Option<String> {
    let output = Command::new("git")
        .args(["rev-parse", "--short=12", "HEAD"])
        .current_dir(root)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let revision = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!revision.is_empty()).then_some(revision)
}
