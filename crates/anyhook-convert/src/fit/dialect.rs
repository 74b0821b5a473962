//! Whether a program still protects under another agent: the converted hook runs
//! it unchanged, so it must find what it reads in the target's payload, get the
//! variables that it uses, and be understood when it denies.
//!
//! Payloads and answers are compared, not formats: sample calls are encoded for
//! both agents. The text of the script, if it can be read, shows which part of
//! them matters; otherwise all of it does.

use anyhook_agents::Adapter;
use anyhook_agents::config::hook_keys;
use anyhook_agents::respond::RenderedAnswer;
use anyhook_agents::spec::{AnswerProfile, EventSpec, ExitMeaning};
use anyhook_model::event::field;
use anyhook_model::{Decision, Handler, HandlerKind, HookEvent, HookResponse, matching, registry};
use serde_json::{Value, json};

use super::{HookFitter, TargetEvent, inline};
use crate::report::WarningSeverity::{Critical, Info, Warning};

/// Begins every value of a sample.
const SAMPLE: &str = "sample-";

/// Canonical tools, the keys of their input that guards decide by, and keys that
/// matter only to a program that is seen to read them.
const SAMPLE_CALLS: [SampleCall; 10] = [
    ("shell", &["command"], &["description", "cwd"]),
    ("file_read", &["path"], &[]),
    ("file_write", &["path", "content"], &[]),
    ("file_edit", &["path"], &[]),
    ("search", &["pattern"], &["path", "glob"]),
    ("find", &["pattern"], &["path"]),
    ("web_fetch", &["url"], &["prompt"]),
    ("web_search", &["query"], &[]),
    ("agent", &["prompt"], &["type", "description"]),
    ("mcp", &["text"], &[]),
];

type SampleCall = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

const SAMPLE_SERVER: &str = "srv";
const SAMPLE_TOOL: &str = "do_it";

/// What the text of a program shows; without a text everything is possible.
#[derive(Clone, Copy)]
struct ProgramText<'a>(Option<&'a str>);

impl ProgramText<'_> {
    /// What the program does, or may do if its text is not known.
    fn does(self, known: &'static str, unknown: &'static str) -> &'static str {
        if self.0.is_some() { known } else { unknown }
    }

    fn contains(self, text: &str) -> bool {
        self.0.is_none_or(|own| own.contains(text))
    }

    fn mentions(self, word: &str) -> bool {
        self.0.is_none_or(|text| has_word(text, word))
    }

    /// Whether a name is compared with something, and not just a word of the shell.
    fn compares(self, name: &str) -> bool {
        let forms = ["\"@\"", "'@'", "= @", "=@", "@)", "|@", "@|", "\"@|", "^@"];
        let forms = forms.map(|form| form.replace('@', name));
        self.0.is_none_or(|text| {
            has_word(text, name) && forms.iter().any(|form| text.contains(form.as_str()))
        })
    }

    /// Whether the program uses an environment variable and has no value of its own
    /// for it.
    fn uses_variable(self, name: &str) -> bool {
        let Self(Some(text)) = self else { return false };
        let is_plain_word = name.chars().any(|letter| letter.is_ascii_lowercase());
        let is_set = text.contains(&format!("{name}=")) || text.contains(&format!("{name} ="));
        let with_default = format!("${{{name}:-");
        let text = text.replace(&with_default, "");
        let expands = text.contains(&format!("${{{name}")) || has_word_after(&text, "$", name);
        !is_set && (expands || (!is_plain_word && has_word(&text, name)))
    }

    /// Whether it may end with a code of its own choice.
    fn may_exit_with_a_code(self) -> bool {
        ["exit", "return", "Exit"]
            .iter()
            .any(|word| self.contains(word))
    }

    /// Whether it prints JSON at all.
    fn prints_json(self) -> bool {
        let marks = ["{\"", "{\\\"", "{ \"", "{'", "json", "JSON", "jq"];
        marks.iter().any(|mark| self.contains(mark))
    }
}

fn is_word_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

fn has_word(text: &str, word: &str) -> bool {
    has_word_after(text, "", word)
}

/// Whether the text has the word, directly after `before`.
fn has_word_after(text: &str, before: &str, word: &str) -> bool {
    let wanted = format!("{before}{word}");
    text.match_indices(&wanted).any(|(start, found)| {
        let left = text.get(..start).and_then(|left| left.chars().next_back());
        let right = text.get(start + found.len()..);
        let right = right.and_then(|right| right.chars().next());
        (!before.is_empty() || !left.is_some_and(is_word_letter))
            && !right.is_some_and(is_word_letter)
    })
}

/// The texts in a value, with the keys that lead to each.
fn leaves<'a>(value: &'a Value, at: &mut Vec<&'a str>, found: &mut Vec<(Vec<String>, &'a str)>) {
    match value {
        Value::String(text) => {
            found.push((at.iter().map(|key| (*key).to_owned()).collect(), text));
        }
        Value::Array(items) => items.iter().for_each(|item| leaves(item, at, found)),
        Value::Object(map) => {
            for (key, item) in map {
                at.push(key);
                leaves(item, at, found);
                at.pop();
            }
        }
        _ => {}
    }
}

fn leaves_of(value: &Value) -> Vec<(Vec<String>, &str)> {
    let mut found = Vec::new();
    leaves(value, &mut Vec::new(), &mut found);
    found
}

/// A call in the words of one agent: its name for the tool, and the payload.
struct EncodedCall {
    tool: Option<String>,
    /// Other names that it may have for the tool.
    aliases: Vec<String>,
    payload: Value,
}

fn sample_event(event: &str, (kind, main, more): SampleCall, with_more: bool) -> HookEvent {
    let mut sample = HookEvent {
        event: event.to_owned(),
        source: "canonical".to_owned(),
        ..HookEvent::default()
    };
    let mut set = |key: &str, value: Value| sample.data.insert(key.to_owned(), value);
    if registry::event(event).is_none_or(|event| event.tool) {
        let keys = main.iter().chain(more.iter().filter(|_| with_more));
        let mut input: serde_json::Map<String, Value> = keys
            .map(|key| ((*key).to_owned(), json!(format!("{SAMPLE}{key}"))))
            .collect();
        if kind == "file_edit" {
            input.insert(
                "edits".into(),
                json!([{"old": "sample-old", "new": "sample-new"}]),
            );
        }
        set(field::TOOL_NAME, json!(kind));
        set(field::TOOL_INPUT, Value::Object(input));
        if kind == "mcp" {
            set(field::TOOL_NAME, json!(SAMPLE_TOOL));
            set(
                field::MCP,
                json!({"server": SAMPLE_SERVER, "tool": SAMPLE_TOOL}),
            );
        }
    } else {
        set(field::PROMPT, json!("sample-prompt"));
    }
    sample
}

/// The sample as calls of each tool that the agent has for it.
fn encoded_calls(
    adapter: &Adapter,
    event: &EventSpec,
    kind: &str,
    sample: &HookEvent,
) -> Vec<EncodedCall> {
    let is_tool_event = sample.tool_name().is_some();
    let splits = !event.tools.is_empty();
    let mut tools: Vec<Option<String>> = Vec::new();
    if !is_tool_event {
        tools.push(None);
    } else if splits {
        tools.extend(event.tools.iter().any(|tool| tool == kind).then_some(None));
    } else if kind == "mcp" {
        tools.extend(adapter.mcp_name(SAMPLE_SERVER, SAMPLE_TOOL).map(Some));
    } else {
        let rows = adapter.spec.tools.iter().filter(|row| !row.read_only);
        let rows = rows.filter(|row| row.kinds().any(|own| own == kind));
        tools.extend(rows.map(|row| Some(row.native.to_string())));
        tools.dedup();
    }
    let calls = tools.into_iter().filter_map(|tool| {
        let mut call = sample.clone();
        if let Some(tool) = tool.as_ref().filter(|_| kind != "mcp") {
            // As the agent itself would report it.
            call.source = adapter.spec.id.to_string();
            call.native_event = event.native.to_string();
            call.data
                .insert(field::NATIVE_TOOL_NAME.into(), json!(tool));
        }
        let encoded = adapter.encode(&call, Some(&event.native))?;
        let row = tool
            .as_deref()
            .and_then(|tool| adapter.tool_by_native(tool, None));
        let aliases = row.into_iter().flat_map(|row| &row.aliases);
        Some(EncodedCall {
            aliases: aliases.map(ToString::to_string).collect(),
            tool,
            payload: adapter.payload_of_program(encoded.payload),
        })
    });
    calls.collect()
}

impl HookFitter<'_> {
    /// Reports a program whose input and output format is not the target's.
    pub(super) fn report_dialect(
        &mut self,
        handler: &mut Handler,
        target_events: &[TargetEvent<'_>],
        script: Option<&str>,
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
        if handler.kind == HandlerKind::Http && self.hook.blocking {
            let message =
                format!("{what}, so a block by the service may not be understood. {advice}");
            self.warnings.warn(Critical, "handler.dialect", message);
            return;
        }
        if !self.hook.blocking {
            let message = format!("{what}; its output may be ignored there. {advice}");
            self.warnings.warn(Info, "handler.dialect", message);
            return;
        }
        let command = handler.command.as_deref().unwrap_or_default();
        let adapter = anyhook_agents::get(speaks);
        let text = script.map(|script| format!("{command}\n{script}"));
        let text = text.filter(|text| {
            inline::only_prints(command)
                || script.is_some_and(inline::only_prints)
                || self.shows_what_it_reads(adapter, text)
        });
        let is_unclear = script.is_some() && text.is_none();
        let script = text.as_deref();
        let text = ProgramText(script);
        let mut problems = self.unreadable_inputs(adapter, target_events, text);
        problems.extend(self.misunderstood_answers(adapter, target_events, text));
        problems.extend(self.missing_variables(adapter, command, text));
        let (severity, message) = if problems.is_empty() {
            let tail = "what it reads and answers is the same in both";
            (Info, format!("{what}; {tail}"))
        } else {
            let known = match script {
                Some(_) => "",
                None if is_unclear => " (its text does not show what it reads)",
                None => " (its text could not be read)",
            };
            let list = problems.join("; ");
            // The interchange format leaves open what programs read: nothing is
            // known of one that cannot be read and has no dialect.
            let severity = if script.is_none() && self.is_dialect_unstated() {
                Warning
            } else {
                Critical
            };
            (severity, format!("{what}{known}: {list}. {advice}"))
        };
        self.warnings.warn(severity, "handler.dialect", message);
    }

    /// Whether a text names anything of the payload that its program gets. One that
    /// does not may hand the payload to another program.
    fn shows_what_it_reads(&self, speaks: Option<&Adapter>, text: &str) -> bool {
        let is_tool_event = registry::event(&self.hook.event).is_none_or(|event| event.tool);
        if !is_tool_event {
            return true;
        }
        SAMPLE_CALLS.iter().any(|call| {
            let sample = sample_event(&self.hook.event, *call, true);
            let payload = match speaks {
                None => serde_json::to_value(&sample).ok(),
                Some(adapter) => adapter
                    .encode(&sample, None)
                    .map(|encoded| adapter.payload_of_program(encoded.payload)),
            };
            let payload = payload.unwrap_or_default();
            let mut leaves = leaves_of(&payload).into_iter();
            leaves.any(|(keys, value)| {
                let is_of_call = value.contains(SAMPLE) || keys.len() > 1;
                is_of_call && keys.iter().any(|key| has_word(text, key))
            })
        })
    }

    /// What the program reads and does not find in the target's payload.
    fn unreadable_inputs(
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
            let sample = sample_event(&self.hook.event, *call, text.0.is_some());
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

    /// Why the target may not understand that the program denies.
    fn misunderstood_answers(
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

    /// Variables that the program uses and the target does not set.
    fn missing_variables(
        &self,
        speaks: Option<&Adapter>,
        command: &str,
        text: ProgramText<'_>,
    ) -> Vec<String> {
        let target = self.target();
        let names = speaks
            .into_iter()
            .flat_map(|adapter| adapter.spec.env.keys());
        let names = names.filter(|name| !self.adapter.spec.env.contains_key(*name));
        let names = names.filter(|name| !self.hook.handler.env.contains_key(name.as_ref()));
        let used = names.filter(|name| {
            text.uses_variable(name) || ProgramText(Some(command)).uses_variable(name)
        });
        used.map(|name| format!("it uses ${name}, which {target} does not set"))
            .collect()
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

fn exits_only_with_0_or_2(text: &str) -> bool {
    !text.contains("set -e")
        && text.match_indices("exit ").all(|(start, found)| {
            let rest = text.get(start + found.len()..).unwrap_or_default();
            rest.starts_with('0') || rest.starts_with('2')
        })
}
