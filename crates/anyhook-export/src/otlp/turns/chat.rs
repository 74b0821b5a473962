//! Calls of a model: spans below the turn, and its sums.

use serde::{Deserialize, Serialize};

use super::super::ids::{SpanId, SpanRef};
use super::super::names;
use super::super::span::{AttributeList, AttributeValue, SpanSink, UnplacedSpan};
use crate::usage::{ModelCall, TokenCounts};

/// Calls that wait for the end of their turn; the oldest beyond are left out.
const MAX_WAITING_CALLS: usize = 2000;
/// A call may be written down a moment after the agent has stopped.
const GRACE_NANOS: u64 = 2_000_000_000;

/// A call with its price and its maker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PricedCall {
    pub(crate) call: ModelCall,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) provider: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct WaitingCalls(Vec<PricedCall>);

impl WaitingCalls {
    pub(super) fn add(&mut self, call: PricedCall) {
        // The lines of one call add up.
        let known = self
            .0
            .iter_mut()
            .rev()
            .find(|it| it.call.id == call.call.id);
        if let Some(known) = known {
            known.call.tokens.add(call.call.tokens);
            known.call.time_us = known.call.time_us.max(call.call.time_us);
            known.cost_usd = match (known.cost_usd, call.cost_usd) {
                (Some(one), Some(other)) => Some(one + other),
                (one, other) => one.or(other),
            };
            return;
        }
        if self.0.len() >= MAX_WAITING_CALLS {
            self.0.remove(0);
        }
        self.0.push(call);
    }

    /// The calls of a turn that ended at `end`.
    pub(super) fn take_until(&mut self, end: u64) -> Vec<PricedCall> {
        let end = end.saturating_add(GRACE_NANOS);
        let (taken, rest) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|it| call_nanos(&it.call) <= end);
        self.0 = rest;
        taken
    }
}

fn call_nanos(call: &ModelCall) -> u64 {
    u64::try_from(call.time_us)
        .unwrap_or_default()
        .saturating_mul(1000)
}

/// Adds the sums of the calls to the turn, and one span for each. A transcript tells when a
/// call ended and not when it began, so these spans have no length.
pub(super) fn push_chat_spans(
    calls: Vec<PricedCall>,
    at: SpanRef,
    turn: &mut AttributeList,
    sink: &mut SpanSink<'_>,
) {
    let mut sum = TokenCounts::default();
    let mut cost = None;
    for PricedCall {
        call,
        cost_usd,
        provider,
    } in calls
    {
        sum.add(call.tokens);
        if let Some(usd) = cost_usd {
            *cost.get_or_insert(0.0) += usd;
        }
        let mut attributes = AttributeList::default();
        attributes.text(names::OPERATION, "chat");
        attributes.text(names::SPAN_KIND, "LLM");
        attributes.text(names::AGENT_NAME, call.agent.clone());
        attributes.optional_text(names::PROVIDER, provider.as_deref());
        attributes.text(names::MODEL, call.model.clone());
        attributes.text(names::RESPONSE_MODEL, call.model.clone());
        attributes.text(names::OI_MODEL, call.model.clone());
        add_tokens(&mut attributes, call.tokens, cost_usd);
        for (name, count) in [
            (names::OI_PROMPT_TOKENS, call.tokens.input),
            (names::OI_COMPLETION_TOKENS, call.tokens.output),
            (
                names::OI_TOTAL_TOKENS,
                call.tokens.input.saturating_add(call.tokens.output),
            ),
            (names::OI_CACHE_READ_TOKENS, call.tokens.cache_read),
            (names::OI_CACHE_WRITE_TOKENS, call.tokens.cache_creation),
        ] {
            attributes.int(name, signed(count));
        }
        turn.optional_text(names::PROVIDER, provider.as_deref());
        let time = call_nanos(&call);
        let key = format!("{}\n{}\n{}", call.agent, call.session, call.id);
        sink.push(UnplacedSpan {
            id: SpanId::of_record("chat", &key, 0),
            parent: at.span,
            name: format!("chat {}", call.model),
            start: time,
            end: time,
            attributes,
            error: None,
        });
    }
    if sum != TokenCounts::default() {
        add_tokens(turn, sum, cost);
    }
}

fn add_tokens(attributes: &mut AttributeList, tokens: TokenCounts, cost: Option<f64>) {
    for (name, count) in [
        (names::INPUT_TOKENS, tokens.input),
        (names::OUTPUT_TOKENS, tokens.output),
        (names::CACHE_READ_TOKENS, tokens.cache_read),
        (names::CACHE_CREATION_TOKENS, tokens.cache_creation),
    ] {
        attributes.int(name, signed(count));
    }
    if let Some(usd) = cost {
        attributes.set(names::COST, AttributeValue::Float(usd));
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
