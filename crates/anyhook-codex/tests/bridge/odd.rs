//! Every request for approval is decided, however odd: by the hooks, or by the
//! user, and never by the answer to another one.

use std::collections::BTreeSet;

use anyhook_codex::AttachOptions;
use anyhook_model::HookResponse;
use anyhook_testkit::codex::{TempFolder, path_str};
use anyhook_testkit::wait_for;
use futures_util::{SinkExt, StreamExt};
use libtest_mimic::Trial;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::hooks::{Script, start_proxy};
use crate::socket::{Attached, Listener, options, run};
use crate::trial;

const COMMAND: &str = "item/commandExecution/requestApproval";

/// The id as it is written, and the whole request.
fn odd_approvals() -> Vec<(String, Vec<u8>)> {
    let deep = format!("{}1{}", "[".repeat(3000), "]".repeat(3000));
    let params = r#"{"threadId":"t","itemId":"i","command":"rm -rf /"}"#;
    let with = |id: &str, method: &str, params: &str| {
        let line = format!(r#"{{"id":{id},"method":"{method}","params":{params}}}"#);
        (id.to_owned(), line.into_bytes())
    };
    let mut cases = vec![
        // Names.
        with("1", COMMAND, params),
        with("2", "item/somethingNew/requestApproval", params),
        with("3", "somethingNew/RequestApproval", "{}"),
        with("4", "futureApproval", params),
        // Ids.
        with("\"1\"", COMMAND, params),
        with("1.5", COMMAND, params),
        with("null", COMMAND, params),
        with("18446744073709551616", COMMAND, params),
        with("{\"a\":1}", COMMAND, params),
        // Parameters.
        with("5", COMMAND, &format!(r#"{{"command":"x","extra":{deep}}}"#)),
        with("6", "item/new/requestApproval", &deep),
        with("7", COMMAND, "null"),
        with("8", COMMAND, "[]"),
        with("9", COMMAND, "\"text\""),
        with("10", COMMAND, "7"),
        with("11", COMMAND, r#"{"command":"echo \ud83d; rm -rf /"}"#),
        with("12", COMMAND, r#"{"command":"ls","command":"rm -rf /"}"#),
        with("13", "item/fileChange/requestApproval", "{}"),
        ("14".into(), format!(r#"{{"id":14,"method":"{COMMAND}"}}"#).into_bytes()),
        // Members that occur twice.
        (
            "15".into(),
            format!(r#"{{"id":0,"id":15,"method":"{COMMAND}","method":"item/started","params":{params}}}"#)
                .into_bytes(),
        ),
        // A byte order mark.
        ("16".into(), format!("\u{feff}{{\"id\":16,\"method\":\"{COMMAND}\",\"params\":{params}}}").into_bytes()),
        (
            "17".into(),
            format!(r#" {{ "method" : "item\/commandExecution\/requestApproval" , "params" : {params} , "id" : 17 }} "#)
                .into_bytes(),
        ),
    ];
    let arguments = format!(
        r#"{{"serverName":"s","_meta":{{"codex_approval_kind":"mcp_tool_call","tool_params":{{"a":{deep}}}}}}}"#
    );
    cases.push(with("18", "mcpServer/elicitation/request", &arguments));
    cases
}

fn ids_in(replies: &str) -> BTreeSet<String> {
    let id = |line: &str| {
        let rest = line.strip_prefix(r#"{"id":"#).expect("an answer");
        let (id, answer) = rest.split_once(r#","result":"#).expect("an answer");
        assert!(answer.contains("decline"), "{line}");
        id.to_owned()
    };
    replies.lines().map(id).collect()
}

/// Not UTF-8: a socket cannot carry it.
fn not_unicode() -> (String, Vec<u8>) {
    let mut line =
        format!(r#"{{"id":19,"method":"{COMMAND}","params":{{"command":"rm -rf "#).into_bytes();
    line.extend(b"\xff\xfe\"}}");
    ("19".to_owned(), line)
}

fn proxy_declines_each() {
    let scratch = TempFolder::new();
    let mut cases = odd_approvals();
    cases.push(not_unicode());
    let lines = cases.iter().flat_map(|(_, line)| [&line[..], b"\n"]);
    let lines: Vec<u8> = lines.flatten().copied().collect();
    std::fs::write(scratch.path("messages"), lines).unwrap();
    let script = Script {
        response: HookResponse::deny("no"),
        log: Some(scratch.path("events")),
        ..Script::default()
    };
    let got = scratch.path("got");
    let messages = scratch.path("messages");
    let proxy = start_proxy(
        &script,
        None,
        &["lines", path_str(&messages), path_str(&got)],
    );
    let replies = wait_for("all to be declined", || {
        let text = std::fs::read_to_string(&got).unwrap_or_default();
        (text.matches('\n').count() == cases.len()).then_some(text)
    });
    let ids: BTreeSet<String> = cases.into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids_in(&replies), ids);
    let events = std::fs::read_to_string(scratch.path("events")).unwrap();
    assert_eq!(events.lines().count(), ids.len());
    // The client heard of none of them.
    assert_eq!(proxy.finish(), (0, String::new()));
}

/// Hooks that allow: a request that cannot be read is left to the user.
fn proxy_accepts_nothing_unknown() {
    let scratch = TempFolder::new();
    let unknown =
        json!({"id": 1, "method": "item/new/requestApproval", "params": {"command": "x"}});
    std::fs::write(scratch.path("messages"), format!("{unknown}\n")).unwrap();
    let script = Script {
        response: serde_json::from_value(json!({"decision": "allow"})).unwrap(),
        ..Script::default()
    };
    let (messages, got) = (scratch.path("messages"), scratch.path("got"));
    let proxy = start_proxy(
        &script,
        None,
        &["lines", path_str(&messages), path_str(&got)],
    );
    assert_eq!(proxy.message(), unknown);
    assert_eq!(proxy.finish(), (0, String::new()));
    assert_eq!(std::fs::read_to_string(got).unwrap_or_default(), "");
}

/// Two requests of one id: the yes to the first must not reach the second.
fn a_second_request_of_an_id_gets_no_foreign_yes() {
    for second_is_denied in [false, true] {
        let scratch = TempFolder::new();
        let approval = |call: &str, command: &str| {
            json!({"id": 1, "method": COMMAND,
                   "params": {"threadId": "t", "itemId": call, "command": command}})
        };
        let requests = [approval("first", "ls"), approval("second", "rm -rf /")];
        let [first, second] = &requests;
        std::fs::write(scratch.path("messages"), format!("{first}\n{second}\n")).unwrap();
        let mut script = Script {
            response: serde_json::from_value(json!({"decision": "allow"})).unwrap(),
            gate: Some(scratch.path("gate")),
            log: Some(scratch.path("events")),
            ..Script::default()
        };
        if second_is_denied {
            let deny = ("second".to_owned(), HookResponse::deny("no"));
            script.by_call = [deny].into();
        }
        let (messages, got) = (scratch.path("messages"), scratch.path("got"));
        let proxy = start_proxy(
            &script,
            None,
            &["lines", path_str(&messages), path_str(&got)],
        );
        wait_for("both to be asked about", || {
            let text = std::fs::read_to_string(scratch.path("events")).unwrap_or_default();
            (text.matches('\n').count() == 2).then_some(())
        });
        for call in ["first", "second"] {
            std::fs::write(scratch.path("gate").with_extension(call), "").unwrap();
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        if second_is_denied {
            let reply = wait_for("the answer", || {
                let text = std::fs::read_to_string(&got).unwrap_or_default();
                text.ends_with('\n').then_some(text)
            });
            assert_eq!(reply, "{\"id\":1,\"result\":{\"decision\":\"decline\"}}\n");
        } else {
            assert_eq!((&proxy.message(), &proxy.message()), (first, second));
        }
        assert_eq!(proxy.finish().0, 0);
        let replies = std::fs::read_to_string(got).unwrap_or_default();
        assert!(!replies.contains("accept"), "{replies}");
    }
}

/// `attach --answer-all`, hooks without an opinion: no other client would answer.
async fn attach_answers_each() {
    let (listener, endpoint) = Listener::tcp().await;
    let options = AttachOptions {
        answer_all: true,
        ..options(endpoint)
    };
    let attached = Attached::start(options, Script::default());
    let mut client = listener.client(&[]).await;
    let cases = odd_approvals();
    for (_, line) in &cases {
        let line = String::from_utf8(line.clone()).unwrap();
        client.socket.send(Message::text(line)).await.unwrap();
    }
    let mut replies = String::new();
    while replies.lines().count() < cases.len() {
        let frame = tokio::time::timeout(std::time::Duration::from_secs(30), client.socket.next());
        if let Message::Text(text) = frame.await.expect("an answer").unwrap().unwrap() {
            replies.push_str(&text);
            replies.push('\n');
        }
    }
    let ids: BTreeSet<String> = cases.into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids_in(&replies), ids);
    let leave = async { while client.next().await.is_some() {} };
    tokio::join!(attached.end(), leave);
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("odd::proxy_declines_each", proxy_declines_each),
        trial(
            "odd::proxy_accepts_nothing_unknown",
            proxy_accepts_nothing_unknown,
        ),
        trial(
            "odd::a_second_request_of_an_id_gets_no_foreign_yes",
            a_second_request_of_an_id_gets_no_foreign_yes,
        ),
        trial("odd::attach_answers_each", || run(attach_answers_each())),
    ]
}
