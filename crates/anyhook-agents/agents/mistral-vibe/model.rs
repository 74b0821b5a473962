//! Mistral Vibe 3.0.3, from headless runs. Only JSON at exit 0 counts; every
//! other end of a hook is a failure, which lets the call pass unless the entry is
//! strict. The model is that of an entry without `strict`.

use crate::reference_model::call::{Call, text};
use crate::reference_model::{Model, Reaction};
use serde_json::Value;

pub(super) const MODEL: Model = Model {
    events: &["pre_tool", "post_tool", "post_agent"],
    react,
    has_time_limit: true,
};

fn react(call: &Call) -> Reaction {
    if call.exit != Some(0) {
        return Reaction::failed("any exit code but 0 is a failure: the client goes on");
    }
    let json = match call.json() {
        Some(json) => json,
        None if call.stdout.is_empty() => Value::Null,
        None => return Reaction::failed("no JSON object: the client goes on"),
    };
    let mut r = Reaction::default();
    let denies = text(&json, "/decision") == Some("deny");
    let reason = text(&json, "/reason");
    let nested = json.get("hook_specific_output").unwrap_or(&Value::Null);
    match call.event {
        "pre_tool" if denies => r.deny(reason),
        "pre_tool" => {
            let input = nested.get("tool_input").filter(|input| input.is_object());
            r.new_input = input.cloned();
        }
        "post_tool" => {
            if denies {
                r.deny(reason);
            }
            r.show_model(text(nested, "/additional_context"));
        }
        _ if denies => {
            r.send_back(reason);
            r.add_note("at most three times in a turn");
        }
        _ => {}
    }
    // A deny shows its own note.
    if !denies || call.event == "post_tool" {
        r.show_user(text(&json, "/system_message"));
    }
    r
}
