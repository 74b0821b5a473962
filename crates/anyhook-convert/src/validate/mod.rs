//! Stage 2: what the target can take of each hook, and what is done about the
//! rest: the author's strategy, else the registry's default.

mod capabilities;
mod fields;
mod places;

use anyhook_agents::spec::{Config, Event};
use anyhook_agents::{Adapter, Placement};
use anyhook_model::{HandlerKind, Hook, TimeoutAction};
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
    let own = source.is_of(adapter, variant);
    let same_form = adapter.kept_variant(&source.manifest) == variant;
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
            same_form,
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
                let what = if !kept.is_empty() {
                    format!("settings besides hooks ({})", kept.join(", "))
                } else if data.get("unread").is_some() {
                    "entries of its own".to_owned()
                } else {
                    continue;
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
    /// The file goes back to where it came from.
    own: bool,
    /// What was kept of this agent's own file is of the form that is written.
    same_form: bool,
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
        let data = self.data(&places);
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
}
