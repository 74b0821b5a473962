//! Hermes approves hooks by event and command, and says under `extra` how a call
//! ended. What an event lacks is null.

use anyhook_model::HookEvent;
use anyhook_model::event::field;
use serde_json::{Value, json};

use crate::quirks::set_status;
use crate::trust::{InstalledEntry, TrustLedger, TrustRecord, TrustSubject};
use crate::{Quirks, pointer};

pub(super) struct HermesQuirks;

pub(super) static QUIRKS: HermesQuirks = HermesQuirks;

const POST_TOOL: &str = "post_tool_call";
const SUCCESS: &str = "ok";
const SCHEMA: &str = "hermes.observer.v1";

impl Quirks for HermesQuirks {
    fn decoded(&self, payload: &Value, event: &mut HookEvent) {
        if event.native_event == POST_TOOL {
            let status = payload.pointer("/extra/status").and_then(Value::as_str);
            set_status(event, status.is_none_or(|status| status == SUCCESS));
        }
    }

    fn encoded(&self, event: &HookEvent, payload: &mut Value) {
        if event.source == "hermes-agent" {
            return;
        }
        pointer::put(payload, "/extra/telemetry_schema_version", json!(SCHEMA));
        if payload.get("hook_event_name") == Some(&json!(POST_TOOL)) {
            let is_error = event.text(field::STATUS) == Some("error");
            let status = if is_error { "error" } else { SUCCESS };
            pointer::put(payload, "/extra/status", json!(status));
        }
        if let Value::Object(payload) = payload {
            for key in ["tool_name", "tool_input"] {
                payload.entry(key).or_insert(Value::Null);
            }
        }
    }

    fn trust_ledger(&self) -> Option<&'static dyn TrustLedger> {
        Some(&QUIRKS)
    }
}

impl TrustLedger for HermesQuirks {
    fn records(&self, subject: &TrustSubject) -> Vec<TrustRecord> {
        subject.entries.iter().map(approval).collect()
    }

    fn missing(&self, subject: &TrustSubject, document: &Value) -> Option<String> {
        let entries = subject.entries.iter();
        let missing = entries.filter(|entry| !approval(entry).is_in(document));
        let missing = missing.count();
        (missing > 0).then(|| format!("{missing} of its entries are not approved in Hermes Agent"))
    }
}

fn approval(entry: &InstalledEntry) -> TrustRecord {
    let command = entry.handler.get("command");
    let approved = json!({"event": entry.event, "command": command});
    TrustRecord::element(["approvals"], approved)
}
