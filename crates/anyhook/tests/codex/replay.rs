//! Recorded conversations through the proxy, with hooks of every mind.

use std::fmt::Write;

use anyhook_testkit::codex::{
    Line, Transcript, expected_answer, fixtures, is_answer, is_request, path_str, read_json_lines,
};
use libtest_mimic::Trial;
use serde_json::Value;

use crate::project::Project;
use crate::trial;

/// What a guard prints, by the name under which the answers are known.
pub(crate) const MINDS: [(&str, &str); 6] = [
    ("allow", r#"{"decision":"allow"}"#),
    ("deny", r#"{"decision":"deny","reason":"not here"}"#),
    (
        "session",
        r#"{"decision":"allow","metadata":{"codex":{"decision":"acceptForSession"}}}"#,
    ),
    (
        "cancel",
        r#"{"decision":"deny","metadata":{"codex":{"decision":"cancel"}}}"#,
    ),
    ("ask", r#"{"decision":"ask"}"#),
    ("nothing", ""),
];

/// The conversation as it would be in that folder.
pub(crate) fn moved(transcript: &Transcript, project: &Project) -> Transcript {
    fn move_to(value: &mut Value, folder: &str) {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    if key == "cwd" && value.is_string() {
                        *value = folder.into();
                    }
                    move_to(value, folder);
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|value| move_to(value, folder)),
            _ => {}
        }
    }
    let folder = project.folder();
    let mut moved = transcript.clone();
    let mut text = String::new();
    for line in &mut moved.lines {
        let (arrow, message) = match line {
            Line::Client(message) => ("->", message),
            Line::Server(message) => ("<-", message),
        };
        move_to(message, path_str(&folder));
        let line = serde_json::json!({"dir": arrow, "msg": message});
        writeln!(text, "{line}").unwrap();
    }
    moved.path = project.path("transcript.jsonl");
    std::fs::write(&moved.path, text).unwrap();
    moved
}

/// What a record must say of its event: what it was, and what was answered.
fn essence(native: &Value, call: &Value, answer: &str) -> String {
    format!("{native} {call} {answer}")
}

/// The journal has every event, and the answer where hooks gave one.
pub(crate) fn check_journal(project: &Project, transcript: &Transcript, mind: &str) {
    let path = fixtures()
        .join("events")
        .join(format!("{}.json", transcript.name));
    let events: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut answers: Vec<(Value, String)> = Vec::new();
    for request in transcript.approvals() {
        if let Some(answer) = expected_answer(&request, mind) {
            let call = request["params"]["itemId"].clone();
            let call = if call.is_null() {
                request["params"]["callId"].clone()
            } else {
                call
            };
            answers.push((call, answer["result"].to_string()));
        }
    }
    let mut expected = Vec::new();
    for event in events["notices"].as_array().unwrap() {
        let call = &event["data"]["tool_call_id"];
        expected.push(essence(&event["native_event"], call, ""));
    }
    for event in events["approvals"].as_array().unwrap() {
        let call = &event["data"]["tool_call_id"];
        // An elicitation has no call of its own; the journal names the one it is about.
        let found = answers.iter().position(|(id, _)| id == call);
        let found = found.or_else(|| answers.iter().position(|(id, _)| id.is_null()));
        let answer = found.map(|at| answers.remove(at).1).unwrap_or_default();
        expected.push(essence(&event["native_event"], call, &answer));
    }
    assert_eq!(answers, [], "every answer belongs to an event");
    let mut found = Vec::new();
    for record in project.journal() {
        assert_eq!(record["agent"], "codex");
        let event = &record["event"];
        let answer = record["answer"]["stdout"].as_str().unwrap_or_default();
        let call = &event["data"]["tool_call_id"];
        found.push(essence(&event["native_event"], call, answer));
    }
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
}

/// The tokens that the server has told last for each thread, if no transcript is here.
pub(crate) fn check_tokens(project: &Project, transcript: &Transcript) {
    let mut totals = std::collections::BTreeMap::new();
    for line in &transcript.lines {
        if let Line::Server(message) = line
            && message["method"] == "thread/tokenUsage/updated"
        {
            let thread = message["params"]["threadId"].to_string();
            let total = &message["params"]["tokenUsage"]["total"];
            let counts = ["inputTokens", "cachedInputTokens", "outputTokens"];
            totals.insert(thread, counts.map(|name| total[name].as_u64().unwrap()));
        }
    }
    let mut expected = [0; 3];
    for total in totals.values() {
        for (sum, count) in expected.iter_mut().zip(total) {
            *sum += count;
        }
    }
    let output = project.anyhook(&["stats", "--json"]).output().unwrap();
    let stats: Value = serde_json::from_slice(&output.stdout).unwrap();
    let counts = ["input_tokens", "cache_read_tokens", "output_tokens"];
    let found = counts.map(|name| stats["usage"][name].as_u64().unwrap());
    assert_eq!(found, expected, "{stats:#}");
    if expected != [0; 3] {
        assert_eq!(stats["usage"]["by_model"][0]["model"], "gpt-5.5");
    }
}

fn through_the_proxy(transcript: &Transcript, mind: &str, project: &Project) {
    let transcript = moved(transcript, project);
    let log = project.path("server.log");
    let mut proxy = project.proxy(&["server", path_str(&transcript.path), path_str(&log)]);
    let mut expected_at_server = Vec::new();
    let mut by_hooks = Vec::new();
    for line in &transcript.lines {
        match line {
            Line::Server(message) => {
                let answer = is_request(message).then(|| expected_answer(message, mind));
                match answer.flatten() {
                    Some(answer) => {
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
    check_journal(project, &transcript, mind);
    check_tokens(project, &transcript);
}

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for transcript in Transcript::all() {
        // One of each kind with every mind; what only the refusal of a guard has
        // to stand, with a guard that refuses.
        let every = ["seed", "made-newer", "transcript"].contains(&&*transcript.name);
        for (mind, stdout) in MINDS {
            if every || mind == "deny" {
                let transcript = transcript.clone();
                let name = format!("replay::{}::{mind}", transcript.name);
                trials.push(trial(name, move || {
                    through_the_proxy(&transcript, mind, &Project::saying(stdout));
                }));
            }
        }
        let name = format!("replay::{}::no_hooks", transcript.name);
        trials.push(trial(name, move || {
            through_the_proxy(&transcript, "nothing", &Project::new());
        }));
    }
    trials
}
