//! anyhook's own dialect: `HookEvent` in, `HookResponse` out.

use anyhook_agents::Adapter;
use anyhook_model::HookEvent;
use anyhook_model::answer::{self, ParsedStdout};

use super::{Dialect, ParsedAnswer, Payload, ProgramOutput};

pub(super) struct CanonicalDialect;

impl Dialect for CanonicalDialect {
    fn encode(&self, event: &HookEvent) -> Result<Vec<Payload>, String> {
        let stdin = serde_json::to_vec(event).map_err(|error| error.to_string())?;
        Ok(vec![Payload {
            stdin,
            ..Payload::default()
        }])
    }

    fn parse_answer(&self, _event: &HookEvent, output: ProgramOutput<'_>) -> ParsedAnswer {
        parse_canonical_answer(output.stdout)
    }
}

/// A canonical answer, of a program or in the body of a response.
pub(crate) fn parse_canonical_answer(text: &str) -> ParsedAnswer {
    parse_answer_with_fields(text, &[])
}

/// The same for a format with more fields than the canonical one.
pub(super) fn parse_answer_with_fields(text: &str, more_fields: &[&str]) -> ParsedAnswer {
    let mut answer = match answer::parse_answer_with_fields(text, more_fields) {
        ParsedStdout::Empty => ParsedAnswer::default(),
        ParsedStdout::Answer(response, warnings) => ParsedAnswer {
            response: *response,
            warnings,
            error: None,
        },
        ParsedStdout::Unreadable {
            why,
            rest,
            warnings,
        } => ParsedAnswer {
            response: *rest,
            warnings,
            error: Some(why),
        },
    };
    // A deny must not become an allow because the handler has no `dialect`.
    let response = &mut answer.response;
    if response.decision.is_none()
        && !response.extra.is_empty()
        && let Some(deny) = Adapter::read_deny_of_any(&response.extra)
    {
        answer.error = None;
        answer.warnings.push(
            "the answer denies in the form of an agent; it is taken as a deny, but give the handler its `dialect`"
                .to_owned(),
        );
        response.decision = deny.decision;
        response.reason = response.reason.take().or(deny.reason);
    }
    answer
}
