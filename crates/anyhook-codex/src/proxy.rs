//! A proxy between a client and its server, over stdio.
//!
//! All messages pass byte for byte and in order, with one exception: an approval
//! request that hooks may answer is held back until they have decided. A yes or no
//! goes to the server and the client never sees the request (it does see the server's
//! `serverRequest/resolved`, as any second client would). After `ask`, no opinion or a
//! failure, the client gets the request unchanged.
//!
//! If meanwhile the server withdraws the request or the client answers it, the
//! decision of the hooks is dropped.

use std::io::{Read, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use anyhook_util::sync::lock;

use crate::approval::Approval;
use crate::hooks::{Decide, HookWorkers, Ruling};
use crate::map::{MappedMessage, Mapper};
use crate::open_requests::{DecisionToken, OpenRequests, OpenVerdict};
use crate::process::{self, ProcessGroup, Signal};
use crate::pump::{Pump, PumpEnd, SharedWriter, write_lines};
use crate::wire::{IncomingMessage, RequestId, inspect_message};

/// How long the output of a server that has exited may stay quiet before it counts as
/// ended: a process that left the group may keep it open.
const OUTPUT_END_TIMEOUT: Duration = Duration::from_secs(1);
const OUTPUT_POLL_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug, Clone)]
pub struct ProxyOptions {
    /// After this time a held request goes to the client as well, and the first answer
    /// counts. `None` waits for the hooks, which have their own timeouts.
    pub hold_at_most: Option<Duration>,
    /// How long the server may take to end after its client has gone, before it is
    /// asked to end, and again before it is killed.
    pub grace: Duration,
    /// How long hooks may still receive notices after the server's end.
    pub drain: Duration,
}

impl Default for ProxyOptions {
    fn default() -> Self {
        Self {
            hold_at_most: None,
            grace: Duration::from_secs(5),
            drain: Duration::from_secs(5),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxySummary {
    /// The server's; 128 plus the signal if it was killed.
    pub exit_code: i32,
    /// Notices that were dropped because the queue was full.
    pub dropped_events: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    #[error("could not start `{program}`: {source}")]
    Start {
        program: String,
        source: std::io::Error,
    },
    #[error("could not wait for the server: {0}")]
    Wait(std::io::Error),
}

/// Ends a proxy from another thread.
#[derive(Debug, Clone)]
pub struct ProxyStopper(Sender<ProxyEvent>);

impl ProxyStopper {
    pub fn stop(&self) {
        // Fails if the proxy has ended already.
        let _ = self.0.send(ProxyEvent::Stop);
    }
}

#[derive(Debug)]
enum ProxyEvent {
    ClientGone,
    ServerOutputEnded,
    ServerExited(std::io::Result<std::process::ExitStatus>),
    Stop,
}

/// A proxy that is set up but not yet running.
pub struct Proxy {
    command: Command,
    decide: Arc<dyn Decide>,
    options: ProxyOptions,
    events: (Sender<ProxyEvent>, Receiver<ProxyEvent>),
}

impl Proxy {
    /// Replaces the command's stdin and stdout; its stderr stays as the caller set it.
    pub fn new(command: Command, decide: Arc<dyn Decide>, options: ProxyOptions) -> Self {
        Self {
            command,
            decide,
            options,
            events: channel(),
        }
    }

    pub fn stopper(&self) -> ProxyStopper {
        ProxyStopper(self.events.0.clone())
    }

    /// Runs until the server has ended. The thread that reads `client_in` may then still
    /// wait for the client; it ends with the process.
    pub fn run<R, W>(mut self, client_in: R, client_out: W) -> Result<ProxySummary, ProxyError>
    where
        R: Read + Send + 'static,
        W: Write + Send + 'static,
    {
        process::start_in_own_group(&mut self.command);
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let program = self.command.get_program().to_string_lossy().into_owned();
        let start = |source| ProxyError::Start { program, source };
        let mut child = self.command.spawn().map_err(start)?;
        let group = ProcessGroup { leader: child.id() };
        let (server_in, server_out) = (child.stdin.take(), child.stdout.take());

        let (sender, events) = self.events;
        let bridge = Arc::new(ProxyBridge {
            mapper: Mutex::default(),
            held: Mutex::default(),
            to_server: Mutex::new(server_in),
            to_client: Mutex::new(Some(client_out)),
            hooks: Mutex::new(Some(HookWorkers::new(self.decide))),
            hold_at_most: self.options.hold_at_most,
            forwarding: RwLock::default(),
            is_writing: AtomicBool::new(false),
        });

        let (up, up_sender) = (bridge.clone(), sender.clone());
        thread::spawn(move || {
            up.carry_to_server(client_in);
            let _ = up_sender.send(ProxyEvent::ClientGone);
        });
        let (down, down_sender) = (bridge.clone(), sender.clone());
        thread::spawn(move || {
            let client_gone = server_out.is_some_and(|out| down.carry_to_client(out));
            if client_gone {
                let _ = down_sender.send(ProxyEvent::ClientGone);
            }
            let _ = down_sender.send(ProxyEvent::ServerOutputEnded);
        });
        thread::spawn(move || {
            let _ = sender.send(ProxyEvent::ServerExited(process::wait(&mut child)));
        });

        let status =
            wait_for_end(&events, &bridge, group, self.options.grace).map_err(ProxyError::Wait)?;
        lock(&bridge.to_client).take();
        let hooks = lock(&bridge.hooks).take();
        Ok(ProxySummary {
            exit_code: process::exit_code(status),
            dropped_events: hooks.map_or(0, |hooks| hooks.finish(self.options.drain)),
        })
    }
}

/// Waits until the server has ended and its output is written.
fn wait_for_end<W: Write>(
    events: &Receiver<ProxyEvent>,
    bridge: &ProxyBridge<W>,
    group: ProcessGroup,
    grace: Duration,
) -> std::io::Result<std::process::ExitStatus> {
    let mut output_ended = false;
    // The next step against a server that should have ended.
    let mut next: Option<(Instant, Signal)> = None;
    let status = loop {
        let event = match next {
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some((at, _)) => events.recv_timeout(at.saturating_duration_since(Instant::now())),
        };
        let deadline = Instant::now() + grace;
        match event {
            Ok(ProxyEvent::ServerExited(status)) => break status?,
            Ok(ProxyEvent::ClientGone) => {
                lock(&bridge.to_server).take();
                next = next.or(Some((deadline, Signal::Terminate)));
            }
            Ok(ProxyEvent::ServerOutputEnded) => {
                output_ended = true;
                next = next.or(Some((deadline, Signal::Terminate)));
            }
            Ok(ProxyEvent::Stop) => {
                group.signal(Signal::Terminate);
                next = Some((deadline, Signal::Kill));
            }
            Err(RecvTimeoutError::Timeout) => {
                group.signal(next.map_or(Signal::Kill, |(_, signal)| signal));
                next = Some((deadline, Signal::Kill));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(std::io::ErrorKind::BrokenPipe.into());
            }
        }
    };
    // The client may take its time to read.
    let mut quiet = Duration::ZERO;
    while !output_ended && quiet < OUTPUT_END_TIMEOUT {
        match events.recv_timeout(OUTPUT_POLL_INTERVAL) {
            Ok(ProxyEvent::ServerOutputEnded | ProxyEvent::Stop)
            | Err(RecvTimeoutError::Disconnected) => output_ended = true,
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) if bridge.is_writing.load(Ordering::Relaxed) => {
                quiet = Duration::ZERO;
            }
            Err(RecvTimeoutError::Timeout) => quiet += OUTPUT_POLL_INTERVAL,
        }
    }
    Ok(status)
}

struct ProxyBridge<W> {
    mapper: Mutex<Mapper>,
    held: Mutex<OpenRequests>,
    to_server: SharedWriter<ChildStdin>,
    to_client: SharedWriter<W>,
    /// `None` once the proxy has ended.
    hooks: Mutex<Option<HookWorkers>>,
    hold_at_most: Option<Duration>,
    /// Read-locked while a request is answered or forwarded, write-locked to wait until
    /// none is.
    forwarding: RwLock<()>,
    /// Output of the server waits for the client.
    is_writing: AtomicBool,
}

impl<W: Write + Send + 'static> ProxyBridge<W> {
    fn carry_to_server(&self, client: impl Read) {
        let is_writing = AtomicBool::new(false);
        let inspect = |message: &IncomingMessage<'_>| -> Option<()> {
            match message.answered_id() {
                Some(id) => lock(&self.held).remove(id),
                None => lock(&self.mapper).observe_client(message),
            }
            None
        };
        let inspect = |line: &[u8]| inspect_message(line, inspect);
        let ended = Pump::new(client, &self.to_server, &is_writing).run(inspect, |(), _| {});
        if let PumpEnd::Reader(last) = ended {
            let _ = write_lines(&self.to_server, &last);
        }
    }

    /// Whether writing to the client failed.
    fn carry_to_client(self: &Arc<Self>, server: impl Read) -> bool {
        let inspect = |message: &IncomingMessage<'_>| {
            let mapped = lock(&self.mapper).map_server(message);
            if let MappedMessage::Resolved(id) = &mapped {
                lock(&self.held).remove(id);
            }
            let hooks = lock(&self.hooks);
            let hooks = hooks.as_ref()?;
            match mapped {
                MappedMessage::Approval(approval) if hooks.could_decide(&approval.event) => {
                    return Some(*approval);
                }
                MappedMessage::Approval(approval) => hooks.observe(approval.event),
                MappedMessage::Event(event) => hooks.observe(*event),
                MappedMessage::Nothing | MappedMessage::Resolved(_) => {}
            }
            None
        };
        let inspect = |line: &[u8]| inspect_message(line, inspect);
        let hold = |approval, line: &[u8]| self.hold(approval, line);
        let ended = Pump::new(server, &self.to_client, &self.is_writing).run(inspect, hold);
        // From here on there is only writing left.
        self.is_writing.store(true, Ordering::Relaxed);
        self.forward_all();
        match ended {
            PumpEnd::Reader(last) => write_lines(&self.to_client, &last).is_err(),
            PumpEnd::Writer => true,
        }
    }

    fn hold(self: &Arc<Self>, approval: Approval, line: &[u8]) {
        let id = approval.id.clone();
        let Some(token) = lock(&self.held).add(&approval, line) else {
            return;
        };
        if let Some(limit) = self.hold_at_most {
            let bridge = self.clone();
            thread::spawn(move || {
                thread::sleep(limit);
                bridge.forward_copy(&id);
            });
        }
        let bridge = self.clone();
        if let Some(hooks) = lock(&self.hooks).as_ref() {
            let event = approval.event.clone();
            hooks.start_decision(event, move |ruling| {
                bridge.apply_ruling(&approval, token, ruling);
            });
        }
    }

    fn apply_ruling(&self, approval: &Approval, token: DecisionToken, ruling: Ruling) {
        let _forwarding = self.forwarding.read();
        let verdict = approval.verdict(&ruling.response);
        let decided = lock(&self.held).decide(&approval.id, token, verdict);
        let OpenVerdict::Decided(verdict, lines) = decided else {
            return;
        };
        let reason = ruling.response.reason.as_deref();
        match approval.kind.answer(verdict, reason) {
            Some(answer) => {
                let reply = approval.reply(&answer);
                // A server that reads no more is about to end.
                let _ = write_lines(&self.to_server, format!("{reply}\n").as_bytes());
                ruling.set_answer(&answer);
            }
            None => self.forward(&lines),
        }
    }

    /// Lets the client answer too.
    fn forward_copy(&self, id: &RequestId) {
        let _forwarding = self.forwarding.read();
        let lines = lock(&self.held).take_lines(id);
        self.forward(&lines);
    }

    fn forward(&self, lines: &[u8]) {
        if !lines.is_empty() {
            let _ = write_lines(&self.to_client, lines);
        }
    }

    /// The server has ended: the client gets the requests that were held.
    fn forward_all(&self) {
        let _none_forwarding = self.forwarding.write();
        let lines = lock(&self.held).drain();
        self.forward(&lines);
    }
}
