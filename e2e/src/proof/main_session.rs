//! The session that most checks share, and the two that clients need in which a deny ends the run.

use std::path::Path;

use anyhook_model::Record;
use anyhook_model::record::RunOutcome;

use super::events;
use super::{Proof, done, leave, not_there, reached, tell_kept, there};
use crate::bridge;
use crate::error::Result;
use crate::expect::{Finding, Sabotage};
use crate::report::{Check, Verdict};
use crate::scenario::{Scenario, Step};
use crate::session::Outcome;

const SUBAGENT_PROMPT: &str = "PROMPT-SUBAGENT run the command";

impl Proof<'_> {
    pub(super) fn main_session(
        &self,
        sabotage: Option<&Sabotage>,
        kept: &mut dyn FnMut(&str, &Path),
    ) -> Result<Vec<Check>> {
        let expect = &self.client.expect;
        let lying = sabotage
            .and_then(|sabotage| sabotage.answer.as_ref())
            .map(|lie| self.program.lying(lie))
            .transpose()?;
        let damage = sabotage.and_then(|sabotage| sabotage.installed.as_ref());
        let slug = self.client.slug();
        let mut session = self
            .session("main")
            .without(&expect.install.instead_of)
            .scenario(self.scenario())
            .prepare(move |scratch| {
                bridge::install(scratch, slug, "project", &expect.install.args)?;
                damage.map_or(Ok(()), |damage| bridge::damage(scratch, damage))
            });
        if let Some(lying) = &lying {
            session = session.path_first(lying.folder());
        }
        let outcome = session.run()?;
        tell_kept(&outcome, "main", kept);
        let records = bridge::journal(&outcome)?;
        let mut checks = self.settle(
            &outcome,
            &records,
            [
                ("events", events::events(&records, &expect.events)),
                ("tools", events::tools(&records, &outcome, expect)),
                ("session id", events::session_id(&records, &outcome, expect)),
                ("rewrite", rewritten(&outcome)),
                (
                    "context: session start",
                    reached(&outcome, "CONTEXT-SESSION"),
                ),
                ("context: prompt", reached(&outcome, "CONTEXT-PROMPT")),
                ("context: before tool", reached(&outcome, "CONTEXT-BEFORE")),
                ("context: after tool", reached(&outcome, "CONTEXT-AFTER")),
                (
                    "stop retry",
                    reached(&outcome, "REASON-STOP").and_then(|()| there(&outcome, "again.txt")),
                ),
                (
                    "hook hangs",
                    survived(&outcome, &records, "hang", RunOutcome::Timeout),
                ),
                (
                    "hook crashes",
                    survived(&outcome, &records, "crash", RunOutcome::Error),
                ),
                (
                    "hook prints garbage",
                    survived(&outcome, &records, "garbage", RunOutcome::Error),
                ),
            ],
        );
        checks.push(Check::new(
            "OpenHook stream",
            events::openhook(&outcome, slug, &expect.openhook),
        ));
        // A rewrite that is lost must not let the command run as it was: what protects is never weakened.
        for check in &mut checks {
            if check.name == "rewrite"
                && matches!(check.verdict, Verdict::Cannot(_))
                && let Err(seen) = not_there(&outcome, "original.txt")
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
        let mut steps = vec![leave("allowed.txt")];
        if self.client.drive.no_subagent.is_none() {
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
            leave("original.txt"),
            leave("probe.txt"),
            leave("hang.txt"),
            leave("crash.txt"),
            leave("garbage.txt"),
            Step::Shell {
                command: "exit 3".to_owned(),
            },
        ]);
        if !self.client.expect.deny_ends_run {
            steps.extend([leave("guarded.txt"), leave("denied.txt")]);
        }
        // What comes after the first end is played only when the stop hook sends the agent back to work.
        steps.extend([done(), leave("again.txt"), done()]);
        Scenario::new(steps).thread(SUBAGENT_PROMPT, [leave("subagent.txt"), done()])
    }

    pub(super) fn deny_alone(&self, kept: &mut dyn FnMut(&str, &Path)) -> Result<Vec<Check>> {
        let (outcome, records) = self.one_command("denied.txt", "deny", kept)?;
        Ok(self.deny(&outcome, &records))
    }

    pub(super) fn claude_script_alone(
        &self,
        kept: &mut dyn FnMut(&str, &Path),
    ) -> Result<Vec<Check>> {
        let (outcome, records) = self.one_command("guarded.txt", "claude-script", kept)?;
        Ok(self.claude_script(&outcome, &records))
    }

    fn one_command(
        &self,
        file: &str,
        name: &str,
        kept: &mut dyn FnMut(&str, &Path),
    ) -> Result<(Outcome, Vec<Record>)> {
        let outcome = self
            .installed("main", "project")
            .scenario(Scenario::new([leave("allowed.txt"), leave(file), done()]))
            .run()?;
        tell_kept(&outcome, name, kept);
        let records = bridge::journal(&outcome)?;
        Ok((outcome, records))
    }

    fn deny(&self, outcome: &Outcome, records: &[Record]) -> Vec<Check> {
        let findings = [
            (
                "deny",
                kept_from_running(outcome, records, "deny", "denied.txt"),
            ),
            ("deny reason", reached(outcome, "REASON-DENY")),
        ];
        self.settle(outcome, records, findings)
    }

    fn claude_script(&self, outcome: &Outcome, records: &[Record]) -> Vec<Check> {
        let findings = [
            (
                "Claude script",
                kept_from_running(outcome, records, "guard", "guarded.txt"),
            ),
            ("Claude script's reason", reached(outcome, "REASON-GUARD")),
        ];
        self.settle(outcome, records, findings)
    }
}

/// The hook said deny, and the command did not run, though the one before it did.
fn kept_from_running(outcome: &Outcome, records: &[Record], hook: &str, file: &str) -> Finding {
    there(outcome, "allowed.txt")?;
    ran_as(records, hook, RunOutcome::Deny)?;
    not_there(outcome, file)
}

fn rewritten(outcome: &Outcome) -> Finding {
    not_there(outcome, "original.txt")?;
    there(outcome, "rewritten.txt")
}

/// The hook went wrong, as the journal says, and the command ran all the same.
fn survived(outcome: &Outcome, records: &[Record], hook: &str, how: RunOutcome) -> Finding {
    ran_as(records, hook, how)?;
    there(outcome, &format!("{hook}.txt"))
}

fn ran_as(records: &[Record], hook: &str, how: RunOutcome) -> Finding {
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
