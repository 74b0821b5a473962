//! Questions that wait for the user's answer.
//!
//! Where no user sits at an agent, or it cannot ask, an `ask` is a deny. With `approvals.hold` in
//! the user's settings the call is held for that time instead: the question is a
//! file in the state folder, which the page and `anyhook approve` show, and the
//! answer is a file beside it. An answer in time decides about the held call. A late
//! *allow* lets the same call pass when the agent tries it again
//! ([`allowed_once`](super::allowed_once)).
//!
//! Answers are keyed with the key of the state folder, so one that someone else has
//! prepared answers nothing. Whoever can write the user's state folder can answer,
//! as they could approve hooks there.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhook_agents::Adapter;
use anyhook_model::{Decision, HookEvent, HookResponse, Record, RecordKind};
use anyhook_util::fs::{create_private_dir, read_text, replace};
use anyhook_util::hash::{hex, hmac_sha256};
use serde::{Deserialize, Serialize};

use crate::config::cache_key::CacheKey;
use crate::config::settings::Settings;
use crate::config::time_limit::answer_time;
use crate::engine::{self, Engine, EventOutcome};
use crate::record::allowed_once::{self, CALL_KEY};
use crate::record::duplicate::now_ms;
use crate::record::redact::redacted_json;
use crate::run::exec::Cancel;

/// No call is held longer: agents stop a hook after 60 seconds or later, and a hook
/// that was stopped has blocked nothing.
pub(crate) const MAX_HOLD_TIME: Duration = Duration::from_secs(45);

/// Key of a record with the user's answer to a call that was held.
pub(crate) const ANSWERED_KEY: &str = "answered";

const FOLDER: &str = "approvals";

/// The oldest questions give way to newer ones.
const MAX_QUESTIONS: usize = 64;

const MAX_FILE_BYTES: u64 = 1024 * 1024;

const ANSWER_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How long an answer waits for the process that holds the call. If it has not taken
/// the answer by then, it is gone.
const TAKE_TIMEOUT: Duration = Duration::from_secs(2);

/// A call that waits for an answer, or whose time to wait is over.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Question {
    /// What the journal will hold of the call, without secrets.
    pub record: Record,
    /// A hook has changed the call: the record has it as it will run.
    #[serde(default)]
    pub is_rewritten: bool,
    /// Milliseconds since 1970.
    asked: u64,
    held_until: u64,
}

impl Question {
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// How long the agent still waits; zero: it got a deny.
    pub fn time_left(&self) -> Duration {
        Duration::from_millis(self.held_until.saturating_sub(now_ms()))
    }

    fn is_open(&self) -> bool {
        let lifetime =
            u64::try_from(allowed_once::EXCEPTION_LIFETIME.as_millis()).unwrap_or(u64::MAX);
        now_ms() < self.asked.saturating_add(lifetime)
    }
}

/// What became of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerEffect {
    /// The agent got it.
    Delivered,
    /// The agent no longer waits; the same call passes when it is tried again.
    PassesNextTime,
    /// The agent no longer waits; it got a deny.
    StaysDenied,
}

impl AnswerEffect {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::PassesNextTime => "passes_next_time",
            Self::StaysDenied => "stays_denied",
        }
    }
}

#[derive(Serialize, Deserialize)]
struct AnswerFile {
    decision: Decision,
    mac: String,
}

/// The questions in one state folder.
struct Questions(PathBuf);

impl Questions {
    fn in_state(state: &Path) -> Self {
        Self(state.join(FOLDER))
    }

    fn question_path(&self, id: &str) -> PathBuf {
        self.0.join(format!("{id}.json"))
    }

    fn answer_path(&self, id: &str) -> PathBuf {
        self.0.join(format!("{id}.answer"))
    }

    /// Oldest first. Removes what can no longer be answered.
    fn open(&self) -> Vec<Question> {
        let entries = std::fs::read_dir(&self.0).into_iter().flatten().flatten();
        let mut questions = Vec::new();
        for path in entries.map(|entry| entry.path()) {
            let is_question = path.extension().is_some_and(|it| it == "json");
            match load_question(&path).filter(|_| is_question) {
                Some(question) if question.is_open() => questions.push(question),
                Some(question) => self.remove(question.id()),
                None => {}
            }
        }
        questions.sort_by_key(|question| question.asked);
        questions
    }

    fn add(&self, question: &Question) -> Option<()> {
        create_private_dir(&self.0).ok()?;
        let open = self.open();
        let excess = (open.len() + 1).saturating_sub(MAX_QUESTIONS);
        for old in open.iter().take(excess) {
            self.remove(old.id());
        }
        let text = serde_json::to_vec(&redacted_json(question).ok()?).ok()?;
        replace(&self.question_path(question.id()), &text).ok()
    }

    fn remove(&self, id: &str) {
        let _ = std::fs::remove_file(self.answer_path(id));
        let _ = std::fs::remove_file(self.question_path(id));
    }

    fn answer(&self, key: &CacheKey, id: &str) -> Option<Decision> {
        let text = read_text(&self.answer_path(id), MAX_FILE_BYTES).ok()?;
        let answer: AnswerFile = serde_json::from_str(&text).ok()?;
        (answer.mac == answer_mac(key, id, answer.decision)).then_some(answer.decision)
    }
}

fn load_question(path: &Path) -> Option<Question> {
    serde_json::from_str(&read_text(path, MAX_FILE_BYTES).ok()?).ok()
}

fn answer_mac(key: &CacheKey, id: &str, decision: Decision) -> String {
    let parts: [&[u8]; 4] = [
        b"approval\0",
        id.as_bytes(),
        b"\0",
        decision.as_str().as_bytes(),
    ];
    hex(&hmac_sha256(&key.secret, &parts))
}

/// Ids are parts of file names.
fn is_id(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= 64
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

impl Engine {
    /// How long a call is held for an answer; zero: not at all.
    pub fn approval_hold(&self) -> Duration {
        let settings = Settings::load(&self.dirs).unwrap_or_default();
        let seconds = settings
            .approvals
            .hold
            .clamp(0.0, MAX_HOLD_TIME.as_secs_f64());
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    /// Holds a call whose agent cannot ask, until the user answers, but not so long that
    /// the agent, which waits for `limit`, would go on without an answer. Changes the
    /// outcome by the answer; `false` if there is none.
    pub(crate) fn hold_for_answer(
        &self,
        event: &HookEvent,
        outcome: &mut EventOutcome,
        limit: Duration,
    ) -> bool {
        if outcome.cancelled || !engine::can_prevent(event) {
            return false;
        }
        let hold = self.approval_hold();
        if hold.is_zero() {
            return false;
        }
        let left = answer_time(limit).saturating_sub(outcome.elapsed());
        let hold = hold.min(left);
        if hold.is_zero() {
            return false;
        }
        let options = &mut outcome.delivery_options;
        if options.cancel.is_none() {
            options.cancel = options.listen.take().and_then(|listen| listen());
        }
        let cancel = options.cancel.clone();
        let decision = self.wait_for_answer(event, outcome, hold, cancel.as_ref());
        outcome.cancelled = cancel.as_ref().is_some_and(Cancel::is_set);
        let Some(decision) = decision.filter(|_| !outcome.cancelled) else {
            return false;
        };
        outcome.answered = Some(decision);
        apply_answer(&mut outcome.response, decision);
        true
    }

    fn wait_for_answer(
        &self,
        event: &HookEvent,
        outcome: &EventOutcome,
        hold: Duration,
        cancel: Option<&Cancel>,
    ) -> Option<Decision> {
        let state = &self.dirs.state;
        let key = CacheKey::load_or_create(state)?;
        let updated = outcome.response.updated_input.as_ref();
        // The user is asked about what will run.
        let shown = updated.map(|updated| Adapter::rewritten_event(event, updated));
        let is_rewritten = shown.as_ref().is_some_and(|shown| shown.data != event.data);
        let mut record = Record {
            decision: outcome.response.decision,
            response: outcome.response.clone(),
            hooks: outcome.runs.clone(),
            ..engine::record(
                RecordKind::Event,
                outcome.record_id.clone(),
                shown.unwrap_or_else(|| event.clone()),
            )
        };
        // A hook of the administrator that asks wants the user in the agent itself.
        self.check_exception(&record).ok()?;
        let call = allowed_once::call_digest(state, event)?;
        record.extra.insert(CALL_KEY.to_owned(), call.into());
        let asked = now_ms();
        let question = Question {
            record,
            is_rewritten,
            asked,
            held_until: asked.saturating_add(u64::try_from(hold.as_millis()).unwrap_or_default()),
        };
        let questions = Questions::in_state(state);
        questions.add(&question)?;
        let started = Instant::now();
        while started.elapsed() < hold && !cancel.is_some_and(Cancel::is_set) {
            if let Some(decision) = questions.answer(&key, question.id()) {
                questions.remove(question.id());
                return Some(decision);
            }
            std::thread::sleep(ANSWER_POLL_INTERVAL);
        }
        // The question stays: a late answer counts for the next try.
        None
    }

    /// The questions that can be answered, oldest first.
    pub fn open_questions(&self) -> Vec<Question> {
        Questions::in_state(&self.dirs.state).open()
    }

    /// Answers a question. An error is why that is not possible.
    pub fn answer_question(&self, id: &str, decision: Decision) -> Result<AnswerEffect, String> {
        let state = &self.dirs.state;
        let questions = Questions::in_state(state);
        let question = is_id(id).then(|| load_question(&questions.question_path(id)));
        let question = question.flatten().filter(Question::is_open);
        let question = question.ok_or_else(|| format!("there is no open question `{id}`"))?;
        let unavailable = || format!("nothing can be written to `{}`", state.display());
        let key = CacheKey::load_or_create(state).ok_or_else(unavailable)?;
        if !question.time_left().is_zero() {
            let answer = AnswerFile {
                mac: answer_mac(&key, id, decision),
                decision,
            };
            let text = serde_json::to_vec(&answer).map_err(|_| unavailable())?;
            replace(&questions.answer_path(id), &text).map_err(|_| unavailable())?;
            let started = Instant::now();
            while started.elapsed() < TAKE_TIMEOUT {
                if !questions.question_path(id).exists() {
                    return Ok(AnswerEffect::Delivered);
                }
                std::thread::sleep(ANSWER_POLL_INTERVAL);
            }
        }
        questions.remove(id);
        // The next try may be rewritten to something else.
        if decision != Decision::Allow || question.is_rewritten {
            return Ok(AnswerEffect::StaysDenied);
        }
        self.allow_once(&question.record)?;
        Ok(AnswerEffect::PassesNextTime)
    }
}

fn apply_answer(response: &mut HookResponse, decision: Decision) {
    if decision == Decision::Deny {
        response.turn_into_deny("the user was asked and denied it");
    } else {
        response.decision = Some(decision);
    }
}
