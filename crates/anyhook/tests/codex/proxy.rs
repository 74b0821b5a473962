//! What a proxy's user may rely on, whatever the hooks and the server do.

use std::process::{Command, Stdio};

use anyhook_codex::state;
use anyhook_testkit::codex::{ProxyProcess, is_running, path_str, read_json_lines};
use anyhook_testkit::wait_for;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::project::{HANGS, Hook, Project, pids, signal};
use crate::trial;

fn request() -> Value {
    json!({"method": "item/commandExecution/requestApproval", "id": 0,
           "params": {"threadId": "t", "turnId": "u", "itemId": "x", "startedAtMs": 1, "command": "make"}})
}

const ALLOW: &str = r#"cat > /dev/null; echo '{"decision":"allow"}'"#;

/// A server that asks once, and what it hears.
fn asks_once(project: &Project) -> [String; 3] {
    let says = project.path("says");
    std::fs::write(&says, format!("{}\n", request())).unwrap();
    let got = project.path("got");
    ["lines", path_str(&says), path_str(&got)].map(str::to_owned)
}

fn proxied(project: &Project, set: impl FnOnce(&mut Command)) -> ProxyProcess {
    let server = asks_once(project);
    let mut command = project.proxy_command(&server.each_ref().map(String::as_str));
    set(&mut command);
    ProxyProcess::spawn(&mut command)
}

/// The client sees the request and the server hears nothing; what is on stderr.
fn is_left_to_the_client(project: &Project, set: impl FnOnce(&mut Command)) -> String {
    let proxy = proxied(project, set);
    assert_eq!(proxy.message(), request());
    let (code, stderr) = proxy.finish();
    assert_eq!(code, 0);
    assert_eq!(read_json_lines(&project.path("got")), [Value::Null; 0]);
    stderr
}

fn hooks_that_nobody_trusts_decide_nothing() {
    let project = Project::untrusted(&[Hook {
        name: "guard",
        blocking: true,
        line: ALLOW,
    }]);
    let stderr = is_left_to_the_client(&project, |_| {});
    assert_eq!(stderr.matches("run `anyhook trust`").count(), 1, "{stderr}");
    assert_eq!(project.journal()[0]["hooks"][0]["outcome"], "refused");
}

/// A yes beside a guard that failed is not a yes.
fn an_allow_beside_a_failed_guard_is_no_answer() {
    for (line, outcome) in [
        ("exit 1", "warn"),
        ("kill -9 $$", "error"),
        ("echo nonsense", "error"),
    ] {
        let (name, blocking) = ("broken", true);
        let guard = Hook {
            name,
            blocking,
            line,
        };
        let yes = Hook {
            name: "yes",
            blocking: true,
            line: ALLOW,
        };
        let project = Project::with(&[guard, yes]);
        let stderr = is_left_to_the_client(&project, |_| {});
        assert!(stderr.contains("broken"), "{stderr}");
        let record = &project.journal()[0];
        assert_eq!(record["hooks"][0]["outcome"], outcome);
        assert_eq!(record["hooks"][1]["outcome"], "allow");
        assert_eq!(record["answer"], Value::Null);
    }
}

/// Nor is it beside a manifest that cannot be read.
fn an_allow_beside_a_broken_manifest_is_no_answer() {
    let project = Project::with(&[Hook {
        name: "yes",
        blocking: true,
        line: ALLOW,
    }]);
    std::fs::write(project.path("config").join("hooks.yaml"), "hooks: [").unwrap();
    let stderr = is_left_to_the_client(&project, |_| {});
    assert!(stderr.contains("is not used"), "{stderr}");
}

fn a_deny_counts_beside_anything() {
    let hook = |name, blocking, line| Hook {
        name,
        blocking,
        line,
    };
    let project = Project::with(&[
        hook("yes", true, ALLOW),
        hook("broken", false, "exit 1"),
        hook("no", true, "echo 'not here' >&2; exit 2"),
    ]);
    let proxy = proxied(&project, |_| {});
    let declined = json!({"id": 0, "result": {"decision": "decline"}});
    wait_for("the server's answer", || {
        (read_json_lines(&project.path("got")) == [declined.clone()]).then_some(())
    });
    assert_eq!(proxy.finish().0, 0);
    let record = &project.journal()[0];
    assert_eq!(record["answer"]["stdout"], r#"{"decision":"decline"}"#);
    assert_eq!(record["response"]["reason"], "not here");
    assert_eq!(record["lost"][0]["field"], "reason");
}

fn switched_off_it_is_a_pipe() {
    let project = Project::saying(r#"{"decision":"deny"}"#);
    let stderr = is_left_to_the_client(&project, |command| {
        command.env("ANYHOOK", "0");
    });
    assert_eq!(stderr, "");
    assert_eq!(project.journal(), [Value::Null; 0]);
}

fn the_client_is_asked_too_when_hooks_are_slow() {
    let project = Project::with(&[Hook {
        name: "slow",
        blocking: true,
        line: "sleep 1000",
    }]);
    let server = asks_once(&project);
    let mut command = project.anyhook(&["codex", "proxy", "--hold-at-most", "0", "--"]);
    command
        .arg(std::env::current_exe().unwrap())
        .arg("play")
        .args(server);
    let mut proxy = ProxyProcess::spawn(&mut command);
    assert_eq!(proxy.message(), request());
    let answer = json!({"id": 0, "result": {"decision": "accept"}});
    proxy.send(&answer);
    wait_for("the server's answer", || {
        (read_json_lines(&project.path("got")) == [answer.clone()]).then_some(())
    });
    assert_eq!(proxy.finish().0, 0);
}

fn exit_code_and_stderr_are_the_servers() {
    let proxy = Project::new().proxy(&["exit", "7", "last words\n"]);
    assert_eq!(proxy.remaining_output(), b"");
    assert_eq!(proxy.finish(), (7, "last words\n".into()));
}

fn a_server_that_is_not_there_is_named() {
    let project = Project::new();
    let mut command = project.anyhook(&["codex", "proxy", "--", "/nowhere/codex", "app-server"]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("could not start `/nowhere/codex`: "),
        "{stderr}"
    );
}

fn usage_is_checked() {
    let project = Project::new();
    for args in [&["codex"][..], &["codex", "proxy"], &["codex", "ride"]] {
        let output = project.anyhook(args).stdin(Stdio::null()).output();
        assert_eq!(output.unwrap().status.code(), Some(2), "{args:?}");
    }
}

/// The server ignores being asked to end, a hook hangs: both are gone, and so is
/// what they had started.
fn a_signal_ends_everything(name: &'static str) {
    let project = Project::new();
    let server = project.path("server");
    let mut proxy = project.proxy(&["stubborn", path_str(&server)]);
    let server = pids(&server);
    let [seen] = state::running_bridges(&project.state()).try_into().unwrap();
    assert_eq!(seen.pid, proxy.child.id());
    assert!(seen.url.starts_with("stdio:"), "{seen:?}");
    signal(proxy.child.id(), name);
    assert_eq!(proxy.remaining_output(), b"");
    assert_eq!(proxy.child.wait().unwrap().code(), Some(128 + 15));
    for pid in server {
        wait_for("the server and its child to end", || {
            (!is_running(pid)).then_some(())
        });
    }
    assert_eq!(state::running_bridges(&project.state()), []);
}

fn a_signal_ends_hooks() {
    let project = Project::with(&[Hook {
        name: "hangs",
        blocking: true,
        line: HANGS,
    }]);
    let mut proxy = proxied(&project, |_| {});
    let hook = pids(&project.path("hook"));
    signal(proxy.child.id(), "TERM");
    // What was held back is not lost.
    assert_eq!(
        proxy.remaining_output(),
        format!("{}\n", request()).into_bytes()
    );
    proxy.child.wait().unwrap();
    for pid in hook {
        wait_for("the hook and its child to end", || {
            (!is_running(pid)).then_some(())
        });
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("proxy::untrusted", hooks_that_nobody_trusts_decide_nothing),
        trial(
            "proxy::failed_guard",
            an_allow_beside_a_failed_guard_is_no_answer,
        ),
        trial(
            "proxy::broken_manifest",
            an_allow_beside_a_broken_manifest_is_no_answer,
        ),
        trial("proxy::deny_counts", a_deny_counts_beside_anything),
        trial("proxy::switched_off", switched_off_it_is_a_pipe),
        trial(
            "proxy::slow_hooks",
            the_client_is_asked_too_when_hooks_are_slow,
        ),
        trial("proxy::exit_code", exit_code_and_stderr_are_the_servers),
        trial("proxy::not_there", a_server_that_is_not_there_is_named),
        trial("proxy::usage", usage_is_checked),
        trial("proxy::signal_ends_hooks", a_signal_ends_hooks),
    ];
    for name in ["TERM", "INT", "HUP"] {
        trials.push(trial(format!("proxy::signal::{name}"), move || {
            a_signal_ends_everything(name);
        }));
    }
    trials
}
