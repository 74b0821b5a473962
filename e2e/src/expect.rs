//! What is expected of a client (`clients/<slug>/expect.toml`): the events of a session, and what the client
//! cannot do and why. A check that fails as expected is a *cannot*; one that unexpectedly holds fails, so that a
//! client's new ability is noticed.

use std::collections::BTreeMap;

use anyhook_model::Record;
use serde::Deserialize;

use crate::report::{Check, Verdict};

/// `clients/<slug>/expect.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expectations {
    /// Why anyhook is not installed into this client at all.
    pub no_adapter: Option<String>,
    pub install: Install,
    /// A deny ends the whole run: each deny needs a session of its own.
    pub deny_ends_run: bool,
    /// Sub-agents have session ids of their own.
    pub subagent_session: bool,
    /// The event of the prompt comes again after every tool call.
    pub repeats_prompt: bool,
    pub events: Events,
    /// Steps whose tool has another canonical name than the step suggests; empty when hooks do not see it.
    pub tools: BTreeMap<String, String>,
    pub openhook: OpenHook,
    /// How the client itself says how many tokens it used.
    pub tokens: Option<TokenReport>,
    /// By the name of the check.
    pub cannot: BTreeMap<String, Cannot>,
    pub sabotage: Vec<Sabotage>,
}

/// How the bridge is installed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Install {
    /// More words for `anyhook install`.
    pub args: Vec<String>,
    /// Words to leave out of the client's command line because the installation replaces them.
    pub instead_of: Vec<String>,
}

/// Events of the main session, by the client's own name, with the canonical one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Events {
    pub always: BTreeMap<String, String>,
    /// May or may not arrive: they depend on timing or on the machine.
    pub sometimes: BTreeMap<String, String>,
    /// Arrive without a session id.
    pub sessionless: Vec<String>,
}

/// What the OpenHook stream of a session can be.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OpenHook {
    /// The client keeps no transcript that could be named.
    pub no_transcript: bool,
    /// Requirements of level 2 that cannot be met, by their codes.
    pub lacks: Vec<String>,
    pub why: String,
}

/// Where the client's output says how many tokens it used. Every line of JSON with this
/// `type` counts, and so does every pointer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenReport {
    #[serde(rename = "type")]
    pub line_type: String,
    /// Cached tokens included.
    pub input: Vec<String>,
    pub cached: Vec<String>,
    pub output: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cannot {
    /// The fact.
    pub why: String,
    /// The field that the journal must report as lost; none if the client never calls the hook.
    pub lost: Option<String>,
}

/// A rendering that is broken on purpose, and the checks that must then fail.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sabotage {
    pub name: String,
    /// In what the bridge answers.
    pub answer: Option<Replace>,
    /// In the file that the installation wrote.
    pub installed: Option<ReplaceIn>,
    pub red: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replace {
    pub from: String,
    pub to: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplaceIn {
    /// Below the project.
    pub file: String,
    pub from: String,
    pub to: String,
}

/// The result of a check: an error says what was seen instead.
pub type CheckResult = std::result::Result<(), String>;

impl Expectations {
    /// The verdict on a result, given what is expected. `records` show whether a loss was reported.
    pub fn judge(&self, name: &str, result: CheckResult, records: &[Record]) -> Check {
        let verdict = match (result, self.cannot.get(name)) {
            (Ok(()), None) => Verdict::Passed,
            (Err(seen), None) => Verdict::Failed(seen),
            (Ok(()), Some(_)) => {
                Verdict::failed("it holds now: remove it from `cannot` in expect.toml")
            }
            (Err(seen), Some(cannot)) => match &cannot.lost {
                Some(field) if !is_reported(field, records) => Verdict::failed(format!(
                    "{seen}, and the loss of `{field}` is not in the journal"
                )),
                _ => Verdict::Cannot(cannot.why.clone()),
            },
        };
        Check::new(name, verdict)
    }

    /// The canonical tool of a step, `None` when hooks do not see the step.
    pub fn tool(&self, role: &str) -> Option<&str> {
        let usual = match role {
            "shell" => "shell",
            "write" => "file_write",
            "read" => "file_read",
            "edit" => "file_edit",
            _ => return None,
        };
        let name = self.tools.get(role).map_or(usual, String::as_str);
        (!name.is_empty()).then_some(name)
    }
}

fn is_reported(field: &str, records: &[Record]) -> bool {
    records
        .iter()
        .flat_map(|record| &record.lost)
        .any(|loss| loss.field == field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhook_model::Loss;

    fn expect() -> Expectations {
        let cannot = |lost: Option<&str>| Cannot {
            why: "so it is".to_owned(),
            lost: lost.map(str::to_owned),
        };
        Expectations {
            cannot: [
                ("mute".to_owned(), cannot(None)),
                ("loss".to_owned(), cannot(Some("context"))),
            ]
            .into(),
            ..Expectations::default()
        }
    }

    #[test]
    fn an_ability_that_was_denied_fails() {
        let check = expect().judge("mute", Ok(()), &[]);
        assert!(matches!(check.verdict, Verdict::Failed(_)));
        let check = expect().judge("mute", Err("seen".to_owned()), &[]);
        assert_eq!(check.verdict, Verdict::Cannot("so it is".to_owned()));
    }

    #[test]
    fn a_silent_loss_fails() {
        let record = Record {
            lost: vec![Loss::new("context", "no way")],
            ..Record::default()
        };
        let check = |records: &[Record]| expect().judge("loss", Err("seen".to_owned()), records);
        assert!(matches!(check(&[]).verdict, Verdict::Failed(_)));
        assert!(matches!(check(&[record]).verdict, Verdict::Cannot(_)));
    }
}
