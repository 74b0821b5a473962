//! Tokens of agents that tell them elsewhere than in a transcript of every event: lines,
//! rows and payloads as the real clients wrote them.

use anyhook_testkit::Scratch;
use serde_json::{Value, json};

use crate::sessions::{anyhook, record};
use crate::support::captures;

/// `[input, cached, written to the cache, output]`
fn sums(scratch: &Scratch) -> (Value, [u64; 4]) {
    let stats = anyhook(scratch, &["stats", "--json"]).json().unwrap();
    let usage = stats["usage"].clone();
    let names = [
        "input_tokens",
        "cache_read_tokens",
        "cache_creation_tokens",
        "output_tokens",
    ];
    let sums = names.map(|name| usage[name].as_u64().unwrap());
    (usage, sums)
}

fn capture(agent: &str, file: &str) -> Value {
    let all = captures();
    let found = all
        .iter()
        .find(|it| it.adapter.spec.id == *agent && it.path == *file);
    found
        .unwrap_or_else(|| panic!("{agent} has no capture {file}"))
        .payload
        .clone()
}

#[test]
fn copilot_names_its_transcript_at_the_end_of_a_turn() {
    let scratch = Scratch::new().unwrap();
    let transcript = scratch.root().join("events.jsonl");
    let line = |call: &str, input: u64| {
        format!(
            r#"{{"type":"session.usage_record","data":{{"usage":{{"model":"gpt-5","inputTokens":{input},"outputTokens":5,"cacheReadTokens":4,"cacheWriteTokens":0,"cost":0.0,"initiator":"user","apiCallId":"{call}"}}}},"id":"i-{call}","timestamp":"2026-11-18T13:57:12.030Z"}}"#
        )
    };
    let text = [line("a", 10), line("b", 20), line("b", 20)].join("\n") + "\n";
    std::fs::write(&transcript, text).unwrap();
    let mut payload = capture("copilot-cli", "agentStop.json");
    payload["transcriptPath"] = json!(transcript);
    payload["cwd"] = json!(scratch.project());
    record(&scratch, "copilot-cli", &payload);
    let (usage, sums) = sums(&scratch);
    assert_eq!(sums, [30, 8, 0, 10], "{usage:#}");
    assert_eq!(usage["by_model"][0]["model"], "gpt-5");
}

#[test]
fn pi_counts_cached_tokens_apart() {
    let scratch = Scratch::new().unwrap();
    let transcript = scratch.root().join("session.jsonl");
    let text = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-11-18T13:57:13.335Z","cwd":"/w"}
{"type":"message","id":"f6b4d5b0","timestamp":"2026-11-18T13:57:13.494Z","message":{"role":"assistant","content":[],"provider":"fake","model":"claude-sonnet-4-5","usage":{"input":10,"output":5,"cacheRead":3,"cacheWrite":2,"reasoning":0,"totalTokens":20,"cost":{"input":0,"output":0,"total":0}},"stopReason":"toolUse"}}
{"type":"message","id":"d0681796","timestamp":"2026-11-18T13:57:13.511Z","message":{"role":"toolResult","content":[{"type":"text","text":"\"usage\""}]}}
"#;
    std::fs::write(&transcript, text).unwrap();
    let mut payload = capture("pi", "tool_call-bash.json");
    payload["sessionFile"] = json!(transcript);
    payload["sessionId"] = json!("s");
    payload["cwd"] = json!(scratch.project());
    record(&scratch, "pi", &payload);
    let (usage, sums) = sums(&scratch);
    assert_eq!(sums, [15, 3, 2, 5], "{usage:#}");
    assert_eq!(usage["by_session"][0]["session"], "s");
}

#[test]
fn cursor_tells_its_tokens_when_a_turn_ends() {
    let scratch = Scratch::new().unwrap();
    for (generation, input) in [("g1", 10), ("g2", 20), ("g2", 20)] {
        let mut payload = capture("cursor", "stop.json");
        payload["generation_id"] = json!(generation);
        payload["input_tokens"] = json!(input);
        payload["cache_read_tokens"] = json!(3);
        payload["workspace_roots"] = json!([scratch.project()]);
        record(&scratch, "cursor", &payload);
    }
    let (usage, sums) = sums(&scratch);
    assert_eq!(sums, [36, 6, 0, 2], "{usage:#}");
}

/// The columns that are read, as OpenCode 1.18 creates them.
const MESSAGES: &str = "CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL,
    time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL)";

fn write_message(database: &rusqlite::Connection, id: &str, session: &str, at: i64, data: &str) {
    let sql = "INSERT OR REPLACE INTO message VALUES (?1, ?2, ?3, ?3, ?4)";
    database.execute(sql, (id, session, at, data)).unwrap();
}

fn assistant(input: u64, output: u64) -> String {
    json!({"role": "assistant", "cost": 0, "modelID": "m", "providerID": "fake",
        "tokens": {"total": 0, "input": input, "output": output, "reasoning": 1,
                   "cache": {"write": 2, "read": 4}},
        "time": {"created": 1_795_010_217_108_u64, "completed": 1_795_010_218_747_u64}})
    .to_string()
}

#[test]
fn opencode_keeps_its_tokens_in_a_database() {
    let scratch = Scratch::new().unwrap();
    let mut payload = capture("opencode", "event-session.idle.json");
    let properties = &mut payload["input"]["event"]["properties"];
    properties["sessionID"] = json!("ses_1");
    record(&scratch, "opencode", &payload);
    // Without the database there is nothing.
    assert_eq!(sums(&scratch).1, [0; 4]);
    let path = scratch.home().join(".local/share/opencode/opencode.db");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let database = rusqlite::Connection::open(path).unwrap();
    database.pragma_update(None, "journal_mode", "wal").unwrap();
    database.execute(MESSAGES, ()).unwrap();
    let user =
        r#"{"role":"user","time":{"created":1},"model":{"providerID":"fake","modelID":"m"}}"#;
    write_message(&database, "msg_1", "ses_1", 100, user);
    write_message(&database, "msg_2", "ses_1", 101, &assistant(0, 0));
    write_message(&database, "msg_3", "ses_other", 101, &assistant(1000, 1000));
    write_message(&database, "msg_4", "ses_1", 101, "not JSON");
    record(&scratch, "opencode", &payload);
    assert_eq!(sums(&scratch).1, [6, 4, 2, 1]);
    // The same message grows, and another comes in the same millisecond.
    write_message(&database, "msg_2", "ses_1", 102, &assistant(10, 5));
    write_message(&database, "msg_5", "ses_1", 102, &assistant(10, 5));
    for _ in 0..2 {
        record(&scratch, "opencode", &payload);
        let (usage, sums) = sums(&scratch);
        assert_eq!(sums, [32, 8, 4, 12], "{usage:#}");
        assert_eq!(usage["calls"], 2);
    }
    // Another layout: nothing new, and no failure.
    database
        .execute("ALTER TABLE message RENAME TO old", ())
        .unwrap();
    record(&scratch, "opencode", &payload);
    assert_eq!(sums(&scratch).1, [32, 8, 4, 12]);
}

/// What a transcript may be instead of one.
#[cfg(unix)]
#[test]
fn a_transcript_that_is_none_costs_nothing() {
    let scratch = Scratch::new().unwrap();
    let good = r#"{"timestamp":"2026-11-18T00:00:00Z","message":{"id":"m1","model":"m","usage":{"input_tokens":7,"output_tokens":1}}}"#;
    let file = |name: &str| scratch.root().join(name);
    let pipe = file("pipe.jsonl");
    let made = std::process::Command::new("mkfifo")
        .arg(&pipe)
        .status()
        .unwrap();
    assert!(made.success());
    std::os::unix::fs::symlink("/dev/zero", file("zero.jsonl")).unwrap();
    std::fs::create_dir(file("folder.jsonl")).unwrap();
    let long = "x".repeat(9 * 1024 * 1024);
    let odd = [
        r#"{"message":{"id":"n1","model":"m","usage":{"input_tokens":-5,"output_tokens":1}}}"#,
        r#"{"message":{"id":"n2","model":"m","usage":{"input_tokens":1e400,"output_tokens":1}}}"#,
        r#"{"message":{"id":"n3","model":"m","usage":{"input_tokens":"NaN"}}}"#,
        r#"{"message":{"id":"n4","model":"m","usage":[]}}"#,
        &format!("{{\"usage\":\"{long}\"}}"),
        &"[".repeat(100_000),
        "\"usage\" \u{0}\u{fffd}",
        good,
    ];
    std::fs::write(file("odd.jsonl"), odd.join("\n") + "\n").unwrap();
    for name in ["pipe", "zero", "folder", "missing", "odd"] {
        let payload = json!({
            "session_id": name, "hook_event_name": "Stop", "cwd": scratch.project(),
            "transcript_path": file(&format!("{name}.jsonl")), "permission_mode": "default",
            "stop_hook_active": false,
        });
        record(&scratch, "claude-code", &payload);
    }
    let (usage, sums) = sums(&scratch);
    assert_eq!(sums, [7, 0, 0, 1], "{usage:#}");
    assert_eq!(usage["cost_usd"], Value::Null);
    assert_eq!(usage["unpriced_calls"], 1);
}

#[test]
fn huge_counts_neither_overflow_nor_become_free() {
    let scratch = Scratch::new().unwrap();
    let transcript = scratch.root().join("huge.jsonl");
    let line = |id: u8| {
        format!(
            r#"{{"timestamp":"2026-11-18T00:00:00Z","message":{{"id":"{id}","model":"claude-sonnet-4-5","usage":{{"input_tokens":{0},"output_tokens":{0},"cache_read_input_tokens":{0}}}}}}}"#,
            u64::MAX
        )
    };
    std::fs::write(&transcript, line(1) + "\n" + &line(2) + "\n").unwrap();
    let payload = json!({
        "session_id": "s", "hook_event_name": "Stop", "cwd": scratch.project(),
        "transcript_path": transcript, "permission_mode": "default", "stop_hook_active": false,
    });
    record(&scratch, "claude-code", &payload);
    let (usage, sums) = sums(&scratch);
    assert_eq!(sums[0], u64::MAX, "{usage:#}");
    assert!(usage["cost_usd"].as_f64().unwrap() > 1e9, "{usage:#}");
}

/// One call of a model in a transcript of Claude Code.
fn call(id: usize, output: u64) -> String {
    let time = "2026-11-18T00:00:00Z";
    format!(
        r#"{{"timestamp":"{time}","message":{{"id":"m{id}","model":"claude-sonnet-4-5","usage":{{"input_tokens":1,"output_tokens":{output}}}}}}}"#
    ) + "\n"
}

fn stop(scratch: &Scratch, transcript: &std::path::Path) {
    let payload = json!({
        "session_id": "s", "hook_event_name": "Stop", "cwd": scratch.project(),
        "transcript_path": transcript, "permission_mode": "default", "stop_hook_active": false,
    });
    record(scratch, "claude-code", &payload);
}

#[test]
fn a_transcript_that_shrinks_or_is_replaced_is_counted_once() {
    let scratch = Scratch::new().unwrap();
    let path = scratch.root().join("t.jsonl");
    // Each of the parts of a call counts what all of them have until then.
    let calls = |range: std::ops::Range<usize>| -> String {
        range.map(|id| call(id, 3) + &call(id, 10)).collect()
    };
    let write = |text: String| {
        std::fs::write(&path, text).unwrap();
        stop(&scratch, &path);
        sums(&scratch).1
    };
    assert_eq!(write(calls(0..30)), [30, 0, 0, 300]);
    // Shorter, without the calls that a user has taken back.
    assert_eq!(write(calls(0..20)), [30, 0, 0, 300]);
    assert_eq!(write(calls(0..20) + &calls(40..41)), [31, 0, 0, 310]);
    // Another file that is longer: it may not be read from its middle.
    let longer = calls(40..41) + &calls(0..20) + &calls(50..75);
    assert_eq!(write(longer), [56, 0, 0, 560]);
    // As long as before.
    assert_eq!(write(calls(10..11) + &calls(80..125)), [101, 0, 0, 1010]);
}

#[test]
fn a_line_without_an_end_is_not_read_again_and_again() {
    let scratch = Scratch::new().unwrap();
    let path = scratch.root().join("t.jsonl");
    let endless = format!("{}{}", call(1, 10), "x".repeat(20 * 1024 * 1024));
    std::fs::write(&path, &endless).unwrap();
    stop(&scratch, &path);
    assert_eq!(sums(&scratch).1, [1, 0, 0, 10]);
    let state = scratch.state().join("usage/collector.json");
    let state: Value = serde_json::from_str(&std::fs::read_to_string(state).unwrap()).unwrap();
    let position = &state["transcripts"][path.to_str().unwrap()]["position"];
    assert_eq!(position["bytes"], endless.len());
    // What is left of the long line is no line of its own.
    std::fs::write(&path, endless + &call(2, 10) + &call(3, 10)).unwrap();
    stop(&scratch, &path);
    assert_eq!(sums(&scratch).1, [2, 0, 0, 20]);
}

#[test]
fn what_is_cached_for_an_hour_costs_more() {
    let scratch = Scratch::new().unwrap();
    let path = scratch.root().join("t.jsonl");
    let line = r#"{"timestamp":"2026-11-18T00:00:00Z","message":{"id":"m","model":"claude-sonnet-4-5","usage":{"input_tokens":0,"output_tokens":0,"cache_creation_input_tokens":3000000,"cache_creation":{"ephemeral_5m_input_tokens":1000000,"ephemeral_1h_input_tokens":2000000}}}}"#;
    std::fs::write(&path, format!("{line}\n")).unwrap();
    stop(&scratch, &path);
    let (usage, sums) = sums(&scratch);
    assert_eq!(sums, [3_000_000, 0, 3_000_000, 0]);
    let expected = 3.75 + 2.0 * 6.0;
    assert!(
        (usage["cost_usd"].as_f64().unwrap() - expected).abs() < 1e-9,
        "{usage:#}"
    );
}

/// A line of a transcript of Codex and an event of its app-server that tell of the same call:
/// the running total is its id.
fn codex_call(total: u64) -> (String, Value) {
    let counts = |input: &str, cached: &str, output: &str| json!({input: 8, cached: 3, output: 2});
    let line = json!({
        "timestamp": "2026-11-18T00:00:00Z", "type": "event_msg", "payload": {
            "type": "token_count", "model": "gpt-5-codex", "info": {
                "total_token_usage": {"total_tokens": total},
                "last_token_usage": counts("input_tokens", "cached_input_tokens", "output_tokens"),
            },
        },
    });
    let usage = json!({
        "total": {"totalTokens": total},
        "last": counts("inputTokens", "cachedInputTokens", "outputTokens"),
    });
    (line.to_string() + "\n", usage)
}

/// Writes an event as `anyhook codex` records it.
fn record_app_server(scratch: &Scratch, total: u64, transcript: Option<&std::path::Path>) {
    let id = format!("01970000-0000-7000-8000-{total:012}");
    let mut record = json!({
        "v": 1, "kind": "event", "id": id, "time": "2026-11-18T00:00:00Z", "agent": "codex",
        "event": {
            "event": "after_model", "source": "codex", "session_id": "t1",
            "native_event": "thread/tokenUsage/updated", "data": {"model": "gpt-5-codex"},
            "metadata": {"native": {"tokenUsage": codex_call(total).1}},
        },
        "response": {}, "hooks": [], "duration_ms": 1.0,
    });
    if let Some(path) = transcript {
        record["event"]["data"]["transcript_path"] = json!(path);
    }
    let folder = scratch.state().join("journal");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("events.jsonl");
    let mut text = std::fs::read_to_string(&path).unwrap_or_default();
    text += &(record.to_string() + "\n");
    std::fs::write(path, text).unwrap();
}

/// A hook of the same thread, which names the transcript.
fn codex_hook(scratch: &Scratch, transcript: &std::path::Path) {
    let mut payload = capture("codex", "Stop.json");
    payload["session_id"] = json!("t1");
    payload["transcript_path"] = json!(transcript);
    payload["cwd"] = json!(scratch.project());
    record(scratch, "codex", &payload);
}

/// The sums of this many calls of [`codex_call`].
fn codex_sums(calls: u64) -> [u64; 4] {
    [8, 3, 0, 2].map(|count| count * calls)
}

#[test]
fn a_call_in_a_transcript_and_an_event_of_the_app_server_counts_once() {
    let scratch = Scratch::new().unwrap();
    let transcript = scratch.root().join("rollout.jsonl");
    let write = |totals: &[u64]| {
        let lines = totals.iter().map(|total| codex_call(*total).0);
        std::fs::write(&transcript, lines.collect::<String>()).unwrap();
    };
    // Without a transcript the events count, those of a resumed thread once.
    for total in [10, 20, 20] {
        record_app_server(&scratch, total, Some(&transcript));
        sums(&scratch);
    }
    assert_eq!(sums(&scratch).1, codex_sums(2));
    // The transcript comes later, with the same calls and one more.
    write(&[10, 20, 30]);
    record_app_server(&scratch, 30, Some(&transcript));
    assert_eq!(sums(&scratch).1, codex_sums(3));
    // An event that names no transcript, of a thread whose transcript is known.
    write(&[10, 20, 30, 40]);
    record_app_server(&scratch, 40, None);
    assert_eq!(sums(&scratch).1, codex_sums(4));
    // The thread is archived, resumed, and its transcript is back.
    std::fs::remove_file(&transcript).unwrap();
    for total in [20, 40, 50] {
        record_app_server(&scratch, total, Some(&transcript));
        sums(&scratch);
    }
    assert_eq!(sums(&scratch).1, codex_sums(5));
    write(&[10, 20, 30, 40, 50, 60]);
    codex_hook(&scratch, &transcript);
    assert_eq!(sums(&scratch).1, codex_sums(6));
}

#[test]
fn a_transcript_that_only_a_hook_names_repeats_what_the_app_server_told() {
    let scratch = Scratch::new().unwrap();
    let transcript = scratch.root().join("rollout.jsonl");
    let calls = 10..=40_u64;
    for total in calls.clone() {
        record_app_server(&scratch, total, None);
    }
    assert_eq!(sums(&scratch).1, codex_sums(31));
    let lines = calls.chain([50]).map(|total| codex_call(total).0);
    std::fs::write(&transcript, lines.collect::<String>()).unwrap();
    codex_hook(&scratch, &transcript);
    assert_eq!(sums(&scratch).1, codex_sums(32));
}

#[test]
fn what_was_counted_outlives_a_broken_state() {
    let broken: &[(&str, &[u8])] = &[
        ("cut", b"{\"cursor\":{"),
        ("not text", &[0xff; 40]),
        ("another type", b"[]"),
        ("not a number", b"{\"totals\":{\"updated_us\":null}}"),
        ("empty", b""),
    ];
    for (name, text) in broken {
        let scratch = Scratch::new().unwrap();
        let kept = scratch.root().join("kept.jsonl");
        let gone = scratch.root().join("gone.jsonl");
        std::fs::write(&kept, call(1, 10) + &call(2, 10)).unwrap();
        std::fs::write(&gone, call(3, 10)).unwrap();
        stop(&scratch, &kept);
        stop(&scratch, &gone);
        for total in 10..=25 {
            record_app_server(&scratch, total, None);
        }
        let [input, cached, _, output] = codex_sums(16);
        let expected = |calls: u64| [input + calls, cached, 0, output + 10 * calls];
        assert_eq!(sums(&scratch).1, expected(3), "{name}");
        let state = scratch.state().join("usage/collector.json");
        std::fs::write(state, text).unwrap();
        // A killed process had begun a line.
        let calls = scratch.state().join("usage/calls-2026-11.jsonl");
        let mut ledger = std::fs::read(&calls).unwrap();
        ledger.extend(b"{\"id\":\"cu\xff");
        std::fs::write(&calls, ledger).unwrap();
        std::fs::remove_file(&gone).unwrap();
        assert_eq!(sums(&scratch).1, expected(3), "{name}");
        // And it goes on.
        std::fs::write(&kept, call(1, 10) + &call(2, 10) + &call(4, 10)).unwrap();
        stop(&scratch, &kept);
        assert_eq!(sums(&scratch).1, expected(4), "{name}");
    }
}

#[test]
fn a_journal_that_a_power_failure_made_shorter_is_counted_once() {
    let scratch = Scratch::new().unwrap();
    for total in 10..=25 {
        record_app_server(&scratch, total, None);
    }
    assert_eq!(sums(&scratch).1, codex_sums(16));
    let path = scratch.state().join("journal/events.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let kept: Vec<&str> = text.lines().take(12).collect();
    std::fs::write(&path, kept.join("\n") + "\n").unwrap();
    assert_eq!(sums(&scratch).1, codex_sums(16));
    record_app_server(&scratch, 30, None);
    assert_eq!(sums(&scratch).1, codex_sums(17));
}
