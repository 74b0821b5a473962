//! Whether a program still protects under another agent: the converted hook runs
//! it unchanged, so it must find what it reads in the target's payload, get the
//! variables that it uses, and be understood when it denies.
//!
//! Payloads and answers are compared, not formats: sample calls are encoded for
//! both agents. The text of the script, if it can be read, shows which part of
//! them matters; otherwise all of it does.

mod answers;
mod inputs;
mod made_names;
mod program_text;
mod sample_calls;
mod whole_reads;

use anyhook_agents::Adapter;
use anyhook_agents::config::MANIFEST_PROVIDER_DATA;
use anyhook_model::{Handler, HandlerKind, registry};
use serde_json::Value;

use self::program_text::{ProgramText, without_comments};
use self::sample_calls::{leaves_of, sample_event};
use super::{HookFitter, TargetEvent, inline};
use crate::ScriptText;
use crate::report::WarningSeverity::{self, Critical, Info, Warning};

impl HookFitter<'_> {
    /// Reports a program whose input and output format is not the target's.
    pub(super) fn report_dialect(
        &mut self,
        handler: &mut Handler,
        target_events: &[TargetEvent<'_>],
        script: &ScriptText,
    ) {
        let target = self.target();
        let source = self.source.agent.map(|agent| agent.spec.id.as_ref());
        let own = handler.dialect.take();
        let speaks = own.as_deref().or(source).unwrap_or("canonical");
        // The target calls its handlers in this format, if the entry names it.
        if self.config.handler.dialects.iter().any(|it| it == speaks) {
            let message = format!("{target} calls the program in the `{speaks}` format");
            self.warnings.info("handler.dialect", message);
            handler.dialect = Some(speaks.to_owned());
            return;
        }
        if speaks == self.adapter.spec.id
            || matches!(handler.kind, HandlerKind::Prompt | HandlerKind::Agent)
        {
            if own.is_some() {
                let message = format!("{target} does not need `dialect`");
                self.warnings.info("handler.dialect", message);
            }
            return;
        }
        let what = format!("the program uses the `{speaks}` format, but {target} uses its own");
        let advice = "`anyhook install` translates between them";
        if matches!(handler.kind, HandlerKind::Http | HandlerKind::McpTool) && self.hook.blocking {
            let message =
                format!("{what}, so a block by the service may not be understood. {advice}");
            self.warnings.warn(Critical, "handler.dialect", message);
            return;
        }
        if !self.hook.blocking {
            let missed = self.inputs_missed_by_observer(handler, speaks, target_events, script);
            let (severity, how) = if missed.is_empty() {
                (Info, "; its output may be ignored there".to_owned())
            } else {
                (Warning, format!(": {}", missed.join("; ")))
            };
            let message = format!("{what}{how}. {advice}");
            self.warnings.warn(severity, "handler.dialect", message);
            return;
        }
        let (severity, message) = self.judge_program(handler, speaks, target_events, script);
        let message = format!("{what}{message}");
        let message = if severity == Info {
            message
        } else {
            format!("{message}. {advice}")
        };
        self.warnings.warn(severity, "handler.dialect", message);
    }

    /// What a program that decides nothing reads and does not find, as far as its text shows.
    fn inputs_missed_by_observer(
        &self,
        handler: &Handler,
        speaks: &str,
        target_events: &[TargetEvent<'_>],
        script: &ScriptText,
    ) -> Vec<String> {
        let command = handler.command.as_deref().unwrap_or_default();
        let adapter = anyhook_agents::get(speaks);
        let text = format!("{command}\n{}", script.known().unwrap_or_default());
        let text = without_comments(&text);
        if self.shows_what_it_reads(adapter, &text) {
            self.unreadable_inputs(adapter, target_events, ProgramText(Some(&text)))
        } else {
            Vec::new()
        }
    }

    /// What becomes of a guard whose program speaks another format.
    fn judge_program(
        &self,
        handler: &Handler,
        speaks: &str,
        target_events: &[TargetEvent<'_>],
        script: &ScriptText,
    ) -> (WarningSeverity, String) {
        let command = handler.command.as_deref().unwrap_or_default();
        let adapter = anyhook_agents::get(speaks);
        let known = script.known();
        let known = known.map(|script| without_comments(&format!("{command}\n{script}")));
        let known = known.filter(|text| {
            inline::only_prints(command)
                || script.known().is_some_and(inline::only_prints)
                || self.shows_what_it_reads(adapter, text)
        });
        let text = ProgramText(known.as_deref());
        let mut problems = self.unreadable_inputs(adapter, target_events, text);
        problems.extend(self.misunderstood_answers(adapter, target_events, text));
        problems.extend(self.missing_variables(adapter, command, text));
        if problems.is_empty() {
            let message = "; what it reads and answers is the same in both";
            return (Info, message.to_owned());
        }
        let limit = match script {
            _ if known.is_some() => "",
            ScriptText::Known(_) => " (its text does not show what it reads)",
            ScriptText::Missing => " (its script was not found)",
            ScriptText::Unclear => " (its text could not be read)",
        };
        // The interchange format leaves open what programs read: nothing is known of
        // one that has no dialect and is not here. It protects nothing here either.
        let severity = match script {
            ScriptText::Missing if self.is_dialect_unstated() => Warning,
            _ => Critical,
        };
        let problems = with_few_keys(problems);
        (severity, format!("{limit}: {}", problems.join("; ")))
    }

    /// Whether a text names anything of the payload that its program gets. One that
    /// does not may hand the payload to another program.
    fn shows_what_it_reads(&self, speaks: Option<&Adapter>, text: &str) -> bool {
        let is_tool_event = registry::event(&self.hook.event).is_none_or(|event| event.tool);
        if whole_reads::searches_input(text) {
            return false;
        }
        if !is_tool_event {
            return true;
        }
        let text = ProgramText(Some(text));
        self.sample_calls().iter().any(|call @ (kind, ..)| {
            let sample = sample_event(&self.hook.event, *call);
            let calls = self.source_calls(speaks, kind, &sample, true);
            calls.iter().any(|call| {
                leaves_of(&call.payload).iter().any(|leaf| {
                    if leaf.is_optional() {
                        leaf.keys.last().is_some_and(|key| text.reads(key))
                    } else {
                        (leaf.is_sample() || leaf.keys.len() > 1)
                            && leaf.keys.iter().any(|key| text.reads(key))
                    }
                })
            })
        })
    }

    /// Variables that the program uses and the target does not set.
    fn missing_variables(
        &self,
        speaks: Option<&Adapter>,
        command: &str,
        text: ProgramText<'_>,
    ) -> Vec<String> {
        let target = self.target();
        let names = speaks.into_iter().flat_map(Adapter::variables_of_hooks);
        let names = names.filter(|name| {
            let mut there = self.adapter.variables_of_hooks();
            !there.any(|other| other == *name) && !self.hook.handler.env.contains_key(*name)
        });
        let used = names.filter(|name| {
            text.uses_variable(name) || ProgramText(Some(command)).uses_variable(name)
        });
        used.map(|name| format!("it uses ${name}, which {target} does not set"))
            .collect()
    }

    /// Reports variables that the settings of the program's agent set for its hooks,
    /// where the program uses them.
    pub(super) fn report_settings_variables(&mut self, handler: &Handler, script: &ScriptText) {
        let speaks = self.speaks();
        let settings = self.source.manifest.extra.get(MANIFEST_PROVIDER_DATA);
        let variables = settings.and_then(|data| data.get(speaks)?.pointer("/file/env"));
        let Some(variables) = variables.and_then(Value::as_object) else {
            return;
        };
        if speaks == self.adapter.spec.id {
            return;
        }
        let command = super::command_line(handler).unwrap_or_default();
        let text = script.known().map(|text| format!("{command}\n{text}"));
        let is_used = |name: &&String| {
            let is_seen = |text| ProgramText(Some(text)).uses_variable(name);
            text.as_deref().is_none_or(is_seen) && !self.hook.handler.env.contains_key(*name)
        };
        let used: Vec<String> = variables
            .keys()
            .filter(is_used)
            .map(|name| format!("`{name}`"))
            .collect();
        if used.is_empty() {
            return;
        }
        let may = if text.is_some() { "uses" } else { "may use" };
        let message = format!(
            "the program {may} {}, which the settings of {speaks} set; they are not converted",
            used.join(", ")
        );
        self.warn_weakened("handler.env", message);
    }
}

/// Keys that a message names of a program whose text is not known.
const MAX_POSSIBLE_KEYS: usize = 3;

/// The same with the number of keys that a program may read instead of most of them.
fn with_few_keys(problems: Vec<String>) -> Vec<String> {
    let mut count = 0;
    let mut kept: Vec<String> = Vec::new();
    let mut last_key = 0;
    for problem in problems {
        if problem.starts_with("it may read `") {
            count += 1;
            if count > MAX_POSSIBLE_KEYS {
                continue;
            }
            last_key = kept.len() + 1;
        }
        kept.push(problem);
    }
    if count > MAX_POSSIBLE_KEYS {
        let more = count - MAX_POSSIBLE_KEYS;
        kept.insert(last_key, format!("the same of {more} more keys"));
    }
    kept
}
