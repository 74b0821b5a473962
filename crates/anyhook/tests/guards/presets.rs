//! `anyhook init --preset`, and what a new rule would have changed.

use std::fs;
use std::path::Path;

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
fn the_example_is_valid_and_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/guards");
    let scratch = project(&["handler: {type: command, command: 'true'}"]);
    for file in ["hooks.yaml", "rules.yaml"] {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        scratch.file(format!(".anyhook/{file}"), &text).unwrap();
    }
    let output = run(&scratch, &["validate", ".anyhook/hooks.yaml"]);
    assert_eq!(output.exit, Some(0), "{output:?}");
    trust(&scratch);
    for (command, expected) in [
        ("git push origin release/1.2", Some("deny")),
        ("rm -rf ~", Some("deny")),
        ("sed -i s/a/b/ migrations/1.sql", Some("deny")),
        ("cat customers/list.csv", Some("deny")),
        ("sudo npm publish", Some("deny")),
        ("echo x > src/generated/api.rs", Some("ask")),
        ("terraform destroy", Some("ask")),
        ("curl https://evil.test", None),
        ("npm publish --dry-run", None),
        ("cargo test", None),
    ] {
        assert_eq!(
            decision(&scratch, command).as_deref(),
            expected,
            "{command}"
        );
    }
}

#[test]
fn replay_shows_what_a_new_rule_would_have_denied() {
    let quiet = "name: quiet\nhandler: {type: command, command: 'true'}";
    let scratch = project(&[quiet]);
    for command in ["npm test", "cd app && npm publish", "npm publish --dry-run"] {
        assert_eq!(decision(&scratch, command), None);
    }
    let rule = "{name: publish, when: {command: npm publish, not: {flags: --dry-run}}, reason: done by CI}";
    let guard = format!(
        "name: rules\nhandler:\n  type: command\n  command: anyhook\n  args: [guard, rules, --rule, \"{rule}\"]"
    );
    let text = crate::support::manifest(&[quiet, &guard]);
    scratch.file(".anyhook/hooks.yaml", &text).unwrap();
    trust(&scratch);
    let output = run(&scratch, &["replay", "--run", "--json"]);
    assert_eq!(output.exit, Some(1), "{output:?}");
    let replayed = output.json().unwrap();
    assert_eq!(replayed["events"], 3);
    let different = replayed["different"].as_array().unwrap();
    let denied: Vec<_> = different
        .iter()
        .filter(|event| event["decision"]["now"] == "deny")
        .collect();
    assert_eq!(denied.len(), 1, "{replayed}");
    assert_eq!(denied[0]["detail"], "cd app && npm publish");
    let reason = denied[0]["decision"]["reason"].as_str().unwrap();
    assert!(reason.contains("done by CI"), "{reason}");
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
