//! The session that most checks share, and the two extra ones for clients in which a deny ends the run.

use anyhook_model::Record;
use anyhook_model::record::RunOutcome;

use super::events;
use super::{
    Kept, Proof, create_file, file_exists, file_missing, report_kept, say_done, text_reached_model,
};
use crate::bridge;
use crate::error::Result;
use crate::expect::{CheckResult, Sabotage};
use crate::report::{Check, Verdict};
use crate::scenario::{Scenario, Step};
use crate::session::Outcome;

const SUBAGENT_PROMPT: &str = "PROMPT-SUBAGENT run the command";

impl Proof<'_> {
    pub(super) fn main_session(
        &self,
        sabotage: Option<&Sabotage>,
        kept: Kept<'_>,
    ) -> Result<Vec<Check>> {
        let expect = &self.client.expect;
        let altered = sabotage
            .and_then(|sabotage| sabotage.answer.as_ref())
            .map(|replacement| self.program.with_altered_answers(replacement))
            .transpose()?;
        let damage = sabotage.and_then(|sabotage| sabotage.installed.as_ref());
        let slug = self.client.slug();
        let scope = self.client.install_scope("project");
        let mut session = self
            .session("main")
            .without(&expect.install.instead_of)
            .scenario(self.scenario())
            .prepare(move |sandbox| {
                bridge::install(sandbox, slug, scope, &expect.install.args)?;
                damage.map_or(Ok(()), |damage| {
                    bridge::damage_installed_file(sandbox, damage)
                })
            });
        if let Some(altered) = &altered {
            session = session.path_first(altered.folder());
        }
        let outcome = session.run()?;
        report_kept(&outcome, "main", kept);
        let records = bridge::read_journal(&outcome)?;
        let mut checks = self.judge(
            &outcome,
            &records,
            [
                ("events", events::events(&records, &expect.events)),
                ("tools", events::tools(&records, &outcome, expect)),
                ("session id", events::session_id(&records, &outcome, expect)),
                ("rewrite", rewritten(&outcome)),
                (
                    "context: session start",
                    text_reached_model(&outcome, "CONTEXT-SESSION"),
                ),
                (
                    "context: prompt",
                    text_reached_model(&outcome, "CONTEXT-PROMPT"),
                ),
                (
                    "context: before tool",
                    text_reached_model(&outcome, "CONTEXT-BEFORE"),
                ),
                (
                    "context: after tool",
                    text_reached_model(&outcome, "CONTEXT-AFTER"),
                ),
                (
                    "stop retry",
                    text_reached_model(&outcome, "REASON-STOP")
                        .and_then(|()| file_exists(&outcome, "again.txt")),
                ),
                (
                    "hook hangs",
                    command_ran_despite(&outcome, &records, "hang", RunOutcome::Timeout),
                ),
                (
                    "hook crashes",
                    command_ran_despite(&outcome, &records, "crash", RunOutcome::Error),
                ),
                (
                    "hook prints garbage",
                    command_ran_despite(&outcome, &records, "garbage", RunOutcome::Error),
                ),
            ],
        );
        checks.push(Check::new(
            "OpenHook stream",
            events::openhook(&outcome, slug, &expect.openhook),
        ));
        // If a rewrite is lost, the original command must not run: a guard is never weakened.
        for check in &mut checks {
            if check.name == "rewrite"
                && matches!(check.verdict, Verdict::Cannot(_))
                && let Err(seen) = file_missing(&outcome, "original.txt")
            {
                check.verdict = Verdict::Failed(seen);
            }
        }
        if !expect.deny_ends_run {
            checks.extend(self.deny(&outcome, &records));
            checks.extend(self.claude_script(&outcome, &records));
        }
        Ok(checks)
    }

    fn scenario(&self) -> Scenario {
        let written = || "written.txt".to_owned();
        let mut steps = vec![create_file("allowed.txt")];
        if self.client.setup.tools.rows.contains_key("subagent") {
            steps.push(Step::Subagent {
                prompt: SUBAGENT_PROMPT.to_owned(),
            });
        }
        steps.extend([
            Step::Write {
                path: written(),
                content: "good morning\n".to_owned(),
            },
            Step::Read { path: written() },
            Step::Edit {
                path: written(),
                old: "good morning".to_owned(),
                new: "good evening".to_owned(),
            },
            create_file("original.txt"),
            create_file("probe.txt"),
            create_file("hang.txt"),
            create_file("crash.txt"),
            create_file("garbage.txt"),
            Step::Shell {
                command: "exit 3".to_owned(),
            },
        ]);
        if !self.client.expect.deny_ends_run {
            steps.extend([create_file("guarded.txt"), create_file("denied.txt")]);
        }
        // The steps after the first end are played only if the stop hook sends the agent back to work.
        steps.extend([say_done(), create_file("again.txt"), say_done()]);
        Scenario::new(steps).thread(SUBAGENT_PROMPT, [create_file("subagent.txt"), say_done()])
    }

    pub(super) fn deny_alone(&self, kept: Kept<'_>) -> Result<Vec<Check>> {
        let (outcome, records) = self.one_command("denied.txt", "deny", kept)?;
        Ok(self.deny(&outcome, &records))
    }

    pub(super) fn claude_script_alone(&self, kept: Kept<'_>) -> Result<Vec<Check>> {
        let (outcome, records) = self.one_command("guarded.txt", "claude-script", kept)?;
        Ok(self.claude_script(&outcome, &records))
    }

    fn one_command(
        &self,
        file: &str,
        name: &str,
        kept: Kept<'_>,
    ) -> Result<(Outcome, Vec<Record>)> {
        let outcome = self
            .session_with_bridge("main", "project")
            .scenario(Scenario::new([
                create_file("allowed.txt"),
                create_file(file),
                say_done(),
            ]))
            .run()?;
        report_kept(&outcome, name, kept);
        let records = bridge::read_journal(&outcome)?;
        Ok((outcome, records))
    }

    fn deny(&self, outcome: &Outcome, records: &[Record]) -> Vec<Check> {
        let findings = [
            (
                "deny",
                blocked_by_hook(outcome, records, "deny", "denied.txt"),
            ),
            ("deny reason", text_reached_model(outcome, "REASON-DENY")),
        ];
        self.judge(outcome, records, findings)
    }

    fn claude_script(&self, outcome: &Outcome, records: &[Record]) -> Vec<Check> {
        let findings = [
            (
                "Claude script",
                blocked_by_hook(outcome, records, "guard", "guarded.txt"),
            ),
            (
                "Claude script's reason",
                text_reached_model(outcome, "REASON-GUARD"),
            ),
        ];
        self.judge(outcome, records, findings)
    }
}

/// The hook denied, and the command did not run, though the one before it did.
fn blocked_by_hook(outcome: &Outcome, records: &[Record], hook: &str, file: &str) -> CheckResult {
    file_exists(outcome, "allowed.txt")?;
    hook_ended_as(records, hook, RunOutcome::Deny)?;
    file_missing(outcome, file)
}

fn rewritten(outcome: &Outcome) -> CheckResult {
    file_missing(outcome, "original.txt")?;
    file_exists(outcome, "rewritten.txt")
}

/// The journal says that the hook failed, and the command ran anyway.
fn command_ran_despite(
    outcome: &Outcome,
    records: &[Record],
    hook: &str,
    how: RunOutcome,
) -> CheckResult {
    hook_ended_as(records, hook, how)?;
    file_exists(outcome, &format!("{hook}.txt"))
}

fn hook_ended_as(records: &[Record], hook: &str, how: RunOutcome) -> CheckResult {
    let mut runs = records
        .iter()
        .flat_map(|record| &record.hooks)
        .filter(|run| run.hook == hook);
    if runs.any(|run| run.outcome == how) {
        Ok(())
    } else {
        Err(format!(
            "the journal has no run of `{hook}` that ended as {how:?}"
        ))
    }
}
