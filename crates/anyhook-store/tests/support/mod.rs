//! A real PostgreSQL server of its own for each test process.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Server {
    dir: PathBuf,
    bin: PathBuf,
    /// The server ends when this closes.
    _alive: ChildStdin,
    _child: Child,
}

static SERVER: OnceLock<Option<Server>> = OnceLock::new();
static DATABASES: AtomicUsize = AtomicUsize::new(0);

/// The address of a new, empty database; `None` where PostgreSQL is not installed.
///
/// `ANYHOOK_TEST_POSTGRES=require` makes its absence a failure.
pub fn database() -> Option<String> {
    let Some(server) = SERVER.get_or_init(start) else {
        let required = std::env::var("ANYHOOK_TEST_POSTGRES").is_ok_and(|value| value == "require");
        assert!(!required, "no PostgreSQL programs were found");
        println!("skipped: no PostgreSQL programs (initdb, postgres) were found");
        return None;
    };
    let name = format!("t{}", DATABASES.fetch_add(1, Ordering::Relaxed));
    let created = Command::new(server.bin.join("createdb"))
        .arg("-h")
        .arg(&server.dir)
        .args(["-U", "anyhook", &name])
        .status()
        .unwrap();
    assert!(created.success());
    Some(format!(
        "postgres:///{name}?user=anyhook&host={}",
        server.dir.display()
    ))
}

fn start() -> Option<Server> {
    let bin = programs()?;
    let dir = std::env::temp_dir().join(format!("anyhook-pg-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let mut child = Command::new("sh")
        .args(["-c", include_str!("server.sh"), "server"])
        .arg(&bin)
        .arg(&dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut said)
        .unwrap();
    assert_eq!(said.trim(), "ready", "PostgreSQL did not start");
    Some(Server {
        dir,
        bin,
        _alive: child.stdin.take().unwrap(),
        _child: child,
    })
}

fn programs() -> Option<PathBuf> {
    let complete = |dir: &Path| {
        ["initdb", "postgres", "pg_isready", "createdb"]
            .iter()
            .all(|name| dir.join(name).exists())
    };
    let debian = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    debian
        .chain(std::env::split_paths(&path))
        .find(|dir| complete(dir))
}
