//! The engine behind the daemon: handles a call over HTTP as `anyhook run` handles one
//! from stdin.

use std::sync::Arc;
use std::time::Duration;

use anyhook_daemon::{
    AgentName, FailureReply, HookHost, HookReply, HookRequest, HostSetup, NativeAnswer,
    OpenQuestion, PreparedCall, WrappedForm,
};
use anyhook_model::{Answer, Decision, HookEvent, HookResponse, Record, resolve_ask};
use anyhook_run::agent::failure::DecodeFailure;
use anyhook_run::agent::{
    self, Agent, DecodedCall, MIN_ENTRY_TIMEOUT, RenderedAnswer, SuspectedEvent,
};
use anyhook_run::config::effective::EffectiveConfig;
use anyhook_run::config::folders::{self, EventFolders};
use anyhook_run::engine::can_prevent;
use anyhook_run::record::duplicate::EntryName;
use anyhook_run::record::redact::redacted_json;
use anyhook_run::record::session_folders;
use anyhook_run::{Engine, EventOptions, call};
use anyhook_store::EventFilter;
use serde_json::Value;

use crate::commands::usage_log::UsageLog;

/// Told when an http entry calls for a session of which no entry has seen the project.
const UNKNOWN_PROJECT: &str = "anyhook does not know yet in which project this session was started, so a project's hooks run only while the agent works in its folder; your next prompt or a new session fixes that";

pub(super) struct EngineHost {
    engine: Engine,
}

impl EngineHost {
    pub(super) fn new(mut engine: Engine) -> Self {
        engine.config_cache = Some(Arc::default());
        engine.journal = engine.journal.keep_open();
        Self { engine }
    }
}

impl HookHost for EngineHost {
    fn agents(&self) -> Vec<AgentName> {
        let canonical = AgentName {
            slug: "canonical".to_owned(),
            aliases: Vec::new(),
        };
        let adapters = anyhook_agents::all().map(|adapter| {
            let aliases = adapter.spec.aliases.iter().map(ToString::to_string);
            AgentName {
                slug: adapter.spec.id.to_string(),
                aliases: aliases.collect(),
            }
        });
        adapters.chain([canonical]).collect()
    }

    fn prepare(self: Arc<Self>, request: HookRequest) -> Box<dyn PreparedCall> {
        let agent = resolve_agent(&request);
        let decoded = agent.as_ref().map_err(Clone::clone).and_then(|agent| {
            let decoded = agent.decode(&request.payload, request.event.as_deref())?;
            Ok(in_callers_folder(decoded, &request))
        });
        let mut is_project_known = true;
        let folders = decoded.as_ref().map_or_else(
            |_| EventFolders::default(),
            |decoded| {
                let HookRequest { cwd, projects, .. } = &request;
                let event = &decoded.event;
                let folders = EventFolders::from_remote_event(event, cwd.as_deref(), projects);
                // A dispatcher has sent all that it knows.
                if cwd.is_some() {
                    return folders;
                }
                let session = session_folders::load(&self.engine.dirs, event);
                is_project_known = session.has_project || !request.is_http_entry;
                folders.with_folders(session.folders)
            },
        );
        let is_quiet = decoded.as_ref().is_ok_and(|decoded| {
            EffectiveConfig::from_cache_at(&self.engine, &folders)
                .is_some_and(|here| here.is_quiet(&decoded.event))
        });
        Box::new(EngineCall {
            host: self,
            agent: agent.ok(),
            request,
            decoded,
            folders,
            is_project_known,
            is_quiet,
        })
    }

    fn open_questions(&self) -> Vec<OpenQuestion> {
        let questions = self.engine.open_questions();
        let questions = questions.into_iter().map(|question| OpenQuestion {
            seconds_left: question.time_left().as_secs(),
            is_rewritten: question.is_rewritten,
            record: question.record,
        });
        questions.collect()
    }

    fn answer_question(&self, id: &str, decision: Decision) -> Result<&'static str, String> {
        let effect = self.engine.answer_question(id, decision)?;
        Ok(effect.as_str())
    }

    fn usage(&self, filter: &EventFilter) -> Result<Value, String> {
        let usage = UsageLog::open(&self.engine).map_err(|error| format!("{error:#}"))?;
        let summary = usage.summary(filter).unwrap_or_default();
        serde_json::to_value(summary).map_err(|error| error.to_string())
    }

    fn setup(&self) -> HostSetup {
        HostSetup {
            off: self.engine.off,
            folders: self.engine.dirs.digest(),
        }
    }

    fn redact(&self, record: &mut Record) {
        if let Ok(clean) = redacted_json(record).and_then(serde_json::from_value) {
            *record = clean;
        }
    }
}

/// The agent as the caller expects its answers.
fn resolve_agent(request: &HookRequest) -> Result<Box<dyn Agent>, String> {
    let (agent, _) = agent::resolve(Some(&request.agent), b"")?;
    if request.form.is_none() && !request.must_not_ask {
        return Ok(agent);
    }
    Ok(Box::new(ServedAgent {
        agent,
        form: request.form,
        event: request.event.clone().unwrap_or_default(),
        must_not_ask: request.must_not_ask,
    }))
}

/// The payload's folder, else the one that the caller sent, else this process's.
fn in_callers_folder(mut decoded: DecodedCall, request: &HookRequest) -> DecodedCall {
    let cwd = &mut decoded.event.cwd;
    let has_folder = cwd.as_deref().and_then(folders::parse_folder).is_some();
    if !has_folder && request.cwd.is_some() {
        cwd.clone_from(&request.cwd);
    }
    decoded.can_ask &= !request.unattended;
    decoded.or_current_dir()
}

struct EngineCall {
    host: Arc<EngineHost>,
    /// `None` only for an agent that [`HookHost::agents`] does not list.
    agent: Option<Box<dyn Agent>>,
    request: HookRequest,
    decoded: Result<DecodedCall, String>,
    folders: EventFolders,
    /// Whether the hooks of the project in which the session was started are asked.
    is_project_known: bool,
    is_quiet: bool,
}

impl EngineCall {
    /// Remembers the folders for calls of the session that name fewer.
    fn remember_folders(&self, event: &HookEvent) {
        let begins = event.event == "session_start";
        let is_from_dispatcher = self.request.cwd.is_some() && event.tool_name().is_none();
        if begins || is_from_dispatcher || !self.is_project_known {
            let has_project = begins || is_from_dispatcher;
            session_folders::add(&self.host.engine.dirs, event, &self.folders, has_project);
        }
    }
}

impl PreparedCall for EngineCall {
    fn is_quiet(&self) -> bool {
        self.is_quiet
    }

    fn undecoded(&self) -> Option<&[u8]> {
        let is_defined = self
            .agent
            .as_ref()
            .is_some_and(|it| it.answers_unreadable());
        let is_rejected = self.decoded.is_err() && !is_defined;
        is_rejected.then_some(&self.request.payload)
    }

    fn project(&self) -> Option<&str> {
        self.folders.folders.first()?.to_str()
    }

    fn time_limit(&self) -> Option<Duration> {
        let event = &self.decoded.as_ref().ok()?.event;
        // The engine finds it in the cache.
        let config = EffectiveConfig::load_at(&self.host.engine, self.folders.clone(), event);
        Some(config.time_limit(event))
    }

    fn failure(&self) -> Option<FailureReply> {
        let event = &self.decoded.as_ref().ok()?.event;
        if !can_prevent(event) {
            return None;
        }
        let event = HookEvent {
            event: event.event.clone(),
            native_event: event.native_event.clone(),
            source: event.source.clone(),
            session_id: event.session_id.clone(),
            cwd: event.cwd.clone(),
            ..HookEvent::default()
        };
        let host = self.host.clone();
        let request = HookRequest {
            payload: Vec::new(),
            ..self.request.clone()
        };
        Some(Box::new(move |why| {
            if host.engine.off || !host.engine.fails_closed() {
                return None;
            }
            let message = format!("anyhook: not all hooks have run: {why}");
            let agent = resolve_agent(&request).ok()?;
            let answer = agent.failure(Some(&event.native_event), &message, true);
            host.engine.record_failure(event, &message, answer.clone());
            Some(HookReply {
                answer,
                decision: Some(Decision::Deny),
                record: None,
            })
        }))
    }

    fn run(self: Box<Self>) -> HookReply {
        if let Ok(decoded) = &self.decoded {
            self.remember_folders(&decoded.event);
        }
        let engine = &self.host.engine;
        let Some(agent) = self.agent else {
            return HookReply::default();
        };
        match self.decoded {
            Ok(decoded) => {
                let can_ask = decoded.can_ask;
                let usual = self.request.is_http_entry.then_some(MIN_ENTRY_TIMEOUT);
                let limit = self.request.answer_limit.or(usual);
                let waited = self.request.received.map(|received| received.elapsed());
                let options = EventOptions {
                    answer_limit: limit
                        .map(|limit| limit.saturating_sub(waited.unwrap_or_default())),
                    is_quiet: self.is_quiet,
                    entry: self.request.entry.as_deref().and_then(EntryName::from_text),
                    folders: Some(self.folders),
                    notice: (!self.is_project_known).then(|| UNKNOWN_PROJECT.to_owned()),
                    ..EventOptions::default()
                };
                let reply = call::answer(engine, &*agent, decoded, &options, None, |_| ());
                HookReply {
                    answer: reply.answer,
                    decision: resolve_ask(reply.response, can_ask).decision,
                    record: None,
                }
            }
            Err(why) => {
                let HookRequest { payload, event, .. } = &self.request;
                let failure = DecodeFailure::new(engine, &*agent, payload, event.as_deref(), &why);
                let answer = failure.answer;
                engine.record_failure(failure.event, &failure.message, answer.clone());
                HookReply {
                    answer,
                    decision: failure.blocks.then_some(Decision::Deny),
                    record: None,
                }
            }
        }
    }
}

/// An agent as its dispatcher expects it. In the wrapped form, the payload is already
/// unwrapped, and the answer gets the form's shape before it is recorded.
struct ServedAgent {
    agent: Box<dyn Agent>,
    form: Option<WrappedForm>,
    /// The agent's name for the event.
    event: String,
    /// See [`HookRequest::must_not_ask`].
    must_not_ask: bool,
}

impl Agent for ServedAgent {
    fn slug(&self) -> &str {
        self.agent.slug()
    }

    fn decode(&self, payload: &[u8], event: Option<&str>) -> Result<DecodedCall, String> {
        self.agent.decode(payload, event)
    }

    fn render(&self, event: &HookEvent, response: &HookResponse, can_ask: bool) -> RenderedAnswer {
        let response = &resolve_ask(response.clone(), !self.must_not_ask);
        let (answer, lost) = self.agent.render(event, response, can_ask);
        let Some(form) = self.form else {
            return (answer, lost);
        };
        let native = NativeAnswer {
            answer,
            lost,
            can_ask,
            is_preventable: can_prevent(event),
        };
        form.render(&self.event, response, native)
    }

    fn has_user(&self, event: &HookEvent) -> bool {
        !self.must_not_ask && self.agent.has_user(event)
    }

    fn longest_wait(&self, event: &HookEvent) -> Option<Duration> {
        self.agent.longest_wait(event)
    }

    fn answers_unreadable(&self) -> bool {
        self.agent.answers_unreadable()
    }

    fn suspect(&self, payload: &[u8], event: Option<&str>) -> Option<SuspectedEvent> {
        self.agent.suspect(payload, event)
    }

    fn failure(&self, event: Option<&str>, message: &str, block: bool) -> Answer {
        let answer = self.agent.failure(event, message, block);
        let Some(form) = self.form else {
            return answer;
        };
        let response = agent::failure_response(message, block);
        let native = NativeAnswer {
            answer,
            ..NativeAnswer::default()
        };
        form.render(&self.event, &response, native).0
    }
}
