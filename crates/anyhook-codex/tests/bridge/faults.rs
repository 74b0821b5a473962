//! The ends: whoever dies, nothing is left running.

use anyhook_testkit::codex::{TempFolder, is_running, path_str};
use anyhook_testkit::wait_for;
use libtest_mimic::Trial;
use serde_json::json;

use crate::hooks::{Script, start_proxy};
use crate::trial;

fn exit_code_and_stderr_are_passed_on() {
    let proxy = start_proxy(&Script::default(), None, &["exit", "7", "last words\n"]);
    assert_eq!(proxy.remaining_output(), b"");
    assert_eq!(proxy.finish(), (7, "last words\n".into()));
}

fn pids(path: &std::path::Path) -> Vec<u32> {
    wait_for("the server to start", || {
        let text = std::fs::read_to_string(path).ok()?;
        let pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        (pids.len() == 2).then_some(pids)
    })
}

fn a_server_that_is_killed_ends_the_proxy_and_its_children() {
    let scratch = TempFolder::new();
    let proxy = start_proxy(
        &Script::default(),
        None,
        &["stubborn", path_str(&scratch.path("pids"))],
    );
    let pids = pids(&scratch.path("pids"));
    let killed = std::process::Command::new("kill")
        .args(["-9", &pids[0].to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    assert_eq!(proxy.remaining_output(), b"");
    assert_eq!(proxy.finish().0, 128 + 9);
    wait_for("the server's child to end", || {
        (!is_running(pids[1])).then_some(())
    });
}

fn a_client_that_leaves_ends_a_stubborn_server() {
    let scratch = TempFolder::new();
    let proxy = start_proxy(
        &Script::default(),
        None,
        &["stubborn", path_str(&scratch.path("pids"))],
    );
    let pids = pids(&scratch.path("pids"));
    // The server goes when asked; its child ignores that and is killed.
    assert_eq!(proxy.finish().0, 128 + 15);
    for pid in pids {
        wait_for("the server and its child to end", || {
            (!is_running(pid)).then_some(())
        });
    }
}

fn a_proxy_that_is_killed_leaves_no_server() {
    let scratch = TempFolder::new();
    let mut proxy = start_proxy(
        &Script::default(),
        None,
        &["lines", "/dev/null", path_str(&scratch.path("got"))],
    );
    proxy.send(&json!({"id": 1, "method": "thread/list", "params": {}}));
    wait_for("the server to listen", || {
        scratch
            .path("got")
            .metadata()
            .ok()
            .filter(|meta| meta.len() > 0)
            .map(drop)
    });
    proxy.kill();
    // The server's input ends with the proxy.
    wait_for("the server to end", || {
        scratch.path("got.ended").exists().then_some(())
    });
}

fn a_hook_that_hangs_does_not_keep_the_proxy() {
    let scratch = TempFolder::new();
    let messages = scratch.path("messages");
    let request = json!({"method": "item/commandExecution/requestApproval", "id": 0,
                         "params": {"threadId": "t", "turnId": "u", "itemId": "x", "startedAtMs": 1, "command": "make"}});
    std::fs::write(&messages, format!("{request}\n")).unwrap();
    let script = Script {
        gate: Some(scratch.path("never")),
        log: Some(scratch.path("events")),
        abandoned: Some(scratch.path("abandoned")),
        ..Script::default()
    };
    let mut proxy = start_proxy(
        &script,
        None,
        &["lines", path_str(&messages), path_str(&scratch.path("got"))],
    );
    wait_for("the hook to be asked", || {
        scratch.path("events").exists().then_some(())
    });
    proxy.close_input();
    // What was held back is not lost.
    assert_eq!(
        proxy.remaining_output(),
        format!("{request}\n").into_bytes()
    );
    assert_eq!(proxy.finish(), (0, String::new()));
    assert!(
        scratch.path("abandoned").exists(),
        "the hooks are abandoned"
    );
}

fn a_server_that_cannot_start_is_named() {
    use anyhook_codex::{Proxy, ProxyOptions};
    let command = std::process::Command::new("/nowhere/codex");
    let proxy = Proxy::new(
        command,
        std::sync::Arc::new(Script::default()),
        ProxyOptions::default(),
    );
    let error = proxy.run(std::io::empty(), std::io::sink()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("could not start `/nowhere/codex`: "),
        "{error}"
    );
}

fn stop_ends_it() {
    use anyhook_codex::{Proxy, ProxyOptions};
    let scratch = TempFolder::new();
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["play", "stubborn", path_str(&scratch.path("pids"))]);
    let proxy = Proxy::new(
        command,
        std::sync::Arc::new(Script::default()),
        ProxyOptions::default(),
    );
    let stop = proxy.stopper();
    let (client, _kept_open) = std::io::pipe().unwrap();
    let ended = std::thread::spawn(move || proxy.run(client, std::io::sink()).unwrap());
    let pids = pids(&scratch.path("pids"));
    stop.stop();
    assert_eq!(ended.join().unwrap().exit_code, 128 + 15);
    for pid in pids {
        wait_for("the server and its child to end", || {
            (!is_running(pid)).then_some(())
        });
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial(
            "faults::exit_code_and_stderr_are_passed_on",
            exit_code_and_stderr_are_passed_on,
        ),
        trial(
            "faults::a_server_that_is_killed",
            a_server_that_is_killed_ends_the_proxy_and_its_children,
        ),
        trial(
            "faults::a_client_that_leaves",
            a_client_that_leaves_ends_a_stubborn_server,
        ),
        trial(
            "faults::a_proxy_that_is_killed",
            a_proxy_that_is_killed_leaves_no_server,
        ),
        trial(
            "faults::a_hook_that_hangs",
            a_hook_that_hangs_does_not_keep_the_proxy,
        ),
        trial(
            "faults::a_server_that_cannot_start",
            a_server_that_cannot_start_is_named,
        ),
        trial("faults::stop_ends_it", stop_ends_it),
    ]
}
