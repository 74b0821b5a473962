//! An agent's call, from the decoded event to the record: run the hooks, say it
//! in the agent's words, tell, write down. Who calls over a pipe and who calls
//! over HTTP goes this way.

use anyhook_model::{Answer, HookResponse};

use crate::agent::{Agent, Decoded, Rendered};
use crate::beside::Voice;
use crate::engine::{self, Engine, Options};

/// What an agent was told.
#[derive(Debug, Default)]
pub struct Told {
    pub answer: Answer,
    /// What the answer says.
    pub response: HookResponse,
    /// The caller was told to stop, so nothing was said.
    pub cancelled: bool,
}

/// `trouble` goes into the record. `tell` is called before anything is written
/// down: the agent waits for it, and for nothing else.
pub fn answer(
    engine: &Engine,
    agent: &dyn Agent,
    decoded: Decoded,
    options: &Options,
    trouble: Option<String>,
    tell: impl FnOnce(&Answer),
) -> Told {
    let Decoded {
        event,
        can_ask,
        voice,
    } = decoded;
    let is_second = voice == Voice::Decision;
    if engine.off || (is_second && !engine::is_preventable(&event.event)) {
        let response = HookResponse::default();
        let answer = agent.render(&event, &response, can_ask).answer;
        tell(&answer);
        if engine.off {
            engine.record_off(event, answer.clone());
        }
        return Told {
            answer,
            response,
            cancelled: false,
        };
    }
    let mut handled = engine.handle(&event, options);
    handled.warnings.extend(trouble);
    if is_second {
        handled.response.context = None;
        handled.response.system_message = None;
    }
    let Rendered { answer, lost } = agent.render(&event, &handled.response, can_ask);
    let told = Told {
        answer: answer.clone(),
        response: handled.response.clone(),
        cancelled: handled.cancelled,
    };
    if !told.cancelled {
        tell(&answer);
    }
    engine.conclude(event, handled, Some(answer), &lost);
    told
}
