//! Whether the target understands that a program denies.

use anyhook_agents::Adapter;
use anyhook_agents::respond::RenderedAnswer;
use anyhook_agents::spec::{AnswerProfile, EventSpec, ExitMeaning};
use anyhook_model::{Decision, HookEvent, HookResponse};
use serde_json::Value;

use super::program_text::{ProgramText, exits_only_with_0_or_2, is_word_letter};
use crate::fit::{HookFitter, TargetEvent};

impl HookFitter<'_> {
    /// Why the target may not understand that the program denies.
    pub(super) fn misunderstood_answers(
        &self,
        speaks: Option<&Adapter>,
        target_events: &[TargetEvent<'_>],
        text: ProgramText<'_>,
    ) -> Vec<String> {
        let target = self.target();
        let mut problems: Vec<String> = Vec::new();
        let mut add = |problem: String| {
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        };
        let answers = self.source_answers(speaks);
        let own_profile = speaks.and_then(|adapter| {
            let event = adapter.event_for(&self.hook.event, Some("shell"))?;
            profile(adapter, event)
        });
        for event in target_events.iter().filter_map(|target| target.event) {
            let Some(profile) = profile(self.adapter, event) else {
                continue;
            };
            if profile.deny.is_empty() {
                // The target cannot deny here, which is reported elsewhere.
                continue;
            }
            let can_exit = own_profile.is_none_or(|own| own.exit2 == ExitMeaning::Deny);
            if can_exit && text.contains("2") && profile.exit2 != ExitMeaning::Deny {
                let exits = ["exit 2", "exit(2)", "exit(2", "exitCode = 2", "return 2"];
                if exits.iter().any(|exit| text.contains(exit)) {
                    add(format!("{target} ignores exit 2 at {}", event.native));
                }
            }
            let has_reason = [">&2", "stderr", "console.error", "eprint"]
                .iter()
                .any(|mark| text.contains(mark));
            if can_exit && profile.needs_reason && !has_reason && text.may_exit_with_a_code() {
                add(format!(
                    "{target} ignores exit 2 without a reason on stderr"
                ));
            }
            if own_profile.is_some_and(|own| own.other_exit == ExitMeaning::Deny)
                && profile.other_exit != ExitMeaning::Deny
                && !text.0.is_some_and(exits_only_with_0_or_2)
            {
                add(format!("{target} allows on exit codes other than 2"));
            }
            for answer in &answers {
                let words = answer_words(&answer.stdout);
                let is_used = text.prints_json() && words.iter().all(|word| text.mentions(word));
                if is_used && !self.is_understood(event, answer) {
                    let shown = answer.stdout.trim();
                    add(format!("{target} does not take `{shown}` as a deny"));
                    break;
                }
            }
        }
        problems
    }

    /// The answers with which the program may deny, other than exit codes.
    fn source_answers(&self, speaks: Option<&Adapter>) -> Vec<RenderedAnswer> {
        let Some(adapter) = speaks else {
            let stdout = serde_json::to_string(&HookResponse::deny("no")).unwrap_or_default();
            return vec![RenderedAnswer {
                stdout,
                ..RenderedAnswer::default()
            }];
        };
        let event = adapter.event_for(&self.hook.event, Some("shell"));
        let answers = event.map(|event| adapter.deny_forms(event, "no"));
        let mut answers = answers.unwrap_or_default();
        answers.retain(|answer| answer.stdout.starts_with('{'));
        answers
    }

    fn is_understood(&self, event: &EventSpec, answer: &RenderedAnswer) -> bool {
        let call = HookEvent {
            event: self.hook.event.clone(),
            source: self.adapter.spec.id.to_string(),
            native_event: event.native.to_string(),
            ..HookEvent::default()
        };
        let stdout = self.adapter.answer_of_program(&answer.stdout);
        let RenderedAnswer { stderr, exit, .. } = answer;
        let decoded = self
            .adapter
            .decode_answer(&call, &event.native, &stdout, stderr, *exit);
        decoded.error.is_none() && decoded.response.decision == Some(Decision::Deny)
    }
}

fn profile<'a>(adapter: &'a Adapter, event: &EventSpec) -> Option<&'a AnswerProfile> {
    adapter.spec.answers.get(event.answer.as_ref()?)
}

/// Keys of an answer that a program must write to give it.
fn answer_words(stdout: &str) -> Vec<String> {
    let Ok(answer) = serde_json::from_str::<Value>(stdout) else {
        return Vec::new();
    };
    let mut words = Vec::new();
    collect_answer_words(&answer, &mut words);
    if words.is_empty() {
        words.extend(
            answer
                .as_object()
                .into_iter()
                .flat_map(|map| map.keys().cloned()),
        );
    }
    words
}

fn collect_answer_words(value: &Value, words: &mut Vec<String>) {
    for (key, inner) in value.as_object().into_iter().flatten() {
        match inner {
            Value::Object(_) => collect_answer_words(inner, words),
            Value::String(text) if text == "no" => {}
            Value::String(text) if text.chars().all(is_word_letter) => {
                words.extend([key.clone(), text.clone()]);
            }
            _ => words.push(key.clone()),
        }
    }
}
