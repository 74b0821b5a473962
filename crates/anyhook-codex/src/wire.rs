//! The app-server protocol on the wire: one JSON object per line or per
//! WebSocket text frame, without a `jsonrpc` member.
//!
//! Tolerant in: [`Incoming`] looks only at the envelope and leaves the rest
//! unparsed, so an unknown method or field is no trouble. Strict out: the types
//! that are written here have exactly the members of the published schema.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// Number and text are different ids: `0` is not `"0"`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestId {
    Number(i64),
    Text(String),
}

/// The envelope of a message of either side.
#[derive(Debug, Deserialize)]
pub struct Incoming<'a> {
    #[serde(default)]
    pub id: Option<RequestId>,
    #[serde(default, borrow)]
    pub method: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub params: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub result: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub error: Option<&'a RawValue>,
    #[serde(default, borrow, rename = "emittedAtMs")]
    emitted_at: Option<&'a RawValue>,
}

impl<'a> Incoming<'a> {
    /// `None` when the bytes are no message; such bytes are nobody's but the
    /// two ends'.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    pub fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// The id of the request that this message answers.
    pub fn answers(&self) -> Option<&RequestId> {
        if self.method.is_some() {
            return None;
        }
        self.id.as_ref()
    }

    pub fn params(&self) -> Value {
        self.params.and_then(parse).unwrap_or_default()
    }

    pub fn emitted_at_ms(&self) -> Option<i64> {
        self.emitted_at.and_then(parse)
    }
}

/// Parses one part of a message; `None` when it has another shape.
pub fn parse<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

#[derive(Debug, Serialize)]
pub struct Reply<'a> {
    pub id: &'a RequestId,
    pub result: &'a Answer,
}

#[derive(Debug, Serialize)]
pub struct Request<'a, P> {
    pub id: &'a RequestId,
    pub method: &'static str,
    pub params: P,
}

#[derive(Debug, Serialize)]
pub struct Notification {
    pub method: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    pub client_info: ClientInfo,
    pub capabilities: Capabilities,
}

#[derive(Debug, Serialize)]
pub struct ClientInfo {
    pub name: &'static str,
    pub title: &'static str,
    pub version: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    pub experimental_api: bool,
    pub request_attestation: bool,
    pub opt_out_notification_methods: &'static [&'static str],
}

#[derive(Debug, Serialize)]
pub struct LoadedListParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResumeParams<'a> {
    pub thread_id: &'a str,
    /// Whether only the subscription is wanted and not the history.
    pub exclude_turns: bool,
}

/// The result of an approval request, in the form that its method asks for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Answer {
    Item {
        decision: ItemDecision,
    },
    Review {
        decision: ReviewDecision,
    },
    Permissions {
        permissions: GrantedPermissions,
        scope: GrantScope,
    },
    Elicitation {
        action: ElicitationAction,
        content: Option<Value>,
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<Persist>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ItemDecision {
    Accept,
    AcceptForSession,
    Decline,
    Cancel,
}

/// Of the older requests `execCommandApproval` and `applyPatchApproval`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewDecision {
    Approved,
    ApprovedForSession,
    Denied { rejection: String },
    Abort,
}

/// What is absent here is refused.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GrantedPermissions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum GrantScope {
    Turn,
    Session,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ElicitationAction {
    Accept,
    Decline,
    Cancel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Persist {
    pub persist: GrantScope,
}

/// The text of an outgoing message, without a line end.
pub fn write<M: Serialize>(message: &M) -> String {
    // Only maps with keys that are no strings can fail, and there are none here.
    serde_json::to_string(message).unwrap_or_default()
}
