//! Sessions for one check each: a blocked prompt, a converted config, an uninstalled bridge.

use super::{
    Kept, Proof, anyhook_unreachable, create_file, file_exists, file_missing, report_kept,
    say_done, text_reached_model,
};
use crate::bridge;
use crate::error::Result;
use crate::expect::CheckResult;
use crate::report::{Check, Verdict};
use crate::scenario::Scenario;
use crate::session::Outcome;
use std::cell::{Cell, RefCell};

const PROMPT: &str = "PROMPT-BLOCKED do what there is to do.";

/// A guard that is converted to the client's own config.
pub(super) struct ConvertedGuard {
    project: &'static str,
    /// The arguments that say what is converted.
    input: &'static [&'static str],
    /// Names of the checks.
    denies: &'static str,
    gives_reason: &'static str,
}

pub(super) const CONVERTED_GUARDS: [ConvertedGuard; 2] = [
    ConvertedGuard {
        project: "native",
        input: &[".anyhook/hooks.yaml"],
        denies: "native deny",
        gives_reason: "native deny reason",
    },
    // Not at the path that some clients read as well.
    ConvertedGuard {
        project: "claude-guard",
        input: &["claude/settings.json", "--from", "claude-code"],
        denies: "converted Claude guard",
        gives_reason: "converted Claude guard's reason",
    },
];

impl Proof<'_> {
    pub(super) fn prompt_block(&self, kept: Kept<'_>) -> Result<Vec<Check>> {
        let outcome = self
            .session_with_bridge("prompt", "user")
            .prompt(PROMPT)
            .scenario(Scenario::new([create_file("asked.txt"), say_done()]))
            .run()?;
        report_kept(&outcome, "prompt", kept);
        let records = bridge::read_journal(&outcome)?;
        let finding = blocked(&outcome).and_then(|()| {
            let hook_called = records
                .iter()
                .any(|record| record.event.event == "before_prompt");
            let none = "the prompt did not reach the model, but no hook was called";
            hook_called.then_some(()).ok_or_else(|| none.to_owned())
        });
        let prints = [&outcome.stdout, &outcome.stderr]
            .iter()
            .any(|text| text.contains("REASON-PROMPT"));
        let told = prints
            .then_some(())
            .ok_or_else(|| "the client did not print the reason".to_owned());
        let findings = [("prompt block", finding), ("prompt block reason", told)];
        Ok(self.judge(&outcome, &records, findings))
    }

    /// A guard converted to the client's own config, without anyhook on the PATH.
    pub(super) fn converted(&self, guard: &ConvertedGuard, kept: Kept<'_>) -> Result<Vec<Check>> {
        let slug = self.client.slug();
        let warned = Cell::new(false);
        let outcome = self
            .session_without_anyhook(guard.project)
            .scenario(Scenario::new([
                create_file("allowed.txt"),
                create_file("denied.txt"),
                say_done(),
            ]))
            .prepare(|sandbox| {
                let mut words = vec!["convert"];
                words.extend(guard.input);
                words.extend(["--to", slug]);
                let home = sandbox.home.display().to_string();
                if self.client.setup.user_only {
                    // The config has other settings already.
                    words.extend(["-o", &home, "--merge"]);
                } else {
                    words.extend(["-o", "."]);
                }
                words.extend(["--json", "--allow-loss"]);
                let output = bridge::run_anyhook(sandbox, &words)?;
                warned.set(output.contains("\"critical\""));
                Ok(())
            })
            .prepare_path(self.program.folder())
            .run()?;
        report_kept(&outcome, guard.project, kept);
        let records = bridge::read_journal(&outcome)?;
        let denied = anyhook_unreachable(&outcome)
            .and_then(|()| file_exists(&outcome, "allowed.txt"))
            .and_then(|()| {
                if records.is_empty() {
                    file_missing(&outcome, "denied.txt")
                } else {
                    Err("anyhook was called".to_owned())
                }
            });
        let mut checks = self.judge(
            &outcome,
            &records,
            [
                (guard.denies, denied),
                (
                    guard.gives_reason,
                    text_reached_model(&outcome, "REASON-NATIVE"),
                ),
            ],
        );
        // `convert` must have reported a guard that does not hold as critical.
        for check in &mut checks {
            if check.name == guard.denies
                && matches!(check.verdict, Verdict::Cannot(_))
                && !warned.get()
            {
                check.verdict = Verdict::failed("`convert` did not warn that this does not deny");
            }
        }
        Ok(checks)
    }

    /// Installs and uninstalls: every file is as before, and a session runs without anyhook.
    pub(super) fn uninstall(&self, kept: Kept<'_>) -> Result<Vec<Check>> {
        let slug = self.client.slug();
        let args = &self.client.expect.install.args;
        let files: RefCell<CheckResult> = RefCell::new(Ok(()));
        let outcome = self
            .session("native")
            .scenario(Scenario::new([create_file("denied.txt"), say_done()]))
            .prepare(|sandbox| {
                let before = bridge::snapshot(sandbox)?;
                bridge::install(sandbox, slug, "user", args)?;
                let between = bridge::snapshot(sandbox)?;
                bridge::uninstall(sandbox, slug, "user")?;
                let after = bridge::snapshot(sandbox)?;
                let changed: Vec<String> = before
                    .keys()
                    .chain(after.keys())
                    .filter(|path| before.get(*path) != after.get(*path))
                    .map(|path| path.display().to_string())
                    .collect();
                *files.borrow_mut() = if between == before {
                    Err("the installation changed no file".to_owned())
                } else if changed.is_empty() {
                    Ok(())
                } else {
                    Err(format!("not as before: {}", changed.join(", ")))
                };
                Ok(())
            })
            .run()?;
        report_kept(&outcome, "uninstall", kept);
        let records = bridge::read_journal(&outcome)?;
        let free = file_exists(&outcome, "denied.txt").and_then(|()| {
            if records.is_empty() {
                Ok(())
            } else {
                Err(format!("the journal has {} records", records.len()))
            }
        });
        let findings = [
            ("uninstall: files", files.into_inner()),
            ("uninstall: session", free),
        ];
        Ok(self.judge(&outcome, &records, findings))
    }
}

/// No request to the model contained the prompt, and nothing ran.
fn blocked(outcome: &Outcome) -> CheckResult {
    file_missing(outcome, "asked.txt")?;
    match outcome.reached_model("PROMPT-BLOCKED") {
        None => Ok(()),
        Some(_) => Err("the prompt reached the model".to_owned()),
    }
}
