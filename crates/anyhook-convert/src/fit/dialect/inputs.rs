//! Whether a program finds in the target's payload what it reads.

use anyhook_agents::Adapter;
use anyhook_agents::config::hook_keys;
use anyhook_model::event::field;
use anyhook_model::{HookEvent, matching, registry};
use serde_json::json;

use super::program_text::ProgramText;
use super::sample_calls::{
    EncodedCall, SAMPLE, SAMPLE_CALLS, SampleCall, add_session, encoded_calls, leaves_of,
    sample_event,
};
use crate::fit::{HookFitter, TargetEvent};

impl HookFitter<'_> {
    /// What the program reads and does not find in the target's payload.
    pub(super) fn unreadable_inputs(
        &self,
        speaks: Option<&Adapter>,
        target_events: &[TargetEvent<'_>],
        text: ProgramText<'_>,
    ) -> Vec<String> {
        let mut problems: Vec<String> = Vec::new();
        let is_tool_event = registry::event(&self.hook.event).is_none_or(|event| event.tool);
        let calls: &[SampleCall] = if is_tool_event {
            &SAMPLE_CALLS
        } else {
            &[("", &[], &[])]
        };
        for call @ (kind, ..) in calls {
            let mut sample = sample_event(&self.hook.event, *call, text.0.is_some());
            if text.0.is_some() {
                add_session(&mut sample);
            }
            let Some(was) = self.source_call(speaks, kind, &sample) else {
                continue;
            };
            let events = target_events.iter().filter_map(|target| target.event);
            for is in events.flat_map(|event| encoded_calls(self.adapter, event, kind, &sample)) {
                for problem in self.differences(&was, &is, text) {
                    if !problems.contains(&problem) {
                        problems.push(problem);
                    }
                }
            }
        }
        problems
    }

    /// The sample as the program's own agent reports it; `None` if the hook is not
    /// for it or the agent has no such tool.
    fn source_call(
        &self,
        speaks: Option<&Adapter>,
        kind: &str,
        sample: &HookEvent,
    ) -> Option<EncodedCall> {
        let Some(adapter) = speaks else {
            let fits = matching::matches(self.hook.matcher.as_ref(), sample);
            return fits.then(|| EncodedCall {
                tool: sample.tool_name().map(str::to_owned),
                aliases: Vec::new(),
                payload: serde_json::to_value(sample).unwrap_or_default(),
                event: sample.event.clone(),
            });
        };
        let kept = self.hook.provider_data.get(adapter.spec.id.as_ref());
        let kept = kept.and_then(|data| data.get(hook_keys::NATIVE_EVENT)?.as_str());
        let event = kept.and_then(|name| adapter.event_by_native(name));
        let event = event
            .or_else(|| adapter.event_for(&self.hook.event, sample.tool_name().map(|_| kind)))?;
        let call = encoded_calls(adapter, event, kind, sample)
            .into_iter()
            .next()?;
        let mut seen = sample.clone();
        if let Some(tool) = &call.tool {
            seen.data
                .insert(field::NATIVE_TOOL_NAME.into(), json!(tool));
        }
        matching::matches(self.hook.matcher.as_ref(), &seen).then_some(call)
    }

    /// What a program that reads `was` misses in `is`.
    fn differences(
        &self,
        was: &EncodedCall,
        is: &EncodedCall,
        text: ProgramText<'_>,
    ) -> Vec<String> {
        let target = self.target();
        let there = leaves_of(&is.payload);
        let mut problems = Vec::new();
        for (keys, value) in leaves_of(&was.payload) {
            if was.tool.as_deref() == Some(value) {
                let problem = self.tool_name_problem(was, is, text);
                problems.extend(problem.filter(|problem| !problems.contains(problem)));
                continue;
            }
            if value == was.event {
                problems.extend(self.event_name_problem(&keys, was, is, text));
                continue;
            }
            if !value.contains(SAMPLE) {
                continue;
            }
            let Some(deepest) = keys.iter().rposition(|key| text.mentions(key)) else {
                continue;
            };
            let read = keys.get(..=deepest).unwrap_or_default();
            let is_found = there.iter().any(|(at, other)| {
                let is_same_place = if deepest + 1 == keys.len() {
                    *at == keys
                } else {
                    at.starts_with(read)
                };
                // A program that also reads the target's keys.
                let is_read_too = text.0.is_some()
                    && at.iter().all(|key| text.mentions(key))
                    && at.iter().any(|key| !keys.contains(key));
                *other == value && (is_same_place || is_read_too)
            });
            if !is_found {
                let read = read.join(".");
                let reads = text.does("it reads", "it may read");
                problems.push(format!("{reads} `{read}`, which {target} does not send"));
            }
        }
        problems
    }

    /// A check of the event's name that fails because the target has another name.
    fn event_name_problem(
        &self,
        keys: &[String],
        was: &EncodedCall,
        is: &EncodedCall,
        text: ProgramText<'_>,
    ) -> Option<String> {
        let is_read = keys.iter().all(|key| text.mentions(key)) && text.compares(&was.event);
        let there = leaves_of(&is.payload);
        let is_found = there
            .iter()
            .any(|(at, name)| at == keys && (*name == was.event || text.knows(name)));
        let checks = text.does("it checks", "it may check");
        (is_read && !is_found).then(|| {
            format!(
                "{checks} for the event `{}`, which {} does not send",
                was.event,
                self.target()
            )
        })
    }

    /// A check of the tool's name that fails because the target has another name.
    fn tool_name_problem(
        &self,
        was: &EncodedCall,
        is: &EncodedCall,
        text: ProgramText<'_>,
    ) -> Option<String> {
        let mut names = was.tool.iter().chain(&was.aliases);
        let name = if text.0.is_some() {
            names.find(|name| text.compares(name))?
        } else {
            names.next().filter(|_| self.hook.matcher.is_none())?
        };
        let target = self.target();
        let checks = text.does("it checks", "it may check");
        let Some(other) = &is.tool else {
            return Some(format!(
                "{checks} for the tool `{name}`, and {target} does not name it"
            ));
        };
        let is_known = if text.0.is_some() {
            text.compares(other)
        } else {
            name == other
        };
        let there = leaves_of(&is.payload);
        let is_found = there
            .iter()
            .any(|(at, found)| found == other && at.last().is_some_and(|key| text.mentions(key)));
        (!is_known || !is_found)
            .then(|| format!("{checks} for the tool `{name}`, and {target} calls it `{other}`"))
    }
}
