//! The wrapped HTTP form through the daemon of the real binary: it means what the agent's own
//! answer means, and is recorded as it was sent.

#![cfg(unix)] // its hook is a shell script; `windows` tests the daemon there
#![cfg(test)]

mod serve_support;

use std::path::Path;

use anyhook_testkit::reference_model::{self, Action, Answer, Reaction};
use anyhook_testkit::{ProcessOutput, Scratch, files_below};
use serde_json::{Value, json};
use serve_support::{ANSWERING_HOOK, Daemon, anyhook, journal, send, with_hook};

fn answer_with(scratch: &Scratch, answer: &Value) {
    let path = scratch.config().join("answer.json");
    scratch.file(path, &answer.to_string()).unwrap();
}

fn seen(scratch: &Scratch) -> Value {
    let text = std::fs::read_to_string(scratch.config().join("seen.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The wrapped form's cases, by hooks that run. What is recorded is what was sent.
#[test]
fn wrapped_calls_are_answered_by_the_engine_and_recorded_as_sent() {
    let scratch = with_hook(ANSWERING_HOOK);
    let daemon = Daemon::start(&scratch, &[]);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../anyhook-daemon/tests/wrapped");
    let cases = files_below(&folder);
    assert!(cases.len() > 30, "examples are missing");
    for path in cases {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut case: Value = serde_json::from_str(&text).unwrap();
        // The adapter's answer is scripted there; here the adapter itself answers.
        let is_scripted = case.get("native_answer").is_some();
        if let Some(cwd) = case["request"]["input_data"].get_mut("cwd") {
            *cwd = json!(scratch.project());
        }
        let answer = scratch.config().join("answer.json");
        scratch.file(answer, &case["hooks"].to_string()).unwrap();
        let reply = daemon.post(case["path"].as_str().unwrap(), &case["request"].to_string());
        let name = path.display();
        let last = journal(&scratch).pop().unwrap();
        let recorded = &last["answer"];
        let text = |key: &str| recorded[key].as_str().unwrap_or_default().to_owned();
        let sent = reply.ran();
        assert_eq!(text("stdout"), sent.stdout, "{name}: {last}");
        assert_eq!(text("stderr"), sent.stderr, "{name}: {last}");
        let exit = recorded["exit"].as_i64().unwrap_or_default();
        assert_eq!(Some(exit), sent.exit.map(i64::from), "{name}: {last}");
        // A loss that says "denied" goes with an answer that denies.
        let denied = last["lost"].to_string().contains("denied instead");
        assert!(!denied || exit == 2, "{name}: {last}");
        if is_scripted {
            continue;
        }
        let answer: Value = serde_json::from_str(&reply.body).unwrap();
        assert!(contains(&answer, &case["answer"]), "{name}: {answer}");
        assert_eq!(
            reply.headers["x-anyhook-exit-code"],
            case["exit"].to_string(),
            "{name}"
        );
    }
}

/// Whether all of `part` is in `whole`.
fn contains(whole: &Value, part: &Value) -> bool {
    match part.as_object() {
        Some(part) => part
            .iter()
            .all(|(key, value)| whole.get(key).is_some_and(|it| contains(it, value))),
        None => whole == part,
    }
}

/// Where the wrapped form cannot carry a changed input, the call is blocked, as it is with
/// the native answer. What it can carry is not lost.
#[test]
fn a_wrapped_answer_never_drops_a_changed_input() {
    let scratch = with_hook(ANSWERING_HOOK);
    let daemon = Daemon::start(&scratch, &[]);
    let post = |path: &str, event: &str, input: Value, hooks: Value| {
        let answer = scratch.config().join("answer.json");
        scratch.file(answer, &hooks.to_string()).unwrap();
        let body = json!({"hook_type": event, "input_data": input});
        let reply = daemon.post(path, &body.to_string());
        let record = journal(&scratch).pop().unwrap();
        assert_eq!(record["answer"]["stdout"], reply.body, "{record}");
        let body: Value = serde_json::from_str(&reply.body).unwrap();
        (body, reply.ran().exit, record)
    };
    let prompt = json!({"session_id": "s", "prompt": "my password is x"});
    let rewrite = json!({"updated_input": {"prompt": "redacted"}});
    let (body, exit, record) = post("/hooks/claude", "user-prompt-submit", prompt, rewrite);
    assert_eq!(body["decision"], "block", "{record}");
    assert_eq!((&body["continue"], exit), (&json!(true), Some(2)));
    assert_eq!(record["lost"][0]["field"], "updated_input", "{record}");

    let tool = json!({"session_id": "s", "tool_name": "Bash", "tool_input": {"command": "a"}});
    let rewrite = json!({"updated_input": {"command": "b"}});
    let (body, exit, record) = post("/hooks/claude", "pre-tool-use", tool.clone(), rewrite);
    let updated = &body["hookSpecificOutput"]["updatedInput"]["command"];
    assert_eq!((updated, exit), (&json!("b"), Some(0)), "{record}");
    assert_eq!(record["lost"], Value::Null, "{record}");

    let end = json!({"continue": false, "reason": "enough"});
    let (body, _, record) = post("/hooks/claude", "pre-tool-use", tool, end);
    assert_eq!(body["continue"], json!(false), "{record}");
    assert_eq!(
        body["decision"], "block",
        "what is about to happen is blocked as well"
    );
    assert_eq!(record["lost"], Value::Null, "{record}");

    let model = json!({"session_id": "s", "llm_request": {"model": "m"}});
    let change = json!({"updated_input": {"temperature": 0.7}});
    let (body, exit, record) = post("/hooks/gemini", "BeforeModel", model, change);
    let sent = &body["hookSpecificOutput"]["llm_request"]["temperature"];
    assert_eq!((sent, exit), (&json!(0.7), Some(0)), "{record}");
    assert_eq!(record["lost"], Value::Null, "{record}");
}

/// The hook types of the form, and the agent's own names.
const CLAUDE_EVENTS: [(&str, &str); 12] = [
    ("session-start", "SessionStart"),
    ("session-end", "SessionEnd"),
    ("user-prompt-submit", "UserPromptSubmit"),
    ("stop", "Stop"),
    ("pre-tool-use", "PreToolUse"),
    ("post-tool-use", "PostToolUse"),
    ("post-tool-use-failure", "PostToolUseFailure"),
    ("pre-compact", "PreCompact"),
    ("permission-request", "PermissionRequest"),
    ("subagent-start", "SubagentStart"),
    ("subagent-stop", "SubagentStop"),
    ("notification", "Notification"),
];

const GEMINI_EVENTS: [&str; 11] = [
    "SessionStart",
    "SessionEnd",
    "BeforeAgent",
    "AfterAgent",
    "BeforeTool",
    "AfterTool",
    "BeforeToolSelection",
    "BeforeModel",
    "AfterModel",
    "PreCompress",
    "Notification",
];

const CONTEXT: &str = "context-4410";

fn responses() -> Vec<Value> {
    vec![
        json!({}),
        json!({"decision": "deny", "reason": "no"}),
        json!({"decision": "ask", "reason": "sure?"}),
        json!({"context": CONTEXT}),
        json!({"system_message": "for the user"}),
        json!({"updated_input": {"command": "true"}}),
        json!({"decision": "allow", "updated_input": {"command": "true"}}),
        json!({"continue": false, "reason": "enough"}),
        json!({"decision": "deny", "reason": "no", "context": CONTEXT, "system_message": "x"}),
    ]
}

fn payload(event: &str, scratch: &Scratch) -> Value {
    let mut payload = json!({"session_id": "s", "cwd": scratch.project(), "hook_event_name": event,
        "transcript_path": "/t.jsonl"});
    let more = match event {
        "PreToolUse" | "PermissionRequest" => {
            json!({"tool_name": "Bash", "tool_input": {"command": "ls"}})
        }
        "PostToolUse" => {
            json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": "x"})
        }
        "PostToolUseFailure" => {
            json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "error": "x"})
        }
        "BeforeTool" => json!({"tool_name": "run_shell_command", "tool_input": {"command": "ls"}}),
        "AfterTool" => {
            json!({"tool_name": "run_shell_command", "tool_input": {"command": "ls"}, "tool_response": {}})
        }
        "UserPromptSubmit" | "BeforeAgent" => json!({"prompt": "hi"}),
        _ => json!({}),
    };
    payload
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    payload
}

/// For every event and every kind of response: what the reference model of the agent does
/// with the wrapped answer is what it does with its own.
#[test]
fn a_wrapped_answer_means_what_the_native_one_means() {
    let scratch = with_hook(ANSWERING_HOOK);
    let daemon = Daemon::start(&scratch, &[]);
    let claude = CLAUDE_EVENTS.map(|(form, native)| ("claude-code", form, native));
    let gemini = GEMINI_EVENTS.map(|name| ("gemini-cli", name, name));
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (agent, hook_type, event) in claude.into_iter().chain(gemini) {
        for response in responses() {
            answer_with(&scratch, &response);
            let payload = payload(event, &scratch);
            let path = format!("/hooks/{agent}");
            let native = daemon.post(&path, &payload.to_string()).ran();
            let body = json!({"hook_type": hook_type, "input_data": payload}).to_string();
            let wrapped = daemon.post(&path, &body).ran();
            assert!(!wrapped.stdout.is_empty(), "{hook_type} {response}");
            let record = journal(&scratch).pop().unwrap();
            assert_eq!(record["answer"]["stdout"], wrapped.stdout, "{record}");
            // The form defines how a stop is prevented.
            if event == "Stop" && native.stdout.contains("block") {
                let answer: Value = serde_json::from_str(&wrapped.stdout).unwrap();
                assert_eq!(answer["continue"], json!(false), "{answer}");
                assert!(answer.get("decision").is_none(), "{answer}");
                continue;
            }
            // Plain text for the model has no place in the form; that is recorded.
            if !native.stdout.is_empty() && !native.stdout.starts_with('{') {
                assert_eq!(record["lost"][0]["field"], "context", "{record}");
                continue;
            }
            // The form carries changes of a model's request that the agent itself refuses.
            let is_of_model = matches!(event, "BeforeModel" | "AfterModel" | "BeforeToolSelection");
            if is_of_model && response.get("updated_input").is_some() {
                continue;
            }
            let expected = reaction(agent, event, &payload, &native);
            let actual = reaction(agent, event, &payload, &wrapped);
            compared += 1;
            if let Some(why) = difference(&expected, &actual) {
                wrong.push(format!(
                    "{hook_type} {response}: {why}\n  native {native:?}\n  wrapped {wrapped:?}"
                ));
            }
        }
    }
    assert!(compared >= 23 * 9 - 11, "{compared}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn reaction(agent: &str, event: &str, payload: &Value, output: &ProcessOutput) -> Reaction {
    let answer = Answer {
        exit: output.exit,
        stdout: &output.stdout,
        stderr: &output.stderr,
    };
    reference_model::react(agent, event, payload, &answer, false)
}

/// How an answer means something else. To end the run as well is what the form defines for
/// some events, and it cannot ask everywhere: both are stricter.
fn difference(native: &Reaction, wrapped: &Reaction) -> Option<String> {
    let is_stricter = native.action == Action::AskUser && wrapped.action == Action::Blocked;
    if native.action != wrapped.action && !is_stricter {
        return Some(format!(
            "{:?} instead of {:?}",
            wrapped.action, native.action
        ));
    }
    if native.new_input != wrapped.new_input && !is_stricter {
        return Some(format!(
            "input {:?}, not {:?}",
            wrapped.new_input, native.new_input
        ));
    }
    if native.retries != wrapped.retries {
        return Some("sends the agent back in one form only".to_owned());
    }
    let sees = |reaction: &Reaction| reaction.model_sees.concat().contains(CONTEXT);
    (sees(native) && !sees(wrapped)).then(|| "the model does not see the context".to_owned())
}

/// A dispatcher sends what it has, and parses every body.
#[test]
fn a_dispatcher_without_input_gets_an_answer() {
    let scratch = with_hook(ANSWERING_HOOK);
    let daemon = Daemon::start(&scratch, &[]);
    answer_with(&scratch, &json!({}));
    for input in [
        "",
        r#","input_data":null"#,
        r#","input_data":[]"#,
        r#","input_data":{}"#,
    ] {
        for (path, hook_type) in [
            ("/hooks/claude", "session-start"),
            ("/hooks/gemini", "SessionStart"),
            ("/hooks/codex", "SessionStart"),
        ] {
            let body = format!(r#"{{"hook_type":"{hook_type}"{input}}}"#);
            let reply = daemon.post(path, &body);
            let answer: Value = serde_json::from_str(&reply.body).unwrap();
            assert_eq!(
                (reply.status, answer.is_object()),
                (200, true),
                "{path} {body}"
            );
            assert_eq!(seen(&scratch)["event"], "session_start", "{path} {body}");
        }
    }
}

/// The payload of the form's own documentation: its folder exists nowhere.
#[test]
fn a_guard_of_the_user_holds_in_a_folder_that_does_not_exist() {
    let scratch = with_hook(ANSWERING_HOOK);
    let daemon = Daemon::start(&scratch, &[]);
    answer_with(&scratch, &json!({"decision": "deny", "reason": "no"}));
    for folder in [
        json!({"cwd": "/path/to/project"}),
        json!({"cwd": ""}),
        json!({}),
    ] {
        let mut input =
            json!({"session_id": "s", "tool_name": "Bash", "tool_input": {"command": "ls"}});
        input
            .as_object_mut()
            .unwrap()
            .extend(folder.as_object().unwrap().clone());
        let body = json!({"hook_type": "pre-tool-use", "input_data": input});
        let reply = daemon.post("/hooks/claude", &body.to_string());
        let answer: Value = serde_json::from_str(&reply.body).unwrap();
        assert_eq!(answer["decision"], "block", "{folder}: {answer}");
        input["hook_event_name"] = json!("PreToolUse");
        let ran = anyhook(
            &scratch,
            &["run", "--agent", "claude-code"],
            &input.to_string(),
        );
        assert!(ran.stdout.contains("deny"), "{folder}: {ran:?}");
    }
}

/// The identifiers of the unified event model, and the filters for them.
#[test]
fn identifiers_have_their_places_and_filters() {
    let scratch = with_hook(ANSWERING_HOOK);
    let daemon = Daemon::start(&scratch, &[]);
    answer_with(&scratch, &json!({}));
    let ids = json!({"machine_id": "m1", "user_id": "u1", "project_id": "p1", "workflow_id": "w1"});
    let mut input = payload("PreToolUse", &scratch);
    input
        .as_object_mut()
        .unwrap()
        .extend(ids.as_object().unwrap().clone());
    let body = json!({"hook_type": "pre-tool-use", "input_data": input});
    daemon.post("/hooks/claude", &body.to_string());
    for (key, id) in ids.as_object().unwrap() {
        assert_eq!(&seen(&scratch)[key], id, "the hook sees {key}");
    }
    let failed = json!({"hook_type": "post-tool-use-failure",
        "input_data": payload("PostToolUseFailure", &scratch)});
    daemon.post("/hooks/claude", &failed.to_string());
    daemon.events("", 2);
    for (filter, id) in [
        ("machine", "m1"),
        ("user_id", "u1"),
        ("project_id", "p1"),
        ("workflow_id", "w1"),
    ] {
        let found = daemon.events(&format!("{filter}={id}"), 1);
        assert_eq!((found.len(), &found[0][filter]), (1, &json!(id)));
        let option = format!("--{}", filter.replace('_', "-"));
        for (id, count) in [(id, 1), ("another", 0)] {
            let logged = anyhook(&scratch, &["log", "--json", &option, id], "");
            assert_eq!(
                logged.stdout.lines().count(),
                count,
                "{option} {id}: {logged:?}"
            );
        }
    }
    assert_eq!(
        daemon.events("event=AFTER_TOOL", 1).len(),
        1,
        "a failure is one as well"
    );
}

/// The header is an order: also an agent that could handle the question itself gets a deny.
#[test]
fn nobody_is_asked_where_nobody_is() {
    let scratch = with_hook(ANSWERING_HOOK);
    let daemon = Daemon::start(&scratch, &[]);
    answer_with(&scratch, &json!({"decision": "ask", "reason": "sure?"}));
    let payload = payload("PreToolUse", &scratch).to_string();
    let asked = |headers: &[(&str, &str)]| {
        let reply = send(&daemon.url, "POST", "/hooks/claude", headers, &payload);
        let answer: Value = serde_json::from_str(&reply.body).unwrap();
        answer["hookSpecificOutput"]["permissionDecision"].clone()
    };
    assert_eq!(asked(&[]), "ask");
    assert_eq!(asked(&[("x-anyhook-unattended", "1")]), "deny");
}

/// By the contract, a hook that cannot parse its input allows and exits with 0.
#[test]
fn the_contract_answers_what_it_cannot_parse() {
    let scratch = with_hook(ANSWERING_HOOK);
    let daemon = Daemon::start(&scratch, &[]);
    answer_with(&scratch, &json!({"decision": "deny"}));
    for garbage in [
        "garbage",
        "",
        "[]",
        "null",
        "{}",
        "{\"tool_input\":{}}",
        "{\"tool_name\":",
    ] {
        let ran = anyhook(&scratch, &["run", "--agent", "contract"], garbage);
        let allow = (Some(0), "{\"decision\":\"allow\"}\n");
        assert_eq!((ran.exit, ran.stdout.as_str()), allow, "{garbage}: {ran:?}");
        assert!(ran.stderr.contains("no hook has run"), "{garbage}: {ran:?}");
        let reply = daemon.post("/hooks/contract", garbage);
        assert_eq!(
            (reply.status, reply.body.as_str()),
            (200, allow.1),
            "{garbage}"
        );
        assert_eq!(reply.headers["x-anyhook-exit-code"], "0", "{garbage}");
        let refused = daemon.post("/hooks/claude", garbage);
        assert!(
            refused.status == 400 || garbage.starts_with("{\"tool_input") || garbage == "{}",
            "{garbage}"
        );
    }
}

/// An action that no agent has is not dropped silently.
#[test]
fn an_action_that_nobody_can_trigger_is_reported() {
    let scratch = with_hook(ANSWERING_HOOK);
    answer_with(&scratch, &json!({"trigger_action": "compact"}));
    let payload = payload("PreToolUse", &scratch).to_string();
    anyhook(&scratch, &["run", "--agent", "claude-code"], &payload);
    let record = journal(&scratch).pop().unwrap();
    assert_eq!(record["lost"][0]["field"], "trigger_action", "{record}");
}

/// The table of unified event types: the type, and the agent's own name.
const UNIFIED_TYPES: [(&str, &str, &str); 20] = [
    ("SESSION_START", "claude", "session-start"),
    ("SESSION_END", "claude", "session-end"),
    ("BEFORE_AGENT", "claude", "user-prompt-submit"),
    ("STOP", "claude", "stop"),
    ("BEFORE_TOOL", "claude", "pre-tool-use"),
    ("AFTER_TOOL", "claude", "post-tool-use"),
    ("AFTER_TOOL", "claude", "post-tool-use-failure"),
    ("PRE_COMPACT", "claude", "pre-compact"),
    ("SUBAGENT_START", "claude", "subagent-start"),
    ("SUBAGENT_STOP", "claude", "subagent-stop"),
    ("PERMISSION_REQUEST", "claude", "permission-request"),
    ("NOTIFICATION", "claude", "notification"),
    ("SESSION_START", "gemini", "SessionStart"),
    ("AFTER_AGENT", "gemini", "AfterAgent"),
    ("BEFORE_TOOL", "gemini", "BeforeTool"),
    ("BEFORE_TOOL_SELECTION", "gemini", "BeforeToolSelection"),
    ("BEFORE_MODEL", "gemini", "BeforeModel"),
    ("AFTER_MODEL", "gemini", "AfterModel"),
    ("PRE_COMPACT", "gemini", "PreCompress"),
    ("NOTIFICATION", "gemini", "Notification"),
];

#[test]
fn every_hook_type_has_its_unified_type() {
    let scratch = with_hook(ANSWERING_HOOK);
    let daemon = Daemon::start(&scratch, &[]);
    answer_with(&scratch, &json!({}));
    for (index, (unified, agent, hook_type)) in UNIFIED_TYPES.into_iter().enumerate() {
        let session = format!("session-{index}");
        let input = json!({"session_id": session, "cwd": scratch.project(), "prompt": "p",
            "tool_name": "Read", "tool_input": {"file_path": "a"}, "hook_event_name": hook_type});
        let body = json!({"hook_type": hook_type, "input_data": input});
        daemon.post(&format!("/hooks/{agent}"), &body.to_string());
        let found = daemon.events(&format!("session={session}"), 1);
        assert_eq!(found[0]["type"], unified, "{hook_type}: {found:?}");
    }
}
