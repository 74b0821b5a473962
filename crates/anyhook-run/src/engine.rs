//! Handles one event: load the config, select the hooks, run them, merge their
//! responses, record the result.
//!
//! Owns the order of these steps. It decodes no payload, renders no answer and
//! prints nothing. Any failure here becomes a warning in the result: anyhook
//! must never break the agent.

mod conclude;
mod event_run;
mod explain;
mod hooks;
mod problems;
mod rewrites;

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhook_agents::spec::Blocking;
use anyhook_guard::CommandReadings;
use anyhook_model::registry::{self, Semantic};
use anyhook_model::{Decision, HookEvent, HookResponse, HookRun, Loss};
use anyhook_util::env;
use anyhook_util::hash::sha256;
use anyhook_util::time::{rfc3339, uuid_v7};
use jiff::Timestamp;

pub(crate) use self::conclude::{end_record, record};
use self::event_run::EventRun;
pub use self::explain::HookExplanation;
use self::rewrites::Rewrites;
use crate::config::ConfigCache;
use crate::config::discover::{self, Dirs};
use crate::config::folders::EventFolders;
use crate::config::policy::Rulebook;
use crate::config::redirects;
use crate::config::settings::Settings;
use crate::config::time_limit::answer_time;
use crate::config::trust::{Consent, Distrust, Inspected, TrustStore};
use crate::openhook::consumers::{Consumers, PendingDeliveries};
use crate::record::duplicate::{Claim, Delivery, EntryName};
use crate::record::journal::{Journal, MIN_ROTATE_SIZE_BYTES};
use crate::record::notices::NoticeMarker;
use crate::run::exec::Cancel;

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
    /// How long the agent waits for the answer. At an event that can be prevented, hooks
    /// are stopped before that: an agent that has given up lets the call through.
    pub answer_limit: Option<Duration>,
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

impl EventOutcome {
    /// The time since the call arrived.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started
            .map(|started| started.elapsed())
            .unwrap_or_default()
    }
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
        if let Some(bytes) = limit.and_then(|bytes| bytes.parse().ok())
            && !discover::is_locked(env::by_name_os)
        {
            let bytes = u64::max(bytes, MIN_ROTATE_SIZE_BYTES);
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
        let limit = options.answer_limit.filter(|_| can_prevent(event));
        let mut run = EventRun {
            deadline: limit.and_then(|limit| Instant::now().checked_add(answer_time(limit))),
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
            Delivery::Double(first) => run.repeat(first.response),
            Delivery::First(claim) => {
                run.outcome.claim = Some(claim);
                run.run_hooks();
            }
            Delivery::Alone | Delivery::Pending(_) => run.run_hooks(),
        }
        run.finish()
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
        let hash = sha256(text.as_bytes());
        let approval = self
            .trust
            .approval(path, root, &hash, &Inspected::default());
        approval.trust.map(Some)
    }

    /// The user's consent to the manifest in a project's folder.
    pub fn consent_in(&self, folder: &Path) -> Option<Consent> {
        let path = discover::manifest_in(folder)?;
        let text = std::fs::read_to_string(&path).ok()?;
        let root = folder.parent().unwrap_or(folder);
        self.consent_to(&path, root, &text).ok()?
    }

    /// Whether no daemon may decide in place of this process: the administrator's hooks
    /// must not depend on what a process of the user answers, and of a variable that
    /// moves this process's folders a daemon knows nothing.
    pub(crate) fn decides_itself(&self) -> bool {
        self.dirs.has_managed_manifest() || !self.notices.is_empty()
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
