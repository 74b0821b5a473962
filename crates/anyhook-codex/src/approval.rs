//! From a hook's response to the answer of an approval request. Pure.

use anyhook_model::{Decision, HookEvent, HookResponse, Loss};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::wire::{RequestId, is_approval_method};

/// The older requests carry a reason; this one if the hook gave none.
const DEFAULT_REASON: &str = "denied by a hook";

/// A request of the server that hooks may answer.
#[derive(Debug, Clone)]
pub struct Approval {
    pub id: RequestId,
    pub kind: ApprovalKind,
    pub event: HookEvent,
    /// Method and parameters as they came, to tell a repeated request from
    /// another one.
    pub content: String,
    /// The event contains everything that the request is about. The files of a
    /// change are in an earlier message than its request; a client that joined in
    /// between has not seen them, and no hook can have judged them.
    pub is_complete: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ApprovalKind {
    Command,
    FileChange,
    Permissions(PermissionSet),
    McpTool,
    /// `execCommandApproval` and `applyPatchApproval`.
    Review,
    /// A request that is not known: it is answered as most are.
    Unknown,
}

/// Requested or granted permissions. What is absent in a grant is refused.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionSet {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalVerdict {
    Accept,
    AcceptForSession,
    /// The item does not run, the turn goes on.
    Decline,
    /// The item does not run, the turn ends.
    Cancel,
    /// The user decides.
    Ask,
    NoOpinion,
}

impl ApprovalVerdict {
    /// The strictest of the response's `decision`, its `continue` and its
    /// `metadata.codex.decision`.
    pub fn from_response(response: &HookResponse) -> Self {
        let codex = response.metadata.get("codex");
        let wish = codex
            .and_then(|codex| codex.get("decision")?.as_str())
            .unwrap_or_default();
        if wish == "cancel" || response.should_continue == Some(false) {
            return Self::Cancel;
        }
        if response.is_deny() || wish == "decline" {
            return Self::Decline;
        }
        if response.decision == Some(Decision::Ask) {
            return Self::Ask;
        }
        // The protocol cannot carry another input, and accepting the old one
        // would undo the rewrite.
        if response.updated_input.is_some() {
            return Self::Decline;
        }
        match (wish, response.decision) {
            ("acceptForSession", _) => Self::AcceptForSession,
            ("accept", _) | (_, Some(Decision::Allow)) => Self::Accept,
            _ => Self::NoOpinion,
        }
    }
}

impl Approval {
    pub fn verdict(&self, response: &HookResponse) -> ApprovalVerdict {
        use ApprovalVerdict::{Accept, AcceptForSession, NoOpinion};
        match ApprovalVerdict::from_response(response) {
            Accept | AcceptForSession if !self.is_complete => NoOpinion,
            verdict => verdict,
        }
    }

    /// The message for the server.
    pub fn reply(&self, result: &Value) -> String {
        format!(r#"{{"id":{},"result":{result}}}"#, self.id.to_json())
    }
}

impl ApprovalKind {
    /// The result in the form of this request; `None` if the user has to decide.
    pub fn answer(&self, verdict: ApprovalVerdict, reason: Option<&str>) -> Option<Value> {
        let (item_decision, review_decision, action) = match verdict {
            ApprovalVerdict::Accept => ("accept", json!("approved"), "accept"),
            ApprovalVerdict::AcceptForSession => {
                ("acceptForSession", json!("approved_for_session"), "accept")
            }
            ApprovalVerdict::Decline => {
                let rejection = reason.unwrap_or(DEFAULT_REASON);
                let denied = json!({"denied": {"rejection": rejection}});
                ("decline", denied, "decline")
            }
            ApprovalVerdict::Cancel => ("cancel", json!("abort"), "cancel"),
            ApprovalVerdict::Ask | ApprovalVerdict::NoOpinion => return None,
        };
        let is_for_session = verdict == ApprovalVerdict::AcceptForSession;
        Some(match self {
            Self::Command | Self::FileChange | Self::Unknown => json!({"decision": item_decision}),
            Self::Review => json!({"decision": review_decision}),
            Self::Permissions(requested) => {
                let scope = if is_for_session { "session" } else { "turn" };
                let granted = Some(requested).filter(|_| action == "accept");
                json!({"permissions": granted.cloned().unwrap_or_default(), "scope": scope})
            }
            Self::McpTool if is_for_session => {
                json!({"action": action, "content": null, "_meta": {"persist": "session"}})
            }
            Self::McpTool => json!({"action": action, "content": null}),
        })
    }
}

/// The older requests, with another form of answer.
pub(crate) fn is_review_method(method: &str) -> bool {
    matches!(method, "execCommandApproval" | "applyPatchApproval")
}

/// What this protocol cannot carry of a response.
pub fn response_losses(event: &HookEvent, response: &HookResponse) -> Vec<Loss> {
    const NOTICE: &str = "this message is only a notice; it was too late to decide";
    const NO_FIELD: &str = "the app-server protocol has no field for it";
    let method = event.native_event.as_str();
    let is_review = is_review_method(method);
    let is_approval = is_approval_method(method) || method == "mcpServer/elicitation/request";
    let is_notice = !is_approval;
    let is_deny = response.is_deny();
    let is_rewrite = response.updated_input.is_some();
    let ends_turn = response.should_continue == Some(false);
    let is_permission_request = method == "item/permissions/requestApproval";
    [
        (
            is_approval && !is_review && is_deny && response.reason.is_some(),
            "reason",
            "the answer to this request has no field for a reason; Codex only learns that it was declined",
        ),
        (
            is_approval && is_rewrite,
            "updated_input",
            "the input of a request cannot be changed; it was declined instead",
        ),
        (
            is_permission_request && ends_turn,
            "continue",
            "a permission request cannot end the turn; nothing was granted",
        ),
        (is_notice && is_deny, "deny", NOTICE),
        (
            is_notice && response.decision == Some(Decision::Ask),
            "ask",
            NOTICE,
        ),
        (is_notice && is_rewrite, "updated_input", NOTICE),
        (is_notice && ends_turn, "continue", NOTICE),
        (response.context.is_some(), "context", NO_FIELD),
        (
            response.system_message.is_some(),
            "system_message",
            NO_FIELD,
        ),
    ]
    .into_iter()
    .filter(|(is_lost, _, _)| *is_lost)
    .map(|(_, field, message)| Loss::new(field, message))
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn verdict(response: Value) -> ApprovalVerdict {
        ApprovalVerdict::from_response(&serde_json::from_value(response).unwrap())
    }

    #[test]
    fn the_strictest_wish_wins() {
        let wish = |decision: &str| json!({"codex": {"decision": decision}});
        for (response, expected) in [
            (json!({}), ApprovalVerdict::NoOpinion),
            (
                json!({"reason": "looked at it"}),
                ApprovalVerdict::NoOpinion,
            ),
            (json!({"decision": "allow"}), ApprovalVerdict::Accept),
            (json!({"decision": "deny"}), ApprovalVerdict::Decline),
            (json!({"decision": "ask"}), ApprovalVerdict::Ask),
            (
                json!({"decision": "allow", "metadata": wish("acceptForSession")}),
                ApprovalVerdict::AcceptForSession,
            ),
            (
                json!({"metadata": wish("acceptForSession")}),
                ApprovalVerdict::AcceptForSession,
            ),
            (
                json!({"decision": "deny", "metadata": wish("acceptForSession")}),
                ApprovalVerdict::Decline,
            ),
            (
                json!({"decision": "ask", "metadata": wish("acceptForSession")}),
                ApprovalVerdict::Ask,
            ),
            (
                json!({"decision": "deny", "metadata": wish("cancel")}),
                ApprovalVerdict::Cancel,
            ),
            (
                json!({"decision": "allow", "metadata": wish("cancel")}),
                ApprovalVerdict::Cancel,
            ),
            (
                json!({"decision": "allow", "metadata": wish("decline")}),
                ApprovalVerdict::Decline,
            ),
            (
                json!({"decision": "deny", "continue": false}),
                ApprovalVerdict::Cancel,
            ),
            (
                json!({"decision": "allow", "updated_input": {"command": "ls"}}),
                ApprovalVerdict::Decline,
            ),
            (
                json!({"decision": "allow", "metadata": wish("surprise")}),
                ApprovalVerdict::Accept,
            ),
        ] {
            assert_eq!(verdict(response.clone()), expected, "{response}");
        }
    }

    #[test]
    fn what_no_hook_could_see_is_never_accepted() {
        let approval = Approval {
            id: RequestId::Number(0),
            kind: ApprovalKind::FileChange,
            event: HookEvent::default(),
            content: String::new(),
            is_complete: false,
        };
        let allow = serde_json::from_value(json!({"decision": "allow"})).unwrap();
        assert_eq!(approval.verdict(&allow), ApprovalVerdict::NoOpinion);
        assert_eq!(
            approval.verdict(&HookResponse::deny("no")),
            ApprovalVerdict::Decline
        );
    }

    #[test]
    fn losses_are_named() {
        let fields = |method: &str, response: Value| {
            let event = HookEvent {
                native_event: method.into(),
                ..HookEvent::default()
            };
            let response = serde_json::from_value(response).unwrap();
            response_losses(&event, &response)
                .into_iter()
                .map(|loss| loss.field)
                .collect::<Vec<_>>()
        };
        let command = "item/commandExecution/requestApproval";
        assert_eq!(
            fields(
                command,
                json!({"decision": "deny", "reason": "no", "context": "c"})
            ),
            ["reason", "context"]
        );
        assert_eq!(
            fields(
                "execCommandApproval",
                json!({"decision": "deny", "reason": "no"})
            ),
            [""; 0]
        );
        assert_eq!(
            fields("item/completed", json!({"decision": "deny"})),
            ["deny"]
        );
        assert_eq!(
            fields(command, json!({"decision": "allow", "updated_input": {}})),
            ["updated_input"]
        );
    }
}
