//! pi loads a program whose functions it calls. The program is generated from
//! `plugin.ts`, and writes the event with the session around it.

use anyhook_model::event::field;
use anyhook_model::{HookEvent, HookResponse};
use serde_json::{Value, json};

use crate::quirks::set_status;
use crate::respond::RenderedAnswer;
use crate::spec::Scope;
use crate::trust::{TrustLedger, TrustRecord, TrustSubject};
use crate::{BridgeCall, Quirks, plugin_program};

pub(super) struct PiQuirks {
    /// pi, or a fork of it.
    pub(super) id: &'static str,
}

pub(super) static QUIRKS: PiQuirks = PiQuirks { id: "pi" };

const PLUGIN: &str = include_str!("plugin.ts");
const TOOL_RESULT: &str = "tool_result";

impl Quirks for PiQuirks {
    fn decoded(&self, payload: &Value, event: &mut HookEvent) {
        if event.native_event == TOOL_RESULT {
            set_status(event, payload.get("isError") != Some(&Value::Bool(true)));
        }
    }

    fn encoded(&self, event: &HookEvent, payload: &mut Value) {
        if event.source == self.id {
            return;
        }
        if let Value::Object(payload) = payload
            && payload.get("type") == Some(&json!(TOOL_RESULT))
        {
            let is_error = event.text(field::STATUS) == Some("error");
            payload.insert("isError".to_owned(), json!(is_error));
        }
    }

    /// The program puts the context of a denial below its reason.
    fn rendered(
        &self,
        _event: &HookEvent,
        _response: &HookResponse,
        rendered: &mut RenderedAnswer,
    ) {
        plugin_program::join_deny_and_context(rendered);
    }

    fn plugin_text(&self, document: &Value) -> Option<String> {
        let (head, events) = plugin_program::document_events(document)?;
        Some(plugin_program::fill(
            self.id,
            &head,
            PLUGIN,
            &[("hooks", &events)],
        ))
    }

    fn payload_of_program(&self, payload: &mut Value) {
        let tool = payload.get("toolName").cloned();
        let input = payload.get("input").cloned();
        if let (Some(tool), Value::Object(payload)) = (tool, payload) {
            payload.insert("tool_name".into(), tool);
            payload.insert("tool_input".into(), input.unwrap_or_else(|| json!({})));
        }
    }

    fn answer_of_program(&self, answer: &Value) -> Option<Value> {
        plugin_program::answer_of_program(answer)
    }

    fn trust_ledger(&self) -> Option<&'static dyn TrustLedger> {
        Some(&QUIRKS)
    }

    fn bridge_plugin(&self, call: &BridgeCall<'_>) -> Option<String> {
        let events = plugin_program::bridge_events(self.id, call)?;
        let head = plugin_program::BRIDGE_HEAD;
        Some(plugin_program::fill(
            self.id,
            head,
            PLUGIN,
            &[("hooks", &events)],
        ))
    }
}

/// pi keeps its user's decision by folder; the nearest one above a project counts.
impl TrustLedger for PiQuirks {
    fn records(&self, subject: &TrustSubject) -> Vec<TrustRecord> {
        let project = subject.project.to_string_lossy();
        let is_project = subject.scope == Scope::Project;
        let record = is_project.then(|| TrustRecord::new([&*project], true));
        record.into_iter().collect()
    }

    fn missing(&self, subject: &TrustSubject, document: &Value) -> Option<String> {
        let mut folders = subject.project.ancestors();
        let decision = folders.find_map(|folder| document.get(&*folder.to_string_lossy()));
        let is_missing = subject.scope == Scope::Project && decision != Some(&Value::Bool(true));
        let project = subject.project.display();
        is_missing.then(|| {
            format!("the project `{project}` is not trusted in pi, so its extension is not loaded")
        })
    }
}
