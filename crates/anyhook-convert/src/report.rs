//! Warnings of a conversion.

use anyhook_agents::config::hook_keys;
use anyhook_agents::spec::Blocking;
use anyhook_model::{Hook, Strategy};
use serde::Serialize;
use serde_json::{Map, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WarningSeverity {
    /// The hook does the same as before.
    Info,
    /// The hook does less, or does it differently.
    Warning,
    /// A hook that protects something protects it less than before.
    Critical,
    /// The hook cannot be carried at all, or could never fire.
    Error,
}

impl WarningSeverity {
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
pub struct ConversionWarning {
    /// Position of the hook in the source, from 1; absent: the whole file.
    pub hook: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The hook by its event, matcher and program, as in `PreToolUse[Bash] guard.sh`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The manifest's field, such as `handler.env`.
    pub field: String,
    pub capability: Option<&'static str>,
    pub strategy: Option<Strategy>,
    pub severity: WarningSeverity,
    pub message: String,
}

/// Parts of one agent's `provider_data` that a user would miss. Keys about the
/// position of the hook in its file are not among them.
pub(crate) fn agent_specific_parts(hook: &Hook, agent: &str) -> Vec<String> {
    let data = hook.provider_data.get(agent).and_then(Value::as_object);
    let mut words = Vec::new();
    for (key, value) in data.into_iter().flatten() {
        match key.as_str() {
            hook_keys::GROUP_KEYS => {
                let keys = value.as_object().into_iter().flat_map(Map::keys);
                words.extend(keys.map(|key| format!("`{key}`")));
            }
            // Carried in another spelling, unless it is matched against something
            // other than a tool's name.
            hook_keys::NATIVE_MATCHER
                if hook.matcher.is_none()
                    || data.is_some_and(|data| data.contains_key(hook_keys::NATIVE_EVENT)) =>
            {
                words.push(format!("its matcher {value}"));
            }
            hook_keys::NATIVE_EVENT => words.push(format!("its event {value}")),
            mark if mark.starts_with('$') => {}
            key => words.push(format!("`{key}`")),
        }
    }
    words
}

/// Every field of a hook, including any that is added to the type later.
pub(crate) fn hook_as_json(hook: &Hook) -> Map<String, Value> {
    match serde_json::to_value(hook) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// Collects the warnings of one hook.
pub(crate) struct HookWarnings<'a> {
    pub list: &'a mut Vec<ConversionWarning>,
    pub hook: usize,
    pub name: Option<String>,
}

impl HookWarnings<'_> {
    pub(crate) fn warn(
        &mut self,
        severity: WarningSeverity,
        field: &str,
        message: impl Into<String>,
    ) {
        self.list.push(ConversionWarning {
            hook: Some(self.hook),
            name: self.name.clone(),
            ..file_warning(severity, field, message)
        });
    }

    pub(crate) fn info(&mut self, field: &str, message: impl Into<String>) {
        self.warn(WarningSeverity::Info, field, message);
    }

    pub(crate) fn warning(&mut self, field: &str, message: impl Into<String>) {
        self.warn(WarningSeverity::Warning, field, message);
    }

    pub(crate) fn capability(
        &mut self,
        severity: WarningSeverity,
        field: &str,
        (capability, strategy): (&'static str, Strategy),
        message: String,
    ) {
        self.warn(severity, field, message);
        if let Some(warning) = self.list.last_mut() {
            warning.capability = Some(capability);
            warning.strategy = Some(strategy);
        }
    }
}

/// A warning about the whole file.
pub(crate) fn file_warning(
    severity: WarningSeverity,
    field: &str,
    message: impl Into<String>,
) -> ConversionWarning {
    ConversionWarning {
        hook: None,
        name: None,
        label: None,
        field: field.to_owned(),
        capability: None,
        strategy: None,
        severity,
        message: message.into(),
    }
}

/// The severity of leaving out the entries of an agent that have no canonical form:
/// critical if one of them may be a guard.
pub(crate) fn unread_severity(agent: &str, data: &Value) -> WarningSeverity {
    let agent = anyhook_agents::get(agent);
    let may_block = |entry: &Value| {
        let event = entry.get("event").and_then(Value::as_str);
        let event = event.and_then(|event| agent?.event_by_native(event));
        let unread = entry.get("handler").or_else(|| entry.get("entry"));
        let unread = unread.unwrap_or(&Value::Null);
        let handlers = unread.get("hooks").and_then(Value::as_array);
        let mut handlers = handlers
            .map_or(std::slice::from_ref(unread), Vec::as_slice)
            .iter();
        event.is_some_and(|event| event.blocking != Blocking::Observe)
            && handlers.any(|handler| handler.get("type").is_some_and(Value::is_string))
    };
    let unread = data.get("unread").and_then(Value::as_array);
    if unread.is_some_and(|unread| unread.iter().any(may_block)) {
        WarningSeverity::Critical
    } else {
        WarningSeverity::Info
    }
}

/// Leaves out hooks that no manifest can have: those with nothing to run.
pub(crate) fn leave_out_incomplete(hooks: &mut Vec<Hook>, warnings: &mut Vec<ConversionWarning>) {
    let mut position = 0;
    hooks.retain(|hook| {
        position += 1;
        let is_complete = hook.handler.program().is_some();
        if !is_complete {
            let severity = if hook.blocking {
                WarningSeverity::Critical
            } else {
                WarningSeverity::Warning
            };
            let message = "it has nothing to run that a manifest can state: left out";
            warnings.push(ConversionWarning {
                hook: Some(position),
                name: hook.name.clone(),
                ..file_warning(severity, "hook", message)
            });
        }
        is_complete
    });
}
