//! The engine behind the daemon: an agent's call over HTTP goes the way that
//! `anyhook run` goes.

use anyhook_daemon::{AgentName, HookHost, HookReply, HookRequest};
use anyhook_model::{HookEvent, HookResponse, Record, resolve_ask};
use anyhook_run::agent::{self, Agent, Decoded, Rendered};
use anyhook_run::beside::Voice;
use anyhook_run::engine::is_preventable;
use anyhook_run::{Engine, Options, engine, redact};
use serde_json::Value;

pub struct Host {
    engine: Engine,
    /// `ANYHOOK=0`
    is_off: bool,
}

impl Host {
    pub fn new(engine: Engine) -> Self {
        Self {
            engine,
            is_off: std::env::var_os("ANYHOOK").is_some_and(|value| value == "0"),
        }
    }

    fn answer(&self, agent: &dyn Agent, decoded: Decoded, unattended: bool) -> HookReply {
        let Decoded {
            event,
            can_ask,
            voice,
        } = decoded;
        let can_ask = can_ask && !unattended;
        let quiet = voice == Voice::Decision;
        if self.is_off || (quiet && !is_preventable(&event.event)) {
            let response = HookResponse::default();
            return HookReply {
                answer: agent.render(&event, &response, can_ask).answer,
                response,
                event,
                record: None,
            };
        }
        let mut handled = self.engine.handle(&event, &Options::default());
        if quiet {
            handled.response.context = None;
            handled.response.system_message = None;
        }
        let response = handled.response.clone();
        let Rendered { answer, lost } = agent.render(&event, &response, can_ask);
        self.engine
            .conclude(&event, handled, Some(answer.clone()), &lost);
        HookReply {
            answer,
            response: resolve_ask(response, can_ask),
            event,
            record: None,
        }
    }

    /// The agent must not be broken by a payload that we do not understand.
    fn fail(&self, agent: &dyn Agent, event: Option<&str>, message: &str) -> HookReply {
        let message = format!("anyhook: no hook has run: {message}");
        let block = event.is_some_and(engine::is_preventable) && self.engine.fails_closed();
        let answer = agent.failure(event, &message, block);
        let event = HookEvent {
            event: event.unwrap_or_default().to_owned(),
            source: agent.slug().to_owned(),
            ..HookEvent::default()
        };
        self.engine.record_failure(&event, &message, answer.clone());
        let response = if block {
            HookResponse::deny(message)
        } else {
            HookResponse {
                system_message: Some(message),
                ..HookResponse::default()
            }
        };
        HookReply {
            answer,
            response,
            event,
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
        let event = request.event.as_deref();
        let Ok((agent, _)) = agent::resolve(Some(&request.agent), &request.payload) else {
            // The daemon asks only for agents that we have named.
            return HookReply::default();
        };
        match agent.decode(&request.payload, event) {
            Ok(mut decoded) => {
                if let Some(cwd) = &request.cwd
                    && !says_cwd(&request)
                {
                    decoded.event.cwd = Some(cwd.clone());
                }
                self.answer(&*agent, decoded, request.unattended)
            }
            Err(message) => self.fail(&*agent, event, &message),
        }
    }

    fn redact(&self, record: &mut Record) {
        let Ok(mut value) = serde_json::to_value(&*record) else {
            return;
        };
        redact::value(&mut value);
        if let Ok(clean) = serde_json::from_value(value) {
            *record = clean;
        }
    }
}

/// Whether the payload itself names its folder. An adapter's answer is asked
/// before ours fills in where *this* process works.
fn says_cwd(request: &HookRequest) -> bool {
    let payload: Value = serde_json::from_slice(&request.payload).unwrap_or_default();
    match anyhook_agents::get_for_run(&request.agent) {
        Some(adapter) => adapter
            .decode(&payload, request.event.as_deref())
            .is_ok_and(|decoded| decoded.event.cwd.is_some()),
        None => payload.get("cwd").is_some_and(Value::is_string),
    }
}
