//! The environment that a program starts with, before the variables that anyhook
//! sets.

use std::ffi::{OsStr, OsString};
use std::process::Command;

use anyhook_util::env;

use crate::config::account::Account;

/// What a program inherits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BaseEnvironment {
    #[default]
    Inherited,
    /// Everything but the variables that make a shell, an interpreter or the
    /// loader run other code first.
    WithoutInjection,
    /// Only what cannot change what the program does: it must hold against the
    /// user and the project.
    Clean,
}

/// Where programs of a clean environment are searched. Only root can write these.
#[cfg(unix)]
const SYSTEM_PATH: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Searched as well where they belong to root.
#[cfg(unix)]
const OPTIONAL_PATH: [&str; 3] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/run/current-system/sw/bin",
];

/// Without these, programs do not start on Windows.
#[cfg(windows)]
const PLATFORM_VARIABLES: &[&str] = &[
    "APPDATA",
    "LOCALAPPDATA",
    "NUMBER_OF_PROCESSORS",
    "PATH",
    "PROCESSOR_ARCHITECTURE",
    "ProgramData",
    "ProgramFiles",
    "SystemDrive",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
];
#[cfg(not(windows))]
const PLATFORM_VARIABLES: &[&str] = &[];

impl BaseEnvironment {
    pub(super) fn apply(self, command: &mut Command) {
        match self {
            Self::Inherited => {}
            Self::WithoutInjection => {
                for (name, _) in
                    env::all().filter(|(name, _)| env::is_injection(&name.to_string_lossy()))
                {
                    command.env_remove(name);
                }
            }
            Self::Clean => {
                command.env_clear();
                command.envs(clean());
            }
        }
    }
}

fn clean() -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = env::all()
        .filter(|(name, value)| is_harmless(name, value))
        .collect();
    if let Some(account) = Account::current() {
        let name = OsString::from(&account.name);
        variables.extend([
            (env::HOME.name.into(), account.home.clone().into()),
            (env::USER.name.into(), name.clone()),
            (env::LOGNAME.name.into(), name),
        ]);
    }
    #[cfg(unix)]
    variables.push((env::PATH.name.into(), system_path().into()));
    #[cfg(windows)]
    variables.extend(system_variables());
    variables
}

/// What decides which programs start, by the system and not by the environment.
#[cfg(windows)]
fn system_variables() -> Vec<(OsString, OsString)> {
    use known_folders::{KnownFolder, get_known_folder_path};
    let mut variables = vec![
        (
            "COMSPEC".into(),
            super::windows::installed::command_shell().into(),
        ),
        ("PATHEXT".into(), ".COM;.EXE;.BAT;.CMD".into()),
    ];
    let root = get_known_folder_path(KnownFolder::Windows).map(OsString::from);
    let root = root.or_else(|| env::SYSTEM_ROOT.os());
    for name in ["SystemRoot", "windir"] {
        variables.extend(root.clone().map(|root| (name.into(), root)));
    }
    variables
}

/// By its name, and by a value that is a plain word: a locale or a time zone can
/// also be the path of a file.
fn is_harmless(name: &OsStr, value: &OsStr) -> bool {
    let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else {
        return false;
    };
    if PLATFORM_VARIABLES
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known))
    {
        return true;
    }
    let mut prefixes = env::MANAGED_HOOK_PREFIXES.iter();
    let is_known = env::MANAGED_HOOK_VARIABLES.contains(&name)
        || prefixes.any(|prefix| name.starts_with(prefix));
    let is_plain = value
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"._-@:+,/".contains(&byte));
    is_known && is_plain && !value.starts_with(['/', ':', '.']) && !value.contains("..")
}

#[cfg(unix)]
fn system_path() -> String {
    let optional = OPTIONAL_PATH.into_iter().filter(|folder| {
        use std::os::unix::fs::MetadataExt as _;
        let data = std::fs::metadata(folder);
        data.is_ok_and(|data| data.is_dir() && data.uid() == 0 && data.mode() & 0o022 == 0)
    });
    let folders: Vec<&str> = SYSTEM_PATH.into_iter().chain(optional).collect();
    folders.join(":")
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_plain_words_pass() {
        let passes = |name: &str, value: &str| is_harmless(name.as_ref(), value.as_ref());
        assert!(passes("LANG", "en_US.UTF-8"));
        assert!(passes("LC_ALL", "C"));
        assert!(passes("TZ", "Europe/Berlin"));
        for (name, value) in [
            ("TZ", ":/tmp/zone"),
            ("TZ", "/tmp/zone"),
            ("LANG", "../../tmp"),
            ("LC_ALL", "a b"),
            ("LOCPATH", "x"),
            ("PATH", "x"),
            ("LD_PRELOAD", "x"),
            ("TERMINFO", "x"),
        ] {
            assert!(!passes(name, value), "{name}={value}");
        }
    }

    #[test]
    fn a_clean_environment_has_a_path_of_the_system() {
        let variables = clean();
        let path = variables.iter().find(|(name, _)| name == "PATH").unwrap();
        assert!(
            path.1
                .to_str()
                .unwrap()
                .starts_with("/usr/sbin:/usr/bin:/sbin:/bin")
        );
    }
}
