//! The consumers of the nearest `.openhook.json`.
//!
//! They are found and checked for consent before the agent is answered, so that
//! the user learns which do not run; they receive the event after it. Nothing
//! that they do, nor whether they end at all, changes the answer or the exit
//! code. A project without the file pays only for the search: the memory that
//! envelopes need is kept only for consumers.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::openhook::discovery::{self, Delivery, DiscoveryFile};
use crate::openhook::{EnvelopeOptions, FolderFields, LocalMachine, Queue, envelopes_with};
use anyhook_agents::Adapter;
use anyhook_model::{Handler, Hook, HookEvent, HookRun, RunOutcome, Scope};
use anyhook_util::{env, time};
use openhook::{Discovery, Envelope, Subscriber, code};
use serde::{Deserialize, Serialize};

use crate::config::discover::MAX_UNAPPROVED_BYTES;
use crate::config::policy::Rulebook;
use crate::config::settings::Settings;
use crate::config::trust::{Consent, Distrust, command_files};
use crate::engine::{Engine, EventOptions, end_record};
use crate::run::exec::command::{CommandContext, CommandLine};
use crate::run::exec::{self, Cancel, ProcessEnd, ProcessRequest};
use crate::run::spend::session_cost_usd;
use crate::run::supervise;

/// The maximum length of the last stderr line in a message.
const MAX_STDERR_EXCERPT_CHARS: usize = 200;

/// The envelopes of an event. Its `timestamp` must be the agent's own, or absent.
pub fn envelopes(engine: &Engine, event: &HookEvent) -> Vec<Envelope> {
    let table = anyhook_agents::get(&event.source);
    let lacks = |name| {
        let has = |adapter: &Adapter| {
            let mut events = adapter.spec.events.iter();
            events.any(|event| event.is.as_deref() == Some(name))
        };
        table.is_some_and(|adapter| !has(adapter))
    };
    let synthesize_end = lacks("session_end");
    let is_end = event.event == "session_end" || (synthesize_end && event.event == "agent_stop");
    let options = EnvelopeOptions {
        session_cost_usd: is_end
            .then(|| session_cost_usd(event, &engine.dirs))
            .flatten(),
        synthesize_start: lacks("session_start"),
        synthesize_end,
        folder_fields: folder_fields(engine),
    };
    envelopes_with(event, &LocalMachine::new(&engine.dirs.state), options)
}

/// Which fields the user's settings choose.
pub fn folder_fields(engine: &Engine) -> FolderFields {
    let settings = Settings::load(&engine.dirs).unwrap_or_default();
    settings.openhook.folder
}

/// Consumers that may run.
#[derive(Debug)]
pub struct Consumers {
    pub path: PathBuf,
    root: PathBuf,
    discovery: Discovery,
    /// `None` if everything is trusted.
    consent: Option<Consent>,
}

impl Consumers {
    /// The consumers that [`discover`](crate::config::discover::discover) has seen, by
    /// the folder of their file; with the problems of the file, for the user.
    pub fn find(engine: &Engine, openhook: Option<&Path>) -> (Option<Self>, Vec<String>) {
        let home = engine.dirs.home.as_deref();
        match openhook.map_or(Ok(None), |folder| discovery::find(folder, home)) {
            Ok(None) => (None, Vec::new()),
            Ok(Some(found)) => Self::check(engine, found),
            Err(unreadable) => (None, vec![unreadable.to_string()]),
        }
    }

    fn check(engine: &Engine, found: DiscoveryFile) -> (Option<Self>, Vec<String>) {
        let shown = found.path.display();
        let consent = engine.consent_to(&found.path, &found.root, &found.text);
        let refusal = |why: &Distrust| {
            format!(
                "the consumers of `{shown}` do not run: {why}; read it, then run `anyhook trust`"
            )
        };
        // An unapproved repository must not make every call slow.
        if let Err(why) = &consent
            && found.text.len() as u64 > MAX_UNAPPROVED_BYTES
        {
            return (None, vec![refusal(why)]);
        }
        let reading = found.parse();
        let findings = reading.findings.iter();
        let mut notices: Vec<String> = findings
            .filter_map(|finding| {
                let place = match finding.field.as_str() {
                    "" => String::new(),
                    field => format!("{field}: "),
                };
                let message = &finding.message;
                match finding.code {
                    code::UNKNOWN_VERSION => Some(format!("`{shown}`: {message}")),
                    _ if finding.is_error() => Some(format!(
                        "`{shown}` is not used as a whole: {place}{message}"
                    )),
                    _ => None,
                }
            })
            .collect();
        let Some(discovery) = reading.discovery else {
            return (None, notices);
        };
        match consent {
            Ok(consent) => {
                let consumers = Self {
                    path: found.path,
                    root: found.root,
                    discovery,
                    consent,
                };
                (Some(consumers), notices)
            }
            Err(_) if discovery.hooks.is_empty() => (None, notices),
            Err(why) => {
                notices.push(refusal(&why));
                (None, notices)
            }
        }
    }

    /// Plans the delivery of envelopes to the consumers that may run. A policy
    /// treats a consumer as a hook of the project for the event.
    pub fn plan_deliveries(
        self,
        envelopes: &[Envelope],
        event: &str,
        rules: &Rulebook,
    ) -> PendingDeliveries {
        let mut pending = PendingDeliveries {
            deliveries: discovery::deliveries(&self.discovery, envelopes),
            consumers: self,
            refused: Vec::new(),
            notices: Vec::new(),
        };
        let consumers = &pending.consumers;
        for (hook, subscriber) in consumers.discovery.hooks.iter().enumerate() {
            if pending.deliveries.iter().any(|one| one.hook == hook)
                && let Err((why, notice)) = consumers.admit(hook, subscriber, event, rules)
            {
                pending.deliveries.retain(|delivery| delivery.hook != hook);
                let path = &consumers.path;
                let refused = new_run(path, hook, RunOutcome::Refused, Some(why));
                pending.refused.push(refused);
                pending.notices.extend(notice);
            }
        }
        pending
    }

    /// An error is the reason, and a notice if the user does not know it yet.
    fn admit(
        &self,
        hook: usize,
        subscriber: &Subscriber,
        event: &str,
        rules: &Rulebook,
    ) -> Result<(), (String, Option<String>)> {
        let handler = Handler {
            command: Some(subscriber.command.clone()),
            is_async: subscriber.is_async,
            ..Handler::default()
        };
        let as_hook = Hook {
            event: event.to_owned(),
            handler,
            ..Hook::default()
        };
        rules
            .admit(None, Scope::Project, &as_hook, None)
            .map_err(|refusal| (refusal.to_string(), None))?;
        let files = || command_files(&subscriber.command, &self.root);
        let consent = self.consent.as_ref();
        let Some(Err(why)) = consent.map(|consent| consent.check(&files(), None)) else {
            return Ok(());
        };
        let notice = format!(
            "consumer {} of `{}` does not run: {why}; read it, then run `anyhook trust`",
            label(hook),
            self.path.display()
        );
        Err((why.to_string(), Some(notice)))
    }
}

fn new_run(path: &Path, hook: usize, outcome: RunOutcome, message: Option<String>) -> HookRun {
    HookRun {
        hook: label(hook),
        manifest: path.to_string_lossy().into_owned(),
        outcome,
        message,
        ..HookRun::default()
    }
}

/// The position from 1, as for hooks without a name.
fn label(hook: usize) -> String {
    format!("#{}", hook + 1)
}

/// Deliveries that are planned and not made.
#[derive(Debug)]
pub struct PendingDeliveries {
    consumers: Consumers,
    deliveries: Vec<Delivery>,
    /// Consumers that may not run, for the record.
    pub refused: Vec<HookRun>,
    /// The same, for the user.
    pub notices: Vec<String>,
}

impl PendingDeliveries {
    /// One entry per consumer, for a record that is written before they end.
    pub fn started(&self) -> Vec<HookRun> {
        let mut runs: Vec<HookRun> = Vec::new();
        for delivery in &self.deliveries {
            let path = &self.consumers.path;
            let run = new_run(path, delivery.hook, RunOutcome::Started, None);
            if !runs.contains(&run) {
                runs.push(run);
            }
        }
        runs
    }

    /// Delivers everything. Consumers that are not asynchronous are waited for; for
    /// the others the result shows only whether they could be queued. A failure is
    /// in the run that it belongs to, and does not stop the others.
    pub fn deliver(
        self,
        engine: &Engine,
        event: &HookEvent,
        mut options: EventOptions,
        record: &str,
    ) -> Vec<HookRun> {
        let mut runs = Vec::with_capacity(self.deliveries.len());
        for delivery in self.deliveries {
            let is_async = delivery.is_async;
            let job = DeliveryJob {
                manifest: self.consumers.path.clone(),
                root: self.consumers.root.clone(),
                delivery,
                event: outline(event),
                record: record.to_owned(),
            };
            if options.cancel.is_none() && !is_async {
                options.cancel = options.listen.take().and_then(|listen| listen());
            }
            // A caller that is being ended cannot wait for consumers, which still
            // get their envelopes.
            let is_ending = options.cancel.as_ref().is_some_and(Cancel::is_set);
            runs.push(if is_async || is_ending {
                job.hand_over(engine)
            } else {
                job.run(options.cancel.as_ref(), options.owns_process)
            });
        }
        runs
    }
}

/// One delivery with everything that another process needs to make it.
#[derive(Debug, Serialize, Deserialize)]
struct DeliveryJob {
    manifest: PathBuf,
    root: PathBuf,
    delivery: Delivery,
    event: HookEvent,
    /// The record of the event.
    record: String,
}

impl DeliveryJob {
    fn new_run(&self, outcome: RunOutcome, message: Option<String>) -> HookRun {
        let kind = &self.delivery.event_type;
        let message = message.map(|message| format!("`{kind}`: {message}"));
        new_run(&self.manifest, self.delivery.hook, outcome, message)
    }

    fn run(&self, cancel: Option<&Cancel>, owns_process: bool) -> HookRun {
        let started = Instant::now();
        let context = CommandContext::in_root(&self.root);
        let result = exec::run(&ProcessRequest {
            command_line: CommandLine::prepare(&self.delivery.command, context),
            cwd: self.root.clone(),
            owns_process,
            env: vec![
                env::ANYHOOK_AGENT.with(&self.event.source),
                env::ANYHOOK_EVENT.with(&self.event.event),
                env::ANYHOOK_PROJECT_DIR.with(self.root.to_string_lossy()),
            ],
            stdin: self.delivery.envelope_json.as_bytes(),
            timeout: self.delivery.timeout,
            cancel,
        });
        let (outcome, message) = match &result.end {
            ProcessEnd::Exit(0) => (RunOutcome::Allow, None),
            ProcessEnd::Exit(code) => {
                let stderr = last_line(&result.stderr.bytes);
                (RunOutcome::Warn, Some(format!("exit code {code}{stderr}")))
            }
            ProcessEnd::Signal(signal) => {
                (RunOutcome::Error, Some(format!("ended by signal {signal}")))
            }
            ProcessEnd::Timeout => {
                let seconds = self.delivery.timeout.as_secs_f64();
                let why = format!("ended after {seconds} seconds without a result");
                (RunOutcome::Timeout, Some(why))
            }
            ProcessEnd::Cancelled => (RunOutcome::Error, Some("cancelled".to_owned())),
            ProcessEnd::NotStarted(why) => (RunOutcome::Error, Some(why.clone())),
        };
        HookRun {
            exit: match result.end {
                ProcessEnd::Exit(code) => Some(code),
                _ => None,
            },
            duration_ms: time::millis(started.elapsed()),
            ..self.new_run(outcome, message)
        }
    }

    /// Puts it into the queue of its consumer and session, and starts a supervisor.
    fn hand_over(&self, engine: &Engine) -> HookRun {
        let problem = self.enqueue(engine).err();
        let outcome = problem
            .as_ref()
            .map_or(RunOutcome::Started, |_| RunOutcome::Error);
        let why = problem.map(|error| format!("it cannot be queued: {error}"));
        self.new_run(outcome, why)
    }

    fn enqueue(&self, engine: &Engine) -> io::Result<()> {
        let session = self.event.session_id.as_deref().unwrap_or_default();
        let manifest = self.manifest.to_string_lossy();
        let hook = label(self.delivery.hook);
        let name = [&*manifest, &hook, &self.event.source, session];
        let queue = Queue::new(&engine.dirs.state, &name);
        queue.push(&serde_json::to_string(self)?)?;
        if !queue.is_served() {
            supervise::launch_queue(engine, queue.path())?;
        }
        Ok(())
    }
}

/// The last line that a consumer has written to stderr.
fn last_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    let line = line.unwrap_or_default().trim();
    match line.char_indices().nth(MAX_STDERR_EXCERPT_CHARS) {
        _ if line.is_empty() => String::new(),
        Some((end, _)) => format!(": {}…", line.get(..end).unwrap_or_default()),
        None => format!(": {line}"),
    }
}

/// The event without its content: a record of a delivery refers to its record.
fn outline(event: &HookEvent) -> HookEvent {
    HookEvent {
        event: event.event.clone(),
        source: event.source.clone(),
        native_event: event.native_event.clone(),
        session_id: event.session_id.clone(),
        timestamp: event.timestamp.clone(),
        cwd: event.cwd.clone(),
        ..HookEvent::default()
    }
}

/// Makes the deliveries in a queue.
pub(crate) fn serve_queue(engine: &Engine, queue: PathBuf) -> io::Result<()> {
    Queue::at(queue).serve(&mut |line| {
        let Ok(job) = serde_json::from_str::<DeliveryJob>(line) else {
            return;
        };
        let run = job.run(None, true);
        record_ends(engine, &job.event, vec![run], &job.record);
    })
}

/// Records how consumers ended.
pub(crate) fn record_ends(
    engine: &Engine,
    event: &HookEvent,
    runs: Vec<HookRun>,
    launched_in: &str,
) {
    let mut record = end_record(outline(event), launched_in);
    record.duration_ms = runs.iter().map(|run| run.duration_ms).sum();
    record.warnings = runs
        .iter()
        .filter(|run| !matches!(run.outcome, RunOutcome::Allow | RunOutcome::Started))
        .map(|run| {
            let message = run.message.as_deref().unwrap_or_default();
            format!("consumer {} of `{}`: {message}", run.hook, run.manifest)
        })
        .collect();
    record.hooks = runs;
    // No failure here may reach the agent.
    let _ = engine.journal.append(&record);
}
