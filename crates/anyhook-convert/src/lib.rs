//! Conversion of hook configs, in four stages that can be seen here:
//! decode → validate → encode → verify.
//!
//! Pure: documents in, documents and warnings out. Nothing is lost without a
//! warning that names the hook and the field; what `verify` finds different
//! without one is an error, and there is no output.

mod deny;
mod detect;
mod post;
mod report;
mod validate;
mod verify;

use std::collections::HashSet;

use anyhook_agents::{Adapter, Placement};
use anyhook_model::Manifest;
use serde_json::Value;

pub use detect::{Guess, detect};
pub use report::{Severity, Warning};
pub use verify::Difference;

use report::about_file;

/// A source, decoded.
#[derive(Debug, Clone)]
pub struct Source {
    pub manifest: Manifest,
    /// The agent whose file it was; absent for a canonical manifest.
    pub agent: Option<&'static Adapter>,
    pub warnings: Vec<Warning>,
    /// Hooks, by position, whose matcher key was missing rather than empty.
    matcherless: HashSet<usize>,
}

impl Source {
    /// A manifest that is canonical already.
    pub fn canonical(manifest: Manifest) -> Self {
        Self {
            manifest,
            agent: None,
            warnings: Vec::new(),
            matcherless: HashSet::new(),
        }
    }

    /// Whether this is a file of that agent, in that form.
    fn is_of(&self, adapter: &Adapter, variant: Option<&str>) -> bool {
        self.agent
            .is_some_and(|agent| agent.spec.id == adapter.spec.id)
            && adapter.kept_variant(&self.manifest) == variant
    }

    /// Adds the hooks of another file of the same agent. What stands in that
    /// file besides hooks stays there.
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
                    self.warnings.push(Warning {
                        hook: Some(offset + index + 1),
                        name: hook.name.clone(),
                        ..about_file(
                            Severity::Info,
                            "provider_data",
                            format!("what `{path}` says of it in its own form is not carried"),
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
            self.warnings.push(about_file(
                Severity::Info,
                "file",
                format!("what `{path}` says besides its hooks is not carried"),
            ));
        }
        self.matcherless
            .extend(other.matcherless.iter().map(|index| index + offset));
        self.manifest.hooks.append(&mut other.manifest.hooks);
    }

    /// Notes a file of the folder that is no hook config.
    pub fn left_out(&mut self, path: &str) {
        self.warnings.push(about_file(
            Severity::Warning,
            "file",
            format!("`{path}` is no hook config that is known: it is not converted"),
        ));
    }

    /// Stage 1: an agent's own config.
    pub fn decode(agent: &'static Adapter, document: &Value, variant: Option<&str>) -> Self {
        let decoded = agent.decode_config(document, variant);
        let warnings = decoded
            .findings
            .iter()
            .map(|finding| Warning {
                hook: finding.hook.map(|hook| hook + 1),
                ..about_file(Severity::Warning, &finding.field, finding.message.clone())
            })
            .collect();
        Self {
            manifest: decoded.manifest,
            agent: Some(agent),
            warnings,
            matcherless: decoded.matcherless.into_iter().collect(),
        }
    }
}

/// Where a conversion goes.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    Canonical,
    Agent {
        adapter: &'static Adapter,
        variant: Option<&'static str>,
    },
}

/// What came of a conversion.
#[derive(Debug, Clone)]
pub struct Conversion {
    /// The target's document.
    pub document: Value,
    pub warnings: Vec<Warning>,
    /// Hooks of the source that are in the output.
    pub carried: usize,
}

/// Why there is no output.
#[derive(Debug, Clone)]
pub enum ConvertError {
    /// Nothing of the source could be carried.
    NothingLeft { warnings: Vec<Warning> },
    /// The output says something else than the source, and no warning tells.
    Unfaithful {
        differences: Vec<Difference>,
        warnings: Vec<Warning>,
    },
}

/// Finds the text of the script that a command names.
pub type ScriptText<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// What the caller knows besides the source.
#[derive(Default)]
pub struct Options<'a> {
    /// The text of the script that a command names, where it can be read.
    pub script: Option<&'a ScriptText<'a>>,
    /// Keep `dialect` in a canonical manifest, so that the bridge can run it.
    pub keep_dialect: bool,
}

/// Stages 2 to 4.
pub fn convert(
    source: &Source,
    target: Target,
    options: &Options<'_>,
) -> Result<Conversion, ConvertError> {
    match target {
        Target::Canonical => Ok(to_canonical(source, options)),
        Target::Agent { adapter, variant } => to_agent(source, adapter, variant, options),
    }
}

fn to_canonical(source: &Source, options: &Options<'_>) -> Conversion {
    let mut manifest = source.manifest.clone();
    let mut warnings = source.warnings.clone();
    if let Some(agent) = source.agent {
        if options.keep_dialect {
            for hook in &mut manifest.hooks {
                hook.handler.dialect = Some(agent.spec.id.to_string());
            }
        } else {
            warnings.push(about_file(
                Severity::Info,
                "handler.dialect",
                format!(
                    "these programs read and answer as {} does; to run them from this manifest give each handler `dialect: {}` (or convert with `--keep-dialect`)",
                    agent.spec.name, agent.spec.id
                ),
            ));
        }
    }
    let carried = manifest.hooks.len();
    Conversion {
        document: serde_json::to_value(&manifest).unwrap_or_default(),
        warnings,
        carried,
    }
}

fn to_agent(
    source: &Source,
    adapter: &'static Adapter,
    variant: Option<&str>,
    options: &Options<'_>,
) -> Result<Conversion, ConvertError> {
    let mut warnings = source.warnings.clone();
    let validated = validate::validate(source, adapter, variant, options, &mut warnings);
    let carried = validated
        .iter()
        .filter(|hook| !hook.placements.is_empty())
        .count();
    let own = source.is_of(adapter, variant);
    if carried == 0 && !(own && source.manifest.hooks.is_empty()) {
        return Err(ConvertError::NothingLeft { warnings });
    }
    let placements: Vec<Placement> = validated
        .iter()
        .flat_map(|hook| hook.placements.clone())
        .collect();
    let document = adapter.encode_config(&source.manifest, &placements, variant);
    let differences = verify::verify(source, adapter, variant, &document, &validated, &warnings);
    if differences.is_empty() {
        Ok(Conversion {
            document,
            warnings,
            carried,
        })
    } else {
        Err(ConvertError::Unfaithful {
            differences,
            warnings,
        })
    }
}
