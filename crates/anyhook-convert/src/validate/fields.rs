//! The fields of a hook that the target has no place for, or another one; and
//! `provider_data`, as far as it can be trusted.

use anyhook_agents::config::kept;
use anyhook_model::{HandlerKind, Matcher, Platform, TimeoutAction};
use serde_json::{Map, Value};

use super::{OneHook, Place};
use crate::post;
use crate::report::{Severity, own_words};

impl OneHook<'_> {
    /// Data for this agent, as far as it can be trusted.
    pub(super) fn data(&mut self, places: &[Place<'_>]) -> Map<String, Value> {
        let id = self.adapter.spec.id.as_ref();
        for agent in self.hook.provider_data.keys() {
            let keys = own_words(self.hook, agent);
            if (agent == id && self.same_form) || keys.is_empty() {
                continue;
            }
            let what = keys.join(", ");
            let whom = if agent == id {
                "this form of its file".to_owned()
            } else {
                self.target().to_owned()
            };
            self.report.say(
                Severity::Info,
                &format!("provider_data.{agent}"),
                format!("what {agent} alone knows is not for {whom}: {what}"),
            );
        }
        let given = self.hook.provider_data.get(id).filter(|_| self.same_form);
        let Some(given) = given.and_then(Value::as_object) else {
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
            let why = if key == kept::MATCHER {
                if self.own || self.means_the_same(value, places) {
                    data.insert(key.clone(), value.clone());
                }
                continue;
            } else if key.starts_with('$') {
                None
            } else if handler
                .kinds
                .get(key.as_str())
                .is_some_and(|kind| !kind.fits(value))
                && !self.own
            {
                Some("the agent refuses a file with such a value")
            } else if key == "hooks" || (!self.own && taken.contains(&key.as_str())) {
                Some("the hook itself says that")
            } else if foreign {
                Some("the agent does not know that key")
            } else if escapes(key, value) {
                Some("the path leads out of the project")
            } else {
                None
            };
            if let Some(why) = why {
                self.report.say(
                    Severity::Warning,
                    &format!("provider_data.{id}.{key}"),
                    format!("`{key}` is not written: {why}"),
                );
                continue;
            }
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
                let off = value == &Value::Bool(false) && key == "enabled";
                let severity = if off {
                    self.weakening()
                } else {
                    Severity::Info
                };
                self.report.say(
                    severity,
                    &format!("provider_data.{id}.{key}"),
                    format!("`{key}` is written as it is"),
                );
            }
            data.insert(key.clone(), value.clone());
        }
        data
    }

    /// Whether a matcher that stood in this agent's own file still says what
    /// the hook says.
    fn means_the_same(&self, written: &Value, places: &[Place<'_>]) -> bool {
        places.iter().all(|place| {
            let about_tools = place
                .event
                .is_some_and(|event| event.matcher == "tool" && event.tools.is_empty());
            !about_tools
                || self.adapter.read_matcher_as(&self.config.matcher, written) == self.hook.matcher
        })
    }

    /// Fields that have no place, besides those of capabilities.
    pub(super) fn timeout(&mut self, handler: &mut anyhook_model::Handler) {
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
                let severity = self.weakening();
                self.report.say(
                    severity,
                    "handler.timeout",
                    format!("{target} allows {most} seconds at most, and goes on without a hook that takes longer"),
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

    pub(super) fn fields(&mut self, handler: &mut anyhook_model::Handler, places: &[Place<'_>]) {
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
            (true, _) if handler.kind == HandlerKind::Http => (
                Severity::Critical,
                "so the service's refusal may not be understood",
            ),
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
    pub(super) fn manifest_only(&mut self) {
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

fn has_extra(matcher: &Matcher) -> bool {
    match matcher {
        Matcher::Name(_) => false,
        Matcher::Pattern { extra, .. } => !extra.is_empty(),
        Matcher::Mcp { mcp, extra } => !extra.is_empty() || !mcp.extra.is_empty(),
        Matcher::Any(items) => items.iter().any(has_extra),
    }
}
