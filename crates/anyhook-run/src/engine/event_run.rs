//! One event while its hooks run: whether another entry has delivered it, which
//! manifests apply, and what becomes of the responses.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::openhook::Envelope;
use anyhook_guard::CommandReadings;
use anyhook_model::event::field;
use anyhook_model::registry::{self, Semantic};
use anyhook_model::{HookEvent, HookResponse, Scope, merge};

use super::rewrites::Rewrites;
use super::{Engine, EventOptions, EventOutcome};
use crate::config::effective::EffectiveConfig;
use crate::config::folders::EventFolders;
use crate::config::policy::Rulebook;
use crate::openhook::consumers::{self, Consumers};
use crate::record::duplicate::{self, CallIdentity, Delivery};
use crate::record::notices::NoticeMarker;
use crate::run::exec::Cancel;

/// How much longer than its hooks the first entry of a call may take.
const FIRST_ENTRY_OVERHEAD: Duration = Duration::from_secs(1);

/// One event while its hooks run.
pub(super) struct EventRun<'a> {
    pub(super) engine: &'a Engine,
    pub(super) options: &'a EventOptions,
    pub(super) cancel: Option<Cancel>,
    /// As the next hook sees it, except for its time.
    pub(super) event: Cow<'a, HookEvent>,
    /// Built when the first hook or consumer needs them.
    pub(super) envelopes: Option<Vec<Envelope>>,
    /// Commands that guards and conditions have read.
    pub(super) readings: CommandReadings,
    pub(super) outcome: EventOutcome,
    pub(super) fail_closed: bool,
    /// As the agent sent it.
    pub(super) original: &'a HookEvent,
    /// The scopes whose hooks know exceptions, by policy.
    pub(super) excepted_scopes: Vec<Scope>,
    pub(super) has_looked_for_exception: bool,
    pub(super) rewrites: Rewrites,
    /// When the hooks must have answered.
    pub(super) deadline: Option<Instant>,
}

impl EventRun<'_> {
    /// Whether another entry of the agent delivers this call too.
    pub(super) fn delivery(&self) -> Delivery {
        // What another user can write says nothing about this call.
        let is_trusted = self.engine.dirs.is_state_trusted();
        let Some(call) = self.call_identity().filter(|_| is_trusted) else {
            return Delivery::Alone;
        };
        let delivery = match duplicate::claim(&self.engine.dirs.state, call) {
            // Where nothing runs, there is no need to wait.
            Delivery::Pending(_) if self.options.is_quiet => Delivery::Alone,
            Delivery::Pending(pending) if !self.is_covered(&pending.folders) => Delivery::Alone,
            Delivery::Pending(pending) => pending.wait(self.longest_wait()),
            delivery => delivery,
        };
        match delivery {
            Delivery::Double(first) if !self.is_covered(&first.folders) => Delivery::Alone,
            delivery => delivery,
        }
    }

    /// Whether an entry that looks for hooks in these folders asks all that apply here.
    fn is_covered(&self, asked: &EventFolders) -> bool {
        let own = self.folders();
        let is_asked = |folder| asked.folders.contains(folder);
        if self.options.is_quiet || own.folders.iter().all(is_asked) {
            return true;
        }
        let asked = EffectiveConfig::load_at(self.engine, asked.clone(), &self.event);
        self.config().is_part_of(&asked)
    }

    fn folders(&self) -> EventFolders {
        let folders = self.options.folders.clone();
        let from_event = || EventFolders::from_event(&self.event, self.options.owns_process);
        folders.unwrap_or_else(from_event)
    }

    fn config(&self) -> Arc<EffectiveConfig> {
        EffectiveConfig::load_at(self.engine, self.folders(), &self.event)
    }

    fn call_identity(&self) -> Option<CallIdentity> {
        let entry = self.options.entry.as_ref()?;
        CallIdentity::new(self.engine, &self.event, self.folders(), entry)
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
            let entry = self.options.entry.as_ref()?;
            CallIdentity::new(self.engine, &own, self.folders(), entry)
        });
        calls.extend(own);
        calls
    }

    /// How long the hooks of this event may take.
    fn longest_run(&self) -> Duration {
        let config = self.config();
        config
            .longest_answer(&self.event, |hook| !hook.handler.is_async)
            .saturating_add(FIRST_ENTRY_OVERHEAD)
            .saturating_add(self.engine.approval_hold())
    }

    /// How long to wait for the entry that runs the hooks.
    fn longest_wait(&self) -> Duration {
        let left = self
            .deadline
            .map(|at| at.saturating_duration_since(Instant::now()));
        let longest = self.longest_run();
        left.map_or(longest, |left| longest.min(left))
    }

    /// Answers a call that another entry has answered. The blocking hooks of the
    /// managed scope run all the same: they must not depend on a file that the
    /// user can write.
    pub(super) fn repeat(&mut self, answer: HookResponse) {
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

    pub(super) fn run_hooks(&mut self) {
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
        let config = self.config();
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
        let all = config.manifests.iter().enumerate();
        let concerned = all.filter(|(_, it)| only.is_none_or(|scope| scope == it.source.scope));
        for (_, manifest) in concerned.clone() {
            self.report_distrust(manifest, &config.manifests);
        }
        self.run_manifests(&config, concerned.map(|(n, _)| n), only.is_some());
        self.judge_rewritten(&config, only);
        if !self.outcome.runs.is_empty() {
            let notices = self.options.notices.iter().cloned();
            self.outcome.warnings.extend(notices);
        }
        if let Some(consumers) = consumers.filter(|_| only.is_none()) {
            self.prepare_deliveries(consumers, config.rules.clone());
        }
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
    pub(super) fn is_denied(&self) -> bool {
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
    pub(super) fn take_envelopes(&mut self) -> Vec<Envelope> {
        if let Some(envelopes) = self.envelopes.take() {
            return envelopes;
        }
        // With the arrival time, each delivery of one event would be another event.
        if self.outcome.arrival_time.is_some() && self.event.timestamp.is_some() {
            self.event.to_mut().timestamp = None;
        }
        consumers::envelopes(self.engine, &self.event)
    }

    pub(super) fn merge(&mut self, response: HookResponse) {
        let earlier = std::mem::take(&mut self.outcome.response);
        self.outcome.response = merge(earlier, response);
    }

    /// Adds the notices that are new in this session to the response.
    pub(super) fn finish(mut self) -> EventOutcome {
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
