//! The dialect of a handler written for one agent: that agent's adapter encodes
//! the payload and reads the answer.

use std::borrow::Cow;
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

/// More than this in one variable keeps a program from starting on Windows; other
/// systems take 128 KiB.
const MAX_VARIABLE_BYTES: usize = 32_000;

/// The variables that the agent gives its hooks, without what is too long.
fn variables(
    adapter: &Adapter,
    event: &HookEvent,
    native_event: &str,
    project: &Path,
) -> Vec<(String, String)> {
    let project = project.to_string_lossy();
    let session_id = event.session_id.as_deref().map(foreign_word);
    let tool = event.native_tool_name().map(foreign_word);
    let values = [
        ("{project}", Some(&*project)),
        ("{session_id}", session_id.as_deref()),
        ("{transcript_path}", event.text("transcript_path")),
        ("{event}", Some(native_event)),
        ("{tool}", tool.as_deref()),
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
        .filter(|(_, value)| value.len() <= MAX_VARIABLE_BYTES)
        .collect()
}

/// A word of the payload that the model may have made up, such as the name of a tool.
fn foreign_word(word: &str) -> Cow<'_, str> {
    if cfg!(windows) {
        plain_for_cmd(word)
    } else {
        Cow::Borrowed(word)
    }
}

/// `cmd.exe` puts the value of `%NAME%` into a line before it takes the line apart:
/// an `&` in it would start a program. What means something to it becomes `_`.
fn plain_for_cmd(word: &str) -> Cow<'_, str> {
    let is_special = |c: char| c.is_control() || "\"%!^&|<>()".contains(c);
    if word.contains(is_special) {
        Cow::Owned(word.replace(is_special, "_"))
    } else {
        Cow::Borrowed(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_word_means_something_to_cmd() {
        assert_eq!(plain_for_cmd("mcp__a__b-c.d"), "mcp__a__b-c.d");
        assert_eq!(
            plain_for_cmd("x\" & calc %A% !B! ^|<>()\r\n"),
            "x_ _ calc _A_ _B_ ________"
        );
    }
}
