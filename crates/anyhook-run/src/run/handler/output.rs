//! The output of a handler, and the outcome that follows from it.

use anyhook_agents::respond::APPROVE_KEY;
use anyhook_model::answer::ParsedStdout;
use anyhook_model::decide::apply_exit_contract;
use anyhook_model::{Decision, Ending, ExitRules, HookOutcome, Loss};

use crate::run::dialect::ParsedAnswer;
use crate::run::exec::ProcessEnd;

/// The output of a handler, before the rules are applied.
pub(super) struct HandlerOutput {
    pub(super) ending: Ending,
    pub(super) answer: ParsedAnswer,
    pub(super) stderr: String,
    pub(super) notes: Vec<String>,
    pub(super) lost: Vec<Loss>,
    /// Its dialect has no way to decide.
    pub(super) observes_only: bool,
    pub(super) is_cancelled: bool,
}

impl HandlerOutput {
    pub(super) fn without_answer(end: ProcessEnd) -> Self {
        let is_cancelled = end == ProcessEnd::Cancelled;
        let ending = match end {
            ProcessEnd::Exit(code) => Ending::Exit(code),
            ProcessEnd::Signal(signal) => Ending::Signal(signal),
            ProcessEnd::Timeout => Ending::Timeout,
            ProcessEnd::Cancelled => Ending::CannotStart("cancelled".to_owned()),
            ProcessEnd::NotStarted(why) => Ending::CannotStart(why),
        };
        Self {
            ending,
            answer: ParsedAnswer::default(),
            stderr: String::new(),
            notes: Vec::new(),
            lost: Vec::new(),
            observes_only: false,
            is_cancelled,
        }
    }

    pub(super) fn with_answer(answer: ParsedAnswer) -> Self {
        Self {
            answer,
            ..Self::without_answer(ProcessEnd::Exit(0))
        }
    }

    /// Whether it is no answer, or one that cannot be read.
    pub(super) fn failed(&self) -> bool {
        let decision = self.answer.response.decision;
        match self.ending {
            _ if decision == Some(Decision::Deny) => false,
            Ending::Exit(2) => false,
            Ending::Exit(0) => self.answer.error.is_some(),
            Ending::Exit(_) => decision != Some(Decision::Ask),
            Ending::Signal(_) | Ending::Timeout | Ending::CannotStart(_) => true,
        }
    }

    pub(super) fn asks(&self) -> bool {
        self.answer.response.decision == Some(Decision::Ask)
    }

    /// Adds the output for a further part.
    pub(super) fn join(&mut self, part: Self) {
        let (here, there) = (&mut self.answer.response, part.answer.response);
        for (text, more) in [
            (&mut here.context, there.context),
            (&mut here.system_message, there.system_message),
        ] {
            match (text.as_mut(), more) {
                (Some(text), Some(more)) if *text != more => {
                    text.push('\n');
                    text.push_str(&more);
                }
                (None, more) => *text = more,
                _ => {}
            }
        }
        if here.updated_input.is_some() || there.updated_input.is_some() {
            here.updated_input = None;
            here.decision = Some(Decision::Deny);
            here.reason = Some("A hook changes one part of this call, which cannot be done here; it is denied instead.".to_owned());
            self.lost.push(Loss::new(
                "updated_input",
                "the call has several parts, of which one alone cannot be changed; denied instead",
            ));
            return;
        }
        if there.decision.is_none() {
            // Approval of one part does not approve the whole.
            here.decision = None;
            here.metadata.shift_remove(APPROVE_KEY);
        }
        if there.should_continue == Some(false) {
            here.should_continue = Some(false);
        }
        self.notes.extend(part.notes);
        self.lost.extend(part.lost);
    }

    /// What the hook has decided by these rules.
    pub(super) fn into_outcome(self, rules: ExitRules) -> HookOutcome {
        let Self {
            ending,
            answer,
            stderr,
            notes,
            ..
        } = self;
        // A deny that was written counts, however the program ended. A dialect may also ask
        // at other exit codes than the canonical ones. It cannot allow there: it is not known
        // how far such a program came.
        let refuses = matches!(
            answer.response.decision,
            Some(Decision::Deny | Decision::Ask)
        );
        let ending = match ending {
            Ending::Exit(2) => Ending::Exit(2),
            _ if answer.response.is_deny() => Ending::Exit(0),
            Ending::Exit(_) if refuses => Ending::Exit(0),
            ending => ending,
        };
        let rest = Box::new(answer.response);
        let stdout = match answer.error {
            Some(why) if !rest.is_deny() => ParsedStdout::Unreadable {
                why,
                rest,
                warnings: answer.warnings,
            },
            _ => ParsedStdout::Answer(rest, answer.warnings),
        };
        let mut outcome = apply_exit_contract(rules, &ending, stdout, &stderr);
        outcome.warnings.extend(notes);
        outcome
    }
}
