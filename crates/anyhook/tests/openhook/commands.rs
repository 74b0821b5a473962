//! `anyhook emit` and `anyhook openhook`.

use anyhook_testkit::{Scratch, wait_until};
use serde_json::{Value, json};

use crate::{anyhook, lines, project, types};

#[test]
fn an_envelope_from_its_parts() {
    let scratch = Scratch::new().unwrap();
    scratch
        .file(
            "data.json",
            r#"{"path": "a.rs", "start_line": 1, "end_line": 3}"#,
        )
        .unwrap();
    let arguments = [
        "emit",
        "--type",
        "file.write",
        "--source",
        "my-agent",
        "--session",
        "s1",
        "--data",
        "@data.json",
        "--cwd",
        ".",
        "--extensions",
        r#"{"dev.me": 1}"#,
        "--time",
        "2026-02-23T10:15:30Z",
    ];
    let first = anyhook(&scratch, &arguments, "");
    assert_eq!(first.exit, Some(0), "{first:?}");
    let envelope = first.json().unwrap();
    let mut again = anyhook(&scratch, &arguments, "").json().unwrap();
    assert_ne!(again["id"], envelope["id"], "another call is another event");
    again["id"] = envelope["id"].clone();
    assert_eq!(again, envelope);
    assert_eq!(envelope["data"]["end_line"], 3);
    assert_eq!(envelope["cwd"], scratch.project().to_str().unwrap());
    assert_eq!(envelope["extensions"]["dev.me"], 1);
    let valid = anyhook(&scratch, &["openhook", "validate"], &first.stdout);
    assert_eq!(valid.exit, Some(0), "{valid:?}");
    let traced = anyhook(&scratch, &["openhook", "trace", "-"], &first.stdout);
    let record = traced.json().unwrap();
    assert_eq!(
        record["files"][0]["conversations"][0]["ranges"][0]["end_line"],
        3
    );
    let by_session = anyhook(
        &scratch,
        &["openhook", "trace", "--by-session"],
        &first.stdout,
    );
    assert_eq!(by_session.json().unwrap()["files"], record["files"]);
}

#[test]
fn what_is_wrong_is_said_and_not_made() {
    let scratch = Scratch::new().unwrap();
    let emit = |more: &[&str]| {
        let arguments = [&["emit", "--type", "tool.end"], more].concat();
        anyhook(&scratch, &arguments, "")
    };
    let wrong = emit(&[
        "--source",
        "My Agent",
        "--session",
        "s",
        "--data",
        r#"{"status":"ok"}"#,
    ]);
    assert_eq!((wrong.exit, wrong.stdout.as_str()), (Some(1), ""));
    for part in ["`my-agent`", "/data/status"] {
        assert!(wrong.stderr.contains(part), "{part}: {wrong:?}");
    }
    for usage in [
        &["--source", "a"][..],
        &["--source", "a", "--session", "s", "--data", "[]"],
        &["--source", "a", "--session", "s", "--data", "@none"],
        &["--source", "a", "--session", "s", "--agent", "b"],
    ] {
        assert_eq!(emit(usage).exit, Some(2), "{usage:?}");
    }
}

#[test]
fn envelopes_from_native_payloads() {
    let scratch = Scratch::new().unwrap();
    let emit = |arguments: &[&str], payload: Value| {
        let arguments = [&["emit"], arguments].concat();
        anyhook(&scratch, &arguments, &payload.to_string())
    };
    let claude = json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": "/p",
        "transcript_path": "/t.jsonl", "prompt": "größe"});
    for arguments in [&["--agent", "claude-code"][..], &["--agent", "claude"], &[]] {
        let told = emit(arguments, claude.clone()).json().unwrap();
        assert_eq!(told["source"], "claude-code", "{arguments:?}");
        assert_eq!(told["data"], json!({"prompt_length": 5}));
    }
    let unknown = json!({"event": "Stop", "taskId": 7, "workspaceRoots": ["/w"]});
    let told = emit(&["--agent", "new-agent"], unknown).json().unwrap();
    assert_eq!(
        (told["type"].as_str(), told["session_id"].as_str()),
        (Some("session.end"), Some("7"))
    );
    let named = emit(
        &["--agent", "new-agent", "--event", "SessionStart"],
        json!({"thread-id": "t"}),
    );
    assert_eq!(named.json().unwrap()["type"], "session.start");
    let again = emit(&[], told.clone()).json().unwrap();
    assert_eq!(again, told, "an envelope stays as it is");

    let silent = emit(
        &["--agent", "claude-code"],
        json!({"hook_event_name": "Notification", "session_id": "s", "message": "m"}),
    );
    assert_eq!(
        (silent.exit, silent.stdout.as_str()),
        (Some(0), ""),
        "{silent:?}"
    );
    let lost = emit(&["--agent", "new-agent"], json!({"a": 1}));
    assert_eq!(lost.exit, Some(1));
    assert!(
        lost.stderr.contains("could not detect the event"),
        "{lost:?}"
    );
}

#[test]
fn dispatch_goes_through_discovery_and_reports() {
    let scratch = project(&json!([
        {"command": "cat >> heard.jsonl"},
        {"command": "echo no >&2; exit 4", "events": ["session.end"]},
        {"command": "cat >> detached.jsonl", "async": true},
    ]));
    let emit = |kind: &str, more: &[&str]| {
        let parts = [
            "emit",
            "--dispatch",
            "--type",
            kind,
            "--source",
            "my-agent",
            "--session",
            "s",
        ];
        anyhook(&scratch, &[&parts, more].concat(), "")
    };
    let start = emit("session.start", &[]);
    assert_eq!(start.exit, Some(0), "{start:?}");
    assert!(
        start.stdout.contains("consumer #1 received it"),
        "{start:?}"
    );
    assert!(
        start.stdout.contains("consumer #3 was started"),
        "{start:?}"
    );
    let end = emit("session.end", &["--json"]);
    assert_eq!(end.exit, Some(1));
    let report = end.json().unwrap();
    let outcomes: Vec<&str> = report["deliveries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes, ["allow", "warn", "started"]);
    assert_eq!(
        report["deliveries"][1]["message"],
        "`session.end`: exit code 4: no"
    );
    let heard = lines(&scratch, "heard.jsonl");
    assert_eq!(types(&heard), ["session.start", "session.end"]);
    wait_until("the detached consumer", || {
        lines(&scratch, "detached.jsonl") == heard
    });

    anyhook(&scratch, &["untrust"], "");
    let untrusted = emit("session.end", &[]);
    assert_eq!(untrusted.exit, Some(1));
    assert!(
        untrusted.stderr.contains("not trusted yet"),
        "{untrusted:?}"
    );
    let nobody = Scratch::new().unwrap();
    let arguments = [
        "emit",
        "--dispatch",
        "--type",
        "a.b",
        "--source",
        "a",
        "--session",
        "s",
    ];
    let nobody = anyhook(&nobody, &arguments, "");
    assert_eq!(nobody.exit, Some(0));
    assert!(nobody.stderr.contains("no consumers"), "{nobody:?}");
}

fn envelope(kind: &str, number: u32, data: &Value) -> Value {
    json!({"openhook": "0.1", "id": format!("550e8400-e29b-41d4-a716-{number:012}"),
        "source": "demo", "type": kind, "time": format!("2026-02-23T10:15:{:02}Z", number % 60),
        "session_id": "s", "data": data})
}

#[test]
fn validate_names_every_line() {
    let scratch = Scratch::new().unwrap();
    let good = envelope("session.end", 1, &json!({}));
    let mut bad = good.clone();
    bad["source"] = "Demo".into();
    bad["time"] = "yesterday".into();
    let stream = format!("{good}\n\n{bad}\nnonsense\n{{\"openhook\":\"0.1\"\n");
    scratch.file("stream.jsonl", &stream).unwrap();
    let ran = anyhook(&scratch, &["openhook", "validate", "stream.jsonl"], "");
    assert_eq!(ran.exit, Some(1));
    for part in [
        "stream.jsonl:3: error[bad-source]: /source",
        "stream.jsonl:3: error[bad-time]: /time",
        "stream.jsonl:4: error[syntax]: not JSON at column 2",
        "stream.jsonl:5: error[syntax]",
        "stream.jsonl: 4 envelopes: 4 errors, 0 warnings",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let json = anyhook(
        &scratch,
        &["openhook", "validate", "--json", "stream.jsonl"],
        "",
    );
    let report = json.json().unwrap();
    assert_eq!(report["diagnostics"][1]["line"], 3);
    assert_eq!(report["diagnostics"][1]["code"], "bad-time");

    // Documents over several lines, with the line that each begins at.
    let second = serde_json::to_string_pretty(&bad).unwrap();
    let pretty = format!(
        "\n{}\n\n{second}\n",
        serde_json::to_string_pretty(&good).unwrap()
    );
    let ran = anyhook(&scratch, &["openhook", "validate"], &pretty);
    let begin = pretty.lines().count() - second.lines().count() + 1;
    assert!(
        ran.stdout
            .contains(&format!("-:{begin}: error[bad-source]")),
        "{ran:?}"
    );

    let unknown = envelope("doc.write", 1, &json!({})).to_string();
    assert_eq!(
        anyhook(&scratch, &["openhook", "validate"], &unknown).exit,
        Some(0)
    );
    let strict = anyhook(&scratch, &["openhook", "validate", "--strict"], &unknown);
    assert_eq!(strict.exit, Some(1), "{strict:?}");
    assert_eq!(
        anyhook(&scratch, &["openhook", "validate"], "\n").exit,
        Some(1)
    );
}

#[test]
fn check_judges_with_evidence() {
    let scratch = Scratch::new().unwrap();
    let call = json!({"tool_name": "Bash", "tool_call_id": "c"});
    let stream = [
        envelope("session.start", 1, &json!({})),
        envelope("prompt.submit", 2, &json!({"prompt_length": 3})),
        envelope("tool.start", 3, &call),
        envelope("tool.end", 4, &call),
        envelope(
            "tool.start",
            62,
            &json!({"tool_name": "Read", "tool_call_id": "d"}),
        ),
        envelope("prompt.submit", 1, &json!({})),
        envelope("session.end", 6, &json!({"transcript_path": "/t.jsonl"})),
    ];
    let stream = stream.map(|one| one.to_string()).join("\n");
    scratch.file("stream.jsonl", &stream).unwrap();
    let check = |more: &[&str]| {
        let arguments = [&["openhook", "check", "stream.jsonl"], more].concat();
        anyhook(&scratch, &arguments, "")
    };
    let ran = check(&[]);
    assert_eq!(ran.exit, Some(0), "{ran:?}");
    for part in [
        "demo: level 2, observable (7 envelopes, 1 session)",
        "level 3  not met  supports the discovery file",
        "never seen: file.write",
        "duplicate-id: 1",
        "tool-start-without-end: 1",
        "time-runs-backwards: 1",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    assert_eq!(check(&["--strict"]).exit, Some(1));
    assert_eq!(check(&["--level", "3"]).exit, Some(1));
    let found = check(&["--level", "3", "--discovery"]);
    assert_eq!(found.exit, Some(0));
    assert!(found.stdout.contains("level 3, discoverable"), "{found:?}");
    let piped = anyhook(&scratch, &["openhook", "check", "--json", "-"], &stream);
    assert_eq!(piped.json().unwrap()["sources"][0]["level"], 2);
    assert_eq!(
        anyhook(&scratch, &["openhook", "check"], "{}\n").exit,
        Some(1)
    );
    assert_eq!(anyhook(&scratch, &["openhook", "check"], "").exit, Some(1));
}

#[test]
fn the_schema_has_every_part() {
    let scratch = Scratch::new().unwrap();
    let schema = anyhook(&scratch, &["schema", "openhook"], "")
        .json()
        .unwrap();
    let parts: Vec<&String> = schema["$defs"].as_object().unwrap().keys().collect();
    assert_eq!(parts.len(), openhook::schema_names().count() - 1);
    assert!(schema["$defs"]["discovery"]["title"].is_string());
}

const ENVELOPE: &str = r#"{"openhook":"0.2","id":"550e8400-e29b-41d4-a716-446655440000","source":"a","type":"file.write","time":"2026-02-23T10:15:30Z","session_id":"s","data":{"path":"a.rs"}}"#;

#[test]
fn every_consumer_path_warns_about_another_version() {
    let scratch = project(&json!([{"command": "cat >> heard.jsonl"}]));
    for arguments in [
        &["emit"][..],
        &["emit", "--dispatch"],
        &["openhook", "check"],
        &["openhook", "trace"],
        &["openhook", "trace", "--by-session"],
        &["openhook", "validate"],
    ] {
        let ran = anyhook(&scratch, arguments, ENVELOPE);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(
            said.contains("version `0.2` is unknown"),
            "{arguments:?}: {ran:?}"
        );
    }
    let heard = lines(&scratch, "heard.jsonl");
    assert_eq!(heard[0]["openhook"], "0.2", "it is passed on all the same");
}

#[test]
fn a_discovery_file_of_another_version_is_used_with_a_warning() {
    let scratch = project(&json!([]));
    let text = r#"{"openhook": "0.9", "hooks": [{"command": "cat >> heard.jsonl"}]}"#;
    scratch.file(".openhook.json", text).unwrap();
    crate::trust(&scratch);
    let payload = crate::payload(&scratch, "s", "UserPromptSubmit", json!({"prompt": "hi"}));
    let ran = crate::call(&scratch, &payload);
    assert!(ran.stdout.contains("version `0.9` is unknown"), "{ran:?}");
    assert_eq!(lines(&scratch, "heard.jsonl").len(), 1);
}

#[test]
fn strict_validation_refuses_unknown_types() {
    let scratch = Scratch::new().unwrap();
    let unknown = ENVELOPE
        .replace("0.2", "0.1")
        .replace("file.write", "doc.write");
    let lenient = anyhook(&scratch, &["openhook", "validate"], &unknown);
    assert_eq!(lenient.exit, Some(0), "{lenient:?}");
    assert!(lenient.stdout.contains("unknown-type"), "{lenient:?}");
    let strict = anyhook(&scratch, &["openhook", "validate", "--strict"], &unknown);
    assert_eq!(strict.exit, Some(1), "{strict:?}");
}

#[test]
fn a_setting_chooses_how_envelopes_name_the_folder() {
    let payload = json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": "/p",
        "transcript_path": "/t.jsonl", "prompt": "hi"});
    for (settings, cwd, context) in [
        ("", true, true),
        ("openhook: {folder: both}", true, true),
        ("openhook: {folder: cwd}", true, false),
        ("openhook: {folder: context}", false, true),
    ] {
        let scratch = Scratch::new().unwrap();
        scratch
            .file(scratch.config().join("config.yaml"), settings)
            .unwrap();
        let parts = [
            "emit",
            "--type",
            "session.end",
            "--source",
            "a",
            "--session",
            "s",
            "--cwd",
            "/p",
        ];
        for (arguments, stdin) in [
            (&["emit", "--agent", "claude-code"][..], payload.to_string()),
            (&["emit", "--agent", "my-agent"], payload.to_string()),
            (&parts, String::new()),
        ] {
            let made = anyhook(&scratch, arguments, &stdin).json().unwrap();
            let has = |key| made.get(key).is_some();
            assert_eq!(
                (has("cwd"), has("context")),
                (cwd, context),
                "{settings}: {made}"
            );
        }
    }
}

#[test]
fn the_model_is_named_as_the_agent_names_it() {
    let scratch = Scratch::new().unwrap();
    let payload = json!({"hook_event_name": "SessionStart", "session_id": "s", "cwd": "/p",
        "transcript_path": "/t.jsonl", "source": "startup", "model": "claude-sonnet-4-20250514"});
    for agent in ["claude-code", "my-agent"] {
        let made = anyhook(&scratch, &["emit", "--agent", agent], &payload.to_string());
        let made = made.json().unwrap();
        assert_eq!(made["data"]["model"], "claude-sonnet-4-20250514");
        assert_eq!(
            made["id"].as_str().unwrap().as_bytes()[14],
            b'4',
            "UUID v4: {made}"
        );
    }
}
