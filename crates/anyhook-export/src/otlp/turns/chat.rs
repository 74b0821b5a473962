//! Calls of a model: spans below the turn, and its sums.
//!
//! A call is written down by the agent and found by the collector independently of the
//! events. It may be known before its turn has begun and after its turn was sent.

use serde::{Deserialize, Serialize};

use super::super::ids::{SpanId, SpanRef, TraceId};
use super::super::names;
use super::super::span::{AttributeList, AttributeValue, FinishedSpan};
use crate::usage::{ModelCall, TokenCounts};

/// A call may be written down a moment after the agent has stopped.
pub(super) const GRACE_NANOS: u64 = 2_000_000_000;
/// Calls that were sent and may still grow.
const MAX_SENT_CALLS: usize = 8;

/// A call with its price and its maker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PricedCall {
    pub(crate) call: ModelCall,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) provider: Option<String>,
}

impl PricedCall {
    pub(super) fn nanos(&self) -> u64 {
        let micros = u64::try_from(self.call.time_us).unwrap_or_default();
        micros.saturating_mul(1000)
    }
}

/// Calls of a session that were not sent yet.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct WaitingCalls(Vec<PricedCall>);

impl WaitingCalls {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn add(&mut self, call: PricedCall) {
        // The lines of one call add up.
        let known = self
            .0
            .iter_mut()
            .rev()
            .find(|it| it.call.id == call.call.id);
        let Some(known) = known else {
            self.0.push(call);
            return;
        };
        known.call.tokens.add(call.call.tokens);
        known.call.time_us = known.call.time_us.max(call.call.time_us);
        known.cost_usd = match (known.cost_usd, call.cost_usd) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
    }

    pub(super) fn take_if(&mut self, is_wanted: impl Fn(u64) -> bool) -> Vec<PricedCall> {
        self.0.extract_if(.., |it| is_wanted(it.nanos())).collect()
    }
}

/// The calls that were sent last, with the number of their spans. A call that grows
/// afterwards gets another one.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct SentCalls(Vec<(String, usize)>);

impl SentCalls {
    /// The number of spans that the call has already.
    fn count(&mut self, id: &str) -> usize {
        let known = self.0.iter().position(|(known, _)| known == id);
        let count = known.map_or(0, |at| self.0.remove(at).1);
        if self.0.len() >= MAX_SENT_CALLS {
            self.0.remove(0);
        }
        self.0.push((id.to_owned(), count + 1));
        count
    }

    /// Adds a span for a call, below a turn or, without one, in a trace of its own. A
    /// transcript tells when a call ended and not when it began, so it has no length.
    pub(super) fn push_span(
        &mut self,
        priced: PricedCall,
        turn: Option<SpanRef>,
        spans: &mut Vec<FinishedSpan>,
    ) {
        let time = priced.nanos();
        let PricedCall {
            call,
            cost_usd,
            provider,
        } = priced;
        let tokens = call.tokens;
        let mut attributes = AttributeList::default();
        attributes.text(names::OPERATION, "chat");
        attributes.text(names::SPAN_KIND, "LLM");
        attributes.text(names::AGENT_NAME, call.agent.clone());
        attributes.optional_text(names::PROVIDER, provider.as_deref());
        attributes.text(names::MODEL, call.model.clone());
        attributes.text(names::RESPONSE_MODEL, call.model.clone());
        attributes.text(names::OI_MODEL, call.model.clone());
        for (name, count) in [
            (names::INPUT_TOKENS, tokens.input),
            (names::OUTPUT_TOKENS, tokens.output),
            (names::CACHE_READ_TOKENS, tokens.cache_read),
            (names::CACHE_CREATION_TOKENS, tokens.cache_creation),
            (names::OI_PROMPT_TOKENS, tokens.input),
            (names::OI_COMPLETION_TOKENS, tokens.output),
            (
                names::OI_TOTAL_TOKENS,
                tokens.input.saturating_add(tokens.output),
            ),
            (names::OI_CACHE_READ_TOKENS, tokens.cache_read),
            (names::OI_CACHE_WRITE_TOKENS, tokens.cache_creation),
        ] {
            attributes.int(name, signed(count));
        }
        if let Some(usd) = cost_usd {
            attributes.set(names::COST, AttributeValue::Float(usd));
        }
        attributes.text(names::CONVERSATION, call.session.clone());
        attributes.text(names::SESSION, call.session.clone());
        let key = format!("{}\n{}\n{}", call.agent, call.session, call.id);
        spans.push(FinishedSpan {
            at: SpanRef {
                trace: turn.map_or_else(|| TraceId::of_record(&key), |turn| turn.trace),
                span: SpanId::of_record("chat", &key, self.count(&call.id)),
            },
            parent: turn.map(|turn| turn.span),
            name: format!("chat {}", call.model),
            start: time,
            end: time,
            attributes,
            link: None,
            error: None,
        });
    }
}

/// Adds the sums of a turn's calls to it. They have names of their own: receivers add the
/// tokens of all spans up, and would count these twice.
pub(super) fn add_sums(calls: &[PricedCall], turn: &mut AttributeList) {
    let mut sum = TokenCounts::default();
    let mut cost = None;
    let mut unpriced = 0;
    for PricedCall {
        call,
        cost_usd,
        provider,
    } in calls
    {
        sum.add(call.tokens);
        match cost_usd {
            Some(usd) => *cost.get_or_insert(0.0) += usd,
            None => unpriced += 1,
        }
        turn.optional_text(names::PROVIDER, provider.as_deref());
    }
    if calls.is_empty() {
        return;
    }
    for (name, count) in [
        (names::TURN_INPUT_TOKENS, sum.input),
        (names::TURN_OUTPUT_TOKENS, sum.output),
        (names::TURN_CACHE_READ_TOKENS, sum.cache_read),
        (names::TURN_CACHE_CREATION_TOKENS, sum.cache_creation),
    ] {
        turn.int(name, signed(count));
    }
    if let Some(usd) = cost {
        turn.set(names::TURN_COST, AttributeValue::Float(usd));
    }
    if unpriced > 0 {
        turn.int(names::TURN_UNPRICED_CALLS, unpriced);
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
