//! From a hook's end to a decision: the exit code contract as one function.
//!
//! | blocking | ending | stdout | outcome |
//! |---|---|---|---|
//! | any | exit 0 | empty, `{}`, `allow` | allow |
//! | any | exit 0 | `deny` | deny: an explicit decision counts |
//! | any | exit 0 | `ask` | ask |
//! | any | exit 0 | not a JSON object | hook error: warning, allow |
//! | true | exit 2 | anything | deny; reason from the answer, else stderr |
//! | false | exit 2 | anything | warning, allow |
//! | any | any other exit | anything | warning, allow |
//! | any | signal, cannot start | – | hook error: warning, allow; deny when blocking and `fail_closed` |
//! | true | timeout | – | by `timeout_action`: warning and allow, or deny |
//! | false | timeout | – | warning, allow |

use crate::answer::{self, Stdout};
use crate::hook::{Hook, TimeoutAction};
use crate::record::RunOutcome;
use crate::response::{Decision, HookResponse};

/// Longest piece of stderr that goes into a reason or a warning.
const STDERR_LENGTH: usize = 4096;

/// How a hook's process came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    Exit(i32),
    /// By this signal's number.
    Signal(i32),
    Timeout,
    /// Why it could not.
    CannotStart(String),
}

/// What of a hook, and of the policy, the decision depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    pub blocking: bool,
    pub timeout_action: TimeoutAction,
    /// From the managed policy.
    pub fail_closed: bool,
}

impl Rules {
    pub fn of(hook: &Hook, fail_closed: bool) -> Self {
        Self {
            blocking: hook.blocking,
            timeout_action: hook.handler.timeout_action.unwrap_or(TimeoutAction::Warn),
            fail_closed,
        }
    }
}

/// What one hook comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// A `deny` in it always has a reason. No decision means no opinion.
    pub response: HookResponse,
    pub run: RunOutcome,
    /// For the user, in the order in which they came up.
    pub warnings: Vec<String>,
}

impl Outcome {
    fn warned(run: RunOutcome, warning: String) -> Self {
        Self {
            response: HookResponse::default(),
            run,
            warnings: vec![warning],
        }
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

/// The table, for a handler that speaks canonically.
pub fn decide(rules: Rules, ending: &Ending, stdout: &str, stderr: &str) -> Outcome {
    match ending {
        Ending::Exit(0 | 2) => settle(rules, ending, answer::read(stdout), stderr),
        _ => settle(rules, ending, Stdout::Empty, stderr),
    }
}

/// The table, for an answer that was read already (in another dialect, or from
/// the body of an HTTP response).
pub fn settle(rules: Rules, ending: &Ending, stdout: Stdout, stderr: &str) -> Outcome {
    match ending {
        Ending::Exit(0) => match stdout {
            Stdout::Empty => answered(HookResponse::default(), Vec::new(), stderr),
            Stdout::Answer(response, warnings) => answered(*response, warnings, stderr),
            Stdout::Unreadable(why) => {
                Outcome::warned(RunOutcome::Error, format!("hook error: {why}"))
            }
        },
        Ending::Exit(2) if rules.blocking => blocked(stdout, stderr),
        Ending::Exit(2) => Outcome::warned(
            RunOutcome::Warn,
            with_stderr("exit code 2 of a hook that is not blocking", stderr),
        ),
        Ending::Exit(code) => Outcome::warned(
            RunOutcome::Warn,
            with_stderr(&format!("exit code {code}"), stderr),
        ),
        Ending::Signal(signal) => {
            let what = with_stderr(&format!("killed by signal {signal}"), stderr);
            failed(rules.blocking && rules.fail_closed, RunOutcome::Error, what)
        }
        Ending::CannotStart(why) => {
            let what = format!("cannot start: {why}");
            failed(rules.blocking && rules.fail_closed, RunOutcome::Error, what)
        }
        Ending::Timeout => {
            let block = rules.blocking && rules.timeout_action == TimeoutAction::Block;
            failed(block, RunOutcome::Timeout, "timed out".into())
        }
    }
}

fn answered(mut response: HookResponse, warnings: Vec<String>, stderr: &str) -> Outcome {
    let run = match response.decision {
        Some(Decision::Deny) => RunOutcome::Deny,
        Some(Decision::Ask) => RunOutcome::Ask,
        Some(Decision::Allow) | None => RunOutcome::Allow,
    };
    if run == RunOutcome::Deny {
        give_reason(&mut response, stderr);
    }
    Outcome {
        response,
        run,
        warnings,
    }
}

fn blocked(stdout: Stdout, stderr: &str) -> Outcome {
    let (mut response, warnings) = match stdout {
        Stdout::Answer(response, warnings) => (*response, warnings),
        // On exit 2 stdout may hold anything; stderr is the message.
        Stdout::Empty | Stdout::Unreadable(_) => (HookResponse::default(), Vec::new()),
    };
    response.decision = Some(Decision::Deny);
    give_reason(&mut response, stderr);
    Outcome {
        response,
        run: RunOutcome::Deny,
        warnings,
    }
}

/// A hook that did not come to a proper end.
fn failed(block: bool, run: RunOutcome, what: String) -> Outcome {
    let response = if block {
        HookResponse::deny(format!(
            "blocked, because a hook that guards this failed: {what}"
        ))
    } else {
        HookResponse::default()
    };
    Outcome {
        response,
        run,
        warnings: vec![what],
    }
}

/// Several agents let a call pass that is denied without a reason.
fn give_reason(response: &mut HookResponse, stderr: &str) {
    if response
        .reason
        .as_deref()
        .is_some_and(|reason| !reason.trim().is_empty())
    {
        return;
    }
    let stderr = shortened(stderr);
    response.reason = Some(if stderr.is_empty() {
        "denied by a hook that gave no reason".to_owned()
    } else {
        stderr.to_owned()
    });
}

fn with_stderr(what: &str, stderr: &str) -> String {
    match shortened(stderr) {
        "" => what.to_owned(),
        stderr => format!("{what}: {stderr}"),
    }
}

fn shortened(stderr: &str) -> &str {
    let text = stderr.trim();
    let mut end = text.len().min(STDERR_LENGTH);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().trim_end()
}
