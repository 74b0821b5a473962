//! `anyhook run`: the command that every tool call of an agent starts.
//!
//! It parses its few arguments itself, because an argument parser takes 0.25 ms,
//! a quarter of a run. It is the only module that reads stdin, writes stdout and
//! stderr, and handles signals. Wrong usage exits with 1, not with 2: to most
//! agents 2 means "block".

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read, Write};
use std::time::{Duration, Instant};

use anyhook_model::{Answer, HookEvent};

use crate::agent::failure::DecodeFailure;
use crate::agent::{self, Agent, DecodedCall, adapter};
use crate::call;
use crate::config::folders::EventFolders;
use crate::daemon_client::{self, DaemonRequest, ServerProblem};
use crate::engine::{self, Engine, EventOptions};
use crate::record::duplicate::EntryName;
use crate::record::session_folders;
use crate::run::exec::Cancel;
use crate::run::guard;
use crate::run::supervise;

/// A larger payload is an error.
const MAX_PAYLOAD_BYTES: u64 = 64 * 1024 * 1024;

/// What most agents take for a deny.
const BLOCKING_EXIT: i32 = 2;

/// The reason of a deny that may be in a daemon's answer.
const UNDELIVERED: &str = "anyhook: the answer could not be written";

const USAGE: &str = "anyhook run [--agent NAME] [--event NAME] [--timeout SECONDS] \
                     [--server [URL] [--fallback local|open]] < payload";

/// What happens when the daemon does not answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Fallback {
    /// The hooks run in this process.
    #[default]
    Local,
    /// No hook runs, and the user gets a message.
    Open,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Arguments {
    agent: Option<String>,
    event: Option<String>,
    supervise: bool,
    /// The daemon that handles the call instead of this process; empty for this user's own.
    server: Option<String>,
    fallback: Fallback,
    /// How long the agent waits, where its entry gives more time than entries usually have.
    timeout: Option<Duration>,
    /// Distinguishes two entries that name the same program.
    scope: Option<String>,
    /// Ignored: a configuration written by a newer version must not break the agent.
    unknown: Vec<String>,
}

impl Arguments {
    fn parse(args: impl Iterator<Item = OsString>) -> Self {
        let mut parsed = Self::default();
        let mut args = args
            .map(|arg| arg.to_string_lossy().into_owned())
            .peekable();
        while let Some(arg) = args.next() {
            let (name, value) = match arg.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (arg, None),
            };
            let mut next_value = || value.clone().or_else(|| args.next());
            match name.as_str() {
                "--agent" => parsed.agent = next_value(),
                "--event" => parsed.event = next_value(),
                "--supervise" => parsed.supervise = true,
                "--scope" => parsed.scope = next_value(),
                "--timeout" => parsed.timeout = next_value().as_deref().and_then(seconds),
                "--server" => {
                    let address = value.or_else(|| args.next_if(|next| !next.starts_with("--")));
                    parsed.server = Some(address.unwrap_or_default());
                }
                "--fallback" => match next_value().as_deref() {
                    Some("local") => parsed.fallback = Fallback::Local,
                    Some("open") => parsed.fallback = Fallback::Open,
                    other => parsed.unknown.push(other.unwrap_or(&name).to_owned()),
                },
                _ => parsed.unknown.push(name),
            }
        }
        parsed
    }

    /// How long the agent waits for the answer.
    fn answer_limit(&self) -> Duration {
        self.timeout.unwrap_or(agent::MIN_ENTRY_TIMEOUT)
    }

    /// How the agent's config names this program, as far as it differs between
    /// the entries of one agent.
    fn entry_name(&self) -> EntryName {
        let program = std::env::args_os().next().unwrap_or_default();
        let scope = self.scope.as_deref().unwrap_or_default();
        EntryName {
            command: format!("{} {scope}", program.to_string_lossy()),
            agent: self.agent.clone().unwrap_or_default(),
        }
    }
}

fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|it| !it.is_zero())
}

/// Runs the command with the arguments after `run`; returns the exit code.
pub fn main(args: impl Iterator<Item = OsString>) -> i32 {
    let started = Instant::now();
    let arguments = Arguments::parse(args);
    if io::stdin().is_terminal() {
        write_to(&mut io::stderr(), &format!("usage: {USAGE}\n"));
        return 1;
    }
    let engine = Engine::from_env();
    let (payload, read) = read_payload();
    if arguments.supervise {
        let done = read.and_then(|()| supervise::supervise(&engine, &payload));
        return i32::from(done.is_err());
    }
    let (entry, limit) = (arguments.entry_name(), arguments.answer_limit());
    let (agent, why) = match agent::resolve(arguments.agent.as_deref(), &payload) {
        Ok(found) => found,
        Err(message) => {
            write_to(&mut io::stderr(), &format!("anyhook: {message}\n"));
            // Any event may be behind this, also one that a guard would deny.
            let blocks = !engine.off && engine.fails_closed();
            return if blocks { BLOCKING_EXIT } else { 1 };
        }
    };
    log_debug(|| format!("agent {} ({why})", agent.slug()));
    if !arguments.unknown.is_empty() {
        log_debug(|| format!("ignored arguments: {}", arguments.unknown.join(" ")));
    }
    let event = arguments.event.as_deref();
    let mut server_problem = None;
    if let (Some(server), Ok(())) = (&arguments.server, &read)
        && !engine.off
        && !engine.decides_itself()
    {
        let request = DaemonRequest {
            agent: agent.slug(),
            event,
            payload: &payload,
            unattended: !adapter::is_attended(agent.slug()),
            entry: &entry,
            answer_limit: limit,
        };
        match daemon_client::send(server, &engine.dirs, &request) {
            Ok(answer) => {
                let is_delivered = deliver(&answer);
                let refusal = (!is_delivered).then_some(UNDELIVERED);
                return exit_code(&answer, is_delivered, refusal);
            }
            Err(problem) => {
                log_debug(|| problem.to_string());
                server_problem = Some(problem);
            }
        }
    }
    let decoded = read
        .and_then(|()| agent.decode(&payload, event))
        .map(DecodedCall::or_current_dir);
    match (decoded, server_problem) {
        (Ok(decoded), Some(problem)) if arguments.fallback == Fallback::Open => {
            answer_without_hooks(&engine, &*agent, decoded.event, &problem.to_string())
        }
        (Ok(decoded), problem) => {
            let options = EventOptions {
                entry: Some(entry),
                answer_limit: Some(limit.saturating_sub(started.elapsed())),
                ..EventOptions::default()
            };
            dispatch(&engine, &*agent, decoded, options, problem)
        }
        (Err(why), _) => {
            let failure = DecodeFailure::new(&engine, &*agent, &payload, event, &why);
            let refusal = failure.blocks.then_some(failure.message.as_str());
            let exit = write_answer(&failure.answer, refusal);
            engine.record_failure(failure.event, &failure.message, failure.answer);
            exit
        }
    }
}

fn dispatch(
    engine: &Engine,
    agent: &dyn Agent,
    decoded: DecodedCall,
    options: EventOptions,
    server_problem: Option<ServerProblem>,
) -> i32 {
    let (notice, warning) = match server_problem {
        Some(problem @ ServerProblem::Untrusted(_)) => (Some(problem.to_string()), None),
        problem => (None, problem.map(|problem| problem.to_string())),
    };
    answer_panics(&decoded.event);
    // For the calls of this session that only a daemon hears of; tool calls are too many.
    if decoded.event.tool_name().is_none() {
        let folders = EventFolders::from_event(&decoded.event, true);
        session_folders::add(&engine.dirs, &decoded.event, &folders, true);
    }
    let options = EventOptions {
        notice,
        listen: Some(listen_for_signals),
        owns_process: true,
        ..options
    };
    let mut is_delivered = None;
    let reply = call::answer(engine, agent, decoded, &options, warning, |answer| {
        is_delivered = Some(deliver(answer));
    });
    // Nothing was sent, because the call was cancelled.
    let Some(is_delivered) = is_delivered else {
        return 128 + 15;
    };
    let reason = reply.response.reason.as_deref().unwrap_or_default();
    let refusal = reply.response.is_deny().then_some(reason);
    exit_code(&reply.answer, is_delivered, refusal)
}

/// A panic ends this program, and then most agents run the call unguarded, without a
/// word to the user. No panic is known; should there be one, the agent gets the answer to a
/// failure of anyhook, or to one of the guard that was judging.
#[doc(hidden)]
pub fn answer_panics(event: &HookEvent) {
    let event = HookEvent {
        event: event.event.clone(),
        source: event.source.clone(),
        native_event: event.native_event.clone(),
        session_id: event.session_id.clone(),
        cwd: event.cwd.clone(),
        ..HookEvent::default()
    };
    std::panic::set_hook(Box::new(move |panic| {
        let engine = Engine::from_env();
        let blocks = guard::blocks_if_it_panics() || engine.fails_closed();
        let block = blocks && engine::can_prevent(&event);
        let Ok((agent, _)) = agent::resolve(Some(&event.source), b"") else {
            return;
        };
        let place = panic.location().map(ToString::to_string);
        let message = format!(
            "anyhook: no hook has decided: anyhook itself failed, at {}",
            place.unwrap_or_default()
        );
        let answer = agent.failure(Some(&event.native_event), &message, block);
        let exit = write_answer(&answer, block.then_some(message.as_str()));
        engine.record_failure(event.clone(), &message, answer);
        std::process::exit(exit);
    }));
}

/// `--fallback open`: the agent goes on without hooks, unless the managed
/// policy is `fail_closed`.
fn answer_without_hooks(engine: &Engine, agent: &dyn Agent, event: HookEvent, why: &str) -> i32 {
    let message = format!("anyhook: no hook has run: {why}");
    let block = engine::can_prevent(&event) && engine.fails_closed();
    let answer = agent.failure(Some(&event.native_event), &message, block);
    let exit = write_answer(&answer, block.then_some(message.as_str()));
    engine.record_failure(event, &message, answer);
    exit
}

/// The payload as far as it could be read, and the error if there was one.
fn read_payload() -> (Vec<u8>, Result<(), String>) {
    let mut payload = Vec::new();
    let read = io::stdin()
        .lock()
        .take(MAX_PAYLOAD_BYTES + 1)
        .read_to_end(&mut payload);
    let result = match read {
        Ok(count) if count as u64 > MAX_PAYLOAD_BYTES => {
            Err("the payload is larger than 64 MiB".to_owned())
        }
        Ok(_) => Ok(()),
        Err(error) => Err(format!("the payload cannot be read: {error}")),
    };
    (payload, result)
}

/// Returns the exit code. `refusal` is the reason of an answer that denies.
fn write_answer(answer: &Answer, refusal: Option<&str>) -> i32 {
    let is_delivered = deliver(answer);
    exit_code(answer, is_delivered, refusal)
}

/// Whether what goes to stdout could be written.
fn deliver(answer: &Answer) -> bool {
    write_to(&mut io::stderr(), &answer.stderr);
    write_to(&mut io::stdout(), &answer.stdout)
}

/// The exit code of an answer. If no one can have read that it denies, the exit code that
/// blocks in most agents says so.
fn exit_code(answer: &Answer, is_delivered: bool, refusal: Option<&str>) -> i32 {
    let is_unread = || !answer.stdout.is_empty() && (!is_delivered || is_stdout_discarded());
    match refusal {
        Some(reason) if answer.exit == 0 && is_unread() => {
            write_to(&mut io::stderr(), &format!("{reason}\n"));
            BLOCKING_EXIT
        }
        _ => answer.exit,
    }
}

/// Whether stdout goes to the null device; Rust puts it there if stdout is closed.
#[cfg(unix)]
fn is_stdout_discarded() -> bool {
    let null = rustix::fs::stat("/dev/null").map(|it| it.st_rdev);
    let own = rustix::fs::fstat(io::stdout()).map(|it| it.st_rdev);
    null.is_ok_and(|null| null != 0 && own == Ok(null))
}

#[cfg(not(unix))]
fn is_stdout_discarded() -> bool {
    false
}

/// Whether it could be written. An agent that has closed its end reads nothing.
fn write_to(stream: &mut impl Write, text: &str) -> bool {
    let written = stream.write_all(text.as_bytes());
    written.and_then(|()| stream.flush()).is_ok()
}

fn log_debug(text: impl FnOnce() -> String) {
    if anyhook_util::env::ANYHOOK_LOG.is("debug") {
        write_to(&mut io::stderr(), &format!("anyhook: {}\n", text()));
    }
}

/// Signals must end the running hooks too: they have their own process groups.
#[cfg(unix)]
fn listen_for_signals() -> Option<Cancel> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    let (reader, writer) = io::pipe().ok()?;
    for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
        let writer = writer.try_clone().ok()?;
        signal_hook::low_level::pipe::register(signal, writer).ok()?;
    }
    Some(Cancel::from_fd(reader.into()))
}

/// Ctrl-C, and the end of the console or of the session.
#[cfg(windows)]
fn listen_for_signals() -> Option<Cancel> {
    let (trigger, cancel) = Cancel::with_trigger(None).ok()?;
    let mut trigger = Some(trigger);
    ctrlc::set_handler(move || drop(trigger.take())).ok()?;
    Some(cancel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments() {
        let parse = |line: &str| Arguments::parse(line.split_whitespace().map(OsString::from));
        let parsed = parse("--agent a --event=b --later x");
        assert_eq!(parsed.agent.as_deref(), Some("a"));
        assert_eq!(parsed.event.as_deref(), Some("b"));
        assert_eq!(parsed.unknown, ["--later", "x"]);
        assert_eq!(parse("--agent"), Arguments::default());
        assert!(parse("--supervise").supervise);
        let parsed = parse("--server http://localhost:1 --fallback=open");
        assert_eq!(parsed.server.as_deref(), Some("http://localhost:1"));
        assert_eq!(parsed.fallback, Fallback::Open);
        for line in ["--server --fallback open", "--fallback open --server"] {
            let parsed = parse(line);
            assert_eq!(parsed.server.as_deref(), Some(""), "{line}");
            assert_eq!(parsed.fallback, Fallback::Open, "{line}");
        }
        let parsed = parse("--fallback later");
        assert_eq!(parsed.fallback, Fallback::Local);
        assert_eq!(parsed.unknown, ["later"]);
    }
}
