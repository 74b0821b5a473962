//! Every transcript to the attached client, over both kinds of socket.

use anyhook_codex::AttachOptions;
use anyhook_model::HookResponse;
use anyhook_testkit::codex::{Line, TempFolder, Transcript, expected_answer, is_request};
use anyhook_testkit::wait_for;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::hooks::Script;
use crate::replay::{check_events, heard, minds};
use crate::socket::{Attached, Listener, options, run};
use crate::trial;

async fn replay(transcript: Transcript, mind: &'static str, response: HookResponse, unix: bool) {
    let scratch = TempFolder::new();
    let (listener, endpoint) = if unix {
        Listener::unix(scratch.path("app.sock"))
    } else {
        Listener::tcp().await
    };
    let script = Script {
        response,
        log: Some(scratch.path("events")),
        ..Script::default()
    };
    // With `ask` there is no other client, with `nothing` there is one.
    let answer_all = mind == "ask";
    let attached = Attached::start(
        AttachOptions {
            answer_all,
            ..options(endpoint)
        },
        script,
    );
    let mut client = listener.client(&[]).await;
    for line in &transcript.lines {
        let Line::Server(message) = line else {
            continue;
        };
        // Answers to requests are for the client that made them.
        if message.get("method").is_none() {
            continue;
        }
        client.say(message).await;
        if !is_request(message) {
            continue;
        }
        let declined = expected_answer(message, "deny").map(|mut answer| {
            if let Some(rejection) = answer.pointer_mut("/result/decision/denied/rejection") {
                *rejection = json!(if mind == "deny" {
                    "not here"
                } else {
                    "denied by a hook"
                });
            }
            answer
        });
        let expected = if answer_all {
            declined
        } else {
            expected_answer(message, mind)
        };
        if let Some(expected) = expected {
            assert_eq!(client.get().await, expected);
        } else {
            // Another client answers.
            let resolved = json!({"threadId": "t", "requestId": message["id"]});
            client
                .say(&json!({"method": "serverRequest/resolved", "params": resolved}))
                .await;
        }
    }
    // Behind everything else: when this is answered all the rest has been heard.
    client
        .say(&json!({"method": "item/commandExecution/requestApproval", "id": "end",
                     "params": {"threadId": "end", "turnId": "u", "itemId": "end", "startedAtMs": 1, "command": "true"}}))
        .await;
    let log = scratch.path("events");
    let ended = tokio::task::spawn_blocking(move || {
        wait_for("the last request to be heard", || {
            std::fs::read_to_string(&log)
                .unwrap_or_default()
                .contains(r#""tool_call_id":"end""#)
                .then_some(())
        });
    });
    ended.await.unwrap();
    let leave = async { while client.next().await.is_some() {} };
    let (ended, ()) = tokio::join!(attached.end(), leave);
    assert_eq!(ended.connections, 1);
    let events = heard(&scratch.path("events"));
    let events: Vec<Value> = events
        .into_iter()
        .filter(|event| event["session_id"] != "end")
        .collect();
    check_events(&transcript.name, &events);
}

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for transcript in Transcript::all() {
        for (at, (mind, response, _)) in minds().into_iter().enumerate() {
            let transcript = transcript.clone();
            let unix = at % 2 == 1;
            let over = if unix { "unix" } else { "ws" };
            trials.push(trial(
                format!("attach::{over}::{}::{mind}", transcript.name),
                move || {
                    run(replay(transcript, mind, response, unix));
                },
            ));
        }
    }
    trials
}
