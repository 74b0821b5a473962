//! Checks the way through a daemon: that the user's daemon takes the calls of an entry,
//! and that a deny of this program reaches the agent in an http response.
//!
//! The user's daemon gets no event, because it would run the user's hooks. The deny is
//! tested with a daemon of its own in the probe's sandbox.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhook_model::{Answer, HookEvent};
use anyhook_run::daemon_client;
use anyhook_run::run::http::{self, HttpRequest};
use serde_json::Value;

use super::DoctorFinding;
use super::probe::ProbeCall;

pub(super) const DAEMON_AWAY: &str = "daemon-away";
const DAEMON_FOR_MANAGED: &str = "daemon-for-managed-hooks";
pub(super) const DAEMON_OTHER_HOOKS: &str = "daemon-other-hooks";

/// The administrator's hooks must not depend on a process of the user.
fn decides_for_managed(address: &str) -> DoctorFinding {
    let what = format!("calls go to `{address}`, but the administrator has hooks here");
    DoctorFinding::error(DAEMON_FOR_MANAGED, what)
        .why("any process of yours that answers there would decide in place of those hooks")
        .remedy("run `anyhook install --scope user --via process`")
}

const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// A daemon in the probe's sandbox, started when it is first needed.
#[derive(Default)]
pub(super) struct SandboxDaemon {
    running: Option<(Child, String)>,
}

impl SandboxDaemon {
    /// A problem with an entry that posts to `url`.
    pub(super) fn probe(&mut self, call: &ProbeCall<'_>, url: &str) -> Option<DoctorFinding> {
        if call.machine.dirs.has_managed_manifest() {
            return Some(decides_for_managed(url));
        }
        // Such a daemon refuses the calls.
        if let Some(why) = daemon_client::problem_with_hooks(url, &call.machine.dirs) {
            return Some(other_hooks(url, why));
        }
        if let Err(why) = daemon_client::check_http_entry(url, &call.machine.dirs) {
            let name = &call.target.adapter.spec.name;
            let what = format!("`{url}` gets no answer: {why}");
            return Some(
                DoctorFinding::error(DAEMON_AWAY, what)
                    .why(format!("{name} blocks every tool call"))
                    .remedy("start `anyhook serve`, or run `anyhook install --scope user --via process`"),
            );
        }
        let (_, route) = url.split_once("/hooks/")?;
        self.probe_deny(call, &format!("/hooks/{}", without_folders(route)))
    }

    /// A problem with the way of a generated program through the socket of a daemon.
    pub(super) fn probe_socket(
        &mut self,
        call: &ProbeCall<'_>,
        socket: &Path,
    ) -> Vec<DoctorFinding> {
        if call.machine.dirs.has_managed_manifest() {
            return vec![decides_for_managed(&socket.display().to_string())];
        }
        let what = format!("no daemon answers at `{}`", socket.display());
        let away = (!daemon_client::is_on_socket(socket)).then(|| {
            DoctorFinding::new(super::Severity::Info, DAEMON_AWAY, what)
                .why("hooks run all the same: each call starts the program")
                .remedy("start `anyhook serve`")
        });
        let others = daemon_client::problem_with_hooks_on_socket(socket, &call.machine.dirs);
        let others = others.map(|why| other_hooks(&socket.display().to_string(), why));
        let route = format!("/hooks/{}", call.target.slug());
        away.into_iter()
            .chain(others)
            .chain(self.probe_deny(call, &route))
            .collect()
    }

    /// A problem if a deny does not reach the agent through a daemon of this program.
    fn probe_deny(&mut self, call: &ProbeCall<'_>, route: &str) -> Option<DoctorFinding> {
        let (payload, decoded) = call.payload()?;
        let failed = |why: String| {
            let what = format!("a daemon of this program does not run hooks: {why}");
            DoctorFinding::error("daemon-dead", what)
                .why("what a guard denies could not be tested")
                .remedy("run `anyhook serve` and read what it prints")
        };
        let address = match self.address(call, &decoded) {
            Ok(address) => address,
            Err(why) => return Some(failed(why)),
        };
        let posted = http::send(&HttpRequest {
            url: format!("{address}{route}"),
            headers: Vec::new(),
            body: payload.to_string().into_bytes(),
            timeout: ANSWER_TIMEOUT,
            proxy: None,
            ignores_env: true,
        });
        match posted {
            Err(why) => Some(failed(why)),
            Ok(response) => {
                let answer = Answer {
                    stdout: response.text,
                    ..Answer::default()
                };
                call.check_deny(&decoded, &answer)
            }
        }
    }

    fn address(&mut self, call: &ProbeCall<'_>, event: &HookEvent) -> Result<String, String> {
        if let Some((_, address)) = &self.running {
            return Ok(address.clone());
        }
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let variables = call
            .sandbox
            .environment(call.machine, call.target.adapter, event);
        let mut child = Command::new(program)
            .args(["serve", "--json", "--listen", "127.0.0.1:0"])
            .envs(variables)
            .current_dir(call.sandbox.project())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut line = String::new();
        let read = child
            .stdout
            .take()
            .map(|stdout| BufReader::new(stdout).read_line(&mut line));
        let started: Value = serde_json::from_str(&line).unwrap_or_default();
        let address = started
            .get("url")
            .and_then(Value::as_str)
            .map(str::to_owned);
        self.running = Some((child, address.clone().unwrap_or_default()));
        address.ok_or_else(|| format!("it did not start ({read:?})"))
    }
}

/// The route as a daemon with other folders takes it too.
fn without_folders(route: &str) -> String {
    let (path, query) = route.split_once('?').unwrap_or((route, ""));
    let kept = query
        .split('&')
        .filter(|pair| !pair.starts_with("folders="));
    format!("{path}?{}", kept.collect::<Vec<_>>().join("&"))
}

/// The daemon that agents ask does not run this user's hooks.
fn other_hooks(address: &str, why: &str) -> DoctorFinding {
    let what = format!("the daemon at `{address}` does not run your hooks: {why}");
    DoctorFinding::error(DAEMON_OTHER_HOOKS, what)
        .why("your guards are not asked")
        .remedy("stop that daemon, and start `anyhook serve` as you start your agent")
}

impl Drop for SandboxDaemon {
    fn drop(&mut self) {
        if let Some((child, _)) = &mut self.running {
            let _gone_already = child.kill();
            let _reaped = child.wait();
        }
    }
}
