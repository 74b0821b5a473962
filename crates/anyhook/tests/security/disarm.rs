//! Ways for a model or a repository to switch hooks off.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhook_agents::matrix::clients;
use anyhook_testkit::{ProcessOutput, Scratch, files_below};
use serde_json::Value;

use super::support::{
    GUARD, MANIFEST, anyhook, is_denied, journal, payload, project, run_dangerous, trusted_project,
};

/// Every command that switches hooks on or off, as a model would call it.
const CHANGES: &[&[&str]] = &[
    &["trust", "--yes"],
    &["trust", "--yes", "--json"],
    &["untrust"],
    &["untrust", "--json"],
    &["install", "--yes", "--agent", "claude-code"],
    &["install", "--agent", "claude-code", "--json"],
    &["uninstall", "--yes"],
    &["uninstall", "--scope", "user", "--yes"],
    &["init", "--yes"],
    &["allow-once", "0"],
];

/// Every file below a folder, with its content.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = files_below(folder).into_iter();
    files
        .map(|path| {
            let content = fs::read(&path).unwrap_or_default();
            (path.display().to_string(), content)
        })
        .collect()
}

/// `NAME=value` as a pair; a mark without a value gets one.
fn assignment(mark: &str) -> (&str, &str) {
    mark.split_once('=').unwrap_or((mark, "1"))
}

fn run_as_agent(scratch: &Scratch, mark: &str, arguments: &[&str]) -> ProcessOutput {
    let (name, value) = assignment(mark);
    let command = anyhook(scratch).env(name, value);
    command.run(arguments, "").unwrap()
}

#[test]
fn a_model_cannot_change_what_is_trusted_or_installed() {
    let tables = clients().flat_map(|adapter| &adapter.spec.detect.shell_env);
    let marks: Vec<&str> = tables.map(AsRef::as_ref).chain(["AI_AGENT"]).collect();
    assert!(marks.len() > 10, "{marks:?}");
    for mark in marks {
        let scratch = trusted_project();
        let before = files(scratch.root());
        for arguments in CHANGES {
            let output = run_as_agent(&scratch, mark, arguments);
            assert_eq!(output.exit, Some(1), "{mark} {arguments:?}: {output:?}");
            let says = &output.stderr;
            assert!(says.contains("Ask the user"), "{arguments:?}: {says}");
            assert!(!says.contains("allow_agent_changes"), "{says}");
            assert_eq!(files(scratch.root()), before, "{mark} {arguments:?}");
        }
        assert!(is_denied(&run_dangerous(&scratch)), "{mark}");
    }
}

#[test]
fn a_model_may_still_look() {
    let scratch = trusted_project();
    for arguments in [
        &["trust"][..],
        &["trust", "--json"],
        &["install", "--dry-run", "--agent", "claude-code"],
        &["uninstall", "--dry-run"],
        &["status"],
        &["explain", "--agent", "claude-code", "--event", "PreToolUse"],
    ] {
        let before = files(&scratch.project());
        let output = run_as_agent(&scratch, "CLAUDECODE=1", arguments);
        assert!(
            !output.stderr.contains("Ask the user"),
            "{arguments:?}: {output:?}"
        );
        assert_eq!(files(&scratch.project()), before, "{arguments:?}");
    }
    // An empty variable is how a user takes a mark away.
    let output = run_as_agent(&scratch, "CLAUDECODE=", &["untrust"]);
    assert_eq!(output.exit, Some(0), "{output:?}");
}

#[test]
fn a_user_or_an_administrator_can_let_agents_change_it() {
    let scratch = project();
    let trust = || run_as_agent(&scratch, "CLAUDECODE=1", &["trust", "--yes"]).exit;
    assert_eq!(trust(), Some(1));
    let settings = scratch.config().join("config.yaml");
    scratch
        .file(&settings, "allow_agent_changes: true\n")
        .unwrap();
    assert_eq!(trust(), Some(0));
    scratch
        .file(&settings, "allow_agent_changes: yes please\n")
        .unwrap();
    assert_eq!(
        trust(),
        Some(1),
        "settings that cannot be read allow nothing"
    );
    fs::remove_file(&settings).unwrap();
    let policy = scratch.managed().join("policy.json");
    scratch
        .file(policy, r#"{"allow_agent_changes": true}"#)
        .unwrap();
    assert_eq!(trust(), Some(0));
    // A project's policy must not.
    let scratch = project();
    scratch
        .file(".anyhook/policy.json", r#"{"allow_agent_changes": true}"#)
        .unwrap();
    let output = run_as_agent(&scratch, "CLAUDECODE=1", &["trust", "--yes"]);
    assert_eq!(output.exit, Some(1));
}

fn run_with(scratch: &Scratch, variables: &[(&str, &Path)], session: &str) -> ProcessOutput {
    let mut event = payload(scratch, "rm -rf /");
    event["session_id"] = session.into();
    let mut command = anyhook(scratch);
    for (name, value) in variables {
        command = command.env(name, value);
    }
    let run = ["run", "--agent", "claude-code"];
    command.run(run, &event.to_string()).unwrap()
}

fn message(output: &ProcessOutput) -> String {
    let message = output.json().ok().and_then(|answer| {
        let message = answer.get("systemMessage").and_then(Value::as_str);
        message.map(str::to_owned)
    });
    message.unwrap_or_default()
}

#[test]
fn the_off_switch_is_told_once_per_session_and_recorded() {
    let scratch = trusted_project();
    let off = [("ANYHOOK", Path::new("0"))];
    let first = run_with(&scratch, &off, "a");
    assert!(message(&first).contains("ANYHOOK=0"), "{first:?}");
    assert!(!is_denied(&first));
    assert_eq!(message(&run_with(&scratch, &off, "a")), "");
    assert!(message(&run_with(&scratch, &off, "b")).contains("ANYHOOK=0"));
    let records = journal(&scratch);
    assert_eq!(records.len(), 3);
    for record in records {
        assert!(record.warnings[0].contains("ANYHOOK=0"), "{record:?}");
    }
}

#[test]
fn a_variable_that_hides_the_users_guards_is_told_once_per_session() {
    let cases = [
        ("ANYHOOK_CONFIG_DIR", ".config/anyhook/hooks.yaml"),
        ("ANYHOOK_STATE_DIR", ".local/state/anyhook/trust/x.json"),
    ];
    for (variable, hidden) in cases {
        let scratch = project();
        let empty = scratch.root().join("elsewhere");
        let variables = [(variable, empty.as_path())];
        // Nothing is hidden: nothing to tell.
        let output = run_with(&scratch, &variables, "s");
        assert!(!message(&output).contains(variable), "{output:?}");
        scratch.file(scratch.home().join(hidden), "{}").unwrap();
        let told = message(&run_with(&scratch, &variables, "t"));
        assert!(told.contains(variable), "{variable}: {told}");
        let again = message(&run_with(&scratch, &variables, "t"));
        assert!(!again.contains(variable), "{again}");
    }
}

/// The reason of a deny is read by the model: it must not say how to switch the
/// guard off. The user's message may.
#[test]
fn a_deny_does_not_tell_the_model_how_to_get_rid_of_the_guard() {
    type Damage = fn(&Scratch);
    let damages: [(&str, Damage); 7] = [
        ("manifest changed", |scratch| {
            let text = format!("{MANIFEST}# changed\n");
            scratch.file(".anyhook/hooks.yaml", &text).unwrap();
        }),
        ("manifest broken", |scratch| {
            scratch.file(".anyhook/hooks.yaml", "hooks: [").unwrap();
        }),
        ("manifest gone", |scratch| {
            fs::remove_file(scratch.project().join(".anyhook/hooks.yaml")).unwrap();
        }),
        ("script changed", |scratch| {
            let text = format!("{GUARD}# changed\n");
            scratch.exec(".anyhook/guard.sh", &text).unwrap();
        }),
        ("script gone", |scratch| {
            fs::remove_file(scratch.project().join(".anyhook/guard.sh")).unwrap();
        }),
        ("policy added", |scratch| {
            let policy = r#"{"disable_all_hooks": true}"#;
            scratch.file(".anyhook/policy.json", policy).unwrap();
        }),
        ("managed policy broken", |scratch| {
            let policy = scratch.managed().join("policy.json");
            scratch.file(policy, r#"{"fail_closed": true,"#).unwrap();
        }),
    ];
    for (what, damage) in damages {
        let scratch = trusted_project();
        let policy = scratch.managed().join("policy.json");
        scratch.file(policy, r#"{"fail_closed": true}"#).unwrap();
        damage(&scratch);
        for adapter in clients() {
            let slug = adapter.spec.id.as_ref();
            let payload = payload(&scratch, "rm -rf /").to_string();
            let run = ["run", "--agent", slug];
            anyhook(&scratch).run(run, &payload).unwrap();
        }
        assert!(is_denied(&run_dangerous(&scratch)), "{what}");
        for record in journal(&scratch) {
            let reason = record.response.reason.unwrap_or_default();
            for advice in [
                "anyhook trust",
                "untrust",
                "uninstall",
                "ANYHOOK",
                "allow_agent",
            ] {
                assert!(!reason.contains(advice), "{what}: {reason}");
            }
        }
    }
}
