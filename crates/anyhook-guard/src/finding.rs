//! What a guard answers, and what is wrong with a guard's own configuration.

use anyhook_model::{Decision, Diagnostic, HookResponse, SourceText};
use serde::Serialize;

/// A guard objects to a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GuardFinding {
    /// `Deny` or `Ask`; `Allow` only if it warns.
    pub decision: Decision,
    /// The guard's name.
    pub guard: String,
    /// The rule of the guard, stable, for scripts and exceptions.
    pub rule: String,
    /// For the model and the user: what is wrong and what to do instead.
    pub reason: String,
    /// The command or the path that the rule is about.
    pub subject: String,
    /// The user is warned, and the call goes on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub only_warns: bool,
}

impl GuardFinding {
    pub fn to_response(&self) -> HookResponse {
        if self.only_warns {
            return HookResponse {
                system_message: Some(self.reason.clone()),
                ..HookResponse::default()
            };
        }
        HookResponse {
            decision: Some(self.decision),
            reason: Some(self.reason.clone()),
            ..HookResponse::default()
        }
    }
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum GuardError {
    /// A wrong guard name or option.
    #[error("{message}")]
    Usage {
        message: String,
        /// What to write instead.
        help: Option<String>,
    },
    /// A rules file that cannot be used.
    #[error("{}", render_findings(.file, .text, .findings))]
    Rules {
        file: String,
        text: String,
        findings: Vec<Diagnostic>,
    },
}

impl GuardError {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage {
            message: message.into(),
            help: None,
        }
    }

    pub(crate) fn usage_help(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Usage {
            message: message.into(),
            help: Some(help.into()),
        }
    }
}

fn render_findings(file: &str, text: &str, findings: &[Diagnostic]) -> String {
    let source = SourceText::new(file, text);
    let rendered: String = findings
        .iter()
        .map(|finding| source.render(finding, false))
        .collect();
    rendered.trim_end().to_owned()
}
