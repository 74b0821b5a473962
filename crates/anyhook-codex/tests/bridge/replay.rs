//! Every transcript through the proxy, with hooks of every mind: the events are
//! the recorded ones, the answers fit, and the client sees the rest unchanged.

use anyhook_model::{HookEvent, HookResponse};
use anyhook_testkit::Golden;
use anyhook_testkit::codex::{
    Line, TempFolder, Transcript, expected_answer, fixtures, is_answer, is_request, path_str,
    read_json_lines,
};
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::hooks::{Script, start_proxy};
use crate::schema;
use crate::trial;

/// What the hooks say, by name, and whether it answers the server.
pub(crate) fn minds() -> Vec<(&'static str, HookResponse, bool)> {
    let response = |value: Value| serde_json::from_value(value).unwrap();
    vec![
        ("allow", response(json!({"decision": "allow"})), true),
        ("deny", HookResponse::deny("not here"), true),
        (
            "session",
            response(
                json!({"decision": "allow", "metadata": {"codex": {"decision": "acceptForSession"}}}),
            ),
            true,
        ),
        (
            "cancel",
            response(json!({"decision": "deny", "metadata": {"codex": {"decision": "cancel"}}})),
            true,
        ),
        ("ask", response(json!({"decision": "ask"})), false),
        ("nothing", HookResponse::default(), false),
    ]
}

/// Compares with the recorded events. Notices come in order; decisions run in
/// parallel, so they are sorted.
pub(crate) fn check_events(name: &str, events: &[Value]) {
    let (mut questions, notices): (Vec<&Value>, Vec<&Value>) = events.iter().partition(|event| {
        let method = event["native_event"].as_str().unwrap();
        method.ends_with("Approval") || method == "mcpServer/elicitation/request"
    });
    questions.sort_by_key(|event| event["data"]["tool_call_id"].to_string());
    let found = json!({"approvals": questions, "notices": notices});
    for event in events {
        let back: HookEvent = serde_json::from_value(event.clone()).unwrap();
        assert_eq!(back.source, "codex");
    }
    let path = fixtures().join("events").join(format!("{name}.json"));
    let mut golden = Golden::default();
    golden.json(path, &found).unwrap();
    golden.end();
}

/// A message without a time got the present one, which no file can hold.
fn without_clock(mut event: Value) -> Value {
    let time: jiff::Timestamp = event["timestamp"].as_str().unwrap().parse().unwrap();
    if jiff::Timestamp::now().duration_since(time).abs() < jiff::SignedDuration::from_mins(5) {
        event["timestamp"] = json!("now");
    }
    event
}

pub(crate) fn heard(log: &std::path::Path) -> Vec<Value> {
    read_json_lines(log)
        .into_iter()
        .map(without_clock)
        .collect()
}

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for transcript in Transcript::all() {
        for (mind, response, _) in minds() {
            let transcript = transcript.clone();
            trials.push(trial(
                format!("proxy::{}::{mind}", transcript.name),
                move || {
                    through_the_proxy(&transcript, mind, response);
                },
            ));
        }
    }
    trials
}

fn through_the_proxy(transcript: &Transcript, mind: &str, response: HookResponse) {
    let scratch = TempFolder::new();
    let (log, events) = (scratch.path("server.log"), scratch.path("events.log"));
    let script = Script {
        response,
        log: Some(events.clone()),
        ..Script::default()
    };
    let mut proxy = start_proxy(
        &script,
        None,
        &["server", path_str(&transcript.path), path_str(&log)],
    );
    let mut expected_at_server = Vec::new();
    let mut by_hooks = Vec::new();
    for line in &transcript.lines {
        match line {
            Line::Server(message) => {
                let answer = is_request(message)
                    .then(|| expected_answer(message, mind))
                    .flatten();
                match answer {
                    Some(answer) => {
                        schema::check_answer(message, &answer["result"]);
                        by_hooks.push(answer["id"].clone());
                        expected_at_server.push(answer);
                    }
                    // Byte for byte, in order.
                    None => assert_eq!(proxy.line(), format!("{message}\n").into_bytes()),
                }
            }
            Line::Client(message) => {
                if is_answer(message) && by_hooks.contains(&message["id"]) {
                    continue;
                }
                proxy.send(message);
                expected_at_server.push(message.clone());
            }
        }
    }
    proxy.close_input();
    assert_eq!(proxy.remaining_output(), b"");
    assert_eq!(proxy.finish(), (0, String::new()));
    let sorted = |mut lines: Vec<Value>| {
        lines.sort_by_key(ToString::to_string);
        lines
    };
    assert_eq!(sorted(read_json_lines(&log)), sorted(expected_at_server));
    check_events(&transcript.name, &heard(&events));
}
