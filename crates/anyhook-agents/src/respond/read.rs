//! An agent's answer, understood: what a hook that was written for it said.

use anyhook_model::event::NATIVE;
use anyhook_model::{Decision, HookEvent, HookResponse};
use serde_json::{Map, Value};

use crate::spec::{AnswerProfile, Template};
use crate::template::{Holes, unfill};
use crate::tools::{changed, decode_input, encode_input, removed, rewritten};
use crate::{Adapter, pointer};

use super::{APPROVE, NO_REASON};

/// A native answer, understood.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Read {
    pub response: HookResponse,
    /// The agent would call this hook failed.
    pub error: Option<String>,
}

impl Adapter {
    /// What a hook that was written for this agent said. `event` is the event
    /// that it was asked about, `native_event` this agent's name for it.
    pub fn read(
        &self,
        event: &HookEvent,
        native_event: &str,
        stdout: &str,
        stderr: &str,
        exit: i32,
    ) -> Read {
        let spec = self.event_by_native(native_event);
        let Some(profile) = self.profile(spec) else {
            return Read::default();
        };
        let stderr = stderr.trim();
        let mut text = stdout.trim();
        if text.is_empty() && profile.stderr_fallback && stderr.starts_with('{') {
            text = stderr;
        }
        let mut read = Read::default();
        let json: Option<Value> = (text.starts_with('{') && profile.reads_at(exit))
            .then(|| serde_json::from_str(text))
            .and_then(|parsed| match parsed {
                Ok(value) => Some(value),
                Err(error) => {
                    read.error = Some(format!(
                        "stdout is not JSON that {} would read: {error}",
                        self.spec.name
                    ));
                    None
                }
            });
        if let Some(json) = &json {
            self.read_json(event, profile, json, &mut read.response);
        }
        let ending = match exit {
            0 => "",
            2 => profile.exit2.as_ref(),
            _ => profile.other_exit.as_ref(),
        };
        let warns = exit != 0 && !matches!(ending, "deny" | "ignored");
        match ending {
            "deny" if read.response.decision.is_none() => {
                let words = if stderr.is_empty() { text } else { stderr };
                read.response.decision = Some(Decision::Deny);
                read.response.reason =
                    Some(if words.is_empty() { NO_REASON } else { words }.to_owned());
            }
            _ if warns && read.response.decision.is_none() => {
                let words = if stderr.is_empty() {
                    String::new()
                } else {
                    format!(": {stderr}")
                };
                read.error = Some(format!("exit {exit}{words}"));
            }
            _ => {}
        }
        if exit == 0 && json.is_none() && read.error.is_none() && !text.is_empty() {
            match profile.plain.as_ref() {
                "context" => read.response.context = Some(text.to_owned()),
                "message" => read.response.system_message = Some(text.to_owned()),
                "error" => {
                    read.error = Some(format!("{} wants JSON on stdout here", self.spec.name));
                }
                _ => {}
            }
        }
        read
    }

    fn read_json(
        &self,
        event: &HookEvent,
        profile: &AnswerProfile,
        json: &Value,
        response: &mut HookResponse,
    ) {
        let find = |templates: &[Template]| {
            templates
                .iter()
                .find_map(|template| unfill(template.stdout.get(), json))
        };
        let text =
            |holes: &Holes, name: &str| holes.get(name).and_then(Value::as_str).map(str::to_owned);
        let decisions = [
            (&profile.deny, Decision::Deny),
            (&profile.ask, Decision::Ask),
            (&profile.approve, Decision::Allow),
        ];
        for (templates, decision) in decisions {
            if let Some(holes) = find(templates) {
                response.decision = Some(decision);
                response.reason = text(&holes, "reason");
                if decision == Decision::Allow {
                    response.metadata.insert(APPROVE.into(), Value::Bool(true));
                }
                break;
            }
        }
        if let Some(holes) = find(&profile.stop) {
            response.goes_on = Some(false);
            response.reason = response.reason.take().or_else(|| text(&holes, "reason"));
        }
        response.context = find(&profile.context).and_then(|holes| text(&holes, "context"));
        response.system_message = find(&profile.message).and_then(|holes| text(&holes, "message"));
        if find(&profile.suppress).is_some() {
            response.suppress_output = Some(true);
        }
        let rewrite = profile.rewrite.iter().find_map(|template| {
            unfill(template.stdout.get(), json)?
                .get("updated_input")?
                .as_object()
                .cloned()
        });
        if let Some(native) = rewrite {
            let whole = profile.rewrite_mode != "merge";
            response.updated_input = Some(self.read_rewrite(event, &native, whole));
        }
    }

    /// A native rewrite in canonical keys: only what it changes.
    fn read_rewrite(
        &self,
        event: &HookEvent,
        native: &Map<String, Value>,
        whole: bool,
    ) -> Map<String, Value> {
        let Some(old) = event.tool_input() else {
            return native.clone();
        };
        let own = event.source == self.spec.id;
        let row = if own {
            event
                .native_tool_name()
                .and_then(|name| self.tool_by_native(name, Some(native)))
        } else {
            event
                .tool_name()
                .and_then(|name| self.tool_by_canonical(name))
        };
        let quirk = event.native_tool_name().filter(|_| own).and_then(|name| {
            self.quirks
                .decode_tool(name, &Value::Object(native.clone()))
        });
        let new = match (quirk, row) {
            (Some((_, input)), _) => input,
            (None, Some(row)) => decode_input(row, native),
            (None, None) => native.clone(),
        };
        let mut delta = changed(old, &new);
        if whole {
            // What the program left out of the whole input is to go.
            let encoded = row.map_or_else(|| old.clone(), |row| encode_input(row, old));
            for key in removed(&encoded, native) {
                let canonical = row
                    .and_then(|row| row.keys.iter().find(|(_, place)| place.at == key))
                    .map_or(key, |(canonical, _)| canonical);
                if old.contains_key(canonical) && !new.contains_key(canonical) {
                    delta.insert(canonical.to_owned(), Value::Null);
                }
            }
        }
        delta
    }

    /// `event` with a rewrite applied, for the hooks that come after.
    pub fn rewritten_event(event: &HookEvent, rewrite: &Map<String, Value>) -> HookEvent {
        let mut event = event.clone();
        let Some(old) = event.tool_input() else {
            event.data.extend(rewrite.clone());
            return event;
        };
        let new = rewritten(old, rewrite);
        event.data.insert("tool_input".into(), Value::Object(new));
        // What was kept of the native input says the old thing now.
        if let Some(adapter) = crate::get_for_run(&event.source)
            && let Some(rest) = event.metadata.get_mut(NATIVE)
        {
            let spec = adapter.event_by_native(&event.native_event);
            for row in spec
                .into_iter()
                .flat_map(|spec| &spec.rows)
                .chain(adapter.spec.payload.rows.values().flatten())
            {
                if row.to == "tool_input" {
                    pointer::take(rest, &row.at);
                }
            }
        }
        event
    }
}
