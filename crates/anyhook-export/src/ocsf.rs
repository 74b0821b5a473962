//! One line per event for a SIEM, in the Open Cybersecurity Schema Framework: class *API
//! Activity* with the profile *Security Control*.
//!
//! What the schema has no place for is under `unmapped`.

use serde_json::{Value, json};

use anyhook_model::{Decision, RecordKind};

use crate::content::{ContentLevel, content_text};
use crate::recorded_event::RecordedEvent;

const SCHEMA_VERSION: &str = "1.6.0";
const CATEGORY_APPLICATION: u32 = 6;
const CLASS_API_ACTIVITY: u32 = 6003;
const ACTIVITY_OTHER: u32 = 99;

/// An event as an OCSF object. `host` names the machine where the event does not.
pub fn ocsf_event(event: &RecordedEvent<'_>, content: ContentLevel, host: &str) -> Value {
    let hook_event = &event.event;
    let data = &hook_event.data;
    let is_denied = event.decision == Some(Decision::Deny);
    let has_failed = event.kind == RecordKind::Failure
        || matches!(data.status.as_deref(), Some("error" | "failure"));
    let (action_id, action, disposition) = match event.decision {
        Some(Decision::Deny) => (2, "Denied", "Blocked"),
        // Whether the user said yes is not known here.
        Some(Decision::Ask) => (99, "Asked", "Asked"),
        _ => (1, "Allowed", "Allowed"),
    };
    let millis = event.end_nanos().unwrap_or_default() / 1_000_000;
    let mut object = json!({
        "category_uid": CATEGORY_APPLICATION,
        "category_name": "Application Activity",
        "class_uid": CLASS_API_ACTIVITY,
        "class_name": "API Activity",
        "activity_id": ACTIVITY_OTHER,
        "activity_name": hook_event.event,
        "type_uid": CLASS_API_ACTIVITY * 100 + ACTIVITY_OTHER,
        "type_name": "API Activity: Other",
        "time": millis,
        "severity_id": if is_denied { 3 } else { 1 },
        "severity": if is_denied { "Medium" } else { "Informational" },
        "status_id": if is_denied || has_failed { 2 } else { 1 },
        "status": if is_denied || has_failed { "Failure" } else { "Success" },
        "action_id": action_id,
        "action": action,
        "disposition_id": action_id,
        "disposition": disposition,
        "metadata": {
            "version": SCHEMA_VERSION,
            "profiles": ["security_control"],
            "uid": event.id,
            "original_time": event.time,
            "event_code": hook_event.native_event,
            "correlation_uid": hook_event.session_id,
            "product": {
                "name": "anyhook", "vendor_name": "anyhook",
                "version": env!("CARGO_PKG_VERSION"),
            },
        },
        "actor": {
            "app_name": event.agent,
            "user": { "name": hook_event.user_id.as_deref().unwrap_or("unknown") },
            "session": hook_event.session_id.as_ref().map(|id| json!({ "uid": id })),
        },
        "api": {
            "operation": data.tool_name.as_deref().unwrap_or(&hook_event.event),
            "service": { "name": event.agent },
            "request": { "uid": data.tool_call_id.as_deref().unwrap_or(&event.id) },
        },
        "src_endpoint": { "hostname": hook_event.machine_id.as_deref().unwrap_or(host) },
        "status_detail": event.response.reason,
        "unmapped": unmapped_fields(event, content),
    });
    remove_nulls(&mut object);
    object
}

fn unmapped_fields(event: &RecordedEvent<'_>, content: ContentLevel) -> Value {
    let hook_event = &event.event;
    let data = &hook_event.data;
    let text = |raw: Option<_>, is_wanted: bool| raw.filter(|_| is_wanted).map(content_text);
    let hooks = event.hooks.iter().map(|run| {
        json!({
            "hook": run.hook, "manifest": run.manifest, "outcome": run.outcome,
            "without_effect": run.without_effect, "exit": run.exit,
            "duration_ms": run.duration_ms, "message": run.message,
        })
    });
    json!({
        "kind": event.kind,
        "decision": event.decision,
        "native_tool": data.native_tool_name,
        "agent_id": data.agent_id,
        "agent_type": data.agent_type,
        "model": data.model,
        "cwd": hook_event.cwd,
        "project_id": hook_event.project_id,
        "workflow_id": hook_event.workflow_id,
        "rewritten": event.response.updated_input.map(|_| true),
        "lost": event.lost.iter().map(|loss| &loss.field).collect::<Vec<_>>(),
        "warnings": event.warnings,
        "hooks": hooks.collect::<Vec<_>>(),
        "tool_input": text(data.tool_input, content.has_tools()),
        "tool_output": text(data.tool_output, content.has_tools()),
        "prompt": text(data.prompt, content.has_prompts()),
        "last_message": text(data.last_message, content.has_prompts()),
    })
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| {
                remove_nulls(field);
                !field.is_null() && !field.as_array().is_some_and(Vec::is_empty)
            });
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}
