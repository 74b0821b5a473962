//! The engine behind the daemon: an agent's call over HTTP goes the way that
//! `anyhook run` goes.

use std::sync::Arc;

use anyhook_daemon::{AgentName, HookHost, HookReply, HookRequest};
use anyhook_model::{HookResponse, Record, resolve_ask};
use anyhook_run::agent::{self, Agent, Decoded};
use anyhook_run::failure::Failure;
use anyhook_run::redact::Clean;
use anyhook_run::surroundings::Surroundings;
use anyhook_run::{Engine, Options, call, json, places};
use serde_json::Value;

pub struct Host {
    engine: Engine,
}

impl Host {
    pub fn new(mut engine: Engine) -> Self {
        engine.memory = Some(Arc::default());
        engine.journal = engine.journal.kept_open();
        Self { engine }
    }

    fn answer(&self, agent: &dyn Agent, decoded: Decoded, options: &Options) -> HookReply {
        let can_ask = decoded.can_ask;
        let told = call::answer(&self.engine, agent, decoded, options, None, |_| ());
        HookReply {
            answer: told.answer,
            response: resolve_ask(told.response, can_ask),
            record: None,
        }
    }

    fn fail(&self, agent: &dyn Agent, payload: &[u8], event: Option<&str>, why: &str) -> HookReply {
        let failure = Failure::new(&self.engine, agent, payload, event, why);
        let answer = failure.answer;
        self.engine
            .record_failure(failure.event, &failure.message, answer.clone());
        let response = if failure.blocks {
            HookResponse::deny(failure.message)
        } else {
            HookResponse {
                system_message: Some(failure.message),
                ..HookResponse::default()
            }
        };
        HookReply {
            answer,
            response,
            record: None,
        }
    }
}

impl HookHost for Host {
    fn agents(&self) -> Vec<AgentName> {
        let own = AgentName {
            slug: "canonical".to_owned(),
            aliases: Vec::new(),
        };
        let adapters = anyhook_agents::all().map(|adapter| AgentName {
            slug: adapter.spec.id.to_string(),
            aliases: adapter
                .spec
                .aliases
                .iter()
                .map(ToString::to_string)
                .collect(),
        });
        adapters.chain([own]).collect()
    }

    fn handle(&self, request: HookRequest) -> HookReply {
        match read(&request) {
            Some((agent, Ok(decoded))) => self.answer(&*agent, decoded, &Options::default()),
            Some((agent, Err(why))) => {
                let event = request.event.as_deref();
                self.fail(&*agent, &request.payload, event, &why)
            }
            None => HookReply::default(),
        }
    }

    fn handle_at_once(&self, request: HookRequest) -> Result<HookReply, HookRequest> {
        let Some((agent, Ok(decoded))) = read(&request) else {
            return Err(request);
        };
        let here = Surroundings::recall(&self.engine, &decoded.event);
        let is_quiet = here.is_some_and(|here| here.is_quiet(&decoded.event));
        if !is_quiet {
            return Err(request);
        }
        let options = Options {
            is_quiet,
            ..Options::default()
        };
        Ok(self.answer(&*agent, decoded, &options))
    }

    fn redact(&self, record: &mut Record) {
        let clean = serde_json::to_value(Clean::new(&*record));
        if let Ok(clean) = clean.and_then(serde_json::from_value) {
            *record = clean;
        }
    }
}

/// The agent, and what it says.
fn read(request: &HookRequest) -> Option<(Box<dyn Agent>, Result<Decoded, String>)> {
    // The daemon asks only for agents that we have named.
    let (agent, _) = agent::resolve(Some(&request.agent), &request.payload).ok()?;
    let decoded = agent.decode(&request.payload, request.event.as_deref());
    let decoded = decoded.map(|mut decoded| {
        if let Some(cwd) = &request.cwd
            && !says_cwd(request)
        {
            decoded.event.cwd = Some(cwd.clone());
        }
        decoded.can_ask &= !request.unattended;
        decoded
    });
    Some((agent, decoded))
}

/// Whether the payload itself names its folder. An adapter's answer is asked
/// before ours fills in where *this* process works.
fn says_cwd(request: &HookRequest) -> bool {
    let payload = json::read(&request.payload).unwrap_or_default();
    let says = |cwd: &str| places::folder(cwd).is_some();
    match anyhook_agents::get_for_run(&request.agent) {
        Some(adapter) => adapter
            .decode(&payload, request.event.as_deref())
            .is_ok_and(|decoded| decoded.event.cwd.as_deref().is_some_and(says)),
        None => payload.get("cwd").and_then(Value::as_str).is_some_and(says),
    }
}
