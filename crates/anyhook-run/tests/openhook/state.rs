//! The memory on disk: many processes at once, sessions that end, old files.

#![cfg(test)]

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use anyhook_model::HookEvent;
use anyhook_run::openhook::{LocalMachine, Machine, envelopes};
use openhook::{Envelope, StreamChecker};
use serde_json::{Value, json};

fn event(name: &str, session: &str, data: Value) -> HookEvent {
    HookEvent {
        event: name.to_owned(),
        source: "my-agent".to_owned(),
        native_event: name.to_owned(),
        session_id: Some(session.to_owned()),
        data: data.as_object().unwrap().clone(),
        ..HookEvent::default()
    }
}

fn call(name: &str, session: &str, command: &str) -> HookEvent {
    let data = json!({"tool_name": "shell", "tool_input": {"command": command}});
    event(name, session, data)
}

const ROUNDS: usize = 60;

/// Hooks do not wait that long: on a loaded machine a process that holds the lock may not
/// get the processor for a second, and then the others go on without the memory. These
/// tests are about what happens with it.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

fn patient_machine(state: &Path) -> LocalMachine {
    LocalMachine::new(state).with_lock_timeout(LOCK_TIMEOUT)
}

/// A separate process, if the test below starts it, as each hook call is.
#[test]
fn child() {
    let Some(state) = std::env::var_os("EMIT_TEST_STATE") else {
        return;
    };
    let session = std::env::var("EMIT_TEST_SESSION").unwrap();
    let worker = std::env::var("EMIT_TEST_WORKER").unwrap();
    let machine = patient_machine(Path::new(&state));
    let mut lines = String::new();
    for round in 0..ROUNDS {
        // Every second command is the same in all workers of a session.
        let command = if round % 2 == 0 {
            format!("own {worker}")
        } else {
            "shared".to_owned()
        };
        for name in ["before_tool_execute", "after_tool_execute"] {
            for envelope in envelopes(&call(name, &session, &command), &machine) {
                lines.push_str(&envelope.to_json_line());
            }
        }
    }
    fs::write(std::env::var_os("EMIT_TEST_OUT").unwrap(), lines).unwrap();
}

#[test]
fn many_processes_share_a_session() {
    let scratch = tempfile::tempdir().unwrap();
    let workers: Vec<_> = (0..12)
        .map(|worker| {
            let out = scratch.path().join(format!("out-{worker}"));
            let child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "state::child", "--test-threads=1"])
                .env("EMIT_TEST_STATE", scratch.path())
                .env("EMIT_TEST_SESSION", format!("s{}", worker % 3))
                .env("EMIT_TEST_WORKER", worker.to_string())
                .env("EMIT_TEST_OUT", &out)
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            (child, out)
        })
        .collect();
    let mut starts: BTreeMap<String, HashSet<String>> = BTreeMap::new();
    let mut ends = starts.clone();
    for (mut child, out) in workers {
        assert!(child.wait().unwrap().success());
        let text = fs::read_to_string(out).unwrap();
        let sent: Vec<Envelope> = text
            .lines()
            .map(|line| Envelope::parse(line).unwrap())
            .collect();
        let call = |envelope: &Envelope| envelope.data["tool_call_id"].as_str().unwrap().to_owned();
        let mut own = HashSet::new();
        for (round, pair) in sent.chunks(2).enumerate() {
            let [start, end] = pair else {
                panic!("a start and an end");
            };
            let session = start.session_id.clone();
            starts
                .entry(session.clone())
                .or_default()
                .insert(call(start));
            ends.entry(session).or_default().insert(call(end));
            // Nobody else makes this worker's own calls: each is one, and whole.
            if round % 2 == 0 {
                assert_eq!(call(start), call(end), "round {round}");
                assert!(end.data.contains_key("duration_ms"));
                own.insert(call(start));
            }
        }
        assert_eq!(own.len(), ROUNDS / 2);
    }
    // Equal calls of several workers at once may be one envelope; every end has
    // its start all the same.
    for (session, starts) in starts {
        assert!(ends[&session].is_subset(&starts), "{session}");
    }
}

#[test]
fn threads_with_ids_lose_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let machine = patient_machine(scratch.path());
    let mut checker = StreamChecker::new();
    let sent = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let (machine, sent) = (machine.clone(), &sent);
            scope.spawn(move || {
                for round in 0..25 {
                    let id = format!("c{worker}-{round}");
                    let data = json!({"tool_name": "shell", "tool_call_id": id,
                                      "tool_input": {"command": "same"}});
                    for name in ["before_tool_execute", "after_tool_execute"] {
                        let one = envelopes(&event(name, "s", data.clone()), &machine);
                        sent.lock().unwrap().extend(one);
                    }
                }
            });
        }
    });
    let sent = sent.into_inner().unwrap();
    assert_eq!(sent.len(), 400);
    for envelope in &sent {
        checker.push(&envelope.to_value());
        if envelope.event_type == "tool.end" {
            assert!(envelope.data.contains_key("duration_ms"), "{envelope:?}");
        }
    }
    let report = checker.finish();
    assert_eq!(report.sources[0].problem("tool-end-without-start"), None);
    assert_eq!(report.sources[0].problem("tool-start-without-end"), None);
    assert_eq!(report.sources[0].problem("duplicate-id"), None);
}

#[test]
fn a_file_is_seen_before_and_after_by_different_processes() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("a.txt");
    let input = json!({"tool_name": "file_write", "tool_call_id": "c1",
        "tool_input": {"path": file, "content": "one\ntwo\n"}});
    let machine = LocalMachine::new(&scratch.path().join("state"));
    let start = envelopes(&event("before_tool_execute", "s", input.clone()), &machine);
    assert_eq!(start.len(), 1);
    fs::write(&file, "one\ntwo\n").unwrap();
    let machine = LocalMachine::new(&scratch.path().join("state"));
    let end = envelopes(&event("after_tool_execute", "s", input), &machine);
    let written = &end[1].data;
    assert_eq!(written["operation"], "create");
    assert_eq!(
        (&written["start_line"], &written["end_line"]),
        (&json!(1), &json!(2))
    );
}

fn files(folder: &Path) -> Vec<fs::DirEntry> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().extension().is_some())
        .collect()
}

#[test]
fn memory_is_bounded_and_small_after_the_end() {
    let scratch = tempfile::tempdir().unwrap();
    let machine = LocalMachine::new(scratch.path());
    for n in 0..300 {
        envelopes(
            &call("before_tool_execute", "s", &format!("c{n}")),
            &machine,
        );
    }
    let size = || files(machine.folder())[0].metadata().unwrap().len();
    assert!(size() < 32 * 1024, "{}", size());
    envelopes(&event("session_end", "s", json!({})), &machine);
    assert!(size() < 400, "{}", size());
}

#[test]
fn old_memories_are_swept() {
    let scratch = tempfile::tempdir().unwrap();
    let machine = LocalMachine::new(scratch.path());
    envelopes(&call("before_tool_execute", "old", "a"), &machine);
    envelopes(&call("before_tool_execute", "young", "a"), &machine);
    let old = SystemTime::now() - Duration::from_secs(30 * 24 * 3600);
    let age = |path: &Path| {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(old).unwrap();
    };
    age(&files(machine.folder())[0].path());
    age(&machine.folder().join("swept"));
    envelopes(&call("before_tool_execute", "new", "a"), &machine);
    assert_eq!(files(machine.folder()).len(), 2);
}

#[test]
fn without_a_place_for_it_events_still_have_envelopes() {
    let scratch = tempfile::tempdir().unwrap();
    let blocked = scratch.path().join("file");
    fs::write(&blocked, "").unwrap();
    let machine = LocalMachine::new(&blocked);
    let sent = envelopes(&call("before_tool_execute", "s", "a"), &machine);
    assert_eq!(sent.len(), 1);

    // A memory that was cut off in the middle is replaced.
    let machine = LocalMachine::new(scratch.path());
    envelopes(&call("before_tool_execute", "s", "a"), &machine);
    let path = files(machine.folder())[0].path();
    fs::write(&path, [0xff, b'{', b'"']).unwrap();
    assert_eq!(
        envelopes(&call("after_tool_execute", "s", "a"), &machine).len(),
        1
    );
    assert!(fs::read_to_string(&path).unwrap().ends_with("}\n"));
}

#[cfg(unix)]
#[test]
fn no_event_waits_for_a_lock_that_is_held() {
    use rustix::fs::{FlockOperation, flock};
    let scratch = tempfile::tempdir().unwrap();
    let machine = LocalMachine::new(scratch.path());
    envelopes(&call("before_tool_execute", "s", "a"), &machine);
    let path = files(machine.folder())[0].path();
    let file = fs::File::open(&path).unwrap();
    flock(&file, FlockOperation::LockExclusive).unwrap();
    let before = fs::read(&path).unwrap();
    assert_eq!(
        envelopes(&call("after_tool_execute", "s", "a"), &machine).len(),
        1
    );
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[cfg(unix)]
#[test]
fn the_memory_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = tempfile::tempdir().unwrap();
    let machine = LocalMachine::new(scratch.path());
    envelopes(&call("before_tool_execute", "s", "secret"), &machine);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let path = files(machine.folder())[0].path();
    assert_eq!(mode(machine.folder()), 0o700);
    assert_eq!(mode(&path), 0o600);
    assert!(!fs::read_to_string(path).unwrap().contains("secret"));
}

#[test]
fn reading_is_bounded_and_only_of_files() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("t");
    fs::write(&path, "0123456789").unwrap();
    let machine = LocalMachine::new(scratch.path());
    let path = path.to_str().unwrap();
    let tail = machine.read_tail(path, 4).unwrap();
    assert_eq!((tail.bytes.as_slice(), tail.whole), (&b"6789"[..], false));
    assert!(machine.read_tail(path, 10).unwrap().whole);
    assert_eq!(machine.read_tail(scratch.path().to_str().unwrap(), 4), None);
    assert_eq!(machine.exists(path), Some(true));
    assert_eq!(machine.exists(&format!("{path}/below")), Some(false));
    assert_eq!(machine.exists("relative"), None);
}
