//! An event's way: discover, plan, run, merge, record.
//!
//! Owns the order of things. It decodes no agent's payload and writes no
//! agent's answer, and it prints nothing. Whatever fails here is a warning in
//! what it returns: the agent must never be broken by us.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use ::openhook::Envelope;
use anyhook_agents::Adapter;
use anyhook_model::record::RECORD_VERSION;
use anyhook_model::registry::{self, Semantic};
use anyhook_model::{
    Answer, Decision, HookEvent, HookResponse, HookRun, Loss, Record, RecordKind, RunOutcome,
    Scope, merge,
};
use serde_json::{Map, Value};

use crate::clock;
use crate::compiled;
use crate::dialect;
use crate::discover::{self, Dirs, Found, Trouble};
use crate::duplicate::{self, Claim, Claimed};
use crate::exec::Cancel;
use crate::files;
use crate::handler::{self, Context, Ran};
use crate::journal::Journal;
use crate::memory::Memory;
use crate::openhook::{self, Audience, Manner, Telling};
use crate::plan::{Planned, Verdict};
use crate::policy::Rulebook;
use crate::supervise;
use crate::surroundings::Surroundings;
use crate::trust::{Distrust, TrustStore, hash};

/// Small files of ours are kept so long.
const KEEP_MARKS: Duration = Duration::from_secs(7 * 24 * 3600);

#[derive(Debug, Clone)]
pub struct Engine {
    pub dirs: Dirs,
    /// Every manifest is trusted (`ANYHOOK_TRUST=all`).
    pub trust_all: bool,
    /// No hook runs (`ANYHOOK=0`); whoever uses the engine asks for it.
    pub off: bool,
    pub journal: Journal,
    pub trust: TrustStore,
    /// For a process that handles many events.
    pub memory: Option<Arc<Memory>>,
    /// What watches over a detached hook; `None`: this program, `run --supervise`.
    pub supervisor: Option<Vec<OsString>>,
}

/// How one event is handled.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Ends running hooks early.
    pub cancel: Option<Cancel>,
    /// Makes `cancel` when the first hook is to run, and not before.
    pub listen: Option<fn() -> Option<Cancel>>,
    /// The agent's process, to recognise an event that it delivers twice.
    pub parent: Option<u32>,
    /// Nobody else works in this process: hooks start faster.
    pub owns_process: bool,
    /// The caller knows that [nothing runs](Surroundings::is_quiet) here.
    pub is_quiet: bool,
}

/// What an event came to.
#[derive(Debug, Default)]
pub struct Handled {
    /// The record's id.
    pub id: String,
    pub response: HookResponse,
    pub runs: Vec<HookRun>,
    /// Own troubles and hooks' warnings; those that are new in this session are
    /// in the response's `system_message` too.
    pub warnings: Vec<String>,
    /// What hooks' dialects could not carry.
    pub lost: Vec<Loss>,
    /// The tool's whole new input, when hooks have rewritten it.
    pub input: Option<Map<String, Value>>,
    /// The agent has delivered this event before; no hook has run again.
    pub duplicate: bool,
    /// The caller was told to stop.
    pub cancelled: bool,
    started: Option<Instant>,
    /// When the event came, where the agent does not say.
    time: Option<String>,
    told: Vec<PathBuf>,
    claim: Option<Claim>,
    /// Who is to hear of it.
    telling: Option<Telling>,
    /// Who would hear of it, had it not been refused; with the rules for that.
    unheard: Option<(Audience, Rulebook)>,
    manner: Manner,
}

/// One line of an explanation.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Explained {
    pub hook: String,
    pub manifest: String,
    /// Whether it would run.
    pub matches: bool,
    pub why: String,
}

impl Engine {
    pub fn from_env() -> Self {
        let lookup = |name: &str| std::env::var_os(name);
        let is = |name: &str, wanted: &str| {
            lookup(name).is_some_and(|value| value == wanted) && !discover::is_locked(lookup)
        };
        let mut engine = Self::new(Dirs::from_env(), is("ANYHOOK_TRUST", "all"));
        engine.off = is("ANYHOOK", "0");
        let limit = std::env::var("ANYHOOK_JOURNAL_LIMIT").ok();
        if let Some(bytes) = limit.and_then(|bytes| bytes.parse().ok()) {
            engine.journal = engine.journal.rotating_at(bytes);
        }
        engine
    }

    pub fn new(dirs: Dirs, trust_all: bool) -> Self {
        Self {
            journal: Journal::new(&dirs.state),
            trust: TrustStore::new(&dirs.state),
            trust_all,
            off: false,
            dirs,
            memory: None,
            supervisor: None,
        }
    }

    /// Runs the hooks of an event.
    pub fn handle(&self, event: &HookEvent, options: &Options) -> Handled {
        let now = clock::now_ms();
        let mut work = Work {
            engine: self,
            options,
            cancel: options.cancel.clone(),
            event: Cow::Borrowed(event),
            envelopes: None,
            handled: Handled {
                id: clock::uuid(now),
                started: Some(Instant::now()),
                time: event.timestamp.is_none().then(|| clock::rfc3339(now)),
                ..Handled::default()
            },
            notices: Vec::new(),
        };
        if event.event == "session_start" {
            self.forget_old_marks();
        }
        match options
            .parent
            .map(|parent| duplicate::claim(&self.dirs.state, event, parent))
        {
            Some(Claimed::Duplicate) => work.handled.duplicate = true,
            Some(Claimed::First(claim)) => {
                work.handled.claim = Some(claim);
                work.run();
            }
            None => work.run(),
        }
        work.finish()
    }

    /// Which hooks would run for an event, and why the others would not.
    pub fn explain(&self, event: &HookEvent) -> (Vec<Explained>, Vec<Trouble>) {
        let here = Surroundings::load(self, event, false);
        let mut lines = Vec::new();
        for loaded in &here.loaded {
            for (planned, verdict) in loaded.all(event, &here.rules) {
                lines.push(Explained {
                    why: verdict.explain(&planned.hook, event),
                    matches: verdict == Verdict::Runs,
                    manifest: planned.manifest.to_string_lossy().into_owned(),
                    hook: planned.label,
                });
            }
        }
        (lines, here.troubles.clone())
    }

    /// Whether the managed policy wants own failures to block.
    pub fn fails_closed(&self) -> bool {
        let found = Found::managed(&self.dirs.managed);
        Rulebook::load(&found.policies, &mut Vec::new()).fail_closed()
    }

    /// Writes the record, remembers what the user has been told, and tells
    /// OpenHook consumers of the event; it waits for those that are not
    /// asynchronous. So it comes after the answer, and nothing that goes wrong
    /// here may reach the agent.
    pub fn conclude(
        &self,
        event: HookEvent,
        mut handled: Handled,
        answer: Option<Answer>,
        lost: &[Loss],
    ) {
        let is_told = !lost.iter().any(|loss| loss.field == "system_message");
        for marker in handled.told.drain(..).filter(|_| is_told) {
            files::first_time(&marker);
        }
        if let Some((audience, rules)) = handled.unheard.take()
            && lost.iter().any(|loss| loss.field == "deny")
        {
            // The agent does not obey: it happens all the same.
            let envelopes = openhook::envelopes(self, &event);
            handled.telling = Some(audience.invite(&envelopes, &event.event, &rules));
        }
        let mut record = record(RecordKind::Event, handled.id, event);
        if let Some(time) = handled.time.take() {
            record.event.timestamp = Some(time);
        }
        record.decision = handled.response.decision;
        record.response = std::mem::take(&mut handled.response);
        record.hooks = std::mem::take(&mut handled.runs);
        if let Some(telling) = &handled.telling {
            record.hooks.extend(telling.refused.iter().cloned());
            record.hooks.extend(telling.started());
        }
        record.answer = answer;
        record.lost = [&handled.lost[..], lost].concat();
        record.warnings = std::mem::take(&mut handled.warnings);
        record.duration_ms = handled
            .started
            .map_or(0.0, |started| started.elapsed().as_secs_f64() * 1000.0);
        if handled.duplicate {
            record.extra.insert("duplicate".to_owned(), true.into());
        }
        let _ = self.journal.append(&record);
        if let Some(telling) = handled.telling.take().filter(|telling| !telling.is_empty()) {
            let manner = std::mem::take(&mut handled.manner);
            let mut ends = telling.deliver(self, &record.event, manner, &record.id);
            ends.retain(|run| run.outcome != RunOutcome::Started);
            if !ends.is_empty() {
                openhook::record_ends(self, &record.event, ends, &record.id);
            }
        }
    }

    /// Records that the dispatcher itself could not do its work.
    pub fn record_failure(&self, event: HookEvent, message: &str, answer: Answer) {
        let mut record = new_record(RecordKind::Failure, event);
        record.warnings = vec![message.to_owned()];
        record.answer = Some(answer);
        let _ = self.journal.append(&record);
    }

    /// Records that hooks were switched off when an event came.
    pub fn record_off(&self, event: HookEvent, answer: Answer) {
        let mut record = new_record(RecordKind::Event, event);
        record.warnings = vec!["switched off (`ANYHOOK=0`): no hook has run".to_owned()];
        record.answer = Some(answer);
        let _ = self.journal.append(&record);
    }

    fn mark(&self, session: &str, text: &str) -> PathBuf {
        let key = hash([session, text].join("\0").as_bytes());
        self.dirs
            .state
            .join("told")
            .join(key.get(..32).unwrap_or(&key))
    }

    fn forget_old_marks(&self) {
        for folder in ["told", "claims", compiled::FOLDER] {
            let entries = std::fs::read_dir(self.dirs.state.join(folder));
            for entry in entries.into_iter().flatten().flatten() {
                let modified = entry.metadata().and_then(|data| data.modified());
                let age = modified
                    .ok()
                    .and_then(|time| SystemTime::now().duration_since(time).ok());
                if age.is_some_and(|age| age > KEEP_MARKS) {
                    let _ = std::fs::remove_file(entry.path());
                }
            }
        }
    }
}

/// A record of now, with nothing in it yet but the event.
pub(crate) fn new_record(kind: RecordKind, event: HookEvent) -> Record {
    record(kind, clock::uuid(clock::now_ms()), event)
}

fn record(kind: RecordKind, id: String, event: HookEvent) -> Record {
    Record {
        v: RECORD_VERSION,
        id,
        time: clock::rfc3339(clock::now_ms()),
        kind,
        agent: event.source.clone(),
        event,
        ..Record::default()
    }
}

/// Whether a deny can prevent anything at this event.
pub fn is_preventable(event: &str) -> bool {
    registry::event(event).is_some_and(|known| known.blocking == Semantic::Prevent)
}

/// One event on its way.
struct Work<'a> {
    engine: &'a Engine,
    options: &'a Options,
    cancel: Option<Cancel>,
    /// As the next hook sees it, but for the time that [`Work::stamp`] gives it.
    event: Cow<'a, HookEvent>,
    /// Made when somebody is to hear them first.
    envelopes: Option<Vec<Envelope>>,
    handled: Handled,
    /// For the user.
    notices: Vec<String>,
}

impl Work<'_> {
    fn run(&mut self) {
        if self.options.is_quiet {
            return;
        }
        let here = Surroundings::load(self.engine, &self.event, self.options.owns_process);
        let fail_closed = here.rules.fail_closed();
        self.report(&here.troubles, fail_closed);
        if fail_closed && is_preventable(&self.event.event) {
            for why in here.gone(self.engine) {
                self.block(&why);
                self.notices.push(why);
            }
        }
        self.notices.extend(here.notices.iter().cloned());
        let look = Audience::find(self.engine, here.openhook.as_deref());
        self.notices.extend(look.notices);
        for loaded in &here.loaded {
            if let Some(why) = loaded.distrust() {
                let path = loaded.source.path.display();
                let advice = match loaded.source.scope {
                    Scope::Project => "; read it, then run `anyhook trust`",
                    Scope::User | Scope::Managed => "",
                };
                let notice = format!("the hooks of `{path}` do not run: {why}{advice}");
                // What nobody has ever trusted cannot have been a guard.
                if fail_closed && *why != Distrust::Never {
                    self.block(&notice);
                }
                self.notices.push(notice);
            }
            for planned in loaded.due(&self.event) {
                match loaded.may_run(&planned, &here.rules) {
                    Verdict::OtherEvent | Verdict::OtherTool => {}
                    Verdict::Untrusted(why) if loaded.distrust().is_some() => {
                        self.refuse(&planned, why.to_string(), None);
                    }
                    Verdict::Untrusted(why) => {
                        let label = &planned.label;
                        let notice = format!(
                            "hook `{label}` does not run: {why}; read it, then run `anyhook trust`"
                        );
                        if fail_closed && planned.hook.blocking {
                            self.block(&notice);
                        }
                        self.refuse(&planned, why.to_string(), Some(notice));
                    }
                    Verdict::Refused(refusal) => {
                        // Whoever relies on a guard must know that it is off.
                        let label = &planned.label;
                        let notice = planned.hook.blocking.then(|| {
                            format!("hook `{label}`, which may block, does not run: {refusal}")
                        });
                        self.refuse(&planned, refusal.to_string(), notice);
                    }
                    Verdict::Runs => self.step(&planned, fail_closed),
                }
            }
        }
        if let Some(audience) = look.audience {
            self.address(audience, here.rules.clone());
        }
    }

    /// Prepares what is told of the event. Envelopes are made now, because a
    /// file that a tool is about to create must be looked for before.
    fn address(&mut self, audience: Audience, rules: Rulebook) {
        if self.is_refused() {
            self.handled.unheard = Some((audience, rules));
            return;
        }
        let envelopes = self.envelopes();
        let mut telling = audience.invite(&envelopes, &self.event.event, &rules);
        self.envelopes = Some(envelopes);
        self.notices.append(&mut telling.notices);
        self.handled.telling = Some(telling);
    }

    /// Whether it does not happen because of what the hooks have said.
    fn is_refused(&self) -> bool {
        let response = &self.handled.response;
        let blocking = registry::event(&self.event.event).map(|known| known.blocking);
        match blocking {
            Some(Semantic::Prevent) => response.is_deny() || response.goes_on == Some(false),
            Some(Semantic::Retry) => response.is_deny(),
            _ => false,
        }
    }

    /// The event's envelopes; the same for everybody.
    fn envelopes(&mut self) -> Vec<Envelope> {
        if let Some(envelopes) = self.envelopes.take() {
            return envelopes;
        }
        // A time of ours would make every delivery another event.
        if self.handled.time.is_some() && self.event.timestamp.is_some() {
            self.event.to_mut().timestamp = None;
        }
        openhook::envelopes(self.engine, &self.event)
    }

    /// Own troubles: told, and under `fail_closed` a deny where that prevents.
    fn report(&mut self, troubles: &[Trouble], fail_closed: bool) {
        for trouble in troubles {
            let path = trouble.path.display();
            let message = format!("`{path}` is not used: {}", trouble.message);
            // A project that nobody has trusted cannot have been a guard.
            let was_guard = trouble.scope != Scope::Project
                || self.engine.trust_all
                || self.engine.trust.get(&trouble.path).is_some();
            if fail_closed && was_guard {
                self.block(&format!(
                    "hooks that may guard this cannot be read: {message}"
                ));
            }
            self.notices.push(message);
        }
    }

    /// A deny of our own, where that prevents anything.
    fn block(&mut self, why: &str) {
        if is_preventable(&self.event.event) {
            self.merge(HookResponse::deny(format!("blocked, because {why}")));
        }
    }

    fn refuse(&mut self, planned: &Planned<'_>, why: String, notice: Option<String>) {
        self.notices.extend(notice);
        self.push(planned, RunOutcome::Refused, Some(why));
    }

    fn push(&mut self, planned: &Planned<'_>, outcome: RunOutcome, message: Option<String>) {
        self.handled.runs.push(HookRun {
            hook: planned.label.clone(),
            manifest: planned.manifest.to_string_lossy().into_owned(),
            outcome,
            message,
            ..HookRun::default()
        });
    }

    fn merge(&mut self, response: HookResponse) {
        let earlier = std::mem::take(&mut self.handled.response);
        self.handled.response = merge(earlier, response);
    }

    fn step(&mut self, planned: &Planned<'_>, fail_closed: bool) {
        let is_denied = self.handled.response.decision == Some(Decision::Deny);
        if is_denied && planned.hook.blocking {
            let why = "an earlier hook has denied already".to_owned();
            return self.push(planned, RunOutcome::Skipped, Some(why));
        }
        if self.cancel.is_none() {
            self.cancel = self.options.listen.and_then(|listen| listen());
        }
        if self.cancel.as_ref().is_some_and(Cancel::is_set) {
            return self.push(planned, RunOutcome::Skipped, Some("cancelled".to_owned()));
        }
        let is_openhook = planned.hook.handler.dialect.as_deref() == Some(dialect::OPENHOOK);
        let envelopes = if is_openhook {
            self.envelopes()
        } else {
            Vec::new()
        };
        if planned.hook.handler.is_async {
            self.launch(planned, &envelopes);
        } else {
            self.ask(planned, &envelopes, fail_closed);
        }
        if is_openhook {
            self.envelopes = Some(envelopes);
        }
    }

    fn ask(&mut self, planned: &Planned<'_>, envelopes: &[Envelope], fail_closed: bool) {
        self.stamp();
        let context = Context {
            dirs: &self.engine.dirs,
            cancel: self.cancel.as_ref(),
            fail_closed,
            owns_process: self.options.owns_process,
            envelopes,
        };
        let ran = handler::run(planned, &self.event, context);
        self.handled.runs.push(ran.record(planned));
        let Ran { outcome, lost, .. } = ran;
        self.handled.lost.extend(lost);
        self.notices.extend(outcome.warnings);
        if let Some(updated) = &outcome.response.updated_input {
            self.rewrite(updated);
        }
        self.merge(outcome.response);
    }

    /// Hooks are told when it happened, also by an agent that does not say it.
    fn stamp(&mut self) {
        if let Some(time) = &self.handled.time
            && self.event.timestamp.is_none()
        {
            self.event.to_mut().timestamp = Some(time.clone());
        }
    }

    /// The next hook sees what this one has made of the input.
    fn rewrite(&mut self, updated: &Map<String, Value>) {
        self.event = Cow::Owned(Adapter::rewritten_event(&self.event, updated));
        self.handled.input = self.event.tool_input().cloned();
    }

    fn launch(&mut self, planned: &Planned<'_>, envelopes: &[Envelope]) {
        self.stamp();
        let (engine, record) = (self.engine, &self.handled.id);
        match supervise::launch(engine, planned, &self.event, envelopes, record) {
            Ok(()) => self.push(planned, RunOutcome::Started, None),
            Err(error) => {
                let message = format!("hook `{}`: cannot be detached: {error}", planned.label);
                self.push(planned, RunOutcome::Error, Some(message.clone()));
                self.notices.push(message);
            }
        }
    }

    /// Tells the user what is new in this session.
    fn finish(mut self) -> Handled {
        self.handled.cancelled = self.cancel.as_ref().is_some_and(Cancel::is_set);
        self.handled.manner = Manner {
            cancel: self.cancel.take(),
            listen: self.options.listen,
            owns_process: self.options.owns_process,
        };
        let session = self.event.session_id.clone();
        let mut fresh: Vec<String> = Vec::new();
        for notice in std::mem::take(&mut self.notices) {
            let marker = session
                .as_deref()
                .map(|session| self.engine.mark(session, &notice));
            if !marker.as_deref().is_some_and(Path::exists) {
                fresh.push(format!("anyhook: {notice}"));
                self.handled.told.extend(marker);
            }
            self.handled.warnings.push(notice);
        }
        if !fresh.is_empty() {
            self.merge(HookResponse {
                system_message: Some(fresh.join("\n")),
                ..HookResponse::default()
            });
        }
        self.handled
    }
}
