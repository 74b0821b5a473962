//! Who listens: the consumers of the nearest `.openhook.json`.
//!
//! They are found and asked for consent before the agent is answered, so that
//! the user can be told of what does not run; they hear of the event after it.
//! What they do, and whether they end at all, touches neither answer nor exit
//! code. A project without the file pays for looking, and for nothing else: the
//! memory that envelopes need is kept only where somebody listens.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhook_emit::discovery::{self, Deliver, Delivery, Found};
use anyhook_emit::{Options, Queue, StateWorld, envelopes_with};
use anyhook_model::{Handler, Hook, HookEvent, HookRun, RecordKind, RunOutcome, Scope};
use openhook::{Discovery, Envelope};
use serde::{Deserialize, Serialize};
use serde_json::Map;

use crate::engine::{Engine, new_record};
use crate::exec::command::{Launch, Place};
use crate::exec::{self, Cancel, End, Job};
use crate::policy::Rulebook;
use crate::supervise;
use crate::trust::{Consent, Distrust, command_files};

/// How much of a consumer's last words is kept.
const LAST_WORDS: usize = 200;

/// The envelopes of an event. Its `timestamp` must be the agent's own, or absent.
pub fn envelopes(engine: &Engine, event: &HookEvent) -> Vec<Envelope> {
    let world = StateWorld::new(&engine.dirs.state);
    envelopes_with(event, &world, options(&event.source))
}

/// What an agent leaves out, by its table.
fn options(source: &str) -> Options {
    let Some(adapter) = anyhook_agents::get(source) else {
        return Options::default();
    };
    let lacks = |name: &str| {
        let mut events = adapter.spec.events.iter();
        !events.any(|event| event.is.as_deref() == Some(name))
    };
    Options {
        synthesize_start: lacks("session_start"),
        synthesize_end: lacks("session_end"),
    }
}

/// Consumers that may run.
#[derive(Debug)]
pub struct Audience {
    path: PathBuf,
    root: PathBuf,
    discovery: Discovery,
    /// None: everything is trusted.
    consent: Option<Consent>,
}

/// What a look for consumers gave.
#[derive(Debug, Default)]
pub struct Look {
    pub audience: Option<Audience>,
    /// What the user should know of the file.
    pub notices: Vec<String>,
}

impl Audience {
    /// The consumers that [`discover`](crate::discover::discover) has seen, by
    /// the folder of their file.
    pub fn find(engine: &Engine, openhook: Option<&Path>) -> Look {
        let Some(folder) = openhook else {
            return Look::default();
        };
        match discovery::find(folder, engine.dirs.home.as_deref()) {
            Ok(None) => Look::default(),
            Ok(Some(found)) => Self::read(engine, found),
            Err(unreadable) => Look {
                notices: vec![unreadable.to_string()],
                ..Look::default()
            },
        }
    }

    fn read(engine: &Engine, found: Found) -> Look {
        let shown = found.path.display();
        let errors = found.reading.findings.iter();
        let mut notices: Vec<String> = errors
            .filter(|finding| finding.is_error())
            .map(|finding| {
                let place = match finding.field.as_str() {
                    "" => String::new(),
                    field => format!("{field}: "),
                };
                format!(
                    "`{shown}` is not used as a whole: {place}{}",
                    finding.message
                )
            })
            .collect();
        let consent = match engine.trust.get(&found.path) {
            _ if engine.trust_all => Ok(None),
            None => Err(Distrust::Never),
            Some(consent) if consent.covers_manifest(&found.text) => Ok(Some(consent)),
            Some(_) => Err(Distrust::Changed(vec![found.path.clone()])),
        };
        let consent = consent.map_err(|why| {
            format!(
                "the consumers of `{shown}` do not run: {why}; read it, then run `anyhook trust`"
            )
        });
        let audience = match (found.reading.discovery, consent) {
            (Some(discovery), Ok(consent)) => Some(Self {
                path: found.path,
                root: found.root,
                discovery,
                consent,
            }),
            (Some(discovery), Err(why)) => {
                notices.extend((!discovery.hooks.is_empty()).then_some(why));
                None
            }
            (None, _) => None,
        };
        Look { audience, notices }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Who gets what of these envelopes, and who may not. A policy counts a
    /// consumer as a hook of the project for the event at hand.
    pub fn invite(self, envelopes: &[Envelope], event: &str, rules: &Rulebook) -> Telling {
        let mut telling = Telling {
            deliveries: discovery::deliveries(&self.discovery, envelopes),
            audience: self,
            refused: Vec::new(),
            notices: Vec::new(),
        };
        let mut wanted: Vec<usize> = telling.deliveries.iter().map(|one| one.hook).collect();
        wanted.sort_unstable();
        wanted.dedup();
        for hook in wanted {
            if let Err((why, notice)) = telling.audience.admit(hook, event, rules) {
                telling.deliveries.retain(|delivery| delivery.hook != hook);
                let mut run = telling.audience.run_of(hook);
                run.outcome = RunOutcome::Refused;
                run.message = Some(why);
                telling.refused.push(run);
                telling.notices.extend(notice);
            }
        }
        telling
    }

    /// The reason, and what of it is news to the user.
    fn admit(
        &self,
        hook: usize,
        event: &str,
        rules: &Rulebook,
    ) -> Result<(), (String, Option<String>)> {
        let Some(subscriber) = self.discovery.hooks.get(hook) else {
            return Ok(());
        };
        let handler = Handler {
            command: Some(subscriber.command.clone()),
            is_async: subscriber.is_async,
            ..Handler::default()
        };
        let as_hook = Hook {
            name: None,
            event: event.to_owned(),
            matcher: None,
            handler,
            blocking: false,
            degradation: Map::default(),
            capabilities: Vec::new(),
            provider_data: Map::default(),
            extra: Map::default(),
        };
        rules
            .admit(Scope::Project, &as_hook, None)
            .map_err(|refusal| (refusal.to_string(), None))?;
        let Some(consent) = &self.consent else {
            return Ok(());
        };
        let changed = consent.changed(&command_files(&subscriber.command, &self.root));
        if changed.is_empty() {
            return Ok(());
        }
        let why = Distrust::Changed(changed).to_string();
        let notice = format!(
            "consumer {} of `{}` does not run: {why}; read it, then run `anyhook trust`",
            label(hook),
            self.path.display()
        );
        Err((why, Some(notice)))
    }

    fn run_of(&self, hook: usize) -> HookRun {
        HookRun {
            hook: label(hook),
            manifest: self.path.to_string_lossy().into_owned(),
            ..HookRun::default()
        }
    }
}

/// By position from 1, as hooks without a name.
fn label(hook: usize) -> String {
    format!("#{}", hook + 1)
}

/// Envelopes on their way to those who may hear them.
#[derive(Debug)]
pub struct Telling {
    audience: Audience,
    deliveries: Vec<Delivery>,
    /// Consumers that may not run, for the record.
    pub refused: Vec<HookRun>,
    /// The same, for the user.
    pub notices: Vec<String>,
}

/// How deliveries are made.
#[derive(Debug, Clone, Default)]
pub struct Manner {
    /// Ends a running consumer early.
    pub cancel: Option<Cancel>,
    /// Makes `cancel` when the first consumer is to be waited for.
    pub listen: Option<fn() -> Option<Cancel>>,
    /// See [`Job::owns_process`].
    pub owns_process: bool,
}

impl Telling {
    pub fn is_empty(&self) -> bool {
        self.deliveries.is_empty()
    }

    /// One line per consumer, for a record that is written before they end.
    pub fn started(&self) -> Vec<HookRun> {
        let mut runs: Vec<HookRun> = Vec::new();
        for delivery in &self.deliveries {
            let run = HookRun {
                outcome: RunOutcome::Started,
                ..self.audience.run_of(delivery.hook)
            };
            if !runs.contains(&run) {
                runs.push(run);
            }
        }
        runs
    }

    /// Delivers everything. Who is not asynchronous is waited for; of the others
    /// the result says only whether they could be handed over.
    pub fn deliver(
        self,
        engine: &Engine,
        event: &HookEvent,
        manner: Manner,
        record: &str,
    ) -> Vec<HookRun> {
        let mut waiter = Waiter {
            engine,
            audience: &self.audience,
            event,
            record,
            manner,
            runs: Vec::new(),
        };
        // Each failure is in the run that it belongs to.
        let _ = discovery::dispatch(&self.deliveries, &mut waiter);
        waiter.runs
    }
}

/// Delivers, and waits where that is wanted.
struct Waiter<'a> {
    engine: &'a Engine,
    audience: &'a Audience,
    event: &'a HookEvent,
    record: &'a str,
    manner: Manner,
    runs: Vec<HookRun>,
}

impl Deliver for Waiter<'_> {
    fn deliver(&mut self, delivery: &Delivery) -> Result<(), String> {
        let errand = Errand {
            manifest: self.audience.path.clone(),
            root: self.audience.root.clone(),
            delivery: delivery.clone(),
            event: outline(self.event),
            record: self.record.to_owned(),
        };
        if self.manner.cancel.is_none() && !delivery.is_async {
            self.manner.cancel = self.manner.listen.take().and_then(|listen| listen());
        }
        // Whoever ends us has no time for consumers, who still want to hear.
        let is_ending = self.manner.cancel.as_ref().is_some_and(Cancel::is_set);
        let run = if delivery.is_async || is_ending {
            errand.hand_over(self.engine)
        } else {
            errand.run(self.manner.cancel.as_ref(), self.manner.owns_process)
        };
        let result = match (run.outcome, &run.message) {
            (RunOutcome::Allow | RunOutcome::Started, _) => Ok(()),
            (_, message) => Err(message.clone().unwrap_or_default()),
        };
        self.runs.push(run);
        result
    }
}

/// One delivery with all that it needs, also in another process.
#[derive(Debug, Serialize, Deserialize)]
struct Errand {
    manifest: PathBuf,
    root: PathBuf,
    delivery: Delivery,
    event: HookEvent,
    /// The record in which it was begun.
    record: String,
}

impl Errand {
    fn run_of(&self, outcome: RunOutcome, message: Option<String>) -> HookRun {
        let kind = &self.delivery.event_type;
        HookRun {
            hook: label(self.delivery.hook),
            manifest: self.manifest.to_string_lossy().into_owned(),
            outcome,
            message: message.map(|message| format!("`{kind}`: {message}")),
            ..HookRun::default()
        }
    }

    fn run(&self, cancel: Option<&Cancel>, owns_process: bool) -> HookRun {
        let started = Instant::now();
        let place = Place {
            scope: Scope::Project,
            root: &self.root,
            folder: &self.root,
            cwd: &self.root,
        };
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let ended = exec::run(&Job {
            launch: Launch::prepare(&self.delivery.command, place),
            cwd: self.root.clone(),
            owns_process,
            env: vec![
                ("ANYHOOK_AGENT".to_owned(), self.event.source.clone()),
                ("ANYHOOK_EVENT".to_owned(), self.event.event.clone()),
                ("ANYHOOK_PROJECT_DIR".to_owned(), text(&self.root)),
            ],
            stdin: self.delivery.envelope_json.as_bytes(),
            timeout: self.delivery.timeout,
            cancel,
        });
        let (outcome, message) = match &ended.end {
            End::Exit(0) => (RunOutcome::Allow, None),
            End::Exit(code) => {
                let said = last_words(&ended.stderr.bytes);
                (RunOutcome::Warn, Some(format!("exit code {code}{said}")))
            }
            End::Signal(signal) => (RunOutcome::Error, Some(format!("ended by signal {signal}"))),
            End::Timeout => {
                let seconds = self.delivery.timeout.as_secs_f64();
                let why = format!("not done after {seconds} seconds, and ended");
                (RunOutcome::Timeout, Some(why))
            }
            End::Cancelled => (RunOutcome::Error, Some("cancelled".to_owned())),
            End::NotStarted(why) => (RunOutcome::Error, Some(why.clone())),
        };
        HookRun {
            exit: match ended.end {
                End::Exit(code) => Some(code),
                _ => None,
            },
            duration_ms: started.elapsed().as_secs_f64() * 1000.0,
            ..self.run_of(outcome, message)
        }
    }

    /// Puts it into the queue of its consumer and session, and has that served.
    fn hand_over(&self, engine: &Engine) -> HookRun {
        match self.enqueue(engine) {
            Ok(()) => self.run_of(RunOutcome::Started, None),
            Err(error) => {
                let why = format!("it cannot be handed over: {error}");
                self.run_of(RunOutcome::Error, Some(why))
            }
        }
    }

    fn enqueue(&self, engine: &Engine) -> io::Result<()> {
        let session = self.event.session_id.as_deref().unwrap_or_default();
        let manifest = self.manifest.to_string_lossy();
        let hook = label(self.delivery.hook);
        let name = [&*manifest, &hook, &self.event.source, session];
        let queue = Queue::new(&engine.dirs.state, &name);
        queue.push(&serde_json::to_string(self)?)?;
        if queue.is_served() {
            return Ok(());
        }
        supervise::launch_queue(engine, queue.path())
    }
}

/// The end of what a consumer has written, in one line.
fn last_words(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    let line = line.unwrap_or_default().trim();
    match line.char_indices().nth(LAST_WORDS) {
        _ if line.is_empty() => String::new(),
        Some((end, _)) => format!(": {}…", line.get(..end).unwrap_or_default()),
        None => format!(": {line}"),
    }
}

/// The event without its content: a record of a delivery refers to the event's.
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

/// Delivers what waits in a queue.
pub fn serve(engine: &Engine, queue: PathBuf) -> io::Result<()> {
    Queue::at(queue).serve(&mut |line| {
        let Ok(errand) = serde_json::from_str::<Errand>(line) else {
            return;
        };
        let run = errand.run(None, true);
        record_ends(engine, &errand.event, vec![run], &errand.record);
    })
}

/// Writes down how consumers ended.
pub(crate) fn record_ends(engine: &Engine, event: &HookEvent, runs: Vec<HookRun>, began_in: &str) {
    let mut record = new_record(RecordKind::AsyncEnd, outline(event));
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
    let began_in = began_in.to_owned();
    record
        .extra
        .insert("launched_in".to_owned(), began_in.into());
    // Nothing that goes wrong here may reach the agent.
    let _ = engine.journal.append(&record);
}
