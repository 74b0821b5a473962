//! Entries that call a daemon on this machine instead of starting the program.
//!
//! A stopped daemon must never open a guard. So an entry becomes an http entry only
//! where the agent has a switch that blocks when the call fails, and where the body of
//! the response carries every answer; everything else still starts the program.

use std::fmt;

use anyhook_agents::spec::{EventSpec, Scope, Template};
use anyhook_model::{Handler, HandlerKind};
use anyhook_run::daemon_client;
use anyhook_util::challenge::DEFAULT_PORT;
use anyhook_util::percent;

use crate::command::{BridgeCommand, BridgeProgram};
use crate::target::{Target, scope_name};

/// How the entries of the bridge reach anyhook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum BridgeTransport {
    /// Each call starts the program.
    #[default]
    Process,
    /// The daemon at this address, where that is safe.
    Daemon { address: String },
}

impl BridgeTransport {
    /// The user's daemon at its usual address.
    pub fn daemon() -> Self {
        Self::Daemon {
            address: default_address(),
        }
    }
}

/// The canonical events that come with every tool call. Others are rare, and starting
/// the program for them costs little.
const TOOL_CALL_EVENTS: [&str; 3] = [
    "before_tool_execute",
    "after_tool_execute",
    "after_tool_batch",
];

/// Why no entry of an agent calls the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoHttpEntries {
    /// The agent starts programs only.
    NoSuchHandler,
    FailsOpen,
    /// Nothing proves to the agent that the daemon answers, and a policy wants proof.
    FailClosedPolicy,
    /// The administrator's hooks must not depend on a process of the user.
    ManagedHooks,
}

impl fmt::Display for NoHttpEntries {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NoSuchHandler => "it has no http hooks",
            Self::FailsOpen => {
                "a failed http hook lets the call through, so a stopped daemon would open every guard"
            }
            Self::FailClosedPolicy => {
                "a managed policy has `fail_closed`, and any process that listens on the port could answer for a stopped daemon"
            }
            Self::ManagedHooks => {
                "the administrator has hooks on this machine, for which no process of the user may answer"
            }
        })
    }
}

/// Who decides on this machine, besides the user.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ManagedSetup {
    /// A managed policy wants failures to block.
    pub fails_closed: bool,
    /// There are managed hooks.
    pub has_hooks: bool,
}

/// Whether the tool calls of an agent can go to a daemon.
pub(crate) fn http_entries(target: &Target, managed: ManagedSetup) -> Result<(), NoHttpEntries> {
    let handler = &target.config().handler;
    if !handler.types.contains_key("http") || !handler.has("url") {
        return Err(NoHttpEntries::NoSuchHandler);
    }
    if handler.fail_closed.is_none() {
        return Err(NoHttpEntries::FailsOpen);
    }
    if managed.fails_closed {
        return Err(NoHttpEntries::FailClosedPolicy);
    }
    if managed.has_hooks {
        return Err(NoHttpEntries::ManagedHooks);
    }
    Ok(())
}

/// Whether the entry of this event can be an http entry, if the agent has those.
pub(crate) fn is_http_event(target: &Target, event: &EventSpec) -> bool {
    let handler = &target.config().handler;
    let is_tool_call = event
        .is
        .as_deref()
        .is_some_and(|is| TOOL_CALL_EVENTS.contains(&is));
    let closes = handler.fail_closed.as_ref();
    is_tool_call
        && handler.runs(HandlerKind::Http, &event.native)
        && closes.is_some_and(|closed| closed.applies_to(&event.native))
        && answers_in_body(target, event)
}

/// Whether no answer at this event needs an exit code or standard error: an http
/// response has neither.
fn answers_in_body(target: &Target, event: &EventSpec) -> bool {
    let answers = &target.adapter.spec.answers;
    let profile = event.answer.as_ref().and_then(|name| answers.get(name));
    let is_body = |template: &Template| template.exit == 0 && template.stderr.is_none();
    profile.is_some_and(|profile| {
        // The first template of a list is the one that is written.
        let written = [
            &profile.deny,
            &profile.ask,
            &profile.approve,
            &profile.context,
            &profile.rewrite,
            &profile.message,
            &profile.stop,
        ];
        let mut written = written.into_iter().filter_map(|list| list.first());
        written.all(is_body)
    })
}

/// The handler that posts an event to a daemon. `folders` is where the user's hooks are: a
/// daemon that looks elsewhere refuses the call, and the agent blocks.
pub(crate) fn http_handler(
    address: &str,
    target: &Target,
    event: Option<&str>,
    timeout: Option<f64>,
    folders: &str,
) -> Handler {
    let agent = percent::encode(target.slug());
    let scope = scope_name(target.scope);
    let mut url = format!(
        "{}/hooks/{agent}?scope={scope}",
        address.trim_end_matches('/')
    );
    if let Some(event) = event {
        url.push_str("&event=");
        url.push_str(&percent::encode(event));
    }
    if let Some(seconds) = timeout {
        url.extend(["&timeout=".to_owned(), seconds.to_string()]);
    }
    url.extend(["&folders=", folders]);
    Handler {
        kind: HandlerKind::Http,
        url: Some(url),
        ..Handler::default()
    }
}

/// The address of an http entry as the call of the bridge that it is; `None` for any
/// other address.
pub(crate) fn parse_url(url: &str) -> Option<BridgeCommand> {
    let (address, rest) = url.split_once("/hooks/")?;
    if !daemon_client::is_local(address) || url.contains(char::is_whitespace) {
        return None;
    }
    let (agent, query) = rest.split_once('?').unwrap_or((rest, ""));
    let value = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let (_, value) = pairs.find(|(key, _)| *key == name)?;
        percent::decode(value)
    };
    Some(BridgeCommand {
        program: BridgeProgram::Daemon(address.to_owned()),
        agent: percent::decode(agent).filter(|agent| !agent.is_empty() && !agent.contains('/'))?,
        event: value("event"),
        scope: value("scope"),
        timeout: value("timeout").and_then(|seconds| seconds.parse().ok()),
    })
}

/// Where a daemon listens unless it is configured otherwise.
pub(crate) fn default_address() -> String {
    format!("http://127.0.0.1:{DEFAULT_PORT}")
}

/// The socket that a generated program asks first.
pub(crate) fn plugin_socket(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("\"socket\":")?;
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
    values.next()?.ok()
}

/// Whether a scope's files may refer to the daemon of one user.
pub fn is_personal(scope: Scope) -> bool {
    scope == Scope::User
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_daemon_on_this_machine_is_recognized() {
        let url = "http://127.0.0.1:24665/hooks/claude-code?scope=user&event=Pre%20Tool";
        let ours = parse_url(url).unwrap();
        assert_eq!(ours.agent, "claude-code");
        assert_eq!(ours.scope.as_deref(), Some("user"));
        assert_eq!(ours.event.as_deref(), Some("Pre Tool"));
        assert!(parse_url("http://[::1]:9/hooks/codex").is_some());
        for other in [
            "https://127.0.0.1:24665/hooks/claude-code",
            "http://example.com/hooks/claude-code",
            "http://127.0.0.1.example.com/hooks/claude-code",
            "http://127.0.0.1:24665/events",
            "http://127.0.0.1:24665/hooks/",
            "http://127.0.0.1:24665/hooks/a/b",
            "http://127.0.0.1:24665@example.com/hooks/claude-code",
            "curl http://127.0.0.1:24665/hooks/claude-code",
            "",
        ] {
            assert_eq!(parse_url(other), None, "{other}");
        }
    }
}
