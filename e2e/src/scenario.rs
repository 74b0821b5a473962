//! What the model should do, independent of any client: a list of steps, one per model turn.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One turn of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Run a command with the client's shell tool.
    Shell { command: String },
    /// Create a file with the client's writing tool; the path is relative to the project.
    Write { path: String, content: String },
    /// Read a file.
    Read { path: String },
    /// Replace whole lines of a file; a patch cannot carry less.
    Edit {
        path: String,
        old: String,
        new: String,
    },
    /// Hand a prompt to a sub-agent; give it its own [`Thread`].
    Subagent { prompt: String },
    /// Wait for the sub-agent; added by the runner for clients that need it.
    AwaitSubagent,
    /// Apply a patch that adds, changes, moves or deletes several files.
    Patch { patch: String },
    /// Call the tool of the MCP server that notes a text.
    Mcp { text: String },
    /// Several calls in one turn.
    Together(Vec<Step>),
    /// Call a tool by the client's own name, with exactly these arguments.
    Call { tool: String, arguments: Value },
    /// Answer with text, which ends the turn of the agent.
    Say(String),
    /// Answer with an HTTP error.
    Fail { status: u16, message: String },
}

impl Step {
    /// The row of a client's tool table that this step needs, if it needs one.
    pub fn role(&self) -> Option<&'static str> {
        match self {
            Step::Shell { .. } => Some("shell"),
            Step::Write { .. } => Some("write"),
            Step::Read { .. } => Some("read"),
            Step::Edit { .. } => Some("edit"),
            Step::Subagent { .. } => Some("subagent"),
            Step::AwaitSubagent => Some("await_subagent"),
            Step::Patch { .. } => Some("patch"),
            Step::Mcp { .. } => Some("mcp"),
            Step::Together(_) | Step::Call { .. } | Step::Say(_) | Step::Fail { .. } => None,
        }
    }

    /// The rows that this step and those inside it need.
    pub fn roles(&self) -> Vec<&'static str> {
        match self {
            Step::Together(steps) => steps.iter().flat_map(Step::roles).collect(),
            step => step.role().into_iter().collect(),
        }
    }
}

/// The steps of a conversation that a text in the user's messages identifies, such as a sub-agent's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thread {
    pub when: String,
    pub steps: Vec<Step>,
}

/// The script of one session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The steps of the main conversation.
    pub steps: Vec<Step>,
    /// Other conversations; the first whose `when` occurs wins over `steps`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<Thread>,
    /// The text of every turn after the last step.
    #[serde(default = "Scenario::default_otherwise")]
    pub otherwise: String,
}

impl Scenario {
    pub fn new(steps: impl Into<Vec<Step>>) -> Self {
        Scenario {
            steps: steps.into(),
            threads: Vec::new(),
            otherwise: Self::default_otherwise(),
        }
    }

    pub fn thread(mut self, when: impl Into<String>, steps: impl Into<Vec<Step>>) -> Self {
        self.threads.push(Thread {
            when: when.into(),
            steps: steps.into(),
        });
        self
    }

    /// The same, with a wait after each sub-agent.
    #[must_use]
    pub(crate) fn awaiting_subagents(mut self) -> Self {
        let steps = std::mem::take(&mut self.steps).into_iter();
        self.steps = steps
            .flat_map(|step| {
                let wait = matches!(step, Step::Subagent { .. }).then_some(Step::AwaitSubagent);
                [step].into_iter().chain(wait)
            })
            .collect();
        self
    }

    /// The steps of the conversation with this user text.
    pub(crate) fn steps_for(&self, user_text: &str) -> &[Step] {
        self.threads
            .iter()
            .find(|thread| user_text.contains(&thread.when))
            .map_or(self.steps.as_slice(), |thread| thread.steps.as_slice())
    }

    fn default_otherwise() -> String {
        "Nothing is left to do.".to_owned()
    }
}
