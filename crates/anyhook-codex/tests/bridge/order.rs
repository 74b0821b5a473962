//! Who waits for whom, and whose answer counts.

use std::io::Write;
use std::path::Path;

use anyhook_model::HookResponse;
use anyhook_testkit::codex::{ProxyProcess, TempFolder, path_str, read_json_lines};
use anyhook_testkit::wait_for;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::hooks::{Script, start_proxy};
use crate::trial;

fn approval(id: Value, call: &str) -> Value {
    json!({"method": "item/commandExecution/requestApproval", "id": id,
           "params": {"threadId": "t", "turnId": "u", "itemId": call, "startedAtMs": 1, "command": "make"}})
}

fn notice(number: u32) -> Value {
    json!({"method": "item/agentMessage/delta", "params": {"delta": number}})
}

fn resolved(id: Value) -> Value {
    json!({"method": "serverRequest/resolved", "params": {"threadId": "t", "requestId": id}})
}

struct Stage {
    scratch: TempFolder,
    proxy: ProxyProcess,
}

impl Stage {
    /// A server that sends these messages at once; hooks that wait for `release`.
    fn new(messages: &[Value], hold_ms: Option<u64>, mut script: Script) -> Self {
        let scratch = TempFolder::new();
        let mut file = std::fs::File::create(scratch.path("messages")).unwrap();
        for message in messages {
            writeln!(file, "{message}").unwrap();
        }
        script.gate = Some(scratch.path("gate"));
        script.log = Some(scratch.path("events"));
        script.answers = Some(scratch.path("answers"));
        let server = [
            "lines",
            path_str(&scratch.path("messages")),
            path_str(&scratch.path("got")),
        ]
        .map(str::to_owned);
        let server: Vec<&str> = server.iter().map(String::as_str).collect();
        let proxy = start_proxy(&script, hold_ms, &server);
        Self { scratch, proxy }
    }

    fn asked(&self, calls: usize) {
        wait_for("the hooks to be asked", || {
            (read_lines_so_far(&self.scratch.path("events")) == calls).then_some(())
        });
    }

    fn release(&self, call: &str) {
        std::fs::write(self.scratch.path("gate").with_extension(call), "").unwrap();
    }

    fn got(&self, lines: usize) -> Vec<Value> {
        wait_for("the server to hear of it", || {
            (read_lines_so_far(&self.scratch.path("got")) == lines)
                .then(|| read_json_lines(&self.scratch.path("got")))
        })
    }

    /// What the hooks heard of the answers, in any order.
    fn answers(&self, answers: usize) -> Vec<String> {
        let path = self.scratch.path("answers");
        wait_for("the hooks to hear of it", || {
            (read_lines_so_far(&path) == answers).then_some(())
        });
        let text = std::fs::read_to_string(path).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    /// All that the server got, after the end.
    fn end(self) -> Vec<Value> {
        let got = self.scratch.path("got");
        assert_eq!(self.proxy.finish(), (0, String::new()));
        read_json_lines(&got)
    }
}

fn read_lines_so_far(path: &Path) -> usize {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.matches('\n').count()
}

fn answer(id: Value, decision: &str) -> Value {
    json!({"id": id, "result": {"decision": decision}})
}

fn allow() -> HookResponse {
    serde_json::from_value(json!({"decision": "allow"})).unwrap()
}

fn a_slow_hook_stalls_nothing_else() {
    let mut messages = vec![approval(json!(0), "slow")];
    messages.extend((0..2000).map(notice));
    let mut stage = Stage::new(&messages, None, Script::default());
    for number in 0..2000 {
        assert_eq!(stage.proxy.message(), notice(number));
    }
    let request = json!({"id": 0, "method": "thread/list", "params": {}});
    stage.proxy.send(&request);
    assert_eq!(stage.got(1), [request]);
    stage.release("slow");
    assert_eq!(stage.proxy.message(), messages[0]);
    stage.end();
}

fn two_approvals_are_independent() {
    let script = Script {
        response: allow(),
        by_call: [("first".to_owned(), HookResponse::deny("no"))].into(),
        ..Script::default()
    };
    // A number and a text of the same look are two ids.
    let stage = Stage::new(
        &[approval(json!(7), "first"), approval(json!("7"), "second")],
        None,
        script,
    );
    stage.asked(2);
    stage.release("second");
    assert_eq!(stage.got(1), [answer(json!("7"), "accept")]);
    stage.release("first");
    assert_eq!(stage.got(2)[1], answer(json!(7), "decline"));
    assert_eq!(
        stage.answers(2),
        [
            r#"first {"decision":"decline"}"#,
            r#"second {"decision":"accept"}"#
        ]
    );
    assert_eq!(stage.end().len(), 2);
}

fn a_client_that_answers_first_wins() {
    let script = Script {
        response: HookResponse::deny("too late"),
        ..Script::default()
    };
    let mut stage = Stage::new(&[approval(json!(3), "x"), notice(1)], Some(50), script);
    assert_eq!(stage.proxy.message(), notice(1));
    assert_eq!(stage.proxy.message(), approval(json!(3), "x"));
    stage.proxy.send(&answer(json!(3), "accept"));
    stage.got(1);
    stage.release("x");
    // The hook has nothing more to say once it has seen to another question.
    let later = json!({"id": 9, "method": "thread/list", "params": {}});
    stage.proxy.send(&later);
    stage.got(2);
    assert_eq!(stage.end(), [answer(json!(3), "accept"), later]);
}

fn a_hook_that_answers_before_the_client_wins() {
    let script = Script {
        response: HookResponse::deny("no"),
        ..Script::default()
    };
    let stage = Stage::new(&[approval(json!(3), "x")], Some(50), script);
    assert_eq!(stage.proxy.message(), approval(json!(3), "x"));
    stage.release("x");
    assert_eq!(stage.got(1), [answer(json!(3), "decline")]);
    assert_eq!(output_after_closing(stage.proxy, stage.scratch), b"");
}

fn a_request_that_the_server_withdraws_is_dropped() {
    let messages = [
        approval(json!(0), "x"),
        resolved(json!(0)),
        approval(json!(1), "y"),
    ];
    let script = Script {
        response: allow(),
        ..Script::default()
    };
    let stage = Stage::new(&messages, None, script);
    assert_eq!(stage.proxy.message(), messages[1]);
    stage.asked(2);
    stage.release("x");
    stage.release("y");
    assert_eq!(stage.got(1), [answer(json!(1), "accept")]);
    assert_eq!(stage.answers(2), ["x -", r#"y {"decision":"accept"}"#]);
    assert_eq!(stage.end(), [answer(json!(1), "accept")]);
}

fn a_repeated_request_is_asked_once() {
    let request = approval(json!(0), "x");
    let stage = Stage::new(
        &[request.clone(), request.clone(), notice(1)],
        None,
        Script::default(),
    );
    assert_eq!(stage.proxy.message(), notice(1));
    stage.asked(1);
    stage.release("x");
    assert_eq!(
        (stage.proxy.message(), stage.proxy.message()),
        (request.clone(), request)
    );
    stage.end();
}

/// Nothing waits for hooks that are not there; they are notified all the same.
fn undecided_requests_only_notify_hooks() {
    let messages = [approval(json!(0), "x"), notice(1), approval(json!(1), "y")];
    let script = Script {
        idle: true,
        response: HookResponse::deny("no"),
        ..Script::default()
    };
    let stage = Stage::new(&messages, None, script);
    for message in &messages {
        assert_eq!(stage.proxy.message(), *message);
    }
    stage.release("x");
    stage.release("y");
    assert_eq!(stage.answers(2), ["x -", "y -"]);
    assert!(stage.end().is_empty());
}

fn other_requests_of_the_server_are_not_answered() {
    let messages = [
        json!({"method": "item/tool/call", "id": 0, "params": {"threadId": "t", "turnId": "u", "callId": "c", "tool": "x", "arguments": {}}}),
        json!({"method": "mcpServer/elicitation/request", "id": 1, "params": {"threadId": "t", "serverName": "s", "mode": "url", "message": "m", "url": "u", "elicitationId": "e"}}),
        json!({"method": "attestation/generate", "id": 2, "params": {}}),
    ];
    let script = Script {
        response: HookResponse::deny("no"),
        ..Script::default()
    };
    let stage = Stage::new(&messages, None, script);
    for message in &messages {
        assert_eq!(stage.proxy.message(), *message);
    }
    assert!(stage.end().is_empty());
}

/// The folder must live until the proxy has ended.
fn output_after_closing(mut proxy: ProxyProcess, _folder: TempFolder) -> Vec<u8> {
    proxy.close_input();
    let output = proxy.remaining_output();
    proxy.finish();
    output
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial(
            "order::a_slow_hook_stalls_nothing_else",
            a_slow_hook_stalls_nothing_else,
        ),
        trial(
            "order::two_approvals_are_independent",
            two_approvals_are_independent,
        ),
        trial(
            "order::a_client_that_answers_first_wins",
            a_client_that_answers_first_wins,
        ),
        trial(
            "order::a_hook_that_answers_before_the_client_wins",
            a_hook_that_answers_before_the_client_wins,
        ),
        trial(
            "order::a_request_that_the_server_withdraws_is_dropped",
            a_request_that_the_server_withdraws_is_dropped,
        ),
        trial(
            "order::a_repeated_request_is_asked_once",
            a_repeated_request_is_asked_once,
        ),
        trial(
            "order::undecided_requests_only_notify_hooks",
            undecided_requests_only_notify_hooks,
        ),
        trial(
            "order::other_requests_of_the_server_are_not_answered",
            other_requests_of_the_server_are_not_answered,
        ),
    ]
}
