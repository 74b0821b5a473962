//! Whether a fact holds after a session.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhook_model::Record;
use anyhook_model::record::RunOutcome;
use serde_json::Value;

use super::run::{DOCTOR_FILE, INSTALL_FILE};
use super::{Fact, readme};
use crate::expect::CheckResult;
use crate::fake_model::Request;
use crate::placeholder::Placeholders;
use crate::session::Outcome;

/// What is known after a session.
pub(super) struct Evidence<'a> {
    pub outcome: &'a Outcome,
    pub records: &'a [Record],
    pub placeholders: Placeholders,
    /// The client fires the event of the prompt again after every tool call.
    pub repeats_prompt: bool,
    /// The client's own name.
    pub slug: &'a str,
}

impl Evidence<'_> {
    pub(super) fn hold(&self, facts: &[Fact]) -> CheckResult {
        facts.iter().try_for_each(|fact| self.holds(fact))
    }

    fn holds(&self, fact: &Fact) -> CheckResult {
        let outcome = self.outcome;
        match fact {
            Fact::Exists(path) => match self.file(path) {
                Some(_) => Ok(()),
                None => Err(format!("`{path}` does not exist")),
            },
            Fact::Missing(path) => match self.file(path) {
                None => Ok(()),
                Some(_) => Err(format!("`{path}` exists")),
            },
            Fact::Content { path, is } => match self.file(path) {
                Some(text) if text == *is => Ok(()),
                other => Err(format!("`{path}` contains {other:?}, not {is:?}")),
            },
            Fact::Told(text) => match outcome.reached_model(text) {
                Some(_) => Ok(()),
                None => Err(format!("no request to the model contained {text:?}")),
            },
            Fact::Untold(text) => match outcome.reached_model(text) {
                None => Ok(()),
                Some(_) => Err(format!("a request to the model contained {text:?}")),
            },
            Fact::ToldOnce(text) => {
                let most = outcome.turns().map(|request| count_text(request, text));
                match most.max().unwrap_or(0) {
                    1 => Ok(()),
                    count => Err(format!("one request contained {text:?} {count} times")),
                }
            }
            Fact::ToldOncePerPrompt { text, path } => {
                let prompts = if self.repeats_prompt {
                    outcome.turns().count()
                } else {
                    1
                };
                let counts: Vec<usize> = outcome
                    .turns()
                    .map(|request| count_text(request, text))
                    .collect();
                let (first, most) = (counts.first(), counts.iter().max());
                let runs = self.file(path).unwrap_or_default().lines().count();
                if first == Some(&1) && most == Some(&prompts) && runs == prompts {
                    Ok(())
                } else {
                    Err(format!(
                        "{prompts} prompts, {runs} runs, and {text:?} occurs in the requests {counts:?} times"
                    ))
                }
            }
            Fact::Denied(hook) => self.hook_ended(hook, RunOutcome::Deny),
            Fact::Failed { hook, with } => {
                match serde_json::from_value(Value::from(with.as_str())) {
                    Ok(how) => self.hook_ended(hook, how),
                    Err(error) => Err(error.to_string()),
                }
            }
            Fact::Reported { text, times } => {
                let reported = self.records.iter().filter(|record| {
                    record.event.event == "before_tool_execute"
                        && Value::Object(record.event.data.clone())
                            .to_string()
                            .contains(text)
                });
                match reported.count() {
                    count if count == *times => Ok(()),
                    count => Err(format!(
                        "calls with {text:?} were reported {count} times, not {times}"
                    )),
                }
            }
            Fact::RecordedAsClient => {
                let mut others = self.records.iter().map(|record| &record.event.source);
                match others.find(|source| *source != self.slug) {
                    None if self.records.is_empty() => Err("the journal is empty".to_owned()),
                    None => Ok(()),
                    Some(other) => Err(format!("the journal has an event of `{other}`")),
                }
            }
            Fact::Counted { path, times } => {
                let count = self.file(path).unwrap_or_default().lines().count();
                if count == *times {
                    Ok(())
                } else {
                    Err(format!("`{path}` has {count} lines, not {times}"))
                }
            }
            Fact::Includes { path, line } => {
                let text = self.file(path).unwrap_or_default();
                if text.lines().any(|own| own == line) {
                    Ok(())
                } else {
                    Err(format!("`{path}` has no line {line:?}: {text:?}"))
                }
            }
            Fact::Elsewhere(path) => match self.file(path) {
                Some(folder) if Path::new(folder.trim()) != outcome.sandbox.project => Ok(()),
                other => Err(format!("the client worked in {other:?}")),
            },
            Fact::Warned(text) => {
                let mut warnings = self.records.iter().flat_map(|record| &record.warnings);
                if warnings.any(|warning| warning.contains(text)) {
                    Ok(())
                } else {
                    Err(format!("no warning in the journal contains {text:?}"))
                }
            }
            Fact::Printed(text) => {
                if outcome.stdout.contains(text) || outcome.stderr.contains(text) {
                    Ok(())
                } else {
                    Err(format!("the client did not print {text:?}"))
                }
            }
            Fact::Sessions(number) => {
                let ids = self.records.iter();
                let ids: BTreeSet<_> = ids
                    .filter_map(|record| record.event.session_id.as_ref())
                    .collect();
                if ids.len() == *number {
                    Ok(())
                } else {
                    Err(format!("the journal has {} sessions", ids.len()))
                }
            }
            Fact::DoctorRed => {
                let report = self.run_file(DOCTOR_FILE);
                let report: Value = serde_json::from_str(&report).unwrap_or_default();
                match report.pointer("/exit").and_then(Value::as_i64) {
                    Some(1) => Ok(()),
                    other => Err(format!("`doctor` ended with {other:?}: {report}")),
                }
            }
            Fact::ContextAccounted { only, without } => self.context_accounted(|event| {
                (only.is_empty() || only.contains(event)) && !without.contains(event)
            }),
            Fact::Restored => readme::is_restored(&outcome.sandbox.run),
            Fact::Interrupted => match outcome.result.interrupts {
                0 => Err("Ctrl-C was not pressed".to_owned()),
                _ => Ok(()),
            },
            Fact::Ended => {
                if outcome.result.left.is_empty() {
                    Ok(())
                } else {
                    Err(format!("still running: {:?}", outcome.result.left))
                }
            }
            Fact::NativeCalled(text) => {
                if outcome.hooks.iter().any(|call| call.stdin.contains(text)) {
                    Ok(())
                } else {
                    Err(format!("no hook of the client was called for {text:?}"))
                }
            }
            Fact::Any(facts) => {
                let mut seen = Vec::new();
                for fact in facts {
                    match self.holds(fact) {
                        Ok(()) => return Ok(()),
                        Err(error) => seen.push(error),
                    }
                }
                Err(seen.join(", and "))
            }
            Fact::All(facts) => self.hold(facts),
            Fact::InstallSaid { text, exactly_if } => {
                let said = self.run_file(INSTALL_FILE).contains(text);
                match (said, self.holds(exactly_if)) {
                    (true, Ok(())) | (false, Err(_)) => Ok(()),
                    (true, Err(seen)) => Err(format!("`install` said {text:?}, but {seen}")),
                    (false, Ok(())) => Err(format!(
                        "`install` did not say {text:?}, though {exactly_if:?}"
                    )),
                }
            }
        }
    }

    fn file(&self, path: &str) -> Option<String> {
        self.outcome.file(&self.placeholders.fill_text(path))
    }

    fn run_file(&self, name: &str) -> String {
        fs::read_to_string(self.outcome.sandbox.run.join(name)).unwrap_or_default()
    }

    fn hook_ended(&self, hook: &str, how: RunOutcome) -> CheckResult {
        let runs = self.records.iter().flat_map(|record| &record.hooks);
        let ends: Vec<RunOutcome> = runs
            .filter(|run| run.hook == hook)
            .map(|run| run.outcome)
            .collect();
        if ends.contains(&how) {
            Ok(())
        } else {
            Err(format!(
                "in the journal `{hook}` ended as {ends:?}, never as {how:?}"
            ))
        }
    }

    /// Every record whose hooks gave context: a request contained it, or the record names the loss.
    fn context_accounted(&self, is_about: impl Fn(&String) -> bool) -> CheckResult {
        let mut missing = BTreeSet::new();
        let mut contexts = 0;
        for record in self.records {
            let Some(context) = &record.response.context else {
                continue;
            };
            if !is_about(&record.event.event) {
                continue;
            }
            contexts += 1;
            let lost = record.lost.iter().any(|loss| loss.field == "context");
            if !lost && self.outcome.reached_model(context).is_none() {
                missing.insert(record.event.native_event.clone());
            }
        }
        if contexts == 0 {
            Err("no hook gave context".to_owned())
        } else if missing.is_empty() {
            Ok(())
        } else {
            Err(format!(
                "context is neither in a request nor named as lost: {missing:?}"
            ))
        }
    }
}

/// How often a text occurs in a request.
fn count_text(request: &Request, text: &str) -> usize {
    fn count(value: &Value, text: &str) -> usize {
        match value {
            Value::String(own) => own.matches(text).count(),
            Value::Array(items) => items.iter().map(|item| count(item, text)).sum(),
            Value::Object(members) => members.values().map(|member| count(member, text)).sum(),
            _ => 0,
        }
    }
    count(&request.body, text)
}
