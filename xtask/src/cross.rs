//! Builds the program for other systems: `cargo xtask cross [TARGET…]`.
//!
//! A compiler that has the target's standard library is used as it is. Without
//! one, Debian's compiler builds the library from its sources, because Debian
//! ships them with it. Programs for Windows are linked by mingw-w64, the others
//! by zig, which brings the C libraries of the other systems; Apple's frameworks
//! are linked by the stubs in `xtask/cross/frameworks`, which name the symbols
//! that are used. Everything goes to `target/cross`.

mod tools;
mod windows_tests;
mod wine;

use std::path::PathBuf;
use std::process::Command;

use crate::run::run;
use tools::{Compiler, Tools};

/// One program to build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CrossTarget {
    /// As `rustc --target` takes it.
    pub(crate) triple: &'static str,
    /// The word that selects it, with others, on the command line.
    group: &'static str,
    linker: Linker,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Linker {
    Mingw,
    Zig,
}

const WINDOWS: CrossTarget = CrossTarget {
    triple: "x86_64-pc-windows-gnu",
    group: "windows",
    linker: Linker::Mingw,
};

const TARGETS: [CrossTarget; 5] = [
    WINDOWS,
    CrossTarget {
        triple: "aarch64-apple-darwin",
        group: "macos",
        linker: Linker::Zig,
    },
    CrossTarget {
        triple: "x86_64-apple-darwin",
        group: "macos",
        linker: Linker::Zig,
    },
    CrossTarget {
        triple: "x86_64-unknown-linux-musl",
        group: "linux-musl",
        linker: Linker::Zig,
    },
    CrossTarget {
        triple: "aarch64-unknown-linux-musl",
        group: "linux-musl",
        linker: Linker::Zig,
    },
];

/// What was asked for.
#[derive(Debug)]
struct CrossArguments {
    targets: Vec<CrossTarget>,
    release: bool,
    /// Missing tools are reported, and are no error.
    if_possible: bool,
}

impl CrossArguments {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut parsed = Self {
            targets: Vec::new(),
            release: false,
            if_possible: false,
        };
        for argument in arguments {
            match argument.as_str() {
                "--release" => parsed.release = true,
                "--if-possible" => parsed.if_possible = true,
                name => {
                    let before = parsed.targets.len();
                    let chosen = TARGETS.into_iter();
                    parsed.targets.extend(
                        chosen.filter(|target| target.group == name || target.triple == name),
                    );
                    if parsed.targets.len() == before {
                        return Err(format!(
                            "unknown target `{name}`; use windows, macos, linux-musl or one of {}",
                            TARGETS.map(|target| target.triple).join(", ")
                        ));
                    }
                }
            }
        }
        if parsed.targets.is_empty() {
            parsed.targets.extend(TARGETS);
        }
        Ok(parsed)
    }
}

/// Builds the targets one after the other, and then says what was built and what
/// could not be.
pub(crate) fn run_cross(arguments: &[String]) -> Result<(), String> {
    let arguments = CrossArguments::parse(arguments)?;
    let (mut lines, mut failed, mut missing) = (Vec::new(), 0, 0);
    for target in &arguments.targets {
        println!("cross: {}", target.triple);
        let line = match prepare(*target) {
            Err(why) => {
                missing += 1;
                format!("not built: {why}")
            }
            Ok(build) => match build.program(arguments.release) {
                Ok(path) => format!("built {}", path.display()),
                Err(why) => {
                    failed += 1;
                    format!("FAILED: {why}")
                }
            },
        };
        lines.push(format!("cross: {:<28} {line}", target.triple));
    }
    println!("{}", lines.join("\n"));
    match (failed, missing) {
        (0, 0) => Ok(()),
        (0, missing) if arguments.if_possible => {
            println!("cross: {missing} skipped for lack of tools");
            Ok(())
        }
        (failed, missing) => Err(format!("{failed} failed, {missing} could not be tried")),
    }
}

/// Runs the tests for Windows under Wine: `cargo xtask wine [TEST…]`.
pub(crate) fn run_wine(arguments: &[String]) -> Result<(), String> {
    wine::run_tests(arguments)
}

/// A target with the tools that build it.
pub(crate) struct CrossBuild {
    target: CrossTarget,
    compiler: Compiler,
    tools: Tools,
}

/// Finds the tools for a target, and installs what is missing where it can. An
/// error is what is missing and how to get it.
fn prepare(target: CrossTarget) -> Result<CrossBuild, String> {
    let compiler = Compiler::find(target.triple)?;
    let mut tools = Tools::new();
    match target.linker {
        Linker::Mingw => Tools::need_mingw()?,
        Linker::Zig => tools.need_zig()?,
    }
    Ok(CrossBuild {
        target,
        compiler,
        tools,
    })
}

impl CrossBuild {
    /// Builds the binary; where it is.
    fn program(&self, release: bool) -> Result<PathBuf, String> {
        let mut command = match self.target.linker {
            Linker::Zig => self.command("cargo-zigbuild", "zigbuild"),
            Linker::Mingw => self.command("cargo", "build"),
        };
        command.args(["--package", "anyhook"]);
        command.args(self.compiler.deny_warnings());
        if release {
            command.arg("--release");
        }
        run(&mut command)?;
        let folder = if release { "release" } else { "debug" };
        let name = match self.target.group {
            "windows" => "anyhook.exe",
            _ => "anyhook",
        };
        Ok(folder_of_builds()
            .join(self.target.triple)
            .join(folder)
            .join(name))
    }

    /// A cargo command for this target.
    fn command(&self, program: &str, task: &str) -> Command {
        let mut command = self.compiler.cargo(&self.tools, program);
        command
            .arg(task)
            .args(["--target", self.target.triple])
            .args(self.compiler.arguments())
            .env("CARGO_TARGET_DIR", folder_of_builds())
            // Half the time and a third of the space; a release has none anyway.
            .env("CARGO_PROFILE_DEV_DEBUG", "false")
            // rustc would want a program of its own toolchain to strip with.
            .env("CARGO_PROFILE_DEV_STRIP", self.strip())
            .env("CARGO_PROFILE_RELEASE_STRIP", self.strip());
        if self.target.group == "macos" {
            command.env("SDKROOT", macos_stubs());
        }
        let flags = self.rustflags();
        if !flags.is_empty() {
            let name = self.target.triple.to_uppercase().replace('-', "_");
            command.env(format!("CARGO_TARGET_{name}_RUSTFLAGS"), flags.join(" "));
        }
        command
    }

    fn strip(&self) -> &'static str {
        match self.target.linker {
            Linker::Mingw => "symbols",
            Linker::Zig => "none",
        }
    }

    fn rustflags(&self) -> Vec<String> {
        match self.target.group {
            "macos" => vec![
                format!("-Clink-arg=-F{}", macos_stubs().display()),
                // Cargo strips what has no debug information, whatever the profile says,
                // and dependencies that are libraries of C too.
                "-Cstrip=none".to_owned(),
            ],
            // zig has the start files of the C library, and Debian's compiler has not.
            "linux-musl" => vec!["-Clink-self-contained=no".to_owned()],
            _ => Vec::new(),
        }
    }
}

/// Stands for Apple's SDK.
fn macos_stubs() -> PathBuf {
    let stubs = crate::root().join("xtask/cross/frameworks");
    stubs.canonicalize().unwrap_or(stubs)
}

fn folder_of_builds() -> PathBuf {
    let target = crate::suite::target();
    let target = target.canonicalize().unwrap_or(target);
    let target = std::path::absolute(&target).unwrap_or(target);
    target.join("cross")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<CrossArguments, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        CrossArguments::parse(&words)
    }

    #[test]
    fn targets_are_chosen_by_system_or_by_name() {
        let triples = |line: &str| -> Vec<&str> {
            let parsed = parse(line).unwrap();
            parsed.targets.iter().map(|target| target.triple).collect()
        };
        assert_eq!(triples("").len(), TARGETS.len());
        assert_eq!(triples("windows --release"), ["x86_64-pc-windows-gnu"]);
        assert_eq!(
            triples("macos"),
            ["aarch64-apple-darwin", "x86_64-apple-darwin"]
        );
        assert_eq!(
            triples("aarch64-unknown-linux-musl"),
            ["aarch64-unknown-linux-musl"]
        );
        assert!(parse("plan9").unwrap_err().contains("windows, macos"));
        assert!(parse("--if-possible").unwrap().if_possible);
    }
}
