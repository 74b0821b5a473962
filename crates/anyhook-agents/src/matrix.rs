//! What each agent can do, read off its table. Nothing is declared beside the
//! rows, so that nothing can disagree with them.

use anyhook_model::registry;
use serde::Serialize;
use serde_json::{Value, json};

use crate::Adapter;
use crate::spec::{Blocking, Event};

/// Whether an agent has a capability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Support {
    Yes,
    /// Only there, or only so.
    Partly(String),
    No,
}

impl Blocking {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prevent => "prevent",
            Self::Retry => "retry",
            Self::Feedback => "feedback",
            Self::Observe => "observe",
        }
    }
}

impl Adapter {
    /// The events by which a canonical one is written, or read.
    pub fn events_of(&self, canonical: &str) -> impl Iterator<Item = &Event> {
        self.spec
            .events
            .iter()
            .filter(move |event| event.is.as_deref() == Some(canonical))
    }

    /// A capability of the registry, derived from the rows.
    pub fn capability(&self, name: &str) -> Support {
        let handler = &self.spec.config.handler;
        let field = |to: &str| {
            if handler.has(to) {
                Support::Yes
            } else {
                Support::No
            }
        };
        match name {
            "http_handler" => self.kind("http"),
            "llm_evaluated" => match (self.kind("prompt"), self.kind("agent")) {
                (Support::Yes, Support::Yes) => Support::Yes,
                (Support::No, Support::No) => Support::No,
                (Support::Yes, _) => Support::Partly("`prompt` only".into()),
                (prompt, _) => prompt,
            },
            "async_execution" => field("async"),
            "platform_commands" => {
                let all = ["windows", "linux", "osx"];
                let has: Vec<&str> = all
                    .into_iter()
                    .filter(|system| handler.has(&format!("platform.{system}")))
                    .collect();
                match has.len() {
                    0 => Support::No,
                    3 => Support::Yes,
                    _ => Support::Partly(format!("{} only", has.join(", "))),
                }
            }
            "custom_env" => field("env"),
            "configurable_cwd" => field("cwd"),
            "structured_output" => self.at_events(|event| self.has_structured_answer(event)),
            "input_rewrite" => self.at_events(|event| self.can_rewrite(event)),
            _ => Support::No,
        }
    }

    fn kind(&self, kind: &str) -> Support {
        let handler = &self.spec.config.handler;
        match (handler.types.get(kind), handler.type_events.get(kind)) {
            (None, _) => Support::No,
            (Some(_), Some(events)) => Support::Partly(format!("at {}", events.join(", "))),
            (Some(_), None) => Support::Yes,
        }
    }

    /// Judged where it matters most: before a tool runs.
    fn at_events(&self, can: impl Fn(&Event) -> bool) -> Support {
        let before: Vec<&Event> = self
            .events_of("before_tool_execute")
            .filter(|event| !event.read_only)
            .collect();
        let able = before.iter().filter(|event| can(event)).count();
        if able > 0 && able == before.len() {
            return Support::Yes;
        }
        let others: Vec<&str> = self
            .spec
            .events
            .iter()
            .filter(|event| can(event) && !event.read_only)
            .map(|event| event.native.as_ref())
            .collect();
        if others.is_empty() {
            Support::No
        } else {
            Support::Partly(format!("at {}", others.join(", ")))
        }
    }

    /// All of it, for machines.
    pub fn describe(&self) -> Value {
        let spec = &self.spec;
        let mut events = serde_json::Map::new();
        for event in registry::EVENTS {
            let native: Vec<Value> = self
                .events_of(event.name)
                .map(|event| {
                    json!({
                        "native": event.native,
                        "blocking": event.blocking.as_str(),
                        "matcher": event.matcher,
                        "tools": event.tools,
                        "written": !event.read_only,
                        "approximate": event.approximate,
                        "note": event.note,
                    })
                })
                .collect();
            let value = match spec.absent.events.get(event.name) {
                Some(why) => json!({ "absent": why }),
                None => json!(native),
            };
            events.insert(event.name.to_owned(), value);
        }
        let mut tools = serde_json::Map::new();
        for tool in registry::TOOLS {
            let names = self.native_names(tool.name);
            let value = match spec.absent.tools.get(tool.name) {
                Some(why) => json!({ "absent": why }),
                None if names.is_empty() => {
                    json!({"events": self.spec.events.iter().filter(|event| event.tools.iter().any(|one| one == tool.name)).map(|event| &event.native).collect::<Vec<_>>()})
                }
                None => json!({ "native": names }),
            };
            tools.insert(tool.name.to_owned(), value);
        }
        let capabilities: serde_json::Map<String, Value> = registry::CAPABILITIES
            .iter()
            .map(|one| (one.name.to_owned(), json!(self.capability(one.name))))
            .collect();
        let exclusive: Vec<Value> = spec
            .events
            .iter()
            .filter(|event| event.is.is_none())
            .map(|event| json!({"native": event.native, "blocking": event.blocking.as_str(), "note": event.note}))
            .collect();
        json!({
            "id": spec.id,
            "name": spec.name,
            "homepage": spec.homepage,
            "summary": spec.summary,
            "aliases": spec.aliases,
            "verified": spec.verified,
            "legacy": spec.legacy,
            "trust": spec.trust,
            "also_reads": spec.also_reads,
            "files": spec.files,
            "events": events,
            "exclusive_events": exclusive,
            "tools": tools,
            "mcp": spec.mcp.format,
            "capabilities": capabilities,
            "timeout": {"default": spec.config.handler.default_timeout},
            "hazards": spec.hazards,
        })
    }
}

/// The agents that are clients, not only forms.
pub fn clients() -> impl Iterator<Item = &'static Adapter> {
    crate::all().filter(|adapter| !adapter.spec.pseudo)
}
