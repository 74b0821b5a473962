//! Where a hook goes in the target: its events, and the matcher at each.

use anyhook_agents::config::kept;
use anyhook_agents::matchers::{ANY_SERVER, Note};
use anyhook_agents::spec::{Event, MatcherSyntax};
use anyhook_model::{Matcher, registry};
use serde_json::Value;

use super::{OneHook, Place};
use crate::report::Severity;

impl OneHook<'_> {
    /// The target's events for this hook, with their matchers.
    pub(super) fn places(&mut self) -> Vec<Place<'static>> {
        let adapter = self.adapter;
        let canonical = self.hook.event.as_str();
        let kept_event = self
            .own_data(kept::EVENT)
            .and_then(|event| adapter.event_by_native(event.as_str()?))
            // The hook may have been given another event since.
            .filter(|event| event.is.as_deref() == Some(canonical) || event.native == canonical);
        if let Some(event) = kept_event {
            return self.at_event(event);
        }
        let candidates: Vec<&'static Event> = adapter
            .spec
            .events
            .iter()
            .filter(|event| event.is.as_deref() == Some(canonical) && !event.read_only)
            .collect();
        if let Some(generic) = candidates.iter().find(|event| event.tools.is_empty()) {
            return self.at_event(generic);
        }
        if !candidates.is_empty() {
            return self.at_split(&candidates);
        }
        if registry::event(canonical).is_none() {
            if let Some(event) = adapter.event_by_native(canonical).filter(|_| self.own) {
                return self.at_event(event);
            }
            if self.own {
                let matcher = self.hook.matcher.as_ref().and_then(|matcher| {
                    let form = &self.config.matcher;
                    adapter.translate_as(form, matcher, Some(adapter)).text
                });
                return vec![Place {
                    native: canonical.to_owned(),
                    event: None,
                    matcher,
                    matchable: true,
                    meant: None,
                }];
            }
            let name = self
                .source
                .agent
                .map_or("another agent", |agent| &agent.spec.name);
            self.exclude(
                "event",
                format!("`{canonical}` is an event of {name} alone; the hook is left out"),
            );
            return Vec::new();
        }
        let why = adapter
            .spec
            .absent
            .events
            .get(canonical)
            .map_or("", AsRef::as_ref);
        self.exclude(
            "event",
            format!(
                "{} has no `{canonical}` ({why}); the hook is left out",
                self.target()
            ),
        );
        Vec::new()
    }

    fn own_data(&self, key: &str) -> Option<&Value> {
        if !self.same_form {
            return None;
        }
        self.hook
            .provider_data
            .get(self.adapter.spec.id.as_ref())?
            .get(key)
    }

    /// One event that is for every tool, or for none.
    fn at_event(&mut self, event: &'static Event) -> Vec<Place<'static>> {
        if let Some(how) = &event.approximate
            && !self.own
        {
            self.report.say(
                Severity::Warning,
                "event",
                format!(
                    "`{}` is written as {}: {how}",
                    self.hook.event, event.native
                ),
            );
        }
        let mut place = Place {
            native: event.native.to_string(),
            event: Some(event),
            matcher: None,
            matchable: event.matcher == "tool",
            meant: None,
        };
        let Some(matcher) = &self.hook.matcher else {
            return vec![place];
        };
        if !event.tools.is_empty() {
            return vec![place];
        }
        if event.matcher != "tool" && self.config.matcher.syntax != MatcherSyntax::None {
            self.report.say(
                Severity::Info,
                "matcher",
                format!(
                    "`{}` is not about a tool: the matcher is left out",
                    self.hook.event
                ),
            );
            return vec![place];
        }
        let form = &self.config.matcher;
        let translated = self.adapter.translate_as(form, matcher, self.source.agent);
        if translated.never {
            self.never(matcher);
            return Vec::new();
        }
        self.notes(&translated.notes);
        if self.config.matcher.syntax == MatcherSyntax::None {
            let is_tool = registry::event(&self.hook.event).is_none_or(|event| event.tool);
            if is_tool {
                let names: Vec<String> = translated
                    .text
                    .iter()
                    .flat_map(|text| {
                        text.trim_matches(['^', '$', '(', ')'])
                            .split('|')
                            .map(str::to_owned)
                            .collect::<Vec<_>>()
                    })
                    .collect();
                self.report.say(
                    Severity::Warning,
                    "matcher",
                    format!("{} has no matchers: the hook is called for every tool; it must look at the tool's name itself", self.target()),
                );
                place.meant = Some(names);
            } else {
                self.report.say(
                    Severity::Info,
                    "matcher",
                    format!(
                        "`{}` is not about a tool: the matcher is left out",
                        self.hook.event
                    ),
                );
            }
            return vec![place];
        }
        place.matcher = translated.text;
        vec![place]
    }

    fn never(&mut self, matcher: &Matcher) {
        let text = serde_json::to_string(matcher).unwrap_or_default();
        self.report.say(
            Severity::Error,
            "matcher",
            format!("{} has no tool that {text} could match: the hook would never fire, and is left out", self.target()),
        );
    }

    fn notes(&mut self, notes: &[Note]) {
        for note in notes {
            if self.own && !matches!(note, Note::NoTool(_)) {
                continue;
            }
            let (severity, message) = match note {
                Note::NoTool(name) => (
                    self.weakening(),
                    format!(
                        "{} has no tool for `{name}`: that part of the matcher is left out",
                        self.target()
                    ),
                ),
                Note::Literal(name) => (
                    self.weakening(),
                    format!("`{name}` is no canonical tool: the name is copied as it is"),
                ),
                Note::Widened(how) => (
                    Severity::Warning,
                    format!("the hook fires more often than asked: {how}"),
                ),
                Note::Renamed { server, written } => (
                    Severity::Info,
                    format!(
                        "{} spells the server `{server}` as `{written}`",
                        self.target()
                    ),
                ),
                Note::Ambiguous(name) => (
                    Severity::Info,
                    format!(
                        "`{name}` does not tell where the server's name ends: another server's tool may have it too"
                    ),
                ),
                Note::Enumerated { pattern, tools } => (
                    self.weakening(),
                    format!(
                        "the pattern `{pattern}` is written as the known tools that it matches, and fires for no other: {}",
                        tools.join(", ")
                    ),
                ),
                Note::Copied(pattern) => (
                    self.weakening(),
                    format!(
                        "the pattern `{pattern}` is copied; it is matched against {}'s own tool names, and may never fire",
                        self.target()
                    ),
                ),
            };
            self.report.say(severity, "matcher", message);
        }
    }

    /// Several events, each for a class of tools.
    fn at_split(&mut self, candidates: &[&'static Event]) -> Vec<Place<'static>> {
        let place = |event: &'static Event| Place {
            native: event.native.to_string(),
            event: Some(event),
            matcher: None,
            matchable: false,
            meant: None,
        };
        let Some(matcher) = &self.hook.matcher else {
            let names: Vec<&str> = candidates
                .iter()
                .map(|event| event.native.as_ref())
                .collect();
            self.report.say(
                Severity::Info,
                "event",
                format!(
                    "one hook for every tool becomes one entry at each of {}",
                    names.join(", ")
                ),
            );
            return candidates.iter().copied().map(place).collect();
        };
        let mut chosen: Vec<&'static Event> = Vec::new();
        let mut wanted: Vec<String> = Vec::new();
        for atom in flat(matcher) {
            let covers: Vec<&'static Event> = candidates
                .iter()
                .copied()
                .filter(|event| covers(event, &atom))
                .collect();
            if covers.is_empty() {
                let text = serde_json::to_string(&atom).unwrap_or_default();
                let severity = self.weakening();
                self.report.say(
                    severity,
                    "matcher",
                    format!(
                        "{} has no event for {text}: that part of the matcher is left out",
                        self.target()
                    ),
                );
            }
            match &atom {
                Matcher::Name(name) => wanted.push(name.clone()),
                Matcher::Mcp { mcp, .. } if mcp.server == ANY_SERVER && mcp.tool.is_none() => {
                    wanted.push("mcp".into());
                }
                Matcher::Mcp { .. } => {
                    wanted.push("mcp".into());
                    for event in &covers {
                        self.report.say(Severity::Warning, "matcher", format!("{} fires for all MCP tools: server and tool of the matcher are left out", event.native));
                    }
                }
                Matcher::Pattern { pattern, .. } => {
                    self.report.say(
                        Severity::Warning,
                        "matcher",
                        format!(
                            "{} has no patterns: `{pattern}` becomes every class of tools",
                            self.target()
                        ),
                    );
                }
                Matcher::Any(_) => {}
            }
            for event in covers {
                if !chosen.iter().any(|other| other.native == event.native) {
                    chosen.push(event);
                }
            }
        }
        if chosen.is_empty() {
            self.never(matcher);
            return Vec::new();
        }
        for event in &chosen {
            let more: Vec<&str> = event
                .tools
                .iter()
                .map(AsRef::as_ref)
                .filter(|tool| !wanted.iter().any(|name| name == tool))
                .collect();
            if !more.is_empty() && !self.own {
                self.report.say(
                    Severity::Warning,
                    "matcher",
                    format!("{} fires for {} as well", event.native, more.join(", ")),
                );
            }
        }
        if chosen.len() > 1 {
            let names: Vec<&str> = chosen.iter().map(|event| event.native.as_ref()).collect();
            self.report.say(
                Severity::Info,
                "event",
                format!("the matcher is split over {}", names.join(", ")),
            );
        }
        chosen.into_iter().map(place).collect()
    }
}

fn flat(matcher: &Matcher) -> Vec<Matcher> {
    match matcher {
        Matcher::Any(items) => items.iter().flat_map(flat).collect(),
        one => vec![one.clone()],
    }
}

fn covers(event: &Event, atom: &Matcher) -> bool {
    match atom {
        Matcher::Name(name) => event.tools.iter().any(|tool| tool == name),
        Matcher::Mcp { .. } => event.tools.iter().any(|tool| tool == "mcp"),
        Matcher::Pattern { .. } | Matcher::Any(_) => true,
    }
}
