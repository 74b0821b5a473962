//! What a conversion tells its user.

use anyhook_agents::config::kept;
use anyhook_model::{Hook, Strategy};
use serde::Serialize;
use serde_json::{Map, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing is lost that a hook does.
    Info,
    /// The hook does less, or does it otherwise.
    Warning,
    /// A hook that protects does so less than before.
    Critical,
    /// The hook cannot be carried at all, or could never fire.
    Error,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
            Self::Error => "error",
        }
    }
}

/// One thing that the target does not carry, and what was done about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// Position of the hook in the source, from 1; absent: the whole file.
    pub hook: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The manifest's field, such as `handler.env`.
    pub field: String,
    pub capability: Option<&'static str>,
    pub strategy: Option<Strategy>,
    pub severity: Severity,
    pub message: String,
}

/// What `provider_data` of one agent says that a person would miss; marks of
/// the place in its file are not that.
pub(crate) fn own_words(hook: &Hook, agent: &str) -> Vec<String> {
    let data = hook.provider_data.get(agent).and_then(Value::as_object);
    let mut words = Vec::new();
    for (key, value) in data.into_iter().flatten() {
        match key.as_str() {
            kept::GROUP => {
                let keys = value.as_object().into_iter().flat_map(Map::keys);
                words.extend(keys.map(|key| format!("`{key}`")));
            }
            // Spelled otherwise, but carried, unless it was tested against
            // something else than a tool's name.
            kept::MATCHER
                if hook.matcher.is_none()
                    || data.is_some_and(|data| data.contains_key(kept::EVENT)) =>
            {
                words.push(format!("its matcher {value}"));
            }
            kept::EVENT => words.push(format!("its event {value}")),
            mark if mark.starts_with('$') => {}
            key => words.push(format!("`{key}`")),
        }
    }
    words
}

/// Collects the warnings of one hook.
pub(crate) struct HookReport<'a> {
    pub warnings: &'a mut Vec<Warning>,
    pub hook: usize,
    pub name: Option<String>,
}

impl HookReport<'_> {
    pub fn say(&mut self, severity: Severity, field: &str, message: impl Into<String>) {
        self.push(severity, field, None, None, message.into());
    }

    pub fn capability(
        &mut self,
        severity: Severity,
        field: &str,
        capability: &'static str,
        strategy: Strategy,
        message: impl Into<String>,
    ) {
        self.push(
            severity,
            field,
            Some(capability),
            Some(strategy),
            message.into(),
        );
    }

    fn push(
        &mut self,
        severity: Severity,
        field: &str,
        capability: Option<&'static str>,
        strategy: Option<Strategy>,
        message: String,
    ) {
        self.warnings.push(Warning {
            hook: Some(self.hook),
            name: self.name.clone(),
            field: field.to_owned(),
            capability,
            strategy,
            severity,
            message,
        });
    }
}

/// A warning about the whole file.
pub(crate) fn about_file(severity: Severity, field: &str, message: impl Into<String>) -> Warning {
    Warning {
        hook: None,
        name: None,
        field: field.to_owned(),
        capability: None,
        strategy: None,
        severity,
        message: message.into(),
    }
}
