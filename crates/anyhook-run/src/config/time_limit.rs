//! How long the hooks of one event may take together.

use std::borrow::Borrow;
use std::time::Duration;

use anyhook_model::{HandlerKind, Hook};

use crate::config::manifest::timeout;
use crate::run::guard::GuardCommand;

/// The answer must be with the agent that long before it stops waiting.
const ANSWER_MARGIN: Duration = Duration::from_secs(5);

/// How long hooks and questions may take if the agent waits for `limit`.
pub(crate) fn answer_time(limit: Duration) -> Duration {
    limit.saturating_sub(ANSWER_MARGIN.min(limit / 4))
}

/// The time in which hooks have answered whatever they do, each list being those of one
/// manifest. `can_rewrite`: the event announces something that a hook may change.
///
/// One rule of a hook's turn: hooks run side by side or one after another, and one that
/// has rewritten input beside another rewrite runs again. Then every blocking hook that
/// does not know the final input is asked once more, one manifest after another.
pub fn longest_answer<H: Borrow<Hook>>(manifests: &[Vec<H>], can_rewrite: bool) -> Duration {
    let all: Vec<&Hook> = manifests.iter().flatten().map(Borrow::borrow).collect();
    let mut total = longest_turn(&all);
    let is_certain = all.len() < 2 || !all.iter().any(|hook| may_rewrite(hook));
    if can_rewrite && !is_certain {
        for hooks in manifests {
            let asked = hooks.iter().map(Borrow::borrow);
            let asked: Vec<&Hook> = asked
                .filter(|hook| hook.blocking && !hook.only_observes() && !hook.handler.is_async)
                .collect();
            total = total.saturating_add(longest_turn(&asked));
        }
    }
    total
}

/// One after another, or, if all run side by side and rewrite, the slowest and then all
/// but the one that was first.
fn longest_turn(hooks: &[&Hook]) -> Duration {
    let times = hooks.iter().map(|hook| timeout(&hook.handler));
    let total = times.clone().fold(Duration::ZERO, Duration::saturating_add);
    let (longest, shortest) = (times.clone().max(), times.min());
    let difference = longest.zip(shortest);
    let difference = difference.map(|(longest, shortest)| longest.saturating_sub(shortest));
    total.saturating_add(difference.unwrap_or_default())
}

/// Whether its answer may change the input; which ones do is known only when they answer.
fn may_rewrite(hook: &Hook) -> bool {
    let is_guard = hook.handler.kind == HandlerKind::Command
        && GuardCommand::from_handler(&hook.handler).is_some();
    !is_guard && !hook.handler.is_async && !hook.only_observes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn hook(seconds: f64, blocking: bool, command: &str) -> Hook {
        let hook: Value = json!({"event": "before_tool_execute", "blocking": blocking,
            "handler": {"type": "command", "command": command, "timeout": seconds}});
        serde_json::from_value(hook).unwrap()
    }

    /// The hooks of each manifest as seconds, negative if they do not block, whether the
    /// event can be changed, and the seconds that they may take.
    #[test]
    fn a_second_look_after_a_rewrite_counts() {
        let cases: [(&[&[f64]], bool, f64); 8] = [
            (&[], true, 0.0),
            (&[&[10.0]], true, 10.0),
            (&[&[10.0, 10.0]], false, 20.0),
            (&[&[10.0, 10.0]], true, 40.0),
            (&[&[10.0, -10.0]], true, 30.0),
            (&[&[10.0], &[10.0]], true, 40.0),
            // 30 side by side, then the first rewriter's rest: 10 + 30 - 10.
            (&[&[10.0, 30.0]], false, 60.0),
            (&[&[10.0, 30.0]], true, 120.0),
        ];
        for (manifests, can_rewrite, expected) in cases {
            let hooks = |seconds: &&[f64]| -> Vec<Hook> {
                let seconds = seconds.iter();
                seconds
                    .map(|time| hook(time.abs(), *time > 0.0, "x"))
                    .collect()
            };
            let hooks: Vec<Vec<Hook>> = manifests.iter().map(hooks).collect();
            let time = longest_answer(&hooks, can_rewrite);
            assert_eq!(time, Duration::from_secs_f64(expected), "{manifests:?}");
        }
    }

    #[test]
    fn built_in_guards_rewrite_nothing() {
        let guards = [
            hook(10.0, true, "anyhook guard shell"),
            hook(10.0, true, "anyhook guard files"),
        ];
        let time = longest_answer(&[guards.to_vec()], true);
        assert_eq!(time, Duration::from_secs(20));
    }
}
