//! Approval of guards: a manifest without files needs its own approval only, and a
//! rules file is covered like a script.

use std::fs;

use crate::support::{anyhook, decision, journal, project, run};

const RULES: &str = "rules:\n  - name: no-make\n    when: {command: make}\n    decision: deny\n    reason: no make here\n";

#[test]
fn a_guard_without_files_needs_the_approval_of_its_manifest() {
    let scratch = project(&["handler: {type: command, command: anyhook guard git}"]);
    let listing = run(&scratch, &["trust"]).stdout;
    assert!(listing.contains("anyhook guard git"), "{listing}");
    assert!(
        !listing.contains("WARNING") && !listing.contains("file "),
        "{listing}"
    );
    assert_eq!(
        decision(&scratch, "git reset --hard").as_deref(),
        Some("deny")
    );
    assert_eq!(run(&scratch, &["untrust"]).exit, Some(0));
    assert_eq!(decision(&scratch, "git reset --hard"), None);
}

/// Where the rules file is, as the command names it.
const PLACES: [(&str, &str); 4] = [
    ("rules.yaml", "rules.yaml"),
    (".anyhook/rules.yaml", ".anyhook/rules.yaml"),
    ("./rules.yaml", ".anyhook/rules.yaml"),
    ("./sub/../rules.yaml", "rules.yaml"),
];

#[test]
fn a_changed_rules_file_stops_the_guard() {
    for (named, path) in PLACES {
        for option in ["--file ", "--file="] {
            let hook = format!(
                "name: own\non_failure: block\nhandler: {{type: command, command: anyhook guard rules {option}{named}}}"
            );
            let scratch = project(&[&hook]);
            assert_eq!(
                decision(&scratch, "ls").as_deref(),
                Some("deny"),
                "{named}: it is missing"
            );
            scratch.file(path, RULES).unwrap();
            let told = decision(&scratch, "ls");
            assert_eq!(told.as_deref(), Some("deny"), "{named}: not approved yet");
            let trusted = anyhook(&scratch)
                .run(["trust", "--yes", "--json"], "")
                .unwrap();
            assert_eq!(trusted.exit, Some(0), "{trusted:?}");
            assert!(trusted.stdout.contains("rules.yaml\""), "{trusted:?}");
            assert_eq!(decision(&scratch, "ls"), None, "{named}");
            assert_eq!(
                decision(&scratch, "make all").as_deref(),
                Some("deny"),
                "{named}"
            );
            assert!(
                run(&scratch, &["validate", path])
                    .stdout
                    .contains("ok (rules")
            );
            let weaker = RULES.replace("make}", "cmake}");
            fs::write(scratch.project().join(path), weaker).unwrap();
            assert_eq!(
                decision(&scratch, "make all").as_deref(),
                Some("deny"),
                "{named}"
            );
            let last = journal(&scratch).pop().unwrap();
            assert!(
                last.warnings.join("\n").contains("changed"),
                "{:?}",
                last.warnings
            );
        }
    }
}

#[cfg(unix)]
#[test]
fn a_rules_file_that_others_can_write_does_not_count() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = project(&["handler: {type: command, command: 'true'}"]);
    let hook = "on_failure: block\nhandler: {type: command, command: anyhook guard rules --file rules.yaml}";
    let text = crate::support::manifest(&[hook]);
    scratch
        .file(scratch.config().join("hooks.yaml"), &text)
        .unwrap();
    let rules = scratch
        .file(scratch.config().join("rules.yaml"), RULES)
        .unwrap();
    assert_eq!(decision(&scratch, "make all").as_deref(), Some("deny"));
    assert_eq!(decision(&scratch, "ls"), None);
    fs::set_permissions(&rules, PermissionsExt::from_mode(0o666)).unwrap();
    assert_eq!(decision(&scratch, "ls").as_deref(), Some("deny"));
}

#[test]
fn a_mistake_in_a_rules_file_is_reported_with_its_position() {
    let hook = "handler: {type: command, command: anyhook guard rules --file rules.yaml}";
    let scratch = project(&[hook]);
    let wrong = "rules:\n  - name: no-make\n    when: {command: make}\n    decision: forbid\n";
    scratch.file("rules.yaml", wrong).unwrap();
    for file in [".anyhook/hooks.yaml", "rules.yaml"] {
        let output = run(&scratch, &["validate", file]);
        assert_eq!(output.exit, Some(1), "{file}: {output:?}");
        assert!(
            output.stdout.contains("`deny` or `ask`"),
            "{file}: {output:?}"
        );
    }
    let output = run(&scratch, &["validate", ".anyhook/hooks.yaml"]);
    assert!(output.stdout.contains("line 4"), "{output:?}");
}
