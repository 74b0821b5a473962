//! One call of an agent, from the decoded event to the journal record: run the
//! hooks, render the answer, send it, record it. Shared by `anyhook run` and
//! the daemon.

use anyhook_model::{Answer, Decision, HookResponse};

use crate::agent::{Agent, DecodedCall, MIN_ENTRY_TIMEOUT};
use crate::engine::{Engine, EventOptions};

/// The reply to one call.
#[derive(Debug, Default)]
pub struct CallReply {
    pub answer: Answer,
    /// The response that the answer was rendered from.
    pub response: HookResponse,
    /// The call was cancelled, so nothing was sent, unless it is denied.
    pub cancelled: bool,
}

/// Handles one call. `warning` goes into the record. `send` is called before
/// anything is recorded: the agent waits for the answer only.
pub fn answer(
    engine: &Engine,
    agent: &dyn Agent,
    decoded: DecodedCall,
    options: &EventOptions,
    warning: Option<String>,
    send: impl FnOnce(&Answer),
) -> CallReply {
    let DecodedCall {
        event,
        can_ask,
        notices,
    } = decoded;
    if engine.off {
        let render = |event: &_, response: &_| agent.render(event, response, can_ask);
        let answer = engine.answer_switched_off(event, render, send);
        return CallReply {
            answer,
            ..CallReply::default()
        };
    }
    let limits = [options.answer_limit, agent.longest_wait(&event)];
    let options = &EventOptions {
        notices,
        answer_limit: limits.into_iter().flatten().min(),
        ..options.clone()
    };
    let mut outcome = engine.handle(&event, options);
    outcome.warnings.extend(warning);
    let (mut answer, mut lost) = agent.render(&event, &outcome.response, can_ask);
    let is_ask = outcome.response.decision == Some(Decision::Ask);
    let is_unasked = || {
        let is_lost = lost.iter().any(|loss| loss.field == "ask");
        is_lost || !can_ask || !agent.has_user(&event)
    };
    let limit = options.answer_limit.unwrap_or(MIN_ENTRY_TIMEOUT);
    if is_ask && is_unasked() && engine.hold_for_answer(&event, &mut outcome, limit) {
        (answer, lost) = agent.render(&event, &outcome.response, can_ask);
    }
    let reply = CallReply {
        answer: answer.clone(),
        response: outcome.response.clone(),
        cancelled: outcome.cancelled,
    };
    // An agent that gives up on the hook must not take its silence for consent.
    if !reply.cancelled || reply.response.is_deny() {
        send(&answer);
    }
    engine.conclude(event, outcome, Some(answer), &lost);
    reply
}
