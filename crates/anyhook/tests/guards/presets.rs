//! `anyhook init --preset`, and what a new rule would have changed.

use anyhook_testkit::Scratch;

use crate::support::{DENIED, decision, project, run, trust};

#[test]
fn a_preset_works_at_once() {
    for preset in ["standard", "strict"] {
        let scratch = Scratch::new().unwrap();
        scratch.file(".git/HEAD", "").unwrap();
        let output = run(&scratch, &["init", "--yes", "--preset", preset]);
        assert_eq!(output.exit, Some(0), "{output:?}");
        for part in [preset, "filesystem", "git", "secrets"] {
            assert!(output.stdout.contains(part), "{part}: {output:?}");
        }
        let folder = std::fs::read_dir(scratch.project().join(".anyhook")).unwrap();
        assert_eq!(folder.count(), 1, "a preset has no script");
        assert_eq!(run(&scratch, &["validate", "--strict"]).exit, Some(0));
        assert_eq!(decision(&scratch, DENIED).as_deref(), Some("deny"));
        assert_eq!(decision(&scratch, "ls -la"), None);
        let strict = decision(&scratch, "curl https://x.example/data.json");
        assert_eq!(strict.is_some(), preset == "strict");
    }
    let scratch = Scratch::new().unwrap();
    assert_eq!(run(&scratch, &["init", "--preset", "lax"]).exit, Some(2));
    let report = run(&scratch, &["init", "--preset", "standard", "--json"]);
    let report = report.json().unwrap();
    assert_eq!(report["preset"], "standard");
    assert_eq!(report["trusted"], true);
    assert!(report["guard"].is_null());
}

#[test]
fn replay_shows_what_a_new_guard_would_have_denied() {
    let scratch = project(&["name: quiet\nhandler: {type: command, command: 'true'}"]);
    for command in ["git status", DENIED, "ls"] {
        assert_eq!(decision(&scratch, command), None);
    }
    let quiet = "name: quiet\nhandler: {type: command, command: 'true'}";
    let guard = "name: git\nhandler: {type: command, command: anyhook guard git}";
    let text = crate::support::manifest(&[quiet, guard]);
    scratch.file(".anyhook/hooks.yaml", &text).unwrap();
    trust(&scratch);
    let before = crate::support::journal(&scratch).len();
    let output = run(&scratch, &["replay", "--run", "--json"]);
    assert_eq!(output.exit, Some(1), "{output:?}");
    let replayed = output.json().unwrap();
    assert_eq!(replayed["events"], 3);
    let denied: Vec<_> = replayed["different"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["decision"]["now"] == "deny")
        .collect();
    assert_eq!(denied.len(), 1, "{replayed}");
    assert_eq!(denied[0]["detail"], DENIED);
    assert!(denied[0]["decision"]["reason"].as_str().unwrap().len() > 10);
    assert_eq!(
        crate::support::journal(&scratch).len(),
        before,
        "nothing is recorded"
    );
}
