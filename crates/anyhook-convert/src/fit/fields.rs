//! Fits the fields of a hook to the target and reports those it has no field for;
//! checks `provider_data`, which is untrusted.

use anyhook_agents::config::hook_keys;
use anyhook_agents::spec::{Codec, FailClosed, HandlerField, MatcherSubject};
use anyhook_model::{Handler, HandlerKind, Matcher, OnFailure, TimeoutAction};
use serde_json::{Map, Value};

use super::{HookFitter, TargetEvent, is_windows_only};
use crate::curl;
use crate::report::WarningSeverity::{Info, Warning};
use crate::report::agent_specific_parts;

/// Fields of a hook that other steps carry or report. No agent's config has any
/// other field of a hook, so its loss is reported.
const HOOK_FIELDS_REPORTED_ELSEWHERE: [&str; 7] = [
    "name",
    "event",
    "matcher",
    "handler",
    "blocking",
    "on_failure",
    "provider_data",
];

/// The same for a handler. Any other field is carried where the agent's table
/// has a row for it, and its loss is reported where not.
const HANDLER_FIELDS_REPORTED_ELSEWHERE: [&str; 9] = [
    "type",
    "args",
    "platform",
    "cwd",
    "env",
    "timeout",
    "timeout_action",
    "async",
    "dialect",
];

/// Fields of a handler whose loss alone changes nothing that the hook does, or
/// is reported with the handler's type. The loss of any other is a warning.
const HANDLER_FIELDS_OF_LITTLE_WEIGHT: [&str; 7] = [
    "command",
    "status_message",
    "url",
    "headers",
    "allowed_env_vars",
    "prompt",
    "model",
];

impl HookFitter<'_> {
    /// The `provider_data` for this agent that is safe to write.
    pub(super) fn checked_provider_data(
        &mut self,
        target_events: &[TargetEvent<'_>],
    ) -> Map<String, Value> {
        let id = self.adapter.spec.id.as_ref();
        for agent in self.hook.provider_data.keys() {
            let keys = agent_specific_parts(self.hook, agent);
            if (agent == id && self.is_same_variant) || keys.is_empty() {
                continue;
            }
            let what = keys.join(", ");
            let whom = if agent == id {
                "this variant of its file"
            } else {
                self.target()
            };
            let message = format!("settings specific to {agent} are not for {whom}: {what}");
            // Without its matcher the hook fires more often.
            let loses_matcher = keys.iter().any(|key| key.starts_with("its matcher"));
            let severity = if loses_matcher { Warning } else { Info };
            self.warnings
                .warn(severity, &format!("provider_data.{agent}"), message);
        }
        let given = self.hook.provider_data.get(id).and_then(Value::as_object);
        let mut data = Map::new();
        for (key, value) in given.filter(|_| self.is_same_variant).into_iter().flatten() {
            let field = format!("provider_data.{id}.{key}");
            if key == hook_keys::NATIVE_MATCHER {
                if !self.is_same_config && !self.is_equivalent_matcher(value, target_events) {
                    continue;
                }
            } else if let Some(why) = self.refusal(key, value) {
                let message = format!("`{key}` is not written: {why}");
                self.warnings.warning(&field, message);
                continue;
            } else if !self.is_same_config {
                let mut closed = self.config.handler.fail_closed.iter();
                if closed.any(|closed| first(&closed.at) == key && closed.value == *value) {
                    let message = format!("`{key}` makes a failed hook block");
                    self.warnings.info("on_failure", message);
                }
                let mut folders = self.config.handler.fields.iter();
                if folders.any(|field| field.to == "cwd" && first(&field.at) == key) {
                    let message =
                        format!("`{key}` of `provider_data` is the folder that it runs in");
                    self.warnings.info("handler.cwd", message);
                }
                if !key.starts_with('$') {
                    let is_off = value == &Value::Bool(false) && key == "enabled";
                    let severity = if is_off {
                        self.weakening_severity()
                    } else {
                        Info
                    };
                    let message = format!("`{key}` is copied unchanged");
                    self.warnings.warn(severity, &field, message);
                }
            }
            data.insert(key.clone(), value.clone());
        }
        data
    }

    /// Why a key of `provider_data` is not written, if so.
    fn refusal(&self, key: &str, value: &Value) -> Option<&'static str> {
        let handler = &self.config.handler;
        let is_set = |field: &&HandlerField| {
            let mut path = field.to.split('.');
            let set = self.fields.get("handler");
            let set = path.try_fold(set?, |value, key| value.get(key));
            set.is_some().then_some(())
        };
        let fields = handler.fields.iter();
        let fields = fields.filter(|field| match field.to.as_ref() {
            // The agent's own folder is the more specific one.
            "cwd" => false,
            "command" => true,
            _ => is_set(field).is_some(),
        });
        let own = handler.type_at.iter().chain(&self.config.event_at);
        let mut set_by_hook = fields.map(|field| &field.at).chain(own);
        let has_wrong_kind = handler.kinds.get(key).is_some_and(|kind| !kind.fits(value));
        let known_keys = handler.known_keys.as_ref();
        if key.starts_with('$') {
            None
        } else if has_wrong_kind && !self.is_same_config {
            Some("the agent rejects a file with this value")
        } else if key == "hooks" || (!self.is_same_config && set_by_hook.any(|at| first(at) == key))
        {
            Some("the hook sets it itself")
        } else if known_keys.is_some_and(|known| !known.iter().any(|one| one == key)) {
            Some("the agent does not know that key")
        } else if escapes(key, value) {
            Some("the path leaves the project")
        } else {
            None
        }
    }

    /// Whether a matcher kept from this agent's own file still means the same as
    /// the hook's matcher.
    fn is_equivalent_matcher(&self, written: &Value, target_events: &[TargetEvent<'_>]) -> bool {
        target_events.iter().all(|target_event| {
            let event = target_event.event;
            if event.is_some_and(|event| event.subject().is_some()) {
                let form = &self.config.matcher;
                let read = written.as_str();
                let read = read.map(|text| self.adapter.read_subject(form, text));
                return read == self.hook.matcher;
            }
            let about_tools = event.is_some_and(|event| {
                event.matcher == MatcherSubject::Tool && event.tools.is_empty()
            });
            !about_tools
                || self.adapter.read_matcher_as(&self.config.matcher, written) == self.hook.matcher
        })
    }

    /// Fits `timeout`.
    pub(super) fn fit_timeout(&mut self, handler: &mut Handler) {
        let spec = &self.config.handler;
        let target = self.target();
        let mut fields = spec.fields.iter().filter(|field| field.to == "timeout");
        self.write_default_timeout(handler);
        if let Some(timeout) = handler.timeout {
            let at = "handler.timeout";
            if !spec.has("timeout") {
                let message = format!("{target} has no timeout for hooks");
                self.warnings.warning(at, message);
            } else if let Some(most) = spec.max_timeout.filter(|most| timeout > *most) {
                self.warn_weakened(at,
                    format!("{target} allows at most {most} seconds and continues without a hook that takes longer"),
                );
                handler.timeout = Some(most);
            } else if timeout.fract() != 0.0
                && fields.any(|field| field.codec == Codec::WholeSeconds)
            {
                let message = format!("{target} accepts only whole seconds: rounded up");
                self.warnings.warning(at, message);
            }
        }
    }

    /// Writes the time limit that the source has by default, if the target's
    /// default is another; leaves it out again where it was the agent's own.
    fn write_default_timeout(&mut self, handler: &mut Handler) {
        let spec = &self.config.handler;
        let is_command = handler.kind == HandlerKind::Command;
        if handler.timeout == Some(0.0) && spec.has("timeout") && !self.is_same_config {
            let message = "0 means the default: left out";
            self.warnings.info("handler.timeout", message);
            handler.timeout = None;
        }
        // Of a manifest's hooks, only a guard depends on how long it may take.
        let matters = self.source.agent.is_some() || self.hook.blocking;
        if self.is_same_config || !is_command || !matters || !spec.has("timeout") {
            return;
        }
        let kept = self.hook.provider_data.get(self.adapter.spec.id.as_ref());
        let was_default = kept.and_then(|kept| kept.get(hook_keys::DEFAULT_TIMEOUT));
        if was_default == Some(&Value::Bool(true)) && handler.timeout == spec.default_timeout {
            handler.timeout = None;
            let message = "it is the default: left out";
            self.warnings.info("handler.timeout", message);
        } else if handler.timeout.is_none()
            && let Some(default) = self.source.default_timeout()
            && spec
                .default_timeout
                .is_some_and(|own| (own - default).abs() > 0.0)
        {
            handler.timeout = Some(spec.max_timeout.map_or(default, |most| default.min(most)));
            let message = format!(
                "the default of {default} seconds is written out: {} has another",
                self.target()
            );
            self.warnings.info("handler.timeout", message);
        }
    }

    /// Whether some failure of the hook blocks, for which targets have one field
    /// at most.
    pub(super) fn blocks_on_failure(&self) -> bool {
        self.hook.on_failure == Some(OnFailure::Block)
            || self.hook.handler.timeout_action == Some(TimeoutAction::Block)
    }

    /// Reports what becomes of `on_failure` and `timeout_action`.
    pub(super) fn report_failure_fields(&mut self, target_events: &[TargetEvent<'_>]) {
        let target = self.target();
        let closed = self.config.handler.fail_closed.as_ref();
        let applies = |closed: &FailClosed| {
            let mut events = target_events.iter();
            events.all(|event| closed.applies_to(&event.native))
        };
        let on_failure = ("on_failure", self.hook.on_failure);
        let timeout_action = ("handler.timeout_action", self.hook.handler.timeout_action);
        if !closed.is_some_and(applies) {
            if on_failure.1 == Some(OnFailure::Block) {
                self.warn_weakened(
                    on_failure.0,
                    format!("{target} continues when a hook fails"),
                );
            }
            if timeout_action.1 == Some(TimeoutAction::Block) {
                let message = format!("{target} continues when a hook times out");
                self.warn_weakened(timeout_action.0, message);
            }
        } else if !self.is_same_config && self.blocks_on_failure() {
            if on_failure.1 != Some(OnFailure::Block) {
                let message = "every failure blocks, not only a timeout";
                self.warnings.info(on_failure.0, message);
            }
            if timeout_action.1 == Some(TimeoutAction::Warn) {
                let message = "a timeout blocks like every other failure";
                self.warnings.info(timeout_action.0, message);
            }
        }
        if self.is_same_config {
            return;
        }
        let given = [
            (on_failure.0, on_failure.1.is_some()),
            (timeout_action.0, timeout_action.1.is_some()),
        ];
        for (field, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
            let message = "written in the target's own form, or already its default";
            self.warnings.info(field, message);
        }
    }

    pub(super) fn fit_fields(&mut self, handler: &mut Handler, target_events: &[TargetEvent<'_>]) {
        let spec = &self.config.handler;
        let target = self.target();
        let mut natives = target_events.iter().map(|event| &event.native);
        let posts = handler.kind == HandlerKind::Http
            && natives.any(|native| !spec.runs(HandlerKind::Http, native));
        if posts {
            let message = "`curl` must be installed where the hook runs";
            self.warnings.info("handler.command", message);
        }
        if posts && curl::has_unlisted_variables(handler) {
            let message = "variables in headers need `allowed_env_vars`; they are sent empty";
            self.warnings.warning("handler.headers", message);
        }
        let fields = self.fields.get("handler").and_then(Value::as_object);
        for key in fields.into_iter().flat_map(Map::keys) {
            let key = key.as_str();
            let unknown = handler.extra.contains_key(key);
            if unknown || HANDLER_FIELDS_REPORTED_ELSEWHERE.contains(&key) {
                continue;
            }
            let field = format!("handler.{key}");
            if posts && matches!(key, "url" | "headers" | "allowed_env_vars") {
                self.warnings.info(&field, "now part of the command");
            } else if !spec.has(key) {
                let is_light = HANDLER_FIELDS_OF_LITTLE_WEIGHT.contains(&key);
                let severity = if is_light { Info } else { Warning };
                let message = format!("{target} has no field for it");
                self.warnings.warn(severity, &field, message);
            }
        }
        self.fit_platform(handler);
        self.prefer_own_folder(handler);
        let script = self.script();
        self.report_settings_variables(handler, &script);
        self.report_dialect(handler, target_events, &script);
    }

    /// Leaves `cwd` out where `provider_data` has the folder for this agent.
    fn prefer_own_folder(&mut self, handler: &mut Handler) {
        let data = self.hook.provider_data.get(self.adapter.spec.id.as_ref());
        let mut fields = self.config.handler.fields.iter();
        let Some(row) = fields.find(|field| field.to == "cwd") else {
            return;
        };
        let own = data.filter(|_| self.is_same_variant);
        let own = own.and_then(|data| data.get(first(&row.at)));
        if own.is_some() && handler.cwd.take().is_some() {
            let message = format!("`{}` of `provider_data` is written instead", first(&row.at));
            self.warnings.info("handler.cwd", message);
        }
    }

    /// Leaves out commands for operating systems that the target does not support.
    /// The main command stays.
    fn fit_platform(&mut self, handler: &mut Handler) {
        if self.is_same_config || handler.platform.is_empty() {
            return;
        }
        let spec = &self.config.handler;
        let given = std::mem::take(&mut handler.platform);
        let mut kept = serde_json::to_value(&given).unwrap_or_default();
        if let Some(kept) = kept.as_object_mut() {
            kept.retain(|system, _| spec.has(&format!("platform.{system}")));
        }
        handler.platform = serde_json::from_value(kept).unwrap_or_default();
        let has_own_form = is_windows_only(handler);
        if handler.command.is_none() && handler.kind == HandlerKind::Command && !has_own_form {
            handler.command = given.linux.or(given.osx).or(given.windows);
            let message = "there is no main command; the one for Linux, or else another, is used";
            self.warnings.warning("handler.command", message);
        }
    }

    /// Reports what only a manifest has a field for.
    pub(super) fn report_manifest_only_fields(&mut self) {
        let hook = self.hook;
        let target = self.target();
        if hook.name.is_some() && !self.config.handler.has("name") {
            let message = format!("{target} has no names for hooks");
            self.warnings.info("name", message);
        }
        let mut lost = |severity, field: &str, what: &str| {
            let message = format!("{target} has no field for {what}");
            self.warnings.warn(severity, field, message);
        };
        for key in self.fields.keys().map(String::as_str) {
            if !HOOK_FIELDS_REPORTED_ELSEWHERE.contains(&key) {
                let is_light = matches!(key, "degradation" | "capabilities");
                let severity = if is_light { Info } else { Warning };
                let what = match key {
                    "if" => "`if`: the hook runs for every call that its matcher fits",
                    "mode" if hook.only_observes() => {
                        "`mode`: the hook's answers have an effect there"
                    }
                    _ => &format!("`{key}`"),
                };
                lost(severity, key, what);
            }
        }
        for key in hook.handler.extra.keys() {
            lost(Warning, &format!("handler.{key}"), &format!("`{key}`"));
        }
        for key in hook.handler.platform.extra.keys() {
            lost(Warning, "handler.platform", &format!("`platform.{key}`"));
        }
        if hook.matcher.as_ref().is_some_and(has_extra) {
            lost(Warning, "matcher", "the unknown fields of the matcher");
        }
    }
}

fn first(pointer: &str) -> &str {
    let path = pointer.trim_start_matches('/');
    path.split_once('/').map_or(path, |(first, _)| first)
}

fn escapes(key: &str, value: &Value) -> bool {
    let key = key.to_ascii_lowercase();
    let mut path_words = ["dir", "path", "cwd", "file", "root"].iter();
    let mut parts = value
        .as_str()
        .into_iter()
        .flat_map(|text| text.split(['/', '\\']));
    path_words.any(|word| key.contains(word)) && parts.any(|part| part == "..")
}

fn has_extra(matcher: &Matcher) -> bool {
    match matcher {
        Matcher::Name(_) => false,
        Matcher::Pattern { extra, .. } => !extra.is_empty(),
        Matcher::Mcp { mcp, extra } => !extra.is_empty() || !mcp.extra.is_empty(),
        Matcher::Any(items) => items.iter().any(has_extra),
    }
}
