//! The entry of one event: a command line of the program, or a call of the daemon.

use anyhook_agents::spec::{Blocking, ConfigShape, EventSpec, Scope, WindowsShell};
use anyhook_agents::{BridgeDaemon, Placement};
use anyhook_edit::Key;
use anyhook_model::hook::SPEC;
use anyhook_model::{Handler, HandlerKind, Manifest, Platform};
use anyhook_run::agent::MIN_ENTRY_TIMEOUT;
use serde_json::{Map, Value};

use super::{Installation, PlannedEntry};
use crate::command::{self, BridgeProgram, Quoting};
use crate::hook_entries;
use crate::needs::ManifestNeeds;
use crate::target::Target;
use crate::via_daemon::{self, BridgeTransport, NoHttpEntries};

impl Installation {
    pub(super) fn plan_entry(
        &self,
        event: &EventSpec,
        needs: &ManifestNeeds,
    ) -> Option<PlannedEntry> {
        let target = &self.target;
        let config = target.config();
        // A variant with its own event names has only those events.
        if !config.event_names.is_empty() && !config.event_names.contains_key(&event.native) {
            return None;
        }
        let seconds = needs.timeout_seconds(target.adapter, event);
        let stated = timeout_argument(target, seconds);
        let handler = self
            .http_handler(event, stated)
            .unwrap_or_else(|| self.command_handler(event, stated));
        let command = handler.program().unwrap_or_default().to_owned();
        let placement = Placement {
            native_event: event.native.to_string(),
            matcher: None,
            matchable: false,
            matcherless: false,
            name: Some(match config.shape {
                // Where names must be unique, the project's entry would replace the user's.
                ConfigShape::List if config.handler.unique_names && target.scope == Scope::User => {
                    format!("anyhook-user-{}", event.native)
                }
                ConfigShape::List | ConfigShape::Single => format!("anyhook-{}", event.native),
                _ => "anyhook".to_owned(),
            }),
            data: self.fail_closed_switch(event, &handler),
            handler: Handler {
                timeout: Some(seconds),
                ..handler
            },
        };
        let empty = Manifest {
            spec: SPEC.to_owned(),
            hooks: Vec::new(),
            sequential: false,
            extra: Map::new(),
        };
        let document = target
            .adapter
            .encode_config(&empty, &[placement], target.variant);
        let mut array = hook_entries::root_path(config);
        let (element, key) = element(target, &document)?;
        array.extend(key.map(Key::from));
        Some(PlannedEntry {
            native_event: event.native.to_string(),
            command,
            array,
            element,
        })
    }

    /// The handler that starts the program.
    fn command_handler(&self, event: &EventSpec, timeout: Option<f64>) -> Handler {
        let (target, program) = (&self.target, &self.program);
        let config = target.config();
        let name = needs_event_argument(target, event).then_some(event.native.as_ref());
        let line = |program: &BridgeProgram, quoting| {
            // Only a POSIX shell can search.
            let program = &match quoting {
                Quoting::Posix => program.clone(),
                Quoting::Cmd | Quoting::PowerShell => program.without_shell(),
            };
            let scope = command::scope_argument(target.scope, program);
            let mut line = command::command_line(program, target.slug(), scope, name, quoting);
            if let Some(seconds) = timeout {
                line.extend([" --timeout ".to_owned(), seconds.to_string()]);
            }
            if quoting == Quoting::PowerShell && denies_by_exit_code(target, event) {
                line.push_str(command::POWERSHELL_EXIT);
            }
            line
        };
        let windows = match target.adapter.spec.launch.windows {
            WindowsShell::PowerShell => Quoting::PowerShell,
            WindowsShell::Cmd => Quoting::Cmd,
            WindowsShell::GitBash => Quoting::Posix,
        };
        let here = if cfg!(windows) {
            windows
        } else {
            Quoting::Posix
        };
        let command = line(program, here);
        let mut fields = config.handler.fields.iter();
        let has_command =
            fields.any(|field| field.to == "command" && field.at == "/command" && !field.read_only);
        // A shared file is read on Windows too, where the search would not start.
        let is_for_posix = *program == BridgeProgram::Searched && cfg!(unix);
        let needs_windows =
            config.handler.has("platform.windows") && (is_for_posix || !has_command);
        Handler {
            command: Some(command),
            platform: Platform {
                windows: needs_windows.then(|| line(&program.without_shell(), windows)),
                ..Platform::default()
            },
            ..Handler::default()
        }
    }

    /// The handler that calls the daemon, where that is wanted and safe.
    fn http_handler(&self, event: &EventSpec, timeout: Option<f64>) -> Option<Handler> {
        let BridgeTransport::Daemon { address } = &self.transport else {
            return None;
        };
        via_daemon::http_entries(&self.target, self.managed).ok()?;
        if !via_daemon::is_http_event(&self.target, event) {
            return None;
        }
        let name = needs_event_argument(&self.target, event).then_some(event.native.as_ref());
        Some(via_daemon::http_handler(
            address,
            &self.target,
            name,
            timeout,
            &self.folders,
        ))
    }

    /// What makes the agent block when an entry fails: always for a daemon, which may be
    /// stopped, and where a policy wants it.
    fn fail_closed_switch(&self, event: &EventSpec, handler: &Handler) -> Map<String, Value> {
        let is_wanted = handler.kind == HandlerKind::Http
            || (self.managed.fails_closed && event.blocking == Blocking::Prevent);
        let closed = self.target.config().handler.fail_closed.as_ref();
        let closed = closed.filter(|closed| is_wanted && closed.applies_to(&event.native));
        let switch = closed.map(|closed| {
            let key = closed.at.trim_start_matches('/');
            (key.to_owned(), closed.value.clone())
        });
        switch.into_iter().collect()
    }

    /// The daemon that a generated program asks first.
    pub(super) fn plugin_daemon(&self) -> Option<BridgeDaemon<'_>> {
        let is_wanted = self.transport != BridgeTransport::Process && cfg!(unix);
        let is_wanted = is_wanted && !self.managed.has_hooks;
        let socket = self.socket.to_str().filter(|_| is_wanted)?;
        Some(BridgeDaemon {
            socket,
            folders: &self.folders,
        })
    }

    /// The events whose entries call the daemon.
    pub(crate) fn daemon_events(&self) -> Vec<&str> {
        let entries = self.entries.iter();
        let is_daemon = |entry: &&PlannedEntry| via_daemon::parse_url(&entry.command).is_some();
        entries
            .filter(is_daemon)
            .map(|entry| entry.native_event.as_str())
            .collect()
    }

    /// Whether the daemon is asked at all, or why not; `None` if that is not wanted.
    pub(crate) fn daemon_use(&self) -> Option<Result<(), NoHttpEntries>> {
        let is_plugin = self.target.shape() == ConfigShape::Plugin;
        match self.transport {
            BridgeTransport::Process => None,
            BridgeTransport::Daemon { .. } if is_plugin => Some(if self.managed.has_hooks {
                Err(NoHttpEntries::ManagedHooks)
            } else {
                Ok(())
            }),
            BridgeTransport::Daemon { .. } => {
                Some(via_daemon::http_entries(&self.target, self.managed))
            }
        }
    }
}

/// The timeout of an entry, if it is longer than usual, so that the entry has to state
/// it.
pub(super) fn timeout_argument(target: &Target, seconds: f64) -> Option<f64> {
    let has_timeout = target.config().handler.has("timeout");
    (has_timeout && seconds > MIN_ENTRY_TIMEOUT.as_secs_f64()).then_some(seconds)
}

/// Whether the exit code of a hook decides at an event.
fn denies_by_exit_code(target: &Target, event: &EventSpec) -> bool {
    let answers = &target.adapter.spec.answers;
    let profile = event.answer.as_ref().and_then(|name| answers.get(name));
    let templates = profile.map(|profile| [&profile.deny, &profile.ask, &profile.stop]);
    let mut templates = templates.into_iter().flatten().flatten();
    templates.any(|template| template.exit != 0)
}

/// Whether the payload does not, or not always, name the event.
fn needs_event_argument(target: &Target, event: &EventSpec) -> bool {
    target.adapter.spec.payload.event_at.is_none()
        || !event.marks.is_empty()
        || target.shape() == ConfigShape::Scripts
}

/// The element of a document with a single entry, and the key of its array.
fn element(target: &Target, document: &Value) -> Option<(Value, Option<String>)> {
    let config = target.config();
    let has_events = !matches!(config.shape, ConfigShape::List | ConfigShape::Single);
    match hook_entries::hooks_root(config, document)? {
        Value::Array(items) => Some((items.first()?.clone(), None)),
        Value::Object(map) if has_events => {
            let (key, list) = map.iter().find(|(key, value)| {
                hook_entries::is_event_key(config, key, value) && value.is_array()
            })?;
            Some((list.as_array()?.first()?.clone(), Some(key.clone())))
        }
        _ => None,
    }
}
