//! `if:` on any hook: the dispatcher asks before the hook starts.

use crate::support::{decision, journal, project, run, trust};

fn hook(condition: &str, more: &str) -> String {
    format!("name: only\n{more}if: {condition}\nhandler: {{type: command, command: ./no.sh}}")
}

#[test]
fn a_hook_runs_only_where_its_condition_holds() {
    for (condition, command, runs) in [
        ("{command: git push}", "git push origin main", true),
        ("{command: git push}", "cd x && sudo git push", true),
        ("{command: git push}", "git status", false),
        ("{command: git push}", "echo git push", false),
        ("{tool: file_read}", "git push", false),
        ("{tool: shell}", "git push", true),
    ] {
        let scratch = project(&[&hook(condition, "")]);
        scratch
            .exec("no.sh", "#!/bin/sh\n: > ran\nexit 2\n")
            .unwrap();
        trust(&scratch);
        let denied = decision(&scratch, command).is_some();
        assert_eq!(denied, runs, "{condition}: {command}");
        assert_eq!(
            scratch.project().join("ran").exists(),
            runs,
            "{condition}: {command}"
        );
        assert_eq!(journal(&scratch)[0].hooks.len(), usize::from(runs));
        let explained = run(&scratch, &["explain", "--json", "--command", command]);
        let hook = &explained.json().unwrap()["hooks"][0];
        assert_eq!(hook["matches"], runs, "{hook}");
        if !runs {
            assert!(hook["why"].as_str().unwrap().contains("`if`"), "{hook}");
        }
    }
}

#[test]
fn a_condition_that_cannot_be_used_is_a_failure_and_an_error() {
    for (on_failure, expected) in [("allow", None), ("block", Some("deny"))] {
        let text = hook("{comand: git push}", &format!("on_failure: {on_failure}\n"));
        let scratch = project(&[&text]);
        scratch.exec("no.sh", "#!/bin/sh\nexit 2\n").unwrap();
        trust(&scratch);
        assert_eq!(decision(&scratch, "ls").as_deref(), expected);
        let record = journal(&scratch).remove(0);
        assert!(
            record.warnings.join("\n").contains("`if`"),
            "{:?}",
            record.warnings
        );
        let output = run(&scratch, &["validate", ".anyhook/hooks.yaml"]);
        assert_eq!(output.exit, Some(1), "{output:?}");
        assert!(output.stdout.contains("bad-condition"), "{output:?}");
        assert!(output.stdout.contains("hooks.yaml:7:"), "{output:?}");
    }
}

#[test]
fn a_conversion_says_that_a_condition_is_lost() {
    let scratch = project(&[&hook("{command: git push}", "mode: observe\n")]);
    let output = run(
        &scratch,
        &[
            "convert",
            ".anyhook/hooks.yaml",
            "--to",
            "claude-code",
            "--json",
        ],
    );
    let text = format!("{}{}", output.stdout, output.stderr);
    for part in ["the hook runs for every call", "answers have an effect"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
