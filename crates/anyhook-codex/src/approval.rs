//! From a hook's response to the answer of an approval request. Pure.

use anyhook_model::{Decision, HookEvent, HookResponse, Loss};
use serde_json::Value;

use crate::wire::{
    Answer, ElicitationAction, GrantScope, GrantedPermissions, ItemDecision, Persist, Reply,
    RequestId, ReviewDecision, write,
};

/// Said to the older requests, which carry a reason, when the hook gave none.
const NO_REASON: &str = "denied by a hook";

/// A request of the server that hooks may answer.
#[derive(Debug, Clone)]
pub struct Approval {
    pub id: RequestId,
    pub kind: ApprovalKind,
    pub event: HookEvent,
    /// Whether the event says all that the request is about. The files of a
    /// change are in an earlier message than its request; whoever joined in
    /// between has not seen them, and no hook can have judged them.
    pub complete: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ApprovalKind {
    Command,
    FileChange,
    /// What was asked for.
    Permissions(GrantedPermissions),
    McpTool,
    /// `execCommandApproval` and `applyPatchApproval`.
    Review,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Accept,
    AcceptForSession,
    /// The item does not run, the turn goes on.
    Decline,
    /// The item does not run, the turn ends.
    Cancel,
    /// A person shall decide.
    Ask,
    NoOpinion,
}

impl Verdict {
    /// The strictest of what the response says: its `decision`, its `continue`
    /// and the wish in `metadata.codex.decision`.
    pub fn of(response: &HookResponse) -> Self {
        let wish = response
            .metadata
            .get("codex")
            .and_then(|codex| codex.get("decision"))
            .and_then(Value::as_str)
            .unwrap_or_default();
        if wish == "cancel" || response.goes_on == Some(false) {
            return Self::Cancel;
        }
        if response.is_deny() || wish == "decline" {
            return Self::Decline;
        }
        if response.decision == Some(Decision::Ask) {
            return Self::Ask;
        }
        // The protocol cannot carry another input, and to accept the old one
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
    pub fn verdict(&self, response: &HookResponse) -> Verdict {
        match Verdict::of(response) {
            Verdict::Accept | Verdict::AcceptForSession if !self.complete => Verdict::NoOpinion,
            verdict => verdict,
        }
    }

    /// The message for the server.
    pub fn reply(&self, result: &Answer) -> String {
        write(&Reply {
            id: &self.id,
            result,
        })
    }
}

impl ApprovalKind {
    /// `None` when a person has to decide.
    pub fn answer(&self, verdict: Verdict, reason: Option<&str>) -> Option<Answer> {
        let yes = match verdict {
            Verdict::Accept | Verdict::AcceptForSession => true,
            Verdict::Decline | Verdict::Cancel => false,
            Verdict::Ask | Verdict::NoOpinion => return None,
        };
        let scope = match verdict {
            Verdict::AcceptForSession => GrantScope::Session,
            _ => GrantScope::Turn,
        };
        Some(match self {
            Self::Command | Self::FileChange => Answer::Item {
                decision: match verdict {
                    Verdict::Accept => ItemDecision::Accept,
                    Verdict::AcceptForSession => ItemDecision::AcceptForSession,
                    Verdict::Cancel => ItemDecision::Cancel,
                    _ => ItemDecision::Decline,
                },
            },
            Self::Permissions(wanted) => Answer::Permissions {
                permissions: if yes {
                    wanted.clone()
                } else {
                    GrantedPermissions::default()
                },
                scope,
            },
            Self::McpTool => Answer::Elicitation {
                action: match verdict {
                    Verdict::Accept | Verdict::AcceptForSession => ElicitationAction::Accept,
                    Verdict::Cancel => ElicitationAction::Cancel,
                    _ => ElicitationAction::Decline,
                },
                content: None,
                meta: (scope == GrantScope::Session).then_some(Persist { persist: scope }),
            },
            Self::Review => Answer::Review {
                decision: match verdict {
                    Verdict::Accept => ReviewDecision::Approved,
                    Verdict::AcceptForSession => ReviewDecision::ApprovedForSession,
                    Verdict::Cancel => ReviewDecision::Abort,
                    _ => ReviewDecision::Denied {
                        rejection: reason.unwrap_or(NO_REASON).to_owned(),
                    },
                },
            },
        })
    }
}

/// What of a response Codex cannot be told over this protocol.
pub fn losses(event: &HookEvent, response: &HookResponse) -> Vec<Loss> {
    let mut lost = Vec::new();
    let mut say = |field: &str, message: &str| lost.push(Loss::new(field, message));
    let method = event.native_event.as_str();
    let review = matches!(method, "execCommandApproval" | "applyPatchApproval");
    let approval =
        review || method.ends_with("/requestApproval") || method == "mcpServer/elicitation/request";
    if approval {
        if response.is_deny() && response.reason.is_some() && !review {
            say(
                "reason",
                "the answer to this request has no place for a reason; Codex is told that it was declined",
            );
        }
        if response.updated_input.is_some() {
            say(
                "updated_input",
                "the input of a request cannot be changed; it was declined instead",
            );
        }
        if response.goes_on == Some(false) && matches!(method, "item/permissions/requestApproval") {
            say(
                "continue",
                "a permission request cannot end the turn; nothing was granted",
            );
        }
    } else {
        for (field, said) in [
            ("deny", response.is_deny()),
            ("ask", response.decision == Some(Decision::Ask)),
            ("updated_input", response.updated_input.is_some()),
            ("continue", response.goes_on == Some(false)),
        ] {
            if said {
                say(
                    field,
                    "this message is only a notice; it was too late to decide",
                );
            }
        }
    }
    for (field, said) in [
        ("context", response.context.is_some()),
        ("system_message", response.system_message.is_some()),
    ] {
        if said {
            say(field, "the app-server protocol has no place for it");
        }
    }
    lost
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn verdict(response: Value) -> Verdict {
        Verdict::of(&serde_json::from_value(response).unwrap())
    }

    #[test]
    fn the_strictest_wish_wins() {
        let wish = |decision: &str| json!({"codex": {"decision": decision}});
        for (response, expected) in [
            (json!({}), Verdict::NoOpinion),
            (json!({"reason": "looked at it"}), Verdict::NoOpinion),
            (json!({"decision": "allow"}), Verdict::Accept),
            (json!({"decision": "deny"}), Verdict::Decline),
            (json!({"decision": "ask"}), Verdict::Ask),
            (
                json!({"decision": "allow", "metadata": wish("acceptForSession")}),
                Verdict::AcceptForSession,
            ),
            (
                json!({"metadata": wish("acceptForSession")}),
                Verdict::AcceptForSession,
            ),
            (
                json!({"decision": "deny", "metadata": wish("acceptForSession")}),
                Verdict::Decline,
            ),
            (
                json!({"decision": "ask", "metadata": wish("acceptForSession")}),
                Verdict::Ask,
            ),
            (
                json!({"decision": "deny", "metadata": wish("cancel")}),
                Verdict::Cancel,
            ),
            (
                json!({"decision": "allow", "metadata": wish("cancel")}),
                Verdict::Cancel,
            ),
            (
                json!({"decision": "allow", "metadata": wish("decline")}),
                Verdict::Decline,
            ),
            (
                json!({"decision": "deny", "continue": false}),
                Verdict::Cancel,
            ),
            (
                json!({"decision": "allow", "updated_input": {"command": "ls"}}),
                Verdict::Decline,
            ),
            (
                json!({"decision": "allow", "metadata": wish("surprise")}),
                Verdict::Accept,
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
            complete: false,
        };
        let allow = serde_json::from_value(json!({"decision": "allow"})).unwrap();
        assert_eq!(approval.verdict(&allow), Verdict::NoOpinion);
        assert_eq!(
            approval.verdict(&HookResponse::deny("no")),
            Verdict::Decline
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
            losses(&event, &response)
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
