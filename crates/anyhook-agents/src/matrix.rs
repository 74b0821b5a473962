//! What each agent can do, derived from its table, so that nothing can disagree
//! with it.

use anyhook_model::registry;
use serde::Serialize;
use serde_json::{Value, json};

use crate::Adapter;
use crate::spec::{ConfigFile, ConfigShape, EventSpec};

/// Whether an agent has a capability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Support {
    Yes,
    /// Only at some events, or only some forms of it.
    Partly(String),
    No,
}

impl Adapter {
    /// The format of a config file; `folder` and `plugin` where it is not a document.
    pub fn file_format(&self, file: &ConfigFile) -> &'static str {
        match (file.format, self.spec.config.shape) {
            (Some(format), _) => format.as_str(),
            (None, ConfigShape::Plugin) => "plugin",
            (None, _) => "folder",
        }
    }

    /// The native events of a canonical one.
    pub fn events_of(&self, canonical: &str) -> impl Iterator<Item = &EventSpec> + Clone {
        let events = self.spec.events.iter();
        events.filter(move |event| event.is.as_deref() == Some(canonical))
    }

    /// The native events that are written for a canonical one.
    pub fn written_events(&self, canonical: &str) -> impl Iterator<Item = &EventSpec> + Clone {
        self.events_of(canonical).filter(|event| !event.read_only)
    }

    /// The note about a canonical event that the agent lacks; `None` if it has it.
    pub fn absent_event_note(&self, canonical: &str) -> Option<&str> {
        let note = self.spec.absent.events.get(canonical);
        let is_absent = self.events_of(canonical).next().is_none();
        is_absent.then(|| note.map_or("not available", AsRef::as_ref))
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
                let mut has = vec!["windows", "linux", "osx"];
                has.retain(|system| handler.has(&format!("platform.{system}")));
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

    /// Support is full if every event before a tool call has it.
    fn at_events(&self, can: impl Fn(&EventSpec) -> bool) -> Support {
        let mut before = self.written_events("before_tool_execute").peekable();
        if before.peek().is_some() && before.all(&can) {
            return Support::Yes;
        }
        let able = self.spec.events.iter();
        let able = able.filter(|event| can(event) && !event.read_only);
        let names: Vec<&str> = able.map(|event| event.native.as_ref()).collect();
        if names.is_empty() {
            return Support::No;
        }
        Support::Partly(format!("at {}", names.join(", ")))
    }

    /// The whole description as JSON.
    pub fn describe(&self) -> Value {
        let spec = &self.spec;
        let mut events = serde_json::Map::new();
        for event in registry::EVENTS {
            let native: Vec<Value> = self
                .events_of(event.name)
                .map(|event| {
                    json!({
                        "native": event.native,
                        "blocking": event.blocking,
                        "matcher": event.matcher,
                        "tools": event.tools,
                        "written": !event.read_only,
                        "approximate": event.approximate,
                        "note": event.note,
                    })
                })
                .collect();
            let value = match self.absent_event_note(event.name) {
                Some(note) => json!({ "absent": note }),
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
            .map(|event| json!({"native": event.native, "blocking": event.blocking, "note": event.note}))
            .collect();
        let files: Vec<Value> = spec
            .files
            .iter()
            .map(|file| {
                let mut value = json!(file);
                if let Some(map) = value.as_object_mut() {
                    map.insert("format".to_owned(), json!(self.file_format(file)));
                }
                value
            })
            .collect();
        let hazards: Vec<Value> = spec
            .hazards
            .iter()
            .map(|one| json!({"code": one.id, "message": one.what, "why": one.why, "help": one.remedy}))
            .collect();
        json!({
            "agent": spec.id,
            "name": spec.name,
            "homepage": spec.homepage,
            "summary": spec.summary,
            "aliases": spec.aliases,
            "verified": spec.verified,
            "legacy": spec.legacy,
            "trust": spec.trust,
            "also_reads": spec.also_reads,
            "files": files,
            "events": events,
            "exclusive_events": exclusive,
            "tools": tools,
            "mcp": spec.mcp.format,
            "capabilities": capabilities,
            "timeout": {"default": spec.config.handler.default_timeout},
            "hazards": hazards,
        })
    }
}

/// The agents that are clients, not only formats.
pub fn clients() -> impl Iterator<Item = &'static Adapter> {
    crate::all().filter(|adapter| !adapter.spec.pseudo)
}
