//! The exit code contract: from the end of a hook's process to a decision.
//!
//! | blocking | ending | stdout | outcome |
//! |---|---|---|---|
//! | any | exit 0 | empty, `{}`, `allow` | allow |
//! | any | exit 0 | `deny` | deny: an explicit decision counts |
//! | any | exit 0 | `ask` | ask |
//! | true | exit 2 | anything | deny; reason from the answer, else stderr |
//! | false | exit 2 | anything | warning, allow |
//! | any | anything else | `deny` | deny: the caller passes it as exit 0 |
//! | any | anything else | anything else | a [`Failure`] |
//!
//! What a failure means is decided by [`ExitRules::blocks_on`] alone.

use crate::answer::ParsedStdout;
use crate::hook::{Hook, OnFailure, TimeoutAction};
use crate::merge::merge;
use crate::record::RunOutcome;
use crate::response::{Decision, HookResponse};

/// Longest part of stderr in a reason or a warning.
const MAX_STDERR_BYTES: usize = 4096;

/// How a hook's process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    Exit(i32),
    /// By this signal's number.
    Signal(i32),
    Timeout,
    /// Why it could not.
    CannotStart(String),
}

/// Why a hook has not decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Any code but 0 and 2.
    Exit(i32),
    Signal(i32),
    CannotStart(String),
    Timeout,
    /// Why the answer cannot be used: unreadable, cut, or missing.
    Answer(String),
    /// What was approved is not what would run, or has run.
    Changed(String),
}

impl Failure {
    /// For the model: no detail that helps to get around the hook.
    fn in_general(&self) -> String {
        match self {
            Self::Exit(code) => format!("exit code {code}"),
            Self::Signal(signal) => format!("killed by signal {signal}"),
            Self::CannotStart(_) => "it could not be started".to_owned(),
            Self::Timeout => "timed out".to_owned(),
            Self::Answer(_) => "its answer could not be read".to_owned(),
            Self::Changed(_) => "it differs from what the user approved".to_owned(),
        }
    }

    /// For the user.
    fn in_detail(&self) -> String {
        match self {
            Self::CannotStart(why) => format!("cannot start: {why}"),
            Self::Answer(why) => format!("hook error: {why}"),
            Self::Changed(why) => why.clone(),
            Self::Exit(_) | Self::Signal(_) | Self::Timeout => self.in_general(),
        }
    }

    /// The reason of a deny for a failure of a hook.
    pub fn deny_reason(&self) -> String {
        let why = self.in_general();
        format!(
            "blocked, because a hook that guards this failed: {why}; ask the user to look at it"
        )
    }
}

/// The parts of a hook and of the policy that the decision depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExitRules {
    pub blocking: bool,
    pub on_failure: OnFailure,
    /// For a timeout, in place of `on_failure`.
    pub timeout_action: Option<TimeoutAction>,
    /// From the managed policy.
    pub fail_closed: bool,
}

impl ExitRules {
    pub fn for_hook(hook: &Hook, fail_closed: bool) -> Self {
        Self {
            blocking: hook.blocking && !hook.only_observes(),
            on_failure: hook.on_failure.unwrap_or_default(),
            timeout_action: hook.handler.timeout_action,
            fail_closed,
        }
    }

    /// Whether a failure blocks the action. No other code decides this.
    pub fn blocks_on(self, failure: &Failure) -> bool {
        if !self.blocking {
            return false;
        }
        let by_hook = match (failure, self.timeout_action) {
            (Failure::Timeout, Some(action)) => action == TimeoutAction::Block,
            _ => self.on_failure == OnFailure::Block,
        };
        self.fail_closed || by_hook
    }
}

/// The result of one hook.
#[derive(Debug, Clone, PartialEq)]
pub struct HookOutcome {
    /// A `deny` in it always has a reason. No decision means no opinion.
    pub response: HookResponse,
    pub run: RunOutcome,
    /// For the user, in order of occurrence.
    pub warnings: Vec<String>,
}

impl HookOutcome {
    fn warned(run: RunOutcome, warning: String) -> Self {
        Self {
            response: HookResponse::default(),
            run,
            warnings: vec![warning],
        }
    }

    /// The outcome of a hook that has failed.
    pub fn failed(rules: ExitRules, failure: &Failure, stderr: &str) -> Self {
        let blocks = rules.blocks_on(failure);
        let run = match failure {
            Failure::Timeout => RunOutcome::Timeout,
            Failure::Exit(_) if !blocks => RunOutcome::Warn,
            _ => RunOutcome::Error,
        };
        let detail = failure.in_detail();
        let warning = match failure {
            Failure::Exit(_) | Failure::Signal(_) => with_stderr(&detail, stderr),
            _ => detail,
        };
        let mut outcome = Self::warned(run, warning);
        if blocks {
            outcome.response = HookResponse::deny(failure.deny_reason());
        }
        outcome
    }

    /// For the journal: why it denied or asked, or what went wrong.
    pub fn message(&self) -> Option<&str> {
        let reason = match self.response.decision {
            Some(Decision::Deny | Decision::Ask) => self.response.reason.as_deref(),
            _ => None,
        };
        reason.or_else(|| self.warnings.first().map(String::as_str))
    }
}

/// Applies the table to an answer that was parsed from stdout, in any dialect, or
/// from the body of an HTTP response.
pub fn apply_exit_contract(
    rules: ExitRules,
    ending: &Ending,
    stdout: ParsedStdout,
    stderr: &str,
) -> HookOutcome {
    let failure = match ending {
        Ending::Exit(0) => match stdout {
            ParsedStdout::Empty => return answered(HookResponse::default(), Vec::new(), stderr),
            ParsedStdout::Answer(response, warnings) => {
                return answered(*response, warnings, stderr);
            }
            ParsedStdout::Unreadable {
                why,
                rest,
                warnings,
            } => {
                let mut outcome = HookOutcome::failed(rules, &Failure::Answer(why), stderr);
                outcome.response = merge(*rest, outcome.response);
                outcome.warnings.extend(warnings);
                return outcome;
            }
        },
        Ending::Exit(2) if rules.blocking => return blocked(stdout, stderr),
        Ending::Exit(2) => {
            let what = "exit code 2 of a hook that is not blocking";
            return HookOutcome::warned(RunOutcome::Warn, with_stderr(what, stderr));
        }
        Ending::Exit(code) => Failure::Exit(*code),
        Ending::Signal(signal) => Failure::Signal(*signal),
        Ending::CannotStart(why) => Failure::CannotStart(why.clone()),
        Ending::Timeout => Failure::Timeout,
    };
    HookOutcome::failed(rules, &failure, stderr)
}

fn answered(mut response: HookResponse, warnings: Vec<String>, stderr: &str) -> HookOutcome {
    let run = match response.decision {
        Some(Decision::Deny) => RunOutcome::Deny,
        Some(Decision::Ask) => RunOutcome::Ask,
        Some(Decision::Allow) | None => RunOutcome::Allow,
    };
    if response.is_deny() {
        give_reason(&mut response, stderr);
    }
    HookOutcome {
        response,
        run,
        warnings,
    }
}

fn blocked(stdout: ParsedStdout, stderr: &str) -> HookOutcome {
    let (mut response, warnings) = match stdout {
        ParsedStdout::Answer(response, warnings) => (*response, warnings),
        // On exit 2 stdout may contain anything; stderr is the message.
        ParsedStdout::Empty | ParsedStdout::Unreadable { .. } => Default::default(),
    };
    response.decision = Some(Decision::Deny);
    answered(response, warnings, stderr)
}

/// Several agents let a call pass that is denied without a reason.
fn give_reason(response: &mut HookResponse, stderr: &str) {
    let reason = response.reason.as_deref().unwrap_or_default();
    if reason.trim().is_empty() {
        response.reason = Some(match shortened(stderr) {
            "" => "denied by a hook that gave no reason".to_owned(),
            stderr => stderr.to_owned(),
        });
    }
}

fn with_stderr(what: &str, stderr: &str) -> String {
    match shortened(stderr) {
        "" => what.to_owned(),
        stderr => format!("{what}: {stderr}"),
    }
}

fn shortened(stderr: &str) -> &str {
    let text = stderr.trim();
    let mut end = text.len().min(MAX_STDERR_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().trim_end()
}
