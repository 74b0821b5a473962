//! Guards that are for nothing, because a name in them is misspelt.

use std::path::PathBuf;

use anyhook_testkit::Scratch;
use serde_json::json;

use crate::locked::RUN;
use crate::support::{anyhook, is_denied, journal, payload};

/// A guard with one mistake, in this folder; what is said about it everywhere.
const MISTAKES: [(&str, &str, &str); 6] = [
    (
        "before_tool_exec",
        "shell",
        "unknown event `before_tool_exec`; did you mean `before_tool_execute`?",
    ),
    ("no_such_event", "shell", "unknown event `no_such_event`"),
    (
        "before_tool_execute",
        "shel",
        "unknown tool `shel`; did you mean `shell`?",
    ),
    (
        "before_tool_execute",
        "[file_write, Shell|Bash]",
        "unknown tool `Shell|Bash`",
    ),
    (
        "before_tool_execute",
        "[]",
        "an empty list as its matcher matches nothing",
    ),
    (
        "before_tool_execute",
        "shell\n    blocking: true\n    handler: {type: command, command: exit 2, async: true}\n  - name: other\n    event: session_end",
        "with `async` it cannot block",
    ),
];

fn place(scratch: &Scratch, folder: PathBuf, event: &str, matcher: &str) {
    scratch.file(".git/HEAD", "").unwrap();
    let manifest = format!(
        "spec: hooks/1.0\nhooks:\n  - name: guard\n    event: {event}\n    matcher: {matcher}\n    blocking: true\n    handler: {{type: command, command: exit 2}}\n"
    );
    scratch.file(folder.join("hooks.yaml"), &manifest).unwrap();
}

/// What Claude Code shows to the user about a call of this session.
fn told(scratch: &Scratch, session: &str) -> String {
    let mut payload = payload(scratch, "rm -rf /");
    payload["session_id"] = json!(session);
    let output = anyhook(scratch).run(RUN, &payload.to_string()).unwrap();
    assert!(!is_denied(&output), "it does guard: {output:?}");
    output.stdout
}

#[test]
fn a_guard_for_a_name_that_means_nothing_is_told() {
    type Folder = fn(&Scratch) -> PathBuf;
    let project: Folder = |scratch| scratch.project().join(".anyhook");
    let folders: [(&str, Folder); 3] = [
        ("user", Scratch::config),
        ("project", project),
        ("managed", Scratch::managed),
    ];
    for (scope, folder) in folders {
        // Where the manifest lies makes no difference to what is a mistake.
        let mistakes = if scope == "user" { MISTAKES.len() } else { 1 };
        for (event, matcher, expected) in MISTAKES.into_iter().take(mistakes) {
            let scratch = Scratch::new().unwrap();
            let shown = format!("{scope}: {expected}");
            place(&scratch, folder(&scratch), event, matcher);
            if scope == "project" {
                assert!(!told(&scratch, "untrusted").contains(expected), "{shown}");
                anyhook(&scratch).run(["trust", "--yes"], "").unwrap();
            }
            // Once per session, whether the manifest is parsed or comes from the cache.
            for session in ["first", "second"] {
                let message = told(&scratch, session);
                let json_text = serde_json::to_string(expected).unwrap();
                assert!(
                    message.contains(json_text.trim_matches('"')),
                    "{shown}: {message}"
                );
                assert!(!told(&scratch, session).contains("unknown"), "{shown}");
            }
            let records = journal(&scratch);
            let last = records.last().unwrap().warnings.join("\n");
            assert!(last.contains(expected), "{shown}: {last}");
            let output = anyhook(&scratch).run(["doctor"], "").unwrap();
            assert_eq!(output.exit, Some(1), "{shown}: {output:?}");
            assert!(output.stdout.contains(expected), "{shown}: {output:?}");
            let output = anyhook(&scratch).run(["list"], "").unwrap();
            assert!(output.stdout.contains(expected), "{shown}: {output:?}");
            let output = anyhook(&scratch).run(["list", "--json"], "").unwrap();
            let listed = output.json().unwrap();
            assert_eq!(listed[0]["unknown_names"][0], json!(expected), "{shown}");
        }
    }
}

/// Names of a client, and of tools that anyhook cannot know, are no mistakes.
#[test]
fn a_name_that_some_agent_may_use_is_not_told() {
    for (event, matcher) in [
        ("PreToolUse", "Bash"),
        ("before_tool_execute", "[mcp__x__y, frobnicate, Write]"),
        ("before_tool_execute", "{pattern: \"^shel$\"}"),
        ("session_start", "startup"),
    ] {
        let scratch = Scratch::new().unwrap();
        place(&scratch, scratch.config(), event, matcher);
        let mut payload = payload(&scratch, "ls");
        payload["hook_event_name"] = json!("Stop");
        let output = anyhook(&scratch).run(RUN, &payload.to_string()).unwrap();
        assert!(!output.stdout.contains("unknown"), "{event}: {output:?}");
        let output = anyhook(&scratch).run(["list", "--json"], "").unwrap();
        assert!(
            !output.stdout.contains("unknown_names"),
            "{event}: {output:?}"
        );
    }
}

#[test]
fn a_guard_in_a_dialect_without_answers_is_reported() {
    let scratch = super::support::project();
    let manifest =
        super::support::MANIFEST.replace("./guard.sh}", "./guard.sh, dialect: openhook}");
    scratch.file(".anyhook/hooks.yaml", &manifest).unwrap();
    let output = super::support::anyhook(&scratch)
        .run(["validate"], "")
        .unwrap();
    let text = format!("{output:?}");
    assert!(text.contains("cannot-block"), "{text}");
}
