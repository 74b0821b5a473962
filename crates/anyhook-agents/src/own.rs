//! A user's own agents: tables that are read at run time, with the same checks
//! as those of the build.
//!
//! The caller reads the files; a process takes them once. They are brought into
//! the form that the build gives to the others, so nothing else knows the
//! difference. The parser of TOML is behind a feature, and the dispatcher's crate
//! does without: the program hands it [`read_own_table`].

use std::sync::OnceLock;

use crate::spec::{AgentSpec, Codec};
use crate::{CompiledAgent, CompiledEvent, LazyTable, generated, quirks};
#[cfg(feature = "own-agents")]
use crate::{agent_toml, complete};

/// The text of one `agent.toml`.
#[derive(Debug, Clone)]
pub struct OwnTable {
    /// The file, for messages.
    pub file: String,
    /// The name of its folder.
    pub slug: String,
    pub text: String,
}

static OWN_AGENTS: OnceLock<OwnAgents> = OnceLock::new();

#[derive(Default)]
struct OwnAgents {
    agents: Vec<&'static CompiledAgent>,
    workspace_roots: Vec<&'static str>,
}

pub(crate) fn agents() -> impl Iterator<Item = &'static CompiledAgent> {
    OWN_AGENTS
        .get()
        .into_iter()
        .flat_map(|own| own.agents.iter().copied())
}

pub(crate) fn workspace_roots() -> impl Iterator<Item = &'static str> {
    let own = OWN_AGENTS.get().into_iter();
    own.flat_map(|own| own.workspace_roots.iter().copied())
}

/// Adds these agents to those of this process, the first time that it is called.
/// Of two with the same name the first counts. Returns what is wrong with the
/// tables that cannot be used.
pub fn add(
    tables: &[OwnTable],
    read: impl Fn(&OwnTable) -> Result<AgentSpec, String>,
) -> Vec<String> {
    let mut own = OwnAgents::default();
    let mut problems = Vec::new();
    for table in tables {
        if own.agents.iter().any(|agent| agent.slug == table.slug) {
            continue;
        }
        match read(table) {
            Ok(agent) => {
                let rows = agent.payload.rows.values().flatten();
                let rows = rows.chain(agent.events.iter().flat_map(|event| &event.rows));
                let roots = rows
                    .filter(|row| row.to == "cwd" && row.codec == Codec::First)
                    .map(|row| leaked(&row.at));
                own.workspace_roots.extend(roots);
                match compiled(&agent) {
                    Ok(agent) => own.agents.push(agent),
                    Err(error) => problems.push(format!("{}: {error}", table.file)),
                }
            }
            Err(message) => problems.push(message),
        }
    }
    // A second call finds the first one's agents.
    let _ = OWN_AGENTS.set(own);
    problems
}

/// The table of a user's agent, or what is wrong with it, with file and line.
#[cfg(feature = "own-agents")]
pub fn read_own_table(table: &OwnTable) -> Result<AgentSpec, String> {
    let OwnTable { file, slug, text } = table;
    let agent = agent_toml::parse(file, text, &crate::known_tables())?;
    let is_plain =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    if agent.id != *slug {
        return Err(format!(
            "{file}: `id` is `{}`, but its folder is `{slug}`; they must be the same",
            agent.id
        ));
    }
    if slug.is_empty() || !slug.chars().all(is_plain) || slug == "canonical" {
        return Err(format!(
            "{file}: `{slug}` cannot be a name; use lower-case letters, digits and `-`"
        ));
    }
    let names = std::iter::once(&agent.id).chain(&agent.aliases);
    let is_built_in = |name: &str| {
        let mut agents = generated::AGENTS.iter();
        agents.any(|agent| agent.slug == name || agent.aliases.contains(&name))
    };
    if let Some(taken) = names.into_iter().find(|name| is_built_in(name)) {
        return Err(format!(
            "{file}: `{taken}` is an agent that anyhook has already; choose another name"
        ));
    }
    Ok(agent)
}

/// What a table lacks that is no error in one of its words.
#[cfg(feature = "own-agents")]
pub fn gaps(agent: &AgentSpec) -> Vec<String> {
    complete::gaps(agent)
}

fn compiled(agent: &AgentSpec) -> postcard::Result<&'static CompiledAgent> {
    let whole = bytes(agent)?;
    let for_run = agent.clone().for_run();
    let run = bytes(&for_run)?;
    let (core, parts) = for_run.split_events();
    let mut events = Vec::new();
    for part in &parts {
        let event = &part.0;
        let others = event.payload_name.iter().chain(&event.aliases);
        let names: Vec<&'static str> = std::iter::once(&event.native)
            .chain(others)
            .map(|name| leaked(name))
            .collect();
        events.push(CompiledEvent {
            names: names.leak(),
            part: LazyTable::new(bytes(part)?),
        });
    }
    let base = agent.extends.as_deref();
    let base = base.and_then(|base| generated::AGENTS.iter().find(|other| other.slug == base));
    let aliases: Vec<&'static str> = agent.aliases.iter().map(|name| leaked(name)).collect();
    let paths: Vec<&'static str> = agent.files.iter().map(|file| leaked(&file.path)).collect();
    Ok(Box::leak(Box::new(CompiledAgent {
        slug: leaked(&agent.id),
        aliases: aliases.leak(),
        paths: paths.leak(),
        whole: LazyTable::new(whole),
        run: LazyTable::new(run),
        core: bytes(&core)?,
        events: events.leak(),
        event_at: leaked(agent.payload.event_at.as_deref().unwrap_or_default()),
        longest_wait: agent.config.handler.longest_wait(),
        quirks: base.map_or(&quirks::NoQuirks, |base| base.quirks),
        source: "",
    })))
}

/// For the rest of the process: there are as many as the user has agents.
fn leaked(text: &str) -> &'static str {
    text.to_owned().leak()
}

fn bytes<T: serde::Serialize>(value: &T) -> postcard::Result<&'static [u8]> {
    Ok(postcard::to_allocvec(value)?.leak())
}
