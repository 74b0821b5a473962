//! Decides what the model answers to one request. It keeps no state: the step to play follows from how many
//! turns of the model the request's own history holds, so retries, side requests and parallel conversations
//! do not affect the script.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::scenario::{Scenario, Step};
use crate::tools::{Call, ToolTable};
use crate::wire::ModelRequest;

/// What the model answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Say(String),
    /// One call or several in one turn.
    Calls(Vec<Call>),
    Fail {
        status: u16,
        message: String,
    },
}

impl Reply {
    /// The answer in one line, for the record.
    pub fn summary(&self) -> String {
        match self {
            Reply::Say(text) => format!("say: {text}"),
            Reply::Calls(calls) => {
                let calls = calls.iter();
                let calls: Vec<String> = calls
                    .map(|call| format!("{} {:?}", call.name, call.input))
                    .collect();
                format!("call: {}", calls.join(", "))
            }
            Reply::Fail { status, message } => format!("fail: {status} {message}"),
        }
    }
}

/// What a request was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A turn of a conversation with tools.
    Turn,
    /// A title, a summary, a classification: no tools are offered. Plays no step.
    Side,
    /// A turn that asked for a step whose tool the client did not offer.
    Unoffered,
    /// Not a request for an answer: a models list, a token count, a ping.
    Service,
}

/// The answer, and why it is this one.
#[derive(Clone, Debug)]
pub struct Decision {
    pub purpose: Purpose,
    pub step: Option<usize>,
    pub reply: Reply,
}

/// A scenario in the terms of one client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Script {
    pub scenario: Scenario,
    pub tools: ToolTable,
    /// Where the client works, for tools that want absolute paths.
    pub project: PathBuf,
}

impl Script {
    pub fn decide(&self, request: &ModelRequest) -> Decision {
        let mut offered = request.tools.iter();
        let is_aside = offered.all(|tool| self.tools.aside.contains(tool));
        if is_aside || request.schema.is_some() {
            let text = match &request.schema {
                Some(schema) => sample(schema).to_string(),
                None => "A title".to_owned(),
            };
            return Decision {
                purpose: Purpose::Side,
                step: None,
                reply: Reply::Say(text),
            };
        }
        let turn = |step, reply| Decision {
            purpose: Purpose::Turn,
            step,
            reply,
        };
        match self
            .scenario
            .steps_for(&request.user_text)
            .get(request.turns)
        {
            None => turn(None, Reply::Say(self.scenario.otherwise.clone())),
            Some(Step::Say(text)) => turn(Some(request.turns), Reply::Say(text.clone())),
            Some(Step::Fail { status, message }) => turn(
                Some(request.turns),
                Reply::Fail {
                    status: *status,
                    message: message.clone(),
                },
            ),
            Some(step) => match self.offered_calls(step, request) {
                Ok(calls) => turn(Some(request.turns), Reply::Calls(calls)),
                Err(missing) => Decision {
                    purpose: Purpose::Unoffered,
                    step: Some(request.turns),
                    reply: Reply::Say(format!("no tool {missing} among {:?}", request.tools)),
                },
            },
        }
    }
}

impl Script {
    /// The calls of a step, or the tool that the client does not offer.
    fn offered_calls(
        &self,
        step: &Step,
        request: &ModelRequest,
    ) -> std::result::Result<Vec<Call>, String> {
        let calls = self
            .tools
            .calls(step, &self.project)
            .ok_or_else(|| format!("for {step:?}"))?;
        // A tool that is loaded on demand is callable by its name before it is on offer.
        match calls
            .iter()
            .find(|call| !call.unlisted && !request.tools.contains(&call.name))
        {
            Some(call) => Err(format!("`{}`", call.name)),
            None => Ok(calls),
        }
    }
}

/// A small instance of a JSON schema, for side requests that demand structured output.
fn sample(schema: &Value) -> Value {
    if let Some(fixed) = schema.get("const") {
        return fixed.clone();
    }
    if let Some(first) = schema.pointer("/enum/0") {
        return first.clone();
    }
    for union in ["/anyOf/0", "/oneOf/0", "/allOf/0"] {
        if let Some(first) = schema.pointer(union) {
            return sample(first);
        }
    }
    let kind = schema.get("type");
    let kind = kind
        .and_then(Value::as_str)
        .or_else(|| kind?.get(0)?.as_str())
        .unwrap_or("object")
        .to_ascii_lowercase();
    match kind.as_str() {
        "string" => json!("text"),
        "integer" | "number" => json!(1),
        "boolean" => json!(false),
        "null" => Value::Null,
        "array" => json!([]),
        _ => schema
            .get("properties")
            .and_then(Value::as_object)
            .map(|members| {
                members
                    .iter()
                    .map(|(key, member)| (key.clone(), sample(member)))
                    .collect::<Map<_, _>>()
            })
            .unwrap_or_default()
            .into(),
    }
}
