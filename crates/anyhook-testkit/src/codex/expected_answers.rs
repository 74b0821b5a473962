//! The answers that hooks cause the bridge to send to the server.

use serde_json::{Value, json};

/// The answer to a request when the hook decides `decision`; `None` leaves it to
/// the client.
pub fn expected_answer(request: &Value, decision: &str) -> Option<Value> {
    let method = request["method"].as_str().unwrap();
    if request["params"]["itemId"] == "never_seen" && matches!(decision, "allow" | "session") {
        return None;
    }
    let pick = |allow: Value, deny: Value, session: Value, cancel: Value| match decision {
        "allow" => Some(allow),
        "deny" => Some(deny),
        "session" => Some(session),
        "cancel" => Some(cancel),
        _ => None,
    };
    let result = match method {
        "item/permissions/requestApproval" => {
            let wanted = &request["params"]["permissions"];
            let nothing = json!({"permissions": {}, "scope": "turn"});
            pick(
                json!({"permissions": wanted, "scope": "turn"}),
                nothing.clone(),
                json!({"permissions": wanted, "scope": "session"}),
                nothing,
            )
        }
        "mcpServer/elicitation/request" => pick(
            json!({"action": "accept", "content": null}),
            json!({"action": "decline", "content": null}),
            json!({"action": "accept", "content": null, "_meta": {"persist": "session"}}),
            json!({"action": "cancel", "content": null}),
        ),
        "execCommandApproval" | "applyPatchApproval" => pick(
            json!({"decision": "approved"}),
            json!({"decision": {"denied": {"rejection": "not here"}}}),
            json!({"decision": "approved_for_session"}),
            json!({"decision": "abort"}),
        ),
        _ => pick(
            json!({"decision": "accept"}),
            json!({"decision": "decline"}),
            json!({"decision": "acceptForSession"}),
            json!({"decision": "cancel"}),
        ),
    };
    result.map(|result| json!({"id": request["id"], "result": result}))
}
