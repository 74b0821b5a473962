//! `anyhook export parquet` into a bucket: a real S3 server, `moto` in `target/receivers`.
#![cfg(unix)] // the server is a Python program of this system

use std::collections::BTreeMap;
use std::process::Command;

use anyhook_testkit::{ProcessOutput, Scratch};
use serde_json::json;

use crate::real_receivers::{RealReceiver, python};
use crate::sessions::BIN;

const BUCKET: &str = "logs";
const PREFIX: &str = "team/anyhook";

struct S3Server(RealReceiver);

impl S3Server {
    fn start() -> Option<Self> {
        let python = python("moto")?;
        let server = RealReceiver::start(
            |_, port| {
                let mut command = Command::new(&python);
                command.args(["-m", "moto.server", "-H", "127.0.0.1"]);
                command.args(["-p", &port.to_string()]);
                command
            },
            "/moto-api/",
        );
        let made = ureq::put(&format!("{}/{BUCKET}", server.url)).send_empty();
        assert_eq!(made.unwrap().status(), 200);
        Some(Self(server))
    }

    /// The names of all files, without the prefix.
    fn names(&self) -> Vec<String> {
        let url = format!("{}/{BUCKET}?list-type=2", self.0.url);
        let list = ureq::get(&url).call().unwrap().body_mut().read_to_string();
        let list = list.unwrap();
        let keys = list.split("<Key>").skip(1);
        let keys = keys.map(|rest| rest.split_once("</Key>").unwrap().0);
        keys.map(|key| {
            let name = key.strip_prefix(PREFIX).and_then(|it| it.strip_prefix('/'));
            name.unwrap_or_else(|| panic!("{key}")).to_owned()
        })
        .collect()
    }

    fn read(&self, name: &str) -> Vec<u8> {
        let url = format!("{}/{BUCKET}/{PREFIX}/{name}", self.0.url);
        // The server looks for a signature, not at it.
        let signed = "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/s3/aws4_request, \
                      SignedHeaders=host, Signature=any";
        let reply = ureq::get(&url).header("authorization", signed).call();
        reply.unwrap().body_mut().read_to_vec().unwrap()
    }

    fn export(&self, scratch: &Scratch) -> ProcessOutput {
        let args = [
            "export",
            "parquet",
            "--to",
            &format!("s3://{BUCKET}/{PREFIX}"),
        ];
        self.command(scratch).run(args, "").unwrap()
    }

    fn command(&self, scratch: &Scratch) -> anyhook_testkit::Invocation {
        let call = scratch.command(BIN).env("AWS_ENDPOINT", &self.0.url);
        call.env("AWS_ALLOW_HTTP", "true")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "any")
            .env("AWS_SECRET_ACCESS_KEY", "any")
    }

    /// How often each event is in the bucket, by its number.
    fn exported(&self) -> BTreeMap<i64, usize> {
        let mut found = BTreeMap::new();
        for name in self.names() {
            if !name.starts_with("events/") {
                continue;
            }
            let bytes = self.read(&name);
            assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
            // All events of these tests are of one day, so a file has every number of its name.
            let stem = name.strip_suffix(".parquet").unwrap();
            let mut numbers = stem.rsplit('-').map(|part| part.parse::<i64>().unwrap());
            let (last, first) = (numbers.next().unwrap(), numbers.next().unwrap());
            for number in first..=last {
                *found.entry(number).or_default() += 1;
            }
        }
        found
    }

    fn assert_each_once(&self, events: i64) {
        let expected: BTreeMap<i64, usize> = (1..=events).map(|number| (number, 1)).collect();
        assert_eq!(self.exported(), expected);
    }
}

/// Events of one day, as the journal has them.
fn append(scratch: &Scratch, numbers: std::ops::Range<i64>) {
    use std::io::Write as _;
    let folder = scratch.state().join("journal");
    std::fs::create_dir_all(&folder).unwrap();
    let mut options = std::fs::OpenOptions::new();
    let options = options.create(true).append(true);
    let mut file = options.open(folder.join("events.jsonl")).unwrap();
    for n in numbers {
        let record = json!({
            "v": 1, "id": format!("event-{n}"), "kind": "event", "agent": "codex",
            "time": format!("2026-03-01T10:{:02}:{:02}.000Z", n / 60, n % 60),
            "event": {"event": "before_prompt", "source": "codex", "session_id": "s"},
            "duration_ms": 1.5
        });
        writeln!(file, "{record}").unwrap();
    }
}

#[test]
fn a_bucket_gets_each_event_once() {
    let Some(server) = S3Server::start() else {
        return;
    };
    let scratch = Scratch::new().unwrap();
    // More exports than a day may have files: they become one.
    for part in 0..10 {
        append(&scratch, part * 7..part * 7 + 7);
        let done = server.export(&scratch);
        assert_eq!(done.exit, Some(0), "{}", done.stderr);
        assert!(done.stderr.contains("Exported 7 events"), "{}", done.stderr);
    }
    server.assert_each_once(70);
    let names = server.names();
    assert!(names.len() < 8, "{names:?}");
    let again = server.export(&scratch);
    assert!(
        again.stderr.contains("Exported 0 events"),
        "{}",
        again.stderr
    );
    assert_eq!(server.names(), names);
}

#[test]
fn exports_at_the_same_time_write_nothing_twice() {
    let Some(server) = S3Server::start() else {
        return;
    };
    let scratch = Scratch::new().unwrap();
    let mut events = 0;
    let mut collect = |output: &ProcessOutput| {
        let said = output.stderr.split_once("Exported ");
        let count = said.and_then(|(_, rest)| rest.split(' ').next()?.parse::<i64>().ok());
        events += count.unwrap_or_else(|| panic!("{output:?}"));
    };
    for part in 0..6 {
        append(&scratch, part * 20..part * 20 + 20);
        let outputs: Vec<ProcessOutput> = std::thread::scope(|scope| {
            let exports: Vec<_> = (0..3)
                .map(|_| scope.spawn(|| server.export(&scratch)))
                .collect();
            exports
                .into_iter()
                .map(|export| export.join().unwrap())
                .collect()
        });
        for output in &outputs {
            // One that comes second is refused, or finds nothing left to do.
            if output.exit == Some(1) && output.stderr.contains("another export") {
                continue;
            }
            assert_eq!(output.exit, Some(0), "{output:?}");
            collect(output);
        }
    }
    let rest = server.export(&scratch);
    assert_eq!(rest.exit, Some(0), "{rest:?}");
    collect(&rest);
    assert_eq!(events, 120);
    // Processes that store the same events at the same time leave gaps between their numbers.
    let exported = server.exported();
    assert!(exported.values().all(|count| *count == 1), "{exported:?}");
}

/// `ANYHOOK_KILL_ROUNDS` sets the number of rounds.
#[test]
fn killed_while_it_exports_to_a_bucket() {
    let Some(server) = S3Server::start() else {
        return;
    };
    let rounds = std::env::var("ANYHOOK_KILL_ROUNDS").ok();
    let rounds: i64 = rounds.and_then(|text| text.parse().ok()).unwrap_or(5);
    let scratch = Scratch::new().unwrap();
    let place = format!("s3://{BUCKET}/{PREFIX}");
    for round in 0..rounds {
        append(&scratch, round * 10..round * 10 + 10);
        let call = server.command(&scratch);
        let mut child = call.spawn(["export", "parquet", "--to", &place]).unwrap();
        let millis = 10 + u64::try_from(round * 37 % 190).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(millis));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let done = server.export(&scratch);
    assert_eq!(done.exit, Some(0), "{}", done.stderr);
    server.assert_each_once(rounds * 10);
}
