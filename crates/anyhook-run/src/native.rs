//! The agents of `anyhook-agents`, as callers and as dialects.
//!
//! As a caller an agent sends its payload and obeys its answer; as a dialect
//! it lends both to a program that was written for it.

use std::path::{Path, PathBuf};

use anyhook_agents::Adapter;
use anyhook_agents::respond::RenderOptions;
use anyhook_model::{Answer, Decision, HookEvent, HookResponse};

use crate::agent::{self, Agent, Decoded, Rendered, Suspect};
use crate::beside::{self, Voice};
use crate::dialect::{Dialect, Payload, Read};
use crate::json;

/// The event at which most is at stake.
const BEFORE_TOOL: &str = "before_tool_execute";

/// An agent that calls. Of its table only what the event at hand needs is read.
pub struct Caller(pub anyhook_agents::Caller);

impl Caller {
    /// The agent that sent the event; it may be another than the named one.
    fn adapter(&self, event: &HookEvent) -> Option<&'static Adapter> {
        let caller = match event.source.as_str() {
            "" => self.0,
            source => anyhook_agents::caller(source).unwrap_or(self.0),
        };
        caller.for_event(&event.native_event)
    }

    /// A refusal whatever the event is: the exit code that nearly every agent
    /// takes for one, with the words of this one's most important event. Where
    /// its table says that those words need another exit code, they get it.
    fn refuse_all(&self, message: &str) -> Answer {
        let refusal = Answer {
            stderr: format!("{message}\n"),
            exit: 2,
            ..Answer::default()
        };
        let Some(adapter) = anyhook_agents::get_for_run(self.0.slug()) else {
            return refusal;
        };
        let mut events = adapter.spec.events.iter();
        let Some(before) = events.find(|event| event.is.as_deref() == Some(BEFORE_TOOL)) else {
            return refusal;
        };
        let event = HookEvent {
            event: BEFORE_TOOL.to_owned(),
            source: self.0.slug().to_owned(),
            native_event: before.native.to_string(),
            ..HookEvent::default()
        };
        let own = self
            .render(&event, &HookResponse::deny(message), false)
            .answer;
        let read = adapter.read(&event, &before.native, &own.stdout, &refusal.stderr, 2);
        if !read.response.is_deny() && !own.stdout.is_empty() {
            return own;
        }
        Answer {
            stdout: own.stdout,
            ..refusal
        }
    }
}

impl Agent for Caller {
    fn slug(&self) -> &str {
        self.0.slug()
    }

    fn decode(&self, payload: &[u8], event: Option<&str>) -> Result<Decoded, String> {
        let json =
            json::read(payload).map_err(|error| format!("the payload is not JSON: {error}"))?;
        let adapter = self.0.for_payload(&json, event);
        let mut adapter = adapter.ok_or("the agent's table cannot be read")?;
        let caller = beside::caller(adapter, &json, event);
        if let Some(other) = caller.and_then(|caller| caller.for_payload(&json, event)) {
            adapter = other;
        }
        let decoded = adapter
            .decode(&json, event)
            .map_err(|error| error.to_string())?;
        let mut event = decoded.event;
        if event.cwd.as_deref().is_none_or(str::is_empty) {
            event.cwd = std::env::current_dir()
                .ok()
                .map(|path| path.to_string_lossy().into_owned());
        }
        let voice = caller.map_or(Voice::Full, |caller| beside::voice(caller, &event));
        Ok(Decoded {
            event,
            can_ask: true,
            voice,
        })
    }

    fn render(&self, event: &HookEvent, response: &HookResponse, can_ask: bool) -> Rendered {
        let Some(adapter) = self.adapter(event) else {
            return Rendered::default();
        };
        let can_ask =
            can_ask && (response.decision != Some(Decision::Ask) || somebody_is_there(adapter));
        let options = RenderOptions {
            can_ask,
            ..RenderOptions::default()
        };
        let rendered = adapter.render(event, response, options);
        Rendered {
            answer: Answer {
                stdout: rendered.stdout,
                stderr: rendered.stderr,
                exit: rendered.exit,
            },
            lost: rendered.lost,
        }
    }

    fn suspect(&self, payload: &[u8], event: Option<&str>) -> Option<Suspect> {
        let adapter = anyhook_agents::get_for_run(self.0.slug())?;
        let names = || {
            adapter.spec.events.iter().flat_map(|event| {
                let canonical = event.is.as_deref().unwrap_or(&event.native);
                let names = std::iter::once(&event.native)
                    .chain(&event.payload_name)
                    .chain(&event.aliases);
                names.map(move |name| (name.as_ref(), canonical))
            })
        };
        agent::suspect(names, payload, event)
    }

    fn failure(&self, event: Option<&str>, message: &str, block: bool) -> Answer {
        if block && event.is_none() {
            return self.refuse_all(message);
        }
        let event = HookEvent {
            source: self.0.slug().to_owned(),
            native_event: event.unwrap_or_default().to_owned(),
            ..HookEvent::default()
        };
        let response = if block {
            HookResponse::deny(message)
        } else {
            HookResponse {
                system_message: Some(message.to_owned()),
                ..HookResponse::default()
            }
        };
        let mut answer = self.render(&event, &response, false).answer;
        if answer.stdout.is_empty() && answer.stderr.is_empty() {
            // Where the agent has no place for words, its log may have one.
            answer.stderr = format!("{message}\n");
        }
        answer
    }
}

/// Whether a question of this agent's would find somebody.
pub fn is_attended(slug: &str) -> bool {
    anyhook_agents::get_for_run(slug).is_none_or(somebody_is_there)
}

/// Whether a question would find somebody. An agent that was started to run by
/// itself would wait for ever, or take silence for consent.
fn somebody_is_there(adapter: &Adapter) -> bool {
    let set = |name: &str| {
        std::env::var_os(name)
            .is_some_and(|value| !value.is_empty() && value != "false" && value != "0")
    };
    let detect = &adapter.spec.detect;
    if set("CI") || detect.unattended.iter().any(|mark| has_variable(mark)) {
        return false;
    }
    !started_headless(&detect.headless)
}

/// Looks at the command lines of the processes above us.
#[cfg(target_os = "linux")]
fn started_headless(flags: &[anyhook_agents::spec::Str]) -> bool {
    let mut pid = std::os::unix::process::parent_id();
    for _ in 0..6 {
        let Ok(line) = std::fs::read(format!("/proc/{pid}/cmdline")) else {
            return false;
        };
        let found = line
            .split(|byte| *byte == 0)
            .skip(1)
            .any(|word| flags.iter().any(|flag| flag.as_bytes() == word));
        if found {
            return true;
        }
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
            return false;
        };
        let parent = stat
            .rsplit(')')
            .next()
            .and_then(|rest| rest.split_whitespace().nth(1))
            .and_then(|word| word.parse().ok());
        match parent {
            Some(parent) if parent > 1 => pid = parent,
            _ => return false,
        }
    }
    false
}

#[cfg(not(target_os = "linux"))]
fn started_headless(_flags: &[anyhook_agents::spec::Str]) -> bool {
    false
}

/// `NAME` or `NAME=value`.
pub(crate) fn has_variable(mark: &str) -> bool {
    match mark.split_once('=') {
        Some((name, value)) => std::env::var_os(name).is_some_and(|there| there == value),
        None => std::env::var_os(mark).is_some(),
    }
}

/// The agent that the surroundings or the payload give away, and what did.
pub fn detect(payload: &[u8]) -> Option<(&'static Adapter, String)> {
    let by_env = anyhook_agents::all().find_map(|adapter| {
        let mark = adapter
            .spec
            .detect
            .env
            .iter()
            .find(|mark| has_variable(mark))?;
        Some((adapter, format!("the variable `{mark}`")))
    });
    by_env.or_else(|| {
        let json = json::read(payload).ok()?;
        let best = anyhook_agents::all()
            .filter(|adapter| adapter.recognises(&json))
            .max_by_key(|adapter| adapter.spec.detect.payload.len())?;
        Some((best, "the form of the payload".to_owned()))
    })
}

/// A program that was written for an agent.
pub struct Native {
    pub adapter: &'static Adapter,
    /// The native event that the program expects, where several would do.
    pub native_event: Option<String>,
    pub project: PathBuf,
}

impl Native {
    /// The native event under which the program is asked.
    fn event_name(&self, event: &HookEvent) -> String {
        let chosen = self.native_event.as_deref();
        self.adapter
            .encode(event, chosen)
            .map(|encoded| encoded.native_event)
            .unwrap_or_default()
    }
}

impl Dialect for Native {
    fn encode(&self, event: &HookEvent) -> Result<Vec<Payload>, String> {
        let parts = self
            .adapter
            .encode_parts(event, self.native_event.as_deref());
        if parts.is_empty() {
            return Err(format!("{} has no such event", self.adapter.spec.name));
        }
        let parts = parts.into_iter().map(|part| {
            let mut stdin = part.payload.to_string().into_bytes();
            stdin.push(b'\n');
            Payload {
                stdin,
                env: variables(self.adapter, event, &part.native_event, &self.project),
                lost: part.lost,
            }
        });
        Ok(parts.collect())
    }

    fn read(&self, event: &HookEvent, stdout: &[u8], stderr: &[u8], exit: Option<i32>) -> Read {
        let native = self.event_name(event);
        let (stdout, stderr) = (
            String::from_utf8_lossy(stdout),
            String::from_utf8_lossy(stderr),
        );
        let read = self
            .adapter
            .read(event, &native, &stdout, &stderr, exit.unwrap_or_default());
        Read {
            response: read.response,
            error: read.error,
            warnings: Vec::new(),
        }
    }
}

/// The variables which that agent gives its hooks.
fn variables(
    adapter: &Adapter,
    event: &HookEvent,
    native_event: &str,
    project: &Path,
) -> Vec<(String, String)> {
    let fill = |template: &str| {
        template
            .replace("{project}", &project.to_string_lossy())
            .replace(
                "{session_id}",
                event.session_id.as_deref().unwrap_or_default(),
            )
            .replace(
                "{transcript_path}",
                event.text("transcript_path").unwrap_or_default(),
            )
            .replace("{event}", native_event)
            .replace("{tool}", event.native_tool_name().unwrap_or_default())
    };
    adapter
        .spec
        .env
        .iter()
        .map(|(name, template)| (name.to_string(), fill(template)))
        .collect()
}
