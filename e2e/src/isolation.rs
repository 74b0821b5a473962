//! Isolates a session: a network namespace with loopback only and a pid namespace that takes every
//! leftover process with it, where the system allows it; otherwise dead proxies and a search of the process table.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// How a session is isolated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Isolation {
    Namespace,
    /// Namespaces are not available, for this reason.
    Plain(String),
}

/// Root inside, so that loopback can be brought up.
const OUTER_UNSHARE_ARGS: [&str; 8] = [
    "--user",
    "--map-root-user",
    "--net",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
    "--",
];

/// Clients run as an ordinary user: some refuse to work without permission checks as root.
const INNER_UNSHARE_COMMAND: [&str; 5] = [
    "unshare",
    "--user",
    "--map-user=1000",
    "--map-group=1000",
    "--",
];

const LOOPBACK_UP_COMMAND: [&str; 5] = ["ip", "link", "set", "lo", "up"];

impl Isolation {
    /// What this system allows, determined by trying.
    pub fn detect() -> Isolation {
        let trial = format!(
            "{} && {} true",
            LOOPBACK_UP_COMMAND.join(" "),
            INNER_UNSHARE_COMMAND.join(" ")
        );
        let tried = Command::new("unshare")
            .args(OUTER_UNSHARE_ARGS)
            .args(["sh", "-c", &trial])
            .output();
        match tried {
            Ok(output) if output.status.success() => Isolation::Namespace,
            Ok(output) => {
                Isolation::Plain(String::from_utf8_lossy(&output.stderr).trim().to_owned())
            }
            Err(error) => Isolation::Plain(format!("unshare: {error}")),
        }
    }

    /// A command that runs `program` in the isolation.
    pub fn command(&self, program: &Path) -> Command {
        match self {
            Isolation::Namespace => {
                let mut command = Command::new("unshare");
                command.args(OUTER_UNSHARE_ARGS).arg(program);
                command
            }
            Isolation::Plain(_) => Command::new(program),
        }
    }

    /// Variables that keep a client off the network when no namespace does.
    pub fn env(&self) -> Vec<(&'static str, &'static str)> {
        match self {
            Isolation::Namespace => Vec::new(),
            Isolation::Plain(_) => {
                const DEAD_PROXY_URL: &str = "http://127.0.0.1:9";
                const LOOPBACK_HOSTS: &str = "127.0.0.1,localhost";
                vec![
                    ("HTTP_PROXY", DEAD_PROXY_URL),
                    ("HTTPS_PROXY", DEAD_PROXY_URL),
                    ("ALL_PROXY", DEAD_PROXY_URL),
                    ("http_proxy", DEAD_PROXY_URL),
                    ("https_proxy", DEAD_PROXY_URL),
                    ("all_proxy", DEAD_PROXY_URL),
                    ("NO_PROXY", LOOPBACK_HOSTS),
                    ("no_proxy", LOOPBACK_HOSTS),
                ]
            }
        }
    }
}

/// Inside the namespace: brings loopback up and makes name lookups fail at once, since clients wait seconds for
/// a name server that they cannot reach.
pub(crate) fn prepare_namespace(run: &Path) {
    // If loopback stays down the fake model cannot be reached and the session fails; without the other, it is slow.
    let _ = from_words(&LOOPBACK_UP_COMMAND).output();
    let resolver = run.join("resolv.conf");
    if fs::write(
        &resolver,
        "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n",
    )
    .is_ok()
    {
        let mut mount = Command::new("mount");
        let _ = mount
            .arg("--bind")
            .arg(&resolver)
            .arg("/etc/resolv.conf")
            .output();
    }
}

/// Inside the namespace: the command as an ordinary user.
pub(crate) fn user_command(argv: &[String]) -> Command {
    let mut command = from_words(&INNER_UNSHARE_COMMAND);
    command.args(argv);
    command
}

fn from_words(words: &[&str]) -> Command {
    let mut words = words.iter();
    let mut command = Command::new(words.next().copied().unwrap_or_default());
    command.args(words);
    command
}

/// Kills every process whose HOME is this folder: daemons that a client left behind. Finds none without `/proc`.
pub(crate) fn kill_leftover_processes(home: &Path) {
    // A killed process stays visible for a moment, and may have started another one just before.
    for _ in 0..100 {
        let left = processes_of(home);
        if left.is_empty() {
            return;
        }
        for pid in left {
            // It may have ended by itself meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn processes_of(home: &Path) -> Vec<Pid> {
    let mark = format!("HOME={}", home.display()).into_bytes();
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .flatten()
        .filter(|process| {
            fs::read(process.path().join("environ"))
                .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == mark))
        })
        .filter_map(|process| Pid::from_raw(process.file_name().to_str()?.parse().ok()?))
        .collect()
}
