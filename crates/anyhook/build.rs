//! Puts the git revision into `--version`, when there is one.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    link_static();
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

/// A release build for Linux is linked statically and at a fixed address.
///
/// `anyhook run` starts at every tool call, and half of what a start costs is
/// the loader's work: finding libraries and relocating a large program. The
/// compiler's own switch for this (`crt-static`) cannot be set for the host's
/// target without breaking procedural macros, so the linker is told instead.
/// Without a static C library the binary is linked as usual.
fn link_static() {
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|there| there == value);
    if !(is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && is("PROFILE", "release"))
    {
        return;
    }
    if !is("TARGET", &env::var("HOST").unwrap_or_default())
        || env::var_os("ANYHOOK_DYNAMIC").is_some()
    {
        return;
    }
    println!("cargo::rerun-if-env-changed=ANYHOOK_DYNAMIC");
    let find = |library: &str| {
        let output = Command::new("cc")
            .arg(format!("-print-file-name={library}"))
            .output()
            .ok()?;
        let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
        path.is_absolute().then(|| path.display().to_string())
    };
    let (Some(out), Some(libc), Some(unwinder), Some(gcc)) = (
        env::var_os("OUT_DIR"),
        find("libc.a"),
        find("libgcc_eh.a"),
        find("libgcc.a"),
    ) else {
        return;
    };
    // The standard library names shared libraries; in this folder, which the
    // linker looks into first, each of them is the static one.
    let out = Path::new(&out);
    let all = format!("GROUP({libc} {unwinder} {gcc})\n");
    for name in ["c", "gcc_s", "util", "rt", "pthread", "dl"] {
        if fs::write(out.join(format!("lib{name}.so")), &all).is_err() {
            return;
        }
    }
    let maths = find("libm.a").unwrap_or_default();
    if fs::write(out.join("libm.so"), format!("GROUP({maths})\n")).is_err() {
        return;
    }
    println!("cargo::rustc-link-search=native={}", out.display());
    // The standard library looks for this one at run time, and without it copies
    // the whole process (`fork`) to start a program in another folder.
    let spawn_in = "-Wl,-u,posix_spawn_file_actions_addchdir_np";
    for argument in ["-static", "-no-pie", spawn_in] {
        println!("cargo::rustc-link-arg-bins={argument}");
    }
    order(out);
}

/// Puts the functions that `run` uses side by side: a page of a program costs
/// when it is first touched, and they would lie on as many as there are.
///
/// `run.order` names them without the hashes that change with each compiler; a
/// name that is gone does no harm. Another linker than the usual one may not
/// know such a script, so whoever sets one goes without.
fn order(out: &Path) {
    println!("cargo::rerun-if-changed=run.order");
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let Ok(names) = fs::read_to_string("run.order") else {
        return;
    };
    if !flags.is_empty() {
        return;
    }
    let names = names.lines().filter(|line| !line.starts_with('#'));
    let sections: String = names.flat_map(|name| ["*(.text.", name, ")\n"]).collect();
    let script = format!("SECTIONS {{ .text.run : {{\n{sections}}} }} INSERT BEFORE .text;\n");
    let path = out.join("run.ld");
    if fs::write(&path, script).is_ok() {
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", path.display());
    }
}
