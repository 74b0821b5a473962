//! The interpreters that this machine has.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhook_util::env;
use known_folders::{KnownFolder, get_known_folder_path};

use crate::run::exec::interpreters::{InstalledPrograms, PROGRAM_ENDINGS};

/// Longer first lines are not `#!` lines.
const MAX_FIRST_LINE_BYTES: u64 = 256;

/// Where Git for Windows puts its shell, below its own folder.
const SHELLS_OF_GIT: [&str; 2] = ["bin/bash.exe", "usr/bin/bash.exe"];

/// What a command finds on PATH, without the folder that it runs in: a project
/// must not replace an interpreter.
pub(super) struct Installed {
    folders: Vec<PathBuf>,
}

impl Installed {
    pub(super) fn for_command(cwd: &Path) -> Self {
        let path = env::PATH.os().unwrap_or_default();
        let folders = std::env::split_paths(&path);
        Self {
            folders: folders
                .filter(|folder| folder.is_absolute() && folder != cwd)
                .collect(),
        }
    }

    fn files(&self, name: &str) -> impl Iterator<Item = PathBuf> {
        let has_ending = Path::new(name).extension().is_some_and(|ending| {
            PROGRAM_ENDINGS
                .iter()
                .any(|known| ending.eq_ignore_ascii_case(known))
        });
        let names: Vec<String> = if has_ending {
            vec![name.to_owned()]
        } else {
            PROGRAM_ENDINGS
                .iter()
                .map(|ending| format!("{name}.{ending}"))
                .collect()
        };
        let folders = self.folders.iter();
        folders
            .flat_map(move |folder| {
                let paths = names.iter().map(|name| folder.join(name));
                paths.collect::<Vec<_>>()
            })
            .filter(|file| is_program(file))
    }
}

impl InstalledPrograms for Installed {
    fn find(&self, name: &str) -> Option<PathBuf> {
        self.files(name).next()
    }

    fn posix_shell(&self) -> Option<PathBuf> {
        let of_git = |folder: &Path| {
            let shells = SHELLS_OF_GIT.iter().map(|shell| folder.join(shell));
            shells.into_iter().find(|shell| is_program(shell))
        };
        // `git` on PATH is in `cmd` or `bin` of its folder.
        let beside_git = || {
            let git = self.find("git")?;
            git.ancestors().skip(2).take(2).find_map(of_git)
        };
        let usual = || {
            let bases = [
                env::PROGRAM_FILES.os().map(PathBuf::from),
                env::LOCALAPPDATA
                    .os()
                    .map(|base| PathBuf::from(base).join("Programs")),
            ];
            let mut bases = bases.into_iter().flatten();
            bases.find_map(|base| of_git(&base.join("Git")))
        };
        let on_path = || {
            let mut shells = self.files("bash").chain(self.files("sh"));
            shells.find(|shell| !is_of_linux_subsystem(shell))
        };
        beside_git().or_else(usual).or_else(on_path)
    }

    fn first_line(&self, file: &Path) -> Option<String> {
        let (file, _) = anyhook_util::fs::open_regular(file).ok()?;
        let mut line = Vec::new();
        let mut reader = BufReader::new(file.take(MAX_FIRST_LINE_BYTES));
        reader.read_until(b'\n', &mut line).ok()?;
        Some(String::from_utf8(line).ok()?.trim_end().to_owned())
    }
}

/// The store's placeholders, which only advertise a program, are empty files.
fn is_program(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|data| data.is_file() && data.len() > 0)
}

/// It runs programs of another system, which has other paths.
fn is_of_linux_subsystem(shell: &Path) -> bool {
    let folder = shell.parent().unwrap_or(shell).to_string_lossy();
    let folder = folder.to_ascii_lowercase();
    folder.ends_with("system32") || folder.ends_with("windowsapps")
}

/// `cmd.exe` by its path: a name would be searched. The system names its folder itself,
/// because a project can set variables.
pub(crate) fn command_shell() -> PathBuf {
    let system = get_known_folder_path(KnownFolder::System).or_else(|| {
        let root = env::SYSTEM_ROOT.os().map(PathBuf::from);
        root.map(|root| root.join("System32"))
    });
    let path = system.map(|system| system.join("cmd.exe"));
    let known = path.filter(|path| path.is_absolute() && path.is_file());
    known.unwrap_or_else(|| PathBuf::from("cmd.exe"))
}
