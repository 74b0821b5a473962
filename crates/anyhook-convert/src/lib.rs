//! Conversion of hook configs in four stages: decode → fit → encode → verify.
//!
//! Pure: documents in, documents and warnings out. Nothing is lost without a
//! warning that names the hook and the field; if
//! `verify` finds a difference without a warning, the conversion fails without
//! output.

#![deny(clippy::disallowed_methods)]

mod curl;
mod deny;
mod detect;
mod fit;
mod guarded_tools;
mod label;
mod report;
mod verify;

use std::collections::HashSet;

use anyhook_agents::config::hook_keys;
use anyhook_agents::matchers::alternatives;
use anyhook_agents::{Adapter, Placement};
use anyhook_model::hook::DEFAULT_TIMEOUT_SECS;
use anyhook_model::{Format, HandlerKind, Hook, Manifest, Matcher, parse};
use serde_json::Value;

pub use detect::{DetectedConfig, detect, detect_variant};
pub use label::{hook_label, program_name};
pub use report::{ConversionWarning, WarningSeverity};
pub use verify::FieldDifference;

use report::file_warning;

/// A decoded source config.
#[derive(Debug, Clone)]
pub struct ConversionSource {
    pub manifest: Manifest,
    /// The agent whose file it was; absent for a canonical manifest.
    pub agent: Option<&'static Adapter>,
    pub warnings: Vec<ConversionWarning>,
    /// Hooks, by position, whose matcher key was missing rather than empty.
    matcherless: HashSet<usize>,
}

impl ConversionSource {
    /// A source that is a canonical manifest already.
    pub fn canonical(manifest: Manifest) -> Self {
        Self {
            manifest,
            agent: None,
            warnings: Vec::new(),
            matcherless: HashSet::new(),
        }
    }

    /// Whether this is a config of that agent, in that variant.
    fn is_config_of(&self, adapter: &Adapter, variant: Option<&str>) -> bool {
        self.agent
            .is_some_and(|agent| agent.spec.id == adapter.spec.id)
            && adapter.kept_variant(&self.manifest) == variant
    }

    /// The time limit, in seconds, of a hook that has none of its own.
    fn default_timeout(&self) -> Option<f64> {
        let Some(agent) = self.agent else {
            return Some(DEFAULT_TIMEOUT_SECS);
        };
        let config = agent.config(agent.kept_variant(&self.manifest));
        config.handler.default_timeout
    }

    /// Adds the hooks of another file of the same agent. Its other settings are not
    /// carried, and reported.
    pub fn append(&mut self, mut other: Self, path: &str) {
        let offset = self.manifest.hooks.len();
        for warning in &mut other.warnings {
            warning.hook = warning.hook.map(|hook| hook + offset);
            if warning.hook.is_none() {
                warning.message = format!("`{path}`: {}", warning.message);
            }
        }
        self.warnings.append(&mut other.warnings);
        let form = |source: &Self| {
            let agent = source.agent?;
            Some(agent.kept_variant(&source.manifest)?.to_owned())
        };
        if let Some(agent) = self.agent
            && form(self) != form(&other)
        {
            for (index, hook) in other.manifest.hooks.iter_mut().enumerate() {
                if hook.provider_data.remove(agent.spec.id.as_ref()).is_some() {
                    self.warnings.push(ConversionWarning {
                        hook: Some(offset + index + 1),
                        name: hook.name.clone(),
                        ..file_warning(
                            WarningSeverity::Info,
                            "provider_data",
                            format!("its agent-specific data in `{path}` has another format and is not carried"),
                        )
                    });
                }
            }
        }
        let says = |data: &Value| data.get("file").is_some() || data.get("unread").is_some();
        let more = other.manifest.extra.iter().any(|(key, value)| {
            key != anyhook_agents::config::MANIFEST_PROVIDER_DATA
                || value.as_object().is_some_and(|map| map.values().any(says))
        });
        if more {
            let message = format!("settings other than hooks in `{path}` are not carried");
            self.warnings
                .push(file_warning(WarningSeverity::Info, "file", message));
        }
        self.matcherless
            .extend(other.matcherless.iter().map(|index| index + offset));
        self.manifest.hooks.append(&mut other.manifest.hooks);
        self.manifest.sequential |= other.manifest.sequential;
    }

    /// Leaves out the hooks that only call anyhook itself, and says so.
    pub fn leave_out_bridge(&mut self, is_bridge: impl Fn(&Hook) -> bool) {
        let hooks = std::mem::take(&mut self.manifest.hooks);
        let mut positions: Vec<Option<usize>> = Vec::with_capacity(hooks.len());
        for hook in hooks {
            let kept = !is_bridge(&hook);
            positions.push(kept.then_some(self.manifest.hooks.len()));
            self.manifest.hooks.extend(kept.then_some(hook));
        }
        let left_out = positions
            .iter()
            .filter(|position| position.is_none())
            .count();
        if left_out == 0 {
            return;
        }
        let moved = |at: usize| positions.get(at).copied().flatten();
        self.matcherless = self
            .matcherless
            .iter()
            .filter_map(|at| moved(*at))
            .collect();
        self.warnings.retain_mut(|warning| {
            let Some(hook) = warning.hook else {
                return true;
            };
            warning.hook = moved(hook - 1).map(|at| at + 1);
            warning.hook.is_some()
        });
        let what = if left_out == 1 { "entry" } else { "entries" };
        let message = format!(
            "{left_out} {what} of anyhook itself (`anyhook run`) left out: `anyhook install` writes them"
        );
        self.warnings
            .push(file_warning(WarningSeverity::Info, "hooks", message));
    }

    /// Reports a file of the folder that is not a hook config.
    pub fn note_unconverted_file(&mut self, path: &str) {
        let message = format!("`{path}` is not a known hook config and is not converted");
        self.warnings
            .push(file_warning(WarningSeverity::Warning, "file", message));
    }

    /// Stage 1: decodes an agent's own config.
    pub fn decode(agent: &'static Adapter, document: &Value, variant: Option<&str>) -> Self {
        let decoded = agent.decode_config(document, variant);
        let warnings = decoded
            .findings
            .into_iter()
            .map(|finding| ConversionWarning {
                hook: finding.hook.map(|hook| hook + 1),
                ..file_warning(WarningSeverity::Warning, &finding.field, finding.message)
            });
        Self {
            manifest: decoded.manifest,
            agent: Some(agent),
            warnings: warnings.collect(),
            matcherless: decoded.matcherless.into_iter().collect(),
        }
    }
}

/// The format to convert to.
#[derive(Debug, Clone, Copy)]
pub enum ConversionTarget {
    Canonical,
    Agent {
        adapter: &'static Adapter,
        variant: Option<&'static str>,
    },
}

/// The result of a conversion.
#[derive(Debug, Clone)]
pub struct Conversion {
    /// The target's document.
    pub document: Value,
    pub warnings: Vec<ConversionWarning>,
    /// Hooks of the source that are in the output.
    pub carried: usize,
}

/// Why there is no output.
#[derive(Debug, Clone)]
pub enum ConvertError {
    /// Nothing of the source could be carried.
    NothingLeft { warnings: Vec<ConversionWarning> },
    /// The output differs from the source in a way that no warning names.
    Unfaithful {
        differences: Vec<FieldDifference>,
        warnings: Vec<ConversionWarning>,
    },
}

/// What is known of the script that a command runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptText {
    /// Its text, with that of the files that it names.
    Known(String),
    /// A file that the command names does not exist.
    Missing,
    /// It is a program, or its text is not the whole of it.
    Unclear,
}

impl ScriptText {
    pub(crate) fn known(&self) -> Option<&str> {
        match self {
            Self::Known(text) => Some(text),
            Self::Missing | Self::Unclear => None,
        }
    }
}

/// Reads the script that a command runs.
pub type ScriptReader<'a> = dyn Fn(&str) -> ScriptText + 'a;

/// Settings of a conversion.
#[derive(Default)]
pub struct ConversionOptions<'a> {
    /// Used to infer the capabilities that a command needs.
    pub script: Option<&'a ScriptReader<'a>>,
    /// Leave `dialect` out of a canonical manifest: the programs will be changed to
    /// read and write the canonical format.
    pub drop_dialect: bool,
    /// The variables that `anyhook run` sets, with their meaning as in agents' tables.
    pub bridge_variables: &'a [(&'a str, &'a str)],
    /// The project's folder below the root of its git repository, if it is not the
    /// root itself.
    pub folder_in_repository: Option<&'a str>,
}

/// Stages 2 to 4: fit, encode, verify.
pub fn convert(
    source: &ConversionSource,
    target: ConversionTarget,
    options: &ConversionOptions<'_>,
) -> Result<Conversion, ConvertError> {
    let mut converted = match target {
        ConversionTarget::Canonical => to_canonical(source, options),
        ConversionTarget::Agent { adapter, variant } => to_agent(source, adapter, variant, options),
    };
    let warnings = match &mut converted {
        Ok(conversion) => &mut conversion.warnings,
        Err(ConvertError::NothingLeft { warnings } | ConvertError::Unfaithful { warnings, .. }) => {
            warnings
        }
    };
    for warning in warnings {
        let hook = warning
            .hook
            .and_then(|hook| source.manifest.hooks.get(hook - 1));
        warning.label = hook.map(|hook| label::hook_label(hook, source.agent));
    }
    converted
}

fn to_canonical(
    source: &ConversionSource,
    options: &ConversionOptions<'_>,
) -> Result<Conversion, ConvertError> {
    let mut manifest = source.manifest.clone();
    let mut warnings = source.warnings.clone();
    if let Some(agent) = source.agent {
        report_unread_guards(agent, &manifest, &mut warnings);
        report_agents_own_tools(agent, &manifest, &mut warnings);
        report_agents_own_names(agent, &manifest, &mut warnings);
        write_default_timeouts(&mut manifest, agent, source.default_timeout());
        write_missing_commands(&mut manifest, agent, &mut warnings);
        if options.drop_dialect {
            let message = format!(
                "these programs use the input and output format of {}; change them to the canonical format, or set `dialect: {}` on each handler",
                agent.spec.name, agent.spec.id
            );
            let blocks = manifest.hooks.iter().any(|hook| hook.blocking);
            let severity = if blocks {
                WarningSeverity::Critical
            } else {
                WarningSeverity::Warning
            };
            warnings.push(file_warning(severity, "handler.dialect", message));
        } else {
            for hook in &mut manifest.hooks {
                hook.handler.dialect = Some(agent.spec.id.to_string());
            }
        }
    }
    report::leave_out_incomplete(&mut manifest.hooks, &mut warnings);
    let carried = manifest.hooks.len();
    let document = serde_json::to_value(&manifest).unwrap_or_default();
    let (_, findings) = parse::manifest(
        &document.to_string(),
        Format::Json,
        &parse::Vocabulary::default(),
    );
    if carried == 0 {
        return Err(ConvertError::NothingLeft { warnings });
    }
    let errors = findings.iter().filter(|finding| finding.is_error());
    let differences: Vec<FieldDifference> = errors
        .map(|finding| FieldDifference {
            hook: 0,
            field: finding.path.clone(),
            expected: "a valid manifest".into(),
            found: finding.message.clone(),
        })
        .collect();
    if !differences.is_empty() {
        return Err(ConvertError::Unfaithful {
            differences,
            warnings,
        });
    }
    Ok(Conversion {
        document,
        warnings,
        carried,
    })
}

/// Reports entries that may be guards, are kept for their agent and run by it alone.
fn report_unread_guards(
    agent: &Adapter,
    manifest: &Manifest,
    warnings: &mut Vec<ConversionWarning>,
) {
    let key = anyhook_agents::config::MANIFEST_PROVIDER_DATA;
    let data = manifest.extra.get(key);
    let data = data.and_then(|data| data.get(agent.spec.id.as_ref()));
    let severity = data.map(|data| report::unread_severity(&agent.spec.id, data));
    if let Some(severity @ WarningSeverity::Critical) = severity {
        let message = format!(
            "entries without a canonical form are kept for {}: `anyhook run` does not run them",
            agent.spec.name
        );
        warnings.push(file_warning(severity, key, message));
    }
}

/// Reports hooks that only the agent itself can run: tools of its MCP servers.
fn report_agents_own_tools(
    agent: &Adapter,
    manifest: &Manifest,
    warnings: &mut Vec<ConversionWarning>,
) {
    for (index, hook) in manifest.hooks.iter().enumerate() {
        if hook.handler.kind != HandlerKind::McpTool {
            continue;
        }
        let severity = if hook.blocking {
            WarningSeverity::Critical
        } else {
            WarningSeverity::Warning
        };
        let message = format!(
            "only {} can call a tool of its MCP server: `anyhook run` reports this hook as failed",
            agent.spec.name
        );
        warnings.push(ConversionWarning {
            hook: Some(index + 1),
            name: hook.name.clone(),
            ..file_warning(severity, "handler.type", message)
        });
    }
}

/// Reports patterns over the names that only this agent has for MCP tools: under other
/// agents the manifest's hook is not called for them.
fn report_agents_own_names(
    agent: &Adapter,
    manifest: &Manifest,
    warnings: &mut Vec<ConversionWarning>,
) {
    for (index, hook) in manifest.hooks.iter().enumerate() {
        let patterns = hook.matcher.iter().flat_map(alternatives);
        let patterns = patterns.filter_map(|one| match one {
            Matcher::Pattern { pattern, .. } => Some(pattern),
            _ => None,
        });
        for pattern in patterns.filter(|pattern| agent.names_own_mcp_tools(pattern)) {
            let message = format!(
                "the pattern `{pattern}` is over the names that MCP tools have in {}: under other agents it matches none of theirs; name them by `mcp` with `server` and `tool`",
                agent.spec.name
            );
            warnings.push(ConversionWarning {
                hook: Some(index + 1),
                name: hook.name.clone(),
                ..file_warning(WarningSeverity::Warning, "matcher", message)
            });
        }
    }
}

/// Gives each guard without a time limit the one that its agent has by default,
/// where the manifest's default is another: a guard that is ended early allows.
fn write_default_timeouts(manifest: &mut Manifest, agent: &Adapter, default: Option<f64>) {
    let Some(default) = default.filter(|default| (*default - DEFAULT_TIMEOUT_SECS).abs() > 0.0)
    else {
        return;
    };
    for hook in &mut manifest.hooks {
        let is_guard = hook.blocking && hook.handler.kind == HandlerKind::Command;
        if !is_guard || hook.handler.timeout.is_some() {
            continue;
        }
        hook.handler.timeout = Some(default);
        mark(hook, agent, hook_keys::DEFAULT_TIMEOUT);
    }
}

/// Gives each hook that has a command for Windows alone one that does nothing: a
/// manifest needs a command for all systems.
fn write_missing_commands(
    manifest: &mut Manifest,
    agent: &Adapter,
    warnings: &mut Vec<ConversionWarning>,
) {
    for (index, hook) in manifest.hooks.iter_mut().enumerate() {
        if hook.handler.command.is_some() || !fit::is_windows_only(&hook.handler) {
            continue;
        }
        hook.handler.command = Some(hook_keys::NO_COMMAND.to_owned());
        mark(hook, agent, hook_keys::WINDOWS_ONLY);
        let message = "it runs on Windows only: elsewhere nothing is started";
        warnings.push(ConversionWarning {
            hook: Some(index + 1),
            name: hook.name.clone(),
            ..file_warning(WarningSeverity::Info, "handler.command", message)
        });
    }
}

/// Notes in the agent's data what its own entry does not have.
fn mark(hook: &mut Hook, agent: &Adapter, key: &str) {
    let data = hook.provider_data.entry(agent.spec.id.as_ref());
    let data = data.or_insert_with(|| Value::Object(serde_json::Map::new()));
    if let Value::Object(data) = data {
        data.insert(key.to_owned(), Value::Bool(true));
    }
}

fn to_agent(
    source: &ConversionSource,
    adapter: &'static Adapter,
    variant: Option<&str>,
    options: &ConversionOptions<'_>,
) -> Result<Conversion, ConvertError> {
    let mut warnings = source.warnings.clone();
    let fitted = fit::fit_hooks(source, adapter, variant, options, &mut warnings);
    let carried = fitted.iter();
    let carried = carried.filter(|hook| !hook.placements.is_empty()).count();
    let is_same_config = source.is_config_of(adapter, variant);
    if carried == 0 && !(is_same_config && source.manifest.hooks.is_empty()) {
        return Err(ConvertError::NothingLeft { warnings });
    }
    let placements = fitted.iter().flat_map(|hook| hook.placements.clone());
    let placements: Vec<Placement> = placements.collect();
    let document = adapter.encode_config(&source.manifest, &placements, variant);
    guarded_tools::report_lost_tools(source, adapter, variant, &fitted, &mut warnings);
    let differences = verify::verify(source, adapter, variant, &document, &fitted, &warnings);
    if !differences.is_empty() {
        return Err(ConvertError::Unfaithful {
            differences,
            warnings,
        });
    }
    Ok(Conversion {
        document,
        warnings,
        carried,
    })
}
