//! Handles one event: load the config, select the hooks, run them, merge their
//! responses, record the result.
//!
//! Owns the order of these steps. It decodes no payload, renders no answer and
//! prints nothing. Any failure here becomes a warning in the result: anyhook
//! must never break the agent.

mod rewrites;

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::openhook::Envelope;
use anyhook_agents::spec::Blocking;
use anyhook_guard::CommandReadings;
use anyhook_model::event::field;
use anyhook_model::fields::NeutralDialect;
use anyhook_model::record::RECORD_VERSION;
use anyhook_model::registry::{self, Semantic};
use anyhook_model::{
    Answer, Decision, ExitRules, Failure, HookEvent, HookOutcome, HookResponse, HookRun, Loss,
    Record, RecordKind, RunOutcome, Scope, WithoutEffect, merge,
};
use anyhook_util::env;
use anyhook_util::time::{rfc3339, uuid_v7};
use jiff::Timestamp;

use crate::config::ConfigCache;
use crate::config::discover::{self, Dirs, LoadProblem};
use crate::config::effective::EffectiveConfig;
use crate::config::folders::EventFolders;
use crate::config::manifest::{self, HookVerdict, LoadedManifest, SelectedHook};
use crate::config::policy::Rulebook;
use crate::config::redirects::{self, SWITCHED_OFF};
use crate::config::settings::Settings;
use crate::config::trust::{CheckedFiles, Consent, Distrust, Inspected, TrustStore};
use crate::engine::rewrites::Rewrites;
use crate::openhook::consumers::{self, Consumers, PendingDeliveries};
use crate::record::allowed_once::{self, ALLOWS_KEY, CALL_KEY};
use crate::record::approvals::ANSWERED_KEY;
use crate::record::duplicate::{self, CallIdentity, Claim, Delivery, EntryName};
use crate::record::journal::Journal;
use crate::record::notices::NoticeMarker;
use crate::record::old_files;
use crate::run::exec::Cancel;
use crate::run::guard::{self, GuardReport};
use crate::run::handler::{HandlerCall, HandlerRun};
use crate::run::supervise;

/// How many unused files the end of a session deletes per folder.
const OLD_FILES_PER_SESSION: usize = 128;

/// How much longer than its hooks the first entry of a call may take.
const FIRST_ENTRY_OVERHEAD: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub struct Engine {
    pub dirs: Dirs,
    /// Every manifest is trusted (`ANYHOOK_TRUST=all`).
    pub trust_all: bool,
    /// No hook runs (`ANYHOOK=0`). The engine's users check it, not the engine.
    pub off: bool,
    /// Of variables that weaken what the user has set up.
    pub(crate) notices: Vec<String>,
    pub journal: Journal,
    pub trust: TrustStore,
    /// For a process that handles many events.
    pub config_cache: Option<Arc<ConfigCache>>,
    /// The command that supervises a detached hook; `None`: this program's `run --supervise`.
    pub supervisor: Option<Vec<OsString>>,
}

/// How one event is handled.
#[derive(Debug, Clone, Default)]
pub struct EventOptions {
    /// Ends running hooks early.
    pub cancel: Option<Cancel>,
    /// Creates `cancel` just before the first hook runs.
    pub listen: Option<fn() -> Option<Cancel>>,
    /// The agent's entry that delivers the event, to recognise one that two
    /// entries deliver.
    pub entry: Option<EntryName>,
    /// Nothing else runs in this process: hooks start faster.
    pub owns_process: bool,
    /// The caller knows that [nothing runs](EffectiveConfig::is_quiet) here.
    pub is_quiet: bool,
    /// What the user should know about the call if a hook runs for it.
    pub notices: Vec<String>,
    /// A problem of the caller, reported like the engine's own.
    pub notice: Option<String>,
    /// Whose hooks apply; `None`: as the event says.
    pub folders: Option<EventFolders>,
    /// Keep what hooks write to stderr, to show it to their author.
    pub keeps_stderr: bool,
}

/// The result of one event.
#[derive(Debug, Default)]
pub struct EventOutcome {
    pub response: HookResponse,
    pub runs: Vec<HookRun>,
    /// Problems of anyhook and warnings of hooks. Those that are new in this
    /// session are in the response's `system_message` too.
    pub warnings: Vec<String>,
    /// Parts of responses that hooks' dialects could not express.
    pub lost: Vec<Loss>,
    /// The agent has delivered this event before, so no hook ran.
    pub duplicate: bool,
    /// The record of the denied call that the user has allowed to pass this once.
    pub allows: Option<String>,
    pub cancelled: bool,
    /// What the user answered while the call was held.
    pub(crate) answered: Option<Decision>,
    // What `Engine::conclude` needs to finish the event.
    pub(crate) record_id: String,
    started: Option<Instant>,
    /// When the event arrived, if the agent does not send a time.
    arrival_time: Option<String>,
    /// To be created once the user has seen the notices.
    notice_markers: Vec<NoticeMarker>,
    /// Held until the answer is sent.
    claim: Option<Claim>,
    deliveries: Option<PendingDeliveries>,
    /// The consumers of an event that hooks denied, with the rules for them:
    /// they get it only if the agent cannot express the deny.
    deferred_consumers: Option<(Consumers, Rulebook)>,
    pub(crate) delivery_options: EventOptions,
}

/// Whether one hook would run for an event, and why.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct HookExplanation {
    pub hook: String,
    pub manifest: String,
    /// Whether it would run.
    pub matches: bool,
    pub why: String,
    /// The same manifest in another worktree of the repository, which was trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted_in: Option<PathBuf>,
}

impl Engine {
    pub fn from_env() -> Self {
        let is = |variable: env::Variable, wanted: &str| {
            variable.is(wanted) && !discover::is_locked(env::by_name_os)
        };
        let mut engine = Self::new(Dirs::from_env(), is(env::ANYHOOK_TRUST, "all"));
        engine.off = is(env::ANYHOOK, "0");
        engine.notices = redirects::notices(&engine.dirs);
        let limit = env::ANYHOOK_JOURNAL_LIMIT.text();
        if let Some(bytes) = limit.and_then(|bytes| bytes.parse().ok()) {
            engine.journal = engine.journal.with_rotate_size(bytes);
        }
        engine
    }

    pub fn new(dirs: Dirs, trust_all: bool) -> Self {
        Self {
            journal: Journal::new(&dirs.state),
            trust: TrustStore::new(dirs.approvals_state()),
            trust_all,
            off: false,
            notices: Vec::new(),
            dirs,
            config_cache: None,
            supervisor: None,
        }
    }

    /// Runs the hooks of an event.
    pub fn handle(&self, event: &HookEvent, options: &EventOptions) -> EventOutcome {
        let now = Timestamp::now();
        let mut run = EventRun {
            engine: self,
            options,
            cancel: options.cancel.clone(),
            event: Cow::Borrowed(event),
            envelopes: None,
            readings: CommandReadings::default(),
            outcome: EventOutcome {
                record_id: uuid_v7(now),
                started: Some(Instant::now()),
                arrival_time: event.timestamp.is_none().then(|| rfc3339(now)),
                ..EventOutcome::default()
            },
            fail_closed: false,
            original: event,
            excepted_scopes: Vec::new(),
            has_looked_for_exception: false,
            rewrites: Rewrites::default(),
        };
        run.outcome.warnings.extend(options.notice.clone());
        match run.delivery() {
            Delivery::Double(answer) => run.repeat(answer),
            Delivery::First(claim) => {
                run.outcome.claim = Some(claim);
                run.run_hooks();
            }
            Delivery::Alone | Delivery::Pending(_) => run.run_hooks(),
        }
        run.finish()
    }

    /// Whether hooks may decide about an event: some exist here, or existed, or
    /// a config file cannot be read.
    pub fn concerns(&self, event: &HookEvent) -> bool {
        let config = EffectiveConfig::load(self, event, false);
        !config.manifests.is_empty() || !config.problems.is_empty() || !config.lost.is_empty()
    }

    /// Which hooks would run for an event, and why the others would not.
    pub fn explain(&self, event: &HookEvent) -> (Vec<HookExplanation>, Vec<LoadProblem>) {
        let config = EffectiveConfig::load(self, event, false);
        let mut lines = Vec::new();
        let readings = CommandReadings::default();
        for (n, manifest) in config.manifests.iter().enumerate() {
            for selected in manifest.all_hooks() {
                let mut verdict = manifest.judge(&selected, event, &config.rules);
                let hook = &selected.hook;
                let condition =
                    guard::condition_holds(hook, &selected.root, event, &self.dirs, &readings);
                if verdict == HookVerdict::Runs && condition == Ok(false) {
                    verdict = HookVerdict::OtherCall;
                }
                let mut why = verdict.explain(hook, event);
                let mut matches = verdict == HookVerdict::Runs;
                if let (true, Err(problem)) = (matches, condition) {
                    why = format!("{why}; it fails: {problem}");
                }
                if matches && hook.only_observes() {
                    why.push_str("; `mode: observe`: its answer is only recorded");
                }
                if matches && config.has_copy(n) {
                    matches = false;
                    "its copy in this worktree runs instead".clone_into(&mut why);
                }
                lines.push(HookExplanation {
                    why,
                    matches,
                    trusted_in: manifest.trusted_in().map(Path::to_owned),
                    manifest: selected.manifest.to_string_lossy().into_owned(),
                    hook: selected.label,
                });
            }
        }
        (lines, config.problems.clone())
    }

    /// What the guards of the manifests that apply say about a call.
    pub fn judge_guards(&self, event: &HookEvent) -> (Vec<GuardReport>, Vec<LoadProblem>) {
        let config = EffectiveConfig::load(self, event, false);
        let mut reports = Vec::new();
        let readings = CommandReadings::default();
        for (n, manifest) in config.manifests.iter().enumerate() {
            if config.has_copy(n) {
                continue;
            }
            for selected in manifest.hooks_for(event) {
                let verdict = manifest.may_run(&selected, &config.rules);
                let report = guard::report(&selected, event, &self.dirs, &readings);
                reports.extend(report.map(|report| match verdict {
                    HookVerdict::Runs => report,
                    verdict => GuardReport {
                        finding: None,
                        problem: Some(verdict.explain(&selected.hook, event)),
                        ..report
                    },
                }));
            }
        }
        (reports, config.problems.clone())
    }

    /// Trusted manifests that do not apply any more, in words for the user.
    pub fn lost_guards(&self, event: &HookEvent) -> Vec<String> {
        let config = EffectiveConfig::load(self, event, false);
        config.lost.iter().map(|lost| lost.notice.clone()).collect()
    }

    /// The user's consent to a project's file with this text; `None` if
    /// everything is trusted.
    pub(crate) fn consent_to(
        &self,
        path: &Path,
        root: &Path,
        text: &str,
    ) -> Result<Option<Consent>, Distrust> {
        if self.trust_all {
            return Ok(None);
        }
        let approval = self.trust.approval(path, root, text, &Inspected::default());
        approval.trust.map(Some)
    }

    /// The user's consent to the manifest in a project's folder.
    pub fn consent_in(&self, folder: &Path) -> Option<Consent> {
        let path = discover::manifest_in(folder)?;
        let text = std::fs::read_to_string(&path).ok()?;
        let root = folder.parent().unwrap_or(folder);
        self.consent_to(&path, root, &text).ok()?
    }

    /// Whether by the managed policy a failure of anyhook blocks.
    pub fn fails_closed(&self) -> bool {
        Rulebook::managed(&self.dirs.managed).fail_closed()
    }

    /// Whether a coding agent may change what is installed and trusted: by the
    /// managed policy, or by the user's settings where no administrator's folder
    /// is locked.
    pub fn allows_agent_changes(&self) -> bool {
        let by_policy = Rulebook::managed(&self.dirs.managed).allow_agent_changes();
        let by_settings = || {
            let settings = Settings::load(&self.dirs);
            settings.is_ok_and(|settings| settings.allow_agent_changes)
        };
        by_policy || (!discover::is_locked(env::by_name_os) && by_settings())
    }

    /// Writes the record, marks the notices that the user has seen, and delivers
    /// the event to OpenHook consumers, waiting for the synchronous ones.
    /// Called after the answer is sent; a failure here must not reach the agent.
    pub fn conclude(
        &self,
        event: HookEvent,
        mut outcome: EventOutcome,
        answer: Option<Answer>,
        lost: &[Loss],
    ) {
        // A cancelled call was not answered: the next entry runs the hooks.
        if let Some(claim) = outcome.claim.take()
            && !outcome.cancelled
        {
            claim.answer(&outcome.response, can_prevent(&event));
        }
        let is_lost = |field: &str| lost.iter().any(|loss| loss.field == field);
        if !is_lost("system_message") {
            for marker in &outcome.notice_markers {
                marker.create();
            }
        }
        if let Some((consumers, rules)) = outcome.deferred_consumers.take()
            && is_lost("deny")
        {
            let envelopes = consumers::envelopes(self, &event);
            let deliveries = consumers.plan_deliveries(&envelopes, &event.event, &rules);
            outcome.deliveries = Some(deliveries);
        }
        if let Some(deliveries) = &outcome.deliveries {
            outcome.runs.extend(deliveries.refused.iter().cloned());
            outcome.runs.extend(deliveries.started());
        }
        let elapsed = outcome.started.map(|started| started.elapsed());
        let mut record = Record {
            decision: outcome.response.decision,
            response: outcome.response,
            hooks: outcome.runs,
            answer,
            lost: [&outcome.lost[..], lost].concat(),
            warnings: outcome.warnings,
            duration_ms: elapsed.unwrap_or_default().as_secs_f64() * 1000.0,
            ..record(RecordKind::Event, outcome.record_id, event)
        };
        if let Some(time) = outcome.arrival_time {
            record.event.timestamp = Some(time);
        }
        if let Some(denied) = outcome.allows {
            record.extra.insert(ALLOWS_KEY.to_owned(), denied.into());
        }
        if let Some(answer) = outcome.answered {
            record
                .extra
                .insert(ANSWERED_KEY.to_owned(), answer.as_str().into());
        }
        if matches!(record.decision, Some(Decision::Deny | Decision::Ask)) {
            let call = allowed_once::call_digest(&self.dirs.state, &record.event);
            let call = call.map(|call| (CALL_KEY.to_owned(), call.into()));
            record.extra.extend(call);
        }
        if outcome.duplicate {
            record.extra.insert("duplicate".to_owned(), true.into());
        }
        let _ = self.journal.append(&record);
        if let Some(deliveries) = outcome.deliveries {
            let options = outcome.delivery_options;
            let mut ends = deliveries.deliver(self, &record.event, options, &record.id);
            ends.retain(|run| run.outcome != RunOutcome::Started);
            if !ends.is_empty() {
                consumers::record_ends(self, &record.event, ends, &record.id);
            }
        }
        if record.event.event == "session_end" {
            old_files::delete_old_files(&self.dirs.state, OLD_FILES_PER_SESSION);
        }
    }

    /// Lets the call of a record pass once, although hooks deny it, and records that.
    /// An error is why this is not possible.
    pub fn allow_once(&self, denied: &Record) -> Result<(), String> {
        self.check_exception(denied)?;
        let mut record = new_record(RecordKind::AllowedOnce, denied.event.clone());
        record
            .extra
            .insert(ALLOWS_KEY.to_owned(), denied.id.as_str().into());
        let appended = self.journal.append(&record);
        appended.map_err(|error| format!("it cannot be recorded: {error}"))?;
        allowed_once::allow(&self.dirs.state, denied)
    }

    /// Whether the user may let a call pass that hooks do not allow.
    pub(crate) fn check_exception(&self, denied: &Record) -> Result<(), String> {
        let is_refusal = |run: &&HookRun| {
            let refuses = matches!(run.outcome, RunOutcome::Deny | RunOutcome::Ask);
            refuses && run.without_effect.is_none()
        };
        let mut refusals = denied.hooks.iter().filter(is_refusal).peekable();
        if refusals.peek().is_none() {
            return Err("no hook has denied it".to_owned());
        }
        let rules = Rulebook::managed(&self.dirs.managed);
        if !rules.allow_once(Scope::User) {
            return Err("the managed policy forbids exceptions".to_owned());
        }
        let is_managed = |run: &HookRun| Path::new(&run.manifest).starts_with(&self.dirs.managed);
        if refusals.any(is_managed) && !rules.allow_once(Scope::Managed) {
            return Err("a hook of the administrator denies it".to_owned());
        }
        if !self.dirs.is_state_trusted() {
            let state = self.dirs.state.display();
            return Err(format!("what is in `{state}` does not count"));
        }
        Ok(())
    }

    /// Records that anyhook itself failed, so that no hook ran.
    pub fn record_failure(&self, event: HookEvent, message: &str, answer: Answer) {
        self.record_without_hooks(RecordKind::Failure, event, message, answer);
    }

    /// Records an event for which no hook ran.
    fn record_without_hooks(&self, kind: RecordKind, event: HookEvent, why: &str, answer: Answer) {
        let _ = self.journal.append(&Record {
            warnings: vec![why.to_owned()],
            answer: Some(answer),
            ..new_record(kind, event)
        });
    }

    /// Records an event that arrives while hooks are switched off. Once per
    /// session the user is told.
    pub(crate) fn answer_switched_off(
        &self,
        event: HookEvent,
        render: impl FnOnce(&HookEvent, &HookResponse) -> (Answer, Vec<Loss>),
        send: impl FnOnce(&Answer),
    ) -> Answer {
        let session = event.session_id.as_deref();
        let marker = session.map(|session| self.notice_marker(session, SWITCHED_OFF));
        let is_new = !marker.as_ref().is_some_and(NoticeMarker::exists);
        let response = HookResponse {
            system_message: is_new.then(|| format!("anyhook: {SWITCHED_OFF}")),
            ..HookResponse::default()
        };
        let (answer, lost) = render(&event, &response);
        send(&answer);
        if lost.is_empty()
            && let Some(marker) = marker.filter(|_| is_new)
        {
            marker.create();
        }
        self.record_without_hooks(RecordKind::Event, event, SWITCHED_OFF, answer.clone());
        answer
    }

    /// The marker of a notice that this session has shown.
    fn notice_marker(&self, session: &str, notice: &str) -> NoticeMarker {
        NoticeMarker::new(&self.dirs.state, session, notice)
    }
}

/// A record of the present time with nothing in it yet but the event.
fn new_record(kind: RecordKind, event: HookEvent) -> Record {
    record(kind, uuid_v7(Timestamp::now()), event)
}

/// A record of how something that was launched for an event ended.
pub(crate) fn end_record(event: HookEvent, launched_in: &str) -> Record {
    let mut record = new_record(RecordKind::AsyncEnd, event);
    let extra = &mut record.extra;
    extra.insert("launched_in".to_owned(), launched_in.into());
    record
}

pub(crate) fn record(kind: RecordKind, id: String, event: HookEvent) -> Record {
    Record {
        v: RECORD_VERSION,
        id,
        time: rfc3339(Timestamp::now()),
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

/// Whether a deny can prevent what this event announces: in general, or in the
/// agent that sent it.
pub fn can_prevent(event: &HookEvent) -> bool {
    let in_agent = || {
        let adapter =
            anyhook_agents::agent_handle(&event.source)?.for_event(&event.native_event)?;
        let spec = adapter.event_by_native(&event.native_event)?;
        Some(spec.blocking == Blocking::Prevent)
    };
    is_preventable(&event.event) || in_agent().unwrap_or_default()
}

/// One event while its hooks run.
struct EventRun<'a> {
    engine: &'a Engine,
    options: &'a EventOptions,
    cancel: Option<Cancel>,
    /// As the next hook sees it, except for its time.
    event: Cow<'a, HookEvent>,
    /// Built when the first hook or consumer needs them.
    envelopes: Option<Vec<Envelope>>,
    /// Commands that guards and conditions have read.
    readings: CommandReadings,
    outcome: EventOutcome,
    fail_closed: bool,
    /// As the agent sent it.
    original: &'a HookEvent,
    /// The scopes whose hooks know exceptions, by policy.
    excepted_scopes: Vec<Scope>,
    has_looked_for_exception: bool,
    rewrites: Rewrites,
}

impl EventRun<'_> {
    /// Whether another entry of the agent delivers this call too.
    fn delivery(&self) -> Delivery {
        let Some(call) = self.call_identity() else {
            return Delivery::Alone;
        };
        match duplicate::claim(&self.engine.dirs.state, call) {
            // Where nothing runs, nobody needs to wait.
            Delivery::Pending(_) if self.options.is_quiet => Delivery::Alone,
            Delivery::Pending(pending) => pending.wait(self.longest_run()),
            delivery => delivery,
        }
    }

    fn call_identity(&self) -> Option<CallIdentity> {
        let entry = self.options.entry.as_ref()?;
        CallIdentity::new(&self.engine.dirs, &self.event, entry)
    }

    /// The call as the agent may deliver it after a rewrite: with the input as
    /// hooks have written it, and as the agent's own payload would contain it.
    fn rewritten_calls(&self) -> Vec<CallIdentity> {
        let mut calls: Vec<CallIdentity> = self.call_identity().into_iter().collect();
        let event = &*self.event;
        let own = anyhook_agents::get(&event.source).and_then(|adapter| {
            let native = Some(event.native_event.as_str());
            let payload = adapter.encode(event, native)?.payload;
            let mut decoded = adapter.decode(&payload, native).ok()?.event;
            let mut own = event.clone();
            let input = decoded.data.remove(field::TOOL_INPUT)?;
            own.data.insert(field::TOOL_INPUT.to_owned(), input);
            CallIdentity::new(&self.engine.dirs, &own, self.options.entry.as_ref()?)
        });
        calls.extend(own);
        calls
    }

    /// How long the hooks of this event may take.
    fn longest_run(&self) -> Duration {
        let config = EffectiveConfig::load(self.engine, &self.event, self.options.owns_process);
        let hooks = config.manifests.iter();
        let hooks = hooks.flat_map(|manifest| manifest.hooks_for(&self.event));
        hooks
            .filter(|selected| !selected.hook.handler.is_async)
            .map(|selected| manifest::timeout(&selected.hook.handler))
            .fold(FIRST_ENTRY_OVERHEAD, Duration::saturating_add)
            .saturating_add(self.engine.approval_hold())
    }

    /// Answers a call that another entry has answered. The blocking hooks of the
    /// managed scope run all the same: they must not depend on a file that the
    /// user can write.
    fn repeat(&mut self, answer: HookResponse) {
        self.outcome.duplicate = true;
        self.outcome.response = answer;
        if self.is_denied() || !self.engine.dirs.managed.exists() {
            return;
        }
        self.run_hooks_of(Some(Scope::Managed));
        self.outcome.warnings.clear();
        self.outcome.response.context = None;
        self.outcome.response.system_message = None;
    }

    fn run_hooks(&mut self) {
        self.outcome
            .warnings
            .extend_from_slice(&self.engine.notices);
        self.run_hooks_of(None);
    }

    /// With `only`, the blocking hooks of that scope.
    fn run_hooks_of(&mut self, only: Option<Scope>) {
        if self.options.is_quiet {
            return;
        }
        let config = match &self.options.folders {
            Some(folders) => EffectiveConfig::load_at(self.engine, folders.clone(), &self.event),
            None => EffectiveConfig::load(self.engine, &self.event, self.options.owns_process),
        };
        self.fail_closed = config.rules.fail_closed();
        let scopes = Scope::ALL.into_iter();
        self.excepted_scopes = scopes.filter(|it| config.rules.allow_once(*it)).collect();
        self.report_problems(&config.problems);
        for lost in &config.lost {
            let is_required = lost.is_required_for(&self.event);
            self.report(
                lost.notice.clone(),
                lost.why,
                self.fail_closed || is_required,
            );
        }
        self.outcome.warnings.extend(config.notices.iter().cloned());
        let recording = self.engine.dirs.recording_problem();
        self.outcome.warnings.extend(recording);
        let (consumers, notices) = Consumers::find(self.engine, config.openhook.as_deref());
        self.outcome.warnings.extend(notices);
        for (n, manifest) in config.manifests.iter().enumerate() {
            if only.is_none_or(|scope| scope == manifest.source.scope) {
                self.report_distrust(manifest, &config.manifests);
                self.run_manifest(&config, n, only.is_some());
            }
        }
        self.judge_rewritten(&config, only);
        if !self.outcome.runs.is_empty() {
            let notices = self.options.notices.iter().cloned();
            self.outcome.warnings.extend(notices);
        }
        if let Some(consumers) = consumers.filter(|_| only.is_none()) {
            self.prepare_deliveries(consumers, config.rules.clone());
        }
    }

    /// Runs the hooks of one manifest, or only those that block.
    fn run_manifest(&mut self, config: &EffectiveConfig, n: usize, only_blocking: bool) {
        let Some(manifest) = config.manifests.get(n).filter(|_| !config.has_copy(n)) else {
            return;
        };
        let mut outer = config.manifests.iter().take(n);
        let original = outer.find(|other| manifest.is_copy_of(other));
        for selected in manifest.hooks_for(&self.event) {
            if (only_blocking && !selected.hook.blocking) || self.has_judged(&selected) {
                continue;
            }
            let (verdict, files) = manifest.check(&selected, &config.rules);
            match (&verdict, original) {
                (HookVerdict::Untrusted(why), Some(original)) => {
                    let label = &selected.label;
                    self.outcome.warnings.push(format!(
                        "hook `{label}` of the project runs, not that of the worktree: {why}"
                    ));
                    self.run_original(original, &selected, &config.rules);
                }
                _ => self.apply_verdict(manifest, &selected, verdict, &files),
            }
        }
    }

    /// Problems with config files: a notice, and a deny under `fail_closed`.
    fn report_problems(&mut self, problems: &[LoadProblem]) {
        for problem in problems {
            let path = problem.path.display();
            let message = format!("`{path}` is not used: {}", problem.message);
            // A project's file that was never trusted cannot have been a guard.
            let past = match problem.scope {
                Scope::Project if !self.engine.trust_all => {
                    let (trust, inspected) = (&self.engine.trust, Inspected::default());
                    let past = trust.past_consent(&problem.path, &inspected);
                    past.or_else(|| trust.has_no_records(&inspected).then(Vec::new))
                }
                _ => Some(Vec::new()),
            };
            let blocks = past.is_some_and(|required| {
                self.fail_closed || required.iter().any(|hook| hook.is_for(&self.event))
            });
            let path = problem.path.display();
            let why = format!("hooks that may guard this cannot be read, in `{path}`");
            self.report(message, &why, blocks);
        }
    }

    fn report_distrust(&mut self, manifest: &LoadedManifest, all: &[LoadedManifest]) {
        let Some(why) = manifest.distrust() else {
            return;
        };
        let path = manifest.source.path.display();
        let advice = match (manifest.source.scope, why) {
            (Scope::Project, Distrust::NoRecords) if self.fail_closed => {
                "; calls are blocked, because there is no record of any approval: read it, then run `anyhook trust`, or `anyhook untrust` if you have approved nothing"
            }
            (Scope::Project, _) => "; read it, then run `anyhook trust`",
            (Scope::User | Scope::Managed, _) => "",
        };
        let notice = format!("the hooks of `{path}` do not run: {why}{advice}");
        let is_guard = match why {
            // It cannot have been a guard.
            Distrust::Never => false,
            // A worktree in its own project: the hooks of the project run.
            Distrust::OtherTree(trusted) | Distrust::UnknownTree(trusted) => {
                let mut running = all.iter().filter(|other| other.distrust().is_none());
                !running.any(|other| trusted.contains(&other.source.path))
            }
            _ => true,
        };
        let is_required = manifest.is_required_for(&self.event);
        let general = format!("the hooks of `{path}` do not run: {}", why.in_general());
        self.report(
            notice,
            &general,
            is_guard && (self.fail_closed || is_required),
        );
    }

    /// A notice to the user, and a deny if it `blocks`. The reason for the model
    /// is in general words: it must not learn how to switch a guard off.
    fn report(&mut self, notice: String, why: &str, blocks: bool) {
        if blocks {
            self.block(&format!("{why}; ask the user to look at it"));
        }
        self.outcome.warnings.push(notice);
    }

    /// In a worktree inside its own project: a file of the hook has changed in
    /// the worktree, so the project's own hook runs.
    fn run_original(
        &mut self,
        original: &LoadedManifest,
        changed: &SelectedHook<'_>,
        rules: &Rulebook,
    ) {
        let hooks = original.hooks_for(&self.event);
        for selected in hooks
            .iter()
            .filter(|one| one.hook == changed.hook && one.label == changed.label)
        {
            let (verdict, files) = original.check(selected, rules);
            self.apply_verdict(original, selected, verdict, &files);
        }
    }

    fn apply_verdict(
        &mut self,
        manifest: &LoadedManifest,
        selected: &SelectedHook<'_>,
        verdict: HookVerdict,
        files: &CheckedFiles,
    ) {
        let label = &selected.label;
        let why = match verdict {
            HookVerdict::OtherEvent | HookVerdict::OtherTool | HookVerdict::OtherCall => return,
            HookVerdict::Runs => return self.run_if_it_applies(selected, files),
            HookVerdict::Untrusted(why) => {
                // Of a manifest that is not trusted as a whole there is a notice already.
                if manifest.distrust().is_none() {
                    let notice = format!(
                        "hook `{label}` does not run: {why}; read it, then run `anyhook trust`"
                    );
                    let failure = Failure::Changed(why.to_string());
                    let rules = ExitRules::for_hook(&selected.hook, self.fail_closed);
                    if rules.blocks_on(&failure) && can_prevent(&self.event) {
                        self.merge(HookResponse::deny(failure.deny_reason()));
                    }
                    self.outcome.warnings.push(notice);
                }
                why.to_string()
            }
            HookVerdict::Refused(refusal) => {
                // Users who rely on a guard must know that it is off.
                if selected.hook.blocking {
                    self.outcome.warnings.push(format!(
                        "hook `{label}`, which may block, does not run: {refusal}"
                    ));
                }
                refusal.to_string()
            }
        };
        self.push_run(selected, RunOutcome::Refused, Some(why));
    }

    /// Envelopes are built before the answer, because a file that a tool is
    /// about to create must not be there yet.
    fn prepare_deliveries(&mut self, consumers: Consumers, rules: Rulebook) {
        if self.is_denied() {
            self.outcome.deferred_consumers = Some((consumers, rules));
            return;
        }
        let envelopes = self.take_envelopes();
        let mut deliveries = consumers.plan_deliveries(&envelopes, &self.event.event, &rules);
        self.outcome.warnings.append(&mut deliveries.notices);
        self.outcome.deliveries = Some(deliveries);
    }

    /// Whether the responses of the hooks prevent what the event announces.
    fn is_denied(&self) -> bool {
        let response = &self.outcome.response;
        let blocking = registry::event(&self.event.event).map(|known| known.blocking);
        match blocking {
            Some(Semantic::Prevent) => {
                response.is_deny() || response.should_continue == Some(false)
            }
            Some(Semantic::Retry) => response.is_deny(),
            _ => false,
        }
    }

    /// The event's envelopes, the same for every hook and consumer.
    fn take_envelopes(&mut self) -> Vec<Envelope> {
        if let Some(envelopes) = self.envelopes.take() {
            return envelopes;
        }
        // With the arrival time, each delivery of one event would be another event.
        if self.outcome.arrival_time.is_some() && self.event.timestamp.is_some() {
            self.event.to_mut().timestamp = None;
        }
        consumers::envelopes(self.engine, &self.event)
    }

    /// Denies on behalf of anyhook, where a deny prevents anything.
    fn block(&mut self, why: &str) {
        if can_prevent(&self.event) {
            self.merge(HookResponse::deny(format!("blocked, because {why}")));
        }
    }

    fn push_run(&mut self, hook: &SelectedHook<'_>, outcome: RunOutcome, message: Option<String>) {
        self.outcome.runs.push(hook.new_run(outcome, message));
    }

    fn merge(&mut self, response: HookResponse) {
        let earlier = std::mem::take(&mut self.outcome.response);
        self.outcome.response = merge(earlier, response);
    }

    /// Runs a hook unless its `if` does not hold.
    fn run_if_it_applies(&mut self, selected: &SelectedHook<'_>, files: &CheckedFiles) {
        let (hook, root) = (&selected.hook, &selected.root);
        let dirs = &self.engine.dirs;
        match guard::condition_holds(hook, root, &self.event, dirs, &self.readings) {
            Ok(true) => self.run_hook(selected, files),
            Ok(false) => {}
            Err(why) => {
                let fail_closed = self.fail_closed && can_prevent(&self.event);
                let rules = ExitRules::for_hook(hook, fail_closed);
                let failed = HookOutcome::failed(rules, &Failure::CannotStart(why), "");
                self.push_run(selected, failed.run, failed.message().map(str::to_owned));
                let label = &selected.label;
                let warnings = failed.warnings.iter();
                let warnings = warnings.map(|warning| format!("hook `{label}`: {warning}"));
                self.outcome.warnings.extend(warnings);
                self.merge(failed.response);
            }
        }
    }

    fn run_hook(&mut self, selected: &SelectedHook<'_>, files: &CheckedFiles) {
        let is_denied = self.outcome.response.decision == Some(Decision::Deny);
        if is_denied && selected.hook.blocking && !selected.hook.only_observes() {
            let why = "an earlier hook already denied".to_owned();
            return self.push_run(selected, RunOutcome::Skipped, Some(why));
        }
        if self.cancel.is_none() {
            self.cancel = self.options.listen.and_then(|listen| listen());
        }
        if self.cancel.as_ref().is_some_and(Cancel::is_set) {
            return self.push_run(selected, RunOutcome::Skipped, Some("cancelled".to_owned()));
        }
        let handler = &selected.hook.handler;
        let is_openhook = handler.dialect.as_deref() == Some(NeutralDialect::OpenHook.as_str());
        let envelopes = is_openhook.then(|| self.take_envelopes());
        // Hooks get the time of the event even if the agent does not send one.
        if let Some(time) = &self.outcome.arrival_time
            && self.event.timestamp.is_none()
        {
            self.event.to_mut().timestamp = Some(time.clone());
        }
        if handler.is_async {
            self.launch(selected, envelopes.as_deref().unwrap_or_default());
        } else {
            self.run_and_wait(selected, files, envelopes.as_deref().unwrap_or_default());
        }
        self.envelopes = envelopes.or(self.envelopes.take());
    }

    fn run_and_wait(
        &mut self,
        selected: &SelectedHook<'_>,
        files: &CheckedFiles,
        envelopes: &[Envelope],
    ) {
        let call = HandlerCall {
            selected,
            event: &self.event,
            dirs: &self.engine.dirs,
            cancel: self.cancel.as_ref(),
            // Elsewhere a deny prevents nothing, and one that makes the agent go on
            // would do so for ever.
            fail_closed: self.fail_closed && can_prevent(&self.event),
            owns_process: self.options.owns_process,
            keeps_stderr: self.options.keeps_stderr,
            envelopes,
            readings: &self.readings,
            files,
        };
        let HandlerRun {
            mut outcome,
            mut record,
            lost,
        } = call.run();
        self.outcome.lost.extend(lost);
        self.outcome.warnings.append(&mut outcome.warnings);
        let refuses = matches!(outcome.run, RunOutcome::Deny | RunOutcome::Ask);
        if selected.hook.only_observes() {
            record.without_effect = Some(WithoutEffect::Observed);
            outcome.response = HookResponse::default();
        } else if refuses && self.is_allowed_once(selected.scope) {
            record.without_effect = Some(WithoutEffect::AllowedOnce);
            let response = &mut outcome.response;
            (response.decision, response.reason) = (None, None);
            response.should_continue = None;
        }
        self.outcome.runs.push(record);
        self.take_response(selected, outcome.response);
    }

    /// Whether the user has let this call through, and hooks of this scope must
    /// accept that. The exception is used up by the first hook that refuses.
    fn is_allowed_once(&mut self, scope: Scope) -> bool {
        let dirs = &self.engine.dirs;
        if !self.excepted_scopes.contains(&scope) || !dirs.is_state_trusted() {
            return false;
        }
        if !self.has_looked_for_exception {
            self.has_looked_for_exception = true;
            self.outcome.allows = allowed_once::take(&dirs.state, self.original);
        }
        self.outcome.allows.is_some()
    }

    fn launch(&mut self, selected: &SelectedHook<'_>, envelopes: &[Envelope]) {
        let (engine, record) = (self.engine, &self.outcome.record_id);
        match supervise::launch(engine, selected, &self.event, envelopes, record) {
            Ok(()) => self.push_run(selected, RunOutcome::Started, None),
            Err(error) => {
                let message = format!("hook `{}`: cannot be detached: {error}", selected.label);
                self.push_run(selected, RunOutcome::Error, Some(message.clone()));
                self.outcome.warnings.push(message);
            }
        }
    }

    /// Adds the notices that are new in this session to the response.
    fn finish(mut self) -> EventOutcome {
        if let Some(mut claim) = self.outcome.claim.take() {
            if self.outcome.response.updated_input.is_some() {
                claim.set_rewritten(self.rewritten_calls());
            }
            self.outcome.claim = Some(claim);
        }
        self.outcome.cancelled = self.cancel.as_ref().is_some_and(Cancel::is_set);
        self.outcome.delivery_options = EventOptions {
            cancel: self.cancel.take(),
            ..self.options.clone()
        };
        let session = self.event.session_id.clone();
        let mut new: Vec<String> = Vec::new();
        for notice in &self.outcome.warnings {
            let session = session.as_deref();
            let marker = session.map(|session| self.engine.notice_marker(session, notice));
            if !marker.as_ref().is_some_and(NoticeMarker::exists) {
                new.push(format!("anyhook: {notice}"));
                self.outcome.notice_markers.extend(marker);
            }
        }
        if !new.is_empty() {
            self.merge(HookResponse {
                system_message: Some(new.join("\n")),
                ..HookResponse::default()
            });
        }
        self.outcome
    }
}
