//! The fake model over a real socket: each protocol plays the same script, streamed and not.

#![cfg(test)]

use std::path::Path;

use anyhook_e2e::fake_model::FakeModel;
use anyhook_e2e::scenario::{Scenario, Step};
use anyhook_e2e::script::{Purpose, Script};
use anyhook_e2e::tools::{ToolInput, ToolTable};
use serde_json::{Value, json};

fn script() -> Script {
    let tools: ToolTable = serde_json::from_value(json!({
        "shell": {"name": "Bash", "arguments": {"command": "@command@"}},
        "write": {"name": "patch", "text": "add @path@ @absolute@\n@added@\n"},
    }))
    .unwrap();
    let scenario: Scenario = serde_json::from_str(
        r#"{
            "steps": [
                {"shell": {"command": "echo one"}},
                {"say": "two"},
                {"fail": {"status": 400, "message": "three"}},
                {"write": {"path": "four.txt", "content": "a\nb\n"}}
            ],
            "threads": [{"when": "SUB", "steps": [{"say": "from the sub-agent"}]}],
            "otherwise": "nothing left"
        }"#,
    )
    .unwrap();
    Script {
        scenario,
        tools,
        project: Path::new("/project").to_owned(),
    }
}

fn start() -> FakeModel {
    FakeModel::start(0, script(), None).unwrap()
}

/// Status and body of an answer.
fn post(model: &FakeModel, path: &str, body: &Value) -> (u16, String) {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .build()
        .into();
    let mut answer = agent
        .post(format!("http://127.0.0.1:{}{path}", model.port()))
        .send_json(body)
        .unwrap();
    let text = answer.body_mut().read_to_string().unwrap();
    (answer.status().as_u16(), text)
}

fn post_json(model: &FakeModel, path: &str, body: &Value) -> Value {
    serde_json::from_str(&post(model, path, body).1).unwrap()
}

/// The JSON of each `data:` line; a last `[DONE]` is left out.
fn events(text: &str) -> Vec<Value> {
    text.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter(|data| *data != "[DONE]")
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

#[test]
fn anthropic_plays_the_script() {
    let model = start();
    let ask = |history: Value, stream: bool| json!({"model": "m", "stream": stream, "tools": [{"name": "Bash"}], "messages": history});
    let user = json!({"role": "user", "content": [{"type": "text", "text": "go"}]});
    let first = post_json(&model, "/v1/messages?beta=true", &ask(json!([user]), false));
    assert_eq!(first["stop_reason"], "tool_use");
    assert_eq!(first["content"][0]["name"], "Bash");
    assert_eq!(first["content"][0]["input"], json!({"command": "echo one"}));

    let (status, streamed) = post(&model, "/v1/messages", &ask(json!([user]), true));
    let streamed = events(&streamed);
    assert_eq!(status, 200);
    assert_eq!(streamed[0]["type"], "message_start");
    let partial = streamed[2]["delta"]["partial_json"].as_str().unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(partial).unwrap(),
        json!({"command": "echo one"})
    );
    assert_eq!(streamed.last().unwrap()["type"], "message_stop");

    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "one"}]});
    let assistant = json!({"role": "assistant", "content": first["content"]});
    let second = post_json(
        &model,
        "/v1/messages",
        &ask(json!([user, assistant, result]), false),
    );
    assert_eq!(second["content"][0]["text"], "two");
    let said = json!({"role": "assistant", "content": second["content"]});
    let (status, third) = post(
        &model,
        "/v1/messages",
        &ask(json!([user, assistant, result, said, user]), true),
    );
    assert_eq!(status, 400);
    assert!(third.contains("three"));
    let count = post_json(&model, "/v1/messages/count_tokens", &json!({}));
    assert!(count["input_tokens"].is_u64());
}

#[test]
fn gemini_plays_the_script() {
    let model = start();
    let ask = |history: Value| json!({"contents": history, "tools": [{"functionDeclarations": [{"name": "Bash"}]}]});
    let user = json!({"role": "user", "parts": [{"text": "go"}]});
    let path = "/v1beta/models/gemini:generateContent";
    let first = post_json(&model, path, &ask(json!([user])));
    let content = &first["candidates"][0]["content"];
    assert_eq!(
        content["parts"][0]["functionCall"]["args"],
        json!({"command": "echo one"})
    );
    let path = "/v1beta/models/gemini:streamGenerateContent?alt=sse";
    let (_, second) = post(&model, path, &ask(json!([user, content, user])));
    let second = events(&second);
    assert_eq!(second.len(), 1);
    assert_eq!(
        second[0]["candidates"][0]["content"]["parts"][0]["text"],
        "two"
    );
    let path = "/v1beta/models/gemini:generateContent";
    let schema = json!({"type": "OBJECT", "properties": {"next": {"type": "STRING", "enum": ["user", "model"]}}});
    let side = json!({"contents": [user], "generationConfig": {"responseJsonSchema": schema}});
    let side = post_json(&model, path, &side);
    assert_eq!(
        side["candidates"][0]["content"]["parts"][0]["text"],
        r#"{"next":"user"}"#
    );
}

#[test]
fn chat_completions_play_the_script() {
    let model = start();
    let ask = |history: Value, stream: bool| {
        json!({"model": "m", "stream": stream, "messages": history,
            "tools": [{"type": "function", "function": {"name": "Bash"}}]})
    };
    let user = json!({"role": "user", "content": "go"});
    let first = post_json(&model, "/v1/chat/completions", &ask(json!([user]), false));
    let message = &first["choices"][0]["message"];
    assert_eq!(first["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(
        message["tool_calls"][0]["function"]["arguments"],
        r#"{"command":"echo one"}"#
    );
    let (_, streamed) = post(&model, "/v1/chat/completions", &ask(json!([user]), true));
    assert!(streamed.ends_with("data: [DONE]\n\n"));
    let streamed = events(&streamed);
    assert_eq!(
        streamed[0]["choices"][0]["delta"]["tool_calls"][0]["index"],
        0
    );
    assert_eq!(streamed[1]["choices"][0]["finish_reason"], "tool_calls");
    let result = json!({"role": "tool", "tool_call_id": "x", "content": "one"});
    let second = ask(json!([user, message, result]), false);
    let second = post_json(&model, "/v1/chat/completions", &second);
    assert_eq!(second["choices"][0]["message"]["content"], "two");
}

#[test]
fn responses_play_the_script() {
    let model = start();
    let ask = |history: Value, stream: bool| {
        json!({"model": "m", "stream": stream, "input": history,
            "tools": [{"type": "function", "name": "Bash"}, {"type": "custom", "name": "patch"}]})
    };
    let user = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]});
    let first = post_json(&model, "/v1/responses", &ask(json!([user]), false));
    assert_eq!(first["output"][0]["arguments"], r#"{"command":"echo one"}"#);
    let call = &first["output"][0];
    let result = json!({"type": "function_call_output", "call_id": "x", "output": "one"});
    let (_, second) = post(
        &model,
        "/v1/responses",
        &ask(json!([user, call, result]), true),
    );
    let second = events(&second);
    assert_eq!(second[0]["type"], "response.created");
    assert_eq!(second.last().unwrap()["type"], "response.completed");
    assert_eq!(
        second.last().unwrap()["response"]["output"][0]["content"][0]["text"],
        "two"
    );
    let said = json!({"type": "message", "role": "assistant", "content": []});
    let (_, fourth) = post(
        &model,
        "/v1/responses",
        &ask(json!([user, call, result, said, said]), true),
    );
    let fourth = events(&fourth);
    let patch = fourth
        .iter()
        .find(|event| event["type"] == "response.output_item.done")
        .unwrap();
    assert_eq!(patch["item"]["type"], "custom_tool_call");
    assert_eq!(
        patch["item"]["input"],
        "add four.txt /project/four.txt\n+a\n+b\n"
    );
}

/// A script whose first turn has two calls.
fn start_with_two_calls() -> FakeModel {
    let mut script = script();
    let shell = |command: &str| Step::Shell {
        command: command.to_owned(),
    };
    script.scenario = Scenario::new([
        Step::Together(vec![shell("one"), shell("two")]),
        Step::Say("after both".to_owned()),
    ]);
    FakeModel::start(0, script, None).unwrap()
}

#[test]
fn calls_of_one_turn_are_one_turn_even_if_the_client_splits_them() {
    let model = start_with_two_calls();
    let user = json!({"role": "user", "content": "go"});

    let tools = json!([{"name": "Bash"}]);
    let ask = |history: Value| json!({"model": "m", "tools": tools, "messages": history});
    let first = post_json(&model, "/v1/messages", &ask(json!([user])));
    let part = |index: usize| json!({"role": "assistant", "content": [first["content"][index]]});
    let history = json!([user, part(0), user, part(1), user]);
    let second = post_json(&model, "/v1/messages", &ask(history));
    assert_eq!(second["content"][0]["text"], "after both");

    let tools = json!([{"type": "function", "function": {"name": "Bash"}}]);
    let ask = |history: Value| json!({"model": "m", "tools": tools, "messages": history});
    let first = post_json(&model, "/v1/chat/completions", &ask(json!([user])));
    let message = &first["choices"][0]["message"];
    assert_eq!(message["tool_calls"].as_array().unwrap().len(), 2);
    let second = post_json(
        &model,
        "/v1/chat/completions",
        &ask(json!([user, message, user])),
    );
    assert_eq!(second["choices"][0]["message"]["content"], "after both");

    let tools = json!([{"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "Bash"}]}]);
    let given = json!({"type": "additional_tools", "tools": tools});
    let ask = |history: Value| json!({"model": "m", "input": history});
    let first = post_json(&model, "/v1/responses", &ask(json!([given, user])));
    let (one, two) = (&first["output"][0], &first["output"][1]);
    let result = json!({"type": "function_call_output", "call_id": "x", "output": "one"});
    let history = json!([given, user, one, result, two, result]);
    let second = post_json(&model, "/v1/responses", &ask(history));
    assert_eq!(second["output"][0]["content"][0]["text"], "after both");

    let tools = json!([{"functionDeclarations": [{"name": "Bash"}]}]);
    let path = "/v1beta/models/gemini:generateContent";
    let user = json!({"role": "user", "parts": [{"text": "go"}]});
    let ask = |history: Value| json!({"contents": history, "tools": tools});
    let first = post_json(&model, path, &ask(json!([user])));
    let content = &first["candidates"][0]["content"];
    assert_eq!(content["parts"].as_array().unwrap().len(), 2);
    let second = post_json(&model, path, &ask(json!([user, content, user])));
    let text = &second["candidates"][0]["content"]["parts"][0]["text"];
    assert_eq!(text, "after both");
}

#[test]
fn a_model_that_writes_code_makes_the_calls_of_one_turn_in_one() {
    let tools: ToolTable = serde_json::from_value(json!({
        "together": {"name": "exec", "each": "(@text@)", "all": "all([@text@])"},
        "shell": {"name": "exec", "text": "run(@command:json@)"},
    }))
    .unwrap();
    let shell = |command: &str| Step::Shell {
        command: command.to_owned(),
    };
    let step = Step::Together(vec![shell("say \"a\""), shell("b")]);
    let calls = tools.calls(&step, Path::new("/project")).unwrap();
    assert_eq!(calls.len(), 1);
    assert_eq!(
        calls[0].input,
        ToolInput::Text(r#"all([(run("say \"a\"")), (run("b"))])"#.to_owned())
    );
}

#[test]
fn side_requests_play_no_step_and_everything_is_recorded() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let model = FakeModel::start(0, script(), Some(log.path())).unwrap();
    let user = json!({"role": "user", "content": "MARK"});
    let title = json!({"model": "m", "messages": [user]});
    post_json(&model, "/v1/chat/completions", &title);
    let tools = json!([{"type": "function", "function": {"name": "Other"}}]);
    let without = json!({"model": "m", "messages": [user], "tools": tools});
    post_json(&model, "/v1/chat/completions", &without);
    let sub =
        json!({"model": "m", "messages": [{"role": "user", "content": "SUB"}], "tools": tools});
    let sub = post_json(&model, "/v1/chat/completions", &sub);
    assert_eq!(
        sub["choices"][0]["message"]["content"],
        "from the sub-agent"
    );
    let models: String = ureq::get(format!("http://127.0.0.1:{}/v1/models", model.port()))
        .call()
        .unwrap()
        .body_mut()
        .read_to_string()
        .unwrap();
    assert!(models.contains("fake-model"));

    let requests = model.requests();
    let purposes: Vec<Purpose> = requests.iter().map(|request| request.purpose).collect();
    assert_eq!(
        purposes,
        [
            Purpose::Side,
            Purpose::Unoffered,
            Purpose::Turn,
            Purpose::Service
        ]
    );
    assert!(requests[1].contains_text("MARK") && !requests[2].contains_text("MARK"));
    let on_disk = std::fs::read_to_string(log.path()).unwrap();
    assert_eq!(on_disk.lines().count(), requests.len());
}

#[test]
fn a_step_beyond_the_last_says_the_rest() {
    let mut script = script();
    script.scenario = Scenario::new([Step::Say("one".to_owned())]);
    let model = FakeModel::start(0, script, None).unwrap();
    let said = json!({"role": "assistant", "content": "one"});
    let tools = json!([{"type": "function", "function": {"name": "Bash"}}]);
    let ask = json!({"messages": [{"role": "user", "content": "go"}, said], "tools": tools});
    let answer = post_json(&model, "/v1/chat/completions", &ask);
    assert_eq!(
        answer["choices"][0]["message"]["content"],
        "Nothing is left to do."
    );
}
