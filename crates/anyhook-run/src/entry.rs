//! `anyhook run`: the command that every tool call of an agent starts.
//!
//! It reads its own few arguments, because an argument parser would cost more
//! than the rest. It is the only module that reads stdin, writes stdout and
//! stderr, and hears signals. Wrong usage exits with 1 and not with 2: to most
//! agents 2 means "block".

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read, Write};

use anyhook_model::{Answer, HookEvent};

use crate::agent::{self, Agent, Decoded};
use crate::call;
use crate::engine::{self, Engine, Options};
use crate::exec::Cancel;
use crate::failure::Failure;
use crate::native;
use crate::server::{self, Fallback, Question};
use crate::supervise;

/// A payload larger than this is not read.
const PAYLOAD_LIMIT: u64 = 64 * 1024 * 1024;

const USAGE: &str = "anyhook run [--agent NAME] [--event NAME] \
                     [--server URL [--fallback local|open]] < payload";

#[derive(Debug, Default, PartialEq, Eq)]
struct Arguments {
    agent: Option<String>,
    event: Option<String>,
    supervise: bool,
    /// The daemon that answers in our place.
    server: Option<String>,
    fallback: Fallback,
    /// A configuration written by a newer version must not break the agent.
    unknown: Vec<String>,
}

impl Arguments {
    fn parse(args: impl Iterator<Item = OsString>) -> Self {
        let mut parsed = Self::default();
        let mut args = args.map(|arg| arg.to_string_lossy().into_owned());
        while let Some(arg) = args.next() {
            let (name, mut value) = match arg.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (arg, None),
            };
            match name.as_str() {
                "--agent" => parsed.agent = value.take().or_else(|| args.next()),
                "--event" => parsed.event = value.take().or_else(|| args.next()),
                "--supervise" => parsed.supervise = true,
                "--server" => parsed.server = value.take().or_else(|| args.next()),
                "--fallback" => match value.take().or_else(|| args.next()).as_deref() {
                    Some("local") => parsed.fallback = Fallback::Local,
                    Some("open") => parsed.fallback = Fallback::Open,
                    other => parsed.unknown.push(other.unwrap_or(&name).to_owned()),
                },
                _ => parsed.unknown.push(name),
            }
        }
        parsed
    }
}

/// The arguments after `run`; the exit code.
pub fn main(args: impl Iterator<Item = OsString>) -> i32 {
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
    let (agent, why) = match agent::resolve(arguments.agent.as_deref(), &payload) {
        Ok(found) => found,
        Err(message) => {
            write_to(&mut io::stderr(), &format!("anyhook: {message}\n"));
            // Nobody knows what would happen now; a policy may want nothing to.
            let blocks = !engine.off && engine.fails_closed();
            return if blocks { 2 } else { 1 };
        }
    };
    debug(|| format!("agent {} ({why})", agent.slug()));
    if !arguments.unknown.is_empty() {
        debug(|| format!("ignored arguments: {}", arguments.unknown.join(" ")));
    }
    let event = arguments.event.as_deref();
    let mut away = None;
    if let (Some(server), Ok(())) = (&arguments.server, &read)
        && !engine.off
    {
        let question = Question {
            agent: agent.slug(),
            event,
            payload: &payload,
            unattended: !native::is_attended(agent.slug()),
        };
        match server::ask(server, &engine.dirs, &question) {
            Ok(answer) => return write(&answer),
            Err(why) => away = Some(format!("the server is away: {why}")),
        }
    }
    if let Some(away) = &away {
        debug(|| away.clone());
    }
    let decoded = read.and_then(|()| agent.decode(&payload, event));
    match (decoded, away) {
        (Ok(decoded), Some(away)) if arguments.fallback == Fallback::Open => {
            open(&engine, &*agent, decoded.event, &away)
        }
        (Ok(decoded), away) => dispatch(&engine, &*agent, decoded, away),
        (Err(why), _) => fail(&engine, &*agent, &payload, event, &why),
    }
}

fn dispatch(engine: &Engine, agent: &dyn Agent, decoded: Decoded, trouble: Option<String>) -> i32 {
    let options = Options {
        listen: Some(listen_for_signals),
        owns_process: true,
        #[cfg(unix)]
        parent: Some(std::os::unix::process::parent_id()),
        ..Options::default()
    };
    let told = call::answer(engine, agent, decoded, &options, trouble, |answer| {
        write(answer);
    });
    if told.cancelled {
        128 + 15
    } else {
        told.answer.exit
    }
}

/// The user wants the agent to go on without hooks rather than with those that
/// are here; a managed policy may want otherwise.
fn open(engine: &Engine, agent: &dyn Agent, event: HookEvent, why: &str) -> i32 {
    let message = format!("anyhook: no hook has run: {why}");
    let block = engine::is_preventable(&event.event) && engine.fails_closed();
    let answer = agent.failure(Some(&event.native_event), &message, block);
    let exit = write(&answer);
    engine.record_failure(event, &message, answer);
    exit
}

fn fail(engine: &Engine, agent: &dyn Agent, payload: &[u8], event: Option<&str>, why: &str) -> i32 {
    let failure = Failure::new(engine, agent, payload, event, why);
    let exit = write(&failure.answer);
    engine.record_failure(failure.event, &failure.message, failure.answer);
    exit
}

/// What could be read, and what went wrong.
fn read_payload() -> (Vec<u8>, Result<(), String>) {
    let mut payload = Vec::new();
    let read = io::stdin()
        .lock()
        .take(PAYLOAD_LIMIT + 1)
        .read_to_end(&mut payload);
    let result = match read {
        Ok(count) if count as u64 > PAYLOAD_LIMIT => {
            Err("the payload is larger than 64 MiB".to_owned())
        }
        Ok(_) => Ok(()),
        Err(error) => Err(format!("the payload cannot be read: {error}")),
    };
    (payload, result)
}

fn write(answer: &Answer) -> i32 {
    write_to(&mut io::stderr(), &answer.stderr);
    write_to(&mut io::stdout(), &answer.stdout);
    answer.exit
}

/// An agent that has gone away does not need the answer.
fn write_to(stream: &mut impl Write, text: &str) {
    let _ = stream.write_all(text.as_bytes());
    let _ = stream.flush();
}

fn debug(text: impl FnOnce() -> String) {
    if std::env::var_os("ANYHOOK_LOG").is_some_and(|value| value == "debug") {
        write_to(&mut io::stderr(), &format!("anyhook: {}\n", text()));
    }
}

/// What ends us must end the running hooks: they are in groups of their own.
#[cfg(unix)]
fn listen_for_signals() -> Option<Cancel> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let (reader, writer) = io::pipe().ok()?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        let writer = writer.try_clone().ok()?;
        signal_hook::low_level::pipe::register(signal, writer).ok()?;
    }
    Some(Cancel::from_fd(reader.into()))
}

#[cfg(not(unix))]
fn listen_for_signals() -> Option<Cancel> {
    None
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
        let parsed = parse("--fallback later");
        assert_eq!(parsed.fallback, Fallback::Local);
        assert_eq!(parsed.unknown, ["later"]);
    }
}
