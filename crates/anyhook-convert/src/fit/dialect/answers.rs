//! Whether the target understands that a program denies, asks the user or ends the run.

use anyhook_agents::Adapter;
use anyhook_agents::respond::RenderedAnswer;
use anyhook_agents::spec::{AnswerPart, AnswerProfile, EventSpec, ExitMeaning};
use anyhook_model::{Decision, HookEvent, HookResponse};
use serde_json::Value;

use super::program_text::{ProgramText, exits_after, exits_only_with_0_or_2, is_word_letter};
use crate::fit::{HookFitter, TargetEvent};

/// The parts of an answer that protect.
const PROTECTING_PARTS: [AnswerPart; 3] = [AnswerPart::Deny, AnswerPart::Ask, AnswerPart::Stop];

impl HookFitter<'_> {
    /// Why the target may not understand that the program denies.
    pub(super) fn misunderstood_answers(
        &self,
        speaks: Option<&Adapter>,
        target_events: &[TargetEvent<'_>],
        text: ProgramText<'_>,
    ) -> Vec<String> {
        let own_event =
            speaks.and_then(|adapter| adapter.event_for(&self.hook.event, Some("shell")));
        let own_profile = speaks.and_then(|adapter| profile(adapter, own_event?));
        let event_name = own_event.map_or("", |event| &event.native);
        let mut answers = self.source_answers(speaks);
        answers.retain(|(part, answer)| uses_answer(text, *part, answer, event_name));
        let mut problems: Vec<String> = Vec::new();
        for event in target_events.iter().filter_map(|target| target.event) {
            let Some(profile) = profile(self.adapter, event) else {
                continue;
            };
            if profile.deny.is_empty() {
                // The target cannot deny here, which is reported elsewhere.
                continue;
            }
            let found = [
                self.ignored_exit_codes(own_profile, event, profile, text),
                self.unread_answer(own_profile, profile, &answers, event)
                    .into_iter()
                    .collect(),
                self.answers_after_an_exit(own_profile, profile, &answers, text),
            ];
            for problem in found.into_iter().flatten() {
                if !problems.contains(&problem) {
                    problems.push(problem);
                }
            }
        }
        problems
    }

    /// Exit codes that deny to the program's own agent and not to the target.
    fn ignored_exit_codes(
        &self,
        own: Option<&AnswerProfile>,
        event: &EventSpec,
        profile: &AnswerProfile,
        text: ProgramText<'_>,
    ) -> Vec<String> {
        let target = self.target();
        let can_exit =
            own.is_none_or(|own| own.exit2 == ExitMeaning::Deny) && text.may_exit_with_2();
        let mut problems = Vec::new();
        if can_exit && profile.exit2 != ExitMeaning::Deny {
            problems.push(format!("{target} ignores exit 2 at {}", event.native));
        }
        if can_exit && profile.needs_reason && !text.0.is_none_or(writes_to_stderr) {
            problems.push(format!(
                "{target} ignores exit 2 without a reason on stderr"
            ));
        }
        if own.is_some_and(|own| own.other_exit == ExitMeaning::Deny)
            && profile.other_exit != ExitMeaning::Deny
            && !text.0.is_some_and(exits_only_with_0_or_2)
        {
            problems.push(format!("{target} allows on exit codes other than 2"));
        }
        problems
    }

    /// An answer of the program that means less to the target.
    fn unread_answer(
        &self,
        own: Option<&AnswerProfile>,
        profile: &AnswerProfile,
        answers: &[(AnswerPart, RenderedAnswer)],
        event: &EventSpec,
    ) -> Option<String> {
        let target = self.target();
        // Without a user, such as in a headless run, a question may then mean yes.
        let loses_questions = profile.ask_needs_user && own.is_some_and(|own| !own.ask_needs_user);
        let lost_of = |part: AnswerPart| {
            let is_question_lost = loses_questions && part == AnswerPart::Ask;
            let mut of_part = answers.iter().filter(|(own, _)| *own == part);
            let (_, answer) = of_part
                .find(|(_, answer)| is_question_lost || !self.is_understood(event, part, answer))?;
            let what = match part {
                AnswerPart::Ask if is_question_lost => "a question where no user is there",
                AnswerPart::Ask => "a question",
                AnswerPart::Stop => "the end of the run",
                _ => "a deny",
            };
            let shown = answer.stdout.trim();
            Some(format!("{target} does not take `{shown}` as {what}"))
        };
        PROTECTING_PARTS.into_iter().find_map(lost_of)
    }

    /// Answers that the target does not read because of the exit code that follows them.
    fn answers_after_an_exit(
        &self,
        own: Option<&AnswerProfile>,
        profile: &AnswerProfile,
        answers: &[(AnswerPart, RenderedAnswer)],
        text: ProgramText<'_>,
    ) -> Vec<String> {
        let (Some(own), Some(text)) = (own, text.0) else {
            return Vec::new();
        };
        let exits = answers
            .iter()
            .flat_map(|(_, answer)| exits_after_answer(text, &answer.stdout));
        let lost = exits.filter(|(code, between)| {
            let denies_itself = *code == 2 && (!profile.needs_reason || writes_to_stderr(between));
            own.reads_at(*code) && !profile.reads_at(*code) && !denies_itself
        });
        let target = self.target();
        lost.map(|(code, _)| format!("{target} reads no answer with exit {code}"))
            .collect()
    }

    /// The answers with which the program may protect, other than exit codes.
    fn source_answers(&self, speaks: Option<&Adapter>) -> Vec<(AnswerPart, RenderedAnswer)> {
        let answers_of = |part| match speaks {
            None => vec![canonical_answer(part)],
            Some(adapter) => {
                let event = adapter.event_for(&self.hook.event, Some("shell"));
                let answers = event.map(|event| adapter.answer_forms(event, part, "no"));
                answers.unwrap_or_default()
            }
        };
        let answers = PROTECTING_PARTS
            .into_iter()
            .flat_map(|part| answers_of(part).into_iter().map(move |one| (part, one)));
        answers
            .filter(|(_, answer)| answer.stdout.starts_with('{'))
            .collect()
    }

    fn is_understood(&self, event: &EventSpec, part: AnswerPart, answer: &RenderedAnswer) -> bool {
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
        let HookResponse {
            decision,
            should_continue,
            ..
        } = decoded.response;
        let is_protected = match part {
            AnswerPart::Ask => matches!(decision, Some(Decision::Ask | Decision::Deny)),
            AnswerPart::Stop => should_continue == Some(false) || decision == Some(Decision::Deny),
            _ => decision == Some(Decision::Deny),
        };
        decoded.error.is_none() && is_protected
    }
}

fn canonical_answer(part: AnswerPart) -> RenderedAnswer {
    let response = match part {
        AnswerPart::Ask => HookResponse {
            decision: Some(Decision::Ask),
            ..HookResponse::deny("no")
        },
        AnswerPart::Stop => HookResponse {
            should_continue: Some(false),
            ..HookResponse::default()
        },
        _ => HookResponse::deny("no"),
    };
    RenderedAnswer {
        stdout: serde_json::to_string(&response).unwrap_or_default(),
        ..RenderedAnswer::default()
    }
}

/// Whether the program gives this answer, as far as its text shows.
fn uses_answer(
    text: ProgramText<'_>,
    part: AnswerPart,
    answer: &RenderedAnswer,
    event_name: &str,
) -> bool {
    let Ok(answer) = serde_json::from_str::<Value>(&answer.stdout) else {
        return false;
    };
    let mut words = Vec::new();
    collect_answer_words(&answer, &mut words);
    // The name of the event does not decide.
    words.retain(|(_, value)| value.as_str() != Some(event_name));
    if words.is_empty() {
        let keys = answer.as_object().into_iter().flatten();
        words.extend(keys.map(|(key, _)| (key.as_str(), &Value::Null)));
    }
    text.prints_json()
        && words.iter().all(|(key, value)| match value {
            Value::String(word) if part == AnswerPart::Ask => {
                text.mentions(key) && text.quotes(word)
            }
            Value::String(word) => text.mentions(key) && text.mentions(word),
            // An everyday word, such as `continue`.
            Value::Bool(is_on) => text.sets(key, !is_on),
            _ => text.mentions(key),
        })
}

fn profile<'a>(adapter: &'a Adapter, event: &EventSpec) -> Option<&'a AnswerProfile> {
    adapter.spec.answers.get(event.answer.as_ref()?)
}

/// How the program ends after it has printed an answer, where its text shows that: the
/// exit code, and the text up to there.
fn exits_after_answer<'a>(text: &'a str, stdout: &str) -> Vec<(i32, &'a str)> {
    let Ok(answer) = serde_json::from_str::<Value>(stdout) else {
        return Vec::new();
    };
    let mut words = Vec::new();
    collect_answer_words(&answer, &mut words);
    words
        .last()
        .map(|(key, _)| exits_after(text, key))
        .unwrap_or_default()
}

/// Whether it writes to stderr, and not only while its author looks for a mistake.
fn writes_to_stderr(text: &str) -> bool {
    let marks = [">&2", "stderr", "STDERR", "console.error", "eprint", "warn"];
    text.lines().any(|line| {
        let lower = line.to_ascii_lowercase();
        let is_for_author = ["debug", "verbose"].iter().any(|word| lower.contains(word));
        !is_for_author && marks.iter().any(|mark| line.contains(mark))
    })
}

/// Keys and values that a program must write to give an answer.
fn collect_answer_words<'a>(answer: &'a Value, words: &mut Vec<(&'a str, &'a Value)>) {
    for (key, value) in answer.as_object().into_iter().flatten() {
        match value {
            Value::Object(_) => collect_answer_words(value, words),
            Value::String(text) if text == "no" => {}
            Value::String(text) if !text.chars().all(is_word_letter) => {
                words.push((key, &Value::Null));
            }
            _ => words.push((key, value)),
        }
    }
}
