//! The user's entry in the password database, or what Windows knows of the user,
//! for what must not depend on the environment.

#[cfg(unix)]
use std::path::Path;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The user that this process runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) name: String,
    /// Absolute.
    pub(crate) home: PathBuf,
}

impl Account {
    /// `None` if the user has no entry, or a home that is not absolute.
    pub(crate) fn current() -> Option<&'static Self> {
        static CURRENT: OnceLock<Option<Account>> = OnceLock::new();
        CURRENT.get_or_init(platform::find).as_ref()
    }
}

/// The home that the password database has for a user whose environment says `home`.
/// `None` if it is not known without asking a directory service, and `home` is where
/// only root can create homes.
#[cfg(unix)]
pub(crate) fn home_by_account(home: &Path) -> Option<PathBuf> {
    use std::os::unix::fs::MetadataExt as _;
    if let Some(account) = platform::in_password_file() {
        return Some(account.home);
    }
    let is_roots = |data: std::fs::Metadata| data.uid() == 0 && data.mode() & 0o022 == 0;
    let is_usual = home
        .parent()
        .is_some_and(|parent| std::fs::metadata(parent).is_ok_and(is_roots));
    let account = (!is_usual).then(Account::current).flatten();
    account.map(|account| account.home.clone())
}

#[cfg(unix)]
mod platform {
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use super::Account;
    use crate::run::exec::command::CommandLine;
    use crate::run::exec::{self, ProcessEnd, ProcessRequest};

    const MAX_PASSWD_BYTES: u64 = 16 * 1024 * 1024;

    /// A directory service that does not answer must not stop a guard.
    const DIRECTORY_SERVICE_TIMEOUT: Duration = Duration::from_secs(2);

    /// `/etc/passwd`, then the system's own program: a static binary cannot load
    /// the modules of other name services.
    pub(super) fn find() -> Option<Account> {
        let uid = rustix::process::geteuid().as_raw();
        in_password_file().or_else(|| {
            let argv = if cfg!(target_os = "macos") {
                vec!["/usr/bin/id".to_owned(), "-P".to_owned(), uid.to_string()]
            } else {
                let arguments = ["/usr/bin/getent", "passwd"].map(str::to_owned);
                let mut argv = arguments.to_vec();
                argv.push(uid.to_string());
                argv
            };
            let result = exec::run(&ProcessRequest {
                command_line: CommandLine::Direct(argv),
                cwd: PathBuf::from("/"),
                owns_process: false,
                env: Vec::new(),
                stdin: &[],
                timeout: DIRECTORY_SERVICE_TIMEOUT,
                cancel: None,
            });
            let is_found = result.end == ProcessEnd::Exit(0);
            let text = String::from_utf8_lossy(&result.stdout.bytes);
            is_found.then(|| parse(&text, uid))?
        })
    }

    pub(super) fn in_password_file() -> Option<Account> {
        let uid = rustix::process::geteuid().as_raw();
        let passwd = anyhook_util::fs::read_bytes(Path::new("/etc/passwd"), MAX_PASSWD_BYTES);
        parse(&String::from_utf8_lossy(&passwd.ok()?), uid)
    }

    /// Finds a user in lines of `name:password:uid:gid:…:home:shell`.
    pub(super) fn parse(lines: &str, uid: u32) -> Option<Account> {
        lines.lines().find_map(|line| {
            let mut fields = line.split(':');
            let (name, _, id) = (fields.next()?, fields.next()?, fields.next()?);
            if id.parse() != Ok(uid) || name.is_empty() {
                return None;
            }
            let home = PathBuf::from(line.rsplit(':').nth(1)?);
            home.is_absolute().then(|| Account {
                name: name.to_owned(),
                home,
            })
        })
    }
}

#[cfg(windows)]
mod platform {
    use known_folders::{KnownFolder, get_known_folder_path};

    use super::Account;

    /// The system knows the folder; the name is only shown.
    pub(super) fn find() -> Option<Account> {
        let home = get_known_folder_path(KnownFolder::Profile)?;
        let home = anyhook_util::paths::normal_form(home);
        let name = anyhook_util::env::USERNAME.text();
        Some(Account {
            name: name.unwrap_or_default(),
            home,
        })
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_number() {
        let text = "root:x:0:0:root:/root:/bin/sh\n\nbroken\n+::::::\na:x:7:7::relative:/bin/sh\n\
                    b:*:8:8:class:0:0:B, C:/Users/b:/bin/zsh\nme:x:1000:1000::/home/me:/bin/sh\n";
        let find = |uid| platform::parse(text, uid).map(|it| (it.name, it.home));
        let entry = |name: &str, home: &str| Some((name.to_owned(), PathBuf::from(home)));
        assert_eq!(find(0), entry("root", "/root"));
        assert_eq!(find(1000), entry("me", "/home/me"));
        assert_eq!(find(8), entry("b", "/Users/b"));
        assert_eq!(find(7), None);
        assert_eq!(find(1), None);
    }
}
