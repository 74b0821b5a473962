//! One file per guard. Each looks at a call and reports what it objects to.

pub(crate) mod access;
pub(crate) mod budget;
pub(crate) mod cloud;
pub(crate) mod database;
pub(crate) mod filesystem;
pub(crate) mod git;
pub(crate) mod hosts;
pub(crate) mod network;
pub(crate) mod own_files;
mod own_switches;
pub(crate) mod path_lists;
pub(crate) mod remote_code;
mod secret_values;
pub(crate) mod secrets;

use anyhook_model::Decision;

use crate::finding::GuardFinding;
use crate::input::GuardInput;
use crate::shell::Invocation;

/// The options of a guard, as they were given.
#[derive(Debug, Clone, Default)]
pub(crate) struct GuardOptions {
    pub(crate) values: Vec<(&'static str, String)>,
}

impl GuardOptions {
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.values
            .iter()
            .filter(move |(option, _)| *option == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }
}

/// Keeps the strongest objection of one guard.
pub(crate) struct Objections<'g> {
    pub(crate) guard: &'static str,
    pub(crate) options: &'g GuardOptions,
    pub(crate) strongest: Option<GuardFinding>,
}

impl Objections<'_> {
    pub(crate) fn deny(
        &mut self,
        rule: &str,
        subject: impl Into<String>,
        reason: impl Into<String>,
    ) {
        self.push(Decision::Deny, rule, subject.into(), reason.into());
    }

    pub(crate) fn ask_user(
        &mut self,
        rule: &str,
        subject: impl Into<String>,
        reason: impl Into<String>,
    ) {
        self.push(Decision::Ask, rule, subject.into(), reason.into());
    }

    fn push(&mut self, decision: Decision, rule: &str, subject: String, reason: String) {
        if self.options.all("--except").any(|except| except == rule) {
            return;
        }
        let wanted = self.options.all("--decision").next();
        let decision = match wanted {
            Some("ask") => Decision::Ask,
            Some("warn") => Decision::Allow,
            _ => decision,
        };
        if self
            .strongest
            .as_ref()
            .is_some_and(|known| known.decision >= decision)
        {
            return;
        }
        self.strongest = Some(GuardFinding {
            decision,
            guard: self.guard.to_owned(),
            rule: rule.to_owned(),
            reason: if subject.is_empty() {
                format!("{reason} ({}/{rule})", self.guard)
            } else {
                format!("{reason}: `{subject}` ({}/{rule})", self.guard)
            },
            subject,
            only_warns: decision == Decision::Allow,
        });
    }

    /// Judges one invocation after the other until one settles the answer.
    pub(crate) fn judge_each(
        &mut self,
        input: &GuardInput<'_>,
        judge: impl Fn(&Invocation, &mut Self),
    ) {
        for invocation in input.invocations() {
            judge(invocation, self);
            if self.is_settled() {
                return;
            }
        }
        self.ask_if_incomplete(input);
    }

    /// Asks about what was not read to the end.
    pub(crate) fn ask_if_incomplete(&mut self, input: &GuardInput<'_>) {
        if input
            .analyses()
            .iter()
            .any(|analysis| analysis.is_incomplete)
        {
            self.ask_user(
                "too-complex",
                "",
                "this command is too long or too deeply nested to be checked; split it into simpler ones",
            );
        }
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.strongest
            .as_ref()
            .is_some_and(|finding| finding.decision == Decision::Deny)
    }
}

/// The words of a command with subcommands: everything that is no option and no
/// option's value, as texts.
pub(crate) fn operand_texts<'i>(invocation: &'i Invocation, values: &[&str]) -> Vec<&'i str> {
    let mut found = Vec::new();
    let words = &invocation.words;
    let mut index = 1;
    while index < words.len() {
        index = crate::shell::first_operand(words, index, values);
        found.extend(words.get(index).map(|word| word.text.as_str()));
        index += 1;
    }
    found
}

/// `-X DELETE` of curl, gh and their relatives.
pub(crate) fn is_delete_request(invocation: &Invocation) -> bool {
    let texts: Vec<&str> = invocation.texts().collect();
    texts.windows(2).any(|pair| matches!(pair, ["-X" | "--method" | "--request", method] if method.eq_ignore_ascii_case("delete")))
        || texts.iter().any(|text| {
            text.eq_ignore_ascii_case("-xdelete") || text.eq_ignore_ascii_case("--method=delete") || text.eq_ignore_ascii_case("--request=delete")
                || text.eq_ignore_ascii_case("-x=delete")
        })
}
