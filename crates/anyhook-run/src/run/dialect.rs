//! The input and output formats of handlers.
//!
//! A dialect writes the payload that a program expects and parses its answer.
//! Every [`NeutralDialect`] is one, and so is every agent.

mod agent;
pub mod canonical;
mod contract;
mod openhook;

use ::openhook::Envelope;
use anyhook_agents::config::hook_keys::NATIVE_EVENT;
use anyhook_model::fields::NeutralDialect;
use anyhook_model::{Decision, HookEvent, HookResponse, Loss, lenient_json};

use crate::agent::own::find_agent;
use crate::config::manifest::SelectedHook;
use crate::run::exec::MAX_OUTPUT_BYTES;

/// How many characters of each text of a cut answer reach the model.
const MAX_TEXT_OF_CUT_ANSWER: usize = 4096;

/// The input of a program.
#[derive(Debug, Default)]
pub struct Payload {
    pub stdin: Vec<u8>,
    /// Variables that programs of this dialect expect.
    pub env: Vec<(String, String)>,
    /// What this dialect cannot carry.
    pub lost: Vec<Loss>,
    /// The call that the input is about, where the event only amounts to it.
    pub call: Option<HookEvent>,
}

/// The answer of a program.
#[derive(Debug, Default)]
pub struct ParsedAnswer {
    pub response: HookResponse,
    /// Why the answer could not be understood.
    pub error: Option<String>,
    /// The parts of it that could not be used.
    pub warnings: Vec<String>,
}

impl ParsedAnswer {
    /// Parses a text with an answer. Of a text that was cut at the limit only a
    /// refusal counts, if it can be read so far; the rest is unknown.
    pub fn from_text(text: &str, is_cut: bool, parse: impl Fn(&str) -> Self) -> Self {
        if !is_cut {
            return parse(text);
        }
        let mut answer = parse(&lenient_json::completed(lenient_json::trimmed(text)));
        let response = &mut answer.response;
        response.updated_input = None;
        let texts = [&mut response.reason, &mut response.context];
        for text in texts.into_iter().flatten() {
            *text = text.chars().take(MAX_TEXT_OF_CUT_ANSWER).collect();
        }
        if response.is_deny() {
            answer.error = None;
        } else {
            if response.decision == Some(Decision::Allow) {
                response.decision = None;
                response.metadata.clear();
            }
            let limit = MAX_OUTPUT_BYTES / 1024 / 1024;
            answer.error = Some(format!("the answer is longer than {limit} MiB"));
        }
        answer
    }

    pub(crate) fn from_error(error: impl Into<String>) -> Self {
        Self {
            error: Some(error.into()),
            ..Self::default()
        }
    }
}

/// What a program has written, and how it exited.
#[derive(Debug, Clone, Copy)]
pub struct ProgramOutput<'a> {
    pub stdout: &'a str,
    pub stderr: &'a str,
    pub exit: i32,
}

pub trait Dialect {
    /// One payload, or one per part if a program of this dialect takes one file
    /// at a time: it then runs once for each.
    fn encode(&self, event: &HookEvent) -> Result<Vec<Payload>, String>;

    /// The caller decides what the exit code means for a blocking hook; here it
    /// only helps to parse the answer.
    fn parse_answer(&self, event: &HookEvent, output: ProgramOutput<'_>) -> ParsedAnswer;

    /// Whether the output has an answer at this exit code.
    fn has_answer_at(&self, exit: i32) -> bool {
        matches!(exit, 0 | 2)
    }

    /// Whether its programs cannot decide, whatever their exit code.
    fn observes_only(&self) -> bool {
        false
    }
}

/// `selected` matters to agents' dialects only, `envelopes` to
/// [`NeutralDialect::OpenHook`].
pub fn resolve<'a>(
    name: &str,
    selected: &'a SelectedHook<'_>,
    envelopes: &'a [Envelope],
) -> Option<Box<dyn Dialect + 'a>> {
    match NeutralDialect::parse(name) {
        Some(NeutralDialect::Canonical) => Some(Box::new(canonical::CanonicalDialect)),
        Some(NeutralDialect::Contract) => Some(Box::new(contract::ContractDialect {
            matcher: selected.hook.matcher.as_ref(),
        })),
        Some(NeutralDialect::OpenHook) => Some(Box::new(openhook::OpenHookDialect(envelopes))),
        None => {
            let slug = find_agent(name)?.slug();
            let adapter = anyhook_agents::get_for_run(slug)?;
            let data = selected.hook.provider_data.get(adapter.spec.id.as_ref());
            Some(Box::new(agent::AgentDialect {
                adapter,
                native_event: data.and_then(|data| data.get(NATIVE_EVENT)?.as_str()),
                project: &selected.root,
                matcher: selected.hook.matcher.as_ref(),
            }))
        }
    }
}
