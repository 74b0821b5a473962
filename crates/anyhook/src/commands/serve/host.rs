//! The engine behind the daemon: an agent's call over HTTP goes the way that
//! `anyhook run` goes.

use anyhook_daemon::{AgentName, HookHost, HookReply, HookRequest};
use anyhook_model::{HookResponse, Record, resolve_ask};
use anyhook_run::agent::{self, Agent, Decoded, Rendered};
use anyhook_run::beside::Voice;
use anyhook_run::engine::is_preventable;
use anyhook_run::failure::Failure;
use anyhook_run::{Engine, Options, json, places, redact};
use serde_json::Value;

pub struct Host {
    engine: Engine,
}

impl Host {
    pub fn new(engine: Engine) -> Self {
        Self { engine }
    }

    fn answer(&self, agent: &dyn Agent, decoded: Decoded, unattended: bool) -> HookReply {
        let Decoded {
            event,
            can_ask,
            voice,
        } = decoded;
        let can_ask = can_ask && !unattended;
        let quiet = voice == Voice::Decision;
        if self.engine.off || (quiet && !is_preventable(&event.event)) {
            let response = HookResponse::default();
            let answer = agent.render(&event, &response, can_ask).answer;
            if self.engine.off {
                self.engine.record_off(&event, answer.clone());
            }
            return HookReply {
                answer,
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

    fn fail(&self, agent: &dyn Agent, payload: &[u8], event: Option<&str>, why: &str) -> HookReply {
        let failure = Failure::new(&self.engine, agent, payload, event, why);
        let answer = failure.answer;
        self.engine
            .record_failure(&failure.event, &failure.message, answer.clone());
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
            event: failure.event,
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
            Err(why) => self.fail(&*agent, &request.payload, event, &why),
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
    let payload = json::read(&request.payload).unwrap_or_default();
    let says = |cwd: &str| places::folder(cwd).is_some();
    match anyhook_agents::get_for_run(&request.agent) {
        Some(adapter) => adapter
            .decode(&payload, request.event.as_deref())
            .is_ok_and(|decoded| decoded.event.cwd.as_deref().is_some_and(says)),
        None => payload.get("cwd").and_then(Value::as_str).is_some_and(says),
    }
}
