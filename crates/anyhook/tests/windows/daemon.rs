//! The daemon over TCP, and its store.

use std::io::{BufRead as _, BufReader};
use std::time::Duration;

use anyhook_agents::matrix::clients;
use serde_json::Value;

use crate::support::{MANIFEST, anyhook, run, shell_call, text, trusted_project};

#[test]
fn a_daemon_answers_over_tcp_and_keeps_the_events() {
    let scratch = trusted_project(MANIFEST);
    let serve = ["serve", "--listen", "127.0.0.1:0", "--json"];
    let mut daemon = anyhook(&scratch).spawn(serve).unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(daemon.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    let started: Value = serde_json::from_str(&line).unwrap();
    let url = started["url"].as_str().unwrap();
    let adapter = clients().next().unwrap();
    let event = shell_call("rm -rf x", &text(&scratch.project()));
    let encoded = adapter.encode(&event, None).unwrap();
    let arguments = [
        "run",
        "--agent",
        adapter.spec.id.as_ref(),
        "--event",
        &encoded.native_event,
        "--server",
        url,
    ];
    let output = run(&scratch, &arguments, &encoded.payload.to_string());
    assert!(output.stdout.contains("no recursive delete"), "{output:?}");
    assert!(!output.stdout.contains("away"), "{output:?}");
    // The daemon fills its store from the journal.
    std::thread::sleep(Duration::from_secs(3));
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    assert!(scratch.state().join("store.db").is_file());
    let log = run(&scratch, &["log", "--json"], "");
    assert!(log.stdout.contains("no recursive delete"), "{log:?}");
}
