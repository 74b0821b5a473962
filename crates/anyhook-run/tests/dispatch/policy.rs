//! Who may switch hooks off, and what happens when a guard is lost.

use std::os::unix::fs::PermissionsExt;

use anyhook_model::RunOutcome;

use crate::scratch::{DispatchScratch, hook, manifest};
use crate::trust::{consent_to, consent_to_file};

const BEFORE: &str = "before_tool_execute";
const DENIES: &str = "sh ./guard.sh";
const OFF: &str = r#"{"disable_all_hooks": true}"#;

/// A project whose guard denies, with the user's consent.
fn guarded() -> DispatchScratch {
    let mut scratch = DispatchScratch::with_hook(DENIES, "blocking: true");
    scratch.env.clear();
    scratch.write("project/guard.sh", "echo no >&2; exit 2");
    consent_to(&scratch, &scratch.project());
    scratch
}

#[test]
fn an_untrusted_policy_switches_nothing_off() {
    let scratch = guarded();
    assert!(scratch.call().is_deny());
    scratch.write("project/.anyhook/policy.json", OFF);
    let output = scratch.call();
    assert!(output.is_deny(), "{output:?}");
    assert!(
        output.message().contains("policy.json` is not used"),
        "{output:?}"
    );

    consent_to(&scratch, &scratch.project());
    let output = scratch.call();
    assert!(!output.is_deny(), "{output:?}");
    assert!(
        output.message().contains("hook `guard`, which may block"),
        "{output:?}"
    );
    let journal = scratch.journal();
    let run = &journal.last().unwrap().hooks[0];
    assert_eq!(run.outcome, RunOutcome::Refused);

    scratch.write(
        "project/.anyhook/policy.json",
        "{\"disable_all_hooks\": true }",
    );
    assert!(scratch.call().is_deny(), "it is another policy now");
}

#[test]
fn a_nested_policy_rules_over_its_own_folder() {
    let scratch = guarded();
    scratch.write("project/sub/.anyhook/policy.json", OFF);
    let own = hook("own", BEFORE, "touch ran", "");
    scratch.write("project/sub/.anyhook/hooks.yaml", &manifest(&own));
    let sub = scratch.project().join("sub");
    consent_to(&scratch, &sub);
    let mut event = scratch.event(BEFORE);
    event["cwd"] = sub.to_string_lossy().into();
    assert!(scratch.run(&event).is_deny());
    assert!(!scratch.exists("project/sub/ran"), "its own hooks are off");
}

#[test]
fn a_lost_guard_blocks_where_the_policy_is_fail_closed() {
    type Loss = fn(&DispatchScratch);
    let losses: [(&str, Loss, bool); 8] = [
        ("nothing", |_| {}, false),
        (
            "the script has changed",
            |scratch| {
                scratch.write("project/guard.sh", "exit 0 # for all");
            },
            true,
        ),
        (
            "the manifest has changed",
            |scratch| {
                scratch.manifest(&hook("guard", BEFORE, "true", ""));
            },
            true,
        ),
        (
            "the manifest is gone",
            |scratch| {
                std::fs::remove_file(scratch.project().join(".anyhook/hooks.yaml")).unwrap();
            },
            true,
        ),
        (
            "the whole folder is gone",
            |scratch| {
                std::fs::remove_dir_all(scratch.project().join(".anyhook")).unwrap();
            },
            true,
        ),
        (
            "the user's manifest is everybody's",
            |scratch| {
                let path = scratch.write(
                    "config/hooks.yaml",
                    &manifest(&hook("x", BEFORE, "true", "")),
                );
                std::fs::set_permissions(path, PermissionsExt::from_mode(0o666)).unwrap();
            },
            true,
        ),
        (
            "another project's manifest was never trusted",
            |scratch| {
                let text = manifest(&hook("x", BEFORE, "true", "blocking: true"));
                scratch.write("project/sub/.anyhook/hooks.yaml", &text);
            },
            false,
        ),
        (
            "another project's manifest is gone",
            |scratch| {
                let text = manifest(&hook("x", BEFORE, "true", ""));
                scratch.write("other/.anyhook/hooks.yaml", &text);
                consent_to(scratch, &scratch.base.join("other"));
                std::fs::remove_dir_all(scratch.base.join("other")).unwrap();
            },
            false,
        ),
    ];
    for (name, lose, blocks) in losses {
        let scratch = guarded();
        scratch.write("project/guard.sh", "exit 0");
        consent_to(&scratch, &scratch.project());
        lose(&scratch);
        let mut event = scratch.event(BEFORE);
        std::fs::create_dir_all(scratch.project().join("sub")).unwrap();
        event["cwd"] = scratch.project().join("sub").to_string_lossy().into();
        assert!(!scratch.run(&event).is_deny(), "{name}: no policy");
        scratch.write("managed/policy.json", r#"{"fail_closed": true}"#);
        let output = scratch.run(&event);
        assert_eq!(output.is_deny(), blocks, "{name}: {output:?}");
        event["event"] = "after_tool_execute".into();
        assert!(
            !scratch.run(&event).is_deny(),
            "{name}: nothing can be prevented there"
        );
    }
}

#[test]
fn a_new_file_that_takes_precedence_over_the_guard() {
    let scratch = guarded();
    let folder = scratch.project().join(".anyhook");
    let text = std::fs::read_to_string(folder.join("hooks.yaml")).unwrap();
    scratch.write("managed/policy.json", r#"{"fail_closed": true}"#);
    scratch.write("project/.anyhook/hooks.yml", &text);
    assert_eq!(scratch.call().response()["reason"], "no", "it comes after");

    let mut scratch = DispatchScratch::new();
    scratch.env.clear();
    let harmless = manifest(&hook("x", BEFORE, "true", ""));
    scratch.write("project/.anyhook/hooks.yaml", &harmless);
    consent_to(&scratch, &scratch.project());
    scratch.write("project/.anyhook/hooks.yml", &harmless);
    consent_to_file(&scratch, &scratch.project().join(".anyhook/hooks.yml"));
    let output = scratch.call();
    assert!(!output.is_deny());
    assert!(output.message().contains("takes precedence"), "{output:?}");
    scratch.write("managed/policy.json", r#"{"fail_closed": true}"#);
    let output = scratch.call();
    assert!(output.is_deny(), "{output:?}");
}
