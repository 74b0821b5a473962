//! Cline. Two runtimes: the CLI and SDK (3.0.65, observed), whose payload names
//! the hook in snake case, and the VS Code extension (4.1, from source), whose
//! payload names it as the script is named. Exit codes never block; `cancel`
//! ends the whole run.

use crate::reference_model::call::{Call, is_true, object, text};
use crate::reference_model::{Model, Reaction};
use serde_json::Value;

pub(super) const MODEL: Model = Model {
    events: &[
        "TaskStart",
        "TaskResume",
        "TaskComplete",
        "TaskCancel",
        "TaskError",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "SessionShutdown",
        "PreCompact",
    ],
    react,
    has_time_limit: true,
};

fn react(call: &Call) -> Reaction {
    if text(call.payload, "/hookName") == Some(call.event) {
        extension(call)
    } else {
        cli(call)
    }
}

fn cli(call: &Call) -> Reaction {
    if !matches!(call.event, "PreToolUse" | "PostToolUse") {
        return Reaction::default().with_note("detached or never fired: the answer is not read");
    }
    if call.stdout.is_empty() {
        return Reaction::default();
    }
    let Some(json) = call.json().or_else(|| control_line(call.stdout)) else {
        return Reaction::failed("output is not exactly one JSON object");
    };
    let mut r = Reaction::default();
    let error = text(&json, "/errorMessage");
    if is_true(&json, "/cancel") {
        r.block();
        r.session_ends = true;
        r.add_note("the run is aborted; nobody is told the reason");
        return r;
    }
    r.show_model(text(&json, "/contextModification").or(text(&json, "/context")));
    r.show_model(error);
    if call.event == "PreToolUse" {
        r.new_input = json
            .get("overrideInput")
            .filter(|input| input.is_object())
            .cloned();
    }
    r
}

/// A line `HOOK_CONTROL<TAB>{json}` is found among other lines.
fn control_line(stdout: &str) -> Option<Value> {
    stdout
        .lines()
        .find_map(|line| object(line.strip_prefix("HOOK_CONTROL\t")?))
}

fn extension(call: &Call) -> Reaction {
    if call.exit != Some(0) {
        return Reaction::failed("non-zero exit: hook failed, output not read");
    }
    if call.stdout.is_empty() {
        return Reaction::default();
    }
    let Some(json) = last_object(call.stdout) else {
        return Reaction::failed("no JSON object in the output");
    };
    if json.get("shouldContinue").is_some() {
        return Reaction::failed("`shouldContinue` is rejected");
    }
    let mut r = Reaction::default();
    let blocking = matches!(
        call.event,
        "TaskStart" | "UserPromptSubmit" | "PreToolUse" | "PostToolUse"
    );
    if is_true(&json, "/cancel") && blocking {
        r.block();
        r.end_session(text(&json, "/errorMessage"));
    } else if matches!(call.event, "PreToolUse" | "PostToolUse") {
        r.show_model(text(&json, "/contextModification"));
        if json.get("overrideInput").is_some() {
            r.add_note("overrideInput is not read by the extension");
        }
    }
    r
}

fn last_object(stdout: &str) -> Option<Value> {
    object(stdout).or_else(|| {
        stdout
            .match_indices('{')
            .find_map(|(start, _)| object(stdout.get(start..)?))
    })
}
