//! Payloads that strict readers refuse and agents act on all the same.

use serde_json::Value;

use crate::scratch::{DispatchOutput, DispatchScratch};

const CLAUDE: [&str; 2] = ["--agent", "claude-code"];

fn payload(scratch: &DispatchScratch, event: &str, input: &str) -> String {
    let cwd = Value::from(scratch.project().to_string_lossy());
    format!(
        r#"{{"hook_event_name":"{event}","session_id":"s","transcript_path":"/t","cwd":{cwd},"tool_name":"Bash","tool_use_id":"t","tool_input":{input}}}"#
    )
}

fn denies(output: &DispatchOutput) -> bool {
    output.exit == Some(2) || output.stdout.contains(r#""permissionDecision":"deny""#)
}

#[test]
fn an_odd_input_reaches_the_guard() {
    let deep = format!(
        r#"{{"command":"rm -rf /","x":{}{}}}"#,
        "[".repeat(20_000),
        "]".repeat(20_000)
    );
    let inputs = [
        r#"{"command":"rm -rf /","description":"\ud800"}"#,
        r#"{"command":"rm -rf / \udc00"}"#,
        r#"{"command":"rm -rf /","timeout":1e400}"#,
        deep.as_str(),
    ];
    for input in inputs {
        let scratch = DispatchScratch::with_hook(
            "grep -q 'rm -rf' && { echo no >&2; exit 2; }",
            "blocking: true\nmatcher: shell",
        );
        let shown: String = input.chars().take(60).collect();
        let output = scratch.run_as(&CLAUDE, payload(&scratch, "PreToolUse", input).as_bytes());
        assert!(denies(&output), "{shown}: {output:?}");
        let canonical = format!(
            r#"{{"event":"before_tool_execute","source":"x","cwd":{},"data":{{"tool_name":"shell","tool_input":{input}}}}}"#,
            Value::from(scratch.project().to_string_lossy())
        );
        assert!(
            scratch.run_bytes(canonical.as_bytes()).is_deny(),
            "canonical {shown}"
        );
        // Readers of the record are strict.
        assert_eq!(scratch.journal().len(), 2, "{shown}");
    }
}

#[test]
fn what_cannot_be_read_is_refused_where_the_policy_wants_it() {
    let cut = |event: &str| {
        let scratch = DispatchScratch::new();
        let mut text = payload(&scratch, event, "{}");
        text.truncate(text.len() - 3);
        text
    };
    let nameless = r#"{"session_id":"s","tool_name":"#.to_owned();
    let cases: [(&[&str], String, bool); 7] = [
        (&["--agent", "claude-code"], cut("PreToolUse"), true),
        (&["--agent", "claude-code"], cut("PostToolUse"), false),
        (&["--agent", "claude-code"], nameless.clone(), true),
        (
            &["--agent", "claude-code", "--event", "PreToolUse"],
            nameless.clone(),
            true,
        ),
        (
            &["--agent", "claude-code", "--event", "Stop"],
            nameless.clone(),
            false,
        ),
        (
            &["--agent", "cursor", "--event", "beforeShellExecution"],
            nameless.clone(),
            true,
        ),
        (&["--event", "PreToolUse"], nameless, true),
    ];
    for (arguments, text, refused) in cases {
        let scratch = DispatchScratch::new();
        let open = scratch.run_as(arguments, text.as_bytes());
        assert!(!denies(&open), "{arguments:?} {text}: {open:?}");
        scratch.write("managed/policy.json", r#"{"fail_closed": true}"#);
        let output = scratch.run_as(arguments, text.as_bytes());
        let is_refused = denies(&output) || output.stdout.contains(r#""permission":"deny""#);
        assert_eq!(is_refused, refused, "{arguments:?} {text}: {output:?}");
    }
}

#[test]
fn every_agent_takes_the_refusal_of_an_unknown_event_for_one() {
    for slug in anyhook_agents::slugs() {
        let adapter = anyhook_agents::get(slug).unwrap();
        let mut events = adapter.spec.events.iter();
        let before = events.find(|event| event.is.as_deref() == Some("before_tool_execute"));
        let Some(before) = before.filter(|_| !adapter.spec.pseudo) else {
            continue;
        };
        let scratch = DispatchScratch::new();
        scratch.write("managed/policy.json", r#"{"fail_closed": true}"#);
        let output = scratch.run_as(&["--agent", slug], b"{");
        let event = anyhook_model::HookEvent {
            event: "before_tool_execute".to_owned(),
            source: slug.to_owned(),
            native_event: before.native.to_string(),
            ..Default::default()
        };
        let exit = output.exit.unwrap();
        let read =
            adapter.decode_answer(&event, &before.native, &output.stdout, &output.stderr, exit);
        assert!(read.response.is_deny(), "{slug}: {output:?}");
    }
}
