//! What to do about a hook that failed, or that did less than it seems.

use anyhook_install::Machine;
use anyhook_install::hook_scripts::{ManifestPlace, check_hook_scripts};
use anyhook_model::hook::TimeoutAction;
use anyhook_model::{Hook, HookRun, RunOutcome};
use anyhook_run::config::in_force::HookInForce;
use anyhook_run::config::manifest;

/// What shells print when a script names a program that is not installed.
const NOT_FOUND_TEXTS: [&str; 3] = [
    ": not found",
    "command not found",
    "No such file or directory",
];

pub(super) fn hints(run: &HookRun, hook: Option<&HookInForce>) -> Vec<String> {
    let mut hints: Vec<String> = Vec::new();
    let cannot_start = run.outcome == RunOutcome::Error && run.exit.is_none();
    if let Some(hook) = hook.filter(|_| cannot_start) {
        let place = ManifestPlace {
            scope: hook.scope,
            root: &hook.root,
            folder: hook.manifest.parent().unwrap_or(&hook.root),
        };
        let machine = Machine::from_env(hook.root.clone());
        let problems = check_hook_scripts(&machine, &hook.hook, place).into_iter();
        hints.extend(problems.map(|problem| format!("{}: {}", problem.message, problem.help)));
    }
    let stderr = run.stderr.as_deref().unwrap_or_default();
    if run.exit == Some(0) && NOT_FOUND_TEXTS.iter().any(|words| stderr.contains(words)) {
        let hint = "stderr says that a program or file is missing, and the hook went on without it: check that its answer does not depend on it (`set -e` ends a script there)";
        hints.push(hint.to_owned());
    }
    hints.extend(outcome_hint(run, hook.map(|hook| &hook.hook)));
    hints
}

fn outcome_hint(run: &HookRun, hook: Option<&Hook>) -> Option<String> {
    let blocking = hook.is_some_and(|hook| hook.blocking);
    let message = run.message.as_deref().unwrap_or_default();
    match (run.outcome, run.exit) {
        (RunOutcome::Warn, Some(2)) => Some(
            "exit code 2 denies only if the hook has `blocking: true`; the call was allowed"
                .to_owned(),
        ),
        (RunOutcome::Warn, Some(127)) => Some(
            "exit code 127: a program was not found, and the call was allowed; install it, or correct the name in the script"
                .to_owned(),
        ),
        (RunOutcome::Warn, Some(code)) if blocking => Some(format!(
            "only exit code 2 denies; {code} is a failure, and the call was allowed. `on_failure: block` denies on failures as well"
        )),
        (RunOutcome::Timeout, _) => Some(timeout_hint(hook)),
        (RunOutcome::Error, Some(0)) if message.contains("not JSON") => {
            let is_object = message.contains("`{") || message.contains("`[");
            Some(if is_object {
                "the answer is not JSON: names and texts need double quotes, as in `{\"decision\": \"deny\", \"reason\": \"…\"}`".to_owned()
            } else {
                "stdout is for the answer alone: print debug text to stderr, or nothing at all"
                    .to_owned()
            })
        }
        (RunOutcome::Refused, _) => Some("`anyhook list` shows which hooks may run".to_owned()),
        _ => None,
    }
}

fn timeout_hint(hook: Option<&Hook>) -> String {
    let timeout = hook.map(|hook| manifest::timeout(&hook.handler).as_secs_f64());
    let timeout = timeout.unwrap_or_default();
    let blocks = hook.and_then(|hook| hook.handler.timeout_action) == Some(TimeoutAction::Block);
    let then = if blocks {
        "the call was denied (`timeout_action: block`)"
    } else {
        "the call was allowed; `timeout_action: block` would deny it"
    };
    format!("it was stopped after {timeout} s (`timeout`); {then}")
}
