//! The sessions that are about one thing: a blocked prompt, a converted config, an uninstalled bridge.

use std::cell::{Cell, RefCell};
use std::path::Path;

use super::{Proof, done, leave, not_there, out_of_reach, reached, tell_kept, there};
use crate::bridge;
use crate::error::{Error, Result};
use crate::expect::Finding;
use crate::report::{Check, Verdict};
use crate::scenario::Scenario;
use crate::session::Outcome;

const PROMPT: &str = "PROMPT-BLOCKED do what there is to do.";

impl Proof<'_> {
    pub(super) fn prompt_block(&self, kept: &mut dyn FnMut(&str, &Path)) -> Result<Check> {
        let outcome = self
            .installed("prompt", "user")
            .prompt(PROMPT)
            .scenario(Scenario::new([leave("asked.txt"), done()]))
            .run()?;
        tell_kept(&outcome, "prompt", kept);
        let records = bridge::journal(&outcome)?;
        let finding = blocked(&outcome).and_then(|()| {
            let told = records
                .iter()
                .any(|record| record.event.event == "before_prompt");
            let none = "the prompt did not reach the model, but no hook was asked";
            told.then_some(()).ok_or_else(|| none.to_owned())
        });
        let checks = self.settle(&outcome, &records, [("prompt block", finding)]);
        let [check] = checks
            .try_into()
            .map_err(|_| Error::NoResult("prompt block".to_owned()))?;
        Ok(check)
    }

    /// The manifest as the client's own config, with no anyhook in reach.
    pub(super) fn native(&self, kept: &mut dyn FnMut(&str, &Path)) -> Result<Vec<Check>> {
        let slug = self.client.slug();
        let warned = Cell::new(false);
        let outcome = self
            .bare("native")
            .scenario(Scenario::new([
                leave("allowed.txt"),
                leave("denied.txt"),
                done(),
            ]))
            .prepare(|scratch| {
                let manifest = ".anyhook/hooks.yaml";
                let words = ["convert", manifest, "--to", slug, "-o", ".", "--json"];
                let told = bridge::anyhook(scratch, &words)?;
                warned.set(told.contains("\"critical\""));
                Ok(())
            })
            .prepare_path(self.program.folder())
            .run()?;
        tell_kept(&outcome, "native", kept);
        let records = bridge::journal(&outcome)?;
        let denied = out_of_reach(&outcome)
            .and_then(|()| there(&outcome, "allowed.txt"))
            .and_then(|()| {
                if records.is_empty() {
                    not_there(&outcome, "denied.txt")
                } else {
                    Err("anyhook was called".to_owned())
                }
            });
        let mut checks = self.settle(
            &outcome,
            &records,
            [
                ("native deny", denied),
                ("native deny reason", reached(&outcome, "REASON-NATIVE")),
            ],
        );
        // A guard that does not hold must have been called critical when it was converted.
        for check in &mut checks {
            if check.name == "native deny"
                && matches!(check.verdict, Verdict::Cannot(_))
                && !warned.get()
            {
                check.verdict = Verdict::failed("`convert` did not say that this does not deny");
            }
        }
        Ok(checks)
    }

    /// In and out again: every file as it was, and a session in which nothing of anyhook happens.
    pub(super) fn uninstall(&self, kept: &mut dyn FnMut(&str, &Path)) -> Result<Vec<Check>> {
        let slug = self.client.slug();
        let args = &self.client.expect.install.args;
        let files: RefCell<Finding> = RefCell::new(Ok(()));
        let outcome = self
            .session("native")
            .scenario(Scenario::new([leave("denied.txt"), done()]))
            .prepare(|scratch| {
                let before = bridge::snapshot(scratch)?;
                bridge::install(scratch, slug, "user", args)?;
                let between = bridge::snapshot(scratch)?;
                bridge::uninstall(scratch, slug, "user")?;
                let after = bridge::snapshot(scratch)?;
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
        tell_kept(&outcome, "uninstall", kept);
        let records = bridge::journal(&outcome)?;
        let free = there(&outcome, "denied.txt").and_then(|()| {
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
        Ok(self.settle(&outcome, &records, findings))
    }
}

/// No model was asked for anything with the prompt in it, and nothing ran.
fn blocked(outcome: &Outcome) -> Finding {
    not_there(outcome, "asked.txt")?;
    match outcome.reached_model("PROMPT-BLOCKED") {
        None => Ok(()),
        Some(_) => Err("the prompt reached the model".to_owned()),
    }
}
