//! The dialect of a handler written for one agent: that agent's adapter encodes
//! the payload and reads the answer.

use std::path::Path;

use anyhook_agents::Adapter;
use anyhook_model::{Decision, HookEvent, Matcher, matches};

use super::{Dialect, ParsedAnswer, Payload, ProgramOutput};

/// A program that was written for an agent.
pub(super) struct AgentDialect<'a> {
    pub adapter: &'static Adapter,
    /// The native event that the program expects, if several would do.
    pub native_event: Option<&'a str>,
    pub project: &'a Path,
    /// The hook's.
    pub matcher: Option<&'a Matcher>,
}

impl Dialect for AgentDialect<'_> {
    fn encode(&self, event: &HookEvent) -> Result<Vec<Payload>, String> {
        let parts = self
            .adapter
            .encode_parts(event, self.native_event, |call| matches(self.matcher, call));
        if parts.is_empty() {
            return Err(format!("{} has no such event", self.adapter.spec.name));
        }
        let parts = parts.into_iter().map(|part| {
            let payload = self.adapter.payload_of_program(part.payload);
            let mut stdin = payload.to_string().into_bytes();
            stdin.push(b'\n');
            Payload {
                stdin,
                env: variables(self.adapter, event, &part.native_event, self.project),
                lost: part.lost,
                call: part.call,
            }
        });
        Ok(parts.collect())
    }

    /// An agent may give any exit code a meaning.
    fn has_answer_at(&self, _exit: i32) -> bool {
        true
    }

    fn parse_answer(&self, event: &HookEvent, output: ProgramOutput<'_>) -> ParsedAnswer {
        let encoded = self.adapter.encode(event, self.native_event);
        let native = encoded.map_or_else(String::new, |encoded| encoded.native_event);
        let read =
            self.adapter
                .decode_answer(event, &native, output.stdout, output.stderr, output.exit);
        let mut answer = ParsedAnswer {
            response: read.response,
            error: read.error,
            warnings: Vec::new(),
        };
        // What was meant as a deny must not become an allow, though the agent itself would
        // let the call pass.
        if read.is_meant_as_deny {
            let why = answer.error.take();
            answer.response.decision = Some(Decision::Deny);
            let reason = why
                .as_ref()
                .map(|why| format!("the hook denies, but {why}"));
            answer.response.reason = answer.response.reason.or(reason);
            answer
                .warnings
                .extend(why.map(|why| format!("taken as a deny: {why}")));
        }
        answer
    }
}

/// The variables that the agent gives its hooks.
fn variables(
    adapter: &Adapter,
    event: &HookEvent,
    native_event: &str,
    project: &Path,
) -> Vec<(String, String)> {
    let project = project.to_string_lossy();
    let values = [
        ("{project}", Some(&*project)),
        ("{session_id}", event.session_id.as_deref()),
        ("{transcript_path}", event.text("transcript_path")),
        ("{event}", Some(native_event)),
        ("{tool}", event.native_tool_name()),
    ];
    let fill = |text: String, (name, value): &(&str, Option<&str>)| {
        text.replace(name, value.unwrap_or_default())
    };
    let variables = adapter.spec.env.iter();
    variables
        .filter(|(_, template)| *template != "{plugin}")
        .map(|(name, template)| {
            (
                name.to_string(),
                values.iter().fold(template.to_string(), fill),
            )
        })
        .collect()
}
