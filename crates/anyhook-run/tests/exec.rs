//! Programs that misbehave, each a real process.
#![cfg(unix)] // its programs are shell scripts that catch signals
#![cfg(test)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhook_model::Scope;
use anyhook_run::run::exec::command::{CommandContext, CommandLine};
use anyhook_run::run::exec::{
    self, Cancel, Leftover, MAX_OUTPUT_BYTES, ProcessEnd, ProcessRequest, ProcessResult,
};

struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, command: &str, timeout: Duration) -> ProcessResult {
        self.run_with(command, timeout, b"{}", None)
    }

    fn run_with(
        &self,
        command: &str,
        timeout: Duration,
        stdin: &[u8],
        cancel: Option<&Cancel>,
    ) -> ProcessResult {
        let place = CommandContext {
            scope: Scope::Project,
            root: self.path(),
            folder: self.path(),
            cwd: self.path(),
        };
        exec::run(&ProcessRequest {
            command_line: CommandLine::prepare(command, place),
            cwd: self.path().to_owned(),
            owns_process: false,
            env: vec![("MARK".to_owned(), "here".to_owned())],
            stdin,
            timeout,
            cancel,
        })
    }

    fn script(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path
    }

    /// The pid that a test's program wrote, or of whom it started.
    fn pid(&self, name: &str) -> i32 {
        let text = std::fs::read_to_string(self.path().join(name)).unwrap();
        text.trim().parse().unwrap()
    }

    /// A killed process may still be a zombie of init's for a moment.
    fn assert_gone(&self, name: &str) {
        let pid = self.pid(name);
        for _ in 0..200 {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let state = stat.rsplit(')').next().unwrap().trim().chars().next();
            if matches!(state, None | Some('Z' | 'X')) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("{name}: process {pid} is still there");
    }
}

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(150);

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn streams_exit_code_environment_and_input() {
    let scratch = Scratch::new();
    let ended = scratch.run_with(
        "cat; echo $MARK >&2; pwd >&2; exit 7",
        LONG,
        b"payload",
        None,
    );
    assert_eq!(ended.end, ProcessEnd::Exit(7));
    assert_eq!(text(&ended.stdout.bytes), "payload");
    let stderr = text(&ended.stderr.bytes);
    assert!(stderr.starts_with("here\n"), "{stderr}");
    assert!(stderr.contains(scratch.path().file_name().unwrap().to_str().unwrap()));
}

#[test]
fn a_hook_that_hangs_is_ended() {
    let scratch = Scratch::new();
    let ended = scratch.run("echo before; echo $$ >pid; sleep 1000", SHORT);
    assert_eq!(ended.end, ProcessEnd::Timeout);
    assert_eq!(text(&ended.stdout.bytes), "before\n");
    scratch.assert_gone("pid");
}

#[test]
fn a_hook_that_ignores_the_polite_signal_is_killed() {
    let scratch = Scratch::new();
    let ended = scratch.run(
        "trap '' TERM; echo $$ >pid; while :; do sleep 0.05; done",
        SHORT,
    );
    assert_eq!(ended.end, ProcessEnd::Timeout);
    scratch.assert_gone("pid");
}

#[test]
fn a_hook_may_clean_up_at_the_polite_signal() {
    let scratch = Scratch::new();
    let ended = scratch.run(
        "trap 'echo cleaned >done; exit 0' TERM; echo $$ >pid; while :; do sleep 0.02; done",
        SHORT,
    );
    assert_eq!(ended.end, ProcessEnd::Timeout);
    assert!(scratch.path().join("done").exists());
}

#[test]
fn a_timeout_reaches_grandchildren_too() {
    let scratch = Scratch::new();
    let ended = scratch.run(
        "sh -c 'trap \"\" TERM; echo $$ >grandchild; while :; do sleep 0.05; done' & wait",
        SHORT,
    );
    assert_eq!(ended.end, ProcessEnd::Timeout);
    scratch.assert_gone("grandchild");
}

#[test]
fn a_grandchild_that_keeps_stdout_does_not_hold_us() {
    let scratch = Scratch::new();
    let ended = scratch.run("sleep 1000 & echo $! >grandchild; echo '{}'", LONG);
    assert_eq!(ended.end, ProcessEnd::Exit(0));
    assert_eq!(ended.leftover, Some(Leftover::Ended));
    assert_eq!(text(&ended.stdout.bytes), "{}\n");
    scratch.assert_gone("grandchild");
}

#[test]
fn what_has_left_the_group_is_said_to_run_still() {
    let scratch = Scratch::new();
    let ended = scratch.run(
        "setsid sh -c 'echo $$ >pid; sleep 1000' & while [ ! -s pid ]; do sleep 0.01; done; echo '{}'",
        LONG,
    );
    assert_eq!(ended.end, ProcessEnd::Exit(0));
    assert_eq!(ended.leftover, Some(Leftover::Running));
    assert_eq!(text(&ended.stdout.bytes), "{}\n");
    let group = rustix::process::Pid::from_raw(scratch.pid("pid")).unwrap();
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn what_lets_go_of_the_output_may_stay() {
    let scratch = Scratch::new();
    let ended = scratch.run(
        "sleep 5 </dev/null >/dev/null 2>&1 & echo $! >pid; echo ok",
        LONG,
    );
    assert_eq!((ended.end, ended.leftover), (ProcessEnd::Exit(0), None));
    let pid = rustix::process::Pid::from_raw(scratch.pid("pid")).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn output_that_comes_after_the_end_is_still_heard() {
    let scratch = Scratch::new();
    let ended = scratch.run("(sleep 0.1; echo late) & exit 0", LONG);
    assert_eq!((ended.end, ended.leftover), (ProcessEnd::Exit(0), None));
    assert_eq!(text(&ended.stdout.bytes), "late\n");
}

#[test]
fn a_flood_is_cut_and_said() {
    let scratch = Scratch::new();
    let ended = scratch.run("head -c 104857600 /dev/zero; echo end >&2", LONG);
    assert_eq!(ended.end, ProcessEnd::Exit(0));
    assert_eq!(ended.stdout.bytes.len(), MAX_OUTPUT_BYTES);
    assert_eq!(ended.stdout.total, 104_857_600);
    assert!(ended.stdout.is_cut());
    assert_eq!(text(&ended.stderr.bytes), "end\n");
    assert!(!ended.stderr.is_cut());
}

#[test]
fn a_hook_that_never_reads_ten_megabytes() {
    let scratch = Scratch::new();
    let payload = vec![b'x'; 10 * 1024 * 1024];
    for command in [
        "echo ok",
        "exec <&-; echo ok",
        "head -c 1 >/dev/null; echo ok",
    ] {
        let ended = scratch.run_with(command, LONG, &payload, None);
        assert_eq!(ended.end, ProcessEnd::Exit(0), "{command}");
        assert_eq!(text(&ended.stdout.bytes), "ok\n", "{command}");
    }
    let ended = scratch.run_with("echo $$ >pid; exec sleep 1000", SHORT, &payload, None);
    assert_eq!(ended.end, ProcessEnd::Timeout);
    scratch.assert_gone("pid");
}

#[test]
fn ten_megabytes_go_in_and_out_at_once() {
    let scratch = Scratch::new();
    let payload = vec![b'x'; 10 * 1024 * 1024];
    let ended = scratch.run_with("cat", LONG, &payload, None);
    assert_eq!(ended.end, ProcessEnd::Exit(0));
    assert_eq!(ended.stdout.total, payload.len() as u64);
}

#[test]
fn exit_by_signal() {
    let scratch = Scratch::new();
    assert_eq!(scratch.run("kill -9 $$", LONG).end, ProcessEnd::Signal(9));
    assert_eq!(
        scratch.run("kill -SEGV $$", LONG).end,
        ProcessEnd::Signal(11)
    );
}

#[test]
fn what_cannot_start_says_why() {
    let scratch = Scratch::new();
    scratch.script("plain.sh", "#!/bin/sh\n", 0o644);
    scratch.script("alien.sh", "#!/no/such/interpreter -x\n", 0o755);
    let cases = [
        ("./plain.sh", "chmod +x"),
        ("./alien.sh", "the interpreter `/no/such/interpreter -x`"),
        ("./none.sh", "was not found"),
        ("no-such-program-anywhere", "was not found"),
    ];
    for (command, expected) in cases {
        let ProcessEnd::NotStarted(why) = scratch.run(command, LONG).end else {
            panic!("{command} started");
        };
        assert!(why.contains(expected), "{command}: {why}");
    }
}

#[test]
fn a_script_without_a_first_line_runs_in_a_shell() {
    let scratch = Scratch::new();
    scratch.script("bare.sh", "echo \"$1\"\n", 0o755);
    let ended = scratch.run("./bare.sh word", LONG);
    assert_eq!(ended.end, ProcessEnd::Exit(0));
    assert_eq!(text(&ended.stdout.bytes), "word\n");
}

#[test]
fn a_working_directory_that_is_gone() {
    let scratch = Scratch::new();
    let cwd = scratch.path().join("gone");
    let ended = exec::run(&ProcessRequest {
        command_line: CommandLine::Shell("true".to_owned()),
        cwd: cwd.clone(),
        owns_process: false,
        env: Vec::new(),
        stdin: b"",
        timeout: LONG,
        cancel: None,
    });
    let ProcessEnd::NotStarted(why) = ended.end else {
        panic!("started");
    };
    assert!(why.contains("working directory"), "{why}");
}

#[test]
fn a_cancelled_run_ends_its_whole_group() {
    let scratch = Scratch::new();
    let (reader, writer) = std::io::pipe().unwrap();
    let cancel = Cancel::from_fd(reader.into());
    let started = scratch.path().join("pid");
    let waiter = std::thread::spawn(move || {
        while !std::fs::read_to_string(&started).is_ok_and(|text| text.ends_with('\n')) {
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(writer);
    });
    assert!(!cancel.is_set());
    let ended = scratch.run_with("sleep 1000 & echo $! >pid; wait", LONG, b"", Some(&cancel));
    waiter.join().unwrap();
    assert_eq!(ended.end, ProcessEnd::Cancelled);
    assert!(cancel.is_set());
    scratch.assert_gone("pid");
}
