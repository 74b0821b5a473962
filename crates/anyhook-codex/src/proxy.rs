//! Between a client and its server, over stdio.
//!
//! All messages pass byte for byte and in order, with one exception: an approval
//! request that hooks are asked about is held back, that one alone, until they
//! have decided. A yes or no goes to the server and the client never sees the
//! request (it does see the server's `serverRequest/resolved`, as any second
//! client would). `ask`, no opinion and failure give it to the client as it was.
//!
//! If the server gives the request up meanwhile, or the client answers it all
//! the same, the hooks' word is dropped.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::approval::Approval;
use crate::decide::{Decide, Hooks, Ruling, lock};
use crate::map::{Mapper, Seen};
use crate::process::{self, Group, Signal};
use crate::pump::{Ended as PumpEnded, Pump, Shared, send};
use crate::wire::{Incoming, RequestId};

#[derive(Debug, Clone)]
pub struct ProxyOptions {
    /// After this time a held request goes to the client as well, and the first
    /// answer counts. `None`: hooks have their own timeouts, wait for them.
    pub hold_at_most: Option<Duration>,
    /// How long the server may take to end once its client is gone, before it is
    /// told to, and again before it is killed.
    pub grace: Duration,
    /// How long notices may still be heard after the server's end.
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
pub struct ProxyEnded {
    /// The server's; 128 and the signal when it was killed.
    pub exit_code: i32,
    /// Notices that no hook heard for want of room.
    pub dropped_events: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    #[error("cannot start `{program}`: {source}")]
    Start {
        program: String,
        source: std::io::Error,
    },
    #[error("lost track of the server: {0}")]
    Wait(std::io::Error),
}

/// Ends a proxy from elsewhere, a signal handler's thread for one.
#[derive(Debug, Clone)]
pub struct Stop(Sender<Happening>);

impl Stop {
    pub fn stop(&self) {
        // Nobody listens when it has ended already.
        let _ = self.0.send(Happening::Stop);
    }
}

#[derive(Debug)]
enum Happening {
    ClientGone,
    ServerSilent,
    ServerExited(std::io::Result<std::process::ExitStatus>),
    Stop,
}

/// A proxy that is set up but not yet running.
pub struct Proxy {
    command: Command,
    decide: Arc<dyn Decide>,
    options: ProxyOptions,
    happenings: (Sender<Happening>, Receiver<Happening>),
}

impl Proxy {
    /// Takes the command's stdin and stdout over; its stderr is as the caller
    /// set it, by default this process's own.
    pub fn new(command: Command, decide: Arc<dyn Decide>, options: ProxyOptions) -> Self {
        Self {
            command,
            decide,
            options,
            happenings: channel(),
        }
    }

    pub fn stop_handle(&self) -> Stop {
        Stop(self.happenings.0.clone())
    }

    /// Runs until the server has ended. The thread that reads `client_in` may
    /// then still wait for a client that says nothing; it ends with the process.
    pub fn run<R, W>(mut self, client_in: R, client_out: W) -> Result<ProxyEnded, ProxyError>
    where
        R: Read + Send + 'static,
        W: Write + Send + 'static,
    {
        process::own_group(&mut self.command);
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let program = self.command.get_program().to_string_lossy().into_owned();
        let start = |source| ProxyError::Start { program, source };
        let mut child = self.command.spawn().map_err(start)?;
        let group = Group::of(&child);
        let (server_in, server_out) = (child.stdin.take(), child.stdout.take());

        let (tell, told) = self.happenings;
        let bridge = Arc::new(Bridge {
            mapper: Mutex::default(),
            held: Mutex::default(),
            to_server: Mutex::new(server_in),
            to_client: Mutex::new(Some(client_out)),
            hooks: Mutex::new(Some(Hooks::new(self.decide))),
            hold_at_most: self.options.hold_at_most,
            settling: RwLock::default(),
            writing: AtomicBool::new(false),
        });

        let (up, tell_up) = (bridge.clone(), tell.clone());
        thread::spawn(move || {
            up.carry_up(client_in);
            let _ = tell_up.send(Happening::ClientGone);
        });
        let (down, tell_down) = (bridge.clone(), tell.clone());
        thread::spawn(move || {
            let client_gone = server_out.is_some_and(|out| down.carry_down(out));
            if client_gone {
                let _ = tell_down.send(Happening::ClientGone);
            }
            let _ = tell_down.send(Happening::ServerSilent);
        });
        thread::spawn(move || {
            let _ = tell.send(Happening::ServerExited(process::wait(&mut child)));
        });

        let status = attend(&told, &bridge, group, self.options.grace).map_err(ProxyError::Wait)?;
        lock(&bridge.to_client).take();
        let hooks = lock(&bridge.hooks).take();
        Ok(ProxyEnded {
            exit_code: process::exit_code(status),
            dropped_events: hooks.map_or(0, |hooks| hooks.finish(self.options.drain)),
        })
    }
}

/// Watches over the server until it has ended and its last words are out.
fn attend<W: Write>(
    told: &Receiver<Happening>,
    bridge: &Bridge<W>,
    group: Group,
    grace: Duration,
) -> std::io::Result<std::process::ExitStatus> {
    let mut silent = false;
    // The next step against a server that should have ended.
    let mut next: Option<(Instant, Signal)> = None;
    let status = loop {
        let happening = match next {
            None => told.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some((at, _)) => told.recv_timeout(at.saturating_duration_since(Instant::now())),
        };
        match happening {
            Ok(Happening::ServerExited(status)) => break status?,
            Ok(Happening::ClientGone) => {
                lock(&bridge.to_server).take();
                next = next.or(Some((Instant::now() + grace, Signal::Terminate)));
            }
            Ok(Happening::ServerSilent) => {
                silent = true;
                next = next.or(Some((Instant::now() + grace, Signal::Terminate)));
            }
            Ok(Happening::Stop) => {
                group.signal(Signal::Terminate);
                next = Some((Instant::now() + grace, Signal::Kill));
            }
            Err(RecvTimeoutError::Timeout) => {
                let signal = next.map_or(Signal::Kill, |(_, signal)| signal);
                group.signal(signal);
                next = Some((Instant::now() + grace, Signal::Kill));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(std::io::ErrorKind::BrokenPipe.into());
            }
        }
    };
    // The group is gone, so its output ends; unless a process that left the
    // group keeps it open, or the client takes its time to read.
    let mut quiet = 0;
    while !silent && quiet < 10 {
        match told.recv_timeout(Duration::from_millis(100)) {
            Ok(Happening::ServerSilent | Happening::Stop) | Err(RecvTimeoutError::Disconnected) => {
                silent = true;
            }
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) if bridge.writing.load(Ordering::Relaxed) => quiet = 0,
            Err(RecvTimeoutError::Timeout) => quiet += 1,
        }
    }
    Ok(status)
}

struct Bridge<W> {
    mapper: Mutex<Mapper>,
    held: Mutex<HashMap<RequestId, Held>>,
    to_server: Shared<ChildStdin>,
    to_client: Shared<W>,
    /// Gone once the proxy has ended.
    hooks: Mutex<Option<Hooks>>,
    hold_at_most: Option<Duration>,
    /// Shared by those who pass a request on, taken whole by whoever has to know
    /// that none of them is half done.
    settling: RwLock<()>,
    /// Whether the server's words wait for the client to take them.
    writing: AtomicBool,
}

/// A request that waits for the hooks; the server may have repeated it.
#[derive(Debug)]
struct Held {
    lines: Vec<Vec<u8>>,
    forwarded: bool,
}

impl<W: Write + Send + 'static> Bridge<W> {
    fn carry_up(&self, client: impl Read) {
        let unused = AtomicBool::new(false);
        let look = |line: &[u8]| -> Option<()> {
            let message = Incoming::read(line)?;
            match message.answers() {
                Some(id) => drop(lock(&self.held).remove(id)),
                None => lock(&self.mapper).client(&message),
            }
            None
        };
        let ended = Pump::new(client, &self.to_server, &unused).run(look, |(), _| {});
        if let PumpEnded::Reader(last) = ended {
            let _ = send(&self.to_server, &last);
        }
    }

    /// Whether it was the client that took no more.
    fn carry_down(self: &Arc<Self>, server: impl Read) -> bool {
        let look = |line: &[u8]| {
            let seen = lock(&self.mapper).server(&Incoming::read(line)?);
            if let Seen::Resolved(id) = &seen {
                lock(&self.held).remove(id);
            }
            let hooks = lock(&self.hooks);
            let hooks = hooks.as_ref()?;
            match seen {
                Seen::Approval(approval) if hooks.could_decide(&approval.event) => {
                    return Some(*approval);
                }
                Seen::Approval(approval) => hooks.observe(approval.event),
                Seen::Event(event) => hooks.observe(*event),
                Seen::Nothing | Seen::Resolved(_) => {}
            }
            None
        };
        let hold = |approval, line: &[u8]| self.hold(approval, line);
        let ended = Pump::new(server, &self.to_client, &self.writing).run(look, hold);
        // From here on there is only writing left to do.
        self.writing.store(true, Ordering::Relaxed);
        self.release_all();
        match ended {
            PumpEnded::Reader(last) => send(&self.to_client, &last).is_err(),
            PumpEnded::Writer => true,
        }
    }

    fn hold(self: &Arc<Self>, approval: Approval, line: &[u8]) {
        let id = approval.id.clone();
        let mut held = lock(&self.held);
        if let Some(known) = held.get_mut(&id) {
            known.lines.push(line.to_vec());
            return;
        }
        let lines = vec![line.to_vec()];
        held.insert(
            id.clone(),
            Held {
                lines,
                forwarded: false,
            },
        );
        drop(held);

        if let Some(limit) = self.hold_at_most {
            let bridge = self.clone();
            thread::spawn(move || {
                thread::sleep(limit);
                bridge.show_client(&id);
            });
        }
        let bridge = self.clone();
        if let Some(hooks) = lock(&self.hooks).as_ref() {
            let event = approval.event.clone();
            hooks.ask(event, move |ruling| bridge.decided(&approval, ruling));
        }
    }

    fn decided(&self, approval: &Approval, ruling: Ruling) {
        let _settling = self.settling.read();
        // Not held any more: somebody else was first.
        let Some(held) = lock(&self.held).remove(&approval.id) else {
            return;
        };
        let verdict = approval.verdict(&ruling.response);
        let reason = ruling.response.reason.as_deref();
        match approval.kind.answer(verdict, reason) {
            Some(answer) => {
                let reply = approval.reply(&answer);
                // A server that takes no more is about to end.
                let _ = send(&self.to_server, format!("{reply}\n").as_bytes());
                ruling.answered(&answer);
            }
            None => self.forward(held),
        }
    }

    /// Lets the client answer too.
    fn show_client(&self, id: &RequestId) {
        let _settling = self.settling.read();
        let mut held = lock(&self.held);
        let Some(waiting) = held.get_mut(id).filter(|waiting| !waiting.forwarded) else {
            return;
        };
        waiting.forwarded = true;
        let lines = waiting.lines.concat();
        drop(held);
        let _ = send(&self.to_client, &lines);
    }

    fn forward(&self, held: Held) {
        if !held.forwarded {
            let _ = send(&self.to_client, &held.lines.concat());
        }
    }

    /// The server has said its last: the client gets what was kept from it.
    fn release_all(&self) {
        let _settled = self.settling.write();
        let mut held: Vec<_> = lock(&self.held).drain().collect();
        held.sort_by(|(left, _), (right, _)| left.cmp(right));
        for (_, held) in held {
            self.forward(held);
        }
    }
}
