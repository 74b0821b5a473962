//! Codex CLI 0.166. Standard output is read at exit 0 only, and ignored as a
//! whole if it does not fit Codex's own schema, such as for an unknown key. Exit
//! 2 needs a reason on stderr. What is ignored does not block.

use crate::reference_model::call::{Call, is_false, is_true, text};
use crate::reference_model::{Action, Model, Reaction};
use jsonschema::Validator;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::OnceLock;

pub(super) const MODEL: Model = Model {
    events: &[
        "SessionStart",
        "UserPromptSubmit",
        "PreModelRequest",
        "PostModelRequest",
        "PreToolUse",
        "PermissionRequest",
        "PostToolUse",
        "PreCompact",
        "PostCompact",
        "SubagentStart",
        "SubagentStop",
        "Stop",
        "Interrupt",
        "SessionEnd",
    ],
    react,
    has_time_limit: true,
};

macro_rules! schema {
    ($event:literal, $file:literal) => {
        (
            $event,
            include_str!(concat!("schema/", $file, ".command.output.json")),
        )
    };
}

const SCHEMAS: &[(&str, &str)] = &[
    schema!("SessionStart", "session-start"),
    schema!("UserPromptSubmit", "user-prompt-submit"),
    schema!("PreToolUse", "pre-tool-use"),
    schema!("PermissionRequest", "permission-request"),
    schema!("PostToolUse", "post-tool-use"),
    schema!("PreCompact", "pre-compact"),
    schema!("PostCompact", "post-compact"),
    schema!("SubagentStart", "subagent-start"),
    schema!("SubagentStop", "subagent-stop"),
    schema!("Stop", "stop"),
    schema!("Interrupt", "interrupt"),
];

fn react(call: &Call) -> Reaction {
    let mut r = match call.exit {
        Some(0) => read_stdout(call),
        Some(2) => exit_two(call),
        Some(code) => Reaction::failed(format!("exit {code}: hook failed")),
        None => Reaction::failed("hook killed by a signal"),
    };
    let undecided = r.action == Action::Proceeds && !r.skips_approval;
    if call.event == "PermissionRequest" && undecided {
        r.action = Action::AskUser;
    }
    r
}

fn exit_two(call: &Call) -> Reaction {
    if call.stderr.is_empty() {
        return Reaction::failed("exit 2 without a blocking reason on stderr");
    }
    let reason = Some(call.stderr);
    let mut r = Reaction::default();
    match call.event {
        "PreToolUse" | "PermissionRequest" | "PostToolUse" => r.deny(reason),
        "UserPromptSubmit" => block_prompt(&mut r),
        "Stop" | "SubagentStop" => r.send_back(reason),
        event => return Reaction::failed(format!("exit 2 means nothing on {event}")),
    }
    r
}

fn block_prompt(r: &mut Reaction) {
    r.block();
    r.add_note("`codex exec` shows that the prompt was blocked, but not why");
}

fn read_stdout(call: &Call) -> Reaction {
    if call.stdout.is_empty() {
        return Reaction::default();
    }
    if !call.stdout.starts_with(['{', '[']) {
        return plain_text(call);
    }
    let Ok(json) = serde_json::from_str::<Value>(call.stdout) else {
        return Reaction::failed("looks like JSON and is not");
    };
    if let Some(why) = schema_error(call.event, &json).or_else(|| rule_error(call, &json)) {
        return Reaction::failed(why);
    }
    let mut r = Reaction {
        output_suppressed: is_true(&json, "/suppressOutput"),
        ..Reaction::default()
    };
    r.show_user(text(&json, "/systemMessage"));
    verdict(call, &json, &mut r);
    r
}

fn plain_text(call: &Call) -> Reaction {
    let mut r = Reaction::default();
    match call.event {
        "SessionStart" | "UserPromptSubmit" => r.show_model(Some(call.stdout)),
        "Stop" | "SubagentStop" => return Reaction::failed("plain text is an error here"),
        "PreModelRequest" | "PostModelRequest" | "SessionEnd" | "Interrupt" => {
            return Reaction::failed("nothing but silence is known to be right here");
        }
        _ => r.add_note("plain text is ignored"),
    }
    r
}

fn verdict(call: &Call, json: &Value, r: &mut Reaction) {
    let context = text(json, "/hookSpecificOutput/additionalContext");
    let stop_reason = text(json, "/stopReason");
    let stops = is_false(json, "/continue");
    let blocks = text(json, "/decision") == Some("block");
    let reason = text(json, "/reason");
    match call.event {
        "PreToolUse" => {
            r.show_model(context);
            if blocks {
                r.deny(reason);
            } else if text(json, "/hookSpecificOutput/permissionDecision") == Some("deny") {
                r.deny(text(json, "/hookSpecificOutput/permissionDecisionReason"));
            } else if let Some(input) = json.pointer("/hookSpecificOutput/updatedInput") {
                rewrite(call, input, r);
            }
        }
        "PermissionRequest" => match text(json, "/hookSpecificOutput/decision/behavior") {
            Some("allow") => r.skips_approval = true,
            Some("deny") => r.deny(text(json, "/hookSpecificOutput/decision/message")),
            _ => {}
        },
        "PostToolUse" => {
            if blocks {
                r.deny(reason);
            } else if stops {
                r.deny(stop_reason);
                r.add_note("the loop goes on");
            }
            r.show_model(context);
        }
        "UserPromptSubmit" => {
            if stops {
                r.block();
                r.end_session(stop_reason);
            } else if blocks {
                block_prompt(r);
            } else {
                r.show_model(context);
            }
        }
        "SessionStart" => {
            if stops {
                r.block();
                r.end_session(stop_reason);
            } else {
                r.show_model(context);
            }
        }
        "SubagentStart" => r.show_model(context),
        "Stop" | "SubagentStop" => {
            if stops {
                r.end_session(stop_reason);
            } else if blocks {
                r.send_back(reason);
                r.add_note("without a limit");
            }
        }
        "PreCompact" | "PostCompact" if stops => {
            if call.event == "PreCompact" {
                r.block();
            }
            r.end_session(stop_reason);
        }
        _ => {}
    }
}

/// The shell and the patch tool take over `command` and nothing else.
fn rewrite(call: &Call, input: &Value, r: &mut Reaction) {
    if !matches!(call.tool_name(), "Bash" | "apply_patch") {
        r.new_input = Some(input.clone());
        return;
    }
    let Some(command) = text(input, "/command") else {
        r.accepted = false;
        r.add_note("the new input has no `command`");
        return;
    };
    let mut patched = call.tool_input("/tool_input");
    patched.insert("command".into(), command.into());
    r.new_input = Some(Value::Object(patched));
}

/// Rules that the schemas cannot say.
fn rule_error(call: &Call, json: &Value) -> Option<String> {
    let has = |pointer: &str| json.pointer(pointer).is_some_and(|v| !v.is_null());
    let event = call.event;
    if matches!(event, "PreToolUse" | "PermissionRequest") {
        if is_false(json, "/continue") {
            return Some(format!("{event}: unsupported continue:false"));
        }
        if has("/stopReason") {
            return Some(format!("{event}: unsupported stopReason"));
        }
    }
    if matches!(event, "PreToolUse" | "PermissionRequest" | "PostToolUse")
        && is_true(json, "/suppressOutput")
    {
        return Some(format!("{event}: unsupported suppressOutput"));
    }
    let wordless = |pointer: &str| text(json, pointer).is_none_or(|t| t.trim().is_empty());
    match text(json, "/decision") {
        Some("block") if wordless("/reason") => {
            return Some(format!("{event}: decision block without a reason"));
        }
        Some("approve") => return Some("unsupported decision:approve".into()),
        None if event == "PostToolUse" && has("/reason") => {
            return Some("PostToolUse: reason without a decision".into());
        }
        _ => {}
    }
    match event {
        "PreToolUse" => pre_tool_error(json, has("/hookSpecificOutput/updatedInput"), wordless),
        "PermissionRequest" => {
            let decision = "/hookSpecificOutput/decision";
            if has(&format!("{decision}/updatedInput"))
                || has(&format!("{decision}/updatedPermissions"))
                || is_true(json, &format!("{decision}/interrupt"))
            {
                return Some("PermissionRequest: reserved field in use".into());
            }
            None
        }
        "PostToolUse" if has("/hookSpecificOutput/updatedMCPToolOutput") => {
            Some("PostToolUse: unsupported updatedMCPToolOutput".into())
        }
        _ => None,
    }
}

fn pre_tool_error(json: &Value, rewrites: bool, wordless: impl Fn(&str) -> bool) -> Option<String> {
    match text(json, "/hookSpecificOutput/permissionDecision") {
        Some("deny") if wordless("/hookSpecificOutput/permissionDecisionReason") => {
            Some("permissionDecision deny without a reason".into())
        }
        Some("allow") if !rewrites => Some("unsupported permissionDecision:allow".into()),
        Some("ask") => Some("unsupported permissionDecision:ask".into()),
        None | Some("deny") if rewrites => {
            Some("updatedInput needs permissionDecision:allow".into())
        }
        _ => None,
    }
}

fn schema_error(event: &str, json: &Value) -> Option<String> {
    static VALIDATORS: OnceLock<HashMap<&str, Validator>> = OnceLock::new();
    let validators = VALIDATORS.get_or_init(|| {
        SCHEMAS
            .iter()
            .filter_map(|(event, source)| {
                let schema = serde_json::from_str(source).ok()?;
                Some((*event, jsonschema::validator_for(&schema).ok()?))
            })
            .collect()
    });
    match validators.get(event) {
        Some(validator) => validator
            .iter_errors(json)
            .next()
            .map(|error| format!("at `{}`: {error}", error.instance_path())),
        // Only an empty object fits whatever Codex may expect.
        None if json.as_object().is_some_and(serde_json::Map::is_empty) => None,
        None => Some(format!("no answer to {event} is known to be right")),
    }
}
