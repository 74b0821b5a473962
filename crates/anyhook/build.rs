//! Adds the git revision to `--version`, and links release builds statically.

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

/// Links a Linux release build statically, at a fixed address.
///
/// Agents start `anyhook run` at every tool call, and a dynamic loader would cost
/// as much as the work itself. Measured on a recorded Claude payload, minimum of
/// 200 spawns, as a multiple of `/bin/true`:
///
/// | link | cost | page faults |
/// |---|---|---|
/// | static, fixed address | 1.39 | 103 |
/// | static-pie with packed relocations (`-z pack-relative-relocs`) | 1.83 | 192 |
///
/// Position independence would be preferable for a program that reads hostile
/// text, but relocating the tables touches 85 pages at every start.
///
/// What is left is mostly not ours: the start of glibc executes 68 `cpuid` instructions, in
/// `/bin/true` as well as here. On a virtual machine each leaves the guest: at 6.3 µs they
/// are 0.43 of the 0.57 ms that an empty static program takes, which takes 0.06 ms without
/// a C library.
///
/// rustc's own switch, `crt-static`, breaks procedural macros on the host target,
/// so the linker gets the arguments directly. Without a static C library the
/// binary is linked dynamically.
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
    // std links shared libraries by name. The linker searches this folder first
    // and finds the static ones under those names.
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
    // std looks this symbol up at run time. Without it, starting a program in
    // another folder forks the whole process instead of using posix_spawn.
    let spawn_in = "-Wl,-u,posix_spawn_file_actions_addchdir_np";
    for argument in ["-static", "-no-pie", spawn_in] {
        println!("cargo::rustc-link-arg-bins={argument}");
    }
    order_functions(out);
}

/// Puts the functions that `run` uses side by side. A page of a program costs when it is
/// first touched, and without this they are spread over all 19 MB of code. Measured as
/// above, on a copy of the file:
///
/// | order | cost | page faults |
/// |---|---|---|
/// | the linker's | 1.55 | 138 |
/// | by `run.order` | 1.39 | 103 |
///
/// `cargo xtask order` writes the list, without the parts of names that change with the
/// compiler; a name that no longer exists does no harm. Rust's own lld and GNU ld know
/// such a script. Another linker may not, so with own flags there is no order.
fn order_functions(out: &Path) {
    println!("cargo::rerun-if-changed=run.order");
    let has_flags = env::var("CARGO_ENCODED_RUSTFLAGS").is_ok_and(|flags| !flags.is_empty());
    let Ok(names) = fs::read_to_string("run.order") else {
        return;
    };
    if has_flags {
        return;
    }
    let names = names.lines().filter(|line| !line.starts_with('#'));
    // The compiler puts functions that it takes for rare into sections of another name.
    let sections = names.map(|name| format!("*(.text.{name} .text.unlikely.{name})\n"));
    let sections: String = sections.collect();
    let script = format!("SECTIONS {{ .text.run : {{\n{sections}}} }} INSERT BEFORE .text;\n");
    let path = out.join("run.ld");
    if fs::write(&path, script).is_ok() {
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", path.display());
    }
}
