//! Decodes the answer of a hook that was written for an agent.

use anyhook_model::event::NATIVE;
use anyhook_model::{Decision, HookEvent, HookResponse, lenient_json};
use serde_json::{Map, Value};

use crate::spec::{AnswerProfile, ExitMeaning, PlainText, RewriteMode, Template};
use crate::template::{Holes, only_holes, unfill};
use crate::tools::{changed, decode_input, encode_input, removed, rewritten};
use crate::{Adapter, likeness, pointer};

use super::{APPROVE_KEY, DEFAULT_DENY_REASON};

/// The event that decides whether a tool runs.
const BEFORE_TOOL: &str = "before_tool_execute";

/// A native answer as a canonical response.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DecodedAnswer {
    pub response: HookResponse,
    /// Why the agent would treat this hook as failed, or why it would not read an answer
    /// that was meant to decide.
    pub error: Option<String>,
    /// The agent would not read it, but it was meant as a deny.
    pub is_meant_as_deny: bool,
}

impl Adapter {
    /// Decodes the answer of a hook that was written for this agent. `event` is the
    /// event that the hook got, `native_event` this agent's name for it.
    pub fn decode_answer(
        &self,
        event: &HookEvent,
        native_event: &str,
        stdout: &str,
        stderr: &str,
        exit: i32,
    ) -> DecodedAnswer {
        let spec = self.event_by_native(native_event);
        let Some(profile) = self.profile(spec) else {
            return DecodedAnswer::default();
        };
        let stderr = lenient_json::trimmed(stderr);
        let mut text = lenient_json::trimmed(stdout);
        if text.is_empty() && profile.stderr_fallback && stderr.starts_with('{') {
            text = stderr;
        }
        let mut read = DecodedAnswer::default();
        let agent = &self.spec.name;
        let mut has_json = false;
        if text.starts_with('{') && profile.reads_at(exit) {
            match lenient_json::parse_answer(text) {
                Ok(json) => {
                    has_json = true;
                    self.read_json(event, profile, &json, &mut read.response);
                }
                Err(error) => {
                    let message = format!("stdout is not JSON that {agent} accepts: {error}");
                    read.error = Some(message);
                }
            }
        }
        let meaning = match exit {
            0 => ExitMeaning::Ignored,
            2 => profile.exit2,
            _ => profile.other_exit,
        };
        if read.response.decision.is_none() {
            match meaning {
                ExitMeaning::Deny => {
                    let mut reasons = [stderr, text].into_iter();
                    let reason = reasons.find(|text| !text.is_empty());
                    let reason = reason.unwrap_or(DEFAULT_DENY_REASON);
                    read.response.decision = Some(Decision::Deny);
                    read.response.reason = Some(reason.to_owned());
                }
                ExitMeaning::Warn => {
                    let separator = if stderr.is_empty() { "" } else { ": " };
                    read.error = Some(format!("exit {exit}{separator}{stderr}"));
                }
                ExitMeaning::Ignored => {}
            }
        }
        if exit == 0 && !has_json && read.error.is_none() && !text.is_empty() {
            match profile.plain {
                PlainText::Ignored => {}
                PlainText::Context => read.response.context = Some(text.to_owned()),
                PlainText::Message => read.response.system_message = Some(text.to_owned()),
                PlainText::Error => {
                    read.error = Some(format!("{agent} expects JSON on stdout here"));
                }
            }
        }
        let decides =
            read.response.decision.is_some() || read.response.should_continue == Some(false);
        if !decides
            && read.error.is_none()
            && let Some(misreading) = self.find_misreading(event, profile, text, exit)
        {
            read.error = Some(misreading.why);
            read.is_meant_as_deny = misreading.means_deny;
        }
        read
    }

    pub(super) fn read_json(
        &self,
        event: &HookEvent,
        profile: &AnswerProfile,
        json: &Value,
        response: &mut HookResponse,
    ) {
        let find = |templates: &[Template]| {
            let mut templates = templates.iter();
            templates.find_map(|template| unfill(template.stdout.get(), json))
        };
        let decisions = [
            (&profile.deny, Decision::Deny),
            (&profile.ask, Decision::Ask),
            (&profile.approve, Decision::Allow),
        ];
        for (templates, decision) in decisions {
            if let Some(holes) = find(templates) {
                response.decision = Some(decision);
                response.reason = text_in(&holes, "reason");
                if decision == Decision::Allow {
                    let granted = Value::Bool(true);
                    response.metadata.insert(APPROVE_KEY.into(), granted);
                }
                break;
            }
        }
        if let Some(holes) = find(&profile.stop) {
            response.should_continue = Some(false);
            let reason = response.reason.take();
            response.reason = reason.or_else(|| text_in(&holes, "reason"));
        }
        response.context = find(&profile.context).and_then(|holes| text_in(&holes, "context"));
        let message = find(&profile.message);
        response.system_message = message.and_then(|holes| text_in(&holes, "message"));
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
            let whole = profile.rewrite_mode != RewriteMode::Merge;
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
        let name = event.native_tool_name().filter(|_| own);
        let row = if own {
            name.and_then(|name| self.tool_by_native(name, Some(native)))
        } else {
            let canonical = event.tool_name();
            canonical.and_then(|name| self.tool_by_canonical(name))
        };
        let input = || Value::Object(native.clone());
        let quirk = name.and_then(|name| self.quirks.decode_tool(name, &input()));
        let new = match (quirk, row) {
            (Some((_, input)), _) => input,
            (None, Some(row)) => decode_input(row, native),
            (None, None) => native.clone(),
        };
        let mut delta = changed(old, &new);
        if whole {
            // What the program left out of the whole input is removed.
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

    /// The deny in an answer that is written as some agent's hooks deny a tool
    /// call. Reads every agent's table: only for answers that are wrong anyway.
    pub fn read_deny_of_any(answer: &Map<String, Value>) -> Option<HookResponse> {
        let answer = Value::Object(answer.clone());
        let adapters = crate::slugs().filter_map(crate::get_for_run);
        let denies = adapters.flat_map(|adapter| {
            let events = adapter.spec.events.iter();
            events
                .filter(|event| event.is.as_deref() == Some(BEFORE_TOOL))
                .filter_map(|event| adapter.profile(Some(event)))
                .flat_map(|profile| &profile.deny)
        });
        let holes = find_deny(denies, &answer)?;
        Some(HookResponse {
            decision: Some(Decision::Deny),
            reason: text_in(&holes, "reason"),
            ..HookResponse::default()
        })
    }

    /// `event` with a rewrite applied, for the hooks that come after.
    pub fn rewritten_event(event: &HookEvent, rewrite: &Map<String, Value>) -> HookEvent {
        let mut event = likeness::without_inferred(event).into_owned();
        let Some(old) = event.tool_input() else {
            event.data.extend(rewrite.clone());
            return event;
        };
        let new = rewritten(old, rewrite);
        event.data.insert("tool_input".into(), Value::Object(new));
        // The kept native input is outdated now.
        if let Some(adapter) = crate::get_for_run(&event.source)
            && let Some(rest) = event.metadata.get_mut(NATIVE)
        {
            let spec = adapter.event_by_native(&event.native_event);
            let own = spec.into_iter().flat_map(|spec| &spec.rows);
            let rows = own.chain(adapter.spec.payload.rows.values().flatten());
            for row in rows.filter(|row| row.to == "tool_input") {
                pointer::take(rest, &row.at);
            }
        }
        likeness::complete_call(&mut event);
        event
    }
}

/// What an answer has in the holes of the deny that it fits. A deny that is only a reason
/// fits anything.
pub(super) fn find_deny<'a>(
    denies: impl Iterator<Item = &'a Template>,
    answer: &Value,
) -> Option<Holes> {
    denies
        .map(|template| template.stdout.get())
        .filter(|template| !only_holes(template))
        .find_map(|template| unfill(template, answer))
}

/// The text in a hole.
fn text_in(holes: &Holes, name: &str) -> Option<String> {
    Some(holes.get(name)?.as_str()?.to_owned())
}
