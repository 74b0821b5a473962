//! Stage 2 (`validate` in the user documentation): fits each hook to the target.
//! For what the target cannot express, the author's strategy or else the
//! registry's default decides. This has nothing to do with `anyhook validate`,
//! which checks a manifest.

mod capabilities;
mod command;
mod dialect;
mod events;
mod fields;
mod inline;
mod program;
mod variables;

use anyhook_agents::spec::{Config, EventSpec};
use anyhook_agents::{Adapter, Placement};
use anyhook_model::{HandlerKind, Hook, Manifest};
use serde_json::{Map, Value};

use crate::report::{
    self, ConversionWarning, HookWarnings, WarningSeverity, file_warning, hook_as_json,
};
use crate::{ConversionOptions, ConversionSource, ScriptText, curl, deny};

pub(crate) use command::{command_line, is_windows_only};

/// A hook of the source and the entries that it becomes in the target.
pub(crate) struct FittedHook {
    pub index: usize,
    pub placements: Vec<Placement>,
}

/// An event of the target at which the hook is written, with its matcher.
struct TargetEvent<'a> {
    native: String,
    event: Option<&'a EventSpec>,
    matcher: Option<String>,
    matchable: bool,
    /// Native names of the tools to match, where the target has no matchers.
    meant_tools: Option<Vec<String>>,
}

impl<'a> TargetEvent<'a> {
    fn without_matcher(event: &'a EventSpec) -> Self {
        Self {
            native: event.native.to_string(),
            event: Some(event),
            matcher: None,
            matchable: false,
            meant_tools: None,
        }
    }
}

/// What the converted hook does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FitOutcome {
    Runs,
    Denies(&'static str),
    LeftOut,
}

pub(crate) fn fit_hooks(
    source: &ConversionSource,
    adapter: &'static Adapter,
    variant: Option<&str>,
    options: &ConversionOptions<'_>,
    warnings: &mut Vec<ConversionWarning>,
) -> Vec<FittedHook> {
    let is_same_config = source.is_config_of(adapter, variant);
    let is_same_variant = adapter.kept_variant(&source.manifest) == variant;
    if !is_same_config {
        report_target(source, adapter, is_same_variant, warnings);
    }
    let mut fitted = Vec::new();
    for (index, hook) in source.manifest.hooks.iter().enumerate() {
        let mut fitter = HookFitter {
            fields: hook_as_json(hook),
            source,
            adapter,
            config: adapter.config(variant),
            is_same_config,
            is_same_variant,
            hook,
            options,
            warnings: HookWarnings {
                list: &mut *warnings,
                hook: index + 1,
                name: hook.name.clone(),
            },
        };
        let placements = fitter.placements(source.matcherless.contains(&index));
        fitted.push(FittedHook { index, placements });
    }
    fitted
}

/// Reports what concerns the whole file.
fn report_target(
    source: &ConversionSource,
    adapter: &Adapter,
    is_same_variant: bool,
    warnings: &mut Vec<ConversionWarning>,
) {
    let name = &adapter.spec.name;
    let mut warn = |severity, field: &str, message: String| {
        warnings.push(file_warning(severity, field, message));
    };
    if let Some(end) = &adapter.spec.legacy {
        warn(WarningSeverity::Warning, "target", end.to_string());
    }
    if let Some(trust) = &adapter.spec.trust {
        warn(WarningSeverity::Info, "trust", trust.to_string());
    }
    let mut files = source.agent.into_iter().flat_map(|agent| &agent.spec.files);
    if let Some(file) = files.find(|file| adapter.spec.also_reads.contains(&file.path)) {
        let path = &file.path;
        let message = format!("{name} also reads `{path}`: hooks that are in both files run twice");
        warn(WarningSeverity::Warning, "target", message);
    }
    // Exhaustive, so that a new field of a manifest is not forgotten here.
    let Manifest {
        spec: _,
        hooks: _,
        sequential,
        extra,
    } = &source.manifest;
    if *sequential {
        let message = format!(
            "{name} has no field for `sequential`: the agent decides in which order hooks run"
        );
        warn(WarningSeverity::Warning, "sequential", message);
    }
    for (key, value) in extra {
        if key != anyhook_agents::config::MANIFEST_PROVIDER_DATA {
            let message = format!("{name} has no field for `{key}`");
            warn(WarningSeverity::Info, key, message);
            continue;
        }
        for (agent, data) in value.as_object().into_iter().flatten() {
            let settings = data.get("file").and_then(Value::as_object);
            if let Some(settings) = settings.filter(|settings| !settings.is_empty()) {
                let names: Vec<&str> = settings.keys().map(String::as_str).collect();
                let names = names.join(", ");
                let message =
                    format!("settings other than hooks ({names}) of {agent} are not converted");
                warn(WarningSeverity::Info, key, message);
            }
            let is_written = agent == adapter.spec.id.as_ref() && is_same_variant;
            if data.get("unread").is_some() && !is_written {
                let message =
                    format!("entries without a canonical form of {agent} are not converted");
                warn(report::unread_severity(agent, data), key, message);
            }
        }
    }
}

struct HookFitter<'a> {
    source: &'a ConversionSource,
    adapter: &'static Adapter,
    config: &'a Config,
    /// The source is a config of the target, in the same variant.
    is_same_config: bool,
    /// The data kept from this agent's own file has the variant that is written.
    is_same_variant: bool,
    hook: &'a Hook,
    fields: Map<String, Value>,
    options: &'a ConversionOptions<'a>,
    warnings: HookWarnings<'a>,
}

impl HookFitter<'_> {
    /// Operating systems for which the hook has a separate command.
    fn systems(&self) -> impl Iterator<Item = &str> {
        let platform = self.fields.get("handler").and_then(|it| it.get("platform"));
        let platform = platform.and_then(Value::as_object);
        let unknown = &self.hook.handler.platform.extra;
        let keys = platform.into_iter().flat_map(Map::keys).map(String::as_str);
        keys.filter(|key| !unknown.contains_key(*key))
    }

    fn target(&self) -> &'static str {
        &self.adapter.spec.name
    }

    /// The severity of a loss: critical if the hook protects something.
    fn weakening_severity(&self) -> WarningSeverity {
        if self.hook.blocking || self.rewrites() {
            WarningSeverity::Critical
        } else {
            WarningSeverity::Warning
        }
    }

    /// The text of the script that the hook runs, if it can be read.
    fn script(&self) -> ScriptText {
        let command = command::command_line(&self.hook.handler);
        match (command, self.options.script) {
            (Some(command), _) if inline::is_whole_program(&command) => ScriptText::Known(command),
            (Some(command), Some(read)) => read(&self.with_project_as_dot(command)),
            _ => ScriptText::Missing,
        }
    }

    /// The command with `.` for every variable that means the project's folder.
    fn with_project_as_dot(&self, mut command: String) -> String {
        let own = self.source.agent.map(|agent| agent.spec.id.as_ref());
        let agents = [Some(self.speaks()), own].into_iter().flatten();
        let tables = agents.filter_map(anyhook_agents::get);
        let of_agents = tables.flat_map(|agent| {
            let variables = agent.spec.env.iter();
            variables.map(|(name, meaning)| (name.as_ref(), meaning.as_ref()))
        });
        let of_bridge = self.options.bridge_variables.iter().copied();
        let mut variables: Vec<(&str, &str)> = of_agents.chain(of_bridge).collect();
        // A name may begin with another.
        variables.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        for (name, meaning) in variables {
            if meaning == "{project}" {
                command = command.replace(&format!("${{{name}}}"), ".");
                command = command.replace(&format!("${name}"), ".");
            }
        }
        command
    }

    fn rewrites(&self) -> bool {
        let mut named = self.hook.degradation.keys().chain(&self.hook.capabilities);
        named.any(|name| name == "input_rewrite")
    }

    fn placements(&mut self, matcherless: bool) -> Vec<Placement> {
        let target_events = self.target_events();
        if target_events.is_empty() {
            return Vec::new();
        }
        self.report_blocking(&target_events);
        if !self.is_type_run(&target_events) {
            return Vec::new();
        }
        let outcome = self.fit_capabilities(&target_events);
        if outcome == FitOutcome::LeftOut {
            return Vec::new();
        }
        let mut data = self.checked_provider_data(&target_events);
        let mut handler = self.hook.handler.clone();
        if !self.fit_windows_only(&mut handler) {
            return Vec::new();
        }
        if outcome == FitOutcome::Runs {
            self.fit_arguments(&mut handler, &mut data);
            self.fit_variables(&mut handler);
        }
        self.fit_timeout(&mut handler);
        self.report_failure_fields(&target_events);
        if outcome == FitOutcome::Runs {
            self.fit_fields(&mut handler, &target_events);
        }
        self.report_manifest_only_fields();
        let spec = &self.config.handler;
        let mut placements = Vec::new();
        for target_event in target_events {
            let mut placed = handler.clone();
            let mut data = data.clone();
            match outcome {
                FitOutcome::Denies(capability) => {
                    let reason = deny::deny_reason(capability, &self.short_description());
                    let tools = target_event.meant_tools.as_deref();
                    let command =
                        deny::deny_command(self.adapter, &target_event.native, &reason, tools);
                    placed = anyhook_model::Handler {
                        command: Some(command),
                        timeout: handler.timeout,
                        ..Default::default()
                    };
                }
                _ if placed.kind == HandlerKind::Http
                    && !spec.runs(HandlerKind::Http, &target_event.native) =>
                {
                    placed.command = Some(curl::curl_command(&placed));
                    placed.kind = HandlerKind::Command;
                    placed.url = None;
                    placed.headers = Map::new();
                    placed.allowed_env_vars = Vec::new();
                }
                _ => {}
            }
            self.fit_missing_shell(&mut placed);
            if self.blocks_on_failure()
                && let Some(closed) = &spec.fail_closed
                && closed.applies_to(&target_event.native)
            {
                let key = closed.at.trim_start_matches('/');
                data.insert(key.to_owned(), closed.value.clone());
            }
            placements.push(Placement {
                native_event: target_event.native,
                matcher: target_event.matcher,
                matchable: target_event.matchable,
                matcherless: matcherless && self.is_same_config,
                name: self.hook.name.clone(),
                handler: placed,
                data,
            });
        }
        placements
    }

    /// Whether the target can call a tool of an MCP server, if the hook is one. The
    /// capabilities cover the other types.
    fn is_type_run(&mut self, target_events: &[TargetEvent<'_>]) -> bool {
        let handler = &self.config.handler;
        let mut events = target_events.iter();
        let is_run = self.hook.handler.kind != HandlerKind::McpTool
            || events.all(|event| handler.runs(HandlerKind::McpTool, &event.native));
        if !is_run {
            let message = format!(
                "{} has no `mcp_tool` handlers: the hook is left out",
                self.target()
            );
            self.warn_weakened("handler.type", message);
        }
        is_run
    }

    /// The hook in a few words, for the reason of a block.
    fn short_description(&self) -> String {
        let handler = &self.hook.handler;
        let others = [&handler.url, &handler.prompt, &self.hook.name];
        let other = || others.into_iter().flatten().next().cloned();
        let described = command::command_line(handler).or_else(other);
        described.unwrap_or_else(|| format!("#{}", self.warnings.hook))
    }

    /// Reports a loss that weakens the hook.
    fn warn_weakened(&mut self, field: &str, message: String) {
        let severity = self.weakening_severity();
        self.warnings.warn(severity, field, message);
    }
}
