//! A real PostgreSQL server for each test process.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Server {
    dir: PathBuf,
    bin: PathBuf,
    /// The server stops when this closes.
    _alive: ChildStdin,
    _child: Child,
}

static SERVER: OnceLock<Option<Server>> = OnceLock::new();
static DATABASE_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Creates an empty database and returns its address; `None` where PostgreSQL is
/// not installed.
///
/// `ANYHOOK_TEST_POSTGRES=require` makes its absence a failure.
pub fn create_database() -> Option<String> {
    let Some(server) = SERVER.get_or_init(start_server) else {
        let required = std::env::var("ANYHOOK_TEST_POSTGRES").is_ok_and(|value| value == "require");
        assert!(!required, "PostgreSQL is not installed");
        println!("skipped: PostgreSQL (initdb, postgres) is not installed");
        return None;
    };
    let name = format!("t{}", DATABASE_COUNT.fetch_add(1, Ordering::Relaxed));
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

/// What the server of this process has logged so far.
pub fn server_log() -> String {
    let server = SERVER.get().and_then(Option::as_ref);
    let log = server.map(|server| format!("{}.log", server.dir.display()));
    log.map(|path| std::fs::read_to_string(path).unwrap())
        .unwrap_or_default()
}

fn start_server() -> Option<Server> {
    // Wine sees the programs of Linux, and cannot start them.
    let bin = find_programs().filter(|_| cfg!(unix))?;
    let dir = std::env::temp_dir().join(format!("anyhook-pg-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let mut child = Command::new("sh")
        .args(["-c", include_str!("postgres_server.sh"), "server"])
        .arg(&bin)
        .arg(&dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first_line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut first_line)
        .unwrap();
    assert_eq!(first_line.trim(), "ready", "PostgreSQL did not start");
    Some(Server {
        dir,
        bin,
        _alive: child.stdin.take().unwrap(),
        _child: child,
    })
}

fn find_programs() -> Option<PathBuf> {
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
