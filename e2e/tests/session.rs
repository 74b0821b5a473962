//! The runner with a stand-in client: a shell script that calls its hook, sends a request to the model, and leaves
//! a daemon behind. Needs no npm and no network.

#![cfg(test)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhook_e2e::cache::Cache;
use anyhook_e2e::client::{Client, ClientSetup, Package, Pin, Registry};
use anyhook_e2e::expect::Expectations;
use anyhook_e2e::hook::Rule;
use anyhook_e2e::isolation::Isolation;
use anyhook_e2e::proof::CHECK_NAMES;
use anyhook_e2e::scenario::{Scenario, Step};
use anyhook_e2e::session::{Harness, Outcome, Session};
use anyhook_e2e::situation::Situation;
use serde_json::json;

/// Asks the model once over a plain socket; the answer goes to answer.txt.
const ASK: &str = r#"
body='{"messages":[{"role":"user","content":"go"}],"tools":[{"type":"function","function":{"name":"bash"}}]}'
exec 3<>"/dev/tcp/127.0.0.1/$PORT"
printf 'POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %s\r\n\r\n%s' "${#body}" "$body" >&3
cat <&3 > answer.txt
"#;

fn client(script: &str) -> Client {
    let setup: ClientSetup = serde_json::from_value(json!({
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
            npm: Some("stand-in".to_owned()),
            pypi: None,
            loosen: Vec::new(),
            version: "1".to_owned(),
            only_named: None,
            variants: Vec::new(),
        },
        setup,
        node: Package {
            registry: Registry::Npm,
            name: "node".to_owned(),
            version: "1".to_owned(),
            loosen: Vec::new(),
        },
        folder: "/nonexistent".into(),
        expect: Expectations::default(),
        variant: None,
    }
}

/// A harness whose cache says that the stand-in is installed.
fn harness(cache: &Path, isolation: Isolation) -> Harness {
    let package = cache.join("stand-in@1");
    fs::create_dir_all(&package).unwrap();
    fs::write(package.join(".installed"), "").unwrap();
    Harness {
        cache: Cache::at(cache),
        isolation,
        ..Harness::locate().unwrap()
    }
}

/// Runs a check in each isolation that there is here.
fn in_each_isolation(check: impl Fn(&Harness)) {
    let cache = tempfile::tempdir().unwrap();
    check(&harness(
        cache.path(),
        Isolation::Plain("a test".to_owned()),
    ));
    if Isolation::detect() == Isolation::Namespace {
        check(&harness(cache.path(), Isolation::Namespace));
    }
}

/// Processes whose environment has this HOME.
fn left_behind(outcome: &Outcome) -> usize {
    let mark = format!("HOME={}", outcome.sandbox.home.display());
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
    in_each_isolation(|harness| {
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
        let outcome = Session::new(harness, &client)
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
            .prepare(|sandbox| {
                let made = sandbox
                    .command("sh")
                    .args(["-c", "cat sub/here.txt ~/there.txt > prepared.txt"])
                    .status();
                assert!(made.unwrap().success());
                Ok(())
            })
            .run()
            .unwrap();

        assert_eq!(outcome.result.exit, Some(7));
        assert!(!outcome.result.timed_out);
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

        let place = outcome.sandbox.run.parent().unwrap().to_owned();
        drop(outcome);
        assert!(!place.exists());
    });
}

#[test]
fn a_client_that_hangs_is_ended_with_all_its_children() {
    in_each_isolation(|harness| {
        let client = client("sleep 600 & setsid sleep 600 & wait");
        let outcome = Session::new(harness, &client)
            .timeout(Duration::from_millis(500))
            .run()
            .unwrap();
        assert!(outcome.result.timed_out);
        assert_eq!(outcome.result.exit, None);
        assert_eq!(left_behind(&outcome), 0);
    });
}

#[test]
fn the_namespace_has_nothing_but_loopback() {
    if Isolation::detect() != Isolation::Namespace {
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let harness = harness(cache.path(), Isolation::Namespace);
    let client = client("tail -n +3 /proc/net/dev | cut -d: -f1; id -u; getent hosts example.com");
    let outcome = Session::new(&harness, &client).run().unwrap();
    let words: Vec<&str> = outcome.stdout.split_whitespace().collect();
    assert_eq!(words, ["lo", "1000"]);
}

#[test]
fn the_rule_that_holds_once_answers_once() {
    in_each_isolation(|harness| {
        let client = client("for i in 1 2; do echo {} | ~/.client/Before; done");
        let outcome = Session::new(harness, &client)
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
        let setup = &client.setup;
        assert!(
            setup.hooks.events.contains(&setup.hooks.pre_tool),
            "{}",
            client.slug()
        );
        for role in ["shell", "write", "read", "edit"] {
            assert!(
                setup.tools.rows.contains_key(role),
                "{}: {role}",
                client.name()
            );
        }
        if client.expect.no_adapter.is_some() {
            continue;
        }
        // Each either has it, or says why not.
        for role in ["subagent", "patch", "mcp"] {
            assert_ne!(
                setup.tools.rows.contains_key(role),
                setup.lacks.contains_key(role),
                "{}: {role}",
                client.name()
            );
        }
        for mode in ["worktree", "resume"] {
            assert_ne!(
                setup.modes.contains_key(mode),
                setup.lacks.contains_key(mode),
                "{}: {mode}",
                client.name()
            );
        }
    }
}

#[test]
fn situations_have_projects_and_names_of_their_own() {
    let projects = Path::new(env!("CARGO_MANIFEST_DIR")).join("projects");
    let situations = Situation::all().unwrap();
    let mut names = BTreeSet::new();
    for situation in &situations {
        let project = projects.join(&situation.project);
        // The README's own commands write the manifest.
        let manifest = project.join(".anyhook/hooks.yaml");
        assert!(
            if situation.readme {
                project.is_dir()
            } else {
                manifest.is_file()
            },
            "{}",
            situation.name
        );
        assert!(names.insert(situation.name.as_str()), "{}", situation.name);
    }
    let mut checks: BTreeSet<&str> = CHECK_NAMES.into();
    for check in situations.iter().flat_map(|situation| &situation.check) {
        assert!(checks.insert(&check.name), "{}", check.name);
    }
    for client in Client::all().unwrap() {
        for name in client.only_situations().unwrap_or_default() {
            assert!(names.contains(name.as_str()), "{}: {name}", client.name());
        }
    }
}

#[test]
fn ctrl_c_is_pressed_and_what_it_leaves_is_seen() {
    in_each_isolation(|harness| {
        let stubborn = client("trap '' INT; setsid sleep 600 & echo $! > left.pid; sleep 600");
        let outcome = Session::new(harness, &stubborn)
            .interrupt_when("left.pid")
            .ends("left.pid")
            .ends_within(Duration::from_millis(300))
            .timeout(Duration::from_secs(2))
            .run()
            .unwrap();
        assert_eq!(outcome.result.interrupts, 1);
        assert!(outcome.result.timed_out);
        assert_eq!(outcome.result.left.len(), 1);

        let polite = client("echo $$ > left.pid; exec sleep 600");
        let outcome = Session::new(harness, &polite)
            .interrupt_when("left.pid")
            .ends("left.pid")
            .run()
            .unwrap();
        assert_eq!(outcome.result.interrupts, 1);
        assert!(!outcome.result.timed_out);
        assert!(outcome.result.left.is_empty());
    });
}

#[test]
fn clients_run_at_once_and_again_in_a_mode_and_a_folder() {
    in_each_isolation(|harness| {
        let mut client = client("mkdir -p ../ran; mktemp \"../ran/$(basename $PWD)-$1-XXXXXX\"");
        client.setup.modes = serde_json::from_value(json!({
            "more": {"args": [], "file": [{"path": "./sub/given.txt", "text": "@port@"}]},
            "other": {"argv": ["bash", "-c", "cat given.txt > seen.txt"]},
        }))
        .unwrap();
        let outcome = Session::new(harness, &client)
            .prompt("p")
            .project_file("sub/here.txt", "")
            .start_in("sub")
            .mode("more")
            .at_once(3)
            .again("other")
            .run()
            .unwrap();
        assert_eq!(outcome.result.exit, Some(0), "{}", outcome.stderr);
        let ran = fs::read_dir(outcome.sandbox.project.join("ran")).unwrap();
        let names = ran.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        let names: Vec<String> = names.collect();
        assert_eq!(names.len(), 3);
        assert!(
            names.iter().all(|name| name.starts_with("sub-p-")),
            "{names:?}"
        );
        assert!(outcome.file("sub/seen.txt").unwrap().parse::<u16>().is_ok());
    });
}

#[test]
fn expectations_are_about_checks_that_there_are() {
    let situations = Situation::all().unwrap();
    let checks = situations.iter().flat_map(|situation| &situation.check);
    let mut names: Vec<&str> = checks.map(|check| check.name.as_str()).collect();
    names.extend(CHECK_NAMES);
    for client in Client::all().unwrap() {
        let expect = &client.expect;
        let broken = expect.sabotage.iter().flat_map(|sabotage| &sabotage.red);
        for name in expect.cannot.keys().chain(broken) {
            assert!(names.contains(&name.as_str()), "{}: {name}", client.slug());
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
