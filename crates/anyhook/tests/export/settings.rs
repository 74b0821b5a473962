//! The section `otlp` of the settings, for `anyhook export otlp` and `anyhook serve`.

use std::process::{Child, Command, Stdio};

use anyhook_testkit::{Scratch, wait_until};

use crate::receiver::{Receiver, attributes};
use crate::sessions::{BIN, agents, anyhook, record_sessions};

fn write_settings(scratch: &Scratch, text: &str) {
    let path = scratch.config().join("config.yaml");
    scratch.file(path, text).unwrap();
}

struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_daemon_exports_what_the_settings_say() {
    let scratch = record_sessions();
    let receiver = Receiver::start();
    let file = scratch.config().join("key.txt");
    scratch.file(file.clone(), "from-a-file\n").unwrap();
    write_settings(
        &scratch,
        &format!(
            "otlp:\n  endpoint: {}\n  headers:\n    x-plain: as-it-is\n    x-variable: {{env: MY_OTLP_KEY}}\n    \
             x-file: {{file: {}}}\n  resource: {{service.name: team-a}}\n  signals: [traces]\n",
            receiver.url(),
            file.display()
        ),
    );
    let mut command = Command::new(BIN);
    command
        .args(["serve", "--listen", "127.0.0.1:0"])
        .env_clear()
        .env("HOME", scratch.home())
        .env("MY_OTLP_KEY", "from-a-variable")
        .env("ANYHOOK_CONFIG_DIR", scratch.config())
        .env("ANYHOOK_STATE_DIR", scratch.state())
        .env("ANYHOOK_MANAGED_DIR", scratch.managed())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let _daemon = Daemon(command.spawn().unwrap());
    wait_until("the daemon has exported", || {
        receiver.received().spans.len() == 5 * agents().count()
    });
    let received = receiver.received();
    assert!(received.logs.is_empty() && received.metrics.is_empty());
    assert_eq!(attributes(&received.resource)["service.name"], "team-a");
    for (name, value) in [
        ("x-plain", "as-it-is"),
        ("x-variable", "from-a-variable"),
        ("x-file", "from-a-file"),
    ] {
        let expected = (name.to_owned(), value.to_owned());
        assert!(
            received.headers.contains(&expected),
            "{:?}",
            received.headers
        );
    }
}

#[test]
fn a_secret_of_the_settings_is_in_no_message() {
    let scratch = record_sessions();
    let file = scratch.config().join("key.txt");
    scratch.file(file.clone(), "sesame\nsesame\n").unwrap();
    let in_file = format!("headers: {{x: {{file: {}}}}}", file.display());
    for settings in [
        "endpoint: http://user:sesame@127.0.0.1:9",
        "endpoint: http://user:sesame@collector.example.com",
        "headers: {\"x y\": sesame}",
        "headers: {x: \"sesame\\u0000\"}",
        &in_file,
    ] {
        write_settings(&scratch, &format!("otlp: {{{settings}}}"));
        let output = anyhook(&scratch, &["export", "otlp"]);
        assert_eq!(output.exit, Some(1), "{settings}");
        let text = output.stdout + &output.stderr;
        assert!(!text.contains("sesame"), "{settings}: {text}");
    }
}

#[test]
fn wrong_settings_are_explained() {
    let scratch = record_sessions();
    for (settings, expected) in [
        (
            "otlp: {endpont: http://localhost}",
            "unknown field `endpont`",
        ),
        (
            "otlp: {content: everything}",
            "unknown variant `everything`",
        ),
        (
            "otlp: {headers: {x: {env: NOT_SET_ANYWHERE}}}",
            "the variable `NOT_SET_ANYWHERE` for the header `x` is not set",
        ),
        (
            "otlp: {headers: {x: {file: /not/there}}}",
            "could not read `/not/there`",
        ),
        (
            "otlp: {endpoint: http://collector.example.com}",
            "http://collector.example.com",
        ),
        ("otlp: {endpoint: 'no address'}", "no address"),
    ] {
        write_settings(&scratch, settings);
        let output = anyhook(&scratch, &["export", "otlp"]);
        assert_eq!(output.exit, Some(1), "{settings}");
        assert!(
            output.stderr.contains(expected),
            "{settings}: {}",
            output.stderr
        );
    }
}
