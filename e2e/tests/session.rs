//! The runner with a stand-in for a client: a shell script that calls its hook, asks the model, and leaves a
//! daemon behind. Needs no npm and no network.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhook_e2e::cache::Cache;
use anyhook_e2e::client::{Client, Drive, Package, Pin};
use anyhook_e2e::expect::Expect;
use anyhook_e2e::hook::Rule;
use anyhook_e2e::isolation::Isolation;
use anyhook_e2e::proof::CHECKS;
use anyhook_e2e::scenario::{Scenario, Step};
use anyhook_e2e::session::{Lab, Outcome, Session};
use serde_json::json;

/// Asks the model once over a plain socket; the answer goes to answer.txt.
const ASK: &str = r#"
body='{"messages":[{"role":"user","content":"go"}],"tools":[{"type":"function","function":{"name":"bash"}}]}'
exec 3<>"/dev/tcp/127.0.0.1/$PORT"
printf 'POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %s\r\n\r\n%s' "${#body}" "$body" >&3
cat <&3 > answer.txt
"#;

fn client(script: &str) -> Client {
    let drive: Drive = serde_json::from_value(json!({
        "argv": ["bash", "-c", script, "client", "@prompt@"],
        "env": {"PORT": "@port@"},
        "file": [{"path": "~/.client/settings.json", "text": "{\"a\": {\"base\": 1}}"}],
        "linger_ms": 0,
        "tools": {"shell": {"name": "bash", "arguments": {"command": "@command@"}}},
        "hooks": {
            "events": ["Before", "After"],
            "pre_tool": "Before",
            "file": [
                {"path": "~/.client/settings.json", "text": "{\"a\": {\"@event@\": \"@hook@ @event@\"}}"},
                {"path": "~/.client/@event@", "text": "#!/bin/sh\nexec @hook@ @event@ extra\n", "executable": true},
            ],
            "deny": {"decision": "deny"},
        },
    }))
    .unwrap();
    Client {
        pin: Pin {
            slug: "stand-in".to_owned(),
            npm: "stand-in".to_owned(),
            version: "1".to_owned(),
            only_named: None,
        },
        drive,
        node: Package {
            npm: "node".to_owned(),
            version: "1".to_owned(),
        },
        folder: "/nonexistent".into(),
        expect: Expect::default(),
    }
}

/// A lab whose cache says that the stand-in is installed.
fn lab(cache: &Path, isolation: Isolation) -> Lab {
    let package = cache.join("stand-in@1");
    fs::create_dir_all(&package).unwrap();
    fs::write(package.join(".installed"), "").unwrap();
    Lab {
        cache: Cache::at(cache),
        isolation,
        ..Lab::locate().unwrap()
    }
}

/// Runs a check in each isolation that there is here.
fn in_each_isolation(check: impl Fn(&Lab)) {
    let cache = tempfile::tempdir().unwrap();
    check(&lab(cache.path(), Isolation::Plain("a test".to_owned())));
    if Isolation::detect() == Isolation::Namespace {
        check(&lab(cache.path(), Isolation::Namespace));
    }
}

/// Processes whose environment has this HOME.
fn left_behind(outcome: &Outcome) -> usize {
    let mark = format!("HOME={}", outcome.scratch.home.display());
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|process| fs::read(process.path().join("environ")).ok())
        .filter(|environ| {
            environ
                .split(|byte| *byte == 0)
                .any(|entry| entry == mark.as_bytes())
        })
        .count()
}

#[test]
fn a_session_runs_records_and_clears_up() {
    in_each_isolation(|lab| {
        let script = format!(
            "{ASK}
            echo \"prompt: $1\"; echo oops >&2
            printf '{{\"tool\":\"x\"}}' | ~/.client/Before > hook-said.txt; echo $? > hook-exit.txt
            printf '{{}}' | ~/.client/After > after-said.txt
            cp prepared.txt seen.txt; printf %s \"$GIVEN\" > given.txt
            setsid sleep 600 > /dev/null 2>&1 &
            exit 7"
        );
        let client = client(&script);
        let outcome = Session::new(lab, &client)
            .prompt("do it")
            .project_file("sub/here.txt", "here")
            .home_file("there.txt", "there")
            .env("GIVEN", "given @port@ or not")
            .scenario(Scenario::new([Step::Shell {
                command: "true".to_owned(),
            }]))
            .native_hooks()
            .rule(Rule {
                contains: Some("\"tool\"".to_owned()),
                stdout: Some(json!({"decision": "deny"})),
                exit: 2,
                ..Rule::on("Before")
            })
            .prepare(|scratch| {
                let made = scratch
                    .command("sh")
                    .args(["-c", "cat sub/here.txt ~/there.txt > prepared.txt"])
                    .status();
                assert!(made.unwrap().success());
                Ok(())
            })
            .run()
            .unwrap();

        assert_eq!(outcome.ending.exit, Some(7));
        assert!(!outcome.ending.timed_out);
        assert_eq!(outcome.stdout, "prompt: do it\n");
        assert_eq!(outcome.stderr, "oops\n");
        assert_eq!(outcome.file("seen.txt").unwrap(), "herethere");
        assert!(outcome.file("given.txt").unwrap().starts_with("given "));
        assert_eq!(
            outcome.file("hook-said.txt").unwrap(),
            r#"{"decision":"deny"}"#
        );
        assert_eq!(outcome.file("hook-exit.txt").unwrap(), "2\n");
        assert_eq!(outcome.file("after-said.txt").unwrap(), "");
        assert!(outcome.file("answer.txt").unwrap().contains("tool_calls"));
        let settings = outcome.home_file(".client/settings.json").unwrap();
        for part in ["base", "Before", "After"] {
            assert!(settings.contains(part), "{settings}");
        }

        assert_eq!(outcome.requests.len(), 1);
        assert_eq!(outcome.reached_model("go"), Some(0));
        assert_eq!(outcome.reached_model("come"), None);
        let call = outcome.hook_calls("Before").next().unwrap();
        assert_eq!(call.args, ["extra"]);
        assert_eq!(call.payload().unwrap(), json!({"tool": "x"}));
        assert_eq!(outcome.hook_calls("After").count(), 1);
        assert_eq!(left_behind(&outcome), 0);

        let place = outcome.scratch.run.parent().unwrap().to_owned();
        drop(outcome);
        assert!(!place.exists());
    });
}

#[test]
fn a_client_that_hangs_is_ended_with_all_its_children() {
    in_each_isolation(|lab| {
        let client = client("sleep 600 & setsid sleep 600 & wait");
        let outcome = Session::new(lab, &client)
            .timeout(Duration::from_millis(500))
            .run()
            .unwrap();
        assert!(outcome.ending.timed_out);
        assert_eq!(outcome.ending.exit, None);
        assert_eq!(left_behind(&outcome), 0);
    });
}

#[test]
fn the_namespace_has_nothing_but_loopback() {
    if Isolation::detect() != Isolation::Namespace {
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let lab = lab(cache.path(), Isolation::Namespace);
    let client = client("tail -n +3 /proc/net/dev | cut -d: -f1; id -u; getent hosts example.com");
    let outcome = Session::new(&lab, &client).run().unwrap();
    let words: Vec<&str> = outcome.stdout.split_whitespace().collect();
    assert_eq!(words, ["lo", "1000"]);
}

#[test]
fn the_rule_that_holds_once_answers_once() {
    in_each_isolation(|lab| {
        let client = client("for i in 1 2; do echo {} | ~/.client/Before; done");
        let outcome = Session::new(lab, &client)
            .native_hooks()
            .rule(Rule {
                once: true,
                stdout: Some("first".into()),
                ..Rule::on("Before")
            })
            .rule(Rule::on("Before").stdout("later"))
            .run()
            .unwrap();
        assert_eq!(outcome.stdout, "firstlater");
    });
}

#[test]
fn the_data_of_every_client_can_be_read() {
    let clients = Client::all().unwrap();
    assert!(clients.len() >= 8);
    for client in clients {
        let drive = &client.drive;
        assert!(
            drive.hooks.events.contains(&drive.hooks.pre_tool),
            "{}",
            client.slug()
        );
        for role in ["shell", "write", "read", "edit"] {
            assert!(
                drive.tools.0.contains_key(role),
                "{}: {role}",
                client.slug()
            );
        }
        assert_eq!(
            drive.tools.0.contains_key("subagent"),
            drive.no_subagent.is_none(),
            "{}",
            client.slug()
        );
    }
}

#[test]
fn expectations_are_about_checks_that_there_are() {
    for client in Client::all().unwrap() {
        let expect = &client.expect;
        let broken = expect.sabotage.iter().flat_map(|sabotage| &sabotage.red);
        for name in expect.cannot.keys().chain(broken) {
            assert!(CHECKS.contains(&name.as_str()), "{}: {name}", client.slug());
        }
        for sabotage in &expect.sabotage {
            assert!(!sabotage.red.is_empty(), "{}", client.slug());
            assert!(
                sabotage.answer.is_some() || sabotage.installed.is_some(),
                "{}",
                client.slug()
            );
        }
        assert!(
            expect.no_adapter.is_some() || !expect.sabotage.is_empty(),
            "{}: no proof that its checks can fail",
            client.slug()
        );
        let has_adapter = anyhook_agents::get(client.slug()).is_some();
        assert_eq!(
            has_adapter,
            expect.no_adapter.is_none(),
            "{}",
            client.slug()
        );
    }
}
