//! Gemini CLI 0.61. The answer is stdout, or stderr if stdout is empty. JSON is
//! read at every exit code; other text is a denial at every code but 0 and 1.

use crate::reference_model::call::{Call, is_false, is_true, missing_key, object, text};
use crate::reference_model::{Action, Model, Reaction};
use serde_json::Value;

pub(super) const MODEL: Model = Model {
    events: &[
        "SessionStart",
        "SessionEnd",
        "BeforeAgent",
        "AfterAgent",
        "BeforeModel",
        "AfterModel",
        "BeforeToolSelection",
        "BeforeTool",
        "AfterTool",
        "PreCompress",
        "Notification",
    ],
    react,
    has_time_limit: true,
};

fn react(call: &Call) -> Reaction {
    let Some(code) = call.exit else {
        return Reaction::failed("hook killed by a signal");
    };
    let words = if call.stdout.is_empty() {
        call.stderr
    } else {
        call.stdout
    };
    let Some(json) = parse(words) else {
        return plain(call, code, words);
    };
    let mut r = Reaction {
        output_suppressed: is_true(&json, "/suppressOutput"),
        ..Reaction::default()
    };
    r.show_user(text(&json, "/systemMessage"));
    let denied = matches!(text(&json, "/decision"), Some("deny" | "block"));
    verdict(call, &json, denied, &mut r);
    r
}

/// A JSON string is parsed once more.
fn parse(words: &str) -> Option<Value> {
    object(words).or_else(|| object(&serde_json::from_str::<String>(words).ok()?))
}

fn plain(call: &Call, code: i32, words: &str) -> Reaction {
    let mut r = Reaction::default();
    if words.is_empty() {
        if code != 0 {
            r = Reaction::failed(format!("exit {code} without output: no decision"));
        }
    } else if code == 0 || code == 1 {
        r.accepted = code == 0;
        r.show_user(Some(words));
    } else {
        let denial = serde_json::json!({ "decision": "deny", "reason": words });
        verdict(call, &denial, true, &mut r);
    }
    r
}

fn verdict(call: &Call, json: &Value, denied: bool, r: &mut Reaction) {
    let reason = text(json, "/reason");
    let context = text(json, "/hookSpecificOutput/additionalContext");
    let stops = is_false(json, "/continue");
    let stop_reason = text(json, "/stopReason").or(reason);
    match call.event {
        "BeforeTool" => {
            if stops {
                r.block();
                r.end_session(stop_reason);
            } else if denied {
                r.deny(reason);
            } else {
                if text(json, "/decision") == Some("ask") {
                    r.action = Action::AskUser;
                    r.show_user(reason);
                    if call.headless {
                        r.add_note("nobody answers: the client waits for ever");
                    }
                }
                if let Some(input) = json
                    .pointer("/hookSpecificOutput/tool_input")
                    .filter(|input| input.is_object())
                {
                    rebuild(call.tool_name(), input, r);
                }
            }
        }
        "AfterTool" => {
            if stops {
                r.block();
                r.end_session(stop_reason);
            } else if denied {
                r.deny(reason);
            }
            r.show_model(context);
            if json
                .pointer("/hookSpecificOutput/tailToolCallRequest")
                .is_some()
            {
                r.add_note("another tool call's result replaces this one");
            }
        }
        "BeforeAgent" => {
            if stops {
                r.block();
                r.end_session(stop_reason);
            } else if denied {
                r.block();
                r.show_user(reason);
            } else {
                r.show_model(context);
            }
        }
        "AfterAgent" => {
            if stops {
                r.end_session(stop_reason);
            } else if denied {
                r.send_back(reason);
                r.add_note("without a limit");
            }
        }
        "BeforeModel" if stops || denied => {
            r.block();
            r.session_ends = stops;
            r.show_user(stop_reason);
        }
        "AfterModel" if stops || denied => {
            r.block();
            r.end_session(stop_reason);
        }
        "SessionStart" => r.show_model(context),
        // BeforeToolSelection, PreCompress, Notification, SessionEnd: nothing to block.
        _ => {}
    }
}

/// The call is rebuilt from exactly this object.
fn rebuild(tool: &str, input: &Value, r: &mut Reaction) {
    let required: &[&str] = match tool {
        "run_shell_command" => &["command"],
        "read_file" => &["file_path"],
        "write_file" => &["file_path", "content"],
        "replace" => &["file_path", "old_string", "new_string"],
        "grep_search" | "glob" => &["pattern"],
        "list_directory" => &["dir_path"],
        "google_web_search" => &["query"],
        "web_fetch" => &["prompt"],
        _ => &[],
    };
    if let Some(key) = missing_key(input, required) {
        r.block();
        r.add_note(format!(
            "the new input lacks `{key}`: must have required property"
        ));
    } else {
        r.new_input = Some(input.clone());
    }
}
