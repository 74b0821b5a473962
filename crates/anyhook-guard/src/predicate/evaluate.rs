//! Whether a condition holds for a call.
//!
//! A command that cannot be read to the end, or whose program is only known at run time,
//! makes the answer [`Truth::Unknown`], never *no*: a hook then runs, and a rule asks.
//!
//! `not` is about the program that the rest of the condition is about: with
//! `{command: npm publish, not: {flags: --dry-run}}`, an option of another program on the
//! same line is no exception, nor is a second, harmless call of `npm publish`.

use anyhook_model::HookEvent;
use anyhook_model::event::field;
use serde_json::Value;

use super::program::is_hidden;
use super::{Predicate, SubagentCondition};
use crate::input::GuardInput;
use crate::judges::access::shell_files;
use crate::judges::hosts::{contacted_hosts, host_matches, url_host};
use crate::paths::{glob_matches, path_matches};
use crate::shell::{Invocation, UNKNOWN};

/// Ordered: the least of several is that all hold, the greatest that one holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Truth {
    No,
    /// Cannot be known without running the command.
    Unknown,
    Yes,
}

impl Truth {
    fn negate(self) -> Self {
        match self {
            Self::No => Self::Yes,
            Self::Unknown => Self::Unknown,
            Self::Yes => Self::No,
        }
    }

    /// The greatest; `None` if there is nothing to compare with, that is, no condition.
    pub(super) fn of_any(truths: impl Iterator<Item = Self>) -> Option<Self> {
        truths.max()
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

/// What a part of a condition is about.
#[derive(Clone, Copy)]
enum Subject<'i> {
    /// The call as a whole, which starts no program.
    Call,
    Program(&'i Invocation),
    /// A part of the command that was not read.
    Unread,
}

impl Predicate {
    pub fn evaluate(&self, input: &GuardInput<'_>) -> Truth {
        let truth = self.holds_for_call(input);
        let is_about_program = self.names_program() || !self.any.is_empty() || !self.not.is_empty();
        if truth == Truth::No || !is_about_program {
            return truth;
        }
        let programs = input.invocations().map(Subject::Program);
        let unread = is_incomplete(input).then_some(Subject::Unread);
        let best = programs
            .chain(unread)
            .map(|subject| self.holds_for_subject(subject, input))
            .max()
            .unwrap_or_else(|| self.holds_for_subject(Subject::Call, input));
        truth.min(best)
    }

    /// The parts that are about the whole call: all but those about one program.
    fn holds_for_call(&self, input: &GuardInput<'_>) -> Truth {
        let mut truth = self.facts_hold(input);
        if truth != Truth::No {
            truth = truth
                .min(self.files_in_call(input))
                .min(self.hosts_in_call(input));
        }
        for inner in &self.all {
            if truth == Truth::No {
                break;
            }
            truth = truth.min(inner.evaluate(input));
        }
        truth
    }

    /// The parts that are about one program: `command`, `flags`, `args`, `any` and `not`.
    fn holds_for_subject(&self, subject: Subject<'_>, input: &GuardInput<'_>) -> Truth {
        let mut truth = self.program_holds(subject, false);
        if let Some(any) = Truth::of_any(self.any.iter().map(|inner| inner.within(subject, input)))
        {
            truth = truth.min(any);
        }
        for inner in &self.not {
            if truth == Truth::No {
                break;
            }
            truth = truth.min(inner.excepts(subject, input).negate());
        }
        truth
    }

    /// As one of several conditions about the same program; files and hosts are those of
    /// the whole call.
    fn within(&self, subject: Subject<'_>, input: &GuardInput<'_>) -> Truth {
        match self.holds_for_call(input) {
            Truth::No => Truth::No,
            truth => truth.min(self.holds_for_subject(subject, input)),
        }
    }

    /// As an exception: everything must be true of this program alone, and of all its
    /// files and hosts.
    fn excepts(&self, subject: Subject<'_>, input: &GuardInput<'_>) -> Truth {
        let mut truth = self
            .facts_hold(input)
            .min(self.program_holds(subject, true))
            .min(self.all_files_match(subject, input))
            .min(self.all_hosts_match(subject, input));
        for inner in &self.all {
            truth = truth.min(inner.excepts(subject, input));
        }
        if let Some(any) = Truth::of_any(self.any.iter().map(|inner| inner.excepts(subject, input)))
        {
            truth = truth.min(any);
        }
        for inner in &self.not {
            truth = truth.min(inner.within(subject, input).negate());
        }
        truth
    }

    fn program_holds(&self, subject: Subject<'_>, is_exception: bool) -> Truth {
        if !self.names_program() {
            return Truth::Yes;
        }
        match subject {
            Subject::Call => Truth::No,
            Subject::Program(invocation) => self.matches_program(invocation, is_exception),
            Subject::Unread => Truth::Unknown,
        }
    }

    /// What is known of a call without looking at programs, files and hosts.
    fn facts_hold(&self, input: &GuardInput<'_>) -> Truth {
        let event = input.event;
        let one = |patterns: &[String], text: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| glob_matches(pattern, text))
        };
        let has_mode = || {
            let mode = event.text(field::PERMISSION_MODE).unwrap_or_default();
            one(&self.permission_modes, mode)
        };
        let is_in_folder = || {
            let cwd = input.cwd.as_deref();
            cwd.is_some_and(|cwd| matches_path(&self.cwds, cwd, input))
        };
        Truth::from(
            one(&self.agents, &event.source)
                && one(&self.events, &event.event)
                && (self.permission_modes.is_empty() || has_mode())
                && self.tool_holds(input)
                && self.subagent_holds(event)
                && (self.cwds.is_empty() || is_in_folder())
                && self.content_holds(input),
        )
    }

    fn tool_holds(&self, input: &GuardInput<'_>) -> bool {
        if self.tools.is_empty() {
            return true;
        }
        let event = input.event;
        let names = event
            .tool_name()
            .into_iter()
            .chain(event.native_tool_name())
            .chain(event.tool_kinds());
        let mcp = event
            .mcp()
            .map(|(server, tool)| format!("mcp__{server}__{tool}"));
        names
            .chain(mcp.as_deref())
            .any(|name| self.tools.iter().any(|pattern| glob_matches(pattern, name)))
    }

    fn subagent_holds(&self, event: &HookEvent) -> bool {
        let Some(condition) = &self.subagent else {
            return true;
        };
        let kind = event.text(field::AGENT_TYPE);
        match condition {
            SubagentCondition::Any(wanted) => {
                *wanted == (kind.is_some() || event.text(field::AGENT_ID).is_some())
            }
            SubagentCondition::Types(types) => {
                kind.is_some_and(|kind| types.iter().any(|pattern| glob_matches(pattern, kind)))
            }
        }
    }

    /// What is written, a shell's command, or else every text of the tool's input.
    fn content_holds(&self, input: &GuardInput<'_>) -> bool {
        if self.contents.is_empty() {
            return true;
        }
        let mut texts = input.commands();
        texts.extend(input.files().iter().map(|file| file.content.clone()));
        texts.extend(input.event.text(field::PROMPT).map(str::to_owned));
        if texts.iter().all(String::is_empty) {
            let values = input
                .event
                .tool_input()
                .into_iter()
                .flat_map(serde_json::Map::values);
            texts.extend(values.filter_map(Value::as_str).map(str::to_owned));
        }
        texts
            .iter()
            .any(|text| self.contents.iter().any(|pattern| pattern.is_match(text)))
    }

    fn files_in_call(&self, input: &GuardInput<'_>) -> Truth {
        if self.paths.is_empty() {
            return Truth::Yes;
        }
        let holds = input
            .files()
            .iter()
            .any(|file| matches_path(&self.paths, &file.path, input))
            || input.invocations().any(|invocation| {
                paths_of(invocation).any(|path| matches_path(&self.paths, &path, input))
            });
        unless_unread(holds, input)
    }

    fn hosts_in_call(&self, input: &GuardInput<'_>) -> Truth {
        if self.hosts.is_empty() {
            return Truth::Yes;
        }
        let fetched = input.fetched_url().and_then(url_host);
        let contacted = input.invocations().flat_map(contacted_hosts);
        let best = fetched
            .into_iter()
            .chain(contacted)
            .map(|host| self.matches_host(&host))
            .max();
        best.unwrap_or(Truth::No).max(unless_unread(false, input))
    }

    fn matches_host(&self, host: &str) -> Truth {
        if self.hosts.iter().any(|pattern| host_matches(pattern, host)) {
            Truth::Yes
        } else if host.contains(UNKNOWN) {
            Truth::Unknown
        } else {
            Truth::No
        }
    }

    fn all_files_match(&self, subject: Subject<'_>, input: &GuardInput<'_>) -> Truth {
        if self.paths.is_empty() {
            return Truth::Yes;
        }
        let mut paths: Vec<Option<String>> = input
            .files()
            .iter()
            .map(|file| Some(file.path.clone()))
            .collect();
        match subject {
            Subject::Call => {}
            Subject::Program(invocation) => {
                paths.extend(shell_files(invocation).into_iter().map(|file| file.path));
            }
            Subject::Unread => return Truth::Unknown,
        }
        let matches = |path: &Option<String>| match path {
            Some(path) if matches_path(&self.paths, path, input) => Truth::Yes,
            Some(path) if !path.contains(UNKNOWN) => Truth::No,
            _ => Truth::Unknown,
        };
        paths.iter().map(matches).min().unwrap_or(Truth::No)
    }

    fn all_hosts_match(&self, subject: Subject<'_>, input: &GuardInput<'_>) -> Truth {
        if self.hosts.is_empty() {
            return Truth::Yes;
        }
        let hosts = match subject {
            Subject::Call => input.fetched_url().and_then(url_host).into_iter().collect(),
            Subject::Program(invocation) => contacted_hosts(invocation),
            Subject::Unread => return Truth::Unknown,
        };
        let matches = |host: &String| self.matches_host(host);
        hosts.iter().map(matches).min().unwrap_or(Truth::No)
    }
}

fn matches_path(patterns: &[String], path: &str, input: &GuardInput<'_>) -> bool {
    patterns.iter().any(|pattern| {
        path_matches(
            pattern,
            path,
            input.project.as_deref(),
            input.home.as_deref(),
        )
    })
}

fn paths_of(invocation: &Invocation) -> impl Iterator<Item = String> {
    shell_files(invocation)
        .into_iter()
        .filter_map(|file| file.path)
}

/// Whether the call may start programs whose names are not known.
pub(crate) fn may_be_any_program(input: &GuardInput<'_>) -> bool {
    is_incomplete(input) || input.invocations().any(is_hidden)
}

fn is_incomplete(input: &GuardInput<'_>) -> bool {
    input
        .analyses()
        .iter()
        .any(|analysis| analysis.is_incomplete)
}

fn unless_unread(holds: bool, input: &GuardInput<'_>) -> Truth {
    if !holds && is_incomplete(input) {
        Truth::Unknown
    } else {
        Truth::from(holds)
    }
}
