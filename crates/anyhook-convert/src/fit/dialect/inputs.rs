//! Whether a program finds in the target's payload what it reads.

use anyhook_agents::Adapter;
use anyhook_agents::config::hook_keys;
use anyhook_agents::spec::EventSpec;
use anyhook_model::event::field;
use anyhook_model::{HookEvent, matching, registry};
use serde_json::json;

use super::made_names::{makes_names_of, tests_value_of};
use super::program_text::{ProgramText, keys_read_below};
use super::sample_calls::{
    CallForms, EncodedCall, Leaf, SAMPLE_CALLS, SampleCall, encoded_calls, leaves_of, sample_event,
};
use crate::fit::{HookFitter, TargetEvent};

/// For an event without a tool.
const NO_CALL: [SampleCall; 1] = [("", &[])];

impl HookFitter<'_> {
    /// What the program reads and does not find in the target's payload.
    pub(super) fn unreadable_inputs(
        &self,
        speaks: Option<&Adapter>,
        target_events: &[TargetEvent<'_>],
        text: ProgramText<'_>,
    ) -> Vec<String> {
        let mut problems: Vec<String> = Vec::new();
        let mut add = |found: Vec<String>| {
            for problem in found {
                if !problems.contains(&problem) {
                    problems.push(problem);
                }
            }
        };
        // What the program's agent always sends the target must always send, too.
        let mut rows = target_events
            .iter()
            .filter_map(|target| target.event)
            .flat_map(|event| self.adapter.payload_rows(event));
        let passes: &[bool] = if rows.any(|row| row.sometimes) {
            &[true, false]
        } else {
            &[true]
        };
        for &sometimes in passes {
            let forms = CallForms {
                read_only: false,
                sometimes,
            };
            for call @ (kind, ..) in self.sample_calls() {
                let sample = sample_event(&self.hook.event, *call);
                for was in self.source_calls(speaks, kind, &sample, sometimes) {
                    let events = target_events.iter().filter_map(|target| target.event);
                    let there = events
                        .flat_map(|event| encoded_calls(self.adapter, event, kind, &sample, forms));
                    for is in there {
                        add(self.differences(&was, &is, text));
                    }
                }
            }
        }
        add(self.unknown_keys(speaks, target_events, text));
        add(self.unknown_words(speaks, target_events, text));
        add(self.other_forms(speaks, text));
        problems
    }

    /// The calls that may be behind the hook's event.
    pub(super) fn sample_calls(&self) -> &'static [SampleCall] {
        let is_tool_event = registry::event(&self.hook.event).is_none_or(|event| event.tool);
        if is_tool_event {
            &SAMPLE_CALLS
        } else {
            &NO_CALL
        }
    }

    /// The sample as the program's own agent reports it; empty if the hook is not
    /// for it or the agent has no such tool.
    pub(super) fn source_calls(
        &self,
        speaks: Option<&Adapter>,
        kind: &str,
        sample: &HookEvent,
        sometimes: bool,
    ) -> Vec<EncodedCall> {
        let Some(adapter) = speaks else {
            let fits = matching::matches(self.hook.matcher.as_ref(), sample);
            let call = fits.then(|| EncodedCall {
                tool: sample.tool_name().map(str::to_owned),
                aliases: Vec::new(),
                payload: serde_json::to_value(sample).unwrap_or_default(),
                event: sample.event.clone(),
                is_written: true,
            });
            return call.into_iter().collect();
        };
        let Some(event) = self.source_event(adapter, sample.tool_name().map(|_| kind)) else {
            return Vec::new();
        };
        let forms = CallForms {
            read_only: true,
            sometimes,
        };
        let mut calls = encoded_calls(adapter, event, kind, sample, forms);
        calls.retain(|call| {
            let mut seen = sample.clone();
            if let Some(tool) = &call.tool {
                seen.data
                    .insert(field::NATIVE_TOOL_NAME.into(), json!(tool));
            }
            matching::matches(self.hook.matcher.as_ref(), &seen)
        });
        calls
    }

    /// The event of the program's own agent.
    fn source_event<'a>(&self, adapter: &'a Adapter, kind: Option<&str>) -> Option<&'a EventSpec> {
        let kept = self.hook.provider_data.get(adapter.spec.id.as_ref());
        let kept = kept.and_then(|data| data.get(hook_keys::NATIVE_EVENT)?.as_str());
        let event = kept.and_then(|name| adapter.event_by_native(name));
        event.or_else(|| adapter.event_for(&self.hook.event, kind))
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
        for leaf in leaves_of(&was.payload) {
            let Leaf { keys, value } = &leaf;
            let is_name = was.tool.as_deref() == Some(&**value) || **value == was.event;
            let is_read = || text.0.is_some() && keys.iter().all(|key| text.reads(key));
            if is_name && is_read() && !there.iter().any(|other| other.keys == *keys) {
                let key = keys.join(".");
                problems.push(format!("it reads `{key}`, which {target} does not send"));
                continue;
            }
            if was.tool.as_deref() == Some(&**value) {
                let problem = was
                    .is_written
                    .then(|| self.tool_name_problem(was, is, text));
                problems.extend(
                    problem
                        .flatten()
                        .filter(|problem| !problems.contains(problem)),
                );
                continue;
            }
            if **value == was.event {
                problems.extend(self.event_name_problem(keys, was, is, text));
                continue;
            }
            if !leaf.is_sample() {
                problems.extend(self.missing_object(keys, &there, text));
                problems.extend(self.missing_constant(&leaf, &there, text));
                continue;
            }
            let needs_own_key = leaf.is_optional() || !was.is_written;
            let is_of_whole = was.is_written && text.reads_object_of(keys);
            let read = if needs_own_key {
                let is_read = keys.last().is_some_and(|key| text.reads(key));
                (is_read || is_of_whole).then_some(keys.as_slice())
            } else {
                let deepest = keys.iter().rposition(|key| text.mentions(key));
                deepest.and_then(|deepest| keys.get(..=deepest))
            };
            let Some(read) = read else {
                continue;
            };
            let is_found = there.iter().any(|other| {
                let at = &other.keys;
                let is_same_place = if read.len() == keys.len() {
                    at == keys
                } else {
                    at.starts_with(read)
                };
                // A program that also reads the target's keys.
                let is_read_too = text.0.is_some()
                    && at.iter().all(|key| text.mentions(key))
                    && at.iter().any(|key| !keys.contains(key));
                other.value == *value && (is_same_place || is_read_too)
            });
            if !is_found {
                let is_named = text.0.is_some() && read.iter().all(|key| text.mentions(key));
                let read = read.join(".");
                let reads = if is_named { "it reads" } else { "it may read" };
                problems.push(format!("{reads} `{read}`, which {target} does not send"));
            }
        }
        problems
    }

    /// An object of the payload that the program reads and the target does not have at
    /// all: what an agent says of an MCP server, for example.
    fn missing_object(
        &self,
        keys: &[String],
        there: &[Leaf<'_>],
        text: ProgramText<'_>,
    ) -> Option<String> {
        let (object, [_, ..]) = keys.split_first()? else {
            return None;
        };
        let is_there = there.iter().any(|leaf| leaf.keys.first() == Some(object));
        let target = self.target();
        (text.0.is_some() && text.reads(object) && !is_there)
            .then(|| format!("it reads `{object}`, which {target} does not send"))
    }

    /// A word of the agent's own that the program looks for below an object, such as the
    /// kind of a change in the input of a tool for several kinds.
    fn missing_constant(
        &self,
        leaf: &Leaf<'_>,
        there: &[Leaf<'_>],
        text: ProgramText<'_>,
    ) -> Option<String> {
        let Leaf { keys, value } = leaf;
        let is_looked_for = text.0.is_some()
            && keys.len() > 1
            && keys.iter().all(|key| text.reads(key))
            && text.compares(value);
        let is_there = || {
            there
                .iter()
                .any(|other| other.keys == *keys && other.value == *value)
        };
        (is_looked_for && !is_there()).then(|| {
            let key = keys.join(".");
            format!(
                "it looks for `{value}` in `{key}`, which {} does not say",
                self.target()
            )
        })
    }

    /// Keys of a tool's input that the program reads and no table knows: whether the
    /// target sends them is not known. What the model gives to a tool of an MCP server
    /// is the same everywhere.
    fn unknown_keys(
        &self,
        speaks: Option<&Adapter>,
        target_events: &[TargetEvent<'_>],
        text: ProgramText<'_>,
    ) -> Vec<String> {
        let (Some(adapter), Some(known)) = (speaks, text.0) else {
            return Vec::new();
        };
        let event = self.source_event(adapter, Some("shell"));
        let Some(place) = event.and_then(|event| adapter.payload_pointer(event, field::TOOL_INPUT))
        else {
            return Vec::new();
        };
        let Some(call) = SAMPLE_CALLS.iter().find(|(kind, _)| *kind == "mcp") else {
            return Vec::new();
        };
        let sample = sample_event(&self.hook.event, *call);
        let is_for_mcp = !self.source_calls(speaks, "mcp", &sample, true).is_empty();
        let is_same_place = target_events.iter().all(|target| {
            let there = target
                .event
                .and_then(|event| self.adapter.payload_pointer(event, field::TOOL_INPUT));
            there == Some(place)
        });
        if is_for_mcp && is_same_place {
            return Vec::new();
        }
        let input = place.rsplit('/').next().unwrap_or_default();
        let mut keys = keys_read_below(known, input);
        keys.retain(|key| !anyhook_agents::all().any(|adapter| knows_key(adapter, key)));
        let target = self.target();
        keys.iter()
            .map(|key| {
                format!("it reads `{input}.{key}`, and it is not known whether {target} sends that")
            })
            .collect()
    }

    /// What every agent has in a form of its own: the transcript, and the parts of a
    /// tool's result.
    fn other_forms(&self, speaks: Option<&Adapter>, text: ProgramText<'_>) -> Vec<String> {
        let (Some(adapter), Some(known)) = (speaks, text.0) else {
            return Vec::new();
        };
        let Some(own) = self.source_event(adapter, Some("shell")) else {
            return Vec::new();
        };
        let target = self.target();
        let mut problems = Vec::new();
        if let Some(place) = adapter.payload_pointer(own, field::TRANSCRIPT_PATH) {
            let key = place.rsplit('/').next().unwrap_or_default();
            if text.reads(key) {
                problems.push(format!(
                    "it reads `{key}`, and {target} writes its transcript in a form of its own"
                ));
            }
        }
        if let Some(place) = adapter.payload_pointer(own, field::TOOL_OUTPUT) {
            let key = place.rsplit('/').next().unwrap_or_default();
            let parts = keys_read_below(known, key);
            problems.extend(parts.iter().map(|part| {
                format!("it reads `{key}.{part}`, and {target} has results in a form of its own")
            }));
        }
        problems
    }

    /// Words of a field that the program looks for and that the target has others for.
    fn unknown_words(
        &self,
        speaks: Option<&Adapter>,
        target_events: &[TargetEvent<'_>],
        text: ProgramText<'_>,
    ) -> Vec<String> {
        let Some(adapter) = speaks else {
            return Vec::new();
        };
        let Some(own) = self.source_event(adapter, Some("shell")) else {
            return Vec::new();
        };
        let target = self.target();
        let mut problems = Vec::new();
        for row in adapter
            .payload_rows(own)
            .filter(|row| !row.words.is_empty())
        {
            let key = row.at.rsplit('/').next().unwrap_or_default();
            for event in target_events.iter().filter_map(|target| target.event) {
                let there = self.adapter.payload_rows(event);
                let there = there.filter(|other| other.to == row.to && other.at == row.at);
                let there: Vec<&str> = there
                    .flat_map(|row| row.words.iter().map(AsRef::as_ref))
                    .collect();
                let mut missing = row
                    .words
                    .iter()
                    .filter(|word| !there.contains(&word.as_ref()));
                let missing = missing.find(|word| text.reads(key) && text.compares(word));
                let looks = text.does("it looks", "it may look");
                problems.extend(missing.map(|word| {
                    format!("{looks} for `{word}` in `{key}`, which {target} does not say")
                }));
            }
        }
        problems.dedup();
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
            .any(|leaf| leaf.keys == keys && (*leaf.value == was.event || text.knows(&leaf.value)));
        let checks = text.does("it checks", "it may check");
        (is_read && !is_found).then(|| {
            format!(
                "{checks} for the event `{}`, which {} does not send",
                was.event,
                self.target()
            )
        })
    }

    /// Whether a program reads the tool's name and decides by it in a way that its text
    /// does not show: it makes other names of it, or compares it with something that is not
    /// a name, such as a part, a pattern, a list in another place.
    fn decides_by_unseen_name(&self, was: &EncodedCall, text: ProgramText<'_>) -> bool {
        let leaves = leaves_of(&was.payload);
        let is_tool = |leaf: &&Leaf<'_>| was.tool.as_deref() == Some(&*leaf.value);
        let mut keys = leaves
            .iter()
            .filter(is_tool)
            .filter_map(|leaf| leaf.keys.last());
        let Some(key) = keys.find(|key| text.reads(key)) else {
            return false;
        };
        let Some(known) = text.0 else {
            return false;
        };
        if makes_names_of(known, key) {
            return true;
        }
        let own = anyhook_agents::get(self.speaks());
        let mut names = own.into_iter().flat_map(|adapter| {
            let rows = adapter.spec.tools.iter();
            rows.flat_map(anyhook_agents::spec::ToolSpec::names)
        });
        (self.hook.matcher.is_none() || tests_value_of(known, key))
            && !names.any(|name| {
                text.compares(name) || text.compares(&name.to_lowercase()) || text.joins(name)
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
        // `Bash:` begins a text that has more than the name.
        let is_compared = |name: &str| {
            text.compares(name) || text.compares(&name.to_lowercase()) || text.joins(name)
        };
        let name = if text.0.is_none() {
            names.next().filter(|_| self.hook.matcher.is_none())?
        } else if self.decides_by_unseen_name(was, text) {
            names.next().filter(|name| is.tool.as_ref() != Some(name))?
        } else {
            names.find(|name| is_compared(name))?
        };
        let target = self.target();
        let checks = text.does("it checks", "it may check");
        let Some(other) = &is.tool else {
            return Some(format!(
                "{checks} for the tool `{name}`, and {target} does not name it"
            ));
        };
        let is_known = if text.0.is_some() {
            is_compared(other)
        } else {
            name == other
        };
        let there = leaves_of(&is.payload);
        let is_found = there.iter().any(|leaf| {
            leaf.value == **other && leaf.keys.last().is_some_and(|key| text.mentions(key))
        });
        (!is_known || !is_found)
            .then(|| format!("{checks} for the tool `{name}`, and {target} calls it `{other}`"))
    }
}

/// Whether the agent has a tool with such a key in its input.
fn knows_key(adapter: &Adapter, key: &str) -> bool {
    adapter.spec.tools.iter().any(|row| {
        let keys = row.keys.values().map(|place| place.at.as_ref());
        let edits = row.edits.iter().flat_map(|edits| {
            let optional = [&edits.list, &edits.replace_all, &edits.path];
            [edits.old.as_ref(), edits.new.as_ref()]
                .into_iter()
                .chain(optional.into_iter().flatten().map(AsRef::as_ref))
        });
        let others = row.other_keys.iter().chain(&row.patch).map(AsRef::as_ref);
        let when = row.when.keys().map(String::as_str);
        keys.chain(edits)
            .chain(others)
            .chain(when)
            .any(|own| own == key)
    })
}
