//! Stage 2: what the target can take of each hook, and what is done about the
//! rest: the author's strategy, else the registry's default.

use anyhook_agents::config::kept;
use anyhook_agents::matchers::{ANY_SERVER, Note};
use anyhook_agents::spec::{Blocking, Config, Event, MatcherSyntax};
use anyhook_agents::{Adapter, Placement};
use anyhook_model::capability::infer_capabilities;
use anyhook_model::{HandlerKind, Hook, Matcher, Platform, Strategy, TimeoutAction, registry};
use serde_json::{Map, Value};

use crate::report::{HookReport, Severity, Warning, about_file};
use crate::{Options, Source, deny, post};

/// A hook of the source and its places in the target.
pub(crate) struct Validated {
    pub index: usize,
    pub placements: Vec<Placement>,
}

/// Where a hook goes: an event of the target, with a matcher.
struct Place<'a> {
    native: String,
    event: Option<&'a Event>,
    matcher: Option<String>,
    matchable: bool,
    /// Native tools that the matcher meant, where the target has no matchers.
    meant: Option<Vec<String>>,
}

/// What becomes of the hook as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Runs,
    Denies(&'static str),
    Out,
}

pub(crate) fn validate(
    source: &Source,
    adapter: &'static Adapter,
    variant: Option<&str>,
    options: &Options<'_>,
    warnings: &mut Vec<Warning>,
) -> Vec<Validated> {
    let own = source
        .agent
        .is_some_and(|agent| agent.spec.id == adapter.spec.id);
    if !own {
        about_target(source, adapter, warnings);
    }
    let mut validated = Vec::new();
    for (index, hook) in source.manifest.hooks.iter().enumerate() {
        let report = HookReport {
            warnings: &mut *warnings,
            hook: index + 1,
            name: hook.name.clone(),
        };
        let mut one = OneHook {
            source,
            adapter,
            config: adapter.config(variant),
            own,
            hook,
            options,
            report,
        };
        let placements = one.placements(source.matcherless.contains(&index));
        validated.push(Validated { index, placements });
    }
    validated
}

/// What concerns the file and not one hook.
fn about_target(source: &Source, adapter: &Adapter, warnings: &mut Vec<Warning>) {
    let name = &adapter.spec.name;
    if let Some(end) = &adapter.spec.legacy {
        warnings.push(about_file(Severity::Warning, "target", end.to_string()));
    }
    if let Some(trust) = &adapter.spec.trust {
        warnings.push(about_file(Severity::Info, "trust", trust.to_string()));
    }
    if let Some(agent) = source.agent {
        let twice = agent
            .spec
            .files
            .iter()
            .find(|file| adapter.spec.also_reads.contains(&file.path));
        if let Some(file) = twice {
            warnings.push(about_file(
                Severity::Warning,
                "target",
                format!(
                    "{name} reads `{}` as well: while these hooks stand there too, they run twice",
                    file.path
                ),
            ));
        }
    }
    for (key, value) in &source.manifest.extra {
        if key == anyhook_agents::config::MANIFEST_PROVIDER_DATA {
            for (agent, data) in value.as_object().into_iter().flatten() {
                let kept: Vec<&str> = data
                    .get("file")
                    .and_then(Value::as_object)
                    .map(|file| file.keys().map(String::as_str).collect())
                    .unwrap_or_default();
                let what = if kept.is_empty() {
                    "entries of its own".to_owned()
                } else {
                    format!("settings besides hooks ({})", kept.join(", "))
                };
                warnings.push(about_file(
                    Severity::Info,
                    key,
                    format!("{what} of {agent} are not converted"),
                ));
            }
        } else {
            warnings.push(about_file(
                Severity::Info,
                key,
                format!("`{key}` has no place in a config of {name}"),
            ));
        }
    }
}

struct OneHook<'a> {
    source: &'a Source,
    adapter: &'static Adapter,
    config: &'a Config,
    own: bool,
    hook: &'a Hook,
    options: &'a Options<'a>,
    report: HookReport<'a>,
}

impl OneHook<'_> {
    fn target(&self) -> &'static str {
        &self.adapter.spec.name
    }

    /// The highest severity where a hook protects, else a plain warning.
    fn weakening(&self) -> Severity {
        if self.hook.blocking || self.rewrites() {
            Severity::Critical
        } else {
            Severity::Warning
        }
    }

    fn rewrites(&self) -> bool {
        self.hook.degradation.contains_key("input_rewrite")
            || self
                .hook
                .capabilities
                .iter()
                .any(|name| name == "input_rewrite")
    }

    fn placements(&mut self, matcherless: bool) -> Vec<Placement> {
        let places = self.places();
        if places.is_empty() {
            return Vec::new();
        }
        self.blocking(&places);
        let fate = self.capabilities(&places);
        if fate == Fate::Out {
            return Vec::new();
        }
        let data = self.data();
        let mut handler = self.hook.handler.clone();
        self.timeout(&mut handler);
        if fate == Fate::Runs {
            self.fields(&mut handler, &places);
        }
        self.manifest_only();
        let mut placements = Vec::new();
        for place in places {
            let mut placed = handler.clone();
            let mut data = data.clone();
            match fate {
                Fate::Denies(capability) => {
                    let what = self.what();
                    let tools = place.meant.as_deref();
                    placed = anyhook_model::Handler {
                        timeout: handler.timeout,
                        ..Default::default()
                    };
                    placed.command = Some(deny::command(
                        self.adapter,
                        &place.native,
                        &deny::reason(capability, &what),
                        tools,
                    ));
                }
                _ if placed.kind == HandlerKind::Http
                    && !self.config.handler.runs(HandlerKind::Http, &place.native) =>
                {
                    placed.command = Some(post::command(&placed));
                    placed.kind = HandlerKind::Command;
                    placed.url = None;
                    placed.headers = Map::new();
                    placed.allowed_env_vars = Vec::new();
                }
                _ => {}
            }
            if self.hook.handler.timeout_action == Some(TimeoutAction::Block)
                && let Some(closed) = &self.config.handler.fail_closed
            {
                data.insert(
                    closed.at.trim_start_matches('/').to_owned(),
                    closed.value.clone(),
                );
            }
            placements.push(Placement {
                native_event: place.native,
                matcher: place.matcher,
                matchable: place.matchable,
                matcherless: matcherless && self.own,
                name: self.hook.name.clone(),
                handler: placed,
                data,
            });
        }
        placements
    }

    /// The hook in a few words, for the reason of a deny.
    fn what(&self) -> String {
        let handler = &self.hook.handler;
        [
            &handler.command,
            &handler.url,
            &handler.prompt,
            &self.hook.name,
        ]
        .into_iter()
        .flatten()
        .next()
        .cloned()
        .unwrap_or_else(|| format!("#{}", self.report.hook))
    }

    fn exclude(&mut self, field: &str, message: String) {
        let severity = self.weakening();
        self.report.say(severity, field, message);
    }

    /// The target's events for this hook, with their matchers.
    fn places(&mut self) -> Vec<Place<'static>> {
        let adapter = self.adapter;
        let canonical = self.hook.event.as_str();
        let kept_event = self
            .own_data(kept::EVENT)
            .and_then(|event| adapter.event_by_native(event.as_str()?));
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
                return vec![Place {
                    native: canonical.to_owned(),
                    event: None,
                    matcher: None,
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
        let translated = self.adapter.translate(matcher, self.source.agent);
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
        // What stood there word for word still means the same.
        let word_for_word = self
            .own_data(kept::MATCHER)
            .and_then(Value::as_str)
            .filter(|text| self.adapter.read_matcher(text).as_ref() == Some(matcher));
        place.matcher = word_for_word.map(str::to_owned).or(translated.text);
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
                    Severity::Warning,
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
                    Severity::Warning,
                    format!(
                        "the pattern `{pattern}` is written as the tools that it matches: {}",
                        tools.join(", ")
                    ),
                ),
                Note::Copied(pattern) => (
                    Severity::Warning,
                    format!(
                        "the pattern `{pattern}` is copied; it is matched against {}'s own tool names",
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
                    wanted.push("mcp".into())
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

    fn blocking(&mut self, places: &[Place<'_>]) {
        for place in places {
            let Some(event) = place.event else { continue };
            let native = &event.native;
            let exit_only = !self.adapter.has_structured_answer(event);
            match (self.hook.blocking, event.blocking) {
                (true, Blocking::Observe) => {
                    self.report.say(
                        Severity::Critical,
                        "blocking",
                        format!(
                            "{} cannot be blocked at {native}: the hook only watches there",
                            self.target()
                        ),
                    );
                }
                (true, Blocking::Feedback)
                    if registry::event(&self.hook.event)
                        .is_some_and(|event| event.blocking != registry::Semantic::Observe) =>
                {
                    self.report.say(
                        Severity::Critical,
                        "blocking",
                        format!(
                            "at {native} it has happened already: a block is only told to the model"
                        ),
                    );
                }
                (true, Blocking::Feedback) => {
                    self.report.say(
                        Severity::Info,
                        "blocking",
                        format!("at {native} a block is told to the model; nothing is undone"),
                    );
                }
                (true, _) if exit_only && !self.own => {
                    self.report.say(
                        Severity::Info,
                        "blocking",
                        format!("{native} has no field for it: exit 2 blocks there"),
                    );
                }
                (false, Blocking::Prevent | Blocking::Retry) if !self.own => {
                    self.report.say(
                        Severity::Info,
                        "blocking",
                        format!(
                            "{} obeys exit 2 at {native} whether a hook is meant to block or not",
                            self.target()
                        ),
                    );
                }
                _ => {}
            }
        }
    }

    fn supports(&self, capability: &str, place: &Place<'_>) -> bool {
        let handler = &self.config.handler;
        match capability {
            "http_handler" | "llm_evaluated" => handler.runs(self.hook.handler.kind, &place.native),
            "async_execution" => handler.has("async"),
            "platform_commands" => {
                let platform = &self.hook.handler.platform;
                [
                    ("platform.windows", &platform.windows),
                    ("platform.linux", &platform.linux),
                    ("platform.osx", &platform.osx),
                ]
                .iter()
                .all(|(to, command)| command.is_none() || handler.has(to))
            }
            "custom_env" => handler.has("env"),
            "configurable_cwd" => handler.has("cwd"),
            "structured_output" => place
                .event
                .is_none_or(|event| self.adapter.has_structured_answer(event)),
            "input_rewrite" => place
                .event
                .is_none_or(|event| self.adapter.can_rewrite(event)),
            _ => true,
        }
    }

    fn capabilities(&mut self, places: &[Place<'_>]) -> Fate {
        if self.own {
            return Fate::Runs;
        }
        let script = self
            .hook
            .handler
            .command
            .as_deref()
            .and_then(|command| (self.options.script?)(command));
        let mut fate = Fate::Runs;
        for need in infer_capabilities(self.hook, script.as_deref()) {
            let lacking: Vec<&str> = places
                .iter()
                .filter(|place| !self.supports(need.capability, place))
                .map(|place| place.native.as_str())
                .collect();
            if lacking.is_empty() {
                continue;
            }
            let default = registry::capability(need.capability)
                .map_or(Strategy::Warn, |capability| capability.default);
            let strategy = self.hook.strategy(need.capability).unwrap_or(default);
            let can_deny = places.iter().all(|place| {
                place
                    .event
                    .is_some_and(|event| event.blocking == Blocking::Prevent)
            });
            let guess = if need.certain {
                String::new()
            } else {
                format!(" (a guess: {})", need.why)
            };
            let (field, lost, reduced) = self.words(need.capability);
            let target = self.target();
            let shown = need.capability != "input_rewrite"
                || !need.certain
                || self
                    .hook
                    .capabilities
                    .iter()
                    .any(|name| name == need.capability);
            if !shown {
                // A strategy was named, but nothing tells that the hook rewrites.
                self.report.capability(
                    Severity::Critical,
                    field,
                    need.capability,
                    Strategy::Warn,
                    format!("{lost}: if the hook changes the input, the change is ignored. List `input_rewrite` in its `capabilities` and the strategy `{}` is applied", strategy.as_str()),
                );
                continue;
            }
            match strategy {
                Strategy::Block if can_deny => {
                    self.report.capability(Severity::Warning, "handler", need.capability, strategy, format!("{lost}{guess}: the hook denies everything that it matches, and does not run"));
                    fate = if fate == Fate::Out {
                        fate
                    } else {
                        Fate::Denies(need.capability)
                    };
                }
                Strategy::Block => {
                    self.report.capability(
                        Severity::Critical,
                        "hook",
                        need.capability,
                        strategy,
                        format!(
                            "{lost}{guess}, and {target} cannot deny at {}: the hook is left out",
                            lacking.join(", ")
                        ),
                    );
                    fate = Fate::Out;
                }
                Strategy::Exclude => {
                    let severity = self.weakening();
                    self.report.capability(
                        severity,
                        "hook",
                        need.capability,
                        strategy,
                        format!("{lost}{guess}: the hook is left out"),
                    );
                    fate = Fate::Out;
                }
                Strategy::Warn if need.capability == "llm_evaluated" => {
                    let severity = self.weakening();
                    self.report.capability(
                        severity,
                        "hook",
                        need.capability,
                        strategy,
                        format!("{lost}: there is nothing to run, the hook is left out"),
                    );
                    fate = Fate::Out;
                }
                Strategy::Warn => {
                    let severity = if need.capability == "input_rewrite" {
                        Severity::Critical
                    } else {
                        Severity::Warning
                    };
                    self.report.capability(
                        severity,
                        field,
                        need.capability,
                        strategy,
                        format!("{lost}{guess}: {reduced}"),
                    );
                }
            }
        }
        fate
    }

    /// Field, what is missing, and what a hook does without it.
    fn words(&self, capability: &str) -> (&'static str, String, &'static str) {
        let target = self.target();
        match capability {
            "http_handler" => (
                "handler.type",
                format!("{target} has no http handlers"),
                "a `curl` command does the same POST",
            ),
            "llm_evaluated" => (
                "handler.type",
                format!(
                    "{target} has no `{}` handlers here",
                    self.hook.handler.kind.as_str()
                ),
                "",
            ),
            "async_execution" => (
                "handler.async",
                format!("{target} waits for every hook"),
                "the hook runs, and the agent waits",
            ),
            "platform_commands" => (
                "handler.platform",
                format!("{target} has no commands per operating system"),
                "only those that it has a place for are written",
            ),
            "custom_env" => (
                "handler.env",
                format!("{target} sets no environment variables"),
                "the hook runs without them",
            ),
            "configurable_cwd" => (
                "handler.cwd",
                format!("{target} has no working directory for hooks"),
                "the hook runs where the agent starts it",
            ),
            "structured_output" => (
                "output",
                format!("{target} reads no JSON answer here"),
                "exit codes only",
            ),
            _ => (
                "output",
                format!("{target} takes no changed input here"),
                "what the hook changes is ignored, and the unchanged call goes on",
            ),
        }
    }

    /// Data for this agent, as far as it can be trusted.
    fn data(&mut self) -> Map<String, Value> {
        let id = self.adapter.spec.id.as_ref();
        for agent in self.hook.provider_data.keys().filter(|agent| *agent != id) {
            self.report.say(
                Severity::Info,
                &format!("provider_data.{agent}"),
                format!("provider_data of {agent} is not for {}", self.target()),
            );
        }
        let Some(given) = self.hook.provider_data.get(id).and_then(Value::as_object) else {
            return Map::new();
        };
        let handler = &self.config.handler;
        let mut taken: Vec<&str> = handler
            .fields
            .iter()
            .map(|field| first(&field.at))
            .collect();
        taken.extend(handler.type_at.as_deref().map(first));
        let mut data = Map::new();
        for (key, value) in given {
            let foreign = handler
                .known_keys
                .as_ref()
                .is_some_and(|known| !known.iter().any(|one| one == key));
            let why = if key.starts_with('$') {
                None
            } else if key == "hooks" || (!self.own && taken.contains(&key.as_str())) {
                Some("the hook itself says that")
            } else if foreign {
                Some("the agent does not know that key")
            } else if escapes(key, value) {
                Some("the path leads out of the project")
            } else {
                None
            };
            match why {
                Some(why) => self.report.say(
                    Severity::Warning,
                    &format!("provider_data.{id}.{key}"),
                    format!("`{key}` is not written: {why}"),
                ),
                None => {
                    if handler
                        .fail_closed
                        .as_ref()
                        .is_some_and(|closed| first(&closed.at) == key && closed.value == *value)
                        && !self.own
                    {
                        self.report.say(
                            Severity::Info,
                            "handler.timeout_action",
                            format!("`{key}` makes a failed hook block"),
                        );
                    }
                    if !self.own && !key.starts_with('$') {
                        self.report.say(
                            Severity::Info,
                            &format!("provider_data.{id}.{key}"),
                            format!("`{key}` is written as it is"),
                        );
                    }
                    data.insert(key.clone(), value.clone());
                }
            }
        }
        data
    }

    /// Fields that have no place, besides those of capabilities.
    fn timeout(&mut self, handler: &mut anyhook_model::Handler) {
        let spec = &self.config.handler;
        let target = self.target();
        if let Some(timeout) = handler.timeout {
            if !spec.has("timeout") {
                self.report.say(
                    Severity::Warning,
                    "handler.timeout",
                    format!("{target} has no timeout for hooks"),
                );
            } else if let Some(most) = spec.max_timeout.filter(|most| timeout > *most) {
                self.report.say(
                    Severity::Warning,
                    "handler.timeout",
                    format!("{target} allows {most} seconds at most"),
                );
                handler.timeout = Some(most);
            } else if spec.fields.iter().any(|field| {
                field.to == "timeout" && field.codec == anyhook_agents::spec::Codec::WholeSeconds
            }) && timeout.fract() != 0.0
            {
                self.report.say(
                    Severity::Warning,
                    "handler.timeout",
                    format!("{target} counts whole seconds: it is rounded up"),
                );
            } else if timeout == 0.0 && !self.own {
                self.report.say(
                    Severity::Info,
                    "handler.timeout",
                    "0 stands for the default: it is left out",
                );
                handler.timeout = None;
            }
        }
        if handler.timeout_action == Some(TimeoutAction::Block) && spec.fail_closed.is_none() {
            let severity = self.weakening();
            self.report.say(
                severity,
                "handler.timeout_action",
                format!("{target} goes on when a hook takes too long"),
            );
        } else if handler.timeout_action.is_some() && !self.own {
            self.report.say(
                Severity::Info,
                "handler.timeout_action",
                "said in the target's own way, or its default",
            );
        }
    }

    fn fields(&mut self, handler: &mut anyhook_model::Handler, places: &[Place<'_>]) {
        let spec = &self.config.handler;
        let target = self.target();
        let texts = [
            (
                "handler.status_message",
                "status_message",
                handler.status_message.is_some(),
            ),
            ("handler.url", "url", handler.url.is_some()),
            ("handler.headers", "headers", !handler.headers.is_empty()),
            (
                "handler.allowed_env_vars",
                "allowed_env_vars",
                !handler.allowed_env_vars.is_empty(),
            ),
            ("handler.prompt", "prompt", handler.prompt.is_some()),
            ("handler.model", "model", handler.model.is_some()),
            ("handler.command", "command", handler.command.is_some()),
        ];
        let posts = handler.kind == HandlerKind::Http
            && places
                .iter()
                .any(|place| !spec.runs(HandlerKind::Http, &place.native));
        if posts {
            self.report.say(
                Severity::Info,
                "handler.command",
                "`curl` must be there where the hook runs",
            );
        }
        if posts && post::refused_variables(handler) {
            self.report.say(
                Severity::Warning,
                "handler.headers",
                "variables in headers need `allowed_env_vars`; they are left empty",
            );
        }
        for (field, to, there) in texts {
            if there
                && !spec.has(to)
                && !(posts && matches!(to, "url" | "headers" | "allowed_env_vars"))
            {
                self.report.say(
                    Severity::Info,
                    field,
                    format!("{target} has no place for it"),
                );
            } else if there && posts && matches!(to, "url" | "headers" | "allowed_env_vars") {
                self.report
                    .say(Severity::Info, field, "it is part of the command now");
            }
        }
        self.platform(handler);
        self.dialect(handler, places);
    }

    /// Commands per system that the target has no place for are left out; the
    /// main command stands.
    fn platform(&mut self, handler: &mut anyhook_model::Handler) {
        if self.own || handler.platform.is_empty() {
            return;
        }
        let spec = &self.config.handler;
        let given = std::mem::take(&mut handler.platform);
        let any = given
            .linux
            .clone()
            .or_else(|| given.osx.clone())
            .or_else(|| given.windows.clone());
        let keep = |to: &str, command: Option<String>| command.filter(|_| spec.has(to));
        handler.platform = Platform {
            windows: keep("platform.windows", given.windows),
            linux: keep("platform.linux", given.linux),
            osx: keep("platform.osx", given.osx),
            extra: Map::new(),
        };
        if handler.command.is_none() && handler.kind == HandlerKind::Command {
            handler.command = any;
            self.report.say(
                Severity::Warning,
                "handler.command",
                "there is no main command: the one for Linux, else another, is written as such",
            );
        }
    }

    /// A program speaks one agent's language; the target speaks its own.
    fn dialect(&mut self, handler: &anyhook_model::Handler, places: &[Place<'_>]) {
        let source = self.source.agent.map(|agent| agent.spec.id.as_ref());
        let speaks = handler.dialect.as_deref().or(source).unwrap_or("canonical");
        if speaks == self.adapter.spec.id
            || matches!(handler.kind, HandlerKind::Prompt | HandlerKind::Agent)
        {
            if handler.dialect.is_some() {
                self.report.say(
                    Severity::Info,
                    "handler.dialect",
                    format!("{} needs no `dialect`", self.target()),
                );
            }
            return;
        }
        let heeds = places.iter().all(|place| {
            let profile = place
                .event
                .and_then(|event| self.adapter.spec.answers.get(event.answer.as_ref()?));
            profile.is_none_or(|profile| profile.deny.is_empty() || profile.exit2 == "deny")
        });
        let target = self.target();
        let (severity, tail) = match (self.hook.blocking, heeds) {
            (true, true) => (
                Severity::Warning,
                "exit 2 with a reason on stderr blocks there all the same",
            ),
            (true, false) => (Severity::Critical, "and it does not heed exit 2"),
            (false, _) => (Severity::Info, "what it prints may mean nothing there"),
        };
        self.report.say(
            severity,
            "handler.dialect",
            format!("the program reads and answers as `{speaks}`, {target} sends and reads its own form; {tail}. `anyhook install` translates"),
        );
    }

    /// What only a manifest can say.
    fn manifest_only(&mut self) {
        let hook = self.hook;
        let target = self.target();
        if hook.name.is_some() && !self.config.handler.has("name") {
            self.report.say(
                Severity::Info,
                "name",
                format!("{target} has no names for hooks"),
            );
        }
        for (field, there) in [
            ("degradation", !hook.degradation.is_empty()),
            ("capabilities", !hook.capabilities.is_empty()),
        ] {
            if there {
                self.report.say(
                    Severity::Info,
                    field,
                    format!("{target} has no place for `{field}`"),
                );
            }
        }
        for key in hook.extra.keys() {
            self.report.say(
                Severity::Warning,
                key,
                format!("{target} has no place for `{key}`"),
            );
        }
        for key in hook.handler.extra.keys() {
            self.report.say(
                Severity::Warning,
                &format!("handler.{key}"),
                format!("{target} has no place for `{key}`"),
            );
        }
        for key in hook.handler.platform.extra.keys() {
            self.report.say(
                Severity::Warning,
                "handler.platform",
                format!("{target} has no place for `platform.{key}`"),
            );
        }
        if hook.matcher.as_ref().is_some_and(has_extra) {
            self.report.say(
                Severity::Warning,
                "matcher",
                format!("{target} has no place for further fields of a matcher"),
            );
        }
    }
}

fn first(pointer: &str) -> &str {
    pointer
        .trim_start_matches('/')
        .split('/')
        .next()
        .unwrap_or_default()
}

fn escapes(key: &str, value: &Value) -> bool {
    let key = key.to_ascii_lowercase();
    let place = ["dir", "path", "cwd", "file", "root"]
        .iter()
        .any(|word| key.contains(word));
    place
        && value
            .as_str()
            .is_some_and(|text| text.split(['/', '\\']).any(|part| part == ".."))
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

fn has_extra(matcher: &Matcher) -> bool {
    match matcher {
        Matcher::Name(_) => false,
        Matcher::Pattern { extra, .. } => !extra.is_empty(),
        Matcher::Mcp { mcp, extra } => !extra.is_empty() || !mcp.extra.is_empty(),
        Matcher::Any(items) => items.iter().any(has_extra),
    }
}
