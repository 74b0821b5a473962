//! The compilers and linkers of other systems, installed where they can be.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::folder_of_builds;
use crate::run::{cargo, run, succeeds};

/// A compiler that can build for a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compiler {
    /// The one that builds for this system; it has the target's library.
    Usual,
    /// Debian's, which builds the library from its sources.
    FromSources,
}

/// Debian's compiler, whatever else is on PATH.
const DEBIAN_FOLDER: &str = "/usr/bin";
const DEBIAN_PACKAGES: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];

impl Compiler {
    pub(super) fn find(triple: &str) -> Result<Self, String> {
        if has_library(triple) {
            return Ok(Self::Usual);
        }
        if !has_sources() {
            install_packages(&DEBIAN_PACKAGES).map_err(|why| {
                format!(
                    "the compiler has no library for it, and Debian's compiler could not be \
                     installed ({why}); `rustup target add {triple}` would do"
                )
            })?;
        }
        if has_sources() {
            Ok(Self::FromSources)
        } else {
            Err(format!(
                "no compiler has its library; run `rustup target add {triple}`"
            ))
        }
    }

    /// `program` is cargo, or something that takes its place.
    pub(super) fn cargo(self, tools: &Tools, program: &str) -> Command {
        let own = match self {
            Self::Usual => None,
            Self::FromSources => Some(Path::new(DEBIAN_FOLDER)),
        };
        let mut command = match (program, own) {
            ("cargo", None) => cargo(),
            ("cargo", Some(folder)) => Command::new(folder.join("cargo")),
            (other, _) => Command::new(tools.program(other)),
        };
        command.current_dir(crate::root());
        let folders = tools.folders.iter().map(PathBuf::as_path).chain(own);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let inherited: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let all = folders.chain(inherited.iter().map(PathBuf::as_path));
        if let Ok(path) = std::env::join_paths(all) {
            command.env("PATH", path);
        }
        // What cargo has set for this program is about another build.
        for name in [
            "CARGO",
            "RUSTC",
            "RUSTUP_TOOLCHAIN",
            "RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
        ] {
            command.env_remove(name);
        }
        if self == Self::FromSources {
            command
                .env("CARGO", Path::new(DEBIAN_FOLDER).join("cargo"))
                .env("RUSTC", Path::new(DEBIAN_FOLDER).join("rustc"))
                .env("RUSTDOC", Path::new(DEBIAN_FOLDER).join("rustdoc"))
                // To build the library is not in stable Rust.
                .env("RUSTC_BOOTSTRAP", "1");
        }
        command
    }

    pub(super) fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Usual => &[],
            Self::FromSources => &["-Zbuild-std=std,panic_abort,panic_unwind,test"],
        }
    }

    /// With these a warning in this workspace is an error.
    pub(super) fn deny_warnings(self) -> &'static [&'static str] {
        match self {
            Self::Usual => &[],
            Self::FromSources => &["-Zwarnings", "--config=build.warnings=\"deny\""],
        }
    }
}

/// Whether the usual compiler has the standard library of a target.
fn has_library(triple: &str) -> bool {
    let asked = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", triple])
        .current_dir(crate::root())
        .output();
    asked.is_ok_and(|output| {
        let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let mut files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        files.any(|file| file.file_name().to_string_lossy().starts_with("libstd-"))
    })
}

/// Whether Debian's compiler is installed, with the sources of the library.
fn has_sources() -> bool {
    let rustc = Path::new(DEBIAN_FOLDER).join("rustc");
    let asked = Command::new(rustc).args(["--print", "sysroot"]).output();
    asked.is_ok_and(|output| {
        let root = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let sources = Path::new(&root).join("lib/rustlib/src/rust/library/std/Cargo.toml");
        sources.is_file()
    })
}

/// Installs Debian packages, which only root can. An error is why not.
pub(super) fn install_packages(packages: &[&str]) -> Result<(), String> {
    let is_root = Command::new("id").arg("-u").output();
    let is_root = is_root.is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    let by_hand = format!(
        "run `apt-get install --no-install-recommends {}` as root",
        packages.join(" ")
    );
    if !is_root || !succeeds(Command::new("apt-get").arg("--version")) {
        return Err(format!("not root, or no apt-get; {by_hand}"));
    }
    println!("cross: installing {}", packages.join(" "));
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .arg("-qq")
            .args(arguments);
        succeeds(&mut command)
    };
    let mut install = vec!["install", "-y", "--no-install-recommends"];
    install.extend(packages);
    // The lists may be missing or old.
    if apt(&install) || (apt(&["update"]) && apt(&install)) {
        Ok(())
    } else {
        Err(format!("apt-get failed; {by_hand}"))
    }
}

/// Linkers and other programs outside the compiler.
#[derive(Debug, Default)]
pub(super) struct Tools {
    /// Searched before PATH.
    pub(super) folders: Vec<PathBuf>,
}

impl Tools {
    pub(super) fn new() -> Self {
        Self::default()
    }

    fn program(&self, name: &str) -> PathBuf {
        let paths = self.folders.iter().map(|folder| folder.join(name));
        let found = paths.into_iter().find(|path| path.is_file());
        found.unwrap_or_else(|| PathBuf::from(name))
    }

    pub(super) fn need_mingw() -> Result<(), String> {
        let is_there = || succeeds(Command::new("x86_64-w64-mingw32-gcc").arg("--version"));
        if is_there() {
            return Ok(());
        }
        let packages = ["gcc-mingw-w64-x86-64", "binutils-mingw-w64-x86-64"];
        install_packages(&packages).map_err(|why| format!("no linker for Windows: {why}"))
    }

    /// zig and the wrapper that gives it to cargo, in a Python environment of
    /// their own.
    pub(super) fn need_zig(&mut self) -> Result<(), String> {
        let is_there = |program: &Path| succeeds(Command::new(program).arg("--version"));
        let has_zig = succeeds(Command::new("zig").arg("version"));
        if has_zig && is_there(Path::new("cargo-zigbuild")) {
            return Ok(());
        }
        let folder = folder_of_builds().join("tools/zig");
        let programs = folder.join("bin");
        if !is_there(&programs.join("cargo-zigbuild")) {
            println!("cross: installing zig and cargo-zigbuild from PyPI");
            let packages = ["ziglang", "cargo-zigbuild"];
            let failed = |why: String| {
                format!(
                    "zig could not be installed ({why}); run `pip install {}`",
                    packages.join(" ")
                )
            };
            let mut venv = Command::new("python3");
            venv.args(["-m", "venv"]).arg(&folder);
            if !succeeds(&mut venv) {
                install_packages(&["python3-venv"]).map_err(failed)?;
                run(&mut venv).map_err(failed)?;
            }
            let mut pip = Command::new(programs.join("pip"));
            pip.args(["install", "--quiet", "--disable-pip-version-check"]);
            run(pip.args(packages)).map_err(failed)?;
        }
        self.folders.push(programs);
        Ok(())
    }
}
