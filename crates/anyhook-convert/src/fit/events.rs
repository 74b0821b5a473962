//! Chooses the events of the target at which a hook is written, with the matcher
//! at each.

use anyhook_agents::config::hook_keys;
use anyhook_agents::matchers::{ANY_SERVER, MatcherNote, alternatives};
use anyhook_agents::spec::{EventSpec, MatcherSubject, MatcherSyntax};
use anyhook_model::event::field;
use anyhook_model::registry::{self, Tier};
use anyhook_model::{HookEvent, Matcher, matching};
use serde_json::Value;

use super::{HookFitter, TargetEvent};
use crate::report::WarningSeverity::{Error, Info, Warning};

impl HookFitter<'_> {
    /// The target's events for this hook, with their matchers.
    pub(super) fn target_events(&mut self) -> Vec<TargetEvent<'static>> {
        let adapter = self.adapter;
        let canonical = self.hook.event.as_str();
        let kept_event = self
            .kept_data(hook_keys::NATIVE_EVENT)
            .and_then(|event| adapter.event_by_native(event.as_str()?))
            // The hook's event may have been edited since.
            .filter(|event| event.is.as_deref() == Some(canonical) || event.native == canonical);
        if let Some(event) = kept_event {
            return self.fit_to_event(event);
        }
        let candidates: Vec<&'static EventSpec> = adapter.written_events(canonical).collect();
        let (generic, split): (Vec<_>, Vec<_>) = candidates
            .into_iter()
            .partition(|event| event.tools.is_empty());
        match generic.as_slice() {
            [] if split.is_empty() => {}
            [] => return self.fit_to_split_events(&split),
            // Where several events mean the same, those after the first are rare
            // ones, unless only this agent has the canonical event.
            [one, ..] if !is_exclusive(canonical) || self.is_same_config => {
                return self.fit_to_event(one);
            }
            all => {
                return all
                    .iter()
                    .flat_map(|event| self.fit_to_event(event))
                    .collect();
            }
        }
        if registry::event(canonical).is_none() {
            return self.fit_to_own_event(canonical);
        }
        let note = adapter.spec.absent.events.get(canonical);
        let note = note.map(|note| format!(" ({note})")).unwrap_or_default();
        let target = self.target();
        let message = format!("{target} has no `{canonical}`{note}; the hook is left out");
        self.warn_weakened("event", message);
        Vec::new()
    }

    /// Writes the hook at an event without a canonical name: one that the target
    /// calls the same, or one of its own file that no table knows.
    fn fit_to_own_event(&mut self, name: &str) -> Vec<TargetEvent<'static>> {
        let adapter = self.adapter;
        let mut events = adapter.spec.events.iter();
        let same_config = || self.is_same_config.then(|| adapter.event_by_native(name))?;
        let known = events.find(|event| event.native == name);
        if let Some(event) = known.or_else(same_config) {
            if let Some(canonical) = event.is.as_ref().filter(|_| !self.is_same_config) {
                let message = format!("{name} is `{canonical}` in {}", self.target());
                self.warnings.info("event", message);
            }
            if !event.tools.is_empty() && !self.is_same_config {
                let message = format!("{name} fires for {} only", event.tools.join(", "));
                self.warnings.info("matcher", message);
            }
            return self.fit_to_event(event);
        }
        let kept = self.kept_data(hook_keys::NATIVE_EVENT);
        if self.is_same_config || kept.and_then(Value::as_str) == Some(name) {
            let matcher = self.hook.matcher.as_ref().and_then(|matcher| {
                let form = &self.config.matcher;
                adapter.translate_as(form, matcher, Some(adapter)).text
            });
            return vec![TargetEvent {
                native: name.to_owned(),
                event: None,
                matcher,
                matchable: true,
                meant_tools: None,
            }];
        }
        let owners = anyhook_agents::all().filter(|agent| {
            let mut events = agent.spec.events.iter();
            events.any(|event| event.native == name)
        });
        let owners: Vec<&str> = owners.map(|agent| agent.spec.name.as_ref()).collect();
        let target = self.target();
        let message = match (owners.as_slice(), self.source.agent) {
            ([], Some(source)) => format!(
                "`{name}` exists only in {}; the hook is left out",
                source.spec.name
            ),
            ([], None) => format!("{target} has no event `{name}`; the hook is left out"),
            (owners, _) => format!(
                "`{name}` exists only in {}; the hook is left out",
                owners.join(", ")
            ),
        };
        self.warn_weakened("event", message);
        Vec::new()
    }

    /// Whether the matcher is for a tool that some agent is known to have.
    fn matches_known_tool(&self) -> bool {
        let tools = anyhook_agents::all().flat_map(|agent| &agent.spec.tools);
        let mut names = tools.flat_map(|tool| std::iter::once(&tool.native).chain(&tool.aliases));
        names.any(|name| {
            let mut call = HookEvent {
                event: self.hook.event.clone(),
                ..HookEvent::default()
            };
            let data = &mut call.data;
            data.insert(field::TOOL_NAME.to_owned(), name.as_ref().into());
            data.insert(field::NATIVE_TOOL_NAME.to_owned(), name.as_ref().into());
            matching::matches(self.hook.matcher.as_ref(), &call)
        })
    }

    fn kept_data(&self, key: &str) -> Option<&Value> {
        let data = &self.hook.provider_data;
        let kept = data.get(self.adapter.spec.id.as_ref())?.get(key);
        kept.filter(|_| self.is_same_variant)
    }

    /// Writes the hook at one event, which is for all tools or for none.
    fn fit_to_event(&mut self, event: &'static EventSpec) -> Vec<TargetEvent<'static>> {
        let event = self.event_for_program(event);
        let canonical = &self.hook.event;
        if let Some(how) = &event.approximate
            && !self.is_same_config
        {
            let message = format!("`{canonical}` is written as {}: {how}", event.native);
            self.warnings.warning("event", message);
        }
        let matchable = event.matcher == MatcherSubject::Tool;
        let mut target_event = TargetEvent {
            matchable,
            ..TargetEvent::without_matcher(event)
        };
        let Some(matcher) = self
            .hook
            .matcher
            .as_ref()
            .filter(|_| event.tools.is_empty())
        else {
            return vec![target_event];
        };
        let form = &self.config.matcher;
        let subject = registry::event(canonical).and_then(|event| event.subject);
        if let Some(subject) = subject.filter(|_| !is_about_tools(matcher)) {
            let is_tested = event.subject() == Some(subject);
            let written = is_tested.then(|| self.adapter.translate_subject(form, matcher));
            target_event.matcher = written.flatten();
            target_event.matchable = target_event.matcher.is_some();
            if !target_event.matchable {
                let text = serde_json::to_string(matcher).unwrap_or_default();
                let message = format!(
                    "{} at {} cannot match {text}: the matcher is left out, and the hook fires each time",
                    self.target(),
                    event.native
                );
                self.warnings.warning("matcher", message);
            }
            return vec![target_event];
        }
        let not_a_tool_event =
            || format!("`{canonical}` is not a tool event: the matcher is left out");
        if !matchable && form.syntax != MatcherSyntax::None {
            self.warnings.info("matcher", not_a_tool_event());
            return vec![target_event];
        }
        let translated = self.adapter.translate_as(form, matcher, self.source.agent);
        if translated.never {
            self.report_never_fires(matcher);
            return Vec::new();
        }
        self.report_matcher_notes(&translated.notes);
        if form.syntax != MatcherSyntax::None {
            target_event.matcher = translated.text;
        } else if registry::event(canonical).is_none_or(|event| event.tool) {
            let text = translated.text.as_deref();
            let names = text.map(|text| text.trim_matches(['^', '$', '(', ')']).split('|'));
            let names = names.into_iter().flatten().map(str::to_owned).collect();
            self.warnings.warning("matcher",
                format!("{} has no matchers: the hook is called for every tool and must check the tool's name itself", self.target()),
            );
            target_event.meant_tools = Some(names);
        } else {
            self.warnings.info("matcher", not_a_tool_event());
        }
        vec![target_event]
    }

    fn report_never_fires(&mut self, matcher: &Matcher) {
        let text = serde_json::to_string(matcher).unwrap_or_default();
        let target = self.target();
        let message = format!(
            "{target} has no tool that {text} could match: the hook would never fire and is left out"
        );
        self.warnings.warn(Error, "matcher", message);
    }

    fn report_matcher_notes(&mut self, notes: &[MatcherNote]) {
        let target = self.target();
        for note in notes {
            if self.is_same_config && !matches!(note, MatcherNote::NoTool(_)) {
                continue;
            }
            let severity = match note {
                // A manifest's pattern for tools that no table knows means the same here
                // as under `run`.
                MatcherNote::Copied(_) | MatcherNote::Unknown(_)
                    if self.is_dialect_unstated() && !self.matches_known_tool() =>
                {
                    Warning
                }
                MatcherNote::NoTool(_)
                | MatcherNote::Literal(_)
                | MatcherNote::Copied(_)
                | MatcherNote::Added(_)
                | MatcherNote::Unknown(_) => self.weakening_severity(),
                MatcherNote::Widened(_) => Warning,
                MatcherNote::Enumerated { .. }
                | MatcherNote::Renamed { .. }
                | MatcherNote::Ambiguous(_) => Info,
            };
            let message = match note {
                MatcherNote::NoTool(name) => {
                    format!(
                        "{target} has no tool for `{name}`: that part of the matcher is left out"
                    )
                }
                MatcherNote::Literal(name) => {
                    format!("`{name}` is not a canonical tool: the name is copied unchanged")
                }
                MatcherNote::Widened(how) => {
                    format!("the hook fires more often than requested: {how}")
                }
                MatcherNote::Renamed { server, written } => {
                    format!("{target} spells the server `{server}` as `{written}`")
                }
                MatcherNote::Ambiguous(name) => format!(
                    "`{name}` does not show where the server's name ends: a tool of another server may have the same name"
                ),
                MatcherNote::Enumerated { pattern, tools } => format!(
                    "the pattern `{pattern}` matches these known tools of {target}: {}",
                    tools.join(", ")
                ),
                MatcherNote::Added(pattern) => format!(
                    "the pattern `{pattern}` is copied in addition to the tools that it is known to match"
                ),
                MatcherNote::Copied(pattern) => format!(
                    "the pattern `{pattern}` is copied; it is matched against {target}'s own tool names and may never fire"
                ),
                MatcherNote::Unknown(pattern) => format!(
                    "the pattern `{pattern}` is copied; no known tool of {target} has such a name"
                ),
            };
            self.warnings.warn(severity, "matcher", message);
        }
    }

    /// Writes the hook at several events, each of which is for a class of tools.
    fn fit_to_split_events(
        &mut self,
        candidates: &[&'static EventSpec],
    ) -> Vec<TargetEvent<'static>> {
        let (chosen, how) = match &self.hook.matcher {
            None => {
                let how = "one hook for every tool becomes one entry at each of";
                (candidates.to_vec(), how)
            }
            Some(matcher) => {
                let chosen = self.choose_split_events(candidates, matcher);
                if chosen.is_empty() {
                    self.report_never_fires(matcher);
                }
                (chosen, "the matcher is split over")
            }
        };
        if chosen.len() > 1 || self.hook.matcher.is_none() {
            let names: Vec<&str> = chosen.iter().map(|event| event.native.as_ref()).collect();
            let message = format!("{how} {}", names.join(", "));
            self.warnings.info("event", message);
        }
        let chosen = chosen.into_iter();
        chosen.map(TargetEvent::without_matcher).collect()
    }

    /// The split events that cover a matcher. Reports where they are narrower or
    /// wider than the matcher.
    fn choose_split_events(
        &mut self,
        candidates: &[&'static EventSpec],
        matcher: &Matcher,
    ) -> Vec<&'static EventSpec> {
        let target = self.target();
        let mut chosen: Vec<&'static EventSpec> = Vec::new();
        let mut wanted: Vec<&str> = Vec::new();
        for atom in alternatives(matcher) {
            let mut covering = candidates.to_vec();
            covering.retain(|event| event_covers(event, atom));
            if covering.is_empty() {
                let text = serde_json::to_string(atom).unwrap_or_default();
                let message = format!(
                    "{target} has no event for {text}: that part of the matcher is left out"
                );
                self.warn_weakened("matcher", message);
            }
            match atom {
                Matcher::Name(name) => wanted.push(name),
                Matcher::Mcp { mcp, .. } => {
                    wanted.push("mcp");
                    let is_every_tool = mcp.server == ANY_SERVER && mcp.tool.is_none();
                    for event in covering.iter().filter(|_| !is_every_tool) {
                        self.warnings.warning("matcher", format!("{} fires for all MCP tools: server and tool of the matcher are left out", event.native));
                    }
                }
                Matcher::Pattern { pattern, .. } => {
                    let message = format!(
                        "{target} has no patterns: `{pattern}` becomes every class of tools"
                    );
                    self.warnings.warning("matcher", message);
                }
                Matcher::Any(_) => {}
            }
            for event in covering {
                if !chosen.iter().any(|other| other.native == event.native) {
                    chosen.push(event);
                }
            }
        }
        for event in &chosen {
            let mut more: Vec<&str> = event.tools.iter().map(AsRef::as_ref).collect();
            more.retain(|tool| !wanted.contains(tool));
            if !more.is_empty() && !self.is_same_config {
                let message = format!("{} also fires for {}", event.native, more.join(", "));
                self.warnings.warning("matcher", message);
            }
        }
        chosen
    }
}

/// Whether a matcher has tools of the vocabulary or MCP tools. Where an event is
/// not about a tool, it matches each time.
fn is_about_tools(matcher: &Matcher) -> bool {
    alternatives(matcher).into_iter().any(|one| match one {
        Matcher::Name(name) => registry::tool(name).is_some(),
        Matcher::Pattern { .. } => false,
        Matcher::Mcp { .. } | Matcher::Any(_) => true,
    })
}

/// Whether only one agent has a canonical event.
fn is_exclusive(canonical: &str) -> bool {
    registry::event(canonical).is_some_and(|event| event.tier == Tier::Exclusive)
}

fn event_covers(event: &EventSpec, atom: &Matcher) -> bool {
    match atom {
        Matcher::Name(name) => event.tools.iter().any(|tool| tool == name),
        Matcher::Mcp { .. } => event.tools.iter().any(|tool| tool == "mcp"),
        Matcher::Pattern { .. } | Matcher::Any(_) => true,
    }
}
