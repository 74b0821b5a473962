//! After the answer: the record of an event, and what is left to do for it.

use std::path::Path;

use anyhook_model::record::RECORD_VERSION;
use anyhook_model::{
    Answer, Decision, HookEvent, HookResponse, HookRun, Loss, Record, RecordKind, RunOutcome, Scope,
};
use anyhook_util::time::{self, rfc3339, uuid_v7};
use jiff::Timestamp;

use super::{Engine, EventOutcome, can_prevent};
use crate::config::policy::Rulebook;
use crate::config::redirects::SWITCHED_OFF;
use crate::openhook::consumers;
use crate::record::allowed_once::{self, ALLOWS_KEY, CALL_KEY};
use crate::record::approvals::ANSWERED_KEY;
use crate::record::notices::NoticeMarker;
use crate::record::old_files;

/// How many unused files the end of a session deletes per folder.
const OLD_FILES_PER_SESSION: usize = 128;

impl Engine {
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
            duration_ms: time::millis(elapsed.unwrap_or_default()),
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
    /// session the user gets a notice.
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
    pub(super) fn notice_marker(&self, session: &str, notice: &str) -> NoticeMarker {
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
